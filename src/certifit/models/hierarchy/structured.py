"""Merges along a graph: two clusters become one only where an edge joins a row of one to a row of the other.

    single      least distance along the edges between two clusters: the shortest spanning tree of the graph
    complete    largest of the distances of their parts, of those that edges join
    average     mean of the distances of their parts by size, of those that edges join
    Ward        √(2|A||B|/(|A| + |B|)) ‖mean(A) − mean(B)‖, as without a graph

Single linkage needs the tree alone. For the others a heap holds every pair of joined clusters; what it says of clusters that
are gone is passed over. Of m edges it takes about m log m steps and linear memory. A merge may bring its cluster nearer to a
third one than its parts were: but for single linkage, heights need not rise.
"""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial.distance import cdist

from certifit._types import Array, Matrix
from certifit.models.hierarchy.linkage import METRICS, dissimilarities, in_unit

__all__ = ["joined_rows", "structured_linkage"]

Pairs = Callable[[Array, Array], Array]
Merged = Callable[[int, int, int, dict[int, float], dict[int, float]], dict[int, float]]


def joined_rows(given: Any, X: Array) -> Matrix:
    """The graph that `connectivity` gives: symmetric, without loops; an error where it is no graph of the rows of X.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.hierarchy.structured import joined_rows
    >>> joined_rows([[1, 1, 0], [0, 1, 0], [0, 1, 1]], np.zeros((3, 1))).toarray()
    array([[False,  True, False],
           [ True, False,  True],
           [False,  True, False]])
    """
    graph = given(X) if callable(given) else given
    n = X.shape[0]
    if not sp.issparse(graph):
        graph = np.asarray(graph)
    if graph.shape != (n, n):
        raise ValueError(
            f"connectivity must have shape (n_samples, n_samples) = {(n, n)}, an entry for each pair of rows; got {graph.shape}."
        )
    if graph.dtype.kind not in "biuf":
        raise TypeError(f"connectivity must hold numbers or truth values; got {graph.dtype}.")
    edges = sp.coo_array(graph)
    if np.isnan(edges.data).any():
        raise ValueError("connectivity contains NaN: give 0 where no edge joins two rows.")
    used = (edges.data != 0) & (edges.row != edges.col)
    ends = np.concatenate([edges.row[used], edges.col[used]]), np.concatenate([edges.col[used], edges.row[used]])
    return sp.coo_array((np.ones(ends[0].size, dtype=bool), ends), shape=(n, n)).tocsr()


def structured_linkage(X: Array, graph: Matrix, method: str, metric: str) -> tuple[Array, int]:
    """The linkage matrix of rows, or of their dissimilarities, along a graph; and how many parts the graph had.

    A graph in several parts gets an edge between the nearest rows of any two of them.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.hierarchy.structured import joined_rows, structured_linkage
    >>> X = np.array([[0.0], [1.0], [9.0], [1.5]])  # the last row is joined to the third alone
    >>> path = joined_rows(np.eye(4, k=1), X)
    >>> structured_linkage(X, path, "single", "euclidean")[0]
    array([[0. , 1. , 1. , 2. ],
           [2. , 3. , 7.5, 2. ],
           [4. , 5. , 8. , 4. ]])
    """
    exponent = 0
    if metric == "precomputed":
        X = dissimilarities(X, metric, 1)
    else:
        X, exponent = in_unit(X)
    between, away = _measures(X, metric)
    parts, part = connected_components(graph, directed=False)
    if parts > 1:
        warnings.warn(
            f"the number of connected components of the connectivity matrix is {parts} > 1. Completing it to avoid stopping "
            "the tree early.",
            UserWarning,
            stacklevel=3,
        )
        graph = graph + _bridges(part, parts, between)
    edges = sp.triu(graph, k=1).tocoo()
    length = away(edges.row, edges.col)
    if method == "single":
        Z = _along_tree(edges, length)
    else:
        merged = _Means(X).merged if method == "ward" else _Sizes(X.shape[0], method).merged
        Z = _merge(X.shape[0], edges.row, edges.col, length, merged)
    if metric != "cosine":
        Z[:, 2] = np.ldexp(Z[:, 2], exponent)
    return Z, int(parts)


def _measures(X: Array, metric: str) -> tuple[Pairs, Pairs]:
    """Distances of all rows of one set to all of another, and of rows one by one; rows are numbers of them."""
    if metric == "precomputed":
        return lambda i, j: X[np.ix_(i, j)], lambda i, j: X[i, j]
    if metric == "cosine":
        length = np.linalg.norm(X, axis=1)
        if not length.all():
            raise ValueError(f"row {int(np.flatnonzero(length == 0)[0])} of X is zero and has no direction.")
        X = X / length[:, None]
    single: dict[str, Callable[[Array], Array]] = {
        "euclidean": lambda step: np.linalg.norm(step, axis=1),
        "manhattan": lambda step: np.abs(step).sum(axis=1),
        "chebyshev": lambda step: np.abs(step).max(axis=1),
        "cosine": lambda step: 0.5 * (step * step).sum(axis=1),
    }
    return lambda i, j: cdist(X[i], X[j], METRICS[metric]), lambda i, j: single[metric](X[i] - X[j])


