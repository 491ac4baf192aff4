"""Clusters from the bottom up: every row alone, then the two nearest clusters become one, until one is left.

    single      D(A, B) = least distance of a row of A to one of B
    complete    D(A, B) = largest such distance
    average     D(A, B) = mean of these distances
    Ward        D(A, B) = √(2|A||B|/(|A| + |B|)) ‖mean(A) − mean(B)‖: what a merge adds to the cost of k-means, in SciPy's unit

Each merge is the best one there is; the hierarchy as a whole is the best of nothing, but for two: the tree of single linkage is
the shortest spanning tree, so that each of its cuts keeps clusters as far apart as clusters can be; a cut of Ward's is a
clustering like k-means', and has its lower bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_x
from certifit.models.cluster.bound import spectral_bound
from certifit.models.cluster.centers import lower_bound_certificate
from certifit.models.hierarchy.linkage import LINKAGES, linkage_of_distances, linkage_of_rows
from certifit.models.hierarchy.structured import joined_rows, structured_linkage
from certifit.models.hierarchy.tree import CLUSTERS, DISSIMILARITY, THRESHOLD, Hierarchy
from certifit.parameters import Choice, Either, Fitted, Function, Given, Nothing, Parameter
from certifit.parameters.common import N_JOBS, VERBOSE
from certifit.progress import progress
from certifit.threads import n_threads

__all__ = ["AgglomerativeClustering"]


class AgglomerativeClustering(Hierarchy):
    """Hierarchical clustering from the bottom up: single, complete, average or Ward linkage.

    Examples
    --------
    >>> from certifit import AgglomerativeClustering
    >>> X = [[0.0], [1.0], [10.0], [12.0], [50.0]]
    >>> model = AgglomerativeClustering(linkage="average").fit(X)
    >>> model.linkage_matrix_
    array([[ 0.  ,  1.  ,  1.  ,  2.  ],
           [ 2.  ,  3.  ,  2.  ,  2.  ],
           [ 5.  ,  6.  , 10.5 ,  4.  ],
           [ 4.  ,  7.  , 44.25,  5.  ]])
    >>> model.labels_, model.cut(n_clusters=3), model.cut(height=1.5)
    (array([0, 0, 0, 0, 1]), array([0, 0, 1, 1, 2]), array([0, 0, 1, 2, 3]))
    """

    n_clusters: Any = CLUSTERS
    linkage: str = Parameter("ward", Choice(*LINKAGES), "How far clusters are from each other.")
    metric: str = DISSIMILARITY
    distance_threshold: float | None = THRESHOLD
    connectivity: Any = Parameter(
        None,
        Either(
            Nothing(),
            Function(),
            Given("array or sparse matrix of shape (n_samples, n_samples)", wrong=([[1.0]], "grid")),
        ),
        "Which rows are neighbors, by entries that are not zero, or a function of X that gives them: clusters merge only where "
        "an edge joins them. A graph in several parts gets an edge between the nearest rows of any two, with a warning. None: "
        "any two clusters may merge.",
    )
    verbose: int = VERBOSE
    n_jobs: int | None = N_JOBS

    n_connected_components_: int = Fitted("int", "In how many parts the graph was; 1 without one.")

    def fit(self, X: Any, y: Any = None) -> AgglomerativeClustering:
        """Find the hierarchy, and cut it."""
        with progress(self.verbose, f"{self.linkage} linkage") as clock:
            X = check_x(self, X, reset=True, accept_sparse=False, min_samples=2)
            self._check_together(X.shape[0])
            Z, self.n_connected_components_ = self._linkage(X)
            self._cut_tree(X, Z)
            self._certify(self._evidence(X, clock.seconds))
        return self

    def _linkage(self, X: Array) -> tuple[Array, int]:
        """The merges, and in how many parts the graph of rows was."""
        if self.connectivity is not None:
            return structured_linkage(X, joined_rows(self.connectivity, X), self.linkage, self.metric)
        threads = n_threads(self.n_jobs)
        if self.metric == "precomputed":
            return linkage_of_distances(X, self.linkage, threads), 1
        return linkage_of_rows(X, self.linkage, self.metric, threads), 1

    def _check_together(self, n: int) -> None:
        super()._check_together(n)
        if self.linkage == "ward" and self.metric != "euclidean":
            raise ValueError(
                f'linkage="ward" works on means of rows, and so needs metric="euclidean"; got {self.metric!r}. '
                'Choose linkage="average", or give the rows themselves.'
            )

    def _evidence(self, X: Array, seconds: float) -> Certificate:
        """What is known of other hierarchies or clusterings."""
        heights, n, k = self.linkage_matrix_[:, 2], self.n_leaves_, self.n_clusters_
        along = "" if self.connectivity is None else " along the graph"
        if self.linkage == "single":
            length = float(heights.mean())
            note = f"No other {k} clusters are farther apart than these, by their smallest distance{along}."
            claim = "shortest spanning tree" + (" of the graph" if along else "")
            return Certificate.exact(
                length, note if k > 1 else "", kind="spanning tree", iterations=n - 1, seconds=seconds, claim=claim
            )
        if self.linkage == "ward":
            exponent = int(np.frexp(heights.max())[1])  # so that the squares are numbers
            cost = 0.5 * float((np.ldexp(heights[: n - k], -exponent) ** 2).sum())
            total, bound = spectral_bound(np.ldexp(X.astype(np.float64), -exponent), np.ones(n), k)
            with np.errstate(over="ignore"):  # a cost beyond double precision is said to be so
                unit = float(np.ldexp(1.0, 2 * exponent))
            return lower_bound_certificate(
                cost * unit, bound * unit, total * unit, float(n),
                k=k, tol=math.inf, iterations=n - 1, seconds=seconds,
                words=f"Each merge costs least{along}; the cut need not be the best there is.",
            )  # fmt: skip
        return Certificate.absent(
            float(heights[-1]),
            f"Each merge joins the two nearest clusters{along}; no bound on other hierarchies is known. Objective: the last "
            "height.",
            scale=float(heights[-1]),
            iterations=n - 1,
            seconds=seconds,
        )
