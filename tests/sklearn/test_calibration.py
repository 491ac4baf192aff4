"""Calibration: the same folds and the same optima, here and there."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn.calibration
import sklearn.naive_bayes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, LeaveOneOut

from certifit.sklearn.calibration import CalibratedClassifierCV
from certifit.sklearn.svm import LinearSVC

RNG = np.random.default_rng(0)
X, WEIGHT = RNG.normal(size=(150, 3)), RNG.uniform(0.3, 2.0, 150)
SCORE = X @ [1.0, -2.0, 0.5] + RNG.normal(size=150)
TARGETS = {"two": np.where(SCORE > 0.3, "yes", "no"), "three": np.digitize(SCORE, [-1.0, 1.0])}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("target", TARGETS)
def test_probabilities(target: str, method: str, ensemble: bool, weight: Any) -> None:
    y, inner = TARGETS[target], sklearn.naive_bayes.GaussianNB()
    theirs, ours = (
        cls(inner, method=method, cv=4, ensemble=ensemble).fit(X, y, sample_weight=weight)
        for cls in (sklearn.calibration.CalibratedClassifierCV, CalibratedClassifierCV)
    )
    assert len(ours.calibrated_classifiers_) == (4 if ensemble else 1)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-5)
    assert_array_equal(ours.classes_, theirs.classes_)
    assert_array_equal(pickle.loads(pickle.dumps(ours)).predict(X), ours.predict(X))


def test_the_default_is_our_own_and_its_certificate_rides_along() -> None:
    model = CalibratedClassifierCV(cv=3).fit(X, TARGETS["two"])
    assert all(isinstance(pair.estimator, LinearSVC) for pair in model.calibrated_classifiers_)
    assert model.certificate_.certified
    assert model.n_features_in_ == 3
    plain = CalibratedClassifierCV(sklearn.naive_bayes.GaussianNB()).fit(X, TARGETS["two"])
    assert not plain.certificate_.certified


def test_a_frozen_classifier_is_not_fitted_again() -> None:
    inner = LinearSVC().fit(X[:70], TARGETS["three"][:70])
    before = inner.coef_.copy()
    model = CalibratedClassifierCV(FrozenEstimator(inner), cv=2).fit(X[70:], TARGETS["three"][70:])
    assert len(model.calibrated_classifiers_) == 1
    assert_array_equal(inner.coef_, before)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
def test_folds_that_lack_a_class(method: str, ensemble: bool) -> None:
    y = np.repeat([0, 1, 2], 50)
    model = CalibratedClassifierCV(LinearSVC(), method=method, cv=KFold(3), ensemble=ensemble).fit(X, y)
    found = model.predict_proba(X)
    assert np.isfinite(found).all()
    assert_allclose(found.sum(axis=1), 1.0)
    if ensemble:
        assert not model.calibrated_classifiers_[0].predict_proba(X)[:, 0].any()


def test_refusals() -> None:
    with pytest.raises(ValueError, match="LeaveOneOut"):
        CalibratedClassifierCV(cv=LeaveOneOut()).fit(X, TARGETS["two"])
    with pytest.raises(ValueError, match="Requesting 5-fold"):
        CalibratedClassifierCV(cv=5).fit(X[:6], [0, 0, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="sample_weight"):
        CalibratedClassifierCV(cv=3).fit(X, TARGETS["two"], sample_weight=np.full(150, np.nan))
    with pytest.raises(ValueError, match="'method' parameter"):
        CalibratedClassifierCV(method="platt").fit(X, TARGETS["two"])
