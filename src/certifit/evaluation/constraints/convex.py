"""Constraints (the Ivanov form): w must lie in a convex set.

A constraint meets a penalty αΩ in two places, both exact for every separable even penalty:
the prox of αΩ restricted to the set, and the conjugate of αΩ restricted to the set, of which only upper bounds are
needed for a valid certificate. For the balls both reduce to one multiplier λ ≥ 0, and every λ gives a valid bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.penalties.base import Penalty, shrink

__all__ = ["Box", "Constraint", "L1Ball", "L2Ball", "NonNegative"]


class Constraint(ABC):
    """Base class of all constraints."""

    name: ClassVar[str] = ""

    @abstractmethod
    def project(self, w: Array) -> Array:
        """The nearest point of the set."""

    @abstractmethod
    def prox(self, penalty: Penalty, z: Array, step: float | Array) -> Array:
        """argmin over w in the set of ½‖w − z‖² + step·Ω(w)."""

    @abstractmethod
    def conjugate(self, penalty: Penalty, alpha: float, v: Array) -> float:
        """An upper bound, tight up to rounding, of sup over w in the set of v·w − alpha·Ω(w)."""

    @abstractmethod
    def rescaled(self, unit: Array) -> Constraint:
        """The constraint on v = w·unit that equals this constraint on w."""

    def bounds(self, d: int) -> tuple[Array, Array]:
        """Interval of each coefficient, infinite where the set does not bound it by itself."""
        return np.full(d, -np.inf), np.full(d, np.inf)

    def contains(self, w: Array, tolerance: float = 1e-9) -> bool:
        """Whether w lies in the set, up to a relative tolerance."""
        return bool(np.abs(self.project(w) - w).max(initial=0.0) <= tolerance * (1 + np.abs(w).max(initial=0.0)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            np.array_equal(a, b) for a, b in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(type(self))


class Box(Constraint):
    """lower_j ≤ w_j ≤ upper_j; scalars, or one number for each feature, infinite where there is no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import Box
    >>> Box(0.0, 1.0).project(np.array([-2.0, 0.5, 3.0]))
    array([0. , 0.5, 1. ])
    """

    name = "box"

    def __init__(self, lower: Any = -np.inf, upper: Any = np.inf) -> None:
        self.lower, self.upper = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
        if np.isnan(self.lower).any() or np.isnan(self.upper).any() or (self.lower > self.upper).any():
            raise ValueError(f"A box needs lower <= upper for every coefficient; got {lower!r} and {upper!r}.")

    def bounds(self, d: int) -> tuple[Array, Array]:
        for side in (self.lower, self.upper):
            if side.ndim and side.shape != (d,):
                raise ValueError(f"The box has {side.shape[0]} bounds, but X has {d} features: give one bound each.")
        return np.broadcast_to(self.lower, d).copy(), np.broadcast_to(self.upper, d).copy()

    def project(self, w: Array) -> Array:
        return np.clip(w, *self.bounds(w.shape[-1]))

    def prox(self, penalty: Penalty, z: Array, step: float | Array) -> Array:
        return self.project(penalty.prox(z, step))  # exact: one-dimensional convex functions

    def conjugate(self, penalty: Penalty, alpha: float, v: Array) -> float:
        low, high = self.bounds(v.shape[-1])
        best = np.clip(
            penalty.argmax(v / alpha) if alpha > 0 else np.where(v == 0, 0.0, np.copysign(np.inf, v)), low, high
        )
        if not np.isfinite(best).all():
            return np.inf
        return float(np.sum(v * best - alpha * penalty.each(best)))

    def rescaled(self, unit: Array) -> Constraint:
        low, high = self.bounds(unit.shape[0])
        return Box(low * unit, high * unit)


class NonNegative(Box):
    """w_j ≥ 0 for every coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import NonNegative
    >>> NonNegative().project(np.array([-2.0, 3.0]))
    array([0., 3.])
    """

    name = "non_negative"

    def __init__(self) -> None:
        super().__init__(0.0, np.inf)

    def __repr__(self) -> str:
        return "NonNegative()"


class Ball(Constraint):
    """A norm ball of given radius; subclasses say which norm and how a multiplier acts on the penalty."""

    def __init__(self, radius: float) -> None:
        self.radius = float(check_real("radius", radius, low=0, high=np.inf, open_high=True))

    @abstractmethod
    def norm(self, w: Array) -> float:
        """The norm that must not exceed the radius."""

    @abstractmethod
    def shrunk(self, penalty: Penalty, z: Array, step: float | Array, multiplier: float) -> Array:
        """argmin of ½‖w − z‖² + step·Ω(w) + the multiplier's share of the norm."""

    def prox(self, penalty: Penalty, z: Array, step: float | Array) -> Array:
        return self._on_ball(lambda multiplier: self.shrunk(penalty, z, step, multiplier))

    def _on_ball(self, shrunk: Callable[[float], Array]) -> Array:
        w = shrunk(0.0)
        if self.norm(w) <= self.radius:
            return w
        if self.radius == 0.0:
            return np.zeros_like(w)
        low, at_low, high = 0.0, self.norm(w) - self.radius, 1.0
        while (at_high := self.norm(shrunk(high)) - self.radius) > 0 and high < 1e300:
            low, at_low, high = high, at_high, 4.0 * high
        # Illinois' false position: the norm falls continuously with the multiplier.
        for _ in range(200):
            trial = high - at_high * (high - low) / (at_high - at_low)
            if not low < trial < high:
                trial = 0.5 * (low + high)
            value = self.norm(shrunk(trial)) - self.radius
            if value > 0:
                low, at_low, at_high = trial, value, 0.5 * at_high
            else:
                high, at_high, at_low = trial, value, 0.5 * at_low
            if -1e-15 * self.radius <= value <= 0 or high - low <= 1e-15 * high:
                break
        return self.project(shrunk(high))

    def rescaled(self, unit: Array) -> Constraint:
        if not (unit == unit[0]).all():
            raise ValueError("A ball keeps its shape only when all columns share one unit.")
        # A radius beyond the range holds nothing, and neither does the largest number.
        return type(self)(min(self.radius * float(unit[0]), float(np.finfo(np.float64).max)))


