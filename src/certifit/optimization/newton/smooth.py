"""Newton's method for a smooth loss with no penalty or an L2 penalty.

    P(w, b) = Σ p_i ℓ(y_i, x_i·w + b) + ½ Σ_j l2_j w_j²

Each step solves (AᵀHA + L)δ = −∇P with A = [1 X], H = pℓ'', which is iteratively reweighted least squares for a
GLM (see systems.py). The same step gives a dual point for free: θ + ℓ''·(Aδ) satisfies the dual constraints exactly, and
is accurate to second order, so the duality gap is known without another pass over X.

Tall X starts on growing subsamples: the optimum of a part of the rows is within the statistical error of the optimum of all,
and its Hessian preconditions all rows (see sketch.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Loss, Squared
from certifit.optimization.newton.few_columns import in_one_call
from certifit.optimization.newton.several_scores import QUASI, near_several, of_a_part, on_from_a_part, part_is_light
from certifit.optimization.newton.sketch import Proof, descend, gradient, two_loop
from certifit.optimization.newton.systems import (
    EXACT_LIMIT,
    Direction,
    Inverse,
    cholesky,
    conjugate_gradients,
    diagonal,
    preconditioner,
    provable,
    small_hessian,
    strengths,
)
from certifit.optimization.objective.bounds import dual_bound, dual_value
from certifit.optimization.objective.costs import direct_products
from certifit.optimization.objective.curvature import Curvature
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.progress import Progress
from certifit.threads import one_blas_thread

__all__ = [
    "NO_GAIN",
    "ROUNDING",
    "Damping",
    "eased",
    "has_part",
    "is_ordinary",
    "newton",
    "newton_cg",
    "part_of_the_rows",
    "some_rows",
    "threading",
]

PART = 8  # a stage has this many times the rows of the stage before
STATIONARY = 1e-6  # of the gap that is wanted: what a step from a stationary point still promises
MET = 1e-9  # of the squares of a constant: what is left of them where rows are met
EASE = 1e-3  # relative gap at which the minimum of an easier loss is a start
DENSE_LIMIT = 5000  # columns up to which a d × d matrix may be formed where only products were wanted
FAR = 10.0  # times √(tol·scale): the gap after a step is about the square of what it promises, so that more proves nothing yet
NO_GAIN = "The last steps gained no more than rounding, which limits the fit."
ROUNDING = 1e-15  # of the scale: a gap of less is zero in double precision
MOST_PAIRS = 20  # products of the first step that gradients build upon
PATIENCE = 6  # slow steps by gradients before conjugate gradients go on
ROWS_PER_COLUMN = 16  # of a part of the rows whose Hessian stands for that of all
SKETCH_FROM = 1000  # rows of a part whose optimum and Hessian are worth having

Solve = Callable[[State, list[Any], Array, float], Direction]


def newton(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """Newton with the whole Hessian, where K scores allow it; `tol` is the absolute gap to reach."""
    if tol > ROUNDING * problem.scale:  # a gap of zero is neither always there to be proven, nor all that is wanted
        small = in_one_call(problem, start, tol, max_iter, "newton")
        if small is not None:
            return small
    start = problem.centered(start[0]), problem.centered(start[1])  # where the optimum is, too
    with threading(problem):
        start = eased(problem, _met(problem, start), partial(_minimum, max_iter=max_iter, clock=clock))
        point, inverse = _sketch(problem, start, tol, max_iter)
        if inverse is None:
            near = _near(problem, start, tol, max_iter)
            if isinstance(near, Solution):
                return near
            state, used = near
            found = _newton(state, tol, max_iter, clock, _direction(problem, None), used)
            return _polished(found, tol).solution("newton", tol)
        near = on_from_a_part(problem, point, inverse, tol, max_iter)
        if isinstance(near, Solution):
            return near
        state, used = near
        if not state.objective <= problem.scale:  # a part that was not like the whole (rare classes), or a poor start
            first = problem.at(*start)
            if not state.objective <= first.objective:
                state, inverse = first, None
        found = _newton(state, tol, max_iter, clock, _direction(problem, inverse), used)
        return _polished(found, tol).solution("newton", tol)


def newton_cg(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """Newton with conjugate gradients: no d × d matrix is formed, unless they turn out to cost more than it."""
    with threading(problem):
        direction = _Thrifty(problem) if problem.n_scores == 1 and problem.in_memory else _matrix_free
        state, used = problem.at(*start), 0
        if problem.n_scores == 1 and _by_gradients(problem):
            state, used = _by_pairs(state, tol, max_iter)
        return _newton(state, tol, max_iter, clock, direction, used).solution("newton_cg", tol)


def has_part(problem: Problem) -> bool:
    """Whether X is so tall that Newton's method begins on a part of its rows."""
    return _part(problem) is not None


