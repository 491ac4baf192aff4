"""From probabilities to decisions between two classes: thresholds and what they cost.

Predict the second class when p ≥ threshold. With costs of the four outcomes the best threshold for true probabilities is

    (C_fp − C_tn) / (C_fp − C_tn + C_fn − C_tp)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.decisions.bayes import bayes_action
from certifit.evaluation.metrics.inputs import binary_rows
from certifit.evaluation.metrics.ranking import thin_curve
from certifit.names import Plain, record
from certifit.parameters.docstrings import takes_as

__all__ = [
    "Costs",
    "ThresholdTable",
    "bayes_action",
    "best_threshold",
    "parse_costs",
    "threshold_from_costs",
    "threshold_table",
]

OUTCOMES = ("fp", "fn", "tp", "tn")


@record("Costs")
class Costs(Plain):
    """What the four outcomes of a yes/no decision cost.

    Parameters
    ----------
    fp, fn : float
        Cost of a false alarm and of a miss.
    tp, tn : float, default=0
        Cost of a hit and of a correct no.

    Examples
    --------
    >>> from certifit.evaluation.decisions.thresholds import Costs
    >>> Costs(fp=1, fn=4).threshold
    0.2
    """

    fp: float
    fn: float
    tp: float = 0.0
    tn: float = 0.0

    def __post_init__(self) -> None:
        for name in OUTCOMES:
            check_real(name, getattr(self, name), low=-1e300, high=1e300)
        if self.fp <= self.tn or self.fn <= self.tp:
            raise ValueError(
                f"A mistake must cost more than the right decision: got fp={self.fp:g} with tn={self.tn:g}, "
                f"fn={self.fn:g} with tp={self.tp:g}."
            )

    @property
    def threshold(self) -> float:
        """The probability from which saying yes costs less in expectation."""
        alarm, miss = self.fp - self.tn, self.fn - self.tp
        return alarm / (alarm + miss)

    @property
    def matrix(self) -> Array:
        """Rows actual, columns predicted: [[tn, fp], [fn, tp]]."""
        return np.array([[self.tn, self.fp], [self.fn, self.tp]], dtype=np.float64)


@record("ThresholdTable")
class ThresholdTable:
    """Exact outcomes at each of some thresholds, increasing; the first says yes to all rows, the last to none.

    Parameters
    ----------
    threshold, tp, fp, tn, fn : arrays
        Total weights of the four outcomes of predicting the second class when p ≥ threshold.
    """

    threshold: Array
    tp: Array
    fp: Array
    tn: Array
    fn: Array

    def cost(self, fp: float = 1.0, fn: float = 1.0, tp: float = 0.0, tn: float = 0.0) -> Array:
        """Mean cost of a row at each threshold."""
        total = self.tp[0] + self.fp[0] + self.tn[0] + self.fn[0]
        return np.asarray((fp * self.fp + fn * self.fn + tp * self.tp + tn * self.tn) / total)

    def as_dict(self) -> dict[str, list[float]]:
        """The columns as plain lists, for reports and JSON."""
        return {name: np.asarray(getattr(self, name)).tolist() for name in ("threshold", "tp", "fp", "tn", "fn")}


@takes_as(Costs)
def threshold_from_costs(fp: float, fn: float, tp: float = 0.0, tn: float = 0.0) -> float:
    """The probability from which predicting the second class costs less: fp / (fp + fn) when right decisions are free.

    Examples
    --------
    >>> from certifit import threshold_from_costs
    >>> threshold_from_costs(fp=1, fn=4)
    0.2
    """
    return Costs(fp, fn, tp, tn).threshold


def parse_costs(text: str) -> Costs:
    """Costs from text such as ``"fp=1,fn=5"``; ``tp=`` and ``tn=`` may be added.

    Examples
    --------
    >>> from certifit.evaluation.decisions.thresholds import parse_costs
    >>> parse_costs("fp=1, fn=5")
    Costs(fp=1.0, fn=5.0, tp=0.0, tn=0.0)
    """
    wanted = "Write costs as 'fp=1,fn=5': the cost of a false alarm and of a miss."
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"The costs are empty: {text!r}. {wanted}")
    found: dict[str, float] = {}
    for part in re.split(r"[,;]", text):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        name = name.lower()
        if not equals or name not in OUTCOMES:
            raise ValueError(f"{part.strip()!r} is not one of fp=…, fn=…, tp=…, tn=…. {wanted}")
        if name in found:
            raise ValueError(f"{name} is given twice in {text!r}. {wanted}")
        try:
            found[name] = float(number)
        except ValueError:
            raise ValueError(f"The cost {name}={number!r} is not a number. {wanted}") from None
    missing = [name for name in ("fp", "fn") if name not in found]
    if missing:
        raise ValueError(f"{' and '.join(missing)} missing in {text!r}. {wanted}")
    return Costs(**found)


def threshold_table(
    y: Any, p: Any, *, max_points: int = 200, sample_weight: Any = None, classes: Any = None
) -> ThresholdTable:
    """Exact counts of the four outcomes at up to `max_points` thresholds.

    Both ends are there, and so are, as far as `max_points` allows, the thresholds that are best for some pair of costs
    (the corners of the ROC curve's convex hull); the rest are evenly spaced.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of two classes; the second (sorted, or ``classes[1]``) is the positive one.
    p : array of shape (n,), or (n, 2)
        Probability of the second class.
    max_points : int, default=200
        Most thresholds, at least 3.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    classes : sequence of two labels, optional

    Examples
    --------
    >>> from certifit import threshold_table
    >>> table = threshold_table([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], max_points=6)
    >>> table.threshold[[0, -1]], table.tp[[0, -1]], table.fp[[0, -1]]
    (array([0., 1.]), array([2., 0.]), array([2., 0.]))
    """
    check_real("max_points", max_points, low=3, integer=True)
    positive, p, weight = _checked(y, p, sample_weight, classes)
    scores, positives, negatives = _by_score(positive, p, weight)
    hull = _hull(scores, positives, negatives)
    top = 1.0 if scores[-1] < 1.0 else float(np.nextafter(1.0, 2.0))  # above every p: nobody is predicted positive
    corners = scores[hull]
    if corners.shape[0] > max_points - 2:
        at = _above(corners, scores, positives), _above(corners, scores, negatives)
        corners = thin_curve(at[1], at[0], corners, max_points=max_points - 2)[2] if max_points > 3 else corners[:1]
    fill = np.linspace(0.0, 1.0, max(2, max_points - corners.shape[0]))[1:-1]
    threshold = np.unique(np.concatenate([[0.0], corners, fill, [top]]))
    tp, fp = _above(threshold, scores, positives), _above(threshold, scores, negatives)
    return ThresholdTable(threshold, tp, fp, negatives.sum() - fp, positives.sum() - tp)


def best_threshold(y: Any, p: Any, cost: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """The threshold with the least mean cost on these rows, halfway between the scores it separates.

    Parameters
    ----------
    y, p, sample_weight, classes
        As in `threshold_table`.
    cost : Costs, str, mapping or array of shape (2, 2)
        ``Costs(fp=1, fn=5)``, ``"fp=1,fn=5"``, ``{"fp": 1, "fn": 5}``, or [[tn, fp], [fn, tp]].

    Examples
    --------
    >>> from certifit.evaluation.decisions.thresholds import best_threshold
    >>> best_threshold([0, 0, 1, 1], [0.1, 0.2, 0.4, 0.9], "fp=1,fn=5")
    0.30000000000000004
    """
    costs = _costs(cost)
    positive, p, weight = _checked(y, p, sample_weight, classes)
    scores, positives, negatives = _by_score(positive, p, weight)
    edges = np.concatenate([scores, [np.inf]])
    tp, fp = _above(edges, scores, positives), _above(edges, scores, negatives)
    fn, tn = positives.sum() - tp, negatives.sum() - fp
    mean = costs.fp * fp + costs.fn * fn + costs.tp * tp + costs.tn * tn
    # Among equals the one nearest to what true probabilities would call for.
    ties = np.flatnonzero(mean <= mean.min() + 1e-12 * max(abs(mean.min()), 1.0))
    above = np.append(scores, 1.0)
    below = np.insert(scores, 0, 0.0)
    middle = 0.5 * (above + below)
    if scores[-1] == 1.0:
        middle[-1] = np.nextafter(1.0, 2.0)
    if scores[0] == 0.0:
        middle[0] = 0.0
    return float(middle[ties[np.argmin(np.abs(middle[ties] - costs.threshold))]])


def _costs(cost: Any) -> Costs:
    if isinstance(cost, Costs):
        return cost
    if isinstance(cost, str):
        return parse_costs(cost)
    if isinstance(cost, Mapping):
        unknown = [name for name in cost if name not in OUTCOMES]
        if unknown or "fp" not in cost or "fn" not in cost:
            raise ValueError(f"cost must give fp and fn (tp and tn may be added); got {dict(cost)!r}.")
        return Costs(**cost)
    matrix = np.asarray(cost)
    if matrix.shape != (2, 2) or matrix.dtype.kind not in "iuf":
        raise ValueError(f"cost must be Costs, 'fp=1,fn=5', a mapping, or a 2×2 matrix of numbers; got {cost!r}.")
    (tn, fp), (fn, tp) = matrix.astype(np.float64).tolist()
    return Costs(fp=fp, fn=fn, tp=tp, tn=tn)


def _checked(y: Any, p: Any, sample_weight: Any, classes: Any) -> tuple[Array, Array, Array]:
    positive, p, weight = binary_rows(y, p, sample_weight, classes)
    p = p.astype(np.float64)
    if p.min() < 0.0 or p.max() > 1.0:
        raise ValueError(f"p must be probabilities between 0 and 1; found values from {p.min():g} to {p.max():g}.")
    return positive, p, weight


def _by_score(positive: Array, p: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Distinct scores, increasing, and the weight of positive and negative rows at each."""
    scores, which = np.unique(p, return_inverse=True)
    return scores, np.bincount(which, weights=weight * positive), np.bincount(which, weights=weight * ~positive)


def _above(threshold: Array, scores: Array, counts: Array) -> Array:
    """Total count of scores ≥ each threshold."""
    below = np.concatenate([[0.0], np.cumsum(counts)])
    return np.asarray(below[-1] - below[np.searchsorted(scores, threshold, side="left")])


def _hull(scores: Array, positives: Array, negatives: Array) -> Array:
    """Numbers of the scores whose threshold is a corner of the upper hull of the ROC curve."""
    tp = np.cumsum(positives[::-1])
    fp = np.cumsum(negatives[::-1])
    corners: list[int] = []
    path = [(0.0, 0.0)]
    for k, point in enumerate(zip(fp.tolist(), tp.tolist(), strict=True)):
        while len(path) > 1 and _left_turn(path[-2], path[-1], point):
            path.pop()
            corners.pop()
        path.append(point)
        corners.append(k)
    return scores.shape[0] - 1 - np.array(corners, dtype=np.intp)


def _left_turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) >= 0.0
