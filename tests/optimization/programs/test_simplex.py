"""Weights on the simplex against an independent solver, and the gap against the true one."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certifit.optimization.programs.simplex import mixture_weights, simplex_gap, simplex_quadratic

SEEDS = st.integers(0, 2**32 - 1)


def on_simplex(w: np.ndarray) -> bool:
    return bool((w >= 0).all() and abs(w.sum() - 1) < 1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_least_squares_agrees_with_clarabel(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(60, k))
    b = A @ rng.dirichlet(np.full(k, 0.3)) + rng.normal(size=60)
    w = simplex_quadratic(A.T @ A, A.T @ b)
    x = cp.Variable(k)
    cp.Problem(cp.Minimize(cp.sum_squares(A @ x - b)), [x >= 0, cp.sum(x) == 1]).solve(solver="CLARABEL")
    assert on_simplex(w)
    assert np.sum((A @ w - b) ** 2) <= np.sum((A @ x.value - b) ** 2) * (1 + 1e-8)


def test_equal_columns_share_and_stay_solvable() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(40, 1))
    A = np.hstack([a, a, a])
    w = simplex_quadratic(A.T @ A, A.T @ a[:, 0])
    assert on_simplex(w)
    np.testing.assert_allclose(A @ w, a[:, 0], atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 7), st.floats(1e-120, 1e120))
def test_the_scale_of_a_quadratic_does_not_matter(seed: int, k: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(20, k)), rng.normal(size=20)
    w = simplex_quadratic(A.T @ A * scale, A.T @ b * scale)
    assert on_simplex(w)
    gradient = A.T @ (A @ w - b)
    assert simplex_gap(gradient, w) <= 1e-8 * np.abs(A.T @ b).max()


@pytest.mark.parametrize("seed", range(8))
def test_mixture_weights_agree_with_clarabel_and_the_gap_is_true(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = 150, 5
    P = rng.dirichlet(np.ones(3), size=(n, k))[:, :, 0] + 1e-6
    weight = rng.uniform(0.1, 1.0, n)
    weight /= weight.sum()
    w, gap, _ = mixture_weights(P, weight)
    x = cp.Variable(k)
    problem = cp.Problem(cp.Maximize(weight @ cp.log(P @ x)), [x >= 0, cp.sum(x) == 1])
    problem.solve(solver="CLARABEL")
    value = -float(weight @ np.log(P @ w))
    assert on_simplex(w)
    assert gap < 1e-6
    assert value - gap <= -problem.value + 1e-7
    assert value <= -problem.value + 1e-7


def test_the_gap_bounds_the_distance_at_any_point() -> None:
    rng = np.random.default_rng(1)
    P, weight = rng.uniform(0.05, 1.0, size=(80, 4)), np.full(80, 1 / 80)
    best, _, _ = mixture_weights(P, weight, tol=1e-12)
    least = -float(weight @ np.log(P @ best))
    for _ in range(50):
        w = rng.dirichlet(np.ones(4))
        gradient = -(weight @ (P / (P @ w)[:, None]))
        assert -float(weight @ np.log(P @ w)) - simplex_gap(gradient, w) <= least + 1e-12


def test_one_perfect_member_gets_all_the_weight() -> None:
    P = np.column_stack([np.full(30, 0.99), np.full(30, 0.5), np.full(30, 0.2)])
    w, _, _ = mixture_weights(P, np.full(30, 1 / 30))
    np.testing.assert_allclose(w, [1.0, 0.0, 0.0], atol=1e-6)
