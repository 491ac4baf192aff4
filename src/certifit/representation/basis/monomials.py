"""Polynomial features: all monomials up to a degree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, combinations_with_replacement, pairwise
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import KeepsPrecision, TakesSparse
from certifit.data.gate import check_x
from certifit.data.sparse import canonical
from certifit.parameters import Fitted, Flag, Integer, OfColumns, OneOf, Parameter, Real
from certifit.representation.basis.columns import input_names
from certifit.representation.design.blocks import row_blocks


class PolynomialFeatures(OfColumns, TakesSparse, KeepsPrecision, BaseEstimator):
    """All monomials of the columns up to a degree, in graded lexicographic order.

    For two columns and degree 2: x0, x1, x0², x0·x1, x1². There are C(d + p, p) − 1 of them for d columns and
    degree p, plus the constant if `include_bias`. Each monomial is an earlier one times a column, so the work
    is one multiplication for each number of the output, and the memory is the output. Sparse X gives sparse
    output, in time proportional to its stored entries.

    Examples
    --------
    >>> from certifit import PolynomialFeatures
    >>> expand = PolynomialFeatures(degree=2).fit([[2.0, 3.0]])
    >>> expand.transform([[2.0, 3.0]])
    array([[2., 3., 4., 6., 9.]])
    >>> expand.get_feature_names_out()
    array(['x0', 'x1', 'x0^2', 'x0 x1', 'x1^2'], dtype=object)
    """

    degree: int = Parameter(2, Integer(1), "Largest degree p.")
    interaction_only: bool = Parameter(False, Flag(), "Only products of different columns: no powers.")
    include_bias: bool = Parameter(
        False, Flag(), "Begin with a column of ones. Certifit's models fit their own intercept and need none."
    )
    order: str = OneOf(
        ("C", "F"),
        'Memory order of a dense result; "F" (contiguous columns) suits coordinate descent.',
    )
    max_gib: float = Parameter(
        16.0, Real(0, open_low=True, infinite=True), "Refuse to make a result of more GiB than this."
    )

    n_output_features_: int = Fitted("int", "Number of columns of the result.")

    def fit(self, X: Matrix, y: Any = None) -> Self:
        """Count the monomials; nothing is learned from the values."""
        X = check_x(self, X, reset=True)
        self.n_output_features_ = self._size(X.shape[1])
        # A sparse row may be short however many columns there are, as long as 64 bits can number them.
        if not is_sparse(X) or self.n_output_features_ >= 2**62:
            self._check_memory(1, self.n_output_features_ * X.dtype.itemsize)
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Monomials of the rows, in the float type (and sparse format) of X."""
        check_is_fitted(self, "n_output_features_")
        X = check_x(self, X, reset=False)
        sparse = is_sparse(X)
        with np.errstate(over="ignore", under="ignore"):
            out = self._sparse(canonical(X.tocsr())).asformat(X.format) if sparse else self._dense(X)
        # Only a large entry can overflow, and only then is the result searched for it.
        values = X.data if sparse else X
        largest = float(max(values.max(), -values.min())) if values.size else 0.0
        if self.degree * np.log(max(largest, 1.0)) >= np.log(float(np.finfo(X.dtype).max)):
            self._check_overflow(out)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the monomials, such as "x0^2 x1"."""
        check_is_fitted(self, "n_output_features_")
        names = input_names(self, input_features)
        return np.array([_monomial_name(names, factors) for factors in self._factors()], dtype=object)

    @property
    def powers_(self) -> Array:
        """Exponent of each column in each monomial, shape (n_output_features_, n_features_in_)."""
        check_is_fitted(self, "n_output_features_")
        rows = [np.bincount(factors, minlength=self.n_features_in_) for factors in self._factors()]
        return np.vstack([row.astype(np.int64) for row in rows])

    def _factors(self) -> Iterator[tuple[int, ...]]:
        choose = combinations if self.interaction_only else combinations_with_replacement
        first = 0 if self.include_bias else 1
        return chain.from_iterable(choose(range(self.n_features_in_), k) for k in range(first, self.degree + 1))

    def _size(self, d: int) -> int:
        """Number of monomials of d columns."""
        if self.interaction_only:
            size = sum(comb(d, k) for k in range(1, min(d, self.degree) + 1))
        else:
            size = comb(d + self.degree, self.degree) - 1
        return size + bool(self.include_bias)

    def _check_memory(self, rows: int, size: int) -> None:
        if size > self.max_gib * 2**30:
            raise ValueError(
                f"PolynomialFeatures(degree={self.degree}) of {self.n_features_in_} columns makes "
                f"{_count(self.n_output_features_)} columns; {rows:,} rows of them need "
                f"{_count(-(-size >> 30))} GiB, more than max_gib={self.max_gib:g}. Lower the degree, set "
                "interaction_only=True, select columns first, pass fewer rows at a time, or raise max_gib."
            )

    def _check_overflow(self, out: Matrix) -> None:
        if is_sparse(out):
            entries = out.tocoo()
            bad = entries.coords[1][~np.isfinite(entries.data)]
        else:
            bad = np.flatnonzero(~np.isfinite(out).all(axis=0))
        if not bad.size:
            return
        name = self.get_feature_names_out()[int(bad.min())]
        raise ValueError(
            f"X has values too large for degree {self.degree}: the monomial {name!r} overflows {out.dtype}. "
            "Scale the columns first, for example with StandardScaler."
        )

    def _dense(self, X: Array) -> Array:
        n, d = X.shape
        self._check_memory(n, n * self.n_output_features_ * X.dtype.itemsize)
        order: Any = self.order
        out = np.empty((n, self.n_output_features_), dtype=X.dtype, order=order)
        bias = int(self.include_bias)
        out[:, :bias] = 1.0
        levels = _levels(d, self.degree, self.interaction_only)
        # Blocks of rows, so that earlier monomials are still in the cache when they are multiplied; with
        # contiguous columns a product runs over a column anyway, and blocks would only jump between pages.
        for rows in row_blocks(n, self.n_output_features_, 1 << 19) if self.order == "C" else [slice(n)]:
            block = out[rows, bias:]
            block[:, :d] = X[rows]
            x = block[:, :d]  # the copy: contiguous in the order of the result
            for before, level in pairwise(levels):
                stop = before.base + before.size
                for j in range(d):
                    begin, end = level.base + level.starts[j], level.base + level.starts[j + 1]
                    if end > begin:
                        tail = block[:, before.base + level.tails[j] : stop]
                        np.multiply(tail, x[:, j : j + 1], out=block[:, begin:end])
        return out

    def _sparse(self, X: Matrix) -> Matrix:
        n, d = X.shape
        lengths, kind, repeats = np.unique(np.diff(X.indptr), return_inverse=True, return_counts=True)
        sizes = [self._size(int(length)) for length in lengths]
        # In Python's integers, which do not overflow before the memory has been checked.
        stored = sum(size * int(count) for size, count in zip(sizes, repeats, strict=True))
        index = np.int32 if max(stored, self.n_output_features_) < 2**31 else np.int64
        self._check_memory(n, stored * (X.dtype.itemsize + np.dtype(index).itemsize))
        indptr = np.concatenate([[0], np.cumsum(np.array(sizes, dtype=np.int64)[kind])])
        data, indices = np.empty(stored, dtype=X.dtype), np.empty(stored, dtype=index)
        levels = _levels(d, self.degree, self.interaction_only)
        bias = int(self.include_bias)
        if bias:
            data[indptr[:-1]], indices[indptr[:-1]] = 1.0, 0
        # Chunks of rows keep the index arithmetic in the cache, whatever the size of the result.
        cuts = np.searchsorted(indptr, np.arange(0, stored, 1 << 15), side="left")
        cuts = np.unique(np.concatenate([[0], cuts, [n]]))
        for first, last in pairwise(cuts):
            chunk = slice(X.indptr[first], X.indptr[last])
            offset = indptr[first:last] + bias
            parts = _sparse_monomials(
                X.indices[chunk].astype(np.int64),
                X.data[chunk],
                (X.indptr[first : last + 1] - X.indptr[first]).astype(np.int64),
                levels,
                self.interaction_only,
            )
            for base, columns, values, bounds in parts:
                count = np.diff(bounds)
                place = np.arange(values.size) + np.repeat(offset - bounds[:-1], count)
                data[place], indices[place] = values, columns + (base + bias)
                offset = offset + count
        matrix = type(X)((data, indices, indptr.astype(index)), shape=(n, self.n_output_features_))
        matrix.has_canonical_format = True
        return matrix


class _Level(NamedTuple):
    """The monomials of one degree, in lexicographic order.

    Those that begin with column j are x_j times the monomials of the degree below that begin at `tails[j]`
    and run to the end; they stand at `starts[j]` to `starts[j + 1]`. Positions are relative to `base`.
    """

    base: int
    size: int
    starts: Array
    tails: Array


def _levels(d: int, degree: int, interaction_only: bool) -> list[_Level]:
    levels = [_Level(0, d, np.arange(d + 1), np.arange(d))]
    for _ in range(2, degree + 1):
        before = levels[-1]
        tails = before.starts[1:] if interaction_only else before.starts[:-1]
        starts = np.concatenate([[0], np.cumsum(before.size - tails)])
        levels.append(_Level(before.base + before.size, int(starts[-1]), starts, tails))
    return levels


def _sparse_monomials(
    columns: Array, values: Array, indptr: Array, levels: Sequence[_Level], interaction_only: bool
) -> Iterator[tuple[int, Array, Array, Array]]:
    """Degree by degree: base, column within the degree, value, and the bounds of the rows in them.

    The same recursion as for dense rows, over stored entries instead of columns: the monomials of a row that
    begin with its entry t are that entry times the monomials of the degree below that begin at or after t.
    """
    row_of = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    starts = np.arange(columns.size + 1)
    position, product = columns, values
    yield levels[0].base, position, product, indptr
    for level in levels[1:]:
        begin = starts[1:] if interaction_only else starts[:-1]
        count = starts[indptr[row_of + 1]] - begin
        following = np.concatenate([[0], np.cumsum(count)])
        left = np.repeat(np.arange(columns.size), count)
        right = np.arange(left.size) + np.repeat(begin - following[:-1], count)
        position = (level.starts[:-1] - level.tails)[columns[left]] + position[right]
        product = values[left] * product[right]
        starts = following
        yield level.base, position, product, starts[indptr]


def _count(number: int) -> str:
    """A count for a message; binomials can have more digits than Python will print."""
    return f"{number:,}" if number < 10**15 else f"some 10^{int(number.bit_length() * 0.30103)}"


def _monomial_name(names: Array, factors: tuple[int, ...]) -> str:
    powers = [(names[j], factors.count(j)) for j in dict.fromkeys(factors)]
    return " ".join(f"{name}^{power}" if power > 1 else str(name) for name, power in powers) or "1"
