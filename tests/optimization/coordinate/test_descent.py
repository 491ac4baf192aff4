"""Coordinate descent against an independent solver, and the honesty of its gap."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from tests.optimization.coordinate.cases import CASES, dual_value, full, objective, oracle, problem
from tests.peak import needs_proc, share_of_x

from certifit.optimization.coordinate import descent
from certifit.optimization.coordinate.descent import (
    Options,
    QuadraticModel,
    Separable,
    gram_quadratic,
    least_squares,
    path,
    tall_least_squares,
)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("name", CASES)
def test_reaches_the_optimum_and_proves_it(name, storage, intercept):
    X, y, p, _ = problem(len(name), density=1.0 if storage == "dense" else 0.4)
    penalty = full(CASES[name], X.shape[1])
    stored = np.asfortranarray(X) if storage == "dense" else sparse.csc_matrix(X)
    best = oracle(X, y, p, **penalty, intercept=intercept)
    fit = least_squares(stored, y, p, Separable(**penalty), Options(1e-10, fit_intercept=intercept))
    assert fit.objective == pytest.approx(
        objective(X, y, p, fit.coef, fit.intercept, penalty["l1"], penalty["l2"]), rel=1e-12
    )
    assert fit.objective == pytest.approx(best, abs=2e-8)
    assert fit.gap <= 1e-10
    assert np.all(fit.coef >= penalty["lower"])
    assert np.all(fit.coef <= penalty["upper"])
    if name not in ("nonnegative", "unpenalized", "own l1, one free"):  # the dual needs exact zeros there
        proof = dual_value(X, y, p, fit.theta, **penalty)
        assert fit.objective - proof == pytest.approx(fit.gap, abs=1e-9)
    if intercept:
        assert abs(p @ fit.theta) < 1e-12
    if name == "zero":
        assert fit.iterations == 0
        assert not fit.coef.any()


SLOW = {
    "lasso": {"l1": 1e-4, "l2": 0.0},
    "elastic net": {"l1": 1e-4, "l2": 1e-6},
    "box": {"l1": 1e-4, "l2": 0.0, "lower": -0.4, "upper": 0.8},
}


def alike(n=160, d=50, density=0.15):
    """Sparse columns, each nearly the mean of its neighbours: sweeps are slow."""
    rng = np.random.default_rng(4)
    X = sparse.random(n, d, density=density, format="csc", random_state=4, data_rvs=rng.standard_normal)
    near = sparse.diags_array([np.ones(d), np.ones(d - 1), np.ones(d - 1), np.ones(d - 2)], offsets=[0, 1, -1, 2])
    X = sparse.csc_matrix(X @ near)
    p = rng.uniform(0.2, 2.0, n)
    return X, X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) + 1.0, p / p.sum()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", SLOW)
def test_sparse_columns_that_are_alike(name, intercept):
    """Conjugate gradients on the support help the sweeps: the same optimum, and a proof of it."""
    X, y, p = alike()
    penalty = full(SLOW[name], X.shape[1])
    best = oracle(X.toarray(), y, p, **penalty, intercept=intercept)
    fit = least_squares(X, y, p, Separable(**penalty), Options(1e-9, fit_intercept=intercept))
    assert fit.gap <= 1e-9
    assert fit.objective == pytest.approx(
        objective(X, y, p, fit.coef, fit.intercept, penalty["l1"], penalty["l2"]), rel=1e-12
    )
    assert -2e-9 <= fit.objective - best <= 1e-9 + 2e-9
    proof = dual_value(X, y, p, fit.theta, **penalty)
    assert fit.objective - proof == pytest.approx(fit.gap, abs=1e-9)


def test_conjugate_gradients_replace_most_sweeps():
    X, y, p = alike(1200, 600, 0.004)
    model = QuadraticModel(X, Separable(1e-4, 0.0))
    step = model.solve(p * (y - p @ y), p, np.zeros(600), Options(1e-9, True, 5000))
    assert step.kkt <= 1e-9
    assert step.iterations <= 400  # without them there are more than 600


CROWDED = {
    "lasso": {"l1": 1e-4, "l2": 0.0},
    "elastic net": {"l1": 1e-4, "l2": 1e-5},
    "own l1": {"l1": np.linspace(1e-5, 1e-3, 90), "l2": 0.0},
    "box": {"l1": 1e-4, "l2": 0.0, "lower": -0.5, "upper": 1.0},
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("name", CROWDED)
def test_more_columns_are_free_than_rows(name, storage, intercept):
    """Where the penalty is weak and rows are few, proximal points take over from sweeps: the same optimum, and a proof of it."""
    X, y, p, _ = problem(3, d=90, density=1.0 if storage == "dense" else 0.4)
    penalty = full(CROWDED[name], 90)
    stored = np.asfortranarray(X) if storage == "dense" else sparse.csc_matrix(X)
    best = oracle(X, y, p, **penalty, intercept=intercept)
    fit = least_squares(stored, y, p, Separable(**penalty), Options(1e-8, fit_intercept=intercept))
    value = objective(X, y, p, fit.coef, fit.intercept, penalty["l1"], penalty["l2"])
    assert fit.objective == pytest.approx(value, rel=1e-12)
    assert fit.gap <= 1e-8
    assert -2e-9 <= fit.objective - best <= 1e-8 + 2e-9
    proof = dual_value(X, y, p, fit.theta, **penalty)
    assert fit.objective - proof == pytest.approx(fit.gap, abs=1e-9)
    assert np.all((fit.coef >= penalty["lower"]) & (fit.coef <= penalty["upper"]))
    if intercept:
        assert abs(p @ fit.theta) < 1e-12


@pytest.mark.parametrize(("n", "d"), [(60, 60), (60, 300), (150, 170)])
def test_nearly_equal_columns_in_few_rows(n, d):
    """Columns that share a factor, a penalty that is nearly none: sweeps took hundreds of working sets, or did not end."""
    rng = np.random.default_rng(n + d)
    X = np.asfortranarray(0.1 * rng.standard_normal((n, d)) + rng.standard_normal((n, 1)))
    y, p = X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(n), np.full(n, 1 / n)
    l1 = 1e-4 * float(np.abs(X.T @ (y - y.mean())).max()) / n
    tol = 1e-6 * 0.5 * float(np.var(y))
    fit = least_squares(X, y, p, Separable(l1, 0.0), Options(tol))
    exact = least_squares(X, y, p, Separable(l1, 0.0), Options(1e-5 * tol))
    assert fit.gap <= tol
    assert exact.gap <= 1e-3 * tol
    assert -1e-12 <= fit.objective - exact.objective <= fit.gap + 1e-12
    assert fit.objective - fit.gap <= exact.objective
    assert fit.iterations <= 20
    copies = least_squares(
        np.asfortranarray(np.repeat(X, 2, axis=0)),
        np.repeat(y, 2),
        np.repeat(p / 2, 2),
        Separable(l1, 0.0),
        Options(tol),
    )
    assert abs(copies.objective - fit.objective) <= tol


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", CASES)
def test_sums_of_tall_rows_reach_the_same_optimum(name, order, intercept):
    X, y, p, rng = problem(len(name), n=700)
    penalty = full(CASES[name], X.shape[1])
    stored = np.asarray(X, order=order)
    fit = tall_least_squares(stored, y, p, Separable(**penalty), Options(1e-10, fit_intercept=intercept))
    if not (penalty["l1"] + penalty["l2"] > 0).all():
        assert fit is None
        return
    exact = least_squares(np.asfortranarray(X), y, p, Separable(**penalty), Options(1e-12, fit_intercept=intercept))
    assert fit.objective == pytest.approx(
        objective(X, y, p, fit.coef, fit.intercept, penalty["l1"], penalty["l2"]), rel=1e-12
    )
    assert fit.gap <= 1e-10
    assert -1e-13 <= fit.objective - exact.objective <= fit.gap + exact.gap + 1e-13
    np.testing.assert_allclose(fit.coef, exact.coef, atol=1e-4)
    start = np.clip(rng.standard_normal(25), penalty["lower"], penalty["upper"])
    again = tall_least_squares(
        stored, y, p, Separable(**penalty), Options(1e-10, fit_intercept=intercept, n_threads=2), start
    )
    assert again.objective == pytest.approx(fit.objective, abs=2e-10)


def test_sums_of_tall_rows_do_not_depend_on_threads_and_refuse_what_they_lose():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 9))
    y, p = X[:, 0] - X[:, 1] + rng.standard_normal(100_000), np.full(100_000, 1e-5)
    for stored in (X, np.asfortranarray(X)):
        fits = [tall_least_squares(stored, y, p, Separable(0.05, 0.0), Options(1e-7, n_threads=k)) for k in (1, 2, 3)]
        assert all(np.array_equal(fit.coef, fits[0].coef) and fit.gap == fits[0].gap for fit in fits)
    # Squares of the mean hide the rest.
    assert tall_least_squares(X + 1e6, y, p, Separable(0.05, 0.0), Options(1e-7)) is None
    assert tall_least_squares(X, y + 1e7, p, Separable(0.05, 0.0), Options(1e-7)) is None
    assert tall_least_squares(X * 1e200, y, p, Separable(0.05, 0.0), Options(1e-7)) is None
    near = tall_least_squares(X + 100.0, y, p, Separable(0.05, 0.0), Options(1e-10))
    np.testing.assert_allclose(near.coef, fits[0].coef, atol=1e-6)
    assert tall_least_squares(X.astype(np.float32), y, p, Separable(0.05, 0.0), Options(1e-7)) is None
    assert tall_least_squares(X[:12], y[:12], p[:12], Separable(0.05, 0.0), Options(1e-7)) is None


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_sums_of_sparse_rows_reach_the_same_optimum(name, intercept, index):
    """Most rows hold nothing, some columns neither."""
    X, y, p, _ = problem(len(name), n=1300)
    X[::3], X[:, 5] = 0.0, 0.0
    X *= np.random.default_rng(0).random(X.shape) < 0.1
    penalty = full(CASES[name], X.shape[1])
    stored = sparse.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(index), stored.indptr.astype(index)
    options = Options(1e-10, fit_intercept=intercept)
    fit = tall_least_squares(stored, y, p, Separable(**penalty), options)
    if not (penalty["l1"] + penalty["l2"] > 0).all():
        assert fit is None
        return
    dense = tall_least_squares(X, y, p, Separable(**penalty), options)
    assert fit.gap <= 1e-10
    assert fit.objective == pytest.approx(
        objective(X, y, p, fit.coef, fit.intercept, penalty["l1"], penalty["l2"]), rel=1e-12
    )
    assert abs(fit.objective - dense.objective) <= 2e-10
    np.testing.assert_allclose(fit.coef, dense.coef, atol=1e-5)


def test_sums_of_sparse_rows_do_not_depend_on_threads_and_refuse_what_they_cannot_read():
    rng = np.random.default_rng(0)
    X = sparse.random(60_000, 12, density=0.05, format="csr", random_state=0, data_rvs=rng.standard_normal)
    y, p = X @ np.arange(12.0) + rng.standard_normal(60_000), np.full(60_000, 1 / 60_000)
    fits = [tall_least_squares(X, y, p, Separable(0.01, 0.0), Options(1e-8, n_threads=k)) for k in (1, 2, 3)]
    assert all(np.array_equal(fit.coef, fits[0].coef) and fit.gap == fits[0].gap <= 1e-8 for fit in fits)
    assert tall_least_squares(X.tocsc(), y, p, Separable(0.01, 0.0), Options(1e-8)) is None
    assert tall_least_squares(X.astype(np.float32), y, p, Separable(0.01, 0.0), Options(1e-8)) is None
    twice = sparse.csr_array(
        (np.tile(X.data[:1], 2), np.zeros(2, dtype=np.int32), np.r_[0, np.full(60_000, 2)]), (60_000, 12)
    )
    assert tall_least_squares(twice, y, p, Separable(0.01, 0.0), Options(1e-8)) is None


@pytest.mark.parametrize("name", CASES)
def test_gap_bounds_the_suboptimality_when_stopped_early(name):
    X, y, p, rng = problem(3, n=60, d=300)
    case = dict(CASES[name])
    if np.ndim(case["l1"]):
        case["l1"] = np.resize(case["l1"], 300)
    penalty = full(case, 300)
    stored = np.asfortranarray(X)
    exact = least_squares(stored, y, p, Separable(**penalty), Options(1e-11))
    start = np.clip(rng.standard_normal(300), penalty["lower"], penalty["upper"])
    gaps = []
    for max_iter in range(6):
        for coef in (None, start):
            fit = least_squares(stored, y, p, Separable(**penalty), Options(1e-11, max_iter=max_iter), coef)
            assert fit.gap >= fit.objective - exact.objective - 1e-9
            assert fit.iterations <= max_iter
        gaps.append(fit.gap)
    assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("q", [1.1, 1.5, 2.0])
def test_powers(q):
    X, y, p, _ = problem(7)
    fit = least_squares(np.asfortranarray(X), y, p, Separable(0.1, 0.01, q=q), Options(1e-9))
    w, b = cp.Variable(25), cp.Variable()
    cost = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(p), y - X @ w - b)) + 0.005 * cp.sum_squares(w)
    task = cp.Problem(cp.Minimize(cost + 0.1 / q * cp.sum(cp.power(cp.abs(w), q))))
    task.solve(solver=cp.CLARABEL)
    assert fit.gap <= 1e-9
    assert fit.objective == pytest.approx(task.value, abs=1e-6)
    assert fit.gap >= fit.objective - task.value - 1e-6


@pytest.mark.parametrize("storage", ["dense", "csc"])
def test_float32(storage):
    X, y, p, _ = problem(11)
    X = X.astype(np.float32)
    penalty = full(CASES["lasso"], 25)
    stored = np.asfortranarray(X) if storage == "dense" else sparse.csc_matrix(X)
    fit = least_squares(stored, y, p, Separable(**penalty), Options(1e-8))
    best = oracle(X.astype(float), y, p, **penalty, intercept=True)
    assert fit.gap <= 1e-8
    assert fit.objective == pytest.approx(best, abs=1e-7)


def test_a_weight_is_a_repetition():
    X, y, _, rng = problem(5)
    times = rng.integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), times)
    a = least_squares(np.asfortranarray(X), y, times / times.sum(), Separable(0.05, 0.01), Options(1e-12))
    p = np.full(len(repeated), 1 / len(repeated))
    b = least_squares(np.asfortranarray(X[repeated]), y[repeated], p, Separable(0.05, 0.01), Options(1e-12))
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-6)
    assert a.objective == pytest.approx(b.objective, abs=1e-11)


@pytest.mark.parametrize("shape", [(200, 1500), (9000, 40)])
def test_threads_do_not_change_a_bit(shape):
    X, y, p, _ = problem(2, *shape)
    fits = [least_squares(np.asfortranarray(X), y, p, Separable(0.02, 0.0), Options(1e-9, n_threads=k)) for k in (1, 2)]
    np.testing.assert_array_equal(fits[0].coef, fits[1].coef)
    np.testing.assert_array_equal(fits[0].theta, fits[1].theta)
    assert fits[0].gap == fits[1].gap


def test_correlated_columns_and_warm_start():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(np.cumsum(rng.standard_normal((150, 800)), axis=1) / 10)
    y = X[:, ::100].sum(axis=1) + rng.standard_normal(150)
    p = np.full(150, 1 / 150)
    l1 = np.abs((X - X.mean(0)).T @ (y - y.mean())).max() / 150 / 100
    fit = least_squares(X, y, p, Separable(l1, 0.0), Options(1e-10))
    assert fit.gap <= 1e-10
    again = least_squares(X, y, p, Separable(l1, 0.0), Options(1e-10), fit.coef)
    assert again.iterations <= 1
    assert again.objective == pytest.approx(fit.objective, abs=1e-10)


def test_columns_that_share_a_factor_are_solved_beyond_what_a_sweep_sees():
    """The estimate of the gap in a sweep is 18 times too small here: sweeps alone end with 4 % of the objective open."""
    rng = np.random.default_rng(0)
    n, d = 10_000, 1_000
    X = rng.standard_normal((n, d)) * np.sqrt(0.5)
    X += np.sqrt(0.5) * rng.standard_normal((n, 1))
    w = np.zeros(d)
    w[rng.choice(d, d // 10, replace=False)] = rng.standard_normal(d // 10)
    scores = X @ w
    X = np.asfortranarray(X)
    y = scores + 0.5 * scores.std() * rng.standard_normal(n)
    p = np.full(n, 1 / n)
    strongest = np.abs(X.T @ (y - y.mean())).max() / n
    fit = least_squares(X, y, p, Separable(strongest / 300, 0.0), Options(5e-7 * y.var()))
    assert fit.gap <= 5e-7 * y.var()
    assert objective(X, y, p, fit.coef, fit.intercept, strongest / 300, 0.0) == pytest.approx(fit.objective, rel=1e-12)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("storage", ["dense", "csc"])
def test_path_equals_separate_fits(storage, l1_ratio):
    X, y, p, _ = problem(9, n=60, d=200, density=1.0 if storage == "dense" else 0.3)
    stored = np.asfortranarray(X) if storage == "dense" else sparse.csc_array(X)
    top = np.abs((X - p @ X).T @ (p * y)).max() / l1_ratio
    alphas = top * np.geomspace(1, 0.01, 20)
    fits = path(stored, y, p, alphas, Separable(l1_ratio, 1.0 - l1_ratio), Options(1e-9))
    assert not fits.coefs[0].any()
    assert np.all(fits.gaps <= 1e-9)
    for k, alpha in enumerate(alphas):
        l1, l2 = alpha * l1_ratio, alpha * (1 - l1_ratio)
        one = least_squares(stored, y, p, Separable(l1, l2), Options(1e-9))
        assert fits.objectives[k] == pytest.approx(one.objective, abs=2e-9)
        value = objective(X, y, p, fits.coefs[k], fits.intercepts[k], alpha * l1_ratio, alpha * (1 - l1_ratio))
        assert fits.objectives[k] == pytest.approx(value, rel=1e-11)


def crowded(n=150, d=160):
    """Correlated columns, two of them twice: down the path the support fills the rows, and columns come and go."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1))
    X[:, 5], X[:, 40] = X[:, 4], -X[:, 3]
    y = X[:, :8].sum(axis=1) + rng.standard_normal(n)
    p = rng.uniform(0.5, 1.5, n)
    return np.asfortranarray(X), y, p / p.sum()


