"""Clusters from the top down: one of all rows, then the widest cluster falls into two, until every row is alone.

    height of a cluster = its diameter, the largest distance of two of its rows

A cluster falls apart as a party does (DIANA, Kaufman and Rousseeuw 1990): the row that is farthest from the others on average
leaves; then, one at a time, whoever is nearer to those who left than to those who stay follows. No part is wider than the
whole, so the splits make a tree like that of merges, and the same cuts.

How good k clusters are in their largest diameter is bounded: of k + 1 rows some two are in one cluster, whichever it is, so no k
clusters have all diameters below the least distance within any k + 1 rows. Rows far from each other give the bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.gate import check_x
from certifit.models.cluster.centers import lower_bound_certificate
from certifit.models.hierarchy.linkage import dissimilarities
from certifit.models.hierarchy.tree import CLUSTERS, DISSIMILARITY, THRESHOLD, Hierarchy
from certifit.parameters.common import N_JOBS, VERBOSE
from certifit.progress import progress
from certifit.threads import n_threads

__all__ = ["DivisiveClustering"]

ROUNDING = 1e-12  # of a diameter: what is no preference


class DivisiveClustering(Hierarchy):
    """Hierarchical clustering from the top down, with a lower bound on the diameters of every other clustering.

    Takes the matrix of all distances, and time in proportion to the squares of the sizes of all clusters of the tree.

    Examples
    --------
    >>> from certifit import DivisiveClustering
    >>> X = [[0.0], [1.0], [10.0], [12.0], [50.0]]
    >>> model = DivisiveClustering().fit(X)
    >>> model.linkage_matrix_[:, 2], model.cut(n_clusters=3)  # the heights are diameters
    (array([ 1.,  2., 12., 50.]), array([0, 0, 1, 1, 2]))
    >>> model.certificate_.objective, model.certificate_.bound  # the largest diameter of two groups, and of any two
    (12.0, 12.0)
    """

    n_clusters: Any = CLUSTERS
    metric: str = DISSIMILARITY
    distance_threshold: float | None = THRESHOLD
    verbose: int = VERBOSE
    n_jobs: int | None = N_JOBS

    most_rows = 20_000  # a tree that sheds one row at a time takes n³/3 steps

    def fit(self, X: Any, y: Any = None) -> DivisiveClustering:
        """Find the hierarchy, and cut it."""
        with progress(self.verbose, "divisions") as clock:
            X = check_x(self, X, reset=True, accept_sparse=False, min_samples=2)
            self._check_together(X.shape[0])
            if X.shape[0] > self.most_rows:
                raise ValueError(
                    f"DivisiveClustering compares all pairs of rows, and so takes at most {self.most_rows:,} of them; got "
                    f"{X.shape[0]:,}. Fit a sample of the rows, and `predict` the others."
                )
            D = dissimilarities(X, self.metric, n_threads(self.n_jobs))
            self._cut_tree(X, _divided(D))
            self._certify(self._evidence(D, clock.seconds))
        return self

    def _evidence(self, D: Array, seconds: float) -> Certificate:
        """The largest diameter of the clusters, beside what any as many clusters must have."""
        heights, n, k = self.linkage_matrix_[:, 2], self.n_leaves_, self.n_clusters_
        widest = float(heights[n - k - 1]) if k < n else 0.0
        return lower_bound_certificate(
            widest, _least_diameter(D, k), float(heights[-1]), 1.0,
            k=k, tol=math.inf, iterations=n - 1, seconds=seconds,
            words="Each division parts the widest cluster. Cost: the largest diameter of a cluster.",
        )  # fmt: skip


@dataclass(frozen=True)
class _Node:
    """A cluster that falls apart."""

    height: float
    size: int
    parts: list[int]
    """Rows as they are, further nodes as n + their number."""


def _divided(D: Array) -> Array:
    """The tree of divisions as SciPy's linkage matrix."""
    n = D.shape[0]
    nodes: list[_Node] = []
    waiting: list[tuple[Array, Array, list[int] | None]] = [(np.arange(n), D, None)]
    while waiting:
        rows, block, parent = waiting.pop()
        if rows.shape[0] == 1:
            assert parent is not None
            parent.append(int(rows[0]))
            continue
        node = _Node(float(block.max()), rows.shape[0], [])
        if parent is not None:
            parent.append(n + len(nodes))
        nodes.append(node)
        left = _leaving(block, node.height)
        for part in (~left, left):
            waiting.append((rows[part], block[np.ix_(part, part)], node.parts))
    # Parts come after their whole, so that of equal heights the later one is merged first.
    order = sorted(range(n - 1), key=lambda i: (nodes[i].height, -i))
    place = np.concatenate([np.arange(n), n + np.argsort(order)])
    return np.array(
        [[*sorted(place[part] for part in nodes[i].parts), nodes[i].height, nodes[i].size] for i in order],
        dtype=np.float64,
    )


def _leaving(block: Array, diameter: float) -> Array:
    """Which rows of a cluster leave it."""
    m = block.shape[0]
    to_staying = block.sum(axis=1)
    leaving = np.zeros(m, dtype=bool)
    to_leaving = np.zeros(m)
    row = int(np.argmax(to_staying))
    for gone in range(1, m):
        leaving[row] = True
        to_leaving += block[row]
        to_staying -= block[row]
        if gone == m - 1:
            break
        prefers = to_staying / (m - gone - 1) - to_leaving / gone
        prefers[leaving] = -np.inf
        row = int(np.argmax(prefers))
        if prefers[row] <= ROUNDING * diameter:
            break
    return leaving


def _least_diameter(D: Array, k: int) -> float:
    """What the largest diameter of any k clusters cannot go below: the least distance within k + 1 rows far from each other."""
    if k >= D.shape[0]:
        return 0.0
    away, least = D[int(np.argmax(D.max(axis=1)))].copy(), math.inf
    for _ in range(k):
        row = int(np.argmax(away))
        least = min(least, float(away[row]))
        np.minimum(away, D[row], out=away)
    return least
