"""What the transformers share: names of columns and quantiles under weights."""

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
    ladder, values = _ladder(values, weight)
    target = fractions * ladder[-1]
    slack = SLACK * ladder[-1]
    low = values[np.minimum(np.searchsorted(ladder, target - slack, side="left"), values.size - 1)]
    high = values[np.minimum(np.searchsorted(ladder, target + slack, side="right"), values.size - 1)]
    return np.asarray(np.where(low == high, low, 0.5 * low + 0.5 * high))


def interpolated_quantiles(values: Array, weight: Array, fractions: Array) -> Array:
    """Quantiles on the broken line through the sorted values, each repeated as often as its weight says.

    The fraction q of n values is at the place q·(n − 1), counted from zero: NumPy's default. Unlike those of
    `weighted_quantiles` they change, if little, when every weight is doubled.
    """
    ladder, values = _ladder(values, weight)
    place = fractions * max(float(ladder[-1]) - 1.0, 0.0)
    below = np.floor(place)
    low, high = (
        values[np.minimum(np.searchsorted(ladder, at, side="right"), values.size - 1)] for at in (below, below + 1.0)
    )
    share = place - below
    # Not low + share·(high − low): the difference may overflow.
    return np.asarray(np.where(low == high, low, (1.0 - share) * low + share * high))


def lower_quantiles(values: Array, weight: Array, fractions: Array) -> Array:
    """The smallest value with at least the fraction of the weight: always one of the values."""
    ladder, values = _ladder(values, weight)
    place = np.searchsorted(ladder, fractions * ladder[-1] - SLACK * ladder[-1], side="left")
    return np.asarray(values[np.minimum(place, values.size - 1)])


def _ladder(values: Array, weight: Array) -> tuple[Array, Array]:
    """Weights up to each value, and the values in order."""
    order = np.argsort(values, kind="stable")
    return np.cumsum(weight[order]), values[order].astype(np.float64)


SLACK = 1e-12
"""Forgives the rounding of sums of weights that are not integers."""