@pytest.mark.parametrize(("lower", "leave", "stay"), [(None, 20, 100), (0.0, 4, 15)])
def test_path_down_to_a_full_support(lower, leave, stay):
    X, y, p = crowded()
    alphas = np.abs((X - p @ X).T @ (p * (y - p @ y))).max() * np.geomspace(1, 1e-4, 40)
    fits = path(X, y, p, alphas, Separable(1.0, 0.0, lower=lower), Options(1e-11))
    here = fits.coefs != 0
    assert (here[:-1] & ~here[1:]).sum() > leave  # the factor has lost columns, not only gained them
    assert here[-1].sum() > stay
    assert np.all(fits.gaps <= 1e-11)
    for k in (5, 20, 30, 39):
        one = least_squares(X, y, p, Separable(alphas[k], 0.0, lower=lower), Options(1e-11))
        assert fits.objectives[k] == pytest.approx(one.objective, abs=2e-11)
        value = objective(X, y, p, fits.coefs[k], fits.intercepts[k], alphas[k], 0.0)
        assert fits.objectives[k] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_gaps_of_a_path_are_true(tol):
    X, y, p = crowded()
    alphas = np.abs((X - p @ X).T @ (p * (y - p @ y))).max() * np.geomspace(1, 1e-3, 30)
    exact = path(X, y, p, alphas, Separable(1.0, 0.0), Options(1e-12))
    rough = path(X, y, p, alphas, Separable(1.0, 0.0), Options(tol))
    assert np.all(rough.gaps <= tol)
    assert np.all(rough.objectives - exact.objectives <= rough.gaps + 1e-12)
    stopped = path(X, y, p, alphas, Separable(1.0, 0.0), Options(1e-12, max_iter=1))
    assert np.all(stopped.iterations <= 1)
    assert np.all(stopped.objectives - exact.objectives <= stopped.gaps + 1e-12)


