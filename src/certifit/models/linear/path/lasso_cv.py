"""Lasso and elastic net with alpha chosen by cross-validation along warm-started paths.

For each fold the whole path is solved in one native call, on the products of the columns where X is tall (`reduced.py`); the
alpha (and l1_ratio) with the smallest weighted mean squared error on the left-out rows wins, and the model is refitted on all
rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_xy, kept_rows
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import Constraint, NonNegative, Penalty
from certifit.evaluation.penalties import ElasticNet as ElasticNetPenalty
from certifit.evaluation.splits.choice import folds_of, over_folds
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import POSITIVE, ChosenByFolds, Grid, OnFolds
from certifit.models.linear.path.path import elastic_alphas, solve_path, solve_square
from certifit.models.linear.path.reduced import FoldProducts
from certifit.parameters import (
    L1_RATIO,
    MAX_ITER,
    Declared,
    Either,
    Fitted,
    Real,
    Reals,
    check_parameters,
)
from certifit.representation.design.rows import thin_products
from certifit.threads import n_threads

__all__ = ["RATIOS", "ChosenOnPath", "ElasticNetCV", "LassoCV", "SeveralRatios"]


class ChosenOnPath(ChosenByFolds, OnFolds, BaseLinear, kw_only=True):
    """Choice of (l1_ratio, alpha) by cross-validation; a subclass solves the paths."""

    max_iter: int = MAX_ITER.but(text="Most working sets of each fit.")

    mse_path_: Array = Fitted("array of shape (n_alphas, n_folds)", "Mean squared error on each left-out fold.")

    def _ratios(self) -> list[float]:
        """The l1_ratios to try: that of the lasso, unless a subclass has others."""
        return [1.0]

    def _fit_chosen(
        self,
        X: Matrix,
        y: Array,
        weight: Array,
        folds: Any,
        grid_of: Callable[[float], Array],
        errors: Callable[[Array, float, Array, Array], Array],
    ) -> Any:
        """Fit all rows with what has the least `errors(grid, l1_ratio, train, test)`, one of each alpha, on the rows left out."""
        tried, least = [], np.inf
        for ratio in self._ratios():
            grid = grid_of(ratio)
            curve = over_folds(folds, weight, grid.shape[0], partial(errors, grid, ratio))
            tried.append((grid, curve.errors))
            chosen = curve.best(grid, one_standard_error=self.one_standard_error)
            reached = float(np.min(curve.mean, initial=np.inf))
            if reached < least or len(tried) == 1:
                least, self.l1_ratio_, self.alpha_ = reached, ratio, float(grid[chosen])
        one = len(tried) == 1
        self.alphas_, self.mse_path_ = tried[0] if one else (np.array(part) for part in zip(*tried, strict=True))
        with thin_products(X):
            return self._fit_arrays(X, y, weight)


RATIOS = L1_RATIO.but(
    domain=Either(Real(0, 1), Reals(0, 1, shape="list of float")), text="Shares of the absolute value to try."
)


class SeveralRatios(Declared):
    """An elastic net whose l1_ratio is chosen too."""

    l1_ratio: Any = RATIOS

    l1_ratio_: float = Fitted(
        "float", "The chosen share; of several, `alphas_` and `mse_path_` begin with an axis of them."
    )

    def _ratios(self) -> list[float]:
        return [float(ratio) for ratio in np.atleast_1d(self.l1_ratio)]


class _Signed(Grid, kw_only=True):
    """Coefficients that may have to be non-negative."""

    positive: bool = POSITIVE


class _PathCV(ChosenOnPath, _Signed, kw_only=True):
    """Paths by coordinate descent, on the products of the columns where X is tall."""

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        constraint = NonNegative() if self.positive else None
        ratio, alpha = getattr(self, "l1_ratio_", self._ratios()[0]), getattr(self, "alpha_", 1.0)
        return Squared(), ElasticNetPenalty(ratio), alpha, constraint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose alpha by cross-validation and fit on all rows."""
        check_parameters(self)
        given = y
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight)
        if is_sparse(X):
            X = X.tocsc()
        folds = folds_of(self.cv, X, y, kept=kept_rows(sample_weight, y.shape[0]), given=given)
        _, tol, max_iter = self._solver_options()
        threads, p = n_threads(self.n_jobs), weight / weight.sum()
        products = FoldProducts.of(X, y, weight, self.fit_intercept)

        def grid_of(ratio: float) -> Array:
            return elastic_alphas(X, y, p, ratio, self, self.positive)

        def errors(grid: Array, ratio: float, train: Array, test: Array) -> Array:
            square = None if products is None else products.of_fold(train)
            if square is not None:
                path = solve_square(square, grid, ratio, self.positive, tol, max_iter, threads)
            else:
                share = weight[train] / weight[train].sum()
                rows = X[train], y[train], share, grid, ratio, self.fit_intercept
                path = solve_path(*rows, self.positive, tol, max_iter, threads)
            scores = np.asarray(X[test] @ path.coefs.T) + path.intercepts
            return np.asarray((weight[test] / weight[test].sum()) @ (y[test][:, None] - scores) ** 2)

        return self._fit_chosen(X, y, weight, folds, grid_of, errors)


class LassoCV(_PathCV):
    """Lasso with alpha chosen by K-fold cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LassoCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=60)
    >>> model = LassoCV().fit(X, y)
    >>> bool(model.alpha_ < 0.1), model.mse_path_.shape
    (True, (100, 5))
    """


class ElasticNetCV(SeveralRatios, _PathCV):
    """Elastic net with alpha, and l1_ratio from a list, chosen by K-fold cross-validation.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ElasticNetCV
    >>> X, noise = np.random.default_rng(0).normal(size=(2, 60, 5))
    >>> model = ElasticNetCV(l1_ratio=[0.1, 0.9]).fit(X, X[:, 0] + 0.1 * noise[:, 0])
    >>> model.l1_ratio_, model.mse_path_.shape
    (0.9, (2, 100, 5))
    """
