"""What clusterings around centers share: nearest centers, distances to them, and the words of their certificate."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import CertifiedEstimator, ConvergenceWarning, KeepsPrecision, TakesSparse
from certifit.certificate import Certificate
from certifit.data.equal_rows import CONTENT_LIMIT, equal_rows
from certifit.data.gate import check_sample_weight, check_x, like_input
from certifit.models.cluster.rows import rows_of, times, unit_exponent
from certifit.parameters import Declared, Fitted, Integer, Parameter
from certifit.parameters.common import N_JOBS, RANDOM_STATE, VERBOSE
from certifit.representation.kernels.basic import MeasuredRows, squared_distances, squared_lengths

__all__ = [
    "N_CLUSTERS",
    "AroundMeans",
    "Drawn",
    "check_enough",
    "distinct_rows",
    "lower_bound_certificate",
    "warn_of_equal_rows",
    "weighted_rows",
]

VANISHING = float(np.finfo(np.float64).tiny)  # costs below it have lost digits, or all of them
N_CLUSTERS = Parameter(8, Integer(1), "The number k of clusters.")


def weighted_rows(
    estimator: Any, X: Any, sample_weight: Any, *, accept_sparse: Any = ("csr",)
) -> tuple[Matrix, Array, Array]:
    """All rows as given, their weights, and which of them count; an error where they are fewer than the clusters."""
    X = check_x(estimator, X, reset=True, accept_sparse=accept_sparse)
    weight = check_sample_weight(sample_weight, X.shape[0])
    kept = weight > 0
    check_enough(int(kept.sum()), estimator.n_clusters)
    return X, weight, kept


def check_enough(n: int, k: int) -> None:
    """An error where there are fewer rows than clusters."""
    if n < k:
        raise ValueError(
            f"n_samples={n} should be >= n_clusters={k}: ask for at most as many clusters as there are rows."
        )


def warn_of_equal_rows(estimator: Any, found: int) -> None:
    """Fewer distinct rows than clusters: each is a center, and some centers are equal."""
    warnings.warn(
        f"{type(estimator).__name__}: Number of distinct clusters ({found}) found smaller than n_clusters "
        f"({estimator.n_clusters}). Possibly due to duplicate points in X.",
        ConvergenceWarning,
        stacklevel=4,
    )


def distinct_rows(X: Matrix, weight: Array) -> tuple[Matrix, Array]:
    """Equal rows as one, by content, so that draws see a weight of 2 as the row twice; large X stays as it is.

    Their order is that of their content in single precision: a copy of X in single precision is met in the same order.
    """
    if (X.nnz if is_sparse(X) else X.size) > CONTENT_LIMIT:
        return X, weight
    none = np.zeros(X.shape[0])
    with np.errstate(over="ignore"):
        first, which = equal_rows(X.astype(np.float32, copy=False), none)
    if first.shape[0] < X.shape[0] and _differ(X, X[first][which]):
        first, which = equal_rows(X, none)
    return X[first], np.bincount(which, weights=weight)


def _differ(X: Matrix, other: Matrix) -> bool:
    """Whether two matrices of one form differ anywhere."""
    unequal = other != X
    return unequal.nnz > 0 if is_sparse(X) else bool(unequal.any())


def lower_bound_certificate(
    inertia: float,
    bound: float,
    total: float,
    weight: float,
    *,
    k: int,
    distinct: int = 0,
    tol: float,
    iterations: int,
    seconds: float,
    words: str,
) -> Certificate:
    """The evidence of a clustering: its mean cost beside what no clustering can beat, in units of the cost of one cluster.

    More `distinct` rows than clusters cost something: where double precision sees nothing of it, nothing is certified.
    """
    lost = inertia < VANISHING and distinct > k
    if lost:
        share = "The cost is below double precision: give small columns in another unit."
    elif not math.isfinite(inertia):
        share = "The cost is beyond double precision: give large columns in another unit."
    elif inertia <= 0.0:
        share = ""
    elif bound == 0.0:
        share = "The bound on other clusterings is 0 here."
    else:
        share = f"No clustering into {k} groups costs less than {_floor(bound / inertia)} of it."
    found = Certificate(
        "lower bound",
        objective=inertia / weight,
        bound=min(bound, inertia) / weight,
        scale=total / weight,
        tol=tol,
        iterations=iterations,
        seconds=seconds,
        note=f"{words} {share}".strip(),
    )
    return found.judged(-1.0) if lost else found


def _floor(share: float) -> str:
    """A percentage that is not above the share, with two digits of what is missing to all of it."""
    if share >= 1.0:
        return "100%"
    decimals = min(max(0, math.ceil(-math.log10(1.0 - share)) - 2), 9)
    return f"{math.floor(share * 10.0 ** (decimals + 2)) / 10.0**decimals:.{decimals}f}%"


class Drawn(Declared, kw_only=True):
    """What starts at random says from where, whether it is watched, and on how many threads it runs."""

    random_state: Any = RANDOM_STATE
    verbose: int = VERBOSE
    n_jobs: int | None = N_JOBS


class AroundMeans(
    Declared, ClassNamePrefixFeaturesOutMixin, TakesSparse, KeepsPrecision, ClusterMixin, CertifiedEstimator
):
    """Rows belong to the nearest of k centers, in Euclidean distance."""

    n_jobs: int | None

    cluster_centers_: Array = Fitted("array of shape (n_clusters, n_features)", "The centers.")
    labels_: Array = Fitted("array of shape (n_samples,)", "The cluster of each row.")
    inertia_: float = Fitted("float", "The cost Σ s_i ‖x_i − its center‖².")
    lower_bound_: float = Fitted(
        "float", "What no clustering into as many groups can go below, in the unit of `inertia_`."
    )
    n_iter_: int = Fitted("int", "Iterations.")

    def predict(self, X: Any) -> Array:
        """The number of the nearest center."""
        rows = self._rows(X)
        return rows_of(rows, np.ones(rows.shape[0]), self.n_jobs, self.cluster_centers_).nearest(self.cluster_centers_)[
            0
        ]

    def transform(self, X: Any) -> Array:
        """The distance of each row from each center."""
        rows = self._rows(X)
        centers = self.cluster_centers_.astype(np.float64)
        exponent = unit_exponent(rows, self.cluster_centers_)
        if exponent:
            with np.errstate(over="ignore"):
                away = np.ldexp(_distances(times(rows, -exponent), times(centers, -exponent)), exponent)
            if not np.isfinite(away).all():
                raise ValueError(
                    "X holds numbers whose distances are beyond double precision: give large columns in another unit."
                )
            return like_input(rows, away)
        return like_input(rows, _distances(rows, centers))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the cost of the rows with their nearest centers."""
        rows = self._rows(X)
        weight = check_sample_weight(sample_weight, rows.shape[0])
        return -float(rows_of(rows, weight, self.n_jobs, self.cluster_centers_).nearest(self.cluster_centers_)[1])

    def _rows(self, X: Any) -> Matrix:
        check_is_fitted(self, "cluster_centers_")
        return check_x(self, X, reset=False, accept_sparse=("csr",))

    @property
    def _n_features_out(self) -> int:
        return int(self.cluster_centers_.shape[0])


def _distances(rows: Matrix, centers: Array) -> Array:
    """Of each row from each center, in double precision."""
    if is_sparse(rows):
        rows = rows.astype(np.float64)  # squares of single precision may be beyond it
        prepared = MeasuredRows(rows, squared_lengths(rows))
        return np.sqrt(squared_distances(prepared, MeasuredRows(centers, squared_lengths(centers))))
    return cdist(rows.astype(np.float64, copy=False), centers)
