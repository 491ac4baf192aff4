"""Linear programs by HiGHS, with the dual bound checked: the cross-check of the interior-point method.

    minimize  Σ_i p_i [slope_high·max(f_i − y_i, 0) + slope_low·max(y_i − f_i, 0)] + l1‖w‖₁,    f = Xw + b
    minimize  max_i |y_i − f_i| + l1‖w‖₁

Each is solved in its dual form, which has d rows instead of n: the multipliers of those rows are the
coefficients.

    maximize −Σ p_i θ_i y_i    |Xᵀ(pθ)| ≤ l1,  Σ p_i θ_i = 0,  −slope_low ≤ θ ≤ slope_high

The bound is not read from the solver's log: its dual point is repaired to feasibility and evaluated here.
Huangfu and Hall (2018), Parallelizing the dual revised simplex method; Koenker and Bassett (1978) for the
dual.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from certifit.optimization.interior_point.chebyshev import evened
from certifit.optimization.interior_point.problem import Array, Polyhedral, ScaledDesign, is_sparse, proven
from certifit.optimization.interior_point.solve import InteriorPointResult, _in_units, _vector
from certifit.parameters.docstrings import takes_as

__all__ = ["chebyshev_lp", "lad_lp", "quantile_lp"]


def lad_lp(
    X: Any, y: ArrayLike, p: ArrayLike | None = None, *, l1: float = 0.0, fit_intercept: bool = True
) -> InteriorPointResult:
    """Minimize Σ p_i |y_i − x_i·w − b| + l1‖w‖₁ by HiGHS.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,)
    p : array of shape (n,), optional
        Nonnegative weights, 1 by default.
    l1 : float
    fit_intercept : bool

    Examples
    --------
    >>> import numpy as np
    >>> result = lad_lp(np.arange(5.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 30.0]))
    >>> result.status, round(float(result.coef[0]), 6), round(result.objective, 6)
    ('optimal', 1.0, 26.0)
    """
    return _kinked(X, y, p, 1.0, 1.0, l1, fit_intercept)


@takes_as(lad_lp)
def quantile_lp(
    X: Any, y: ArrayLike, p: ArrayLike | None = None, *, quantile: float, l1: float = 0.0, fit_intercept: bool = True
) -> InteriorPointResult:
    """Minimize Σ p_i [τ max(y_i − f_i, 0) + (1 − τ) max(f_i − y_i, 0)] + l1‖w‖₁ by HiGHS, τ = quantile.

    Parameters
    ----------
    quantile : float
        Between 0 and 1, both excluded.
    """
    if not 0 < quantile < 1:
        raise ValueError(f"quantile must lie strictly between 0 and 1; got {quantile!r}")
    return _kinked(X, y, p, quantile, 1.0 - quantile, l1, fit_intercept)


def _kept(X: Any, y: ArrayLike, p: ArrayLike | None) -> tuple[Any, Array, Array, Any]:
    """The rows of positive weight, their targets and weights, and their positions."""
    if not is_sparse(X):
        X = np.asarray(X)
    n = X.shape[0]
    target, weight = _vector(y, n, "y"), _vector(1.0 if p is None else p, n, "p", 0.0)
    kept = np.flatnonzero(weight > 0)
    if kept.size == 0:
        raise ValueError("p must be positive for at least one sample")
    return (X.tocsr() if is_sparse(X) else X)[kept], target[kept], weight[kept], kept


def _failure(n: int, d: int, message: str) -> InteriorPointResult:
    """HiGHS gave no solution: zero coefficients and no claim about them."""
    return InteriorPointResult(np.zeros(d), 0.0, np.zeros(n), np.inf, -np.inf, np.inf, 0, "stalled", message)


def _kinked(
    X: Any, y: ArrayLike, p: ArrayLike | None, low: float, high: float, l1: float, fit_intercept: bool
) -> InteriorPointResult:
    """One kink for each sample."""
    n, d = X.shape
    X, yk, pk, kept = _kept(X, y, p)
    design, centre, column, shift, target, values = _in_units(X, yk, fit_intercept)
    top = float(pk.max())
    weight = pk / top
    m = kept.size
    problem = Polyhedral(
        design=design,
        lower=values,
        upper=values,
        low=weight * low,
        high=weight * high,
        linear=np.zeros(design.n_columns),
        l1=np.minimum(l1 / column / top, 1e100),
        l2=np.zeros(d),
        box_lower=np.full(d, -np.inf),
        box_upper=np.full(d, np.inf),
        intercept=fit_intercept,
        ball=None,
    )
    bounds = np.column_stack([-problem.low, problem.high])
    z, theta, iterations, message = _dual_program(design, problem.l1, values, bounds)
    if z is None or theta is None:
        return _failure(n, d, message)
    done = proven(problem, z, theta, 0.0)
    unit = target * top
    coef = done.z[:d] / column * target
    b = float(done.z[d] * target + shift - centre @ coef) if fit_intercept else 0.0
    full = np.zeros(n)
    full[kept] = np.clip(done.theta / weight, -low, high) if m else 0.0
    objective, bound = done.objective * unit, done.bound * unit
    gap = max(objective - bound, 0.0)
    return InteriorPointResult(coef, b, full, objective, bound, gap, iterations, "optimal", message)


def _dual_program(
    design: ScaledDesign, l1: Array, values: Array, bounds: Array, budget: bool = False
) -> tuple[Array | None, Array | None, int, str]:
    """Maximize −values·θ in its box, |Xᵀθ| ≤ l1; the multipliers of Xᵀθ are the coefficients.

    With a budget the box is replaced by ‖θ‖₁ ≤ 1, written with θ = θ⁺ − θ⁻.
    """
    rows: Any = sp.csr_array(design.csc if design.sparse else design.transposed)
    width = np.concatenate([l1, np.zeros(design.n_columns - l1.size)])
    free = width == 0
    cost = values
    if budget:
        rows = sp.hstack([rows, -rows], format="csr")
        cost = np.concatenate([values, -values])
        bounds = np.column_stack([np.zeros(cost.size), np.full(cost.size, np.inf)])
    # Two inequalities for each penalized coefficient; at most one of their multipliers is not zero.
    tied = rows[np.flatnonzero(~free)]
    blocks = [tied, -tied, *([sp.csr_array(np.ones((1, cost.size)))] if budget else [])]
    limit = np.concatenate([width[~free], width[~free], np.ones(int(budget))])
    upper: Any = sp.vstack(blocks, format="csr") if limit.size else None
    equal: Any = rows[np.flatnonzero(free)] if free.any() else None
    solver: Any = linprog  # the stubs know fewer forms of the arguments than the function
    answer = solver(
        cost,
        A_ub=upper,
        b_ub=limit if limit.size else None,
        A_eq=equal,
        b_eq=np.zeros(int(free.sum())) if free.any() else None,
        bounds=bounds,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None or answer.status != 0:
        return None, None, 0, str(answer.message)
    # The derivative of the minimum in the right side of Xᵀθ = 0 is w; in that of ±Xᵀθ ≤ l1, ±w.
    z = np.zeros(design.n_columns)
    if free.any():
        z[free] = np.asarray(answer.eqlin.marginals)
    if limit.size:
        marginal = np.asarray(answer.ineqlin.marginals)[: limit.size - int(budget)]
        half = marginal.size // 2
        z[~free] = marginal[:half] - marginal[half:]
    solution = np.asarray(answer.x)
    if budget:
        solution = solution[: values.size] - solution[values.size :]
    return z, solution, int(answer.nit), str(answer.message)


@takes_as(lad_lp)
def chebyshev_lp(X: Any, y: Array, *, l1: float = 0.0, fit_intercept: bool = True) -> InteriorPointResult:
    """Minimize max_i |y_i − x_i·w − b| + l1‖w‖₁ by HiGHS."""
    n, d = X.shape
    design, centre, column, shift, target, values = _in_units(X, y, fit_intercept)
    price = np.minimum(l1 / column, 1e100)
    z, theta, iterations, message = _dual_program(design, price, values, np.empty(0), budget=True)
    if z is None or theta is None:
        return _failure(n, d, message)
    # min Σ high·max(f − y, 0) + … with slopes of ±|θ| has the same dual point: its repair serves here too.
    problem = Polyhedral(
        design=design,
        lower=values,
        upper=values,
        low=np.maximum(-theta, 0.0),
        high=np.maximum(theta, 0.0),
        linear=np.zeros(design.n_columns),
        l1=price,
        l2=np.zeros(d),
        box_lower=np.full(d, -np.inf),
        box_upper=np.full(d, np.inf),
        intercept=fit_intercept,
        ball=None,
    )
    total = float(np.abs(theta).sum())
    done = proven(problem, z, theta, 0.0)
    bound = max(done.bound / max(total, 1.0), 0.0) * target
    residual = values - design.forward(z)
    if fit_intercept:
        z[d] += evened(residual)
    objective = (float(np.abs(residual).max()) + float(price @ np.abs(z[:d]))) * target
    coef = z[:d] / column * target
    b = float(z[d] * target + shift - centre @ coef) if fit_intercept else 0.0
    gap = max(objective - bound, 0.0)
    theta = done.theta / max(total, 1.0)
    return InteriorPointResult(coef, b, theta, objective, bound, gap, iterations, "optimal", message)
