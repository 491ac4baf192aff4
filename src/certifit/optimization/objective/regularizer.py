"""R(w) = alpha·Ω(w) + the indicator of a constraint: what solvers see of penalty and constraint."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.constraints.convex import Ball, Box, L1Ball
from certifit.evaluation.penalties import Constraint, Lq, NoPenalty, Penalty
from certifit.evaluation.penalties.elastic import Strengths
from certifit.optimization.coordinate.descent import Separable

__all__ = ["Regularizer", "kernel_penalty"]


@dataclass(frozen=True)
class Regularizer:
    """alpha·penalty restricted to a constraint, for d coefficients."""

    penalty: Penalty
    alpha: float
    constraint: Constraint | None
    d: int

    @staticmethod
    def of(penalty: Penalty, alpha: float, constraint: Constraint | None, d: int) -> Regularizer:
        """Alpha = 0 means no penalty at all."""
        if alpha == 0.0:
            penalty, alpha = NoPenalty(), 1.0
        if penalty.weights is not None:
            penalty.strength(d)  # they must fit the number of features
        if constraint is not None:
            constraint.bounds(d)  # so must these
        return Regularizer(penalty, float(alpha), constraint, d)

    def value(self, w: Array) -> float:
        """alpha·Ω(w); w is taken to satisfy the constraint."""
        l2 = self._smooth
        if l2 is not None:  # most fits, and asked at every step of a line search
            return 0.5 * float((l2 * w * w).sum())
        return self.alpha * self.penalty.value(w)

    def prox(self, z: Array, step: float) -> Array:
        """argmin of ½‖w − z‖² + step·R(w)."""
        if self.constraint is None:
            return self.penalty.prox(z, step * self.alpha)
        return self.constraint.prox(self.penalty, z, step * self.alpha)

    def conjugate(self, v: Array) -> float:
        """R*(v), or an upper bound of it that is tight up to rounding."""
        if self.constraint is None:
            return self.alpha * float(self.penalty.conjugate(v / self.alpha).sum())
        return self.constraint.conjugate(self.penalty, self.alpha, v)

    def project(self, w: Array) -> Array:
        """The nearest point that satisfies the constraint."""
        return w if self.constraint is None else self.constraint.project(w)

    @property
    def active(self) -> bool:
        """Whether there is a penalty or a constraint at all."""
        parts = self.elastic()
        return self.constraint is not None or parts is None or any(part.any() for part in parts)

    @property
    def ball(self) -> Ball | None:
        """The constraint, if it is a norm ball."""
        return self.constraint if isinstance(self.constraint, Ball) else None

    @property
    def box(self) -> Box | None:
        """The constraint, if it bounds each coefficient by itself."""
        return self.constraint if isinstance(self.constraint, Box) else None

    def bounds(self) -> tuple[Array, Array]:
        """Interval of each coefficient."""
        if self.constraint is None:
            return np.full(self.d, -np.inf), np.full(self.d, np.inf)
        return self.constraint.bounds(self.d)

    def program_set(self) -> dict[str, Any]:
        """The constraint as `solve_polyhedral` takes it: an interval of each coefficient, and a ball."""
        lower, upper = self.bounds()
        ball = None if self.ball is None else ("l1" if isinstance(self.ball, L1Ball) else "l2", self.ball.radius)
        return {"lower": lower, "upper": upper, "ball": ball}

    def elastic(self) -> tuple[Array, Array] | None:
        """(l1, l2) with alpha·Ω(w) = Σ l1_j|w_j| + ½ l2_j w_j², if the penalty has that form."""
        return self._elastic

    @cached_property
    def _elastic(self) -> tuple[Array, Array] | None:
        parts = self.penalty.elastic(self.d)
        return None if parts is None else (self.alpha * parts[0], self.alpha * parts[1])

    def power(self) -> tuple[float, Array] | None:
        """(q, c) with alpha·Ω(w) = Σ c_j|w_j|^q / q, if the penalty has that form."""
        parts = self.penalty.power(self.d)
        return None if parts is None else (parts[0], self.alpha * parts[1])

    def smooth(self) -> Array | None:
        """The vector l2 if R(w) = ½ Σ l2_j w_j² and nothing else."""
        return self._smooth

    @cached_property
    def _smooth(self) -> Array | None:
        parts = self.elastic()
        if parts is None or self.constraint is not None or parts[0].any():
            return None
        return parts[1]

    @property
    def strictly_convex(self) -> bool:
        """Whether an L2 part holds every coefficient, so that the best coefficients are unique."""
        parts = self.elastic()
        return parts is not None and bool((parts[1] > 0).all())

    def conjugate_domain(self) -> tuple[Array, Array]:
        """Interval of each v_j on which R* is finite (for separable R; a ball makes it finite everywhere)."""
        low, high = np.full(self.d, -np.inf), np.full(self.d, np.inf)
        parts = self.elastic()
        if parts is None or self.ball is not None:
            return low, high
        l1, l2 = parts
        lower, upper = self.bounds()
        linear = l2 == 0.0
        high = np.where(linear & np.isinf(upper), l1, high)
        low = np.where(linear & np.isinf(lower), -l1, low)
        return low, high

    def violation(self, w: Array, g: Array) -> Array:
        """Distance of −g from the subdifferential of R at w, elementwise; for separable R."""
        low, high = self.penalty.subdifferential(w)
        low, high = self.alpha * low, self.alpha * high
        lower, upper = self.bounds()
        low = np.where(w <= lower, -np.inf, low)  # the normal cone of the box
        high = np.where(w >= upper, np.inf, high)
        return np.maximum(np.maximum(low + g, -g - high), 0.0)

    def in_units(self, column: Array, target: float, degree: float) -> Regularizer:
        """R(w)/target^degree as a function of v = w·column/target, for units that are powers of two.

        Exponents are added before anything can leave the range: a penalty that matters in either units is the same in both.
        """
        move = np.round(np.log2(column) - np.log2(target)).astype(np.int64)
        whole = round(degree * float(np.log2(target)))
        shape = np.exp2(np.clip(move, -1000.0, 1000.0))
        constraint = None if self.constraint is None else self.constraint.rescaled(shape)
        parts, power = self.elastic(), self.power()
        with np.errstate(over="ignore", under="ignore"):
            if parts is not None:
                l1, l2 = np.ldexp(parts[0], -move - whole), np.ldexp(parts[1], -2 * move - whole)
                # A strength beyond the range holds a coefficient at zero as surely as the largest number, and one that vanishes
                # in these units is still not none.
                l1, l2 = (np.where(c > 0, np.clip(u, 1e-290, 1e290), 0.0) for c, u in zip(parts, (l1, l2), strict=True))
                return Regularizer(Strengths(l1, l2), 1.0, constraint, self.d)
            if power is not None:
                q, strength = power
                exponent = np.log2(np.where(strength > 0, strength, 1.0)) - q * move - whole
                strength = np.where(strength > 0, np.exp2(np.clip(exponent, -1000.0, 960.0)), 0.0)
                return Regularizer(Lq(q, strength), 1.0, constraint, self.d)
        penalty = self.penalty.rescaled(np.clip(shape, 1e-140, 1e140))
        return Regularizer(
            penalty, float(np.clip(self.alpha / np.exp2(min(whole, 1000)), 0.0, 1e290)), constraint, self.d
        )

    def rescaled(self, unit: Array) -> Regularizer:
        """The regularizer of v = w·unit."""
        return replace(
            self,
            penalty=self.penalty.rescaled(unit),
            constraint=None if self.constraint is None else self.constraint.rescaled(unit),
        )


def kernel_penalty(regularizer: Regularizer) -> Separable:
    """The regularizer in the words of the coordinate-descent kernel."""
    lower, upper = (None, None) if regularizer.constraint is None else regularizer.bounds()
    power = regularizer.power()
    if power is not None:
        return Separable(power[1], np.zeros(regularizer.d), lower, upper, power[0])
    parts = regularizer.elastic()
    assert parts is not None  # the dispatcher sends no other penalty to the kernel
    # A strength beyond the range (units of 1e±150) holds a coefficient at zero as surely as the largest number.
    return Separable(np.minimum(parts[0], 1e290), np.minimum(parts[1], 1e290), lower, upper)
