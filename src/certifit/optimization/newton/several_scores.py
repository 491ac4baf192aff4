"""Near the optimum of a loss of K scores by gradients, on top of the Hessian that constant scores share.

A pass for the gradient has 4·n·D·K operations, the whole Hessian KD/4 times as many. Softmax regression on a dense X with a
penalty on every column is a native call or two, proof and all: gradients on top of the shared Hessian where that costs little
beside a pass (native/softmax/descent.hpp), and Newton's steps by conjugate gradients where it does not, or where gradients are
slow (native/softmax/truncated.hpp). What they do not end is left to Newton's method with the whole Hessian.

Tall X has the optimum of a part of its rows, and the factor of its Hessian there: gradients on top of that are the same native
call, which keeps nothing of a row, where passes of NumPy hold its scores and probabilities many times over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import certifit._native.softmax as native
from certifit._types import Array
from certifit.evaluation.losses import Softmax
from certifit.optimization.newton.sketch import Proof, descend, gradient
from certifit.optimization.newton.systems import (
    BLOCK_LIMIT,
    FORMED,
    Inverse,
    diagonal,
    kronecker,
    levels,
    provable,
    strengths,
)
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.costs import AROUND, exact_is_cheap, newton_passes, newton_seconds, shared_passes
from certifit.optimization.objective.curvature import Curvature
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.representation.design.products import in_one_piece

__all__ = ["QUASI", "near_several", "of_a_part", "on_from_a_part", "part_is_light"]

QUASI = 4  # Newton steps that are still ahead where gradients are slow: so much may be spent on gradients instead
SHARED = 20  # passes that the Hessian of constant scores may cost before its diagonal is tried, and from which a rate is read
NOTICED = 10  # calls of Python that a Newton step must be worth: below that nothing is to be gained by going around it
TRIES = 3  # of gradients to prove a gap
TALL = 6  # rows for each column from which the Hessian of constant scores is like that of others
CONJUGATE = 100  # passes of a last Newton step by conjugate gradients
LEAST = 400  # passes that conjugate gradients may take in any case
HEAVY = 2.0  # times the scores of all rows: so much room may the Hessian of a part take beside passes that keep nothing


def near_several(problem: Problem, start: Point, tol: float, max_iter: int) -> Solution | tuple[State, int]:
    """The solution where gradients prove the gap `tol`, or a point near it and the iterations used."""
    size, width = (*problem.shape, problem.n_scores), problem.shape[1] + problem.fit_intercept
    step = newton_passes(*size)
    if native_pass(problem):
        way = _Native(problem, tol, *start)
        # What is tiny takes one way however often its rows are repeated.
        if (problem.shape[0] >= TALL * width or exact_is_cheap(*problem.shape)) and width <= FORMED:
            known = levels(problem)
            if shared_passes(*size, len(known.groups)) <= SHARED:
                way.descend(native.Inverse(*kronecker(problem, known).arrays()), max_iter // 2)
        way.truncate(max_iter)
        return way.found()
    if not (problem.loss.convex and 0 < width <= BLOCK_LIMIT):
        return problem.at(*start), 0
    known = levels(problem)
    shared = shared_passes(*size, len(known.groups))
    # Where few rows or a strong penalty decide, the diagonal is enough, and that shows before as much is spent.
    first = shared > SHARED
    state, used = problem.at(*start), 0
    patience = int(QUASI * step)
    proving = bool((strengths(problem) > 0.0).all()) and newton_seconds(*size) > NOTICED * AROUND
    if first or (proving and problem.shape[0] <= width):
        by_column, most = diagonal(state, state.h), patience if proving else int(shared)
        ends = Proof(problem, tol, shared + SHARED, int(max(shared, SHARED))) if proving else None
        state, used = _descended(
            state, lambda g: problem.centered(by_column(g)), tol, min(max_iter // 4, most), most, ends
        )
        if provable(gradient(state), problem) <= tol:
            return state, used
    ends = Proof(problem, tol, step, SHARED) if proving else None
    state, more = _descended(state, kronecker(problem, known), tol, max_iter // 2, patience, ends)
    return state, used + more


def _descended(
    state: State, inverse: Inverse, tol: float, max_iter: int, patience: int, ends: Proof | None
) -> tuple[State, int]:
    """Gradients of K scores. What they prove is proven after a step of the intercept, which the coefficients feel: where that
    leaves too much, they go on to a smaller gap.
    """
    problem, used, wanted = state.problem, 0, tol
    for _ in range(TRIES):
        state, more = descend(
            problem, (state.w, state.b), inverse, wanted, max_iter - used, patience, ends and ends.of(wanted)
        )
        used += more
        if used >= max_iter or more == 0 or not provable(gradient(state), problem) <= wanted:
            break
        gap = state.objective - dual_bound(state)
        if not gap > tol:
            break
        wanted = max(0.1, 0.3 * tol / gap) * wanted
    return state, used


def part_is_light(problem: Problem) -> bool:
    """Whether the whole Hessian of K scores is small beside the scores of all rows, where native code keeps none of them."""
    (n, d), K = problem.shape, problem.n_scores
    return not native_pass(problem) or K * (d + problem.fit_intercept) ** 2 <= HEAVY * n


def of_a_part(part: Problem, start: Point, inverse: Curvature | None, tol: float, max_iter: int) -> State:
    """A point near the optimum of a part of the rows, on top of the Hessian of a smaller part where there is one."""
    way = _native_from(part, start, inverse, tol)
    if way is None:
        return descend(part, start, inverse or kronecker(part), tol, max_iter)[0]
    way.descend(_held(part, inverse), max_iter)
    return part.at(*part.split(way.x))


def on_from_a_part(
    problem: Problem, start: Point, inverse: Curvature, tol: float, max_iter: int
) -> Solution | tuple[State, int]:
    """The solution of all rows from that of a part, on top of its Hessian, or a point near it and the iterations used."""
    way = _native_from(problem, start, inverse, tol)
    if way is None:
        return descend(problem, start, inverse, tol, max_iter)
    way.descend(_held(problem, inverse), max_iter)
    return way.found()


def _native_from(problem: Problem, start: Point, inverse: Curvature | None, tol: float) -> _Native | None:
    """Native passes, where they can use the inverse."""
    width = problem.shape[1] + problem.fit_intercept
    usable = width <= FORMED if inverse is None else inverse.factor is not None
    return _Native(problem, tol, *start) if usable and native_pass(problem) else None


def _held(problem: Problem, inverse: Curvature | None) -> native.Inverse:
    arrays = kronecker(problem).arrays() if inverse is None or inverse.factor is None else inverse.factor
    return native.Inverse(*arrays)


def native_pass(problem: Problem) -> bool:
    """Whether native code descends by itself."""
    if type(problem.loss) is not Softmax or not problem.dense or not problem.regularizer.strictly_convex:
        return False
    return problem.y.ndim == 1 and problem.shape[1] > 0 and in_one_piece(problem.X)


class _Native:
    """A point on its way, in native calls."""

    def __init__(self, problem: Problem, tol: float, w: Array, b: Any) -> None:
        self.problem, self.tol = problem, tol
        self.rows = np.ascontiguousarray(problem.X), problem.y, problem.p, strengths(problem)
        self.x, self.used = np.ascontiguousarray(problem.join(w, b), dtype=np.float64), 0
        self.objective, self.bound = np.inf, -np.inf
        self.step = newton_passes(*problem.shape, problem.n_scores)

    @property
    def proven(self) -> bool:
        """Whether the gap is closed."""
        return bool(abs(self.objective - self.bound) <= self.tol)

    def descend(self, inverse: native.Inverse, most: int) -> None:
        """On from here by gradients, until a Newton step is cheaper."""
        size = (*self.problem.shape, self.problem.n_scores)
        patience = QUASI * (self.step + NOTICED * AROUND / (newton_seconds(*size) / self.step))
        step = min(self.step, CONJUGATE)
        self._keep(native.descend(*self.rows, self.x, inverse, self._options(most), int(patience), step, SHARED))

    def truncate(self, most: int) -> None:
        """On from here by Newton's steps, with as many products as some steps with the whole Hessian are worth."""
        if not self.proven:
            products = max(LEAST, QUASI * self.step)
            self._keep(native.truncated(*self.rows, self.x, self._options(most - self.used), products))

    def _options(self, most: int) -> native.Options:
        fit = self.problem
        return native.Options(fit.fit_intercept, self.tol, fit.scale, most, fit.threads)

    def _keep(self, found: tuple[Array, float, float, int]) -> None:
        self.x, self.objective, self.bound, more = found
        self.used += more

    def found(self) -> Solution | tuple[State, int]:
        """The solution, or where Newton's method begins."""
        w, b = self.problem.split(self.x)
        if not self.proven:
            return self.problem.at(w, b), self.used
        return Solution(w, b, self.used, "newton", min(self.bound, self.objective), self.objective)
