"""The search for the nearest rows under a metric.

Neighbors are exact: the order is that of distances computed in double precision, then of row numbers. Matrix products in
single precision only pass over rows that cannot be among the nearest (native/neighbors/panels.hpp), and a k-d tree only cells
that cannot hold one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import certifit._native.neighbors as _native
from certifit._types import Array, Matrix, is_sparse
from certifit.models.neighbors.metric import COUNTED, TRUTHS, Metric
from certifit.representation.kernels.base import Kernel

__all__ = ["NearestSearch", "Tree", "build_tree", "wants_tree"]

SAFE = 1e30  # magnitudes within 1/SAFE … SAFE are compared as they are
BLOCK = 1 << 22  # distances held at a time where blocks of them are made in Python
FEW = 16  # queries for which packing the rows into panels does not pay
Found = tuple[Array, Array]
Tree = tuple[Array, Array, Array, Array, Array]


def wants_tree(metric: Metric, X: Matrix, algorithm: str) -> bool:
    """Whether a tree is built: when asked for, and by itself in few columns, where most of its cells are passed over."""
    possible = not is_sparse(X) and metric.norm not in ("", "missing") and metric.kind not in ("cosine", "correlation")
    if algorithm in ("kd_tree", "ball_tree") and not possible:
        raise ValueError(
            f'algorithm="{algorithm}" cannot search these rows under metric={metric.kind!r}: a tree wants dense rows and a '
            'Minkowski distance. Give algorithm="auto" or "brute".'
        )
    if algorithm != "auto":
        return algorithm != "brute"
    n, d = X.shape
    d += metric.kind == "haversine"  # on a globe
    return bool(possible and 1 <= d <= 10 and n >= 100 * 2**d)


def build_tree(X: Array, threads: int) -> Tree:
    """The tree of some rows, as arrays."""
    return tuple(_native.build(np.ascontiguousarray(X, dtype=np.float64), threads))


class NearestSearch:
    """The nearest of some rows.

    Parameters
    ----------
    metric : Metric
    X : array or CSR matrix of shape (n, d)
        Rows; for distances computed beforehand, nothing is read of it but its shape.
    tree : tuple of arrays, optional
        Of `build_tree`.
    threads : int
    """

    def __init__(self, metric: Metric, X: Matrix, tree: Tree | None, threads: int) -> None:
        self.metric, self.X, self.tree, self.threads = metric, X, tree, threads
        self.n = X.shape[0]

    def nearest(self, Q: Matrix, k: int, skip: Array | None = None) -> Found:
        """Distances and numbers of the k nearest rows of each query, shape (m, k); query i leaves row skip[i] out."""
        if is_sparse(Q) and self.metric.kind == "precomputed":
            return _first(*_listed(Q, skip), k)
        distance, row = np.empty((Q.shape[0], k)), np.empty((Q.shape[0], k), dtype=np.int64)
        if not self.metric.norm:
            for part, block in self._blocks(Q):
                left = None if skip is None else skip[part]
                _native.given(block, distance[part], row[part], left, self.threads)
            return distance, row
        X, Q, unit, tree = self._comparable(Q)
        if tree is None and self.metric.norm == "squared" and not is_sparse(X) and Q.shape[0] >= FEW:
            X, Q = (np.ascontiguousarray(A) for A in _one_type(X, Q))
            center = X.mean(axis=0, dtype=np.float64)
            peak = max(_peak(X), _peak(Q), float(np.abs(center).max(initial=0.0)))
            scale = 2.0 ** -math.frexp(2.0 * peak)[1] if peak > 0 else 1.0
            _native.panels(X, Q, center, scale, distance, row, skip, self.threads)
        else:
            queries, rows = _native_rows(Q), _native.Tree(*tree) if tree is not None else _native_rows(X)
            _native.nearest(rows, queries, self.metric.norm, self.metric.p, distance, row, skip, self.threads)
        return self.metric.distance(distance, unit), row

    def within(self, Q: Matrix, radius: float, skip: Array | None = None) -> tuple[Array, Array, Array]:
        """Rows within a distance of each query: where those of a query begin, (m + 1,), their distances and numbers."""
        if is_sparse(Q) and self.metric.kind == "precomputed":
            start, distance, row = _listed(Q, skip)
            kept = distance <= radius
            return np.concatenate([[0], np.cumsum(kept)])[start], distance[kept], row[kept]
        if not self.metric.norm:
            return self._within_blocks(Q, radius, skip)
        X, Q, unit, tree = self._comparable(Q)
        queries, rows = _native_rows(Q), _native.Tree(*tree) if tree is not None else _native_rows(X)
        reduced = self.metric.reduced(radius, unit)
        start, found, row = _native.within(rows, queries, self.metric.norm, self.metric.p, reduced, skip, self.threads)
        distance = self.metric.distance(found, unit)
        kept = distance <= radius
        return np.concatenate([[0], np.cumsum(kept)])[start], distance[kept], row[kept]

    def _comparable(self, Q: Matrix) -> tuple[Matrix, Matrix, float, Tree | None]:
        """Rows and queries whose squares and powers neither overflow nor vanish, and the unit that both were brought to."""
        X, Q = self.metric.rows(self.X, 0), self.metric.rows(Q, 1)
        peak = max(_peak(X), _peak(Q))
        if not self.metric.has_units or peak == 0.0 or 1.0 / SAFE < peak < SAFE:
            return X, Q, 1.0, self.tree
        unit = 2.0 ** -math.frexp(peak)[1]  # exact
        return X.astype(np.float64) * unit, Q.astype(np.float64) * unit, unit, None

    def _blocks(self, Q: Matrix) -> Iterator[tuple[slice, Array]]:
        """Distances of some queries at a time to all rows."""
        kind, step = self.metric.kind, max(1, BLOCK // max(1, self.n))
        if isinstance(kind, Kernel):
            kernel = kind.bound(self.X)
            rows = kernel.prepare(self.X)
            own = kernel.own(rows)
        elif kind != "precomputed":
            plain = self.X.toarray() if is_sparse(self.X) else self.X
        for first in range(0, Q.shape[0], step):
            part = slice(first, min(first + step, Q.shape[0]))
            if kind == "precomputed":
                block = np.asarray(Q[part], dtype=np.float64)
            elif isinstance(kind, Kernel):
                asked = kernel.prepare(Q[part])
                square = kernel.own(asked)[:, None] - 2.0 * kernel.block(asked, rows) + own
                block = np.sqrt(np.maximum(square, 0.0))
            else:
                block = _compared(kind, Q[part].toarray() if is_sparse(Q) else Q[part], plain)
            yield part, np.ascontiguousarray(block)

    def _within_blocks(self, Q: Matrix, radius: float, skip: Array | None) -> tuple[Array, Array, Array]:
        counts, distances, rows = [0], [np.empty(0)], [np.empty(0, dtype=np.int64)]
        for part, block in self._blocks(Q):
            for i, line in enumerate(block, start=part.start):
                near = np.flatnonzero(line <= radius)
                near = near[near != skip[i]] if skip is not None else near
                near = near[np.argsort(line[near], kind="stable")]
                counts.append(near.shape[0])
                distances.append(line[near])
                rows.append(near)
        return np.cumsum(counts), np.concatenate(distances), np.concatenate(rows)


def _compared(kind: Any, Q: Any, X: Any) -> Array:
    """All distances by a name of SciPy's, or by a function: of two blocks, where it has one, or of two rows."""
    if kind in COUNTED:
        with np.errstate(invalid="ignore"):
            if kind == "braycurtis":
                block = cdist(Q, X, "cityblock") / np.add.outer(np.abs(Q).sum(axis=1), np.abs(X).sum(axis=1))
            else:
                block = cdist(*((Q != 0, X != 0) if kind in TRUTHS else (Q, X)), kind)
        return np.nan_to_num(block, nan=0.0, posinf=np.inf)  # 0/0 of two rows of nothing
    pairwise = getattr(kind, "pairwise", None)
    if pairwise is None:
        return np.array([[_pair(kind, q, x) for x in X] for q in Q])
    block = np.asarray(pairwise(Q, X), dtype=np.float64)
    if block.shape != (Q.shape[0], X.shape[0]) or not (block >= 0).all():
        raise ValueError(f"metric must give distances >= 0 for each of {Q.shape[0]} queries and {X.shape[0]} rows.")
    return block


