"""The best subsets of every size for least squares, from correlations alone (`native/subset/subset.hpp`)."""

from __future__ import annotations

import math

import numpy as np

import certifit._native.subset as _native
from certifit._types import Array
from certifit.models.selection.units import LEAST_PIVOT

__all__ = ["best_subsets", "separable_part"]


def best_subsets(
    gram: Array, most: int | None = None, max_nodes: int = 1_000_000, seconds: float = math.inf
) -> tuple[Array, Array, Array, int]:
    """Best subsets of every size up to `most`, from the correlations of (y, X).

    Parameters
    ----------
    gram : array of shape (1 + d, 1 + d)
        Diagonal 1, or 0 for what is constant.
    most : int, optional
        Largest size; all by default.
    max_nodes : int
        Most subsets to look at.
    seconds : float
        Time after which no further subset is looked at.

    Returns
    -------
    supports : array of bool of shape (most + 1, d)
    shares, bounds : array of shape (most + 1,)
        Residual sum of squares of each subset, and what none of its size goes below.
    nodes : int
        Subsets looked at.
    """
    d = gram.shape[0] - 1
    most = d if most is None else min(most, d)
    useful = np.flatnonzero(np.diag(gram)[1:] > 0.5)
    supports = np.zeros((most + 1, d), dtype=bool)
    if not useful.size:
        return supports, np.full(most + 1, gram[0, 0]), np.full(most + 1, gram[0, 0]), 0
    kept = np.r_[0, 1 + useful]
    inner = np.ascontiguousarray(gram[np.ix_(kept, kept)])
    delta, smallest = separable_part(inner[1:, 1:])
    # An entry of an inverse is wrong by its size times this, and so is what is computed from it.
    slack = 16.0 * useful.size * np.finfo(np.float64).eps / smallest
    found, aside, chosen, nodes = _native.best_subsets(
        inner, delta, min(most, useful.size), LEAST_PIVOT, slack, max_nodes, seconds
    )
    shares = np.full(most + 1, np.inf)
    bounds = np.full(most + 1, np.inf)
    shares[: found.shape[0]], bounds[: found.shape[0]] = found, np.minimum(found, aside)
    supports[: found.shape[0], useful] = chosen.astype(bool)
    for size in range(1, most + 1):  # fewer columns that do as well: a further one adds nothing
        if not shares[size] < shares[size - 1]:
            shares[size], supports[size] = shares[size - 1], supports[size - 1]
        bounds[size] = min(bounds[size], bounds[size - 1])
    return supports, shares, np.maximum(0.0, bounds - slack), int(nodes)


def separable_part(correlation: Array) -> tuple[Array, float]:
    """A diagonal below the matrix, diag(δ) ⪯ R, and the least eigenvalue of R that is not rounding.

    With v_j the share of x_j that the other columns leave unexplained, δ = λ·v for the largest λ: the smallest
    eigenvalue of R in the units √v.
    """
    spectrum = np.linalg.eigvalsh(correlation)
    smallest = float(spectrum[spectrum > LEAST_PIVOT][0])
    if spectrum[0] <= LEAST_PIVOT:
        return np.zeros(correlation.shape[0]), smallest
    unexplained = 1.0 / np.diag(np.linalg.inv(correlation))
    if not (unexplained > 0.0).all():  # the matrix itself is rounding, and says nothing
        return np.zeros(correlation.shape[0]), smallest
    root = np.sqrt(unexplained)
    factor = float(np.linalg.eigvalsh(correlation / np.outer(root, root))[0])
    rounding = 16.0 * correlation.shape[0] * np.finfo(np.float64).eps / smallest
    return np.maximum(0.0, factor - rounding) * unexplained, smallest