def test_threads_do_not_change_a_bit_of_a_path():
    X, y, p = crowded(900, 500)
    alphas = np.abs((X - p @ X).T @ (p * (y - p @ y))).max() * np.geomspace(1, 1e-3, 20)
    one, two = (path(X, y, p, alphas, Separable(1.0, 0.0), Options(1e-7, n_threads=k)) for k in (1, 2))
    np.testing.assert_array_equal(one.coefs, two.coefs)
    np.testing.assert_array_equal(one.gaps, two.gaps)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("storage", ["dense", "csc"])
@pytest.mark.parametrize("name", ["lasso", "elastic net", "nonnegative lasso", "box lasso", "own l1, one free"])
def test_quadratic(name, storage, intercept):
    X, _, h, rng = problem(4, density=1.0 if storage == "dense" else 0.4)
    penalty = full(CASES[name], 25)
    stored = np.asfortranarray(X) if storage == "dense" else sparse.csc_matrix(X)
    r = rng.standard_normal(len(h)) * 0.1
    coef = np.clip(rng.standard_normal(25) * (rng.random(25) < 0.5), penalty["lower"], penalty["upper"])
    columns = np.sort(rng.choice(25, 15, replace=False))
    model = QuadraticModel(stored, Separable(**penalty))
    step = model.solve(r, h + 1e-3, coef, Options(1e-10, fit_intercept=intercept), columns)
    h = h + 1e-3
    moved = cp.Variable(25)
    b = cp.Variable()
    z = X @ moved + (b if intercept else 0)
    w = coef + moved
    cost = -r @ z + 0.5 * cp.sum_squares(cp.multiply(np.sqrt(h), z)) + cp.norm1(cp.multiply(penalty["l1"], w))
    cost += 0.5 * cp.sum_squares(cp.multiply(np.sqrt(penalty["l2"]), w))
    rules = [moved[j] == 0 for j in range(25) if j not in columns]
    rules += [w[j] >= penalty["lower"][j] for j in columns if np.isfinite(penalty["lower"][j])]
    rules += [w[j] <= penalty["upper"][j] for j in columns if np.isfinite(penalty["upper"][j])]
    task = cp.Problem(cp.Minimize(cost), rules)
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11)
    scores = X @ (step.coef - coef) + step.intercept_change
    np.testing.assert_allclose(step.scores_change, scores, atol=1e-12)
    value = -r @ scores + 0.5 * h @ scores**2
    value += penalty["l1"] @ np.abs(step.coef) + 0.5 * penalty["l2"] @ step.coef**2
    assert step.kkt <= 1e-10
    assert value == pytest.approx(task.value, abs=1e-7)
    outside = np.setdiff1d(np.arange(25), columns)
    np.testing.assert_array_equal(step.coef[outside], coef[outside])


