"""Losses as a user would write them: value and derivatives only, everything else from the defaults."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.losses import Loss


class LogCosh(Loss):
    """ℓ(y, f) = ln cosh(f − y)."""

    convex = True
    smoothness = 1.0

    def value(self, y: Array, f: Array) -> Array:
        r = np.abs(f - y)
        near = np.log1p(2 * np.sinh(np.minimum(r, 1.0) / 2) ** 2)  # never below zero, whatever rounding does
        return np.where(r < 1.0, near, r + np.log1p(np.exp(-2 * r)) - np.log(2))

    def derivative(self, y: Array, f: Array) -> Array:
        return np.tanh(f - y)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return 1 - np.tanh(f - y) ** 2


class Tweedie(Loss):
    """Half the Tweedie deviance of the mean e^f at power 1.5: 2(y·e^(−f/2) + e^(f/2) − 2√y); y ≥ 0."""

    convex = True

    def value(self, y: Array, f: Array) -> Array:
        # As a square there is no cancellation: 2(√y e^(−f/4) − e^(f/4))².
        return 2 * (np.sqrt(ratio(y, f)) - np.exp(f / 4)) ** 2

    def derivative(self, y: Array, f: Array) -> Array:
        return np.exp(f / 2) - ratio(y, f)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return 0.5 * (np.exp(f / 2) + ratio(y, f))

    def predict(self, f: Array) -> Array:
        return np.exp(f)

    def check_target(self, y: Array) -> None:
        if (y < 0).any():
            raise ValueError("y must be >= 0")


def ratio(y: Array, f: Array) -> Array:
    """y·e^(−f/2), zero where y is zero."""
    with np.errstate(divide="ignore"):
        return np.exp(np.log(y) - f / 2)


USER_LOSSES: list[Loss] = [LogCosh(), Tweedie()]
