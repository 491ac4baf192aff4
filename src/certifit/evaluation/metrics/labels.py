"""Metrics of predicted labels: all are read off the confusion matrix.

The class of interest of a two-class problem is the second one, in sorted order or in the order of `classes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_numbers, check_sample_weight
from certifit.evaluation.metrics.inputs import label_rows
from certifit.parameters.docstrings import takes_as

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "confusion_matrix",
    "expected_cost",
    "f1",
    "fpr",
    "precision",
    "recall",
    "tpr",
    "zero_one",
]


def confusion_matrix(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> Array:
    """Total weight of each (actual, predicted) pair of classes: rows are actual, columns predicted.

    Parameters
    ----------
    y : array of shape (n,)
        Actual labels, of any type.
    prediction : array of shape (n,)
        Predicted labels.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    classes : sequence, optional
        Classes in the order wanted; by default all that occur, sorted.

    Returns
    -------
    array of shape (K, K)

    Examples
    --------
    >>> from certifit.metrics import confusion_matrix
    >>> confusion_matrix(["cat", "cat", "dog"], ["cat", "dog", "dog"])
    array([[1., 1.],
           [0., 1.]])
    """
    actual, predicted, weight, order = label_rows(y, prediction, sample_weight, classes)
    k = order.shape[0]
    return np.bincount(actual * k + predicted, weights=weight, minlength=k * k).reshape(k, k)


@takes_as(confusion_matrix)
def accuracy(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Share of rows whose label is predicted right.

    Examples
    --------
    >>> from certifit.metrics import accuracy
    >>> accuracy([0, 1, 1, 1], [0, 1, 1, 0])
    0.75
    """
    actual, predicted, weight, _ = label_rows(y, prediction, sample_weight, classes)
    return float(weight @ (actual == predicted) / weight.sum())


