"""What clusterings around rows share: dissimilarities of any kind, the nearest center of a row, and how far it is.

euclidean, sqeuclidean, manhattan, chebyshev, cosine      of rows of numbers
a kernel                                                  √(k(x,x) − 2k(x,z) + k(z,z)), the distance of its feature space
a function of two rows; "precomputed": the matrix itself  yours: symmetric, ≥ 0
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator, KeepsPrecision, OfPairs
from certifit.data.equal_rows import CONTENT_LIMIT, equal_rows
from certifit.data.gate import check_sample_weight, check_x, like_input
from certifit.models.cluster.centers import N_CLUSTERS, check_enough, warn_of_equal_rows
from certifit.parameters import Choice, Declared, Either, Fitted, Function, Named, Parameter
from certifit.parameters.common import N_JOBS
from certifit.parameters.methods import PAIRWISE
from certifit.progress import Progress
from certifit.representation.design.rows import over_rows
from certifit.representation.kernels.base import Kernel
from certifit.threads import n_threads

__all__ = ["AroundRows", "check_dissimilarities", "dissimilarities"]

NAMES: dict[str, Any] = {name: name for name in ("euclidean", "sqeuclidean", "chebyshev", "cosine")} | {
    "manhattan": "cityblock"
}
DEGREES = {"sqeuclidean": 2, "cosine": 0}  # of a dissimilarity in the unit of X; that of others is 1
RANGE = 1e100  # entries beyond which, or below whose inverse, squares are taken in another unit
ROUNDING = 1e-8  # of the largest dissimilarity: what may differ between a pair and its reverse
METRIC = Parameter(
    "euclidean",
    Either(Choice(*NAMES, "precomputed"), Named("certifit.kernels.Kernel", Kernel), Function()),
    'The dissimilarity: a name, a kernel (the distance in its feature space), or a function of two rows; "precomputed" takes the '
    "matrix of dissimilarities in place of X.",
)


def dissimilarities(metric: Any, left: Array, right: Array, threads: int = 1) -> Array:
    """Dissimilarities of all pairs of rows, shape (n, m), in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.cluster.around_rows import dissimilarities
    >>> dissimilarities("manhattan", np.array([[0.0, 0.0]]), np.array([[1.0, 2.0], [0.0, 0.0]]))
    array([[3., 0.]])
    """
    left, right = left.astype(np.float64, copy=False), right.astype(np.float64, copy=False)
    if isinstance(metric, Kernel):
        asked, rows = metric.prepare(left), metric.prepare(right)
        square = metric.own(asked)[:, None] - 2.0 * metric.block(asked, rows) + metric.own(rows)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))
    if not isinstance(metric, str):
        found = np.array([[float(metric(x, z)) for z in right] for x in left]).reshape(len(left), len(right))
        if not (found >= 0).all():
            raise ValueError(
                f"metric must give dissimilarities >= 0; got {found[~(found >= 0)][0]!r} for two rows of X."
            )
        return found
    out = np.empty((left.shape[0], right.shape[0]))
    size = max(float(max(part.max(initial=0.0), -part.min(initial=0.0))) for part in (left, right))
    exponent = 0 if not size or 1.0 / RANGE < size < RANGE else int(np.frexp(size)[1])
    if exponent:
        left, right = np.ldexp(left, -exponent), np.ldexp(right, -exponent)

    def block(rows: slice) -> None:
        out[rows] = cdist(left[rows], right, NAMES[metric])

    over_rows(block, left.shape[0], right.shape[0] * left.shape[1], threads)
    if metric == "cosine":  # a row of zeros has no direction: it is at distance 1 from all but its like
        np.copyto(out, 1.0, where=np.isnan(out))
    if exponent:
        with np.errstate(over="ignore"):
            np.ldexp(out, DEGREES.get(metric, 1) * exponent, out=out)
        if not np.isfinite(out).all():
            raise ValueError(
                "X holds numbers whose dissimilarities are beyond double precision: give large columns in another unit."
            )
    return out


def check_dissimilarities(D: Array) -> Array:
    """A square, symmetric matrix of numbers ≥ 0 with zeros on the diagonal, or an error that names the entry."""
    if D.shape[0] != D.shape[1]:
        raise ValueError(
            f"X must be a square matrix of dissimilarities with metric='precomputed'; got shape {D.shape}."
        )
    if (D < 0).any():
        i, j = np.argwhere(D < 0)[0]
        raise ValueError(f"X must hold dissimilarities >= 0; got {D[i, j]:g} in row {i}, column {j}.")
    rounding = ROUNDING * float(D.max(initial=0.0))
    differs = np.abs(D - D.T) > rounding
    if differs.any():
        i, j = np.argwhere(differs)[0]
        raise ValueError(
            f"X must be symmetric: row {i}, column {j} is {D[i, j]:g}, and row {j}, column {i} is {D[j, i]:g}. "
            "Give (X + X.T) / 2 if the order of a pair means nothing."
        )
    if (np.diagonal(D) > rounding).any():
        i = int(np.argmax(np.diagonal(D)))
        raise ValueError(f"X must have zeros on its diagonal: row {i} is at {D[i, i]:g} from itself.")
    return D


class AroundRows(
    Declared,
    ClassNamePrefixFeaturesOutMixin,
    OfPairs,
    KeepsPrecision,
    ClusterMixin,
    CertifiedEstimator,
    takes={"fit.X": PAIRWISE},
):
    """Rows belong to the nearest of k rows, under any dissimilarity."""

    n_clusters: int = N_CLUSTERS
    metric: Any = METRIC
    n_jobs: int | None = N_JOBS

    labels_: Array = Fitted("array of shape (n_samples,)", "The cluster of each row.")
    cluster_centers_: Array | None = Fitted(
        "array of shape (n_clusters, n_features) or None",
        "The rows at the centers; None where dissimilarities were given.",
    )

    def _begin(self, X: Any, sample_weight: Any) -> tuple[Progress, Array, Array, Array]:
        """A clock, all rows as given, the numbers of the distinct ones that count, ordered by content, and their weights."""
        clock = Progress()
        X = check_x(self, X, reset=True, accept_sparse=False)
        weight = check_sample_weight(sample_weight, X.shape[0])
        kept = np.flatnonzero(weight > 0)
        check_enough(kept.shape[0], self.n_clusters)
        self._metric = self.metric.bound(X[kept]) if isinstance(self.metric, Kernel) else self.metric
        if self._given:
            check_dissimilarities(X)
            return clock, X, kept, weight[kept]
        if X.size > CONTENT_LIMIT:
            return clock, X, kept, weight[kept]
        first, which = equal_rows(X[kept], np.zeros(kept.shape[0]))
        return clock, X, kept[first], np.bincount(which, weights=weight[kept])

    def _between(self, X: Array, rows: Array, columns: Array) -> Array:
        """Dissimilarities of some of the rows to others of them."""
        if self._given:
            return np.ascontiguousarray(X[np.ix_(rows, columns)], dtype=np.float64)
        return dissimilarities(self._metric, X[rows], X[columns], n_threads(self.n_jobs))

    def _finish(self, X: Array, chosen: Array) -> None:
        """Centers, and a label for every row given; fewer distinct rows than clusters are told."""
        k = self.n_clusters
        if chosen.shape[0] < k:
            warn_of_equal_rows(self, chosen.shape[0])
            chosen = np.resize(chosen, k)
        self._chosen = chosen
        self.cluster_centers_ = None if self._given else X[chosen]
        self.labels_ = self._to_centers(X).argmin(axis=1).astype(np.int32)

    def _to_centers(self, X: Array) -> Array:
        if self._given:
            return np.asarray(X[:, self._chosen], dtype=np.float64)
        assert self.cluster_centers_ is not None
        return dissimilarities(self._metric, X, self.cluster_centers_, n_threads(self.n_jobs))

    def predict(self, X: Any) -> Array:
        """The number of the nearest center."""
        return self._asked(X)[1].argmin(axis=1).astype(np.int32)

    def transform(self, X: Any) -> Array:
        """The dissimilarity of each row from each center."""
        rows, found = self._asked(X)
        return like_input(rows, found)

    def _asked(self, X: Any) -> tuple[Array, Array]:
        check_is_fitted(self, "labels_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        return rows, self._to_centers(rows)

    @property
    def _n_features_out(self) -> int:
        return int(self._chosen.shape[0])
