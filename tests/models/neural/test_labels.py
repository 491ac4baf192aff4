"""Rows with several labels: a logistic loss for each column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from certifit import LogisticRegression, MLPClassifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 2] > 0.3, X[:, 3] < 0]).astype(int)
QUICK: dict[str, Any] = {"hidden": (24,), "learning_rate": 0.02, "max_iter": 60, "random_state": 0}


def test_every_label_is_learned() -> None:
    model = MLPClassifier(**QUICK).fit(X, Y)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.score(X, Y) > 0.9  # all labels of a row right
    chances = model.predict_proba(X)
    assert chances.shape == model.decision_function(X).shape == (300, 3)
    np.testing.assert_array_equal(chances > 0.5, model.predict(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), chances)
    for given in (csr_array(Y), pd.DataFrame(Y)):
        np.testing.assert_array_equal(MLPClassifier(**QUICK).fit(X, given).predict_proba(X), chances)
    assert model.check_gradients(X[:40], Y[:40]).passed


def test_without_hidden_layers_the_labels_are_learned_apart() -> None:
    given: dict[str, Any] = {"hidden": (), "optimizer": "lbfgs", "tol": 1e-10, "max_iter": 500, "standardize": False}
    model = MLPClassifier(alpha=0.1, **given).fit(X, Y)
    for k in range(3):
        wanted = LogisticRegression(alpha=0.1).fit(X, Y[:, k]).predict_proba(X)[:, 1]
        np.testing.assert_allclose(model.predict_proba(X)[:, k], wanted, atol=1e-4)


def test_passes_go_on_and_stops_come_early() -> None:
    model = MLPClassifier(hidden=(16,), learning_rate=0.02, random_state=0)
    for _ in range(40):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    assert model.score(X, Y) > 0.8
    early = MLPClassifier(**QUICK, early_stopping=True, scoring="accuracy").fit(X, Y)
    assert 0.3 < max(early.history_["validation_score"]) <= 1.0


def test_bad_labels_are_named() -> None:
    with pytest.raises(ValueError, match="must hold 0 and 1; got 2"):
        MLPClassifier().fit(X, 2 * Y)
    with pytest.raises(ValueError, match="class_weight is for rows of one class"):
        MLPClassifier(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="y has 3 columns, and classes names 2"):
        MLPClassifier().partial_fit(X, Y, classes=[0, 1])
    warm = MLPClassifier(**{**QUICK, "max_iter": 1}, warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="same classes as before"):
        warm.fit(X, Y.sum(axis=1).clip(0, 2))
    with pytest.raises(ValueError, match="same number of rows"):
        warm.check_gradients(X, Y[:5])
