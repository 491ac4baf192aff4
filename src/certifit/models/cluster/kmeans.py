"""k-means: k centers from which the rows are least far.

    minimize over c₁ … c_k    (1/Σs_i) Σ s_i min_c ‖x_i − c‖²

Nobody knows how to find the best ones quickly. Lloyd's iteration ends where neither labels nor centers alone can be improved;
how much better any other clustering could be is bounded by the spectrum of X (bound.py) or by a semidefinite program
(semidefinite.py), and the certificate says it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit._types import Array, Matrix
from certifit.models.cluster.batches import FromBatches
from certifit.models.cluster.bound import median_bound, spectral_bound
from certifit.models.cluster.centers import (
    N_CLUSTERS,
    Drawn,
    distinct_rows,
    lower_bound_certificate,
    warn_of_equal_rows,
    weighted_rows,
)
from certifit.models.cluster.rows import Run, rows_of
from certifit.models.cluster.semidefinite import check_few, semidefinite_bound
from certifit.models.cluster.starts import INIT, N_INIT, number_of_starts, start_centers
from certifit.parameters import OneOf, Parameter, Real
from certifit.parameters.common import MAX_ITER, TOL
from certifit.progress import progress

__all__ = ["KMeans"]


class KMeans(Drawn, FromBatches):
    """k-means by Lloyd's iteration, exact to the last label.

    With a lower bound on the cost of every clustering, which says how far this one can be from the best.

    Examples
    --------
    >>> from certifit import KMeans
    >>> X = [[0.0, 0.0], [0.0, 1.0], [9.0, 0.0], [9.0, 1.0]]
    >>> model = KMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.inertia_, round(model.lower_bound_, 6)
    (1.0, 1.0)
    >>> bool(model.predict([[1.0, 1.0]])[0] == model.labels_[0])
    True

    In two columns the spectrum says nothing about three clusters; a semidefinite program proves these best:

    >>> import numpy as np
    >>> X = np.vstack([np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]) + corner for corner in ([0, 0], [9, 0], [0, 9])])
    >>> for bound in ("auto", "sdp"):
    ...     model = KMeans(n_clusters=3, bound=bound, random_state=0).fit(X)
    ...     print(bound, round(model.lower_bound_ / model.inertia_, 3))
    auto 0.75
    sdp 1.0
    """

    n_clusters: int = N_CLUSTERS
    init: Any = INIT
    n_init: Any = N_INIT
    max_iter: int = MAX_ITER.but(300)
    tol: float = TOL.but(
        math.inf,
        "Wanted relative gap of the certificate: (cost − lower bound) / cost of one cluster. Below infinity, starts end when it "
        "is reached, and a fit that does not reach it says so.",
    )
    min_shift: float = Parameter(
        0.0,
        Real(0),
        "Stop when the squared moves of all centers sum to less than this share of the mean variance of the columns "
        "(scikit-learn's `tol`); 0 goes on to a fixed point.",
    )
    bound: str = OneOf(
        ("auto", "sdp"),
        'Where `lower_bound_` comes from. "auto": the spectrum of X and, of at most 500 rows, rows as centers, at less than the '
        'cost of the fit. "sdp": also a semidefinite program, of at most 500 distinct rows: seconds, for hundreds of '
        "decompositions of a matrix of all pairs; where groups are apart it proves the fit best.",
    )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KMeans:
        """Find the centers."""
        with progress(self.verbose, "k-means") as clock:
            X, weight, kept = weighted_rows(self, X, sample_weight)
            rows, mass = distinct_rows(*(X, weight) if kept.all() else (X[kept], weight[kept]))
            if self.bound == "sdp":
                check_few(rows.shape[0])
            starts = number_of_starts(self.init, self.n_init)
            effort = 20.0 * starts * rows.shape[0] * rows.shape[1] * self.n_clusters
            total, bound = spectral_bound(rows, mass, self.n_clusters, effort)
            best = self._best_of(starts, rows, mass, total, bound, clock)
            if bound < 0.5 * best.inertia:
                bound = max(bound, median_bound(rows, mass, best.centers))
            if self.bound == "sdp":
                bound = max(bound, self._semidefinite(best, rows, mass))
            if rows is not X or X.dtype == np.float32:  # the labels of all rows given, for the centers as they are kept
                best = self._relabeled(best, X, weight)
            self._keep(best, weight, rows.shape[0], total, bound, clock.seconds)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and give the labels."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _first_batch(self, X: Any, sample_weight: Any) -> KMeans:
        """The first batch is fitted as a whole."""
        return self.fit(X, sample_weight=sample_weight)

    def _best_of(self, starts: int, X: Matrix, weight: Array, total: float, bound: float, clock: Any) -> Run:
        """The cheapest of several runs; from the first that is close enough on, no more are made."""
        rows = rows_of(X, weight, self.n_jobs)
        rng = check_random_state(self.random_state)
        still = self.min_shift * total / float(weight.sum()) / X.shape[1]
        best: Run | None = None
        for start in range(starts):
            k = min(self.n_clusters, X.shape[0])  # of fewer distinct rows each is a center
            centers = start_centers(
                self.init, rows, X, weight, k if isinstance(self.init, str) else self.n_clusters, rng
            )
            run = rows.run(centers, self.max_iter, still)
            if best is None or run.inertia < best.inertia:
                best = run
            gap = (best.inertia - bound) / total if total > 0 else 0.0
            clock.update(start + 1, starts, gap)
            if gap <= self.tol < math.inf:
                break
        assert best is not None
        return best

    def _semidefinite(self, run: Run, X: Matrix, weight: Array) -> float:
        """The bound that takes longer than the fit; one cluster, or none that costs anything, has its bound already."""
        if self.n_clusters == 1 or run.inertia == 0.0 or not math.isfinite(run.inertia):
            return 0.0
        tol = self.tol if math.isfinite(self.tol) else 0.0
        return semidefinite_bound(X, weight, self.n_clusters, run.labels, cost=run.inertia, tol=tol)

    def _relabeled(self, run: Run, X: Matrix, weight: Array) -> Run:
        """Every row given has a label, also those of weight zero."""
        centers = np.resize(run.centers, (self.n_clusters, X.shape[1])).astype(X.dtype)
        labels, inertia = rows_of(X, weight, self.n_jobs).nearest(centers)
        return replace(run, centers=centers, labels=labels, inertia=inertia)

    def _keep(self, run: Run, weight: Array, distinct: int, total: float, bound: float, seconds: float) -> None:
        """The fitted attributes, and what is known of other clusterings."""
        k = self.n_clusters
        self.cluster_centers_, self.labels_, self.inertia_ = run.centers, run.labels, run.inertia
        self.n_iter_, self.lower_bound_, self._fixed = run.iterations, bound, run.fixed
        self._means, self.counts_ = run.centers.astype(np.float64), np.bincount(run.labels, weight, minlength=k)
        found = len(np.unique(self.labels_[weight > 0]))
        words = "A fixed point: rows are with their nearest centers, centers are the means of their rows."
        if found < k:
            words = f"X has {found} distinct rows, fewer than n_clusters={k}."
            warn_of_equal_rows(self, found)
        elif not run.fixed:
            words = f"Stopped after {run.iterations} iterations, before a fixed point."
        certificate = lower_bound_certificate(
            self.inertia_, bound, total, float(weight.sum()),
            k=k, distinct=distinct, tol=self.tol, iterations=run.iterations, seconds=seconds, words=words,
        )  # fmt: skip
        stopped = not run.fixed and self.min_shift == 0.0 and found == k
        self._certify(certificate.judged(-1.0) if stopped else certificate)
