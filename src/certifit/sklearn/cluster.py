"""``sklearn.cluster``: k-means, hierarchies and cuts of graphs, with bounds on the cost of every clustering."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
import sklearn.cluster as theirs
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted, validate_data

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.models.cluster import kmeans, minibatch
from certifit.models.hierarchy import agglomerative, linkage, spectral
from certifit.models.neighbors.model import NearestNeighbors
from certifit.sklearn.translation import COPY_X, By, Data, DropIn, Free, Here, Of, Row, Same, Table, fresh, same
from certifit.sklearn.translation.asking import Alone

__all__ = ["AgglomerativeClustering", "KMeans", "MiniBatchKMeans", "SpectralClustering"]


def _fit_together(centers: Any, clusters: int, X: Any) -> Any:
    """Centers that are given have to fit, in scikit-learn's words."""
    given = np.shape(centers)
    if given[:1] != (clusters,):
        raise ValueError(f"The shape of the initial centers {given} does not match the number of clusters {clusters}.")
    if given[1:] != np.shape(X)[1:]:
        raise ValueError(
            f"The shape of the initial centers {given} does not match the number of features of the data {np.shape(X)[1:]}."
        )
    return centers


@dataclass(frozen=True)
class _Fitting:
    """A function that gives centers, of which what it gives is looked at."""

    given: Any

    def __call__(self, X: Any, k: int, random_state: Any) -> Any:
        return _fit_together(self.given(X, k, random_state=random_state), k, X)


def _start(value: Any, data: Data) -> Any:
    """Centers, or who gives them."""
    if isinstance(value, str):
        return str(value)
    if callable(value):
        return _Fitting(value)
    _fit_together(value, data.estimator.n_clusters, data.X)
    count = data.estimator.n_init
    if count != "auto" and count != 1:
        warnings.warn(
            f"Explicit initial center position passed: performing only one init in {type(data.estimator).__name__} instead of "
            f"n_init={count}.",
            RuntimeWarning,
            stacklevel=7,
        )
    return value


ROWS: dict[str, Row] = {
    "n_clusters": Same(),
    "init": By(_start, "the same"),
    "max_iter": Same(),
    "verbose": Of(lambda value, data: int(bool(value)), "a progress bar"),
    "random_state": Same(),
}


