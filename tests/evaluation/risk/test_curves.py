"""Learning curves against fits by hand, and their readings on curves whose truth is known."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import brentq
from scipy.stats import t as student
from sklearn.model_selection import GroupKFold, KFold

from certifit import DecisionTreeRegressor, LogisticRegression, Ridge
from certifit.evaluation.metrics.registry import METRICS
from certifit.evaluation.risk.curves import LearningCurve, ValidationCurve, learning_curve, reading, validation_curve


def regression(n: int, d: int, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X.sum(axis=1) + noise * rng.normal(size=n)


@pytest.mark.parametrize("metric", ["mse", "rmse"])
def test_values_are_fits_by_hand(metric: str) -> None:
    X, y = regression(90, 3)
    pairs = [(np.arange(60), np.arange(60, 90)), (np.arange(30, 90), np.arange(30))]
    curve = learning_curve(Ridge(alpha=0.1), X, y, metric, cv=pairs, sizes=[60])
    by_hand = []
    for train, held in pairs:
        model = Ridge(alpha=0.1).fit(X[train], y[train])
        by_hand.append([METRICS[metric](y[rows], model.predict(X[rows])) for rows in (train, held)])
    assert curve.rows == (60,)
    np.testing.assert_allclose(np.column_stack([curve.train_folds[0], curve.validation_folds[0]]), by_hand)
    assert curve.validation[0] == pytest.approx(np.mean(by_hand, axis=0)[1])
    assert curve.low[0] < curve.validation[0] < curve.high[0]


def test_sizes_are_nested_and_fair() -> None:
    y = np.array(["rare"] * 20 + ["common"] * 180)
    X = np.arange(200.0)[:, None]
    asked: list[np.ndarray] = []

    def fit(rows: np.ndarray):  # type: ignore[no-untyped-def]
        asked.append(rows)
        return lambda X: np.full(X.shape[0], "common")

    curve = learning_curve(fit, X, y, "accuracy", cv=0.25, sizes=[0.2, 0.5, 1.0])
    assert curve.rows == (30, 75, 150)
    for small, large in pairwise(asked):
        assert set(small) <= set(large)
    for rows in asked:
        assert np.mean(y[rows] == "rare") == pytest.approx(0.1, abs=0.02)
    assert curve.validation == pytest.approx((0.9, 0.9, 0.9))


def test_functions_frames_and_weights() -> None:
    X, y = regression(120, 2)
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    arrays = learning_curve(Ridge(), X, y, "rmse")
    assert learning_curve(Ridge(), frame, y, "rmse").validation == pytest.approx(arrays.validation)
    function = learning_curve(lambda rows: Ridge().fit(X[rows], y[rows]), X, y, "rmse")
    assert function == arrays
    weight = np.r_[np.zeros(60), np.ones(60)]
    weighted = learning_curve(Ridge(), X, y, "rmse", sample_weight=weight)
    assert weighted.validation == pytest.approx(learning_curve(Ridge(), X[60:], y[60:], "rmse").validation)
    assert json.loads(json.dumps(arrays.as_dict()))["reading"] == arrays.reading


def test_more_data_would_help() -> None:
    X, y = regression(240, 60, noise=0.5)
    curve = learning_curve(Ridge(alpha=1e-3), X, y, "rmse", sizes=[70, 90, 110, 140, 160])
    assert reading(curve).startswith(
        "More data would help: twice the rows should bring the root mean squared error in cross-validation from"
    )


def test_a_flat_curve() -> None:
    X, y = regression(3000, 2)
    curve = learning_curve(Ridge(alpha=1e-3), X, y, "rmse", sizes=6)
    assert reading(curve).startswith("The curve is flat: twice the rows would improve the root mean squared error")


def test_training_error_far_below() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    curve = learning_curve(DecisionTreeRegressor(), X, y, "mse")
    assert curve.train[-1] < 1e-12
    assert reading(curve).startswith("Training error far below validation error")


def test_classification_curve_where_higher_is_better() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 2))
    y = np.where(X[:, 0] + rng.normal(size=2000) > 0, "up", "down")
    curve = learning_curve(LogisticRegression(), X, y, "roc_auc", sizes=6)
    assert 0.7 < curve.validation[-1] < 0.9
    assert reading(curve).startswith("The curve is flat")


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
def test_a_class_that_few_rows_lack_has_no_chance_there(metric: str) -> None:
    X, score = regression(120, 2)
    y = np.where(np.arange(120) == 7, "rare", np.where(score > 0, "up", "down"))
    curve = learning_curve(LogisticRegression(), X, y, metric, sizes=[6, 80], cv=[(np.arange(8, 120), np.arange(8))])
    model = LogisticRegression().fit(X[8:], y[8:])
    by_hand = learning_curve(LogisticRegression(), X, y, metric, sizes=[112], cv=[(np.arange(8, 120), np.arange(8))])
    chances = np.column_stack([model.predict_proba(X[:8])[:, :1], np.zeros(8), model.predict_proba(X[:8])[:, 1:]])
    said = chances if metric == "log_loss" else model.predict(X[:8])
    assert by_hand.validation[0] == METRICS[metric](y[:8], said, classes=["down", "rare", "up"])
    assert len(curve.validation) == 2
    assert np.isfinite([curve.validation, curve.low, curve.high]).all()


def made(values, rows=(100, 200, 400, 800, 1600), spread=0.0, lower=True, seed=0) -> LearningCurve:  # type: ignore[no-untyped-def]
    """A curve with the given means, three folds and noise."""
    folds = np.array(values)[:, None] + spread * np.random.default_rng(seed).normal(size=(len(values), 3))
    means = tuple(folds.mean(axis=1))
    ends = [tuple(m + side * 0.02 for m in means) for side in (-1, 1)]
    table = tuple(map(tuple, folds.tolist()))
    names = ("rmse", "root mean squared error", ".4g") if lower else ("roc_auc", "area under ROC", ".4f")
    return LearningCurve(tuple(rows), means, means, *ends, *names, lower, 0.95, table, table)


def test_the_gain_is_extrapolated_and_oriented() -> None:
    rows = np.array([100, 200, 400, 800, 1600])
    falling = 0.2 + 3 / rows**0.5
    text = reading(made(falling, spread=1e-4))
    assert text.startswith("More data would help")
    assert float(text.rsplit(" ", 1)[1].rstrip(".")) == pytest.approx(0.2 + 3 / 3200**0.5, rel=0.01)
    rising = reading(made(0.9 - 2 / rows**0.5, spread=1e-4, lower=False))
    assert rising.startswith("More data would help")
    assert float(rising.rsplit(" ", 1)[1].rstrip(".")) == pytest.approx(0.9 - 2 / 3200**0.5, rel=0.01)
    assert reading(made(0.9 - 0 / rows, lower=False, spread=1e-4)).startswith("The curve is flat")
    assert "help" not in reading(made(0.2 + 0.001 * np.arange(5), spread=1e-4))  # it gets worse


def test_no_trend_is_read_into_noise() -> None:
    """Flat curves with noise: 'more data would help' no more often than the level allows."""
    wrong = sum(reading(made([0.5] * 5, spread=0.05, seed=seed)).startswith("More") for seed in range(200))
    assert wrong <= 16
    assert reading(made([0.5] * 5, spread=0.5)).startswith("The curve is too uneven")
    assert reading(made([0.5, 0.4], rows=(10, 20))).startswith("Too few sizes")


def test_validation_curve() -> None:
    X, y = regression(120, 20)
    pairs = [(np.arange(80), np.arange(80, 120))]
    alphas = [1e-3, 1e-1, 1e2]
    curve = validation_curve(Ridge(), X, y, "mse", "alpha", alphas, cv=pairs)
    for alpha, train, held in zip(alphas, curve.train, curve.validation, strict=True):
        model = Ridge(alpha=alpha).fit(X[:80], y[:80])
        assert train == pytest.approx(METRICS["mse"](y[:80], model.predict(X[:80])))
        assert held == pytest.approx(METRICS["mse"](y[80:], model.predict(X[80:])))
    assert curve.best == alphas[int(np.argmin(curve.validation))]
    assert validation_curve(Ridge(), X, y, "r2", "alpha", alphas, cv=pairs).best == curve.best
    assert curve.as_dict()["parameter"] == "alpha"


X20, Y20 = regression(20, 1)
BAD = {
    "cv": (lambda: learning_curve(Ridge(), X20, Y20, "mse", cv="five"), "cv must be"),
    "folds": (lambda: learning_curve(Ridge(), X20, Y20, "mse", cv=21), "cv must be an integer"),
    "share": (lambda: learning_curve(Ridge(), X20, Y20, "mse", cv=1.5), "cv must be a number"),
    "empty part": (lambda: learning_curve(Ridge(), X20, Y20, "mse", cv=[(np.arange(20), [])]), "cv leaves a part"),
    "sizes": (lambda: learning_curve(Ridge(), X20, Y20, "mse", sizes=[0.5, -1]), "sizes must be"),
    "too many": (lambda: learning_curve(Ridge(), X20, Y20, "mse", sizes=[19]), "19 training rows, but a fold has 13"),
    "rows": (lambda: learning_curve(Ridge(), X20, Y20[:3], "mse"), "X has 20, y has 3"),
    "values": (lambda: validation_curve(Ridge(), X20, Y20, "mse", "alpha", []), "values must not be empty"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()


def test_fit_must_be_able_to_fit() -> None:
    with pytest.raises(TypeError, match="estimator or a function of row numbers"):
        learning_curve(3, X20, Y20, "mse")


def test_folds_of_one_row_have_an_interval() -> None:
    """Influences are centered within a fold: in folds of one row all that varies is between them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X.sum(axis=1) + rng.normal(size=40)
    curve = validation_curve(Ridge(), X, y, "mse", "alpha", [0.01], cv=40)
    losses = [
        (y[i] - Ridge(alpha=0.01).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0]) ** 2
        for i in range(40)
    ]
    value, error = np.mean(losses), np.std(losses, ddof=1) / np.sqrt(40)
    lean = np.mean((losses - value) ** 3) / np.std(losses) ** 3 / np.sqrt(40)

    def off(t: float, wanted: float) -> float:  # Hall's transformation of Student's T, of which the quantile is wanted
        return t + lean * t**2 / 3 + lean**2 * t**3 / 27 + lean / 6 - wanted

    quantile = student.isf(0.025, 39)
    low, high = (value - brentq(off, -50, 50, args=(q,)) * error * np.sqrt(1.25) for q in (quantile, -quantile))
    np.testing.assert_allclose([curve.low[0], curve.validation[0], curve.high[0]], [low, value, high])


