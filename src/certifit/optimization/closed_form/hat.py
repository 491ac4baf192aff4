"""The hat matrix of penalized least squares: how the predictions follow the targets, and its diagonal, the leverages."""

from __future__ import annotations

import numpy as np

from certifit._types import Array, Matrix
from certifit.optimization.closed_form.factorizations import DualCholesky
from certifit.optimization.closed_form.normal_equations import HAT_LIMIT, NormalEquations
from certifit.optimization.closed_form.orthogonal import Factor, RowSpace, orthogonal

__all__ = ["hat_matrix", "leverage"]


def leverage(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> Array:
    """∂ŷ_i/∂y_i, the diagonal of the hat matrix; its sum is the effective number of parameters.

    A row of weight s stands for s equal rows, each with the s-th part of its leverage.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form.hat import leverage
    >>> leverage(np.array([[-1.0], [0.0], [1.0]]), np.full(3, 1 / 3), np.zeros(1), True).round(4)
    array([0.8333, 0.3333, 0.8333])
    """
    problem, factor = _for_hat(X, p, l2, fit_intercept)
    if isinstance(factor, (DualCholesky, RowSpace)):
        return np.clip(factor.hat_diagonal() + (p if fit_intercept else 0.0), 0.0, 1.0)
    parts = [np.einsum("ij,ij->j", half, half) for half in (factor.half(A.T) for A, _ in problem.rows())]
    return np.clip(np.concatenate(parts) + (p if fit_intercept else 0.0), 0.0, 1.0)


def hat_matrix(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> Array:
    """The n×n matrix with ŷ = hat·y; for moderate n.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form.hat import hat_matrix
    >>> hat = hat_matrix(np.array([[-1.0], [0.0], [1.0]]), np.full(3, 1 / 3), np.zeros(1), True)
    >>> np.allclose(hat @ hat, hat)
    True
    """
    problem, factor = _for_hat(X, p, l2, fit_intercept)
    root = np.sqrt(p)
    if isinstance(factor, (DualCholesky, RowSpace)):
        symmetric = factor.hat()
    else:
        half = np.concatenate([factor.half(A.T) for A, _ in problem.rows()], axis=1)
        symmetric = half.T @ half
    hat: Array = symmetric * root / root[:, None]
    return hat + p if fit_intercept else hat


def _for_hat(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> tuple[NormalEquations, Factor]:
    problem = NormalEquations(X, np.zeros(X.shape[0]), p, l2, fit_intercept)
    problem.rescale()  # measures the columns; cheap beside what follows
    problem.measure()
    if problem.wide_and_penalized:
        dual = DualCholesky(problem)
        if dual.condition**2 < HAT_LIMIT:
            return problem, dual
    return problem, orthogonal(problem)  # a diagonal has no refinement, so it gets the accurate factor
