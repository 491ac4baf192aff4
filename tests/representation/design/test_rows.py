"""The limit on BLAS threads comes and goes as it should, and chunks of rows cover all of them."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from certifit.representation.design.blocks import row_blocks
from certifit.representation.design.rows import added_over_rows, over_rows, thin_products
from certifit.threads import one_blas_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_limit_inside_a_limit_lifts_nothing() -> None:
    np.ones((2, 2)) @ np.ones((2, 2))  # the library is loaded
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with one_blas_thread():
            with one_blas_thread():
                assert blas_threads() == {1}
            assert blas_threads() == {1}
        assert blas_threads() == before


@pytest.mark.parametrize(("n", "d", "limited"), [(5000, 3, True), (500, 400, False), (500, 3, False)])
def test_many_rows_of_few_columns_need_no_threads_of_blas(n: int, d: int, limited: bool) -> None:
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        with thin_products(np.ones((n, d))):
            assert blas_threads() == ({1} if limited else before)
        with thin_products(sp.csr_array(np.ones((500, 3)))):
            assert blas_threads() == before


def test_the_limit_is_lifted_after_an_error() -> None:
    before = blas_threads()
    with pytest.raises(ZeroDivisionError), one_blas_thread():
        _ = 1 / 0
    assert blas_threads() == before


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 1000, 300_000])
def test_chunks_and_blocks_cover_every_row_once(n: int, threads: int) -> None:
    def rows(chunk: slice) -> np.ndarray:
        return np.concatenate([np.arange(b.start, b.stop) for b in row_blocks(chunk, 10)])

    np.testing.assert_array_equal(np.concatenate(over_rows(rows, n, 10, threads)), np.arange(n))


@pytest.mark.parametrize("threads", [1, 3])
def test_sums_of_chunks_are_those_of_all_rows_in_their_order(threads: int) -> None:
    x = np.random.default_rng(0).normal(size=1_000_003)
    parts = over_rows(lambda rows: x[rows].sum(), x.shape[0], 4, 1)
    assert len(parts) > 4
    sums, counts = added_over_rows(
        lambda rows: (np.array([x[rows].sum()]), np.array([x[rows].shape[0]])), x.shape[0], 4, threads
    )
    assert sums[0] == sum(parts[1:], parts[0])  # to the last bit
    assert counts[0] == x.shape[0]


def test_one_thread_holds_the_sum_and_one_chunk() -> None:
    made: list[weakref.ref[np.ndarray]] = []
    alive = []

    def work(rows: slice) -> tuple[np.ndarray]:
        own = np.ones(1)
        made.append(weakref.ref(own))
        alive.append(sum(one() is not None for one in made))
        return (own,)

    (total,) = added_over_rows(work, 1_000_000, 8, 1)
    assert total[0] == len(alive) > 4
    assert max(alive) <= 2
