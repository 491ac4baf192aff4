"""k-means on parts of the rows at a time: for rows that come one block after the other, or more than one can wait for.

Each center is the weighted mean of all rows that were ever assigned to it (batches.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit._types import Array, Matrix
from certifit.models.cluster.batches import FromBatches
from certifit.models.cluster.bound import spectral_bound
from certifit.models.cluster.centers import (
    N_CLUSTERS,
    Drawn,
    distinct_rows,
    lower_bound_certificate,
    weighted_rows,
)
from certifit.models.cluster.rows import rows_of
from certifit.models.cluster.starts import INIT, start_centers
from certifit.parameters import Integer, Parameter
from certifit.parameters.common import MAX_ITER, TOL
from certifit.progress import progress

__all__ = ["MiniBatchKMeans"]


class MiniBatchKMeans(Drawn, FromBatches):
    """k-means from batches of rows.

    Cheaper than `KMeans`, close to it, and without the claim of a fixed point.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MiniBatchKMeans
    >>> X = np.concatenate([np.zeros((500, 2)), np.full((500, 2), 9.0)]) + np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = MiniBatchKMeans(n_clusters=2, batch_size=100, random_state=0).fit(X)
    >>> np.abs(model.cluster_centers_).round(), bool(0 < model.lower_bound_ < model.inertia_)
    (array([[0., 0.],
           [9., 9.]]), True)
    """

    n_clusters: int = N_CLUSTERS
    init: Any = INIT
    max_iter: int = MAX_ITER.but(100, "Most passes over the rows.")
    batch_size: int = Parameter(1024, Integer(1), "Rows of a batch.")
    tol: float = TOL.but(
        math.inf, "Wanted relative gap of the certificate: (cost − lower bound) / cost of one cluster."
    )
    patience: int = Parameter(10, Integer(1), "Batches without a lower smoothed cost after which the passes end.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MiniBatchKMeans:
        """Go through the rows in random batches until the cost of the batches stays where it is."""
        with progress(self.verbose, "k-means") as clock:
            X, weight, kept = weighted_rows(self, X, sample_weight)
            rows, mass = distinct_rows(*(X, weight) if kept.all() else (X[kept], weight[kept]))
            rng = check_random_state(self.random_state)
            self._begin(rows, mass, rng)
            n = rows.shape[0]
            size = min(self.batch_size, n)
            best, waited, smooth, self.n_iter_ = math.inf, 0, math.nan, 0
            most = self.max_iter * -(-n // size)
            while self.n_iter_ < most and waited < self.patience:
                # Rows are drawn by their weight, so that a row of weight 2 is met as often as two rows.
                drawn = rng.choice(n, size=size, p=mass / mass.sum())
                cost = self._learn(rows[drawn], np.ones(size))
                share = min(1.0, 2.0 * size / (n + 1))
                smooth = cost if self.n_iter_ == 0 else (1 - share) * smooth + share * cost
                waited = 0 if smooth < best else waited + 1
                best = min(best, smooth)
                self.n_iter_ += 1
                clock.update(self.n_iter_, most, math.nan)
            self._finish(X, weight, rows.shape[0], clock.seconds)
        return self

    def _first_batch(self, X: Any, sample_weight: Any) -> MiniBatchKMeans:
        """The starting centers are rows of the first batch, which then moves them."""
        X, weight, kept = weighted_rows(self, X, sample_weight)
        self._begin(X[kept], weight[kept], check_random_state(self.random_state))
        self.n_iter_ = 0
        self._move(X, weight)
        return self

    def _begin(self, X: Matrix, weight: Array, rng: np.random.RandomState) -> None:
        k = min(self.n_clusters, X.shape[0]) if isinstance(self.init, str) else self.n_clusters
        few: Any = slice(None)
        if X.shape[0] > 3 * max(self.batch_size, k):  # a start from a part of the rows is as good
            few = rng.choice(X.shape[0], size=3 * max(self.batch_size, k), replace=False, p=weight / weight.sum())
        part, share = X[few], weight[few]
        centers = start_centers(self.init, rows_of(part, share, self.n_jobs), part, share, k, rng)
        self._means = np.resize(centers, (self.n_clusters, X.shape[1]))
        self.counts_ = np.zeros(self.n_clusters)

    def _finish(self, X: Matrix, weight: Array, distinct: int, seconds: float) -> None:
        self._nearest(X, weight)
        kept = weight > 0
        effort = float(self.n_iter_) * min(self.batch_size, X.shape[0]) * X.shape[1] * self.n_clusters
        total, self.lower_bound_ = spectral_bound(X[kept], weight[kept], self.n_clusters, effort)
        certificate = lower_bound_certificate(
            self.inertia_,
            self.lower_bound_,
            total,
            float(weight.sum()),
            k=self.n_clusters,
            distinct=distinct,
            tol=self.tol,
            iterations=self.n_iter_,
            seconds=seconds,
            words="From batches of rows, not a fixed point.",
        )
        self._certify(certificate)
