"""Weight, mean and scatter of groups of rows: the fold that Gaussians, discriminants and principal components stand on.

    W_g = Σ s_i          m_g = Σ s_i x_i / W_g          S_g = Σ s_i (x_i − m_g)(x_i − m_g)ᵀ          over the rows i of group g

`Moments.of(block)` are those of a block of rows, and `a + b` those of both: the scatter is about the joint mean,

    S = S_a + S_b + (W_a W_b / W)·δδᵀ,     δ = m_b − m_a          Chan, Golub and LeVeque (1983)

so a fit on blocks, a `partial_fit` and a fit of all rows at once agree to rounding, and columns far from zero lose no digits.
Equal numbers have no scatter at all: what rounding left of it would be a unit of the column, or a variance below zero.
"""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from certifit._types import Array
from certifit.names import record

__all__ = ["Moments", "check_squares"]

FEW = 1 << 16  # entries that are centered at a time: half a megabyte
PILOT = 64  # rows that tell whether it is worth trying
NEAR = 9.0  # squares of means beyond the variances at which a product of rows as they are loses one digit
EPSILON = 8 * float(np.finfo(np.float64).eps)  # of a number: what the mean of equal numbers may be off by
BLOCK = 1 << 20  # entries of a block of rows: eight megabytes in double precision


