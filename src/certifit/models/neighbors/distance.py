"""Distances: what a name, a function or a kernel means for two rows, and the search for the nearest rows under it.

    minkowski        (Σ|x_j − z_j|^p)^(1/p); euclidean p = 2, manhattan p = 1, chebyshev p = ∞
    cosine           1 − x·z/(‖x‖‖z‖) = ½‖x/‖x‖ − z/‖z‖‖²: Euclidean between rows of length one
    nan_euclidean    Euclidean over the columns that both rows have, as if the others were alike: √(d/known · Σ (x_j − z_j)²)
    a kernel         √(k(x, x) − 2k(x, z) + k(z, z)), the Euclidean distance of its feature space

Neighbors are exact: the order is that of distances computed in double precision, then of row numbers. Matrix products in
single precision only pass over rows that cannot be among the nearest (native/neighbors/panels.hpp), and a k-d tree only cells
that cannot hold one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import certifit._native.neighbors as _native
from certifit._types import Array, Matrix, is_sparse
from certifit.representation.kernels.base import Kernel

__all__ = ["Metric", "Search", "Tree", "wants_tree"]

NAMES = {
    "euclidean": ("squared", 2.0),
    "l2": ("squared", 2.0),
    "manhattan": ("absolute", 1.0),
    "l1": ("absolute", 1.0),
    "cityblock": ("absolute", 1.0),
    "chebyshev": ("maximum", 1.0),
    "cosine": ("squared", 2.0),
    "nan_euclidean": ("missing", 2.0),
}
SAFE = 1e30  # magnitudes within 1/SAFE … SAFE are compared as they are
BLOCK = 1 << 22  # distances held at a time where blocks of them are made in Python
FEW = 16  # queries for which packing the rows into panels does not pay
Found = tuple[Array, Array]
Tree = tuple[Array, Array, Array, Array, Array]


@dataclass(frozen=True)
class Metric:
    """A distance: by the norm of the difference of two rows, or by blocks of distances that Python computes."""

    kind: Any
    """A name, a function of two rows, or a kernel."""
    norm: str
    p: float

    @staticmethod
    def of(metric: Any, p: float) -> Metric:
        """What the parameters `metric` and `p` mean."""
        if not isinstance(metric, str) or metric == "precomputed":
            return Metric(metric, "", 0.0)
        if metric == "minkowski":
            norm = {1.0: "absolute", 2.0: "squared", math.inf: "maximum"}.get(float(p), "power")
            return Metric(metric, norm, 1.0 if norm == "maximum" else float(p))
        return Metric(metric, *NAMES[metric])

    def distance(self, reduced: Array) -> Array:
        """Distances from what the native search compares: the sum before its root."""
        if self.kind == "cosine":
            return 0.5 * reduced
        if self.norm in ("squared", "missing"):
            return np.asarray(np.sqrt(reduced))
        return np.asarray(reduced ** (1.0 / self.p)) if self.norm == "power" else reduced

    def reduced(self, distance: float) -> float:
        """The reverse, a little more than it: what is too far after all is sorted out by the distance itself."""
        if self.kind == "cosine":
            return 2.0 * distance * (1 + 1e-9) + 1e-15
        power = 2.0 if self.norm in ("squared", "missing") else self.p if self.norm == "power" else 1.0
        return float(distance**power) * (1 + 1e-9)

    def rows(self, X: Matrix, side: int) -> Matrix:
        """Rows as they are compared; of the cosine, rows of length one."""
        return _directions(X, side) if self.kind == "cosine" else X


def _directions(X: Matrix, side: int) -> Matrix:
    """Rows of length one.

    A row of zeros has no direction: it gets one of two further columns, by its side, and so the cosine 0 with all rows of the
    other side.
    """
    size = np.asarray(abs(X).max(axis=1).toarray() if is_sparse(X) else np.abs(X).max(axis=1, initial=0.0)).ravel()
    unit = np.where(size > 0, size, 1.0).astype(np.float64)
    empty = np.zeros((X.shape[0], 2))
    empty[size == 0, side] = 1.0
    if is_sparse(X):
        scaled = sp.csr_array(sp.diags_array(1.0 / unit) @ X.astype(np.float64))
        square = np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel()
        rows = sp.diags_array(1.0 / np.sqrt(np.where(size > 0, square, 1.0))) @ scaled
        return sp.csr_array(sp.hstack([rows, sp.csr_array(empty)]))
    scaled = X / unit[:, None]
    length = np.where(size > 0, np.linalg.norm(scaled, axis=1), 1.0)
    return np.hstack([scaled / length[:, None], empty])


def wants_tree(metric: Metric, X: Matrix, algorithm: str) -> bool:
    """Whether a tree is built: when asked for, and by itself in few columns, where most of its cells are passed over."""
    possible = not is_sparse(X) and metric.norm not in ("", "missing") and metric.kind != "cosine"
    if algorithm in ("kd_tree", "ball_tree") and not possible:
        raise ValueError(
            f'algorithm="{algorithm}" cannot search these rows under metric={metric.kind!r}: a tree wants dense rows and a '
            'Minkowski distance. Give algorithm="auto" or "brute".'
        )
    if algorithm != "auto":
        return algorithm != "brute"
    n, d = X.shape
    return bool(possible and 1 <= d <= 10 and n >= 100 * 2**d)


def build_tree(X: Array, threads: int) -> Tree:
    """The tree of some rows, as arrays."""
    return tuple(_native.build(np.ascontiguousarray(X, dtype=np.float64), threads))


class Search:
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
        return self.metric.distance(distance) / unit, row

    def within(self, Q: Matrix, radius: float, skip: Array | None = None) -> tuple[Array, Array, Array]:
        """Rows within a distance of each query: where those of a query begin, (m + 1,), their distances and numbers."""
        if not self.metric.norm:
            return self._within_blocks(Q, radius, skip)
        X, Q, unit, tree = self._comparable(Q)
        queries, rows = _native_rows(Q), _native.Tree(*tree) if tree is not None else _native_rows(X)
        reduced = self.metric.reduced(radius * unit)
        start, found, row = _native.within(rows, queries, self.metric.norm, self.metric.p, reduced, skip, self.threads)
        distance = self.metric.distance(found) / unit
        kept = distance <= radius
        return np.concatenate([[0], np.cumsum(kept)])[start], distance[kept], row[kept]

    def _comparable(self, Q: Matrix) -> tuple[Matrix, Matrix, float, Tree | None]:
        """Rows and queries whose squares and powers neither overflow nor vanish, and the unit that both were brought to."""
        X, Q = self.metric.rows(self.X, 0), self.metric.rows(Q, 1)
        peak = max(_peak(X), _peak(Q))
        if self.metric.kind == "cosine" or peak == 0.0 or 1.0 / SAFE < peak < SAFE:
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
                asked = Q[part].toarray() if is_sparse(Q) else Q[part]
                block = np.array([[_pair(kind, q, x) for x in plain] for q in asked])
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
