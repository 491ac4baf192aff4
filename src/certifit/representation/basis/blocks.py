"""Rows and entries as the maps of columns visit them: blocks that stay in the cache, stored entries of sparse matrices."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_sample_weight, check_x
from certifit.representation.design.blocks import row_blocks

BLOCK_ENTRIES = 1 << 15
"""Entries of a block of rows: a quarter of a megabyte, so that the block and a copy stay in the cache."""


def positive_rows(X: Matrix, sample_weight: Any) -> tuple[Matrix, Array]:
    """The rows of positive weight and their weights."""
    weight = check_sample_weight(sample_weight, X.shape[0])
    kept = weight > 0.0
    return (X, weight) if kept.all() else (X[kept], weight[kept])


def weighted_rows(X: Matrix, sample_weight: Any) -> tuple[Matrix, Array]:
    """The rows of positive weight and their weights, scaled by a power of two so that sums stay in range."""
    X, weight = positive_rows(X, sample_weight)
    # A power of two leaves the proportions exact.
    return X, np.ldexp(weight, -int(np.frexp(weight.max())[1]) + 1)


def unit_entries(X: Matrix, norm: str) -> Matrix:
    """A canonical sparse matrix with rows of norm one; a row of zeros stays zero."""
    rows, n = index_of_entries(X, axis=0), X.shape[0]
    values = X.data.astype(np.float64)
    peak = np.zeros(n)
    np.maximum.at(peak, rows, np.abs(values))
    peak[peak == 0.0] = 1.0
    values /= peak[rows]  # by the largest entry first: no square can overflow or vanish
    if norm != "max":
        sizes = values * values if norm == "l2" else np.abs(values)
        length = np.bincount(rows, weights=sizes, minlength=n)
        length[length == 0.0] = 1.0
        values /= (np.sqrt(length) if norm == "l2" else length)[rows]
    return with_data(X, values.astype(X.dtype))


def blockwise(X: Array, function: Callable[..., Array], *columns: Array) -> Array:
    """Apply function(block, *columns) to blocks of rows; the result has the shape, float type and order of X.

    The blocks stay in the cache between the operations of the function, and single precision is only rounded
    at the end, since the numbers of the columns are double. The function must work entry by entry.
    """
    out = np.empty(X.shape, dtype=X.dtype, order=memory_order(X))
    folds = run_length(X) if columns else 1
    whole = X.shape[0] // folds * folds
    if folds > 1:
        wide = [np.tile(column, folds) for column in columns]
        _fill(folded(out[:whole], folds), folded(X[:whole], folds), function, wide)
    else:
        whole = 0
    _fill(out[whole:], X[whole:], function, list(columns))
    return out


def _fill(out: Array, X: Array, function: Callable[..., Array], columns: list[Array]) -> None:
    for rows in row_blocks(X.shape[0], X.shape[1], BLOCK_ENTRIES):
        out[rows] = function(X[rows], *columns)


def run_length(X: Array) -> int:
    """How many consecutive rows to treat as one: NumPy's loop over a short row is mostly overhead."""
    return max(1, 512 // max(1, X.shape[1])) if X.flags.c_contiguous else 1


def folded(X: Array, folds: int) -> Array:
    """Runs of consecutive rows as one row each."""
    return X.reshape(X.shape[0] // folds, folds * X.shape[1])


def memory_order(X: Array) -> Any:
    """Layout of a dense matrix: "F" if columns are contiguous, otherwise "C"."""
    return "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"


def column_label(estimator: Any, wrong: Array) -> str:
    """The first column of a mask, by name where there is one, and how many more."""
    column, others = int(np.flatnonzero(wrong)[0]), int(wrong.sum()) - 1
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {column if names is None else repr(str(names[column]))} (and {others} more)"


def check_scaled(
    estimator: Any, X: Matrix, accept_sparse: bool | tuple[str, ...] = ("csr", "csc"), allow_nan: bool = False
) -> Matrix:
    """Input of an inverse transform: the number of columns matters, their names do not."""
    nameless = copy(estimator)
    if hasattr(nameless, "feature_names_in_"):
        del nameless.feature_names_in_
    if not hasattr(nameless, "n_features_in_"):
        return check_x(estimator, X, reset=False, accept_sparse=accept_sparse, allow_nan=allow_nan)
    X = X if is_sparse(X) else np.asarray(X)
    return check_x(nameless, X, reset=False, accept_sparse=accept_sparse, allow_nan=allow_nan)


# Sparse matrices


def scaled_columns(X: Matrix, scale: Array, operation: Callable[[Array, Array], Array]) -> Matrix:
    """Stored entries of a sparse matrix divided or multiplied by the scale of their column."""
    return with_data(X, operation(X.data, scale[index_of_entries(X, axis=1)]).astype(X.dtype, copy=False))


def index_of_entries(X: Matrix, axis: int) -> Array:
    """Row (axis 0) or column (axis 1) of each stored entry."""
    major = 0 if X.format == "csr" else 1
    if axis != major:
        return np.asarray(X.indices)
    return np.repeat(np.arange(X.shape[major]), np.diff(X.indptr))


def with_data(X: Matrix, data: Array) -> Matrix:
    """A sparse matrix with other entries at the same places."""
    return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
