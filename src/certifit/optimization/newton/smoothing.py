"""Piecewise linear losses with penalties that have no linear or quadratic form (Lq, and penalties of your own).

The loss is replaced by its Moreau envelope of width μ, which is smooth, has the same slopes, and has the conjugate
ℓ*(u) + ½μu²: a dual point of the smoothed problem is one of the original. μ shrinks until the gap of the *original*
problem is small enough.     Nesterov 2005
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Loss
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.problem import Problem, Solution
from certifit.progress import Progress

__all__ = ["Smoothed", "solve_smoothed"]

Solve = Callable[[Problem, tuple[Array, float], float, int, Progress], Solution]


class Smoothed(Loss):
    """Moreau envelope of a piecewise linear loss: quadratic over a width μ·slope beside each kink."""

    convex = True

    def __init__(self, loss: Loss, width: float) -> None:
        self.loss, self.width = loss, width
        self.smoothness = 1.0 / width

    def value(self, y: Array, f: Array) -> Array:
        t = self.loss.hinge_terms(y)
        assert t is not None
        return self._side(f - t.upper, t.slope_high) + self._side(t.lower - f, t.slope_low)

    def _side(self, excess: Array, slope: Array) -> Array:
        inner = np.clip(np.where(slope > 0, excess, 0.0), 0.0, self.width * slope)
        return np.where(slope > 0, inner * (np.maximum(excess, 0.0) - 0.5 * inner), 0.0) / self.width

    def derivative(self, y: Array, f: Array) -> Array:
        t = self.loss.hinge_terms(y)
        assert t is not None
        above = np.clip(np.where(t.slope_high > 0, f - t.upper, 0.0) / self.width, 0.0, t.slope_high)
        below = np.clip(np.where(t.slope_low > 0, t.lower - f, 0.0) / self.width, 0.0, t.slope_low)
        return above - below

    def second_derivative(self, y: Array, f: Array) -> Array:
        slope = self.derivative(y, f)
        low, high = self.loss.dual_domain(y)
        return np.where((slope > low) & (slope < high) & (slope != 0.0), 1.0 / self.width, 0.0)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        return self.loss.conjugate(y, u) + 0.5 * self.width * u * u

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        return self.loss.dual_domain(y)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        return self.loss.optimal_constant(y, weight)


def solve_smoothed(
    problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress, solve: Solve
) -> Solution:
    """Solve a sequence of smoothed problems, each started from the last."""
    domains = [(block.p, *problem.loss.dual_domain(block.y)) for block in problem.blocks]
    slopes = sum(float(p @ np.maximum(low * low, high * high)) for p, low, high in domains)
    width = 0.2 * problem.scale / max(slopes, 1e-300)
    point, bound, iterations = start, 0.0, 0
    best = (start[0], start[1], problem.objective(*start))
    while iterations < max_iter and width > 0:
        smooth = replace(problem, loss=Smoothed(problem.loss, width))
        solution = solve(smooth, point, max(0.1 * width * slopes, 0.1 * tol), max_iter - iterations, Progress())
        iterations += max(1, solution.iterations)
        point = (solution.coef, solution.intercept)
        state = problem.at(*point)
        theta = [smooth.loss.derivative(part.block.y, part.f) for part in state.parts]
        if state.objective < best[2]:
            best = (*point, state.objective)
        # The bound of the smoothed problem is one of the original: the envelope lies below the loss.
        bound = max(bound, solution.bound, dual_bound(state, theta))
        clock.update(iterations, max_iter, (best[2] - bound) / max(problem.scale, 1e-300))
        if best[2] - bound <= tol or width * slopes < 1e-3 * tol:
            break
        width *= 0.1
    return Solution(best[0], best[1], iterations, "smoothing", bound)
