"""Metrics of the order a score puts two classes in: ROC and precision-recall, ties counted exactly.

Rows with equal scores enter together, so a curve has one point for each distinct score and never depends on the order of
the rows.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_choice, check_numbers, check_real, check_sample_weight
from certifit.evaluation.metrics.inputs import binary_rows, check_vector, class_codes
from certifit.evaluation.metrics.inputs import check_labels as check_label_vector
from certifit.names import stored
from certifit.parameters.docstrings import takes_as

__all__ = ["PrCurve", "RocCurve", "average_precision", "pr_curve", "roc_auc", "roc_curve", "thin_curve"]


@stored("RocCurve")
class RocCurve(NamedTuple):
    """A ROC curve, from (0, 0) to (1, 1)."""

    fpr: Array
    """False positive rate of predicting the second class when score ≥ threshold."""
    tpr: Array
    """True positive rate."""
    thresholds: Array
    """Decreasing; the first is infinite: no row is predicted positive."""


@stored("PrCurve")
class PrCurve(NamedTuple):
    """A precision-recall curve, by increasing recall."""

    recall: Array
    """Share of the positive rows with score ≥ threshold; starts at 0."""
    precision: Array
    """Share of positive rows among those with score ≥ threshold; starts at 1, by convention."""
    thresholds: Array
    """Decreasing; the first is infinite: no row is predicted positive."""


def roc_curve(y: Any, score: Any, *, sample_weight: Any = None, classes: Any = None) -> RocCurve:
    """True against false positive rate over all thresholds.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of two classes; the second (sorted, or ``classes[1]``) is the positive one.
    score : array of shape (n,), or (n, 2) with the second column taken
        Larger means more likely positive.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    classes : sequence of two labels, optional
        First the negative, then the positive class.

    Examples
    --------
    >>> from certifit.metrics import roc_curve
    >>> roc_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8]).tpr
    array([0. , 0.5, 1. , 1. ])
    """
    threshold, tp, fp = _counts(y, score, sample_weight, classes, both=True)
    return RocCurve(fp / fp[-1], tp / tp[-1], threshold)


def roc_auc(y: Any, score: Any, *, sample_weight: Any = None, classes: Any = None, multi_class: str = "ovr") -> float:
    """Area under the ROC curve: the chance that a positive row scores above a negative one, ties counting half.

    Parameters
    ----------
    y, score, sample_weight, classes
        As in `roc_curve`; for K > 2 classes one column of scores for each, in the order of `classes`.
    multi_class : {"ovr", "ovo"}, default="ovr"
        For K > 2 classes: the mean over classes of each against the rest, or the mean over pairs of classes, each by the scores
        of both (Hand and Till 2001), which does not depend on how many rows a class has.

    Examples
    --------
    >>> from certifit.metrics import roc_auc
    >>> roc_auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    >>> roc_auc([0, 1, 2, 2], [[3, 0, 1], [1, 3, 0], [0, 1, 2], [2, 1, 0]], multi_class="ovo")
    0.875
    """
    check_choice("multi_class", multi_class, ("ovr", "ovo"))
    if np.ndim(score) == 2 and np.shape(score)[1] > 2:
        return _auc_of_classes(y, score, sample_weight, classes, multi_class)
    _, tp, fp = _counts(y, score, sample_weight, classes, both=True)
    area = 0.5 * np.sum(np.diff(fp) * (tp[1:] + tp[:-1]))
    return float(min(area / (tp[-1] * fp[-1]), 1.0))


def _auc_of_classes(y: Any, score: Any, sample_weight: Any, classes: Any, multi_class: str) -> float:
    """The mean of areas between two sides."""
    labels = check_label_vector("y", y)
    order, (codes,) = class_codes(classes, ("y", labels))
    table, K = check_numbers("score", score), len(order)
    weight = check_sample_weight(sample_weight, labels.shape[0])
    if table.shape != (labels.shape[0], K):
        raise ValueError(f"score must have shape ({labels.shape[0]}, {K}), a column for each class; got {table.shape}.")
    if not np.isfinite(table).all():
        at = int(np.flatnonzero(~np.isfinite(table).all(axis=1))[0])
        raise ValueError(f"score must be finite; got {table[at].tolist()} at row {at}. Drop or repair these rows.")
    absent = [order.tolist()[k] for k in range(K) if not weight[codes == k].sum() > 0]
    if absent:
        raise ValueError(f"The area needs rows of every class; there is none of {absent!r}.")

    def area(rows: Array, k: int) -> float:
        return roc_auc(codes[rows] == k, table[rows, k], sample_weight=weight[rows], classes=[False, True])

    if multi_class == "ovr":
        return float(np.mean([area(np.arange(labels.shape[0]), k) for k in range(K)]))
    pairs = [(j, k) for j in range(K) for k in range(j)]
    rows = {pair: np.flatnonzero((codes == pair[0]) | (codes == pair[1])) for pair in pairs}
    return float(np.mean([0.5 * (area(rows[j, k], j) + area(rows[j, k], k)) for j, k in pairs]))


@takes_as(roc_curve)
def pr_curve(y: Any, score: Any, *, sample_weight: Any = None, classes: Any = None) -> PrCurve:
    """Precision against recall over all thresholds.

    Examples
    --------
    >>> from certifit.metrics import pr_curve
    >>> curve = pr_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> curve.recall, curve.precision.round(2)
    (array([0. , 0.5, 1. , 1. ]), array([1.  , 1.  , 0.67, 0.5 ]))
    """
    threshold, tp, fp = _counts(y, score, sample_weight, classes, both=False)
    precision = np.concatenate([[1.0], tp[1:] / (tp[1:] + fp[1:])])
    return PrCurve(tp / tp[-1], precision, threshold)


@takes_as(roc_curve)
def average_precision(y: Any, score: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Σ_k (recall_k − recall_{k−1})·precision_k over the distinct scores: the precision-recall curve as a step function.

    Examples
    --------
    >>> from certifit.metrics import average_precision
    >>> round(average_precision([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8]), 4)
    0.8333
    """
    curve = pr_curve(y, score, sample_weight=sample_weight, classes=classes)
    return float(np.sum(np.diff(curve.recall) * curve.precision[1:]))


