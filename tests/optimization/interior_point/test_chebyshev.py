"""The least largest residual against an independent conic solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from certifit.optimization.interior_point.chebyshev import chebyshev


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4))
    return X, X @ np.array([1.0, -2.0, 0.5, 0.0]) + rng.standard_normal(60) + 1.0


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("options", [{}, {"l1": 0.1}, {"l2": 0.1}, {"l1": 0.05, "l2": 0.2}])
def test_agrees_with_a_conic_solver(data, options, fit_intercept):
    X, y = data
    w, b = cp.Variable(4), cp.Variable()
    residual = y - X @ w - (b if fit_intercept else 0.0)
    penalty = options.get("l1", 0.0) * cp.norm1(w) + 0.5 * options.get("l2", 0.0) * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(cp.norm_inf(residual) + penalty)).solve(solver=cp.CLARABEL)
    for max_iter in (1, 3, 6, 100):
        result = chebyshev(X, y, tol=1e-9, max_iter=max_iter, fit_intercept=fit_intercept, **options)
        assert result.bound <= best + 1e-7
        assert result.objective >= best - 1e-7
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert np.abs(result.theta).sum() <= 1 + 1e-12
    sparse = chebyshev(sp.csr_array(X), y, tol=1e-9, fit_intercept=fit_intercept, **options)
    assert sparse.objective == pytest.approx(result.objective, abs=3e-9)


@pytest.mark.parametrize("x_scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("y_scale", [1e-150, 1.0, 1e150])
def test_extreme_magnitudes(data, x_scale, y_scale):
    X, y = data
    with np.errstate(over="raise", invalid="raise"):
        moved = chebyshev(X * x_scale, y * y_scale, tol=1e-9 * y_scale)
    assert moved.status == "optimal"
    assert moved.objective / y_scale == pytest.approx(chebyshev(X, y, tol=1e-9).objective, abs=2e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.1])
@pytest.mark.parametrize("uneven", [1.0, 1e3])
def test_more_columns_than_matrices_may_be_large(l2, fit_intercept, uneven):
    rng = np.random.default_rng(5)
    few = rng.standard_normal((20, 30))
    y = rng.standard_normal(20) + 1.0
    few[:, 0] *= uneven
    w, b = cp.Variable(30), cp.Variable()
    residual = y - few @ w - (b if fit_intercept else 0.0)
    best = cp.Problem(cp.Minimize(cp.norm_inf(residual) + 0.5 * l2 * cp.sum_squares(w))).solve(solver=cp.CLARABEL)
    X = few @ np.linalg.qr(rng.standard_normal((2_100, 30)))[0].T  # the same scores at coefficients of the same length
    result = chebyshev(X, y, l2=l2, tol=1e-7, fit_intercept=fit_intercept)
    assert result.status == "optimal"
    assert result.bound - 1e-7 <= best <= result.objective + 1e-7
    assert result.objective - result.bound <= 1e-7
    reached = np.abs(y - X @ result.coef - result.intercept).max() + 0.5 * l2 * result.coef @ result.coef
    assert reached == pytest.approx(result.objective, abs=1e-9)
