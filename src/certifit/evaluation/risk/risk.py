"""Risk on rows the model has not seen, with an interval that holds for samples of finite size.

    risk = E loss(y, f(x))      estimated by the weighted mean over the rows

| loss | interval | holds |
|---|---|---|
| 0 or 1; recall, precision, false positive rate of two classes | Clopper-Pearson | for every n |
| of a known range | empirical Bernstein (Maurer and Pontil 2009) | for every n |
| other means of losses ≥ 0, and their roots (RMSE) | bootstrap-t of the logarithm; normal above 20,000 rows | n → ∞ |
| other means and functions of means (R², F1) | BCa bootstrap; normal above 20,000 rows | n → ∞ |
| area under the ROC curve | DeLong's variance on the logit scale | n → ∞ |
| other metrics (average precision, median error) | bias-corrected bootstrap over rows | n → ∞ |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import betaincinv, logit
from scipy.stats import norm

from certifit._types import Array
from certifit.data.gate import check_choice, check_sample_weight
from certifit.evaluation.metrics.inputs import (
    binary_rows,
    check_level,
    check_vector,
)
from certifit.evaluation.metrics.labels import confusion_matrix
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.ranking import placements
from certifit.evaluation.metrics.registry import METRICS, Metric, resolve_metric
from certifit.evaluation.risk.losses import loss_values
from certifit.evaluation.risk.resamples import (
    acceleration_of,
    bca_ends,
    critical,
    generator,
    influence_of_means,
    merge_equal,
    resampled_counts,
    resampled_means,
    standard_error,
    studentized_ends,
)
from certifit.names import Plain, record

__all__ = ["Risk", "clopper_pearson", "interval", "metric_interval", "risk"]

METHODS = ("auto", "clopper-pearson", "bernstein", "bootstrap", "normal")
RESAMPLES = 1000
RESAMPLES_BY_CALL = 200  # for metrics that must be computed anew in each resample
# Metrics of two classes that are shares: the cell (actual, predicted) that counts as a success, and the one that does not.
SHARES = {
    "recall": ((1, 1), (1, 0)),
    "tpr": ((1, 1), (1, 0)),
    "fpr": ((0, 1), (0, 0)),
    "precision": ((1, 1), (0, 1)),
}
MANY = 20_000  # rows from which the bootstrap of a mean and the normal interval agree


@record("Risk")
class Risk(Plain):
    """An estimated risk and what is known about it.

    Parameters
    ----------
    value, low, high : float
        The estimate and the ends of its interval.
    level : float
        Confidence of the interval.
    n : float
        Total weight of the rows; their number when there are no weights.
    method : str
        How the interval was found.
    loss : str
        What was measured.

    Examples
    --------
    >>> from certifit.evaluation.risk.risk import interval
    >>> print(interval([0, 1, 0, 0, 0, 1, 0, 0, 0, 0], name="error rate"))
    The error rate is 0.2, between 0.02521 and 0.5561 with 95 % confidence (Clopper-Pearson, 10 rows).
    """

    value: float
    low: float
    high: float
    level: float
    n: float
    method: str
    loss: str

    def __str__(self) -> str:
        method = {"clopper-pearson": "Clopper-Pearson", "bernstein": "empirical Bernstein"}.get(
            self.method, self.method
        )
        return (
            f"The {self.loss} is {self.value:.4g}, between {self.low:.4g} and {self.high:.4g} with "
            f"{100 * self.level:g} % confidence ({method}, {self.n:g} row{'' if self.n == 1 else 's'})."
        )


def risk(
    model: Any,
    X: Any,
    y: Any,
    loss: Any = "auto",
    *,
    level: float = 0.95,
    method: str = "auto",
    bound: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> Risk:
    """Risk of a fitted model on rows it has not seen, with a confidence interval.

    Parameters
    ----------
    model : fitted estimator, or a function of X
        A function must return what the loss compares with y.
    X, y : the rows
        They must not have been used to fit or to choose the model: an interval around a training error covers nothing.
    loss : str, Loss, Metric or callable, default="auto"
        The name of a loss (``"squared"`` is ½(y − f)², as in every objective; ``"absolute"``, ``"logistic"``, …), the name
        of a metric (``"zero_one"``, ``"log_loss"``, ``"mse"``, ``"roc_auc"``, …), one of those objects, or a function
        ``loss(y, prediction)`` that returns one number for each row. ``"auto"`` is the 0-1 loss for a classifier and the
        squared loss for a regression.
    level : float, default=0.95
        Confidence level.
    method : str, default="auto"
        ``"clopper-pearson"`` (0-1 values), ``"bernstein"`` (needs a range), ``"bootstrap"`` or ``"normal"``.
    bound : float or (float, float), optional
        Largest value of the loss, or its least and largest value, when you know them.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    random_state : int, default=0
        Seed of the bootstrap.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LogisticRegression, risk
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] + X[:, 1] ** 2 > 1, "up", "down")
    >>> print(risk(LogisticRegression().fit(X[:200], y[:200]), X[200:], y[200:]))
    The error rate is 0.23, between 0.1736 and 0.2946 with 95 % confidence (Clopper-Pearson, 200 rows).
    """
    if isinstance(loss, str) and loss == "auto":
        loss = "zero_one" if hasattr(model, "classes_") else "squared"
    arguments = {"level": level, "method": method, "sample_weight": sample_weight, "random_state": random_state}
    if isinstance(loss, Metric) or (isinstance(loss, str) and loss in METRICS):
        metric, classes = resolve_metric(loss), getattr(model, "classes_", None)
        return metric_interval(
            metric, y, predict_for(model, X, metric.needs), bound=bound, classes=classes, **arguments
        )
    values, name = loss_values(model, X, y, loss)
    return interval(values, bound=bound, name=name, **arguments)


def interval(
    values: Any,
    *,
    level: float = 0.95,
    method: str = "auto",
    bound: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    name: str = "loss",
) -> Risk:
    """The mean of per-example losses, with a confidence interval.

    Parameters
    ----------
    values : array of shape (n,)
        Losses of independent rows.
    level, method, bound, sample_weight, random_state
        As in `risk`. ``"auto"`` takes Clopper-Pearson for values that are all 0 or 1, Bernstein where there is a `bound`,
        and the bootstrap otherwise.
    name : str, default="loss"
        What the values are, for the sentence.

    Examples
    --------
    >>> from certifit.evaluation.risk.risk import interval
    >>> found = interval([0.1, 0.4, 0.3, 0.2] * 50, bound=1)
    >>> found.method, round(found.value, 4), round(found.low, 4), round(found.high, 4)
    ('bernstein', 0.25, 0.1752, 0.3248)
    """
    v = check_vector("values", values).astype(np.float64, copy=False)
    weight = check_sample_weight(sample_weight, v.shape[0])
    v, weight = v[weight > 0], weight[weight > 0]
    level = check_level(level)
    check_choice("method", method, METHODS)
    ends = _check_bound(bound, v)
    total = float(weight.sum())
    value = float(weight @ v / total)
    if method == "auto":
        if ((v == 0.0) | (v == 1.0)).all():
            method = "clopper-pearson"
        else:
            method = "bernstein" if ends is not None else "bootstrap" if total <= MANY else "normal"
    if method == "clopper-pearson":
        if not ((v == 0.0) | (v == 1.0)).all():
            raise ValueError(
                "method='clopper-pearson' is for values that are 0 or 1; choose 'bootstrap' or 'bernstein'."
            )
        low, high = clopper_pearson(value * total, total, level)
    elif method == "bernstein":
        if ends is None:
            raise ValueError("method='bernstein' needs the range of the loss: pass bound=(least, largest).")
        low, high = _bernstein(v, weight, value, ends, level)
    else:
        low, high = _ends_of_means(v[:, None], weight, _only, value, level, method, random_state)
    if ends is not None:
        low, high = max(low, ends[0]), min(high, ends[1])
    return Risk(value, low, high, level, _whole(total), method, name)


def metric_interval(
    metric: Any,
    y: Any,
    prediction: Any,
    *,
    level: float = 0.95,
    method: str = "auto",
    bound: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    classes: Any = None,
) -> Risk:
    """Any metric of predictions, with a confidence interval.

    A mean over rows has that of `interval`; the area under the ROC curve DeLong's, shares of two classes Clopper and Pearson's;
    functions of means, and what must be computed anew in every resample, the bootstrap's.

    Parameters
    ----------
    metric : str or Metric
    y, prediction
        Target, and what the metric needs.
    level, method, bound, sample_weight, random_state
        As in `risk`; a `bound` widens or narrows the known range of one example.
    classes : sequence, optional
        Order of the classes.

    Examples
    --------
    >>> from certifit.evaluation.risk.risk import metric_interval
    >>> print(metric_interval("recall", [0, 1, 1, 1, 1] * 20, [0, 1, 1, 1, 0] * 20))
    The recall is 0.75, between 0.6406 and 0.8401 with 95 % confidence (Clopper-Pearson, 100 rows).
    >>> metric_interval("roc_auc", [0, 1, 0, 1] * 20, [0.1, 0.4, 0.4, 0.8] * 20).method
    'DeLong'
    """
    metric = resolve_metric(metric)
    level = check_level(level)
    check_choice("method", method, METHODS)
    if metric.per_example is not None:
        values = metric.per_example(y, prediction, classes=classes)
        limits = metric.bound if bound is None else bound
        found = interval(
            values,
            level=level,
            method=method,
            bound=limits,
            sample_weight=sample_weight,
            random_state=random_state,
            name=metric.label,
        )
        return found if metric.largest is None else replace(found, high=min(found.high, metric.largest))
    if method in ("clopper-pearson", "bernstein"):
        raise ValueError(f"{metric.label} is not a mean over examples: method must be 'auto', 'bootstrap' or 'normal'.")
    y, prediction = np.asarray(y), np.asarray(prediction)
    value = metric(y, prediction, sample_weight=sample_weight, classes=classes)
    weight = check_sample_weight(sample_weight, y.shape[0])
    kept = weight > 0
    if not kept.all():  # a row of weight zero has no say, not even about which classes there are
        y, prediction, weight = y[kept], prediction[kept], weight[kept]
    total = float(weight.sum())
    counted = _counted(metric, y, prediction, weight, classes) if method == "auto" else None
    if metric.name == "roc_auc" and method != "bootstrap":
        low, high = _delong(y, prediction, weight, classes, level)
        method = "DeLong"
    elif counted is not None:
        low, high = clopper_pearson(*counted, level)
        method = "clopper-pearson"
    elif metric.statistics is not None and metric.combine is not None:
        method = method if method != "auto" else "bootstrap" if total <= MANY else "normal"
        statistics = metric.statistics(y, prediction, classes=classes)
        low, high = _ends_of_means(statistics, weight, metric.combine, value, level, method, random_state)
    else:
        low, high = _ends_by_call(metric, y, prediction, weight, classes, value, level, random_state)
        method = "bootstrap"
    if metric.bound is not None:
        low, high = max(low, metric.bound[0]), min(high, metric.bound[1])
        if low == high:
            # No resample differs from a perfect (or hopeless) sample, yet another sample may: the interval of a rate that
            # was never seen to differ in as many tries as the rarest class has rows.
            _, codes = np.unique(y, return_inverse=True)
            rarest = float(np.bincount(codes, weights=weight).min())
            low, high = clopper_pearson(value * rarest, rarest, level)
    return Risk(value, low, high, level, _whole(total), method, metric.label)


def clopper_pearson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of a probability from `successes` in `n` independent trials (Clopper and Pearson 1934).

    Real numbers are accepted: they arise from weights.

    Examples
    --------
    >>> from certifit.evaluation.risk.risk import clopper_pearson
    >>> [round(end, 4) for end in clopper_pearson(0, 10)]
    [0.0, 0.3085]
    """
    tail = 0.5 * (1.0 - level)
    failures = n - successes
    slack = 1e-9 * n  # sums of weights are not exact
    low = float(betaincinv(successes, failures + 1.0, tail)) if successes > slack else 0.0
    high = float(betaincinv(successes + 1.0, failures, 1.0 - tail)) if failures > slack else 1.0
    return low, high


