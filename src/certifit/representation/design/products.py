"""Products with the feature matrix, the same for dense and sparse, single and double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas

import certifit._native.products as _products
from certifit._types import Array, Matrix, is_sparse
from certifit.representation.design.blocks import BLOCK, row_blocks

__all__ = [
    "DenseColumns",
    "SparseColumns",
    "at_entries",
    "by_column",
    "columns",
    "entry_columns",
    "expect_temporaries",
    "few_rows",
    "in_one_piece",
    "matvec",
    "mirrored",
    "pullback",
    "rmatvec",
    "row_scores",
    "same_places",
    "weighted_gram",
    "without_gaps",
]

ASKED = 4  # rows of a sparse matrix that mostly tell that every column has gaps, and the first
LARGEST_BLOCK = (1 << 25) - (1 << 16)  # GNU's malloc learns from blocks below 32 MiB only
MIRRORED = 256  # rows of a symmetric matrix that are filled at once
NARROW = 192  # columns up to which our own Gram kernel, which weights the rows on the way, is faster than BLAS


def in_one_piece(X: Matrix) -> bool:
    """Whether the native passes over X can read it: dense, row after row or column after column."""
    return isinstance(X, np.ndarray) and (X.flags.c_contiguous or X.flags.f_contiguous)


def few_rows(X: Array, entries: int) -> tuple[Array, int]:
    """A dense matrix in one piece and a step from row to row, for native passes over rows that have about so many entries."""
    step = max(1, X.size // entries)
    if in_one_piece(X) and X.dtype in (np.float64, np.float32):
        return X, step
    return np.ascontiguousarray(X[::step], dtype=np.float64), 1


def without_gaps(X: Matrix, entries: int | None = None) -> tuple[Array, Array]:
    """Columns of a sparse matrix with an entry in every row, and their values in all rows, or in some that have about so many.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from certifit.representation.design.products import without_gaps
    >>> without_gaps(sp.csr_array(np.array([[5.0, 0.0], [6.0, 7.0]])))
    (array([0]), array([[5.],
           [6.]]))
    """
    step = max(1, X.nnz // entries) if entries and X.format == "csr" else 1
    if X.format == "csr" and not _shared(X, step):  # most often
        return np.empty(0, dtype=np.intp), np.empty((-(-X.shape[0] // step), 0))
    rows = X[::step] if step > 1 else X
    m = rows.shape[0]
    by = rows.tocsc()
    numbers = np.flatnonzero(np.diff(by.indptr) == m) if m else np.empty(0, dtype=np.intp)
    step = max(1, m * numbers.size // entries) if entries else 1
    values = np.empty((-(-m // step), numbers.size))
    for at, j in enumerate(numbers):
        values[:, at] = by.data[by.indptr[j] : by.indptr[j + 1] : step]
    return numbers, values


def _shared(X: Matrix, step: int) -> bool:
    """Whether some column may have an entry in every `step`-th row of a CSR matrix: one has in the few that are asked."""
    m = -(-X.shape[0] // step)
    columns: set[int] | None = None
    for i in sorted({k * (m - 1) // ASKED for k in range(ASKED + 1)}) if m else ():
        row = X.indices[X.indptr[i * step] : X.indptr[i * step + 1]].tolist()
        columns = set(row) if columns is None else columns.intersection(row)
        if not columns:
            return False
    return m > 0


def by_column(X: Array, threads: int = 1) -> Array:
    """X in Fortran order: itself where it is, else a copy, which takes a third of the time of NumPy's."""
    if X.flags.f_contiguous or not X.flags.c_contiguous or X.dtype not in (np.float64, np.float32):
        return np.asfortranarray(X)
    turned = np.empty(X.shape, dtype=X.dtype, order="F")
    _products.by_column(X, turned, threads)
    return turned


def entry_columns(X: Matrix) -> Array:
    """The column of each stored number of a CSR or CSC matrix."""
    return np.asarray(X.indices if X.format == "csr" else np.repeat(np.arange(X.shape[1]), np.diff(X.indptr)))


