"""Scaling of columns and rows: standardize, map to an interval, divide by the largest entry, normalize.

Columns   z_ij = (x_ij − mean_j) / scale_j            StandardScaler
          z_ij = low + (high − low) (x_ij − min_j) / (max_j − min_j)    MinMaxScaler
          z_ij = x_ij / max_i |x_ij|                  MaxAbsScaler
Rows      z_i  = x_i / ‖x_i‖                          Normalizer

What is learned of the columns is a fold over rows (`summaries`), so `partial_fit` on blocks of rows is `fit` on all of them.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import KeepsPrecision, TakesSparse
from certifit.data.gate import check_x
from certifit.data.sparse import canonical
from certifit.parameters import (
    Either,
    Fitted,
    Flag,
    Given,
    Nothing,
    OfColumns,
    OneOf,
    Parameter,
    Real,
    check_parameters,
)
from certifit.parameters.methods import DENSE, weights
from certifit.representation.basis.blocks import (
    blockwise,
    check_scaled,
    column_label,
    positive_rows,
    scaled_columns,
    unit_entries,
)
from certifit.representation.basis.summaries import ColumnExtremes, ColumnMoments

__all__ = ["MaxAbsScaler", "MinMaxScaler", "Normalizer", "StandardScaler"]

MISSING = OneOf(
    ("refuse", "keep"),
    'What NaN is: "refuse" raises an error; "keep" learns from the values that are there, and leaves NaN where it is.',
)
OF_EXTREMES = weights("Rows of weight zero are dropped; otherwise weights do not matter to extremes.")


class ColumnScaler(OfColumns, OneToOneFeatureMixin, KeepsPrecision, BaseEstimator):
    """What the scalers of columns share: NaN, float types, and going on from what was learned."""

    missing: str

    def _keeps_missing(self) -> bool:
        return vars(self).get("missing", "refuse") == "keep"  # a file of an earlier release has no such parameter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._keeps_missing()
        return tags


class CenteringScaler(ColumnScaler):
    """A scaler that can subtract something from every entry of a column, which sparse rows cannot bear."""

    _center: ClassVar[tuple[str, str]]
    """The parameter that asks for it, and what is subtracted."""
    scale_: Array

    def _shift(self) -> Array:
        """What is subtracted from each column, zero if nothing is."""
        raise TypeError(f"{type(self).__name__} must say what it subtracts.")

    def inverse_transform(self, X: Matrix) -> Matrix:
        """Rows in the original units: entries times the scale of their column, plus what was subtracted."""
        X = check_scaled(self, X, allow_nan=self._keeps_missing())
        if is_sparse(X):
            self._refuse_sparse()
            return scaled_columns(X, self.scale_, np.multiply)
        return blockwise(X, lambda block, scale, shift: block * scale + shift, self.scale_, self._shift())

    def _centers(self) -> bool:
        return bool(getattr(self, self._center[0]))

    def _check(self, X: Matrix, reset: bool) -> Matrix:
        if is_sparse(X):
            self._refuse_sparse()
        return check_x(self, X, reset=reset, allow_nan=self._keeps_missing())

    def _refuse_sparse(self) -> None:
        if self._centers():
            asked, subtracted = self._center
            raise ValueError(
                f"X is sparse and {asked}=True: subtracting the {subtracted} would fill its zeros. Scale without centering "
                f"({type(self).__name__}({asked}=False)), or pass X.toarray() if it fits in memory."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._centers()
        return tags


class _BlockScaler(ColumnScaler):
    """A scaler that learns by a sum over rows, and can go on from it."""

    _state: ClassVar[str]
    """The attribute that `partial_fit` goes on from."""

    def partial_fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more block of rows; all blocks together count as one `fit` of all rows."""
        before = vars(self).get(self._state)
        if before is None and hasattr(self, "n_features_in_"):
            raise ValueError(
                f"This {type(self).__name__} is from a file of an earlier release, which does not hold what partial_fit goes on "
                "from: fit it anew."
            )
        return self._learn(X, sample_weight, before)

    def _learn(self, X: Matrix, sample_weight: Any, before: Any) -> Self:
        """Learn from a block of rows and from what was known before it."""
        raise TypeError(f"{type(self).__name__} must say how it learns from a block of rows.")


