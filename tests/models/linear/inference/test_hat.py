"""Hat matrix, leverage, bias and variance of ridge against their formulas and a simulation."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import LinearModel, LinearRegression, PolynomialRegression, Ridge
from certifit.penalties import L1Ball, L2Ball


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    return X, X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=30), rng.integers(1, 4, 30).astype(float)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.3, [0.1, 0.0, 2.0]])
def test_hat_matrix_maps_targets_to_fits(rows, fit_intercept: bool, alpha) -> None:
    X, y, weight = rows
    model = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    hat = model.hat_matrix(X, weight)
    np.testing.assert_allclose(hat @ y, model.predict(X), rtol=1e-8)
    np.testing.assert_allclose(model.leverage(X, weight), np.diag(hat) / weight, rtol=1e-8)


def test_bias_and_variance_by_the_formulas_of_the_notes() -> None:
    """Var(zᵀ(XᵀX + λI')⁻¹Xᵀe) and zᵀ((XᵀX + λI')⁻¹XᵀX − I)v, with the column of ones that is not penalized."""
    rng = np.random.default_rng(1)
    X, Z, v, noise, alpha = rng.normal(size=(25, 3)), rng.normal(size=(4, 3)), np.array([2.0, 1.0, -1.0, 0.5]), 0.7, 0.2
    A, B = (np.column_stack([M, np.ones(len(M))]) for M in (X, Z))
    inner = np.linalg.inv(A.T @ A + 25 * alpha * np.diag([1.0, 1.0, 1.0, 0.0]))
    model = Ridge(alpha=alpha).fit(X, A @ v)
    found = model.bias_variance(lambda M: np.column_stack([M, np.ones(len(M))]) @ v, noise, X, Z)
    np.testing.assert_allclose(found.bias, B @ (inner @ A.T @ A - np.eye(4)) @ v, rtol=1e-9)
    np.testing.assert_allclose(found.variance, noise**2 * np.einsum("ij,jk,ik->i", B, inner @ A.T @ A @ inner, B))


def test_bias_and_variance_by_simulation() -> None:
    rng = np.random.default_rng(2)
    X, Z = rng.normal(size=(20, 2)), rng.normal(size=(3, 2))
    weight = rng.integers(1, 3, 20).astype(float)
    truth = lambda M: np.sin(M[:, 0]) + M[:, 1]  # noqa: E731 - short
    copies = np.repeat(np.arange(20), weight.astype(int))
    draws = truth(X[copies])[:, None] + 0.5 * rng.normal(size=(len(copies), 1500))
    fits = LinearRegression().fit(X[copies], draws).predict(Z).T
    model = LinearRegression().fit(X, truth(X), sample_weight=weight)
    bias, variance = model.bias_variance(truth, 0.5, X, Z, sample_weight=weight)
    np.testing.assert_allclose(fits.mean(axis=0) - truth(Z), bias, atol=4 * np.sqrt(variance.max() / 1500))
    np.testing.assert_allclose(fits.var(axis=0), variance, rtol=0.2)


def test_variance_of_least_squares_is_rank_over_n() -> None:
    """The mean over the training rows: σ²·d/n of the notes, the column of ones counted."""
    X = np.random.default_rng(3).normal(size=(40, 5))
    model = LinearRegression().fit(X, X[:, 0])
    bias, variance = model.bias_variance(lambda M: M @ np.arange(5.0) + 1.0, 2.0, X)
    np.testing.assert_allclose(bias, 0.0, atol=1e-10)
    np.testing.assert_allclose(variance.mean(), 4.0 * 6 / 40)


def test_polynomial_hat_matrix_has_the_penalty() -> None:
    X = np.linspace(-1, 1, 12)[:, None]
    y = np.cos(3 * X[:, 0])
    model = PolynomialRegression(degree=3, alpha=0.1).fit(X, y)
    np.testing.assert_allclose(model.hat_matrix(X) @ y, model.predict(X), rtol=1e-9)


def test_refusals(rows) -> None:
    X, y, _ = rows
    with pytest.raises(ValueError, match="not linear in y"):
        Ridge(positive=True).fit(X, y).hat_matrix(X)
    with pytest.raises(ValueError, match="one number for each row"):
        Ridge().fit(X, y).bias_variance(lambda M: M, 1.0, X)


@pytest.mark.parametrize(("ball", "penalty"), [(L2Ball, "l2"), (L1Ball, "l1")])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_tikhonov_alpha_of_an_ivanov_radius(rows, ball, penalty: str, loss: str) -> None:
    X, y, weight = rows
    y = (y > 0).astype(float) if loss == "logistic" else y
    ivanov = LinearModel(loss, penalty=None, constraint=ball(1.2), tol=1e-10).fit(X, y, sample_weight=weight)
    assert ivanov.alpha_ > 0
    tikhonov = LinearModel(loss, penalty, alpha=ivanov.alpha_, tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(tikhonov.coef_, ivanov.coef_, atol=2e-4)
    assert LinearModel(loss, penalty=None, constraint=ball(1e9), tol=1e-8).fit(X, y * 0.5).alpha_ == 0.0
