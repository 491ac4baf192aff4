"""Random settings of what is no single optimum but has one answer: trees, boosting, many classes by two."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.grids import exhaustive
from tests.sklearn.every.settings import Draw

SETTINGS, DEFAULT = 50, 2
WEIGHTS = (None, "balanced", {0: 2.0, 1: 0.7, 2: 1.0})
GROWTH = {"max_depth": (2, 4, None), "min_samples_leaf": (3, 5, 0.08), "min_samples_split": (2, 12, 0.2)}
PRUNED = {"max_leaf_nodes": (None, 4, 9), "ccp_alpha": (0.0, 0.05), "min_impurity_decrease": (0.0, 0.05)}
STEPS = {
    "learning_rate": (0.1, 0.5),
    "max_leaf_nodes": (3, 31, None),
    "max_depth": (None, 3),
    "l2_regularization": (0.0, 1.0),
}
BINS = {"max_bins": (16, 255), "min_samples_leaf": (5, 20), "max_iter": (1, 8), "early_stopping": (False,)}

TREES = (
    Draw("tree.DecisionTreeClassifier", "three", {**GROWTH, "criterion": ("gini", "entropy"), "class_weight": WEIGHTS}),
    Draw(
        "tree.DecisionTreeRegressor", "positive",
        {**GROWTH, **PRUNED, "criterion": ("squared_error", "absolute_error", "poisson", "friedman_mse")},
    ),
)  # fmt: skip
BOOSTING = (
    Draw("ensemble.HistGradientBoostingClassifier", "two", {**STEPS, **BINS}),
    Draw("ensemble.HistGradientBoostingClassifier", "three", {**STEPS, **BINS}),
    Draw(
        "ensemble.HistGradientBoostingRegressor", "positive",
        {**STEPS, **BINS, "loss": ("squared_error", "gamma", "poisson")},
    ),
)  # fmt: skip
EXACT = {"tol": 1e-10, "max_iter": 100_000}
LEARNERS = (
    ("linear_model.LogisticRegression", {"C": 0.3, **EXACT}),
    ("linear_model.LogisticRegression", {"C": 5.0, "fit_intercept": False, **EXACT}),
    ("svm.LinearSVC", {"C": 0.5, **EXACT}),
    ("naive_bayes.GaussianNB", {}),
)
PARTS = (
    Draw("multiclass.OneVsRestClassifier", "three", {"estimator": LEARNERS}),
    Draw("multiclass.OneVsOneClassifier", "three", {"estimator": LEARNERS}),
    Draw("multiclass.OutputCodeClassifier", "three", {"estimator": LEARNERS, "code_size": (1.0, 1.5, 3.0)}),
)
VOTES = (
    Draw(
        "ensemble.AdaBoostClassifier", "three",
        {
            "estimator": tuple(("tree.DecisionTreeClassifier", {"max_depth": depth}) for depth in (1, 2)),
            "n_estimators": (3, 12), "learning_rate": (0.3, 1.0),
        },
    ),
)  # fmt: skip


def cases(draws: tuple[Draw, ...]) -> list[Any]:
    return [
        pytest.param(
            draw, settings, seed, id=f"{draw.name}-{draw.target}-{seed}", marks=() if seed < DEFAULT else exhaustive
        )
        for draw in draws
        for seed, settings in enumerate(draw.settings(SETTINGS))
    ]


def both(name: str, settings: dict[str, Any]) -> Iterator[Any]:
    """The class of scikit-learn and ours, each with a learner of its own house."""
    module, _, cls = name.rpartition(".")
    for home in ("sklearn", "certifit.sklearn"):
        kind = getattr(importlib.import_module(f"{home}.{module}"), cls)
        given = dict(settings)
        if "estimator" in given:
            learner, options = given["estimator"]
            place, _, learner = learner.rpartition(".")
            given["estimator"] = getattr(importlib.import_module(f"{home}.{place}"), learner)(**options)
        yield kind(**given, **({"random_state": 0} if hasattr(kind, "random_state") or _draws(kind) else {}))


def _draws(kind: Any) -> bool:
    return "random_state" in kind._get_param_names()


def decrease(tree: Any, node: int) -> float:
    """How much impurity the split of a node removes, by the weight of its rows."""
    below = [tree.children_left[node], tree.children_right[node]]
    mass, impurity = tree.weighted_n_node_samples, tree.impurity
    return float(mass[node] * impurity[node] - sum(mass[one] * impurity[one] for one in below))


def compare(theirs: Any, ours: Any, paths: tuple[Any, Any], node: int = 0, other: int = 0) -> int:
    """Walk down two trees side by side; how many nodes were cut another way, at equal worth. Below those nothing is compared."""
    rows, same = (path[:, [one]].toarray().ravel() > 0 for path, one in zip(paths, (node, other), strict=True))
    assert_array_equal(rows, same)
    leaf = theirs.children_left[node] < 0
    if leaf != (ours.children_left[other] < 0):
        # One cut it, the other did not: a cut that is worth nothing, or one of many that would do as well.
        tree, at = (ours, other) if leaf else (theirs, node)
        assert abs(decrease(tree, at)) < 1e-9
        return 1
    if leaf:
        assert_allclose(ours.value[other], theirs.value[node], rtol=1e-9, atol=1e-12)
        return 0
    left, right = theirs.children_left[node], theirs.children_right[node]
    our_left, our_right = ours.children_left[other], ours.children_right[other]
    cut, our_cut = paths[0][:, [left]].toarray(), paths[1][:, [our_left]].toarray()
    if (cut != our_cut).any():
        assert decrease(ours, other) == pytest.approx(decrease(theirs, node), rel=1e-9, abs=1e-9)
        return 1
    return compare(theirs, ours, paths, left, our_left) + compare(theirs, ours, paths, right, our_right)


@pytest.mark.parametrize(("draw", "settings", "seed"), cases(TREES))
def test_a_tree_cuts_where_scikit_learn_does_or_as_well(draw: Draw, settings: dict[str, Any], seed: int) -> None:
    X, y, _ = draw.data(seed)  # beside weights, ours count rows by weight
    theirs, ours = (model.fit(X, y) for model in both(draw.name, settings))
    paths = theirs.decision_path(X), ours.decision_path(X)
    if not compare(theirs.tree_, ours.tree_, paths):
        method = "predict_proba" if hasattr(theirs, "predict_proba") else "predict"
        assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), rtol=1e-9, atol=1e-12)


def parts_at_equal_gain(theirs: Any, ours: Any, X: Any) -> bool:
    """Whether a node was cut another way, of the same rows and at the same gain, with the same trees before it and the same tree
    above it: scikit-learn rounds gradients to single precision, and by that it chooses. What follows is the other cut's.
    """
    outputs = ours.n_trees_per_iteration_
    for number, tree in enumerate(ours.model_.trees_):
        nodes = theirs._predictors[number // outputs][number % outputs].nodes
        waiting = [(0, 0, np.ones(len(X), dtype=bool))]
        while waiting:
            node, other, rows = waiting.pop(0)
            if tree.feature[other] < 0:  # where all gradients are one, rounding makes a gain
                assert nodes["is_leaf"][node] or nodes["gain"][node] < 1e-6 * nodes["gain"][0]
                continue
            assert not nodes["is_leaf"][node]
            left = X[:, nodes["feature_idx"][node]] <= nodes["num_threshold"][node]
            if ((X[:, tree.feature[other]] <= tree.threshold[other]) != left)[rows].any():
                assert 2 * tree.gain[other] == pytest.approx(nodes["gain"][node], rel=1e-6)
                return True
            waiting.append((nodes["left"][node], tree.left[other], rows & left))
            waiting.append((nodes["right"][node], tree.right[other], rows & ~left))
    return False


@pytest.mark.parametrize(("draw", "settings", "seed"), cases(BOOSTING))
def test_boosting_says_what_scikit_learns_does(draw: Draw, settings: dict[str, Any], seed: int) -> None:
    X, y, weight = draw.data(seed)
    theirs, ours = (model.fit(X, y, sample_weight=weight) for model in both(draw.name, settings))
    if parts_at_equal_gain(theirs, ours, X):
        assert weight is None  # rows of many weights have no two cuts of one gain
        return
    method = "decision_function" if hasattr(theirs, "predict_proba") else "predict"
    assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("draw", "settings", "seed"), cases(PARTS))
def test_the_parts_say_what_scikit_learns_do(draw: Draw, settings: dict[str, Any], seed: int) -> None:
    X, y, _ = draw.data(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (model.fit(X, y) for model in both(draw.name, settings))
    for part, other in zip(ours.estimators_, theirs.estimators_, strict=True):
        if hasattr(other, "coef_"):
            assert_allclose(part.coef_, other.coef_, rtol=1e-5, atol=1e-5 * np.abs(other.coef_).max())
    if hasattr(theirs, "decision_function"):
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-4, atol=1e-4)
    assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(("draw", "settings", "seed"), cases(VOTES))
def test_the_votes_are_those_of_scikit_learn(draw: Draw, settings: dict[str, Any], seed: int) -> None:
    X, y, _ = draw.data(seed)
    weight = np.random.default_rng(seed).uniform(
        0.2, 2.0, len(y)
    )  # rows of one weight would have stumps of equal worth
    theirs, ours = (model.fit(X, y, sample_weight=weight) for model in both(draw.name, settings))
    assert_allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-6)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-6, atol=1e-9)
    assert_array_equal(ours.predict(X), theirs.predict(X))
