"""Piecewise linear losses of a residual: absolute, quantile, ε-insensitive and relative error."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.terms import TwoSidedHinge


class PiecewiseLinear(Loss):
    """slope_high·max(f − upper, 0) + slope_low·max(lower − f, 0): everything follows from `hinge_terms`."""

    def hinge_terms(self, y: Array) -> TwoSidedHinge:
        raise TypeError(f"{type(self).__name__} must define hinge_terms.")

    def value(self, y: Array, f: Array) -> Array:
        t = self.hinge_terms(y)
        # An infinite limit belongs to a zero slope: the product must stay zero.
        above = np.where(t.slope_high > 0, np.maximum(f - t.upper, 0.0), 0.0)
        below = np.where(t.slope_low > 0, np.maximum(t.lower - f, 0.0), 0.0)
        return t.slope_high * above + t.slope_low * below

    def derivative(self, y: Array, f: Array) -> Array:
        t = self.hinge_terms(y)
        return np.where(f > t.upper, t.slope_high, np.where(f < t.lower, -t.slope_low, 0.0))

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        t = self.hinge_terms(y)
        with np.errstate(invalid="ignore"):
            inside = np.where(u > 0, u * t.upper, np.where(u < 0, u * t.lower, 0.0))
        return np.where((u <= t.slope_high) & (u >= -t.slope_low), inside, np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        t = self.hinge_terms(y)
        return -t.slope_low, t.slope_high

    def optimal_constant(self, y: Array, weight: Array) -> float:
        """The breakpoint at which the mean slope changes sign; the middle, where it is zero over an interval."""
        t = self.hinge_terms(y)
        if np.array_equal(t.lower, t.upper):  # one kink a row: half as much to sort
            points, jumps = t.upper, weight * (t.slope_low + t.slope_high)
        else:
            points = np.concatenate([t.lower, t.upper])
            jumps = np.concatenate([weight * t.slope_low, weight * t.slope_high])
        useful = np.isfinite(points) & (jumps > 0)
        points, jumps = points[useful], jumps[useful]
        order = np.argsort(points)  # equal points may change places: only their value is used
        slope = np.cumsum(jumps[order]) - float(weight @ t.slope_low)
        # Rounding of the cumulative sum must not hide a slope that is exactly zero.
        noise = 1e-12 * jumps.sum()
        first, past = int(np.argmax(slope >= -noise)), int(np.argmax(slope > noise))
        ordered = points[order]
        return float(0.5 * (ordered[first] + ordered[past])) if past > first else float(ordered[first])


class Quantile(PiecewiseLinear):
    """With r = y − f: q·max(r, 0) + (1 − q)·max(−r, 0); the best constant is the q-quantile.

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
        At 0.5 the loss is half the absolute loss.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Quantile
    >>> Quantile(0.9).value(np.zeros(2), np.array([-1.0, 1.0]))
    array([0.9, 0.1])
    """

    name = "quantile"
    kernel = ("quantile", "quantile")
    convex = True

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = float(check_real("quantile", quantile, low=0, high=1, open_low=True, open_high=True))

    def hinge_terms(self, y: Array) -> TwoSidedHinge:
        return two_sided(y, y, self.quantile, 1.0 - self.quantile)

    def rescaled(self, unit: float) -> tuple[Loss, float]:
        return self, unit


class Absolute(PiecewiseLinear):
    """ℓ(y, f) = |y − f| (Laplace noise); the best constant is the median.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Absolute
    >>> Absolute().optimal_constant(np.array([0.0, 1.0, 9.0]), np.ones(3))
    1.0
    """

    name = "absolute"
    kernel = ("absolute",)
    convex = True

    def hinge_terms(self, y: Array) -> TwoSidedHinge:
        return two_sided(y, y, 1.0, 1.0)

    def rescaled(self, unit: float) -> tuple[Loss, float]:
        return self, unit


class EpsilonInsensitive(PiecewiseLinear):
    """ℓ(y, f) = max(|y − f| − epsilon, 0): residuals inside the tube are free.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half width of the tube, in units of y.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import EpsilonInsensitive
    >>> EpsilonInsensitive(0.5).value(np.zeros(2), np.array([0.4, 2.0]))
    array([0. , 1.5])
    """

    name = "epsilon_insensitive"
    kernel = ("epsilon_insensitive", "epsilon")
    convex = True

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = float(check_real("epsilon", epsilon, low=0, high=np.inf, open_high=True))

    def hinge_terms(self, y: Array) -> TwoSidedHinge:
        return two_sided(y - self.epsilon, y + self.epsilon, 1.0, 1.0)

    def rescaled(self, unit: float) -> tuple[Loss, float]:
        return EpsilonInsensitive(self.epsilon / unit), unit


class RelativeError(PiecewiseLinear):
    """ℓ(y, f) = |y − f| / |y|: an error counts in proportion to its target, which must not be zero.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import RelativeError
    >>> y = np.array([10.0, 100.0])
    >>> RelativeError().value(y, 1.1 * y).round(4)
    array([0.1, 0.1])
    """

    name = "relative"
    convex = True

    def hinge_terms(self, y: Array) -> TwoSidedHinge:
        slope = 1.0 / np.abs(y)
        return two_sided(y, y, slope, slope)

    def check_target(self, y: Array) -> None:
        if (y == 0).any():
            row = int(np.flatnonzero(y == 0)[0])
            raise ValueError(
                f"y is 0 at row {row}, and the relative error |y − f|/|y| is undefined there: drop these rows, "
                "or use loss='absolute'."
            )

    def rescaled(self, unit: float) -> tuple[Loss, float]:
        return self, 1.0


def two_sided(lower: Array, upper: Array, slope_low: float | Array, slope_high: float | Array) -> TwoSidedHinge:
    """Terms with the slopes spread over all targets."""
    return TwoSidedHinge(
        lower=lower,
        upper=upper,
        slope_low=np.broadcast_to(np.asarray(slope_low, dtype=np.float64), lower.shape),
        slope_high=np.broadcast_to(np.asarray(slope_high, dtype=np.float64), lower.shape),
    )