class _Means(DropIn):
    """Rows belong to the nearest of the centers."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """As `DropIn.fit`; y is not used."""
        return super().fit(X, None, sample_weight)

    def _learn(self, data: Data) -> Any:
        return fresh(self._ours, **self._settings(data)).fit(data.X, None, data.sample_weight)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = {name: getattr(model, name) for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_")}
        return {**found, "_n_features_out": int(model.cluster_centers_.shape[0])}

    def _judge(self, certificate: Certificate | None) -> None:
        """Scikit-learn's tolerance is of moves of the centers and promises nothing about other clusterings."""
        if certificate is not None:
            self.certificate_ = certificate

    def predict(self, X: Any) -> Array:
        """The number of the nearest center."""
        check_is_fitted(self)
        return np.asarray(self.model_.predict(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the cost of rows with their nearest centers."""
        check_is_fitted(self)
        return float(self.model_.score(X, None, sample_weight))


class KMeans(_Means, theirs.KMeans):
    """k-means by Lloyd's iteration; the best of `n_init` starts."""

    _ours = kmeans.KMeans
    _table: ClassVar[Table] = {
        **ROWS,
        "n_init": Same(),
        "tol": Same("min_shift"),
        "copy_x": COPY_X,
        "algorithm": Here(
            'the same iteration, with bounds or without; scikit-learn\'s warning about "elkan" with one cluster is given'
        ),
    }

    def _settings(self, data: Data) -> dict[str, Any]:
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=5,
            )
        return super()._settings(data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        # Scikit-learn counts the iteration that finds nothing to change, if it is allowed one.
        counted = min(self.max_iter, model.n_iter_ + int(model._fixed))
        return {**super()._fitted(model, data), "n_iter_": counted}

    def transform(self, X: Any) -> Array:
        """The distance of each row from each center, shape (n_samples, n_clusters)."""
        check_is_fitted(self)
        return np.asarray(self.model_.transform(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and give the distances."""
        return self.fit(X, sample_weight=sample_weight).model_.transform(X)  # type: ignore[no-any-return]


class MiniBatchKMeans(_Means, theirs.MiniBatchKMeans):
    """k-means from batches of rows."""

    _ours = minibatch.MiniBatchKMeans
    _table: ClassVar[Table] = {
        **ROWS,
        "batch_size": Same(),
        "compute_labels": Free("labels are always computed"),
        "tol": Free("passes end when the cost of the batches stays where it is"),
        "max_no_improvement": Of(
            lambda value, data: NEVER if value is None else int(value),
            "the same; None is a million batches",
            "patience",
        ),
        "init_size": Here(
            "the start is drawn from three batches, or three rows a cluster; fewer rows than clusters draw a warning"
        ),
        "n_init": Free("one start: later batches mend it"),
        "reassignment_ratio": Free("centers that few rows are near stay where they are"),
    }

    def _settings(self, data: Data) -> dict[str, Any]:
        if self.init_size is not None and self.init_size < self.n_clusters:
            warnings.warn(
                f"init_size={self.init_size} should be larger than n_clusters={self.n_clusters}. The start is drawn from three "
                "batches instead, or three rows a cluster.",
                RuntimeWarning,
                stacklevel=5,
            )
        return super()._settings(data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {**super()._fitted(model, data), "n_steps_": int(model.n_iter_), "_counts": model.counts_}

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more batch; the first one also gives the starting centers."""
        self._checked(self)
        data = Data(self, X, None, sample_weight)
        known = "model_" in vars(self)
        model = self.model_ if known else fresh(self._ours, **self._settings(data))
        self._keep(model.partial_fit(X, None, sample_weight), data)
        return self

    def transform(self, X: Any) -> Array:
        """The distance of each row from each center, shape (n_samples, n_clusters)."""
        check_is_fitted(self)
        return np.asarray(self.model_.transform(X))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and give the distances."""
        return self.fit(X, sample_weight=sample_weight).model_.transform(X)  # type: ignore[no-any-return]


NEVER = 1_000_000

METRICS = {"l2": "euclidean", "l1": "manhattan", "cityblock": "manhattan"}


def _metric(value: Any, data: Data) -> Any:
    """Scikit-learn's name of a distance as ours; Ward's refusal is in its words."""
    if data.estimator.linkage == "ward" and value not in ("euclidean", "l2"):
        raise ValueError(f"{value} was provided as metric. Ward can only work with euclidean distances.")
    known = METRICS.get(value, value) if isinstance(value, str) else None
    if known not in (*linkage.METRICS, "precomputed"):
        raise NotImplementedError(
            f"AgglomerativeClustering(metric={value!r}) is not offered by certifit.sklearn: give metric='precomputed' and the "
            "distances, or use scikit-learn's own class."
        )
    return known


def _graph(value: Any, data: Data) -> Any:
    """The graph of rows; one of another size is refused in scikit-learn's words."""
    graph = value(data.X) if callable(value) else value
    if graph is None or np.shape(graph) == (rows := np.shape(data.X)[0], rows):
        return graph
    raise ValueError(f"Wrong shape for connectivity matrix: {np.shape(graph)} when X is {np.shape(data.X)}")


def _numbered(labels: Array, children: Array, k: int) -> Array:
    """The same clusters with scikit-learn's numbers: the order of a heap from which the latest merge is taken again and again."""
    n = labels.shape[0]
    heap = [-(n + children.shape[0] - 1)]
    for _ in range(k - 1):
        left, right = children[-heap[0] - n]
        heapq.heappush(heap, -int(left))
        heapq.heappushpop(heap, -int(right))
    number = np.empty(k, dtype=np.int64)
    for cluster, node in enumerate(heap):
        leaf = -node
        while leaf >= n:
            leaf = int(children[leaf - n, 0])
        number[labels[leaf]] = cluster
    return np.asarray(number[labels])


class AgglomerativeClustering(Alone, theirs.AgglomerativeClustering):
    """Clusters from the bottom up; `linkage_matrix_` of `model_` is SciPy's."""

    _ours = agglomerative.AgglomerativeClustering
    _table: ClassVar[Table] = {
        "n_clusters": Same(),
        "metric": By(_metric, "the same, where we have it"),
        "memory": Free("the tree is computed anew"),
        "connectivity": By(_graph, "the same"),
        "compute_full_tree": Here(
            "the tree is always whole; False beside distance_threshold is refused, as by scikit-learn"
        ),
        **same("linkage", "distance_threshold"),
        "compute_distances": Here("`distances_` is kept where asked for; `model_` has it always"),
    }

    def _learn(self, data: Data) -> Any:
        if (self.n_clusters is None) == (self.distance_threshold is None):
            raise ValueError(
                "Exactly one of n_clusters and distance_threshold has to be set, and the other needs to be None."
            )
        if self.distance_threshold is not None and self.compute_full_tree is False:
            raise ValueError("compute_full_tree must be True if distance_threshold is set.")
        if self.metric == "precomputed" and len(shape := np.shape(data.X)) == 2 and shape[0] != shape[1]:
            raise ValueError(f"Distance matrix should be square, got matrix of shape {shape}")
        return super()._learn(data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found: dict[str, Any] = {
            name: getattr(model, name)
            for name in ("labels_", "n_clusters_", "n_leaves_", "children_", "n_connected_components_")
        }
        found["labels_"] = _numbered(model.labels_, model.children_, model.n_clusters_)
        if self.distance_threshold is not None or self.compute_distances:
            found["distances_"] = model.distances_
        return found

    def _judge(self, certificate: Certificate | None) -> None:
        """No tolerance is asked for."""
        if certificate is not None:
            self.certificate_ = certificate

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Fit, and give the labels."""
        return np.asarray(self.fit(X).labels_)


SIMILAR = ("n_neighbors", "gamma", "degree", "coef0", "kernel_params")


class SpectralClustering(Alone, theirs.SpectralClustering):
    """Clusters of a graph by the eigenvectors of its Laplacian; the certificate bounds the cut of every clustering of it."""

    _ours = spectral.SpectralClustering
    _reads_columns = True
    _always: ClassVar[Mapping[str, Any]] = {"affinity": "precomputed"}
    _table: ClassVar[Table] = {
        "n_clusters": Same(),
        "eigen_solver": Free("exact, by the solver that suits the graph"),
        "n_components": Same("n_vectors"),
        "random_state": Same(),
        "n_init": Free("five starts of k-means"),
        "affinity": Here("the graph of this name is built, and handed to our model"),
        **{name: Here("a part of the graph, as for scikit-learn's") for name in SIMILAR},
        "eigen_tol": Free("eigenvectors are exact, or as near as the certificate says"),
        "assign_labels": Free("connected components where they are as many, or else k-means"),
        "n_jobs": Same(),
        "verbose": Of(lambda value, data: int(bool(value)), "a progress bar"),
    }

    def _learn(self, data: Data) -> Any:
        kinds = ["csr", "csc", "coo"]
        X = validate_data(self, data.X, accept_sparse=kinds, dtype=np.float64, ensure_min_samples=2)
        if X.shape[0] == X.shape[1] and not str(self.affinity).startswith("precomputed"):
            warnings.warn(
                "The spectral clustering API has changed. ``fit`` now constructs an affinity matrix from data. To use a custom "
                "affinity matrix, set ``affinity=precomputed``.",
                UserWarning,
                stacklevel=5,
            )
        self.affinity_matrix_ = self._similarity(X)
        if self.verbose:
            print(f"Computing label assignment using {self.assign_labels}")
        graph = self.affinity_matrix_.tocsr() if is_sparse(self.affinity_matrix_) else self.affinity_matrix_
        model = fresh(self._ours, **self._settings(data)).fit(0.5 * (graph + graph.T))
        if model.n_components_ > 1:
            warnings.warn(
                "Graph is not fully connected, spectral embedding may not work as expected.", UserWarning, stacklevel=5
            )
        return model

    def _similarity(self, X: Matrix) -> Matrix:
        """The graph that scikit-learn would cut."""
        if self.affinity == "precomputed":
            return X
        if self.affinity == "nearest_neighbors":
            others = NearestNeighbors(n_neighbors=max(self.n_neighbors - 1, 1), n_jobs=self.n_jobs).fit(X)
            nearest = others.kneighbors(return_distance=False)[:, : self.n_neighbors - 1]
            return _either_way(np.column_stack([np.arange(X.shape[0]), nearest]))
        if self.affinity == "precomputed_nearest_neighbors":
            rows = sp.csr_array(X)
            ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
            nearest = [
                rows.indices[a:b][np.argsort(rows.data[a:b], kind="stable")[: self.n_neighbors]] for a, b in ends
            ]
            if min(one.size for one in nearest) < self.n_neighbors:
                raise ValueError(
                    f"{self.n_neighbors} neighbors are required per samples, but some samples have only "
                    f"{min(one.size for one in nearest)} neighbors in precomputed graph matrix."
                )
            return _either_way(np.array(nearest))
        params = dict(self.kernel_params or {})
        if not callable(self.affinity):
            params |= {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return pairwise_kernels(X, metric=self.affinity, filter_params=True, **params)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"labels_": model.labels_}

    def _judge(self, certificate: Certificate | None) -> None:
        """No tolerance is asked for."""
        if certificate is not None:
            self.certificate_ = certificate

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Fit, and give the labels."""
        return np.asarray(self.fit(X).labels_)


def _either_way(nearest: Array) -> Matrix:
    """Half an edge for each row that has the other among its nearest."""
    n, k = nearest.shape
    graph = sp.csr_array((np.ones(n * k), nearest.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return 0.5 * (graph + graph.T)
