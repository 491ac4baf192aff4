"""Descent with the Hessian of a part of the rows: for tall data, a few gradients of all rows are enough.

The Hessian of m random rows differs from that of all n by a factor 1 ± O(√(d/m)), so that as a preconditioner it
leaves a problem of condition near one. L-BFGS on top of it learns the rest. Every iteration costs one pass over X; no
d × d matrix of all rows is ever formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from certifit._types import Array
from certifit.optimization.objective.problem import Problem
from certifit.representation.design.products import NARROW, in_one_piece, pullback, row_scores, weighted_gram
from certifit.representation.design.rows import over_rows

__all__ = ["descend", "gram", "quasi_newton"]

Gradient = Callable[[Array], Array]


def quasi_newton(
    gradient: Gradient,
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


class Pass(NamedTuple):
    """What one reading of X tells about a point."""

    f: Array
    theta: Array
    h: Array
    gradient: Array
    """Of P by (b, w)."""


def read(problem: Problem, w: Array, b: float, l2: Array) -> Pass:
    """Scores, slopes, curvatures and the gradient."""
    f = row_scores(problem.X, w, b, problem.threads)
    theta, h = problem.loss.slopes(problem.y, f)
    first = float(problem.p @ theta) if problem.fit_intercept else 0.0
    slope = pullback(problem.X, problem.p * theta, problem.threads)
    return Pass(f, theta, h, np.append(first, slope + l2 * w))


def gram(problem: Problem, h: Array) -> Array:
    """[1 X]ᵀ·diag(p h)·[1 X]."""
    n, d = problem.shape
    ph = problem.p * h
    if d <= NARROW and in_one_piece(problem.X):
        return weighted_gram(problem.X, ph, threads=problem.threads)
    return np.asarray(sum(over_rows(lambda rows: weighted_gram(problem.X[rows], ph[rows]), n, d, problem.threads)))


def descend(
    problem: Problem, start: tuple[Array, float], precondition: Callable[[Array], Array], tol: float, max_iter: int
) -> tuple[Array, float, int, float, float]:
    """Quasi-Newton steps on all rows, until the gradient proves the gap or a Newton step is the better way to prove it.

    Returns
    -------
    w, b, iterations, objective, bound
        The objective is NaN where no proof was tried.
    """
    l2 = problem.regularizer.smooth()
    assert l2 is not None  # the dispatcher sends nothing else here
    last = read(problem, *start, l2)
    known: dict[bytes, Pass] = {}

    def gradient(x: Array) -> Array:
        known.clear()
        known[x.tobytes()] = found = read(problem, x[1:], float(x[0]), l2)
        return found.gradient

    def enough(x: Array, g: Array) -> bool:
        return _provable(g, l2) <= 0.3 * tol or float(g @ precondition(g)) <= 1e-3 * tol

    x = np.append(start[1], start[0])
    known[x.tobytes()] = last
    x, g, iterations = quasi_newton(gradient, precondition, x, last.gradient, enough, max_iter)
    w, b, found = x[1:], float(x[0]), known.get(x.tobytes())
    if found is None or not _provable(g, l2) <= tol:
        return w, b, iterations, np.nan, 0.0
    objective = problem.risk(found.f) + 0.5 * float(l2 @ (w * w))
    return w, b, iterations, objective, _bound(problem, found, w, l2)


def _provable(g: Array, l2: Array) -> float:
    """The gap ‖∇‖²/(2 l2) that a gradient proves, once the intercept is refitted."""
    return 0.5 * float((g[1:] * g[1:] / l2).sum()) if (l2 > 0.0).all() else np.inf


def _bound(problem: Problem, found: Pass, w: Array, l2: Array) -> float:
    """D at the slopes, moved along the curvature to be orthogonal to the intercept."""
    theta, v = found.theta, l2 * w - found.gradient[1:]
    total = float(problem.p @ found.h)
    if problem.fit_intercept:
        if not total > 0.0:
            return 0.0
        shift, theta = 0.0, theta.copy()
        for _ in range(2):
            step = float(problem.p @ theta) / total
            theta -= step * found.h
            shift += step
        # Xᵀ(p ℓ'') tells how the slopes of the columns move with the intercept.
        v = v + shift * pullback(problem.X, problem.p * found.h, problem.threads)
    with np.errstate(all="ignore"):
        bound = -float(
            problem.p @ problem.loss.conjugate(problem.y, theta, start=found.f)
        ) - problem.regularizer.conjugate(v)
    return bound if np.isfinite(bound) else 0.0
