"""The hard margin of several classes against Clarabel, and the proof where there is none."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles import convex

from certifit import LinearSVC, MulticlassSVC
from certifit.models.margin import multiclass_hard
from certifit.models.margin.hard import NotSeparableError


def apart(K: int, d: int, n: int, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(K), rng.integers(K, size=n - K)])
    return 4.0 * rng.normal(size=(K, d))[y] + noise * rng.normal(size=(n, d)), y


@pytest.mark.parametrize(("K", "fit_intercept", "costs"), [(3, True, False), (4, True, True), (3, False, False)])
def test_optimum(K: int, fit_intercept: bool, costs: bool) -> None:
    X, y = apart(K, 3, 40)
    delta = 1.0 - np.eye(K)
    if costs:
        delta *= np.random.default_rng(1).uniform(0.5, 2.0, size=(K, K))
    model = MulticlassSVC(0.0, delta, fit_intercept=fit_intercept, tol=1e-8).fit(X, y)
    W, b = cp.Variable((K, 3)), cp.Variable((1, K))
    f = X @ W.T + (np.ones((len(y), 1)) @ b if fit_intercept else 0.0)
    ahead = [f[i, y[i]] - f[i, k] >= delta[y[i], k] for i in range(len(y)) for k in range(K) if k != y[i]]
    best = convex.solve(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W)), [*ahead, cp.sum(b) == 0]))
    c = model.certificate_
    assert c.certified
    assert c.bound <= best * (1 + 1e-6)
    assert c.objective == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.coef_, W.value, atol=1e-5)
    scores = X @ model.coef_.T + model.intercept_
    lead = scores[np.arange(len(y)), y][:, None] - scores - delta[y]
    assert lead[np.arange(K) != y[:, None]].min() >= -1e-9
    np.testing.assert_allclose(model.coef_, -model.dual_coef_.T @ X, atol=1e-7)


def test_two_classes_are_the_widest_street() -> None:
    X, y = apart(2, 3, 30)
    two, one = MulticlassSVC(0.0, tol=1e-9).fit(X, y), LinearSVC(0.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(two.coef_[1] - two.coef_[0], one.coef_[0], atol=1e-6)
    np.testing.assert_array_equal(two.predict(X), y)


def test_it_is_the_limit_of_soft_margins() -> None:
    X, y = apart(3, 2, 30)
    hard = MulticlassSVC(0.0).fit(X, y)
    soft = MulticlassSVC(1e-4, tol=1e-8, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(soft.coef_, hard.coef_, atol=1e-4)


def test_conditions_are_let_in_as_they_are_violated(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = apart(4, 3, 300, noise=0.2)
    whole = MulticlassSVC(0.0, tol=1e-9).fit(X, y)
    monkeypatch.setattr(multiclass_hard, "FIRST", 1)
    parts = MulticlassSVC(0.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
    assert parts.certificate_.certified


@pytest.mark.parametrize("convert", [sp.csr_array, sp.csc_array, lambda X: X.astype(np.float32)])
def test_kinds_of_matrices(convert: Any) -> None:
    X, y = apart(3, 3, 40)
    X = X.astype(np.float32).astype(float)
    np.testing.assert_allclose(
        MulticlassSVC(0.0).fit(convert(X), y).coef_, MulticlassSVC(0.0).fit(X, y).coef_, atol=1e-4
    )


@pytest.mark.parametrize("K", [2, 3])
def test_overlap_is_proved(K: int) -> None:
    X, y = apart(K, 2, 20)
    X, y = np.vstack([X, X[:1]]), np.append(y, (y[0] + 1) % K)
    with pytest.raises(NotSeparableError, match="alpha > 0") as caught:
        MulticlassSVC(0.0).fit(X, y)
    found = caught.value
    own = np.arange(K) == y[:, None]
    weights = np.where(own, 0.0, found.witness[:, None]) if K == 2 else found.witness
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)
    signed = np.where(own, weights.sum(axis=1, keepdims=True), -weights)
    np.testing.assert_allclose(np.column_stack([np.ones(len(y)), X]).T @ signed, 0.0, atol=1e-8)
    assert found.residual < 1e-8


def test_errors_without_a_cost_have_no_margin() -> None:
    X, y = apart(3, 2, 20)
    with pytest.raises(ValueError, match="costs nothing"):
        MulticlassSVC(0.0, [[0, 1, 1], [1, 0, 0], [1, 1, 0]]).fit(X, y)


@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_support_vectors_are_numbered_as_given(alpha: float) -> None:
    X, y = apart(3, 2, 30)
    weight = np.ones(30)
    weight[[3, 7, 20]] = 0.0
    model = MulticlassSVC(alpha).fit(X, y, weight)
    assert model.dual_coef_.shape == (30, 3)
    assert not model.dual_coef_[[3, 7, 20]].any()
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.support_.tolist() == np.flatnonzero(np.abs(model.dual_coef_).max(axis=1) > 1e-7).tolist()
