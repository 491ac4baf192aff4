"""The best trees: against all trees, with proof, whatever the columns hold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning

from certifit import DecisionTreeClassifier, DecisionTreeRegressor, OptimalTreeClassifier, OptimalTreeRegressor
from certifit.progress import Progress

Array = NDArray[Any]


def best_of_all(X: Array, cost: Callable[[Array], float], depth: int, price: float) -> float:
    """The least cost of a tree, by looking at all of them; columns hold numbers, missing values go to the better side."""
    known: dict[tuple[tuple[int, ...], int], float] = {}

    def least(rows: Array, depth: int) -> float:
        key = (tuple(rows.tolist()), depth)
        if key not in known:
            found = cost(rows) + price
            for j in range(X.shape[1]) if depth else ():
                x = X[rows, j]
                missing = np.isnan(x)
                for threshold in [*np.unique(x[~missing]), np.inf]:
                    for side in (False, True) if missing.any() else (False,):
                        left = (x <= threshold) | (missing & side)
                        if left.any() and not left.all():
                            found = min(found, least(rows[left], depth - 1) + least(rows[~left], depth - 1))
            known[key] = found
        return known[key]

    return least(np.arange(X.shape[0]), depth)


def wrong(y: Array, weight: Array) -> Callable[[Array], float]:
    return lambda rows: float(weight[rows].sum() - np.bincount(y[rows], weights=weight[rows]).max())


def squares(y: Array, weight: Array) -> Callable[[Array], float]:
    return lambda rows: float(weight[rows] @ (y[rows] - np.average(y[rows], weights=weight[rows])) ** 2)


def table(seed: int, n: int, d: int, values: int, missing: float = 0.0) -> tuple[Array, Array, Array, Array]:
    """Rows, labels, numbers and weights."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, size=(n, d)).astype(float)
    X[rng.uniform(size=X.shape) < missing] = np.nan
    return X, rng.integers(0, 3, n), rng.normal(size=n), rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("alpha", [0.0, 0.03])
@pytest.mark.parametrize(("depth", "n", "values"), [(1, 50, 100), (2, 35, 50), (2, 50, 4), (3, 14, 6), (4, 9, 9)])
def test_no_tree_is_better(depth: int, n: int, values: int, alpha: float) -> None:
    for seed, missing in ((0, 0.0), (1, 0.2)):
        X, labels, y, weight = table(seed, n, 2, values, missing)
        total = weight.sum()
        tree = OptimalTreeClassifier(depth, alpha).fit(X, labels, weight)
        truth = best_of_all(X, wrong(labels, weight), depth, alpha * total) / total
        said = weight @ (tree.predict(X) != labels) / total + alpha * tree.n_leaves_
        assert tree.certificate_.objective == pytest.approx(truth, abs=1e-12)
        assert tree.certificate_.bound == pytest.approx(truth, abs=1e-12)
        assert said == pytest.approx(truth, abs=1e-12)
        grown = OptimalTreeRegressor(depth, alpha).fit(X, y, weight)
        truth = best_of_all(X, squares(y, weight), depth, alpha * total) / total
        said = weight @ (grown.predict(X) - y) ** 2 / total + alpha * grown.n_leaves_
        assert grown.certificate_.objective == pytest.approx(truth, abs=1e-9)
        assert truth - 2e-6 < grown.certificate_.bound <= truth + 1e-9
        assert said == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize(("count", "heavy"), [(2, 1.0), (2, 2.0**20), (2, 2.0**40), (5, 1.0)])
def test_every_kernel_finds_the_same(count: int, heavy: float) -> None:
    """Whole numbers of 16, 32 and 64 bits, two classes and more."""
    X, labels, _, weight = table(3, 200, 3, 1000)
    labels = labels % count if count < 3 else labels
    light = OptimalTreeClassifier(2, 0.0).fit(X, labels, weight)
    tree = OptimalTreeClassifier(2, 0.0).fit(X, labels, weight * heavy)
    assert light.certificate_.certified
    assert tree.certificate_.objective == pytest.approx(light.certificate_.objective, abs=1e-12)
    np.testing.assert_array_equal(tree.predict(X), light.predict(X))
    more = np.append(labels, 2) if count == 2 else labels
    if count == 2:  # a third class in one row costs at most that row
        third = OptimalTreeClassifier(2, 0.0).fit(np.vstack([X, X[:1]]), more, np.append(weight, 1.0))
        change = third.certificate_.objective * (weight.sum() + 1) - light.certificate_.objective * weight.sum()
        assert -1e-9 <= change <= 1 + 1e-9


