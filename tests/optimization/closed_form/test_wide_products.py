"""Wide ridge regression with a weak penalty by conjugate gradients: directions in the span of the rows need few products."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import Ridge
from certifit.losses import Squared
from certifit.optimization.closed_form.conjugate import conjugate_ridge
from certifit.optimization.closed_form.hat import hat_matrix, leverage
from certifit.optimization.closed_form.least_squares import solve_least_squares
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.penalties import L2


def wide(n: int, d: int, factor: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + factor * rng.normal(size=(n, 1)) + 0.3
    return X, X[:, :5].sum(axis=1) + rng.normal(size=n)


def problem(X: Any, y: np.ndarray, l2: float) -> Problem:
    n, d = X.shape
    return Problem(X, y, np.full(n, 1 / n), Squared(), Regularizer.of(L2(), l2, None, d), True)


def exact(X: np.ndarray, y: np.ndarray, l2: float) -> float:
    """The least objective by the singular values of the centered rows: ½ l2 Σ (uᵀy)²/(s²/n + l2)/n."""
    n = len(y)
    U, s, _ = np.linalg.svd((X - X.mean(axis=0)).astype(np.float64), full_matrices=False)
    t = y - y.mean()
    along = U.T @ t
    outside = float(t @ t - along @ along)
    return 0.5 * (l2 * float((along**2 / (s * s / n + l2)).sum()) + max(outside, 0.0)) / n


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sp.csr_array], ids=lambda f: f.__name__)
@pytest.mark.parametrize("factor", [0.0, 3.0])
@pytest.mark.parametrize("l2", [1e-2, 1e-5])
def test_few_products_prove_the_gap(l2: float, factor: float, kind: Any) -> None:
    X, y = wide(100, 1200, factor)
    of = problem(kind(X), y, l2)
    found = conjugate_ridge(of, 1e-6 * of.scale, 1000)
    assert found is not None
    assert found.iterations <= 25
    best = exact(X, y, l2)
    assert found.bound <= best * (1 + 1e-9) + 1e-12
    assert best - 1e-12 <= found.objective <= best + 1e-6 * of.scale


@pytest.mark.parametrize(("n", "d", "l2", "most"), [(194, 1126, 1e-3, 18), (200, 500, 1e-3, 27), (200, 400, 1e-4, 37)])
def test_what_is_orthogonal_to_the_rows_stays_out(n: int, d: int, l2: float, most: int) -> None:
    """Scaled by the diagonal, directions leave the span of the rows, where the penalty is all: 25, 38 and 53 products."""
    X, y = wide(n, d)
    of = problem(X, y, l2)
    found = conjugate_ridge(of, 1e-6 * of.scale, 1000)
    assert found is not None
    assert found.iterations <= most


def test_columns_that_do_not_count_alike_are_scaled_by_themselves() -> None:
    X, y = wide(60, 300)
    X *= np.logspace(0, 3, 300)
    of = problem(X, y, 0.1)
    found = conjugate_ridge(of, 1e-6 * of.scale, 2000)
    assert found is not None
    best = exact(X, y, 0.1)
    assert found.bound <= best * (1 + 1e-9) + 1e-12
    assert best - 1e-12 <= found.objective <= best + 1e-6 * of.scale


def test_a_direction_that_comes_back_is_no_reason_to_give_up() -> None:
    """One factor of all columns is seen in a gradient now and then, when rounding brings it back."""
    X, y = wide(600, 3000, 3.0)
    model = Ridge(alpha=1e-4).fit(X, y)
    assert (model.solver_, model.certificate_.certified) == ("newton_cg", True)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("case", ["equal rows", "columns of unlike sizes", "one huge row"])
def test_a_weak_penalty_of_few_rows_costs_no_matrix_of_all_columns(case: str, fit_intercept: bool) -> None:
    rng = np.random.default_rng(3)
    n, d = 6, 3000
    X, y, p = rng.normal(size=(n, d)), rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    if case == "equal rows":
        X[1] = X[0]
    elif case == "columns of unlike sizes":
        X *= 10.0 ** rng.uniform(-6, 6, size=d)
    elif case == "one huge row":
        X[0] *= 1e6
    X[:, 5] = 2.0
    p /= p.sum()
    l2 = np.full(d, 1e-13)
    tracemalloc.start()
    try:
        fit = solve_least_squares(X, y, p, l2=l2, fit_intercept=fit_intercept)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * X.nbytes < 8 * d * d
    mean = p @ X if fit_intercept else 0.0
    r = y - X @ fit.coef - fit.intercept
    slope = (p * r) @ (X - mean) - l2 * fit.coef
    assert 0.0 <= fit.gap <= 1e-16
    assert np.abs(slope).max() <= 1e-11 * np.abs(X).max()
    if case == "equal rows":  # what they disagree in, nothing can fit
        level = (p[:2] @ y[:2]) / p[:2].sum()
        assert fit.objective == pytest.approx(0.5 * p[:2] @ (y[:2] - level) ** 2, rel=1e-6)
    else:
        assert fit.objective < 1e-12


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_hat_matrix_of_a_weak_penalty_is_that_of_rows_that_are_met(fit_intercept: bool) -> None:
    rng = np.random.default_rng(4)
    X, p = rng.normal(size=(7, 20)), rng.uniform(0.5, 2.0, 7)
    X[:, 0] *= 1e8
    X[6] = X[5]
    p /= p.sum()
    share = p[5:] / p[5:].sum()
    wanted = np.eye(7)
    wanted[5:, 5:] = share
    l2 = np.full(20, 1e-14)
    np.testing.assert_allclose(hat_matrix(X, p, l2, fit_intercept), wanted, atol=1e-7)
    np.testing.assert_allclose(leverage(X, p, l2, fit_intercept), wanted.diagonal(), atol=1e-7)
