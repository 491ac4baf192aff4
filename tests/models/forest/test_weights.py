"""Where rows are drawn, weights are chances: what a fit costs and gives does not hang on their unit."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

import certifit
from certifit.data.equal_rows import repetitions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
Y = X[:, 0] + RNG.normal(size=50)
LABELS = (Y > 0).astype(int)
MODELS = [
    certifit.RandomForestClassifier(20, random_state=0, oob_score=True),
    certifit.RandomForestRegressor(20, random_state=0, oob_score=True),
    certifit.BaggingClassifier(random_state=0, oob_score=True),
    certifit.BaggingRegressor(random_state=0, oob_score=True),
]
EVERY = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def test_whole_weights_count_rows_up_to_a_hundred_each():
    assert repetitions(np.array([1.0, 0.0, 5.0])) == 6
    assert repetitions(np.array([100.0, 100.0])) == 200
    assert repetitions(np.array([100.0, 101.0])) == 2
    assert repetitions(np.array([0.5, 0.25])) == 2
    assert repetitions(np.array([1e300, 1e308])) == 2


@EVERY
@pytest.mark.parametrize("unit", [2.0**-1010, 2.0**30, 2.0**34, 2.0**990])
def test_the_unit_of_the_weights_changes_neither_cost_nor_fit(model, unit):
    y = LABELS if is_classifier(model) else Y
    weight = RNG.integers(1, 4, size=50) + 0.5  # not whole: relative, whatever their size
    wanted = clone(model).fit(X, y, sample_weight=weight)
    started = time.process_time()
    found = clone(model).fit(X, y, sample_weight=unit * weight)
    assert time.process_time() - started < 5  # drawing 2^30 · 100 rows took minutes
    np.testing.assert_allclose(found.predict(X), wanted.predict(X), rtol=1e-9)
    assert found.oob_score_ == pytest.approx(wanted.oob_score_)


@EVERY
def test_a_weight_of_two_is_the_row_twice(model):
    y = LABELS if is_classifier(model) else Y
    twice = np.arange(50) % 3 == 0
    weighted = clone(model).fit(X, y, sample_weight=1.0 + twice)
    repeated = clone(model).fit(np.vstack([X, X[twice]]), np.concatenate([y, y[twice]]))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-9)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
@pytest.mark.parametrize("lightest", [1e-18, 1e-300])
def test_a_class_of_almost_no_weight(criterion, lightest):
    labels, weight = LABELS.copy(), np.ones(50)
    labels[0], weight[0] = 2, lightest  # balanced, this row weighs as much as all others, but is never drawn
    forest = certifit.RandomForestClassifier(20, class_weight="balanced", criterion=criterion, random_state=0)
    probability = forest.fit(X, labels, sample_weight=weight).predict_proba(X)
    assert np.isfinite(probability).all()
    assert (probability[:, 2] == 0).all()
    plain = certifit.RandomForestClassifier(20, class_weight="balanced", criterion=criterion, random_state=0)
    plain.fit(X[1:], labels[1:])
    assert np.mean(forest.predict(X[1:]) == plain.predict(X[1:])) > 0.9


@EVERY
def test_one_row_leaves_no_one_out_of_bag(model):
    y = LABELS if is_classifier(model) else Y
    assert np.isnan(clone(model).fit(X[:1], y[:1]).oob_score_)
