"""The factors of naive Bayes: what one kind of column adds to ln P(x | class), learned by counting.

Every factor is a fold over rows: `Factor.of(rows)` counts a block, `a + b` are the counts of both, and `settle` turns counts into
parameters of greatest (smoothed) likelihood. A missing value (NaN) is left out of the counts and of the product.

    Gaussian     −½[ln 2πσ²_kj + (x_j − m_kj)²/σ²_kj]          Bernoulli    x_j ln p_kj + (1 − x_j) ln(1 − p_kj)
    categorical  ln p_kj(x_j)                                  multinomial  x_j ln p_kj,  Σ_j p_kj = 1
    Poisson      x_j ln λ_kj − λ_kj − ln x_j!                  kernel       ln of a kernel density estimate
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import gammaln

import certifit._native.bayes as _native
from certifit._types import Array, Matrix, is_sparse
from certifit.models.bayes.gaussian import from_afar
from certifit.names import stored
from certifit.representation.design.moments import check_squares
from certifit.threads import n_threads

__all__ = ["FACTORS", "Bernoulli", "Categorical", "Factor", "Gaussian", "KernelFactor", "Multinomial", "Poisson"]

LOWEST = (
    -1e150
)  # stands for ln 0 in sums: −∞ times a count of zero would be no number, and times a large one must not be −∞
REACH = 8  # widths of a kernel beyond which it adds nothing to the knots on which a density is kept
FINE = 16  # knots to a width: a line between them is at most 1/(8·16²) off in the logarithm
MOST_CELLS = 20_000  # widths that are covered so finely; of more (values far apart from each other) every half
NARROWEST = 1e-9  # a kernel's least width, as a share of the range of its column
CONSTANT = 1e-4  # the width of a class that has one value only, likewise


class Factor(ABC):
    """Counts of some columns, and the log likelihood they give to new rows."""

    @abstractmethod
    def __add__(self, other: Any) -> Any:
        """The counts of both blocks of rows."""

    @abstractmethod
    def settle(self, smoothing: float) -> None:
        """Parameters from counts; `smoothing` is what a factor adds to them."""

    @abstractmethod
    def scores(self, X: Matrix) -> Array:
        """ln P(x | class) of these columns, shape (n, K)."""

    @abstractmethod
    def terms(self, x: Array) -> Array:
        """What each column of one row adds for each class, shape (d, K); zero where missing."""


def _int64(codes: Array) -> Array:
    return np.ascontiguousarray(codes, dtype=np.int64)


def _onehot(group: Array, weight: Array, K: int) -> Any:
    """Sparse (K, n) matrix of weights, so that sums by class are products."""
    import scipy.sparse as sp

    n = group.shape[0]
    return sp.csr_array((weight, (group, np.arange(n))), shape=(K, n))


def _sums(X: Any, group: Array, weight: Array, K: int) -> Array:
    """Sums by class of sparse rows, shape (K, d): every stored entry is added once, whatever the number of classes."""
    found = np.empty((X.shape[1], K))
    _native.sparse_sums(X.data, X.indices, X.indptr, _int64(group), np.ascontiguousarray(weight), found)
    return found.T  # columns one after the other, as scores of sparse rows read them


def _split(X: Any) -> tuple[Any, Any]:
    """Sparse X with zeros where it is missing, and ones where it is missing; None if nothing is."""
    if not np.isnan(X.data.min(initial=0.0)):
        return X, None
    absent = np.isnan(X.data)
    known, missing = X.copy(), X.copy()
    known.data = np.where(absent, 0.0, X.data)
    missing.data = absent.astype(np.float64)
    return known, missing


@stored("GaussianFactor")
@dataclass
class Gaussian(Factor):
    """Normal densities."""

    weight: Array
    """Known weight of each class and column, shape (K, d)."""
    mean: Array
    scatter: Array

    @staticmethod
    def of(X: Array, group: Array, weight: Array, K: int) -> Gaussian:
        """Moments of each class in each column, missing values left out."""
        held, mean, scatter = (np.empty((K, X.shape[1])) for _ in range(3))
        rows = np.ascontiguousarray(X)
        _native.moments(rows, _int64(group), np.ascontiguousarray(weight), held, mean, scatter, n_threads(None))
        return Gaussian(held, mean, scatter)

    def __add__(self, other: Gaussian) -> Gaussian:
        total = self.weight + other.weight
        share = np.divide(other.weight, total, out=np.zeros_like(total), where=total > 0)
        shift = other.mean - self.mean
        scatter = self.scatter + other.scatter + shift**2 * self.weight * share
        return Gaussian(total, self.mean + shift * share, scatter)

    def settle(self, smoothing: float) -> None:
        """Variances, each raised by a share of its column's variance over all rows."""
        total = self.weight.sum(axis=0)
        share = np.divide(self.weight, total, out=np.zeros_like(self.weight), where=total > 0)
        self.center = (share * self.mean).sum(axis=0)
        within = np.divide(self.scatter, self.weight, out=np.zeros_like(self.scatter), where=self.weight > 0)
        self.overall = (share * (within + (self.mean - self.center) ** 2)).sum(axis=0)
        check_squares(self.overall)
        self.unit = np.sqrt(np.where(self.overall > 0, self.overall, 1.0))
        varies = self.overall > 0
        # A column that never varies tells nothing: it gets the same density everywhere, and so drops out.
        with np.errstate(over="ignore"):
            self.variance = np.where(varies, within + smoothing * self.overall, 1.0)
        # A class that knows no value of a column has the density of all rows there.
        unknown = self.weight == 0
        self.variance = np.where(unknown, np.where(varies, self.overall, 1.0), self.variance)
        self.location = np.where(unknown, self.center, self.mean)
        self.location = np.where(varies, self.location, self.center)
        # Beside a smoothing beyond double precision the classes do not differ, nor do they at its end; 2π times it is a number.
        range_ = np.finfo(np.float64)
        self.variance = np.clip(self.variance, range_.tiny, range_.max / 8)

    def scores(self, X: Array) -> Array:
        """Σ_j c_kj − a_kj (x_j − m_kj)², in one native pass."""
        a = 0.5 / self.variance
        c = -0.5 * np.log(2 * np.pi * self.variance)

        def densities(rows: Array) -> Array:
            out = np.empty((rows.shape[0], a.shape[0]))
            _native.gaussian(rows, self.location, a, c, out, n_threads(None))
            return out

        return from_afar(densities, np.ascontiguousarray(X), self.center)

    def terms(self, x: Array) -> Array:
        """Log densities of the single values."""
        density = -0.5 * (np.log(2 * np.pi * self.variance) + (x - self.location) ** 2 / self.variance)
        return np.nan_to_num(density, nan=0.0, neginf=-np.inf).T


