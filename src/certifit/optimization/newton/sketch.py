"""Descent with the Hessian of a part of the rows: for tall data, a few gradients of all rows are enough.

The Hessian of m random rows differs from that of all n by a factor 1 ± O(√(d/m)), so that as a preconditioner it
leaves a problem of condition near one. L-BFGS on top of it learns the rest. Every iteration costs one pass over X; no
d × d matrix of all rows is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certifit._types import Array
from certifit.optimization.newton.systems import Inverse, provable, strengths
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Point, Problem

__all__ = ["descend", "gradient", "quasi_newton"]


def gradient(state: State) -> Array:
    """∇P by (b, w) for an L2 penalty, joined."""
    problem = state.problem
    slope = state.slope
    return np.asarray(problem.centered(problem.join(slope.columns + strengths(problem) * state.w, slope.level)))


def descend(problem: Problem, start: Point, solve: Inverse, tol: float, max_iter: int) -> tuple[State, int]:
    """Quasi-Newton steps until the gradient proves the gap, or until a Newton step is the better way to prove it."""
    last = problem.at(*start)
    known = 1e-5 if (strengths(problem) > 0.0).all() else 0.01

    def at(x: Array) -> Array:
        nonlocal last
        last = problem.at(*problem.split(x.reshape(shape)))
        return gradient(last).ravel()

    def flat(g: Array) -> Array:
        return solve(g.reshape(shape)).ravel()

    def enough(x: Array, g: Array) -> bool:
        # With a penalty the gradient itself becomes the proof; without one, a Newton step proves the rest.
        return provable(g.reshape(shape), problem) <= 0.3 * tol or float(g @ flat(g)) <= known * tol

    x = problem.join(*start)
    shape = x.shape
    end, _, iterations = quasi_newton(at, flat, x.ravel(), gradient(last).ravel(), enough, max_iter)
    w, b = problem.split(end.reshape(shape))
    if not (np.array_equal(w, last.w) and np.array_equal(b, last.b)):  # the last trial was refused
        last = problem.at(w, b)
    return last, iterations


def quasi_newton(
    gradient: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    x: Array,
    g: Array,
    enough: Callable[[Array, Array], bool],
    max_iter: int,
) -> tuple[Array, Array, int]:
    """Preconditioned L-BFGS from x with gradient g near the minimum of a smooth convex function.

    No function values: a step is accepted when it shrinks the gradient in the norm of the preconditioner, which near
    the minimum is the distance to it. Stops at `enough`, at `max_iter`, or when steps no longer help.

    Returns
    -------
    x, g, iterations
    """
    pairs: list[tuple[Array, Array, float]] = []
    z = precondition(g)
    size = float(g @ z)
    iteration = 0
    while iteration < max_iter and size > 0.0 and not enough(x, g):
        step = -_two_loop(pairs, g, precondition)
        for _ in range(4):
            x_new = x + step
            g_new = gradient(x_new)
            iteration += 1
            z_new = precondition(g_new)
            size_new = float(g_new @ z_new)
            if size_new < size or iteration >= max_iter:
                break
            step = 0.25 * step
        if not size_new < size:
            break
        s, y = x_new - x, g_new - g
        curvature = float(s @ y)
        if curvature > 0.0:
            pairs = [*pairs[-9:], (s, y, curvature)]
        helped = size_new < 0.7 * size
        x, g, size = x_new, g_new, size_new
        if not helped:
            break
    return x, g, iteration


def _two_loop(pairs: list[tuple[Array, Array, float]], g: Array, precondition: Callable[[Array], Array]) -> Array:
    """The L-BFGS inverse Hessian times g (Nocedal & Wright, algorithm 7.4)."""
    q, used = g, []
    for s, y, curvature in reversed(pairs):
        a = float(s @ q) / curvature
        q = q - a * y
        used.append(a)
    r = precondition(q)
    for (s, y, curvature), a in zip(pairs, reversed(used), strict=True):
        r = r + (a - float(y @ r) / curvature) * s
    return r
