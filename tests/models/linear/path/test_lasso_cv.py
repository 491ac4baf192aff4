"""Cross-validation over paths: the same errors as fitting every fold and every alpha by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold
from tests.models.linear.constructed import rows

from certifit import ElasticNet, ElasticNetCV, LassoCV

ALPHAS = [1.0, 0.3, 0.1, 0.03, 0.01]
FOLDS = list(KFold(4).split(np.zeros(60)))


def noisy() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, weight = rows(60)
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 + np.random.default_rng(8).normal(size=60)
    weight[::7] = 0.0
    return X, y, weight


def by_hand(l1_ratio: float) -> np.ndarray:
    """Weighted mean squared error of each alpha on each fold: a fit of its own for every one."""
    X, y, weight = noisy()
    errors = np.empty((len(ALPHAS), len(FOLDS)))
    for i, alpha in enumerate(ALPHAS):
        for k, (train, test) in enumerate(FOLDS):
            model = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-12)
            model.fit(X[train], y[train], sample_weight=weight[train])
            errors[i, k] = np.average((y[test] - model.predict(X[test])) ** 2, weights=weight[test])
    return errors


def test_lasso_errors_choice_and_final_fit() -> None:
    X, y, weight = noisy()
    model = LassoCV(alphas=ALPHAS, cv=FOLDS, tol=1e-12).fit(X, y, sample_weight=weight)
    errors = by_hand(1.0)
    np.testing.assert_allclose(model.mse_path_, errors, rtol=1e-6)
    share = np.array([weight[test].sum() for _, test in FOLDS])
    best = ALPHAS[int(np.argmin(errors @ share))]
    assert model.alpha_ == best
    whole = ElasticNet(alpha=best, l1_ratio=1.0, tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-7)
    assert model.certificate_.certified


def test_the_elastic_net_chooses_among_shares_too() -> None:
    X, y, weight = noisy()
    ratios = [0.1, 0.6, 1.0]
    model = ElasticNetCV(l1_ratio=ratios, alphas=ALPHAS, cv=FOLDS, tol=1e-12).fit(X, y, sample_weight=weight)
    errors = np.array([by_hand(ratio) for ratio in ratios])
    np.testing.assert_allclose(model.mse_path_, errors, rtol=1e-6)
    share = np.array([weight[test].sum() for _, test in FOLDS])
    i, j = np.unravel_index(int(np.argmin(errors @ share)), (3, len(ALPHAS)))
    assert (model.l1_ratio_, model.alpha_) == (ratios[i], ALPHAS[j])
    whole = ElasticNet(alpha=model.alpha_, l1_ratio=model.l1_ratio_, tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-7)


def test_a_whole_number_deals_rows_by_their_content() -> None:
    """A row and its copies stay in one fold, so weights are repetitions and the order of rows is nothing."""
    X, y, weight = noisy()
    order = np.random.default_rng(9).permutation(np.repeat(np.arange(60), weight.astype(int)))
    one = LassoCV(cv=3, n_alphas=8, tol=1e-12).fit(X, y, sample_weight=weight)
    other = LassoCV(cv=3, n_alphas=8, tol=1e-12).fit(X[order], y[order])
    np.testing.assert_allclose(other.mse_path_, one.mse_path_, rtol=1e-6)
    assert other.alpha_ == pytest.approx(one.alpha_, rel=1e-9)
