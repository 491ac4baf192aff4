"""One cloud: tables like a given one, but without groups.

Each column of such a table has a distribution of one mode, the likeliest for its values, and columns only rise and fall together:
rows are drawn evenly from a box along the principal axes of the ranks of X, and their ranks become values. Of all clouds a box
is cut apart most easily (Tibshirani, Walther, Hastie 2001). Skew, tails, ends and steps of the columns, and what is missing in
them, stay as they are; gaps inside columns, and groups between them, do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import isotonic_regression

from certifit._types import Array

__all__ = ["Cloud", "of_one_mode"]

CELLS = 32  # of a column, with as many values each


class Cloud:
    """Tables without groups that have the columns of X, one mode each, and the correlations of their ranks.

    Parameters
    ----------
    X : array of shape (n, d)
        Numbers; NaN is missing, and stays where it is.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.evaluation.risk.clouds import Cloud
    >>> rng = np.random.default_rng(0)
    >>> x = np.where(rng.random(400) < 0.5, -5.0, 5.0)[:, None] + rng.normal(size=(400, 2))
    >>> drawn = Cloud(x).draw(rng)
    >>> bool((np.abs(x) < 2).mean() < 0.01), bool((np.abs(drawn) < 2).mean() > 0.15)  # no gap any more
    (True, True)
    >>> bool(np.corrcoef(drawn.T)[0, 1] > 0.6)
    True
    """

    def __init__(self, X: Array) -> None:
        self._known = ~np.isnan(X)
        self._columns = [_Column(values[known]) for values, known in zip(X.T, self._known.T, strict=True)]
        scores = np.zeros(X.shape)
        for j, column in enumerate(self._columns):
            scores[self._known[:, j], j] = column.scores
        _, spread, axes = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
        self._factor = spread[:, None] * axes

    def draw(self, rng: Any) -> Array:
        """As many rows as X has."""
        latent = rng.uniform(-1.0, 1.0, size=(self._known.shape[0], self._factor.shape[0])) @ self._factor
        ranks = np.argsort(np.argsort(latent, axis=0), axis=0)
        shares = np.sort(rng.uniform(size=latent.shape), axis=0)  # of a sample, so that its columns vary as samples do
        drawn = np.column_stack([column.at(shares[ranks[:, j], j]) for j, column in enumerate(self._columns)])
        drawn[~self._known] = np.nan
        return drawn


class _Column:
    """A column as its distribution of one mode: ends of cells, and the share below each."""

    def __init__(self, values: Array) -> None:
        distinct, which, count = np.unique(values, return_inverse=True, return_counts=True)
        n, below = values.shape[0], np.cumsum(count)
        self.scores = ((below - 0.5 * count) / max(n, 1) - 0.5)[which]
        """Ranks of the values about their mean; equal ones have the same."""
        self._least, self._unit, self._below = (distinct[0] if n else np.nan), 0.0, np.zeros(0)
        if distinct.size < 2:
            return
        self._unit = float(np.median(np.diff(distinct)))
        cell = np.arange(count.size) if count.size <= CELLS else ((below - 0.5 * count) * CELLS / n).astype(np.int64)
        last = np.append(np.flatnonzero(np.diff(cell)), count.size - 1)
        mass = np.diff(below[last], prepend=0) / n
        first, final = distinct[[0, 1]], distinct[[-2, -1]]
        between = 0.5 * distinct[last[:-1]] + 0.5 * distinct[last[:-1] + 1]
        self._edges = np.r_[1.5 * first[0] - 0.5 * first[1], between, 1.5 * final[1] - 0.5 * final[0]]
        wide = np.diff(self._edges)
        self._below = np.append(0.0, np.cumsum(of_one_mode(mass / wide, wide) * wide))

    def at(self, share: Array) -> Array:
        """The values below which these shares lie, as far from each other as those of the column."""
        if self._unit == 0.0:
            return np.full(share.shape, self._least)
        drawn = np.interp(share * self._below[-1], self._below, self._edges) - self._least
        return np.asarray(self._least + self._unit * np.round(drawn / self._unit))


def of_one_mode(density: Array, wide: Array) -> Array:
    """The likeliest density that rises up to some cell and falls from there on.

    Parameters
    ----------
    density, wide : arrays of shape (m,)
        Of cells of a histogram.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.evaluation.risk.clouds import of_one_mode
    >>> of_one_mode(np.array([0.1, 0.3, 0.1, 0.4, 0.1]), np.ones(5))
    array([0.1, 0.2, 0.2, 0.4, 0.1])
    """
    mass = density * wide
    splits = range(density.size + 1)
    rising = [isotonic_regression(density[:k], weights=wide[:k]).x if k else density[:0] for k in splits]
    falling = [
        isotonic_regression(density[k:], weights=wide[k:], increasing=False).x if k < density.size else density[:0]
        for k in splits
    ]
    fits = [np.concatenate([left, right]) for left, right in zip(rising, falling, strict=True)]
    return max(fits, key=lambda fit: float(mass @ np.log(fit)))
