"""Trees, forests and boosting: the same trees where no two splits are equal, the same quality where draws differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import permutation_importance
from sklearn.model_selection import cross_val_score

from certifit.sklearn import ensemble, patched, tree

NUMBERS, CLASSES = load_diabetes(return_X_y=True), load_iris(return_X_y=True)
SETTINGS: list[dict[str, Any]] = [
    {"max_depth": 3},
    {"min_samples_leaf": 0.1},
    {"min_samples_leaf": 30, "min_samples_split": 80},
    {"max_depth": 3, "ccp_alpha": 60.0},
    {"max_depth": 3, "min_impurity_decrease": 90.0},
    {"max_depth": 3, "criterion": "absolute_error"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_tree_is_that_of_scikit_learn(settings: dict[str, Any]) -> None:
    X, y = NUMBERS
    theirs = sklearn.tree.DecisionTreeRegressor(random_state=0, **settings).fit(X, y)
    ours = tree.DecisionTreeRegressor(random_state=0, **settings).fit(X, y)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10)
    for name in ("children_left", "children_right", "feature", "n_node_samples"):
        assert_array_equal(getattr(ours.tree_, name), getattr(theirs.tree_, name), err_msg=name)
    for name in ("value", "impurity", "weighted_n_node_samples"):
        assert_allclose(getattr(ours.tree_, name), getattr(theirs.tree_, name), rtol=1e-6, err_msg=name)
    assert_allclose(ours.tree_.threshold, theirs.tree_.threshold, rtol=1e-5)
    assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-10)
    assert_array_equal(ours.apply(X), theirs.apply(X))
    assert (ours.decision_path(X) != theirs.decision_path(X)).nnz == 0
    assert (ours.get_depth(), ours.get_n_leaves()) == (theirs.get_depth(), theirs.get_n_leaves())


def test_classes_text_and_pruning() -> None:
    X, y = CLASSES
    theirs = sklearn.tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    ours = tree.DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    assert sklearn.tree.export_text(ours).count("class") == sklearn.tree.export_text(theirs).count("class")
    path, other = ours.cost_complexity_pruning_path(X, y), theirs.cost_complexity_pruning_path(X, y)
    assert_allclose(path.ccp_alphas, other.ccp_alphas, atol=1e-12)
    assert_allclose(path.impurities, other.impurities)
    assert ours.certificate_.kind == "none"


@pytest.mark.parametrize("name", ["ExtraTreesClassifier", "ExtraTreesRegressor"])
def test_extremely_randomized_trees_are_as_good_as_scikit_learns(name: str) -> None:
    X, y = CLASSES if name.endswith("Classifier") else NUMBERS
    settings: dict[str, Any] = {"n_estimators": 40, "min_samples_leaf": 3, "random_state": 0}
    theirs, ours = (getattr(home, name)(**settings) for home in (sklearn.ensemble, ensemble))
    assert cross_val_score(ours, X, y).mean() == pytest.approx(cross_val_score(theirs, X, y).mean(), abs=0.03)
    assert ours.fit(X, y).estimators_[0].splitter == "random"
    assert tree.ExtraTreeRegressor(random_state=0).fit(*NUMBERS).score(*NUMBERS) == 1.0


def test_ensembles_of_scikit_learn_stand_on_a_tree_that_is_replaced() -> None:
    with patched("tree"):
        model = sklearn.ensemble.RandomTreesEmbedding(5, max_depth=2, random_state=0)
        told = model.fit_transform(CLASSES[0])
        assert told.shape[0] == 150
        assert_array_equal(np.asarray(told.sum(axis=1)).ravel(), 5.0)
        assert (model.transform(CLASSES[0]) != told).nnz == 0
        assert all(isinstance(one, tree.ExtraTreeRegressor) for one in model.estimators_)


def test_a_forest_that_is_told_later_to_look_out_of_bag() -> None:
    model = ensemble.RandomForestClassifier(15, warm_start=True, random_state=0).fit(*CLASSES)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.set_params(oob_score=True).fit(*CLASSES)
    fresh = ensemble.RandomForestClassifier(15, oob_score=True, random_state=0).fit(*CLASSES)
    assert model.oob_score_ == fresh.oob_score_
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.fit(CLASSES[0], CLASSES[1] + 1)
    assert_array_equal(model.classes_, [0, 1, 2])


def test_the_least_share_is_compared_without_tolerance() -> None:
    X, y = np.arange(30.0)[:, None], (np.arange(30) >= 9).astype(float)
    for share, least in ((0.3, 9), (0.1 + 0.2, 10), (0.5, 15)):
        model = tree.DecisionTreeRegressor(min_weight_fraction_leaf=share, max_depth=1).fit(X, y)
        assert model.tree_.n_node_samples[1:].min() == least
    with pytest.raises(TypeError, match="at least 1 dimension"):
        model.fit(X, y, np.array(1.0))
    with pytest.raises(ValueError, match="y is not positive"):
        tree.DecisionTreeRegressor(criterion="poisson").fit(X, np.zeros(30))


@pytest.mark.parametrize("weighted", [True, False])
def test_rows_of_a_node_are_counted_whatever_they_weigh(weighted: bool) -> None:
    X, y = CLASSES
    weight = np.tile([0.0, 0.25, 3.0], 50) if weighted else None
    settings: dict[str, Any] = {"max_depth": 2, "random_state": 0, "class_weight": None if weighted else {0: 5.0}}
    ours, theirs = (home.DecisionTreeClassifier(**settings).fit(X, y, weight) for home in (tree, sklearn.tree))
    assert_array_equal(ours.tree_.n_node_samples, theirs.tree_.n_node_samples)
    assert_allclose(ours.tree_.weighted_n_node_samples, theirs.tree_.weighted_n_node_samples)


def test_what_trees_and_forests_refuse_in_scikit_learns_words() -> None:
    X, y = CLASSES
    with pytest.raises(TypeError, match="sparse y"):
        tree.DecisionTreeClassifier().fit(X, csr_array(np.eye(3)[y]))
    with pytest.raises(ValueError, match="sparse multilabel-indicator"):
        ensemble.RandomForestClassifier().fit(X, csr_array(np.eye(3)[y]))
    for target, words in ((-1.0, "negative which is not allowed"), (0.0, "Sum of y is not strictly positive")):
        with pytest.raises(ValueError, match=words):
            ensemble.RandomForestRegressor(criterion="poisson").fit(X, np.full(len(X), target))


def test_weights_do_not_stop_growth() -> None:
    X, y = NUMBERS
    light = tree.DecisionTreeRegressor().fit(X, y, sample_weight=np.full(len(y), 1e-3))
    assert light.get_n_leaves() == tree.DecisionTreeRegressor().fit(X, y).get_n_leaves()


def targets(rng: np.random.Generator, X: np.ndarray, classes: bool) -> np.ndarray:
    """Three targets: of two, three and four classes, or numbers in units far apart."""
    score = np.column_stack([X[:, :2], np.zeros(len(X))]) + rng.normal(size=(len(X), 3))
    if classes:
        return np.column_stack([np.digitize(column, np.arange(k)) for k, column in enumerate(score.T, 1)])
    return score * [1.0, 100.0, 1e-3]


@pytest.mark.parametrize("forest", [False, True])
def test_several_outputs_are_those_of_scikit_learn(forest: bool) -> None:
    rng = np.random.default_rng(12)
    X = rng.normal(size=(120, 3)).astype(np.float32).astype(np.float64)
    ours, other = (ensemble, sklearn.ensemble) if forest else (tree, sklearn.tree)
    prefix, options = (
        ("RandomForest", {"n_estimators": 20}) if forest else ("DecisionTree", {"max_depth": 4, "min_samples_leaf": 8})
    )
    for end, y in (("Regressor", targets(rng, X, False)), ("Classifier", targets(rng, X, True))):
        mine = getattr(ours, prefix + end)(random_state=0, **options).fit(X, y)
        peer = getattr(other, prefix + end)(random_state=0, **options).fit(X, y)
        assert mine.n_outputs_ == peer.n_outputs_
        assert mine.predict(X).shape == peer.predict(X).shape
        if end == "Classifier":
            assert np.array_equal(mine.n_classes_, peer.n_classes_)
            assert [part.shape for part in mine.predict_proba(X)] == [part.shape for part in peer.predict_proba(X)]
        if not forest:
            for name in ("value", "threshold", "feature", "impurity", "n_node_samples"):
                np.testing.assert_allclose(getattr(mine.tree_, name), getattr(peer.tree_, name), atol=1e-9)
            np.testing.assert_allclose(mine.tree_.predict(X), peer.tree_.predict(X.astype(np.float32)), atol=1e-9)
        else:
            assert mine.estimators_[0].predict(X).shape == (120, 3)
            assert mine.estimators_[0].tree_.value.shape[1:] == peer.estimators_[0].tree_.value.shape[1:]


def test_out_of_bag_of_several_outputs() -> None:
    rng = np.random.default_rng(13)
    X = rng.normal(size=(150, 3))
    labels = (X[:, :2] + 0.3 * rng.normal(size=(150, 2)) > 0).astype(int)
    for kind, y in (("RandomForestClassifier", labels), ("RandomForestRegressor", X[:, :2] ** 2)):
        mine, peer = (
            getattr(module, kind)(60, oob_score=True, random_state=0).fit(X, y)
            for module in (ensemble, sklearn.ensemble)
        )
        assert mine.oob_score_ == pytest.approx(peer.oob_score_, abs=0.06)
        name = "oob_decision_function_" if kind.endswith("Classifier") else "oob_prediction_"
        assert getattr(mine, name).shape == getattr(peer, name).shape
    with pytest.raises(ValueError, match="cannot be used to compute OOB"):
        ensemble.RandomForestClassifier(5, oob_score=True).fit(X, np.column_stack([labels, labels.sum(axis=1)]))


def test_a_forest_and_its_trees() -> None:
    X, y = CLASSES
    names = np.array(["a", "b", "c"])[y]
    forest = ensemble.RandomForestClassifier(20, oob_score=True, random_state=0).fit(X, names)
    assert forest.oob_score_ > 0.9
    assert len(forest) == len(forest.estimators_) == 20
    assert_allclose(np.mean([one.predict_proba(X) for one in forest.estimators_], axis=0), forest.predict_proba(X))
    assert forest.apply(X).shape == (len(X), 20)
    nodes, start = forest.decision_path(X)
    assert nodes.shape == (len(X), start[-1])
    assert_array_equal(np.unique(forest.predict(X)), forest.classes_)
    assert len(forest.set_params(n_estimators=25, warm_start=True).fit(X, names).estimators_) == 25
    rising = permutation_importance(forest, X, names, n_repeats=2, random_state=0).importances_mean
    assert rising[2:].sum() > rising[:2].sum()


@pytest.mark.parametrize(
    ("name", "data", "settings"),
    [
        ("RandomForestRegressor", NUMBERS, {"n_estimators": 60, "random_state": 0}),
        ("HistGradientBoostingRegressor", NUMBERS, {"max_iter": 30}),
        ("HistGradientBoostingRegressor", NUMBERS, {"max_iter": 30, "loss": "absolute_error"}),
        ("HistGradientBoostingRegressor", NUMBERS, {"max_iter": 30, "loss": "poisson"}),
        ("HistGradientBoostingClassifier", CLASSES, {"max_iter": 20}),
    ],
)
def test_ensembles_are_as_good(name: str, data: Any, settings: dict[str, Any]) -> None:
    theirs, ours = (
        cross_val_score(getattr(home, name)(**settings), *data, cv=3).mean() for home in (sklearn.ensemble, ensemble)
    )
    assert ours > theirs - 0.03


def test_stages_of_boosting() -> None:
    X, y = CLASSES
    model = ensemble.HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    *_, last = model.staged_predict_proba(X)
    assert_array_equal(last, model.predict_proba(X))
    assert model.n_iter_ == len(list(model.staged_predict(X))) == 5
    assert model.decision_function(X).shape == (len(X), 3)
    assert model.n_trees_per_iteration_ == 3
