"""Bagging of any estimator."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor

from certifit import BaggingClassifier, BaggingRegressor, DecisionTreeClassifier, DecisionTreeRegressor


def rows(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "b", "a"), np.sin(X[:, 0]) + 0.3 * rng.normal(size=200)


def test_weights_are_repetitions_and_order_is_nothing() -> None:
    X, labels, y = rows()
    rng = np.random.default_rng(1)
    w = rng.integers(0, 3, 200)
    r = rng.permutation(np.repeat(np.arange(200), w))
    a = BaggingRegressor(random_state=0).fit(X, y, w)
    b = BaggingRegressor(random_state=0).fit(X[r], y[r])
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-12)
    c = BaggingClassifier(random_state=0).fit(X, labels, w)
    d = BaggingClassifier(random_state=0).fit(X[r], labels[r])
    np.testing.assert_allclose(c.predict_proba(X), d.predict_proba(X), atol=1e-12)


def test_an_estimator_without_weights_gets_repetitions() -> None:
    X, _, y = rows()
    model = BaggingRegressor(KNeighborsRegressor(3), 20, oob_score=True, random_state=0).fit(X, y)
    assert model.oob_score_ > 0.2
    out = [k for k, counts in enumerate(model._counts) if counts[0] == 0]
    expected = np.mean([model.estimators_[k].predict(X[:1])[0] for k in out])
    assert model.oob_prediction_[0] == pytest.approx(expected)


def test_foreign_classifiers_and_a_class_that_a_sample_misses() -> None:
    X, y, _ = rows()
    y = y.astype("<U4")
    y[:2] = "rare"
    model = BaggingClassifier(LogisticRegression(), 15, oob_score=True, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (200, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.oob_score_ > 0.85
    low, high = model.oob_interval_
    assert low < 1 - model.oob_score_ < high


def test_threads_do_not_matter_and_means_help() -> None:
    X, _, y = rows()
    a = BaggingRegressor(n_estimators=12, max_features=0.5, random_state=0, n_jobs=1).fit(X, y)
    b = BaggingRegressor(n_estimators=12, max_features=0.5, random_state=0, n_jobs=2).fit(X, y)
    assert np.array_equal(a.predict(X), b.predict(X))
    assert all(len(columns) == 2 for columns in a.estimators_features_)
    Xn, _, yn = rows(1)
    assert BaggingRegressor(n_estimators=40, random_state=0).fit(X, y).score(Xn, yn) > DecisionTreeRegressor().fit(
        X, y
    ).score(Xn, yn)
    with pytest.raises(ValueError, match="bootstrap"):
        BaggingRegressor(bootstrap=False, oob_score=True).fit(X, y)


def test_majority_counts_one_vote_for_each_copy() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=80) > 0, "b", "a")
    model = BaggingClassifier(DecisionTreeClassifier(max_depth=2), 7, voting="majority", random_state=0).fit(X, y)
    votes = np.array([each.predict(X) for each in model.estimators_])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], votes.mean(axis=0))
    np.testing.assert_array_equal(model.predict(X), np.where(votes.mean(axis=0) > 0.5, "b", "a"))


@pytest.mark.parametrize("cls", [BaggingClassifier, BaggingRegressor])
def test_out_of_bag_importance_of_permuted_features(cls) -> None:
    """The feature that decides counts, the other does not; a feature of one value has no importance at all."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=(120, 2)), np.zeros(120)])
    y = (X[:, 0] > 0).astype(float)
    weight = (np.arange(120) % 5 > 0).astype(float)
    model = cls(n_estimators=12, random_state=0).fit(X, y, sample_weight=weight)
    found = model.oob_permutation_importance(X, y, sample_weight=weight)
    assert found["importances"].shape == (3, 12)
    assert found["importances_mean"][0] > 0.3
    assert abs(found["importances_mean"][1]) < 0.05
    assert (found["importances"][2] == 0.0).all()
    with pytest.raises(ValueError, match="training rows"):
        model.oob_permutation_importance(X[:50], y[:50])
    with pytest.raises(ValueError, match="bootstrap=True"):
        cls(n_estimators=2, bootstrap=False).fit(X, y).oob_permutation_importance(X, y)
