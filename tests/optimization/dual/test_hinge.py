"""Dual coordinate descent, Newton on multipliers and Pegasos against an independent solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles import convex

from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.losses import EpsilonInsensitive, Hinge
from certifit.optimization.dual.hinge import classes_of, hinge_dual, multiclass_dual
from certifit.optimization.newton.kinked import Kinks, solve_newton
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.stochastic.pegasos import Pegasos
from certifit.penalties import L2
from certifit.progress import Progress


def binary(n=120, d=6, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + shift
    y = (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.4).astype(float)
    p = rng.integers(1, 4, size=n).astype(float)
    return X, y, p / p.sum()


def regression(n=120, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    p = rng.random(n) + 0.1
    return X, 2.0 * X[:, 0] + rng.normal(size=n) + 3.0, p / p.sum()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1.0, 0.03, 1e-3])
@pytest.mark.parametrize("kind", ["hinge", "epsilon"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_optimum_is_reached_and_bounded(kind, alpha, fit_intercept, sparse):
    X, y, p = binary() if kind == "hinge" else regression()
    loss = Hinge() if kind == "hinge" else EpsilonInsensitive(0.3)
    optimum, coef, _ = convex.optimum(X, y, p, loss, L2(), alpha, fit_intercept=fit_intercept)
    found = hinge_dual(
        sp.csr_array(X) if sparse else X, loss.hinge_terms(y), p, alpha=alpha, fit_intercept=fit_intercept,
        tol=1e-7, max_iter=60_000,
    )  # fmt: skip
    assert found.objective - found.bound <= 1e-7
    assert found.bound <= optimum + 1e-9
    assert found.objective >= optimum - 1e-9
    value = convex.objective(X, y, p, loss, L2(), alpha, found.coef, found.intercept)
    assert value == pytest.approx(found.objective, rel=1e-9)
    # Strong convexity: ½alpha‖w − w*‖² is at most the gap.
    assert 0.5 * alpha * np.sum((found.coef - coef) ** 2) <= 1e-7 + 1e-9
    low, high = loss.dual_domain(y)
    assert ((found.theta >= low) & (found.theta <= high)).all()
    if fit_intercept:
        assert abs(p @ found.theta) <= 1e-14


@pytest.mark.parametrize("epochs", [1, 2, 5, 20])
def test_a_run_that_stops_early_is_honest(epochs):
    X, y, p = binary(shift=3.0)
    optimum, _, _ = convex.optimum(X, y, p, Hinge(), L2(), 1e-3)
    found = hinge_dual(X, Hinge().hinge_terms(y), p, alpha=1e-3, tol=0.0, max_iter=epochs)
    assert found.bound <= optimum + 1e-9 <= found.objective + 2e-9


def test_a_second_side_that_is_never_reached_changes_nothing():
    """Losses of one side have a visit of their own; a kink far away takes the general one."""
    X, y, p = binary(d=4)
    one = Hinge().hinge_terms(y)
    far = TwoSidedHinge(np.where(y > 0.5, 1.0, -1e6), np.where(y > 0.5, 1e6, -1.0), np.ones_like(y), np.ones_like(y))
    found, general = (hinge_dual(X, terms, p, alpha=0.01, tol=1e-9, max_iter=50_000) for terms in (one, far))
    assert found.objective == pytest.approx(general.objective, abs=2e-9)
    assert found.bound <= general.objective + 1e-12
    assert general.bound <= found.objective + 1e-12


def test_where_the_balance_is_what_is_slow_the_intercept_moves_faster():
    """A penalty so strong that all slopes are at their limits: only the intercept has to find its place."""
    rng = np.random.default_rng(0)
    X = 0.1 * (rng.normal(size=(3000, 10)) + rng.normal(size=(3000, 1)))
    y = (X[:, 0] + 0.1 * rng.normal(size=3000) > 0.02).astype(float)
    p = np.full(3000, 1 / 3000)
    found = hinge_dual(X, Hinge().hinge_terms(y), p, alpha=0.05, tol=1e-4, intercept=-1.0)
    exact = hinge_dual(X, Hinge().hinge_terms(y), p, alpha=0.05, tol=1e-9, max_iter=50_000)
    assert found.objective - found.bound <= 1e-4
    assert found.bound <= exact.objective
    assert found.objective >= exact.bound
    assert found.iterations <= 30


def test_under_a_weak_penalty_the_intercept_moves_with_the_margin():
    """As a feature of a share of the rows it locked them where nearly all are on the margin: 512 epochs, now 33."""
    rng = np.random.default_rng(0)
    X = sp.random(480, 2730, density=0.002, format="csr", random_state=0, data_rvs=rng.standard_normal) * 40.0
    y = (rng.random(480) < 0.7).astype(float)
    found = hinge_dual(X, Hinge().hinge_terms(y), np.full(480, 1 / 480), alpha=1e-3, tol=1e-3, max_iter=150)
    assert found.objective - found.bound <= 1e-3


def test_from_a_wrong_intercept_a_weak_penalty_has_hope():
    """Sums at two centres say where the balance is, and epochs of all rows what is left: it ends by rows in turn."""
    rng = np.random.default_rng(0)
    X = 65.0 * rng.normal(size=(170, 194))
    y = (X[:, 0] + 65.0 * rng.normal(size=170) > 0).astype(float)
    terms, p = Hinge().hinge_terms(y), np.full(170, 1 / 170)
    found = hinge_dual(X, terms, p, alpha=0.9, tol=1e-3, max_iter=300, hopeful=True, intercept=1.0)
    assert found.objective - found.bound <= 1e-3
    assert found.iterations <= 80


def test_what_has_no_hope_ends_early():
    X, y, p = binary()
    terms = Hinge().hinge_terms(y)
    optimum, _, _ = convex.optimum(X, y, p, Hinge(), L2(), 1e-6)
    found = hinge_dual(X, terms, p, alpha=1e-6, tol=1e-9, max_iter=2000, hopeful=True)
    assert found.iterations < 200
    assert found.bound <= optimum + 1e-9
    assert found.objective >= optimum - 1e-9
    easy = hinge_dual(X, terms, p, alpha=1.0, tol=1e-6, max_iter=2000, hopeful=True)
    assert easy.objective - easy.bound <= 1e-6


def test_classes_of_rows():
    """Of the distance to a limit and the distance to the kink, the larger one decides."""
    rng = np.random.default_rng(1)
    terms = EpsilonInsensitive(0.5).hinge_terms(np.zeros(400))
    theta = np.clip(rng.normal(size=400), -1, 1) * rng.integers(0, 2, 400)
    f = rng.normal(size=400)
    room, size = 1.0 - np.abs(theta), np.abs(theta)
    far, flat = np.abs(np.abs(f) - 0.5) / 0.7, np.abs(f) <= 0.5
    free = (size == 0) | (flat & (size <= far))
    expected = np.where(free, 0, np.where((room <= 0) | (~flat & (room <= far)), 2, 1))
    np.testing.assert_array_equal(classes_of(terms, np.ones(400), theta, f, 0.7), expected)


def test_the_order_of_rows_is_a_matter_of_the_seed():
    X, y, p = binary()
    one, same, other = (hinge_dual(X, Hinge().hinge_terms(y), p, alpha=0.01, tol=1e-3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.coef, same.coef)
    assert (one.coef != other.coef).any()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_features_of_any_size(scale):
    X, y, p = binary()
    plain = hinge_dual(X, Hinge().hinge_terms(y), p, alpha=0.01, tol=1e-9, max_iter=50_000)
    scaled = hinge_dual(X * scale, Hinge().hinge_terms(y), p, alpha=0.01 * scale**2, tol=1e-9, max_iter=50_000)
    assert scaled.coef * scale == pytest.approx(plain.coef, abs=1e-3)
    assert scaled.objective == pytest.approx(plain.objective, abs=1e-8)


@pytest.mark.parametrize("kind", ["hinge", "epsilon", "absolute"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_newton_on_merged_rows(kind, fit_intercept):
    X, y, p = binary(9000, 4, 1) if kind == "hinge" else regression(9000, 4, 1)
    loss = Hinge() if kind == "hinge" else EpsilonInsensitive(0.0 if kind == "absolute" else 0.3)
    alpha = 1e-3
    found = solve_newton(
        X, Kinks.of(loss.hinge_terms(y), p), np.full(4, alpha), fit_intercept=fit_intercept, tol=1e-4, max_iter=200
    )
    reference = hinge_dual(X, loss.hinge_terms(y), p, alpha=alpha, fit_intercept=fit_intercept, tol=1e-5, max_iter=5000)
    assert found.objective - found.bound <= 1e-4
    assert found.bound <= reference.objective + 1e-12
    assert found.objective >= reference.bound - 1e-12
    value = p @ loss.value(y, X @ found.coef + found.intercept) + 0.5 * alpha * found.coef @ found.coef
    assert value == pytest.approx(found.objective, rel=1e-12)
    dual = -p @ loss.conjugate(y, found.theta) - 0.5 * np.sum((X.T @ (p * found.theta)) ** 2) / alpha
    assert dual == pytest.approx(found.bound, abs=1e-12)
    if fit_intercept:
        assert abs(p @ found.theta) <= 1e-14


def multiclass_optimum(X, label, p, delta, alpha, fit_intercept):
    import cvxpy as cp

    (n, d), K = X.shape, delta.shape[0]
    W, b = cp.Variable((K, d)), cp.Variable(K)
    F = X @ W.T + np.ones((n, 1)) @ cp.reshape(b, (1, K), order="C")
    own = cp.sum(cp.multiply(F, np.eye(K)[label]), axis=1)
    loss = cp.max(F + delta[label], axis=1) - own
    primal = convex.solve(
        cp.Problem(cp.Minimize(p @ loss + 0.5 * alpha * cp.sum_squares(W)), [] if fit_intercept else [b == 0])
    )
    beta = cp.Variable((n, K), nonneg=True)
    theta = cp.multiply(p[:, None] @ np.ones((1, K)), beta - np.eye(K)[label])
    value = cp.sum(cp.multiply(p[:, None] * delta[label], beta)) - cp.sum_squares(theta.T @ X) / (2 * alpha)
    conditions = [cp.sum(beta, axis=1) == 1, *([cp.sum(theta, axis=0) == 0] if fit_intercept else [])]
    dual = -convex.solve(cp.Problem(cp.Minimize(-value), conditions))
    assert dual == pytest.approx(primal, abs=1e-7)
    return primal


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("costs", ["zero-one", "ordinal", "random"])
def test_multiclass_against_primal_and_dual(costs, fit_intercept):
    rng = np.random.default_rng(3)
    K, n, d = 4, 70, 3
    X = rng.normal(size=(n, d)) + 0.5
    label = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.3, 0.5, 1.2])
    p = rng.random(n) + 0.1
    p /= p.sum()
    delta = {
        "zero-one": 1 - np.eye(K),
        "ordinal": np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(float),
        "random": rng.random((K, K)) * (1 - np.eye(K)) * 3,
    }[costs]
    optimum = multiclass_optimum(X, label, p, delta, 0.02, fit_intercept)
    for rows in (X, sp.csr_array(X)):
        found = multiclass_dual(
            rows, label, p, delta, alpha=0.02, fit_intercept=fit_intercept, tol=1e-7, max_iter=40_000
        )
        assert found.objective - found.bound <= 1e-7
        assert found.bound <= optimum + 1e-8
        assert found.objective >= optimum - 1e-8
        assert found.theta.sum(axis=1) == pytest.approx(1.0)
        assert found.theta.min() >= 0
        if fit_intercept:
            np.testing.assert_allclose(p @ (found.theta - np.eye(K)[label]), 0.0, atol=1e-13)
    for epochs in (1, 3, 10):
        early = multiclass_dual(X, label, p, delta, alpha=0.02, fit_intercept=fit_intercept, tol=0.0, max_iter=epochs)
        assert early.bound <= optimum + 1e-8 <= early.objective + 2e-8


@pytest.mark.parametrize("average", [False, True])
def test_pegasos_converges_and_its_gap_is_honest(average):
    X, y, p = binary()
    alpha = 0.1
    optimum, _, _ = convex.optimum(X, y, p, Hinge(), L2(), alpha)
    problem = Problem(X, y, p, Hinge(), Regularizer.of(L2(), alpha, None, X.shape[1]), True)
    gaps = []
    for passes in (4, 64, 2048):
        found = Pegasos(average=average)(problem, problem.start(), 0.0, passes, Progress())
        assert found.bound <= optimum + 1e-9 <= found.objective + 2e-9
        gaps.append(found.objective - found.bound)
    assert gaps[2] < 0.3 * gaps[0]
    assert gaps[2] < 0.02


def test_pegasos_draws_rows_by_weight():
    """A weight of 2 and a row twice: the same distribution of coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=30) > 0).astype(float)
    weight = rng.integers(1, 4, size=30)
    again = np.repeat(np.arange(30), weight)

    def coefs(X, y, p):
        problem = Problem(X, y, p / p.sum(), Hinge(), Regularizer.of(L2(), 0.1, None, 2), True)
        steps = 6 * 30 * 2 // X.shape[0]
        runs = [Pegasos(seed, average=True)(problem, problem.start(), 0.0, steps, Progress()) for seed in range(150)]
        return np.array([found.coef for found in runs])

    a, b = coefs(X, y, weight.astype(float)), coefs(X[again], y[again], np.ones(again.shape[0]))
    error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 150)
    assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 5 * error + 0.02).all()


