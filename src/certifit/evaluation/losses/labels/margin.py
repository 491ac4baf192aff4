"""Binary losses of the margin m = (2y − 1)·f, for targets y in {0, 1}."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import entr, expit, xlog1py, xlogy

import certifit._native.newton as _newton
import certifit._native.products as _products
from certifit._types import Array, Matrix
from certifit.evaluation.losses.base import Fused, Loss
from certifit.evaluation.losses.numbers.quantile import PiecewiseLinear, two_sided
from certifit.evaluation.losses.terms import TwoSidedHinge


def check_binary(y: Array, name: str) -> None:
    """Targets must be 0 or 1."""
    bad = (y != 0) & (y != 1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(f"y must be 0 or 1 for the {name} loss; got {y[row]:g} at row {row}.")


class Logistic(Loss):
    """ℓ(y, f) = ln(1 + e^f) − y·f − H(y) with y the probability of the positive class (0 or 1 for hard labels).

    H(y) is the entropy of y, zero for hard labels, so that the minimum over f is zero.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Logistic
    >>> Logistic().value(np.array([1.0, 0.5]), np.array([0.0, 0.0])).round(4)
    array([0.6931, 0.    ])
    """

    name = "logistic"
    kernel = ("logistic",)
    convex = True
    task = "binary"
    smoothness = 0.25

    def value(self, y: Array, f: Array) -> Array:
        # What a label takes off a score is taken off before the logarithm, which is small where they agree, is added.
        soft = (np.maximum(f, 0.0) - y * f) + np.log1p(np.exp(-np.abs(f)))
        return np.maximum(soft - entr(y) - entr(1.0 - y), 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        # π − y as (1 − y)·π − y·(1 − π): for hard labels nothing cancels, however large the score.
        return (1.0 - y) * expit(f) - y * expit(-f)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return expit(f) * expit(-f)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        rare = np.minimum(y + u, (1.0 - y) - u)  # has digits that 1 − (the larger) does not
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = xlogy(rare, rare) + xlog1py(1.0 - rare, -rare)
        inside = inside + entr(y) + entr(1.0 - y)
        return np.where(rare >= 0, inside, np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        return -y, 1.0 - y

    def optimal_constant(self, y: Array, weight: Array) -> float:
        # A share may be rounded to more than one: the two sides are summed by themselves.
        with np.errstate(divide="ignore"):
            return float(np.clip(np.log(weight @ y) - np.log(weight @ (1.0 - y)), -800.0, 800.0))

    def predict(self, f: Array) -> Array:
        return expit(f)

    def check_target(self, y: Array) -> None:
        if ((y < 0) | (y > 1)).any():
            row = int(np.flatnonzero((y < 0) | (y > 1))[0])
            raise ValueError(f"y must be a probability in [0, 1] for the logistic loss; got {y[row]:g} at row {row}.")


class HardLogistic(Logistic):
    """The logistic loss for targets that are exactly 0 or 1: fewer operations, and slopes that never round to zero."""

    convex = True

    def value(self, y: Array, f: Array) -> Array:
        """ln(1 + e^(−m)) of the margin m."""
        m = (2.0 * y - 1.0) * f
        return np.log1p(np.exp(-np.abs(m))) - np.minimum(m, 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        """−s/(1 + e^m) with the sign s of the class."""
        s = 2.0 * y - 1.0
        return -s * expit(-s * f)

    def second_derivative(self, y: Array, f: Array) -> Array:
        """π(1 − π)."""
        rare = expit(-np.abs(f))
        return rare * (1.0 - rare)

    def slopes(self, y: Array, f: Array) -> tuple[Array, Array]:
        """Both from one exponential."""
        if _plain(y, f):
            theta, h = _newton.logistic_slopes(y, f)
            return theta, h
        small = np.exp(-np.abs(f))
        likely = 1.0 / (1.0 + small)
        rare = small * likely
        wrong = np.where((f > 0.0) == (y > 0.5), rare, likely)  # the probability of the other class
        return (1.0 - 2.0 * y) * wrong, rare * likely

    def fused(self, X: Matrix, y: Array, p: Array, w: Array, b: Any, threads: int) -> Fused | None:
        """Scores, slopes and their sums in one pass."""
        if y.ndim > 1:
            return None
        w = np.ascontiguousarray(w, dtype=np.float64)
        f, theta, h, sums = _products.logistic(X, y, p, w, float(b), threads)
        return Fused(None, float(sums[-1]), sums[:-1], f, h, lambda: theta)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        """Negative entropy of the probability |u| of the other class."""
        q = (1.0 - 2.0 * y) * u
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = np.where(q > 0.0, q * np.log(q), 0.0) + np.where(q < 1.0, (1.0 - q) * np.log1p(-q), 0.0)
        return np.where((q >= 0.0) & (q <= 1.0), inside, np.inf)

    def risk(self, y: Array, p: Array, f: Array) -> float:
        """In one native pass, where all scores are finite."""
        found = _newton.logistic_risk(y, p, f) if _plain(y, p, f) else np.nan
        return found if np.isfinite(found) else super().risk(y, p, f)

    def conjugate_risk(self, y: Array, p: Array, u: Array, start: Array | None = None) -> float:
        """In one native pass."""
        return _newton.logistic_conjugate(y, p, u) if _plain(y, p, u) else super().conjugate_risk(y, p, u, start)

    def into_domain(self, y: Array, u: Array) -> Array:
        """The slopes themselves where all are inside."""
        q = (1.0 - 2.0 * y) * u
        return u if q.min() >= 0.0 and q.max() <= 1.0 else super().into_domain(y, u)

    def constant_risks(self, y: Array, p: Array, constant: float) -> tuple[float, float]:
        """From the shares of the two classes."""
        ones, zeros = float(p @ y), float(p @ (1.0 - y))
        at_constant = ones * float(np.logaddexp(0.0, -constant)) + zeros * float(np.logaddexp(0.0, constant))
        return at_constant, (ones + zeros) * float(np.log(2.0))


def _shares(y: Array, p: Array) -> tuple[float, float]:
    """The weights of the two classes."""
    positive = y > 0.5
    ones = float(p @ positive)
    return ones, float(p @ ~positive)


def _plain(*vectors: Array) -> bool:
    """Whether native passes can read them."""
    return all(v.ndim == 1 and v.dtype == np.float64 and v.flags.c_contiguous for v in vectors)


class OfMargin(Loss):
    """A loss of targets that are 0 or 1 which falls as the margin grows, and rises without end on the wrong side."""

    task = "binary"

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        positive = y > 0.5
        return np.where(positive, -np.inf, 0.0), np.where(positive, 0.0, np.inf)

    def check_target(self, y: Array) -> None:
        check_binary(y, self.name)


class Hinge(PiecewiseLinear, OfMargin):
    """ℓ(y, f) = max(0, 1 − m) with the margin m = (2y − 1)·f (support vector machine).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Hinge
    >>> Hinge().value(np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    array([0.5, 1.5])
    """

    name = "hinge"
    kernel = ("hinge", "threshold")
    convex = True
    threshold = 1.0

    def hinge_terms(self, y: Array) -> TwoSidedHinge:
        positive = y > 0.5
        return two_sided(
            np.where(positive, self.threshold, -np.inf),
            np.where(positive, np.inf, -self.threshold),
            np.where(positive, 1.0, 0.0),
            np.where(positive, 0.0, 1.0),
        )

    def optimal_constant(self, y: Array, weight: Array) -> float:
        """On the kink of the heavier class; where both weigh the same, in the middle."""
        ones, zeros = _shares(y, weight)
        even = abs(ones - zeros) <= 1e-12 * (ones + zeros)
        return 0.0 if even else self.threshold if ones > zeros else -self.threshold

    def constant_risks(self, y: Array, p: Array, constant: float) -> tuple[float, float]:
        """From the shares of the two classes."""
        ones, zeros = _shares(y, p)
        at_constant = ones * max(self.threshold - constant, 0.0) + zeros * max(self.threshold + constant, 0.0)
        return at_constant, (ones + zeros) * self.threshold


class PerceptronLoss(Hinge):
    """ℓ(y, f) = max(0, −m) with the margin m = (2y − 1)·f.

    Zero scores minimize it, whatever the classes; what users mean by it is the perceptron's *algorithm* (`Perceptron`, which
    ``SGDClassifier(loss="perceptron")`` runs too).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import PerceptronLoss
    >>> loss, y = PerceptronLoss(), np.array([1.0, 0.0])
    >>> loss.value(y, np.array([0.5, 0.5])), loss.value(y, np.zeros(2))
    (array([0. , 0.5]), array([0., 0.]))
    """

    name = "perceptron"
    kernel = ("hinge", "threshold")
    convex = True
    threshold = 0.0
    trivial = (
        "Zero scores minimize the perceptron loss, whatever the classes: nothing was learned. "
        "The perceptron's algorithm is `Perceptron`."
    )


class SquaredHinge(OfMargin):
    """ℓ(y, f) = ½·max(0, 1 − m)² with the margin m = (2y − 1)·f.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import SquaredHinge
    >>> SquaredHinge().value(np.ones(3), np.array([-1.0, 0.0, 1.0]))
    array([2. , 0.5, 0. ])
    """

    name = "squared_hinge"
    kernel = ("squared_hinge",)
    convex = True
    smoothness = 1.0

    def value(self, y: Array, f: Array) -> Array:
        return 0.5 * np.maximum(1.0 - (2.0 * y - 1.0) * f, 0.0) ** 2

    def derivative(self, y: Array, f: Array) -> Array:
        sign = 2.0 * y - 1.0
        return -sign * np.maximum(1.0 - sign * f, 0.0)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.where((2.0 * y - 1.0) * f < 1.0, 1.0, 0.0)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        v = (2.0 * y - 1.0) * u
        return np.where(v <= 0, v * (1.0 + 0.5 * v), np.inf)


class ModifiedHuber(SquaredHinge):
    """ℓ(y, f) = ½·max(0, 1 − m)² for a margin m = (2y − 1)·f ≥ −1, and −2m below: rows far on the wrong side pull no harder.

    The best score is 2p − 1 for a probability p of the positive class, so that scores tell probabilities (Zhang 2004).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import ModifiedHuber
    >>> ModifiedHuber().value(np.array([1.0, 1.0, 0.0]), np.array([0.0, -3.0, 1.0]))
    array([0.5, 6. , 2. ])
    """

    name = "modified_huber"
    kernel = ("modified_huber",)
    convex = True

    def value(self, y: Array, f: Array) -> Array:
        missing = np.maximum(1.0 - (2.0 * y - 1.0) * f, 0.0)
        inner = np.minimum(missing, 2.0)
        return inner * (missing - 0.5 * inner)

    def derivative(self, y: Array, f: Array) -> Array:
        sign = 2.0 * y - 1.0
        return -sign * np.clip(1.0 - sign * f, 0.0, 2.0)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.where(np.abs(f) < 1.0, 1.0, 0.0)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        return np.where(np.abs(u) <= 2.0, super().conjugate(y, u), np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        positive = y > 0.5
        return np.where(positive, -2.0, 0.0), np.where(positive, 0.0, 2.0)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        return float((weight @ y - weight @ (1.0 - y)) / weight.sum())

    def predict(self, f: Array) -> Array:
        return 0.5 * (np.clip(f, -1.0, 1.0) + 1.0)


class Exponential(OfMargin):
    """ℓ(y, f) = e^(−m) with the margin m = (2y − 1)·f (AdaBoost); the best score is half the log odds.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Exponential
    >>> best = Exponential().optimal_constant(np.array([1.0, 1.0, 1.0, 0.0]), np.ones(4))
    >>> round(float(Exponential().predict(best)), 4)  # three of four rows
    0.75
    """

    name = "exponential"
    kernel = ("exponential",)
    convex = True

    def value(self, y: Array, f: Array) -> Array:
        return np.exp(-(2.0 * y - 1.0) * f)

    def derivative(self, y: Array, f: Array) -> Array:
        sign = 2.0 * y - 1.0
        return -sign * np.exp(-sign * f)

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.exp(-(2.0 * y - 1.0) * f)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        a = -(2.0 * y - 1.0) * u
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(a >= 0, xlogy(a, a) - a, np.inf)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        with np.errstate(divide="ignore"):  # by both sides: a share may be rounded to more than one
            return float(np.clip(0.5 * (np.log(weight @ y) - np.log(weight @ (1.0 - y))), -700.0, 700.0))

    def predict(self, f: Array) -> Array:
        return expit(2.0 * f)
