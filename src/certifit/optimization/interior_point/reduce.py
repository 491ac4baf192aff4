"""Smaller problems first: a ball that does not bind, and samples whose piece of the loss can be guessed.

Portnoy and Koenker (1997): solve on a subsample, fix the dual variable of every sample whose score is far
from its kinks, solve for the others only. The fixed dual variables are feasible, so the certificate is that
of the whole problem whether or not the guess was right; a wrong guess shows as a gap and costs a second
round.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.optimization.interior_point.core import CoreResult, solve_core
from certifit.optimization.interior_point.problem import Array, Polyhedral, proven, restrict

#: a ball of more than this radius, in units where data and kinks are of order one, probably does not bind
WIDE_BALL = 100.0

#: a ball of more than this radius holds all that can be found, and its square may be no number
BOUNDLESS = 1e100

#: subsample of SHARE·√m·n^⅔ samples, then BAND times as many next to the kinks
SHARE, BAND = 1.0, 1.5


#: below this number of rows the interior-point method is faster than two of them
MANY_ROWS = 20000


def solve_reduced(problem: Polyhedral, tol: float, max_iter: int) -> CoreResult:
    """Solve a scaled problem to the absolute gap tol, on fewer samples where that is possible."""
    if problem.ball is not None and problem.ball[1] > WIDE_BALL:
        free = solve_reduced(replace(problem, ball=None), tol, max_iter)
        w = free.certified.z[: problem.n_coef]
        norm = float(np.abs(w).sum() if problem.ball[0] == "l1" else np.linalg.norm(w))
        if norm <= problem.ball[1] and (free.status in ("optimal", "infeasible") or problem.ball[1] > BOUNDLESS):
            return free
    design = problem.design
    soft = bool(np.isfinite(problem.low).all() and np.isfinite(problem.high).all())
    if soft and not design.sparse and design.n_rows >= MANY_ROWS:
        guessed = _by_guessing(problem, tol, max_iter)
        if guessed is not None:
            return guessed
    return solve_core(problem, tol, max_iter)


def _by_guessing(problem: Polyhedral, tol: float, max_iter: int) -> CoreResult | None:
    """Portnoy and Koenker's preprocessing; None when it does not reach the tolerance."""
    n, m = problem.design.n_rows, problem.design.n_columns
    size = int(SHARE * np.sqrt(m) * n ** (2 / 3))
    if 3 * size > n:
        return None
    chosen = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    few = restrict(problem, chosen, np.zeros(n))
    few = replace(few, low=few.low * (n / size), high=few.high * (n / size))
    first = solve_core(few, tol, max_iter, relative=0.25 * m / size)
    if first.status != "optimal":
        return None
    used = first.iterations
    score = problem.design.forward(first.certified.z)
    distance = np.minimum(_distance(score, problem.upper, problem.high), _distance(score, problem.lower, problem.low))
    near = np.zeros(n, dtype=bool)
    near[np.argpartition(distance, int(BAND * size))[: int(BAND * size)]] = True
    theta = _slope(problem, score)
    for _ in range(3):
        index = np.flatnonzero(near)
        part = solve_core(restrict(problem, index, theta), 0.5 * tol, max_iter)
        used += part.iterations
        if part.status == "unbounded":
            return None
        full = theta.copy()
        full[index] = part.certified.theta
        certified = proven(problem, part.certified.z, full, part.multiplier)
        if certified.objective - certified.bound <= tol:
            return CoreResult(certified, used, "optimal", part.message, part.multiplier)
        wrong = ~near & (_slope(problem, problem.design.forward(certified.z)) != theta)
        if not wrong.any():
            return None
        near |= wrong
    return None


def _distance(score: Array, kink: Array, slope: Array) -> Array:
    """Distance of each score to a kink; infinite where the kink has no slope."""
    return np.where(slope > 0, np.abs(score - kink), np.inf)


def _slope(problem: Polyhedral, score: Array) -> Array:
    """The derivative of each loss at its score, kinks counted as flat."""
    return np.where(score > problem.upper, problem.high, np.where(score < problem.lower, -problem.low, 0.0))
