"""The registry of metrics: one line enrols a metric in intervals, comparisons, importance, reports and the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from certifit._types import Array
from certifit.evaluation.metrics import labels as label_metrics
from certifit.evaluation.metrics import probabilities as probability_metrics
from certifit.evaluation.metrics import values as value_metrics
from certifit.evaluation.metrics.labels import (
    accuracy,
    balanced_accuracy,
    class_shares,
    expected_cost,
    f1,
    fpr,
    precision,
    recall,
    tpr,
    zero_one,
)
from certifit.evaluation.metrics.probabilities import brier, log_loss
from certifit.evaluation.metrics.ranking import average_precision, roc_auc
from certifit.evaluation.metrics.values import (
    mae,
    mean_gamma_deviance,
    mean_poisson_deviance,
    median_absolute_error,
    mse,
    pinball,
    r2,
    rmse,
)

__all__ = ["METRICS", "Metric", "cost_metric", "metrics_for", "resolve_metric"]


@dataclass(frozen=True)
class Metric:
    """What is known about a metric.

    Parameters
    ----------
    name : str
        Key in `METRICS`.
    label : str
        For people.
    tasks : frozenset of str
        Of ``"binary"``, ``"multiclass"``, ``"regression"``.
    lower_is_better : bool
    needs : str
        What it judges: ``"probability"`` (shape (n, K)), ``"label"``, ``"value"``, or ``"score"`` (larger means more
        likely the second class).
    function : callable
        ``function(y, prediction, sample_weight=…)``, for classification also ``classes=…``. Call the metric itself to be
        spared the difference.
    per_example : callable or None
        ``per_example(y, prediction, classes=None)``: values whose weighted mean is the metric; None when it is no mean.
    format : str
        How to print it.
    bound : (float, float) or None
        Least and largest value of one example, when known.
    statistics, combine : callable or None
        For a metric that is a smooth function of means: what is averaged, shape (n, s), and the function of the means,
        along the last axis.
    power : float
        The metric to this power is a mean over examples: 2 for a root of a mean of squares.
    largest : float or None
        Largest value that an example can have where it is far beyond those that occur: it ends intervals and makes none.

    Examples
    --------
    >>> from certifit.metrics import METRICS
    >>> METRICS["log_loss"].label, round(METRICS["log_loss"]([0, 1], [0.5, 0.5]), 4)
    ('log loss', 0.6931)
    """

    name: str
    label: str
    tasks: frozenset[str]
    lower_is_better: bool
    needs: str
    function: Callable[..., float]
    per_example: Callable[..., Array] | None
    format: str = ".4f"
    bound: tuple[float, float] | None = None
    statistics: Callable[..., Array] | None = None
    combine: Callable[[Array], Array] | None = None
    power: float = 1.0
    largest: float | None = None

    def __call__(self, y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
        """The metric of predictions; `classes` is ignored by metrics of values."""
        if "regression" in self.tasks:
            return self.function(y, prediction, sample_weight=sample_weight)
        return self.function(y, prediction, sample_weight=sample_weight, classes=classes)

    def losses(self, y: Any, prediction: Any, classes: Any = None) -> Array:
        """The value of each example, oriented so that lower is better."""
        if self.per_example is None:
            raise TypeError(f"{self.label} is not a mean over examples: it has no value for one example.")
        values = self.per_example(y, prediction, classes=classes)
        return values if self.lower_is_better else -values

    def text(self, value: float) -> str:
        """The value as people read it."""
        return format(value, self.format)


CLASSES = frozenset({"binary", "multiclass"})
BINARY = frozenset({"binary"})
VALUES = frozenset({"regression"})
UNIT = (0.0, 1.0)


def _of_labels(
    name: str, label: str, function: Any, combine: Any, tasks: frozenset[str], lower: bool = False
) -> Metric:
    """A metric that is a function of the confusion matrix."""
    return Metric(name, label, tasks, lower, "label", function, None, ".4f", UNIT, class_shares, combine)


def _of_values(name: str, label: str, function: Any, per_example: Any) -> Metric:
    """A mean over the rows of a regression."""
    return Metric(name, label, VALUES, True, "value", function, per_example, ".4g")


def _pinball(y: Any, prediction: Any, classes: Any = None) -> Array:
    return value_metrics.pinball_losses(y, prediction)


def _as_column(y: Any, prediction: Any, classes: Any = None) -> Array:
    return value_metrics.squares(y, prediction)[:, None]


_ENROLLED = (
    Metric(
        "log_loss",
        "log loss",
        CLASSES,
        True,
        "probability",
        log_loss,
        probability_metrics.losses_log,
        largest=probability_metrics.LARGEST_LOG_LOSS,
    ),
    Metric("brier", "Brier score", CLASSES, True, "probability", brier, probability_metrics.losses_brier, bound=UNIT),
    Metric("roc_auc", "area under ROC", BINARY, False, "score", roc_auc, None, bound=UNIT),
    Metric("average_precision", "average precision", BINARY, False, "score", average_precision, None, bound=UNIT),
    Metric("accuracy", "accuracy", CLASSES, False, "label", accuracy, label_metrics.hits, bound=UNIT),
    Metric("zero_one", "error rate", CLASSES, True, "label", zero_one, label_metrics.losses_zero_one, bound=UNIT),
    _of_labels(
        "balanced_accuracy", "balanced accuracy", balanced_accuracy, label_metrics.combine_balanced_accuracy, CLASSES
    ),
    _of_labels("f1", "F1", f1, label_metrics.combine_f1, CLASSES),
    _of_labels("precision", "precision", precision, label_metrics.combine_precision, CLASSES),
    _of_labels("recall", "recall", recall, label_metrics.combine_recall, CLASSES),
    _of_labels("tpr", "true positive rate", tpr, label_metrics.combine_tpr, BINARY),
    _of_labels("fpr", "false positive rate", fpr, label_metrics.combine_fpr, BINARY, lower=True),
    Metric(
        "rmse",
        "root mean squared error",
        VALUES,
        True,
        "value",
        rmse,
        None,
        ".4g",
        None,
        _as_column,
        value_metrics.combine_rmse,
        power=2.0,
    ),
    _of_values("mse", "mean squared error", mse, value_metrics.squares),
    _of_values("mae", "mean absolute error", mae, value_metrics.distances),
    Metric("median_absolute_error", "median absolute error", VALUES, True, "value", median_absolute_error, None, ".4g"),
    Metric(
        "r2", "R²", VALUES, False, "value", r2, None, ".4f", None, value_metrics.r2_statistics, value_metrics.combine_r2
    ),
    _of_values("pinball", "pinball loss", pinball, _pinball),
    _of_values("mean_poisson_deviance", "mean Poisson deviance", mean_poisson_deviance, value_metrics.poisson_losses),
    _of_values("mean_gamma_deviance", "mean Gamma deviance", mean_gamma_deviance, value_metrics.gamma_losses),
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ENROLLED}
"""All metrics by name. `expected_cost` joins through `cost_metric`, once its costs are known."""


def resolve_metric(metric: Any) -> Metric:
    """A metric from its name or from itself.

    Examples
    --------
    >>> from certifit.metrics import resolve_metric
    >>> resolve_metric("rmse").label
    'root mean squared error'
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str) and metric in METRICS:
        return METRICS[metric]
    names = ", ".join(repr(name) for name in METRICS)
    raise ValueError(f"metric must be one of {names}, or a certifit.metrics.Metric; got {metric!r}.")


