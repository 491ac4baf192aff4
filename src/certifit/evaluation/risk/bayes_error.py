"""The least error rate any classifier can have, as nearest neighbors show it.

    (K−1)/K · (1 − √(1 − K/(K−1)·R))  ≤  R*  ≤  R      Cover and Hart 1967

R is the error rate of the nearest neighbor with many rows, R* the least possible one, K the number of classes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_labels, class_codes
from certifit.evaluation.risk.resamples import generator
from certifit.evaluation.risk.risk import Risk, clopper_pearson

__all__ = ["bayes_error"]

NEIGHBOR_ROWS = 10_000  # a tree of points in many dimensions degrades to comparing all pairs


def bayes_error(X: Any, y: Any, *, level: float = 0.95, max_rows: int = NEIGHBOR_ROWS, random_state: Any = 0) -> Risk:
    """An estimate of the least error rate any classifier can have, from the errors of the nearest neighbor.

    With many rows the nearest neighbor errs at a rate R between the least possible rate R* and R*·(2 − K/(K−1)·R*) (Cover
    and Hart 1967), so R* ≥ (K−1)/K·(1 − √(1 − K/(K−1)·R)). Each row's nearest other row, on standardized numeric columns,
    gives R. With few rows, or many columns that say nothing, the nearest row is far away, R is above its limit and the
    estimate too high: read it as what these rows can tell.

    Parameters
    ----------
    X : array, sparse matrix or data frame
        Its numeric columns are used; missing values count as the column's mean.
    y : array of shape (n,)
    level : float, default=0.95
    max_rows : int, default=10_000
        Rows used, drawn at random.
    random_state : int, default=0

    Returns
    -------
    Risk
        `value` is the bound, `low` the bound at the low end of R's interval, and `high` the high end of R itself: the
        least error rate lies in between, as far as this many rows can tell.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import bayes_error
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 1))
    >>> y = rng.random(2000) < np.where(X[:, 0] > 0, 0.9, 0.1)
    >>> found = bayes_error(X, y)
    >>> found.low < 0.1 < found.high
    True
    """
    check_real("max_rows", max_rows, low=2, integer=True)
    table, labels = TableRows(X), check_labels("y", y)
    if labels.shape[0] != table.n:
        raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {labels.shape[0]}.")
    order, (codes,) = class_codes(None, ("y", labels))
    numbers, _ = table.numeric()
    points = _standardized(numbers)
    if points.shape[1] == 0:
        raise ValueError("X has no numeric column that varies: there is no distance to find neighbors by.")
    if table.n < 3 or order.shape[0] < 2:
        raise ValueError(f"At least 3 rows of 2 classes are needed; got {table.n} rows of {order.shape[0]}.")
    if table.n > max_rows:
        drawn = generator(random_state).choice(table.n, size=max_rows, replace=False)
        points, codes = points[drawn], codes[drawn]
    n, k = codes.shape[0], order.shape[0]
    near = np.asarray(cKDTree(points).query(points, k=2)[1])
    # Of two equal points either may come first: take the one that is not the row itself.
    other = np.where(near[:, 0] == np.arange(n), near[:, 1], near[:, 0])
    wrong = (codes[other] != codes).astype(np.float64)
    rate = float(wrong.mean())
    independent = n / _design_effect(wrong - rate, other)
    low, high = clopper_pearson(rate * independent, independent, level)
    return Risk(_cover_hart(rate, k), _cover_hart(low, k), high, level, n, "Cover-Hart", "least possible error rate")


def _cover_hart(rate: float, k: int) -> float:
    most = (k - 1.0) / k
    return most * (1.0 - math.sqrt(max(0.0, 1.0 - rate / most)))


def _design_effect(deviation: Array, other: Array) -> float:
    """How many rows weigh as much as one independent row: errors that share a row, as neighbors do, vary together."""
    n = deviation.shape[0]
    rows = np.arange(n)
    uses = sp.csr_matrix((np.ones(2 * n), (np.r_[rows, rows], np.r_[rows, other])), shape=(n, n))
    shared = (uses @ uses.T).astype(bool)
    square = float(deviation @ deviation)
    return max(1.0, float(deviation @ (shared @ deviation)) / square) if square > 0.0 else 1.0


def _standardized(numbers: Array) -> Array:
    """Columns of mean 0 and variance 1, missing values at the mean; constant columns are left out."""
    with np.errstate(all="ignore"):
        known = np.isfinite(numbers)
        count = np.maximum(known.sum(axis=0), 1)
        center = np.where(known, numbers, 0.0).sum(axis=0) / count
        deviation = np.where(known, numbers - center, 0.0)
        scale = np.sqrt((deviation**2).sum(axis=0) / count)
    varies = np.isfinite(scale) & (scale > 1e-12 * np.abs(center))
    return np.asarray(deviation[:, varies] / scale[varies])
