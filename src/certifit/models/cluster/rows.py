"""Rows as k-means asks for them: starts, Lloyd's iteration, nearest centers. Dense ones are native, sparse ones use products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

import certifit._native.lloyd as _lloyd
from certifit._types import Array, Matrix, is_sparse
from certifit.representation.kernels.basic import MeasuredRows, squared_distances, squared_lengths
from certifit.threads import n_threads

__all__ = ["ClusterRows", "Run", "ldexp", "rows_of", "times", "unit_exponent"]

RANGE = 1e100  # largest entry beyond which, or below whose inverse, rows are measured in another unit
BLOCK = 1 << 22  # distances held at a time


@dataclass(frozen=True)
class Run:
    """Where a run of Lloyd's iteration ended."""

    centers: Array
    labels: Array
    inertia: float
    iterations: int
    fixed: bool
    """Whether every row is with its nearest center and every center is the mean of its rows."""


class ClusterRows(Protocol):
    """What k-means asks of rows."""

    def seed(self, uniform: Array) -> Array:
        """Numbers of rows for k centers, by k-means++, from k × trials numbers in [0, 1)."""

    def run(self, centers: Array, max_iter: int, still: float) -> Run:
        """Lloyd's iteration from these centers; ends early when Σ‖moves of centers‖² ≤ still, if that is positive."""

    def nearest(self, centers: Array) -> tuple[Array, float]:
        """Label of each row, and the cost."""

    def points(self, numbers: Array) -> Array:
        """Rows as a dense float64 array."""


def rows_of(X: Matrix, weight: Array, n_jobs: int | None, centers: Array | None = None) -> ClusterRows:
    """The rows of a dense or sparse matrix, in a unit in which their squares are numbers, and those of the centers if given."""
    exponent = unit_exponent(X) if centers is None else unit_exponent(X, centers)
    return _Scaled(X, weight, n_jobs, exponent) if exponent else _plain(X, weight, n_jobs)


def unit_exponent(*parts: Matrix) -> int:
    """Of the power of two that is the unit of the entries; zero where their squares are numbers as they are."""
    if all(part.dtype == np.float32 for part in parts):
        return 0
    size = max((float(abs(part).max()) for part in parts if part.shape[0]), default=0.0)
    return 0 if not size or 1.0 / RANGE < size < RANGE else math.frexp(size)[1]


def _plain(X: Matrix, weight: Array, n_jobs: int | None) -> ClusterRows:
    return _Sparse(X, weight) if is_sparse(X) else _Dense(X, weight, n_threads(n_jobs))


class _Scaled:
    """Rows whose squares double precision cannot hold, in a unit in which it can; costs may still vanish, or be infinite."""

    def __init__(self, X: Matrix, weight: Array, n_jobs: int | None, exponent: int) -> None:
        self._given, self._weight, self._n_jobs = X, weight, n_jobs
        self._exponent = exponent
        self._rows = _plain(times(X, -exponent), weight, n_jobs)

    def _beside(self, centers: Array) -> tuple[ClusterRows, Array, int]:
        """Rows and centers in a unit for both, and its exponent."""
        centers = np.asarray(centers, dtype=np.float64)
        exponent = unit_exponent(self._given, centers)
        if exponent == self._exponent:
            return self._rows, np.ldexp(centers, -exponent), exponent
        return _plain(times(self._given, -exponent), self._weight, self._n_jobs), np.ldexp(centers, -exponent), exponent

    def seed(self, uniform: Array) -> Array:
        return self._rows.seed(uniform)

    def run(self, centers: Array, max_iter: int, still: float) -> Run:
        rows, centers, exponent = self._beside(centers)
        run = rows.run(centers, max_iter, ldexp(still, -2 * exponent))
        return replace(run, centers=np.ldexp(run.centers, exponent), inertia=ldexp(run.inertia, 2 * exponent))

    def nearest(self, centers: Array) -> tuple[Array, float]:
        rows, centers, exponent = self._beside(centers)
        labels, cost = rows.nearest(centers)
        return labels, ldexp(cost, 2 * exponent)

    def points(self, numbers: Array) -> Array:
        return np.ldexp(self._rows.points(numbers), self._exponent)


def ldexp(value: float, exponent: int) -> float:
    """The value times a power of two, infinite where that is beyond the range."""
    with np.errstate(over="ignore"):
        return float(np.ldexp(value, exponent))


def times(X: Matrix, exponent: int) -> Matrix:
    """X times a power of two."""
    if not is_sparse(X):
        return np.ldexp(X, exponent)
    scaled = X.copy()
    scaled.data = np.ldexp(scaled.data, exponent)
    return scaled


