"""Near the optimum of a loss of K scores by gradients, on top of the Hessian that constant scores share.

A pass for the gradient has 4·n·D·K operations, the whole Hessian KD/4 times as many. Softmax regression on a dense X with a
penalty on every column is a native call or two, proof and all: gradients on top of the shared Hessian where that costs little
beside a pass (native/softmax/descent.hpp), and Newton's steps by conjugate gradients where it does not, or where gradients are
slow (native/softmax/truncated.hpp). What they do not end is left to Newton's method with the whole Hessian.
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
    Kronecker,
    diagonal,
    kronecker,
    levels,
    provable,
    strengths,
)
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.costs import AROUND, exact_is_cheap, newton_passes, newton_seconds, shared_passes
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.representation.design.products import in_one_piece

__all__ = ["QUASI", "near_several"]

QUASI = 4  # Newton steps that are still ahead where gradients are slow: so much may be spent on gradients instead
SHARED = 20  # passes that the Hessian of constant scores may cost before its diagonal is tried, and from which a rate is read
NOTICED = 10  # calls of Python that a Newton step must be worth: below that nothing is to be gained by going around it
TRIES = 3  # of gradients to prove a gap
TALL = 6  # rows for each column from which the Hessian of constant scores is like that of others
CONJUGATE = 100  # passes of a last Newton step by conjugate gradients
LEAST = 400  # passes that conjugate gradients may take in any case


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
                patience = QUASI * (step + NOTICED * AROUND / (newton_seconds(*size) / step))
                way.descend(kronecker(problem, known), max_iter // 2, patience, min(step, CONJUGATE))
        way.truncate(max_iter, max(LEAST, QUASI * step))
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

    @property
    def proven(self) -> bool:
        """Whether the gap is closed."""
        return bool(abs(self.objective - self.bound) <= self.tol)

    def descend(self, inverse: Kronecker, most: int, patience: float, step: float) -> None:
        """On from here by gradients, until a Newton step is cheaper."""
        held, options = native.Inverse(*inverse.arrays()), self._options(most)
        self._keep(native.descend(*self.rows, self.x, held, options, int(patience), step, SHARED))

    def truncate(self, most: int, products: float) -> None:
        """On from here by Newton's steps, with so many products."""
        if not self.proven:
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
