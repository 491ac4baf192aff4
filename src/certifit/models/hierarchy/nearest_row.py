"""Clusterings that are found for the rows of the fit alone: another row goes with the nearest of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.data.gate import check_x
from certifit.models.neighbors.model import NearestNeighbors
from certifit.parameters import Declared, Fitted

__all__ = ["OfNearestRow"]


class OfNearestRow(Declared, ClusterMixin, CertifiedEstimator):
    """A clustering of rows, which new rows join by their nearest row."""

    n_jobs: int | None

    labels_: Array = Fitted("array of shape (n_samples,)", "The cluster of each row; 0 is the largest.")
    n_clusters_: int = Fitted("int", "How many clusters there are.")
    rows_: Array = Fitted(
        "array of shape (n_samples, n_features)", 'The rows, for `predict`; empty if X is "precomputed".'
    )

    def _row_metric(self) -> str:
        """How far rows are from each other; "precomputed": X says it."""
        return "euclidean"

    def _keep_rows(self, X: Array) -> None:
        self.rows_ = np.empty((0, X.shape[1])) if self._row_metric() == "precomputed" else X.copy()

    def predict(self, X: Any) -> Array:
        """The cluster of the nearest row of the fit.

        Parameters
        ----------
        X : array of shape (m, n_features)
            Rows; where the fit took a matrix between its n rows, that between the m new ones and these, of shape (m, n).
        """
        check_is_fitted(self, "labels_")
        X = check_x(self, X, reset=False, accept_sparse=False)
        if self._row_metric() == "precomputed":
            return np.asarray(self.labels_[self._nearest_given(X)])
        nearest = NearestNeighbors(n_neighbors=1, metric=self._row_metric(), n_jobs=self.n_jobs).fit(self.rows_)
        return np.asarray(self.labels_[nearest.kneighbors(X, return_distance=False)[:, 0]])

    def _nearest_given(self, X: Array) -> Array:
        """Which column of a given matrix is the nearest row."""
        return np.asarray(X.argmin(axis=1))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._row_metric() == "precomputed"
        return tags
