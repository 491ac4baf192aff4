"""Closed-form least squares: against lstsq, optimality conditions, extremes, and exact equivalences."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.optimization.closed_form import factorizations, least_squares
from certifit.optimization.closed_form.hat import hat_matrix, leverage
from certifit.optimization.closed_form.least_squares import normal_inverse, solve_least_squares
from certifit.optimization.closed_form.normal_equations import NormalEquations


def data(n, d, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    y = X @ rng.normal(size=d) + 3.0 + noise * rng.normal(size=n)
    s = rng.integers(1, 4, size=n).astype(float)
    return X, y, s / s.sum()


def reference(X, y, p, l2, fit_intercept):
    """Least-norm solution of the centered, weighted and penalized problem by LAPACK's SVD."""
    m, ym = (p @ X, p @ y) if fit_intercept else (np.zeros(X.shape[1]), 0.0)
    A = np.vstack([np.sqrt(p)[:, None] * (X - m), np.diag(np.sqrt(l2))])
    w = np.linalg.lstsq(A, np.concatenate([np.sqrt(p) * (y - ym), np.zeros(l2.size)]), rcond=1e-13)[0]
    return w, float(ym - m @ w)


def objective(X, y, p, l2, w, b):
    return 0.5 * float(p @ (y - X @ w - b) ** 2) + 0.5 * float(l2 @ w**2)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(200, 7), (30, 30), (12, 40), (1, 3), (3, 1), (2, 2), (1, 1)])
@pytest.mark.parametrize("strength", ["none", "all", "some", "tiny"])
def test_matches_the_reference(shape, strength, fit_intercept):
    X, y, p = data(*shape)
    l2 = {"none": 0.0, "all": 0.3, "some": 0.3, "tiny": 1e-9}[strength] * np.ones(shape[1])
    if strength == "some":
        l2[::2] = 0.0
    fit = solve_least_squares(X, y, p, l2=l2, fit_intercept=fit_intercept)
    w, b = reference(X, y, p, l2, fit_intercept)
    np.testing.assert_allclose(fit.coef, w, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(fit.intercept, b, rtol=1e-7, atol=1e-8)
    assert fit.residual < 1e-12
    assert fit.gap <= 1e-20 * (1 + fit.objective)
    np.testing.assert_allclose(fit.objective, objective(X, y, p, l2, w, b), rtol=1e-6, atol=1e-20)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "float32", "csr", "csc"])
