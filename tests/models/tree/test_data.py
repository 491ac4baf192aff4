"""Trees, forests and sums of trees on sparse tables; permutation importance of one tree."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.inspection import permutation_importance
from tests.peak import bytes_a_row, needs_proc

import certifit
from certifit.models.tree import columns as tree_columns
from certifit.models.tree import growing as tree_growing

MODELS = [
    certifit.DecisionTreeClassifier(max_depth=5),
    certifit.DecisionTreeRegressor(categorical_features=[2]),
    certifit.DecisionTreeClassifierCV(),
    certifit.DecisionTreeRegressorCV(),
    certifit.RandomForestClassifier(10, random_state=0, oob_score=True),
    certifit.RandomForestRegressor(10, random_state=0, splitter="histogram"),
    certifit.BaggingClassifier(random_state=0),
    certifit.BaggingRegressor(random_state=0, max_features=0.5),
    certifit.AdaBoostClassifier(n_estimators=5),
    certifit.ForwardStagewise(n_estimators=5),
]


def table():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 6, size=(150, 5)) * (rng.random((150, 5)) < 0.5) + 0.0
    X[rng.random(X.shape) < 0.03] = np.nan
    score = np.nan_to_num(X[:, 0] - X[:, 3]) + rng.normal(size=150)
    return X, score, rng.integers(0, 3, size=150)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_is_dense(model, kind, monkeypatch):
    monkeypatch.setattr(tree_growing, "SPARSE_ENTRIES", 200)  # so that rows are written out in several blocks
    X, score, weight = table()
    y = np.digitize(score, [-1, 1]) if is_classifier(model) else score
    dense = clone(model).fit(X, y, sample_weight=weight)
    sparse = clone(model).fit(kind(X), y, sample_weight=weight)
    for rows in (X, kind(X)):
        np.testing.assert_array_equal(sparse.predict(rows), dense.predict(X))
    if hasattr(model, "apply"):
        np.testing.assert_array_equal(sparse.apply(kind(X)), dense.apply(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(sparse.predict_proba(kind(X)), dense.predict_proba(X))


def test_a_sparse_table_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(tree_columns, "MOST_ENTRIES", 500)
    X = sp.random_array((100, 6), density=0.1, random_state=np.random.default_rng(0), format="csr")
    for model in (certifit.DecisionTreeRegressor(), certifit.RandomForestRegressor(5)):
        with pytest.raises(ValueError, match=r"100 × 6 entries.*at most 500.*GradientBoosting"):
            model.fit(X, np.arange(100.0))
        fitted = model.fit(X[:80], np.arange(80.0))
        assert fitted.predict(X).shape == (100,)  # rows to predict are written out in blocks: any number is fine


@pytest.mark.parametrize("classify", [True, False])
def test_permutation_importance_of_one_tree(classify):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 4))
    f = 2 * X[:, 0] + X[:, 1]
    y = np.where(f > 0, "yes", "no") if classify else f
    tree = (certifit.DecisionTreeClassifier if classify else certifit.DecisionTreeRegressor)(max_depth=6)
    tree.fit(X[:1000], y[:1000])
    found = tree.permutation_importance(X[1000:], y[1000:], n_repeats=20)
    assert found["importances"].shape == (4, 20)
    np.testing.assert_allclose(found["importances_mean"], found["importances"].mean(axis=1))
    scoring = "accuracy" if classify else "neg_mean_squared_error"
    known = permutation_importance(tree, X[1000:], y[1000:], n_repeats=20, random_state=0, scoring=scoring)
    spread = np.sqrt(known.importances_std**2 + found["importances_std"] ** 2) / np.sqrt(20)
    assert (np.abs(found["importances_mean"] - known.importances_mean) < 5 * spread + 1e-12).all()
    again = tree.permutation_importance(X[1000:], y[1000:], n_repeats=20)
    np.testing.assert_array_equal(again["importances"], found["importances"])


def test_permutation_importance_counts_weights_and_new_classes():
    X = np.arange(8.0)[:, None]
    y = np.array(["a", "a", "a", "a", "b", "b", "b", "b"])
    tree = certifit.DecisionTreeClassifier().fit(X, y)
    # Rows of weight zero are not there: the others all lie in one leaf, and a permutation changes nothing.
    one = tree.permutation_importance(X, y, sample_weight=[1, 1, 1, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(one["importances"], 0.0)
    assert tree.permutation_importance(X, y)["importances_mean"][0] > 0.2
    unknown = tree.permutation_importance(X, np.full(8, "c"), n_repeats=3)
    np.testing.assert_array_equal(unknown["importances"], 0.0)  # always wrong, permuted or not
    frame = pd.DataFrame({"kind": ["u", "v"] * 10, "x": np.arange(20.0)})
    answer = (frame["kind"] == "u").to_numpy().astype(float)
    model = certifit.DecisionTreeRegressor(categorical_features=["kind"]).fit(frame, answer)
    rise = model.permutation_importance(frame, answer)["importances_mean"]
    assert rise[0] > 0.2
    assert rise[1] == 0.0


def test_permutation_importance_names_what_is_wrong():
    tree = certifit.DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"X has 2, y has 3"):
        tree.permutation_importance([[0.0], [1.0]], [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="n_repeats"):
        tree.permutation_importance([[0.0], [1.0]], [0.0, 1.0], n_repeats=0)


@needs_proc
@pytest.mark.parametrize(
    ("model", "most"),
    [
        # An order of four bytes an entry; while columns are sorted, and while the tree grows, some 60 more a row.
        ("DecisionTreeClassifier(max_depth=3, n_jobs=1)", 4 * 12 + 70),
        # A byte an entry, and what the draws take.
        ("RandomForestClassifier(2, max_depth=3, n_jobs=1)", 12 + 90),
    ],
)
def test_a_fit_holds_an_order_or_bytes_of_the_table_and_no_copy(model: str, most: float) -> None:
    assert bytes_a_row(model) < most