@pytest.mark.parametrize("q", [None, 1.5])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ["lasso", "elastic net", "box lasso", "nonnegative", "unpenalized"])
def test_gram_quadratic(name, order, q):
    X, y, p, rng = problem(6)
    penalty = full(CASES[name], 25)
    G = np.array(X.T @ (p[:, None] * X), order=order)
    coef = np.clip(rng.standard_normal(25), penalty["lower"], penalty["upper"])
    g = X.T @ (p * (y - X @ coef))
    fit = gram_quadratic(G, g, Separable(**penalty, q=q), coef, Options(1e-9, max_iter=100_000))
    same = least_squares(np.asfortranarray(X), y, p, Separable(**penalty, q=q), Options(1e-12, fit_intercept=False))
    assert fit.kkt <= 1e-9
    np.testing.assert_allclose(fit.coef, same.coef, atol=1e-5)
    np.testing.assert_allclose(fit.negative_gradient, X.T @ (p * (y - X @ fit.coef)), atol=1e-10)


@pytest.mark.parametrize("scale_x", [1e-150, 1e-80, 1.0, 1e80, 1e150])
@pytest.mark.parametrize("scale_y", [1e-150, 1.0, 1e150])
def test_extreme_magnitudes_end_without_nan(scale_x, scale_y):
    X, y, p, _ = problem(8)
    with np.errstate(over="ignore", under="ignore"):
        l1 = 0.05 * min(scale_x * scale_y, 1e300)
    fit = least_squares(np.asfortranarray(X * scale_x), y * scale_y, p, Separable(l1, 0.0), Options(0.0, max_iter=50))
    assert np.all(np.isfinite(fit.coef))
    assert fit.gap >= 0


