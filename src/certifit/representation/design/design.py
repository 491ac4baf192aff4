"""A design: all that a solver may ask of the features, whatever they are stored as.

Scores are f = X·w + b. With K scores a row, w is K × d, b has K entries, f is n × K, and n × K arrays are kept with the
rows of one score side by side (Fortran order): sums over the K scores then run along contiguous vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import blas

import certifit._native.products as _products
from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses.labels.softmax import Simplex
from certifit.representation.design.blocks import row_blocks
from certifit.representation.design.products import (
    NARROW,
    DenseColumns,
    SparseColumns,
    few_rows,
    in_one_piece,
    matvec,
    mirrored,
    pullback,
    rmatvec,
    row_scores,
    same_places,
    weighted_gram,
    without_gaps,
)
from certifit.representation.design.rows import added_over_rows, over_rows

__all__ = ["Dense", "Design", "Partitioned", "Sparse", "as_design"]

T = TypeVar("T")
LOOKED_AT = 1 << 12  # rows that tell of columns: each is a place in memory of its own, however few columns there are


class Design(ABC):
    """Rows of features, wherever they are: a kind says what some of its rows are, and better ways where it has them."""

    in_memory = False
    """Whether there is a matrix, whose single rows and columns can be looked at."""
    threads = 1

    @property
    def X(self) -> Any:  # noqa: N802 - as everywhere
        """The matrix, or the design itself in its place."""
        return self

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    @abstractmethod
    def dtype(self) -> Any:
        """Type of the entries."""

    @abstractmethod
    def dense_rows(self, rows: slice) -> Array:
        """Some rows as a NumPy array."""

    @property
    def one_piece(self) -> bool:
        """Whether X is an array that native passes can read."""
        return False

    @property
    def thin(self) -> bool:
        """Whether it also has many rows of few columns, so that our own passes serve it."""
        return False

    def scores(self, w: Array, b: Any = 0.0, *, exact: bool = False) -> Array:
        """X·w + b in float64; with `exact`, single precision data is also multiplied in double precision."""
        return np.concatenate([block.scores(w, b, exact=exact) for _, block in self._by_blocks()])

    def reach(self, w: Array, b: Any) -> Array:
        """|X|·|w| + |b|, of the shape of scores: what their rounding is relative to."""
        f = np.empty((self.shape[0], *w.shape[:-1]))
        for rows in row_blocks(*self.shape):
            f[rows] = np.abs(self.dense_rows(rows)).astype(np.float64, copy=False) @ np.abs(w).T
        return f + np.abs(b)

    def pull(self, u: Array, *, exact: bool = False) -> Array:
        """Xᵀ·u, of the shape of coefficients, for numbers u of the shape of scores."""
        return np.asarray(sum(block.pull(u[rows], exact=exact) for rows, block in self._by_blocks()))

    def squares(self, u: Array) -> Array:
        """Σ_i u_i x_i², of the shape of coefficients."""
        total = np.zeros((self.shape[1], *u.shape[1:]))
        for rows in row_blocks(*self.shape):
            part = self.dense_rows(rows).astype(np.float64, copy=False)
            total += (part * part).T @ u[rows]
        return total.T

    def largest(self) -> Array:
        """The largest magnitude in each column."""
        return reduce(np.maximum, (block.largest() for _, block in self._by_blocks()))

    def sample(self, entries: int) -> Array:
        """Some entries: a few whole rows, or all that are stored."""
        return self.dense_rows(slice(0, max(1, entries // max(self.shape[1], 1))))

    def _by_blocks(self) -> Iterator[tuple[slice, Dense]]:
        """The rows, some at a time, as matrices."""
        for rows in row_blocks(*self.shape):
            yield rows, Dense(self.dense_rows(rows))

    def moments(self, entries: int | None = None) -> tuple[int, Array]:
        """A number of rows, and the mean and the sum of squared deviations of each column, shape (2, d).

        Of all rows, or of as many as have about so many entries; NaN where they are not at hand, as of a sparse column with gaps.
        """
        if entries is not None:
            return Dense(self.sample(entries)).moments()
        n = self.shape[0]
        mean = self.pull(np.full(n, 1.0 / n))
        return n, np.stack([mean, as_design(self.rescaled(mean, np.ones(mean.shape[0]))).squares(np.ones(n))])

    def rescaled(self, center: Array, unit: Array) -> Any:
        """(X − center) / unit in double precision; of a sparse X, only columns without gaps have a center."""
        return View(self, np.arange(self.shape[1]), center, unit)

    def curved(self, p: Array, h: Any, w: Array, b: Any) -> tuple[Array, Any, Array]:
        """z = X·w + b, and the sums Σ p (h z) and Σ p (h z) x: one product with the curvature h."""
        z = self.scores(w, b)
        bent = weighted(p, h * z)
        return z, bent.sum(axis=0), self.pull(bent)

    def hessian(self, p: Array, h: Any, *, ones: bool, single: bool = False) -> Array:
        """Σ p_i h_i ⊗ x̃_i x̃_iᵀ, with x̃ = (1, x) or x: square, of size K times the columns.

        With `single` K > 1 products are in single precision, which is enough for a preconditioner.
        """
        if isinstance(h, np.ndarray):
            gram = self._gram(p * h)
            return gram if ones else gram[1:, 1:]
        return self._block_hessian(p, h, int(ones), np.float32 if single else np.float64)

    def _gram(self, h: Array) -> Array:
        return np.asarray(sum(weighted_gram(block.X, h[rows]) for rows, block in self._by_blocks()))

    def _block_hessian(self, p: Array, h: Simplex, first: int, dtype: Any) -> Array:
        """From products of blocks of rows: the part −(u ⊗ x̃)(u ⊗ x̃)ᵀ, and the blocks v_k x̃x̃ᵀ on the diagonal."""
        (n, d), K = self.shape, h.probability.shape[1]
        D, syrk = d + first, blas.ssyrk if dtype == np.float32 else blas.dsyrk
        if D == 0:
            return np.zeros((0, 0))
        vector, weight = h.vector, h.weight
        typical = float(p.max())  # p is about 1/n: in units of its own it is in range of single precision

        def work(chunk: slice) -> tuple[Array]:
            total = np.zeros((K * D, K * D), order="F", dtype=dtype)
            diagonal = np.zeros((D, K * D), dtype=dtype)
            for rows in row_blocks(chunk, K * D):
                part = self.dense_rows(rows)
                m = part.shape[0]
                tilde = np.empty((m, D), dtype=dtype)
                tilde[:, :first], tilde[:, first:] = 1.0, part
                tilde *= np.sqrt(p[rows] / typical).astype(dtype)[:, None]
                Z = np.empty((m, K, D), dtype=dtype)
                np.multiply(tilde[:, None, :], vector[rows].astype(dtype)[:, :, None], out=Z)
                side_by_side = Z.reshape(m, K * D)
                total = syrk(-1.0, side_by_side.T, beta=1.0, c=total, lower=1, overwrite_c=1)
                if h.rate is not None:
                    np.multiply(tilde[:, None, :], weight[rows].astype(dtype)[:, :, None], out=Z)
                diagonal += tilde.T @ side_by_side
                if h.extra:
                    diagonal += np.tile(h.extra * (tilde.T @ tilde), K)
            for k in range(K):
                own = slice(k * D, (k + 1) * D)
                total[own, own] += diagonal[:, own]
            return (total.astype(np.float64, copy=False),)

        # Every chunk holds a matrix of its own: few chunks when the matrix is large beside the rows.
        few = n <= 8 * K * D
        (total,) = work(slice(0, n)) if few else added_over_rows(work, n, K * D, self.threads)
        total *= typical
        return mirrored(total)

    def columns(self, chosen: Array) -> Design:
        """Some columns; the design itself when they are all."""
        return self if chosen.shape[0] == self.shape[1] else View(self, chosen)

    def column_cache(self) -> Callable[[Array], Design]:
        """`columns` for a method that keeps asking for the same ones: each is gathered once."""
        return self.columns

    def by_column(self) -> Design:
        """The same design, quick to take columns from."""
        return self


class View(Design):
    """Some columns of a design that is no matrix, each less its center and in its unit."""

    def __init__(self, base: Design, chosen: Array, center: Array | float = 0.0, unit: Array | float = 1.0) -> None:
        self.base, self.chosen, self.center, self.unit = base, chosen, center, unit

    @property
    def shape(self) -> tuple[int, int]:
        return self.base.shape[0], int(self.chosen.shape[0])

    @property
    def dtype(self) -> Any:
        return np.dtype(np.float64)

    def dense_rows(self, rows: slice) -> Array:
        return np.asarray((self.base.dense_rows(rows)[:, self.chosen].astype(np.float64) - self.center) / self.unit)


class Held(Design):
    """A matrix in memory."""

    in_memory = True
    X: Matrix = None

    def __init__(self, X: Matrix, threads: int = 1) -> None:
        self.X, self.threads = X, threads

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dtype(self) -> Any:
        return self.X.dtype

    def _gram(self, h: Array) -> Array:
        return weighted_gram(self.X, h, threads=self.threads)

    def columns(self, chosen: Array) -> Design:
        return self if chosen.shape[0] == self.shape[1] else type(self)(self.X[:, chosen], self.threads)

    def column_cache(self) -> Callable[[Array], Design]:
        cache = SparseColumns(self.X) if is_sparse(self.X) else DenseColumns(self.X)
        return lambda chosen: type(self)(cache(chosen), self.threads)


class Dense(Held):
    """A NumPy array."""

    @property
    def one_piece(self) -> bool:
        return in_one_piece(self.X)

    @property
    def thin(self) -> bool:
        n, d = self.shape
        return 0 < d <= min(NARROW, n) and in_one_piece(self.X)

    def scores(self, w: Array, b: Any = 0.0, *, exact: bool = False) -> Array:
        if w.ndim == 1:
            if self.thin:
                return row_scores(self.X, w, b, self.threads)
            if not w.any():  # where many a fit begins
                return np.full(self.shape[0], float(b))
            return matvec(self.X, w, exact=exact) + b
        f = np.empty((w.shape[0], self.shape[0]))

        def work(chunk: slice) -> None:
            for rows, part in self._blocks(chunk, w.shape[0]):
                np.add(_forward(part, w), b[:, None], out=f[:, rows])

        over_rows(work, self.shape[0], sum(w.shape), self.threads)
        return f.T

    def pull(self, u: Array, *, exact: bool = False) -> Array:
        if u.ndim == 1:
            return pullback(self.X, u, self.threads) if self.thin else rmatvec(self.X, u, exact=exact)
        K = u.shape[1]

        def work(chunk: slice) -> Array:
            total = np.zeros((K, self.shape[1]))
            for rows, part in self._blocks(chunk, K):
                total += u[rows].T @ part
            return total

        return np.asarray(sum(over_rows(work, self.shape[0], self.shape[1] + K, self.threads)))

    def curved(self, p: Array, h: Any, w: Array, b: Any) -> tuple[Array, Any, Array]:
        if w.ndim == 1:
            return super().curved(p, h, w, b)
        z = np.empty((w.shape[0], self.shape[0]))

        def work(chunk: slice) -> tuple[Array, Array]:
            total, level = np.zeros(w.shape), np.zeros(w.shape[0])
            for rows, part in self._blocks(chunk, w.shape[0]):
                score = _forward(part, w)
                score += b[:, None]
                z[:, rows] = score
                bent = h[rows] * score.T
                bent *= p[rows, None]
                total += bent.T @ part
                level += bent.sum(axis=0)
            return total, level

        found = over_rows(work, self.shape[0], sum(w.shape), self.threads)
        return z.T, np.asarray(sum(part[1] for part in found)), np.asarray(sum(part[0] for part in found))

    def _blocks(self, chunk: slice, K: int) -> Iterator[tuple[slice, Array]]:
        """Blocks of rows of a chunk in double precision, of a size that stays in the cache."""
        for rows in row_blocks(chunk, 2 * (self.shape[1] + 4 * K)):
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def _gram(self, h: Array) -> Array:
        n, d = self.shape
        if self.thin or n <= 8 * d:
            return super()._gram(h)
        (found,) = added_over_rows(lambda rows: (weighted_gram(self.X[rows], h[rows]),), n, d, self.threads)
        return found

    def largest(self) -> Array:
        return np.abs(self.X).max(axis=0, initial=0.0).astype(np.float64)

    def sample(self, entries: int) -> Array:
        return np.asarray(self.X[:: max(1, self.X.size // entries)])

    def moments(self, entries: int | None = None) -> tuple[int, Array]:
        X, step = few_rows(self.X, min(entries, LOOKED_AT * self.shape[1]) if entries else self.X.size)
        return -(-X.shape[0] // step), _products.moments(X, step)

    def rescaled(self, center: Array, unit: Array) -> Matrix:
        return (self.X - center if center.any() else self.X.astype(np.float64, copy=False)) / unit

    def dense_rows(self, rows: slice) -> Array:
        return np.asarray(self.X[rows])


class Sparse(Held):
    """A SciPy sparse matrix."""

    def scores(self, w: Array, b: Any = 0.0, *, exact: bool = False) -> Array:
        f = self.X @ w.T
        return np.asarray(f if w.ndim == 1 else np.asfortranarray(f)) + b

    def reach(self, w: Array, b: Any) -> Array:
        return np.asarray(same_places(self.X, np.abs(self.X.data)) @ np.abs(w).T) + np.abs(b)

    def pull(self, u: Array, *, exact: bool = False) -> Array:
        return np.asarray((self.X.T @ u).T)

    def squares(self, u: Array) -> Array:
        return np.asarray((same_places(self.X, np.square(self.X.data, dtype=np.float64)).T @ u).T)

    def largest(self) -> Array:
        return np.asarray(abs(self.X).max(axis=0).toarray(), dtype=np.float64).ravel()

    def sample(self, entries: int) -> Array:
        return np.asarray(self.X.data)

    def moments(self, entries: int | None = None) -> tuple[int, Array]:
        numbers, values = without_gaps(self.X, entries)
        found = np.full((2, self.shape[1]), np.nan)
        if numbers.size:
            found[:, numbers] = _products.moments(values, 1)
        return values.shape[0], found

    def rescaled(self, center: Array, unit: Array) -> Matrix:
        scaled = self.X.tocsc().astype(np.float64)
        counts = np.diff(scaled.indptr)
        if center.any():
            scaled.data -= np.repeat(center, counts)
        scaled.data /= np.repeat(unit, counts)
        return scaled

    def dense_rows(self, rows: slice) -> Array:
        return np.asarray(self.X[rows].toarray())

    def by_column(self) -> Design:
        return self if self.X.format == "csc" else Sparse(self.X.tocsc(), self.threads)


class Partitioned:
    """Rows in several parts, each a matrix of its own: what is summed over rows is summed over the parts."""

    def __init__(self, parts: Sequence[Matrix]) -> None:
        if len({part.shape[1] for part in parts}) != 1:
            raise ValueError(f"The parts must have the same columns; got {[part.shape for part in parts]}.")
        if len({is_sparse(part) for part in parts}) != 1:
            raise ValueError("The parts must be all dense or all sparse.")
        self.parts = tuple(parts)
        self.dtype = np.result_type(*(part.dtype for part in parts))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of all parts, and columns."""
        return sum(int(part.shape[0]) for part in self.parts), int(self.parts[0].shape[1])


def as_design(X: Any, threads: int = 1) -> Design:
    """The design of a matrix; what is a design already stays one."""
    if isinstance(X, Design):
        return X
    return Sparse(X, threads) if is_sparse(X) else Dense(X, threads)


def weighted(p: Array, u: Array) -> Array:
    """p_i u_i of each row."""
    return p * u if u.ndim == 1 else p[:, None] * u


def _forward(part: Array, w: Array) -> Array:
    """w·Xᵀ for a block of rows, shape (K, m)."""
    # The tall product and a small transpose take half the time of the product in the wanted order.
    return np.ascontiguousarray((part @ np.ascontiguousarray(w.T)).T)
