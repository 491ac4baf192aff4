"""The common form of all piecewise linear losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from certifit._types import Array

__all__ = ["TwoSidedHinge"]


@dataclass(frozen=True)
class TwoSidedHinge:
    """The loss slope_high·max(f − upper, 0) + slope_low·max(lower − f, 0) of every sample.

    Parameters
    ----------
    lower, upper : array of shape (n,)
        The kinks, lower ≤ upper; −inf and +inf where a side is absent.
    slope_low, slope_high : array of shape (n,) or float
        Nonnegative slopes; +inf makes the side a hard constraint.
    """

    lower: Array
    upper: Array
    slope_low: Any
    slope_high: Any