SCORERS = {
    **{
        name: name
        for name in ("accuracy", "average_precision", "balanced_accuracy", "f1", "precision", "r2", "recall", "roc_auc")
    },
    "neg_brier_score": "brier",
    "neg_log_loss": "log_loss",
    "neg_mean_absolute_error": "mae",
    "neg_mean_gamma_deviance": "mean_gamma_deviance",
    "neg_mean_poisson_deviance": "mean_poisson_deviance",
    "neg_mean_squared_error": "mse",
    "neg_median_absolute_error": "median_absolute_error",
    "neg_root_mean_squared_error": "rmse",
}
"""Scikit-learn's names of scorers, and the metrics that they are."""


def metric_or_scorer(metric: Any, scoring: Any, estimator: Any) -> Metric:
    """The metric, also by scikit-learn's name of it; by default what its `score` measures: accuracy, or R².

    Examples
    --------
    >>> from certifit.evaluation.metrics.registry import metric_or_scorer
    >>> metric_or_scorer(None, "neg_mean_squared_error", None).name
    'mse'
    """
    if metric is not None and scoring is not None:
        raise ValueError(f"metric and scoring are two names of one argument; got {metric!r} and {scoring!r}.")
    if metric is not None:
        return resolve_metric(metric)
    if scoring is None:
        return METRICS["accuracy" if is_classifier(estimator) else "r2"]
    if isinstance(scoring, str) and scoring in SCORERS:
        return METRICS[SCORERS[scoring]]
    return resolve_metric(scoring)


def metrics_for(task: str) -> list[Metric]:
    """The metrics of a task, in the order of the registry.

    Examples
    --------
    >>> from certifit.metrics import metrics_for
    >>> [metric.name for metric in metrics_for("regression")][:3]
    ['rmse', 'mse', 'mae']
    """
    if task not in ("binary", "multiclass", "regression"):
        raise ValueError(f"task must be 'binary', 'multiclass' or 'regression'; got {task!r}.")
    return [metric for metric in METRICS.values() if task in metric.tasks]


def cost_metric(cost: Any) -> Metric:
    """The mean cost of decisions as a metric of labels.

    Parameters
    ----------
    cost : array of shape (K, K)
        ``cost[i, j]``: cost of predicting class j when class i is true, classes in the order the metric is called with.

    Examples
    --------
    >>> from certifit.metrics import cost_metric
    >>> cost_metric([[0, 1], [5, 0]])([0, 0, 1, 1], [0, 1, 1, 0], classes=[0, 1])
    1.5
    """
    matrix = np.asarray(cost, dtype=np.float64)
    if matrix.ndim != 2:
        raise ValueError(f"cost must be a matrix, actual by predicted class; got shape {matrix.shape}.")
    label_metrics.check_cost_matrix(matrix, matrix.shape[0])
    return Metric(
        "expected_cost",
        "expected cost",
        CLASSES if matrix.shape[0] == 2 else frozenset({"multiclass"}),
        True,
        "label",
        partial(expected_cost, cost=matrix),
        partial(label_metrics.costs, cost=matrix),
        ".4g",
        (float(matrix.min()), float(matrix.max())),
    )
