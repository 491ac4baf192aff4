"""Is this structure real? How far clusterings of two samples of the same rows agree.

Two samples of the rows are drawn without repetition; each is clustered without knowledge of the other; the rows that both
hold are labeled twice, and the adjusted Rand index says how far the labels agree (Ben-Hur, Elisseeff, Guyon 2002). Agreement
alone proves nothing: a long cloud is cut in the middle by everyone. So the same is asked of a *reference*, rows drawn from one
normal distribution with the mean and covariance of X: structure is what agrees better than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.metrics.clusters import adjusted_rand
from certifit.evaluation.metrics.inputs import check_level

__all__ = ["Stability", "stability"]


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
        The same for rows of one normal distribution, which have no clusters; NaN where it was not asked for.
    values : tuple of float
        One index for each pair of samples.
    level : float
        Of the intervals.
    """

    agreement: float
    low: float
    high: float
    reference: float
    reference_low: float
    reference_high: float
    values: tuple[float, ...]
    level: float

    @property
    def survives(self) -> bool:
        """Whether the rows agree with themselves better than rows without clusters do, beyond both intervals."""
        return bool(self.low > self.reference_high)

    def __str__(self) -> str:
        found = f"agreement {self.agreement:.2f}, {self.level:.0%} interval {self.low:.2f} to {self.high:.2f}"
        if self.reference != self.reference:
            return f"Stability: {found}"
        words = "survives resampling" if self.survives else "no structure that survives resampling"
        return f"Stability: {found}; rows without clusters reach {self.reference:.2f}: {words}"


def stability(
    clusterer: Any,
    X: Any,
    *,
    n_resamples: int = 20,
    fraction: float = 0.7,
    reference: bool = True,
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
    reference : bool, default=True
        Whether to ask the same of rows of one normal distribution with the mean and the covariance of X.
    level : float, default=0.95
        Of the intervals: Student's, over independent pairs of samples. They speak of these rows, not of others.
    random_state : int, RandomState or None
        Seed of the samples.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KMeans, stability
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + [6.0, 0.0]])
    >>> print(stability(KMeans(2, random_state=0), X, random_state=0).survives)
    True
    >>> print(stability(KMeans(3, random_state=0), rng.normal(size=(120, 2)), random_state=0).survives)
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
    values = _agreements(clusterer, [X] * n_resamples, fraction, rng)
    found = _interval(values, level)
    beside = (np.nan,) * 3
    if reference:
        beside = _interval(_agreements(clusterer, [_normal_like(X, rng) for _ in values], fraction, rng), level)
    return Stability(*found, *beside, tuple(values.tolist()), level)


def _agreements(clusterer: Any, tables: list[Array], fraction: float, rng: Any) -> Array:
    """For each table: two samples, two clusterings, their agreement on the rows of both."""
    found = []
    for X in tables:
        n = X.shape[0]
        size = min(n, max(2, int(np.ceil(fraction * n))))
        labels, drawn = np.zeros((2, n), dtype=np.int64), np.zeros((2, n), dtype=bool)
        for part, taken in zip(labels, drawn, strict=True):
            rows = np.sort(rng.choice(n, size, replace=False))
            part[rows], taken[rows] = clone(clusterer).fit_predict(X[rows]), True
        both = drawn.all(axis=0)
        found.append(adjusted_rand(labels[0, both], labels[1, both]))
    return np.array(found)


def _normal_like(X: Array, rng: Any) -> Array:
    """As many rows of one normal distribution with the mean and the covariance of X."""
    centered = X - X.mean(axis=0)
    _, spread, axes = np.linalg.svd(centered, full_matrices=False)
    noise = rng.standard_normal((X.shape[0], spread.size))
    return np.asarray(X.mean(axis=0) + (noise * (spread / np.sqrt(max(1, X.shape[0] - 1)))) @ axes)


def _interval(values: Array, level: float) -> tuple[float, float, float]:
    """Mean, and the ends of Student's interval within what an index can be."""
    mean = float(values.mean())
    half = float(student.ppf(0.5 + level / 2, values.size - 1)) * float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, max(-1.0, mean - half), min(1.0, mean + half)
