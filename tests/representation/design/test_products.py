"""Products with X, and columns kept for a working set."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from certifit.representation.design.products import DenseColumns, SparseColumns, by_column, without_gaps


@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_that_are_asked_for_again_and_again(order: str) -> None:
    X = np.asarray(np.random.default_rng(0).normal(size=(300, 40)), order=order)  # type: ignore[call-overload]
    dense, sparse = DenseColumns(X), SparseColumns(sp.csc_array(X))
    for chosen in ([3, 5], [3, 5, 9], [1, 5, 30, 39], [9], [], list(range(30)), [3, 5, 9, 12, 13]):
        index = np.array(chosen, dtype=np.intp)
        part = dense(index)
        assert_array_equal(part, X[:, index])
        assert part.flags.f_contiguous or 2 * len(chosen) > X.shape[1]
        assert_array_equal(sparse(index).toarray(), X[:, index])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (130, 67), (4, 8), (5000, 33), (33, 5000), (700, 700)])
def test_a_copy_by_columns(shape: tuple[int, int], dtype: type) -> None:
    X = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for threads in (1, 3):
        turned = by_column(X, threads)
        assert turned.flags.f_contiguous
        assert turned.dtype == dtype
        assert_array_equal(turned, X)
    assert by_column(turned) is turned
    assert_array_equal(by_column(X[::2]), X[::2])


@pytest.mark.parametrize("entries", [None, 40])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array])
def test_columns_without_gaps(make: type, entries: int | None) -> None:
    """They are found whatever the others have, in all rows or in some; a row of nothing leaves none."""
    X = np.random.default_rng(0).normal(size=(61, 7)) * (np.random.default_rng(1).random((61, 7)) < 0.6)
    X[:, [2, 5]] = 1.0 + np.arange(122.0).reshape(61, 2)
    numbers, values = without_gaps(make(X), entries)
    assert {2, 5} <= set(numbers.tolist())
    assert values.shape[1] == numbers.size
    for at, j in enumerate(numbers):
        assert set(values[:, at]) <= set(X[:, j])
    X[40] = 0.0
    assert without_gaps(make(X))[0].size == 0
    X[0] = 0.0
    numbers, values = without_gaps(make(X), entries)
    assert numbers.size == 0
    assert values.shape[1] == 0
    assert without_gaps(make((0, 7)))[0].size == 0
