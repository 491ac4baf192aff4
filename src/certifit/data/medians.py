"""The middle of numbers that have weights."""

from __future__ import annotations

import numpy as np

from certifit._types import Array

__all__ = ["weighted_median"]


def weighted_median(values: Array, weight: Array) -> float:
    """The median of values repeated as often as their weight says."""
    order = np.argsort(values, kind="stable")
    values, total = values[order], np.cumsum(weight[order])
    half = 0.5 * total[-1]
    low = int(np.searchsorted(total, half * (1.0 - 1e-12)))
    if total[low] <= half * (1.0 + 1e-12) and low + 1 < values.shape[0]:
        return float(0.5 * (values[low] + values[low + 1]))
    return float(values[low])