def _bernstein(v: Array, weight: Array, value: float, ends: tuple[float, float], level: float) -> tuple[float, float]:
    """Mean ± √(2V·ln(4/δ)/n) + 7R·ln(4/δ)/(3(n − 1)): both tails of Maurer and Pontil's inequality at δ/2 each."""
    n = float(weight.sum())
    if n <= 1.0:
        return ends
    variance = float(weight @ (v - value) ** 2) / (n - 1.0)
    log = np.log(4.0 / (1.0 - level))
    half = float(np.sqrt(2.0 * variance * log / n) + 7.0 * (ends[1] - ends[0]) * log / (3.0 * (n - 1.0)))
    return value - half, value + half


def _ends_of_means(
    statistics: Array,
    weight: Array,
    combine: Callable[[Array], Array],
    value: float,
    level: float,
    method: str,
    random_state: Any,
) -> tuple[float, float]:
    """Bootstrap or normal interval of a function of means."""
    statistics, weight = merge_equal(statistics, weight)
    if method != "normal" and statistics.shape[1] == 1 and statistics.min() >= 0.0:
        ends = studentized_ends(statistics[:, 0], weight, RESAMPLES, level, generator(random_state))
        if ends is not None:
            low, high = (float(combine(np.array([end]))) for end in ends)
            return min(low, value), max(high, value)
    influence = influence_of_means(statistics, weight, combine)
    if method == "normal":
        error, df = standard_error(influence, weight)
        half = critical(level, df) * error if df > 0 else np.inf
        return value - half, value + half
    resampled = combine(resampled_means(statistics, weight, RESAMPLES, generator(random_state)))
    return bca_ends(resampled, value, level, acceleration_of(influence, weight), float(weight.sum()))