class StandardScaler(CenteringScaler, _BlockScaler):
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
    missing: str = MISSING
    _state = "moments_"
    _center = ("with_mean", "mean")

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
    moments_: ColumnMoments = Fitted("ColumnMoments", "Weight, mean and deviation of the values seen in each column.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn mean and standard deviation of each column.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            The rows; sparse only if `with_mean=False`.
        """
        return self._learn(X, sample_weight, None)

    def _learn(self, X: Matrix, sample_weight: Any, before: ColumnMoments | None) -> Self:
        X = self._check(X, reset=before is None)
        found = ColumnMoments.of(*positive_rows(X, sample_weight), missing=self._keeps_missing())
        self.moments_ = found if before is None else before + found
        self.mean_, deviation = self.moments_.mean, self.moments_.deviation
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

    def _shift(self) -> Array:
        return self.mean_ if self.with_mean else np.zeros_like(self.mean_)


class MinMaxScaler(_BlockScaler, takes={"X": DENSE, "fit.sample_weight": OF_EXTREMES}):
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
    missing: str = MISSING
    _state = "data_min_"

    data_min_: Array = Fitted(
        "arrays of shape (n_features,)", "Extremes of each column, over the rows of positive weight."
    )
    data_max_: Array = Fitted(
        "arrays of shape (n_features,)", "Extremes of each column, over the rows of positive weight."
    )
    data_range_: Array = Fitted("array of shape (n_features,)", "max − min; 1 for constant columns.")
    constant_: Array = Fitted("array of shape (n_features,)", "True for columns with a single value.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the extremes of each column."""
        return self._learn(X, sample_weight, None)

    def _learn(self, X: Matrix, sample_weight: Any, before: Array | None) -> Self:
        check_parameters(self)
        if self.low is not None or self.high is not None:
            warnings.warn("MinMaxScaler: low and high are the pair feature_range now.", FutureWarning, stacklevel=3)
        self._interval()
        X = self._check(X, reset=before is None)
        self._within(X.dtype)
        found = ColumnExtremes.of(positive_rows(X, sample_weight)[0])
        if before is not None:
            found = ColumnExtremes(before, self.data_max_) + found
        self.data_min_, self.data_max_ = found.low, found.high
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

    def _check(self, X: Matrix, reset: bool) -> Array:
        return np.asarray(check_x(self, X, reset=reset, accept_sparse=False, allow_nan=self._keeps_missing()))

    def _within(self, dtype: np.dtype[Any]) -> None:
        """Refuse an interval that the float type of X does not hold."""
        low, high = self._interval()
        if max(abs(low), abs(high)) > float(np.finfo(dtype).max):
            raise ValueError(
                f"feature_range=({low:g}, {high:g}) is beyond single precision, which X has and keeps. "
                "Give X in double precision."
            )

    def transform(self, X: Matrix) -> Array:
        """Rows on the interval, in the float type of X."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        self._within(X.dtype)
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
        X = check_scaled(self, X, accept_sparse=False, allow_nan=self._keeps_missing())
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


class MaxAbsScaler(TakesSparse, _BlockScaler, takes={"fit.sample_weight": OF_EXTREMES}):
    """Columns between −1 and 1 whose zeros stay zero: z = x / max |x|.

    A column of zeros stays as it is. New rows may fall outside the interval unless `clip=True`.

    Examples
    --------
    >>> from certifit import MaxAbsScaler
    >>> MaxAbsScaler().fit([[1.0], [-4.0]]).transform([[2.0], [8.0]])
    array([[0.5],
           [2. ]])
    """

    clip: bool = Parameter(False, Flag(), "Move values outside the interval to its nearest end.")
    missing: str = MISSING
    _state = "max_abs_"

    max_abs_: Array = Fitted(
        "array of shape (n_features,)", "The largest absolute value of each column, over the rows of positive weight."
    )
    scale_: Array = Fitted("array of shape (n_features,)", "The same; 1 for columns of zeros.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the largest absolute value of each column."""
        return self._learn(X, sample_weight, None)

    def _learn(self, X: Matrix, sample_weight: Any, before: Array | None) -> Self:
        X = check_x(self, X, reset=before is None, allow_nan=self._keeps_missing())
        found = ColumnExtremes.of(positive_rows(X, sample_weight)[0])
        largest = np.fmax(np.abs(found.low), np.abs(found.high))
        self.max_abs_ = largest if before is None else np.fmax(before, largest)
        self.scale_ = np.where(self.max_abs_ == 0.0, 1.0, self.max_abs_)
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Rows divided by the largest entries, in the float type of X."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False, allow_nan=self._keeps_missing())
        if is_sparse(X):
            return scaled_columns(X, self.scale_, self._divided)
        return blockwise(X, self._divided, self.scale_)

    def inverse_transform(self, X: Matrix) -> Matrix:
        """Rows in the original units; what `clip` moved does not come back."""
        X = check_scaled(self, X, allow_nan=self._keeps_missing())
        if is_sparse(X):
            return scaled_columns(X, self.scale_, np.multiply)
        return blockwise(X, np.multiply, self.scale_)

    def _divided(self, values: Array, scale: Array) -> Array:
        found = values / scale
        return np.clip(found, -1.0, 1.0) if self.clip else found


class Normalizer(OfColumns, OneToOneFeatureMixin, KeepsPrecision, BaseEstimator):
    """Rows of norm one: z_i = x_i / ‖x_i‖. A row of zeros stays zero.

    Nothing is learned: `fit` only records the columns, and `transform` works without it.

    Examples
    --------
    >>> from certifit import Normalizer
    >>> Normalizer().fit_transform([[3.0, 4.0], [0.0, 0.0]])
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    norm: str = OneOf(("l2", "l1", "max"), "√Σ x², Σ |x| or max |x|.")

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
        return tags


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