@pytest.mark.parametrize("strength", [0.0, 0.1])
@pytest.mark.parametrize("shape", [(400, 9), (20, 60)])
def test_every_layout_gives_the_same_fit(layout, strength, shape):
    X, y, p = data(*shape)
    X = np.round(X, 3).astype(np.float32).astype(np.float64)
    l2 = np.full(shape[1], strength)
    expected = solve_least_squares(X, y, p, l2=l2, fit_intercept=True)
    given = {
        "C": X,
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "float32": X.astype(np.float32),
        "csr": sp.csr_matrix(X),
        "csc": sp.csc_array(X),
    }[layout]
    fit = solve_least_squares(given, y, p, l2=l2, fit_intercept=True)
    np.testing.assert_allclose(fit.coef, expected.coef, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(fit.intercept, expected.intercept, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
@pytest.mark.parametrize("order", ["C", "F"])
def test_mixed_precision_is_only_a_preconditioner(weighted, offset, order):
    X, y, p = data(6000, 200, seed=3)
    X = np.array(X + offset, order=order)
    p = p if weighted else np.full(6000, 1 / 6000)
    l2 = np.full(200, 1e-3)
    fit = solve_least_squares(X, y, p, l2=l2, fit_intercept=True)
    assert fit.method == "cholesky (mixed precision)"
    w, _ = reference(X, y, p, l2, True)
    np.testing.assert_allclose(fit.coef, w, rtol=1e-8 if offset == 1e8 else 1e-11, atol=1e-12)
    assert fit.digits > (6 if offset == 1e8 else 10)


def test_an_ill_conditioned_large_problem_leaves_single_precision():
    X, y, p = data(6000, 200, seed=4)
    X[:, 1] = X[:, 0] + 1e-5 * X[:, 1]
    fit = solve_least_squares(X, y, p, l2=np.zeros(200), fit_intercept=True)
    assert fit.method == "cholesky"
    w, _ = reference(X, y, p, np.zeros(200), True)
    np.testing.assert_allclose(fit.coef, w, rtol=1e-6, atol=1e-9)


def test_extra_memory_is_far_below_a_copy():
    X, y, p = data(60_000, 60)
    for weight in (p, np.full(60_000, 1 / 60_000)):
        tracemalloc.start()
        solve_least_squares(X, y, weight, l2=np.full(60, 0.1), fit_intercept=True)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.4 * X.nbytes


@pytest.mark.parametrize("d", [400, 520])
def test_matrices_of_all_columns_are_few(d):
    """The Gram matrix, that of a chunk and its terms, and a block in single precision; no sample, and no matrix of each chunk."""
    X, y, p = data(20 * d, d)
    problem = NormalEquations(X, y, p, np.full(d, 0.1), True, 1)
    tracemalloc.start()
    dtype, shift = problem.plan()
    planned = tracemalloc.get_traced_memory()[1]
    problem.gram(dtype, shift)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert dtype is np.float32
    assert planned < 4 * 8 * d * d + 256 * 3 * 8 * d
    assert peak < 5 * 8 * d * d


def test_rank_deficient_gives_the_least_norm():
    X, y, p = data(50, 6)
    X = np.column_stack([X, X[:, 0], 2 * X[:, 1] - X[:, 2], np.zeros(50), np.full(50, 0.1)])
    fit = solve_least_squares(X, y, p, l2=np.zeros(10), fit_intercept=True)
    w, b = reference(X, y, p, np.zeros(10), True)
    assert fit.rank == 6
    assert "minimum norm" in fit.note
    assert "constant" in fit.note
    np.testing.assert_allclose(fit.coef, w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fit.intercept, b, rtol=1e-10)
    assert fit.coef[8] == 0.0
    assert fit.coef[9] == 0.0


def test_least_norm_of_a_duplicate_with_another_unit():
    X, y, p = data(40, 3)
    X = np.column_stack([X, 1000.0 * X[:, 0]])
    fit = solve_least_squares(X, y, p, l2=np.zeros(4), fit_intercept=True)
    w, _ = reference(X / 1000, y, p, np.zeros(4), True)
    np.testing.assert_allclose(fit.coef, w / 1000, rtol=1e-9, atol=1e-12)


def test_a_constant_column_is_no_reason_for_a_slow_path():
    X, y, p = data(300, 5)
    with_ones = np.column_stack([X, np.full(300, 0.1), np.zeros(300)])
    fit = solve_least_squares(with_ones, y, p, l2=np.zeros(7), fit_intercept=True)
    plain = solve_least_squares(X, y, p, l2=np.zeros(5), fit_intercept=True)
    assert fit.method == "cholesky"
    np.testing.assert_allclose(fit.coef, np.append(plain.coef, [0, 0]), rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-150, 1e150, 1e-30, 1e30])
@pytest.mark.parametrize("shape", [(60, 4), (5, 9)])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_scales_do_not_matter(unit, shape, kind):
    X, y, p = data(*shape)
    base = solve_least_squares(X, y, p, l2=np.zeros(shape[1]), fit_intercept=True)
    fit = solve_least_squares(kind(X * unit), y, p, l2=np.zeros(shape[1]), fit_intercept=True)
    np.testing.assert_allclose(fit.coef * unit, base.coef, rtol=1e-8)
    fit = solve_least_squares(kind(X), y * unit, p, l2=np.ones(shape[1]), fit_intercept=True)
    ridge = solve_least_squares(X, y, p, l2=np.ones(shape[1]), fit_intercept=True)
    np.testing.assert_allclose(fit.coef / unit, ridge.coef, rtol=1e-9)
    np.testing.assert_allclose(fit.intercept / unit, ridge.intercept, rtol=1e-9)


def test_mixed_column_scales():
    X, y, p = data(80, 5)
    units = np.array([1e-150, 1e-8, 1.0, 1e9, 1e150])
    base = solve_least_squares(X, y, p, l2=np.zeros(5), fit_intercept=True)
    fit = solve_least_squares(X * units, y, p, l2=np.zeros(5), fit_intercept=True)
    np.testing.assert_allclose(fit.coef * units, base.coef, rtol=1e-9)
    with np.errstate(under="ignore"):
        ridge = solve_least_squares(X * units, y, p, l2=np.ones(5), fit_intercept=True)
    assert np.isfinite(ridge.coef).all()


def test_hidden_extreme_values_in_a_large_matrix():
    X, y, p = data(30_000, 40)
    X[:, 3] = 0.0
    X[17, 3] = 1e160  # the sample of the rows does not see it
    fit = solve_least_squares(X, y, p, l2=np.zeros(40), fit_intercept=True)
    X[:, 3] /= 1e160
    again = solve_least_squares(X, y, p, l2=np.zeros(40), fit_intercept=True)
    np.testing.assert_allclose(fit.coef[3] * 1e160, again.coef[3], rtol=1e-9)
    np.testing.assert_allclose(np.delete(fit.coef, 3), np.delete(again.coef, 3), rtol=1e-9)


@pytest.mark.parametrize("l2", [0.0, 0.2])
@pytest.mark.parametrize("shape", [(60, 5), (8, 20)])
def test_weight_is_repetition(l2, shape):
    X, y, _ = data(*shape)
    s = np.random.default_rng(1).integers(1, 5, size=shape[0])
    strength = np.full(shape[1], l2)
    weighted = solve_least_squares(X, y, s / s.sum(), l2=strength, fit_intercept=True)
    Xr, yr = np.repeat(X, s, axis=0), np.repeat(y, s)
    repeated = solve_least_squares(Xr, yr, np.full(s.sum(), 1 / s.sum()), l2=strength, fit_intercept=True)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-10, atol=1e-12)


