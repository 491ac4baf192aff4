"""What is known of each column, as folds over rows: moments and extremes. Missing values are left out, column by column.

    W_j = Σ s_i      mean_j = Σ s_i x_ij / W_j      deviation_j² = Σ s_i (x_ij − mean_j)² / W_j      over rows i with x_ij

`of(block)` are those of a block of rows, and `a + b` those of both. Moments are accumulated in float64 whatever the type of X,
by blocks of rows that fit in the cache: one pass over the memory, each block centered on its own mean, blocks merged by the
formula of Chan, Golub and LeVeque (1983).
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.data.sparse import canonical
from certifit.names import record
from certifit.representation.basis.blocks import BLOCK_ENTRIES, folded, index_of_entries, run_length
from certifit.representation.design.blocks import row_blocks

__all__ = ["ColumnExtremes", "ColumnMoments", "column_values", "mean_and_deviation", "present_values"]


@record("ColumnMoments")
class ColumnMoments:
    """Weight, mean and standard deviation of the values of each column; mean and deviation of none are NaN."""

    weight: Array
    mean: Array
    deviation: Array

    @staticmethod
    def of(X: Matrix, weight: Array, *, missing: bool = False) -> ColumnMoments:
        """Moments of the columns of a dense or canonical sparse matrix; NaN is a missing value if `missing`.

        Examples
        --------
        >>> import numpy as np
        >>> from certifit.representation.basis.summaries import ColumnMoments
        >>> X = np.array([[0.0], [2.0], [np.nan], [7.0]])
        >>> whole = ColumnMoments.of(X, np.ones(4), missing=True)
        >>> whole.weight, whole.mean
        (array([3.]), array([3.]))
        >>> parts = ColumnMoments.of(X[:2], np.ones(2)) + ColumnMoments.of(X[2:], np.ones(2), missing=True)
        >>> bool(np.allclose(parts.deviation, whole.deviation))
        True
        """
        # A power of two leaves the proportions exact, and sums in range.
        exponent = int(np.frexp(weight.max())[1])
        weight = np.ldexp(weight, -exponent)
        lacking = _lacking(X) if missing else np.zeros(X.shape[1], dtype=bool)
        total = np.full(X.shape[1], weight.sum())
        if not lacking.any():
            mean, deviation = mean_and_deviation(X, weight)
            return ColumnMoments(np.ldexp(total, exponent), mean, deviation)
        mean, deviation = np.full(X.shape[1], np.nan), np.full(X.shape[1], np.nan)
        if not lacking.all():
            mean[~lacking], deviation[~lacking] = mean_and_deviation(X[:, ~lacking], weight)
        columns = X.tocsc() if is_sparse(X) else X
        for j in np.flatnonzero(lacking):
            values, mass = present_values(columns, weight, int(j))
            total[j] = mass.sum()
            if values.size:
                mean[j], deviation[j] = _careful_moments(values, mass)
        return ColumnMoments(np.ldexp(total, exponent), mean, deviation)

    def __add__(self, other: ColumnMoments) -> ColumnMoments:
        total = self.weight + other.weight
        with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
            left, right = self.weight / total, other.weight / total
            shift = other.mean - self.mean
            mean = self.mean + shift * right
            within = np.hypot(np.sqrt(left) * self.deviation, np.sqrt(right) * other.deviation)
            deviation = np.hypot(within, np.sqrt(left) * np.sqrt(right) * np.abs(shift))
        only = (self.weight == 0.0, other.weight == 0.0)
        return ColumnMoments(
            total,
            np.select(only, (other.mean, self.mean), mean),
            np.select(only, (other.deviation, self.deviation), deviation),
        )


@record("ColumnExtremes")
class ColumnExtremes:
    """Least and greatest value of each column; NaN where there is none."""

    low: Array
    high: Array

    @staticmethod
    def of(X: Matrix) -> ColumnExtremes:
        """Extremes of the columns of a dense or canonical sparse matrix, as float64; NaN is a missing value.

        Examples
        --------
        >>> import numpy as np
        >>> from certifit.representation.basis.summaries import ColumnExtremes
        >>> ColumnExtremes.of(np.array([[0.0, 3.0], [2.0, np.nan]]))
        ColumnExtremes(low=array([0., 3.]), high=array([2., 3.]))
        """
        low, high = _sparse_extremes(X) if is_sparse(X) else _dense_extremes(X)
        return ColumnExtremes(low.astype(np.float64), high.astype(np.float64))

    def __add__(self, other: ColumnExtremes) -> ColumnExtremes:
        return ColumnExtremes(np.fmin(self.low, other.low), np.fmax(self.high, other.high))


def _lacking(X: Matrix) -> Array:
    """Columns with missing values."""
    if is_sparse(X):
        return np.bincount(index_of_entries(X, axis=1)[np.isnan(X.data)], minlength=X.shape[1]) > 0
    return np.asarray(np.isnan(X).any(axis=0))


def mean_and_deviation(X: Matrix, weight: Array) -> tuple[Array, Array]:
    """Weighted mean and population standard deviation of the columns, zero exactly for constant columns."""
    if is_sparse(X):
        X = canonical(X)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mean, variance = _sparse_moments(X, weight) if is_sparse(X) else _dense_moments(X, weight)
        deviation = np.sqrt(variance)
        # Squares near the ends of the exponent range, or a spread near the rounding of the mean: such columns
        # are done again with more care. The usual column pays nothing for it.
        sound = (variance > 1e-250) & (variance < 1e250) & (deviation > 1e-6 * np.abs(mean))
    if not sound.all():
        columns = X.tocsc() if is_sparse(X) else X
        for j in np.flatnonzero(~sound):
            mean[j], deviation[j] = _careful_moments(*column_values(columns, weight, int(j)))
    return mean, deviation


def _dense_moments(X: Array, weight: Array) -> tuple[Array, Array]:
    n, d = X.shape
    total, mean, spread = 0.0, np.zeros(d), np.zeros(d)
    for rows in row_blocks(n, d, BLOCK_ENTRIES):
        w = weight[rows]
        block = X[rows].astype(np.float64, copy=False)
        mass = w.sum()
        center = (w @ block) / mass
        centered = block - center
        np.multiply(centered, centered, out=centered)
        shift = center - mean
        total += mass
        mean += shift * (mass / total)
        spread += w @ centered + shift * shift * (mass * (total - mass) / total)
    return mean, spread / total


def _sparse_moments(X: Matrix, weight: Array) -> tuple[Array, Array]:
    d = X.shape[1]
    columns, w = index_of_entries(X, axis=1), weight[index_of_entries(X, axis=0)]
    values, total = X.data.astype(np.float64), weight.sum()
    mean = np.bincount(columns, weights=w * values, minlength=d) / total
    filled = np.bincount(columns, weights=w, minlength=d)
    centered = values - mean[columns]
    spread = np.bincount(columns, weights=w * centered * centered, minlength=d)
    # The zeros that are not stored are all at distance |mean|.
    return mean, (spread + np.maximum(total - filled, 0.0) * mean * mean) / total


def column_values(X: Matrix, weight: Array, j: int) -> tuple[Array, Array]:
    """Values and weights of one column of a dense or CSC matrix.

    The zeros that are not stored count as one entry with their total weight.
    """
    if not is_sparse(X):
        return X[:, j].astype(np.float64), weight
    at = slice(X.indptr[j], X.indptr[j + 1])
    values, mass = X.data[at].astype(np.float64), weight[X.indices[at]]
    if values.size == X.shape[0]:
        return values, mass
    return np.append(values, 0.0), np.append(mass, max(weight.sum() - mass.sum(), 0.0))


def _dense_extremes(X: Array) -> tuple[Array, Array]:
    d, folds = X.shape[1], run_length(X)
    whole = X.shape[0] // folds * folds
    parts = [X]
    if folds > 1 and whole > 0:
        wide = folded(X[:whole], folds)
        parts = [wide[rows] for rows in row_blocks(wide.shape[0], wide.shape[1], BLOCK_ENTRIES)]
        parts += [X[whole:]] if whole < X.shape[0] else []
    low = np.fmin.reduce([np.fmin.reduce(np.fmin.reduce(part).reshape(-1, d)) for part in parts])
    high = np.fmax.reduce([np.fmax.reduce(np.fmax.reduce(part).reshape(-1, d)) for part in parts])
    return low, high


def _sparse_extremes(X: Matrix) -> tuple[Array, Array]:
    n, d = X.shape
    columns = index_of_entries(X, axis=1)
    # The zeros that are not stored are values too.
    start = np.where(np.bincount(columns, minlength=d) < n, 0.0, np.nan)
    low, high = start.copy(), start.copy()
    np.fmin.at(low, columns, X.data)
    np.fmax.at(high, columns, X.data)
    return low, high


def present_values(X: Matrix, weight: Array, j: int) -> tuple[Array, Array]:
    """`column_values` without the missing ones."""
    values, mass = column_values(X, weight, j)
    present = ~np.isnan(values)
    return values[present], mass[present]


def _careful_moments(values: Array, weight: Array) -> tuple[float, float]:
    """Mean and deviation of one column, scaled to magnitude one and shifted by its first value."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    scaled = np.ldexp(values, -exponent)
    offset = scaled[0]
    scaled -= offset
    if not scaled.any():
        return float(values[0]), 0.0
    shift = (weight @ scaled) / weight.sum()
    deviation = np.sqrt((weight @ (scaled - shift) ** 2) / weight.sum())
    return float(np.ldexp(offset + shift, exponent)), float(np.ldexp(deviation, exponent))
