"""Sums over the rows of a sparse matrix, in native passes that read each stored number once (native/products/sparse.hpp)."""

from __future__ import annotations

from typing import Any

import numpy as np

import certifit._native.ridge as _ridge
from certifit._types import Array, Matrix

__all__ = ["arrays_of", "gram", "pullback", "residual"]


def arrays_of(X: Matrix) -> tuple[Any, Any, Any, int] | None:
    """Numbers, columns, starts of rows, and the number of columns of a CSR matrix; None where a native pass cannot read them."""
    if X.format != "csr" or X.dtype not in (np.float64, np.float32) or X.indices.dtype != X.indptr.dtype:
        return None
    parts = X.data, X.indices, X.indptr
    if not all(part.flags.c_contiguous for part in parts) or parts[0].shape[0] != X.indptr[-1]:
        return None
    return *parts, int(X.shape[1])


def gram(X: Matrix, p: Array, threads: int) -> Array | None:
    """Σ p x xᵀ, dense; None where SciPy has to make it.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> gram(sp.csr_array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 10.0]), 1)
    array([[ 1.,  2.],
           [ 2., 94.]])
    """
    arrays = (
        arrays_of(X) if X.has_canonical_format else None
    )  # a column that a row has twice makes more pairs than are visited
    return None if arrays is None else np.asarray(_ridge.gram(*arrays, np.ascontiguousarray(p), threads))


def pullback(X: Matrix, Q: Array, threads: int) -> Array:
    """Q·X for a few rows of Q."""
    arrays = arrays_of(X)
    if arrays is None:
        return np.stack([np.asarray(X.T @ q, dtype=np.float64) for q in Q])
    return np.asarray(_ridge.pullback(*arrays, np.ascontiguousarray(Q), threads))


def residual(X: Matrix, y: Array, p: Array, w: Array, b: float, threads: int) -> Array:
    """Σ p r x, Σ p r and Σ p r² of r = y − X·w − b, one after the other."""
    arrays = arrays_of(X)
    if arrays is None:
        r = y - b - X @ w
        q = p * r
        return np.concatenate([X.T @ q, [q.sum(), q @ r]])
    return np.asarray(_ridge.residual(*arrays, y, p, np.ascontiguousarray(w), float(b), threads))
