"""Several targets that share the columns they use: the multi-task lasso and elastic net.

minimize over W, b    (1/Σs_i) Σ s_i ½‖y_i − Wx_i − b‖²  +  alpha · Σ_j ( l1_ratio·‖w_j‖₂ + (1 − l1_ratio)·½‖w_j‖² )

w_j are the coefficients of column j for all targets: a column is used by every target or by none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_xy, kept_rows
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import Constraint, Penalty, RowNorms
from certifit.evaluation.splits.choice import folds_of
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import Grid
from certifit.models.linear.path.lasso_cv import RATIOS, ChosenOnPath, SeveralRatios
from certifit.models.linear.path.path import AlongAlphas, RegularizationPath, alpha_grid, ridge_alphas
from certifit.optimization.closed_form.magnitudes import in_units
from certifit.optimization.coordinate.rows import CenteredRows, least_squares_rows
from certifit.optimization.objective.forms.rows import LARGEST, scale_of
from certifit.parameters import (
    ALPHA,
    FIT_INTERCEPT,
    L1_RATIO,
    MAX_ITER,
    Fitted,
    Stopped,
    check_parameters,
)

__all__ = ["MultiTaskElasticNet", "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "RowsPath"]


class RowsPath(AlongAlphas):
    """The multi-task elastic net for a sequence of alphas, each from the solution of the last.

    They are evenly spaced in the logarithm, below the smallest one with an all-zero solution; those given are above zero. `coefs`
    have the shape (n_alphas, n_targets, n_features), `intercepts` (n_alphas, n_targets).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MultiTaskLasso
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> path = MultiTaskLasso.path(X, np.column_stack([X[:, 0], X[:, 0] - X[:, 1]]), n_alphas=10)
    >>> path.coefs.shape, bool(path.coefs[0].any())
    ((10, 2, 4), False)
    """

    l1_ratio: float = L1_RATIO.but(1.0, "Share of the norm; 1 is the multi-task lasso, 0 is ridge.")

    def solve(self, X: Any, y: Any, sample_weight: Any = None) -> RegularizationPath:
        """The path of some data; y has shape (n_samples, n_targets)."""
        check_parameters(self)
        X, y, weight = check_xy(BaseEstimator(), X, y, sample_weight=sample_weight, multi_output=True)
        p, Y = weight / weight.sum(), y.reshape(y.shape[0], -1)
        grid = shared_alphas(X, Y, p, self.l1_ratio, self)
        return solve_rows(X, Y, p, grid, self.l1_ratio, self.fit_intercept, self.tol, self.max_iter)


def shared_alphas(X: Matrix, Y: Array, p: Array, l1_ratio: float, asked: Grid) -> Array:
    """By default down from the smallest alpha with an all-zero solution; without a norm there is none, as for ridge."""
    if l1_ratio == 0:
        return ridge_alphas(X, p, asked)

    def largest() -> float:
        (scaled, unit), (targets, factor) = in_units(X), in_units(Y)
        data = CenteredRows.of(scaled, targets.astype(np.float64, copy=False), p, asked.fit_intercept)
        return float(np.linalg.norm(data.slopes(data.Y), axis=1).max(initial=0.0)) * unit * factor / l1_ratio

    grid = alpha_grid(largest, asked)
    if not grid[-1] > 0:
        raise ValueError(f"alphas must be above zero here: without a penalty, use LinearRegression; got {grid[-1]!r}.")
    return grid


def solve_rows(
    X: Matrix, Y: Array, p: Array, alphas: Array, l1_ratio: float, fit_intercept: bool, tol: float, max_iter: int
) -> RegularizationPath:
    """The path of validated data."""
    (scaled, unit), (targets, factor) = in_units(X), in_units(Y.astype(np.float64, copy=False))
    data, scale = CenteredRows.of(scaled, targets, p, fit_intercept), scale_of(targets, p, fit_intercept)
    d, W = X.shape[1], None
    coefs, gaps = np.empty((alphas.shape[0], Y.shape[1], d)), np.empty(alphas.shape[0])
    for i, alpha in enumerate(alphas):
        with np.errstate(over="ignore", under="ignore"):
            l1 = np.full(d, min(alpha * l1_ratio / unit / factor, LARGEST))
            l2 = np.full(d, min(alpha * (1.0 - l1_ratio) / unit / unit, LARGEST))
        found = least_squares_rows(data, l1, l2, coef=W, tol=tol * scale, max_iter=max_iter)
        W, gaps[i] = found.coef, found.gap / scale if scale > 0 else found.gap
        coefs[i] = W.T
    intercepts = (data.level - coefs @ data.mean) * factor
    with np.errstate(over="ignore", under="ignore"):
        return RegularizationPath(alphas, (coefs / unit * factor).astype(X.dtype), intercepts, gaps)


class MultiTaskElasticNet(Stopped, BaseLinear):
    """Elastic net of several targets that share their columns.

    Minimizes ``mean ½‖y − Wx − b‖² + alpha·Σ_j (l1_ratio·‖w_j‖₂ + (1 − l1_ratio)·½‖w_j‖²)``, w_j being the coefficients of
    column j for all targets. The scale is that of ``sklearn.linear_model.MultiTaskElasticNet``; of one target it is `ElasticNet`.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MultiTaskElasticNet
    >>> x = np.arange(8.0)  # columns that are alike share, for every target
    >>> MultiTaskElasticNet(alpha=0.3).fit(np.column_stack([x, x]), np.column_stack([2 * x, -x])).coef_.round(2)
    array([[ 0.97,  0.97],
           [-0.49, -0.49]])
    """

    _multi_output = True

    alpha: float = ALPHA
    l1_ratio: float = L1_RATIO.but(text="Share of the norm: 1 is the multi-task lasso, 0 is ridge.")
    fit_intercept: bool = FIT_INTERCEPT
    max_iter: int = MAX_ITER.but(text="Most working sets that are solved.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), RowNorms(self.l1_ratio), float(self.alpha), None

    @staticmethod
    def path(X: Any, y: Any, *, l1_ratio: float = 0.5, sample_weight: Any = None, **options: Any) -> RegularizationPath:
        """Solutions for a whole sequence of alphas; the options are those of `certifit.models.linear.tasks.RowsPath`."""
        return RowsPath(l1_ratio=l1_ratio, **options).solve(X, y, sample_weight)


class MultiTaskLasso(Stopped, BaseLinear):
    """Lasso of several targets that share their columns: minimize mean ½‖y − Wx − b‖² + alpha·Σ_j ‖w_j‖₂.

    w_j are the coefficients of column j for all targets, which use it together or not at all. The scale is that of
    ``sklearn.linear_model.MultiTaskLasso``; of one target it is `Lasso`.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MultiTaskLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> Y = X[:, :1] * [2.0, -1.0] + 0.1 * rng.normal(size=(50, 2))
    >>> MultiTaskLasso(alpha=0.5).fit(X, Y).coef_.round(2)
    array([[ 1.64,  0.  ,  0.  ],
           [-0.8 ,  0.  ,  0.  ]])
    """

    _multi_output = True

    alpha: float = ALPHA
    fit_intercept: bool = FIT_INTERCEPT
    max_iter: int = MAX_ITER.but(text="Most working sets that are solved.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), RowNorms(1.0), float(self.alpha), None

    @staticmethod
    def path(X: Any, y: Any, *, sample_weight: Any = None, **options: Any) -> RegularizationPath:
        """Solutions for a whole sequence of alphas; the options are those of `certifit.models.linear.tasks.RowsPath`."""
        return RowsPath(l1_ratio=1.0, **options).solve(X, y, sample_weight)


class _RowsCV(ChosenOnPath, Grid, kw_only=True):
    """Paths of all targets together."""

    _multi_output = True

    mse_path_: Array = Fitted(
        "array of shape (n_alphas, n_folds)", "Mean squared error on each left-out fold, over all targets."
    )

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        ratio, alpha = getattr(self, "l1_ratio_", self._ratios()[0]), getattr(self, "alpha_", 1.0)
        return Squared(), RowNorms(ratio), alpha, None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose alpha by cross-validation and fit on all rows."""
        check_parameters(self)
        given = y
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, multi_output=True)
        if is_sparse(X):
            X = X.tocsr()
        Y = y.reshape(y.shape[0], -1)
        folds = folds_of(self.cv, X, Y[:, 0], kept=kept_rows(sample_weight, y.shape[0]), given=given)
        _, tol, max_iter = self._solver_options()
        p = weight / weight.sum()

        def grid_of(ratio: float) -> Array:
            return shared_alphas(X, Y, p, ratio, self)

        def errors(grid: Array, ratio: float, train: Array, test: Array) -> Array:
            share = weight[train] / weight[train].sum()
            path = solve_rows(X[train], Y[train], share, grid, ratio, self.fit_intercept, tol, max_iter)
            missed = [
                ((Y[test] - np.asarray(X[test] @ coef.T) - intercept) ** 2).mean(axis=1)
                for coef, intercept in zip(path.coefs, path.intercepts, strict=True)
            ]
            return np.asarray(np.array(missed) @ (weight[test] / weight[test].sum()))

        return self._fit_chosen(X, y, weight, folds, grid_of, errors)


class MultiTaskLassoCV(_RowsCV):
    """Multi-task lasso with alpha chosen by K-fold cross-validation.

    One alpha for all targets: the error of a fold is their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MultiTaskLassoCV
    >>> X, noise = np.random.default_rng(0).normal(size=(2, 60, 5))
    >>> Y = X[:, :1] * [2.0, -1.0] + 0.1 * noise[:, :2]
    >>> model = MultiTaskLassoCV(n_alphas=20).fit(X, Y)
    >>> bool(model.alpha_ < 0.1), model.mse_path_.shape
    (True, (20, 5))
    """


class MultiTaskElasticNetCV(SeveralRatios, _RowsCV):
    """Multi-task elastic net with alpha, and l1_ratio from a list, chosen by K-fold cross-validation.

    One alpha and one l1_ratio for all targets: the error of a fold is their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MultiTaskElasticNetCV
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> MultiTaskElasticNetCV(l1_ratio=[0.1, 0.9], n_alphas=20).fit(X, X[:, :1] * [2.0, -1.0]).l1_ratio_
    0.9
    """

    l1_ratio: Any = RATIOS.but(text="Shares of the norm to try.")
