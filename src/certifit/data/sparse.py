"""Sparse matrices of others: looked through before SciPy or native code follow their indices.

SciPy checks the arrays of a matrix when it is built, and not all of them; whoever writes into them afterwards, or builds one
around arrays of a file, can have entries outside of the matrix, and products then read and write anywhere in memory. The
flags that SciPy keeps (sorted, canonical) are as old as the last look at them, and are not believed either.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

import certifit._native.products as _products
from certifit._types import Array, Matrix, is_sparse

__all__ = ["canonical", "check_sparse"]

CURE = "Build it again from values, rows and columns: scipy.sparse.csr_array((values, (rows, columns)), shape=shape)"


def check_sparse(X: Any, name: str = "X") -> None:
    """An error that names the argument if the arrays of a sparse matrix do not describe one; else nothing happens.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from certifit.data.sparse import check_sparse
    >>> X = sp.csr_array(np.eye(3))
    >>> X.indices[1] = 10**6
    >>> check_sparse(X)
    Traceback (most recent call last):
        ...
    ValueError: X is a damaged sparse matrix: it has the column index 1000000, and 3 columns. Build it again ...
    """
    if not is_sparse(X):
        return
    if X.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, rows by columns; got a sparse array of shape {X.shape}.")
    kind = X.format
    if kind in ("csr", "csc", "bsr"):
        _check_compressed(X, name)
    elif kind == "coo":
        for axis, index in enumerate((X.row, X.col)):
            _check_index(name, index, X.shape[axis], ("row", "column")[axis], X.data.shape[0])
    elif kind == "dia":
        if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1] or X.offsets.dtype.kind not in "iu":
            _refuse(name, f"it has {X.offsets.shape} offsets for diagonals of shape {X.data.shape}")
    elif kind == "lil" and (
        X.rows.shape != X.shape[:1]
        or X.data.shape != X.shape[:1]
        or any(len(a) != len(b) for a, b in zip(X.rows, X.data, strict=True))
    ):
        _refuse(name, "its lists of columns and of values differ in length")
    elif kind == "lil":
        columns = [column for row in X.rows for column in row]
        _check_index(name, np.asarray(columns, dtype=np.int64), X.shape[1], "column", len(columns))


def _check_compressed(X: Matrix, name: str) -> None:
    """The pointers climb from 0 to the number of entries, and every index is inside."""
    axis = 1 if X.format == "csc" else 0
    block = X.data.shape[1:] if X.format == "bsr" else (1, 1)
    if len(block) != 2 or 0 in block or X.shape[0] % block[0] or X.shape[1] % block[1]:
        _refuse(name, f"its blocks of shape {block} do not fill {X.shape}")
    outer, inner = X.shape[axis] // block[axis], X.shape[1 - axis] // block[1 - axis]
    pointers = X.indptr
    if pointers.ndim != 1 or pointers.dtype.kind not in "iu" or pointers.shape[0] != outer + 1:
        _refuse(name, f"it has {pointers.shape[0] if pointers.ndim == 1 else pointers.shape} pointers, not {outer + 1}")
    stored = int(pointers[-1])
    if pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
        _refuse(name, "its pointers (indptr) do not start at 0 and climb")
    if stored > X.indices.shape[0] or stored > X.data.shape[0]:
        _refuse(
            name, f"its pointers end at {stored}, and it has {X.data.shape[0]} values, {X.indices.shape[0]} indices"
        )
    # SciPy lets arrays be longer than needed; what is beyond the last pointer is never read.
    _check_index(name, X.indices[:stored], inner, ("column", "row")[axis], stored)


def _check_index(name: str, index: Array, size: int, what: str, stored: int) -> None:
    if index.ndim != 1 or index.shape[0] != stored or index.dtype.kind not in "iu":
        _refuse(name, f"it has {stored} values, and {what} indices of shape {index.shape} and type {index.dtype}")
    if stored:
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= size:
            _refuse(name, f"it has the {what} index {low if low < 0 else high}, and {size} {what}s")


def _refuse(name: str, found: str) -> NoReturn:
    raise ValueError(f"{name} is a damaged sparse matrix: {found}. {CURE}.")


def canonical(X: Matrix) -> Matrix:
    """A CSR or CSC matrix with sorted indices and no duplicates; the user's own is never changed."""
    if _is_canonical(X):
        return X
    # A new matrix: the flags of the old one may say that there is nothing to do.
    made = type(X)((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    made.sum_duplicates()
    return made


def _is_canonical(X: Matrix) -> bool:
    """Whether the indices climb within every row (column)."""
    stored = int(X.indptr[-1])
    if stored != X.indices.shape[0] or stored != X.data.shape[0]:
        return False  # native code takes the length of the arrays for the number of entries
    if X.indices.dtype == X.indptr.dtype and X.indices.flags.c_contiguous and X.indptr.flags.c_contiguous:
        return bool(_products.climbs(X.indices, X.indptr))
    climbs: Any = X.indices[1:] > X.indices[:-1]
    starts = X.indptr[1:-1]
    climbs[starts[(starts > 0) & (starts < stored)] - 1] = True
    return bool(climbs.all())
