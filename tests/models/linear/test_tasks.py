"""The multi-task lasso and elastic net against an independent solver, scikit-learn and themselves."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as theirs
from numpy.testing import assert_allclose

from certifit import (
    ElasticNet,
    Lasso,
    LinearRegression,
    MultiTaskElasticNet,
    MultiTaskElasticNetCV,
    MultiTaskLasso,
    MultiTaskLassoCV,
    Ridge,
)


def table(n: int = 40, d: int = 12, K: int = 3, seed: int = 0, rho: float = 0.0) -> tuple[Any, Any, Any]:
    """Rows of which three columns matter to every target, those targets and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    Y = X[:, :3] @ rng.normal(size=(3, K)) + 0.5 * rng.normal(size=(n, K)) + np.arange(K)
    return X, Y, rng.uniform(0.2, 2.0, n)


def optimum(X: Any, Y: Any, weight: Any, alpha: float, l1_ratio: float, fit_intercept: bool) -> float:
    """The least value, from a general solver."""
    p = weight / weight.sum()
    W, b = cp.Variable((X.shape[1], Y.shape[1])), cp.Variable((1, Y.shape[1]))
    scores = X @ W + (np.ones((X.shape[0], 1)) @ b if fit_intercept else 0.0)
    risk = 0.5 * cp.sum(cp.multiply(p, cp.sum(cp.square(Y - scores), axis=1)))
    penalty = l1_ratio * cp.sum(cp.norm(W, 2, axis=1)) + 0.5 * (1 - l1_ratio) * cp.sum_squares(W)
    return float(cp.Problem(cp.Minimize(risk + alpha * penalty)).solve(solver=cp.CLARABEL))


def value(model: Any, X: Any, Y: Any, weight: Any, alpha: float, l1_ratio: float) -> float:
    p = weight / weight.sum()
    size = np.linalg.norm(model.coef_, axis=0)
    missed = Y - X @ model.coef_.T - model.intercept_
    return float(0.5 * p @ (missed**2).sum(axis=1) + alpha * (l1_ratio * size + 0.5 * (1 - l1_ratio) * size**2).sum())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.05])
@pytest.mark.parametrize("shape", [(40, 12), (15, 30), (30, 250)])
def test_the_bound_and_the_value_enclose_the_optimum(
    shape: Any, l1_ratio: float, fit_intercept: bool, form: Any
) -> None:
    for alpha, rho in ((0.3, 0.0), (0.02, 0.95)):
        X, Y, weight = table(*shape, rho=rho)
        model = MultiTaskElasticNet(alpha, l1_ratio=l1_ratio, fit_intercept=fit_intercept, tol=1e-9)
        model.fit(form(X), Y, sample_weight=weight)
        best = optimum(X, Y, weight, alpha, l1_ratio, fit_intercept)
        reached = value(model, X, Y, weight, alpha, l1_ratio)
        assert model.certificate_.certified
        assert model.certificate_.objective == pytest.approx(reached, rel=1e-9)
        assert model.certificate_.bound <= best + 1e-6 * best
        assert reached <= best + 1e-6 * best
        assert model.coef_.shape == (3, shape[1])
        assert (model.coef_ != 0).any(axis=0).sum() == (model.coef_ != 0).all(axis=0).sum()  # of all targets or of none


def test_a_loose_tolerance_is_told_as_it_is() -> None:
    X, Y, weight = table(60, 40, rho=0.9)
    model = MultiTaskLasso(0.01, tol=1e-2).fit(X, Y, sample_weight=weight)
    best = optimum(X, Y, weight, 0.01, 1.0, True)
    assert model.certificate_.bound <= best + 1e-7 <= model.certificate_.objective + 2e-7
    with pytest.warns(UserWarning, match="MultiTaskLasso"):
        stopped = MultiTaskLasso(0.001, tol=1e-12, max_iter=1).fit(X, Y)
    assert not stopped.certificate_.certified


@pytest.mark.parametrize("name", ["MultiTaskLasso", "MultiTaskElasticNet"])
def test_as_scikit_learns(name: str) -> None:
    X, Y, _ = table(50, 20)
    for alpha in (0.5, 0.05, 0.005):
        ours = {"MultiTaskLasso": MultiTaskLasso, "MultiTaskElasticNet": MultiTaskElasticNet}[name](alpha, tol=1e-12)
        peer = getattr(theirs, name)(alpha, tol=1e-12, max_iter=10_000).fit(X, Y)
        assert_allclose(ours.fit(X, Y).coef_, peer.coef_, atol=1e-6)
        assert_allclose(ours.intercept_, peer.intercept_, atol=1e-6)
        assert_allclose(ours.predict(X), peer.predict(X), atol=1e-5)