class _Counted(Factor):
    """Weighted sums of the columns, shape (K, d), and the known weight, shape (K, 1) where nothing is missing."""

    def __init__(self, held: Array, sums: Array) -> None:
        self.held, self.sums = held, sums

    @classmethod
    def of(cls, X: Matrix, group: Array, weight: Array, K: int) -> Any:
        """Sums by class; entries of sparse X that are not stored are zeros."""
        total = np.bincount(group, weights=weight, minlength=K)[:, None]
        if is_sparse(X):
            X, missing = _split(X)
            held = total if missing is None else total - _sums(missing, group, weight, K)
            return cls(held, _sums(X, group, weight, K))
        by_class = _onehot(group, weight, K)
        if not np.isnan(X.min(initial=0.0)):
            return cls(total, np.asarray(by_class @ X.astype(np.float64, copy=False)))
        known = ~np.isnan(X)
        return cls(by_class @ known.astype(np.float64), by_class @ np.where(known, X, 0.0).astype(np.float64))

    def __add__(self, other: Any) -> Any:
        return type(self)(self.held + other.held, self.sums + other.sums)

    def _linear(self, X: Matrix, slope: Array, constant: Array | None = None) -> Array:
        """Σ_j x_j·slope_kj + constant_kj over the known entries."""
        level = np.zeros(slope.shape[0]) if constant is None else constant.sum(axis=1)
        if is_sparse(X):
            X, absent = _split(X)
            total, steep = np.empty((X.shape[0], slope.shape[0])), np.ascontiguousarray(slope.T)
            _native.sparse_scores(X.data, X.indices, X.indptr, steep, level, total, n_threads(None))
            return total if absent is None or constant is None else np.asarray(total - absent @ constant.T)
        z = X.astype(np.float64, copy=False)
        missing = np.isnan(z)
        if not missing.any():
            return z @ slope.T + level
        total = np.where(missing, 0.0, z) @ slope.T
        return total if constant is None else total + (~missing).astype(np.float64) @ constant.T

    @staticmethod
    def _known(terms: Array, x: Array) -> Array:
        return np.where(np.isnan(x)[:, None], 0.0, terms)


