"""Cost-complexity pruning against all subtrees, and the choice of alpha on folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold

from certifit import (
    DecisionTreeClassifier,
    DecisionTreeClassifierCV,
    DecisionTreeRegressor,
    DecisionTreeRegressorCV,
)


def subtrees(tree: Any, node: int = 0) -> list[tuple[float, int]]:
    """(risk, leaves) of every subtree below a node, itself as a leaf included."""
    found = [(float(tree.loss[node] / tree.weight[0]), 1)]
    if not tree.is_leaf[node]:
        left = int(tree.left[node])
        found += [(a + c, b + d) for a, b in subtrees(tree, left) for c, d in subtrees(tree, left + 1)]
    return found


def small_trees() -> list[Any]:
    found: list[Any] = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 9, size=(40, 3)).astype(float)
        w = rng.integers(1, 4, 40).astype(float)
        criterion = ("gini", "entropy", "misclassification", "squared", "absolute", "poisson")[seed % 6]
        if seed % 6 < 3:
            found.append(DecisionTreeClassifier(criterion, max_leaf_nodes=9).fit(X, rng.integers(0, 3, 40), w))
        else:
            found.append(DecisionTreeRegressor(criterion, max_leaf_nodes=9).fit(X, rng.poisson(2, 40), w))
    return found


@pytest.mark.parametrize("model", small_trees(), ids=lambda model: model.criterion)
def test_pruning_is_optimal_among_all_subtrees(model: Any) -> None:
    everything = subtrees(model._tree)
    assert len(everything) >= 10
    path = model.cost_complexity_path()
    middles = 0.5 * (path.alphas[:-1] + path.alphas[1:])
    for alpha in [*path.alphas, *middles, path.alphas[-1] * 2]:
        pruned = model.pruned(float(alpha))
        best = min(risk + alpha * leaves for risk, leaves in everything)
        smallest = min(leaves for risk, leaves in everything if risk + alpha * leaves <= best + 1e-9 * (1 + best))
        certificate = pruned.certificate_
        assert certificate.objective == pytest.approx(best, abs=1e-10)
        assert pruned.n_leaves_ == smallest
        assert certificate.kind == "exact over subtrees"
        assert certificate.certified


@pytest.mark.parametrize("model", small_trees()[:4], ids=lambda model: model.criterion)
def test_the_path_lists_what_pruning_gives(model: Any) -> None:
    path = model.cost_complexity_path()
    assert path.alphas[0] == 0
    assert path.n_leaves[-1] == 1
    assert (np.diff(path.alphas) > 0).all()
    assert (np.diff(path.n_leaves) < 0).all()
    for alpha, risk, leaves in zip(path.alphas, path.risks, path.n_leaves, strict=True):
        pruned = model.pruned(float(alpha))
        assert pruned.n_leaves_ == leaves
        assert pruned._risk() == pytest.approx(risk, abs=1e-12)


def test_pruning_twice_is_pruning_once_and_the_grown_tree_stays() -> None:
    model = small_trees()[3]
    before = model.n_leaves_
    alphas = model.cost_complexity_path().alphas
    once = model.pruned(float(alphas[3]))
    twice = model.pruned(float(alphas[1])).pruned(float(alphas[3]))
    assert np.array_equal(once._tree.nodes, twice._tree.nodes)
    assert model.n_leaves_ == before
    direct = type(model)(**{**model.get_params(), "ccp_alpha": float(alphas[3])})
    rng = np.random.default_rng(3)
    X, w = rng.integers(0, 9, size=(40, 3)).astype(float), rng.integers(1, 4, 40).astype(float)
    direct.fit(X, rng.poisson(2, 40), w)
    assert np.array_equal(direct._tree.nodes, once._tree.nodes)


def noisy(seed: int, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(300, 4))
    signal = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.3)
    if classes:
        return X, np.where(rng.uniform(size=300) < 0.2, rng.integers(0, 3, 300), signal)
    return X, signal + 0.5 * rng.normal(size=300)


@pytest.mark.parametrize("classes", [True, False])
def test_errors_on_folds_are_those_of_pruned_trees(classes: bool) -> None:
    X, y = noisy(0, classes)
    kind, plain = (
        (DecisionTreeClassifierCV, DecisionTreeClassifier)
        if classes
        else (DecisionTreeRegressorCV, DecisionTreeRegressor)
    )
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = kind(cv=folds).fit(X, y)
    for k in range(0, model.alphas_.shape[0], 7):
        errors = []
        for train, test in folds:
            said = plain(ccp_alpha=max(model.alphas_[k], 1e-300)).fit(X[train], y[train]).predict(X[test])
            errors.append(np.mean(said != y[test]) if classes else np.mean((said - y[test]) ** 2))
        assert model.cv_errors_[k] == pytest.approx(np.mean(errors), abs=1e-10)
    assert model.alpha_ in model.alphas_
    assert model.n_leaves_ < plain().fit(X, y).n_leaves_ / 5
    assert model.certificate_.kind == "exact over subtrees"
    smaller = kind(cv=folds, one_standard_error=True).fit(X, y)
    assert smaller.n_leaves_ <= model.n_leaves_


def test_weights_are_repetitions_on_folds_too() -> None:
    X, y = noisy(1, True)
    w = np.random.default_rng(0).integers(0, 3, 300)
    a = DecisionTreeClassifierCV(cv=4).fit(X, y, w)
    rows = np.repeat(np.arange(300), w)
    b = DecisionTreeClassifierCV(cv=4).fit(X[rows], y[rows])
    np.testing.assert_allclose(a.cv_errors_, b.cv_errors_)
    assert np.array_equal(a._tree.nodes, b._tree.nodes)
