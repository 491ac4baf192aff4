"""Coordinate descent by name against the definition and against the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import CoordinateDescent, LinearModel
from certifit.penalties import Box, NonNegative, soft_threshold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) + np.array([0.0, 1.0, 0.0, -2.0])
Y = X @ [1.0, -0.5, 0.0, 0.0] + 0.3 * RNG.normal(size=60)


def shooting(order: list[int], alpha: float) -> np.ndarray:
    """The lasso without intercept, one soft threshold after the other."""
    w = np.zeros(4)
    for j in order:
        rest = Y - X @ w + X[:, j] * w[j]
        w[j] = soft_threshold(np.array([X[:, j] @ rest / 60]), alpha)[0] / (X[:, j] @ X[:, j] / 60)
    return w


@pytest.mark.parametrize("order", ["random", "cyclic"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_steps_are_soft_thresholds(order: str) -> None:
    solver = CoordinateDescent(order, seed=5)
    model = LinearModel("squared", "l1", 0.1, fit_intercept=False, solver=solver, max_iter=2, tol=1e-15).fit(X, Y)
    draw = np.random.default_rng(5)
    columns = [*range(4), *range(4)] if order == "cyclic" else [int(j) for _ in "ab" for j in draw.choice(4, size=4)]
    np.testing.assert_allclose(model.coef_, shooting(columns, 0.1), rtol=1e-10)


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
@pytest.mark.parametrize("penalty", ["l1", "elasticnet", "lq"])
@pytest.mark.parametrize("constraint", [None, NonNegative(), Box(-0.2, 0.3)])
def test_it_reaches_the_optimum(loss: str, penalty: str, constraint: Any) -> None:
    y = (Y > 0).astype(float) if loss == "logistic" else Y
    options: dict[str, Any] = {"alpha": 0.05, "constraint": constraint, "tol": 1e-8}
    model = LinearModel(loss, penalty, solver=CoordinateDescent("random", 1), max_iter=5000, **options).fit(X, y)
    best = LinearModel(loss, penalty, **options).fit(X, y)
    assert model.solver_ == "random_coordinate"
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx(best.certificate_.objective, rel=1e-6)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=1e-3)


def test_seeds_and_kinds_of_matrices() -> None:
    runs = [
        LinearModel("squared", "l1", 0.1, solver=CoordinateDescent(seed=seed), tol=1e-3).fit(kind, Y)
        for seed, kind in ((0, X), (0, X), (0, sp.csr_array(X)), (1, X))
    ]
    np.testing.assert_array_equal(runs[0].coef_, runs[1].coef_)
    np.testing.assert_allclose(runs[0].coef_, runs[2].coef_, rtol=1e-9)
    assert (runs[0].coef_ != runs[3].coef_).any()


def test_columns_without_variation_stay_at_zero() -> None:
    constant = np.column_stack([X, np.full(60, 3.0), np.zeros(60)])
    model = LinearModel("squared", "l1", 0.1, solver=CoordinateDescent(), tol=1e-8).fit(constant, Y)
    assert model.certificate_.certified
    assert not model.coef_[4:].any()


def test_what_it_cannot() -> None:
    with pytest.raises(ValueError, match="Lipschitz"):
        LinearModel("poisson", "l1", solver=CoordinateDescent()).fit(X, np.abs(Y))
    with pytest.raises(ValueError, match="order"):
        CoordinateDescent("backwards")
