"""Is this structure real? How far clusterings of two samples of the same rows agree.

Two samples of the rows are drawn without repetition; each is clustered without knowledge of the other; the rows that both
hold are labeled twice, and the adjusted Rand index says how far the labels agree (Ben-Hur, Elisseeff, Guyon 2002). Agreement
alone proves nothing: a long cloud is cut in the middle by everyone. So the same is asked of *references*, tables like X without
clusters (clouds.py). Some of them agree better than others, and X is one table: structure is what agrees better than a single
reference may, not only better than references do on average.

A long cloud may agree as well as two groups do; what then tells groups is that they are apart. So the share of the variance that
lies between the clusters is compared too: samples that agree well on clusters farther apart than those of a single reference may
be are structure as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.metrics.clusters import adjusted_rand
from certifit.evaluation.metrics.inputs import check_level
from certifit.evaluation.risk.clouds import Cloud

__all__ = ["Stability", "stability"]

AGREE = 0.75  # from here on, two samples speak of the same clusters
SAMPLES = 6  # of a reference: its agreement, over all their pairs, is then about as exact as that of the rows


@dataclass(frozen=True)
class Stability:
    """How far a clusterer agrees with itself.

    Parameters
    ----------
    agreement : float
        Mean adjusted Rand index between the clusterings of two samples.
    low, high : float
        Interval of its expectation over the samples of these rows.
    reference, reference_low, reference_high : float
        The mean for tables without clusters, and the interval in which the agreement of a single such table lies; NaN where it
        was not asked for.
    values : tuple of float
        One index for each pair of samples.
    level : float
        Of the intervals.
    separation, separation_high : float
        Share of the variance between the clusters of all rows, and the upper end of the interval in which it lies for a single
        table without clusters; NaN where no references were asked for.
    """

    agreement: float
    low: float
    high: float
    reference: float
    reference_low: float
    reference_high: float
    values: tuple[float, ...]
    level: float
    separation: float = np.nan
    separation_high: float = np.nan

    @property
    def survives(self) -> bool:
        """Whether the rows agree with themselves better than a table without clusters may, beyond both intervals; or well, on
        clusters that are farther apart than those of a table without clusters may be.
        """
        return bool(self.low > self.reference_high or (self.low >= AGREE and self.separation > self.separation_high))

    def __str__(self) -> str:
        found = f"agreement {self.agreement:.2f}, {self.level:.0%} interval {self.low:.2f} to {self.high:.2f}"
        if self.reference != self.reference:
            return f"Stability: {found}"
        words = "survives resampling" if self.survives else "no structure that survives resampling"
        return (
            f"Stability: {found}; tables without clusters reach {self.reference:.2f} on average, a single one up to "
            f"{self.reference_high:.2f}; {self.separation:.0%} of the variance lies between clusters, without clusters up to "
            f"{self.separation_high:.0%}: {words}"
        )


def stability(
    clusterer: Any,
    X: Any,
    *,
    n_resamples: int = 20,
    fraction: float = 0.7,
    reference: bool | Sequence[Any] = True,
    level: float = 0.95,
    random_state: Any = None,
) -> Stability:
    """Stability of a clustering under resampling, with an interval, beside that of rows without clusters.

    Parameters
    ----------
    clusterer : estimator with `fit_predict`
        Is cloned, never fitted itself.
    X : array of shape (n, d)
        The rows.
    n_resamples : int, default=20
        Pairs of samples.
    fraction : float, default=0.7
        Share of the rows in each sample.
    reference : bool or tables, default=True
        Whether to ask the same of `n_resamples` tables like X without clusters, whose columns have one mode and rise and fall
        together as those of X do; or at least two such tables, where they are known better.
    level : float, default=0.95
        Of the intervals. Student's for the mean over independent pairs of samples, which speaks of these rows, not of others;
        that of a single further table for the references, on the scale of the arcsine, where indices near 1 spread like others.
    random_state : int, RandomState or None
        Seed of the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KMeans, stability
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 6.0])
    >>> print(stability(KMeans(2, random_state=0), X, random_state=0).survives)
    True
    >>> print(stability(KMeans(2, random_state=0), rng.normal(size=(120, 2)), random_state=0).survives)
    False
    """
    check_real("n_resamples", n_resamples, low=2, integer=True)
    check_real("fraction", fraction, low=0.5, high=1.0, open_low=True, open_high=True)
    check_level(level)
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[0] < 4:
        raise ValueError(f"X must have at least 4 rows, and columns; got shape {X.shape}.")
    if not np.isfinite(X).all():
        raise ValueError("X contains NaN or infinity: drop or repair these rows.")
    rng = check_random_state(random_state)
    values = np.array([_agreement(clusterer, X, fraction, 2, rng) for _ in range(n_resamples)])
    found = _interval(values, level)
    if reference is False:
        return Stability(*found, np.nan, np.nan, np.nan, tuple(values.tolist()), level)
    tables = _drawn(X, n_resamples, rng) if reference is True else _given(reference)
    beside = _of_a_single_one(
        np.array([_agreement(clusterer, table, fraction, SAMPLES, rng) for table in tables]), level
    )
    high = _of_a_single_one(np.array([_separation(clusterer, table) for table in tables]), level)[2]
    return Stability(*found, *beside, tuple(values.tolist()), level, _separation(clusterer, X), high)


def _drawn(X: Array, count: int, rng: Any) -> list[Array]:
    """So many tables like X, without clusters."""
    cloud = Cloud(X)
    return [cloud.draw(rng) for _ in range(count)]


def _given(reference: Any) -> list[Array]:
    """References of the user's own."""
    tables = [np.asarray(table, dtype=np.float64) for table in reference]
    if len(tables) < 2 or any(table.ndim != 2 or table.shape[0] < 4 for table in tables):
        shapes = [table.shape for table in tables]
        raise ValueError(f"reference must be True, False, or two tables at least, of four rows at least; got {shapes}.")
    return tables


