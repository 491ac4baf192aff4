"""Bins of columns: edges from the weighted distribution of distinct values, bytes by a search."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certifit.representation.table.binning import Binner


def reference(binner, X):
    out = np.empty(X.shape, dtype=np.uint8)
    for j in range(X.shape[1]):
        column = X[:, j].astype(np.float64)
        if binner.categories_[j] is None:
            out[:, j] = np.searchsorted(binner.edges_[j], column, side="left")
        else:
            match = column[:, None] == binner.categories_[j][None, :]
            out[:, j] = np.where(match.any(axis=1), match.argmax(axis=1), binner.n_bins_[j])
        out[np.isnan(column), j] = binner.n_bins_[j]
    return out


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    X[:, 1] = np.round(X[:, 1])
    X[::5, 2] = np.nan
    X[:, 3] = np.exp(3 * X[:, 3])
    X[:, 4] = np.where(rng.random(3000) < 0.9, 0.0, X[:, 4])
    X[:, 5] = rng.integers(0, 40, 3000)
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_bins", [2, 3, 16, 64, 255])
@pytest.mark.parametrize("order", ["C", "F"])
def test_bins_count_the_edges_below(table, dtype, max_bins, order):
    X = np.asarray(table.astype(dtype), order=order)
    binner = Binner(max_bins, categorical=[5]).fit(X)
    bins = binner.transform(X)
    assert bins.dtype == np.uint8
    assert bins.flags.f_contiguous
    np.testing.assert_array_equal(bins, reference(binner, X))
    assert (binner.n_bins_ <= max_bins).all()
    np.testing.assert_array_equal(bins, binner.transform(X[::-1])[::-1])
    np.testing.assert_array_equal(bins, binner.transform(X, n_threads=2))
    new = np.random.default_rng(1).normal(scale=5, size=(777, 6)).astype(dtype)
    np.testing.assert_array_equal(binner.transform(new), reference(binner, new))


def test_float32_rows_fall_where_their_float64_values_fall(table):
    binner = Binner(255).fit(table)
    X = table.astype(np.float32)
    np.testing.assert_array_equal(binner.transform(X), binner.transform(X.astype(np.float64)))


@given(st.lists(st.tuples(st.integers(-3, 12), st.integers(0, 3)), min_size=1, max_size=80), st.integers(2, 9))
def test_a_weight_is_a_number_of_copies(rows, max_bins):
    values = np.array([[v] for v, _ in rows], dtype=float)
    weight = np.array([w for _, w in rows], dtype=float)
    if not weight.any():
        return
    weighted = Binner(max_bins).fit(values, weight)
    copied = Binner(max_bins).fit(np.repeat(values, weight.astype(int), axis=0))
    np.testing.assert_array_equal(weighted.edges_[0], copied.edges_[0])
    by_category = Binner(max_bins, categorical=[0])
    np.testing.assert_array_equal(
        by_category.fit(values, weight).categories_[0],
        by_category.fit(np.repeat(values, weight.astype(int), axis=0)).categories_[0],
    )


def test_few_values_have_a_bin_each(table):
    binner = Binner(255).fit(table)
    values = np.unique(table[:, 1])
    np.testing.assert_allclose(binner.edges_[1], (values[1:] + values[:-1]) / 2)


def test_bins_share_the_rows_evenly(table):
    bins = Binner(20).fit(table).transform(table)
    counts = np.bincount(bins[:, 0])
    assert counts.max() - counts.min() <= 2
    # Nine tenths of column 4 are zero: that value has one bin, the rest is shared by the others.
    counts = np.bincount(bins[:, 4], minlength=20)
    assert counts.max() > 2600
    assert np.sort(counts)[:-1].max() < 40


def test_edges_separate_neighbors():
    low = 1.0
    high = np.nextafter(low, 2.0)
    binner = Binner().fit(np.array([[low], [high]]))
    np.testing.assert_array_equal(binner.transform(np.array([[low], [high]])), [[0], [1]])
    big = np.array([[-1.7e308], [1.7e308]])
    np.testing.assert_array_equal(Binner().fit(big).transform(big), [[0], [1]])


def test_all_missing_and_constant_columns():
    X = np.array([[np.nan, 1.0], [np.nan, 1.0]])
    binner = Binner().fit(X)
    np.testing.assert_array_equal(binner.transform(X), [[1, 0], [1, 0]])


def test_many_categories_keep_the_frequent_ones():
    rng = np.random.default_rng(0)
    column = np.concatenate([np.repeat(np.arange(300.0), 3), rng.integers(1000, 11000, 5000)])
    column[:50] = 7.0
    binner = Binner(255, categorical=[0]).fit(column[:, None])
    assert binner.n_bins_[0] == 255
    assert binner.categories_[0][0] == 7.0
    bins = binner.transform(np.array([[7.0], [-5.0], [np.nan]]))
    np.testing.assert_array_equal(bins[:, 0], [0, 255, 255])


@pytest.mark.parametrize("bad", [1, 256, 2.5])
def test_bad_max_bins(bad):
    with pytest.raises((ValueError, TypeError), match="max_bins"):
        Binner(bad).fit(np.zeros((3, 1)))


def test_a_damaged_sparse_matrix_is_refused() -> None:
    X = sp.csr_array(np.eye(4))
    whole = Binner().fit(X)
    X.indices[1] = 10**6
    for read in (Binner().fit, whole.transform):
        with pytest.raises(ValueError, match="X is a damaged sparse matrix: it has the column index 1000000"):
            read(X)


@pytest.mark.parametrize("max_bins", [2, 5, 16, 255])
@pytest.mark.parametrize("digits", [1, 9])
def test_edges_at_the_quantiles_of_the_values(max_bins, digits):
    rng = np.random.default_rng(digits)
    X = np.round(rng.normal(size=(510, 3)), digits)
    X[::7, 1] = np.nan
    found = Binner(max_bins, edges="quantiles").fit(X)
    for j in range(3):
        values = X[~np.isnan(X[:, j]), j]
        shares = np.linspace(0, 100, max_bins + 1)[1:-1]
        wanted = np.unique(np.percentile(values, shares, method="averaged_inverted_cdf"))
        if np.unique(values).size <= max_bins:
            distinct = np.unique(values)
            wanted = (distinct[1:] + distinct[:-1]) / 2
        np.testing.assert_allclose(found.edges_[j], wanted, rtol=1e-15, atol=1e-15)
    weight = rng.integers(1, 4, 510).astype(float)
    weighted = Binner(max_bins, edges="quantiles").fit(X, weight)
    copied = Binner(max_bins, edges="quantiles").fit(np.repeat(X, weight.astype(int), axis=0))
    for mine, other in zip(weighted.edges_, copied.edges_, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_quantiles_far_out_and_of_a_last_value_that_weighs_most():
    X = np.array([[1.0], [2.0], [3.0], [np.inf]])
    assert Binner(2, edges="quantiles").fit(X, np.array([1.0, 1.0, 1.0, 9.0])).edges_[0].tolist() == [1e300]
    assert Binner(2, edges="quantiles").fit(X[:3], np.array([1.0, 1.0, 9.0])).edges_[0].tolist() == [3.0]
    assert Binner(2, edges="quantiles").fit(X[:3], np.array([1.0, 1.0, 2.0])).edges_[0].tolist() == [2.5]
    with pytest.raises(ValueError, match="edges must be"):
        Binner(edges="elsewhere").fit(X)
