"""Gamma half deviance with the log link."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses.base import Loss, finite_means


class Gamma(Loss):
    """ℓ(y, f) = y·e^(−f) + f − 1 − ln y: half the Gamma deviance of the mean e^f; y > 0.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Gamma
    >>> Gamma().value(np.array([1.0, 100.0]), np.log([2.0, 200.0])).round(4)  # twice too much costs the same at every size
    array([0.1931, 0.1931])
    """

    name = "gamma"
    kernel = ("gamma",)
    convex = True

    def value(self, y: Array, f: Array) -> Array:
        ratio = np.log(y) - f
        return np.maximum(np.expm1(ratio) - ratio, 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        return -np.expm1(np.log(y) - f)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.exp(np.log(y) - f)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            log_rest = np.log1p(-u)
            inside = u * np.log(y) + np.where(u == 1, 0.0, (1 - u) * log_rest) + u
        return np.where(u <= 1, inside, np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -np.inf), np.ones_like(y)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        unit = float(y.max())
        return float(np.log(weight @ (y / unit) / weight.sum()) + np.log(unit))

    def predict(self, f: Array) -> Array:
        return finite_means(np.exp, f)

    def check_target(self, y: Array) -> None:
        if (y <= 0).any():
            row = int(np.flatnonzero(y <= 0)[0])
            raise ValueError(
                f"y must be > 0 for the Gamma loss; got {y[row]:g} at row {row}. For data with zeros use loss='poisson'."
            )
