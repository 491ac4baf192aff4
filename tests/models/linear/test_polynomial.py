"""Polynomial regression against least squares on the monomials themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.models.linear.constructed import rows
from threadpoolctl import threadpool_limits

from certifit import PolynomialRegression


def monomials(Z: np.ndarray, degree: int, interaction_only: bool) -> np.ndarray:
    draw = itertools.combinations if interaction_only else itertools.combinations_with_replacement
    powers = (c for k in range(1, degree + 1) for c in draw(range(Z.shape[1]), k))
    return np.column_stack([Z[:, list(c)].prod(axis=1) for c in powers])


@pytest.mark.parametrize("interaction_only", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_it_is_the_ridge_of_the_monomials_of_standardized_columns(interaction_only: bool, alpha: float) -> None:
    X, weight = rows()
    X, p = X[:, :3], weight / weight.sum()
    y = X[:, 0] * X[:, 1] - X[:, 2] ** 2 + np.random.default_rng(10).normal(size=len(X))
    mean = p @ X
    Z = (X - mean) / np.sqrt(p @ (X - mean) ** 2)
    M = monomials(Z, 3, interaction_only)
    Mc, yc = M - p @ M, y - p @ y
    wanted = np.linalg.solve(Mc.T @ (p[:, None] * Mc) + alpha * np.eye(M.shape[1]), Mc.T @ (p * yc))
    model = PolynomialRegression(3, interaction_only=interaction_only, alpha=alpha).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-9)
    np.testing.assert_allclose(model.predict(X), M @ wanted + p @ (y - M @ wanted), atol=1e-9)


def test_a_polynomial_is_found_again_everywhere() -> None:
    """Exactness of the expansion: values outside the rows too."""
    X = np.random.default_rng(11).uniform(-2, 3, size=(60, 2))

    def truth(X: np.ndarray) -> np.ndarray:
        return np.asarray(1 - 2 * X[:, 0] + X[:, 0] * X[:, 1] ** 2 - 0.5 * X[:, 1] ** 3)

    far = np.random.default_rng(12).uniform(-6, 6, size=(20, 2))
    model = PolynomialRegression(3).fit(X, truth(X))
    np.testing.assert_allclose(model.predict(far), truth(far), rtol=1e-9, atol=1e-8)


def test_threads_of_libraries_change_nothing() -> None:
    X = np.random.default_rng(0).uniform(size=(1000, 3))
    y = X[:, 0] ** 2 + np.random.default_rng(1).normal(size=1000)
    found = []
    for limit in (1, 2):
        with threadpool_limits(limit):
            found.append(PolynomialRegression(degree=8).fit(X, y).coef_)
    np.testing.assert_array_equal(*found)


def test_the_polynomial_is_written_out_in_the_inputs_themselves() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) * [3.0, 0.1] + [5.0, -2.0]
    y = 1.0 + 2.0 * X[:, 0] - X[:, 0] * X[:, 1] + 0.5 * X[:, 1] ** 2 + 0.1 * rng.normal(size=80)
    model = PolynomialRegression(degree=2).fit(X, y)
    raw = np.column_stack([np.ones(80), X[:, 0], X[:, 1], X[:, 0] ** 2, X[:, 0] * X[:, 1], X[:, 1] ** 2])
    beta, *_ = np.linalg.lstsq(raw, y, rcond=None)
    np.testing.assert_allclose(np.append(model.raw_intercept_, model.raw_coef_), beta, rtol=1e-7)
    table = model.summary()
    variance = np.sum((y - raw @ beta) ** 2) / 74
    np.testing.assert_allclose(table.coef, beta, rtol=1e-7)
    np.testing.assert_allclose(table.std_error, np.sqrt(variance * np.diag(np.linalg.inv(raw.T @ raw))), rtol=1e-6)
    assert list(table.names) == ["intercept", "x0", "x1", "x0^2", "x0 x1", "x1^2"]


def test_degree_of_least_leave_one_out_error():
    """Against refits without each row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(25, 1))
    y = 1.0 - 2.0 * X[:, 0] ** 3 + 0.1 * rng.normal(size=25)
    model = PolynomialRegression(degree=[1, 2, 3, 4, 5]).fit(X, y)
    errors = []
    for degree in range(1, 6):
        left = [
            y[i] - np.polyval(np.polyfit(np.delete(X[:, 0], i), np.delete(y, i), degree), X[i, 0]) for i in range(25)
        ]
        errors.append(np.mean(np.square(left)))
    np.testing.assert_allclose(model.cv_errors_, errors, rtol=1e-6)
    assert model.degree_ == 1 + int(np.argmin(errors)) == 3
    plain = PolynomialRegression(degree=3).fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("degree", [[], [0, 1], [1.5], "three"])
def test_degrees_that_are_none(degree):
    with pytest.raises((ValueError, TypeError), match="degree"):
        PolynomialRegression(degree=degree).fit(np.arange(5.0)[:, None], np.arange(5.0))