def placements(positive: Array, score: Array, weight: Array) -> tuple[float, Array]:
    """Area under the ROC curve, and the share of the other class that each row is placed right against.

    The variance of the area follows from that of the placements (DeLong, DeLong and Clarke-Pearson 1988).
    """
    _, which = np.unique(score, return_inverse=True)
    above = np.bincount(which, weights=weight * positive)
    below = np.bincount(which, weights=weight * ~positive)
    share_below = (np.cumsum(below) - 0.5 * below) / below.sum()
    share_above = (above.sum() - np.cumsum(above) + 0.5 * above) / above.sum()
    placed = np.where(positive, share_below[which], share_above[which])
    return float(np.average(placed[positive], weights=weight[positive])), placed


def thin_curve(x: Any, y: Any, *others: Any, max_points: int = 200) -> tuple[Array, ...]:
    """At most `max_points` of the points of a curve, chosen so that the drawn line keeps its shape.

    Ends are kept; then the point farthest from the line drawn so far is added, again and again, with both axes scaled to
    the same length.

    Parameters
    ----------
    x, y : arrays of shape (n,)
        The points, in the order in which they are joined.
    *others : arrays of shape (n,)
        Thinned alike, for example thresholds.
    max_points : int, default=200
        At least 2.

    Returns
    -------
    tuple of arrays
        The chosen points: x, y and the others.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.metrics import thin_curve
    >>> x = np.arange(101.0)
    >>> thin_curve(x, np.abs(x - 50), max_points=3)[0]
    array([  0.,  50., 100.])
    """
    check_real("max_points", max_points, low=2, integer=True)
    x = check_vector("x", x)
    y = check_vector("y", y, x.shape[0])
    columns = [np.asarray(values) for values in others]
    for values in columns:
        if values.shape[:1] != x.shape:
            raise ValueError(f"All arrays must have the length of x, {x.shape[0]}; got one of shape {values.shape}.")
    if x.shape[0] <= max_points:
        return x, y, *columns
    u, v = (values / (np.ptp(values) or 1.0) for values in (x, y))
    last = x.shape[0] - 1
    chosen = [0, last]
    gaps = [_farthest(u, v, 0, last)]
    while len(chosen) < max_points and gaps[0][0] < 0.0:
        _, middle, first, end = heapq.heappop(gaps)
        chosen.append(middle)
        for piece in ((first, middle), (middle, end)):
            heapq.heappush(gaps, _farthest(u, v, *piece))
    kept = np.sort(np.array(chosen))
    return tuple(values[kept] for values in (x, y, *columns))


def _farthest(u: Array, v: Array, first: int, end: int) -> tuple[float, int, int, int]:
    """Minus the largest distance from the segment's chord, where it is, and the segment; a heap pops the farthest."""
    if end - first < 2:
        return 0.0, first, first, end
    du, dv = u[end] - u[first], v[end] - v[first]
    inner = slice(first + 1, end)
    length = float(np.hypot(du, dv))
    if length > 0.0:
        distance = np.abs(du * (v[inner] - v[first]) - dv * (u[inner] - u[first])) / length
    else:
        distance = np.hypot(u[inner] - u[first], v[inner] - v[first])
    middle = int(np.argmax(distance))
    return -float(distance[middle]), first + 1 + middle, first, end


def _counts(y: Any, score: Any, sample_weight: Any, classes: Any, *, both: bool) -> tuple[Array, Array, Array]:
    """Thresholds (falling, infinity first) and the weight of the positive and negative rows at or above each."""
    positive, score, weight = binary_rows(y, score, sample_weight, classes)
    if not positive.any() or (both and positive.all()):
        found = "second" if positive.any() else "first"
        raise ValueError(f"y has rows of the {found} class only: the curve needs both classes among the rows.")
    distinct, which = np.unique(-score, return_inverse=True)
    tp = np.concatenate([[0.0], np.cumsum(np.bincount(which, weights=weight * positive))])
    fp = np.concatenate([[0.0], np.cumsum(np.bincount(which, weights=weight * ~positive))])
    return np.concatenate([[np.inf], -distinct]), tp, fp
