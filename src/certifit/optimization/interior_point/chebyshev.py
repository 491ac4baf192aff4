"""Chebyshev approximation: the least largest residual, by the interior-point method with one variable more.

minimize  max_i |y_i − x_i·w − b| + l1‖w‖₁ + ½ l2‖w‖²
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from certifit._types import is_sparse
from certifit.optimization.interior_point.basis import Basis
from certifit.optimization.interior_point.core import solve_core
from certifit.optimization.interior_point.problem import Array, Polyhedral, ScaledDesign
from certifit.optimization.interior_point.solve import HELD, InteriorPointResult, _curvature, _in_columns, _in_units

__all__ = ["chebyshev", "evened"]


def chebyshev(
    X: Any, y: Array, *, l1: float = 0.0, l2: float = 0.0, fit_intercept: bool = True, tol: float, max_iter: int = 100
) -> InteriorPointResult:
    """Minimize max_i |y_i − x_i·w − b| + l1‖w‖₁ + ½ l2‖w‖².

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,)
    l1, l2 : float
    fit_intercept : bool
    tol : float
        Absolute duality gap, in the units of the objective.
    max_iter : int

    Returns
    -------
    InteriorPointResult
        `theta` sums to at most 1 in absolute value and is nonzero on the extreme residuals only.
    """
    m, d = X.shape
    if l1 == 0 and l2 == 0 and (basis := Basis.of(X, fit_intercept)) is not None:
        found = chebyshev(basis.U, y, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter)
        return _in_columns(found, basis, np.ones(m), fit_intercept)
    if l1 == 0 and l2 > 0 and m < d and not is_sparse(X):
        narrow = _in_space_of_rows(X, y, l2, fit_intercept, tol, max_iter)
        if narrow.gap <= tol:
            return narrow
    design, centre, column, shift, target, values = _in_units(X, y, fit_intercept)
    # f − t ≤ y and −f − t ≤ −y: the size t of the residuals is one more coefficient, of price 1.
    ones = np.ones(m)
    column_t = sp.csr_array(-ones[:, None])
    if design.sparse:
        base, tail = design.csr[:, :d], design.csr[:, d:]
        half = [sp.hstack([s * base, column_t, s * tail], format="csr") for s in (1.0, -1.0)]
        stacked = ScaledDesign(sp.vstack(half, format="csr"))
    else:
        body, end = design.transposed[:d], design.transposed[d:]
        stacked = ScaledDesign(np.hstack([np.vstack([body, -ones, end]), np.vstack([-body, -ones, -end])]))
    with np.errstate(over="ignore"):
        first, second = np.minimum(l1 / column, HELD), np.minimum(_curvature(l2, column, target), HELD)
    none = np.zeros(2 * m)
    problem = Polyhedral(
        design=stacked,
        lower=np.full(2 * m, -np.inf),
        upper=np.concatenate([values, -values]),
        low=none,
        high=np.full(2 * m, np.inf),
        linear=np.concatenate([np.zeros(d), [1.0], np.zeros(int(fit_intercept))]),
        l1=np.append(first, 0.0),
        l2=np.append(second, 0.0),
        box_lower=np.append(np.full(d, -np.inf), 0.0),
        box_upper=np.full(d + 1, np.inf),
        intercept=fit_intercept,
        ball=None,
    )
    with design.threading():
        core = solve_core(problem, tol / target, max_iter)
    done = core.certified
    z = np.delete(done.z, d)
    z[:d][(problem.l1[:d] >= HELD) | (problem.l2[:d] >= HELD)] = 0.0
    residual = values - design.forward(z)
    if fit_intercept:
        z[d] += evened(residual)
    penalty = float(problem.l1[:d] @ np.abs(z[:d]) + 0.5 * np.sum(problem.l2[:d] * z[:d] ** 2))
    objective = (float(np.abs(residual).max()) + penalty) * target
    bound = max(done.bound * target, 0.0)
    coef = z[:d] / column * target
    b = float(z[d] * target + shift - centre @ coef) if fit_intercept else 0.0
    theta = done.theta[:m] - done.theta[m:]
    gap = max(objective - bound, 0.0)
    status, message = core.status, core.message
    if gap <= tol:
        status, message = "optimal", "the duality gap is below the tolerance"
    elif status == "infeasible":  # there is always a feasible t
        status, message = "stalled", "rounding errors stopped the iterations"
    return InteriorPointResult(coef, b, theta, objective, bound, gap, core.iterations, status, message)


def _in_space_of_rows(
    X: Array, y: Array, l2: float, fit_intercept: bool, tol: float, max_iter: int
) -> InteriorPointResult:
    """The best w is in the span of the rows: with X = LQᵀ, w = Qz has the scores Lz and the norm of z.

    The dual point is one of X as well: θ'y − ‖Xᵀθ‖²/(2 l2) is below the optimum, and knows what rounding does to L where columns
    are of sizes far apart.
    """
    rows = X.astype(np.float64, copy=False)
    Q, R = scipy.linalg.qr(rows.T, mode="economic", check_finite=False)
    found = chebyshev(np.ascontiguousarray(R.T), y, l2=l2, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter)
    coef = Q @ found.coef
    with np.errstate(over="ignore", invalid="ignore"):
        residual = y - rows @ coef - found.intercept
        objective = float(np.abs(residual).max() + 0.5 * l2 * (coef @ coef))
        slope = found.theta @ rows
        bound = min(found.bound, abs(float(found.theta @ y)) - 0.5 * float(slope @ slope) / l2)
    gap = objective - bound if np.isfinite(objective - bound) else np.inf
    return replace(found, coef=coef, objective=objective, bound=bound, gap=gap)


def evened(residual: Array) -> float:
    """The best intercept, which makes the two extreme residuals equal; it is taken off them."""
    move = 0.5 * (float(residual.max()) + float(residual.min()))
    residual -= move
    return move