def test_one_target_is_the_lasso_and_no_norm_is_ridge() -> None:
    X, Y, weight = table()
    y = Y[:, 0]
    assert_allclose(MultiTaskLasso(0.1, tol=1e-12).fit(X, y).coef_, Lasso(0.1, tol=1e-12).fit(X, y).coef_, atol=1e-9)
    one = MultiTaskLasso(0.1, tol=1e-12).fit(X, Y[:, :1])
    assert_allclose(one.coef_[0], Lasso(0.1, tol=1e-12).fit(X, y).coef_, atol=1e-6)
    net = {"alpha": 0.1, "l1_ratio": 0.3, "tol": 1e-12}
    assert_allclose(MultiTaskElasticNet(**net).fit(X, y).coef_, ElasticNet(**net).fit(X, y).coef_, atol=1e-9)
    without = MultiTaskElasticNet(0.1, l1_ratio=0.0).fit(X, Y, sample_weight=weight)
    assert_allclose(without.coef_, Ridge(0.1).fit(X, Y, sample_weight=weight).coef_)
    assert_allclose(MultiTaskLasso(0.0).fit(X, Y).coef_, LinearRegression().fit(X, Y).coef_)


def test_weights_are_repetitions_and_units_do_not_matter() -> None:
    X, Y, _ = table()
    counts = np.arange(40) % 3
    weighted = MultiTaskLasso(0.05, tol=1e-12).fit(X, Y, sample_weight=counts)
    repeated = MultiTaskLasso(0.05, tol=1e-12).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    assert_allclose(weighted.coef_, repeated.coef_, atol=1e-7)
    for unit, factor in ((1e120, 1e-100), (1e-130, 1e90), (1e150, 1e-150)):
        far = MultiTaskLasso(0.05 * unit * factor, tol=1e-12).fit(X * unit, Y * factor, sample_weight=counts)
        assert_allclose(far.coef_ / factor * unit, weighted.coef_, atol=1e-7)
        assert far.certificate_.certified
    single = MultiTaskLasso(0.05).fit(X.astype(np.float32), Y, sample_weight=counts)
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, weighted.coef_, atol=1e-3)
    constant = MultiTaskLasso(0.05).fit(np.column_stack([X, np.full(40, 7.0)]), Y)
    assert not constant.coef_[:, -1].any()
    assert MultiTaskLasso(0.05).fit(X, np.full((40, 2), 3.0)).certificate_.certified


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("form", [np.asarray, sp.csc_array])
def test_paths_are_their_fits(l1_ratio: float, form: Any) -> None:
    X, Y, _ = table(30, 25, rho=0.5)
    path = MultiTaskElasticNet.path(form(X), Y, l1_ratio=l1_ratio, n_alphas=8, eps=1e-2, tol=1e-15)
    strongest = np.linalg.norm((X - X.mean(axis=0)).T @ Y, axis=1).max() / (30 * l1_ratio)
    assert_allclose(path.alphas, strongest * np.geomspace(1, 1e-2, 8))
    coefs = theirs.enet_path(X - X.mean(axis=0), Y - Y.mean(axis=0), l1_ratio=l1_ratio, alphas=path.alphas, tol=1e-12)[
        1
    ]
    assert_allclose(path.coefs, np.moveaxis(coefs, 2, 0), atol=1e-5)  # theirs has a gap too
    assert not path.coefs[0].any()
    assert (path.gaps <= 1e-12).all()
    alone = MultiTaskElasticNet(path.alphas[5], l1_ratio=l1_ratio, tol=1e-15).fit(X, Y)
    assert_allclose(path.coefs[5], alone.coef_, atol=1e-7)
    assert_allclose(path.intercepts[5], alone.intercept_, atol=1e-7)
    with pytest.raises(ValueError, match="above zero"):
        MultiTaskLasso.path(X, Y, alphas=[0.1, 0.0])
    ridge = MultiTaskElasticNet.path(X, Y, l1_ratio=0.0, alphas=[0.1], tol=1e-13)
    assert_allclose(ridge.coefs[0], Ridge(0.1).fit(X, Y).coef_, atol=1e-5)


def test_alphas_by_cross_validation_are_scikit_learns() -> None:
    X, Y, _ = table(60, 10)
    ours = MultiTaskLassoCV(n_alphas=20, cv=4, tol=1e-10).fit(X, Y)
    peer = theirs.MultiTaskLassoCV(alphas=20, cv=4, tol=1e-10, max_iter=10_000).fit(X, Y)
    assert_allclose(ours.alphas_, peer.alphas_)
    ratios = MultiTaskElasticNetCV(l1_ratio=[0.2, 0.9], n_alphas=10, cv=3).fit(sp.csr_array(X), Y)
    assert ratios.l1_ratio_ in (0.2, 0.9)
    assert ratios.mse_path_.shape == (2, 10, 3)
    assert_allclose(
        ratios.coef_, MultiTaskElasticNet(ratios.alpha_, l1_ratio=ratios.l1_ratio_).fit(X, Y).coef_, atol=1e-3
    )
    assert ours.score(X, Y) > 0.8
    counts = np.arange(60) % 2
    weighted = MultiTaskLassoCV(n_alphas=5).fit(X, Y, sample_weight=counts)
    assert_allclose(weighted.alphas_, MultiTaskLassoCV(n_alphas=5).fit(X[1::2], Y[1::2]).alphas_)