@stored("BernoulliFactor")
class Bernoulli(_Counted):
    """Columns of zeros and ones."""

    def settle(self, smoothing: Any) -> None:
        """Shares of ones, with `smoothing` rows of each kind added."""
        p = (self.sums + smoothing) / np.maximum(self.held + 2.0 * smoothing, 1e-300)
        p = np.where(self.held + smoothing > 0, p, 0.5)
        with np.errstate(divide="ignore"):
            self.log_one, self.log_zero = np.log(p), np.log1p(-p)

    def scores(self, X: Matrix) -> Array:
        """Linear in x; what has a share of zero is counted by itself, so that it hides nothing else."""
        total, never = self._linear(X, *self.linear_form()), self.impossible_form()
        if never is not None:
            total += LOWEST * self._linear(X, *never)
        return total

    def linear_form(self) -> tuple[Array, Array]:
        """Slopes and constants of the log shares that are not those of zero."""
        one, zero = (np.where(np.isneginf(log), 0.0, log) for log in (self.log_one, self.log_zero))
        return one - zero, zero

    def impossible_form(self) -> tuple[Array, Array] | None:
        """Slopes and constants of how many values have a share of zero; None where none has."""
        one, zero = (np.isneginf(log) * 1.0 for log in (self.log_one, self.log_zero))
        return (one - zero, zero) if one.any() or zero.any() else None

    def terms(self, x: Array) -> Array:
        """Log share of the value that each column has."""
        shares = np.where((x > 0)[:, None], self.log_one.T, self.log_zero.T)
        return self._known(np.maximum(shares, LOWEST), x)


@stored("MultinomialFactor")
class Multinomial(_Counted):
    """Counts that share one total, such as words of a text."""

    def settle(self, smoothing: Any) -> None:
        """Shares of the columns in each class, with `smoothing` added to every count."""
        self.log_share = self._shares(self.sums + smoothing)

    def _shares(self, counts: Array) -> Array:
        """Logarithms of the shares of each column in all columns of which any value is known; equal ones where nothing counts."""
        seen = self.held.sum(axis=0) > 0
        known = counts if seen.all() else counts[:, seen]
        with np.errstate(over="ignore"):
            total = known.sum(axis=1, keepdims=True)
        if not np.isfinite(total).all():
            raise ValueError(
                "X holds counts whose sums, once smoothed, are beyond double precision: give smaller ones."
            )
        counts, total = np.where(total > 0, counts, 1.0), np.where(total > 0, total, float(known.shape[1] or 1))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(counts) - np.log(total))

    def scores(self, X: Matrix) -> Array:
        """x·ln p; a missing count adds nothing."""
        return self._linear(X, np.clip(self.log_share, LOWEST, -LOWEST))

    def terms(self, x: Array) -> Array:
        """x_j ln p_kj."""
        return self._known(np.nan_to_num(x)[:, None] * np.clip(self.log_share.T, LOWEST, -LOWEST), x)


@stored("ComplementFactor")
class Complement(Multinomial):
    """The multinomial of all *other* classes, subtracted. Rennie et al. (2003), Tackling the poor assumptions of naive Bayes."""

    def settle(self, smoothing: Any) -> None:
        """−ln of the shares outside each class."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums that are no numbers are refused with the shares
            outside = self.sums.sum(axis=0) - self.sums + smoothing
        self.log_share = -self._shares(outside)


@stored("PoissonFactor")
class Poisson(_Counted):
    """Independent counts."""

    def settle(self, smoothing: float) -> None:
        """Rates, with `smoothing` events in one row of the column's mean rate added."""
        total = np.maximum(self.held.sum(axis=0), 1e-300)
        prior = self.sums.sum(axis=0) / total
        prior = np.where(prior > 0, prior, 1.0)
        self.rate = np.maximum((self.sums + smoothing * prior) / np.maximum(self.held + smoothing, 1e-300), 1e-300)

    def scores(self, X: Matrix) -> Array:
        """x ln λ − λ − ln x!."""
        linear = self._linear(X, np.log(self.rate), -self.rate)
        values = X.data if is_sparse(X) else X
        each = gammaln(np.nan_to_num(np.asarray(values, dtype=np.float64)) + 1.0)
        if is_sparse(X):
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.tocsr().indptr))
            return linear - np.bincount(rows, weights=each, minlength=X.shape[0])[:, None]
        return np.asarray(linear - each.sum(axis=1)[:, None])

    def terms(self, x: Array) -> Array:
        """Log probability of each count."""
        count = np.nan_to_num(x)[:, None]
        return self._known(count * np.log(self.rate.T) - self.rate.T - gammaln(count + 1.0), x)


