"""Prox-Newton for a smooth loss and any regularizer with a prox.

    P(w, b) = Σ p_i ℓ(y_i, x_i·w + b) + R(w)

Each step minimizes the quadratic model of the loss plus R: a penalized weighted least squares problem. For a separable R
(L1, elastic net, Lq, box) it is solved over a working set of columns by the coordinate-descent kernel, on the Gram matrix
of the working set when that is small beside n, on the columns otherwise. For any other R (balls, penalties of your own)
accelerated proximal gradient runs on the Gram matrix. A line search on P makes it global.     Lee, Sun & Saunders 2014

K scores are coupled in one model while K times the working set is small; beyond that they take turns (see by_score.py).
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.optimization.coordinate import descent as coordinate
from certifit.optimization.newton.by_score import one_round
from certifit.optimization.newton.few_columns import THIN, in_one_call, on_dense_columns, on_sparse_columns
from certifit.optimization.newton.smooth import NO_GAIN, Damping, eased, part_of_the_rows, some_rows, threading
from certifit.optimization.newton.systems import solve_semidefinite
from certifit.optimization.objective.bounds import any_score, dual_bound
from certifit.optimization.objective.fold import Slope, State, Step, total
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.optimization.objective.regularizer import kernel_penalty
from certifit.progress import Progress
from certifit.representation.design.design import as_design

__all__ = ["prox_newton"]

SUBSAMPLE_FROM = 2500  # rows of a part from which a start on it pays
GRAM_LIMIT = 2000  # a larger working set is solved on its columns
JOINT_LIMIT = 1500  # K·(columns of the working set) up to which K scores are solved together
NEAR = 30.0  # a bound is worth its pass over X once the model promises less than this many tolerances
ALMOST = 0.97  # share of the l1 strength from which a slope counts as near to it
ROUGH, FINE = 0.1, 1e-3  # precision of a model step, as a share of the present violation
FEW, MORE = (
    4,
    3,
)  # a working set of at most this share of the columns takes up to so many more steps before all are looked at
MOST = 0.8  # share of the columns of a dense X from which a step takes all of them, which need no copy
SETTLED = 1e-2  # share of the first step's promise below which they end
PATIENCE = 10  # steps in a row that may come to nothing
NOTHING = 0.01  # share of the gap that is wanted: a model that promises less should have proved it
NOTHING_LEFT = "The last steps came to nothing: columns are nearly dependent, and the penalty is small."
SLOWER = 0.9  # a round of sweeps that leaves more than this share of the violation has come to little
LAST = 1e-4  # promise, as a share of the scale, after which the next step is likely to be the last
AFTER = 0.1  # of `tol`: where the step after one would promise less, the one may prove the gap
FAR = 0.1  # promise, as a share of the scale, of which Newton's method leaves as much as a Hessian of some rows
ROWS = 16  # of that part for each column: what it leaves of a promise is one over them
AT_ONCE = 512  # of these rows are copied at once


def prox_newton(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """Minimize P to the absolute gap `tol`."""
    found = in_one_call(problem, start, tol, max_iter, "prox_newton")
    found = on_dense_columns(problem, start, tol, max_iter, "prox_newton") if found is None else found
    if found is not None:
        return found
    if not problem.dense:  # working sets are columns: convert once, not at every step
        problem = problem.with_designs(lambda block: block.design.by_column().X)
        found = on_sparse_columns(problem, start, tol, max_iter, "prox_newton")
        if found is not None:
            return found
    with threading(problem):
        start = eased(problem, start, partial(_minimum, max_iter=max_iter, clock=clock))
        return _prox_newton(problem, _subsample_start(problem, start, tol, max_iter), tol, max_iter, clock)


def _minimum(problem: Problem, start: Point, tol: float, *, max_iter: int, clock: Progress) -> Point:
    solution = _prox_newton(problem, start, tol, max_iter, clock)
    return solution.coef, solution.intercept


def _prox_newton(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    regularizer, K, d = problem.regularizer, problem.n_scores, problem.shape[1]
    separable = regularizer.ball is None and not (regularizer.elastic() is None and regularizer.power() is None)
    state, bound, note = problem.at(*start), 0.0, ""
    # Sparse columns are cheap to sweep, so that a generous first working set saves whole steps.
    size = max(10 if problem.dense else 1 + d // 16, 2 * int(np.count_nonzero(any_score(state.w != 0))))
    damping, model = Damping(problem.loss), _Model(problem)
    l1 = (regularizer.elastic() or (np.full(d, np.inf),))[0]
    iteration, inner, vain = 0, ROUGH, 0
    far = not state.w.any()  # from the optimum
    last = earlier = np.inf  # what the last two steps promised
    for iteration in range(1, max_iter + 1):
        slope, h = state.slope, damping.curvatures(state)
        promised = np.inf
        if separable:
            violation = regularizer.violation(state.w, slope.columns)
            near = np.abs(slope.columns) > ALMOST * l1  # columns that the step may wake, and that would spoil the bound
            everything = d <= 200 if K == 1 else K * d <= JOINT_LIMIT
            chosen = _working_set(any_score(state.w != 0), _most(violation), any_score(near), d if everything else size)
            if problem.dense and MOST * d <= chosen.shape[0]:
                chosen = np.arange(d)
            size = min(d, 2 * size)
            if _coming(_coming(last, earlier), last) <= AFTER * tol:
                inner = FINE
            wanted = inner * float(violation.max(initial=0.0))
            turns = K > 1 and K * (chosen.shape[0] + 1) > JOINT_LIMIT
            step = None if turns else model.step(state, h, chosen, wanted, far=far and damping.level == 0.0)
        else:
            size, wanted, step = d, 0.0, _generic_step(state, h)
        if step is None:
            before = state.objective
            state = one_round(state, chosen, wanted)
            length, stuck = 1.0, before - state.objective <= 1e-16 * abs(before)
        else:
            promised = _promised(state, slope, step)
            length, reached = step.search(promised)
            # Near the optimum the model is exact, and solving it well proves the gap sooner than another step.
            inner = FINE if -promised < LAST * problem.scale else ROUGH
            stuck = length == 0.0 or state.objective - reached <= 1e-16 * abs(state.objective)
            # The slopes that the model predicts are a dual point accurate to second order.
            if -promised <= NEAR * tol or _coming(-promised, last) <= AFTER * tol or iteration == max_iter:
                bound = max(bound, dual_bound(step.ahead(), step.dual(h), h if K > 1 else None))
            last, earlier = -promised if length == 1.0 else np.inf, last
            far = length == 1.0 and last > FAR * problem.scale
            if length > 0.0:
                state = step.reach(length)
            if length == 1.0 and separable and -promised > NEAR * tol and FEW * chosen.shape[0] <= d:
                state, last = model.settled(state, chosen, wanted, -promised), np.inf
        clock.update(iteration, max_iter, (state.objective - bound) / max(problem.scale, 1e-300))
        if state.objective - bound <= tol:
            break
        if stuck or length < 1.0 or step is None:
            if problem.fit_intercept and step is not None:
                state = state.refitted()
            bound = max(bound, dual_bound(state))
            if state.objective - bound <= tol:
                break
        if stuck and damping.level >= 1.0 and size >= d:
            note = "The line search found no lower value: rounding limits the fit."
            break
        missing = state.objective - bound - tol
        least = min(NOTHING * tol, missing / max(max_iter - iteration, 1))
        least = max(least, 1e-16 * abs(state.objective))  # rounding of the value hides less than that
        vain = vain + 1 if step is not None and -promised <= least else 0
        if vain >= PATIENCE and size >= d:
            proven = state.objective - bound <= 1e-13 * problem.scale
            note = NO_GAIN if proven else NOTHING_LEFT
            break
        damping.learn(0.0 if stuck else length)  # a better model, or more columns, may still help
    return Solution(state.w, state.b, iteration, "prox_newton", bound, state.objective, note=note)


def _subsample_start(problem: Problem, start: Point, tol: float, max_iter: int) -> Point:
    """A starting point from a part of the rows, itself started from a smaller part."""
    n, d = problem.shape
    part = n // 8
    if not problem.dense or part < max(SUBSAMPLE_FROM, 20 * d):
        return start
    rough = max(tol, 0.1 * d / part * problem.scale)  # no better than the statistical error of the part
    solution = prox_newton(part_of_the_rows(problem, part), start, rough, max_iter, Progress())
    return solution.coef, solution.intercept


def _coming(last: float, earlier: float) -> float:
    """What the next step will promise, where promises fall as squares: infinite where nothing says so."""
    # Rounding may leave a promise of nothing, or of less.
    return last * (last / earlier) ** 2 if last < earlier < np.inf and earlier > 0.0 else np.inf


def _working_set(used: Array, violation: Array, near: Array, size: int) -> Array:
    """The support, the columns that violate the optimality conditions most, and as there is room those near to it."""
    wanted = used | (violation > 0) | near
    if int(wanted.sum()) <= size:
        return np.flatnonzero(wanted)
    keep = max(size, int(used.sum()))
    return np.sort(np.argpartition(-np.where(used, np.inf, violation), keep - 1)[:keep])


def _promised(state: State, slope: Slope, step: Step) -> float:
    """The change of P along a step, to first order in the risk."""
    change = float((slope.columns * step.dw).sum()) + float(np.sum(slope.level * step.db))
    return change + state.problem.regularizer.value(state.w + step.dw) - (state.objective - state.risk)


def _most(values: Array) -> Array:
    return np.asarray(values if values.ndim == 1 else values.max(axis=0))


class _Model:
    """The quadratic models of all steps, and what they share."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.columns = [block.design.column_cache() for block in problem.blocks]
        self.slow = False  # sweeps over the columns did not reach their precision: the columns are nearly dependent

    @cached_property
    def penalty(self) -> coordinate.Separable:
        """A separable regularizer as the kernel takes it."""
        return kernel_penalty(self.problem.regularizer)

    @cached_property
    def sweeps(self) -> coordinate.QuadraticModel:
        """The kernel that works on the columns themselves."""
        return coordinate.QuadraticModel(self.problem.X, self.penalty)

    def settled(self, state: State, chosen: Array, tol: float, first: float) -> State:
        """More steps on a working set that is small, whose slopes are cheap beside those of all columns.

        They end when they promise little of what the first one did.
        """
        for _ in range(MORE):
            slope = self._slope(state, chosen)
            step = self.step(state, state.h, chosen, tol, slope)
            promised = _promised(state, slope, step)
            length, _ = step.search(promised)
            if length > 0.0:
                state = step.reach(length)
            if length < 1.0 or -promised <= SETTLED * first:
                break
        return state

    def _slope(self, state: State, chosen: Array) -> Slope:
        """The gradient of the risk by the chosen columns, and zero for the others."""
        found = total(
            Slope.of(part.block._replace(design=cache(chosen)), part.theta)
            for part, cache in zip(state.parts, self.columns, strict=True)
        )
        full = np.zeros(state.w.shape)
        full[..., chosen] = found.columns
        return Slope(found.level, full)

    def step(
        self, state: State, h: list[Any], chosen: Array, tol: float, slope: Slope | None = None, *, far: bool = False
    ) -> Step:
        """To the minimizer of the quadratic model over the working set.

        Far from the optimum a part of the rows tells its curvature.
        """
        problem, k = self.problem, chosen.shape[0]
        by_column = problem.in_memory and not problem.dense
        if (
            problem.in_memory
            and problem.n_scores == 1
            and (k > min(GRAM_LIMIT, problem.shape[0]) or (by_column and k > 500))
            and not (self.slow and k <= GRAM_LIMIT)
        ):
            return self._swept(state, h[0], chosen, tol)
        designs = [cache(chosen) for cache in self.columns]
        hessian = self._of_some_rows(state, chosen) if far else None
        hessian = state.hessian(h, designs) if hessian is None else hessian
        if problem.loss.shift_invariant:
            # The direction that all scores share has no curvature; a trace of it keeps the intercepts finite.
            own = np.diag(hessian)
            np.einsum("ii->i", hessian)[:] += 1e-10 * np.where(own > 0, own, 1.0)
        at = state.slope if slope is None else slope
        negative = -problem.join(at.columns[..., chosen], at.level)
        old = problem.join(state.w[..., chosen], 0.0 * at.level)
        # The intercept is a column like the others, without penalty or bounds.
        given = self.penalty

        def joined(values: Any, free: float) -> Any:
            return None if values is None else np.tile(problem.join(values[chosen], free), problem.n_scores)

        bounds = joined(given.lower, -np.inf), joined(given.upper, np.inf)
        part = coordinate.Separable(joined(given.l1, 0.0), joined(given.l2, 0.0), *bounds, given.q)
        new = old.ravel()
        if new.size:
            rows = self._rows(h[0], chosen) if self.slow else None
            new = _solve_model(hessian, negative.ravel(), new, tol, part, rows)
        dw, db = problem.split(new.reshape(old.shape) - old)
        moved = [design.scores(dw, db) for design in designs]
        full = np.zeros(state.w.shape)
        full[..., chosen] = dw
        return Step(state, full, db, moved)

    def _of_some_rows(self, state: State, chosen: Array) -> Array | None:
        """The Hessian of a part of the rows; None where all of them cost little more, or where few of the part count."""
        problem, k = self.problem, chosen.shape[0]
        if not (problem.in_memory and problem.dense and problem.n_scores == 1 and k > THIN):
            return None
        if problem.regularizer.elastic() is None:  # of several minima the steps choose one
            return None
        count = max(ROWS * k, problem.shape[0] // ROWS)
        if 2 * count > problem.shape[0]:
            return None
        rows = some_rows(problem, count)
        p, h = problem.p[rows], state.h[0][rows]
        with np.errstate(all="ignore"):
            if not (p @ h) ** 2 > 0.5 * ROWS * k * float((p * h) @ (p * h)):
                return None
        p = p / p.sum()
        X, step, everything = problem.X, max(AT_ONCE, k), k == problem.shape[1]
        hessian = np.zeros(2 * (k + problem.fit_intercept,))
        for at in range(0, count, step):  # a copy of each piece is soon forgotten
            piece, part = rows[at : at + step], slice(at, at + step)
            design = as_design(X[piece] if everything else X[np.ix_(piece, chosen)], problem.threads)
            hessian += design.hessian(p[part], h[part], ones=problem.fit_intercept)
        return hessian

    def _rows(self, h: Array, chosen: Array) -> Array:
        """The rows whose Gram matrix is the Hessian of the risk."""
        X: Any = self.problem.X[:, chosen]
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
        if self.problem.fit_intercept:
            X = np.column_stack([np.ones(X.shape[0]), X])
        return np.asarray(np.sqrt(np.maximum(self.problem.p * h, 0.0))[:, None] * X)

    def _swept(self, state: State, h: Array, chosen: Array, tol: float) -> Step:
        """The same by sweeps over the columns."""
        p, problem = self.problem.p, self.problem
        options = coordinate.Options(tol, problem.fit_intercept, n_threads=problem.threads)
        result = self.sweeps.solve(-p * state.theta[0], p * h, state.w, options, chosen)
        self.slow = self.slow or result.kkt > tol
        full = np.zeros(state.w.shape)
        full[chosen] = result.coef[chosen] - state.w[chosen]
        return Step(state, full, result.intercept_change, [result.scores_change])


def _solve_model(
    gram: Array, negative: Array, old: Array, tol: float, part: coordinate.Separable, rows: Array | None = None
) -> Array:
    """Coordinate descent on the Gram matrix, helped by Newton steps on the support where its sweeps are slow."""
    coef, gradient, best, vain = old, negative, np.inf, 0
    for _ in range(50):
        result = coordinate.gram_quadratic(gram, gradient, part, coef, coordinate.Options(tol, False, 200))
        coef, gradient = result.coef, result.negative_gradient
        if result.kkt <= tol or part.q is not None:
            break
        vain = 0 if result.kkt < SLOWER * best else vain + 1
        best = min(best, result.kkt)
        start = coef
        for _ in range(1 if rows is None else coef.size):
            step = _support_step(gram, gradient, coef, part, rows)
            left = (coef != 0) & (coef + step == 0)
            coef = coef + step
            gradient = gradient - gram @ step
            if not left.any():  # with few rows the way goes on after a kink: sweeps would only fall back over it
                break
        if (coef == start).all() or vain >= PATIENCE:
            break
    return coef


def _support_step(gram: Array, gradient: Array, coef: Array, part: coordinate.Separable, rows: Array | None) -> Array:
    """The Newton step among the coefficients that are free to move, up to the first that would cross a kink or bound."""
    l1, l2 = np.asarray(part.l1), np.asarray(part.l2)
    lower = np.full_like(coef, -np.inf) if part.lower is None else np.asarray(part.lower)
    upper = np.full_like(coef, np.inf) if part.upper is None else np.asarray(part.upper)
    free = np.flatnonzero(((coef != 0) | (l1 == 0)) & (coef > lower) & (coef < upper))
    step = np.zeros_like(coef)
    if free.size == 0:
        return step
    matrix = gram[np.ix_(free, free)] + np.diag(l2[free])
    right = gradient[free] - l1[free] * np.sign(coef[free]) - l2[free] * coef[free]
    if rows is None or free.size <= rows.shape[0]:
        move = solve_semidefinite(matrix, right)
    else:
        move = _wide_step(rows[:, free], l2[free], right, coef[free])
    end = np.clip(coef[free] + move, lower[free], upper[free])
    end = np.where((l1[free] > 0) & (np.sign(end) != np.sign(coef[free])), 0.0, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(move != 0, (end - coef[free]) / move, 1.0)
    share = min(1.0, float(room.min()))
    step[free] = share * move
    at_end = (room <= share) & (share < 1.0)
    step[free[at_end]] = end[at_end] - coef[free[at_end]]  # exactly on the kink or bound
    return step


def _wide_step(rows: Array, l2: Array, right: Array, coef: Array) -> Array:
    """The Newton step of more columns than rows: in the space of the rows, and along what is left of the slope.

    No row moves along the rest, which has the curvature of the penalty alone: where that is none, the way is as far as
    the coefficients are large, which is past the first kink. The Gram matrix of rows of unlike sizes hides all this in its
    rounding.
    """
    basis, triangle = np.linalg.qr(rows.T)
    inside = basis.T @ right
    rest = right - basis @ inside
    rest = rest - basis @ (basis.T @ rest)
    core = triangle @ triangle.T + np.diag(np.einsum("ij,i,ij->j", basis, l2, basis))
    move = basis @ solve_semidefinite(core, inside)
    most = float(np.abs(rest).max())
    if most <= 1e-12 * float(np.abs(right).max()):
        return np.asarray(move)
    rest = rest / most
    curvature = float(l2 @ (rest * rest))
    lowest = most * float(rest @ rest) / curvature if curvature > 0 else np.inf
    with np.errstate(divide="ignore"):
        far = float(np.min(np.abs(coef / rest), where=coef * rest < 0, initial=np.inf))
    way = min(lowest, 2.0 * far)
    return np.asarray(move + way * rest if np.isfinite(way) else move)


def _generic_step(state: State, h: list[Any]) -> Step:
    """Minimizer of the quadratic model by accelerated proximal gradient; the intercept is eliminated exactly."""
    problem, w = state.problem, state.w
    regularizer, right, mean = problem.regularizer, -state.slope.columns, np.zeros_like(w)
    hessian = state.hessian(h)
    slope, weight = float(state.slope.level), 0.0
    if problem.fit_intercept:
        first, weight, hessian = hessian[0, 1:], float(hessian[0, 0]), hessian[1:, 1:]
        if weight > 0:
            mean = first / weight
            right = right + slope * mean
            hessian = hessian - np.outer(mean, first)
    lipschitz = float(np.linalg.eigvalsh(hessian)[-1]) * (1 + 1e-10)
    if not lipschitz > 0:
        return Step(state, np.zeros_like(w), 0.0)
    u, z, momentum, first_size = w, w, 1.0, np.inf
    for k in range(5000):
        new = regularizer.prox(z - (hessian @ (z - w) - right) / lipschitz, 1.0 / lipschitz)
        moved = new - u
        if float((z - new) @ moved) > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        size = float(np.linalg.norm(new - z))
        first_size = size if k == 0 else first_size
        u, z, momentum = new, new + (momentum - 1.0) / following * moved, following
        if size <= 1e-5 * first_size:
            break
    dw = u - w
    return Step(state, dw, -slope / weight - float(mean @ dw) if weight > 0 else 0.0)
