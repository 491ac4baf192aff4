"""The passes over a dense matrix against NumPy, in every layout and precision, for any number of threads."""

from __future__ import annotations

from fractions import Fraction
from operator import mul

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certifit._native import products
from certifit.data.equal_rows import row_codes
from certifit.evaluation.losses.labels.margin import HardLogistic

SHAPES = [(0, 3), (1, 1), (3, 0), (5, 2), (7, 33), (100, 257), (4099, 31), (20_000, 130)]
LAYOUTS = ["rows", "columns", "single rows", "single columns"]


def table(n: int, d: int, layout: str) -> tuple[np.ndarray, np.ndarray]:
    """X as the kernel gets it, and the same numbers in double precision."""
    X = np.random.default_rng(n + d).normal(size=(n, d))
    X = X.astype(np.float32) if layout.startswith("single") else X
    X = np.asfortranarray(X) if layout.endswith("columns") else X
    return X, X.astype(np.float64)


def close(found: np.ndarray, wanted: np.ndarray, terms: int) -> bool:
    """Equal up to the rounding of a sum of so many terms of order one."""
    return np.allclose(found, wanted, rtol=1e-13, atol=1e-14 * max(terms, 1))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_products_are_those_of_numpy(n: int, d: int, layout: str) -> None:
    X, double = table(n, d, layout)
    rng = np.random.default_rng(1)
    w, y, p, Q = rng.normal(size=d), rng.normal(size=n), rng.random(n), rng.normal(size=(3, n))
    residual = y - double @ w - 0.5
    wanted = np.concatenate([double.T @ (p * residual), [p @ residual, p @ residual**2]])
    sides = (y > 0).astype(float)
    found = {}
    for threads in (1, 2, 3):
        found[threads] = [
            products.scores(X, w, 0.5, threads),
            products.pullback(X, Q, threads),
            products.residual(X, y, p, w, 0.5, threads),
            products.gram(X, p, False, threads),
            products.gram(X, p, True, threads),
            *products.logistic(X, sides, p, w, 0.5, threads),
        ]
    tilde = np.column_stack([np.ones(n), double])
    assert close(found[1][0], double @ w + 0.5, 10 * d)
    assert close(found[1][1], Q @ double, 10 * n)
    assert close(found[1][2], wanted, 100 * n)
    assert close(found[1][3], (double * p[:, None]).T @ double, 10 * n)
    assert close(found[1][4], (tilde * p[:, None]).T @ tilde, 10 * n)
    theta, h = HardLogistic().slopes(sides, double @ w + 0.5)
    assert close(found[1][5], double @ w + 0.5, 10 * d)
    assert close(found[1][6], theta, 10 * d)
    assert close(found[1][7], h, 10 * d)
    assert close(found[1][8], np.append(double.T @ (p * theta), p @ theta), 100 * n)
    for threads in (2, 3):
        for one, more in zip(found[1], found[threads], strict=True):
            np.testing.assert_array_equal(one, more)


def test_slopes_of_far_scores_keep_their_digits() -> None:
    f = np.array([-800.0, -700.0, -40.0, -1e-300, 0.0, 0.3, 40.0, 700.0, 1e300])
    for y in (np.zeros(9), np.ones(9)):
        _, theta, h, _ = products.logistic(f[:, None], y, np.ones(9), np.ones(1), 0.0, 1)
        known = np.abs(f) < 708  # beyond, the exponential stays at its least normal number
        for found, wanted in zip((theta, h), HardLogistic().slopes(y, f), strict=True):
            np.testing.assert_allclose(found[known], wanted[known], rtol=1e-15)
            np.testing.assert_allclose(found, wanted, rtol=1e-15, atol=1e-300)


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from(LAYOUTS), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_gram_matrix_is_symmetric_and_positive(n: int, d: int, layout: str, ones: bool) -> None:
    X, _ = table(n, d, layout)
    G = products.gram(X, np.random.default_rng(0).random(n), ones, 1)
    assert G.shape == (d + ones, d + ones)
    np.testing.assert_array_equal(G, G.T)
    assert np.linalg.eigvalsh(G).min(initial=0.0) >= -1e-12 * max(n, 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [0, 1, 15, 1000, 3_000_000])
