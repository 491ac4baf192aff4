"""Trees and forests of several targets: against brute force, scikit-learn's trees, and trees of one target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.tree as theirs
from tests.models.tree.brute_force import CLASSES, NUMBERS, check_every_split, tree_for

from certifit import (
    DecisionTreeClassifier,
    DecisionTreeClassifierCV,
    DecisionTreeRegressor,
    DecisionTreeRegressorCV,
    RandomForestClassifier,
    RandomForestRegressor,
    load,
    save,
)

THEIR_NAMES = {"squared": "squared_error", "absolute": "absolute_error", "poisson": "poisson"}


def several(rng: np.random.Generator, criterion: str, X: np.ndarray) -> np.ndarray:
    """Three targets: of two, three and four classes, or of numbers in units far apart."""
    n = X.shape[0]
    score = np.column_stack([X[:, 0] + rng.normal(size=n), X[:, 1] + rng.normal(size=n), rng.normal(size=n)])
    if criterion in CLASSES:
        return np.column_stack([np.digitize(column, np.arange(k)) for k, column in enumerate(score.T, 1)])
    return np.floor(np.exp(score)) if criterion == "poisson" else score.round(2) * [1.0, 100.0, 1e-3]


@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
@pytest.mark.parametrize(("weighted", "missing"), [("ones", True), ("integers", False), ("reals", True)])
def test_every_split_is_the_best_for_the_mean_impurity(criterion: str, weighted: str, missing: bool) -> None:
    inner = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 12, size=(40, 3)) / 4
        y = several(rng, criterion, X)
        if missing:
            X[rng.uniform(size=X.shape) < 0.2] = np.nan
        w = {"ones": np.ones(40), "integers": rng.integers(1, 4, 40) * 1.0, "reals": rng.uniform(0.1, 3, 40)}[weighted]
        model = tree_for(criterion, min_samples_leaf=2).fit(X, y, w)
        inner += check_every_split(model, X, y, w, criterion, min_leaf=2)
    assert inner > 10


@pytest.mark.parametrize("criterion", [*CLASSES[:2], *NUMBERS])
@pytest.mark.parametrize(
    "options", [{"min_samples_leaf": 15}, {"max_leaf_nodes": 9}, {"max_depth": 4, "min_samples_leaf": 10}]
)
def test_trees_are_those_of_scikit_learn(criterion: str, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4)).astype(np.float32).astype(np.float64)
    y = several(rng, criterion, X)
    w = rng.integers(1, 4, 150).astype(float)
    if criterion == "absolute":  # no ties: medians of even numbers of rows are not unique
        y = y + 1e-4 * rng.normal(size=y.shape) * [1.0, 100.0, 1e-3]
    theirs_options = dict(options)
    kind = theirs.DecisionTreeClassifier if criterion in CLASSES else theirs.DecisionTreeRegressor
    # A row of weight 3 is three rows: scikit-learn counts rows, not weights, for the size of a leaf.
    rows = np.repeat(np.arange(150), w.astype(int))
    their = kind(criterion=THEIR_NAMES.get(criterion, criterion), random_state=0, **theirs_options).fit(
        X[rows], y[rows]
    )
    ours = tree_for(criterion, **options).fit(X, y, w)
    assert ours.n_outputs_ == their.n_outputs_ == 3
    assert ours.n_leaves_ == their.get_n_leaves()
    assert ours.depth_ == their.get_depth()
    new = rng.normal(size=(300, 4)).astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(ours.predict(new), their.predict(new), rtol=1e-9)
    np.testing.assert_allclose(ours.feature_importances_, their.feature_importances_, atol=1e-9)
    if criterion in CLASSES:
        for mine, other in zip(ours.predict_proba(new), their.predict_proba(new), strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-12)
        assert all(np.array_equal(a, b) for a, b in zip(ours.classes_, their.classes_, strict=True))
    path, other = ours.cost_complexity_path(), their.cost_complexity_pruning_path(X[rows], y[rows])
    np.testing.assert_allclose(
        path.alphas, np.unique(other.ccp_alphas.round(14)), atol=1e-9 * max(1, other.ccp_alphas.max())
    )
    np.testing.assert_allclose(path.risks[-1], other.impurities[-1], rtol=1e-9)


@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
def test_a_target_written_three_times_grows_the_tree_of_one(criterion: str) -> None:
    rng = np.random.default_rng(8)
    X = np.column_stack([rng.normal(size=(400, 2)), rng.integers(0, 8, 400), rng.integers(0, 5, 400)])
    X[rng.uniform(size=400) < 0.1, 0] = np.nan
    X[rng.uniform(size=400) < 0.1, 2] = np.nan
    y = several(rng, criterion, np.nan_to_num(X))[:, 0]
    options: dict[str, Any] = {"categorical_features": [2], "min_samples_leaf": 3, "max_depth": 6}
    w = rng.integers(1, 3, 400).astype(float)
    one = tree_for(criterion, **options).fit(X, y, w)
    three = tree_for(criterion, **options).fit(X, np.column_stack([y, y, y]), w)
    assert np.array_equal(one._tree.nodes, three._tree.nodes)
    assert np.array_equal(one._tree.bits, three._tree.bits)
    np.testing.assert_allclose(one._tree.loss, three._tree.loss, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one._tree.values, three._tree.values[:, : one._tree.values.shape[1]], rtol=1e-12)
    assert np.array_equal(one.predict(X), three.predict(X)[:, 2])
    # Forests draw the same features at the same nodes: the same again, in bins.
    forest = RandomForestClassifier if criterion in CLASSES else RandomForestRegressor
    settings = {
        "n_estimators": 3,
        "max_features": 2,
        "max_depth": 5,
        "bootstrap": False,
        "splitter": "histogram",
        "max_bins": 20,
    }
    one, three = (
        forest(criterion=criterion, random_state=0, **settings).fit(X, t, w) for t in (y, np.column_stack([y, y]))
    )
    assert np.array_equal(one._trees.nodes, three._trees.nodes)


@pytest.mark.parametrize("criterion", CLASSES + NUMBERS)
def test_weights_are_repetitions_and_neither_order_nor_threads_matter(criterion: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.integers(0, 30, size=(80, 3)) / 8
    y = several(rng, criterion, X)
    w = rng.integers(0, 3, 80).astype(float)
    rows = rng.permutation(np.repeat(np.arange(80), w.astype(int)))
    model = tree_for(criterion, n_jobs=1).fit(X, y, w)
    again = tree_for(criterion, n_jobs=2).fit(X[rows], y[rows])
    assert np.array_equal(model._tree.nodes, again._tree.nodes)
    np.testing.assert_allclose(model._tree.values, again._tree.values, rtol=1e-12, atol=1e-15)
    kind = RandomForestClassifier if criterion in CLASSES else RandomForestRegressor
    forest = kind(5, criterion=criterion, random_state=0, n_jobs=1).fit(X, y, w)
    other = kind(5, criterion=criterion, random_state=0, n_jobs=2).fit(X[rows], y[rows])
    assert np.array_equal(forest._trees.nodes, other._trees.nodes)


def test_targets_in_units_far_apart_are_each_predicted() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.column_stack([1e150 * np.sign(X[:, 0]), 1e-150 * np.sign(X[:, 1])])
    said = DecisionTreeRegressor().fit(X, y).predict(X)
    np.testing.assert_allclose(said, y, rtol=1e-12)
    flat = DecisionTreeRegressor().fit(X, np.column_stack([np.ones(60), X[:, 0]]))
    assert np.array_equal(flat.predict(X)[:, 0], np.ones(60))
    assert np.array_equal(flat._tree.nodes, DecisionTreeRegressor().fit(X, X[:, 0])._tree.nodes)


def test_class_weights_of_several_targets_multiply() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 3)).astype(np.float32).astype(np.float64)
    y = several(rng, "gini", X)[:, :2]
    for given in ("balanced", [{0: 2.0, 1: 1.0}, {0: 1.0, 1: 3.0, 2: 0.5}], ["balanced", None]):
        ours = DecisionTreeClassifier(class_weight=given, max_depth=3).fit(X, y)
        factors = np.ones(120)
        for k, one in enumerate(given if isinstance(given, list) else [given] * 2):
            counts = np.bincount(y[:, k])
            own = (
                120 / (counts.size * counts)
                if one == "balanced"
                else [(one or {}).get(c, 1.0) for c in range(counts.size)]
            )
            factors *= np.asarray(own)[y[:, k]]
        their = theirs.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y, factors)
        for mine, other in zip(ours.predict_proba(X), their.predict_proba(X), strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-9)
        forest = RandomForestClassifier(20, class_weight=given, random_state=0).fit(X, y)
        assert (forest.predict(X) == y).mean() > 0.9
    with pytest.raises(ValueError, match="list with an entry for each of the 2 targets"):
        DecisionTreeClassifier(class_weight={0: 1.0}).fit(X, y)


def test_labels_of_any_kind() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(90, 2))
    y = pd.DataFrame({"a": np.where(X[:, 0] > 0, "up", "down"), "b": np.where(X[:, 1] > 0.5, "far", "near")})
    for model in (DecisionTreeClassifier(), RandomForestClassifier(10, random_state=0)):
        model.fit(X, y)
        assert [list(each) for each in model.classes_] == [["down", "up"], ["far", "near"]]
        assert model.predict(X).shape == (90, 2)
        assert (model.predict(X) == y.to_numpy()).mean() > 0.95
        shares, logarithms = model.predict_proba(X), model.predict_log_proba(X)
        with np.errstate(divide="ignore"):
            assert all(np.array_equal(np.log(a), b) for a, b in zip(shares, logarithms, strict=True))
        assert model.predict_proba(X.astype(np.float32))[1].dtype == np.float32
    tree = DecisionTreeClassifier().fit(X, y)
    assert "x0 <= " in tree.rules()
    assert "up, near (" in tree.rules()
    named = tree.rules(class_names=[["falls", "rises"], ["away", "close"]])
    assert "rises, close (" in named
    with pytest.raises(ValueError, match="each of the 2 targets"):
        tree.rules(class_names=["falls"])
    assert len(tree.plot().patches) == tree.n_nodes_
    with pytest.raises(ValueError, match="one target"):
        tree.leaf_intervals()
    worse = tree.permutation_importance(X, y)["importances_mean"]
    assert (worse > 0.2).all()


def test_numbers_in_words_and_pictures() -> None:
    tree = DecisionTreeRegressor().fit([[0.0], [1.0]], [[1.0, 10.0], [2.0, 20.0]])
    assert tree.rules() == "x0 <= 0.5: 1, 10 (1 row)\nx0 > 0.5: 2, 20 (1 row)"
    assert len(tree.plot().patches) == 3
    assert tree.permutation_importance([[0.0], [1.0]], [[1.0, 10.0], [2.0, 20.0]])["importances"].shape == (1, 5)
    with pytest.raises(ValueError, match="2 columns"):
        tree.permutation_importance([[0.0]], [[1.0, 2.0, 3.0]])


def test_out_of_bag_estimates_by_hand() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 3))
    numbers, classes = several(rng, "squared", X), several(rng, "gini", X)
    w = rng.integers(1, 3, 150).astype(float)
    for kind, y in ((RandomForestRegressor, numbers), (RandomForestClassifier, classes)):
        forest = kind(25, oob_score=True, random_state=0, splitter="histogram").fit(X, y, w)
        out = 1 - np.unpackbits(forest._bags, axis=1, bitorder="little")[:, :150]
        each = [tree._tree.predict(X, 1) for tree in forest.estimators_]
        total = sum(o[:, None] * said for o, said in zip(out, each, strict=True))
        seen = out.sum(axis=0) > 0
        mean = total[seen] / out.sum(axis=0)[seen, None]
        if kind is RandomForestRegressor:
            np.testing.assert_allclose(forest.oob_prediction_[seen], mean)
            centered = y[seen] - np.average(y[seen], axis=0, weights=w[seen])
            scores = 1 - w[seen] @ (y[seen] - mean) ** 2 / (w[seen] @ centered**2)
            assert forest.oob_score_ == pytest.approx(scores.mean())
            assert forest.oob_curve_[-1] == pytest.approx(
                np.average(((y[seen] - mean) ** 2).mean(axis=1), weights=w[seen])
            )
        else:
            np.testing.assert_allclose(np.hstack(forest.oob_decision_function_)[seen], mean)
            said = np.stack([part.argmax(axis=1) for part in np.split(mean, [2, 5], axis=1)], axis=1)
            right = np.average((said == y[seen]).all(axis=1), weights=w[seen])
            assert forest.oob_score_ == pytest.approx(right)
            assert forest.oob_curve_[-1] == pytest.approx(1 - right)
        rise = forest.oob_permutation_importance(X, y, w)["importances_mean"]
        assert rise.argmax() == (1 if kind is RandomForestRegressor else rise.argmax())
        assert rise[:2].min() > 0


def test_the_trees_of_a_forest() -> None:
    rng = np.random.default_rng(9)
    frame = pd.DataFrame({"size": rng.normal(size=200), "kind": rng.choice(["a", "b", "c"], 200)})
    frame.loc[::9, "size"] = np.nan
    y = np.where(frame["kind"] == "a", "one", np.where(frame["size"] > 0, "two", "three"))
    forest = RandomForestClassifier(8, categorical_features="auto", max_depth=3, random_state=0).fit(frame, y)
    trees = forest.estimators_
    assert all(isinstance(tree, DecisionTreeClassifier) for tree in trees)
    np.testing.assert_allclose(
        np.mean([tree.predict_proba(frame) for tree in trees], axis=0), forest.predict_proba(frame)
    )
    np.testing.assert_allclose(
        np.mean([tree.feature_importances_ for tree in trees], axis=0), forest.feature_importances_
    )
    assert np.array_equal(np.stack([tree.apply(frame) for tree in trees], axis=1), forest.apply(frame))
    assert [tree.depth_ for tree in trees] == forest.estimators_depth_.tolist()
    assert trees[0].max_depth == 3
    text = trees[0].rules(feature_names=["length", "sort"], class_names=["I", "III", "II"])
    assert all(part in text for part in ("sort in {", "or missing", "II ("))
    assert len(trees[0].plot().patches) == trees[0].n_nodes_
    assert trees[1].pruned(0.05).n_leaves_ <= trees[1].n_leaves_
    assert not trees[0].certificate_.certified
    with pytest.raises(ValueError, match="not fitted"):
        RandomForestClassifier().estimators_  # noqa: B018 - the question itself is refused
    numbers = RandomForestRegressor(4, random_state=0).fit(frame[["size"]], np.arange(200.0))
    said = np.mean([tree.predict(frame[["size"]]) for tree in numbers.estimators_], axis=0)
    np.testing.assert_allclose(said, numbers.predict(frame[["size"]]))


def test_files_keep_several_targets(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    X = rng.normal(size=(100, 3))
    y = several(rng, "gini", X)
    for model in (
        DecisionTreeClassifier(),
        RandomForestClassifier(5, random_state=0),
        DecisionTreeRegressor(ccp_alpha=0.01),
    ):
        model.fit(X, y)
        save(model, tmp_path / "model.cfit")
        again = load(tmp_path / "model.cfit")
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again.n_outputs_ == 3
    assert model.certificate_.kind == "exact over subtrees"


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_pruning_by_folds(kind: str) -> None:
    rng = np.random.default_rng(11)
    X = rng.uniform(size=(300, 3))
    step = (X[:, 0] > 0.5).astype(float)
    if kind == "numbers":
        y = np.column_stack([step, -10 * step]) + rng.normal(size=(300, 2)) * [0.3, 3.0]
        model: Any = DecisionTreeRegressorCV(one_standard_error=True).fit(X, y)
    else:
        flip = rng.uniform(size=(300, 2)) < 0.05
        y = np.where(np.column_stack([step, 1 - step]).astype(bool) ^ flip, "b", "a")
        model = DecisionTreeClassifierCV(one_standard_error=True).fit(X, y)
    assert model.n_leaves_ == 2
    assert model.certificate_.certified
    assert model.predict(X).shape == (300, 2)


def test_what_is_for_one_target_only_is_refused() -> None:
    X, y = np.arange(12.0).reshape(6, 2), np.arange(12.0).reshape(6, 2)
    for model in (
        DecisionTreeRegressor(monotone_constraints=[1, 0]),
        RandomForestRegressor(monotone_constraints=[1, 0]),
    ):
        with pytest.raises(ValueError, match="monotone_constraints are for one target"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="keep_targets=True is for one target"):
        RandomForestRegressor(keep_targets=True).fit(X, y)
    with pytest.raises(ValueError, match="needs targets >= 0"):
        DecisionTreeRegressor("poisson").fit(X, np.column_stack([np.ones(6), -np.ones(6)]))
    with pytest.raises(ValueError, match=r"NaN \(first at row 2\)"):
        DecisionTreeRegressor().fit(X, np.where(np.arange(12).reshape(6, 2) == 5, np.nan, 1.0))
    forest = RandomForestRegressor(2, warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="as many targets"):
        forest.set_params(n_estimators=3).fit(X, y[:, 0])