class L2Ball(Ball):
    """‖w‖₂ ≤ radius.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import L2Ball
    >>> L2Ball(1.0).project(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """

    name = "l2_ball"

    def norm(self, w: Array) -> float:
        return float(np.linalg.norm(w))

    def project(self, w: Array) -> Array:
        size = self.norm(w)
        return w if size <= self.radius else w * (self.radius / size)

    def shrunk(self, penalty: Penalty, z: Array, step: float | Array, multiplier: float) -> Array:
        # ½‖w − z‖² + step·Ω(w) + ½λ‖w‖² is a prox at a point and a step that are both divided by 1 + λ.
        return penalty.prox(z / (1.0 + multiplier), step / (1.0 + multiplier))

    def conjugate(self, penalty: Penalty, alpha: float, v: Array) -> float:
        free = alpha * penalty.conjugate(v / alpha).sum() if alpha > 0 else np.inf
        size = self.norm(v)
        if size == 0.0 or self.radius == 0.0:
            return 0.0

        # For each λ > 0: sup of v·w − αΩ(w) − ½λ(‖w‖² − r²) bounds the supremum over the ball; it is a prox.
        def lagrangian(multiplier: float) -> tuple[float, float]:
            w = penalty.prox(v / multiplier, alpha / multiplier)
            norm = self.norm(w)
            value = (
                float(v @ w) - alpha * penalty.value(w) + 0.5 * multiplier * (self.radius - norm) * (self.radius + norm)
            )
            return value, norm

        best, high = min(free, self.radius * size), size / self.radius
        low = high * 1e-18
        if not (low > 0 and np.isfinite(high)):
            return float(best)
        best = min(best, lagrangian(high)[0])  # at this multiplier ‖w‖ ≤ radius already
        for _ in range(100):  # bisection in the logarithm: the multiplier's scale is unknown
            middle = float(np.sqrt(low) * np.sqrt(high))  # not the root of the product, which may underflow
            value, norm = lagrangian(middle)
            best = min(best, value)
            low, high = (middle, high) if norm > self.radius else (low, middle)
            if high <= low * (1 + 1e-15):
                break
        return float(best)


class L1Ball(Ball):
    """‖w‖₁ ≤ radius.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import L1Ball
    >>> L1Ball(1.0).project(np.array([1.0, 0.5, -0.1]))
    array([ 0.75,  0.25, -0.  ])
    """

    name = "l1_ball"

    def norm(self, w: Array) -> float:
        return float(np.abs(w).sum())

    def project(self, w: Array) -> Array:
        size = np.abs(w)
        if size.sum() <= self.radius:
            return w
        # Distances from the largest entry, so that a radius far below the entries is not lost in rounding:
        # the projection keeps max(s − distance, 0), with the s whose kept parts sum to the radius.
        distance = size.max() - size
        ordered = np.sort(distance)
        kept = (self.radius + np.cumsum(ordered)) / np.arange(1, size.shape[0] + 1)
        last = int(np.flatnonzero(kept >= ordered)[-1])
        return np.sign(w) * np.maximum(kept[last] - distance, 0.0)

    def shrunk(self, penalty: Penalty, z: Array, step: float | Array, multiplier: float) -> Array:
        # For an even convex Ω the prox of Ω + λ|·| is the prox of Ω after soft thresholding.
        return penalty.prox(shrink(z, multiplier), step)

    def conjugate(self, penalty: Penalty, alpha: float, v: Array) -> float:
        # inf over λ ≥ 0 of radius·λ + (αΩ)*(soft(v, λ)); convex in λ, every λ is a valid bound.
        def bound(multiplier: float) -> float:
            rest = shrink(v, multiplier)
            if not rest.any():
                return self.radius * multiplier
            if alpha == 0.0:
                return np.inf
            return self.radius * multiplier + alpha * float(penalty.conjugate(rest / alpha).sum())

        low, high = 0.0, float(np.abs(v).max(initial=0.0))
        best = min(bound(high), bound(0.0))
        inner = (np.sqrt(5.0) - 1.0) / 2.0
        left, right = high - inner * (high - low), low + inner * (high - low)
        at_left, at_right = bound(left), bound(right)
        for _ in range(120):  # golden section
            if at_left <= at_right and np.isfinite(at_left):
                high, right, at_right = right, left, at_left
                left = high - inner * (high - low)
                at_left = bound(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + inner * (high - low)
                at_right = bound(right)
            best = min(best, at_left, at_right)
            if high - low <= 1e-16 * max(high, 1e-300):
                break
        return best
