"""Calibration: of the rows given a probability near p, does a share near p come true?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from scipy.stats import norm

from certifit._types import Array
from certifit.axes import picture
from certifit.data.gate import check_choice, check_real
from certifit.evaluation.metrics.inputs import binary_rows, check_level
from certifit.evaluation.risk.risk import clopper_pearson
from certifit.names import record

__all__ = ["CalibrationBin", "CalibrationCurve", "calibration_curve", "wilson"]


@record("CalibrationBin")
class CalibrationBin:
    """Rows with similar probabilities."""

    mean: float
    """Their mean probability."""
    rate: float
    low: float
    high: float
    """Share of them in the second class, and the ends of its interval."""
    count: float
    """Their total weight."""


@record("CalibrationCurve")
class CalibrationCurve:
    """Bins by increasing probability, and the expected calibration error Σ (count/n)·|rate − mean|."""

    bins: tuple[CalibrationBin, ...]
    error: float
    level: float
    strategy: str

    def __iter__(self) -> Iterator[Array]:
        """Shares and mean probabilities of the bins: ``prob_true, prob_pred = calibration_curve(…)`` as in scikit-learn."""
        yield np.array([one.rate for one in self.bins])
        yield np.array([one.mean for one in self.bins])

    def plot(self, ax: Any = None) -> Any:
        """`certifit.plots.plot_calibration` of it."""
        return picture("plot_calibration")(self, ax=ax)

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain lists and numbers, for reports and JSON."""
        return {**asdict(self), "bins": [asdict(one) for one in self.bins]}


def calibration_curve(
    y: Any = None,
    p: Any = None,
    *,
    bins: int = 10,
    strategy: str = "quantile",
    method: str = "wilson",
    level: float = 0.95,
    sample_weight: Any = None,
    classes: Any = None,
    y_true: Any = None,
    y_prob: Any = None,
    n_bins: int | None = None,
    pos_label: Any = None,
) -> CalibrationCurve:
    """Observed shares against predicted probabilities, in bins.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of two classes; the second (sorted, or ``classes[1]``) is the one predicted.
    p : array of shape (n,), or (n, 2)
        Its probability.
    bins : int, default=10
        Most bins; equal probabilities share a bin, and empty bins are left out.
    strategy : {"quantile", "uniform"}, default="quantile"
        Bins of about equal weight, or of equal width.
    method : {"wilson", "clopper-pearson"}, default="wilson"
        Interval of each share.
    level : float, default=0.95
        Its confidence.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    classes : sequence of two labels, optional
    y_true, y_prob, n_bins
        Scikit-learn's names of `y`, `p` and `bins`.
    pos_label : label, optional
        The class that is predicted, where it is not the second.

    Returns
    -------
    CalibrationCurve
        It unpacks into the shares and the mean probabilities of the bins, as scikit-learn's function returns them.

    Examples
    --------
    >>> from certifit import calibration_curve
    >>> curve = calibration_curve([0, 0, 1, 0, 1, 1], [0.2, 0.2, 0.2, 0.8, 0.8, 0.8], bins=2)
    >>> [(round(one.mean, 2), round(one.rate, 2), one.count) for one in curve.bins], round(curve.error, 4)
    ([(0.2, 0.33, 3.0), (0.8, 0.67, 3.0)], 0.1333)
    """
    y, p = y_true if y is None else y, y_prob if p is None else p
    if y is None or p is None:
        raise TypeError("calibration_curve needs the labels y and their probabilities p; one of them is None.")
    bins = check_real("bins" if n_bins is None else "n_bins", bins if n_bins is None else n_bins, low=1, integer=True)
    if pos_label is not None:
        classes = _predicted_last(y, pos_label)
    check_choice("strategy", strategy, ("quantile", "uniform"))
    check_choice("method", method, ("wilson", "clopper-pearson"))
    level = check_level(level)
    positive, p, weight = binary_rows(y, p, sample_weight, classes)
    p = p.astype(np.float64)
    if p.min() < 0.0 or p.max() > 1.0:
        raise ValueError(f"p must be probabilities between 0 and 1; found values from {p.min():g} to {p.max():g}.")
    which = _quantile_bins(p, weight, bins) if strategy == "quantile" else np.minimum((p * bins).astype(int), bins - 1)
    count = np.bincount(which, weights=weight)
    used = np.flatnonzero(count)
    count = count[used]
    mean = np.bincount(which, weights=weight * p)[used] / count
    hits = np.bincount(which, weights=weight * positive)[used]
    ends = wilson if method == "wilson" else clopper_pearson
    made = [
        CalibrationBin(float(m), float(h / c), *ends(float(h), float(c), level), float(c))
        for m, h, c in zip(mean, hits, count, strict=True)
    ]
    error = float(np.sum(np.abs(hits - mean * count)) / count.sum())
    return CalibrationCurve(tuple(made), error, level, strategy)


def wilson(successes: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Interval of a probability from the score test (Wilson 1927).

    Examples
    --------
    >>> from certifit.evaluation.decisions.calibration import wilson
    >>> [round(end, 4) for end in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    z2 = float(norm.isf(0.5 * (1.0 - level))) ** 2
    share = successes / n
    center = (share + 0.5 * z2 / n) / (1.0 + z2 / n)
    half = np.sqrt(z2 * (share * (1.0 - share) / n + 0.25 * z2 / n**2)) / (1.0 + z2 / n)
    return max(0.0, min(float(center - half), share)), min(1.0, max(float(center + half), share))


def _predicted_last(y: Any, pos_label: Any) -> Array:
    """The two labels of y, the one that is predicted last."""
    labels = np.unique(np.asarray(y))
    if labels.shape[0] > 2 or pos_label not in labels.tolist():
        raise ValueError(
            f"pos_label={pos_label!r} is not a valid label: y must have two classes, one of them pos_label; it has "
            f"{labels.tolist()[:5]}."
        )
    return labels if labels[-1] == pos_label else labels[::-1]


def _quantile_bins(p: Array, weight: Array, bins: int) -> Array:
    """Bin of each row: distinct probabilities are cut where their cumulative weight passes k/bins of the total."""
    _, which = np.unique(p, return_inverse=True)
    mass = np.bincount(which, weights=weight)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return np.asarray(np.minimum((middle * bins).astype(int), bins - 1)[which])
