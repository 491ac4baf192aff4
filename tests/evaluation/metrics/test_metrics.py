"""Metrics against scikit-learn's, with weights, ties, labels of any type and inputs that are wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.metrics as reference
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import trapezoid

import certifit.metrics as m
from certifit.evaluation.metrics.ranking import placements
from certifit.metrics import METRICS, Metric

RNG = np.random.default_rng(0)
N = 200
LABELS = {
    "strings": np.array(["blue", "green", "red"]),
    "integers": np.array([-3, 0, 7]),
    "floats": np.array([0.5, 1.0, 2.5]),
}
WEIGHTS = {"equal": None, "unequal": RNG.exponential(size=N), "whole": RNG.integers(0, 4, size=N).astype(float)}


def labels(kind: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    names = LABELS[kind][:k]
    rng = np.random.default_rng(k)
    y = rng.integers(k, size=N)
    predicted = np.where(rng.random(N) < 0.6, y, rng.integers(k, size=N))
    return names[y], names[predicted]


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", LABELS)
def test_label_metrics(kind: str, k: int, weight: np.ndarray | None) -> None:
    y, predicted = labels(kind, k)
    given_, average = {"sample_weight": weight}, "binary" if k == 2 else "macro"
    more = {"pos_label": LABELS[kind][1], "average": average, "zero_division": 0, **given_}
    more = more if k == 2 else {"average": average, **given_}
    if kind == "floats":  # scikit-learn takes fractions for a regression: give it names instead
        codes = {value: str(value) for value in LABELS[kind]}
        theirs_y, theirs_p = np.array([codes[v] for v in y]), np.array([codes[v] for v in predicted])
        more = more if k == 3 else {**more, "pos_label": codes[LABELS[kind][1]]}
    else:
        theirs_y, theirs_p = y, predicted
    expected = {
        "accuracy": reference.accuracy_score(theirs_y, theirs_p, **given_),
        "zero_one": reference.zero_one_loss(theirs_y, theirs_p, **given_),
        "balanced_accuracy": reference.balanced_accuracy_score(theirs_y, theirs_p, **given_),
        "precision": reference.precision_score(theirs_y, theirs_p, **more),
        "recall": reference.recall_score(theirs_y, theirs_p, **more),
        "f1": reference.f1_score(theirs_y, theirs_p, **more),
    }
    for name, value in expected.items():
        assert METRICS[name](y, predicted, sample_weight=weight) == pytest.approx(value, abs=1e-12), name
    table = m.confusion_matrix(y, predicted, sample_weight=weight)
    np.testing.assert_allclose(table, reference.confusion_matrix(theirs_y, theirs_p, **given_))
    if k == 2:
        assert m.tpr(y, predicted, sample_weight=weight) == pytest.approx(table[1, 1] / table[1].sum())
        assert m.fpr(y, predicted, sample_weight=weight) == pytest.approx(table[0, 1] / table[0].sum())


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("ties", [False, True])
def test_ranking(ties: bool, weight: np.ndarray | None) -> None:
    rng = np.random.default_rng(1)
    y = rng.random(N) < 0.3
    score = rng.normal(size=N) + y
    if ties:
        score = np.round(score)
    curve = m.roc_curve(y, score, sample_weight=weight)
    fpr, tpr, thresholds = reference.roc_curve(y, score, sample_weight=weight, drop_intermediate=False)
    if weight is None or weight.min() > 0:
        np.testing.assert_allclose(curve.fpr, fpr, atol=1e-12)
        np.testing.assert_allclose(curve.tpr, tpr, atol=1e-12)
        np.testing.assert_array_equal(curve.thresholds, thresholds)
    assert m.roc_auc(y, score, sample_weight=weight) == pytest.approx(
        reference.roc_auc_score(y, score, sample_weight=weight), abs=1e-12
    )
    assert m.average_precision(y, score, sample_weight=weight) == pytest.approx(
        reference.average_precision_score(y, score, sample_weight=weight), abs=1e-12
    )
    used = np.ones(N, dtype=bool) if weight is None else weight > 0
    theirs = None if weight is None else weight[used]
    precision, recall, _ = reference.precision_recall_curve(y[used], score[used], sample_weight=theirs)
    ours = m.pr_curve(y, score, sample_weight=weight)
    np.testing.assert_allclose(ours.recall, recall[::-1], atol=1e-12)
    np.testing.assert_allclose(ours.precision, precision[::-1], atol=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3), st.integers(1, 3)), min_size=2, max_size=20))
def test_area_is_the_share_of_pairs_in_order(rows: list[tuple[bool, int, int]]) -> None:
    y, score, weight = (np.array(column) for column in zip(*rows, strict=True))
    if y.all() or not y.any():
        with pytest.raises(ValueError, match="both classes"):
            m.roc_auc(y, score, sample_weight=weight)
        return
    pairs = [
        (a * b, (s > t) + 0.5 * (s == t))
        for s, a in zip(score[y], weight[y], strict=True)
        for t, b in zip(score[~y], weight[~y], strict=True)
    ]
    expected = sum(w * v for w, v in pairs) / sum(w for w, _ in pairs)
    assert m.roc_auc(y, score, sample_weight=weight) == pytest.approx(expected)
    assert placements(y, score.astype(float), weight.astype(float))[0] == pytest.approx(expected)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("k", [2, 3])
def test_probability_metrics(k: int, weight: np.ndarray | None) -> None:
    y, _ = labels("strings", k)
    p = np.random.default_rng(2).dirichlet(np.ones(k), size=N)
    names = LABELS["strings"][:k]
    assert m.log_loss(y, p, sample_weight=weight) == pytest.approx(
        reference.log_loss(y, p, labels=names, sample_weight=weight)
    )
    indicator = y[:, None] == names
    squares = 0.5 * ((p - indicator) ** 2).sum(axis=1)
    assert m.brier(y, p, sample_weight=weight) == pytest.approx(np.average(squares, weights=weight))
    backwards = names[::-1]
    assert m.log_loss(y, p[:, ::-1], sample_weight=weight, classes=backwards) == pytest.approx(
        m.log_loss(y, p, sample_weight=weight)
    )
    if k == 2:
        assert m.log_loss(y, p[:, 1], sample_weight=weight) == pytest.approx(m.log_loss(y, p, sample_weight=weight))
        assert m.brier(y, p[:, 1], sample_weight=weight) == pytest.approx(
            reference.brier_score_loss(y == names[1], p[:, 1], sample_weight=weight)
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_loss_of_a_sure_mistake_is_large_but_finite(dtype: type) -> None:
    p = np.array([1.0, 0.0], dtype=dtype)
    assert m.log_loss([0, 1], p) == pytest.approx(-np.log(np.finfo(dtype).eps))
    assert m.log_loss([1, 0], p) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
def test_value_metrics(weight: np.ndarray | None) -> None:
    rng = np.random.default_rng(3)
    y, f = rng.gamma(2.0, size=N), rng.gamma(2.0, size=N)
    given_ = {"sample_weight": weight}
    theirs = {
        "mse": reference.mean_squared_error,
        "rmse": reference.root_mean_squared_error,
        "mae": reference.mean_absolute_error,
        "r2": reference.r2_score,
        "mean_poisson_deviance": reference.mean_poisson_deviance,
        "mean_gamma_deviance": reference.mean_gamma_deviance,
        "pinball": reference.mean_pinball_loss,
    }
    for name, metric in theirs.items():
        assert METRICS[name](y, f, sample_weight=weight) == pytest.approx(metric(y, f, **given_)), name
    assert m.pinball(y, f, level=0.9, **given_) == pytest.approx(reference.mean_pinball_loss(y, f, alpha=0.9, **given_))
    if weight is None:
        assert m.median_absolute_error(y, f) == pytest.approx(np.median(np.abs(y - f)))


def test_r2_of_a_constant_target() -> None:
    assert m.r2([2.0, 2.0], [2.0, 2.0]) == 1.0
    assert m.r2([2.0, 2.0], [2.0, 3.0]) == 0.0


def prediction_for(metric: Metric, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A target and a prediction with ties, of what the metric needs."""
    if metric.needs == "value":
        return rng.integers(1, 6, size=n).astype(float), rng.integers(1, 6, size=n).astype(float)
    y = np.array(["no", "yes"])[(np.arange(n) % 2)]
    if metric.needs == "label":
        return y, np.where(rng.random(n) < 0.7, y, "yes")
    return y, np.round(rng.uniform(0.05, 0.95, size=n), 1)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_weight_is_repetition(metric: Metric) -> None:
    rng = np.random.default_rng(4)
    y, prediction = prediction_for(metric, rng, 40)
    weight = rng.integers(0, 4, size=40)
    repeated = np.repeat(np.arange(40), weight)
    assert metric(y, prediction, sample_weight=weight) == pytest.approx(
        metric(y[repeated], prediction[repeated]), rel=1e-12
    )


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_registry_agrees_with_itself(metric: Metric) -> None:
    rng = np.random.default_rng(5)
    y, prediction = prediction_for(metric, rng, 60)
    weight = rng.exponential(size=60)
    value = metric(y, prediction, sample_weight=weight)
    assert metric.tasks <= {"binary", "multiclass", "regression"}
    assert metric.needs in ("probability", "label", "value", "score")
    assert float(metric.text(value)) == pytest.approx(value, rel=1e-2)
    if metric.per_example is not None:
        values = metric.per_example(y, prediction)
        assert np.average(values, weights=weight) == pytest.approx(value)
        sign = 1 if metric.lower_is_better else -1
        np.testing.assert_array_equal(metric.losses(y, prediction), sign * values)
        if metric.bound is not None:
            assert metric.bound[0] <= values.min() <= values.max() <= metric.bound[1]
    else:
        with pytest.raises(TypeError, match="not a mean"):
            metric.losses(y, prediction)
    if metric.statistics is not None:
        means = np.average(metric.statistics(y, prediction), weights=weight, axis=0)
        assert float(metric.combine(means)) == pytest.approx(value)
        np.testing.assert_allclose(metric.combine(np.stack([means, means])), [value, value])


