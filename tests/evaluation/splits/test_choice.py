"""One cross-validation over paths: folds, the error curve, the choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, PredefinedSplit

from certifit import ElasticNet, ElasticNetCV, LassoCV, LogisticRegressionCV, Ridge, RidgeCV
from certifit.evaluation.splits.choice import Curve, Fold, folds_of, over_folds

EVERY = np.ones(12, dtype=bool)
X = np.arange(24.0).reshape(12, 2) % 7
Y = X[:, 0] + np.arange(12.0)


def test_the_mean_is_over_rows_not_over_folds() -> None:
    folds = [Fold(np.arange(3, 12), np.arange(3)), Fold(np.arange(3), np.arange(3, 12))]
    weight = np.arange(1.0, 13.0)
    losses = np.array([np.arange(12.0), np.arange(12.0)[::-1]])
    curve = over_folds(
        folds,
        weight,
        2,
        lambda train, test: losses[:, test] @ weight[test] / weight[test].sum(),
        told=lambda done: None,
    )
    assert curve.mean == pytest.approx(losses @ weight / weight.sum())
    assert curve.errors.shape == (2, 2)


def test_ties_go_to_the_simplest_and_so_does_one_standard_error() -> None:
    errors = np.array([[1.0, 1.0], [1.0, 1.0], [1.2, 0.9], [3.0, 3.0]])
    curve = Curve.of(errors, np.ones(2))
    assert curve.best(np.array([1.0, 2.0, 3.0, 4.0])) == 1
    assert curve.best(np.array([2.0, 1.0, 3.0, 4.0])) == 0
    spread = Curve.of(np.array([[1.0, 1.4], [1.1, 1.5], [3.0, 3.0]]), np.ones(2))
    assert spread.best(np.array([1.0, 2.0, 3.0])) == 0
    assert spread.best(np.array([1.0, 2.0, 3.0]), one_standard_error=True) == 1


@pytest.mark.parametrize("errors", [np.zeros((3, 0)), np.full((3, 2), np.nan), np.full((3, 2), np.inf)])
def test_without_evidence_the_simplest(errors: Any) -> None:
    assert Curve.of(errors, np.ones(errors.shape[1])).best(np.array([1.0, 3.0, 2.0])) == 1


def test_errors_that_are_no_numbers_never_win() -> None:
    curve = Curve.of(np.array([[np.nan, 1.0], [np.inf, 1.0], [5.0, 5.0]]), np.ones(2))
    assert curve.best(np.array([1.0, 2.0, 0.0])) == 2


def test_a_fold_that_fails_is_named() -> None:
    def errors(train: Any, test: Any) -> Any:
        if 0 in test:
            raise ValueError("no such luck.")
        return np.zeros(1)

    folds = [Fold(np.arange(2), np.arange(2, 4)), Fold(np.arange(2, 4), np.arange(2))]
    with pytest.raises(ValueError, match="Fold 2 of 2: no such luck"):
        over_folds(folds, np.ones(4), 1, errors)


def test_splitters_number_the_rows_as_given() -> None:
    kept = EVERY.copy()
    kept[[0, 5]] = False
    for cv in (PredefinedSplit(np.arange(12) % 3), [*PredefinedSplit(np.arange(12) % 3).split()]):
        folds = folds_of(cv, X[kept], Y[kept], kept=kept, given=Y)
        rows = np.flatnonzero(kept)
        assert [rows[fold.test].tolist() for fold in folds] == [[3, 6, 9], [1, 4, 7, 10], [2, 8, 11]]
        assert all(set(fold.train) | set(fold.test) == set(range(10)) for fold in folds)


def test_masks_are_splits_too() -> None:
    half = np.arange(12) < 6
    (fold,) = folds_of([(half, ~half)], X, Y, kept=EVERY, given=Y)
    assert fold.test.tolist() == [6, 7, 8, 9, 10, 11]


def test_folds_that_cannot_be_used_say_so() -> None:
    kept = np.arange(12) < 6
    cv = [(np.arange(6, 12), np.arange(6))]
    with pytest.raises(ValueError, match="Fold 1 of cv has no row of positive weight to fit"):
        folds_of(cv, X[kept], Y[kept], kept=kept, given=Y)
    with pytest.raises(ValueError, match="No test part of cv"):
        folds_of([(np.arange(6), np.arange(6, 12))], X[kept], Y[kept], kept=kept, given=Y)
    codes = np.array([0] * 9 + [1] * 3)
    with pytest.raises(ValueError, match="no row of class 'yes'"):
        folds_of([(np.arange(9), np.arange(9, 12))], X, codes, kept=EVERY, given=codes, classes=["no", "yes"])


def test_classes_are_dealt_one_by_one() -> None:
    codes = np.array([0] * 8 + [1] * 3 + [2])
    distinct = np.arange(12.0)[:, None]
    folds = folds_of(3, distinct, codes, kept=EVERY, given=codes, classes=["a", "b", "c"])
    assert all((codes[fold.test] == 1).sum() == 1 for fold in folds)
    assert not any((codes[fold.test] == 2).any() for fold in folds), "a class of one row is always in training"


def data(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 4))
    return X, X[:, 0] + rng.normal(size=60)


@pytest.mark.parametrize(
    "model", [LassoCV, ElasticNetCV, RidgeCV, lambda **o: RidgeCV(cv=4, **o), LogisticRegressionCV]
)
def test_the_rule_of_one_standard_error_never_takes_a_weaker_penalty(model: Any) -> None:
    X, y = data()
    y = y > 0 if model is LogisticRegressionCV else y
    plain, ruled = model().fit(X, y), model(one_standard_error=True).fit(X, y)
    assert ruled.alpha_ > plain.alpha_
    assert ruled.certificate_


@pytest.mark.parametrize("model", [LassoCV, ElasticNetCV, LogisticRegressionCV, lambda **o: RidgeCV(**o)])
def test_zero_weights_are_dropped_rows_under_every_kind_of_folds(model: Any) -> None:
    X, y = data()
    y = y > 0 if model is LogisticRegressionCV else y
    weight = np.ones(60)
    weight[::7] = 0.0
    kept = weight > 0
    pairs = list(KFold(3).split(X))
    place = np.cumsum(kept) - 1
    fewer = [tuple(place[part[kept[part]]] for part in pair) for pair in pairs]
    with_weights = model(cv=pairs).fit(X, y, sample_weight=weight)
    dropped = model(cv=fewer).fit(X[kept], y[kept])
    assert with_weights.alpha_ == pytest.approx(dropped.alpha_)
    assert with_weights.coef_ == pytest.approx(dropped.coef_)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(50, 4), (8, 30)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_ridge_path_is_ridge_at_every_alpha(sparse: bool, shape: tuple[int, int], fit_intercept: bool) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape) + 2.0
    X[X < 1.5] = 0.0
    y, weight = X[:, 0] + rng.normal(size=shape[0]), rng.integers(1, 4, size=shape[0]).astype(float)
    options = {"sample_weight": weight, "fit_intercept": fit_intercept}
    path = Ridge.path(sp.csr_array(X) if sparse else X, y, alphas=[10.0, 0.1, 1e-3], **options)
    assert (path.gaps <= 1e-9).all()
    for alpha, coef, intercept in zip(path.alphas, path.coefs, path.intercepts, strict=True):
        model = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
        assert coef == pytest.approx(model.coef_, rel=1e-6, abs=1e-9)
        assert intercept == pytest.approx(model.intercept_, rel=1e-6, abs=1e-9)


def test_paths_without_alphas() -> None:
    X, y = data()
    path = Ridge.path(X, y)
    assert path.alphas.shape == (49,)
    assert (np.diff(path.alphas) < 0).all()
    other = ElasticNet.path(X, y, l1_ratio=0, n_alphas=5)
    assert other.coefs.shape == (5, 4)
    assert np.linalg.norm(other.coefs[0]) < 0.1 * np.linalg.norm(other.coefs[-1])
    assert ElasticNet.path(X, y, l1_ratio=0, n_alphas=3, positive=True).coefs.min() >= 0
    wild = Ridge.path(X * 1e150, y * 1e-150, alphas=[1e300])
    assert wild.coefs * 1e300 == pytest.approx(Ridge.path(X, y, alphas=[1.0]).coefs, rel=1e-9)
