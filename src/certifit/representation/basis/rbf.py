"""Radial basis functions: similarity to a set of centers."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import KeepsPrecision, TakesSparse
from certifit.data.equal_rows import row_codes
from certifit.data.gate import check_x
from certifit.parameters import RANDOM_STATE, Choice, Either, Fitted, Flag, Given, Integer, OfColumns, Parameter, Real
from certifit.representation.basis.blocks import weighted_rows
from certifit.representation.basis.columns import input_names
from certifit.representation.basis.summaries import mean_and_deviation
from certifit.representation.design.blocks import row_blocks


class RBFFeatures(OfColumns, TakesSparse, KeepsPrecision, BaseEstimator):
    """Gaussian bumps around centers: φ_k(x) = exp(−γ ‖x − c_k‖²).

    Centers are different rows of X, drawn with probability proportional to their weight, or given. Equal rows
    count as one with the sum of their weights, so a weight and a repetition give the same draw.

    Examples
    --------
    >>> from certifit import RBFFeatures
    >>> RBFFeatures(centers=[[0.0], [1.0]], gamma=1.0).fit_transform([[0.0]]).round(3)
    array([[1.   , 0.368]])
    """

    centers: Any = Parameter(
        100,
        Either(Integer(1), Given("array of shape (n_centers, n_features)", wrong=([[np.nan] * 5], [[1.0, 2.0]]))),
        "Number of rows to draw, or the centers.",
    )
    gamma: Any = Parameter(
        "scale",
        Either(Choice("scale", "median"), Real(0, open_low=True)),
        '"scale" is 1 / (n_features · variance of all entries of X); "median" is 1 / median ‖c − c′‖² over the pairs of centers.',
    )
    spread: bool = Parameter(
        False,
        Flag(),
        "Draw each further center with probability proportional to weight times squared distance to the nearest earlier one "
        "(as k-means++ does), so that they cover the rows.",
    )
    random_state: Any = RANDOM_STATE.but(text="Source of the draw; an integer makes it repeatable.")

    centers_: Array = Fitted("array of shape (n_centers, n_features)", "The centers.")
    gamma_: float = Fitted("float", "The γ in use.")

    def fit(self, X: Matrix, y: Any = None, sample_weight: Any = None) -> Self:
        """Draw the centers and set γ."""
        X = check_x(self, X, reset=True, accept_sparse=("csr",))
        X, weight = weighted_rows(X, sample_weight)
        if isinstance(self.centers, numbers.Integral):
            self.centers_ = self._draw(X, weight, int(self.centers))
        else:
            self.centers_ = _given_centers(self.centers, X.shape[1])
        self.gamma_ = self._width(X, weight)
        return self

    def transform(self, X: Matrix) -> Array:
        """Values of the bumps, in the float type of X."""
        check_is_fitted(self, "centers_")
        X = check_x(self, X, reset=False, accept_sparse=("csr",))
        root = np.sqrt(self.gamma_)  # scaling first keeps the squares in range
        # Distances do not change under a shift, and small norms make their expansion accurate.
        shift = np.zeros(X.shape[1]) if is_sparse(X) else self.centers_.mean(axis=0)
        centers = root * (self.centers_ - shift)
        out = np.empty((X.shape[0], centers.shape[0]), dtype=X.dtype)
        for rows in row_blocks(X.shape[0], max(X.shape[1], centers.shape[0]), 1 << 18):
            block = X[rows].astype(np.float64)
            block = block * root if is_sparse(X) else (block - shift) * root
            out[rows] = np.exp(-_squared_distances(block, centers))
        return out

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names "rbf0", "rbf1", …, one for each center."""
        check_is_fitted(self, "centers_")
        input_names(self, input_features)
        return np.array([f"rbf{k}" for k in range(self.centers_.shape[0])], dtype=object)

    def _draw(self, X: Matrix, weight: Array, count: int) -> Array:
        random = check_random_state(self.random_state)
        rows, mass = _distinct_rows(X, weight)
        if count > rows.size:
            warnings.warn(
                f"RBFFeatures: centers={count}, but X has only {rows.size} different rows; all of them are "
                "used. Ask for fewer centers.",
                UserWarning,
                stacklevel=3,
            )
            count = rows.size
        distinct = X[rows].toarray() if is_sparse(X) else X[rows]
        distinct = distinct.astype(np.float64)
        # Waiting times with rates equal to the masses: the first to ring are a draw without replacement.
        race = np.argsort(random.exponential(size=rows.size) / mass, kind="stable")
        if not self.spread:
            return np.asarray(distinct[race[:count]])
        unit = np.abs(distinct).max() or 1.0  # distances relative to it: their squares stay in range
        chosen = [int(race[0])]
        nearest = np.full(rows.size, np.inf)
        while len(chosen) < count:
            gap = (distinct - distinct[chosen[-1]]) / unit
            nearest = np.minimum(nearest, np.einsum("ij,ij->i", gap, gap))
            nearest[chosen] = 0.0
            ladder = np.cumsum(mass * nearest)
            if ladder[-1] > 0.0:
                step = int(np.searchsorted(ladder, random.uniform() * ladder[-1], side="right"))
                chosen.append(min(step, rows.size - 1))
            else:  # what remains is nearer to a center than the squares can tell
                chosen.append(next(int(k) for k in race if int(k) not in chosen))
        return np.asarray(distinct[chosen])

    def _width(self, X: Matrix, weight: Array) -> float:
        if not isinstance(self.gamma, str):
            return float(self.gamma)
        if self.gamma == "median":
            typical = float(np.median(pdist(self.centers_, "sqeuclidean"))) if len(self.centers_) > 1 else 0.0
        else:
            mean, deviation = mean_and_deviation(X, weight)
            typical = X.shape[1] * float(np.mean(deviation**2) + np.var(mean))
        # Rows that do not differ have no scale; any γ serves.
        return 1.0 / typical if typical > 0.0 else 1.0


# Columns: names, quantiles, edges


def _given_centers(centers: Any, d: int) -> Array:
    try:
        given = np.array(centers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"centers must be a number of centers or an array of them; got {centers!r}.") from error
    if given.ndim != 2 or given.shape[1] != d or not given.size:
        raise ValueError(
            f"centers must have shape (n_centers, {d}), one column for each column of X; got {given.shape}."
        )
    if not np.isfinite(given).all():
        raise ValueError("centers contains NaN or infinity: every coordinate must be a finite number.")
    return given


def _squared_distances(rows: Matrix, centers: Array) -> Array:
    """‖x − c‖² by one matrix product, or by differences where the product would lose the digits."""
    squares = rows.multiply(rows).sum(axis=1) if is_sparse(rows) else np.einsum("ij,ij->i", rows, rows)
    norms: Array = np.asarray(squares).reshape(-1, 1)
    lengths: Array = np.einsum("ij,ij->i", centers, centers)
    if max(norms.max(initial=0.0), lengths.max()) > 1e4:
        dense: Array = rows.toarray() if is_sparse(rows) else rows
        return np.asarray(cdist(dense, centers, "sqeuclidean"))
    return np.asarray(np.maximum(norms + lengths - 2.0 * (rows @ centers.T), 0.0))


def _distinct_rows(X: Matrix, weight: Array) -> tuple[Array, Array]:
    """Index of one row of each kind and the weight of the kind, in an order that depends on the contents only.

    A draw that sees rows in this order does not depend on the order of the rows nor on whether they are repeated or
    weighted.
    """
    codes = row_codes(X, np.zeros(X.shape[0]))
    _, first, kind = np.unique(codes, return_index=True, return_inverse=True)
    return first, np.bincount(kind, weights=weight)
