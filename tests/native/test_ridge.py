"""Conjugate gradients and sums over sparse rows against long sums in NumPy, for every layout, width and remainder; bad input."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import certifit._native.ridge as native
import numpy as np
import pytest
import scipy.sparse as sp

LONG = np.longdouble


def data(n: int, d: int, seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng([seed, n, d])
    p = rng.uniform(0.1, 1.0, n)
    return rng.normal(size=(n, d)), rng.normal(size=n), p / p.sum(), rng.uniform(0.05, 1.0, d)


def compressed(X: Any, index: Any = np.int32) -> tuple[Any, ...]:
    X = sp.csr_array(X)
    return X.data, X.indices.astype(index), X.indptr.astype(index), X.shape[1]


def untidy(X: Any) -> tuple[Any, ...]:
    """The same matrix with the entries of a row in any order, and some of them in two parts."""
    rng, rows = np.random.default_rng(0), []
    for x in np.asarray(X):
        (column,) = np.nonzero(x)
        column = rng.permutation(np.concatenate([column, column[::2]]))
        shared = np.isin(column, np.nonzero(x)[0][::2])
        rows.append((column, np.where(shared, x[column] / 2, x[column])))
    indptr = np.concatenate([[0], np.cumsum([len(column) for column, _ in rows])]).astype(np.int32)
    values, columns = (np.concatenate([row[k] for row in rows]) for k in (1, 0))
    return values.astype(np.asarray(X).dtype), columns.astype(np.int32), indptr, X.shape[1]


def objective(X: Any, y: Any, p: Any, l2: Any, w: Any, b: Any) -> Any:
    X, y, p, l2, w = (np.asarray(part, dtype=LONG) for part in (X, y, p, l2, w))
    r = y - X @ w - LONG(b)
    return (p @ (r * r) + l2 @ (w * w)) / 2


def solution(X: Any, y: Any, p: Any, l2: Any, intercept: bool) -> tuple[Any, Any]:
    """Newton's method on a quadratic: the second step removes what the double precision of the first left."""
    X, y, p, l2 = (np.asarray(part, dtype=LONG) for part in (X, y, p, l2))
    p = p / p.sum()
    m = p @ X if intercept else np.zeros(X.shape[1], dtype=LONG)
    A, z = X - m, y - (p @ y if intercept else 0)
    H = (A.T * p) @ A + np.diag(l2)
    w = np.zeros(X.shape[1], dtype=LONG)
    for _ in range(4):
        w = w + np.linalg.solve(H.astype(float), (A.T @ (p * (z - A @ w)) - l2 * w).astype(float))
    return w, (p @ y - m @ w if intercept else LONG(0))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("layout", ["C", "F", "float32", "float32 F", "csr", "csr float32", "csr 64", "untidy"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 7), (2, 1), (67, 5), (130, 17), (9, 40), (9000, 33)])
def test_conjugate_gradients_prove_their_gap(n: int, d: int, layout: str, intercept: bool) -> None:
    X, y, p, l2 = data(n, d)
    if layout == "untidy" or layout.startswith("csr"):
        X[np.random.default_rng(1).random(X.shape) < 0.6] = 0.0
    X = X.astype(np.float32 if "float32" in layout else np.float64, order="F" if layout.endswith("F") else "C")
    if layout == "untidy":
        arrays = untidy(X)
    elif layout.startswith("csr"):
        arrays = compressed(X, np.int64 if layout.endswith("64") else np.int32)
    else:
        arrays = (X,)
    coef, b, value, gap, products, given_up = native.iterate(*arrays, y, p, l2, intercept, 1e-12, np.inf, 500, 1)
    assert not given_up
    assert 0 < products <= 500
    assert 0 <= gap <= 1e-12
    exact = objective(X, y, p, l2, *solution(X, y, p, l2, intercept))
    assert value == pytest.approx(float(objective(X, y, p, l2, coef, b)), rel=1e-12, abs=1e-15)
    assert value - gap <= float(exact) + 1e-15
    assert float(objective(X, y, p, l2, coef, b) - exact) <= gap + 1e-18


@pytest.mark.parametrize("seed", range(4))
def test_a_gap_that_is_out_of_reach_is_given_up(seed: int) -> None:
    X, y, p, l2 = data(60, 30, seed)
    assert native.iterate(X, y, p, 1e-9 * l2, True, 1e-20, 3.0, 500, 1)[-1]
    assert native.iterate(X, y, p, l2, True, 0.0, np.inf, 40, 1)[4] <= 42
    X[3, 2] = np.nan
    assert native.iterate(X, y, p, l2, True, 1e-9, np.inf, 40, 1)[-1]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (3, 70), (67, 5), (4000, 40)])
