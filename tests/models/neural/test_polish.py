"""The proof for the output layer: what it claims is true, by an independent fit on the same features."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from tests.oracles import convex

from certifit import LinearModel, LogisticRegression, MLPClassifier, MLPRegressor, NeuralNetwork
from certifit.losses import Huber, Loss, Squared

X, LABELS = load_digits(return_X_y=True)
X, LABELS = X[:400], LABELS[:400]
RNG = np.random.default_rng(0)
QUICK: dict[str, Any] = {"hidden": (20,), "max_iter": 10, "random_state": 0, "polish": True}


@pytest.mark.parametrize("loss", ["squared", "absolute", Huber(0.5)])
def test_a_regressor_has_the_best_output_layer(loss: str | Loss) -> None:
    y = X[:, 20] + 0.1 * LABELS
    model = MLPRegressor(loss=loss, alpha=0.01, tol=1e-8, **QUICK).fit(X, y)
    assert model.certificate_
    assert str(model.certificate_).startswith("Certified, best output layer on these features: ")
    features = model.features(X).astype(float)
    unit = y.std()  # that of the network
    inner = loss.rescaled(unit)[0] if isinstance(loss, Loss) else loss
    wanted = LinearModel(loss=inner, alpha=0.01, tol=1e-10).fit(features, y / unit)
    assert model.certificate_.objective / (1.0 if loss == "absolute" else unit) / unit == pytest.approx(
        wanted.certificate_.objective, rel=1e-6
    )
    np.testing.assert_allclose(model.predict(X) / unit, wanted.predict(features), atol=2e-3)


def test_a_classifier_has_the_best_output_layer() -> None:
    for labels in (LABELS, LABELS % 2):
        model = MLPClassifier(alpha=0.01, tol=1e-7, **QUICK).fit(X, labels)
        assert model.certificate_
        wanted = LogisticRegression(alpha=0.01, tol=1e-10).fit(model.features(X).astype(float), labels)
        assert model.certificate_.objective == pytest.approx(wanted.certificate_.objective, rel=1e-5)
        np.testing.assert_allclose(
            model.predict_proba(X), wanted.predict_proba(model.features(X).astype(float)), atol=2e-3
        )


def test_polish_lowers_the_objective() -> None:
    y = X[:, 20].astype(float)
    one, other = (MLPRegressor(**{**QUICK, "polish": polish}).fit(X, y) for polish in (False, True))
    loss = Squared()
    assert loss.value(y, other.predict(X)).mean() < loss.value(y, one.predict(X)).mean()
    several = MLPRegressor(**QUICK).fit(X, np.column_stack([y, -y]))
    assert several.certificate_.claim == "best output layer on these features"
    np.testing.assert_allclose(several.predict(X)[:, 0], -several.predict(X)[:, 1], atol=1e-6)


def test_rows_set_aside_stay_aside() -> None:
    y = X[:, 20].astype(float)
    model = MLPRegressor(**QUICK, early_stopping=True).fit(X, y)
    assert model.certificate_


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("name", ["squared", "absolute", "huber", "quantile", "poisson", "logistic", "softmax"])
def test_the_optimum_of_another_solver_lies_between_bound_and_objective(name: str, double: bool) -> None:
    rows, weight = X[:60, 18:26] / 16.0, RNG.uniform(0.5, 2.0, size=60)
    y = (
        LABELS[:60].astype(float)
        if name in ("poisson", "squared", "absolute", "huber", "quantile")
        else LABELS[:60] % 3
    )
    y = (y > 0).astype(float) if name == "logistic" else y
    given: dict[str, Any] = {"hidden": (5,), "alpha": 0.05, "tol": 1e-7, "polish": True, "standardize_target": False}
    steps = {"optimizer": "lbfgs", "max_iter": 8} if double else {"max_iter": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # eight iterations do not settle
        model = NeuralNetwork(loss=name, **given, **steps, random_state=0).fit(rows, y, weight)
    found, features = model.certificate_, model.features(rows).astype(float)
    if name == "softmax":
        W, b = cp.Variable((5, 3)), cp.Variable((1, 3))
        scores = features @ W + np.ones((60, 1)) @ b
        own = cp.sum(cp.multiply(np.eye(3)[y], scores), axis=1)
        terms = cp.sum(cp.multiply(weight / weight.sum(), cp.log_sum_exp(scores, axis=1) - own))
        wanted = convex.solve(cp.Problem(cp.Minimize(terms + 0.5 * 0.05 * cp.sum_squares(W))))
    else:
        wanted = convex.optimum(features, y, weight, name, "l2", 0.05)[0]
    assert found.certified
    assert found.bound <= wanted + 1e-9
    assert wanted <= found.objective + 1e-9
    assert found.objective == pytest.approx(wanted, rel=1e-5)
