"""Least squares, ridge, lasso and elastic net against closed forms and independent solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls
from tests.models.linear.constructed import COEF, INTERCEPT, rows, slopes, subgradient

from certifit import ElasticNet, Lasso, LinearRegression, Ridge


def noisy(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, weight = rows(n)
    return X, X @ [1.0, -2.0, 0.0, 0.5] + 0.3 + np.random.default_rng(5).normal(size=n), weight


def centered(X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    p = weight / weight.sum()
    return X - p @ X, y - p @ y, p


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_least_squares_is_lstsq_of_weighted_rows(fit_intercept: bool) -> None:
    X, y, weight = noisy()
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    root = np.sqrt(weight)
    wanted = np.linalg.lstsq(root[:, None] * Z, root * y, rcond=None)[0]
    model = LinearRegression(fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, wanted[:4], rtol=1e-12)
    assert model.intercept_ == pytest.approx(wanted[4] if fit_intercept else 0.0, rel=1e-12)
    assert model.certificate_.kind == "closed form"


def test_positive_least_squares_is_nnls() -> None:
    X, y, weight = noisy()
    root = np.sqrt(weight)
    wanted, _ = nnls(root[:, None] * X, root * y)
    model = LinearRegression(positive=True, fit_intercept=False, tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-7)


@pytest.mark.parametrize("n", [60, 3])  # tall: normal equations in d unknowns; wide: in n
@pytest.mark.parametrize("sparse", [False, True])
def test_ridge_is_its_normal_equations(n: int, sparse: bool) -> None:
    """(X̃'PX̃ + alpha·I) w = X̃'Pỹ, with centered X̃ and ỹ."""
    X, y, weight = noisy(n)
    Xc, yc, p = centered(X, y, weight)
    wanted = np.linalg.solve(Xc.T @ (p[:, None] * Xc) + 0.3 * np.eye(4), Xc.T @ (p * yc))
    model = Ridge(alpha=0.3).fit(sp.csr_array(X) if sparse else X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, wanted, rtol=1e-10)
    assert model.intercept_ == pytest.approx(p @ (y - X @ wanted), rel=1e-10)


def test_a_ridge_without_strength_is_the_least_norm_fit_of_wide_rows() -> None:
    X, y, weight = noisy(3)
    Xc, yc, p = centered(X, y, weight)
    root = np.sqrt(p)
    wanted = np.linalg.pinv(root[:, None] * Xc) @ (root * yc)
    np.testing.assert_allclose(LinearRegression().fit(X, y, sample_weight=weight).coef_, wanted, rtol=1e-8)


def orthonormal(n: int = 32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns with mean zero and X'X/n = I, a target, and its coefficients z = X'y/n."""
    rng = np.random.default_rng(6)
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, 4))]))
    X = Q[:, 1:] * np.sqrt(n)
    y = X @ [1.5, -0.4, 0.1, 0.0] + 0.3 * rng.normal(size=n) + 2.0
    return X, y, X.T @ y / n


@pytest.mark.parametrize("alpha", [0.05, 0.3, 2.0])
def test_orthonormal_columns_have_closed_forms(alpha: float) -> None:
    """Lasso: soft thresholding S(z, α); elastic net: S(z, αρ)/(1 + α(1 − ρ)); ridge: z/(1 + α)."""
    X, y, z = orthonormal()
    soft = lambda t: np.sign(z) * np.maximum(np.abs(z) - t, 0.0)  # noqa: E731
    found: list[tuple[Any, np.ndarray]] = [
        (Lasso(alpha=alpha, tol=1e-12), soft(alpha)),
        (ElasticNet(alpha=alpha, l1_ratio=0.3, tol=1e-12), soft(0.3 * alpha) / (1 + 0.7 * alpha)),
        (Ridge(alpha=alpha), z / (1 + alpha)),
        (Lasso(alpha=alpha, positive=True, tol=1e-12), np.maximum(z - alpha, 0.0)),
    ]
    for model, wanted in found:
        np.testing.assert_allclose(model.fit(X, y).coef_, wanted, atol=1e-9)
        assert model.intercept_ == pytest.approx(y.mean())


@pytest.mark.parametrize("l1_ratio", [0.2, 1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_constructed_optimum_is_found(l1_ratio: float, sparse: bool) -> None:
    X, weight = rows()
    alpha = 0.1
    slope = slopes(X, weight, -alpha * subgradient("elasticnet", COEF, l1_ratio))
    y = X @ COEF + INTERCEPT - slope
    model = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-13).fit(
        sp.csc_array(X) if sparse else X, y, sample_weight=weight
    )
    np.testing.assert_allclose(model.coef_, COEF, atol=1e-6)
    assert model.coef_[2] == 0.0
    assert model.intercept_ == pytest.approx(INTERCEPT, abs=1e-6)