@record("Moments")
class Moments:
    """Moments of G groups of rows in d columns; the scatter has shape (G, d, d), or (G, d) of the diagonal alone."""

    weight: Array
    mean: Array
    scatter: Array

    @staticmethod
    def of(X: Array, weight: Array, group: Array | None = None, n_groups: int = 1, *, full: bool = True) -> Moments:
        """Moments of the rows of X, a dense matrix of any float type.

        Parameters
        ----------
        X : array of shape (n, d)
        weight : array of shape (n,)
            Positive.
        group : array of shape (n,), optional
            Group of each row, 0 … G − 1; all rows are one group by default.
        n_groups : int
            G.
        full : bool
            Whether the scatter is a matrix, or its diagonal alone.

        Examples
        --------
        >>> import numpy as np
        >>> from certifit.representation.design.moments import Moments
        >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]])
        >>> whole, parts = Moments.of(X, np.ones(3)), Moments.of(X[:1], np.ones(1)) + Moments.of(X[1:], np.ones(2))
        >>> bool(np.allclose(whole.scatter, parts.scatter)), whole.mean
        (True, array([[2., 4.]]))
        """
        n, d = X.shape
        if full and group is None and n:
            return _of_all(X, weight)
        size = max(1024, BLOCK // max(d, 1))
        blocks = [slice(i, min(i + size, n)) for i in range(0, n, size)] or [slice(0, 0)]
        return reduce(
            add,
            (
                _of_block(X[rows], weight[rows], None if group is None else group[rows], n_groups, full)
                for rows in blocks
            ),
        )

    @property
    def full(self) -> bool:
        """Whether the scatter is a matrix for each group."""
        return self.scatter.ndim == 3

    def __add__(self, other: Moments) -> Moments:
        total = self.weight + other.weight
        share = np.divide(other.weight, total, out=np.zeros_like(total), where=total > 0)
        shift = other.mean - self.mean
        shift[np.abs(shift) <= EPSILON * np.abs(self.mean)] = 0.0
        spread = shift[:, :, None] * shift[:, None, :] if self.full else shift * shift
        factor = (self.weight * share).reshape(-1, *[1] * (self.scatter.ndim - 1))
        return Moments(total, self.mean + shift * share[:, None], self.scatter + other.scatter + factor * spread)

    def checked(self, source: str = "X") -> Moments:
        """Themselves, if they are numbers; otherwise an error says so of what they were made of."""
        check_squares(self.scatter, source)
        return self

    def pooled(self) -> Moments:
        """All groups about their own means, as one group: its mean is that of all rows."""
        total = self.weight.sum()
        mean = (self.weight / total) @ self.mean
        return Moments(np.array([total]), mean[None], self.scatter.sum(axis=0)[None])

    def joint(self) -> Moments:
        """All groups as one, about the mean of all rows."""
        parts = [Moments(self.weight[[g]], self.mean[[g]], self.scatter[[g]]) for g in range(self.weight.shape[0])]
        return reduce(add, parts)

    def covariance(self) -> Array:
        """Scatter over weight: the maximum likelihood estimate of each group."""
        weight = np.where(self.weight > 0, self.weight, 1.0).reshape(-1, *[1] * (self.scatter.ndim - 1))
        return np.asarray(self.scatter / weight)


def check_squares(sums: Array, source: str = "X") -> None:
    """Refuse weighted sums of squares of what the source holds that are no numbers."""
    if not np.isfinite(sums).all():
        raise ValueError(
            f"{source} holds numbers whose squares are beyond double precision, once weighted: give large columns, or the "
            "weights, in another unit."
        )


def _of_block(X: Array, weight: Array, group: Array | None, n_groups: int, full: bool) -> Moments:
    d = X.shape[1]
    total = np.zeros(n_groups)
    mean = np.zeros((n_groups, d))
    scatter = np.zeros((n_groups, d, d) if full else (n_groups, d))
    equal = bool(weight.size) and bool((weight == weight[0]).all())
    for g in range(n_groups):
        rows = slice(None) if group is None else np.flatnonzero(group == g)
        part = np.array(X[rows], dtype=np.float64)  # a copy, which is centered in place
        if not part.shape[0]:
            continue
        s = weight[rows]
        total[g] = s.sum()
        mean[g] = s @ part / total[g]
        part -= mean[g]
        rest = s @ part / total[g]  # what rounding left of the mean
        mean[g] += rest
        part -= rest
        if not full:
            scatter[g] = np.einsum("ij,ij,i->j", part, part, s)
        elif equal:
            scatter[g] = weight[0] * (part.T @ part)
        else:
            scatter[g] = (part.T * s) @ part
        scatter[g] = _without_rounding(scatter[g], total[g] * (part.shape[0] * EPSILON * rest) ** 2)
    return Moments(total, mean, scatter)


def _without_rounding(scatter: Array, rounding: Array) -> Array:
    """The scatter, or its diagonal, without columns of which there is no more than rounding left: they are constant."""
    own = np.diagonal(scatter) if scatter.ndim == 2 else scatter
    constant = (own <= rounding) & (rounding < np.inf)
    if constant.any():
        scatter[constant] = 0.0
        if scatter.ndim == 2:
            scatter[:, constant] = 0.0
    return scatter


def _of_all(X: Array, weight: Array) -> Moments:
    """Moments of rows that are one group, about a point near their mean: what it is off by is taken out of the products."""
    equal = bool((weight == weight[0]).all())
    if equal and (near := _as_they_are(X, float(weight[0]))) is not None:
        return near
    total = float(weight.sum())
    root = None if equal else np.sqrt(weight)
    point = X[:PILOT].mean(axis=0, dtype=np.float64)
    with np.errstate(all="ignore"):  # numbers whose squares are none fail the test
        rest, scatter = _about(X, point, root)
        energy, lost = np.diagonal(scatter), rest * rest / (X.shape[0] if equal else total)
        rounding = X.shape[0] * (EPSILON * point) ** 2
        fits = bool(((energy <= (1.0 + NEAR) * (energy - lost)) | (energy <= rounding)).all())
    if not fits:  # the first rows are not like the others
        point = np.asarray(weight @ X, dtype=np.float64) / total
        rest, scatter = _about(X, point, root)
    if equal:
        rest, scatter = weight[0] * rest, weight[0] * scatter
    rest /= total
    lost = total * np.outer(rest, rest)
    scatter = _without_rounding(scatter - lost, X.shape[0] * EPSILON * np.diagonal(lost))
    return Moments(np.array([total]), (point + rest)[None], scatter[None])


def _about(X: Array, point: Array, root: Array | None) -> tuple[Array, Array]:
    """Σ s_i (x_i − p) and Σ s_i (x_i − p)(x_i − p)ᵀ with √s_i given, or all 1; a few rows at a time, while the cache has them."""
    n, d = X.shape
    few = max(64, FEW // max(d, 1))
    held, rest, scatter = np.empty((min(n, few), d)), np.zeros(d), np.zeros((d, d))
    for i in range(0, n, few):
        rows = slice(i, min(i + few, n))
        part = held[: rows.stop - i]
        np.subtract(X[rows], point, out=part)
        if root is not None:
            part *= root[rows, None]
        rest += (np.ones(part.shape[0]) if root is None else root[rows]) @ part
        scatter += part.T @ part  # NumPy's, which sees a square and lets other threads run
    return rest, scatter


def _as_they_are(X: Array, weight: float) -> Moments | None:
    """The same from products of the rows as they are, in one pass without a copy: XᵀX − n mmᵀ.

    Only where this cancels little, since no mean is far beyond the deviation of its column; otherwise None.
    """
    if X.dtype != np.float64 or not X.flags.c_contiguous:
        return None
    n = X.shape[0]
    with np.errstate(all="ignore"):  # numbers whose squares are none fail the last test
        first = X[:PILOT]
        if n > PILOT and (first.mean(axis=0) ** 2 > NEAR * first.var(axis=0)).any():
            return None
        sums, products = X.sum(axis=0), X.T @ X
        mean, energy = sums / n, np.diagonal(products)
        if not (energy <= (1.0 + NEAR) * (energy - n * mean * mean)).all():
            return None
        scatter = weight * (products - n * np.outer(mean, mean))
    return Moments(np.array([n * weight]), mean[None], scatter[None])