@takes_as(confusion_matrix)
def zero_one(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Share of rows whose label is predicted wrong: the mean 0-1 loss.

    Examples
    --------
    >>> from certifit.metrics import zero_one
    >>> zero_one([0, 1, 1], [0, 1, 0], sample_weight=[1, 1, 2])
    0.5
    """
    actual, predicted, weight, _ = label_rows(y, prediction, sample_weight, classes)
    return float(weight @ (actual != predicted) / weight.sum())


@takes_as(confusion_matrix)
def balanced_accuracy(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Mean over the classes of the share predicted right; classes without a row in y are left out.

    Examples
    --------
    >>> from certifit.metrics import balanced_accuracy
    >>> balanced_accuracy([0, 1, 1, 1, 1], [0, 1, 1, 1, 0])
    0.875
    """
    return float(combine_balanced_accuracy(_shares(y, prediction, sample_weight, classes)))


def precision(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Share of the rows predicted positive that are positive; 0 when none is.

    With more than two classes, the mean over the classes of what it is with that class as the positive one.

    Parameters
    ----------
    y, prediction, sample_weight, classes
        As in `confusion_matrix`; the second class is the positive one.

    Examples
    --------
    >>> from certifit.metrics import precision
    >>> round(precision([0, 0, 1, 1], [0, 1, 1, 1]), 4)
    0.6667
    """
    return float(combine_precision(_shares(y, prediction, sample_weight, classes)))


@takes_as(precision)
def recall(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Share of the positive rows that are predicted positive; 0 when no row is positive.

    With more than two classes, the mean over the classes of what it is with that class as the positive one.

    Examples
    --------
    >>> from certifit.metrics import recall
    >>> recall([0, 1, 1, 1, 1], [0, 1, 1, 1, 0])
    0.75
    """
    return float(combine_recall(_shares(y, prediction, sample_weight, classes)))


@takes_as(precision)
def f1(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Harmonic mean of precision and recall, 2·TP / (2·TP + FP + FN); the mean over the classes when there are more than two.

    Examples
    --------
    >>> from certifit.metrics import f1
    >>> f1([0, 0, 1, 1], [0, 1, 1, 1]), round(f1([0, 1, 2, 2], [0, 1, 2, 1]), 4)
    (0.8, 0.7778)
    """
    return float(combine_f1(_shares(y, prediction, sample_weight, classes)))


@takes_as(confusion_matrix)
def tpr(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """True positive rate of two classes: share of the second class that is predicted to be it; 0 when it has no row.

    Examples
    --------
    >>> from certifit.metrics import tpr
    >>> tpr(["sick", "well", "sick"], ["sick", "well", "well"], classes=["well", "sick"])
    0.5
    """
    return float(combine_tpr(_two_shares(y, prediction, sample_weight, classes)))


@takes_as(confusion_matrix)
def fpr(y: Any, prediction: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """False positive rate of two classes: share of the first class predicted to be the second; 0 when it has no row.

    Examples
    --------
    >>> from certifit.metrics import fpr
    >>> fpr(["no", "no", "yes"], ["no", "yes", "yes"])
    0.5
    """
    return float(combine_fpr(_two_shares(y, prediction, sample_weight, classes)))


@takes_as(confusion_matrix)
def expected_cost(y: Any, prediction: Any, cost: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Mean cost of the decisions.

    Parameters
    ----------
    cost : array of shape (K, K), or (n, K, K) for costs of each row's own
        ``cost[i, j]`` is what it costs to predict class j when class i is true.

    Examples
    --------
    >>> from certifit.metrics import expected_cost
    >>> expected_cost([0, 0, 1, 1], [0, 1, 1, 0], [[0, 1], [5, 0]])
    1.5
    >>> amounts = [[[0, 1], [amount, 0]] for amount in (10, 20, 30, 40)]
    >>> expected_cost([0, 0, 1, 1], [0, 1, 1, 0], amounts)
    10.25
    """
    if np.ndim(cost) == 3:
        _, _, _, order = label_rows(y, prediction, None, classes)
        each = costs(y, prediction, _costs_of_rows(cost, len(y), order.shape[0]), classes)
        weight = check_sample_weight(sample_weight, each.shape[0])
        return float(weight @ each / weight.sum())
    actual, predicted, weight, order = label_rows(y, prediction, sample_weight, classes)
    return float(weight @ check_cost_matrix(cost, order.shape[0])[actual, predicted] / weight.sum())


def _costs_of_rows(cost: Any, n: int, k: int) -> Array:
    table = check_numbers("cost", cost)
    if table.shape != (n, k, k) or not np.isfinite(table).all():
        raise ValueError(f"costs of each row's own must be finite, of shape ({n}, {k}, {k}); got shape {table.shape}.")
    return table


def check_cost_matrix(cost: Any, k: int) -> Array:
    """A finite cost matrix of K rows (actual) and K columns (predicted)."""
    matrix = check_numbers("cost", cost)
    if matrix.shape != (k, k):
        raise ValueError(f"cost must have shape ({k}, {k}), actual by predicted class; got {matrix.shape}.")
    if not np.isfinite(matrix).all():
        raise ValueError(f"cost must be finite; got {matrix.tolist()}.")
    return matrix


# Every metric above except the mean costs is a function of three shares for each class: (rows right, rows actually in
# the class, rows predicted to be in it). The functions take them along the last axis, so that thousands of resamples
# are one call.


def class_shares(y: Any, prediction: Any, classes: Any = None) -> Array:
    """The three shares of every class for each row, 0 or 1, shape (n, 3K)."""
    actual, predicted, _, order = label_rows(y, prediction, None, classes)
    numbers = np.arange(order.shape[0])
    is_actual, is_predicted = actual[:, None] == numbers, predicted[:, None] == numbers
    return np.hstack([is_actual & is_predicted, is_actual, is_predicted]).astype(np.float64)


def combine_precision(shares: Array) -> Array:
    """Precision from shares."""
    right, _, predicted = _parts(shares)
    return _of_interest(_ratio(right, predicted))


def combine_recall(shares: Array) -> Array:
    """Recall from shares."""
    right, actual, _ = _parts(shares)
    return _of_interest(_ratio(right, actual))


def combine_f1(shares: Array) -> Array:
    """F1 from shares."""
    right, actual, predicted = _parts(shares)
    return _of_interest(_ratio(2.0 * right, actual + predicted))


def combine_balanced_accuracy(shares: Array) -> Array:
    """Balanced accuracy from shares."""
    right, actual, _ = _parts(shares)
    return np.asarray(_ratio(right, actual).sum(axis=-1) / np.maximum((actual > 0).sum(axis=-1), 1))


def combine_tpr(shares: Array) -> Array:
    """True positive rate from shares of two classes."""
    right, actual, _ = _parts(shares)
    return np.asarray(_ratio(right, actual)[..., 1])


def combine_fpr(shares: Array) -> Array:
    """False positive rate from shares of two classes."""
    right, actual, _ = _parts(shares)
    return np.asarray(_ratio(actual - right, actual)[..., 0])


def _shares(y: Any, prediction: Any, sample_weight: Any, classes: Any) -> Array:
    actual, predicted, weight, order = label_rows(y, prediction, sample_weight, classes)
    k = order.shape[0]
    right = np.bincount(actual[actual == predicted], weights=weight[actual == predicted], minlength=k)
    totals = [np.bincount(codes, weights=weight, minlength=k) for codes in (actual, predicted)]
    return np.concatenate([right, *totals])  # their ratios are wanted: no need to divide by the number of rows


def _two_shares(y: Any, prediction: Any, sample_weight: Any, classes: Any) -> Array:
    if classes is None and set(np.unique(np.asarray(y)).tolist()) <= {0, 1}:
        classes = [0, 1]
    shares = _shares(y, prediction, sample_weight, classes)
    if shares.shape[0] != 6:
        raise ValueError(
            f"True and false positive rates are of two classes; found {shares.shape[0] // 3}. Name both with "
            "classes=[…], or use recall, which averages over the classes."
        )
    return shares


def _parts(shares: Array) -> tuple[Array, Array, Array]:
    k = shares.shape[-1] // 3
    return shares[..., :k], shares[..., k : 2 * k], shares[..., 2 * k :]


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


def _of_interest(values: Array) -> Array:
    """The second of two classes; the mean over more."""
    return np.asarray(values[..., 1] if values.shape[-1] == 2 else values.mean(axis=-1))


def losses_zero_one(y: Any, prediction: Any, classes: Any = None) -> Array:
    """1 for each row whose label is wrong, 0 for the others."""
    actual, predicted, _, _ = label_rows(y, prediction, None, classes)
    return (actual != predicted).astype(np.float64)


def hits(y: Any, prediction: Any, classes: Any = None) -> Array:
    """1 for each row whose label is right, 0 for the others."""
    return 1.0 - losses_zero_one(y, prediction, classes)


def costs(y: Any, prediction: Any, cost: Array, classes: Any = None) -> Array:
    """Cost of each row's decision."""
    actual, predicted, _, order = label_rows(y, prediction, None, classes)
    if np.ndim(cost) == 3:
        return np.asarray(cost[np.arange(actual.shape[0]), actual, predicted])
    return check_cost_matrix(cost, order.shape[0])[actual, predicted]
