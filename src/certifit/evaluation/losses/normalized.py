"""The categorical family with any map: probabilities π_k = g(f_k) / Σ_j g(f_j), of which g = exp is the softmax.

With ρ = g′/g the gradient in the scores is ρ·(π − y) and the expected curvature diag(ρ)(diag(π) − ππᵀ)diag(ρ). Only g = exp makes
the loss convex for every target: the curvature of −ln g must make up for that of ln Σ g, in every direction.
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses.base import Loss, constant_by_slopes
from certifit.evaluation.losses.labels.softmax import Simplex, Softmax, class_count
from certifit.evaluation.losses.maps import Map
from certifit.names import stored

__all__ = ["Normalized"]

FACTORS = (1.0, *(4.0**k for k in range(1, 9)), *(4.0**-k for k in range(1, 9)))


@stored("NormalizedLoss")
class Normalized(Loss):
    """−ln π_y with π_k = g(f_k)/Σ_j g(f_j): a map of one score, made to sum to one over the classes.

    Parameters
    ----------
    map : Map
        g, positive where it is used.
    n_classes : int or None, default=None
        K; None reads it off the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.evaluation.losses.normalized import Normalized
    >>> from certifit.losses import MAPS
    >>> loss = Normalized(MAPS["identity"]())
    >>> loss.predict(np.array([[1.0, 2.0, 5.0]])).round(3), loss.value(np.array([2]), np.array([[1.0, 2.0, 5.0]])).round(3)
    (array([[0.125, 0.25 , 0.625]]), array([0.47]))
    """

    name = "normalized"
    task = "multiclass"
    coupled = True

    def __init__(self, map: Map, n_classes: int | None = None) -> None:
        self.map, self.n_classes = map, n_classes

    @property
    def unproven(self) -> str:  # type: ignore[override]
        """Why no bound holds."""
        shown = self.map.name or type(self.map).__name__
        known = "is not" if self.map.name else "is not proven"
        return (
            f"The half deviance of categorical {known} convex in the scores of map={shown}: no bound is known, and the best "
            "scores may lie at the edge of what is possible, or be infinite."
        )

    def n_scores(self, y: Array) -> int:
        return class_count(y, self.n_classes)

    def _logarithms(self, f: Array) -> Array:
        """ln g; NaN where g is not positive."""
        with np.errstate(all="ignore"):
            return np.asarray(self.map.log_value(f))

    def _rates(self, f: Array) -> Array:
        """ρ = g′/g."""
        with np.errstate(all="ignore"):
            return np.exp(self.map.log_slope(f) - self.map.log_value(f))

    def value(self, y: Array, f: Array) -> Array:
        with np.errstate(all="ignore"):
            found = Softmax(self.n_classes).value(y, self._logarithms(f))
        return np.where(np.isnan(found), np.inf, found)

    def derivative(self, y: Array, f: Array) -> Array:
        return self._rates(f) * Softmax(self.n_classes).derivative(y, self._logarithms(f))

    def second_derivative(self, y: Array, f: Array) -> Array:
        """Diagonal of the expected curvature, shape (n, K)."""
        return Simplex(self.predict(f), rate=self._rates(f)).diagonal()

    def slopes(self, y: Array, f: Array) -> tuple[Array, Simplex]:
        """With the expected curvature (Fisher scoring)."""
        rate = self._rates(f)
        slope, curvature = Softmax(self.n_classes).slopes(y, self._logarithms(f))
        return rate * slope, Simplex(curvature.probability, rate=rate)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        """Infinite, which proves nothing: the loss is not convex."""
        return np.full(u.shape[0], np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        everywhere = np.full((y.shape[0], self.n_scores(y)), np.inf)
        return -everywhere, everywhere

    def optimal_constant(self, y: Array, weight: Array) -> Array:
        """Scores whose values are proportional to the shares of the classes, by a factor that the map can reach."""
        K = self.n_scores(y)
        share = weight @ y if y.ndim == 2 else np.bincount(y, weights=weight, minlength=K)
        share = np.maximum(share / weight.sum(), 1e-300)
        with np.errstate(all="ignore"):
            for factor in FACTORS:
                found = np.array([_score_of(self.map, float(factor * part)) for part in share])
                if np.allclose(self.map.value(found), factor * share, rtol=1e-6, atol=0.0):
                    return found
        return np.zeros(K)

    def predict(self, f: Array) -> Array:
        """Probabilities."""
        return Softmax(self.n_classes).predict(self._logarithms(f))

    def check_target(self, y: Array) -> None:
        Softmax(self.n_classes).check_target(y)


def _score_of(g: Map, mean: float) -> float:
    """The score at which the map is `mean`; the nearest there is where it is never so."""
    found = g.inverse(mean)
    if found is not None and np.isfinite(found):
        return found
    return float(np.clip(constant_by_slopes(lambda c: float(g.value(np.array(c))) - mean, None), -50.0, 50.0))
