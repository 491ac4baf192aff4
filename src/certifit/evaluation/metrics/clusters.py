"""How good a clustering is: by itself (how compact, how far apart), and beside another one (do they agree).

A weight counts repetitions: two equal rows are two rows of distance zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from certifit._types import Array
from certifit.data.gate import check_choice, check_sample_weight
from certifit.evaluation.metrics.inputs import check_labels
from certifit.parameters.docstrings import takes_as

__all__ = [
    "adjusted_rand",
    "calinski_harabasz",
    "davies_bouldin",
    "normalized_mutual_information",
    "silhouette",
    "silhouettes",
]

BLOCK = 1_000_000  # distances held at once


class Clustered(NamedTuple):
    """Rows with their clusters, in double precision; rows of weight zero are left out."""

    X: Array
    codes: Array
    weight: Array
    kept: Array

    @property
    def mass(self) -> Array:
        """The weight of each cluster."""
        return np.bincount(self.codes, weights=self.weight)

    def means(self) -> Array:
        """The mean of each cluster."""
        own = np.zeros((self.mass.size, self.X.shape[1]))
        np.add.at(own, self.codes, self.weight[:, None] * self.X)
        return np.asarray(own / self.mass[:, None])


def clustered(X: Any, labels: Any, sample_weight: Any, metric: str = "euclidean") -> Clustered:
    """The rows as the metrics take them, or an error that names what is wrong with them."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns; got shape {X.shape}.")
    if not np.isfinite(X).all():
        raise ValueError("X contains NaN or infinity: drop or repair these rows.")
    labels = check_labels("labels", labels, X.shape[0])
    weight = check_sample_weight(sample_weight, X.shape[0])
    kept = weight > 0
    if metric == "precomputed":
        X = check_distances(X)[np.ix_(kept, kept)]
    else:
        X = X[kept]
        X = np.ldexp(X, -int(np.frexp(np.abs(X).max(initial=0.0))[1]))  # none of the metrics here has a unit
    codes = np.unique(labels[kept], return_inverse=True)[1].ravel()
    k = int(codes.max()) + 1
    if k < 2 or k >= weight.sum():
        raise ValueError(
            f"labels must name at least 2 clusters and fewer than there are rows ({weight.sum():g}); got {k}."
        )
    return Clustered(X, codes, weight[kept], kept)


def check_distances(D: Array) -> Array:
    """A matrix of dissimilarities: square, symmetric, not negative, zero on its diagonal."""
    if D.ndim != 2 or D.shape[0] != D.shape[1]:
        raise ValueError(f"a dissimilarity must be a square matrix; got shape {D.shape}.")
    if not np.isfinite(D).all():
        raise ValueError("a dissimilarity must be finite; it contains NaN or infinity.")
    if (D < 0).any():
        i, j = (int(at[0]) for at in np.nonzero(D < 0))
        raise ValueError(f"a dissimilarity must not be negative; got {D[i, j]:g} at [{i}, {j}].")
    slack = 1e-8 * float(D.max(initial=0.0))
    if (np.abs(D - D.T) > slack).any():
        i, j = divmod(int(np.abs(D - D.T).argmax()), D.shape[1])
        raise ValueError(
            f"a dissimilarity must be symmetric; [{i}, {j}] is {D[i, j]:g} and [{j}, {i}] is {D[j, i]:g}. "
            "Take (D + D.T) / 2 if either direction will do."
        )
    if (np.abs(np.diagonal(D)) > slack).any():
        i = int(np.abs(np.diagonal(D)).argmax())
        raise ValueError(f"a row has no dissimilarity to itself; got {D[i, i]:g} at [{i}, {i}].")
    return D


def silhouettes(X: Any, labels: Any, *, metric: str = "euclidean", sample_weight: Any = None) -> Array:
    """How much nearer each row is to its own cluster than to the next: (b − a) / max(a, b), between −1 and 1.

    a is the mean distance to the other rows of its cluster, b the least mean distance to the rows of another one (Rousseeuw
    1987). A row alone in its cluster has 0.

    Parameters
    ----------
    X : array of shape (n, d)
        The rows, or with ``metric="precomputed"`` their dissimilarities, of shape (n, n).
    labels : array of shape (n,)
        The cluster of each row.
    metric : {"euclidean", "precomputed"}
        What X holds.
    sample_weight : array of shape (n,), optional
        How often each row counts.

    Returns
    -------
    array of shape (n,)
        0 for rows of weight zero.

    Examples
    --------
    >>> from certifit.metrics import silhouettes
    >>> silhouettes([[0.0], [2.0], [8.0], [10.0]], [0, 0, 1, 1])
    array([0.77777778, 0.71428571, 0.71428571, 0.77777778])
    """
    check_choice("metric", metric, ("euclidean", "precomputed"))
    rows = clustered(X, labels, sample_weight, metric)
    n, mass = rows.X.shape[0], rows.mass
    indicator = np.zeros((n, mass.size))
    indicator[np.arange(n), rows.codes] = rows.weight
    values = np.zeros(n)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        block = slice(start, min(start + step, n))
        own = rows.codes[block]
        distances = rows.X[block] if metric == "precomputed" else cdist(rows.X[block], rows.X)
        sums = distances @ indicator
        at = np.arange(own.size)
        others = mass[own] - 1.0
        alone = others <= 0
        inside = sums[at, own] / np.where(alone, 1.0, others)
        means = sums / mass
        means[at, own] = np.inf
        outside = means.min(axis=1)
        larger = np.maximum(inside, outside)
        values[block] = np.where(alone | (larger == 0), 0.0, (outside - inside) / np.where(larger == 0, 1.0, larger))
    full = np.zeros(rows.kept.size)
    full[rows.kept] = values
    return full