def test_a_better_prediction_scores_better() -> None:
    rng = np.random.default_rng(6)
    for metric in METRICS.values():
        y, _ = prediction_for(metric, rng, 50)
        if metric.needs == "value":
            good, bad = y.copy(), y[::-1] + 1.0
        elif metric.needs == "label":
            good, bad = y, np.where(y == "yes", "no", "yes")
        else:
            good, bad = np.where(y == "yes", 0.9, 0.1), np.where(y == "yes", 0.2, 0.8)
        assert (metric(y, good) < metric(y, bad)) == metric.lower_is_better, metric.name


def test_expected_cost() -> None:
    y, predicted = labels("strings", 3)
    cost = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]])
    table = m.confusion_matrix(y, predicted)
    expected = (table * cost).sum() / N
    assert m.expected_cost(y, predicted, cost) == pytest.approx(expected)
    metric = m.cost_metric(cost)
    assert metric(y, predicted) == pytest.approx(expected)
    assert metric.losses(y, predicted).mean() == pytest.approx(expected)
    assert metric.bound == (0.0, 6.0)


@pytest.mark.parametrize("points", [2, 5, 20, 100])
def test_thin_curve_keeps_the_shape(points: int) -> None:
    rng = np.random.default_rng(7)
    y = rng.random(5000) < 0.4
    curve = m.roc_curve(y, rng.normal(size=5000) + 1.5 * y)
    fpr, tpr, thresholds = m.thin_curve(*curve, max_points=points)
    assert fpr.shape[0] <= points
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert set(zip(fpr, tpr, thresholds, strict=True)) <= set(zip(*curve, strict=True))
    area, thinned = (trapezoid(b, a) for a, b in ((curve.fpr, curve.tpr), (fpr, tpr)))
    assert abs(area - thinned) < {2: 0.5, 5: 0.05, 20: 0.005, 100: 0.001}[points]


