"""Regularization paths: the lasso and the elastic net in one native call for all alphas, ridge from one decomposition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from certifit._types import Array, Matrix, is_sparse
from certifit.axes import picture
from certifit.data.gate import check_xy
from certifit.models.linear.parameters import EPS, N_ALPHAS, POSITIVE, Grid
from certifit.models.linear.path.reduced import Square
from certifit.names import stored
from certifit.optimization.closed_form.least_squares import solve_least_squares
from certifit.optimization.closed_form.magnitudes import in_units
from certifit.optimization.closed_form.spectrum import LARGEST_SPECTRUM, RidgeSpectrum, row_slices, total_variance
from certifit.optimization.coordinate import descent as coordinate
from certifit.parameters import L1_RATIO, MAX_ITER, N_JOBS, TOL, check_parameters
from certifit.representation.design.products import rmatvec
from certifit.threads import n_threads

__all__ = [
    "AlongAlphas",
    "ElasticPath",
    "RegularizationPath",
    "RidgePath",
    "alpha_grid",
    "elastic_alphas",
    "ridge_alphas",
    "solve_path",
    "solve_square",
]

RIDGE_GRID = (10.0, 1e-8, 49)  # from almost no model to no visible effect: times the total variance of X, ratio, number


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

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """`certifit.plots.plot_path` of it."""
        return picture("plot_path")(self, ax, **options)


class AlongAlphas(Grid):
    """What a path is asked for, with what says when each of its solutions is good enough."""

    tol: float = TOL.but(text="Wanted relative gap of each solution.")
    max_iter: int = MAX_ITER.but(text="Most working sets for each alpha.")


class ElasticPath(AlongAlphas):
    """Minimize mean ½(y − Xw − b)² + alpha·(l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖²) for a sequence of alphas.

    They are evenly spaced in the logarithm, below the smallest one with an all-zero solution (without an L1 share: below ten
    times the total variance of X).
    """

    l1_ratio: float = L1_RATIO.but(1.0, "Share of the absolute value; 1 is the lasso, 0 is ridge.")
    positive: bool = POSITIVE
    n_jobs: int | None = N_JOBS

    def solve(self, X: Any, y: Any, sample_weight: Any = None) -> RegularizationPath:
        """The path of some data."""
        check_parameters(self)
        X, y, weight = check_xy(BaseEstimator(), X, y, sample_weight=sample_weight)
        p = weight / weight.sum()
        if self.l1_ratio == 0 and not self.positive:
            return _ridge(X, y, weight, ridge_alphas(X, p, self), self.fit_intercept)
        if is_sparse(X):
            X = X.tocsc()
        grid = elastic_alphas(X, y, p, self.l1_ratio, self, self.positive)
        stop = self.tol, self.max_iter, n_threads(self.n_jobs)
        return solve_path(X, y, p, grid, self.l1_ratio, self.fit_intercept, self.positive, *stop)


class RidgePath(Grid):
    """Minimize mean ½(y − Xw − b)² + alpha·½‖w‖² for a sequence of alphas, all from one decomposition of X.

    They are evenly spaced in the logarithm, below ten times the total variance of X.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.1, 4.9, 7.0])
    >>> path = Ridge.path(X, y, alphas=[0.1, 10.0])
    >>> path.alphas, path.coefs.round(3)
    (array([10. ,  0.1]), array([[0.22 ],
           [1.833]]))
    """

    n_alphas: int = N_ALPHAS.but(RIDGE_GRID[2])
    eps: float = EPS.but(RIDGE_GRID[1])

    def solve(self, X: Any, y: Any, sample_weight: Any = None) -> RegularizationPath:
        """The path of some data."""
        check_parameters(self)
        X, y, weight = check_xy(BaseEstimator(), X, y, sample_weight=sample_weight)
        return _ridge(X, y, weight, ridge_alphas(X, weight / weight.sum(), self), self.fit_intercept)


def _ridge(X: Matrix, y: Array, weight: Array, grid: Array, fit_intercept: bool) -> RegularizationPath:
    """The path of validated data; beyond the largest decomposition, one factorization for each alpha."""
    (scaled, unit), (target, y_unit) = in_units(X), in_units(y)
    p = weight / weight.sum()
    with np.errstate(over="ignore", under="ignore"):
        strengths = np.minimum(grid / unit / unit, 1e280)
    if min(X.shape) > LARGEST_SPECTRUM:
        fits = [
            solve_least_squares(scaled, target, p, l2=np.full(X.shape[1], alpha), fit_intercept=fit_intercept)
            for alpha in strengths
        ]
        W, b = np.array([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits])
        gaps = np.array([fit.gap for fit in fits])
    else:
        spectrum = RidgeSpectrum.of(scaled, target, weight, fit_intercept)
        W, b = spectrum.coefs(strengths)
        gaps = _ridge_gaps(scaled, target, p, W, b, strengths, spectrum)
    center = float(p @ target) if fit_intercept else 0.0
    scale = max(0.5 * float(p @ (target - center) ** 2), 1e-15 * 0.5 * float(p @ (target * target)))
    with np.errstate(over="ignore", under="ignore"):
        coefs, intercepts = (W / unit * y_unit).astype(X.dtype), b * y_unit
    return RegularizationPath(grid, coefs, intercepts, _relative(gaps, scale))


def _ridge_gaps(X: Matrix, y: Array, p: Array, W: Array, b: Array, alphas: Array, spectrum: RidgeSpectrum) -> Array:
    """½ gᵀ H⁻¹ g, what is left above the minimum of a quadratic: g the gradient, H = V diag(λ/Σs) Vᵀ + alpha.

    Directions without variance have no gradient either, except for rounding; with alpha = 0 they do not count.
    """
    slope = np.zeros(W.shape)
    for rows in row_slices(X, W.shape[0]):
        miss = np.asarray(X[rows] @ W.T) + b - y[rows, None]
        slope += np.asarray(X[rows].T @ (p[rows, None] * miss)).T - np.outer(p[rows] @ miss, spectrum.mean)
    slope += alphas[:, None] * W
    inside = slope @ spectrum.V
    outside = np.maximum((slope**2).sum(axis=1) - (inside**2).sum(axis=1), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = spectrum.values / spectrum.total + alphas[:, None]
        return np.asarray(0.5 * ((inside**2 / bend).sum(axis=1) + np.where(alphas > 0, outside / alphas, 0.0)))


def _relative(gaps: Array, scale: float) -> Array:
    return gaps / scale if scale > 0 else np.where(gaps > 0, np.inf, 0.0)


def alpha_grid(largest: Callable[[], float], asked: Any) -> Array:
    """The alphas of a path, decreasing: those given, or `n_alphas` of them down from the largest one that matters.

    What is asked for is a `Grid`, or an estimator with its parameters; they are checked.
    """
    if asked.alphas is not None:
        return np.sort(np.atleast_1d(np.asarray(asked.alphas, dtype=np.float64)))[::-1]
    top = largest()
    if not np.isfinite(top):
        raise ValueError("The columns of X are too large for a path of alphas: scale them first (StandardScaler).")
    if top <= np.finfo(float).tiny:
        top = float(np.finfo(np.float64).resolution)
    return np.geomspace(top, top * asked.eps, asked.n_alphas) if asked.n_alphas > 1 else np.array([top])


def elastic_alphas(X: Matrix, y: Array, p: Array, l1_ratio: float, asked: Grid, positive: bool = False) -> Array:
    """By default down from the smallest alpha with an all-zero solution; without an L1 share there is none, as for ridge."""
    if l1_ratio == 0:
        return ridge_alphas(X, p, asked)

    def largest() -> float:
        residual = y - (p @ y if asked.fit_intercept else 0.0)
        g = rmatvec(X, p * residual)
        if asked.fit_intercept:  # the mean of the residual is zero only up to rounding
            g -= float(p @ residual) * rmatvec(X, p)
        # A coefficient that must not be negative stays zero, whatever pulls it down.
        return float((g if positive else np.abs(g)).max(initial=0.0)) / l1_ratio

    return alpha_grid(largest, asked)


def ridge_alphas(X: Matrix, p: Array, asked: Grid) -> Array:
    """By default down from ten times the total variance of X, beside which the squared loss hardly counts."""
    if asked.alphas is not None:
        return alpha_grid(lambda: np.nan, asked)
    scaled, unit = in_units(X)
    total = total_variance(scaled, p, asked.fit_intercept)
    grid = alpha_grid(lambda: RIDGE_GRID[0] * (total if total > 0 else 1.0), asked)
    if not total > 0:
        return grid
    with np.errstate(over="ignore", under="ignore"):
        return np.clip(grid * unit * unit, np.finfo(np.float64).tiny, np.finfo(np.float64).max)


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
    result = _descended(X, y, p, scale, fit_intercept, alphas, l1_ratio, positive, tol, max_iter, threads)
    return RegularizationPath(alphas, result.coefs.astype(X.dtype), result.intercepts, _relative(result.gaps, scale))


def _descended(
    X: Matrix,
    y: Array,
    p: Array,
    scale: float,
    fit_intercept: bool,
    alphas: Array,
    l1_ratio: float,
    positive: bool,
    tol: float,
    max_iter: int,
    threads: int,
) -> Any:
    """The path by coordinate descent, to a gap of `tol` in units of `scale`."""
    penalty = coordinate.Separable(l1_ratio, 1.0 - l1_ratio, lower=0.0 if positive else None)
    return coordinate.path(X, y, p, alphas, penalty, coordinate.Options(tol * scale, fit_intercept, max_iter, threads))


def solve_square(
    square: Square, alphas: Array, l1_ratio: float, positive: bool, tol: float, max_iter: int, threads: int
) -> RegularizationPath:
    """The path of rows that are given by the products of their columns."""
    scale = 0.5 * square.variance
    ones = np.ones(square.target.shape[0])
    given = square.rows, square.target, ones, scale, False
    result = _descended(*given, alphas, l1_ratio, positive, tol, max_iter, threads)
    intercepts = square.center - result.coefs @ square.means
    return RegularizationPath(alphas, result.coefs, intercepts, _relative(result.gaps, scale))
