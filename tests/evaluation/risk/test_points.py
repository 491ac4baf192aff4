"""Points of curves: fits that fail, models that go on, and scikit-learn's other arguments."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GroupKFold, KFold

from certifit import Ridge, SGDClassifier
from certifit.evaluation.risk.curves import LearningCurve, learning_curve, validation_curve

X = np.random.default_rng(0).normal(size=(60, 2))
Y = X.sum(axis=1) + np.random.default_rng(1).normal(size=60)


class Brittle(RegressorMixin, BaseEstimator):
    """The mean of y; fails on rows without the number it needs, and on so few rows."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, needs: float | None = None, few: int = 0) -> None:
        self.needs = needs
        self.few = few

    def fit(self, X: Any, y: Any, **options: Any) -> Any:
        if (self.needs is not None and self.needs not in X) or len(X) <= self.few:
            raise RuntimeError("it broke")
        self.asked.append({"X": X, **options})
        self.mean_ = np.mean(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize("metric", ["mse", "r2"])
def test_a_fit_that_fails_is_left_out_and_told(metric: str) -> None:
    missed = Brittle(needs=X[0, 0])  # which the first fold leaves out
    with pytest.warns(FitFailedWarning, match="1 of 3 failed .* 40 rows of fold 1: RuntimeError: it broke") as told:
        curve = learning_curve(missed, X, Y, metric, cv=KFold(3), sizes=[1.0], error_score=-7.0)
    assert told[0].filename == __file__
    pairs = list(KFold(3).split(X))[1:]
    assert curve.validation == pytest.approx(learning_curve(Brittle(), X, Y, metric, cv=pairs, sizes=[1.0]).validation)
    _, train, held_out = curve
    np.testing.assert_array_equal(train == -7.0, [[True, False, False]])
    np.testing.assert_array_equal(held_out == -7.0, [[True, False, False]])
    with pytest.raises(RuntimeError, match="it broke"):
        learning_curve(missed, X, Y, metric, cv=KFold(3), error_score="raise")


def test_a_size_at_which_all_fits_fail() -> None:
    with pytest.warns(FitFailedWarning, match="3 of 6 failed"):
        curve = learning_curve(Brittle(few=20), X, Y, "mse", cv=KFold(3), sizes=[20, 40])
    assert np.isnan([curve.train[0], curve.validation[0], curve.low[0], curve.high[0]]).all()
    assert np.isfinite([curve.train[1], curve.validation[1], curve.low[1], curve.high[1]]).all()
    assert np.isnan([*curve][2][0]).all()
    assert json.loads(json.dumps(curve.as_dict(), allow_nan=False))["validation"][0] is None
    assert "Too few sizes" in curve.reading
    with pytest.raises(
        ValueError, match=r"learning_curve: all 6 fits failed\. The first: 20 rows of fold 1: RuntimeError"
    ):
        learning_curve(Brittle(few=90), X, Y, "mse", cv=KFold(3), sizes=[20, 40])
    for wrong in ("nan", None, True):
        with pytest.raises(ValueError, match="error_score must be"):
            learning_curve(Brittle(), X, Y, "mse", error_score=wrong)


def test_failures_do_not_change_what_a_curve_says() -> None:
    rows = (100, 200, 400, 800)
    folds = np.array([0.2 + 2 / n**0.5 for n in rows])[:, None] + [-1e-3, 1e-3]

    def curve(numbers: tuple[int, ...], folds: np.ndarray) -> LearningCurve:
        mean = tuple(np.nan if np.isnan(row).all() else float(np.nanmean(row)) for row in folds)
        nested = tuple(map(tuple, folds.tolist()))
        facts = ("rmse", "root mean squared error", ".4g", True, 0.95)
        return LearningCurve(numbers, mean, mean, mean, mean, *facts, nested, nested)

    known = curve(rows, folds)
    more = curve((50, *rows), np.vstack([[np.nan, np.nan], folds]))
    assert more.reading == known.reading
    assert more.expected(1600) == known.expected(1600)
    third = curve(rows, np.column_stack([folds, np.r_[np.nan, folds[1:].mean(axis=1)]]))
    assert third.reading == known.reading
    with pytest.raises(ValueError, match="needs at least three"):
        curve(rows, np.where(np.eye(4, 2) > 0, np.nan, folds)).expected(1600)


class Memory(RegressorMixin, BaseEstimator):
    """What it has seen."""

    asked: ClassVar[list[np.ndarray]] = []

    def partial_fit(self, X: Any, y: Any) -> Any:
        self.seen_ = np.r_[getattr(self, "seen_", []), X[:, 0]]
        self.asked.append(self.seen_)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.seen_.sum())


