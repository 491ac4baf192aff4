"""Ridge regression by conjugate gradients, where fewer products with X than a factorization is worth prove the gap.

    minimize over w, b    Σ p_i ½(y_i − x_i·w − b)² + ½ Σ_j l2_j w_j²,        l2 > 0

One native call (native/ridge/conjugate.hpp). Each product reads X once, and the gradient, which the method knows anyhow, is the
proof: the residuals are a dual point with the gap ½ Σ g_j²/l2_j. Of fewer rows than columns, the method knows a better one. The
gap bounds the distance of the coefficients too, which the objective hardly feels where the penalty is weak: so it is to be small
beside the penalty's part of the objective as well.
"""

from __future__ import annotations

import math

import numpy as np

import certifit._native.ridge as _ridge
from certifit._types import is_sparse
from certifit.optimization.closed_form.sparse_rows import arrays_of
from certifit.optimization.objective.problem import Problem, Solution
from certifit.representation.design.products import in_one_piece

__all__ = ["conjugate_ridge"]

SHARE = 100.0  # times the relative gap: the share of the penalty that the gap may be


def conjugate_ridge(problem: Problem, tol: float, max_iter: int, most: float = math.inf) -> Solution | None:
    """The fit to the absolute gap `tol`, which is at most a small share of the penalty too; None where `most` products
    are not enough, as soon as their rate says so.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Squared
    >>> from certifit.penalties import L2
    >>> from certifit.optimization.objective.regularizer import Regularizer
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(X, y, np.full(2, 0.5), Squared(), Regularizer.of(L2(), 1.0, None, 1), True)
    >>> found = conjugate_ridge(problem, 1e-9, 10)
    >>> found.coef, found.solver
    (array([0.5]), 'newton_cg')
    """
    X, l2 = problem.X, problem.regularizer.smooth()
    if l2 is None or not (l2 > 0.0).all():
        return None
    arrays = arrays_of(X) if is_sparse(X) else (X,) if in_one_piece(X) and X.dtype in (np.float64, np.float32) else None
    if arrays is None:
        return None
    y, p = (np.ascontiguousarray(part, dtype=np.float64) for part in (problem.y, problem.p))
    share = SHARE * tol / problem.scale if problem.scale > 0.0 else 0.0
    coef, intercept, objective, gap, products, given_up = _ridge.iterate(
        *arrays, y, p, l2, problem.fit_intercept, float(tol), float(most), max_iter, problem.threads, share
    )
    if given_up or not np.isfinite(coef).all():
        return None
    return Solution(coef, intercept, products, "newton_cg", max(objective - gap, 0.0), objective)
