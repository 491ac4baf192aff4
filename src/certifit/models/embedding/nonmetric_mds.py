"""Scaling by ranks: points whose distances rise where the given ones do.

    minimize over y₁ … y_n and f    Σ s_i s_j (f(d_ij) − ‖y_i − y_j‖)² / Σ s_i s_j f(d_ij)²        f non-decreasing, f(0) = 0

Only the order of the dissimilarities counts (Kruskal 1964), so the scale of f is free: Σ s_i s_j f(d_ij)² is held at
Σ s_i s_j d_ij². For given points the best f is the isotonic regression of their distances, brought to that scale; for given f a
step is that of metric scaling. Neither raises the stress.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.spatial.distance import cdist

from certifit._types import Array
from certifit.models.embedding.metric_mds import MetricMDS, Stress
from certifit.threads import n_threads

__all__ = ["NonmetricMDS"]


class NonmetricMDS(MetricMDS):
    """Non-metric multidimensional scaling: points from the order of dissimilarities alone.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MetricMDS, NonmetricMDS
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> D = np.linalg.norm(X[:, None] - X, axis=2)
    >>> model = NonmetricMDS(metric="precomputed").fit(D)
    >>> bool((np.diff(model.history_) <= 0).all()), bool(model.stress_ < MetricMDS().fit(X).stress_)
    (True, True)
    """

    most_rows = 10_000  # their pairs, in order and with what belongs to each, take 8 GiB

    def _stress_of(self, D: Array, weight: Array) -> _Ranks:
        return _Ranks(D, weight, n_threads(self.n_jobs))

    def _first(self, D: Array, weight: Array, given: Array | None, rng: np.random.RandomState, start: int) -> Array:
        """Points that were drawn have no order yet: they begin with a step of metric scaling."""
        points = super()._first(D, weight, given, rng, start)
        drawn = start > 0 or (isinstance(self.init, str) and self.init == "random")
        return Stress(D, weight, n_threads(self.n_jobs)).at(points)[1] if drawn else points

    def _disparities(self, D: Array) -> Array:
        """f of further dissimilarities, in a straight line between those of the fit, and level beyond them."""
        return np.asarray(np.interp(D, *self._rising))

    def _keep_fit(self, stress: Stress) -> None:
        assert isinstance(stress, _Ranks)
        self._rising = stress.rising(self._points)


class _Ranks(Stress):
    """The stress at points with the best f for them."""

    def __init__(self, D: Array, weight: Array, threads: int) -> None:
        super().__init__(D, weight, threads)
        self._known = D > 0
        self._values, at = np.unique(D[self._known], return_inverse=True)
        self._at = at.ravel()
        # Products of two shares, each a number, may vanish; a pair without any weight has no level.
        self._pairs = np.maximum(np.outer(self.share, self.share)[self._known], np.finfo(np.float64).tiny)
        self._mass = np.bincount(self._at, self._pairs, minlength=self._values.size)

    def _levels(self, drawn: Array) -> Array:
        """f at each value of D, from the distances of points."""
        if not self._values.size:
            return self._values
        mean = np.bincount(self._at, self._pairs * drawn[self._known], minlength=self._values.size) / self._mass
        levels = isotonic_regression(mean, weights=self._mass).x
        size = float(self._mass @ (levels * levels))
        # Points that are all equal tell nothing of f: the dissimilarities themselves are as good.
        return levels * np.sqrt(self.total / size) if size > 0 else self._values

    def target(self, Y: Array) -> Callable[[slice], Array]:
        """f of the dissimilarities, for blocks of rows."""
        disparity = np.zeros_like(self.D)
        disparity[self._known] = self._levels(cdist(Y, Y))[self._at]
        return lambda rows: disparity[rows]

    def rising(self, Y: Array) -> tuple[Array, Array]:
        """The ends of the steps of f, and its values there."""
        levels = self._levels(cdist(Y, Y))
        steps = np.diff(levels) > 0
        ends = np.concatenate([[True], steps]) | np.concatenate([steps, [True]]) if levels.size else np.zeros(0, bool)
        return np.concatenate([[0.0], self._values[ends]]), np.concatenate([[0.0], levels[ends]])
