"""Subgradient descent, programs by name, and the theorem on fixed steps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import linprog

from certifit import GLM, GradientDescent, LADRegressor, Lasso, LinearModel, LogisticRegression, SubgradientDescent
from certifit.losses import Quantile
from certifit.penalties import L2Ball


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X @ [1.0, -2.0, 0.0] + 0.5 + rng.laplace(size=60)


@pytest.mark.parametrize(
    ("loss", "penalty", "alpha"), [("hinge", "l2", 0.1), ("absolute", None, 0.0), ("squared", "l1", 0.2)]
)
@pytest.mark.parametrize("step", ["1/sqrt(t)", "1/t"])
def test_subgradients_come_within_their_bound(data, loss: str, penalty: str | None, alpha: float, step: str) -> None:
    X, y = data
    y = (y > 0).astype(float) if loss == "hinge" else y
    best = LinearModel(loss, penalty, alpha=alpha, tol=1e-10).fit(X, y)
    solver = SubgradientDescent(step, size=2.0 if step == "1/t" else 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearModel(loss, penalty, alpha=alpha, solver=solver, max_iter=2000, tol=1e-3).fit(X, y)
    optimum, reached = best.certificate_.objective, model.certificate_.objective
    told = float(model.certificate_.note.split("= ")[1].split(" ")[0])
    assert optimum - 1e-9 <= reached <= optimum + 1.05 * told + 1e-9
    assert reached <= 1.02 * optimum + 0.01
    assert model.certificate_.bound <= optimum + 1e-9


def test_projected_subgradients_stay_in_the_ball(data) -> None:
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearModel(
            "absolute", None, constraint=L2Ball(1.0), solver=SubgradientDescent(), max_iter=2000, tol=1e-3
        ).fit(X, y)
    exact = LinearModel("absolute", None, constraint=L2Ball(1.0), tol=1e-9).fit(X, y)
    assert np.linalg.norm(model.coef_) <= 1.0 + 1e-9
    assert model.certificate_.objective <= exact.certificate_.objective * 1.02


@pytest.mark.parametrize("quantile", [0.5, 0.2])
def test_highs_solves_the_linear_program_of_the_quantile(data, quantile: float) -> None:
    """Against the program written out here: min Σ q·r⁺ + (1 − q)·r⁻ with r⁺ − r⁻ = y − Xw − b."""
    X, y = data
    model = LinearModel(Quantile(quantile), None, solver="highs").fit(X, y)
    n = len(y)
    A = np.hstack([X, np.ones((n, 1)), np.eye(n), -np.eye(n)])
    cost = np.concatenate([np.zeros(4), np.full(n, quantile / n), np.full(n, (1 - quantile) / n)])
    found = linprog(cost, A_eq=A, b_eq=y, bounds=[(None, None)] * 4 + [(0, None)] * (2 * n))
    np.testing.assert_allclose(model.certificate_.objective, found.fun, rtol=1e-9)
    assert model.certificate_
    assert model.solver_ == "highs"


def test_highs_with_an_l1_penalty_and_weights(data) -> None:
    X, y = data
    weight = np.arange(60) % 3
    model = LADRegressor(alpha=0.1, penalty="l1", solver="highs").fit(X, y, sample_weight=weight)
    other = LADRegressor(alpha=0.1, penalty="l1", solver="interior_point", tol=1e-9).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.certificate_.objective, other.certificate_.objective, rtol=1e-8)
    with pytest.raises(ValueError, match="no linear program"):
        LADRegressor(alpha=0.1, penalty="l2", solver="highs").fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_split_lasso_is_the_lasso(data, fit_intercept: bool) -> None:
    X, y = data
    split = Lasso(alpha=0.3, solver="split", fit_intercept=fit_intercept, tol=1e-9).fit(X, y)
    plain = Lasso(alpha=0.3, fit_intercept=fit_intercept, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(split.coef_, plain.coef_, atol=1e-5)
    assert split.certificate_


def test_fixed_steps_keep_the_theorem() -> None:
    """Each gap after k steps is below ‖w_0 − w*‖²/(2ηk), for one score and for K."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    y = np.argmax(X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(50, 3)), axis=1)
    best = LogisticRegression(alpha=0.1, tol=1e-12).fit(X, y)
    step = 0.99 / (0.5 * ((X**2).sum(axis=1).mean() + 1.0) + 0.1)
    for k in (5, 50):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(
                alpha=0.1, solver=GradientDescent("fixed", size=step), tol=1e-14, max_iter=k
            ).fit(X, y)
        start = np.log(np.bincount(y) / 50)
        away = np.sum(best.coef_**2) + np.sum((best.intercept_ - (start - start.mean())) ** 2)
        assert model.certificate_.objective - best.certificate_.objective <= away / (2 * step * k)
        assert "2ηk" in model.certificate_.note


@pytest.mark.parametrize(("loss", "penalty"), [("hinge", "l2"), ("absolute", "l2"), ("absolute", "l1")])
def test_the_bound_of_kinked_losses_closes(data, loss: str, penalty: str) -> None:
    """A bound from a single slope stays far away at the kinks; the mean of the slopes comes near."""
    X, y = data
    y = (y > np.median(y)).astype(float) if loss == "hinge" else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearModel(loss, penalty, 0.1, solver=SubgradientDescent(), max_iter=4000, tol=1e-4).fit(X, y)
    best = LinearModel(loss, penalty, 0.1, tol=1e-9).fit(X, y).certificate_.objective
    assert model.certificate_.bound <= best + 1e-9
    assert model.certificate_.relative_gap < 0.03


def test_refusals() -> None:
    with pytest.raises(ValueError, match="step"):
        SubgradientDescent("fixed")
    with pytest.raises(ValueError, match="size"):
        SubgradientDescent(size=-1.0)


def test_a_plain_far_away_is_no_better_than_where_it_began() -> None:
    """Equal rows begin at their optimum but for rounding; of the slope of rounding the first step is enormous."""
    X = np.random.default_rng(2072760609).normal(size=(12, 3))[np.zeros(12, dtype=int)]
    y = np.exp(np.random.default_rng(0).normal(size=12))
    for scale in (1.0, 0.7, 1.3, 2.1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = GLM(family="inverse_gaussian", alpha=0.0, solver="subgradient").fit(X, scale * y)
        np.testing.assert_allclose(model.predict(X), scale * y.mean(), rtol=1e-6)
