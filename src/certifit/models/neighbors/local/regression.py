"""Locally weighted regression: for every query a fit of its own, in which near rows weigh more.

    ŷ(x) = β_0    of the β that minimizes    Σ_i w_i(x) (y_i − β·φ(x_i − x))²        φ(z) = 1;  1, z;  or 1, z, zz'

The answer is linear in y, ŷ(x) = Σ l_i(x) y_i, from which follow in closed form the residual of a row that is left out,
(y_i − ŷ_i)/(1 − l_i(x_i)), the variance of the noise σ² = Σ (y − ŷ)² / Σ (1 − 2l_i(x_i) + ‖l(x_i)‖²), and the standard error
σ‖l(x)‖.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

import certifit._native.local as _native
from certifit._types import Array
from certifit.data.gate import check_x, check_xy
from certifit.models.neighbors.local.base import BaseLocal, Blocks, LocalShape

__all__ = ["LocallyWeightedRegression"]

NOTE = "Every prediction is a least-squares fit in closed form, made when it is asked for; the rows as a whole have no objective."
ALONE = 1e-6  # a row of more influence on itself is alone: without it nothing is known but the mean


class LocallyWeightedRegression(LocalShape, RegressorMixin, BaseLocal):
    """A weighted polynomial around every query.

    Where no row has a weight (compact weights in a gap, Gaussian ones far outside), the width follows the nearest row. Directions
    in which the neighbors do not vary are left out of the local fit.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LocallyWeightedRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 6, size=(300, 1))
    >>> model = LocallyWeightedRegression().fit(x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=300))
    >>> mean, error = model.predict([[1.5], [3.0]], return_std=True)
    >>> bool((abs(mean - np.sin([1.5, 3.0])) < 3 * error).all())
    True
    """

    weights_are_counts = True  # one copy is left out

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocallyWeightedRegression:
        """Keep the rows, and choose the width.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Values.
        """
        started = time.perf_counter()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False, multi_output=True)
        self._check_terms(X.shape[1])
        self._single, self._flat = X.dtype == np.float32, y.ndim == 1
        targets = y[:, None] if y.ndim == 1 else y
        self._center = np.average(targets / _size(targets), axis=0, weights=weight) * _size(targets)
        self._scale = _size(targets - self._center)
        self._blocks = Blocks.of(X, (targets - self._center) / self._scale, weight, self._threads())
        variance = float(np.average(self._squares(self._blocks.y), weights=self._blocks.s))
        self._noise: Array | None = None
        self._settle(started, NOTE, variance, float(self._scale.max()))
        return self

    @property
    def noise_(self) -> Array:
        """Estimated variance of the noise of each target, computed when first asked for; NaN where nothing is left to tell it."""
        check_is_fitted(self, "bandwidth_")
        if self._noise is None:
            rows, blocks = self._blocks.some(), self._blocks
            value, own, spread = self._around(blocks.X[rows], self.bandwidth_, self.fraction_, spread=True)
            s = blocks.s[rows]
            freedom = float(s @ (1.0 - 2.0 * own + spread))
            square = s @ (blocks.y[rows] - value) ** 2
            enough = freedom > 1e-9 * s.sum()
            self._noise = np.where(enough, square / (freedom if enough else 1.0), np.nan) * self._scale**2
        return self._noise

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The local fits at the queries.

        Parameters
        ----------
        X : array or data frame of shape (n_queries, n_features)
        return_std : bool, default=False
            Whether to return the standard error of each value too.

        Returns
        -------
        values : array of shape (n_queries,) or (n_queries, n_targets)
        errors : array of the same shape
            If asked for.
        """
        check_is_fitted(self, "bandwidth_")
        queries = self._blocks.queries(check_x(self, X, reset=False, accept_sparse=False))
        value, _, spread = self._around(queries, self.bandwidth_, self.fraction_, spread=return_std)
        values = self._shown(value * self._scale + self._center)
        if not return_std:
            return values
        return values, self._shown(np.sqrt(spread)[:, None] * np.sqrt(self.noise_ / self._scale**2) * self._scale)

    def rows(self) -> tuple[Array, Array]:
        """The rows of the fit and their values, near ones together, of shapes (n, n_features) and (n, n_targets)."""
        check_is_fitted(self, "bandwidth_")
        return self._blocks.X * self._blocks.unit, self._blocks.y * self._scale + self._center

    def _around(
        self, queries: Array, width: float | None, fraction: float | None, spread: bool
    ) -> tuple[Array, Array, Array]:
        """Values at queries in the units of the blocks, the influence of a copy of a row at the query, and ‖l‖²."""
        m, blocks = queries.shape[0], self._blocks
        value, own, wide = np.empty((m, blocks.y.shape[1])), np.empty(m), np.empty(m)
        norms = np.empty(m) if spread else None
        _native.regress(blocks.table(), self._lens(width, fraction), queries, value, own, norms, wide, self._threads())
        with np.errstate(over="ignore"):
            return value, own / blocks.copy, np.empty(0) if norms is None else norms / blocks.copy

    def _error(self, width: float | None, fraction: float | None) -> float:
        rows, blocks = self._blocks.some(), self._blocks
        value, own, _ = self._around(blocks.X[rows], width, fraction, spread=False)
        alone = own > 1.0 - ALONE
        left = (blocks.y[rows] - value) / np.where(alone, 1.0, 1.0 - own)[:, None]
        missed = np.where(alone[:, None], blocks.y[rows], left)
        return float(np.average(self._squares(missed), weights=blocks.s[rows]))

    def _squares(self, values: Array) -> Array:
        """Of all targets together, in units of the largest of them: the blocks hold each in units of its own."""
        return np.asarray(((values * (self._scale / self._scale.max())) ** 2).sum(axis=1))

    def _shown(self, values: Array) -> Array:
        shown = values[:, 0] if self._flat else values
        return shown.astype(np.float32) if self._single else shown

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _size(values: Array) -> Array:
    """The largest magnitude of each column, or 1."""
    size = np.abs(values).max(axis=0)
    return np.where(size > 0, size, 1.0)