def _listed(given: Matrix, skip: Array | None) -> tuple[Array, Array, Array]:
    """Given distances of which those not stored are infinite: where those of a query begin, distances and numbers in order."""
    query = np.repeat(np.arange(given.shape[0]), np.diff(given.indptr))
    kept = np.ones(query.shape[0], dtype=bool) if skip is None else given.indices != skip[query]
    query, distance, row = query[kept], given.data[kept].astype(np.float64), given.indices[kept].astype(np.int64)
    order = np.lexsort((row, distance, query))
    start = np.searchsorted(query, np.arange(given.shape[0] + 1))
    return start, distance[order], row[order]


def _first(start: Array, distance: Array, row: Array, k: int) -> Found:
    """The k nearest of each query, if so many are known."""
    known = np.diff(start)
    if known.size and known.min() < k:
        raise ValueError(
            f"{k} neighbors per samples are required, but some samples have only {known.min()} neighbors in the sparse matrix "
            "of distances. Ask for fewer, or give a matrix with more."
        )
    place = start[:-1, None] + np.arange(k)
    return distance[place], row[place]


def _pair(function: Any, x: Array, z: Array) -> float:
    value = float(function(x, z))
    if not value >= 0.0:
        raise ValueError(f"metric must give distances >= 0; got {value!r} for two rows.")
    return value


def _peak(X: Matrix) -> float:
    values = X.data if is_sparse(X) else X
    with np.errstate(all="ignore"):
        low, high = (
            (np.fmin.reduce(values, axis=None), np.fmax.reduce(values, axis=None)) if values.size else (0.0, 0.0)
        )
    return float(max(-low, high, 0.0)) if np.isfinite(low) and np.isfinite(high) else 0.0


def _one_type(X: Array, Q: Array) -> tuple[Array, Array]:
    kind = np.float32 if X.dtype == Q.dtype == np.float32 else np.float64
    return X.astype(kind, copy=False), Q.astype(kind, copy=False)


def _native_rows(X: Matrix) -> Any:
    """Rows as the native search takes them, in double precision."""
    if not is_sparse(X):
        return np.ascontiguousarray(X, dtype=np.float64)
    parts = X.data.astype(np.float64), X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return _native.Sparse(*parts, X.shape[1])