@pytest.mark.exhaustive
@pytest.mark.parametrize("cv", [3, 20, 40])
def test_intervals_cover(cv: int) -> None:
    n, hits, truth = 40, [], []
    fresh = np.random.default_rng(99).normal(size=(5000, 3))
    for seed in range(300):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 3))
        y = X.sum(axis=1) + rng.normal(size=n)
        curve = validation_curve(Ridge(), X, y, "mse", "alpha", [0.01], cv=cv)
        hits.append((curve.low[0], curve.high[0]))
        start = int(n * (1 - 1 / cv))
        model = Ridge(alpha=0.01).fit(X[:start], y[:start])
        truth.append(1.0 + np.mean((model.predict(fresh) - fresh.sum(axis=1)) ** 2))
    low, high = np.array(hits).T
    assert np.mean((low <= np.mean(truth)) & (np.mean(truth) <= high)) >= 0.91


def test_doubling_that_gains_little_is_no_reason_for_more_data() -> None:
    promised = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(800, 4))
        curve = learning_curve(Ridge(alpha=1e-3), X, X.sum(axis=1) + rng.normal(size=800), "mse")
        promised += reading(curve).startswith("More data")
    assert promised <= 1


@pytest.mark.parametrize(
    ("train", "validation", "said"),
    [
        ((0.5, 0.9, 1.2), (1.0, 1.1, 1.4), "the first of the values: the best may lie beyond"),
        ((0.9, 1.0, 1.2), (1.4, 1.1, 1.4), "alpha=2 does best."),
        ((0.1, 0.1, 0.1), (1.4, 1.1, 1.4), "it overfits"),
        ((0.9, 0.9, 0.9), (1.10, 1.11, 1.12), "hardly matters"),
    ],
)
def test_reading_of_a_parameter(train: tuple[float, ...], validation: tuple[float, ...], said: str) -> None:
    low, high = tuple(v - 0.05 for v in validation), tuple(v + 0.05 for v in validation)
    best = (1, 2, 3)[int(np.argmin(validation))]
    curve = ValidationCurve(
        "alpha", (1, 2, 3), train, validation, low, high, best, "mse", "mean squared error", True, 0.95
    )
    assert said in reading(curve) == curve.reading


