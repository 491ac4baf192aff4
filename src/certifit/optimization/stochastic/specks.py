"""Exact zeros for means of stochastic steps.

A mean of iterates is hardly ever exactly zero where the optimum of an L1 penalty is. Its least coefficients are taken out, the
others scaled by one factor to the best, as long as the objective

    P(c·w_S, b) = mean loss(y, c·X_S w_S + b) + R(c·w_S)

does not rise: the result is never further from the optimum, and a bound stays one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from certifit._types import Array
from certifit.optimization.objective.problem import Problem

__all__ = ["without_specks"]

SCALES = (0.5, 2.0)


def without_specks(problem: Problem, w: Array, b: Any, objective: float) -> tuple[Array, float]:
    """w with as many zeros as leave its objective no higher, found by halving their number, and the objective.

    Only for penalties of which the absolute values are the larger part, without constraint.
    """
    parts, regularizer = problem.regularizer.elastic(), problem.regularizer
    if parts is None or regularizer.constraint is not None or not np.isfinite(objective):
        return w, objective
    absolute, square = float((parts[0] * np.abs(w)).sum()), 0.5 * float((parts[1] * w * w).sum())
    if not absolute > square:
        return w, objective
    order = np.argsort(np.abs(w), axis=None)
    fewest, most = int(np.count_nonzero(w == 0)), w.size
    while fewest < most:
        zeros = (fewest + most + 1) // 2
        kept = w.copy()
        kept.flat[order[:zeros]] = 0.0
        kept = _scaled(problem, kept, b)
        value = problem.objective(kept, b)
        if value <= objective:
            w, objective, fewest = kept, value, zeros
        else:
            most = zeros - 1
    return w, objective


def _scaled(problem: Problem, w: Array, b: Any) -> Array:
    """w times the factor that is best for it."""
    f = problem.scores(w, np.zeros_like(b), exact=True)
    found = minimize_scalar(
        lambda c: problem.risk(c * f + b) + problem.regularizer.value(c * w), bounds=SCALES, method="bounded"
    )
    return (found.x * w).astype(w.dtype)
