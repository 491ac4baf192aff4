"""Trees of few rows, found from lists of rows, are those that histograms find."""

from __future__ import annotations

import numpy as np
import pytest
from tests.native.boosting.growers import make


def table(seed, n, values, d=9):
    """Bins with missing values in all columns but the first; some bins, the first ones among them, hold no row."""
    rng = np.random.default_rng(seed)
    bins = (rng.integers(2, values // 2, size=(n, d)) * 2 % values).astype(np.uint8)
    bins[rng.random((n, d)) < 0.1] = values
    bins[:, 0] = np.minimum(bins[:, 0], values - 1)
    g = rng.normal(size=n) + (bins[:, 1] > values // 3)
    return bins, np.full(d, values), g, rng.uniform(0.5, 2.0, size=n), rng


def both_ways(bins, n_bins, g, h, rows=None, active=None, sets=None, monotone=None, threads=1, **given):
    """The same tree of the columns alone, and beside columns of one bin, for which histograms cost less."""
    trees = []
    for extra in (0, 60 * bins.shape[1]):
        n, d = bins.shape[0], bins.shape[1] + extra
        wide = np.column_stack([bins, np.zeros((n, extra), dtype=np.uint8)])
        more = {}
        if monotone is not None:
            more["monotone"] = np.r_[monotone, np.zeros(extra)]
        if sets is not None:
            more["sets"] = np.column_stack([sets, np.zeros((len(sets), extra))])
        grower = make(wide, np.r_[n_bins, np.ones(extra, dtype=int)], threads=threads, **more, **given)
        grower.set_gradients(g, h)
        mask = np.zeros(d, dtype=np.uint8)
        mask[: bins.shape[1]] = 1 if active is None else active
        grower.grow(rows, mask)
        assert grower.by_lists == (extra == 0)
        trees.append((grower.tree(), grower.rows()))
    (one, order), (other, other_order) = trees
    assert one["feature"].shape[0] > 5
    np.testing.assert_array_equal(order, other_order)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    return one


@pytest.mark.parametrize(("n", "least"), [(300, 20.0), (1000, 20.0), (1500, 10.0)])
@pytest.mark.parametrize("threads", [1, 3])
def test_lists_and_histograms_find_the_same_tree(n, least, threads):
    bins, n_bins, g, h, _ = table(n, n, 255)
    tree = both_ways(bins, n_bins, g, h, threads=threads, min_samples_leaf=least, max_leaves=60)
    assert tree["missing_left"][tree["feature"] >= 0].any()


def test_lists_know_rows_features_and_the_curvature_of_squares():
    bins, n_bins, g, _, rng = table(1, 900, 200)
    rows = np.sort(rng.choice(900, 700, replace=False)).astype(np.uint32)
    active = (np.arange(9) % 3 < 2).astype(np.uint8)
    tree = both_ways(bins, n_bins, g, None, rows=rows, active=active, min_samples_leaf=10.0)
    assert (tree["feature"][tree["left"] >= 0] % 3 < 2).all()
    assert tree["count"][0] == 700


@pytest.mark.parametrize("whole", [True, False])
def test_lists_know_weights_and_categories(whole):
    bins, n_bins, g, h, rng = table(2, 600, 120)
    weight = rng.integers(1, 4, 600).astype(float) if whole else rng.uniform(0.1, 3.0, 600)
    tree = both_ways(bins, n_bins, g, h, weight=weight, categorical=[1, 3], min_samples_leaf=4.0, l2=0.5)
    assert (tree["category"] >= 0).any()


def test_lists_know_monotone_columns_and_interactions():
    bins, n_bins, g, h, _ = table(3, 600, 200)
    both_ways(bins, n_bins, g, h, monotone=np.array([0, 1, -1, 0, 0, 1, 0, 0, 0]), min_samples_leaf=5.0)
    sets = np.zeros((2, 9), dtype=np.uint8)
    sets[0, :4], sets[1, 3:] = 1, 1
    both_ways(bins, n_bins, g, h, sets=sets, min_samples_leaf=5.0)


def test_a_row_that_is_listed_twice_counts_twice():
    bins, n_bins, g, h, _ = table(4, 400, 200)
    listed = np.repeat(np.arange(200, dtype=np.uint32), 2)
    twice, once = (make(bins, n_bins, min_samples_leaf=least) for least in (20.0, 10.0))
    for grower, rows in ((twice, listed), (once, listed[::2].copy())):
        grower.set_gradients(g, h)
        grower.grow(rows, np.ones(9, dtype=np.uint8))
    assert not twice.by_lists
    assert once.by_lists
    for name in ("feature", "bin", "value"):
        np.testing.assert_array_equal(twice.tree()[name], once.tree()[name], err_msg=name)
