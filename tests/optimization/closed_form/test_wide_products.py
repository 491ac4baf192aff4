"""Wide ridge regression with a weak penalty by conjugate gradients: directions in the span of the rows need few products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import Ridge
from certifit.losses import Squared
from certifit.optimization.closed_form.conjugate import conjugate_ridge
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
