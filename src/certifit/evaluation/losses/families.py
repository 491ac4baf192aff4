"""Families of distributions: the half deviance of y about its mean μ = g(f), with derivatives along the score.

    family             half deviance d(y, μ)                     y            V(μ)
    gaussian           ½(y − μ)²                                 any          1
    laplace            |y − μ|                                   any          –
    bernoulli          −y·ln μ − (1 − y)·ln(1 − μ) − H(y)        in [0, 1]    μ(1 − μ)
    poisson            μ − y·ln μ − (y − y·ln y)                 ≥ 0          μ
    gamma              y/μ + ln μ − 1 − ln y                     > 0          μ²
    inverse_gaussian   (y − μ)²/(2μ²y)                           > 0          μ³

Derivatives are written in the ratios ρ = g′/μ and σ = g′/(1 − μ), which stay finite where μ rounds to 0 or 1, and the twist
τ = g″/g′; ρ′ = ρ(τ − ρ).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import entr, gammaln, xlogy

from certifit._types import Array
from certifit.evaluation.losses.maps import Map
from certifit.names import stored
from certifit.parameters.by_value import ByValue

__all__ = ["FAMILIES", "Family", "MeanAt"]

LEAST_RESIDUAL = 1e-9  # of |y| + |μ|: the curvature that stands in for a kink ends there


def _of_map(name: str) -> cached_property[Array]:
    return cached_property(lambda at: getattr(at.map, name)(at.f))


@dataclass(frozen=True)
class MeanAt:
    """The mean at scores f, and what derivatives need of it, found when it is first asked for.

    `mean`, `log` and `log_rest` are μ, ln μ and ln(1 − μ); `slope` is g′, `twist` is τ = g″/g′.
    """

    map: Map
    f: Array
    mean, log, log_rest = _of_map("value"), _of_map("log_value"), _of_map("log_complement")
    slope, twist = _of_map("slope"), _of_map("twist")

    @cached_property
    def rate(self) -> Array:
        """ρ = g′/μ."""
        return np.exp(self.map.log_slope(self.f) - self.log)

    @cached_property
    def hazard(self) -> Array:
        """σ = g′/(1 − μ)."""
        return np.exp(self.map.log_slope(self.f) - self.log_rest)


class Family(ByValue, ABC):
    """How y scatters about its mean."""

    name: ClassVar[str] = ""
    usual: ClassVar[str] = "exp"
    """The map that is taken unless another is named."""
    low: ClassVar[float] = -np.inf
    high: ClassVar[float] = np.inf
    """Between which the mean lies."""
    convex_with: ClassVar[frozenset[str]] = frozenset()
    """The maps for which the half deviance is convex in the score, for every y; each has a proof in the class."""
    dispersion: ClassVar[float | None] = None
    """φ where the family fixes it; None: estimated by Pearson's χ²/dof."""

    @abstractmethod
    def value(self, y: Array, at: MeanAt) -> Array:
        """d(y, μ) ≥ 0."""

    @abstractmethod
    def derivative(self, y: Array, at: MeanAt) -> Array:
        """∂d/∂f."""

    @abstractmethod
    def second_derivative(self, y: Array, at: MeanAt) -> Array:
        """∂²d/∂f²."""

    @abstractmethod
    def information(self, at: MeanAt) -> Array:
        """g′²/V(μ): the expected second derivative."""

    @abstractmethod
    def variance(self, mean: Array) -> Array:
        """V(μ): the variance of y is φ·V(μ)."""

    @abstractmethod
    def log_density(self, y: Array, mean: Array, dispersion: float) -> Array:
        """ln of the density (or probability) of y."""

    def refuses(self, y: Array) -> Array:
        """Which targets the family cannot have produced."""
        return np.zeros(y.shape, dtype=bool)

    wants: ClassVar[str] = ""
    """What y must be, in words."""


