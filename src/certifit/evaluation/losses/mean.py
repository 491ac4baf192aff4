"""The loss of a family and a map: ℓ(y, f) = d(y, g(f)), and a loss whose scores are shifted by an offset of each row."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from scipy.special import entr

from certifit._types import Array
from certifit.evaluation.losses.base import Loss, finite_means
from certifit.evaluation.losses.families import Family, MeanAt
from certifit.evaluation.losses.labels.margin import Logistic
from certifit.evaluation.losses.maps import Map
from certifit.evaluation.losses.numbers.gamma import Gamma
from certifit.evaluation.losses.numbers.poisson import Poisson
from certifit.evaluation.losses.numbers.quantile import Absolute
from certifit.evaluation.losses.numbers.squared import Squared
from certifit.evaluation.losses.terms import TwoSidedHinge

__all__ = ["MeanLoss", "Shifted", "mean_loss"]

FARTHEST = 5.0  # a score at which every bounded map is nearly at its bound, and not yet flat

KNOWN: dict[tuple[str, str], type[Loss]] = {
    ("gaussian", "identity"): Squared,
    ("laplace", "identity"): Absolute,
    ("bernoulli", "logistic"): Logistic,
    ("poisson", "exp"): Poisson,
    ("gamma", "exp"): Gamma,
}
"""Pairs that are losses of their own, with closed forms."""


def mean_loss(family: Family, mean_map: Map) -> Loss:
    """The loss of a pair, in closed form where there is one."""
    known = KNOWN.get((family.name, mean_map.name))
    return known() if known is not None else MeanLoss(family, mean_map)


class MeanLoss(Loss):
    """Half the deviance of a family about the mean g(f).

    Parameters
    ----------
    family : Family
        How y scatters about its mean.
    map : Map
        The mean as a function of the score.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import FAMILIES, MAPS, MeanLoss
    >>> probit = MeanLoss(FAMILIES["bernoulli"](), MAPS["probit"]())
    >>> probit.value(np.array([0.0, 1.0]), np.array([0.0, 1.0])).round(4), probit.convex
    (array([0.6931, 0.1728]), True)
    >>> MeanLoss(FAMILIES["gamma"](), MAPS["softplus"]()).unproven
    'The half deviance of gamma is not convex in the score of map=softplus: the fit is a stationary point, and no bound is known.'
    """

    name = "mean"

    def __init__(self, family: Family, map: Map) -> None:
        self.family, self.map = family, map

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether the pair is one of those with a proof."""
        return bool(self.map.name) and self.map.name in self.family.convex_with

    @property
    def unproven(self) -> str:  # type: ignore[override]
        """Why no bound holds for the pair."""
        if self.convex:
            return ""
        shown = self.map.name or type(self.map).__name__
        pair = (self.family.name, self.map.name)
        known = "is not proven" if not self.map.name or pair == ("bernoulli", "softplus") else "is not"
        return (
            f"The half deviance of {self.family.name} {known} convex in the score of map={shown}: the fit is a stationary point, "
            "and no bound is known."
        )

    def at(self, f: Array) -> MeanAt:
        """Mean and ratios at scores."""
        return MeanAt(self.map, f)

    def value(self, y: Array, f: Array) -> Array:
        with np.errstate(all="ignore"):
            at = self.at(f)
            found = self.family.value(y, at)
            inside = (at.mean >= self.family.low) & (at.mean <= self.family.high)
        return np.where(inside & ~np.isnan(found), found, np.inf)

    def derivative(self, y: Array, f: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.family.derivative(y, self.at(f))

    def second_derivative(self, y: Array, f: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.family.second_derivative(y, self.at(f))

    def slopes(self, y: Array, f: Array) -> tuple[Array, Array]:
        """With the expected curvature where the observed one may be negative (Fisher scoring)."""
        with np.errstate(all="ignore"):
            at = self.at(f)
            # A kink has no curvature to expect; the parabola above it is what Laplace's second derivative is.
            observed = self.convex or self.family.name == "laplace"
            bend = self.family.second_derivative(y, at) if observed else self.family.information(at)
            return self.family.derivative(y, at), bend

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        """Closed forms where the mean is bounded by the score; infinite, which proves nothing, where ℓ is not convex."""
        if not self.convex:
            return np.full(u.shape, np.inf)
        bounded = BOUNDED.get((self.family.name, self.map.name))
        if bounded is None:
            return super().conjugate(y, u, start)
        with np.errstate(all="ignore"):
            f, inside = bounded(y, u)
            # The supremum is taken at f, or on the way to it where f is infinite: there u·f cancels and is zero.
            value = np.where(np.isfinite(f), u * f - self.value(y, f), entr(y) + entr(1.0 - y))
        return np.where(inside & ~np.isnan(value), value, np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        everywhere = np.full(y.shape, np.inf)
        if (self.family.name, self.map.name) == ("poisson", "identity"):
            return -everywhere, np.ones(y.shape)
        if (self.family.name, self.map.name) == ("bernoulli", "exp"):
            return -y, everywhere
        if not self.convex or (self.family.name, self.map.name) in BOUNDED:
            return -everywhere, everywhere
        return super().dual_domain(y)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        """The score of the mean of y; of its median for Laplace noise."""
        laplace = self.family.name == "laplace"
        mean = float(Absolute().optimal_constant(y, weight) if laplace else weight @ y / weight.sum())
        with np.errstate(all="ignore"):
            found = self.map.inverse(mean)
            if found is not None and np.isfinite(found) and np.isclose(self.map.value(np.array(found)), mean):
                return found
            found = float(super().optimal_constant(y, weight))
            # A mean that the map does not reach wants an infinite score, from which no step leads back.
            flat = not self.map.slope(np.array(found)) > 0.0
        return float(np.clip(found, -FARTHEST, FARTHEST)) if flat else found

    def predict(self, f: Array) -> Array:
        return finite_means(self.map.value, f)

    def check_target(self, y: Array) -> None:
        bad = self.family.refuses(y)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise ValueError(f"{self.family.wants} for the {self.family.name} family; got {y[row]:g} at row {row}.")


def _poisson_identity(y: Array, u: Array) -> tuple[Array, Array]:
    """u = 1 − y/f on f > 0."""
    return np.where(y > 0, y / (1.0 - u), 0.0), np.where(y > 0, u < 1, u <= 1)


def _bernoulli_identity(y: Array, u: Array) -> tuple[Array, Array]:
    """u·f² + (1 − u)·f − y = 0 on [0, 1], by the form that does not cancel."""
    root = np.sqrt(np.maximum((1.0 - u) ** 2 + 4.0 * u * y, 0.0))
    f = np.where(u > 1, (u - 1.0 + root) / (2.0 * u), 2.0 * y / (1.0 - u + root))
    return np.clip(np.where((u == 1) & (y == 0), 0.0, f), 0.0, 1.0), np.ones(u.shape, dtype=bool)


def _bernoulli_exp(y: Array, u: Array) -> tuple[Array, Array]:
    """u = −y + (1 − y)·μ/(1 − μ) with μ = e^f on f < 0."""
    odds = (u + y) / (1.0 - y)
    return np.where(y < 1, np.log(odds) - np.log1p(odds), 0.0), u >= -y


BOUNDED = {
    ("poisson", "identity"): _poisson_identity,
    ("bernoulli", "identity"): _bernoulli_identity,
    ("bernoulli", "exp"): _bernoulli_exp,
}
"""Where the mean reaches its bound at a finite score: the score with slope u, and which u have one."""


class Shifted(Loss):
    """ℓ(y_i, f + o_i): targets are row numbers, from which y and the offset of a row are looked up.

    Solvers hand targets through and never look at them, so a loss may carry anything of its rows. Row numbers are a column,
    shape (n, 1), where the loss has K scores: so they are not taken for class numbers.

    Parameters
    ----------
    loss : Loss
        The loss of the shifted scores.
    y : array of shape (n,)
        Target of every row.
    offset : array of shape (n,) or (n, K)
        Offset of every row, for each of its scores.
    """

    name = "shifted"
    # All as the loss itself.
    convex: Any = property(attrgetter("loss.convex"))
    unproven: Any = property(attrgetter("loss.unproven"))
    coupled: ClassVar[Any] = property(attrgetter("loss.coupled"))
    shift_invariant: ClassVar[Any] = property(attrgetter("loss.shift_invariant"))
    smooth: Any = property(attrgetter("loss.smooth"))

    def __init__(self, loss: Loss, y: Array, offset: Array) -> None:
        self.loss, self.y, self.offset = loss, y, offset

    def hinge_terms(self, y: Array) -> TwoSidedHinge | None:
        """Those of the loss, with kinks moved by the offsets."""
        targets, offset = self.at(y)
        terms = self.loss.hinge_terms(targets)
        if terms is None:
            return None
        return TwoSidedHinge(terms.lower - offset, terms.upper - offset, terms.slope_low, terms.slope_high)

    @property
    def rows(self) -> Array:
        """All row numbers, as targets."""
        number = np.arange(self.y.shape[0], dtype=np.float64)
        return number[:, None] if self.coupled else number

    def n_scores(self, y: Array) -> int:
        return self.loss.n_scores(self.y)

    def at(self, rows: Array) -> tuple[Array, Array]:
        """Targets and offsets of rows."""
        i = np.asarray(rows if rows.ndim == 1 else rows[:, 0], dtype=np.intp)
        return self.y[i], self.offset[i]

    def of(self, rows: Array, f: Array) -> tuple[Array, Array]:
        """Targets and shifted scores of rows."""
        y, offset = self.at(rows)
        return y, f + offset

    def optimal_constant(self, y: Array, weight: Array) -> Any:
        """By slopes; K of them by Newton steps, halved until they descend. Not convex: that of the mean offset."""
        if not self.coupled and self.loss.convex:
            return super().optimal_constant(y, weight)
        target, offset = self.at(y)
        p, c = weight / weight.sum(), self.loss.optimal_constant(target, weight) - weight @ offset / weight.sum()
        if not self.loss.convex:  # slopes of no order lead anywhere
            return c

        def risk(c: Array) -> float:
            return float(p @ self.loss.value(target, offset + c))

        for _ in range(50):
            slope, curvature = self.loss.slopes(target, offset + c)
            with np.errstate(all="ignore"):
                step = np.linalg.pinv(curvature.mean(p), hermitian=True) @ (p @ slope)
            size = 1.0
            while not risk(c - size * step) <= risk(c) and size > 1e-12:
                size *= 0.5
            c = c - size * step
            if size <= 1e-12 or np.abs(step).max() <= 1e-12 * (1.0 + np.abs(c).max()):
                break
        return c - c.mean() if self.shift_invariant else c

    def value(self, y: Array, f: Array) -> Array:
        return self.loss.value(*self.of(y, f))

    def derivative(self, y: Array, f: Array) -> Array:
        return self.loss.derivative(*self.of(y, f))

    def second_derivative(self, y: Array, f: Array) -> Array:
        return self.loss.second_derivative(*self.of(y, f))

    def slopes(self, y: Array, f: Array) -> tuple[Array, Array]:
        return self.loss.slopes(*self.of(y, f))

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        """ℓ*(y, u) − u·o."""
        targets, offset = self.at(y)
        moved = (u * offset).sum(axis=1) if self.coupled else u * offset
        return self.loss.conjugate(targets, u, None if start is None else start + offset) - moved

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        return self.loss.dual_domain(self.at(y)[0])

    def into_domain(self, y: Array, u: Array) -> Array:
        return self.loss.into_domain(self.at(y)[0], u)

    def predict(self, f: Array) -> Array:
        return self.loss.predict(f)
