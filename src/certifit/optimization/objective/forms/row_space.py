"""Wide data in the space of its rows.

With more columns than rows, X = LQᵀ with Q of orthonormal columns and L of n × n. A penalty ½ l2 ‖w‖² keeps the best w in the
span of the rows: w = Qz has the scores Lz and the norm of z, so the problem of z has n columns instead of d, and the same value
and bound. L comes from a Cholesky factorization of XXᵀ where its condition allows, and from a QR factorization of Xᵀ where not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from certifit._types import Array
from certifit.evaluation.penalties import L2
from certifit.optimization.closed_form.cholesky import cholesky_condition
from certifit.optimization.objective.costs import rows_pay
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.representation.design.products import NARROW

__all__ = ["InRowSpace", "row_space"]

WIDER = 1.5  # columns for each row from which XXᵀ may pay: it costs what one Hessian of Newton's method does not save
UNEVEN = 1e8  # condition of XXᵀ up to which w keeps half of its digits and more
LEAST = 100  # columns: below, all is done in no time


@dataclass(frozen=True)
class InRowSpace:
    """The problem of z, and the way back."""

    problem: Problem
    basis: Array
    """Q itself, or the rows X that span it."""
    back: Array | None
    """With the rows: Q = Xᵀ·back."""

    def enter(self, start: Point) -> Point:
        """The z of a point: what lies outside the span of the rows has no scores, and only costs."""
        w, b = start
        return (w @ self.basis if self.back is None else (w @ self.basis.T) @ self.back), b

    def leave(self, solution: Solution) -> Solution:
        """The w of a solution."""
        z = solution.coef
        return replace(solution, coef=z @ self.basis.T if self.back is None else (z @ self.back.T) @ self.basis)


def row_space(problem: Problem) -> InRowSpace | None:
    """The problem in the space of its rows, where that is smaller; None where it is not, or the penalty sees single columns."""
    n, d = problem.shape
    smooth = problem.loss.smooth
    # With kinks it pays where native code takes no more columns than there are rows, whose steps cost a matrix each.
    if not problem.dense or not (d >= max(LEAST, WIDER * n) if smooth else n <= NARROW < d):
        return None
    l2 = problem.regularizer.smooth()
    if l2 is None or not l2[0] > 0.0 or not (l2 == l2[0]).all():
        return None
    X = problem.X.astype(np.float64, copy=False)
    if smooth and problem.n_scores == 1:
        bend = float(problem.at(*problem.start()).bend())
        if not rows_pay(n, d, float(l2[0]), bend * float(np.vdot(X, X)) / (n * n)):
            return None
    upper, condition = cholesky_condition(X @ X.T)
    if condition < UNEVEN:
        back, _ = lapack.dtrtri(upper)
        return InRowSpace(_narrow(problem, upper.T, float(l2[0])), X, back)
    Q, R = linalg.qr(X.T, mode="economic", check_finite=False)
    return InRowSpace(_narrow(problem, R.T, float(l2[0])), Q, None)


def _narrow(problem: Problem, L: Array, l2: float) -> Problem:
    return replace(problem, X=np.ascontiguousarray(L), regularizer=Regularizer.of(L2(), l2, None, L.shape[1]))
