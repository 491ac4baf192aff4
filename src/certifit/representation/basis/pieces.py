"""Piecewise bases of single columns: bins and splines."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.data.gate import check_x
from certifit.parameters import Choice, Either, Fitted, Flag, Given, Integer, OfColumns, Parameter
from certifit.representation.basis.columns import input_names, weighted_quantiles
from certifit.representation.basis.scaling import (
    weighted_rows,
)


class Discretizer(OfColumns, TransformerMixin, BaseEstimator):
    """Each column cut into bins; a linear model on the indicators is a step function of the column.

    Inner edges e_1 < … < e_k make the bins (−∞, e_1), [e_1, e_2), …, [e_k, ∞), so new values always have one.
    Edges that would leave a bin empty of training rows for certain (repeated ones, or those at the minimum)
    are dropped.

    Examples
    --------
    >>> from certifit import Discretizer
    >>> cut = Discretizer(bins=2, encode="ordinal").fit([[1.0], [2.0], [3.0], [40.0]])
    >>> cut.edges_
    [array([2.5])]
    >>> cut.transform([[2.0], [2.5], [100.0]]).ravel()
    array([0., 1., 1.])
    """

    bins: Any = Parameter(
        5,
        Either(Integer(2), Given("sequence of numbers or of such sequences", wrong=([2.0, 1.0], [np.nan]))),
        "Number of bins for each column; or increasing inner edges, the same for all columns; or one sequence of increasing "
        "inner edges for each column.",
    )
    strategy: str = Parameter(
        "quantile",
        Choice("quantile", "uniform"),
        "Bins of equal weight, or of equal width. Not used when edges are given.",
    )
    encode: str = Parameter(
        "onehot", Choice("onehot", "ordinal"), "One indicator column for each bin, or the number of the bin."
    )
    sparse_output: bool = Parameter(False, Flag(), "Give the indicators as a CSR matrix.")

    edges_: list[Array] = Fitted("list of arrays", "Inner edges of each column.")
    n_bins_: Array = Fitted(
        "array of shape (n_features,)", "Number of bins of each column; less than asked where values are few."
    )

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the edges.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The rows.
        """
        X = check_x(self, X, reset=True, accept_sparse=False)
        X, weight = weighted_rows(X, sample_weight)
        if isinstance(self.bins, numbers.Integral):
            self.edges_ = [_inner_cuts(X[:, j], weight, int(self.bins), self.strategy) for j in range(X.shape[1])]
        else:
            self.edges_ = _given_edges(self.bins, X.shape[1])
        self.n_bins_ = np.array([edges.size + 1 for edges in self.edges_])
        return self

    def transform(self, X: Matrix) -> Matrix:
        """Indicators or numbers of the bins, in the float type of X."""
        check_is_fitted(self, "edges_")
        X = check_x(self, X, reset=False, accept_sparse=False)
        n, d = X.shape
        if self.encode == "ordinal":
            out = np.empty((n, d), dtype=X.dtype)
            for j, edges in enumerate(self.edges_):
                out[:, j] = np.searchsorted(edges, X[:, j], side="right")
            return out
        offsets = np.cumsum(self.n_bins_) - self.n_bins_
        width = int(self.n_bins_.sum())
        hot = np.empty((n, d), dtype=np.int64)
        for j, edges in enumerate(self.edges_):
            hot[:, j] = np.searchsorted(edges, X[:, j], side="right") + offsets[j]
        if self.sparse_output:
            indptr = np.arange(0, n * d + 1, d)
            return sp.csr_array((np.ones(n * d, dtype=X.dtype), hot.ravel(), indptr), shape=(n, width))
        out = np.zeros((n, width), dtype=X.dtype)
        np.put_along_axis(out, hot, 1.0, axis=1)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns, with "_" and the number of the bin for indicators."""
        check_is_fitted(self, "edges_")
        names = input_names(self, input_features)
        if self.encode == "ordinal":
            return names
        pairs = zip(names, self.n_bins_, strict=True)
        return np.array([f"{name}_{k}" for name, count in pairs for k in range(count)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SplineBasis(OfColumns, TransformerMixin, BaseEstimator):
    """B-splines of each column: smooth bumps that sum to one, so a linear model is a smooth curve of each
    column.

    With k knots and degree p each column gives k + p − 1 splines, k + p − 2 without the last, which the
    intercept makes redundant. Beyond the outer knots the curve continues as a constant.

    Examples
    --------
    >>> from certifit import SplineBasis
    >>> SplineBasis(knots=[0.0, 1.0, 2.0], degree=1, include_bias=True).fit_transform([[0.25], [2.0]])
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    knots: Any = Parameter(
        5,
        Either(Integer(2), Given("sequence of numbers", wrong=([2.0, 1.0], [np.nan]))),
        "Number of knots for each column, outer ones included; or the increasing knots, the same for all columns.",
    )
    degree: int = Parameter(3, Integer(0), "Degree of the pieces: 1 for broken lines, 3 for smooth curves.")
    strategy: str = Parameter(
        "quantile", Choice("quantile", "uniform"), "Knots at weighted quantiles, or evenly spaced."
    )
    include_bias: bool = Parameter(False, Flag(), "Keep the last spline of each column.")

    knots_: list[Array] = Fitted("list of arrays", "Knots of each column, outer ones included.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the knots.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The rows.
        """
        X = check_x(self, X, reset=True, accept_sparse=False)
        X, weight = weighted_rows(X, sample_weight)
        if isinstance(self.knots, numbers.Integral):
            self.knots_ = [_knots(X[:, j], weight, int(self.knots), self.strategy) for j in range(X.shape[1])]
        else:
            given = _increasing("knots", self.knots)
            if given.size < 2:
                raise ValueError(f"knots must have at least two numbers, the two outer knots; got {self.knots!r}.")
            self.knots_ = [given] * X.shape[1]
        return self

    def transform(self, X: Matrix) -> Array:
        """Values of the splines, in the float type of X."""
        check_is_fitted(self, "knots_")
        X = check_x(self, X, reset=False, accept_sparse=False)
        bounds = np.concatenate([[0], np.cumsum(self._widths())])
        out = np.empty((X.shape[0], int(bounds[-1])), dtype=X.dtype)
        for j, knots in enumerate(self.knots_):
            # Repeated outer knots: the splines live on the interval only, and the first and last reach one
            # there.
            ends = np.ones(self.degree)
            repeated = np.concatenate([knots[0] * ends, knots, knots[-1] * ends])
            inside = np.clip(X[:, j].astype(np.float64), knots[0], knots[-1])
            splines = BSpline.design_matrix(inside, repeated, self.degree).toarray()
            out[:, bounds[j] : bounds[j + 1]] = splines[:, : bounds[j + 1] - bounds[j]]
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns with "_sp" and the number of the spline."""
        check_is_fitted(self, "knots_")
        pairs = zip(input_names(self, input_features), self._widths(), strict=True)
        return np.array([f"{name}_sp{k}" for name, count in pairs for k in range(count)], dtype=object)

    def _widths(self) -> list[int]:
        return [knots.size + self.degree - 1 - (not self.include_bias) for knots in self.knots_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _cuts(values: Array, weight: Array, fractions: Array, strategy: str) -> Array:
    if strategy == "quantile":
        return weighted_quantiles(values, weight, fractions)
    low, high = float(values.min()), float(values.max())
    return np.asarray(low * (1.0 - fractions) + high * fractions)


def _inner_cuts(values: Array, weight: Array, count: int, strategy: str) -> Array:
    edges = np.unique(_cuts(values, weight, np.arange(1, count) / count, strategy))
    return np.asarray(edges[edges > values.min()])


def _knots(values: Array, weight: Array, count: int, strategy: str) -> Array:
    inner = _cuts(values, weight, np.arange(1, count - 1) / (count - 1), strategy)
    low, high = float(values.min()), float(values.max())
    if low == high:  # a constant column: any interval around it will do
        high = low + max(1.0, abs(low))
    return np.unique(np.concatenate([[low], inner, [high]]))


def _increasing(name: str, numbers: Any) -> Array:
    try:
        edges = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers; got {numbers!r}.") from error
    if edges.ndim != 1 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ValueError(f"{name} must be finite and increasing numbers; got {numbers!r}.")
    return edges


def _given_edges(bins: Any, d: int) -> list[Array]:
    bins = list(bins)
    if not any(np.ndim(edges) for edges in bins):
        return [_increasing("bins", bins)] * d
    if len(bins) != d:
        raise ValueError(
            f"bins has edges for {len(bins)} columns, but X has {d}: give one sequence of inner edges for each column."
        )
    return [_increasing(f"bins[{j}]", edges) for j, edges in enumerate(bins)]
