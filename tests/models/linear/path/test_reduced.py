"""Folds as squares against the rows themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

from certifit import ElasticNetCV, LassoCV
from certifit.models.linear.path.path import solve_path, solve_square
from certifit.models.linear.path.reduced import FoldProducts


def rows(seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(90, 6)) + rng.normal(size=(90, 1))) * [1.0, 1e-3, 40.0, 1.0, 2.0, 1.0] + [
        3.0,
        0.0,
        9.0,
        0.0,
        0.0,
        1.0,
    ]
    y = X[:, 0] - 0.1 * X[:, 2] + rng.normal(size=90) + 20.0
    return X, y, rng.integers(1, 4, size=90).astype(float)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("train", ["most", "few", "drawn"])
def test_a_square_has_the_path_and_the_gaps_of_its_rows(train: str, fit_intercept: bool) -> None:
    X, y, weight = rows()
    chosen = {"most": np.arange(20, 90), "few": np.arange(30), "drawn": np.arange(90) // 3 * 2}[train]
    products = FoldProducts.of(X, y, weight, fit_intercept)
    assert products is not None
    square = products.of_fold(chosen)
    assert square is not None
    p = weight[chosen] / weight[chosen].sum()
    for ratio, positive in ((1.0, False), (0.4, False), (1.0, True)):
        alphas = np.geomspace(2.0, 1e-3, 12)
        wanted = solve_path(X[chosen], y[chosen], p, alphas, ratio, fit_intercept, positive, 1e-10, 1000, 1)
        found = solve_square(square, alphas, ratio, positive, 1e-10, 1000, 1)
        np.testing.assert_allclose(found.coefs * X.std(axis=0), wanted.coefs * X.std(axis=0), atol=1e-6)
        scores, same = (X @ path.coefs.T + path.intercepts for path in (found, wanted))
        np.testing.assert_allclose(scores, same, rtol=1e-7, atol=1e-5)
        assert (found.gaps <= 1e-10).all()
        # The gap on the rows themselves is the one that the square has proven.
        left = y[chosen][:, None] - scores[chosen]
        penalty = ratio * np.abs(found.coefs).sum(axis=1) + (1 - ratio) * 0.5 * (found.coefs**2).sum(axis=1)
        objective = 0.5 * p @ left**2 + alphas * penalty
        left = y[chosen][:, None] - same[chosen]
        penalty = ratio * np.abs(wanted.coefs).sum(axis=1) + (1 - ratio) * 0.5 * (wanted.coefs**2).sum(axis=1)
        np.testing.assert_allclose(objective, 0.5 * p @ left**2 + alphas * penalty, rtol=1e-9)


def test_where_rounding_would_show_there_is_no_square() -> None:
    X, y, weight = rows()
    assert FoldProducts.of(X[:15], y[:15], weight[:15], True) is None  # not tall
    assert FoldProducts.of(np.ones((90, 2)), y, weight, True) is None  # constant columns
    same = X.copy()
    same[:, 5] = same[:, 0]
    products = FoldProducts.of(same, y, weight, True)
    assert products is not None
    assert products.of_fold(np.arange(70)) is None  # one column twice
    far = X.copy()
    far[80:, 3] = 1e6  # what varies in the rows to fit is nothing beside what they leave out
    products = FoldProducts.of(far, y, weight, True)
    assert products is not None
    assert products.of_fold(np.arange(80)) is None


@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, random_state=0)])
@pytest.mark.parametrize("model", [LassoCV, ElasticNetCV])
def test_the_choice_is_that_of_the_rows(model: Any, cv: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = rows()
    found = model(cv=cv, n_alphas=20, tol=1e-12).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(FoldProducts, "of", lambda *given: None)
    wanted = model(cv=cv, n_alphas=20, tol=1e-12).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(found.mse_path_, wanted.mse_path_, rtol=1e-6)
    assert found.alpha_ == wanted.alpha_
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
