"""Rows of a least-squares problem that are kept in one place, and what passes over them ask for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from certifit._types import Array, Matrix, is_sparse

FEW_ROWS = 1 << 14  # of vectors whose sum is all that counts


@dataclass
class HeldRows:
    """Rows that are kept in one place: features, targets (one after the other, shape (K, n)) and weights."""

    X: Matrix
    Y: Array
    p: Array
    means: Array
    """Of the targets."""

    @cached_property
    def sums(self) -> Array:
        """p, and below it p·(y − mean of y) of each target: what X is summed by."""
        sums = np.empty((self.Y.shape[0] + 1, self.p.shape[0]))
        sums[0] = self.p
        np.subtract(self.Y, self.means[:, None], out=sums[1:])
        sums[1:] *= self.p
        return sums

    @property
    def centered(self) -> Array:
        """p·(y − mean of y)."""
        return np.asarray(self.sums[1:])

    def squares(self, k: int) -> float:
        """Σ p (y − mean of y)² of target k, over blocks that stay in the cache: a vector as long as y costs more than the sum."""
        squares = 0.0
        for i in range(0, self.n, FEW_ROWS):
            r = self.Y[k, i : i + FEW_ROWS] - self.means[k]
            r *= r
            squares += float(self.p[i : i + FEW_ROWS] @ r)
        return squares

    @cached_property
    def T(self) -> Matrix:  # noqa: N802 - as NumPy calls it
        """Xᵀ; of a sparse X the arrays are the same, and to put them together takes as long as a short product."""
        return self.X.T

    @property
    def n(self) -> int:
        """How many."""
        return int(self.X.shape[0])

    def block(self, rows: slice) -> Array:
        """Some rows of X as a dense float64 array (a view where X is one)."""
        part = self.X[rows].toarray() if is_sparse(self.X) else self.X[rows]
        return np.asarray(part, dtype=np.float64)

    def columns(self, chosen: Array) -> Array:
        """Some columns of X, dense."""
        part = self.X[:, chosen]
        return np.asarray(part.toarray() if is_sparse(part) else part, dtype=np.float64)