class _Dense:
    """native/lloyd."""

    def __init__(self, X: Array, weight: Array, threads: int) -> None:
        self._X = np.ascontiguousarray(X)
        self._threads = threads
        kind = _lloyd.Rows32 if X.dtype == np.float32 else _lloyd.Rows64
        self._rows = kind(self._X, np.ascontiguousarray(weight), threads)

    def seed(self, uniform: Array) -> Array:
        return np.asarray(self._rows.seed(np.ascontiguousarray(uniform), self._threads))

    def run(self, centers: Array, max_iter: int, still: float) -> Run:
        moved = np.array(centers, dtype=np.float64, order="C")
        labels = np.empty(self._X.shape[0], dtype=np.int32)
        iterations, fixed, inertia = self._rows.run(moved, labels, max_iter, still, self._threads)
        return Run(moved, labels, inertia, iterations, fixed)

    def nearest(self, centers: Array) -> tuple[Array, float]:
        labels = np.empty(self._X.shape[0], dtype=np.int32)
        inertia = self._rows.nearest(np.array(centers, dtype=np.float64, order="C"), labels, self._threads)
        return labels, float(inertia)

    def points(self, numbers: Array) -> Array:
        return self._X[numbers].astype(np.float64)


class _Sparse:
    """The same steps by products of the sparse rows with the centers, in double precision."""

    def __init__(self, X: Matrix, weight: Array) -> None:
        self._X = X.tocsr().astype(np.float64)
        self._weight = weight
        self._square = squared_lengths(self._X)

    def _blocks(self, k: int) -> Iterator[slice]:
        size = max(1, BLOCK // max(k, 1))
        return (slice(i, i + size) for i in range(0, self._X.shape[0], size))

    def _away(self, centers: Array, rows: slice) -> Array:
        return squared_distances(
            MeasuredRows(self._X[rows], self._square[rows]), MeasuredRows(centers, squared_lengths(centers))
        )

    def seed(self, uniform: Array) -> Array:
        n, (k, trials) = self._X.shape[0], uniform.shape
        chosen = np.empty(k, dtype=np.int64)
        away = np.ones(n)
        for c in range(k):
            running = np.cumsum(self._weight * away)
            drawn = np.searchsorted(running, uniform[c, : trials if c else 1] * running[-1], side="right")
            drawn = np.minimum(drawn, n - 1)
            found = self._away(self.points(drawn), slice(None))
            # Products cancel: what rounding leaves of a distance to itself is no distance.
            found[found <= 4e-15 * (self._square[:, None] + self._square[drawn])] = 0.0
            left = found if c == 0 else np.minimum(found, away[:, None])
            best = int(np.argmin(self._weight @ left))
            chosen[c], away = drawn[best], left[:, best]
        return chosen

    def nearest(self, centers: Array) -> tuple[Array, float]:
        labels, least = self._assign(centers)
        return labels, float(self._weight @ least)

    def _assign(self, centers: Array) -> tuple[Array, Array]:
        labels, least = np.empty(self._X.shape[0], dtype=np.int32), np.empty(self._X.shape[0])
        for rows in self._blocks(centers.shape[0]):
            away = self._away(centers, rows)
            labels[rows] = away.argmin(axis=1)
            least[rows] = away[np.arange(away.shape[0]), labels[rows]]
        return labels, least

    def run(self, centers: Array, max_iter: int, still: float) -> Run:
        centers = np.array(centers, dtype=np.float64)
        labels, least = self._assign(centers)
        iterations, fixed = 0, False
        while iterations < max_iter:
            iterations += 1
            self._repair(labels, least, centers.shape[0])
            moved = self._means(labels, centers)
            shift = float(((moved - centers) ** 2).sum())
            before, centers = labels, moved
            labels, least = self._assign(centers)
            if still > 0.0 and shift <= still:
                break
            if np.array_equal(labels, before):
                fixed = True
                break
        return Run(centers, labels, float(self._weight @ least), iterations, fixed)

    def _repair(self, labels: Array, least: Array, k: int) -> None:
        """An empty cluster gets the row that is farthest from its center."""
        for c in np.flatnonzero(np.bincount(labels, minlength=k) == 0):
            farthest = int(np.argmax(least))
            if least[farthest] > 0:
                labels[farthest], least[farthest] = c, 0.0

    def _means(self, labels: Array, centers: Array) -> Array:
        from scipy.sparse import csr_array

        n, k = labels.shape[0], centers.shape[0]
        mass = np.bincount(labels, weights=self._weight, minlength=k)
        members = csr_array((self._weight, (labels, np.arange(n))), shape=(k, n))
        sums = np.asarray((members @ self._X).todense())
        return np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centers)

    def points(self, numbers: Array) -> Array:
        return np.asarray(self._X[numbers].todense(), dtype=np.float64)
