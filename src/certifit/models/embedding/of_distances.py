"""Maps of rows from their dissimilarities alone: what classical and metric scaling share."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator, KeepsPrecision, OfPairs
from certifit.certificate import Certificate
from certifit.data.gate import check_sample_weight, check_x, like_input
from certifit.models.cluster.around_rows import METRIC, check_dissimilarities, dissimilarities
from certifit.parameters import Declared, Fitted, Integer, Parameter
from certifit.parameters.common import N_JOBS
from certifit.parameters.methods import PAIRWISE
from certifit.representation.kernels.base import Kernel
from certifit.threads import n_threads

__all__ = ["OfDistances"]


class OfDistances(
    Declared, ClassNamePrefixFeaturesOutMixin, OfPairs, KeepsPrecision, CertifiedEstimator, takes={"fit.X": PAIRWISE}
):
    """Points whose distances are those of the rows, as far as that is possible."""

    n_components: int = Parameter(2, Integer(1), "Columns of the map.")
    metric: Any = METRIC
    n_jobs: int | None = N_JOBS

    embedding_: Array = Fitted("array of shape (n_samples, n_components)", "The points.")
    rows_: Array = Fitted(
        "array of shape (n, n_features)", 'The rows of the fit, for `transform`; empty if "precomputed".'
    )

    most_rows = 20_000  # their dissimilarities take 3 GiB, and a step as much again

    def _begin(self, X: Any, sample_weight: Any) -> tuple[Array, Array]:
        """Rows, or their dissimilarities, and weights."""
        X = check_x(self, X, reset=True, accept_sparse=False)
        weight = check_sample_weight(sample_weight, X.shape[0])
        self._metric = self.metric.bound(X[weight > 0]) if isinstance(self.metric, Kernel) else self.metric
        if X.shape[0] > self.most_rows:
            raise ValueError(
                f"{type(self).__name__} compares all pairs of rows, and so takes at most {self.most_rows:,} of them; got "
                f"{X.shape[0]:,}. Fit a sample of the rows, and `transform` the others."
            )
        if self._given:
            check_dissimilarities(X)
        self._kept = np.flatnonzero(weight > 0)
        self.rows_ = np.empty((0, X.shape[1])) if self._given else X[self._kept]
        return X, weight

    def _to_kept(self, X: Array) -> tuple[Array, int]:
        """Dissimilarities of X to the rows of the fit, in a unit in which squares are numbers, and its power of two."""
        if self._given:
            found = np.asarray(X[:, self._kept], dtype=np.float64)
            exponent = int(np.frexp(found.max(initial=0.0))[1])
            return np.ldexp(found, -exponent), exponent
        shift = 0
        if isinstance(self._metric, str) and self._metric != "cosine":
            shift = int(np.frexp(max(np.abs(X).max(initial=0.0), np.abs(self.rows_).max(initial=0.0)))[1])
        left, right = (np.ldexp(part.astype(np.float64), -shift) for part in (X, self.rows_))
        unit = 2 * shift if self._metric == "sqeuclidean" else shift
        return dissimilarities(self._metric, left, right, n_threads(self.n_jobs)), unit

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the points."""
        started = time.perf_counter()
        X, weight = self._begin(X, sample_weight)
        self._certify(self._find(X, weight, started))
        _check_range(self.embedding_)
        return self

    def _find(self, X: Array, weight: Array, started: float) -> Certificate:
        """Keep the points; what proves them."""
        raise TypeError(f"{type(self).__name__} must say how it finds its points.")

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the points, and give them."""
        return np.asarray(self.fit(X, y, sample_weight).embedding_)

    def transform(self, X: Any) -> Array:
        """Points of further rows among those of the fit.

        Parameters
        ----------
        X : array or data frame of shape (m, n_features)
            Rows; with ``metric="precomputed"`` their dissimilarities to the n rows of the fit, of shape (m, n).
        """
        check_is_fitted(self, "embedding_")
        X = check_x(self, X, reset=False, accept_sparse=False)
        return like_input(X, _check_range(self._points_of(X)))

    def _points_of(self, X: Array) -> Array:
        """Where further rows are, in double precision."""
        raise TypeError(f"{type(self).__name__} must say where further rows are.")

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])


def _check_range(points: Array) -> Array:
    """The points, if they are numbers."""
    if not np.isfinite(points).all():
        raise ValueError(
            "X holds numbers whose distances are beyond double precision: give large columns in another unit."
        )
    return points
