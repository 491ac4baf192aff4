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

__all__ = ["PROVING", "Proof", "descend", "gradient", "quasi_newton", "two_loop"]

NEAR = 0.1  # times √(tol·scale): what a Newton step may promise that is to be the last
PROVING = 4  # passes around a Newton step: its scores, its dual point, the gradient at its end


def gradient(state: State) -> Array:
    """∇P by (b, w) for an L2 penalty, joined."""
    problem = state.problem
    slope = state.slope
    return np.asarray(problem.centered(problem.join(slope.columns + strengths(problem) * state.w, slope.level)))


def descend(
    problem: Problem,
    start: Point,
    solve: Inverse,
    tol: float,
    max_iter: int,
    patience: int = 0,
    ends: Callable[[Array, float], bool] | None = None,
) -> tuple[State, int]:
    """Quasi-Newton steps until the gradient proves the gap, or until a Newton step is the better way to prove it.

    Which of the two is nearer may also be said by `ends`, of the gradient and its square in the norm of the preconditioner.
    """
    last = problem.at(*start)
    known = 1e-5 if (strengths(problem) > 0.0).all() else 0.01

    def at(x: Array) -> tuple[float, Array]:
        nonlocal last
        del last  # what is known of every row of the point before makes room
        last = problem.at(*problem.split(x.reshape(shape)))
        return last.objective, gradient(last).ravel()

    def flat(g: Array) -> Array:
        return solve(g.reshape(shape)).ravel()

    def enough(g: Array, size: float) -> bool:
        if ends is not None:
            return ends(g.reshape(shape), size)
        # With a penalty the gradient itself becomes the proof; without one, a Newton step proves the rest.
        return provable(g.reshape(shape), problem) <= 0.3 * tol or size <= known * tol

    x = problem.join(*start)
    shape = x.shape
    end, iterations = quasi_newton(
        at, flat, x.ravel(), (last.objective, gradient(last).ravel()), enough, max_iter, patience
    )
    w, b = problem.split(end.reshape(shape))
    if not (np.array_equal(w, last.w) and np.array_equal(b, last.b)):  # the last trial was refused
        last = problem.at(w, b)
    return last, iterations


def quasi_newton(
    evaluate: Callable[[Array], tuple[float, Array]],
    precondition: Callable[[Array], Array],
    x: Array,
    first: tuple[float, Array],
    enough: Callable[[Array, float], bool],
    max_iter: int,
    patience: int = 0,
) -> tuple[Array, int]:
    """Preconditioned L-BFGS from x, where value and gradient are `first`, for a smooth convex function.

    A step is accepted when it lowers the value enough, or shrinks the gradient in the norm of the preconditioner, which near
    the minimum is the distance to it and has more digits than the value. Stops at `enough`, at `max_iter`, or when more than
    `patience` steps have not shrunk the gradient by much.

    Returns
    -------
    x, iterations
    """
    pairs: list[tuple[Array, Array, float]] = []
    (value, g), gamma = first, 1.0
    z = precondition(g)
    size = float(g @ z)
    iteration, slow = 0, 0
    while iteration < max_iter and size > 0.0 and slow <= patience and not enough(g, size):
        step = -two_loop(pairs, g, precondition, gamma)
        promised = float(step @ g)
        for _ in range(4):
            x_new = x + step
            value_new, g_new = evaluate(x_new)
            iteration += 1
            z_new = precondition(g_new)
            size_new = float(g_new @ z_new)
            accepted = size_new < size or (patience > 0 and value_new <= value + 1e-4 * promised)
            if accepted or iteration >= max_iter:
                break
            step, promised = 0.25 * step, 0.25 * promised
        if not accepted:
            break
        s, y = x_new - x, g_new - g
        curvature, told = float(s @ y), float(y @ (z_new - z))
        if curvature > 0.0 and told > 0.0:  # changes below all numbers have neither
            pairs = [*pairs[-9:], (s, y, curvature)]
            # What the preconditioner says of the last change, beside what was seen: it may be of another point.
            gamma = curvature / told if patience > 0 else 1.0
        slow += size_new >= 0.7 * size
        x, g, z, size, value = x_new, g_new, z_new, size_new, value_new
    return x, iteration


def two_loop(
    pairs: list[tuple[Array, Array, float]], g: Array, precondition: Callable[[Array], Array], gamma: float
) -> Array:
    """The L-BFGS inverse Hessian times g (Nocedal & Wright, algorithm 7.4)."""
    q, used = g, []
    for s, y, curvature in reversed(pairs):
        a = float(s @ q) / curvature
        q = q - a * y
        used.append(a)
    r = gamma * precondition(q)
    for (s, y, curvature), a in zip(pairs, reversed(used), strict=True):
        r = r + (a - float(y @ r) / curvature) * s
    return r


class Proof:
    """Whether gradients prove the gap, or a Newton step now does so in fewer passes than they would still take.

    Of many gradients, which are not equally good, the rate is that since `least` of them.
    """

    def __init__(self, problem: Problem, tol: float, step: float, least: int = 1) -> None:
        self.problem, self.tol, self.step, self.least = problem, tol, step, least
        self.seen: list[float] = []

    def of(self, tol: float) -> Proof:
        """The same for another gap."""
        return Proof(self.problem, tol, self.step, self.least)

    def __call__(self, g: Array, size: float) -> bool:
        proven = provable(g, self.problem)
        self.seen.append(proven)
        if not proven > 0.3 * self.tol:
            return True
        if size > NEAR * float(np.sqrt(self.tol * self.problem.scale)) and self.least == 1:
            return False
        before = self.seen[-1 - self.least] if len(self.seen) > self.least else np.nan
        if self.least > 1 and not 0.0 < before < np.inf:
            return False
        rate = min(max(proven / before, 1e-3), 0.99) if 0.0 < before < np.inf else 0.5
        left = float(np.log(proven / (0.3 * max(self.tol, 1e-300))))
        return bool(left > -np.log(rate) / self.least * (self.step + PROVING))
