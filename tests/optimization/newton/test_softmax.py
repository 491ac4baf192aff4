"""Softmax regression against an independent optimum, and the loss against finite differences."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles import convex

from certifit.optimization.newton import softmax_newton, softmax_prox
from certifit.optimization.newton.softmax import SoftmaxProblem, block_hessian, dual_bound, evaluate, minimize_softmax
from certifit.optimization.objective.regularizer import Regularizer
from certifit.penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from certifit.progress import Progress

ALPHA = 0.02
WEIGHTS = [1.0, 0.0, 2.0, 1.0]
PENALTIES: list[Penalty] = [NoPenalty(), L2(), L1(), ElasticNet(0.4), L2(weights=WEIGHTS), L1(weights=WEIGHTS)]


def data(seed: int = 0, n: int = 90, d: int = 4, k: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + [0.0, 1.0, 0.0, -2.0][:d]
    y = (X @ rng.normal(size=(d, k)) + 1.5 * rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    p = rng.integers(1, 4, size=n).astype(float)
    return X, y, p / p.sum()


def optimum(X: np.ndarray, y: np.ndarray, p: np.ndarray, penalty: Penalty, alpha: float, intercept: bool) -> float:
    k, (n, d) = int(y.max()) + 1, X.shape
    W, b = cp.Variable((k, d)), cp.Variable((1, k))
    f = X @ W.T + np.ones((n, 1)) @ b
    loss = p @ (cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(f, np.eye(k)[y]), axis=1))
    total = sum(cp.sum(convex.penalty_terms(penalty, W[j])) for j in range(k))
    conditions = [] if intercept else [b == 0]
    if isinstance(penalty, NoPenalty):
        conditions.append(cp.sum(W, axis=0) == 0)
    return convex.solve(cp.Problem(cp.Minimize(loss + alpha * total), conditions))


def problem(
    X: Any, y: np.ndarray, p: np.ndarray, penalty: Penalty, intercept: bool = True, alpha: float = ALPHA
) -> SoftmaxProblem:
    return SoftmaxProblem(X, y, p, int(y.max()) + 1, Regularizer.of(penalty, alpha, None, X.shape[1]), intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_optimum_and_honest_gaps(penalty: Penalty, intercept: bool) -> None:
    X, y, p = data()
    best = optimum(X, y, p, penalty, ALPHA, intercept)
    for max_iter in (1, 2, 3, 1000):
        for rows in (X, sp.csr_array(X)) if max_iter > 2 else (X,):
            solution, c = minimize_softmax(problem(rows, y, p, penalty, intercept), 1e-8, max_iter, Progress())
            assert c.bound <= best + 1e-8
            assert c.objective >= best - 1e-8
            assert c.gap >= c.objective - best - 1e-8
            assert c.certified or max_iter < 1000, str(c)
            assert intercept or not solution.b.any()


@pytest.mark.parametrize("penalty", [L2(), L1(), ElasticNet(0.4)], ids=repr)
def test_bound_at_random_points(penalty: Penalty) -> None:
    X, y, p = data(1)
    best = optimum(X, y, p, penalty, ALPHA, True)
    rng = np.random.default_rng(0)
    one = problem(X, y, p, penalty)
    for size in (1e-3, 0.1, 1.0, 10.0):
        state = evaluate(one, size * rng.normal(size=(3, 4)), size * rng.normal(size=3))
        assert 0.0 <= dual_bound(one, state) <= best + 1e-9


@pytest.mark.parametrize("path", ["by class", "diagonal", "kronecker"])
def test_large_problems_take_other_routes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, p = data(2)
    penalty = L1() if path == "by class" else L2()
    monkeypatch.setattr(softmax_prox, "JOINT_LIMIT", 0)
    monkeypatch.setattr(softmax_newton, "EXACT_LIMIT", 0)
    if path == "diagonal":
        monkeypatch.setattr(softmax_newton, "BLOCK_LIMIT", 0)
    best = optimum(X, y, p, penalty, ALPHA, True)
    _, c = minimize_softmax(problem(X, y, p, penalty), 1e-7, 1000, Progress())
    assert c.certified, str(c)
    assert abs(c.objective - best) <= 2e-7 * problem(X, y, p, penalty).scale


@pytest.mark.parametrize("alpha", [1e-4, 0.0])
def test_tall_data_starts_on_a_part(alpha: float) -> None:
    X, y, p = data(3, n=12_000)
    tall = problem(X, y, p, L2(), alpha=alpha)
    solution, c = minimize_softmax(tall, 1e-8, 1000, Progress())
    assert c.certified, str(c)
    state = evaluate(tall, solution.W, solution.b)
    np.testing.assert_allclose(state.gradient + alpha * solution.W, 0.0, atol=1e-5)
    # The result does not depend on the threads.
    from dataclasses import replace

    again, _ = minimize_softmax(replace(tall, threads=2), 1e-8, 1000, Progress())
    np.testing.assert_array_equal(again.W, solution.W)


def test_block_hessian() -> None:
    X, y, p = data(4, n=30)
    one = problem(X, y, p, L2())
    state = evaluate(one, np.random.default_rng(0).normal(size=(3, 4)), np.zeros(3))
    tilde = np.column_stack([np.ones(30), X])
    wanted = sum(
        p[i] * np.kron(np.diag(q) - np.outer(q, q), np.outer(tilde[i], tilde[i]))
        for i, q in enumerate(state.probability.T)
    )
    np.testing.assert_allclose(block_hessian(one, p, state.probability), wanted, atol=1e-14)
    np.testing.assert_allclose(block_hessian(one, p, state.probability, single=True), wanted, atol=1e-6)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_extreme_units(scale: float) -> None:
    X, y, p = data(5)
    reference, _ = minimize_softmax(problem(X, y, p, NoPenalty()), 1e-10, 1000, Progress())
    found, c = minimize_softmax(problem(scale * X, y, p, NoPenalty()), 1e-10, 1000, Progress())
    assert c.certified
    np.testing.assert_allclose(found.W * scale, reference.W, rtol=1e-4, atol=1e-5)
