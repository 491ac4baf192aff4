"""What the transformers share: names of columns and weighted quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from certifit._types import Array


def input_names(estimator: Any, input_features: Any) -> Array:
    """Names of the input columns, checked against those seen in fit."""
    return np.asarray(OneToOneFeatureMixin.get_feature_names_out(estimator, input_features), dtype=object)


def weighted_quantiles(values: Array, weight: Array, fractions: Array) -> Array:
    """Quantiles as the mean of the smallest value with at least, and with more than, the fraction of the
    weight.

    With integer weights this is the quantile of the repeated values, exactly; for ½ it is the usual median.
    """
    order = np.argsort(values, kind="stable")
    ladder, values = np.cumsum(weight[order]), values[order].astype(np.float64)
    target = fractions * ladder[-1]
    slack = 1e-12 * ladder[-1]  # the rounding of sums of weights that are not integers
    low = values[np.minimum(np.searchsorted(ladder, target - slack, side="left"), values.size - 1)]
    high = values[np.minimum(np.searchsorted(ladder, target + slack, side="right"), values.size - 1)]
    return np.asarray(np.where(low == high, low, 0.5 * low + 0.5 * high))
