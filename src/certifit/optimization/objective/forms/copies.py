"""A piecewise linear loss without rows that are copies of others, and without columns that have no entries.

    minimize over w, b    Σ p_i ℓ(y_i, x_i·w + b) + ½ Σ_j l2_j w_j²

Equal rows with equal targets have one loss: one row with the sum of their weights stands for them, and its slope is theirs. Most
rows of a sparse X may be empty, or hold the intercept alone. A column without entries has the coefficient zero. The problem that
is left has the same value, the same bound and the same scale.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import certifit._native.products as _products
from certifit._types import Array, is_sparse
from certifit.evaluation.penalties import L2
from certifit.evaluation.penalties.elastic import Strengths
from certifit.optimization.dual.hinge import row_matrix
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer

__all__ = ["WithoutCopies", "without_copies"]

USED = 0.8  # of the columns, up to which the others are left out


@dataclass(frozen=True)
class WithoutCopies:
    """The problem that is left, and the way back."""

    problem: Problem
    which: Array | None
    """The row of the problem that each row is; None if all are there."""
    columns: Array | None
    d: int

    def enter(self, start: Point) -> Point:
        """A point of the problem that is left."""
        return (start[0] if self.columns is None else start[0][self.columns]), start[1]

    def leave(self, solution: Solution) -> Solution:
        """A solution for all rows and columns."""
        coef, dual = solution.coef, solution.dual
        if self.columns is not None:
            coef = np.zeros(self.d)
            coef[self.columns] = solution.coef
        return replace(solution, coef=coef, dual=dual if self.which is None or dual is None else dual[self.which])


def without_copies(problem: Problem) -> WithoutCopies | None:
    """The problem of the rows that differ and of the columns that have entries; None where they are nearly all."""
    l2 = problem.regularizer.smooth()
    if l2 is None or not problem.in_memory or problem.loss.smooth or problem.n_scores > 1:
        return None
    X, d = problem.X, problem.shape[1]
    if not (is_sparse(X) or X.flags.c_contiguous):
        return None
    copies = _products.copies(row_matrix(X, _products), np.ascontiguousarray(problem.y, dtype=np.float64))
    columns = np.flatnonzero(np.bincount(X.indices, minlength=d)) if is_sparse(X) and X.format == "csr" else None
    if columns is not None and not 0 < columns.shape[0] <= USED * d:
        columns = None
    if copies is None and columns is None:
        return None
    y, p, which = problem.y, problem.p, None
    if copies is not None:
        first, which = copies
        X, y, p = X[first], y[first], np.bincount(which, weights=p)
    if columns is None:
        return WithoutCopies(replace(problem, X=X, y=y, p=p), which, None, d)
    kept = l2[columns]
    same = bool((kept == kept[0]).all())
    penalty = L2() if same else Strengths(np.zeros(kept.shape[0]), kept)
    regularizer = Regularizer.of(penalty, float(kept[0]) if same else 1.0, None, kept.shape[0])
    left = replace(problem, X=X[:, columns], y=y, p=p, regularizer=regularizer)
    return WithoutCopies(left, which, columns, d)
