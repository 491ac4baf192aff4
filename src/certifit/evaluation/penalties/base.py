"""What a penalty knows.

A penalty Ω(w) = Σ_j Ω_j(w_j) is convex, even, non-negative and zero at w = 0. Solvers use its prox, certificates its
conjugate; both follow from four elementwise functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from certifit._types import Array
from certifit.parameters.by_value import ByValue

__all__ = ["Penalty", "soft_threshold"]


class Penalty(ByValue, ABC):
    """Base class of all penalties; `weights` gives each coefficient its own strength.

    Parameters
    ----------
    weights : array of shape (n_features,) or None
        Non-negative multipliers of the penalty of each coefficient; None means one for all, 0 leaves a
        coefficient unpenalized.
    """

    name: ClassVar[str] = ""
    """Key in the registry, for ``penalty="…"``."""
    couples: ClassVar[bool] = False
    """Whether the coefficients of several targets meet in it."""

    def __init__(self, weights: Any = None) -> None:
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        if self.weights is not None and (
            self.weights.ndim != 1 or not np.isfinite(self.weights).all() or (self.weights < 0).any()
        ):
            raise ValueError(
                "weights of a penalty must be a vector of finite numbers >= 0, one for each feature; "
                f"got {self.weights!r}."
            )

    @abstractmethod
    def each(self, w: Array) -> Array:
        """Ω_j(w_j), elementwise."""

    @abstractmethod
    def prox(self, z: Array, step: float | Array) -> Array:
        """argmin over w of ½(w − z)² + step·Ω_j(w), elementwise."""

    @abstractmethod
    def argmax(self, v: Array) -> Array:
        """argmax over w of v·w − Ω_j(w), elementwise; ±inf where the conjugate is infinite."""

    @abstractmethod
    def subdifferential(self, w: Array) -> tuple[Array, Array]:
        """Interval of the subgradients of Ω_j at w_j, elementwise."""

    def value(self, w: Array) -> float:
        """Ω(w)."""
        return float(self.each(w).sum())

    def conjugate(self, v: Array) -> Array:
        """Ω_j*(v_j) = sup over w of v·w − Ω_j(w), elementwise."""
        best = self.argmax(v)
        finite = np.isfinite(best)
        best = np.where(finite, best, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            gain = v * best - self.each(best)
        return np.where(finite & ~np.isnan(gain), gain, np.inf)  # both terms too large: no bound

    def subdifferential_distance(self, w: Array, g: Array) -> Array:
        """Distance of −g_j from the subdifferential at w_j: zero at an optimum, elementwise."""
        low, high = self.subdifferential(w)
        return np.maximum(np.maximum(low + g, -g - high), 0.0)

    def elastic(self, d: int) -> tuple[Array, Array] | None:
        """(l1, l2) with Ω(w) = Σ l1_j|w_j| + ½ l2_j w_j², if the penalty has that form."""
        return None

    def power(self, d: int) -> tuple[float, Array] | None:
        """(q, c) with Ω(w) = Σ c_j|w_j|^q / q, if the penalty has that form."""
        return None

    @abstractmethod
    def rescaled(self, unit: Array) -> Penalty:
        """The penalty of v = w·unit that equals this penalty of w (columns of X divided by `unit`)."""

    def strength(self, d: int) -> Array:
        """The weights, spread over d coefficients."""
        if self.weights is None:
            return np.ones(d)
        if self.weights.shape[0] != d:
            raise ValueError(
                f"The penalty has {self.weights.shape[0]} weights, but X has {d} features: give one weight each."
            )
        return self.weights


def soft_threshold(z: Array, t: float | Array) -> Array:
    """Shrink towards zero by t: sign(z)·max(|z| − t, 0), the prox of t‖·‖₁ and one step of the lasso's coordinate descent.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import soft_threshold
    >>> soft_threshold(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    if not np.greater_equal(t, 0.0).all():
        raise ValueError(f"t must be ≥ 0: values are drawn towards zero by it; got {t!r}.")
    return shrink(z, t)


def shrink(z: Array, t: float | Array) -> Array:
    """`soft_threshold` for solvers: t is theirs and not checked, and what is no number stays none."""
    return np.sign(z) * np.maximum(np.abs(z) - t, 0.0)
