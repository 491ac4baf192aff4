"""Poisson half deviance with the log link."""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py, xlogy

from certifit._types import Array
from certifit.evaluation.losses.base import Loss, finite_means

NEAR = 0.5  # of the logarithm of the mean: nearer to the target than that, sums of terms as large as it would cancel


class Poisson(Loss):
    """ℓ(y, f) = e^f − y·f − (y − y·ln y): half the Poisson deviance of the mean e^f; y ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Poisson
    >>> Poisson().value(np.array([0.0, 1.0, 2.0]), np.zeros(3)).round(4)  # at the mean 1
    array([1.    , 0.    , 0.3863])
    """

    name = "poisson"
    kernel = ("poisson",)
    convex = True

    def value(self, y: Array, f: Array) -> Array:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            away = f - np.log(y)
            near = y * (np.expm1(away) - away)  # nothing but the small remainder of e^x beside its tangent
            return np.where(np.abs(away) < NEAR, near, np.maximum(np.exp(f) - y * f - y + xlogy(y, y), 0.0))

    def derivative(self, y: Array, f: Array) -> Array:
        return np.exp(f) - y

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.exp(f)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        mean = u + y
        with np.errstate(invalid="ignore", divide="ignore"):
            share = u / y
            near = y * (xlog1py(1.0 + share, share) - share) + u * np.log(y)
            inside = np.where(np.abs(share) < NEAR, near, xlogy(mean, mean) - xlogy(y, y) - u)
        return np.where(mean >= 0, inside, np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        return -y, np.full_like(y, np.inf)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        mean = float(weight @ y / weight.sum())
        return float(np.log(mean)) if mean > 0 else -np.inf

    def predict(self, f: Array) -> Array:
        return finite_means(np.exp, f)

    def check_target(self, y: Array) -> None:
        if (y < 0).any():
            row = int(np.flatnonzero(y < 0)[0])
            raise ValueError(
                f"y must be >= 0 for the Poisson loss; got {y[row]:g} at row {row}. Counts and rates are never negative."
            )
