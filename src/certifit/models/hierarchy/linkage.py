"""The tree of merges, from rows or from their dissimilarities, as SciPy's linkage matrix.

Row t joins the clusters ``Z[t, 0] < Z[t, 1]`` at height ``Z[t, 2]`` into cluster n + t, which has ``Z[t, 3]`` rows.

    single      shortest spanning tree: Borůvka on a k-d tree for few columns, Prim otherwise     linear memory
    Ward        nearest-neighbor chain over the means of the clusters                             linear memory
    complete    nearest-neighbor chain over the matrix of distances                               n² numbers
    average     the same
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import certifit._native.linkage as _linkage
from certifit._types import Array
from certifit.evaluation.metrics.clusters import check_distances

__all__ = ["LINKAGES", "METRICS", "dissimilarities", "in_unit", "linkage_of_distances", "linkage_of_rows"]

LINKAGES = ("ward", "single", "complete", "average")
METRICS: dict[str, Any] = {
    "euclidean": "euclidean",
    "manhattan": "cityblock",
    "chebyshev": "chebyshev",
    "cosine": "cosine",
}
TREE_COLUMNS = 8  # beyond these, boxes are nearly as far as what is in them
TREE_ROWS = 1000
MOST_ENTRIES = 2**31  # 16 GiB


def in_unit(X: Array) -> tuple[Array, int]:
    """X in double precision and a power of two, taken out exactly, so that squares of differences are numbers."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    exponent = int(np.frexp(np.abs(X).max(initial=0.0))[1])
    return np.ldexp(X, -exponent), exponent


def linkage_of_rows(X: Array, method: str, metric: str, threads: int) -> Array:
    """The linkage matrix of the rows of X."""
    X, exponent = in_unit(X)
    if metric == "euclidean" and method == "ward":
        Z = _linkage.ward(X, threads)
    elif metric == "euclidean" and method == "single":
        Z = _linkage.single(X, X.shape[1] <= TREE_COLUMNS and X.shape[0] >= TREE_ROWS, threads)
    else:
        Z = _of_square(_distances(X, metric, threads), method, threads)
    if metric != "cosine":
        Z[:, 2] = np.ldexp(Z[:, 2], exponent)
    return np.asarray(Z)


def linkage_of_distances(D: Any, method: str, threads: int) -> Array:
    """The linkage matrix of a matrix of dissimilarities, which is checked and left as it is."""
    return _of_square(dissimilarities(D, "precomputed", threads), method, threads)


def dissimilarities(X: Array, metric: str, threads: int) -> Array:
    """All distances between the rows of X, or the checked copy of those that X holds."""
    if metric == "precomputed":
        D = np.array(check_distances(np.asarray(X, dtype=np.float64)), order="C")
        # Symmetric to the last bit: otherwise equally far clusters could each be nearer to the next, in a circle without end.
        return D if np.array_equal(D, D.T) else 0.5 * D + 0.5 * D.T
    X, exponent = in_unit(X)
    D = _distances(X, metric, threads)
    return D if metric == "cosine" or exponent == 0 else np.ldexp(D, exponent, out=D)


def _distances(X: Array, metric: str, threads: int) -> Array:
    """All distances between the rows of X, whose squares are numbers."""
    n = X.shape[0]
    if n * n > MOST_ENTRIES:
        raise ValueError(
            f"{n} rows have {n * n:.1e} distances, more than memory should hold: take a sample of the rows, or "
            'linkage="ward" or "single" with the Euclidean metric, which need no matrix.'
        )
    if metric == "euclidean":
        D = np.empty((n, n))
        _linkage.distances(X, D, threads)
    else:
        if metric == "cosine" and not X.any(axis=1).all():
            raise ValueError(f"row {int(np.flatnonzero(~X.any(axis=1))[0])} of X is zero and has no direction.")
        D = np.maximum(cdist(X, X, METRICS[metric]), 0.0)
        np.fill_diagonal(D, 0.0)
    return D


def _of_square(D: Array, method: str, threads: int) -> Array:
    """The linkage matrix of distances that may be overwritten."""
    return np.asarray(_linkage.single_given(D, threads) if method == "single" else _linkage.square(D, method, threads))