@stored("CategoricalFactor")
class Categorical(Factor):
    """Columns of category numbers 0, 1, …; −1 (or NaN) is missing, and a number beyond those known is left out too."""

    def __init__(self, counts: list[Array]) -> None:
        self.counts = counts
        """For each column, weights of shape (K, categories)."""

    @staticmethod
    def of(X: Array, group: Array, weight: Array, K: int, sizes: Array | None = None) -> Categorical:
        """Weights of the categories in each class."""
        most = X.max(axis=0)
        if X.dtype.kind == "f" and np.isnan(most).any():  # the slower way around missing values
            with np.errstate(invalid="ignore"):
                most = np.nan_to_num(np.fmax.reduce(X, axis=0), nan=-1.0)
        seen = most.astype(np.int64) + 1
        size = np.maximum(np.maximum(seen, 0 if sizes is None else sizes), 1)
        offset = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        count = np.empty((int(offset[-1]), K))
        _native.count_categories(
            np.ascontiguousarray(X), _int64(group), np.ascontiguousarray(weight), offset, count, n_threads(None)
        )
        return Categorical([count[a:b].T.copy() for a, b in pairwise(offset)])

    def __add__(self, other: Categorical) -> Categorical:
        joined = []
        for a, b in zip(self.counts, other.counts, strict=True):
            size = max(a.shape[1], b.shape[1])
            total = np.zeros((a.shape[0], size))
            total[:, : a.shape[1]] += a
            total[:, : b.shape[1]] += b
            joined.append(total)
        return Categorical(joined)

    def settle(self, smoothing: Any) -> None:
        """Shares of the categories, with `smoothing` added to every count."""
        self.log_share = []
        for held, added in zip(self.counts, np.broadcast_to(smoothing, len(self.counts)), strict=True):
            counts = held + added
            total = counts.sum(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                share = np.log(counts) - np.log(np.maximum(total, 1e-300))
            self.log_share.append(np.where(total > 0, share, -np.log(held.shape[1])))

    def scores(self, X: Array) -> Array:
        """One look-up for each known value."""
        offset = np.concatenate([[0], np.cumsum([share.shape[1] for share in self.log_share])]).astype(np.int64)
        table = np.ascontiguousarray(np.maximum(np.vstack([share.T for share in self.log_share]), LOWEST))
        out = np.empty((X.shape[0], table.shape[1]))
        _native.look_up(np.ascontiguousarray(X), offset, table, out, n_threads(None))
        return out

    def terms(self, x: Array) -> Array:
        """The look-ups of one row."""
        out = np.zeros((len(self.log_share), self.counts[0].shape[0]))
        for j, share in enumerate(self.log_share):
            if x[j] >= 0 and x[j] < share.shape[1]:
                out[j] = np.maximum(share[:, int(x[j])], LOWEST)
        return out


@stored("KernelFactor")
class KernelFactor(Factor):
    """A Gaussian kernel density for each class and column, kept on knots around its values and read off by interpolation.

    The bandwidth is Silverman's 0.9·min(σ, IQR/1.34)·n^(−1/5), of each class; of all rows for a class with one row.
    """

    def __init__(self, values: list[list[tuple[Array, Array]]]) -> None:
        self.values = values
        """For each class and column, the known values and their weights, sorted, equal ones merged."""

    @staticmethod
    def of(X: Array, group: Array, weight: Array, K: int) -> KernelFactor:
        """The values themselves: a kernel density has no smaller summary."""
        found = []
        for k in range(K):
            rows = np.flatnonzero(group == k)
            found.append([_merged(X[rows, j].astype(np.float64), weight[rows]) for j in range(X.shape[1])])
        return KernelFactor(found)

    def __add__(self, other: KernelFactor) -> KernelFactor:
        joined = [
            [_merged(np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]])) for a, b in zip(one, two, strict=True)]
            for one, two in zip(self.values, other.values, strict=True)
        ]
        return KernelFactor(joined)

    def settle(self, smoothing: float) -> None:
        """Log densities at knots; `smoothing` mixes in a share of the density of all classes."""
        K, share = len(self.values), min(smoothing, 0.5)
        self.grid, self.log_density = [], []
        for j in range(len(self.values[0])):
            held = [self.values[k][j] for k in range(K)]
            total = np.array([weight.sum() for _, weight in held])
            ends = [end for values, _ in held if values.size for end in (values[0], values[-1])]
            low, high = (min(ends), max(ends)) if ends else (0.0, 0.0)
            unit = high - low or abs(low) or 1.0  # densities are made at magnitude one
            placed = [((values - low) / unit, weight) for values, weight in held]
            rows = _merged(*(np.concatenate(part) for part in zip(*placed, strict=True)))
            width = [_bandwidth(*(rows if weight.sum() <= 1.0 else (v, weight))) for v, weight in placed]
            knots = np.unique(np.concatenate([[0.0], *(_knots(v, h) for (v, _), h in zip(placed, width, strict=True))]))
            density = np.array([_density(knots, *one, h) for one, h in zip(placed, width, strict=True)])
            pooled = total @ density / total.sum() if ends else np.ones_like(knots)
            mixed = (1.0 - share) * density + share * pooled
            mixed[total == 0] = pooled
            self.grid.append(low + unit * knots)
            self.log_density.append(np.log(np.maximum(mixed, np.finfo(np.float64).tiny)) - np.log(unit))

    def scores(self, X: Array) -> Array:
        """Interpolated log densities; beyond the grid the value at its end."""
        total = np.zeros((X.shape[0], len(self.values)))
        for j, (grid, density) in enumerate(zip(self.grid, self.log_density, strict=True)):
            x = X[:, j].astype(np.float64)
            known = ~np.isnan(x)
            for k in range(total.shape[1]):
                total[known, k] += np.interp(x[known], grid, density[k])
        return total

    def terms(self, x: Array) -> Array:
        """Log densities of the single values."""
        out = np.zeros((len(self.grid), len(self.values)))
        for j, (grid, density) in enumerate(zip(self.grid, self.log_density, strict=True)):
            if not np.isnan(x[j]):
                out[j] = [np.interp(x[j], grid, density[k]) for k in range(out.shape[1])]
        return out