def best_of_two_levels(X: Array, y: Array) -> int:
    """Fewest wrong labels of two classes, by all roots: all questions about one side at once by running sums."""
    orders = np.argsort(X, axis=0, kind="stable")
    ends = np.diff(np.take_along_axis(X, orders, axis=0), axis=0) != 0
    sign = np.where(y == 1, 1, -1)
    least = len(y)
    for j in range(X.shape[1]):
        for threshold in np.unique(X[:, j])[:-1]:
            total = 0
            for side in (X[:, j] <= threshold, X[:, j] > threshold):
                running = np.cumsum((sign * side)[orders], axis=0)[:-1][ends]
                ones = int(y[side].sum())
                zeros = int(side.sum()) - ones
                total += min(ones, zeros, ones - int(running.max()), zeros + int(running.min()))
            least = min(least, total)
    return least


def test_two_levels_of_many_rows() -> None:
    """More rows than cells: most thresholds are ruled out by bounds, none that matters."""
    X, y = load_breast_cancer(return_X_y=True)
    for columns in ([0, 1, 5, 8], [11, 14, 18], [22, 25]):
        tree = OptimalTreeClassifier(2, 0.0).fit(X[:, columns], y)
        assert tree.certificate_.objective * len(y) == pytest.approx(best_of_two_levels(X[:, columns], y))


def test_never_worse_than_greedy_and_better_somewhere() -> None:
    X, y = load_iris(return_X_y=True)
    greedy = DecisionTreeClassifier(criterion="misclassification", max_depth=3).fit(X, y)
    best = OptimalTreeClassifier(3).fit(X, y)
    assert best.certificate_.certified
    assert best.score(X, y) > greedy.score(X, y)
    X, y = load_diabetes(return_X_y=True)
    plain = DecisionTreeRegressor(max_depth=2).fit(X, y)
    exact = OptimalTreeRegressor(2).fit(X, y)
    assert exact.certificate_.certified
    assert exact.score(X, y) > plain.score(X, y)


def test_a_category_is_a_question_of_its_own() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 5, 120)
    X = np.column_stack([kind, rng.normal(size=120)])
    y = (kind == 2) | (kind == 4)
    tree = OptimalTreeClassifier(2, categorical_features=[0]).fit(X, y)
    assert tree.score(X, y) == 1.0
    assert "in {2}" in tree.rules()
    X[:20, 0] = np.nan
    y[:20] = True
    gaps = OptimalTreeClassifier(3, categorical_features=[0]).fit(X, y)
    assert gaps.score(X, y) == 1.0
    assert gaps.certificate_.claim == "best tree of depth 3"


def test_thresholds_at_quantiles_are_a_part_of_all() -> None:
    X, _, y, _ = table(5, 300, 3, 1000)
    every = OptimalTreeRegressor(2).fit(X, y).certificate_
    few = OptimalTreeRegressor(2, max_thresholds=4).fit(X, y).certificate_
    assert every.objective < few.objective
    assert few.claim == "best tree of depth 2 over at most 4 thresholds of a column"


def test_when_time_is_over_the_bound_is_true() -> None:
    X, labels, _, _ = table(6, 400, 5, 10_000)
    with pytest.warns(ConvergenceWarning, match="time_limit=0"):
        stopped = OptimalTreeClassifier(3, time_limit=0).fit(X, labels)
    whole = OptimalTreeClassifier(3, time_limit=None, tol=0.0).fit(X, labels)
    assert stopped.certificate_.bound <= whole.certificate_.objective <= stopped.certificate_.objective
    assert whole.certificate_.certified
    assert not stopped.certificate_.certified


@pytest.mark.parametrize("cls", [OptimalTreeClassifier, OptimalTreeRegressor])
def test_the_bar_tells_how_far_the_tree_is_from_the_best(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int, float]] = []
    monkeypatch.setattr(Progress, "update", lambda self, *given: told.append(given))
    X, labels, _, _ = table(6, 200, 4, 1000)
    cls(3, verbose=1).fit(X, labels % 2)
    assert told
    for before, after in pairwise(told):
        assert before[0] < after[0]
        assert before[2] >= after[2]
    for looked_at, known, gap in told:
        assert 0 < looked_at <= known
        assert 0.0 <= gap <= 1.0

    def stop(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "update", stop)
    with pytest.raises(KeyboardInterrupt):
        cls(3, verbose=1).fit(X, labels % 2)


@pytest.mark.parametrize("cls", [OptimalTreeClassifier, OptimalTreeRegressor])
def test_threads_and_order_do_not_matter(cls: type) -> None:
    X, labels, _, weight = table(7, 150, 4, 1000)
    y = labels % 2
    one = cls(3, n_jobs=1).fit(X, y, weight)
    two = cls(3, n_jobs=2).fit(X, y, weight)
    assert one.rules() == two.rules()
    shuffled = np.random.default_rng(0).permutation(len(y))
    other = cls(3).fit(X[shuffled], y[shuffled], weight[shuffled])
    assert other.certificate_.objective == pytest.approx(one.certificate_.objective, abs=1e-12)


def test_too_many_columns_are_refused_with_a_cure() -> None:
    with pytest.raises(ValueError, match=r"at most 400 columns .* SelectBest"):
        OptimalTreeClassifier(1).fit(np.random.default_rng(0).normal(size=(5, 401)), [0, 1, 0, 1, 1])