@takes_as(silhouettes)
def silhouette(X: Any, labels: Any, *, metric: str = "euclidean", sample_weight: Any = None) -> float:
    """The mean of the `silhouettes`: near 1 where clusters are compact and far apart, 0 where they touch.

    Examples
    --------
    >>> from certifit.metrics import silhouette
    >>> round(silhouette([[0.0], [2.0], [8.0], [10.0]], [0, 0, 1, 1]), 4)
    0.746
    """
    values = silhouettes(X, labels, metric=metric, sample_weight=sample_weight)
    weight = check_sample_weight(sample_weight, values.size)
    return float(weight @ values / weight.sum())


@takes_as(silhouettes)
def calinski_harabasz(X: Any, labels: Any, *, sample_weight: Any = None) -> float:
    """Scatter between clusters over scatter inside them, each per degree of freedom; larger is better.

    Examples
    --------
    >>> from certifit.metrics import calinski_harabasz
    >>> calinski_harabasz([[0.0], [2.0], [8.0], [10.0]], [0, 0, 1, 1])
    32.0
    """
    rows = clustered(X, labels, sample_weight)
    mass, means = rows.mass, rows.means()
    total = float(mass.sum())
    between = float(mass @ ((means - mass @ means / total) ** 2).sum(axis=1))
    inside = float(rows.weight @ ((rows.X - means[rows.codes]) ** 2).sum(axis=1))
    return between / inside * (total - mass.size) / (mass.size - 1) if inside > 0 else 1.0


@takes_as(silhouettes)
def davies_bouldin(X: Any, labels: Any, *, sample_weight: Any = None) -> float:
    """Mean over clusters of the worst (s_i + s_j) / d_ij: s the spread about a center, d between centers; smaller is better.

    Examples
    --------
    >>> from certifit.metrics import davies_bouldin
    >>> rows = [[0.0], [2.0], [8.0], [10.0]]
    >>> davies_bouldin(rows, [0, 0, 1, 1]), davies_bouldin(rows, [0, 1, 0, 1])
    (0.25, 4.0)
    """
    rows = clustered(X, labels, sample_weight)
    means = rows.means()
    away = np.sqrt(((rows.X - means[rows.codes]) ** 2).sum(axis=1))
    spread = np.bincount(rows.codes, weights=rows.weight * away) / rows.mass
    apart = cdist(means, means)
    np.fill_diagonal(apart, np.inf)
    sums = spread[:, None] + spread
    if not sums.any():  # every cluster is a single point
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(sums > 0, sums / apart, 0.0)
    return float(ratio.max(axis=1).mean())


def _contingency(labels: Any, other: Any, sample_weight: Any) -> Array:
    """The weight of the rows in each pair of clusters."""
    first = check_labels("labels", labels)
    second = check_labels("other", other, first.shape[0])
    weight = check_sample_weight(sample_weight, first.shape[0])
    kept = weight > 0
    i, j = (np.unique(part[kept], return_inverse=True)[1].ravel() for part in (first, second))
    table = np.zeros((int(i.max()) + 1, int(j.max()) + 1))
    np.add.at(table, (i, j), weight[kept])
    return table


def adjusted_rand(labels: Any, other: Any, *, sample_weight: Any = None) -> float:
    """Agreement of two clusterings on pairs of rows: 1 where they are the same, 0 on average where labels are dealt at random.

    Parameters
    ----------
    labels, other : arrays of shape (n,)
        Two clusterings of the same rows; the names of the clusters do not matter.
    sample_weight : array of shape (n,), optional
        How often each row counts.

    Examples
    --------
    >>> from certifit.metrics import adjusted_rand
    >>> adjusted_rand([0, 0, 1, 1], ["b", "b", "a", "a"]), round(adjusted_rand([0, 0, 1, 1], [0, 1, 0, 1]), 6)
    (1.0, -0.5)
    """
    table = _contingency(labels, other, sample_weight)

    def pairs(counts: Array) -> float:
        return float((counts * (counts - 1.0)).sum() / 2.0)

    both, first, second = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    total = pairs(table.sum())
    if first == second == both:  # the same partition, also where it is one cluster, or each row by itself
        return 1.0
    chance = first * second / total
    return (both - chance) / ((first + second) / 2.0 - chance)


@takes_as(adjusted_rand)
def normalized_mutual_information(labels: Any, other: Any, *, sample_weight: Any = None) -> float:
    """Information that two clusterings share, over the mean of their entropies: 1 where they are the same, 0 where independent.

    Examples
    --------
    >>> from certifit.metrics import normalized_mutual_information
    >>> normalized_mutual_information([0, 0, 1, 1], [1, 1, 0, 0]), normalized_mutual_information([0, 0, 1, 1], [0, 1, 0, 1])
    (1.0, 0.0)
    """
    share = _contingency(labels, other, sample_weight)
    share /= share.sum()
    first, second = share.sum(axis=1), share.sum(axis=0)
    entropies = -float(xlogy(first, first).sum()), -float(xlogy(second, second).sum())
    if max(entropies) == 0.0:
        return 1.0
    joint = -float(xlogy(share, share).sum())
    shared = max(0.0, sum(entropies) - joint)
    return min(1.0, shared / (sum(entropies) / 2.0))