def _agreement(clusterer: Any, X: Array, fraction: float, samples: int, rng: Any) -> float:
    """Mean index over all pairs of so many samples, on the rows of both."""
    n = X.shape[0]
    size = min(n, max(2, int(np.ceil(fraction * n))))
    labels, drawn = np.zeros((samples, n), dtype=np.int64), np.zeros((samples, n), dtype=bool)
    for part, taken in zip(labels, drawn, strict=True):
        rows = np.sort(rng.choice(n, size, replace=False))
        part[rows], taken[rows] = clone(clusterer).fit_predict(X[rows]), True
    pairs = [(i, j, drawn[i] & drawn[j]) for i, j in combinations(range(samples), 2)]
    return float(np.mean([adjusted_rand(labels[i, both], labels[j, both]) for i, j, both in pairs]))


def _separation(clusterer: Any, X: Array) -> float:
    """Share of the variance that lies between the clusters."""
    labels = np.unique(clone(clusterer).fit_predict(X), return_inverse=True)[1]
    counts = np.bincount(labels)
    means = np.column_stack([np.bincount(labels, column) for column in X.T]) / counts[:, None]
    whole = float(((X - X.mean(axis=0)) ** 2).sum())
    return 1.0 - float(((X - means[labels]) ** 2).sum()) / whole if whole > 0.0 else 0.0


def _interval(values: Array, level: float) -> tuple[float, float, float]:
    """Mean, and the ends of Student's interval within what an index can be."""
    mean = float(values.mean())
    half = float(student.ppf(0.5 + level / 2, values.size - 1)) * float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, max(-1.0, mean - half), min(1.0, mean + half)


def _of_a_single_one(values: Array, level: float) -> tuple[float, float, float]:
    """Mean of the tables, and the ends of Student's interval for one more of them."""
    angles = np.arcsin(np.sqrt(np.clip(values, 0.0, 1.0)))
    spread = float(angles.std(ddof=1)) * np.sqrt(1.0 + 1.0 / values.size)
    half = float(student.ppf(0.5 + level / 2, values.size - 1)) * spread
    low, high = np.sin(np.clip([angles.mean() - half, angles.mean() + half], 0.0, 0.5 * np.pi)) ** 2
    return float(values.mean()), float(low), float(high)
