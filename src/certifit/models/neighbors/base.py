"""What all models of neighbors share: rows that are kept, and the search among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.base import CertifiedEstimator
from certifit.data.gate import check_choice, check_numbers, check_real, check_x, like_input
from certifit.models.neighbors.distance import NearestSearch, Tree, build_tree, wants_tree
from certifit.models.neighbors.metric import DENSE, Metric
from certifit.parameters import Declared, Fitted
from certifit.representation.kernels.base import Kernel
from certifit.threads import n_threads

__all__ = ["MODES", "BaseNeighbors", "OfRows"]

MODES = ("connectivity", "distance")
"""What the entries of a graph of neighbors are."""
ZEROS_ARE_KEPT = ("csr", "csc", "coo", "lil")
"""Sparse formats in which a zero can be stored."""


class OfRows(Declared):
    """What is known of the rows after a fit."""

    n_features_in_: int = Fitted("int", "Number of columns.")
    n_samples_fit_: int = Fitted("int", "Number of rows that are asked.")
    effective_metric_: Any = Fitted("str, callable or Kernel", "The distance used.")


class BaseNeighbors(CertifiedEstimator):
    """Rows, and who is near them."""

    n_neighbors: Any
    algorithm: str
    metric: Any
    p: float
    metric_params: Any
    n_jobs: int | None

    n_samples_fit_: int

    _tree: Tree | None
    _columns: Array | None

    def _accepts(self) -> dict[str, Any]:
        """What the gate lets through: holes for a distance that knows them, sparse rows for most."""
        return {
            "accept_sparse": False if isinstance(self.metric, str) and self.metric in DENSE else ("csr",),
            "allow_nan": self.metric == "nan_euclidean",
        }

    def _keep(self, X: Matrix, kept: Array) -> None:
        """Keep those of the checked rows that have a weight, and build what finds them again."""
        if isinstance(self.metric, Kernel) and self.metric.takes in ("objects", "gram"):
            raise ValueError(
                f"metric={self.metric} is a kernel on other things than numbers; compute its distances, and give them with "
                'metric="precomputed".'
            )
        X = X if kept.all() else X[kept]
        self._columns = None
        if self.metric == "precomputed":
            if kept.shape[0] != X.shape[1]:
                raise ValueError(
                    "Precomputed matrix must be square: under metric='precomputed' X holds the distances between the rows; "
                    f"got shape {(kept.shape[0], X.shape[1])}."
                )
            self._columns = None if kept.all() else np.flatnonzero(kept)
            X = self._own_columns(X)
        metric = self._distance()
        metric.check(X.shape[1])
        tree = wants_tree(metric, X, self.algorithm)
        self._tree = build_tree(metric.rows(X, 0), n_threads(self.n_jobs)) if tree else None
        self._fit_X = X
        self._fit_method = "brute" if self._tree is None else "kd_tree"
        self.n_samples_fit_ = X.shape[0]
        named = {"absolute": "manhattan", "squared": "euclidean", "maximum": "chebyshev"}.get(metric.norm, "minkowski")
        self.effective_metric_ = named if self.metric == "minkowski" and metric.scale is None else self.metric
        power = {"p": float(self.p)} if self.effective_metric_ == "minkowski" else {}
        self.effective_metric_params_ = {**power, **(self.metric_params or {})}

    def _distance(self) -> Metric:
        return Metric.of(self.metric, self.p, self.metric_params)

    def _search(self) -> NearestSearch:
        return NearestSearch(self._distance(), self._fit_X, self._tree, n_threads(self.n_jobs))

    def _queries(self, X: Any) -> Matrix:
        check_is_fitted(self, "n_samples_fit_")
        self._check_format(X)
        Q = check_x(self, X, reset=False, **self._accepts())
        return self._own_columns(Q) if self.metric == "precomputed" else _like(self._fit_X, Q)

    def _check_format(self, X: Any) -> None:
        """Of sparse distances zeros are read, and what is not stored is far: an error for formats that do not keep them apart."""
        if self.metric == "precomputed" and is_sparse(X) and X.format not in ZEROS_ARE_KEPT:
            raise TypeError(
                f"A sparse matrix of distances in {X.format!r} format is not supported due to its handling of explicit zeros; "
                f"give one of {', '.join(ZEROS_ARE_KEPT)}."
            )

    def _own_columns(self, Q: Matrix) -> Matrix:
        """Given distances to the rows that were kept."""
        if (Q.data if is_sparse(Q) else Q).min(initial=0.0) < 0:
            raise ValueError(
                "Negative values in data passed to precomputed distance matrix. X holds distances under metric='precomputed', "
                "and one of them is negative."
            )
        return Q if self._columns is None else Q[:, self._columns]

    def _asked(self, X: Any) -> tuple[Matrix, Array | None]:
        """Queries, and for each the row that it is itself, if the kept rows are asked about themselves."""
        if X is not None:
            return self._queries(X), None
        check_is_fitted(self, "n_samples_fit_")
        return self._fit_X, np.arange(self.n_samples_fit_)

    def _count(self, n_neighbors: Any, skip: Array | None) -> int:
        """How many neighbors are wanted, not more than there are."""
        k = getattr(self, "n_neighbors_", self.n_neighbors) if n_neighbors is None else n_neighbors
        check_real("n_neighbors", k, low=1, integer=True)
        there = self.n_samples_fit_ - (skip is not None)
        if k > there:
            raise ValueError(
                f"n_neighbors must be at most the number of rows{' besides the row itself' if skip is not None else ''}. "
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = {self.n_samples_fit_}."
            )
        return int(k)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """The nearest rows, exactly, the nearest first; rows at the same distance in the order of their numbers.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_queries, n_features), optional
            Queries; by default the rows of the fit, each of which then is no neighbor of itself.
        n_neighbors : int, optional
            How many; by default the parameter of the model.
        return_distance : bool, default=True
            Whether distances come with them.

        Returns
        -------
        distances : array of shape (n_queries, n_neighbors)
            If asked for.
        rows : array of shape (n_queries, n_neighbors)
            Numbers of rows of the fit (those of weight zero are not counted).
        """
        Q, skip = self._asked(X)
        distance, row = self._search().nearest(Q, self._count(n_neighbors, skip), skip)
        return (like_input(self._fit_X, distance), row) if return_distance else row

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """The nearest rows as a sparse matrix of shape (n_queries, n_samples_fit_).

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_queries, n_features), optional
            As for `kneighbors`.
        n_neighbors : int, optional
            How many; by default the parameter of the model.
        mode : {"connectivity", "distance"}, default="connectivity"
            Entries are ones, or the distances.

        Returns
        -------
        CSR matrix
        """
        check_choice("mode", mode, MODES)
        distance, row = self.kneighbors(X, n_neighbors)
        return self._graph(np.arange(row.shape[0] + 1) * row.shape[1], distance.ravel(), row.ravel(), mode)

    def _graph(self, start: Array, distance: Array, row: Array, mode: str) -> Any:
        """Neighbors of each query, one after the other, as a sparse matrix of ones or of distances."""
        values = distance if mode == "distance" else np.ones_like(distance)
        return sp.csr_matrix((values, row, start), shape=(start.shape[0] - 1, self.n_samples_fit_))

    def _near(self, X: Any, radius: Any) -> tuple[Array, Array, Array]:
        """All rows within the radius: where those of each query begin, their distances and their numbers."""
        radius = getattr(self, "radius", 1.0) if radius is None else radius
        Q, skip = self._asked(X)
        if np.ndim(radius) == 0:
            check_real("radius", radius, low=0.0)
            return self._search().within(Q, float(radius), skip)
        each = check_numbers("radius", radius)
        if each.shape != (Q.shape[0],) or not (each >= 0).all():
            raise ValueError(
                f"radius must be a number >= 0, or one for each of the {Q.shape[0]} queries; got {radius!r}."
            )
        start, distance, row = self._search().within(Q, float(each.max(initial=0.0)), skip)
        kept = distance <= np.repeat(each, np.diff(start))
        return np.concatenate([[0], np.cumsum(kept)])[start], distance[kept], row[kept]

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        accepts = self._accepts()
        tags.input_tags.sparse = bool(accepts["accept_sparse"])
        tags.input_tags.allow_nan = accepts["allow_nan"]
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        return tags


def _like(X: Matrix, Q: Matrix) -> Matrix:
    """Queries in the form of the rows that were kept, sparse or dense."""
    if is_sparse(X) == is_sparse(Q):
        return Q
    return sp.csr_array(Q) if is_sparse(X) else Q.toarray()
