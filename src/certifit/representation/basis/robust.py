"""Scaling of columns by quantiles, which a few wild values cannot move."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.parameters import Fitted, Flag, Given, OneOf, Parameter, check_parameters
from certifit.representation.basis.blocks import blockwise, column_label, positive_rows, scaled_columns
from certifit.representation.basis.columns import interpolated_quantiles, weighted_quantiles
from certifit.representation.basis.scaling import MISSING, CenteringScaler
from certifit.representation.basis.summaries import present_values

__all__ = ["RobustScaler"]

QUANTILES = {"averaged": weighted_quantiles, "linear": interpolated_quantiles}


class RobustScaler(CenteringScaler):
    """Columns with median zero and distance one between two quantiles: z = (x − median) / (q_high − q_low).

    By default the quantiles are the quartiles; where they are equal their distance counts as one. With `unit_variance=True` the
    scale is divided by that of a standard normal variable, so that normal columns get variance one.

    Examples
    --------
    >>> from certifit import RobustScaler
    >>> scaler = RobustScaler().fit([[0.0], [1.0], [2.0], [3.0], [1000.0]])
    >>> scaler.center_, scaler.scale_
    (array([2.]), array([2.]))
    >>> scaler.transform([[4.0]])
    array([[1.]])
    """

    with_centering: bool = Parameter(
        True, Flag(), "Subtract the median. Not possible for sparse X, whose zeros would be filled."
    )
    with_scaling: bool = Parameter(True, Flag(), "Divide by the distance of the quantiles.")
    quantile_range: Any = Parameter(
        (25.0, 75.0),
        Given("pair of numbers", wrong=((75.0, 25.0), (-1.0, 50.0), (0.0, float("nan")), (0.0, 1.0, 2.0), ("a", "b"))),
        "The two quantiles, in percent.",
    )
    unit_variance: bool = Parameter(False, Flag(), "Scale normal columns to variance one.")
    quantiles: str = OneOf(
        ("averaged", "linear"),
        "Between two values with the fraction exactly between them their mean, or the broken line through the sorted values.",
    )
    missing: str = MISSING
    _center = ("with_centering", "median")

    center_: Array = Fitted("array of shape (n_features,)", "Weighted median of each column.")
    scale_: Array = Fitted(
        "array of shape (n_features,)",
        "Distance of the quantiles, 1 where it is zero; 1 everywhere if not `with_scaling`.",
    )

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn median and quantiles of each column.

        Parameters
        ----------
        X : array, frame or sparse matrix of shape (n_samples, n_features)
            The rows; sparse only if `with_centering=False`.
        """
        check_parameters(self)
        low, high = self._range()
        X, weight = positive_rows(self._check(X, reset=True), sample_weight)
        columns = X.tocsc() if is_sparse(X) else X
        fractions = np.array([low, 50.0, high]) / 100.0
        found = np.array([self._quantiles(columns, weight, j, fractions) for j in range(X.shape[1])])
        self.center_ = found[:, 1]
        self.scale_ = np.ones(X.shape[1])
        if self.with_scaling:
            with np.errstate(over="ignore"):
                width = found[:, 2] - found[:, 0]
            if np.isinf(width).any():
                raise ValueError(
                    f"X has a column whose quantiles differ by more than float64 can hold: "
                    f"{column_label(self, np.isinf(width))}. Change its unit, for example divide it by 2."
                )
            unit = float(ndtri(fractions[2]) - ndtri(fractions[0])) if self.unit_variance else 1.0
            self.scale_ = np.where(width == 0.0, 1.0, width) / unit
        return self

    def _quantiles(self, X: Matrix, weight: Array, j: int, fractions: Array) -> Array:
        values, mass = present_values(X, weight, j)
        return QUANTILES[self.quantiles](values, mass, fractions) if values.size else np.full(fractions.shape, np.nan)

    def transform(self, X: Matrix) -> Matrix:
        """Scaled rows, (x − center) / scale, in the float type of X."""
        check_is_fitted(self)
        X = self._check(X, reset=False)
        if is_sparse(X):
            return scaled_columns(X, self.scale_, np.divide)
        return blockwise(X, lambda block, shift, scale: (block - shift) / scale, self._shift(), self.scale_)

    def _shift(self) -> Array:
        return self.center_ if self.with_centering else np.zeros_like(self.center_)

    def _range(self) -> tuple[float, float]:
        """The two percentages, checked."""
        try:
            low, high = (float(end) for end in self.quantile_range)
        except (TypeError, ValueError) as error:
            raise ValueError(f"quantile_range must be a pair of numbers; got {self.quantile_range!r}.") from error
        least, most = (0.0, 100.0) if not self.unit_variance else (np.nextafter(0.0, 1.0), np.nextafter(100.0, 0.0))
        if not least <= low <= high <= most:
            raise ValueError(
                "quantile_range must be two percentages 0 <= low <= high <= 100, without 0 and 100 if unit_variance=True; got "
                f"{self.quantile_range!r}."
            )
        return low, high