def test_thin_curve_stops_when_nothing_is_left_to_say() -> None:
    x = np.arange(1000.0)
    assert m.thin_curve(x, 3 * x, max_points=50)[0].tolist() == [0.0, 999.0]
    assert m.thin_curve([1, 2], [3, 4])[1].tolist() == [3, 4]


def test_labels_of_mixed_types_need_classes() -> None:
    y, predicted = np.array(["a", 1, "a"], dtype=object), np.array(["a", "a", 1], dtype=object)
    with pytest.raises(ValueError, match=r"pass classes=\["):
        m.accuracy(y, predicted)
    assert m.accuracy(y, predicted, classes=np.array(["a", 1], dtype=object)) == pytest.approx(1 / 3)


def test_columns_of_any_library() -> None:
    y, predicted = ["a", "b", "b"], ["a", "b", "a"]
    categories = partial(pd.Series, dtype="category", index=[5, 5, 1])
    for column in (np.array, pd.Series, pl.Series, pa.array, categories):
        assert m.accuracy(column(y), column(predicted)) == pytest.approx(2 / 3)
        assert m.mae(column([1.0, 2.0, 3.0]), column([1.0, 2.0, 6.0])) == 1.0


def test_one_class_in_the_rows() -> None:
    assert m.log_loss([1, 1], [0.5, 0.5]) == pytest.approx(np.log(2))
    assert m.log_loss(["b", "b"], [0.5, 0.5], classes=["a", "b"]) == pytest.approx(np.log(2))
    with pytest.raises(ValueError, match="two classes"):
        m.log_loss(["b", "b"], [0.5, 0.5])
    assert m.precision([0, 0], [0, 0], classes=[0, 1]) == 0.0