def test_a_model_that_goes_on() -> None:
    Memory.asked.clear()
    options: dict[str, Any] = {"cv": KFold(3), "sizes": [5, 12, 40], "exploit_incremental_learning": True}
    curve = learning_curve(Memory(), X, Y, "mse", **options)
    assert len(Memory.asked) == 9
    for fold, (train, held_out) in enumerate(KFold(3).split(X)):
        seen = Memory.asked[fold::3]
        assert [one.size for one in seen] == [5, 12, 40]
        assert all((large[: small.size] == small).all() for small, large in pairwise(seen))
        assert set(seen[-1]) == set(X[train, 0])
        for size in range(3):
            expected = np.mean((Y[held_out] - seen[size].sum()) ** 2)
            assert curve.validation_folds[size][fold] == pytest.approx(expected)
    labels = np.where(Y > 0, "up", "down")
    assert min(learning_curve(SGDClassifier(), X, labels, **options).validation) > 0.6
    with pytest.raises(ValueError, match="Ridge has none"):
        learning_curve(Ridge(), X, Y, **options)


def test_times_threads_and_what_fit_is_given() -> None:
    options: dict[str, Any] = {"cv": KFold(3), "sizes": [0.5, 1.0]}
    curve = learning_curve(Ridge(), X, Y, "mse", **options, return_times=True)
    _, train, _, fits, scores = curve
    assert fits.shape == scores.shape == train.shape
    assert (np.r_[fits, scores] > 0).all()
    weight = np.random.default_rng(0).integers(1, 4, size=60)
    curve = learning_curve(Ridge(), X, Y, "mse", **options, params={"sample_weight": weight}, n_jobs=2)
    for fold, (rows, held_out) in enumerate(KFold(3).split(X)):
        model = Ridge().fit(X[rows], Y[rows], sample_weight=weight[rows])
        expected = np.mean((Y[held_out] - model.predict(X[held_out])) ** 2)
        assert curve.validation_folds[1][fold] == pytest.approx(expected)
    Brittle.asked.clear()
    given = {"kind": "a", "again": X, "first": X[:, 0].tolist(), "three": [1, 2, 3]}
    learning_curve(Brittle(), X, Y, "mse", **options, params=given)
    for asked in Brittle.asked:
        np.testing.assert_array_equal(asked["again"], asked["X"])
        np.testing.assert_array_equal(asked["first"], asked["X"][:, 0])
        assert (asked["kind"], asked["three"]) == ("a", [1, 2, 3])
    with pytest.raises(ValueError, match="given twice"):
        learning_curve(Ridge(), X, Y, "mse", sample_weight=weight, params={"sample_weight": weight})


def test_validation_curve_by_scikit_learns_names() -> None:
    theirs: dict[str, Any] = {
        "param_name": "alpha",
        "param_range": [0.1, 10.0],
        "scoring": "neg_mean_squared_error",
        "cv": KFold(3),
    }
    curve = validation_curve(Ridge(), X, Y, **theirs, verbose=0, pre_dispatch="all", n_jobs=2)
    assert curve == validation_curve(Ridge(), X, Y, "mse", "alpha", [0.1, 10.0], cv=KFold(3))
    train, held_out = curve
    assert train.shape == held_out.shape == (2, 3)
    np.testing.assert_allclose(-held_out.mean(axis=1), curve.validation)
    for wrong, said in (({"parameter": "alpha"}, "two names"), ({"param_name": None}, "parameter is missing")):
        with pytest.raises(ValueError, match=said):
            validation_curve(Ridge(), X, Y, **{**theirs, **wrong})
    groups = np.repeat(np.arange(6), 10)
    grouped = validation_curve(Ridge(), X, Y, "mse", "alpha", [0.1], cv=GroupKFold(3), groups=groups)
    assert grouped == validation_curve(Ridge(), X, Y, "mse", "alpha", [0.1], cv=GroupKFold(3).split(X, Y, groups))
    with pytest.warns(FitFailedWarning, match="3 of 6 failed"):
        part = validation_curve(Ridge(), X, Y, "mse", "alpha", [-1.0, 0.1], cv=KFold(3))
    assert part.best == 0.1
    assert np.isnan(part.validation[0])
    assert "all values that could be fitted do as well" in part.reading
