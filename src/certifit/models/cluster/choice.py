"""How many clusters: three answers to a question that data alone do not settle.

kink          of the cost as k grows: where further clusters stop paying (evaluation/metrics/kink.py)
silhouette    rows are nearer to their own cluster than to the next by most (Rousseeuw 1987)
gap           ln cost falls below that of rows spread evenly over the same box by most, within a standard error: the least k with
              gap(k) ≥ gap(k+1) − s(k+1) (Tibshirani, Walther and Hastie 2001); the only one that can answer 1
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from certifit._types import Array
from certifit.axes import axes_of
from certifit.data.gate import check_choice, check_real, check_sample_weight, check_x
from certifit.evaluation.metrics.clusters import silhouette
from certifit.evaluation.metrics.kink import kink
from certifit.models.cluster.kmeans import KMeans
from certifit.names import record

__all__ = ["ClusterCount", "choose_k"]

METHODS = ("silhouette", "gap", "kink")
SAMPLE = 2000  # rows whose silhouettes are computed: all pairs of them are
TINY = 1e-300


@record("ClusterCount")
class ClusterCount:
    """What each number of clusters costs, and which number each method takes."""

    ks: Array
    """The numbers tried, from 1 on."""
    costs: Array
    """Cost of k-means with each."""
    silhouettes: Array
    """Mean silhouette with each; NaN for one cluster."""
    gaps: Array
    """Gap statistic of each."""
    gap_errors: Array
    """Standard error of each gap."""
    by: dict[str, int]
    """The number that each method takes."""
    method: str
    """The method asked for."""

    @property
    def k(self) -> int:
        """The number of clusters by the method asked for."""
        return self.by[self.method]

    def __str__(self) -> str:
        others = ", ".join(f"{name} {self.by[name]}" for name in METHODS if name != self.method)
        return f"{self.k} cluster{'s' if self.k > 1 else ''} by {self.method} ({others})"

    def plot(self, axes: Any = None) -> Any:
        """Cost, silhouette and gap over the number of clusters, with each method's choice marked.

        Parameters
        ----------
        axes : three matplotlib Axes, optional
            Where to draw; new ones by default.

        Returns
        -------
        array of three matplotlib Axes
        """
        if axes is None:
            figure = axes_of().figure
            figure.clear()
            axes = figure.subplots(1, 3)
        curves = {
            "kink": (self.costs, "cost"),
            "silhouette": (self.silhouettes, "silhouette"),
            "gap": (self.gaps, "gap"),
        }
        for ax, (name, (values, label)) in zip(axes, curves.items(), strict=True):
            errors = self.gap_errors if name == "gap" else None
            ax.errorbar(self.ks, values, yerr=errors, marker="o", color="#1f4e9c")
            ax.axvline(self.by[name], color="#b3261e", linestyle="--")
            ax.xaxis.get_major_locator().set_params(integer=True)
            ax.set(xlabel="clusters", title=f"{label}: {self.by[name]}")
        return axes


def choose_k(
    X: Any,
    *,
    method: str = "silhouette",
    max_k: int = 10,
    n_references: int = 10,
    n_init: int = 3,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> ClusterCount:
    """How many clusters of k-means the rows have, by silhouette, gap statistic and kink.

    Parameters
    ----------
    X : array or data frame of shape (n_samples, n_features)
        Rows.
    method : {"silhouette", "gap", "kink"}
        Whose answer is `k`; the others stand beside it.
    max_k : int ≥ 2
        Most clusters that are tried; no more than rows.
    n_references : int ≥ 2
        Tables of evenly spread rows that the gap is measured against.
    n_init : int ≥ 1
        Starts of each fit.
    sample_weight : array of shape (n_samples,), optional
        A weight of 2 counts a row twice, a weight of 0 drops it.
    random_state : int, RandomState or None
        Seed of starts, references, and of the rows whose silhouettes are computed if there are many.
    n_jobs : int or None
        Threads.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import choose_k
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(50, 2)) + center for center in ([0, 0], [8, 0], [0, 8])])
    >>> found = choose_k(X, max_k=6, random_state=0)
    >>> print(found)
    3 clusters by silhouette (gap 3, kink 3)
    """
    check_choice("method", method, METHODS)
    for name, value, low in (("max_k", max_k, 2), ("n_references", n_references, 2), ("n_init", n_init, 1)):
        check_real(name, value, low=low, integer=True)
    X = check_x(KMeans(), X, reset=True, accept_sparse=False, min_samples=3).astype(np.float64)
    weight = check_sample_weight(sample_weight, X.shape[0])
    X, weight = X[weight > 0], weight[weight > 0]
    rng = check_random_state(random_state)
    most = min(max_k, np.unique(X, axis=0).shape[0] - 1)
    if most < 2:
        raise ValueError("X must have at least 3 distinct rows: there is no number of clusters to choose.")
    ks = np.arange(1, most + 1)
    some = np.arange(X.shape[0])
    if some.shape[0] > SAMPLE:
        some = rng.choice(some, size=SAMPLE, replace=False, p=weight / weight.sum())
    shared: dict[str, Any] = {"n_init": n_init, "n_jobs": n_jobs}
    costs, silhouettes = np.empty(most), np.full(most, np.nan)
    for i, k in enumerate(ks):
        model = KMeans(int(k), random_state=rng.randint(1 << 31), **shared).fit(X, sample_weight=weight)
        costs[i] = model.inertia_
        if k > 1 and np.unique(model.labels_[some]).shape[0] > 1:
            plain = weight[some] if some.shape[0] == X.shape[0] else None  # a sample was drawn by weight already
            silhouettes[i] = silhouette(X[some], model.labels_[some], sample_weight=plain)
    expected, errors = _references(X, weight, ks, n_references, rng, shared)
    gaps = expected - np.log(np.maximum(costs, TINY))
    enough = np.flatnonzero(gaps[:-1] >= gaps[1:] - errors[1:])
    by = {
        "silhouette": int(ks[np.nanargmax(silhouettes)]) if np.isfinite(silhouettes).any() else 1,
        "gap": int(ks[enough[0]]) if enough.size else int(ks[np.argmax(gaps)]),
        "kink": int(ks[kink(costs)]),
    }
    return ClusterCount(ks, costs, silhouettes, gaps, errors, by, method)


def _references(
    X: Array, weight: Array, ks: Array, count: int, rng: np.random.RandomState, shared: dict[str, Any]
) -> tuple[Array, Array]:
    """Mean of ln cost over tables spread evenly over the box of X along its principal axes, and its standard error."""
    mean = np.average(X, axis=0, weights=weight)
    axes = np.linalg.svd((X - mean) * np.sqrt(weight / weight.max())[:, None], full_matrices=False)[2]
    along = (X - mean) @ axes.T
    low, high = along.min(axis=0), along.max(axis=0)
    logs = np.empty((count, ks.shape[0]))
    for b in range(count):
        even = rng.uniform(low, high, size=(X.shape[0], low.shape[0]))
        for i, k in enumerate(ks):
            model = KMeans(int(k), random_state=rng.randint(1 << 31), **shared).fit(even, sample_weight=weight)
            logs[b, i] = np.log(max(model.inertia_, TINY))
    return logs.mean(axis=0), logs.std(axis=0) * np.sqrt(1.0 + 1.0 / count)