def test_exact_refinement_beats_double_precision():
    # A fit whose solution is known: integers small enough that X, y and X @ w are exact.
    rng = np.random.default_rng(0)
    base = rng.integers(-1000, 1000, size=(40, 1)).astype(float)
    X = base * 2.0**20 + rng.integers(-3, 4, size=(40, 6))
    w = np.array([3.0, -1.0, 2.0, 5.0, -4.0, 1.0])
    fit = solve_least_squares(X, X @ w, np.full(40, 1 / 40), l2=np.zeros(6), fit_intercept=False)
    assert fit.condition > 1e8
    np.testing.assert_allclose(fit.coef, w, rtol=1e-13)
    assert fit.digits > 13


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
def test_moments_of_sparse_columns(kind):
    """Also where zeros are stored, and columns are empty."""
    X = sp.random(40, 9, density=0.3, random_state=3, format="csr")
    X.data[::4] = 0.0
    X.data[1::4] += 5.0
    X = kind(X)
    rng = np.random.default_rng(0)
    y, p = rng.normal(size=40), rng.random(40)
    p /= p.sum()
    for fit_intercept in (True, False):
        problem = NormalEquations(X, y, p, np.ones(9), fit_intercept)
        problem.measure()
        apart = X.toarray() - (p @ X.toarray() if fit_intercept else 0.0)
        np.testing.assert_allclose(problem.spread, np.sqrt(p @ apart**2), rtol=1e-12)
        level = p @ y if fit_intercept else 0.0
        np.testing.assert_allclose(problem.moments[0], (p * (y - level)) @ X.toarray(), rtol=1e-11, atol=1e-15)


