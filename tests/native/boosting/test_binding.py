"""Histogram trees against a brute-force search, and the strict boundary of the kernels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.native.boosting.growers import OPTIONS, grower_table, make, small

from certifit._native import boosting
from certifit.representation.table.binning import Binner


def sides(bins, n_bins, j, categorical):
    """Every way to send the bins of a column left."""
    values = range(n_bins[j])
    if categorical:
        everything = range(n_bins[j] + 1)
        for size in range(1, n_bins[j] + 1):
            yield from (set(s) for s in itertools.combinations(everything, size))
        return
    for t in values:
        yield set(range(t + 1))
        yield set(range(t + 1)) | {n_bins[j]}


def clipped(G, H, l2, low, high):
    v = np.clip(-G / (H + l2), low, high)
    return v, -(2 * G * v + (H + l2) * v * v)


def brute(bins, n_bins, g, h, w, rows, options, categorical=(), monotone=None, bounds=(-np.inf, np.inf)):
    """The best gain of a node over all splits."""
    l2, least = options["l2"], options["min_samples_leaf"]
    G, H = (g * w)[rows].sum(), (h * w)[rows].sum()
    whole = clipped(G, H, l2, *bounds)[1]
    best = 0.0
    for j in range(bins.shape[1]):
        for left in sides(bins, n_bins, j, j in categorical):
            goes = np.isin(bins[rows, j], list(left))
            L, R = rows[goes], rows[~goes]
            if not len(L) or not len(R) or w[L].sum() < least or w[R].sum() < least:
                continue
            a, gain_a = clipped((g * w)[L].sum(), (h * w)[L].sum(), l2, *bounds)
            b, gain_b = clipped((g * w)[R].sum(), (h * w)[R].sum(), l2, *bounds)
            if monotone is not None and monotone[j] * (b - a) < 0:
                continue
            best = max(best, gain_a + gain_b - whole)
    return 0.5 * best


def goes_left(tree, v, b, n_bins):
    j = tree["feature"][v]
    if tree["category"][v] >= 0:
        return bool((int(tree["sets"][4 * tree["category"][v] + b // 64]) >> (b % 64)) & 1)
    return bool(tree["missing_left"][v]) if b == n_bins[j] else b <= tree["bin"][v]


def check_tree(grower, bins, n_bins, g, h, w, options, **constraints):
    """Every split is as good as the best one, leaves are Newton's, and growth took the best leaf first."""
    tree = grower.tree()
    rows = {0: np.arange(bins.shape[0])}
    bounds = {0: (-np.inf, np.inf)}
    monotone = constraints.get("monotone")
    possible = {}
    for v in range(tree["feature"].shape[0]):
        here = rows[v]
        G, H = (g * w)[here].sum(), (h * w)[here].sum()
        assert tree["count"][v] == pytest.approx(w[here].sum(), rel=1e-5)
        assert tree["gradient"][v] == pytest.approx(G, abs=1e-8)
        assert tree["curvature"][v] == pytest.approx(H, rel=1e-6)
        possible[v] = brute(bins, n_bins, g, h, w, here, options, bounds=bounds[v], **constraints)
        if tree["feature"][v] < 0:
            assert tree["value"][v] == pytest.approx(clipped(G, H, options["l2"], *bounds[v])[0], abs=1e-7)
            continue
        assert tree["gain"][v] == pytest.approx(possible[v], rel=1e-6, abs=1e-9)
        left = np.array([goes_left(tree, v, int(b), n_bins) for b in bins[here, tree["feature"][v]]])
        a, b = tree["left"][v], tree["right"][v]
        rows[a], rows[b] = here[left], here[~left]
        bounds[a] = bounds[b] = bounds[v]
        direction = 0 if monotone is None else monotone[tree["feature"][v]]
        if direction:
            value = [
                clipped((g * w)[rows[c]].sum(), (h * w)[rows[c]].sum(), options["l2"], *bounds[v])[0] for c in (a, b)
            ]
            below, above = (a, b) if direction > 0 else (b, a)
            bounds[below] = (bounds[v][0], np.mean(value))
            bounds[above] = (np.mean(value), bounds[v][1])
    inner = np.flatnonzero(tree["feature"] >= 0)
    leaves = np.flatnonzero(tree["feature"] < 0)
    if len(leaves) < options["max_leaves"]:
        assert all(possible[v] <= 1e-9 for v in leaves if len(rows[v]) > 1)
    elif len(inner):
        last = inner[np.argmax(tree["left"][inner])]
        waiting = [v for v in leaves if v not in (tree["left"][last], tree["right"][last])]
        assert all(possible[v] <= tree["gain"][last] + 1e-9 for v in waiting)
    found = np.empty(bins.shape[0], dtype=int)
    for v in leaves:
        found[rows[v]] = v
    np.testing.assert_array_equal(grower.route(np.arange(bins.shape[0], dtype=np.uint32)), found)
    return tree


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("l2", [0.0, 3.0])
@pytest.mark.parametrize("least", [1.0, 7.0])
@pytest.mark.parametrize("max_leaves", [5, 64])
def test_every_numeric_split_is_the_best_one(seed, l2, least, max_leaves):
    bins, n_bins, g, h, _ = small(seed)
    options = {**OPTIONS, "l2": l2, "min_samples_leaf": least, "max_leaves": max_leaves}
    grower = make(bins, n_bins, **options)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(4, dtype=np.uint8))
    tree = check_tree(grower, bins, n_bins, g, h, np.ones(60), options)
    assert (tree["feature"] < 0).sum() > 3


