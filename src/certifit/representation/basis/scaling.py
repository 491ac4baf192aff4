"""Scaling of columns and rows: standardize, map to an interval, normalize.

Columns   z_ij = (x_ij − mean_j) / scale_j            StandardScaler
          z_ij = low + (high − low) (x_ij − min_j) / (max_j − min_j)    MinMaxScaler
Rows      z_i  = x_i / ‖x_i‖                          Normalizer

Moments are accumulated in float64 whatever the type of X, by blocks of rows that fit in the cache: one pass
over the memory, each block centered on its own mean, blocks merged by the formula of Chan, Golub and LeVeque
(1983).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.data.gate import check_sample_weight, check_x
from certifit.data.sparse import canonical
from certifit.parameters import (
    Choice,
    Either,
    Fitted,
    Flag,
    Given,
    Nothing,
    OfColumns,
    Parameter,
    Real,
    check_parameters,
)

__all__ = ["MinMaxScaler", "Normalizer", "StandardScaler"]

BLOCK_ENTRIES = 1 << 15
"""Entries of a block of rows: a quarter of a megabyte, so that the block and a copy stay in the cache."""


class StandardScaler(OfColumns, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns with mean zero and variance one: z = (x − mean) / scale.

        mean_j = Σ_i s_i x_ij / Σ_i s_i,      scale_j² = Σ_i s_i (x_ij − mean_j)² / Σ_i s_i

    `StandardScaler(with_std=False)` only centers. A constant column has scale 1, so it becomes zero.

    Examples
    --------
    >>> from certifit import StandardScaler
    >>> scaler = StandardScaler().fit([[0.0, 5.0], [2.0, 5.0]], sample_weight=[1, 3])
    >>> scaler.mean_
    array([1.5, 5. ])
    >>> scaler.constant_
    array([False,  True])
    >>> scaler.transform([[1.5, 5.0]])
    array([[0., 0.]])
    """

    with_mean: bool = Parameter(
        True, Flag(), "Subtract the mean. Not possible for sparse X, whose zeros would be filled."
    )
    with_std: bool = Parameter(True, Flag(), "Divide by the standard deviation.")

    mean_: Array = Fitted("array of shape (n_features,)", "Weighted mean of each column.")
    scale_: Array = Fitted(
        "array of shape (n_features,)",
        "Weighted population standard deviation; 1 for constant columns and everywhere if not `with_std`.",
    )
    var_: Array = Fitted(
        "array of shape (n_features,)",
        "Square of the standard deviation. Where the deviation exceeds 1e154 the square is not representable and is "
        "infinite; `scale_` is right even there.",
    )
    constant_: Array = Fitted("array of shape (n_features,)", "True for columns with a single value.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn mean and standard deviation of each column.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            The rows; sparse only if `with_mean=False`.
        """
        X = self._check(X, reset=True)
        X, weight = weighted_rows(X, sample_weight)
        self.mean_, deviation = mean_and_deviation(X, weight)
        self.constant_ = deviation == 0.0
        with np.errstate(over="ignore", under="ignore"):
            self.var_ = deviation * deviation
        self.scale_ = np.where(self.constant_, 1.0, deviation) if self.with_std else np.ones_like(deviation)
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Scaled rows, (x − mean) / scale, in the float type of X."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        if is_sparse(X):
            return scaled_columns(X, self.scale_, np.divide)
        if self.with_mean and self.with_std:
            return blockwise(X, lambda block, mean, scale: (block - mean) / scale, self.mean_, self.scale_)
        if self.with_mean:
            return blockwise(X, np.subtract, self.mean_)
        return blockwise(X, np.divide, self.scale_)

    def inverse_transform(self, X: Matrix) -> Matrix:
        """Rows in the original units, z · scale + mean."""
        X = check_scaled(self, X)
        if is_sparse(X):
            self._refuse_sparse()
            return scaled_columns(X, self.scale_, np.multiply)
        shift = self.mean_ if self.with_mean else np.zeros_like(self.mean_)
        return blockwise(X, lambda block, scale, mean: block * scale + mean, self.scale_, shift)

    def _check(self, X: Matrix, reset: bool) -> Matrix:
        if is_sparse(X):
            self._refuse_sparse()
        return check_x(self, X, reset=reset)

    def _refuse_sparse(self) -> None:
        if self.with_mean:
            raise ValueError(
                "X is sparse and with_mean=True: subtracting the mean would fill its zeros. Scale without "
                "centering (StandardScaler(with_mean=False)), or pass X.toarray() if it fits in memory."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class MinMaxScaler(OfColumns, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns on the interval (low, high) = `feature_range`: z = low + (high − low)·(x − min) / (max − min).

    The minimum of the training rows goes to `low` and the maximum to `high`, both exactly. A constant column
    goes to `low`. New rows may fall outside the interval unless `clip=True`.

    Examples
    --------
    >>> from certifit import MinMaxScaler
    >>> scaler = MinMaxScaler(feature_range=(-1.0, 1.0)).fit([[0.0], [4.0]])
    >>> scaler.transform([[1.0], [4.0], [8.0]])
    array([[-0.5],
           [ 1. ],
           [ 3. ]])
    """

    feature_range: Any = Parameter(
        (0.0, 1.0),
        Given("pair of numbers", wrong=((1.0, 0.0), (0.0, float("nan")), (0.0, 1.0, 2.0), ("a", "b"))),
        "Images of the minimum and of the maximum.",
    )
    clip: bool = Parameter(False, Flag(), "Move values outside the interval to its nearest end.")
    low: float | None = Parameter(None, Either(Nothing(), Real()), "Old name of the first of `feature_range`.")
    high: float | None = Parameter(None, Either(Nothing(), Real()), "Old name of the second.")

    data_min_: Array = Fitted(
        "arrays of shape (n_features,)", "Extremes of each column, over the rows of positive weight."
    )
    data_max_: Array = Fitted(
        "arrays of shape (n_features,)", "Extremes of each column, over the rows of positive weight."
    )
    data_range_: Array = Fitted("array of shape (n_features,)", "max − min; 1 for constant columns.")
    constant_: Array = Fitted("array of shape (n_features,)", "True for columns with a single value.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the extremes of each column.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The rows.
        sample_weight : array of shape (n_samples,), default=None
            Rows of weight zero are dropped; otherwise weights do not matter to extremes.
        """
        check_parameters(self)
        if self.low is not None or self.high is not None:
            warnings.warn("MinMaxScaler: low and high are the pair feature_range now.", FutureWarning, stacklevel=2)
        self._interval()
        X = check_x(self, X, reset=True, accept_sparse=False)
        X, _ = weighted_rows(X, sample_weight)
        self.data_min_, self.data_max_ = _extremes(X)
        self.constant_ = self.data_min_ == self.data_max_
        with np.errstate(over="ignore"):
            width = self.data_max_ - self.data_min_
        if np.isinf(width).any():
            raise ValueError(
                f"X has a column whose maximum minus minimum overflows float64: "
                f"{column_label(self, np.isinf(width))}. Change its unit, for example divide it by 2."
            )
        self.data_range_ = np.where(self.constant_, 1.0, width)
        return self

    def transform(self, X: Matrix) -> Array:
        """Rows on the interval, in the float type of X."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False, accept_sparse=False)
        low, high = self._interval()

        def scaled(block: Array, smallest: Array, width: Array) -> Array:
            z = (block - smallest) / width
            if (low, high) != (0.0, 1.0):
                # Not low + (high − low) z: this form is exact at both ends.
                z = low * (1.0 - z) + high * z
            return np.clip(z, low, high) if self.clip else z

        return blockwise(X, scaled, self.data_min_, self.data_range_)

    def inverse_transform(self, X: Matrix) -> Array:
        """Rows in the original units; what `clip` moved does not come back."""
        X = check_scaled(self, X, accept_sparse=False)
        low, high = self._interval()
        width = high - low

        def restored(block: Array, smallest: Array, span: Array) -> Array:
            return (block - low) / width * span + smallest

        return blockwise(X, restored, self.data_min_, self.data_range_)

    def _interval(self) -> tuple[float, float]:
        """Both ends, checked; a file of an earlier release has them as `low` and `high`."""
        given = vars(self).get("feature_range", (0.0, 1.0))
        try:
            first, second = (float(end) for end in given)
        except (TypeError, ValueError) as error:
            raise ValueError(f"feature_range must be a pair of numbers; got {given!r}.") from error
        low = first if self.low is None else float(self.low)
        high = second if self.high is None else float(self.high)
        if not (np.isfinite([low, high]).all() and low < high):
            raise ValueError(f"feature_range must be two finite numbers low < high; got {(low, high)!r}.")
        return low, high

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Normalizer(OfColumns, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Rows of norm one: z_i = x_i / ‖x_i‖. A row of zeros stays zero.

    Nothing is learned: `fit` only records the columns, and `transform` works without it.

    Examples
    --------
    >>> from certifit import Normalizer
    >>> Normalizer().fit_transform([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    norm: str = Parameter("l2", Choice("l2", "l1", "max"), "√Σ x², Σ |x| or max |x|.")

    def fit(self, X: Matrix, y: Any = None) -> Self:
        """Check the parameter and record the columns of X."""
        check_x(self, X, reset=True)
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Rows divided by their norm, in the float type and sparse format of X."""
        check_parameters(self)
        X = check_x(self, X, reset=False)
        if not is_sparse(X):
            with np.errstate(all="ignore"):  # rows that overflow here are done again
                return blockwise(X, lambda block: _unit_rows(block.astype(np.float64, copy=False), self.norm))
        return unit_entries(canonical(X), self.norm)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# Rows, weights and blocks


def weighted_rows(X: Matrix, sample_weight: Any) -> tuple[Matrix, Array]:
    """The rows of positive weight and their weights, scaled by a power of two so that sums stay in range."""
    weight = check_sample_weight(sample_weight, X.shape[0])
    kept = weight > 0.0
    if not kept.all():
        X, weight = X[kept], weight[kept]
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


def row_blocks(n: int, d: int, entries: int = BLOCK_ENTRIES) -> Iterator[slice]:
    """Slices of consecutive rows with about `entries` entries each."""
    step = max(16, entries // max(d, 1))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))


def blockwise(X: Array, function: Callable[..., Array], *columns: Array) -> Array:
    """Apply function(block, *columns) to blocks of rows; the result has the shape, float type and order of X.

    The blocks stay in the cache between the operations of the function, and single precision is only rounded
    at the end, since the numbers of the columns are double. The function must work entry by entry.
    """
    out = np.empty(X.shape, dtype=X.dtype, order=memory_order(X))
    folds = _folds(X) if columns else 1
    whole = X.shape[0] // folds * folds
    if folds > 1:
        wide = [np.tile(column, folds) for column in columns]
        _fill(_folded(out[:whole], folds), _folded(X[:whole], folds), function, wide)
    else:
        whole = 0
    _fill(out[whole:], X[whole:], function, list(columns))
    return out


def _fill(out: Array, X: Array, function: Callable[..., Array], columns: list[Array]) -> None:
    for rows in row_blocks(*X.shape):
        out[rows] = function(X[rows], *columns)


def _folds(X: Array) -> int:
    """How many consecutive rows to treat as one: NumPy's loop over a short row is mostly overhead."""
    return max(1, 512 // max(1, X.shape[1])) if X.flags.c_contiguous else 1


def _folded(X: Array, folds: int) -> Array:
    return X.reshape(X.shape[0] // folds, folds * X.shape[1])


def memory_order(X: Array) -> Any:
    """Layout of a dense matrix: "F" if columns are contiguous, otherwise "C"."""
    return "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"


def column_label(estimator: Any, wrong: Array) -> str:
    """The first column of a mask, by name where there is one, and how many more."""
    column, others = int(np.flatnonzero(wrong)[0]), int(wrong.sum()) - 1
    names = getattr(estimator, "feature_names_in_", None)
    return f"column {column if names is None else repr(str(names[column]))} (and {others} more)"


def check_scaled(estimator: Any, X: Matrix, accept_sparse: bool | tuple[str, ...] = ("csr", "csc")) -> Matrix:
    """Input of an inverse transform: the number of columns matters, their names do not."""
    nameless = copy(estimator)
    if hasattr(nameless, "feature_names_in_"):
        del nameless.feature_names_in_
    if not hasattr(nameless, "n_features_in_"):
        return check_x(estimator, X, reset=False, accept_sparse=accept_sparse)
    return check_x(nameless, X if is_sparse(X) else np.asarray(X), reset=False, accept_sparse=accept_sparse)


# Sparse matrices


def is_sparse(X: Matrix) -> bool:
    """Whether X is a SciPy sparse matrix; a plain bool (SciPy's check narrows to a type without methods)."""
    return bool(sp.issparse(X))


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
    return type(X)((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)


# Moments


def mean_and_deviation(X: Matrix, weight: Array) -> tuple[Array, Array]:
    """Weighted mean and population standard deviation of the columns, zero exactly for constant columns."""
    if is_sparse(X):
        X = canonical(X)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mean, variance = _sparse_moments(X, weight) if is_sparse(X) else _dense_moments(X, weight)
        deviation = np.sqrt(variance)
        # Squares near the ends of the exponent range, or a spread near the rounding of the mean: such columns
        # are done again with more care. The usual column pays nothing for it.
        sound = (variance > 1e-250) & (variance < 1e250) & (deviation > 1e-6 * np.abs(mean))
    if not sound.all():
        columns = X.tocsc() if is_sparse(X) else X
        for j in np.flatnonzero(~sound):
            mean[j], deviation[j] = _careful_moments(*column_values(columns, weight, int(j)))
    return mean, deviation


def _dense_moments(X: Array, weight: Array) -> tuple[Array, Array]:
    n, d = X.shape
    total, mean, spread = 0.0, np.zeros(d), np.zeros(d)
    for rows in row_blocks(n, d):
        w = weight[rows]
        block = X[rows].astype(np.float64, copy=False)
        mass = w.sum()
        center = (w @ block) / mass
        centered = block - center
        np.multiply(centered, centered, out=centered)
        shift = center - mean
        total += mass
        mean += shift * (mass / total)
        spread += w @ centered + shift * shift * (mass * (total - mass) / total)
    return mean, spread / total


def _sparse_moments(X: Matrix, weight: Array) -> tuple[Array, Array]:
    d = X.shape[1]
    columns, w = index_of_entries(X, axis=1), weight[index_of_entries(X, axis=0)]
    values, total = X.data.astype(np.float64), weight.sum()
    mean = np.bincount(columns, weights=w * values, minlength=d) / total
    stored = np.bincount(columns, weights=w, minlength=d)
    centered = values - mean[columns]
    spread = np.bincount(columns, weights=w * centered * centered, minlength=d)
    # The zeros that are not stored are all at distance |mean|.
    return mean, (spread + np.maximum(total - stored, 0.0) * mean * mean) / total


def _extremes(X: Array) -> tuple[Array, Array]:
    """Minimum and maximum of each column, as float64."""
    d, folds = X.shape[1], _folds(X)
    whole = X.shape[0] // folds * folds
    parts = [X]
    if folds > 1 and whole > 0:
        folded = _folded(X[:whole], folds)
        parts = [folded[rows] for rows in row_blocks(*folded.shape)]
        parts += [X[whole:]] if whole < X.shape[0] else []
    low = np.min([part.min(axis=0).reshape(-1, d).min(axis=0) for part in parts], axis=0)
    high = np.max([part.max(axis=0).reshape(-1, d).max(axis=0) for part in parts], axis=0)
    return low.astype(np.float64), high.astype(np.float64)


def column_values(X: Matrix, weight: Array, j: int) -> tuple[Array, Array]:
    """Values and weights of one column of a dense or CSC matrix.

    The zeros that are not stored count as one entry with their total weight.
    """
    if not is_sparse(X):
        return X[:, j].astype(np.float64), weight
    stored = slice(X.indptr[j], X.indptr[j + 1])
    values, mass = X.data[stored].astype(np.float64), weight[X.indices[stored]]
    if values.size == X.shape[0]:
        return values, mass
    return np.append(values, 0.0), np.append(mass, max(weight.sum() - mass.sum(), 0.0))


def _careful_moments(values: Array, weight: Array) -> tuple[float, float]:
    """Mean and deviation of one column, scaled to magnitude one and shifted by its first value."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    scaled = np.ldexp(values, -exponent)
    offset = scaled[0]
    scaled -= offset
    if not scaled.any():
        return float(values[0]), 0.0
    shift = (weight @ scaled) / weight.sum()
    deviation = np.sqrt((weight @ (scaled - shift) ** 2) / weight.sum())
    return float(np.ldexp(offset + shift, exponent)), float(np.ldexp(deviation, exponent))


def _unit_rows(block: Array, norm: str) -> Array:
    length = _lengths(block, norm)
    # Only rows whose squares leave the exponent range, and rows of zeros, pay for scaling.
    poor = ~((length > 1e-125) & (length < 1e125))
    out = block / length
    if poor.any():
        rows = block[poor[:, 0]]
        peak = np.abs(rows).max(axis=1, keepdims=True)
        rows = rows / np.where(peak > 0.0, peak, 1.0)
        out[poor[:, 0]] = rows / np.where(peak > 0.0, _lengths(rows, norm), 1.0)
    return out


def _lengths(rows: Array, norm: str) -> Array:
    if norm == "l2":
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None])
    size = np.abs(rows)
    return np.asarray(size.sum(axis=1, keepdims=True) if norm == "l1" else size.max(axis=1, keepdims=True))