def at_entries(X: Matrix, p: Array) -> Array:
    """What belongs to the rows, for each stored number of a CSR or CSC matrix."""
    return np.repeat(p, np.diff(X.indptr)) if X.format == "csr" else p[X.indices]


def same_places(X: Matrix, data: Array) -> Any:
    """Other numbers in the places of a sparse X, which SciPy would copy, or look for again in a product of two matrices."""
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def matvec(X: Matrix, w: Array, *, exact: bool = False) -> Array:
    """X·w in float64; with `exact`, single precision data is also multiplied in double precision."""
    if X.dtype == np.float64 or is_sparse(X):
        return np.asarray(X @ w)
    if not exact:
        return np.asarray(X @ w.astype(X.dtype), dtype=np.float64)
    return np.concatenate([X[rows].astype(np.float64) @ w for rows in row_blocks(*X.shape)])


def rmatvec(X: Matrix, u: Array, *, exact: bool = False) -> Array:
    """Xᵀ·u in float64; with `exact`, single precision data is also multiplied in double precision."""
    if X.dtype == np.float64 or is_sparse(X):
        return np.asarray(X.T @ u)
    if not exact:
        return np.asarray(X.T @ u.astype(X.dtype), dtype=np.float64)
    total = np.zeros(X.shape[1])
    for rows in row_blocks(*X.shape):
        total += X[rows].astype(np.float64).T @ u[rows]
    return total


def row_scores(X: Matrix, w: Array, b: float, threads: int) -> Array:
    """X·w + b in one threaded pass; single precision data is multiplied in double precision."""
    if not in_one_piece(X):
        return matvec(X, w, exact=True) + b
    return np.asarray(_products.scores(X, np.ascontiguousarray(w, dtype=np.float64), float(b), threads))


def pullback(X: Matrix, u: Array, threads: int) -> Array:
    """Xᵀ·u in one threaded pass; single precision data is multiplied in double precision."""
    if not in_one_piece(X):
        return rmatvec(X, u, exact=True)
    return np.asarray(_products.pullback(X, np.ascontiguousarray(u, dtype=np.float64)[None, :], threads)[0])


def columns(X: Matrix, chosen: Array) -> Matrix:
    """The chosen columns; X itself when all are chosen."""
    return X if chosen.shape[0] == X.shape[1] else X[:, chosen]


class SparseColumns:
    """Copies of the columns that a working-set method keeps asking for, so that most are gathered once."""

    def __init__(self, X: Matrix) -> None:
        self.X, self._index = X, np.empty(0, dtype=np.intp)
        self._part: Any = None

    def __call__(self, chosen: Array) -> Matrix:
        """The chosen columns (sorted)."""
        if 2 * chosen.shape[0] > self.X.shape[1]:
            return columns(self.X, chosen)
        if self._part is None or not np.isin(chosen, self._index, assume_unique=True).all():
            self._index = np.union1d(self._index, chosen)
            self._part = self.X[:, self._index]
        if self._index.shape[0] == chosen.shape[0]:
            return self._part
        return self._part[:, np.searchsorted(self._index, chosen)]


class DenseColumns:
    """The same for an array: each column is read once, and kept as a row in the order of its coming."""

    def __init__(self, X: Array) -> None:
        n, d = X.shape
        self.X, self._kept, self._count = X, np.empty((0, n), dtype=X.dtype), 0
        self._place = np.full(d, -1, dtype=np.intp)

    def __call__(self, chosen: Array) -> Array:
        """The chosen columns (sorted), in Fortran order when they are a copy."""
        if 2 * chosen.shape[0] > self.X.shape[1]:
            return columns(self.X, chosen)
        new = chosen[self._place[chosen] < 0]
        if new.shape[0]:
            self._keep(new)
        places = self._place[chosen]
        first, last = int(places[:1].sum()), int(places[:1].sum()) + places.shape[0]
        if (places == np.arange(first, last)).all():
            return np.asarray(self._kept[first:last].T)
        return np.asarray(self._kept[places].T)

    def _keep(self, new: Array) -> None:
        start, self._count = self._count, self._count + new.shape[0]
        if self._count > self._kept.shape[0]:
            grown = np.empty((min(self.X.shape[1], 2 * self._count), self.X.shape[0]), dtype=self.X.dtype)
            grown[:start] = self._kept[:start]
            self._kept = grown
        _take(self.X, new, self._kept[start : self._count])
        self._place[new] = np.arange(start, self._count)