@pytest.mark.parametrize("seed", range(3))
def test_every_categorical_split_is_the_best_partition(seed):
    bins, n_bins, g, h, _ = small(seed, n=40, d=2, levels=5)
    options = {**OPTIONS, "max_leaves": 6}
    grower = make(bins, n_bins, categorical=[0, 1], **options)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(2, dtype=np.uint8))
    check_tree(grower, bins, n_bins, g, h, np.ones(40), options, categorical=(0, 1))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("monotone", [[1, -1, 0, 1], [-1, -1, -1, -1]])
def test_monotone_splits_and_bounds(seed, monotone):
    bins, n_bins, g, h, _ = small(seed)
    bins = np.minimum(bins, 5)
    options = {**OPTIONS, "max_leaves": 10, "min_samples_leaf": 3.0}
    grower = make(bins, n_bins, monotone=monotone, **options)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(4, dtype=np.uint8))
    check_tree(grower, bins, n_bins, g, h, np.ones(60), options, monotone=monotone)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("whole", [True, False])
def test_weights(seed, whole):
    bins, n_bins, g, h, rng = small(seed)
    w = rng.integers(1, 5, 60).astype(float) if whole else rng.uniform(0.1, 3, 60)
    options = {**OPTIONS, "min_samples_leaf": 4.0, "max_leaves": 8}
    grower = make(bins, n_bins, weight=w, **options)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(4, dtype=np.uint8))
    tree = check_tree(grower, bins, n_bins, g, h, w, options)
    if whole:
        copies = np.repeat(np.arange(60), w.astype(int))
        other = make(bins[copies], n_bins, **options)
        other.set_gradients(g[copies], h[copies])
        other.grow(None, np.ones(4, dtype=np.uint8))
        for name in ("feature", "bin", "left", "value", "gain", "count", "missing_left"):
            np.testing.assert_array_equal(tree[name], other.tree()[name])


def test_depth_features_rows_and_interactions():
    bins, n_bins, g, h, _ = small(0, n=200)
    grower = make(bins, n_bins, max_depth=2)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(4, dtype=np.uint8))
    assert (grower.tree()["feature"] < 0).sum() == 4
    grower = make(bins, n_bins)
    grower.set_gradients(g, h)
    grower.grow(None, np.array([0, 1, 0, 0], dtype=np.uint8))
    assert set(grower.tree()["feature"]) == {-1, 1}
    rows = np.arange(0, 200, 2, dtype=np.uint32)
    grower.grow(rows, np.ones(4, dtype=np.uint8))
    assert grower.tree()["count"][0] == 100
    assert set(grower.rows()) == set(rows)
    grower = make(bins, n_bins, sets=[[1, 1, 0, 0], [0, 0, 1, 1]], max_leaves=40)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(4, dtype=np.uint8))
    tree = grower.tree()
    path = {0: set()}
    for v in np.flatnonzero(tree["feature"] >= 0):
        path[tree["left"][v]] = path[tree["right"][v]] = path[v] | {int(tree["feature"][v])}
    assert all(p <= {0, 1} or p <= {2, 3} for p in path.values())
    assert len({frozenset(p) for p in path.values()}) == 3  # none, one column, both of a set


def grown(X, g, h, threads, **options):
    binner = Binner().fit(X)
    grower = make(binner.transform(X), binner.n_bins_, threads=threads, **options)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(X.shape[1], dtype=np.uint8))
    return grower