def threading(problem: Problem) -> AbstractContextManager[None]:
    """One BLAS thread where every pass over X is threaded as a whole."""
    return one_blas_thread() if problem.n_scores > 1 or has_part(problem) else nullcontext()


def _direction(problem: Problem, inverse: Inverse | None) -> Solve:
    if problem.n_scores == 1:
        return cholesky
    return _preconditioned if inverse is None else partial(conjugate_gradients, solve=inverse)


def _preconditioned(state: State, h: list[Any], g: Array, tol: float) -> Direction:
    return conjugate_gradients(state, h, g, tol, preconditioner(state, h))


def _matrix_free(state: State, h: list[Any], g: Array, tol: float) -> Direction:
    return conjugate_gradients(state, h, g, tol, diagonal(state, h))


class _Thrifty:
    """Conjugate gradients, until a step takes more products than the Hessian is worth; from then on Cholesky."""

    def __init__(self, problem: Problem) -> None:
        affordable = problem.shape[1] <= DENSE_LIMIT
        self.most = max(20.0, direct_products(problem)) if affordable else np.inf
        self.direct = False

    def __call__(self, state: State, h: list[Any], g: Array, tol: float) -> Direction:
        if self.direct:
            return cholesky(state, h, g, tol)
        found = conjugate_gradients(state, h, g, tol, diagonal(state, h), self.most)
        self.direct = found.products >= self.most
        return found


def _part(problem: Problem) -> int | None:
    """Rows of a part that already tells much about the optimum; None if there is none."""
    (n, d), K = problem.shape, problem.n_scores
    size = K * (d + problem.fit_intercept)
    enough = n // PART >= max(SKETCH_FROM, max(20, 4 * K) * d)
    small = K == 1 or (size <= EXACT_LIMIT and part_is_light(problem))
    return n // PART if problem.dense and enough and small else None


def part_of_the_rows(problem: Problem, count: int) -> Problem:
    """The problem of `some_rows`."""
    return problem.some(some_rows(problem, count))


def some_rows(problem: Problem, count: int) -> Array:
    """Rows drawn with a fixed seed: a start must not depend on anything but the data, and the end does not depend on it."""
    return np.sort(np.random.default_rng(0).choice(problem.shape[0], count, replace=False))


def eased(problem: Problem, start: Point, solve: Callable[[Problem, Point, float], Point]) -> Point:
    """The minimum of an easier relative of the loss, if it has one here: a start from which few steps are left.

    Where nearly all rows lie on straight pieces of the loss, a Newton step sees the curvature of few of them.
    """
    if not problem.in_memory or problem.n_scores > 1:
        return start
    easier = problem.loss.eased(problem.y, problem.scores(*start), problem.p)
    for loss in easier:
        relative = replace(problem, loss=loss)
        if not relative.at(*start).is_finite():  # the last one's scores are beyond the range
            return problem.start()
        start = solve(relative, start, EASE * relative.scale)
    # Rows far off can leave the easier losses no digits for the others: then the best constant is nearer.
    return problem.start() if easier and not problem.at(*start).objective <= problem.constant_risk else start


def _met(problem: Problem, start: Point) -> Point:
    """The least squares of a wide X, where one step to them meets all rows: no corner of a loss is in its way there."""
    wide = problem.shape[0] <= problem.shape[1] + problem.fit_intercept
    if not (wide and problem.in_memory and problem.n_scores == 1):
        return start
    if not problem.loss.eased(problem.y, problem.scores(*start), problem.p):
        return start
    squares = replace(problem, loss=Squared())
    state = _newton(squares.at(*start), 0.0, 1, Progress(), cholesky).state
    return (state.w, state.b) if state.objective <= MET * squares.scale else start


def _minimum(problem: Problem, start: Point, tol: float, *, max_iter: int, clock: Progress) -> Point:
    state = _newton(problem.at(*start), tol, max_iter, clock, _direction(problem, None)).state
    return state.w, state.b


def _near(problem: Problem, start: Point, tol: float, max_iter: int) -> Solution | tuple[State, int]:
    """A point near the optimum, by gradients: the Hessian at the start (of K scores, the one that they share) is a good
    preconditioner, and a pass for the whole Hessian costs as much as many for a gradient. Or the optimum itself.
    """
    if problem.n_scores > 1:
        return near_several(problem, start, tol, max_iter)
    return _near_one(problem, start, tol, max_iter) if _by_gradients(problem) else (problem.at(*start), 0)


