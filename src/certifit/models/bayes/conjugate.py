"""Conjugate pairs: priors that stay in their family when data come in.

    Beta(a, b) on p of Bernoulli(p)                        Beta(a + Σs·x, b + Σs·(1 − x))
    Dirichlet(α) on p of categorical(p)                    Dirichlet(α + counts)
    Gamma(a, rate b) on λ of Poisson(λ)                    Gamma(a + Σs·x, b + Σs)
    N(m, v) on the mean of N(μ, σ²), σ² known              precision 1/v + n/σ², mean weighted by precision
    Normal-inverse-gamma on (μ, σ²) of N(μ, σ²)            κ + n, a + n/2, b + ½S + ½ κn/(κ + n)(x̄ − m)²

Each object is a distribution of its parameter: prior and posterior are the same class, `update` takes one to the other, in one
go or row by row. A weight of 2 is an observation made twice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.data.gate import check_numbers, check_real, check_sample_weight

__all__ = ["BetaBernoulli", "DirichletCategorical", "GammaPoisson", "NormalInverseGamma", "NormalNormal"]


class Conjugate(ABC):
    """A distribution of a parameter that observations update."""

    _positive: ClassVar[tuple[str, ...]] = ()
    """Which of its own parameters are greater than zero."""

    def __post_init__(self) -> None:
        for name in self._positive:
            check_real(name, getattr(self, name), low=0, open_low=True, open_high=True)

    @abstractmethod
    def update(self, x: Any, sample_weight: Any = None) -> Any:
        """The posterior after observations."""

    @property
    @abstractmethod
    def distribution(self) -> Any:
        """The distribution of the parameter, a frozen SciPy distribution."""

    @property
    @abstractmethod
    def predictive(self) -> Any:
        """The distribution of the next observation, a frozen SciPy distribution."""

    @property
    def mean(self) -> Any:
        """Mean of the parameter: the best guess under squared loss."""
        return float(self.distribution.mean())

    @property
    def median(self) -> Any:
        """Median of the parameter: the best guess under absolute loss."""
        return float(self.distribution.median())

    @property
    @abstractmethod
    def mode(self) -> Any:
        """Most probable value of the parameter (MAP)."""

    def ppf(self, q: Any) -> Any:
        """Quantiles of the parameter."""
        return self.distribution.ppf(q)

    def credible_interval(self, level: float = 0.95) -> Any:
        """The interval between equal tails that holds the parameter with the probability `level`."""
        check_real("level", level, low=0, high=1, open_low=True, open_high=True)
        low, high = self.distribution.ppf([0.5 * (1 - level), 0.5 * (1 + level)])
        return float(low), float(high)

    def sample(self, n: int = 1, random_state: Any = None) -> Array:
        """Draws of the parameter."""
        check_real("n", n, low=0, integer=True)
        return np.asarray(self.distribution.rvs(size=n, random_state=check_random_state(random_state)))

    def plot(self, other: Any = None, ax: Any = None) -> Any:
        """The density of the parameter, beside that of another (say, the prior); returns the axes."""
        from certifit.axes import axes_of

        ax = axes_of(ax)
        for one, name, style in ((other, "before", "--"), (self, "after", "-")):
            if one is None:
                continue
            low, high = one.distribution.ppf([0.0005, 0.9995])
            grid = np.linspace(low, high, 400)
            ax.plot(grid, one.distribution.pdf(grid), style, label=name if other is not None else None)
        ax.set_xlabel("parameter")
        ax.set_ylabel("density")
        if other is not None:
            ax.legend()
        return ax


def _observations(x: Any, sample_weight: Any) -> tuple[Array, Array]:
    values = np.atleast_1d(check_numbers("x", x))
    if values.ndim != 1:
        raise ValueError(f"x must be one observation or a list of them; got shape {values.shape}.")
    if not values.size:
        return values, np.zeros(0)
    weight = check_sample_weight(sample_weight, values.shape[0])
    values, weight = values[weight > 0], weight[weight > 0]
    if not np.isfinite(values).all():
        raise ValueError("x contains NaN or infinity: every observation must be a finite number.")
    return values, weight


@dataclass(frozen=True)
class BetaBernoulli(Conjugate):
    """The probability p of a yes, after `a` − 1 yeses and `b` − 1 noes seen beside a flat prior.

    Parameters
    ----------
    a, b : float > 0, default=1
        Of the Beta distribution; (1, 1) is flat.

    Examples
    --------
    >>> from certifit import BetaBernoulli
    >>> coin = BetaBernoulli(2, 2).update([1, 1, 0, 1])
    >>> coin.a, coin.b, round(coin.mean, 3), round(coin.mode, 3)
    (5.0, 3.0, 0.625, 0.667)
    """

    a: float = 1.0
    b: float = 1.0

    _positive = ("a", "b")

    def update(self, x: Any, sample_weight: Any = None) -> BetaBernoulli:
        """The posterior after zeros and ones."""
        values, weight = _observations(x, sample_weight)
        if values.size and not np.isin(values, (0.0, 1.0)).all():
            raise ValueError(f"x must be 0 or 1; got {values[~np.isin(values, (0.0, 1.0))][0]:g}.")
        return BetaBernoulli(self.a + float(weight @ values), self.b + float(weight @ (1.0 - values)))

    @property
    def distribution(self) -> Any:
        """Beta(a, b)."""
        return stats.beta(self.a, self.b)

    @property
    def predictive(self) -> Any:
        """Bernoulli with the mean of p."""
        return stats.bernoulli(self.a / (self.a + self.b))

    @property
    def mode(self) -> float:
        """(a − 1)/(a + b − 2), or the end that the density runs to."""
        if self.a > 1 and self.b > 1:
            return (self.a - 1) / (self.a + self.b - 2)
        return 0.5 if self.a == self.b else float(self.a > self.b)


@dataclass(frozen=True)
class DirichletCategorical(Conjugate):
    """The probabilities of K categories.

    Parameters
    ----------
    alpha : array of shape (K,)
        Of the Dirichlet distribution, > 0; ones are flat.

    Examples
    --------
    >>> from certifit import DirichletCategorical
    >>> die = DirichletCategorical([1.0, 1.0, 1.0]).update([0, 2, 2])
    >>> die.alpha.tolist(), die.mean.round(3).tolist()
    ([2.0, 1.0, 3.0], [0.333, 0.167, 0.5])
    """

    alpha: Any

    def __post_init__(self) -> None:
        alpha = check_numbers("alpha", self.alpha).copy()
        if alpha.ndim != 1 or alpha.shape[0] < 2 or not (np.isfinite(alpha).all() and (alpha > 0).all()):
            raise ValueError(f"alpha must be at least two numbers > 0, one for each category; got {self.alpha!r}.")
        alpha.flags.writeable = False
        object.__setattr__(self, "alpha", alpha)

    def update(self, x: Any, sample_weight: Any = None) -> DirichletCategorical:
        """The posterior after category numbers 0 … K − 1."""
        values, weight = _observations(x, sample_weight)
        K = self.alpha.shape[0]
        if values.size and not ((values == np.floor(values)) & (values >= 0) & (values < K)).all():
            raise ValueError(f"x must be category numbers from 0 to {K - 1}.")
        return DirichletCategorical(self.alpha + np.bincount(values.astype(np.intp), weights=weight, minlength=K))

    @property
    def distribution(self) -> Any:
        """Dirichlet(α)."""
        return stats.dirichlet(self.alpha)

    @property
    def marginals(self) -> tuple[Any, ...]:
        """Beta distributions of the single probabilities."""
        return tuple(stats.beta(a, float(self.alpha.sum()) - a) for a in self.alpha.tolist())

    @property
    def predictive(self) -> Any:
        """Multinomial of one draw with the mean probabilities."""
        return stats.multinomial(1, self.mean)

    @property
    def mean(self) -> Array:
        """α/Σα."""
        return np.asarray(self.alpha / self.alpha.sum())

    @property
    def median(self) -> Array:
        """Medians of the single probabilities."""
        return np.asarray(stats.beta(self.alpha, self.alpha.sum() - self.alpha).median())

    @property
    def mode(self) -> Array:
        """(α − 1)/(Σα − K); where some α ≤ 1 the density runs to an edge, and those categories have none."""
        left = np.maximum(self.alpha - 1.0, 0.0)
        return np.asarray(left / left.sum()) if left.sum() > 0 else self.mean

    def ppf(self, q: Any) -> Array:
        """Quantiles of the single probabilities."""
        return np.asarray(stats.beta(self.alpha, self.alpha.sum() - self.alpha).ppf(q))

    def credible_interval(self, level: float = 0.95) -> Array:
        """Equal-tailed intervals of the single probabilities, shape (K, 2)."""
        check_real("level", level, low=0, high=1, open_low=True, open_high=True)
        return np.column_stack([self.ppf(0.5 * (1 - level)), self.ppf(0.5 * (1 + level))])

    def plot(self, other: Any = None, ax: Any = None) -> Any:
        """The probabilities with their 95 % intervals; returns the axes."""
        from certifit.axes import axes_of

        ax = axes_of(ax)
        ends, at = self.credible_interval(), np.arange(self.alpha.shape[0])
        ax.errorbar(at, self.mean, yerr=np.abs(ends - self.mean[:, None]).T, fmt="o", capsize=3, label="after")
        if other is not None:
            ax.plot(at, other.mean, "x", label="before")
            ax.legend()
        ax.set_xlabel("category")
        ax.set_ylabel("probability")
        return ax


@dataclass(frozen=True)
class GammaPoisson(Conjugate):
    """The rate λ of a count.

    Parameters
    ----------
    shape : float > 0, default=1
        Events seen beside the data, plus one where `rate` is small.
    rate : float > 0, default=1
        Exposure that they were seen in.

    Examples
    --------
    >>> from certifit import GammaPoisson
    >>> calls = GammaPoisson(1, 1).update([3, 5, 4])
    >>> calls.mean, round(float(calls.predictive.mean()), 3)
    (3.25, 3.25)
    """

    shape: float = 1.0
    rate: float = 1.0

    _positive = ("shape", "rate")

    def update(self, x: Any, sample_weight: Any = None) -> GammaPoisson:
        """The posterior after counts."""
        values, weight = _observations(x, sample_weight)
        if values.size and not ((values >= 0) & (values == np.floor(values))).all():
            raise ValueError("x must be counts: whole numbers >= 0.")
        return GammaPoisson(self.shape + float(weight @ values), self.rate + float(weight.sum()))

    @property
    def distribution(self) -> Any:
        """Gamma(shape, rate)."""
        return stats.gamma(self.shape, scale=1.0 / self.rate)

    @property
    def predictive(self) -> Any:
        """Negative binomial: Poisson with an uncertain rate."""
        return stats.nbinom(self.shape, self.rate / (1.0 + self.rate))

    @property
    def mode(self) -> float:
        """(shape − 1)/rate, or 0."""
        return max(0.0, (self.shape - 1.0) / self.rate)


@dataclass(frozen=True)
class NormalNormal(Conjugate):
    """The mean of normal observations whose variance is known.

    Parameters
    ----------
    location : float, default=0
        Mean of the normal distribution of the mean.
    variance : float > 0, default=1
        Its variance.
    noise : float > 0, default=1
        Variance of an observation.

    Examples
    --------
    >>> from certifit import NormalNormal
    >>> found = NormalNormal(0.0, 4.0, noise=1.0).update([2.0, 3.0])
    >>> round(found.mean, 4), round(found.variance, 4)
    (2.2222, 0.4444)
    """

    location: float = 0.0
    variance: float = 1.0
    noise: float = 1.0

    _positive = ("variance", "noise")

    def __post_init__(self) -> None:
        check_real("location", self.location, low=-1e300, high=1e300)
        super().__post_init__()

    def update(self, x: Any, sample_weight: Any = None) -> NormalNormal:
        """The posterior after observations: precisions add up."""
        values, weight = _observations(x, sample_weight)
        precision = 1.0 / self.variance + float(weight.sum()) / self.noise
        total = self.location / self.variance + float(weight @ values) / self.noise
        return NormalNormal(total / precision, 1.0 / precision, self.noise)

    @property
    def distribution(self) -> Any:
        """Normal."""
        return stats.norm(self.location, np.sqrt(self.variance))

    @property
    def predictive(self) -> Any:
        """Normal, with the variances of the mean and of an observation."""
        return stats.norm(self.location, np.sqrt(self.variance + self.noise))

    @property
    def mode(self) -> float:
        """The mean."""
        return self.location


@dataclass(frozen=True)
class NormalInverseGamma(Conjugate):
    """Mean and variance of normal observations, both unknown; `distribution` is that of the mean.

    Parameters
    ----------
    location : float, default=0
        Prior guess of the mean.
    kappa : float > 0, default=1
        Observations that the guess is worth.
    shape, scale : float > 0, default=1
        Of the inverse gamma distribution of the variance.

    Examples
    --------
    >>> from certifit import NormalInverseGamma
    >>> found = NormalInverseGamma().update([1.0, 2.0, 3.0])
    >>> round(found.mean, 4), found.kappa, found.shape, round(found.scale, 4)
    (1.5, 4.0, 2.5, 3.5)
    """

    location: float = 0.0
    kappa: float = 1.0
    shape: float = 1.0
    scale: float = 1.0

    _positive = ("kappa", "shape", "scale")

    def __post_init__(self) -> None:
        check_real("location", self.location, low=-1e300, high=1e300)
        super().__post_init__()

    def update(self, x: Any, sample_weight: Any = None) -> NormalInverseGamma:
        """The posterior after observations."""
        values, weight = _observations(x, sample_weight)
        if not values.size:
            return self
        n = float(weight.sum())
        mean = float(weight @ values) / n
        kappa = self.kappa + n
        with np.errstate(over="ignore"):
            spread = float(weight @ (values - mean) ** 2)
            scale = self.scale + 0.5 * spread + 0.5 * self.kappa * n / kappa * float(np.square(mean - self.location))
        if not np.isfinite(scale):
            raise ValueError("x holds numbers whose squares are beyond double precision: give them in another unit.")
        return NormalInverseGamma((self.kappa * self.location + n * mean) / kappa, kappa, self.shape + 0.5 * n, scale)

    @property
    def distribution(self) -> Any:
        """Student's t of the mean."""
        return stats.t(2 * self.shape, self.location, np.sqrt(self.scale / (self.shape * self.kappa)))

    @property
    def variance_distribution(self) -> Any:
        """Inverse gamma of the variance."""
        return stats.invgamma(self.shape, scale=self.scale)

    @property
    def predictive(self) -> Any:
        """Student's t of the next observation."""
        spread = np.sqrt(self.scale * (self.kappa + 1.0) / (self.shape * self.kappa))
        return stats.t(2 * self.shape, self.location, spread)

    @property
    def mean(self) -> float:
        """The location."""
        return self.location

    @property
    def mode(self) -> float:
        """The location."""
        return self.location
