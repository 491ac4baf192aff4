"""Piecewise linear losses with the Lq penalty, by a sequence of interior-point solves.

    P(w, b) = Σ p_i ℓ(y_i, x_i·w + b) + Σ_j c_j|w_j|^q / q,     1 < q < 2

The penalty is replaced by its second-order model at the current w, which leaves a piecewise linear loss plus a linear and a
quadratic term for each coefficient: what the interior point solves exactly, under any constraint. Newton's curvature
(q − 1)|w|^(q−2) converges fast; the curvature |w|^(q−2) makes the model an upper bound, and always descends.
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.optimization.interior_point.solve import InteriorPointResult, solve_polyhedral
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.problem import Problem, Solution
from certifit.progress import Progress

__all__ = ["sequential"]


def sequential(problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress) -> Solution:
    """Minimize P to the absolute gap `tol`."""
    power = problem.regularizer.power()
    assert power is not None  # the dispatcher sends nothing else here
    q, strength = power
    result = _model(problem, np.zeros_like(strength), strength, tol)
    w, b, f = _point(problem, result)
    objective, bound, iteration = problem.risk(f) + problem.regularizer.value(w), 0.0, 1
    share, stalled = q - 1.0, 0  # q − 1: Newton; 1: upper bound
    for iteration in range(2, max_iter + 1):
        size = np.maximum(np.abs(w), 1e-9 * max(float(np.abs(w).max(initial=0.0)), 1e-300))
        curvature = np.minimum(share * strength * size ** (q - 2.0), 1e12 * max(float(strength.max()), 1e-300))
        linear = strength * np.sign(w) * np.abs(w) ** (q - 1.0) - curvature * w
        result = _model(problem, linear, curvature, 0.1 * tol)
        bound = max(bound, dual_bound(problem.known(w, f), [result.theta]))
        new_w, new_b, new_f = _point(problem, result)
        step = 1.0
        while step > 1e-4:  # the objective is convex along the segment, and the segment stays in the constraint
            trial = problem.risk(f + step * (new_f - f)) + problem.regularizer.value(w + step * (new_w - w))
            if trial < objective:
                break
            step *= 0.5
        if trial < objective:
            w, b, f = w + step * (new_w - w), b + step * (new_b - b), f + step * (new_f - f)
            stalled = stalled + 1 if objective - trial <= 1e-15 * abs(objective) else 0
            objective = trial
        else:
            stalled += 1
        share = 1.0 if step < 0.5 else q - 1.0
        clock.update(iteration, max_iter, (objective - bound) / max(problem.scale, 1e-300))
        if objective - bound <= tol or stalled > 3:
            break
    return Solution(w, b, iteration, "sequential", bound)


def _model(problem: Problem, linear: Array, curvature: Array, tol: float) -> InteriorPointResult:
    terms = problem.loss.hinge_terms(problem.y)
    assert terms is not None
    return solve_polyhedral(
        problem.X,
        terms,
        problem.p,
        c=linear,
        l2=curvature,
        fit_intercept=problem.fit_intercept,
        tol=tol,
        **problem.regularizer.program_set(),
    )


def _point(problem: Problem, result: InteriorPointResult) -> tuple[Array, float, Array]:
    w = problem.regularizer.project(result.coef)
    return w, result.intercept, problem.scores(w, result.intercept)