def test_energy_is_finite_exactly_when_the_entries_are(size: int, dtype: type) -> None:
    x = np.random.default_rng(0).normal(size=size).astype(dtype)
    for threads in (1, 2):
        assert products.energy(x, threads) == pytest.approx(float(np.square(x.astype(np.float64)).sum()), rel=1e-12)
    for bad in (np.nan, np.inf, -np.inf):
        for at in {0, size // 2, size - 1} if size else ():
            spoiled = x.copy()
            spoiled[at] = bad
            assert not np.isfinite(products.energy(spoiled, 2))
    assert np.isfinite(products.energy(np.full(5, np.finfo(np.float32).max, dtype=np.float32), 1))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_codes_tell_rows_apart_and_nothing_else(layout: str) -> None:
    X, _ = table(2000, 5, layout)
    X = np.round(X)  # few values: many rows are equal
    codes = products.codes(X)
    _, which = np.unique(np.asarray(X) + 0.0, axis=0, return_inverse=True)
    _, by_code = np.unique(codes, return_inverse=True)
    same = np.bincount(which.ravel() * (by_code.max() + 1) + by_code)
    assert (same > 0).sum() == len(np.unique(which)) == len(np.unique(codes))
    np.testing.assert_array_equal(codes, products.codes(np.ascontiguousarray(X, dtype=np.float64)))
    np.testing.assert_array_equal(codes, products.codes(np.where(X == 0, -X, X) if layout == "rows" else X))
    y = np.arange(2000.0)
    np.testing.assert_array_equal(row_codes(X[::-1], y[::-1])[::-1], row_codes(X, y))


def test_the_boundary_is_strict() -> None:
    X, w, n = np.ones((4, 2)), np.ones(2), np.ones(4)
    with pytest.raises(ValueError, match="w has length 4, wanted 2"):
        products.scores(X, n, 0.0, 1)
    with pytest.raises(ValueError, match="one column for each row"):
        products.pullback(X, np.ones((1, 3)), 1)
    with pytest.raises(ValueError, match="h has length 2, wanted 4"):
        products.gram(X, w, True, 1)
    with pytest.raises(ValueError, match="p has length 2, wanted 4"):
        products.residual(X, n, w, w, 0.0, 1)
    with pytest.raises(ValueError, match="y has length 2, wanted 4"):
        products.logistic(X, w, n, w, 0.0, 1)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        products.energy(n, 0)
    with pytest.raises(TypeError):
        products.scores(X[::2, ::-1], w, 0.0, 1)
    with pytest.raises(TypeError):
        products.scores(X.astype(int), w, 0.0, 1)


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 2), (500, 5), (400, 90)])
def test_moments_and_reach_of_some_rows(n: int, d: int, layout: str, step: int) -> None:
    (X, same), rng = table(n, d, layout), np.random.default_rng(1)
    rows = same[::step]
    found = products.moments(X, step)
    np.testing.assert_allclose(found[0], rows.mean(axis=0), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found[1], ((rows - rows.mean(axis=0)) ** 2).sum(axis=0), rtol=1e-11, atol=1e-15)
    W, b = rng.normal(size=(3, d)), rng.normal(size=3)
    far, width = products.reach(X, step, W, b)
    assert far == pytest.approx(float((np.abs(rows) @ np.abs(W).T + np.abs(b)).max()), rel=1e-12)
    f = rows @ W.T + b
    assert width == pytest.approx(float(f.max() - f.min()), rel=1e-10)


def test_columns_far_from_zero_are_told_from_constant_ones() -> None:
    mean, squares = np.array([0.0, 1e6, 1e6, -1e6]), np.array([10.0, 10.0, 0.0, 1e16])
    energy, far = products.judged(np.stack([mean, squares]), 10, 1e4)
    assert far == [1]
    assert energy == pytest.approx(1e16 + 1e13)
    assert np.isnan(products.judged(np.array([[1.0, 2.0], [np.nan, 3.0]]), 10, 1e4)[0])


def test_what_is_not_a_number_reaches_nowhere() -> None:
    far, width = products.reach(np.array([[1.0], [np.nan], [2.0]]), 1, np.ones((1, 1)), np.zeros(1))
    assert not far <= 1e3 * width


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (37, 9), (300, 40), (9, 300), (40_000, 12)])
def test_residuals_in_twice_the_precision_are_those_of_fractions(n: int, d: int, order: str) -> None:
    rng = np.random.default_rng(n + d)
    X = np.asarray(rng.normal(size=(n, d)) + 1e4, order=order)
    w, p, b = rng.normal(size=d), rng.random(n), 0.3
    y = X @ w + b + 1e-9 * rng.normal(size=n)  # the residuals have lost nine of their digits
    found = products.residual_twice(X, y, p, w, b, 2)
    few = slice(0, n if n <= 300 else 0)
    exact = [list(map(Fraction, row)) for row in X[few]]
    weights, by, level, square = list(map(Fraction, w)), [Fraction(0)] * d, Fraction(0), Fraction(0)
    for row, target, weight in zip(exact, y[few], p[few], strict=True):
        r = Fraction(target) - Fraction(b) - sum(map(mul, row, weights))
        q = Fraction(weight) * r
        by = [total + q * x for total, x in zip(by, row, strict=True)]
        level, square = level + q, square + q * r
    if n > 300:  # too many to be added as fractions: the halves say the same as the whole
        halves = [
            products.residual_twice(X[part].copy(order), y[part], p[part], w, b, 1)
            for part in (slice(0, n // 2), slice(n // 2, n))
        ]
        by = [
            Fraction(sum(map(Fraction, (h[j] for h in halves)))) + sum(Fraction(h[d + j]) for h in halves)
            for j in range(d)
        ]
        level = sum((Fraction(h[2 * d]) + Fraction(h[2 * d + 1]) for h in halves), Fraction(0))
        square = Fraction(sum(h[-1] for h in halves))
    size = float(np.abs(p * (np.abs(X) @ np.abs(w))).sum())
    for j in range(d):
        assert abs(Fraction(found[j]) + Fraction(found[d + j]) - by[j]) <= 1e-28 * n * size * 1e4
    assert abs(Fraction(found[2 * d]) + Fraction(found[2 * d + 1]) - level) <= 1e-28 * n * size
    assert found[-1] == pytest.approx(float(square), rel=1e-6)
