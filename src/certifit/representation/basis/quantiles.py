"""Columns on the scale of their own ranks: a heavy tail, a gap or a unit no longer matters, the order does."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.base import KeepsPrecision
from certifit.data.gate import check_x
from certifit.parameters import Fitted, Integer, OfColumns, OneOf, Parameter
from certifit.representation.basis.blocks import check_scaled, weighted_rows
from certifit.representation.basis.columns import weighted_quantiles

__all__ = ["QuantileScaler"]


class QuantileScaler(OfColumns, OneToOneFeatureMixin, KeepsPrecision, BaseEstimator):
    """Each column by where its values lie among those seen: z = F(x), or Φ⁻¹(F(x)) on the scale of a normal distribution.

        F(v_k) = (Σ_i s_i [x_i < v_k] + ½ Σ_i s_i [x_i = v_k]) / Σ_i s_i     at the different quantiles v_k of the column

    and straight in between. Beyond the least and the greatest value seen, z stays what it is there; a constant column becomes ½,
    or 0.

    Examples
    --------
    >>> from certifit import QuantileScaler
    >>> scaler = QuantileScaler(output="uniform").fit([[1.0], [2.0], [3.0], [1000.0]])
    >>> scaler.transform([[2.0], [2.5], [1000.0], [1e9]]).ravel()
    array([0.375, 0.5  , 0.875, 0.875])
    """

    output: str = OneOf(("normal", "uniform"), "The scale of the result: Φ⁻¹(F) or F.")
    n_quantiles: int = Parameter(100, Integer(2), "Most points of each column between which the map is straight.")

    knots_: list[Array] = Fitted("list of arrays", "The quantiles v of each column, increasing.")
    levels_: list[Array] = Fitted("list of arrays", "What each of them becomes.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the quantiles of each column."""
        X = check_x(self, X, reset=True, accept_sparse=False)
        X, weight = weighted_rows(X, sample_weight)
        shares = np.linspace(0.0, 1.0, self.n_quantiles)
        self.knots_, self.levels_ = [], []
        for column in X.T:
            knots = np.unique(weighted_quantiles(column, weight, shares))
            below, above = _shares(column, weight, knots)
            self.knots_.append(knots)
            self.levels_.append(below if self.output == "uniform" else _normal(below, above))
        return self

    def transform(self, X: Matrix) -> Array:
        """Levels of the entries, in the float type of X."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False, accept_sparse=False)
        found = np.empty(X.shape, dtype=X.dtype, order="F")
        for j, (knots, levels) in enumerate(zip(self.knots_, self.levels_, strict=True)):
            half = 0.5 if np.abs(knots).max() > 1e307 else 1.0  # the difference of two halves does not overflow
            inner = np.interp(half * X[:, j], half * knots, levels)
            found[:, j] = np.clip(inner, levels[0], levels[-1])  # the rounding of a steep piece stays inside
        return found

    def inverse_transform(self, X: Matrix) -> Array:
        """The entries that have these levels; those beyond the ends become the ends."""
        check_is_fitted(self)
        X = check_scaled(self, X, accept_sparse=False)
        return np.column_stack(
            [
                np.interp(X[:, j], levels, knots)
                for j, (knots, levels) in enumerate(zip(self.knots_, self.levels_, strict=True))
            ]
        ).astype(X.dtype, copy=False)


def _shares(column: Array, weight: Array, knots: Array) -> tuple[Array, Array]:
    """F and 1 − F at the knots: the share of the weight below and above them, each with half of that on them."""
    order = np.argsort(column, kind="stable")
    first, last = (np.searchsorted(column[order], knots, side=side) for side in ("left", "right"))
    up = np.concatenate([[0.0], np.cumsum(weight[order])])
    down = np.concatenate([np.cumsum(weight[order][::-1])[::-1], [0.0]])
    return 0.5 * (up[first] + up[last]) / up[-1], 0.5 * (down[first] + down[last]) / up[-1]


def _normal(below: Array, above: Array) -> Array:
    """Φ⁻¹ of F, from the smaller of its two sides: 1 − F of a row with next to no weight is lost in F."""
    tail = ndtri(np.maximum(np.minimum(below, above), np.finfo(float).tiny))
    return np.asarray(np.where(below <= above, tail, -tail))
