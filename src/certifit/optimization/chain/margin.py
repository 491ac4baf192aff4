"""The structured margin by block-coordinate Frank-Wolfe, with its own duality gap.

    minimize over w    alpha/2·‖w‖² + Σ_i p_i max_y (Δ_i(y) + w·ψ_i(y) − w·ψ_i(y_i)),      Δ_i(y) = Σ_t cost(y_it, y_t)
    maximize over λ    Σ_i p_i Σ_a λ_ia Δ_i(y_a) − alpha/2·‖w(λ)‖²,    w(λ) = (1/alpha) Σ_i p_i Σ_a λ_ia (ψ_i(y_i) − ψ_i(y_a))

λ_i mixes the labellings that sequence i has met (native/chain/margin.hpp). The primal value at w(λ) and the dual value at λ are
computed afresh for every gap, after w was rebuilt from λ, so that no rounding adds up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import certifit._native.chain as native
from certifit._types import Array
from certifit.optimization.chain.shape import ChainShape, native_sequences
from certifit.optimization.stochastic.descent import Visits
from certifit.progress import Progress
from certifit.representation.sequences.positions import Positions

__all__ = ["MarginFit", "solve_margin"]


@dataclass(frozen=True)
class MarginFit:
    """The weights, their objective, the dual bound and the passes spent."""

    w: Array
    objective: float
    bound: float
    epochs: int


def solve_margin(
    data: Positions,
    y: Array,
    p: Array,
    shape: ChainShape,
    cost: Array,
    *,
    alpha: float,
    unit: float,
    tol: float,
    max_epochs: int,
    rng: np.random.Generator,
    threads: int,
    clock: Progress,
) -> MarginFit:
    """Passes over the sequences in drawn order until the gap is at most tol·unit.

    Parameters
    ----------
    data : Positions
    y : int32 array of shape (n_positions,)
    p : array of shape (n_sequences,)
        Weights that sum to one.
    shape : ChainShape
        With a weight for every label.
    cost : array of shape (labels, labels)
        cost[y, k] ≥ 0 of taking k for y, zero on the diagonal.
    alpha, unit, tol : float
    max_epochs : int
    rng : Generator
        Draws the order of the sequences.
    threads : int
        Of the gaps; the passes visit one sequence after the other.
    clock : Progress
    """
    sequences, w = native_sequences(data), np.zeros(shape.size)
    state = native.margin(sequences, shape.native, y, w, p, cost, shape.fixed, alpha)
    visits = Visits(np.ones(data.n_sequences), True, rng)
    best, best_objective, bound, epoch, check = w.copy(), np.inf, 0.0, 0, 1
    while True:
        if epoch >= check or epoch >= max_epochs:
            loss, mixed_cost = native.margin_values(sequences, shape.native, y, state, threads)
            square = 0.5 * alpha * float(w @ w)
            bound = max(bound, mixed_cost - square)
            if loss + square < best_objective:
                best, best_objective = w.copy(), loss + square
            gap = best_objective - bound
            clock.update(epoch, max_epochs, gap / unit if unit > 0 else 0.0)
            if gap <= tol * unit or epoch >= max_epochs:
                return MarginFit(best, best_objective, min(bound, best_objective), epoch)
            check = epoch + max(1, epoch // 8)
        native.frank_wolfe(sequences, shape.native, y, visits.next(), state)
        epoch += 1