def test_degenerate_shapes():
    rng = np.random.default_rng(0)
    one = least_squares(np.array([[2.0]]), [3.0], [1.0], Separable(0.1, 0.0), Options(1e-12))
    assert one.coef[0] == 0
    assert one.intercept == 3
    no_intercept = least_squares(
        np.array([[2.0]]), [3.0], [1.0], Separable(0.1, 0.0), Options(1e-12, fit_intercept=False)
    )
    assert no_intercept.coef[0] == pytest.approx(5.9 / 4)
    X = np.asfortranarray(rng.standard_normal((20, 6)))
    X[:, 1] = 5.0
    X[:, 2] = 0.0
    X[:, 4] = X[:, 3]
    p = np.full(20, 0.05)
    for l1, l2 in ((0.0, 0.0), (0.01, 0.0), (0.0, 0.1)):
        for y in (np.zeros(20), rng.standard_normal(20)):
            fit = least_squares(X, y, p, Separable(l1, l2), Options(1e-10))
            assert fit.gap <= 1e-10
            assert np.all(np.isfinite(fit.coef))
    empty = least_squares(
        np.empty((5, 0), order="F"), np.arange(5.0), np.full(5, 0.2), Separable(0.1, 0.0), Options(1e-12)
    )
    assert empty.intercept == pytest.approx(2.0)
    nobody = least_squares(X, rng.standard_normal(20), np.zeros(20), Separable(0.1, 0.0), Options(1e-12))
    assert not nobody.coef.any()