def epochs_of(X, y, kappa):
    """Epochs to a gap of 10⁻³ of the scale from the best constant, where mean ‖x‖² is kappa·alpha·n."""
    n = X.shape[0]
    alpha = float(sp.csr_array(X).power(2).sum()) / n / n / kappa
    rarer = min(y.mean(), 1.0 - y.mean())
    start = 1.0 if y.mean() > 0.5 else -1.0
    p = np.full(n, 1.0 / n)
    found = hinge_dual(
        X, Hinge().hinge_terms(y), p, alpha=alpha, intercept=start, tol=2e-3 * rarer, max_iter=3000, seed=0
    )
    assert found.objective - found.bound <= 2e-3 * rarer
    return found.iterations


@pytest.mark.parametrize("seed", range(4))
def test_a_weak_penalty_does_not_let_the_intercept_creep(seed):
    """Every row follows any intercept: without the secant through the sums at its last two values 40 to 50 epochs."""
    rng = np.random.default_rng(seed)
    X = sp.random(300, 3000, density=0.02, format="csr", random_state=seed, data_rvs=rng.standard_normal)
    f = np.asarray(X @ rng.normal(size=3000)).ravel()
    assert epochs_of(X, (f > np.quantile(f, 0.2)).astype(float), 1e5) <= 20


@pytest.mark.parametrize("seed", range(4))
def test_a_strong_penalty_does_not_let_the_intercept_swing(seed):
    """Where few epochs do, the sums of one are not those of its centre: with the secant up to 1,064 epochs."""
    rng = np.random.default_rng(seed)
    X = np.sqrt(0.1) * rng.normal(size=(900, 12)) + np.sqrt(0.9) * rng.normal(size=(900, 1))
    f = X @ rng.normal(size=12)
    y = (rng.random(900) < 1 / (1 + np.exp(-2 * f / f.std()))).astype(float)
    assert max(epochs_of(X, y, kappa) for kappa in (0.0015, 0.002, 0.004, 0.01)) <= 60
