"""How uncertain a mean, or a function of means, is: resamples, influences and the ends of intervals.

A weight counts repetitions: a resample draws Σ weight rows, each with a chance in proportion to its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from certifit._types import Array

__all__ = [
    "bca_ends",
    "critical",
    "influence_of_means",
    "merge_equal",
    "resampled_counts",
    "resampled_means",
    "studentized_ends",
]

CHUNK = 2_000_000  # drawn rows held in memory at once
MOST_DRAWS = 2**62  # counts are whole numbers of 64 bits; so many draws do not vary any more
FEW_DISTINCT = 8  # with so many draws for each row, counts are drawn faster than rows


def resampled_counts(weight: Array, n_resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Blocks of shape (b, n): how often each row is drawn in b of the resamples."""
    n, draws = weight.shape[0], min(max(1, round(float(weight.sum()))), MOST_DRAWS)
    equal = bool((weight == weight[0]).all())
    total = np.cumsum(weight)
    step = max(1, CHUNK // max(draws, n))
    for start in range(0, n_resamples, step):
        b = min(step, n_resamples - start)
        if FEW_DISTINCT * n < draws:
            yield rng.multinomial(draws, weight / weight.sum(), size=b).astype(np.float64)
            continue
        if equal:
            rows = rng.integers(0, n, size=(b, draws))
        else:
            # Rounding may put a draw at the very end; the last row with weight is where it belongs.
            rows = np.minimum(np.searchsorted(total, rng.random((b, draws)) * total[-1], side="right"), n - 1)
        rows += np.arange(b)[:, None] * n
        yield np.bincount(rows.ravel(), minlength=b * n).reshape(b, n).astype(np.float64)


def resampled_means(statistics: Array, weight: Array, n_resamples: int, rng: np.random.Generator) -> Array:
    """Means of the columns of `statistics`, shape (n, s), in each resample: shape (n_resamples, s)."""
    blocks = [
        counts @ statistics / counts.sum(axis=1)[:, None] for counts in resampled_counts(weight, n_resamples, rng)
    ]
    return np.concatenate(blocks)


def merge_equal(statistics: Array, weight: Array) -> tuple[Array, Array]:
    """Distinct rows of `statistics`, sorted, with the sum of their weights.

    What is drawn from them depends neither on the order of the rows nor on how repetitions are written down.
    """
    distinct, which = np.unique(statistics, axis=0, return_inverse=True)
    return distinct, np.bincount(which.ravel(), weights=weight)


def influence_of_means(statistics: Array, weight: Array, combine: Callable[[Array], Array]) -> Array:
    """How much each row moves combine(means): the gradient, by central differences, along its deviation from the means."""
    means = weight @ statistics / weight.sum()
    scale = np.sqrt(weight @ (statistics - means) ** 2 / weight.sum())
    step = 1e-5 * scale  # none along a constant: a mean at the edge of what `combine` takes stays there
    shifts = np.diag(step)
    gradient = (combine(means + shifts) - combine(means - shifts)) / np.where(scale > 0, 2.0 * step, 1.0)
    return np.asarray((statistics - means) @ np.where(scale > 0, gradient, 0.0))


def critical(level: float, df: float) -> float:
    """Student's quantile that leaves (1 − level)/2 on either side; infinite without a degree of freedom."""
    return float(student.isf(0.5 * (1.0 - level), df)) if df > 0 else np.inf


def bca_ends(resampled: Array, value: float, level: float, acceleration: float, total: float) -> tuple[float, float]:
    """Ends of the bias-corrected and accelerated bootstrap interval (Efron 1987).

    The normal quantile is replaced by Student's, widened by √(n/(n−1)): a resample of few rows varies less than a sample
    does (Hesterberg 2015).
    """
    if total <= 1.0:
        return -np.inf, np.inf
    spread = np.ptp(resampled)
    if spread == 0.0:
        return value, value
    # Ties with the value itself count half, or a discrete distribution would look biased.
    share = float(np.mean(resampled < value) + 0.5 * np.mean(resampled == value))
    margin = 1.0 / (resampled.shape[0] + 1)
    bias = float(norm.ppf(np.clip(share, margin, 1.0 - margin)))
    z = critical(level, total - 1.0) * np.sqrt(total / (total - 1.0))
    ends = []
    for side in (-z, z):
        shifted = bias + side
        position = bias + shifted / max(1.0 - acceleration * shifted, 0.1)
        ends.append(float(np.quantile(resampled, float(norm.cdf(position)))))
    return min(ends[0], value), max(ends[1], value)


def studentized_ends(
    values: Array, weight: Array, n_resamples: int, level: float, rng: Any
) -> tuple[float, float] | None:
    """Ends of the interval of a mean of numbers ≥ 0: bootstrap-t (Hall 1988) of its logarithm.

    Every resample is measured in its own standard error, so that rare large values, which a resample has or has not, widen
    the upper end: for squared errors with a heavy tail (Student's t, 3 degrees of freedom, 100 rows, level 0.995) it covers in
    93 % where the BCa interval covers in 83 %. None where more resamples than the tail of the interval has do not vary: one large
    loss among equal ones is missing from every third, and those that have it say nothing of how large the mean may be.
    """
    total = float(weight.sum())
    value = float(weight @ values / total)
    if total <= 1.0 or value <= 0.0:
        return None
    v = values / value  # means and squares at magnitude one
    means = resampled_means(np.column_stack((v, v**2)), weight, n_resamples, rng)
    mean, spread = means[:, 0], np.maximum(means[:, 1] - means[:, 0] ** 2, 0.0)
    usable = (mean > 0.0) & (spread > 1e-12 * mean**2)
    tail = 0.5 * (1.0 - level)
    if usable.mean() < 1.0 - tail:
        return None
    t = np.log(mean[usable]) / np.sqrt(spread[usable] / (total - 1.0)) * mean[usable]
    error = float(np.sqrt(max(float(weight @ v**2) / total - 1.0, 0.0) / (total - 1.0)))
    low, high = (-float(np.quantile(t, q)) * error for q in (1.0 - tail, tail))
    return value * float(np.exp(min(low, 0.0))), value * float(np.exp(min(max(high, 0.0), 700.0)))


def acceleration_of(influence: Array, weight: Array) -> float:
    """Σu³ / (6·(Σu²)^1.5): how fast the spread changes with the value."""
    square = float(weight @ influence**2)
    return float(weight @ influence**3) / (6.0 * square**1.5) if square > 0.0 else 0.0


def standard_error(influence: Array, weight: Array, groups: Array | None = None) -> tuple[float, float]:
    """Standard error of a mean whose deviations are `influence`, and its degrees of freedom.

    With `groups` (numbers 0 … G−1) whole groups are the units that vary.
    """
    total = float(weight.sum())
    if groups is None:
        units, squares = total, float(weight @ influence**2)
    else:
        sums = np.bincount(groups, weights=weight * influence)
        units, squares = float(sums.shape[0]), float(sums @ sums)
    if units <= 1.0:
        return np.inf, 0.0
    return float(np.sqrt(squares * units / (units - 1.0)) / total), units - 1.0


def skewness(influence: Array, weight: Array, groups: Array | None = None) -> float:
    """Skewness of the same mean: third moment over the cube of the standard error; 0 where nothing varies."""
    if groups is None:
        squares, cubes = float(weight @ influence**2), float(weight @ influence**3)
    else:
        sums = np.bincount(groups, weights=weight * influence)
        squares, cubes = float(sums @ sums), float(sums @ sums**2)
    return cubes / squares**1.5 if squares > 0.0 else 0.0


def generator(random_state: Any) -> np.random.Generator:
    """A generator from a seed, a generator, or an old-style RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(f"random_state must be None, an integer >= 0 or a generator; got {random_state!r}.") from error