def test_sparse_iterative_form(monkeypatch):
    monkeypatch.setattr(factorizations, "LARGEST_DENSE", 10)
    monkeypatch.setattr(least_squares, "solve_few", lambda *_, **__: None)
    X = sp.random(300, 60, density=0.2, random_state=0, format="csr")
    y = X @ np.arange(60.0) + np.random.default_rng(0).normal(size=300)
    p = np.full(300, 1 / 300)
    for l2 in (np.zeros(60), np.full(60, 0.05)):
        fit = solve_least_squares(X, y, p, l2=l2, fit_intercept=True)
        assert fit.method == "lsmr"
        w, b = reference(X.toarray(), y, p, l2, True)
        np.testing.assert_allclose(fit.coef, w, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(fit.intercept, b, rtol=1e-7)
        assert fit.residual < 1e-11
        assert fit.gap < 1e-15 * fit.objective
    wide = sp.random(30, 100, density=0.3, random_state=1, format="csc")
    target = np.random.default_rng(1).normal(size=30)
    fit = solve_least_squares(wide, target, np.full(30, 1 / 30), l2=np.zeros(100), fit_intercept=True)
    w, _ = reference(wide.toarray(), target, np.full(30, 1 / 30), np.zeros(100), True)
    np.testing.assert_allclose(fit.coef, w, rtol=1e-6, atol=1e-8)


def test_constant_target():
    X, _, p = data(20, 3)
    fit = solve_least_squares(X, np.full(20, 0.1), p, l2=np.zeros(3), fit_intercept=True)
    np.testing.assert_allclose(fit.coef, 0.0, atol=1e-15)
    np.testing.assert_allclose(fit.intercept, 0.1)
    fit = solve_least_squares(X, np.zeros(20), p, l2=np.zeros(3), fit_intercept=False)
    assert not fit.coef.any()


def test_only_an_intercept_matters():
    fit = solve_least_squares(np.ones((4, 2)), np.arange(4.0), np.full(4, 0.25), l2=np.zeros(2), fit_intercept=True)
    assert fit.method == "mean"
    assert fit.rank == 0
    assert fit.intercept == 1.5


@pytest.mark.parametrize("l2", [0.0, 0.4])
@pytest.mark.parametrize("shape", [(25, 4), (8, 15)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_hat_matrix_is_the_derivative_of_the_fit(l2, shape, fit_intercept, kind):
    X, y, p = data(*shape)
    strength = np.full(shape[1], l2)
    hat = hat_matrix(kind(X), p, strength, fit_intercept)
    fit = solve_least_squares(X, y, p, l2=strength, fit_intercept=fit_intercept)
    np.testing.assert_allclose(hat @ y, X @ fit.coef + fit.intercept, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(leverage(kind(X), p, strength, fit_intercept), np.diag(hat), rtol=1e-9, atol=1e-12)


def test_normal_inverse():
    X, y, p = data(50, 4)
    inverse = normal_inverse(X, p, np.zeros(4), True)
    C = (p[:, None] * (X - p @ X)).T @ (X - p @ X)
    np.testing.assert_allclose(inverse.matrix, np.linalg.inv(C), rtol=1e-10)
    kept = solve_least_squares(X, y, p, l2=np.zeros(4), fit_intercept=True, keep_inverse=True).inverse
    np.testing.assert_allclose(kept.matrix, inverse.matrix, rtol=1e-12)
    scaled = normal_inverse(X * np.array([1e-120, 1, 1, 1e120]), p, np.zeros(4), True)
    np.testing.assert_allclose(scaled.matrix[1, 2], inverse.matrix[1, 2], rtol=1e-9)


def test_random_problems_of_all_kinds_reach_the_minimum():
    rng = np.random.default_rng(7)
    for _ in range(400):
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 40))
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, d) + rng.choice([0, 1, 100], d)
        X[:, rng.integers(d)] = X[:, rng.integers(d)]
        y, p = rng.normal(size=n), np.full(n, 1 / n)
        l2 = np.where(rng.random(d) < rng.choice([0, 0.5, 1]), 10.0 ** rng.uniform(-12, 3, d), 0.0)
        fit_intercept = bool(rng.random() < 0.7)
        fit = solve_least_squares(X, y, p, l2=l2, fit_intercept=fit_intercept)
        m, ym = (p @ X, p @ y) if fit_intercept else (np.zeros(d), 0.0)
        A = np.vstack([np.sqrt(p)[:, None] * (X - m), np.diag(np.sqrt(l2))])
        b = np.concatenate([np.sqrt(p) * (y - ym), np.zeros(d)])
        scale = np.linalg.norm(A, axis=0)
        scale[scale == 0] = 1.0
        best = A @ (np.linalg.lstsq(A / scale, b, rcond=1e-13)[0] / scale) - b
        assert fit.objective <= 0.5 * best @ best + 1e-10 * (b @ b)
        assert fit.gap <= 1e-11 * (b @ b)
        h = leverage(X, p, l2, fit_intercept)
        assert h.sum() <= min(n, d + fit_intercept) + 1e-6


@pytest.mark.parametrize(
    ("shape", "strength", "mean"), [((600, 4), 0.0, 0.5), ((600, 4), 0.1, 9.0), ((40, 90), 0.1, 5.0)]
)
def test_an_easy_fit_is_not_confirmed_by_another_pass(shape, strength, mean, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=shape) + mean
    y = X[:, 0] + rng.normal(size=shape[0])
    p, l2 = np.full(shape[0], 1.0 / shape[0]), np.full(shape[1], strength)
    gradients, of = [], NormalEquations.gradient
    monkeypatch.setattr(
        NormalEquations, "gradient", lambda self, *at, **how: gradients.append(1) or of(self, *at, **how)
    )
    fit = solve_least_squares(X, y, p, l2=l2, fit_intercept=True)
    A, b = np.longdouble(X) - np.longdouble(X).mean(axis=0), y - np.longdouble(y).mean()
    left = A.T @ (b - A @ fit.coef) / shape[0] - l2 * fit.coef
    assert len(gradients) <= 1  # none where few columns go their own way
    assert float(np.abs(left).max()) < 2e-14
    assert fit.digits > 11


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("offset", [0.0, 3.0, 100.0])
def test_independent_rows_of_a_wide_matrix_are_met_by_the_shortest_coefficients(
    offset: float, fit_intercept: bool
) -> None:
    rng = np.random.default_rng(5)
    X, y, p = offset + rng.normal(size=(40, 90)), rng.normal(size=40) - 2.0, rng.uniform(0.5, 2.0, 40)
    X[:, 7] = 4.0  # a constant column has no coefficient beside an intercept
    p /= p.sum()
    fit = solve_least_squares(X, y, p, l2=np.zeros(90), fit_intercept=fit_intercept, keep_inverse=True)
    assert fit.method == "least norm"
    assert fit.rank == 40 - fit_intercept
    mean, level = (p @ X, p @ y) if fit_intercept else (np.zeros(90), 0.0)
    root = np.sqrt(p)
    shortest = np.linalg.lstsq(root[:, None] * (X - mean), root * (y - level), rcond=1e-12)[0]
    np.testing.assert_allclose(fit.coef, shortest, atol=1e-12)
    np.testing.assert_allclose(X @ fit.coef + fit.intercept, y, atol=1e-11)
    assert 0.0 <= fit.objective <= fit.gap * (1 + 1e-12) <= 1e-20
    assert fit.inverse is not None
    H = (X - mean).T @ (p[:, None] * (X - mean))
    np.testing.assert_allclose(fit.inverse.matrix, np.linalg.pinv(H, rcond=1e-10, hermitian=True), rtol=1e-6, atol=1e-8)
    twice = solve_least_squares(
        np.vstack([X, X[:1]]),
        np.r_[y, y[:1]],
        np.r_[p, p[:1]] / (1 + p[0]),
        l2=np.zeros(90),
        fit_intercept=fit_intercept,
    )
    assert twice.method == "svd"  # rows that depend on each other
    np.testing.assert_allclose(X @ twice.coef + twice.intercept, y, atol=1e-10)


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("l2", [0.0, 1e-30])
def test_dependent_columns_have_no_gap_but_what_one_huge_row_hides_has(l2: float, stored: Any) -> None:
    """Both are below the digits of the largest entry; only in the second do the other rows know a direction well."""
    rng = np.random.default_rng(0)
    X, y, p = rng.normal(size=(50, 3)), rng.normal(size=50), np.full(50, 0.02)
    options: dict[str, Any] = {"l2": np.full(5, l2), "fit_intercept": True}
    dependent = np.column_stack([X, X[:, 0] + X[:, 1], X[:, 2] / 3.0])
    dependent[0] *= 1e6
    found = solve_least_squares(stored(dependent), y, p, **options)
    assert found.rank == 3
    assert found.gap <= 1e-6 * found.objective
    hidden = 1e9 + rng.normal(size=(50, 5))
    hidden[0] *= 1e6
    found = solve_least_squares(stored(hidden), y, p, **options)
    assert found.rank < 5
    others = np.column_stack([np.ones(49), hidden[1:] - 1e9])  # beside which a step of 1e-15 meets the huge row
    rest = y[1:] - others @ np.linalg.lstsq(others, y[1:], rcond=None)[0]
    assert found.objective - found.gap <= 0.01 * float(rest @ rest)
    assert found.gap > 0.01 * found.objective
