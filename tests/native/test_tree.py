"""The native kernels of trees and forests, called directly: every path once, and refusal of bad arrays."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from typing import Any

import certifit._native.tree as native
import numpy as np
import pytest

NONE, ONE = np.empty(0), np.ones(1)
LABELS = np.zeros(2, dtype=np.uint16)
CLASSES = ("gini", "entropy", "misclassification")


def encoded(X: np.ndarray, *, bins: int = 0, presort: bool = True, categorical: Any = (), threads: int = 1) -> Any:
    flags = np.zeros(X.shape[1], dtype=np.uint8)
    flags[list(categorical)] = 1
    return native.encode(X, NONE, flags, bins, presort, threads)


def counts(*classes: int) -> np.ndarray:
    return np.array(classes, dtype=np.int32)


def target(criterion: str, y: np.ndarray, w: np.ndarray | None = None) -> Any:
    w = np.ones(y.shape[0]) if w is None else w
    integral = bool((w == np.floor(w)).all() and w.sum() <= 2**26)
    if criterion in CLASSES:
        k = int(y.max()) + 1
        return native.Target(criterion, y.astype(np.uint16), counts(k), NONE, NONE, w, np.ones(k), ONE, integral, 1.0)
    fixed = np.rint(y * 2.0**20)
    unit = {"squared": 2.0**-40, "absolute": 2.0**-20, "poisson": 2.0**-20}[criterion]
    moment = fixed if criterion == "absolute" else w * fixed
    none = np.empty(0, dtype=np.uint16)
    return native.Target(criterion, none, counts(1), y, moment, w, np.ones(1), ONE, integral, unit)


def options(d: int, **given: Any) -> Any:
    base = {
        "max_depth": 1 << 30,
        "min_split": 2.0,
        "min_leaf": 1.0,
        "min_fraction": 0.0,
        "max_leaves": 0,
        "min_decrease": 0.0,
        "max_features": d,
        "drawn": False,
        "monotone": np.empty(0, dtype=np.int8),
        "threads": 1,
    }
    return native.Options(**{**base, **given})


def grow(table: Any, what: Any, how: Any, trees: int = 1, draws: int = 0, n: int = 0) -> Any:
    seeds = np.arange(trees, dtype=np.uint64)
    return native.grow(table, what, how, seeds, draws, NONE, np.arange(n if draws else 0, dtype=np.uint32))


def forest(grown: Any, categories: np.ndarray) -> Any:
    return native.Forest(*grown[:4], categories)


@pytest.mark.parametrize("criterion", [*CLASSES, "squared", "absolute", "poisson"])
@pytest.mark.parametrize("values", [20, 300, 70_000])
@pytest.mark.parametrize("features", [4, 2])
def test_every_kind_of_code_and_statistic(criterion: str, values: int, features: int) -> None:
    # 8, 16 and 32 bits a code; all features (rows sorted once) or some (sorted in the nodes); missing values
    # and categories.
    rng = np.random.default_rng(0)
    n = 300 if values < 70_000 else 70_000
    X = rng.permutation(np.arange(n * 4) % values).reshape(n, 4).astype(float)
    X[rng.uniform(size=X.shape) < 0.05] = np.nan
    X[:, 3] = rng.integers(0, 9, n)
    y = rng.integers(0, 3, n).astype(float)
    table = encoded(X, presort=features == 4, categorical=[3], threads=2)
    grown = grow(table, target(criterion, y), options(4, max_features=features, max_depth=4, threads=2))
    found = forest(grown, np.array([0, 0, 0, 9], dtype=np.uint32))
    said = native.predict(found, grown[4], X, 2)
    alone = native.predict(found, grown[4], X[:1], 1)
    assert np.array_equal(said[:1], alone)
    leaf = native.apply(found, X, 1)[:, 0]
    assert np.array_equal(grown[4][leaf], said)
    # The weight of a leaf is the number of rows it holds: rows were divided as they are predicted.
    assert np.array_equal(np.bincount(leaf, minlength=grown[6].shape[0])[np.unique(leaf)], grown[6][np.unique(leaf)])
    single = native.predict(found, grown[4], X.astype(np.float32), 1)
    assert single.shape == said.shape


def some_rows(n: int, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """Ties, missing values, a column of few values and one of categories."""
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(n, 5)), 2).astype(dtype)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 1], X[:, 3] = rng.normal(size=n), rng.integers(0, 4, n)
    X[:, 4] = rng.integers(0, 9, n)
    return X, rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("criterion", [*CLASSES, "squared", "absolute", "poisson"])
@pytest.mark.parametrize("draws", [0, 500])
def test_rows_sorted_once_grow_the_tree_of_codes(criterion: str, draws: int) -> None:
    X, y = some_rows(700)
    how, what = options(5, threads=2), target(criterion, y)
    trees = [
        grow(encoded(X, presort=presort, categorical=[4]), what, how, trees, draws, 700)
        for presort, trees in ((False, 1), (True, 1), (True, 2))
    ]
    for other in trees[1:]:
        for one, same in zip(trees[0][:-1], other[:-1], strict=True):
            assert np.array_equal(one, same[: len(one)], equal_nan=True)
    assert trees[2][2].shape == (3,)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bins", [0, 20])
def test_any_layout_of_the_rows_grows_the_same_tree(dtype: Any, bins: int) -> None:
    X, y = some_rows(600, dtype)
    wide = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)
    trees = []
    for same in (X, np.asfortranarray(X), wide[::2, ::3], np.ascontiguousarray(X[::-1])[::-1]):
        table = encoded(same, bins=bins, presort=bins == 0, categorical=[4])
        assert table.missing.tolist() == [1, 0, 1, 0, 0]
        trees.append(grow(table, target("squared", y), options(5)))
    for other in trees[1:]:
        assert all(np.array_equal(one, same) for one, same in zip(trees[0], other, strict=True))


def test_bins_are_no_more_than_asked_for() -> None:
    X = np.stack([np.arange(100.0), np.arange(100.0) % 7], axis=1)
    grown = grow(encoded(X, bins=10, presort=False), target("squared", np.arange(100.0)), options(2))
    assert (grown[0].shape[0] + 1) // 2 <= 10 * 7
    assert np.unique(grown[0][grown[0][:, 1] >> 32 != np.arange(grown[0].shape[0]), 0]).shape[0] <= 9 + 6


def test_a_sorted_table_is_for_one_growth_with_every_feature() -> None:
    X = np.random.default_rng(5).normal(size=(300, 3))
    table, what = encoded(X), target("squared", X.sum(axis=1))
    for some in ({"max_features": 2}, {"drawn": True}):
        with pytest.raises(ValueError, match="every feature"):
            grow(table, what, options(3, **some))
    grow(table, what, options(3), 2)
    grow(table, what, options(3))
    with pytest.raises(ValueError, match="used up"):
        grow(table, what, options(3))


@pytest.mark.parametrize("weights", ["integers", "reals"])
@pytest.mark.parametrize("leaves", [0, 7])
def test_weights_monotone_and_best_first(weights: str, leaves: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 3))
    w = rng.integers(1, 5, 500).astype(float) if weights == "integers" else np.rint(rng.uniform(1, 2**40, 500)) + 0.0
    for criterion, y in itertools.product(
        ("gini", "entropy", "squared", "absolute", "poisson"), [rng.integers(0, 2, 500).astype(float)]
    ):
        signs = np.array([1, 0, -1], dtype=np.int8)
        how = options(3, monotone=signs, max_leaves=leaves, min_leaf=5.0, threads=2)
        what = target(criterion, y, w) if criterion in CLASSES or weights == "integers" else target(criterion, y)
        grown = grow(encoded(X, threads=2), what, how)
        assert grown[0].shape[0] % 2 == 1
        assert leaves == 0 or (grown[0].shape[0] + 1) // 2 <= leaves


def test_forest_kernels() -> None:
    rng = np.random.default_rng(2)
    n = 257  # not a multiple of 8: the last byte of a bag is partly used
    X = rng.normal(size=(n, 5))
    y = (X[:, 0] > 0).astype(float)
    grown = grow(encoded(X, bins=16, presort=False), target("gini", y), options(5, max_features=2, threads=2), 9, n, n)
    found = forest(grown, np.zeros(5, dtype=np.uint32))
    bags = grown[8]
    assert bags.shape == (9, 33)
    sums, trees, curve = native.out_of_bag(found, grown[4], X, bags, y[:, None], counts(2), np.ones(n), 2)
    drawn = np.unpackbits(bags, axis=1, bitorder="little")
    assert not drawn[:, n:].any()
    assert np.array_equal(trees, 9 - drawn[:, :n].sum(axis=0))
    assert curve.shape == (9,)
    assert sums.shape == (n, 2)
    importance = native.permutation_importance(found, grown[4], X, bags, y[:, None], counts(2), np.ones(n), 1, 2)
    assert importance.mean(axis=0).argmax() == 0


def test_codes_group_neighbors_evenly() -> None:
    rng = np.random.default_rng(3)
    X = rng.exponential(size=(5000, 1))
    for bins in (2, 10, 255):
        table = encoded(X, bins=bins, presort=False)
        y = (X[:, 0] > np.median(X)).astype(float)
        grown = grow(table, target("gini", y), options(1, max_depth=1))
        cut = grown[0][0, 0].view(np.float64)
        assert abs(np.mean(X[:, 0] <= cut) - 0.5) < 1 / bins + 0.01


def test_weakest_links_of_a_chain() -> None:
    left = np.array([1, 1, 3, 3, 4], dtype=np.int32)
    risk = np.array([1.0, 0.1, 0.6, 0.1, 0.2])
    # Node 2: (0.6 − 0.3)/1 = 0.3; the root: (1 − 0.4)/2 = 0.3 as well.
    np.testing.assert_allclose(native.weakest_links(left, risk)[[0, 2]], 0.3)
    with pytest.raises(ValueError, match="behind"):
        native.weakest_links(np.array([1, 0, 2], dtype=np.int32), np.ones(3))


def test_bad_arrays_are_refused() -> None:
    X = np.asfortranarray(np.arange(8.0).reshape(4, 2))
    table = encoded(X)
    y = np.array([0.0, 1.0, 0.0, 1.0])
    what, how = target("gini", y), options(2)
    with pytest.raises(ValueError, match="categorical"):
        native.encode(X, NONE, np.zeros(3, dtype=np.uint8), 0, True, 1)
    with pytest.raises(ValueError, match="label"):
        native.Target(
            "gini", np.array([0, 5], dtype=np.uint16), counts(2), NONE, NONE, np.ones(2), np.ones(2), ONE, True, 1.0
        )
    with pytest.raises(ValueError, match="weight"):
        native.Target("gini", LABELS, counts(1), NONE, NONE, np.array([1.0, np.nan]), np.ones(1), ONE, True, 1.0)
    with pytest.raises(ValueError, match="criterion"):
        native.Target("deviance", LABELS, counts(1), NONE, NONE, np.ones(2), np.ones(1), ONE, True, 1.0)
    with pytest.raises(ValueError, match="weight"):
        grow(table, target("gini", y[:3]), how)
    with pytest.raises(ValueError, match="monotone"):
        grow(table, what, options(2, monotone=np.zeros(1, dtype=np.int8)))
    with pytest.raises(ValueError, match="order"):
        native.grow(table, what, how, np.zeros(1, dtype=np.uint64), 4, NONE, np.array([0, 1, 2, 9], dtype=np.uint32))
    with pytest.raises(TypeError):
        native.encode(np.ones((3, 2), dtype=np.int64), NONE, np.zeros(2, dtype=np.uint8), 0, True, 1)
    grown = grow(table, what, how)
    levels = np.zeros(2, dtype=np.uint32)
    for node, word in ((0, 1 << 40), (0, 0), (1, (1 << 32) | 7)):
        broken = grown[0].copy()
        broken[node, 1] = word
        with pytest.raises(ValueError):
            native.Forest(broken, *grown[1:4], levels)
    found = forest(grown, levels)
    with pytest.raises(ValueError, match="row of X"):
        native.predict(found, grown[4], np.ones((2, 3)), 1)
    with pytest.raises(ValueError, match="values"):
        native.predict(found, grown[4][:1], np.ones((2, 2)), 1)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_an_interrupt_stops_the_growth() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 20)), rng.integers(0, 2, 20_000).astype(float)
    table, what = encoded(X, bins=255, presort=False), target("gini", y)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        grow(table, what, options(20, max_features=4, threads=2), 4000, 20_000, 20_000)
    timer.join()
    assert time.perf_counter() - began < 20