def _merged(values: Array, weight: Array) -> tuple[Array, Array]:
    known = ~np.isnan(values)
    distinct, which = np.unique(values[known], return_inverse=True)
    return distinct, np.bincount(which, weights=weight[known], minlength=distinct.shape[0])


def _bandwidth(values: Array, weight: Array) -> float:
    """Silverman's rule for values of magnitude one; never so narrow that a double could not resolve it."""
    if values.shape[0] < 2:
        return CONSTANT
    total = float(weight.sum())
    mean = float(weight @ values) / total
    deviation = float(np.sqrt(weight @ (values - mean) ** 2 / total))
    share = np.cumsum(weight) / total
    quartile = values[np.minimum(np.searchsorted(share, [0.25, 0.75]), values.shape[0] - 1)]
    spread = min(deviation, float(quartile[1] - quartile[0]) / 1.34) or deviation
    return max(0.9 * spread * total**-0.2, NARROWEST)


def _knots(values: Array, h: float) -> Array:
    """Points that a line through the log density follows: a lattice finer than h, wherever a value is within reach."""
    cells = np.unique(np.floor(values / h))
    near = np.unique(cells[:, None] + np.arange(-REACH, REACH + 2))
    fine = FINE if near.shape[0] < MOST_CELLS else 2
    return np.asarray(h * (near[:, None] + np.arange(fine) / fine).ravel())


def _density(points: Array, values: Array, weight: Array, h: float) -> Array:
    """The kernel density at sorted points: for a few of them at a time, the values within reach."""
    total = np.zeros(points.shape[0])
    for i in range(0, points.shape[0], 64):
        some = points[i : i + 64]
        first, last = np.searchsorted(values, [some[0] - (REACH + 1) * h, some[-1] + (REACH + 1) * h])
        for at in range(first, last, 1 << 16):
            part = slice(at, min(at + (1 << 16), last))
            z = (some[:, None] - values[part]) / h
            total[i : i + 64] += np.exp(-0.5 * z * z) @ weight[part]
    return np.asarray(total / (max(float(weight.sum()), 1e-300) * h * np.sqrt(2 * np.pi)))


FACTORS: dict[str, Any] = {
    "gaussian": Gaussian,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "multinomial": Multinomial,
    "complement": Complement,
    "poisson": Poisson,
    "kernel": KernelFactor,
}
