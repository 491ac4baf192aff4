"""Piecewise linear losses with an L2 penalty on every coefficient and few columns: the whole method in one native call.

    minimize over w, b    Σ p_i ℓ_i(x_i·w + b) + ½ Σ_j l2_j w_j²

The interior point of core.py, until it shows which rows lie on a kink; their equations then give the optimum itself. What it
does not solve (kinks of infinite slope, rows that depend on each other in more ways than one) is left to `solve_polyhedral`.
Of many more rows than columns only those near a kink are rows of the method, the others are their mean. The mathematics is in
native/interior_point/ridge.hpp and tall.hpp.
"""

from __future__ import annotations

import numpy as np

import certifit._native.interior_point as native
from certifit._types import Array, Matrix
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.optimization.dual.hinge import row_matrix, sides_of
from certifit.optimization.interior_point.solve import InteriorPointResult
from certifit.representation.design.products import NARROW

__all__ = ["MOST_COLUMNS", "solve_ridge"]

MOST_COLUMNS = NARROW  # the native Gram matrix is the faster one up to here


def solve_ridge(
    X: Matrix,
    terms: TwoSidedHinge,
    p: Array,
    l2: Array,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    scale: float = 1.0,
    max_iter: int = 100,
    threads: int = 1,
    tall: bool = False,
) -> InteriorPointResult | None:
    """Minimize Σ p_i ℓ_i(x_i·w + b) + ½ Σ l2_j w_j²; None where the gap stays above tol.

    Parameters
    ----------
    X : array of shape (n, d); with `tall` sparse too
    terms : TwoSidedHinge
    p : array of shape (n,)
        Weights.
    l2 : array of shape (d,), positive
    fit_intercept : bool
    tol : float
        Absolute duality gap.
    scale : float
        Size of the objective, which says when it is worth looking for the rows on kinks.
    max_iter : int
    threads : int
    tall : bool
        Whether there are many rows for each column: only those near a kink are then rows of the method.

    Returns
    -------
    InteriorPointResult or None

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Hinge
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> result = solve_ridge(X, Hinge().hinge_terms(y), np.full(4, 0.25), np.full(1, 0.01))
    >>> result.coef.round(12), round(result.intercept, 12), result.exact
    (array([1.]), -2.0, True)
    >>> from certifit.losses import Absolute
    >>> X = np.linspace(-1.0, 1.0, 20001)[:, None]
    >>> terms, p = Absolute().hinge_terms(3.0 * X[:, 0] + np.sin(1000.0 * X[:, 0])), np.full(20001, 1 / 20001)
    >>> result = solve_ridge(X, terms, p, np.full(1, 1e-6), tol=1e-5, tall=True)
    >>> bool(0 <= result.gap <= 1e-5), result.coef.round(2)
    (True, array([3.]))
    """
    options = native.Options(bool(fit_intercept), float(tol), float(scale), int(max_iter), int(threads))
    loss = native.Loss(*sides_of(terms, p.shape[0]), np.ascontiguousarray(p))
    method, rows = (native.tall, row_matrix(X, native)) if tall else (native.ridge, X)
    found = method(rows, loss, np.ascontiguousarray(l2, dtype=np.float64), options)
    if found is None:
        return None
    coef, intercept, theta, objective, bound, iterations, exact = found
    if not abs(objective - bound) <= tol:
        return None
    bound = min(bound, objective)  # what is above is rounding
    message = "the rows on kinks are known" if exact else "the duality gap is below the tolerance"
    return InteriorPointResult(
        coef, intercept, theta, objective, bound, objective - bound, iterations, "optimal", message, exact
    )
