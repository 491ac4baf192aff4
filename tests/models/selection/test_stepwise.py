"""Steps by updates against fits of every candidate on every fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit

from certifit import LinearRegression, LogisticRegression, StepwiseSelection


def rows(n: int = 60, d: int = 7) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1)) + 3.0
    y = X[:, 1] - 2 * X[:, 3] + 0.3 * X[:, 4] + rng.normal(size=n)
    return X, y, rng.integers(0, 3, size=n).astype(float)


@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, test_size=0.4, random_state=0)], ids=["folds", "shuffled"])
@pytest.mark.parametrize("direction", ["forward", "backward", "floating"])
def test_updates_are_the_fits(direction: str, cv: Any) -> None:
    X, y, weight = rows()
    options = {"n_features": 4, "direction": direction, "cv": cv}
    updates = StepwiseSelection(**options).fit(X, y, sample_weight=weight)
    fits = StepwiseSelection(LinearRegression(), **options).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(updates.path_.columns, fits.path_.columns)
    np.testing.assert_array_equal(updates.path_.sizes, fits.path_.sizes)
    np.testing.assert_allclose(updates.path_.errors, fits.path_.errors, rtol=1e-9)
    np.testing.assert_array_equal(updates.support_, fits.support_)
    assert updates.support_.sum() == 4


def test_floating_takes_columns_back() -> None:
    # The sum of the first two columns with a little noise comes first, and is not needed once both are there.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    X[:, 2] = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=300)
    y = X[:, 0] + X[:, 1] + 0.05 * rng.normal(size=300)
    forward, floating = (StepwiseSelection(n_features=2, direction=name).fit(X, y) for name in ("forward", "floating"))
    assert forward.support_[2]
    longer = StepwiseSelection(n_features=4, direction="floating").fit(X, y)
    assert (np.diff(longer.path_.sizes) == -1).any()
    assert not longer.support_[2] or longer.support_.sum() == 4
    assert floating.error_ <= forward.error_


def test_floating_ends_by_a_metric_of_which_more_is_better() -> None:
    X, y, _ = rows(d=5)
    by = {"direction": "floating", "cv": 3, "n_features": 3}
    labels = y > np.median(y)
    right, wrong = (
        StepwiseSelection(LogisticRegression(alpha=0.01), metric=metric, **by).fit(X, labels)
        for metric in ("accuracy", "zero_one")
    )
    np.testing.assert_array_equal(right.path_.columns, wrong.path_.columns)
    np.testing.assert_allclose(right.path_.errors, wrong.path_.errors - 1.0)


@pytest.mark.parametrize("direction", ["forward", "floating"])
def test_columns_that_fit_every_row_are_taken_in_order(direction: str) -> None:
    # Twelve rows in each fold, the same in all: with eleven columns every further one fits them all, but for rounding.
    rng = np.random.default_rng(5)
    X, y, weight = rng.uniform(size=(12, 24)), rng.integers(0, 3, size=12), rng.integers(1, 5, size=12)
    often = np.repeat(np.arange(12), weight)
    supports = []
    for first, options in ((np.arange(12), {"sample_weight": np.r_[weight, np.ones(24)]}), (often[::-1], {})):
        order = np.r_[first, np.arange(12), np.arange(12)]
        part = np.repeat([0, 1, 2], [first.size, 12, 12])
        cv = [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]
        model = StepwiseSelection(direction=direction, cv=cv).fit(X[order], y[order], **options)
        assert model.error_ < 1e-12
        supports.append(model.support_)
    np.testing.assert_array_equal(*supports)


def test_the_size_with_the_least_error() -> None:
    X, y, _ = rows(n=200, d=20)
    model = StepwiseSelection().fit(X, y)
    assert model.support_[[1, 3]].all()
    assert model.error_ == model.path_.errors.min()
    assert model.path_.columns.size < 20
    axes = model.plot()
    assert len(axes.lines) == 2
    assert (axes.get_xticks() % 1 == 0).all()


def test_any_classifier() -> None:
    X, y, _ = rows()
    labels = np.where(y > np.median(y), "high", "low")
    model = StepwiseSelection(LogisticRegression(alpha=0.01), n_features=2, metric="log_loss", cv=3).fit(X, labels)
    assert model.support_[3]
    assert model.transform(X).shape == (60, 2)


def test_combinations_of_columns_are_no_candidates() -> None:
    X, y, _ = rows(d=5)
    wide = np.column_stack([X, X[:, 0] - X[:, 1], np.full(60, 5.0)])
    for direction in ("forward", "backward"):
        with pytest.warns(UserWarning, match="5 columns instead of n_features=6"):
            model = StepwiseSelection(n_features=6, direction=direction).fit(wide, y)
        assert model.support_.sum() == 5


def test_metrics_that_need_fits_are_refused() -> None:
    X, y, _ = rows()
    with pytest.raises(ValueError, match="needs fits"):
        StepwiseSelection(metric="mae").fit(X, y)


@pytest.mark.parametrize("light", [1e-12, 1e-18, 1e-200])
def test_folds_of_almost_no_weight_are_fitted(light: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.1 * rng.normal(size=12)
    halves = np.arange(6), np.arange(6, 12)
    weight = np.repeat([light, 1.0], 6)
    options: Any = {"cv": [halves, halves[::-1]], "patience": None}
    by_updates = StepwiseSelection(**options).fit(X, y, sample_weight=weight)
    by_fits = StepwiseSelection(LinearRegression(), **options).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(by_updates.path_.columns, by_fits.path_.columns)
    np.testing.assert_allclose(by_updates.path_.errors, by_fits.path_.errors, rtol=1e-7)


def test_rows_that_weigh_nothing_beside_the_fold_are_refused() -> None:
    with pytest.raises(ValueError, match="less than 1e-300 of its sum"):
        StepwiseSelection(cv=2).fit([[1.0], [3.0]], [1.0, 4.0], sample_weight=[1e-200, 1e200])