@stored("GaussianFamily")
class Gaussian(Family):
    """½(y − μ)². Convex in f only where μ is linear in it."""

    name, usual, convex_with = "gaussian", "identity", frozenset({"identity"})

    def value(self, y: Array, at: MeanAt) -> Array:
        return 0.5 * (y - at.mean) ** 2

    def derivative(self, y: Array, at: MeanAt) -> Array:
        return (at.mean - y) * at.slope

    def second_derivative(self, y: Array, at: MeanAt) -> Array:
        return at.slope**2 + (at.mean - y) * at.slope * at.twist

    def information(self, at: MeanAt) -> Array:
        return at.slope**2

    def variance(self, mean: Array) -> Array:
        return np.ones_like(mean)

    def log_density(self, y: Array, mean: Array, dispersion: float) -> Array:
        return -0.5 * ((y - mean) ** 2 / dispersion + np.log(2.0 * np.pi * dispersion))


@stored("LaplaceFamily")
class Laplace(Family):
    """|y − μ|: noise with density e^(−|y − μ|/b)/(2b). Convex in f only where μ is linear in it.

    The kink has no curvature; that of the parabola through |r| with the same slope, 1/|r|, lies above the loss, so that a step
    with it descends (iteratively reweighted least squares). The information of a Laplace variable about its mean is 1/b².
    """

    name, usual, convex_with = "laplace", "identity", frozenset({"identity"})

    def value(self, y: Array, at: MeanAt) -> Array:
        return np.abs(y - at.mean)

    def derivative(self, y: Array, at: MeanAt) -> Array:
        return np.sign(at.mean - y) * at.slope

    def second_derivative(self, y: Array, at: MeanAt) -> Array:
        least = LEAST_RESIDUAL * (np.abs(y) + np.abs(at.mean)) + np.finfo(float).tiny
        return at.slope**2 / np.maximum(np.abs(y - at.mean), least)

    def information(self, at: MeanAt) -> Array:
        return at.slope**2

    def variance(self, mean: Array) -> Array:
        return np.ones_like(mean)

    def log_density(self, y: Array, mean: Array, dispersion: float) -> Array:
        scale = np.sqrt(dispersion)
        return -np.abs(y - mean) / scale - np.log(2.0 * scale)


@stored("BernoulliFamily")
class Bernoulli(Family):
    """−y·ln μ − (1 − y)·ln(1 − μ) − H(y); y is 0, 1 or a share between them.

    Convex in f where both ln μ and ln(1 − μ) are concave: for the distribution functions of log-concave densities (logistic,
    probit, cloglog), for μ = f and for μ = e^f. So it is for the softplus as long as the mean stays below 1, but its conjugate
    has no closed form, and no bound is computed.
    """

    name, usual, low, high, dispersion = "bernoulli", "logistic", 0.0, 1.0, 1.0
    convex_with = frozenset({"identity", "exp", "logistic", "probit", "cloglog"})
    wants = "y must be 0, 1 or a share between them"

    def value(self, y: Array, at: MeanAt) -> Array:
        likelihood = np.where(y > 0, y * at.log, 0.0) + np.where(y < 1, (1.0 - y) * at.log_rest, 0.0)
        return np.maximum(-likelihood - entr(y) - entr(1.0 - y), 0.0)

    def derivative(self, y: Array, at: MeanAt) -> Array:
        return np.where(y < 1, (1.0 - y) * at.hazard, 0.0) - np.where(y > 0, y * at.rate, 0.0)

    def second_derivative(self, y: Array, at: MeanAt) -> Array:
        one = at.rate * (at.rate - at.twist)
        zero = at.hazard * (at.hazard + at.twist)
        return np.where(y > 0, y * one, 0.0) + np.where(y < 1, (1.0 - y) * zero, 0.0)

    def information(self, at: MeanAt) -> Array:
        return at.rate * at.hazard

    def variance(self, mean: Array) -> Array:
        return mean * (1.0 - mean)

    def log_density(self, y: Array, mean: Array, dispersion: float) -> Array:
        hard = (y == 0) | (y == 1)  # shares have a quasi-likelihood only
        return np.where(hard, np.log(np.where(y == 1, mean, 1.0 - mean)), np.nan)

    def refuses(self, y: Array) -> Array:
        return (y < 0) | (y > 1)