@pytest.mark.parametrize("lower", [True, False])
def test_the_law_is_followed_beyond_the_curve(lower: bool) -> None:
    rows, sign = (100, 200, 400, 800), 1.0 if lower else -1.0
    noise = 1e-3 * np.random.default_rng(0).normal(size=(4, 3))
    folds = 0.5 + sign * (np.array(rows)[:, None] ** -0.5 + noise)
    mean = tuple(folds.mean(axis=1))
    ends = (tuple(np.array(mean) - 0.002), tuple(np.array(mean) + 0.002))
    by_fold = tuple(map(tuple, folds))
    curve = LearningCurve(rows, mean, mean, *ends, "m", "m", ".4g", lower, 0.95, by_fold, by_fold)
    for later in (1600, 3200):
        value, low, high = curve.expected(later)
        assert low < 0.5 + sign * later**-0.5 < high
        assert low < value < high
        assert (value < mean[-1]) == lower
        assert high - low < 0.03
    short = LearningCurve(
        rows[:2], mean[:2], mean[:2], *(e[:2] for e in ends), "m", "m", ".4g", lower, 0.95, by_fold[:2], by_fold[:2]
    )
    with pytest.raises(ValueError, match="at least three"):
        short.expected(1600)
    with pytest.raises(ValueError, match="rows"):
        curve.expected(0)


