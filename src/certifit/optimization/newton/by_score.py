"""One prox-Newton step for each of K scores in turn, the others held: for working sets too large to couple.

Each score has its own curvature, the diagonal of the loss's; coordinate descent minimizes its model over the working set, and
a line search on P makes it a descent.     Friedman, Hastie & Tibshirani 2010
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.optimization.coordinate import descent as coordinate
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.regularizer import kernel_penalty

__all__ = ["one_round"]


def one_round(state: State, chosen: Array, tol: float) -> State:
    """Every score moved once over the chosen columns; rows in memory."""
    problem, (y, p) = state.problem, state.parts[0].block[1:3]
    loss, regularizer = problem.loss, problem.regularizer
    options = coordinate.Options(tol, problem.fit_intercept, n_threads=problem.threads)
    model = coordinate.QuadraticModel(problem.X, kernel_penalty(regularizer))
    f, w, b = state.parts[0].f.copy(order="F"), state.w.copy(), np.array(state.b)
    objective = state.objective
    for k in range(problem.n_scores):
        theta, h = loss.derivative(y, f)[:, k], loss.second_derivative(y, f)[:, k]
        result = model.solve(-p * theta, p * np.maximum(h, 1e-12), w[k], options, chosen)
        change, old, step = result.coef - w[k], f[:, k].copy(), 1.0
        before = regularizer.value(w[k])
        slope = float(p @ (theta * result.scores_change)) + regularizer.value(result.coef) - before
        for _ in range(30):
            f[:, k] = old + step * result.scores_change
            after = regularizer.value(w[k] + step * change)
            reached = problem.risk(f) + regularizer.value(w) - before + after
            if reached <= objective + 1e-4 * step * min(slope, 0.0):
                w[k], b[k], objective = w[k] + step * change, b[k] + step * result.intercept_change, reached
                break
            step *= 0.5
        else:
            f[:, k] = old
    return problem.at(w, problem.centered(b))
