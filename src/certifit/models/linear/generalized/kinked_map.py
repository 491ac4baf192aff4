"""Laplace noise about a mean that is not linear in the score: a sequence of least absolute deviations.

    min over w, b    Σ p_i |y_i − g(f_i)| + R(w),      f = Xw + b

At scores f the mean is g(f) + g′(f)·(t − f) to first order, so that the objective is near
Σ p_i g′_i |f_i + (y_i − g_i)/g′_i − t_i| + R(w): least absolute deviations of working targets with working weights, as weighted
least squares is for other families. The step towards its solution is halved until the true objective falls (Gauss and Newton for
kinks; Osborne and Watson 1971).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.certificate import Certificate
from certifit.evaluation.losses import Absolute, MeanLoss
from certifit.evaluation.losses.mean import Shifted
from certifit.optimization.objective.dispatch import minimize
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.progress import Progress

__all__ = ["linearized"]

ROUNDS = 60
HALVINGS = 30
STRONGEST = 1e300  # penalty beside slopes of next to nothing


def linearized(
    problem: Problem, tol: float, max_iter: int, clock: Progress, start: Point | None = None
) -> tuple[Solution, Certificate]:
    """A stationary point of the objective, with the word that no bound is known."""
    w, b = start or problem.start()
    value, rounds = problem.objective(w, b), 0
    for rounds in range(1, min(ROUNDS, max_iter) + 1):
        toward_w, toward_b = _step(problem, w, b, tol, max_iter)
        share, reached = 1.0, np.inf
        for _ in range(HALVINGS):
            trial = w + share * (toward_w - w), b + share * (toward_b - b)
            reached = problem.objective(*trial)
            if reached < value:
                break
            share *= 0.5
        clock.update(rounds, ROUNDS, value)
        if not reached < value:
            break
        (w, b), fall, value = trial, value - reached, reached
        if fall <= 1e-3 * tol * problem.scale:
            break
    certificate = Certificate.absent(
        value, problem.loss.unproven, scale=problem.scale, bound=-np.inf, iterations=rounds, seconds=clock.seconds
    )
    return Solution(w, b, rounds, "linearized", objective=value), certificate


def _step(problem: Problem, w: Any, b: Any, tol: float, max_iter: int) -> Point:
    """The least absolute deviations of the means that are linear in the scores."""
    f = problem.scores(w, b)
    loss, y, shifted = problem.loss, problem.y, f
    if isinstance(loss, Shifted):
        y, shifted = loss.of(problem.y, f)
        loss = loss.loss
    assert isinstance(loss, MeanLoss)
    with np.errstate(all="ignore"):
        slope = loss.map.slope(shifted)
        target = f + (y - loss.map.value(shifted)) / slope
    # Where the map is flat a row has no say, and its working target may overflow.
    used = (slope > 1e-8 * slope.max()) & np.isfinite(target)
    p = (problem.p * slope)[used]
    total = float(p.sum())
    if not total >= np.finfo(np.float64).tiny:  # flat everywhere, as for targets beyond every mean: stationary
        return w, b
    regularizer = replace(problem.regularizer, alpha=min(problem.regularizer.alpha / total, STRONGEST))
    linear = replace(problem, X=problem.X[used], y=target[used], p=p / total, loss=Absolute(), regularizer=regularizer)
    solution, _ = minimize(linear, "auto", tol, max_iter, Progress())
    return solution.coef, solution.intercept
