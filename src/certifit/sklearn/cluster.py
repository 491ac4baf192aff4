"""``sklearn.cluster``: k-means, with a lower bound on the cost of every clustering."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.cluster as theirs
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.cluster import kmeans, minibatch
from certifit.sklearn.translation import By, Data, DropIn, Free, Row, Same, Table, fresh

__all__ = ["KMeans", "MiniBatchKMeans"]


def _start(value: Any, data: Data) -> Any:
    """Centers that are given have to fit, in scikit-learn's words."""
    if isinstance(value, str) or callable(value):
        return value if callable(value) else str(value)
    given, clusters = np.shape(value), data.estimator.n_clusters
    if given[:1] != (clusters,):
        raise ValueError(f"The shape of the initial centers {given} does not match the number of clusters {clusters}.")
    if given[1:] != np.shape(data.X)[1:]:
        raise ValueError(
            f"The shape of the initial centers {given} does not match the number of features of the data {np.shape(data.X)[1:]}."
        )
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
    "verbose": By(lambda value, data: int(bool(value)), "a progress bar"),
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
        "copy_x": Free("X is never written to"),
        "algorithm": Free("the same iteration, with bounds or without"),
    }

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
        "max_no_improvement": By(
            lambda value, data: NEVER if value is None else int(value),
            "the same; None is a million batches",
            "patience",
        ),
        "init_size": Free("the start is drawn from three batches, or three rows a cluster"),
        "n_init": Free("one start: later batches mend it"),
        "reassignment_ratio": Free("centers that few rows are near stay where they are"),
    }

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