def test_sums_over_sparse_rows_agree_with_numpy(n: int, d: int, dtype: Any, index: Any) -> None:
    X, y, p, w = data(n, d)
    X[np.random.default_rng(1).random(X.shape) < 0.7] = 0.0
    X[n // 2 : n // 2 + 2], X[:, -1] = 0.0, 0.0  # rows and a column of which nothing is stored
    X = X.astype(dtype)
    arrays, Q = compressed(X, index), np.stack([p, y * p, y])
    X = X.astype(np.float64)
    np.testing.assert_allclose(native.gram(*arrays, p, 1), (X.T * p) @ X, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(native.pullback(*arrays, Q, 1), Q @ X, rtol=1e-10, atol=1e-13)
    r = y - X @ w - 0.5
    wanted = np.concatenate([X.T @ (p * r), [p @ r, p @ (r * r)]])
    np.testing.assert_allclose(native.residual(*arrays, y, p, w, 0.5, 1), wanted, rtol=1e-10, atol=1e-13)


def test_rows_in_any_order_have_the_same_sums() -> None:
    X, y, p, w = data(50, 9)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    values, columns, starts, d = compressed(X)
    turned = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(starts)])
    arrays = (values[turned], columns[turned], starts, d)
    np.testing.assert_allclose(native.gram(*arrays, p, 1), (X.T * p) @ X, rtol=1e-12, atol=1e-15)
    r = y - X @ w
    np.testing.assert_allclose(native.residual(*untidy(X), y, p, w, 0.0, 1)[:9], X.T @ (p * r), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(native.pullback(*untidy(X), p[None], 1)[0], p @ X, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("d", [1, 2, 3, 9])
def test_least_squares_of_sparse_rows(d: int, index: Any, intercept: bool) -> None:
    X, y, p, l2 = data(300, d)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    coef, b, value, gap, *_ = native.squares(*compressed(X, index), y, p, l2, intercept, 1)
    w, level = solution(X, y, p, l2, intercept)
    np.testing.assert_allclose(coef, w.astype(float), rtol=1e-12, atol=1e-14)
    assert b == pytest.approx(float(level), abs=1e-14)
    assert value == pytest.approx(float(objective(X, y, p, l2, w, level)), rel=1e-12)
    assert 0 <= gap < 1e-12
    X[:, 0] *= 1e-200  # squares that vanish
    assert native.squares(*compressed(X, index), y, p, 0.0 * l2, intercept, 1) is None
    X[:, 0] = 0.0  # nothing there, as columns of few entries may be: the others have what they have without it
    found = native.squares(*compressed(X, index), y, p, l2, intercept, 1)
    if d == 1:
        assert found is None
        return
    rest = native.squares(*compressed(X[:, 1:], index), y, p, l2[1:], intercept, 1)
    np.testing.assert_allclose(found[0], [0.0, *rest[0]], rtol=1e-12, atol=1e-15)
    assert found[1:3] == pytest.approx(rest[1:3], rel=1e-13)


BAD: dict[str, dict[str, Any]] = {
    "y": {"y": np.zeros(3)},
    "p": {"p": np.zeros(7)},
    "l2": {"l2": np.ones(1)},
    "no penalty": {"l2": np.zeros(4)},
    "penalty": {"l2": np.full(4, np.nan)},
    "threads": {"threads": 0},
}


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("change", BAD)
def test_what_does_not_fit_is_refused(change: str, sparse: bool) -> None:
    X, y, p, l2 = data(6, 4)
    given = {"y": y, "p": p, "l2": l2, "intercept": True, "tol": 1e-9, "most": 9.0, "max_iter": 9, "threads": 1}
    with pytest.raises(ValueError):
        native.iterate(*(compressed(X) if sparse else (X,)), **{**given, **BAD[change]})


@pytest.mark.parametrize("rows", [0, 5])
def test_nothing_to_fit_is_refused(rows: int) -> None:
    X = np.zeros((rows, 0 if rows else 3))
    given = np.zeros(rows), np.ones(rows), np.ones(X.shape[1]), True
    with pytest.raises(ValueError):
        native.iterate(X, *given, 1e-9, 9.0, 9, 1)
    with pytest.raises(ValueError):
        native.squares(*compressed(X), *given, 1)


ENTRIES: dict[str, tuple[Any, Any, Any]] = {
    "a column beyond": (np.ones(3), [0, 4, 1], [0, 2, 3]),
    "a column before": (np.ones(3), [0, -1, 1], [0, 2, 3]),
    "more starts than entries": (np.ones(3), [0, 1, 1], [0, 2, 9]),
    "starts that fall": (np.ones(3), [0, 1, 1], [0, 5, 3]),
    "a start beyond": (np.ones(3), [0, 1, 1], [1, 2, 3]),
    "fewer columns than values": (np.ones(3), [0, 1], [0, 2, 3]),
    "no starts": (np.ones(0), [], []),
}


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("how", ENTRIES)
def test_sparse_rows_that_are_none_are_refused(how: str, index: Any) -> None:
    values, columns, starts = ENTRIES[how]
    arrays = (values, np.array(columns, dtype=index), np.array(starts, dtype=index), 4)
    n = max(len(starts) - 1, 0)
    y, p, l2 = np.zeros(n), np.ones(n), np.ones(4)
    for call in (
        lambda: native.iterate(*arrays, y, p, l2, True, 1e-9, 9.0, 9, 1),
        lambda: native.gram(*arrays, p, 1),
        lambda: native.pullback(*arrays, p[None], 1),
        lambda: native.residual(*arrays, y, p, l2, 0.0, 1),
        lambda: native.squares(*arrays, y, p, l2, True, 1),
    ):
        with pytest.raises(ValueError):
            call()