BAD = {
    "length": (lambda: m.accuracy([1, 2], [1]), "y has 2, prediction has 1"),
    "empty": (lambda: m.mse([], []), "y is empty"),
    "missing label": (lambda: m.accuracy(np.array(["a", None], dtype=object), ["a", "a"]), "missing label at row 1"),
    "pandas NA": (lambda: m.accuracy(pd.Series(["a", pd.NA], dtype=object), ["a", "a"]), "missing label at row 1"),
    "nan label": (lambda: m.accuracy([0.0, np.nan], [0.0, 0.0]), "missing label at row 1"),
    "nan value": (lambda: m.mse([0.0, 1.0], [0.0, np.nan]), "prediction must be finite; got nan at row 1"),
    "text": (lambda: m.mse(["a"], [1.0]), "y must be numbers"),
    "shape": (lambda: m.mse([[1, 2]], [1]), r"shape \(n,\)"),
    "unknown label": (lambda: m.accuracy(["a"], ["b"], classes=["a", "c"]), "prediction has labels.*'b'"),
    "double class": (lambda: m.accuracy(["a"], ["a"], classes=["a", "a"]), "distinct"),
    "sum": (lambda: m.log_loss([0, 1], [[0.5, 0.6], [0.5, 0.5]]), "sum to 1; row 0 sums to 1.1"),
    "range": (lambda: m.log_loss([0, 1], [0.5, 1.5]), "between 0 and 1; got 1.5 at row 1"),
    "nan probability": (lambda: m.log_loss([0, 1], [0.5, np.nan]), "between 0 and 1; got nan at row 1"),
    "columns": (lambda: m.log_loss([0, 1, 2], np.full((3, 4), 0.25)), "4 columns for 3 classes"),
    "one class": (lambda: m.roc_auc([1, 1], [0.1, 0.2]), "second class only"),
    "three classes": (lambda: m.roc_auc([0, 1, 2], [0.1, 0.2, 0.3]), "two classes; found 3"),
    "rates": (lambda: m.tpr([0, 1, 2], [0, 1, 2]), "two classes; found 3"),
    "weights": (lambda: m.mse([1, 2], [1, 2], sample_weight=[1, -1]), "sample_weight"),
    "negative": (lambda: m.mean_poisson_deviance([-1], [1]), "y must be >= 0"),
    "zero mean": (lambda: m.mean_poisson_deviance([1], [0]), "prediction must be > 0"),
    "zero gamma": (lambda: m.mean_gamma_deviance([0], [1]), "y must be > 0"),
    "cost": (lambda: m.expected_cost([0, 1], [0, 1], [[0, 1]]), r"shape \(2, 2\)"),
    "infinite cost": (lambda: m.cost_metric([[0, np.inf], [1, 0]]), "finite"),
    "level": (lambda: m.pinball([1], [1], level=1.0), "level must be"),
    "metric": (lambda: m.resolve_metric("acc"), "'accuracy'.*got 'acc'"),
    "task": (lambda: m.metrics_for("ranking"), "'regression'; got 'ranking'"),
    "points": (lambda: m.thin_curve([1], [1], max_points=1), "max_points"),
    "other length": (lambda: m.thin_curve([1, 2], [1, 2], [1]), "length of x, 2"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()


def test_scores_and_costs_that_are_no_numbers() -> None:
    y, table = np.arange(9) % 3, np.full((9, 3), 0.2)
    table[4, 1] = np.nan
    for call, match in (
        (lambda: m.roc_auc(y, table), r"score must be finite; got \[0.2, nan, 0.2\] at row 4"),
        (lambda: m.roc_auc(y[y < 2], np.ones((6, 3)), classes=[0, 1, 2]), r"there is none of \[2\]"),
        (lambda: m.expected_cost([0, 1], [0, 1], "dear"), "cost must be numbers; got 'dear'"),
    ):
        with pytest.raises(ValueError, match=match):
            call()