def is_ordinary(problem: Problem) -> bool:
    """Whether gradients may lead to a proof: without a penalty on all columns a step proves nothing unless it is exact, and a
    loss that is reached by easier ones is flat on most rows.
    """
    return problem.in_memory and problem.regularizer.strictly_convex and type(problem.loss).eased is Loss.eased


def _by_gradients(problem: Problem) -> bool:
    """Whether a fit of one score begins with gradients: not where a Hessian costs no more than one of them, or one step does."""
    curved = problem.loss.convex and not isinstance(problem.loss, Squared)
    return is_ordinary(problem) and curved and direct_products(problem) > 1.0


def _near_one(problem: Problem, start: Point, tol: float, max_iter: int) -> tuple[State, int]:
    """The same of one score, with the Hessian of as many rows as a preconditioner needs."""
    (n, d), state, step = problem.shape, problem.at(*start), direct_products(problem)
    count = max(SKETCH_FROM, ROWS_PER_COLUMN * d)
    few = part_of_the_rows(problem, count) if 2 * count <= n else problem
    # Far from the optimum rows are on flat parts of the loss, which no constant puts them on.
    point = (state.w, state.b) if state.objective <= problem.scale else problem.start()
    inverse = small_hessian(few.at(*point))
    if inverse is None:
        return state, 0
    ends = Proof(problem, tol, step)
    return descend(problem, start, inverse, tol, max_iter // 4, int(QUASI * step), ends)


def _by_pairs(state: State, tol: float, max_iter: int) -> tuple[State, int]:
    """One Newton step by conjugate gradients, and gradients from there: the products of the step are what L-BFGS wants to know of
    the Hessian (Morales & Nocedal 2000), so that a pass is enough for an iteration.
    """
    problem = state.problem
    pairs: list[tuple[Array, Array, float]] = []
    by_column, g = diagonal(state, state.h), gradient(state)
    found = conjugate_gradients(state, state.h, g, tol, by_column, MOST_PAIRS, pairs)
    promised = float((g * problem.join(found.step.dw, found.step.db)).sum())
    length, _ = found.step.search(promised)
    if length < 1.0:
        return state, 0
    end, enough = found.step.reach(1.0), Proof(problem, tol, found.products)
    return descend(
        problem, (end.w, end.b), lambda r: two_loop(pairs, r, by_column, 1.0), tol, max_iter // 4, PATIENCE, enough
    )


def _sketch(problem: Problem, start: Point, tol: float, max_iter: int) -> tuple[Point, Curvature | None]:
    """The optimum of a part of the rows and the inverse of its Hessian, found the same way from a smaller part.

    Without a part that is large enough, the start itself and None.
    """
    count = _part(problem)
    if count is None:
        return start, None
    small = part_of_the_rows(problem, count)
    if problem.n_scores > 1 and small.y.ndim == 1 and np.unique(small.y).shape[0] < problem.n_scores:
        return start, None
    size = problem.n_scores * (problem.shape[1] + problem.fit_intercept)
    rough = max(tol, 0.1 * size / count * problem.scale)  # no better than the statistical error of the part
    point, inverse = _sketch(small, start, rough, max_iter)
    if inverse is None and problem.n_scores == 1:
        state = _newton(small.at(*point), rough, max_iter, Progress(), cholesky).state
    else:
        state = of_a_part(small, point, inverse, rough, max_iter)
    return (state.w, state.b), small_hessian(state)


class _Result(NamedTuple):
    state: State
    bound: float
    iterations: int
    note: str

    def solution(self, name: str, tol: float) -> Solution:
        """As solvers return it."""
        state, objective = self.state, self.state.objective
        bound = self.bound if objective > 0.0 else 0.0  # nothing is below zero, whatever rounding says of it
        note = self.note if objective - bound > tol else ""
        return Solution(state.w, state.b, self.iterations, name, bound, objective, note=note)


def _newton(state: State, tol: float, max_iter: int, clock: Progress, direction: Solve, used: int = 0) -> _Result:
    """Newton steps from a state, to the absolute gap `tol`."""
    problem, bound, note = state.problem, 0.0, ""
    iteration, damping = used, Damping(problem.loss)
    for iteration in range(used + 1, max(max_iter, used + 1) + 1):
        g = gradient(state)
        if provable(g, problem) <= tol:
            bound = max(bound, dual_bound(state))
            if state.objective - bound <= tol:
                break
        h = damping.curvatures(state)
        step, residual, _products, regular = direction(state, h, g, tol)
        promised = float((g * problem.join(step.dw, step.db)).sum())
        if -promised <= FAR * float(np.sqrt(tol * problem.scale)):
            if regular:
                bound = max(bound, _step_bound(step, h, g, residual, tol))
            else:  # what a step leaves of the equations is not rounding in every direction
                bound = max(bound, dual_bound(step.ahead(), step.dual(h), h))
        if not problem.loss.convex and abs(promised) <= STATIONARY * tol:
            break  # no bound will ever close: what the step promises is all there is to gain here
        length, reached = step.search(promised)
        clock.update(iteration, max_iter, (state.objective - bound) / max(problem.scale, 1e-300))
        if length == 0.0 and isinstance(direction, partial):  # the part of the rows misleads here: use all of them
            direction = _direction(problem, None)
            continue
        stalled = state.objective - reached <= 1e-15 * abs(state.objective)
        whole = damping.level >= 1.0 or problem.loss.coupled  # all the curvature that there is to borrow
        # No curvature where all rows are on linear parts: a step that gains nothing borrows some.
        damping.learn(0.0 if stalled else length)
        if length > 0.0:
            state = step.reach(length)
            if state.objective - bound <= tol:
                break
        elif whole:
            note = "The line search found no lower value: rounding limits the fit."
            break
        # The gradient proves less than is wanted, or no model gains more: what is left is rounding of the two values.
        if stalled and (whole or provable(g, problem) <= tol):
            bound = max(bound, dual_bound(state))
            note = NO_GAIN
            break
    return _Result(state, bound, iteration, note)


def _polished(found: _Result, tol: float) -> _Result:
    """Two more whole steps where nothing is penalized, as tests and intervals read the coefficients, or where a gap of zero is
    wanted: their error is the root of the gap. It ends where rounding shortens a step, or moves the value past what is proven.
    """
    state, problem, bound = found.state, found.state.problem, found.bound
    if problem.n_scores > 1 or (problem.regularizer.active and tol > ROUNDING * problem.scale):
        return found
    for _ in range(2):
        g = gradient(state)
        step = cholesky(state, state.h, g, tol).step
        promised = float((g * problem.join(step.dw, step.db)).sum())
        if not -4.0 * tol <= promised < 0.0:
            break
        length, reached = step.search(promised)
        if length < 1.0 or reached < bound - ROUNDING * problem.scale:
            break
        state, bound = step.reach(1.0), min(bound, reached)
    return found._replace(state=state, bound=bound)


class Damping:
    """Extra curvature after short steps: a loss that is linear in places (Huber) promises more than it holds.

    At its largest, 1, the model is an upper bound of a loss of known smoothness, and a full step always descends.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss, self.level = loss, 0.0

    def curvatures(self, state: State) -> list[Any]:
        """ℓ'' plus the present share of the largest curvature."""
        if self.level == 0.0:
            return state.h
        most = self.loss.smoothness
        most = most if np.isfinite(most) else max(float(h.max()) for h in state.h)
        return [h + self.level * most for h in state.h]

    def learn(self, step: float) -> None:
        """More after a short step, less after a full one."""
        if step < 0.25:
            self.level = min(1.0, max(8.0 * self.level, 1e-3))
        elif step == 1.0:
            self.level = self.level / 4.0 if self.level > 1e-6 else 0.0


def _step_bound(step: Any, h: list[Any], g: Array, residual: Array | None, tol: float) -> float:
    """D at the dual point of a Newton step, evaluated only where it can prove something.

    Its −Xᵀ(pθ) equals l2·(w + δ) less what the step leaves of the equations. Conjugate gradients stop short, and where
    rows are on a linear part of the loss the gradient may have no preimage: that step still descends, but proves nothing.
    """
    ahead = step.ahead()
    problem, l2 = ahead.problem, strengths(ahead.problem)
    free, slack = l2 == 0.0, 0.0
    with np.errstate(all="ignore"):
        if residual is None:
            theta, v = step.dual(h), l2 * ahead.w
        elif not free.any():
            near = not provable(residual, problem) > 3.0 * tol
            return dual_bound(ahead, step.dual(h), h) if near else 0.0
        else:
            if np.abs(residual).max() > 1e-9 * np.abs(g).max():
                return 0.0
            theta = step.dual(h)
            slope = ahead.pulled(theta)
            v, level = -slope.columns, slope.level if problem.fit_intercept else np.zeros_like(slope.level)
            if max(np.abs(v[..., free]).max(), np.abs(level).max()) > 1e-6 * np.abs(g).max():
                return 0.0
            slack = 2.0 * float(
                (np.abs(v[..., free]) * np.abs(ahead.w[..., free])).sum() + np.sum(np.abs(level * ahead.b))
            )
            if slack > 1e-6 * problem.scale:
                return 0.0
        v = np.where(free, 0.0, v)
        bound = dual_value(ahead, theta, v) - slack
    return bound if np.isfinite(bound) else 0.0
