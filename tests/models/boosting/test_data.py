"""Boosted trees: what a fit holds in memory, sparse tables, and fits that go on where another one ended."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import softmax
from sklearn.base import clone
from tests.models.boosting.test_model import FAST, data
from tests.peak import bytes_a_row, needs_proc

from certifit import BoostedTrees, GradientBoostingClassifier, GradientBoostingRegressor
from certifit.models.boosting.trees import SPARSE_ENTRIES
from certifit.representation.table import binning


@needs_proc
def test_a_fit_holds_the_table_as_bytes_and_little_more():
    # 12 bytes of bins and 14 of gradients, scores, targets and row numbers; histograms (1.5 MB) and the pieces of the
    # loss are some 10 more here. The table itself would be 48.
    peak = bytes_a_row("GradientBoostingClassifier(n_estimators=3, early_stopping=False, n_jobs=2)")
    assert peak < 12 + 14 + 16


def test_single_precision_scores_say_the_same(monkeypatch):
    X, y = data(6000)
    for labels in ((y > 0).astype(int), np.digitize(y, [-0.5, 0.5])):
        exact = GradientBoostingClassifier(**FAST).fit(X, labels)
        monkeypatch.setattr("certifit.models.boosting.fit.MANY_ROWS", 1000)
        single = GradientBoostingClassifier(**FAST).fit(X, labels)
        monkeypatch.undo()
        np.testing.assert_allclose(single.predict_proba(X), exact.predict_proba(X), atol=1e-4)
        assert single.certificate_.objective == pytest.approx(exact.certificate_.objective, rel=1e-5)


def test_rows_set_aside_by_their_code_alone(monkeypatch):
    from certifit.models.boosting import fit as boosting_fit

    X, y = data(3000)
    X = np.vstack([X, X[:500]])  # copies
    y = np.append(y, y[:500])
    monkeypatch.setattr(boosting_fit, "MANY_ROWS", 100)
    marks = boosting_fit.validation_rows(X, y, 0.1)
    assert 0.07 < marks.mean() < 0.13
    np.testing.assert_array_equal(marks[:500], marks[3000:])
    assert boosting_fit.validation_rows(np.zeros((200, 2)), np.zeros(200), 0.1) is None


SPARSE_MODELS = {
    "squared": BoostedTrees(**FAST),
    "absolute": BoostedTrees(loss="absolute", **FAST),
    "two": GradientBoostingClassifier(**FAST),
    "three": GradientBoostingClassifier(**FAST),
    "stopping": BoostedTrees(**{**FAST, "early_stopping": True}),
    "categorical": BoostedTrees(categorical_features=[1], **FAST),
}


@pytest.mark.parametrize("name", SPARSE_MODELS)
def test_sparse_is_dense(name, monkeypatch):
    monkeypatch.setattr(binning, "SPARSE_COLUMNS", 3)  # so that there are several blocks
    monkeypatch.setattr("certifit.models.boosting.trees.SPARSE_ENTRIES", 1000)
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 9, size=(500, 8)) * (rng.random((500, 8)) < 0.4) + 0.0
    X[rng.random(X.shape) < 0.02] = np.nan
    target = np.nan_to_num(X[:, 0] - X[:, 1]) + rng.normal(size=500)
    y = {"two": target > 0, "three": np.digitize(target, [-1, 1])}.get(name, target)
    weight = rng.integers(0, 3, size=500)
    dense = clone(SPARSE_MODELS[name]).fit(X, y, sample_weight=weight)
    for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.coo_array):
        sparse = clone(SPARSE_MODELS[name]).fit(kind(X), y, sample_weight=weight)
        for rows in (X, kind(X)):
            np.testing.assert_array_equal(sparse._scores(rows), dense._scores(X))
        np.testing.assert_array_equal(sparse.apply(kind(X)), dense.apply(X))
        for a, b in zip(sparse.staged_predict(kind(X)), dense.staged_predict(X), strict=True):
            np.testing.assert_array_equal(a, b)


def test_sparse_columns_are_written_out_a_few_at_a_time(monkeypatch):
    widest = 0

    def spied(self, *arguments, **options):
        nonlocal widest
        widest = max(widest, self.shape[0] * self.shape[1])
        return original(self, *arguments, **options)

    n, d = 1000, 3000
    rng = np.random.default_rng(0)
    X = sp.csc_array((1.0 + rng.random(n), (rng.permutation(n), rng.integers(0, 8, n))), shape=(n, d))
    y = X[:, [3]].toarray().ravel() > 0
    for name in ("csc_array", "csr_array"):
        original = getattr(sp, name).toarray
        monkeypatch.setattr(getattr(sp, name), "toarray", spied)
    model = GradientBoostingClassifier(n_estimators=3, learning_rate=1.0, min_samples_leaf=5).fit(X, y)
    assert 0 < widest <= n * binning.SPARSE_COLUMNS
    widest = 0
    assert model.score(X, y) == 1.0
    assert 0 < widest <= SPARSE_ENTRIES < n * d


WARM = {
    "plain": BoostedTrees(**FAST),
    "huber": BoostedTrees(loss="huber", **FAST),
    "draws": BoostedTrees(random_state=3, subsample=0.6, colsample=0.5, **FAST),
    "classes": GradientBoostingClassifier(**FAST),
    "units": BoostedTrees(**FAST),
}


@pytest.mark.parametrize("name", WARM)
def test_a_warm_start_goes_on_where_the_fit_ended(name):
    X, y = data(600)
    y = {"classes": np.digitize(y, [-0.5, 0.5]), "units": 1e100 * y}.get(name, y)
    whole = clone(WARM[name]).fit(X, y)
    parts = clone(WARM[name]).set_params(warm_start=True, n_estimators=7).fit(X, y)
    first = parts._scores(X)
    assert parts.n_iter_ == 7
    kept = parts.trees_[0]
    parts.set_params(n_estimators=20).fit(X, y)
    assert parts.n_iter_ == 20
    np.testing.assert_array_equal(parts.trees_[0].value, kept.value)
    np.testing.assert_allclose(parts._scores(X), whole._scores(X), rtol=1e-7, atol=1e-9 * np.abs(y).max())
    assert parts.certificate_.objective == pytest.approx(whole.certificate_.objective, rel=1e-6)
    assert np.abs(parts._scores(X) - first).max() > 0
    again = parts._scores(X)
    np.testing.assert_array_equal(parts.fit(X, y)._scores(X), again)  # nothing left to add


def test_a_warm_start_with_early_stopping_keeps_the_best_stage():
    X, y = data(1000)
    y = y + np.random.default_rng(1).normal(size=1000)
    model = BoostedTrees(n_estimators=10, learning_rate=0.3, early_stopping=True, n_iter_no_change=5, warm_start=True)
    model.fit(X, y)
    best = model.validation_loss_.min()
    model.set_params(n_estimators=200).fit(X, y)
    assert model.validation_loss_.min() <= best
    assert model.n_iter_ == np.argmin(model.validation_loss_) + 1 == len(model.trees_)
    objective = 0.5 * np.mean((y - model.predict(X)) ** 2)
    assert model.certificate_.objective == pytest.approx(objective)


def test_a_warm_start_keeps_categories():
    frame = pd.DataFrame({"a": ["u", "v", "w"] * 40, "b": np.arange(120.0)})
    y = (frame["a"] == "v").to_numpy() + 0.01 * frame["b"].to_numpy()
    whole = GradientBoostingRegressor(n_estimators=12, min_samples_leaf=1).fit(frame, y)
    parts = GradientBoostingRegressor(n_estimators=5, min_samples_leaf=1, warm_start=True).fit(frame, y)
    parts.set_params(n_estimators=12).fit(frame, y)
    np.testing.assert_allclose(parts.predict(frame), whole.predict(frame), rtol=1e-9)


def test_a_warm_start_refuses_other_data():
    X, y = data(200)
    model = GradientBoostingClassifier(warm_start=True, **FAST).fit(X, y > 0)
    with pytest.raises(ValueError, match="features"):
        model.fit(X[:, :2], y > 0)
    model = GradientBoostingClassifier(warm_start=True, **FAST).fit(X, y > 0)
    with pytest.raises(ValueError, match="same classes"):
        model.fit(X, np.digitize(y, [-0.5, 0.5]))
    with pytest.raises(ValueError, match="n_estimators=3 is less than the 20 stages"):
        model.set_params(n_estimators=3).fit(X, y > 0)
    with pytest.raises(TypeError, match="warm_start"):
        GradientBoostingClassifier(warm_start="yes", **FAST).fit(X, y > 0)


def test_softmax_is_newton_on_the_probabilities():
    """One stage of stumps on many classes against the gradients written out."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(300, 1)).astype(float)
    y = rng.integers(0, 4, size=300)
    model = GradientBoostingClassifier(n_estimators=1, learning_rate=1.0, min_samples_leaf=1, l2=0.0).fit(X, y)
    share = np.bincount(y) / 300
    start = np.log(share) - np.log(share).mean()
    p = softmax(start)
    for k in range(4):
        for side in (0.0, 1.0):
            inside = X[:, 0] == side
            step = (np.mean(y[inside] == k) - p[k]) / (p[k] * (1 - p[k]))
            found = model.decision_function([[side]])[0, k]
            assert found == pytest.approx(start[k] + step, abs=1e-6)


def test_rare_classes_do_not_run_away():
    """A class of a few rows among many: its curvature nearly vanishes, its steps must not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=20_000), [-1.0, 1.0])
    y[rng.choice(20_000, 12, replace=False)] = 3
    model = GradientBoostingClassifier(early_stopping=False).fit(X[:10_000], y[:10_000])
    p = model.predict_proba(X[10_000:])
    loss = -np.log(p[np.arange(10_000), y[10_000:]]).mean()
    assert np.abs(model.decision_function(X)).max() < 60
    assert loss < 0.75