def _take(X: Array, chosen: Array, out: Array) -> None:
    """The chosen columns as the rows of `out`, from rows of X that stay in the cache."""
    if X.flags.f_contiguous:
        np.take(X.T, chosen, axis=0, out=out, mode="clip")
        return
    for rows in row_blocks(*X.shape):
        out[:, rows] = X[rows].take(chosen, axis=1).T


def weighted_gram(X: Matrix, h: Array, chosen: Array | None = None, threads: int = 1) -> Array:
    """[1 X]ᵀ·diag(h)·[1 X] for the chosen columns, float64; h ≥ 0. The ones come first.

    Rows are taken in blocks that fit the cache, so that no weighted copy of X is ever held.
    """
    d = X.shape[1] if chosen is None else chosen.shape[0]
    if chosen is None and d <= NARROW and in_one_piece(X):
        return np.asarray(_products.gram(X, np.ascontiguousarray(h, dtype=np.float64), True, threads))
    gram = np.zeros((d + 1, d + 1), order="F")
    if is_sparse(X):
        part = X if chosen is None else X[:, chosen]
        weighted = part.multiply(h[:, None]).tocsr()
        gram[1:, 1:] = (part.T @ weighted).toarray()
        gram[0, 1:] = gram[1:, 0] = np.asarray(weighted.sum(axis=0)).ravel()
        gram[0, 0] = h.sum()
        return gram
    single = X.dtype == np.float32
    syrk = blas.ssyrk if single else blas.dsyrk
    root = np.sqrt(h).astype(X.dtype, copy=False)
    size = max(64, min(X.shape[0], BLOCK // (d + 1)))
    by_column = X.flags.f_contiguous  # blocks keep the order of X: a transposed write costs more than the product
    block = np.empty((size, d + 1), dtype=X.dtype, order="F" if by_column else "C")
    for start in range(0, X.shape[0], size):
        rows = X[start : start + size] if chosen is None else X[start : start + size, chosen]
        k = rows.shape[0]
        if k < size:
            block = np.empty((k, d + 1), dtype=X.dtype, order="F" if by_column else "C")
        weights = root[start : start + k]
        block[:, 0] = weights
        np.multiply(rows, weights[:, None], out=block[:, 1:])
        a, transposed = (block, 1) if by_column else (block.T, 0)
        if single:  # accumulate the blocks in double precision
            gram += syrk(1.0, a, trans=transposed, lower=1)
        else:
            gram = syrk(1.0, a, beta=1.0, c=gram, trans=transposed, lower=1, overwrite_c=1)
    upper = np.triu_indices(d + 1, 1)
    gram[upper] = gram.T[upper]
    return gram


def mirrored(lower: Array) -> Array:
    """A symmetric matrix of which only the lower triangle is right, in its place.

    Examples
    --------
    >>> mirrored(np.array([[1.0, 7.0], [2.0, 3.0]]))
    array([[1., 2.],
           [2., 3.]])
    """
    for start in range(0, lower.shape[0], MIRRORED):
        end = start + MIRRORED
        corner = lower[start:end, start:end]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        lower[start:end, end:] = lower[end:, start:end].T
    return lower


def expect_temporaries(size: int) -> None:
    """Tell the allocator that arrays of about `size` bytes in all will come and go.

    GNU's malloc returns freed memory to the system beyond twice the largest block it has seen freed, and a method of many
    short vector operations then spends a fifth of its time on getting the same pages back. Freeing one block of that size,
    which is never touched and so never occupies memory, raises the limit. Other allocators take no notice.
    """
    np.empty(min(size, LARGEST_BLOCK), dtype=np.uint8)
