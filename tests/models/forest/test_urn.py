"""Which rows a tree of a forest drew, and the tree grown again alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import certifit as cf
from certifit._types import Array


def _table(n: int = 90) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)


FORESTS = (cf.RandomForestClassifier, cf.RandomForestRegressor)


@pytest.mark.parametrize("thresholds", ["best", "random"])
@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize("forest", FORESTS)
def test_a_tree_is_grown_again_from_its_rows(forest: Any, bootstrap: bool, thresholds: str) -> None:
    X, y = _table()
    y = y > 0 if forest is cf.RandomForestClassifier else y
    model = forest(4, bootstrap=bootstrap, thresholds=thresholds, max_features=2, random_state=3).fit(X, y)
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        again = clone(tree).fit(X[rows], y[rows])
        assert np.array_equal(again._tree.nodes, tree._tree.nodes)
        assert np.allclose(again._tree.values, tree._tree.values, rtol=1e-12)


@pytest.mark.parametrize("weight", ["none", "counts", "shares"])
def test_rows_are_those_of_the_bags(weight: str) -> None:
    X, y = _table()
    weights = {"none": np.ones(90), "counts": np.arange(90) % 4, "shares": np.arange(90) % 4 / 3.0}[weight]
    model = cf.RandomForestRegressor(3, random_state=0).fit(X, y, None if weight == "none" else weights)
    counting = np.flatnonzero(weights)
    for bag, rows in zip(model._bags, model.estimators_samples_, strict=True):
        drawn = counting[np.unpackbits(bag, bitorder="little")[: counting.size].astype(bool)]
        assert np.array_equal(np.unique(rows), drawn)
        assert rows.size == (int(weights.sum()) if weight == "counts" else counting.size)


def test_trees_that_are_added_draw_from_their_own_urn() -> None:
    X, y = _table()
    model = cf.RandomForestRegressor(2, warm_start=True, random_state=0).fit(X, y)
    before = model.estimators_samples_
    after = model.set_params(n_estimators=4, max_samples=30).fit(X, y).estimators_samples_
    assert [rows.size for rows in after] == [90, 90, 30, 30]
    assert all(np.array_equal(one, other) for one, other in zip(before, after[:2], strict=True))


def test_a_forest_of_an_older_file_says_that_it_does_not_know() -> None:
    X, y = _table()
    model = cf.RandomForestRegressor(2, random_state=0).fit(X, y)
    del model._urns
    assert model.estimators_[0].random_state is None
    with pytest.raises(ValueError, match="older file"):
        _ = model.estimators_samples_
