"""Folds of tall data as small squares: d rows say of a quadratic loss all that n rows do.

    Σ p_i ½(y_i − x_i·w − b)²  =  ½‖q − R w‖²  +  what no w changes,        RᵀR = X̃ᵀPX̃,   Rᵀq = X̃ᵀPỹ,        b the best one

with X̃ and ỹ centered on the rows of the fold. The products of all rows are summed once; those of a fold are what is left
without the rows that it leaves out. Both problems have the same solutions and, alpha for alpha, the same duality gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack, solve_triangular

from certifit._types import Array, Matrix, is_sparse
from certifit.representation.basis.summaries import mean_and_deviation

__all__ = ["FoldProducts", "Square"]

TALL = 3  # rows for each column from which products of columns pay
WIDEST = 4000  # columns of which a square is kept
LEFT = 1e-3  # share of the weight, and of a column's variance, that a fold must keep: of less, rounding takes too much
LEAST_PIVOT = 1e-8  # share of a column's variance that the columns before it must leave


class Square(NamedTuple):
    """A fold as d rows: R, q, the means of X and y, and the variance of y."""

    rows: Array
    target: Array
    means: Array
    center: float
    variance: float


@dataclass(frozen=True)
class FoldProducts:
    """The products of the columns of (X, y) over all rows, in units of their deviations."""

    rows: Array
    """(X, y) from the mean of all rows, over the deviation, and a one: times the root of the weight."""
    mean: Array
    deviation: Array
    total: Array
    """Sums of the products of the columns of `rows`."""
    fit_intercept: bool

    @staticmethod
    def of(X: Matrix, y: Array, weight: Array, fit_intercept: bool) -> FoldProducts | None:
        """None where X is not tall, or has columns that a square would not serve."""
        n, d = X.shape
        if is_sparse(X) or n < TALL * d or d > WIDEST:
            return None
        rows = np.ones((n, d + 2))
        rows[:, :d], rows[:, d] = X, y
        mean, deviation = mean_and_deviation(rows[:, :-1], weight / weight.sum())
        with np.errstate(over="ignore"):
            if not fit_intercept:
                deviation, mean = np.hypot(deviation, mean), np.zeros(d + 1)
        if not (deviation > 0).all() or not np.isfinite(deviation).all():
            return None
        rows[:, :-1] -= mean
        rows[:, :-1] /= deviation
        rows *= np.sqrt(weight / weight.max())[:, None]
        return FoldProducts(rows, mean, deviation, rows.T @ rows, fit_intercept)

    def of_fold(self, train: Array) -> Square | None:
        """The rows to fit as a square; None where rounding would show."""
        n, d = self.rows.shape[0], self.rows.shape[1] - 2
        times = np.bincount(train, minlength=n)
        left_out = np.flatnonzero(times == 0)
        if times.max() == 1 and 2 * left_out.shape[0] < n:
            products = self.total - self.rows[left_out].T @ self.rows[left_out]
        else:
            products = self.rows[train].T @ self.rows[train]
        weight = float(products[-1, -1])
        if not weight > LEFT * self.total[-1, -1]:
            return None
        shift = products[-1, :-1] / weight if self.fit_intercept else np.zeros(d + 1)
        products = products[:-1, :-1] / weight - np.outer(shift, shift)
        spread = np.diag(products)
        if not (spread > LEFT).all():  # all rows have one
            return None
        own = np.sqrt(spread)
        upper, info = lapack.dpotrf(products[:d, :d] / np.outer(own[:d], own[:d]), lower=0, clean=1)
        if info != 0 or not float(np.diag(upper).min()) ** 2 > LEAST_PIVOT:
            return None
        target = solve_triangular(upper, products[:d, d] / own[:d], trans="T")
        with np.errstate(over="ignore"):
            scale, means = self.deviation * own, self.mean + shift * self.deviation
            rows = np.asfortranarray(upper * scale[:d])
            return Square(rows, target * self.deviation[d], means[:d], float(means[d]), float(scale[d] * scale[d]))
