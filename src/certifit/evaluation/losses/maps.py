"""Maps from a score to a mean: the inverse links of generalized linear models.

A family says how y scatters about its mean μ, a map says how the mean follows the score, μ = g(f). Losses of both need g, g′ and
g″, and their logarithms where g itself rounds to 0 or 1:

    g         identity   exp   logistic        probit    cloglog          softplus
    μ         f          e^f   1/(1 + e^−f)    Φ(f)      1 − exp(−e^f)    ln(1 + e^f)
    g″/g′     0          1     1 − 2μ          −f        1 − e^f          1 − g′
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, ndtr, ndtri

from certifit._types import Array
from certifit.names import stored
from certifit.parameters.by_value import ByValue

__all__ = ["MAPS", "Map"]


class Map(ByValue, ABC):
    """A differentiable, strictly increasing map from scores to means; write `value`, `slope` and `bend` for one of your own.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GLM
    >>> from certifit.losses import Map
    >>> class Cube(Map):
    ...     def value(self, f):
    ...         return f**3 + f
    ...     def slope(self, f):
    ...         return 3 * f**2 + 1
    ...     def bend(self, f):
    ...         return 6 * f
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> GLM("gaussian", Cube()).fit(X, Cube().value(2 * X[:, 0] + 1)).coef_.round(6)
    array([2.])
    """

    name: ClassVar[str] = ""

    @abstractmethod
    def value(self, f: Array) -> Array:
        """μ = g(f)."""

    def complement(self, f: Array) -> Array:
        """1 − g(f), where a map can say it without cancellation."""
        return 1.0 - self.value(f)

    def log_value(self, f: Array) -> Array:
        """ln g(f)."""
        return np.asarray(np.log(self.value(f)))

    def log_complement(self, f: Array) -> Array:
        """ln(1 − g(f))."""
        return np.asarray(np.log(self.complement(f)))

    @abstractmethod
    def slope(self, f: Array) -> Array:
        """g′(f) > 0."""

    def log_slope(self, f: Array) -> Array:
        """ln g′(f)."""
        return np.asarray(np.log(self.slope(f)))

    @abstractmethod
    def bend(self, f: Array) -> Array:
        """g″(f)."""

    def twist(self, f: Array) -> Array:
        """g″/g′."""
        return np.asarray(self.bend(f) / self.slope(f))

    def inverse(self, mean: float) -> float | None:
        """The score of a mean, where there is a formula."""
        return None


@stored("IdentityMap")
class Identity(Map):
    """μ = f."""

    name = "identity"

    def value(self, f: Array) -> Array:
        return f

    def slope(self, f: Array) -> Array:
        return np.ones_like(f)

    def bend(self, f: Array) -> Array:
        return np.zeros_like(f)

    def inverse(self, mean: float) -> float:
        return mean


@stored("ExpMap")
class Exp(Map):
    """μ = e^f."""

    name = "exp"

    def value(self, f: Array) -> Array:
        return np.exp(f)

    slope = bend = value

    def log_value(self, f: Array) -> Array:
        return f

    log_slope = log_value

    def complement(self, f: Array) -> Array:
        return -np.expm1(f)

    def twist(self, f: Array) -> Array:
        return np.ones_like(f)

    def inverse(self, mean: float) -> float:
        return float(np.log(mean))


class Distribution(Map):
    """A distribution function whose density is known by its logarithm, `log_slope`, and by that one's derivative, `twist`."""

    def slope(self, f: Array) -> Array:
        return np.exp(self.log_slope(f))

    def bend(self, f: Array) -> Array:
        return self.slope(f) * self.twist(f)


class Symmetric(Distribution):
    """The distribution function of a density that is symmetric about zero: 1 − g(f) = g(−f)."""

    cdf: ClassVar[Any]
    log_cdf: ClassVar[Any]
    """Functions of SciPy."""

    def value(self, f: Array) -> Array:
        return np.asarray(self.cdf(f))

    def complement(self, f: Array) -> Array:
        return self.value(-f)

    def log_value(self, f: Array) -> Array:
        return np.asarray(self.log_cdf(f))

    def log_complement(self, f: Array) -> Array:
        return self.log_value(-f)


@stored("LogisticMap")
class LogisticMap(Symmetric):
    """μ = 1/(1 + e^−f)."""

    name, cdf, log_cdf = "logistic", expit, log_expit

    def slope(self, f: Array) -> Array:
        return np.asarray(expit(f) * expit(-f))

    def log_slope(self, f: Array) -> Array:
        return np.asarray(log_expit(f) + log_expit(-f))

    def twist(self, f: Array) -> Array:
        return np.asarray(-np.tanh(0.5 * f))

    def inverse(self, mean: float) -> float:
        return float(np.log(mean) - np.log1p(-mean))


@stored("ProbitMap")
class Probit(Symmetric):
    """μ = Φ(f), the standard normal distribution function."""

    name, cdf, log_cdf = "probit", ndtr, log_ndtr

    def log_slope(self, f: Array) -> Array:
        return np.asarray(-0.5 * f * f - 0.5 * np.log(2.0 * np.pi))

    def twist(self, f: Array) -> Array:
        return -f

    def inverse(self, mean: float) -> float:
        return float(ndtri(mean))


@stored("CloglogMap")
class Cloglog(Distribution):
    """μ = 1 − exp(−e^f): the complementary log-log link, of counts of which only zero or not is seen."""

    name = "cloglog"

    def value(self, f: Array) -> Array:
        return -np.expm1(-np.exp(f))

    def complement(self, f: Array) -> Array:
        return np.exp(-np.exp(f))

    def log_value(self, f: Array) -> Array:
        return np.where(f < -36.0, f, np.log(-np.expm1(-np.exp(np.maximum(f, -36.0)))))

    def log_complement(self, f: Array) -> Array:
        return -np.exp(f)

    def log_slope(self, f: Array) -> Array:
        return f - np.exp(f)

    def twist(self, f: Array) -> Array:
        return -np.expm1(f)

    def inverse(self, mean: float) -> float:
        return float(np.log(-np.log1p(-mean)))


@stored("SoftplusMap")
class Softplus(Map):
    """μ = ln(1 + e^f): positive, and linear for large scores."""

    name = "softplus"

    def value(self, f: Array) -> Array:
        return np.logaddexp(0.0, f)

    def slope(self, f: Array) -> Array:
        return np.asarray(expit(f))

    def bend(self, f: Array) -> Array:
        return np.asarray(expit(f) * expit(-f))

    def log_value(self, f: Array) -> Array:
        # Where e^f is below rounding beside 1, ln ln(1 + e^f) = f.
        return np.where(f < -36.0, f, np.log(np.logaddexp(0.0, np.maximum(f, -36.0))))

    def log_slope(self, f: Array) -> Array:
        return np.asarray(log_expit(f))

    def twist(self, f: Array) -> Array:
        return np.asarray(expit(-f))

    def inverse(self, mean: float) -> float:
        return float(mean + np.log(-np.expm1(-mean)))


MAPS: dict[str, type[Map]] = {m.name: m for m in (Identity, Exp, LogisticMap, Probit, Cloglog, Softplus)}
"""The name used in ``map="…"`` and its class."""