@stored("PoissonFamily")
class PoissonFamily(Family):
    """μ − y·ln μ − (y − y·ln y). Convex in f where g is convex and ln g concave: identity, exp and softplus."""

    name, low, dispersion = "poisson", 0.0, 1.0
    convex_with = frozenset({"identity", "exp", "softplus"})
    wants = "y must be >= 0"

    def value(self, y: Array, at: MeanAt) -> Array:
        return np.maximum(at.mean - np.where(y > 0, y * at.log, 0.0) - y + xlogy(y, y), 0.0)

    def derivative(self, y: Array, at: MeanAt) -> Array:
        return at.slope - np.where(y > 0, y * at.rate, 0.0)

    def second_derivative(self, y: Array, at: MeanAt) -> Array:
        return at.slope * at.twist + np.where(y > 0, y * at.rate * (at.rate - at.twist), 0.0)

    def information(self, at: MeanAt) -> Array:
        return at.rate * at.slope

    def variance(self, mean: Array) -> Array:
        return mean

    def log_density(self, y: Array, mean: Array, dispersion: float) -> Array:
        whole = y == np.floor(y)  # rates have a quasi-likelihood only
        return np.where(whole, xlogy(y, mean) - mean - gammaln(y + 1.0), np.nan)

    def refuses(self, y: Array) -> Array:
        return y < 0


@stored("GammaFamily")
class GammaFamily(Family):
    """y/μ + ln μ − 1 − ln y. Convex in f for μ = e^f; ln μ bends down wherever μ is linear in f."""

    name, low, convex_with = "gamma", 0.0, frozenset({"exp"})
    wants = "y must be > 0"

    def value(self, y: Array, at: MeanAt) -> Array:
        ratio = np.log(y) - at.log
        return np.maximum(np.expm1(ratio) - ratio, 0.0)

    def derivative(self, y: Array, at: MeanAt) -> Array:
        return -at.rate * np.expm1(np.log(y) - at.log)

    def second_derivative(self, y: Array, at: MeanAt) -> Array:
        ratio = np.log(y) - at.log
        return at.rate**2 * np.exp(ratio) - at.rate * (at.twist - at.rate) * np.expm1(ratio)

    def information(self, at: MeanAt) -> Array:
        return at.rate**2

    def variance(self, mean: Array) -> Array:
        return mean**2

    def log_density(self, y: Array, mean: Array, dispersion: float) -> Array:
        shape = 1.0 / dispersion
        return shape * np.log(shape * y / mean) - shape * y / mean - gammaln(shape) - np.log(y)

    def refuses(self, y: Array) -> Array:
        return y <= 0


@stored("InverseGaussianFamily")
class InverseGaussian(Family):
    """(y − μ)²/(2μ²y): times to a first passage. Convex in f for no map offered here: it is flat for large μ."""

    name, low = "inverse_gaussian", 0.0
    wants = "y must be > 0"

    def value(self, y: Array, at: MeanAt) -> Array:
        return 0.5 * np.expm1(np.log(y) - at.log) ** 2 / y

    def derivative(self, y: Array, at: MeanAt) -> Array:
        return -np.expm1(np.log(y) - at.log) * np.exp(-at.log) * at.rate

    def second_derivative(self, y: Array, at: MeanAt) -> Array:
        inverse = np.exp(-at.log)  # z = 1/μ with z′ = −zρ and z″ = zρ² − zρ′, ρ′ = ρ(τ − ρ)
        bend = inverse * at.rate * (2.0 * at.rate - at.twist)
        return y * (inverse * at.rate) ** 2 + np.expm1(np.log(y) - at.log) * bend

    def information(self, at: MeanAt) -> Array:
        return at.rate**2 * np.exp(-at.log)

    def variance(self, mean: Array) -> Array:
        return mean**3

    def log_density(self, y: Array, mean: Array, dispersion: float) -> Array:
        return -0.5 * ((y - mean) ** 2 / (dispersion * y * mean**2) + np.log(2.0 * np.pi * dispersion * y**3))

    def refuses(self, y: Array) -> Array:
        return y <= 0


FAMILIES: dict[str, type[Family]] = {
    f.name: f for f in (Gaussian, Laplace, Bernoulli, PoissonFamily, GammaFamily, InverseGaussian)
}
"""The name used in ``family="…"`` and its class."""
