"""Columns of numbers as bytes: weighted quantile bins for trees.

    bin(x) = #{edges e of the column : x > e},   NaN → the bin after the last

A column with at most `max_bins` distinct values has a bin for each; otherwise bins share the weight evenly.
Edges are midpoints between neighboring distinct values and depend on the rows only through the weight of each
distinct value, so a row of weight 2 and the row given twice lead to the same edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

import certifit._native.binning as native
from certifit._types import Array, Matrix, is_sparse
from certifit.data.sparse import check_sparse
from certifit.parameters import Choice, Declared, Either, Fitted, Given, Integer, Nothing, Parameter, check_parameters

__all__ = ["Binner", "equal_weight_bins"]

SPARSE_COLUMNS = 8
"""Columns of a sparse matrix that are written out at the same time."""


class Binner(Declared):
    """Bins of one byte for each value of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.representation.table.binning import Binner
    >>> X = np.array([[1.0, 7.0], [2.0, 3.0], [4.0, 3.0], [np.nan, 3.0]])
    >>> binner = Binner(categorical=[1]).fit(X)
    >>> binner.edges_[0]
    array([1.5, 3. ])
    >>> binner.transform(X)
    array([[0, 1],
           [1, 0],
           [2, 0],
           [3, 0]], dtype=uint8)
    """

    max_bins: int = Parameter(255, Integer(2, 255), "Most bins of a column, not counting the bin of missing values.")
    categorical: Sequence[int] | None = Parameter(
        None,
        Either(Given("sequence of int"), Nothing()),
        "Numbers of the columns that hold categories (any numbers, compared for equality). The most frequent `max_bins` "
        "categories have a bin each, in order of decreasing weight; the others, and categories not seen by `fit`, share the bin "
        "of missing values.",
    )
    edges: str = Parameter(
        "shares",
        Choice("shares", "quantiles"),
        'Where edges are put among more values than bins: "shares" leaves each bin about its share of the weight that is left, '
        'and a heavy value a bin of its own; "quantiles" takes the quantiles k / `max_bins`, midway where two values are one.',
    )

    edges_: list[Array] = Fitted(
        "list of arrays", "Increasing edges of each column; empty for categorical columns. x ≤ edges[k] means bin ≤ k."
    )
    categories_: list[Array | None] = Fitted(
        "list of arrays or None", "For categorical columns the category of each bin, most frequent first."
    )
    n_bins_: Array = Fitted(
        "array of int, shape (n_features,)",
        "Bins for values. Missing values have the bin ``n_bins_[j]``, one more than the last.",
    )
    is_categorical_: Array = Fitted("array of bool, shape (n_features,)", "Which columns hold categories.")

    def fit(self, X: Matrix, weight: Array | None = None, *, n_threads: int = 1) -> Binner:
        """Place the edges.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), float32 or float64, any layout
            NaN marks missing values. A sparse matrix is read some columns at a time.
        weight : array of shape (n,), optional
            Positive weights; None counts every row once. Rows of weight zero are ignored.
        n_threads : int, default=1
            The result does not depend on it.
        """
        check_parameters(self)
        max_bins = int(self.max_bins)
        shares = _shares(max_bins) if self.edges == "quantiles" else None
        d = X.shape[1]
        weight = _useful_weight(weight)
        self.is_categorical_ = np.zeros(d, dtype=bool)
        listed = [] if self.categorical is None else list(self.categorical)
        self.is_categorical_[np.asarray(listed, dtype=np.int64)] = True
        self.edges_: list[Array] = [np.empty(0) for _ in range(d)]
        self.categories_: list[Array | None] = [None] * d
        self.n_bins_ = np.ones(d, dtype=np.int64)
        for first, block in _column_blocks(X):
            categorical = self.is_categorical_[first : first + block.shape[1]]
            numeric = np.flatnonzero(~categorical).astype(np.int64)
            found = native.quantile_edges(block, weight, numeric, max_bins, shares, n_threads)
            for j, edges in zip(first + numeric, found, strict=True):
                self.edges_[j] = edges
                self.n_bins_[j] = edges.shape[0] + 1
            for j in np.flatnonzero(categorical):
                kept = _frequent(block[:, j], weight, max_bins)
                self.categories_[first + j] = kept
                self.n_bins_[first + j] = kept.shape[0]
        return self

    def transform(self, X: Matrix, *, n_threads: int = 1) -> Array:
        """Bins of the rows: a uint8 array of the shape of X, column-major."""
        n, d = X.shape
        out = np.empty(n * d, dtype=np.uint8)
        self.transform_into(X, out, 1, np.arange(d, dtype=np.int64) * n, n_threads=n_threads)
        return out.reshape(d, n).T

    def transform_into(self, X: Matrix, out: Array, row_stride: int, column: Array, *, n_threads: int = 1) -> None:
        """Write the bin of row i, column j to ``out[i * row_stride + column[j]]``."""
        for first, block in _column_blocks(X):
            last = first + block.shape[1]
            rules = self.tables(first, last)
            native.transform_into(block, *rules, row_stride, column[first:last], out, n_threads)

    def tables(self, first: int = 0, last: int | None = None) -> tuple[Array, Array, Array, Array, Array]:
        """The rules of columns first … last − 1 as flat arrays for native code.

        Offsets, values, codes, categorical, missing bin:
        ``values[offsets[j]:offsets[j + 1]]`` are the edges of a numeric column, or sorted categories whose
        bins are the `codes` at the same places.
        """
        values, codes = [], []
        chosen = slice(first, last)
        for edges, categories in zip(self.edges_[chosen], self.categories_[chosen], strict=True):
            if categories is None:
                values.append(edges)
                codes.append(np.zeros(edges.shape[0], dtype=np.uint8))
            else:
                order = np.argsort(categories, kind="stable")
                values.append(categories[order])
                codes.append(order.astype(np.uint8))
        offsets = np.concatenate([[0], np.cumsum([v.shape[0] for v in values])]).astype(np.int64)
        return (
            offsets,
            np.concatenate([np.empty(0), *values]),
            np.concatenate([np.empty(0, dtype=np.uint8), *codes]),
            self.is_categorical_[chosen].astype(np.uint8),
            self.n_bins_[chosen].astype(np.uint8),
        )


@cache
def _shares(bins: int) -> Array:
    """k / bins as scikit-learn rounds it: whether rows meet a share exactly decides between two quantiles."""
    return np.asarray(np.linspace(0, 100, bins + 1)[1:-1] / 100)


def _column_blocks(X: Matrix) -> Iterator[tuple[int, Array]]:
    """First column and values, as floating point numbers: all columns at once, or some of a sparse matrix."""
    if not is_sparse(X):
        X = np.asarray(X)
        yield 0, X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        return
    check_sparse(X)  # whoever calls `Binner` itself comes through no other gate
    columns = X.tocsc()
    columns = columns if columns.dtype in (np.float32, np.float64) else columns.astype(np.float64)
    for first in range(0, X.shape[1], SPARSE_COLUMNS):
        yield first, columns[:, first : first + SPARSE_COLUMNS].toarray(order="F")


def _useful_weight(weight: Array | None) -> Array | None:
    """None when all weights are equal: the edges then depend on counts only, and sorting is faster."""
    if weight is None or weight.strides == (0,):  # one number, seen as many
        return None
    weight = np.ascontiguousarray(weight, dtype=np.float64)
    equal = bool(weight.size) and bool((weight == weight[0]).all()) and weight[0] > 0
    return None if equal else np.asarray(weight)


def _frequent(column: Array, weight: Array | None, max_bins: int) -> Array:
    """The `max_bins` categories of most weight, most frequent first; equal weights in order of value."""
    known = ~np.isnan(column)
    if weight is not None:
        known &= weight > 0
        weight = weight[known]
    values, which = np.unique(column[known].astype(np.float64), return_inverse=True)
    mass = np.bincount(which, weights=weight, minlength=values.shape[0])
    return np.asarray(values[np.argsort(-mass, kind="stable")[:max_bins]])


def equal_weight_bins(values: Array, weight: Array, bins: float) -> Array:
    """Number of the bin of each value: each distinct value its own where they are few, else bins of about equal weight.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.representation.table.binning import equal_weight_bins
    >>> equal_weight_bins(np.array([5.0, 7.0, 7.0, 9.0]), np.ones(4), 2)
    array([0, 1, 1, 1])
    """
    distinct, codes = np.unique(values, return_inverse=True)
    if distinct.shape[0] <= bins or distinct.dtype.kind not in "fiub":
        return np.asarray(codes)
    mass = np.bincount(codes, weights=weight)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return np.asarray(
        np.unique(np.minimum((middle * bins).astype(np.intp), int(bins) - 1), return_inverse=True)[1][codes]
    )