def _ends_by_call(
    metric: Metric,
    y: Array,
    prediction: Array,
    weight: Array,
    classes: Any,
    value: float,
    level: float,
    random_state: Any,
) -> tuple[float, float]:
    """Bias-corrected bootstrap of a metric that is no function of means."""
    found = []
    for counts in resampled_counts(weight, RESAMPLES_BY_CALL, generator(random_state)):
        for count in counts:
            try:
                found.append(metric(y, prediction, sample_weight=count, classes=classes))
            except ValueError:  # a resample of one class only has no value and says nothing
                continue
    if len(found) < RESAMPLES_BY_CALL // 2:
        return -np.inf, np.inf
    return bca_ends(np.array(found), value, level, 0.0, float(weight.sum()))


def _counted(metric: Metric, y: Any, prediction: Any, weight: Array, classes: Any) -> tuple[float, float] | None:
    """Successes and tries of a metric that is a share of some of the rows, for two classes."""
    parts = SHARES.get(metric.name)
    if parts is None:
        return None
    table = confusion_matrix(y, prediction, sample_weight=weight, classes=classes)
    if table.shape != (2, 2):
        return None
    tries = float(sum(table[cell] for cell in parts))
    return (float(table[parts[0]]), tries) if tries > 0.0 else None


def _delong(y: Any, score: Any, sample_weight: Any, classes: Any, level: float) -> tuple[float, float]:
    positive, scores, weight = binary_rows(y, score, sample_weight, classes)
    area, placed = placements(positive, scores, weight)
    sizes = [float(weight[side].sum()) for side in (positive, ~positive)]
    smaller = min(sizes)
    if smaller <= 1.0:
        return 0.0, 1.0
    variance = sum(
        float(weight[side] @ (placed[side] - area) ** 2) / (size * (size - 1.0))
        for side, size in zip((positive, ~positive), sizes, strict=True)
    )
    if variance == 0.0 or not 0.0 < area < 1.0:
        # Perfect order in the sample: the interval of a rate that never failed in as many tries as the rarer class has.
        return clopper_pearson(area * smaller, smaller, level)
    half = float(norm.isf(0.5 * (1.0 - level))) * np.sqrt(variance) / (area * (1.0 - area))
    center = float(logit(area))
    return float(1.0 / (1.0 + np.exp(half - center))), float(1.0 / (1.0 + np.exp(-half - center)))


def _check_bound(bound: Any, v: Array) -> tuple[float, float] | None:
    if bound is None:
        return None
    pair = (0.0, bound) if np.ndim(bound) == 0 else tuple(bound)
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError) as error:
        raise ValueError(f"bound must be a number or a pair (least, largest); got {bound!r}.") from error
    if not (np.isfinite([low, high]).all() and low < high):
        raise ValueError(f"bound must be finite with least < largest; got {bound!r}.")
    slack = 1e-9 * (high - low)
    if v.min() < low - slack or v.max() > high + slack:
        raise ValueError(f"bound says [{low:g}, {high:g}], but values from {v.min():g} to {v.max():g} were found.")
    return low, high


def _only(means: Array) -> Array:
    return np.asarray(means[..., 0])


def _whole(total: float) -> float:
    return int(total) if total == int(total) else total
