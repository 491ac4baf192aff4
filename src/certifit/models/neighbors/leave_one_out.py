"""The number of neighbors by leave-one-out, in one pass: the neighbors of each row besides itself, once, answer for every k.

    error(k)  =  (1/Σs) Σ_i s_i · loss(y_i, prediction of the k nearest other rows)        k = 1 … K

loss is the squared error, or one for a wrong class. All k are tried, so the least is the least: that much is certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.models.neighbors.distance import NearestSearch
from certifit.models.neighbors.votes import influence, neighborhood

__all__ = ["BestK", "choose"]

HELD = 1 << 22  # neighbors held at a time


@dataclass(frozen=True)
class BestK:
    """The errors of k = 1 … K, and the k of the least error; of equals the largest, which varies least."""

    errors: Array
    k: int

    def certificate(self, seconds: float) -> Certificate:
        """That no other k has a smaller error."""
        least = float(self.errors[self.k - 1])
        note, K = "Neighbors are exact; nothing else is minimized.", self.errors.shape[0]
        claim = f"least leave-one-out error of k = 1 … {K}"
        return Certificate.exact(least, note, kind="enumeration", iterations=K, seconds=seconds, claim=claim)


def choose(
    search: NearestSearch,
    X: Matrix,
    weight: Array | None,
    weights: Any,
    most: int,
    losses: Callable[[Array, Array, Array], Array],
) -> BestK:
    """The k of the least leave-one-out error.

    Parameters
    ----------
    search, X, weight, weights
        The rows, their copies, and what neighbors count.
    most : int
        Largest k, less than the number of copies.
    losses : function of (numbers of rows, numbers of their neighbors, contributions)
        The loss of each of these rows when its neighbors contribute so much.
    """
    n, errors = X.shape[0], np.zeros(most)
    step = max(1, HELD // (most + 1))
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        near = neighborhood(search, X[rows], most, weight, rows)
        heard = influence(weights, near.distance)
        share = np.ones(rows.shape[0]) if weight is None else weight[rows]
        for k in range(1, most + 1):
            # Without weights only the first k columns contribute.
            width = k if near.copies is None else near.row.shape[1]
            given = near.counted(k)[:, :width] * heard[:, :width]
            errors[k - 1] += share @ losses(rows, near.row[:, :width], given)
    errors /= n if weight is None else weight.sum()
    # Sums of equal parts in another order differ in the last digits.
    least = errors.min() * (1 + 1e-12)
    return BestK(errors, int(np.flatnonzero(errors <= least)[-1]) + 1)