def test_a_cliff_at_few_rows_promises_nothing_beyond_the_curve() -> None:
    # Least squares on 25 columns: interpolation of few rows, and then nearly all that noise of 0.5 leaves.
    error = np.array([4.1, 3.5, 2.2, 0.78, 0.66])
    folds = tuple(map(tuple, (error[:, None] + [-0.02, 0.0, 0.02]).tolist()))
    ends = tuple((error - 0.1).tolist()), tuple((error + 0.1).tolist())
    facts = ("rmse", "root mean squared error", ".4g", True, 0.95)
    mean = tuple(error.tolist())
    curve = LearningCurve((8, 14, 25, 45, 80), (0.4,) * 5, mean, *ends, *facts, folds, folds)
    assert "too uneven" in curve.reading
    _, low, high = curve.expected(160)
    assert 0.0 <= low < 0.55 < high


def test_scikit_learns_names_and_what_its_function_returns() -> None:
    X, y = regression(90, 3)
    curve = learning_curve(Ridge(alpha=0.01), X, y, train_sizes=[0.5, 1.0], scoring="neg_mean_squared_error", cv=3)
    assert curve == learning_curve(Ridge(alpha=0.01), X, y, "mse", sizes=[0.5, 1.0], cv=3)
    rows, train, held_out = curve
    assert rows.tolist() == [30, 60]
    assert train.shape == held_out.shape == (2, 3)
    assert (held_out < 0).all()
    np.testing.assert_allclose(-held_out.mean(axis=1), curve.validation, rtol=0.1)
    assert learning_curve(Ridge(), X, y).metric == "r2"
    assert learning_curve(LogisticRegression(), X, y > 0).metric == "accuracy"
    with pytest.raises(ValueError, match="two names of one argument"):
        learning_curve(Ridge(), X, y, "mse", scoring="r2")


def test_splitters_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y, groups = X[:, 0] + rng.normal(size=60), np.repeat(np.arange(12), 5)
    options: dict[str, Any] = {"train_sizes": [0.5, 1.0], "shuffle": False, "verbose": 0, "pre_dispatch": "all"}
    curve = learning_curve(Ridge(alpha=0.01), X, y, "rmse", cv=GroupKFold(4), groups=groups, **options)
    pairs = list(GroupKFold(4).split(X, y, groups))
    assert curve == learning_curve(Ridge(alpha=0.01), X, y, "rmse", cv=pairs, **options)
    by_splitter, by_pairs = (
        validation_curve(Ridge(), X, y, "rmse", "alpha", [0.1, 1.0], cv=cv) for cv in (KFold(3), KFold(3).split(X))
    )
    assert by_splitter == by_pairs
    with pytest.raises(ValueError, match="a splitter"):
        learning_curve(Ridge(), X, y, cv="three")
