"""Poisson and Gamma regression against solutions that are known by construction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.grids import grid
from tests.models.linear.constructed import COEF, INTERCEPT, rows, slopes, subgradient

from certifit import GammaRegressor, PoissonRegressor

PENALTIES = ["none", "l2", "l1", "elasticnet"]


def targets(family: type[Any], mean: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """The y whose slope at the score ln(mean) is given: μ − y for Poisson, 1 − y/μ for Gamma."""
    y = mean - slope if family is PoissonRegressor else mean * (1 - slope)
    assert (y > 0).all()
    return y


@grid(family=[PoissonRegressor, GammaRegressor], penalty=PENALTIES, solver=["auto", "newton", "prox_newton"])
def test_a_constructed_optimum_is_found(family: type[Any], penalty: str, solver: str) -> None:
    if solver == "newton" and penalty in ("l1", "elasticnet"):
        return  # it needs a smooth penalty, and says so
    X, weight = rows()
    alpha = 0.0 if penalty == "none" else 0.02
    mean = np.exp(X @ COEF + INTERCEPT)
    slope = slopes(X, weight, -alpha * subgradient(penalty, COEF))
    y = targets(family, mean, slope)
    model = family(alpha=alpha, penalty=penalty, solver=solver, tol=1e-13).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, COEF, atol=2e-6)
    assert model.intercept_ == pytest.approx(INTERCEPT, abs=2e-6)
    if penalty in ("l1", "elasticnet"):
        assert model.coef_[2] == 0.0
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-5)


@pytest.mark.parametrize("family", [PoissonRegressor, GammaRegressor])
def test_indicators_of_groups_give_the_means_of_groups(family: type[Any]) -> None:
    rng = np.random.default_rng(2)
    group = rng.integers(0, 3, size=60)
    y, weight = rng.gamma(2.0, 1.0 + group), rng.integers(0, 3, size=60).astype(float)
    model = family(alpha=0.0, tol=1e-12).fit(np.eye(3)[group], y, sample_weight=weight)
    for k in range(3):
        own = group == k
        assert model.predict(np.eye(3)[[k]])[0] == pytest.approx(np.average(y[own], weights=weight[own]), rel=1e-6)


def test_poisson_takes_zeros_and_gamma_does_not() -> None:
    X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 0.0, 2.0, 3.0, 5.0])
    model = PoissonRegressor(alpha=0.0, tol=1e-12).fit(X, y)
    assert model.predict(X).sum() == pytest.approx(y.sum())  # the score equation of the intercept
    assert X[:, 0] @ model.predict(X) == pytest.approx(X[:, 0] @ y)
    with pytest.raises(ValueError, match="y"):
        GammaRegressor().fit(X, y)


def test_gamma_does_not_know_the_unit_of_y() -> None:
    X, _ = rows()
    y = np.random.default_rng(3).gamma(2.0, np.exp(X @ COEF))
    one, other = (GammaRegressor(alpha=0.03, tol=1e-12).fit(X, unit * y) for unit in (1.0, 1e6))
    np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-6)
    assert other.intercept_ - one.intercept_ == pytest.approx(np.log(1e6), abs=1e-6)