def test_duplicate_entries_of_a_sparse_matrix_add_up():
    data = sparse.csc_matrix((np.array([1.0, 1.0, 3.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(3, 2))
    y, p = np.array([1.0, 2.0, 0.0]), np.full(3, 1 / 3)
    a = least_squares(data, y, p, Separable(0.01, 0.0), Options(1e-12))
    b = least_squares(np.asfortranarray(data.toarray()), y, p, Separable(0.01, 0.0), Options(1e-12))
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-8)
    assert not data.has_canonical_format


def test_a_path_ends_soon_where_rounding_leaves_no_finite_gap():
    worst = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, p = np.asfortranarray(rng.normal(size=(32, 5)) + 1e8), np.full(32, 1 / 32)
        y = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=32)
        largest = np.abs((X - X.mean(axis=0)).T @ (p * (y - y.mean()))).max()
        found = path(X, y, p, largest * np.geomspace(1, 1e-3, 30), Separable(1.0, 0.0), Options(1e-7 * y.var()))
        assert np.isfinite(found.coefs).all()
        worst = max(worst, int(found.iterations.max()))
    assert worst < 200  # of the 1,000 that are allowed


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "d", "correlation"), [(300, 4_000, 0.0), (2_600, 420, 0.9), (1_100, 1_000, 0.99)])
@pytest.mark.parametrize("strength", [0.5, 0.05, 0.003])
def test_columns_held_beside_rows_give_what_all_columns_give(n, d, correlation, strength, intercept, monkeypatch):
    monkeypatch.setattr(descent, "WIDE", 0.0)
    rng = np.random.default_rng(n + d)
    X = (
        np.sqrt(1 - correlation) * rng.standard_normal((n, d))
        + np.sqrt(correlation) * rng.standard_normal((n, 1))
        + 0.5
    )
    X[:, 7], X[:, 8] = 3.0, 0.0
    y, p = X[:, :20] @ rng.standard_normal(20) + 3.0 + rng.standard_normal(n), rng.random(n)
    p /= p.sum()
    centered = y - p @ y if intercept else y
    l1 = strength * float(np.abs(X.T @ (p * centered)).max()) * rng.uniform(0.5, 1.0, d)
    l2, lower = np.where(rng.random(d) < 0.5, 0.01, 0.0), np.where(rng.random(d) < 0.3, 0.0, -np.inf)
    penalty, tol = Separable(l1, l2, lower), 1e-7 * float(p @ centered**2)
    fit = least_squares(X, y, p, penalty, Options(tol, intercept))
    exact = least_squares(np.asfortranarray(X), y, p, penalty, Options(1e-3 * tol, intercept))
    assert fit.objective == pytest.approx(objective(X, y, p, fit.coef, fit.intercept, l1, l2), rel=1e-11)
    assert (fit.coef >= lower).all()
    assert fit.gap <= tol
    assert fit.objective - fit.gap <= exact.objective + 1e-12
    assert fit.objective >= exact.objective - exact.gap - 1e-12
    assert least_squares(X, y, p, penalty, Options(tol, intercept), fit.coef).gap <= tol
    threads = least_squares(X, y, p, penalty, Options(tol, intercept, n_threads=3))
    assert np.array_equal(threads.coef, fit.coef)


@needs_proc
@pytest.mark.parametrize(("n", "d"), [(800, 4_000), (400, 10_000)])
def test_a_lasso_does_not_copy_columns_that_do_not_count(n, d):
    assert share_of_x("Lasso(alpha=0.05)", n, d) < 0.6