@pytest.mark.parametrize("d", [1, 9])
@pytest.mark.parametrize("n", [3000, 30000])
@pytest.mark.parametrize("curved", [True, False])
def test_threads_and_row_order_do_not_change_a_tree(n, d, curved):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    g = np.sin(3 * X[:, 0]) + rng.normal(size=n)
    h = rng.uniform(0.1, 1, size=n) if curved else None
    one = grown(X, g, h, 1, min_samples_leaf=20)
    assert one.narrow == (n > 8192)
    score = np.zeros(n)
    one.add_to(score, 0.1)
    shuffle = rng.permutation(n)
    for threads in (2, 3):
        other = grown(X, g, h, threads, min_samples_leaf=20)
        for name, values in one.tree().items():
            np.testing.assert_array_equal(values, other.tree()[name])
        np.testing.assert_array_equal(one.rows(), other.rows())
        again = np.zeros(n)
        other.add_to(again, 0.1)
        np.testing.assert_array_equal(score, again)
    mixed = grown(X[shuffle], g[shuffle], None if h is None else h[shuffle], 2, min_samples_leaf=20)
    for name in ("feature", "bin", "value", "gain", "count"):
        np.testing.assert_array_equal(one.tree()[name], mixed.tree()[name])


@pytest.mark.parametrize("tail", [False, True])
def test_quantized_sums_are_close(tail):
    rng = np.random.default_rng(1)
    n = 50000
    X = rng.normal(size=(n, 3))
    g = X[:, 0] + rng.normal(size=n)
    if tail:
        g[:3] = 1e6
    h = rng.uniform(0.5, 1.0, size=n)
    grower = grown(X, g, h, 2)
    assert grower.narrow != tail
    tree = grower.tree()
    assert tree["gradient"][0] == pytest.approx(g.sum(), abs=3e-5 * np.abs(g).sum())
    assert tree["curvature"][0] == pytest.approx(h.sum(), rel=1e-4)
    assert tree["count"][0] == n
    for v in np.flatnonzero(tree["feature"] < 0)[:5]:
        rows = grower.rows()[tree["begin"][v] : tree["end"][v]]
        assert tree["value"][v] == pytest.approx(-g[rows].sum() / h[rows].sum(), rel=2e-3, abs=1e-4)


def test_known_gradients_are_those_of_the_losses():
    rng = np.random.default_rng(0)
    for n in (500, 20000):
        X = rng.normal(size=(n, 3))
        f, y = 3 * rng.normal(size=n), (rng.random(n) < 0.5).astype(float)
        f[:4] = [800, -800, 40, -40]
        p = 1 / (1 + np.exp(np.clip(-f, -700, 700)))
        binner = Binner().fit(X)
        pair = []
        for known in (True, False):
            grower = make(binner.transform(X), binner.n_bins_, min_samples_leaf=5, min_curvature=1e-3)
            if known:
                grower.set_logistic(f, y)
            else:
                grower.set_gradients(p - y, p * (1 - p))
            grower.grow(None, np.ones(3, dtype=np.uint8))
            pair.append(grower.tree())
        np.testing.assert_allclose(pair[0]["gradient"][0], (p - y).sum(), rtol=1e-9 if n == 500 else 1e-2, atol=1e-8)
        if n == 500:
            np.testing.assert_array_equal(pair[0]["feature"], pair[1]["feature"])
            np.testing.assert_allclose(pair[0]["value"], pair[1]["value"], rtol=1e-6, atol=1e-9)


def test_leaves_of_piecewise_linear_losses():
    rng = np.random.default_rng(0)
    bins, n_bins, g, h, _ = small(0)
    grower = make(bins, n_bins, max_leaves=6, min_samples_leaf=4)
    grower.set_gradients(g, h)
    grower.grow(None, np.ones(4, dtype=np.uint8))
    tree = grower.tree()
    a, width = rng.normal(size=60).round(1), rng.uniform(0, 1, 60) * rng.integers(0, 2, 60)
    down, up = rng.integers(0, 3, 60).astype(float), rng.integers(0, 3, 60).astype(float)
    b = a + width
    leaves = np.flatnonzero(tree["feature"] < 0).astype(np.int32)
    for l2 in (0.0, 2.0):
        found = grower.hinge_values(a, b, down, up, leaves, l2)
        for v, value in zip(leaves, found, strict=True):
            r = grower.rows()[tree["begin"][v] : tree["end"][v]]

            def cost(t, r=r, l2=l2):
                t = np.atleast_1d(t)[:, None]
                total = (up[r] * np.maximum(t - b[r], 0) + down[r] * np.maximum(a[r] - t, 0)).sum(axis=1)
                return total + 0.5 * l2 * t[:, 0] ** 2

            grid = np.concatenate([a[r], b[r], np.linspace(-4, 4, 4001), [0.0]])
            assert cost(value)[0] <= cost(grid).min() + 1e-9


