"""The proof for the output layer: what it claims is true, by an independent fit on the same features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from certifit import LinearModel, LogisticRegression, MLPClassifier, MLPRegressor
from certifit.losses import Huber, Loss, Squared

X, LABELS = load_digits(return_X_y=True)
X, LABELS = X[:400], LABELS[:400]
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
