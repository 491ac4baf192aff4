"""Piecewise bases of single columns: bins and splines."""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.interpolate import BSpline
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.base import KeepsPrecision
from certifit.data.gate import check_x
from certifit.parameters import Either, Fitted, Flag, Given, Integer, OfColumns, OneOf, Parameter
from certifit.representation.basis.blocks import weighted_rows
from certifit.representation.basis.columns import input_names, weighted_quantiles
from certifit.representation.basis.summaries import present_values


class Discretizer(OfColumns, KeepsPrecision, BaseEstimator):
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
    strategy: str = OneOf(
        ("quantile", "uniform"),
        "Bins of equal weight, or of equal width. Not used when edges are given.",
    )
    encode: str = OneOf(("onehot", "ordinal"), "One indicator column for each bin, or the number of the bin.")
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
            self.edges_ = _given(self.bins, X.shape[1], "bins")
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


class SplineBasis(OfColumns, KeepsPrecision, BaseEstimator):
    """B-splines of each column: smooth bumps that sum to one, so a linear model is a smooth curve of each
    column.

    With k knots and degree p each column gives k + p − 1 splines, or k − 1 if they are periodic; one less without the last, which
    the intercept makes redundant. Beyond the outer knots the curve continues as a constant, or begins again if it is periodic. A
    knot that is given twice makes the curve less smooth there; on knots that are all equal the splines are zero.

    Examples
    --------
    >>> from certifit import SplineBasis
    >>> SplineBasis(knots=[0.0, 1.0, 2.0], degree=1, include_bias=True).fit_transform([[0.25], [2.0]])
    array([[0.75, 0.25, 0.  ],
           [0.  , 0.  , 1.  ]])
    """

    knots: Any = Parameter(
        5,
        Either(Integer(2), Given("sequence of numbers or of such sequences", wrong=([2.0, 1.0], [np.nan]))),
        "Number of knots for each column, outer ones included; or the increasing knots, the same for all columns; or one "
        "sequence of increasing knots for each column.",
    )
    degree: int = Parameter(3, Integer(0), "Degree of the pieces: 1 for broken lines, 3 for smooth curves.")
    strategy: str = OneOf(("quantile", "uniform"), "Knots at weighted quantiles, or evenly spaced.")
    include_bias: bool = Parameter(False, Flag(), "Keep the last spline of each column.")
    boundary: str = OneOf(
        ("repeated", "extended", "periodic"),
        "Knots beyond the outer ones: these again; more at the distance of the last two, as penalized splines want them; or "
        "those of the other end, for columns such as angles and hours.",
    )
    missing: str = OneOf(("refuse", "zeros"), "Whether NaN is an error, or has splines that are zero.")

    knots_: list[Array] = Fitted("list of arrays", "Knots of each column, outer ones included.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the knots.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The rows.
        """
        X, weight = weighted_rows(self._check(X, reset=True), sample_weight)
        if isinstance(self.knots, numbers.Integral):
            columns = (present_values(X, weight, j) for j in range(X.shape[1]))
            self.knots_ = [_knots(*column, int(self.knots), self.strategy) for column in columns]
        else:
            self.knots_ = _given(self.knots, X.shape[1], "knots", repeated=True)
            if min(knots.size for knots in self.knots_) < 2:
                raise ValueError(f"knots must have at least two numbers, the two outer knots; got {self.knots!r}.")
        fewest = min(knots.size for knots in self.knots_)
        if self._boundary() == "periodic" and fewest <= self.degree:
            raise ValueError(
                f"Periodic splines require degree < number of knots; got degree={self.degree} and a column with {fewest} knots."
            )
        return self

    def transform(self, X: Matrix) -> Array:
        """Values of the splines, in the float type of X."""
        check_is_fitted(self, "knots_")
        X = self._check(X, reset=False)
        bounds = np.concatenate([[0], np.cumsum(self._widths())])
        out = np.zeros((X.shape[0], int(bounds[-1])), dtype=X.dtype)
        for j, (knots, vector) in enumerate(zip(self.knots_, self.knot_vectors(), strict=True)):
            here = ~np.isnan(X[:, j])
            if knots[0] < knots[-1] and here.any():
                splines = self._splines(X[here, j].astype(np.float64), knots, vector)
                out[here, bounds[j] : bounds[j + 1]] = splines[:, : bounds[j + 1] - bounds[j]]
        return out

    def _splines(self, x: Array, knots: Array, vector: Array) -> Array:
        """All splines of one column."""
        first, last = float(knots[0]), float(knots[-1])
        if self._boundary() != "periodic":
            return np.asarray(BSpline.design_matrix(np.clip(x, first, last), vector, self.degree).toarray())
        inside = np.clip(first + np.mod(x - first, last - first), first, last)
        splines = BSpline.design_matrix(inside, vector, self.degree).toarray()
        period = knots.size - 1
        splines[:, : self.degree] += splines[:, period:]  # those that reach over the end begin again at the other one
        return np.asarray(splines[:, :period])

    def knot_vectors(self) -> list[Array]:
        """Knots of each column with those beyond the outer ones, `degree` on either side, as SciPy's `BSpline` wants them."""
        check_is_fitted(self, "knots_")
        return [_continued(knots, self.degree, self._boundary()) for knots in self.knots_]

    def _boundary(self) -> str:
        return str(vars(self).get("boundary", "repeated"))  # a file of an earlier release has no such parameter

    def _check(self, X: Matrix, reset: bool) -> Array:
        allowed = vars(self).get("missing", "refuse") == "zeros"
        return np.asarray(check_x(self, X, reset=reset, accept_sparse=False, allow_nan=allowed))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns with "_sp" and the number of the spline."""
        check_is_fitted(self, "knots_")
        pairs = zip(input_names(self, input_features), self._widths(), strict=True)
        return np.array([f"{name}_sp{k}" for name, count in pairs for k in range(count)], dtype=object)

    def _widths(self) -> list[int]:
        more = -1 if self._boundary() == "periodic" else self.degree - 1
        return [knots.size + more - (not self.include_bias) for knots in self.knots_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = vars(self).get("missing") == "zeros"
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
    if not values.size:
        return np.zeros(count)
    inner = _cuts(values, weight, np.arange(1, count - 1) / (count - 1), strategy)
    low, high = float(values.min()), float(values.max())
    if low == high:  # a constant column: any interval around it will do
        high = low + max(1.0, abs(low))
    return np.unique(np.concatenate([[low], inner, [high]]))


def _continued(knots: Array, degree: int, boundary: str) -> Array:
    """Knots with `degree` more on either side."""
    if boundary == "periodic":
        period = knots[-1] - knots[0]
        return np.concatenate([knots[-(degree + 1) : -1] - period, knots, knots[1 : degree + 1] + period])
    steps = np.arange(degree, 0, -1.0) if boundary == "extended" else np.zeros(degree)
    below, above = knots[1] - knots[0], knots[-1] - knots[-2]
    return np.concatenate([knots[0] - steps * below, knots, knots[-1] + steps[::-1] * above])


def _increasing(name: str, numbers: Any, repeated: bool = False) -> Array:
    try:
        edges = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers; got {numbers!r}.") from error
    steps = np.diff(edges) if edges.ndim == 1 and np.isfinite(edges).all() else np.array([-1.0])
    if not ((steps > 0) | (repeated & (steps == 0))).all():
        raise ValueError(f"{name} must be finite and increasing numbers; got {numbers!r}.")
    return edges


def _given(values: Any, d: int, name: str, repeated: bool = False) -> list[Array]:
    """Edges or knots as they are given: one sequence for all columns, or one for each."""
    values = list(values)
    if not any(np.ndim(one) for one in values):
        return [_increasing(name, values, repeated)] * d
    if len(values) != d:
        what = {"bins": "edges"}.get(name, "sequences")
        raise ValueError(
            f"{name} has {what} for {len(values)} columns, but X has {d}: give one sequence for each column."
        )
    return [_increasing(f"{name}[{j}]", one, repeated) for j, one in enumerate(values)]
