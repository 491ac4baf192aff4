"""The interval of a metric that folds have measured.

The rows vary, and so would the models that another sample trains (Nadeau and Bengio 2003): with o held-out rows for each
training row the variance of the mean over the rows grows by the factor 1 + o.
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.evaluation.metrics.registry import Metric
from certifit.evaluation.risk.resamples import critical, standard_error

__all__ = ["held_out_interval"]


def held_out_interval(
    metric: Metric,
    value: float,
    about: Array,
    weight: Array,
    overlap: float,
    level: float,
    groups: Array | None = None,
) -> tuple[float, float]:
    """Ends of the interval.

    Parameters
    ----------
    metric : Metric
    value : float
        The metric, over all rows held out.
    about : array of shape (n,)
        How much each row moves it: its influence within its fold, and what the fold differs from `value`. Influences are
        centered within a fold; between folds the values vary too, and in folds of one row nothing else does.
    weight : array of shape (n,)
    overlap : float
        Held-out rows for each training row.
    level : float
    groups : array of shape (n,), optional
        Numbers of the groups that vary as wholes.
    """
    error, df = standard_error(about, weight, groups)
    half = critical(level, df) * error * float(np.sqrt(1.0 + overlap)) if df > 0 else np.inf
    if metric.lower_is_better and value > 0.0 and np.isfinite(half):
        # Of the logarithm where the metric is an error above zero, whose estimates are skewed.
        factor = float(np.exp(min(half / value, 700.0)))
        return value / factor, value * factor
    return value - half, value + half