def forest_of(trees, missing, outputs=1):
    sizes = [len(t["feature"]) for t in trees]
    n_sets = np.cumsum([0] + [len(t["sets"]) // 4 for t in trees])
    category = [np.where(t["category"] >= 0, t["category"] + s, -1) for t, s in zip(trees, n_sets, strict=False)]

    def joined(name, dtype):
        return np.concatenate([t[name] for t in trees]).astype(dtype)

    return boosting.Forest(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        joined("feature", np.int32),
        joined("left", np.int32),
        joined("right", np.int32),
        np.concatenate(category).astype(np.int32),
        joined("bin", np.uint8),
        joined("missing_left", np.uint8),
        joined("value", np.float64),
        joined("sets", np.uint64),
        np.asarray(missing, dtype=np.uint8),
        outputs,
    )


@pytest.mark.parametrize("max_leaves", [2, 31, 256, 700])
def test_predictions_follow_the_trees(max_leaves):
    rng = np.random.default_rng(0)
    n = 2500
    X = rng.normal(size=(n, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 30, n)
    binner = Binner(categorical=[3]).fit(X)
    bins = binner.transform(X)
    trees = []
    for _ in range(6):
        grower = make(bins, binner.n_bins_, categorical=[3], max_leaves=max_leaves, min_samples_leaf=2.0)
        grower.set_gradients(rng.normal(size=n) + X[:, 3], None)
        grower.grow(None, np.ones(5, dtype=np.uint8))
        trees.append(grower.tree())
        assert (trees[-1]["feature"] < 0).sum() == max_leaves
    new = rng.normal(size=(1111, 5))
    new[rng.random(new.shape) < 0.1] = np.nan
    new[:, 3] = rng.integers(-3, 35, 1111)
    new_bins = binner.transform(new)
    wanted = np.zeros((1111, 2))
    nodes = np.zeros((1111, 6), dtype=int)
    for t, tree in enumerate(trees):
        for i in range(1111):
            v = 0
            while tree["feature"][v] >= 0:
                side = goes_left(tree, v, int(new_bins[i, tree["feature"][v]]), binner.n_bins_)
                v = tree["left"][v] if side else tree["right"][v]
            wanted[i, t % 2] += tree["value"][v]
            nodes[i, t] = v
    forest = forest_of(trees, binner.n_bins_, outputs=2)
    for X_new in (new, np.asfortranarray(new)):
        for threads in (1, 2):
            out = np.zeros(2222)
            forest.predict(X_new, *binner.tables(), 0, 6, out, threads)
            np.testing.assert_array_equal(out.reshape(-1, 2), wanted)
    out = np.zeros(2222)
    forest.predict_bins(new_bins, 0, 3, out, 1)
    forest.predict_bins(new_bins, 3, 6, out, 2)
    np.testing.assert_array_equal(out.reshape(-1, 2), wanted)
    found = np.empty(1111 * 6, dtype=np.int32)
    forest.apply(new_bins, found, 2)
    np.testing.assert_array_equal(found.reshape(-1, 6), nodes)


def test_the_boundary_refuses_what_it_cannot_use():
    bins, n_bins, g, h, _ = small(0)
    with pytest.raises(ValueError, match="out of bounds"):
        make(bins, n_bins - 2)
    with pytest.raises(ValueError, match="weight"):
        make(bins, n_bins, weight=np.zeros(60))
    with pytest.raises(ValueError, match="length"):
        make(bins, n_bins, monotone=[1])
    with pytest.raises(ValueError, match="option"):
        make(bins, n_bins, l2=-1.0)
    grower = make(bins, n_bins)
    with pytest.raises(ValueError, match="gradients first"):
        grower.grow(None, np.ones(4, dtype=np.uint8))
    with pytest.raises(ValueError, match="length"):
        grower.set_gradients(g[:-1].copy(), None)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="finite"):
            grower.set_gradients(np.where(np.arange(60) == 7, bad, g), h)
    with pytest.raises(ValueError, match="finite"):
        grower.set_gradients(g, -h)
    with pytest.raises(TypeError):
        grower.set_gradients(g.astype(np.float32), None)
    grower.set_gradients(g, h)
    with pytest.raises(ValueError, match="row"):
        grower.grow(np.array([60], dtype=np.uint32), np.ones(4, dtype=np.uint8))
    grower.grow(None, np.ones(4, dtype=np.uint8))
    with pytest.raises(ValueError, match="row"):
        grower.route(np.array([60], dtype=np.uint32))
    tree = grower.tree()
    broken = {**tree, "left": np.zeros_like(tree["left"])}
    with pytest.raises(ValueError, match="not a tree"):
        forest_of([broken], n_bins)
    forest = forest_of([tree], n_bins)
    with pytest.raises(ValueError, match="columns"):
        forest.predict_bins(np.zeros((3, 3), dtype=np.uint8, order="F"), 0, 1, np.zeros(3), 1)
    with pytest.raises(ValueError, match="out of bounds"):
        forest.predict_bins(np.zeros((3, 4), dtype=np.uint8, order="F"), 0, 2, np.zeros(3), 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [300, 20_000])
def test_softmax_gradients_of_all_classes_share_one_pass(dtype, n):
    rng = np.random.default_rng(0)
    K = 5
    scores = np.asfortranarray(rng.normal(scale=3.0, size=(n, K)).astype(dtype))
    y = rng.integers(0, K, size=n)
    grower = make(np.zeros((n, 1), dtype=np.uint8), [1])
    total = np.empty(n, dtype=dtype)
    grower.log_sum_exp(scores, total)
    exact = np.logaddexp.reduce(scores.astype(float), axis=1)
    np.testing.assert_allclose(total, exact, atol=1e-14 if dtype is np.float64 else 1e-6)
    p = np.exp(scores - exact[:, None])
    for k in range(K):
        for labels in (y.astype(np.uint8), y.astype(np.int32)):
            grower.set_softmax(scores[:, k], labels, total, k)
            grower.grow(None, np.ones(1, dtype=np.uint8))
            tree = grower.tree()
            # With many rows units are 2^−14; curvatures near zero are all rounded the same way.
            np.testing.assert_allclose(tree["gradient"][0], (p[:, k] - (y == k)).sum(), atol=3e-5 * n)
            np.testing.assert_allclose(tree["curvature"][0], (p[:, k] * (1 - p[:, k])).sum(), atol=3e-5 * n)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n", [5, 1023, 5000, 40_001])
def test_rows_are_dealt_in_their_order(n, threads):
    """Large nodes are dealt in parts; every leaf must still hold its rows in increasing order."""
    rng = np.random.default_rng(n)
    bins = rng.integers(0, 10, size=(n, 3)).astype(np.uint8)
    grower = make(bins, [10, 10, 10], threads=threads, max_leaves=12)
    grower.set_gradients(rng.normal(size=n) + bins[:, 0] % 3 + 2.0 * (bins[:, 1] > 4), None)
    grower.grow(None, np.ones(3, dtype=np.uint8))
    tree, rows = grower.tree(), grower.rows()
    assert sorted(rows.tolist()) == list(range(n))
    leaf = grower.route(np.arange(n, dtype=np.uint32))
    for v in np.flatnonzero(tree["feature"] < 0):
        own = rows[tree["begin"][v] : tree["end"][v]]
        np.testing.assert_array_equal(own, np.flatnonzero(leaf == v))
        np.testing.assert_array_equal(own, grower.rows_between(int(tree["begin"][v]), int(tree["end"][v])))
    with pytest.raises(ValueError, match="out of bounds"):
        grower.rows_between(0, n + 1)


def test_scores_of_both_precisions_and_small_targets():
    rng = np.random.default_rng(0)
    n = 9000
    bins = rng.integers(0, 20, size=(n, 2)).astype(np.uint8)
    y = (rng.random(n) < 0.3).astype(np.uint8)
    values = []
    for f, target in ((np.zeros(n), y.astype(float)), (np.zeros(n, dtype=np.float32), y)):
        grower = make(bins, [20, 20], max_leaves=6)
        grower.set_logistic(f, target)
        assert grower.narrow
        grower.grow(None, np.ones(2, dtype=np.uint8))
        grower.add_to(f, 0.5)
        values.append(f)
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)
    one = boosting.Grower(grower_table(bins), np.array([2.0]), 1)
    many = boosting.Grower(grower_table(bins), np.full(n, 2.0), 1)
    counts = []
    for grower in (one, many):
        grower.set_options(**OPTIONS)
        grower.set_squared(np.zeros(n), y)
        grower.grow(None, np.ones(2, dtype=np.uint8))
        counts.append(grower.tree()["count"])
    np.testing.assert_array_equal(*counts)
    assert counts[0][0] == 2 * n
    with pytest.raises(ValueError, match="must be float64"):
        one.set_squared(np.zeros(n), np.zeros(n, dtype=np.int16))
    with pytest.raises(ValueError, match="y has length"):
        one.set_squared(np.zeros(n), np.zeros(3))
