"""Regularization paths: where they begin, what they pass through, what they claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.models.linear.constructed import rows

from certifit import ElasticNet, Lasso, LogisticRegression, MultiTaskLasso, Ridge
from certifit.models.linear.path.path import RegularizationPath


def noisy(n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, weight = rows(n)
    return X, X @ [1.0, -2.0, 0.0, 0.5] + 0.3 + np.random.default_rng(7).normal(size=n), weight


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_grid_begins_where_the_first_coefficient_enters(l1_ratio: float, fit_intercept: bool) -> None:
    """All coefficients are zero at alpha_max = max|X̃'Pỹ|/ρ, and just below it one is not."""
    X, y, weight = noisy()
    p = weight / weight.sum()
    Xc, yc = (X - p @ X, y - p @ y) if fit_intercept else (X, y)
    largest = np.abs(Xc.T @ (p * yc)).max() / l1_ratio
    path = ElasticNet.path(
        X, y, l1_ratio=l1_ratio, sample_weight=weight, fit_intercept=fit_intercept, n_alphas=30, eps=0.01, tol=1e-10
    )
    assert path.alphas[0] == pytest.approx(largest, rel=1e-12)
    np.testing.assert_allclose(np.diff(np.log(path.alphas)), np.log(0.01) / 29, rtol=1e-9)
    assert not path.coefs[0].any()
    assert path.coefs[1].any()
    inside = ElasticNet.path(
        X, y, l1_ratio=l1_ratio, sample_weight=weight, fit_intercept=fit_intercept, alphas=[largest * 0.999], tol=1e-12
    )
    assert np.count_nonzero(inside.coefs) == 1


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_every_point_is_the_fit_at_its_alpha(sparse: bool, positive: bool) -> None:
    X, y, weight = noisy()
    given = sp.csr_array(X) if sparse else X
    path = Lasso.path(given, y, n_alphas=6, sample_weight=weight, positive=positive, tol=1e-11)
    assert isinstance(path, RegularizationPath)
    for alpha, coef, intercept, gap in zip(*path, strict=True):
        model = Lasso(alpha=alpha, positive=positive, tol=1e-11).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(coef, model.coef_, atol=1e-6)
        assert intercept == pytest.approx(model.intercept_, abs=1e-6)
        assert gap <= 1e-11


def test_the_gap_is_above_the_distance_from_the_optimum() -> None:
    X, y, _ = noisy()
    y = y - y.mean()
    rough = ElasticNet.path(X, y, l1_ratio=0.5, n_alphas=5, tol=1e-2)
    sharp = ElasticNet.path(X, y, l1_ratio=0.5, alphas=rough.alphas, tol=1e-13)

    def objective(path: RegularizationPath, k: int) -> float:
        w = path.coefs[k]
        loss = 0.5 * np.mean((y - X @ w - path.intercepts[k]) ** 2)
        return float(loss + path.alphas[k] * (0.5 * np.abs(w).sum() + 0.25 * w @ w))

    null = 0.5 * np.mean(y**2)  # the unit of the relative gap
    for k in range(5):
        assert objective(rough, k) - objective(sharp, k) <= rough.gaps[k] * null + 1e-12
        assert rough.gaps[k] <= 1e-2


def test_alphas_are_sorted_and_refused_by_name() -> None:
    X, y, _ = noisy()
    assert Lasso.path(X, y, alphas=[0.1, 1.0, 0.5]).alphas.tolist() == [1.0, 0.5, 0.1]
    for bad in ([], [-1.0], [np.nan]):
        with pytest.raises(ValueError, match="alphas"):
            Lasso.path(X, y, alphas=bad)
    with pytest.raises(TypeError, match=r"alphas must be .*got 'a'"):
        Lasso.path(X, y, alphas="a")


@pytest.mark.parametrize("model", [Lasso, ElasticNet, Ridge, MultiTaskLasso, LogisticRegression])
def test_options_are_those_of_a_declaration(model: Any) -> None:
    X, y, _ = noisy()
    for wrong in ({"n_alphas": 0}, {"eps": 2.0}, {"alphas": [-1.0]}, {"alphas": []}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            model.path(X, (y > 0).astype(float), **wrong)
    with pytest.raises(TypeError, match="fit_intercept must be"):
        model.path(X, (y > 0).astype(float), fit_intercept="no")
    with pytest.raises(TypeError, match="no_such_option"):
        model.path(X, (y > 0).astype(float), no_such_option=1)


def test_without_an_l1_share_the_path_is_ridge_s() -> None:
    X, y, _ = noisy()
    path = ElasticNet.path(X, y, l1_ratio=0.0, n_alphas=5)
    for alpha, coef in zip(path.alphas, np.asarray(path.coefs), strict=True):
        np.testing.assert_allclose(coef, Ridge(alpha=float(alpha)).fit(X, y).coef_, rtol=1e-3, atol=1e-5)
