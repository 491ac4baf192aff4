"""Where k-means starts: rows far from each other, any rows, or centers that are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.models.cluster.rows import ClusterRows
from certifit.parameters import Choice, Either, Function, Given, Integer, Parameter

__all__ = ["INIT", "N_INIT", "number_of_starts", "start_centers"]

INIT = Parameter(
    "k-means++",
    Either(
        Choice("k-means++", "random"),
        Function(),
        Given("array of shape (n_clusters, n_features)", wrong=([[np.nan]], [1.0, 2.0], np.zeros((0, 3)))),
    ),
    'The first centers: "k-means++" draws rows far from each other, "random" any rows; or the centers themselves, or a function '
    "of X, n_clusters and random_state that gives them.",
)
N_INIT = Parameter(
    "auto",
    Either(Choice("auto"), Integer(1)),
    'Starts, of which the best is kept; "auto" is 10 for ``init="random"`` or a function, and 1 otherwise.',
)


def number_of_starts(init: Any, n_init: Any) -> int:
    """How often to begin; from given centers once."""
    if not isinstance(init, str) and not callable(init):
        return 1
    return (1 if init == "k-means++" else 10) if n_init == "auto" else int(n_init)


def start_centers(init: Any, rows: ClusterRows, X: Matrix, weight: Array, k: int, rng: np.random.RandomState) -> Array:
    """k centers in double precision."""
    if isinstance(init, str):
        if init == "k-means++":
            # As many candidates a step as scikit-learn tries.
            return rows.points(rows.seed(rng.random_sample((k, 2 + int(np.log(k))))))
        return rows.points(rng.choice(X.shape[0], size=k, replace=False, p=weight / weight.sum()))
    given = init(X, k, random_state=rng) if callable(init) else init
    centers = np.asarray(given, dtype=np.float64)
    if centers.shape != (k, X.shape[1]):
        raise ValueError(
            f"init must have shape (n_clusters, n_features) = ({k}, {X.shape[1]}); got {centers.shape} from {given!r}."
        )
    if not np.isfinite(centers).all():
        raise ValueError(f"init must hold finite numbers; got {given!r}.")
    return centers
