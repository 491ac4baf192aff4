"""Trees, forests and boosting: the same trees where no two splits are equal, the same quality where draws differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
import sklearn.tree
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.inspection import permutation_importance
from sklearn.model_selection import cross_val_score

from certifit.sklearn import ensemble, tree

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


def test_weights_do_not_stop_growth() -> None:
    X, y = NUMBERS
    light = tree.DecisionTreeRegressor().fit(X, y, sample_weight=np.full(len(y), 1e-3))
    assert light.get_n_leaves() == tree.DecisionTreeRegressor().fit(X, y).get_n_leaves()


@pytest.mark.parametrize("cls", [tree.DecisionTreeRegressor, ensemble.RandomForestRegressor])
def test_several_outputs_are_refused_in_words(cls: Any) -> None:
    X, y = NUMBERS
    with pytest.raises(NotImplementedError, match="one output"):
        cls().fit(X, np.c_[y, y])


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
