"""The squared ε-insensitive loss, the smooth sibling of the one in `certifit.losses`."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.losses import EpsilonInsensitive, Loss
from certifit.names import stored
from certifit.parameters.docstrings import takes_as

__all__ = ["SquaredEpsilonInsensitive"]


@stored("SquaredEpsilonInsensitive")
@takes_as(EpsilonInsensitive)
class SquaredEpsilonInsensitive(Loss):
    """ℓ(y, f) = ½·max(|y − f| − epsilon, 0)²: residuals inside the tube are free.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredEpsilonInsensitive(0.5).value(np.zeros(2), np.array([0.4, 2.5]))
    array([0., 2.])
    """

    name = "squared_epsilon_insensitive"
    convex = True
    smoothness = 1.0

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = float(check_real("epsilon", epsilon, low=0, high=np.inf, open_high=True))

    def value(self, y: Array, f: Array) -> Array:
        return 0.5 * np.maximum(np.abs(y - f) - self.epsilon, 0.0) ** 2

    def derivative(self, y: Array, f: Array) -> Array:
        return np.sign(f - y) * np.maximum(np.abs(f - y) - self.epsilon, 0.0)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.where(np.abs(f - y) > self.epsilon, 1.0, 0.0)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        return u * y + self.epsilon * np.abs(u) + 0.5 * u * u

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        middle = 0.5 * float(y.min()) + 0.5 * float(y.max())
        # One tube around all rows: every constant inside is perfect, and the middle is as far from the edges as can be.
        return middle if float(np.abs(y - middle).max()) <= self.epsilon else super().optimal_constant(y, weight)

    def rescaled(self, unit: float) -> tuple[Loss, float]:
        return SquaredEpsilonInsensitive(self.epsilon / unit), unit * unit
