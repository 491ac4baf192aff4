"""Newton's method for one score with an L2 penalty on every column, its steps by conjugate gradients, all in one native call.

    minimize over w, b    Σ p_i ℓ(y_i, x_i·w + b) + ½ Σ_j l2_j w_j²,        l2 > 0

No matrix of columns is formed, so that wide and sparse X cost what their entries do, and Python stands around the fit instead of
around each product. Where conditioning makes more products than the Hessians are worth, the rest is left to smooth.py. The
mathematics is in native/newton/truncated.hpp.
"""

from __future__ import annotations

import numpy as np

import certifit._native.newton as native
from certifit._types import is_sparse
from certifit.optimization.closed_form.sparse_rows import arrays_of
from certifit.optimization.newton.few_columns import KERNELS
from certifit.optimization.objective.costs import newton_products
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.representation.design.products import in_one_piece

__all__ = ["by_conjugate_gradients", "has_kernel"]


def has_kernel(problem: Problem) -> bool:
    """Whether native code can take the steps."""
    if type(problem.loss) not in KERNELS or not problem.in_memory or min(problem.shape) == 0 or problem.y.ndim != 1:
        return False
    if problem.regularizer.constraint is not None or not problem.regularizer.strictly_convex:
        return False
    l2, X = problem.regularizer.smooth(), problem.X
    if l2 is None or not (l2 > 0.0).all() or X.dtype not in (np.float64, np.float32):
        return False
    return X.format in ("csr", "csc") if is_sparse(X) else in_one_piece(X)


def by_conjugate_gradients(problem: Problem, start: Point, tol: float, max_iter: int) -> Solution:
    """The solution to the absolute gap `tol`; or a point on the way to it without a bound, where more products are wanted than
    other ways are worth.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.evaluation.losses.labels.margin import HardLogistic
    >>> from certifit.penalties import L2
    >>> from certifit.optimization.objective.regularizer import Regularizer
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, 0.0])
    >>> problem = Problem(X, y, np.full(2, 0.5), HardLogistic(), Regularizer.of(L2(), 0.25, None, 1), True)
    >>> found = by_conjugate_gradients(problem, problem.start(), 1e-9, 20)
    >>> w = float(found.coef[0])
    >>> print(found.solver, abs(0.25 * w - 1 / (1 + np.exp(w))) < 1e-4)  # where the slope is zero
    newton_cg True
    """
    X, l2 = problem.X, problem.regularizer.smooth()
    assert l2 is not None
    arrays = arrays_of(X if X.format == "csr" else X.tocsr()) if is_sparse(X) else (X,)
    if arrays is None:
        return Solution(*start, 0, "newton_cg")
    y, p, w = (np.ascontiguousarray(part, dtype=np.float64) for part in (problem.y, problem.p, start[0]))
    options = native.Options(problem.fit_intercept, float(tol), problem.scale, max_iter, problem.threads)
    kernel, most = KERNELS[type(problem.loss)], newton_products(problem)
    coef, intercept, objective, bound, iterations = native.truncated(
        kernel, *arrays, y, p, l2, w, float(start[1]), options, most
    )
    if not np.isfinite(coef).all() or not np.isfinite(objective):
        return Solution(*start, 0, "newton_cg")
    if not abs(objective - bound) <= tol:
        return Solution(coef, intercept, iterations, "newton_cg")
    return Solution(
        coef, intercept, iterations, "newton_cg", min(bound, objective), objective
    )  # what is above is rounding
