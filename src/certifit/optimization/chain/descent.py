"""Stochastic gradient descent on the likelihood: one sequence after the other, by one thread.

    w ← (1 − η·l2)·w − η·∇(log Z_i − score_i(y_i)),      η = 1/(l2·(t0 + t))

One pass costs little more than one evaluation of all sequences and brings the parameters nearer to the optimum than many
iterations of a method that moves once in a pass; that method then goes on from there to any precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import certifit._native.chain as native
from certifit._types import Array
from certifit.optimization.chain.likelihood import Likelihood
from certifit.optimization.chain.shape import ChainShape

__all__ = ["descend", "first_pass"]


def descend(
    sequences: Any, shape: ChainShape, y: Array, visits: Array, w: Array, *, alpha: float, rate: float, t: float
) -> tuple[float, float]:
    """Visit the sequences in the order given; w changes in place.

    Parameters
    ----------
    sequences : native view of the sequences
    shape : ChainShape
    y : int32 array of shape (n_positions,)
        Codes of the labels.
    visits : uint32 array
        Sequences to visit.
    w : array of shape (shape.size,)
        Parameters.
    alpha : float
        Strength of ½‖w‖².
    rate : float
        The first step.
    t : float
        Visits made before.

    Returns
    -------
    tuple of float
        Sum of the losses, each before its own step, and the visits made by now.
    """
    t0 = max(2.0, 1.0 / max(alpha * rate, np.finfo(float).tiny))
    loss, scale, t = native.descent(
        sequences, shape.native, y, visits, w, shape.fixed, scale=1.0, alpha=alpha, t0=t0, t=t
    )
    w *= scale
    return loss, t


def first_pass(likelihood: Likelihood, l2: float, unit: float) -> Array:
    """Where a solver should begin: after one pass over sparse rows, or at zero if that did not do better than a constant.

    The curvature of one position along its own slope is at most ½(‖x‖² + 1), the 1 being its transition: its inverse,
    with the mean of ‖x‖², is the first step. As many sequences as there are get visited, each in proportion to its weight.

    Parameters
    ----------
    likelihood : Likelihood
    l2 : float
        Strength of ½‖w‖².
    unit : float
        Loss of the best constant model.
    """
    w, data = np.zeros(likelihood.shape.size), likelihood.data
    if data.dense is not None:
        return w
    rows, n = data.sparse, data.n_sequences
    with np.errstate(over="ignore"):
        square = float(rows.feature.shape[0] if rows.value is None else rows.value @ rows.value) / data.n_positions
    even = (np.arange(n) + 0.5) / n
    chosen = np.minimum(np.searchsorted(np.cumsum(likelihood.p), even), n - 1)
    visits = np.random.default_rng(0).permutation(chosen).astype(np.uint32)  # corpora are often sorted
    rate = 2.0 / (square + 1.0)
    loss, _ = descend(likelihood.sequences, likelihood.shape, likelihood.y, visits, w, alpha=l2, rate=rate, t=0.0)
    return w if loss < n * unit and np.isfinite(w).all() else np.zeros(w.shape[0])
