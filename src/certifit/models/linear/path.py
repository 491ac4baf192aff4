"""Regularization paths of the lasso and the elastic net, one native call for all alphas."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_real, check_xy
from certifit.names import stored
from certifit.optimization.coordinate import descent as coordinate
from certifit.representation.design.products import rmatvec
from certifit.threads import n_threads

__all__ = ["RegularizationPath", "alpha_grid", "elastic_path", "solve_path"]


@stored("RegularizationPath")
class RegularizationPath(NamedTuple):
    """Solutions along decreasing alphas; unpacks as ``alphas, coefs, intercepts, gaps``."""

    alphas: Array
    """Penalty strengths, decreasing, shape (n_alphas,)."""
    coefs: Array
    """Coefficients, shape (n_alphas, n_features)."""
    intercepts: Array
    """Intercepts, shape (n_alphas,)."""
    gaps: Array
    """Relative duality gap of each solution, shape (n_alphas,)."""


def elastic_path(
    X: Any,
    y: Any,
    *,
    l1_ratio: float = 1.0,
    n_alphas: int = 100,
    eps: float = 1e-3,
    alphas: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    positive: bool = False,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_jobs: int | None = None,
) -> RegularizationPath:
    """Solve mean ½(y − Xw − b)² + alpha·(l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖²) for a sequence of alphas.

    Parameters
    ----------
    X, y, sample_weight
        The data.
    l1_ratio : float in (0, 1], default=1.0
        Share of the absolute value; 1 is the lasso.
    n_alphas : int, default=100
        Number of alphas, evenly spaced in the logarithm below the smallest alpha with an all-zero solution.
    eps : float, default=1e-3
        Smallest alpha divided by the largest.
    alphas : array, optional
        The alphas themselves, instead of `n_alphas` and `eps`.
    fit_intercept, positive, n_jobs
        As in the estimators.
    tol : float, default=1e-6
        Wanted relative gap of each solution.
    max_iter : int, default=1000
        Most working sets for each alpha.

    Returns
    -------
    RegularizationPath
    """
    check_real("l1_ratio", l1_ratio, low=0, high=1)
    check_real("tol", tol, low=0)
    X, y, weight = check_xy(BaseEstimator(), X, y, sample_weight=sample_weight)
    p = weight / weight.sum()
    if is_sparse(X):
        X = X.tocsc()
    grid = alpha_grid(X, y, p, l1_ratio, n_alphas, eps, alphas, fit_intercept)
    return solve_path(X, y, p, grid, l1_ratio, fit_intercept, positive, tol, max_iter, n_threads(n_jobs))


def alpha_grid(
    X: Matrix, y: Array, p: Array, l1_ratio: float, n_alphas: int, eps: float, alphas: Any, fit_intercept: bool
) -> Array:
    """The alphas of a path, decreasing; by default down from the smallest one with an all-zero solution."""
    if alphas is not None:
        try:
            given = np.sort(np.atleast_1d(np.asarray(alphas, dtype=np.float64)))[::-1]
        except (TypeError, ValueError) as error:
            raise ValueError(f"alphas must be a sequence of numbers >= 0; got {alphas!r}.") from error
        if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all() or given[-1] < 0:
            raise ValueError(f"alphas must be a non-empty sequence of finite numbers >= 0; got {alphas!r}.")
        return given
    check_real("n_alphas", n_alphas, low=1, integer=True)
    check_real("eps", eps, low=0, high=1, open_low=True)
    if l1_ratio == 0:
        raise ValueError("l1_ratio=0 has no largest alpha to start a path from: pass alphas=…, or use RidgeCV.")
    residual = y - (p @ y if fit_intercept else 0.0)
    g = rmatvec(X, p * residual)
    if fit_intercept:  # the mean of the residual is zero only up to rounding
        g -= float(p @ residual) * rmatvec(X, p)
    largest = float(np.abs(g).max(initial=0.0)) / l1_ratio
    if not np.isfinite(largest):
        raise ValueError("The columns of X are too large for a path of alphas: scale them first (StandardScaler).")
    if largest <= np.finfo(float).tiny:
        largest = float(np.finfo(np.float64).resolution)
    return np.geomspace(largest, largest * eps, n_alphas) if n_alphas > 1 else np.array([largest])


def solve_path(
    X: Matrix,
    y: Array,
    p: Array,
    alphas: Array,
    l1_ratio: float,
    fit_intercept: bool,
    positive: bool,
    tol: float,
    max_iter: int,
    threads: int,
) -> RegularizationPath:
    """The path of validated data."""
    center = float(p @ y) if fit_intercept else 0.0
    scale = max(0.5 * float(p @ (y - center) ** 2), 1e-15 * 0.5 * float(p @ (y * y)))
    result = coordinate.path(
        X,
        y,
        p,
        alphas=alphas,
        l1_ratio=l1_ratio,
        lower=0.0 if positive else None,
        fit_intercept=fit_intercept,
        tol=tol * scale,
        max_iter=max_iter,
        n_threads=threads,
    )
    gaps = result.gaps / scale if scale > 0 else np.where(result.gaps > 0, np.inf, 0.0)
    return RegularizationPath(alphas, result.coefs.astype(X.dtype), result.intercepts, gaps)
