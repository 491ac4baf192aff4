"""Transforms for diminishing returns: the logarithm and saturating curves."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import KeepsPrecision, TakesSparse
from certifit.data.gate import check_x
from certifit.data.sparse import canonical
from certifit.parameters import Choice, Either, Fitted, Given, OfColumns, OneOf, Parameter, Real, check_parameters
from certifit.representation.basis.blocks import (
    blockwise,
    check_scaled,
    column_label,
    index_of_entries,
    weighted_rows,
    with_data,
)
from certifit.representation.basis.columns import weighted_quantiles
from certifit.representation.basis.summaries import column_values


class LogTransform(OfColumns, OneToOneFeatureMixin, KeepsPrecision, BaseEstimator):
    """Logarithm of each entry, for counts, amounts and other quantities whose effect levels off.

        mode="positive"   log(1 + x),  x ≥ 0
        mode="signed"     sign(x) · log(1 + |x|)

    Zero stays zero, so sparse X stays sparse. Nothing is learned.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LogTransform
    >>> LogTransform().fit_transform([[0.0, np.e - 1.0]])
    array([[0., 1.]])
    >>> LogTransform(mode="signed").fit_transform([[1.0 - np.e]])
    array([[-1.]])
    """

    mode: str = OneOf(("positive", "signed"), "Which of the two formulas.")

    def fit(self, X: Matrix, y: Any = None) -> Self:
        """Check the values and record the columns of X."""
        self._check_sign(check_x(self, X, reset=True))
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Logarithms of the entries, in the float type and sparse format of X."""
        check_parameters(self)
        X = check_x(self, X, reset=False)
        if is_sparse(X):
            X = canonical(X)  # the logarithm of a sum of duplicates is not the sum of the logarithms
        self._check_sign(X)
        return _entrywise(X, np.log1p if self.mode == "positive" else _signed_log)

    def inverse_transform(self, X: Matrix) -> Matrix:
        """Entries in the original units, exp(z) − 1."""
        X = check_scaled(self, X)
        return _entrywise(X, np.expm1 if self.mode == "positive" else _signed_exp)

    def _check_sign(self, X: Matrix) -> None:
        values = X.data if is_sparse(X) else X
        if self.mode == "signed" or not values.size or values.min() >= 0:
            return
        lowest = X.min(axis=0).toarray().ravel() if is_sparse(X) else X.min(axis=0)
        raise ValueError(
            f"Negative values in data passed to X of LogTransform: {column_label(self, lowest < 0)} has "
            f"{lowest[lowest < 0][0]:g}, and mode='positive' is log(1 + x) for x >= 0. Use mode='signed', "
            "or clip or shift the column."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.mode == "positive"
        tags.requires_fit = False
        return tags


class Saturation(OfColumns, OneToOneFeatureMixin, TakesSparse, KeepsPrecision, BaseEstimator):
    """Odd, increasing and bounded by one, with the value ½ at the half-saturation point of the column.

        shape="hyperbolic"   x / (|x| + half)
        shape="tanh"         tanh(artanh(½) · x / half)

    Examples
    --------
    >>> from certifit import Saturation
    >>> saturate = Saturation().fit([[1.0], [2.0], [30.0]])
    >>> saturate.half_
    array([2.])
    >>> saturate.transform([[0.0], [2.0], [-6.0]])
    array([[ 0.  ],
           [ 0.5 ],
           [-0.75]])
    """

    shape: str = OneOf(
        ("hyperbolic", "tanh"),
        "Which of the two formulas; the second saturates sooner.",
    )
    half: Any = Parameter(
        "median",
        Either(Choice("median"), Real(0, open_low=True), Given("array of shape (n_features,)", wrong=([1.0],))),
        'Half-saturation points. "median" learns the weighted median of |x| of each column; where that is zero, the median of '
        "the |x| that are not, and 1 for a column of zeros.",
    )

    half_: Array = Fitted("array of shape (n_features,)", "Half-saturation points in use.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the half-saturation points."""
        X = check_x(self, X, reset=True)
        X, weight = weighted_rows(X, sample_weight)
        if isinstance(self.half, str):
            columns = canonical(X.tocsc()) if is_sparse(X) else X
            self.half_ = np.array([_typical_size(*column_values(columns, weight, j)) for j in range(X.shape[1])])
        else:
            self.half_ = _one_per_column("half", self.half, X.shape[1])
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Saturated entries, in the float type and sparse format of X."""
        check_is_fitted(self, "half_")
        X = check_x(self, X, reset=False)
        if not is_sparse(X):
            return blockwise(X, self._saturate, self.half_)
        X = canonical(X)
        half = self.half_[index_of_entries(X, axis=1)]
        return with_data(X, self._saturate(X.data, half).astype(X.dtype, copy=False))

    def inverse_transform(self, X: Matrix) -> Array:
        """Entries in the original units; each must lie strictly between −1 and 1."""
        check_is_fitted(self, "half_")
        X = check_scaled(self, X, accept_sparse=False)
        outside = (np.abs(X) >= 1).any(axis=0)
        if outside.any():
            raise ValueError(
                f"X must lie strictly between -1 and 1 to be inverted: {column_label(self, outside)} "
                "does not. Fully saturated values have lost their size; clip them below 1 to get a large one."
            )
        return blockwise(X, self._restore, self.half_)

    def _saturate(self, x: Array, half: Array) -> Array:
        if self.shape == "tanh":
            with np.errstate(over="ignore"):
                return np.asarray(np.tanh(np.arctanh(0.5) * (x / half)))
        small = 0.5 * x.astype(np.float64, copy=False)  # halved, so that the sum below cannot overflow
        return np.asarray(small / (np.abs(small) + 0.5 * half))

    def _restore(self, z: Array, half: Array) -> Array:
        z = z.astype(np.float64, copy=False)
        if self.shape == "tanh":
            return np.asarray(np.arctanh(z) / np.arctanh(0.5) * half)
        return np.asarray(z / (1.0 - np.abs(z)) * half)


def _typical_size(values: Array, weight: Array) -> float:
    """Weighted median of |x|, of the nonzero ones if it is zero, one if there are none."""
    size, half = np.abs(values), np.array([0.5])
    median = float(weighted_quantiles(size, weight, half)[0])
    if median == 0.0 and size.any():
        median = float(weighted_quantiles(size[size > 0], weight[size > 0], half)[0])
    return median or 1.0


def _one_per_column(name: str, value: Any, d: int) -> Array:
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a positive number or one for each column; got {value!r}.") from error
    if numbers.shape not in ((), (d,)):
        raise ValueError(f"{name} must be a number or have shape ({d},), one for each column; got {numbers.shape}.")
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(f"{name} must be positive and finite; got {value!r}.")
    return np.full(d, numbers)


# Entries


def _entrywise(X: Matrix, function: Any) -> Matrix:
    return with_data(X, function(X.data)) if is_sparse(X) else blockwise(X, function)


def _signed_log(x: Array) -> Array:
    return np.asarray(np.copysign(np.log1p(np.abs(x)), x))


def _signed_exp(z: Array) -> Array:
    return np.asarray(np.copysign(np.expm1(np.abs(z)), z))


# Distances and rows
