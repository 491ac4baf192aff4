"""Centers that learn from one batch of rows after the other.

Each center is the weighted mean of all rows that were ever assigned to it (Sculley 2010). A batch is assigned to the centers,
and each moves by  c += (m/M)(mean of its new rows − c),  m being their weight and M that of all it ever had.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.data.gate import check_sample_weight, check_x
from certifit.models.cluster.centers import AroundMeans
from certifit.models.cluster.rows import rows_of
from certifit.parameters import Fitted

__all__ = ["FromBatches"]


class FromBatches(AroundMeans):
    """k-means that can be told of further rows."""

    counts_: Array = Fitted("array of shape (n_clusters,)", "The weight of all rows that a center has seen.")

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more batch: each center moves to the mean of all rows that it ever had.

        Without a fit before, the first batch begins one. Of the rows of earlier batches nothing is kept, so `labels_`,
        `inertia_` and the certificate are of the last batch alone.
        """
        if not hasattr(self, "_means"):
            return self._first_batch(X, sample_weight)
        X = check_x(self, X, reset=False, accept_sparse=("csr",))
        weight = check_sample_weight(sample_weight, X.shape[0])
        self._move(X, weight)
        return self

    def _first_batch(self, X: Any, sample_weight: Any) -> Any:
        """Begin with these rows."""
        raise TypeError(f"{type(self).__name__} must say how it begins.")

    def _move(self, X: Matrix, weight: Array) -> None:
        """One batch, and what is known after it."""
        kept = weight > 0
        self._learn(X[kept], weight[kept])
        self.n_iter_ += 1
        self._nearest(X, weight)
        self.lower_bound_ = 0.0
        note = "Of the rows of earlier batches nothing is kept: there is nothing to compare their cost with."
        self._certify(Certificate.absent(self.inertia_ / float(weight.sum()), note, iterations=self.n_iter_))

    def _nearest(self, X: Matrix, weight: Array) -> None:
        """The centers in the precision of X, and the labels that they give."""
        self.cluster_centers_ = self._means.astype(X.dtype)
        self.labels_, self.inertia_ = rows_of(X, weight, self.n_jobs).nearest(self.cluster_centers_)

    def _learn(self, X: Matrix, weight: Array) -> float:
        """Move the centers by one batch; the mean cost of its rows before the move."""
        labels, cost = rows_of(X, weight, self.n_jobs).nearest(self._means)
        for c in np.unique(labels):
            own = labels == c
            mass = float(weight[own].sum())
            self.counts_[c] += mass
            mean = (X[own].T @ weight[own] if is_sparse(X) else weight[own] @ X[own].astype(np.float64)) / mass
            self._means[c] += (mass / self.counts_[c]) * (mean - self._means[c])
        return cost / float(weight.sum())
