"""k medoids: k rows from which the others are least far, under any dissimilarity.

    minimize over sets M of k rows    (1/Σs_i) Σ s_i min_{m ∈ M} d(x_i, m)

Medoids are exchanged for other rows one at a time until no exchange helps (FasterPAM, Schubert and Rousseeuw 2021). How much
better any other k rows could be is bounded by the Lagrangian dual of the problem, in which every row offers a price for being
served (Cornuéjols, Fisher and Nemhauser 1977): often the bound is within a few percent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

import certifit._native.medoids as _native
from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.cluster.around_rows import METRIC, AroundRows
from certifit.models.cluster.centers import N_CLUSTERS, lower_bound_certificate
from certifit.parameters import Fitted, Integer, Parameter
from certifit.parameters.common import MAX_ITER, N_JOBS, RANDOM_STATE, TOL
from certifit.progress import Progress
from certifit.threads import n_threads

__all__ = ["KMedoids"]

SAMPLE = 40  # rows of a sample for each medoid, beside a thousand


class KMedoids(AroundRows):
    """k medoids by exchanges, with a lower bound on the cost of every other k rows.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KMedoids
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [99.0]])
    >>> model = KMedoids(n_clusters=2, metric="manhattan", random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist()), model.inertia_
    ([2.0, 99.0], 20.0)
    >>> round(model.lower_bound_, 6)
    20.0
    """

    n_clusters: int = N_CLUSTERS
    metric: Any = METRIC
    n_init: int = Parameter(1, Integer(1), "Starts, of which the best is kept.")
    max_iter: int = MAX_ITER.but(10_000, "Most exchanges.")
    max_rows: int = Parameter(
        10_000,
        Integer(1),
        "Rows up to which the matrix of all dissimilarities is made. Of more, medoids of samples are tried on all rows.",
    )
    n_samples: int = Parameter(5, Integer(1), "Samples that are tried where there are more than `max_rows`.")
    bound_steps: int = Parameter(20, Integer(0), "Most steps of the lower bound, each a pass over all dissimilarities.")
    tol: float = TOL.but(math.inf, "Wanted relative gap of the certificate: (cost − lower bound) / cost of one medoid.")
    random_state: Any = RANDOM_STATE
    n_jobs: int | None = N_JOBS

    medoid_indices_: Array = Fitted("array of shape (n_clusters,)", "Numbers of the rows at the centers.")
    inertia_: float = Fitted("float", "The cost Σ s_i d(x_i, its medoid).")
    lower_bound_: float = Fitted("float", "What no k rows can go below, in the unit of `inertia_`.")
    n_iter_: int = Fitted("int", "Exchanges made.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMedoids:
        """Find the medoids."""
        clock, X, rows, weight = self._begin(X, sample_weight)
        rng = check_random_state(self.random_state)
        k = min(self.n_clusters, rows.shape[0])
        if rows.shape[0] <= max(self.max_rows, k):
            D = self._between(X, rows, rows)
            chosen, certificate = self._exchanged(D, weight, k, rng, clock)
        else:
            chosen, certificate = self._sampled(X, rows, weight, k, rng, clock)
        self._finish(X, rows[chosen])
        self.medoid_indices_ = self._chosen
        self._certify(certificate)
        return self

    def _exchanged(
        self, D: Array, weight: Array, k: int, rng: np.random.RandomState, clock: Progress
    ) -> tuple[Array, Certificate]:
        """Exchanges until none helps, and the bound."""
        threads = n_threads(self.n_jobs)
        best: tuple[float, Array, int, bool] | None = None
        for _ in range(self.n_init):
            chosen = _start(D, weight, k, rng)
            swaps, settled, cost = _native.swap(
                D, weight, chosen, np.empty(D.shape[0], dtype=np.int32), self.max_iter, threads
            )
            if best is None or cost < best[0]:
                best = (cost, chosen, swaps, settled)
        assert best is not None
        cost, chosen, self.n_iter_, settled = best
        one = _native.center(D, weight, threads)[1]
        wanted = cost - min(max(self.tol, 1e-9), 1e-3) * one
        bound = _native.bound(D, weight, chosen, self.bound_steps, wanted, threads) if cost > 0 else 0.0
        self.inertia_, self.lower_bound_ = cost, min(bound, cost)
        words = "No exchange of one medoid lowers the cost." if settled else f"Stopped after {self.max_iter} exchanges."
        certificate = lower_bound_certificate(
            cost,
            self.lower_bound_,
            one,
            float(weight.sum()),
            k=k,
            tol=self.tol,
            iterations=self.n_iter_,
            seconds=clock.seconds,
            words=words,
        )
        return chosen, certificate if settled else certificate.judged(-1.0)

    def _sampled(
        self, X: Array, rows: Array, weight: Array, k: int, rng: np.random.RandomState, clock: Progress
    ) -> tuple[Array, Certificate]:
        """Medoids of several samples, compared on all rows; the matrix of all dissimilarities is never made."""
        size = min(max(self.max_rows, k), 1000 + SAMPLE * k)
        best, least, swaps = np.arange(k), math.inf, 0
        for _ in range(self.n_samples):
            some = np.sort(rng.choice(rows.shape[0], size=size, replace=False, p=weight / weight.sum()))
            part = np.ones(size)
            D = self._between(X, rows[some], rows[some])
            chosen = _start(D, part, k, rng)
            labels = np.empty(size, dtype=np.int32)
            swaps += _native.swap(D, part, chosen, labels, self.max_iter, n_threads(self.n_jobs))[0]
            medoids = some[chosen]
            cost = float(weight @ self._between(X, rows, rows[medoids]).min(axis=1))
            if cost < least:
                best, least = medoids, cost
        self.inertia_, self.lower_bound_, self.n_iter_ = least, 0.0, swaps
        note = f"From {self.n_samples} samples of {size} of the {rows.shape[0]} rows: other rows were not tried as medoids."
        seconds = clock.seconds
        return best, Certificate.absent(least / float(weight.sum()), note, iterations=swaps, seconds=seconds)


def _start(D: Array, weight: Array, k: int, rng: np.random.RandomState) -> Array:
    """Rows far from each other: each drawn in proportion to its weight and its dissimilarity from those before."""
    chosen = np.empty(k, dtype=np.int64)
    away = np.ones(D.shape[0])
    for c in range(k):
        running = np.cumsum(weight * away)
        drawn = int(np.searchsorted(running, rng.random_sample() * running[-1], side="right"))
        if drawn == D.shape[0]:  # nothing is left to be far from: any row that is no medoid yet
            drawn = int(np.setdiff1d(np.arange(D.shape[0]), chosen[:c])[0])
        chosen[c] = drawn
        away = D[chosen[c]].copy() if c == 0 else np.minimum(away, D[chosen[c]])
    return chosen
