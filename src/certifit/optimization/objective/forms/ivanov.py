"""Balls by the matching penalty: the Ivanov form solved through the Tikhonov form.

    min P(w, b)  s.t. ‖w‖ ≤ r      ⇔      min P(w, b) + λ·penalty(w)  for the λ ≥ 0 with ‖w(λ)‖ = r

‖w(λ)‖ falls continuously in λ for a smooth loss, so λ is found by bracketing, each problem started from the last. The
bound is that of the ball itself, for every λ tried: it does not rely on λ being exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from certifit._types import Array
from certifit.evaluation.constraints.convex import L1Ball
from certifit.evaluation.penalties.elastic import Strengths
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress

__all__ = ["matching_alpha", "solve_on_ball"]

INSIDE = 1e-9  # of the radius: nearer than that, the ball holds the coefficients
RAISED = 2  # times that the greatest multiplier is raised where it does not hold the ball
UNSOLVED = 1e-3  # of the scale: a gap of the penalized problem from which its norm says little of the multiplier
MISSES = 2  # of such problems one after the other, from which on no more are tried

Solve = Callable[[Problem, tuple[Array, float], float, int, Progress], Solution]


def solve_on_ball(
    problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress, solve: Solve
) -> Solution:
    """Find the multiplier of the ball; `solve` handles the penalized problems."""
    ball, parts = problem.regularizer.ball, problem.regularizer.elastic()
    assert ball is not None  # the dispatcher sends nothing else here
    assert parts is not None
    l1, l2 = parts
    best: tuple[Array, float, float] = (np.zeros_like(start[0]), problem.constant, np.inf)
    bound, iterations, point, misses = 0.0, 0, start, 0

    def attempt(multiplier: float) -> float:
        """Solve for one multiplier, keep the best feasible point and bound; returns ‖w‖ − r."""
        nonlocal best, bound, iterations, point, misses
        extra = (l1 + multiplier, l2) if isinstance(ball, L1Ball) else (l1, l2 + multiplier)
        regularizer = Regularizer(Strengths(*extra), 1.0, None, l1.shape[0])
        penalized = replace(problem, regularizer=regularizer)
        solution = solve(penalized, point, 0.01 * tol, max_iter, Progress())
        iterations += max(1, solution.iterations)
        left = penalized.at(solution.coef, solution.intercept).objective - solution.bound
        solved = left <= max(tol, UNSOLVED * problem.scale)
        misses = 0 if solved else misses + 1
        point = (solution.coef, solution.intercept)
        w = problem.regularizer.project(solution.coef)
        state = problem.at(w, solution.intercept)
        state = state.refitted() if problem.fit_intercept else state
        if state.objective < best[2]:
            best = (w, state.b, state.objective)
        # On the ball the multiplier's share of the norm is at most that of the radius (weak duality).
        radius = float(ball.radius)  # its square may be infinite, and then nothing but the multiplier zero bounds
        share = radius if isinstance(ball, L1Ball) else 0.5 * radius * radius
        bound = max(bound, solution.bound - (multiplier * share if multiplier > 0 else 0.0), dual_bound(state))
        clock.update(iterations, max_iter, (best[2] - bound) / max(problem.scale, 1e-300))
        return ball.norm(solution.coef) - ball.radius

    if attempt(0.0) > 0 and ball.radius > 0:
        # At w = 0 the multiplier that keeps it there is the dual norm of the gradient (L1), or anything huge (L2).
        g = problem.at(np.zeros_like(l1), problem.constant).slope.columns
        high = float(np.abs(g).max()) if isinstance(ball, L1Ball) else float(np.linalg.norm(g)) / ball.radius
        _bracketed_root(
            attempt, high, lambda: best[2] - bound <= tol or iterations > 100 * max_iter or misses >= MISSES
        )
    elif ball.radius == 0:
        bound = problem.at(best[0], problem.constant).risk
        best = (best[0], problem.constant, bound)
    return Solution(best[0], best[1], iterations, "multiplier", bound)


def matching_alpha(problem: Problem, w: Array, b: float) -> float | None:
    """λ of the Tikhonov form with the same solution as the ball; None where the loss has kinks, whose slopes are not unique.

    At the optimum on the ball −∇ = λ·∂Ω(w), with ∇ the gradient of the rest of the objective and Ω = ½‖w‖² or ‖w‖₁; the product
    with w gives λ = −w·∇ / ‖w‖², or / ‖w‖₁.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearModel, Ridge
    >>> from certifit.penalties import L2Ball
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.1, 4.9, 7.0])
    >>> ivanov = LinearModel(penalty=None, constraint=L2Ball(1.5)).fit(X, y)
    >>> Ridge(alpha=ivanov.alpha_).fit(X, y).coef_.round(6)
    array([1.5])
    """
    ball, parts = problem.regularizer.ball, problem.regularizer.elastic()
    if ball is None or parts is None or not problem.loss.smooth or w.ndim != 1:
        return None
    if ball.norm(w) < (1.0 - INSIDE) * ball.radius or not ball.radius > 0:
        return 0.0 if ball.radius > 0 else np.inf
    (l1, l2), size = parts, float(np.abs(w).max())
    if not size > 0:
        return 0.0
    with np.errstate(all="ignore"):
        unit = w / size  # a product of large numbers may overflow
        slope = problem.at(w, b, exact=True).slope.columns + l1 * np.sign(w) + l2 * w
        whole = float(np.abs(unit).sum()) if isinstance(ball, L1Ball) else size * float(unit @ unit)
        return max(0.0, -float(unit @ slope) / whole)


def _bracketed_root(excess: Callable[[float], float], high: float, done: Callable[[], bool]) -> None:
    """Illinois' false position on a decreasing function with excess(0) > 0 ≥ excess(high), until `done`."""
    low, at_low = 0.0, np.inf
    at_high = excess(high)
    for _ in range(RAISED):
        if not at_high > 0 or done():
            break
        high *= 4.0  # rounding of a slope may be short of the multiplier that it asks for
        at_high = excess(high)
    if at_high > 0:  # penalized problems beyond their solver: what they gave is kept, and no more is to be had of them
        return
    widths = [np.inf, np.inf]
    for _ in range(100):
        if done() or not high > low:
            return
        # The first steps go down in decades: the multiplier's scale is unknown.
        trial = 0.1 * high if not np.isfinite(at_low) else high - at_high * (high - low) / (at_high - at_low)
        slow, widths = high - low > 0.5 * widths[0], [widths[1], high - low]
        if not low < trial < high or (slow and np.isfinite(at_low)):  # heights too unlike for a line to say much
            trial = 0.5 * (low + high)
            if trial in (low, high):
                return
        value = excess(trial)
        if value > 0:
            if np.isfinite(at_low):
                at_high *= 0.5
            low, at_low = trial, value
        else:
            at_low *= 0.5
            high, at_high = trial, value
