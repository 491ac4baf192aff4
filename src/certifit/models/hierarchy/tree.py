"""What hierarchies share, from the bottom up or from the top down: a tree of merges, and its cuts."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.models.cluster.centers import check_enough
from certifit.models.hierarchy.cuts import cut_after, largest_gap
from certifit.models.hierarchy.linkage import METRICS
from certifit.models.hierarchy.nearest_row import OfNearestRow
from certifit.parameters import Choice, Either, Fitted, Integer, Nothing, Parameter, Real

__all__ = ["CLUSTERS", "DISSIMILARITY", "THRESHOLD", "Hierarchy"]

DISSIMILARITY = Parameter(
    "euclidean",
    Choice(*METRICS, "precomputed"),
    'How far rows are from each other; "precomputed": X is the square matrix of their dissimilarities.',
)
CLUSTERS = Parameter(
    2,
    Either(Integer(1), Choice("gap"), Nothing()),
    'How many clusters `labels_` tells apart; "gap" cuts where the height jumps most; None: see `distance_threshold`.',
)
THRESHOLD = Parameter(
    None,
    Either(Real(0), Nothing()),
    "Height at or above which nothing merges; instead of `n_clusters`, which must then be None.",
)


class Hierarchy(OfNearestRow):
    """A tree of clusters, cut where one likes."""

    n_clusters: Any
    metric: str
    distance_threshold: float | None

    linkage_matrix_: Array = Fitted(
        "array of shape (n_samples - 1, 4)", "The merges: two clusters, their height, how many rows they have together."
    )
    n_leaves_: int = Fitted("int", "How many rows there are.")

    def _cut_tree(self, X: Array, Z: Array) -> None:
        """Keep the tree, and cut it as the parameters say."""
        self.linkage_matrix_, self.n_leaves_ = Z, X.shape[0]
        self._keep_rows(X)
        height = self.distance_threshold
        self.labels_ = self.cut(**({"height": height} if height is not None else {"n_clusters": self.n_clusters}))
        self.n_clusters_ = int(self.labels_.max()) + 1

    def cut(self, n_clusters: Any = None, height: float | None = None) -> Array:
        """Labels of another cut of the same hierarchy.

        Parameters
        ----------
        n_clusters : int or "gap", optional
            How many clusters; "gap" takes the number at which the height jumps most.
        height : float, optional
            Clusters merge below it.
        """
        check_is_fitted(self, "linkage_matrix_")
        if (n_clusters is None) == (height is None):
            raise ValueError("cut takes n_clusters or height, and not both.")
        heights, n = self.linkage_matrix_[:, 2], self.linkage_matrix_.shape[0] + 1
        if height is not None:
            check_real("height", height, low=0.0)
            return cut_after(self.linkage_matrix_, int(np.count_nonzero(heights < height)))
        if isinstance(n_clusters, str) and n_clusters == "gap":
            n_clusters = largest_gap(heights)
        check_real("n_clusters", n_clusters, low=1, high=n, integer=True)
        return cut_after(self.linkage_matrix_, n - int(n_clusters))

    @property
    def children_(self) -> Array:
        """The two clusters of each merge, as scikit-learn has them."""
        return self.linkage_matrix_[:, :2].astype(np.int64)

    @property
    def distances_(self) -> Array:
        """The height of each merge."""
        return self.linkage_matrix_[:, 2]

    def _check_together(self, n: int) -> None:
        """What single parameters cannot know of each other, and of the number of rows."""
        if (self.n_clusters is None) == (self.distance_threshold is None):
            raise ValueError(
                "exactly one of n_clusters and distance_threshold must be given, the other None; got "
                f"n_clusters={self.n_clusters!r} and distance_threshold={self.distance_threshold!r}."
            )
        if isinstance(self.n_clusters, numbers.Integral):
            check_enough(n, int(self.n_clusters))

    def _row_metric(self) -> str:
        return self.metric