def _bridges(part: Array, parts: int, between: Pairs) -> Matrix:
    """An edge between the nearest rows of any two parts of a graph."""
    members = [np.flatnonzero(part == p) for p in range(parts)]
    ends = []
    for one, other in combinations(members, 2):
        at = np.unravel_index(int(between(one, other).argmin()), (one.size, other.size))
        ends.append((one[at[0]], other[at[1]]))
    rows, columns = np.array(ends).T
    found = sp.coo_array((np.ones(rows.size, dtype=bool), (rows, columns)), shape=(part.size, part.size))
    return (found + found.T).tocsr()


def _along_tree(edges: Any, length: Array) -> Array:
    """The linkage matrix of single linkage, which merges along the shortest spanning tree and no other edges."""
    n = edges.shape[0]
    order = np.argsort(length, kind="stable")
    place = np.empty(order.size)  # in this order: a length of zero would be no edge
    place[order] = np.arange(1.0, order.size + 1.0)
    ends = (
        edges.row.astype(np.int32, copy=False),
        edges.col.astype(np.int32, copy=False),
    )  # SciPy 1.13 knows no wider ones
    tree = minimum_spanning_tree(sp.coo_array((place, ends), shape=(n, n)).tocsr()).tocoo()
    merges = np.argsort(tree.data)
    Z, top, size = np.empty((n - 1, 4)), list(range(2 * n - 1)), [1] * n

    def cluster(row: int) -> int:
        while top[row] != row:
            top[row] = row = top[top[row]]
        return row

    Z[:, 2] = length[order[tree.data[merges].astype(np.int64) - 1]]
    for t, (i, j) in enumerate(zip(tree.row[merges].tolist(), tree.col[merges].tolist(), strict=True)):
        a, b = sorted((cluster(i), cluster(j)))
        top[a] = top[b] = n + t
        size.append(size[a] + size[b])
        Z[t, 0], Z[t, 1], Z[t, 3] = a, b, size[-1]
    return Z


def _merge(n: int, rows: Array, columns: Array, away: Array, merged: Merged) -> Array:
    """The linkage matrix; `merged` gives the distances of a cluster to those that it is joined to."""
    near: list[dict[int, float]] = [{} for _ in range(2 * n - 1)]
    heap = list(zip(away.tolist(), rows.tolist(), columns.tolist(), strict=True))
    for distance, i, j in heap:
        near[i][j] = near[j][i] = distance
    heapq.heapify(heap)
    gone = np.zeros(2 * n - 1, dtype=bool)
    Z, size = np.empty((n - 1, 4)), [1] * n
    for t in range(n - 1):
        distance, a, b = heapq.heappop(heap)
        while gone[a] or gone[b]:
            distance, a, b = heapq.heappop(heap)
        gone[a] = gone[b] = True
        del near[a][b], near[b][a]
        size.append(size[a] + size[b])
        Z[t] = min(a, b), max(a, b), distance, size[-1]
        near[n + t] = merged(a, b, n + t, near[a], near[b])
        for other in near[a]:
            del near[other][a]
        for other in near[b]:
            del near[other][b]
        near[a], near[b] = {}, {}
        for other, distance in near[n + t].items():
            near[other][n + t] = distance
            heapq.heappush(heap, (distance, other, n + t))
    return Z


class _Sizes:
    """Complete and average linkage: distances of a cluster from those of its two parts."""

    def __init__(self, n: int, method: str) -> None:
        self._size, self._method = [1] * n, method

    def merged(self, a: int, b: int, new: int, to_a: dict[int, float], to_b: dict[int, float]) -> dict[int, float]:
        left, right = self._size[a], self._size[b]
        self._size.append(left + right)
        found = {**to_a, **to_b}
        for other in to_a.keys() & to_b.keys():
            one, two = to_a[other], to_b[other]
            if self._method == "average":
                found[other] = (left * one + right * two) / (left + right)
            else:
                found[other] = max(one, two)
        return found


class _Means:
    """Ward's linkage: distances of a cluster from the means."""

    def __init__(self, X: Array) -> None:
        n = X.shape[0]
        self._mean, self._size = np.vstack([X, np.empty((n - 1, X.shape[1]))]), np.ones(2 * n - 1)

    def merged(self, a: int, b: int, new: int, to_a: dict[int, float], to_b: dict[int, float]) -> dict[int, float]:
        mean, size = self._mean, self._size
        size[new] = size[a] + size[b]
        mean[new] = mean[a] + (size[b] / size[new]) * (mean[b] - mean[a])
        others = sorted(to_a.keys() | to_b.keys())
        step = mean[others] - mean[new]
        share = size[others] / (size[others] + size[new])
        away = np.sqrt((2.0 * size[new]) * share * (step * step).sum(axis=1))
        return dict(zip(others, away.tolist(), strict=True))
