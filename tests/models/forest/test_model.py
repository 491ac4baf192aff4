"""Random forests: independence of threads and of the order of rows, out-of-bag estimates, importance,
quantiles.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from certifit import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)


def classes(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[rng.uniform(size=X.shape) < 0.03] = np.nan
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + 0.5 * rng.normal(size=n) > 0.7).astype(int)
    return X, np.array(["no", "yes"])[y]


def same(a: Any, b: Any) -> bool:
    pairs = ((getattr(a._trees, k), getattr(b._trees, k)) for k in ("nodes", "start", "bits"))
    return all(np.array_equal(x, y) for x, y in pairs) and np.array_equal(a._bags, b._bags)


@pytest.mark.parametrize("splitter", ["exact", "histogram"])
def test_threads_do_not_matter_and_the_seed_does(splitter: str) -> None:
    X, y = classes()
    options = {"n_estimators": 15, "splitter": splitter, "oob_score": True}
    one = RandomForestClassifier(**options, random_state=3, n_jobs=1).fit(X, y)
    two = RandomForestClassifier(**options, random_state=3, n_jobs=2).fit(X, y)
    other = RandomForestClassifier(**options, random_state=4, n_jobs=2).fit(X, y)
    assert same(one, two)
    assert not same(one, other)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert np.array_equal(one.oob_curve_, two.oob_curve_)
    importance = one.oob_permutation_importance(X, y)["importances"]
    assert np.array_equal(importance, two.oob_permutation_importance(X, y)["importances"])


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("splitter", ["exact", "histogram"])
def test_a_weight_is_a_repetition_and_the_order_of_rows_is_nothing(bootstrap: bool, splitter: str) -> None:
    # Draws follow the content of the rows, so this holds exactly, not only in distribution.
    X, y = classes(150)
    rng = np.random.default_rng(1)
    w = rng.integers(0, 4, 150)
    rows = rng.permutation(np.repeat(np.arange(150), w))
    options = {"n_estimators": 10, "bootstrap": bootstrap, "splitter": splitter, "random_state": 0}
    a = RandomForestClassifier(**options).fit(X, y, w)
    b = RandomForestClassifier(**options).fit(X[rows], y[rows])
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-12)
    target = np.nan_to_num(X[:, 0]) + rng.normal(size=150)
    c = RandomForestRegressor(**options).fit(X, target, w)
    d = RandomForestRegressor(**options).fit(X[rows], target[rows])
    np.testing.assert_allclose(c.predict(X), d.predict(X), rtol=1e-10, atol=1e-12)


def test_rows_are_drawn_in_proportion_to_their_weights() -> None:
    n = 40
    X = np.arange(n, dtype=float)[:, None]
    w = np.linspace(0.25, 3, n)
    model = RandomForestRegressor(n_estimators=3000, random_state=0, max_depth=1).fit(X, X[:, 0], w)
    drawn = np.unpackbits(model._bags, axis=1, bitorder="little")[:, :n].mean(axis=0)
    expected = 1 - (1 - w / w.sum()) ** n
    z = (drawn - expected) / np.sqrt(expected * (1 - expected) / 3000)
    assert np.abs(z).max() < 4.5


def test_without_bootstrap_and_with_all_features_a_forest_is_a_tree() -> None:
    X, y = classes(300)
    forest = RandomForestClassifier(3, bootstrap=False, max_features=None, splitter="exact").fit(X, y)
    tree = DecisionTreeClassifier().fit(X, y)
    np.testing.assert_allclose(forest.predict_proba(X), tree.predict_proba(X))
    numbers = np.nan_to_num(X[:, 0]) ** 2
    forest_r = RandomForestRegressor(2, bootstrap=False, splitter="exact").fit(X, numbers)
    np.testing.assert_allclose(forest_r.predict(X), DecisionTreeRegressor().fit(X, numbers).predict(X))


def test_histograms_are_exact_for_few_values() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, size=(500, 5)).astype(float)
    y = rng.integers(0, 3, 500)
    a = RandomForestClassifier(5, splitter="exact", random_state=0).fit(X, y)
    b = RandomForestClassifier(5, splitter="histogram", random_state=0).fit(X, y)
    assert same(a, b)


def test_out_of_bag_predictions_are_those_of_the_trees_that_did_not_draw_the_row() -> None:
    X, y = classes(120)
    model = RandomForestClassifier(20, oob_score=True, random_state=0).fit(X, y)
    drawn = np.unpackbits(model._bags, axis=1, bitorder="little")[:, :120].astype(bool)
    leaves = model.apply(X) + model._trees.start[:-1]
    values = model._trees.values[leaves]
    for i in range(120):
        out = ~drawn[:, i]
        if out.any():
            np.testing.assert_allclose(model.oob_decision_function_[i], values[i, out].mean(axis=0), atol=1e-12)
    seen = ~np.isnan(model.oob_decision_function_[:, 0])
    said = model.classes_[np.argmax(model.oob_decision_function_[seen], axis=1)]
    assert model.oob_score_ == pytest.approx(np.mean(said == y[seen]))
    assert model.oob_curve_[-1] == pytest.approx(1 - model.oob_score_)
    low, high = model.oob_interval_
    exact = stats.binomtest(int((said != y[seen]).sum()), int(seen.sum())).proportion_ci()
    assert (low, high) == pytest.approx((exact.low, exact.high))


def test_out_of_bag_error_estimates_the_error_on_new_rows() -> None:
    X, y = classes(3000)
    model = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X[:1000], y[:1000])
    low, high = model.oob_interval_
    assert low - 0.02 < 1 - model.score(X[1000:], y[1000:]) < high + 0.02
    rng = np.random.default_rng(0)
    target = np.nan_to_num(X[:, 0]) * 2 + rng.normal(size=3000)
    regression = RandomForestRegressor(60, oob_score=True, random_state=0).fit(X[:1000], target[:1000])
    assert regression.oob_score_ == pytest.approx(regression.score(X[1000:], target[1000:]), abs=0.06)
    assert regression.oob_curve_[-1] < regression.oob_curve_[2]


def test_permutation_importance_finds_the_features_that_matter() -> None:
    X, y = classes(800)
    model = RandomForestClassifier(40, random_state=0).fit(X, y)
    mean = model.oob_permutation_importance(X, y)["importances_mean"]
    assert set(np.argsort(mean)[-2:]) == {0, 1}
    assert np.abs(mean[2:]).max() < 0.03
    assert set(np.argsort(model.feature_importances_)[-2:]) == {0, 1}
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_proximity_counts_common_leaves() -> None:
    X, y = classes(60)
    model = RandomForestClassifier(15, random_state=0).fit(X, y)
    leaves = model.apply(X)
    expected = (leaves[:, None, :] == leaves[None, :, :]).mean(axis=2)
    np.testing.assert_allclose(model.proximity(X), expected)
    np.testing.assert_allclose(model.proximity(X[:5], X), expected[:5])


def test_quantiles_cover() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 2))
    y = X[:, 0] + (0.1 + X[:, 0]) * rng.normal(size=1500)
    model = RandomForestRegressor(60, min_samples_leaf=15, keep_targets=True, random_state=0).fit(X[:1000], y[:1000])
    low, middle, high = model.predict_quantile(X[1000:], [0.1, 0.5, 0.9]).T
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert np.mean((y[1000:] >= low) & (y[1000:] <= high)) == pytest.approx(0.8, abs=0.07)
    wide = X[1000:, 0] > 0.7
    assert (high - low)[wide].mean() > 2 * (high - low)[X[1000:, 0] < 0.3].mean()
    with pytest.raises(ValueError, match="keep_targets"):
        RandomForestRegressor(2).fit(X, y).predict_quantile(X)


def test_quantile_weights_are_means_over_trees_of_shares_of_leaves() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    w = rng.integers(1, 4, 50).astype(float)
    model = RandomForestRegressor(7, min_samples_leaf=5, keep_targets=True, random_state=0).fit(X, y, w)
    train, new = model.apply(X), model.apply(X[:3] + 0.1)
    for i in range(3):
        share = (train == new[i]) * w[:, None]
        weight = (share / share.sum(axis=0)).mean(axis=1)
        order = np.argsort(y)
        reached = np.cumsum(weight[order])
        expected = [y[order][np.searchsorted(reached, q - 1e-12)] for q in (0.25, 0.5)]
        assert model.predict_quantile(X[:3] + 0.1, [0.25, 0.5])[i].tolist() == expected


def test_warm_start_adds_trees() -> None:
    X, y = classes(200)
    model = RandomForestClassifier(5, warm_start=True, random_state=0, oob_score=True).fit(X, y)
    model.set_params(n_estimators=12).fit(X, y)
    whole = RandomForestClassifier(12, random_state=0, oob_score=True).fit(X, y)
    assert same(model, whole)
    assert model.oob_score_ == whole.oob_score_
    with pytest.raises(ValueError, match="n_estimators"):
        model.set_params(n_estimators=3).fit(X, y)


def test_categories_monotone_and_absolute_work_in_forests() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 300, 600), rng.normal(size=600)]).astype(float)
    X[::20, 0] = np.nan
    effect = rng.normal(size=301)
    y = effect[np.nan_to_num(X[:, 0], nan=300).astype(int)] + X[:, 1]
    model = RandomForestRegressor(
        20, categorical_features=[0], monotone_constraints=[0, 1], random_state=0, oob_score=True
    )
    model.fit(X, y)
    assert model.oob_score_ > 0.5
    line = np.tile(X[1], (50, 1))
    line[:, 1] = np.linspace(-3, 3, 50)
    assert (np.diff(model.predict(line)) >= -1e-12).all()
    assert np.isfinite(model.predict([[999.0, 0.0], [np.nan, 0.0]])).all()
    robust = RandomForestRegressor(5, criterion="absolute", random_state=0).fit(X[:200], y[:200])
    assert robust.score(X[:200], y[:200]) > 0.5


def test_pickles_and_balance() -> None:
    X, y = classes(300)
    model = RandomForestClassifier(10, class_weight="balanced", random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert model.certificate_.kind == "none"
    assert not model.certificate_.certified


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"oob_score": True, "bootstrap": False}, "bootstrap=True"),
        ({"max_samples": 0.5, "bootstrap": False}, "bootstrap=True"),
        ({"max_bins": 300}, "max_bins"),
        ({"splitter": "fast"}, "splitter"),
    ],
)
def test_errors_name_the_argument(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        RandomForestClassifier(**options).fit([[0.0], [1.0]], [0, 1])
