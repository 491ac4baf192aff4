"""Lasso and elastic net with alpha chosen by cross-validation along warm-started paths.

For each fold the whole path is solved in one native call; the alpha (and l1_ratio) with the smallest weighted mean squared
error on the left-out rows wins, and the model is refitted on all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_xy
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import Constraint, NonNegative, Penalty
from certifit.evaluation.penalties import ElasticNet as ElasticNetPenalty
from certifit.evaluation.splits.folds import splits
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import EPS, N_ALPHAS, POSITIVE
from certifit.models.linear.path import alpha_grid, solve_path
from certifit.parameters import (
    ALPHAS,
    CV,
    FIT_INTERCEPT,
    L1_RATIO,
    MAX_ITER,
    N_JOBS,
    TOL,
    VERBOSE,
    Declared,
    Either,
    Real,
    Reals,
    check_parameters,
)
from certifit.threads import n_threads

__all__ = ["ElasticNetCV", "LassoCV"]


class _PathCV(BaseLinear):
    """Choice of (l1_ratio, alpha) by cross-validation; a subclass lists the l1_ratios."""

    def _ratios(self) -> list[float]:
        raise TypeError(f"{type(self).__name__} must list its l1_ratios.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        constraint = NonNegative() if self.positive else None
        ratio, alpha = self._chosen if hasattr(self, "_chosen") else (self._ratios()[0], 1.0)
        return Squared(), ElasticNetPenalty(ratio), alpha, constraint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose alpha by cross-validation and fit on all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.
        y : array of shape (n_samples,)
            Target.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice, a weight of 0 drops it.

        Returns
        -------
        self
        """
        check_parameters(self)
        ratios = self._ratios()
        _, tol, max_iter = self._solver_options()
        given = X, y, sample_weight
        # Explicit splits number the rows as given, so rows of weight zero may only be dropped fold by fold.
        by_content = self.cv is None or isinstance(self.cv, (int, np.integer))
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, drop=by_content)
        if is_sparse(X):
            X = X.tocsc()
        kept = weight > 0
        p = weight / weight.sum()
        folds = list(splits(self.cv, X, y, weight))
        grids, paths, best = [], [], (np.inf, ratios[0], 1.0)
        for ratio in ratios:
            grid = alpha_grid(X, y, p, ratio, self.n_alphas, self.eps, self.alphas, self.fit_intercept)
            errors = self._errors(X, y, weight, kept, folds, grid, ratio, tol, max_iter)
            share = np.array([weight[test].sum() for _, test in folds])
            mean = errors @ (share / share.sum())
            winner = int(np.argmin(mean))
            if mean[winner] < best[0]:
                best = (float(mean[winner]), ratio, float(grid[winner]))
            grids.append(grid)
            paths.append(errors)
        self._chosen = best[1:]
        self.alpha_, self.l1_ratio_ = best[2], best[1]
        one = len(ratios) == 1
        self.alphas_, self.mse_path_ = (grids[0], paths[0]) if one else (np.array(grids), np.array(paths))
        try:
            return super().fit(*given)
        finally:
            del self._chosen

    def _errors(
        self,
        X: Matrix,
        y: Array,
        weight: Array,
        kept: Array,
        folds: list[tuple[Array, Array]],
        grid: Array,
        ratio: float,
        tol: float,
        max_iter: int,
    ) -> Array:
        """Mean squared error on each left-out fold, shape (n_alphas, n_folds)."""
        errors = np.zeros((grid.shape[0], len(folds)))
        for k, (train, test) in enumerate(folds):
            train, test = train[kept[train]], test[kept[test]]
            if train.size == 0 or test.size == 0:
                continue
            p = weight[train] / weight[train].sum()
            path = solve_path(
                X[train], y[train], p, grid, ratio, self.fit_intercept, self.positive, tol, max_iter,
                n_threads(self.n_jobs),
            )  # fmt: skip
            scores = np.asarray(X[test] @ path.coefs.T) + path.intercepts
            errors[:, k] = (weight[test] / weight[test].sum()) @ (y[test][:, None] - scores) ** 2
        return errors


class LassoCV(Declared, _PathCV):
    """Lasso with alpha chosen by K-fold cross-validation.

    Attributes
    ----------
    alpha_ : float
        The chosen strength.
    alphas_ : array of shape (n_alphas,)
    mse_path_ : array of shape (n_alphas, n_folds)
        Mean squared error on each left-out fold.

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

    n_alphas: int = N_ALPHAS
    eps: float = EPS
    alphas: Any = ALPHAS
    fit_intercept: bool = FIT_INTERCEPT
    positive: bool = POSITIVE
    cv: Any = CV
    tol: float = TOL.but(text="Wanted relative gap of every fit.")
    max_iter: int = MAX_ITER.but(text="Most working sets of each fit.")
    n_jobs: int | None = N_JOBS
    verbose: int = VERBOSE

    def _ratios(self) -> list[float]:
        return [1.0]


class ElasticNetCV(Declared, _PathCV):
    """Elastic net with alpha, and l1_ratio from a list, chosen by K-fold cross-validation.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        The chosen strength and share.
    alphas_ : array of shape (n_alphas,) or (n_l1_ratios, n_alphas)
    mse_path_ : array of shape (n_alphas, n_folds) or (n_l1_ratios, n_alphas, n_folds)

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ElasticNetCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 5))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=60)
    >>> ElasticNetCV(l1_ratio=[0.1, 0.9]).fit(X, y).l1_ratio_
    0.9
    """

    l1_ratio: Any = L1_RATIO.but(
        domain=Either(Real(0, 1), Reals(0, 1, shape="list of float")), text="Shares of the absolute value to try."
    )
    n_alphas: int = N_ALPHAS
    eps: float = EPS
    alphas: Any = ALPHAS
    fit_intercept: bool = FIT_INTERCEPT
    positive: bool = POSITIVE
    cv: Any = CV
    tol: float = TOL.but(text="Wanted relative gap of every fit.")
    max_iter: int = MAX_ITER.but(text="Most working sets of each fit.")
    n_jobs: int | None = N_JOBS
    verbose: int = VERBOSE

    def _ratios(self) -> list[float]:
        return [float(ratio) for ratio in np.atleast_1d(self.l1_ratio)]
