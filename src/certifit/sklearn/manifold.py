"""``sklearn.manifold``: maps of rows from their distances."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.manifold as theirs
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_symmetric
from sklearn.utils.validation import validate_data

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.embedding import classical_mds, metric_mds, nonmetric_mds
from certifit.sklearn.translation import Data, Free, Here, Of, Same, Table, fresh, same
from certifit.sklearn.translation.asking import Alone

__all__ = ["MDS", *(["ClassicalMDS"] if hasattr(theirs, "ClassicalMDS") else [])]


class _OfDistances(Alone):
    """Distances by scikit-learn's names, points by ours."""

    _reads_columns = True

    def _distances(self, X: Any, metric: Any) -> Array:
        """The matrix of distances; one that is given is checked in scikit-learn's words."""
        checked = validate_data(self, X, dtype=[np.float64, np.float32])
        if metric == "precomputed":
            return np.asarray(check_symmetric(checked, raise_exception=True))
        found = np.asarray(pairwise_distances(checked, metric=metric, **(self.metric_params or {})), dtype=np.float64)
        np.fill_diagonal(found, 0.0)
        return 0.5 * (found + found.T)

    metric_params: dict[str, Any] | None

    def _judge(self, certificate: Certificate | None) -> None:
        """Scikit-learn's tolerance is of the last step, and promises nothing."""
        if certificate is not None:
            self.certificate_ = certificate

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and give the points."""
        return np.asarray(self.fit(X).embedding_)


if hasattr(theirs, "ClassicalMDS"):  # scikit-learn 1.8

    class ClassicalMDS(_OfDistances, theirs.ClassicalMDS):
        """Points from distances, up to a rotation."""

        _ours = classical_mds.ClassicalMDS
        _table: ClassVar[Table] = {
            "n_components": Same(),
            "metric": Here("distances of this name are computed, and given to our model"),
            "metric_params": Here("a part of the metric"),
        }
        _always: ClassVar[Mapping[str, Any]] = {"metric": "precomputed"}

        def _learn(self, data: Data) -> Any:
            self.dissimilarity_matrix_ = self._distances(data.X, self.metric)
            return fresh(self._ours, **self._settings(data)).fit(self.dissimilarity_matrix_)

        def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
            return {"embedding_": model.embedding_, "eigenvalues_": model.eigenvalues_}


class MDS(_OfDistances, theirs.MDS):
    """Points whose distances are as near as possible to given ones."""

    _ours = metric_mds.MetricMDS
    _table: ClassVar[Table] = {
        "n_components": Same(),
        "metric_mds": Here("False takes the order of the distances alone, by NonmetricMDS"),
        "n_init": Of(lambda value, data: 4 if value == "warn" else int(value), "the same"),
        "init": Here("classical scaling, unless points are given or drawn"),
        "max_iter": Same(),
        "verbose": Free("no progress is shown"),
        "eps": Same("tol"),
        **same("n_jobs", "random_state"),
        "dissimilarity": Here("as metric, with scikit-learn's warning"),
        "metric": Here("distances of this name are computed, and given to our model"),
        "metric_params": Here("a part of the metric"),
        "normalized_stress": Here("`stress_` is given this way"),
    }
    _always: ClassVar[Mapping[str, Any]] = {"metric": "precomputed"}

    def fit(self, X: Any, y: Any = None, init: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """As `DropIn.fit`; `init` holds first points."""
        self._start = init
        return super().fit(X)

    def fit_transform(self, X: Any, y: Any = None, init: Any = None) -> Array:
        """Fit from first points, if these are given, and give the points."""
        return np.asarray(self.fit(X, init=init).embedding_)

    def _learn(self, data: Data) -> Any:
        metric = self.metric
        if self.init == "warn":
            warnings.warn(
                "The default value of `init` will change from 'random' to 'classical_mds' in 1.10. To suppress this warning, "
                "provide some value of `init`.",
                FutureWarning,
                stacklevel=5,
            )
        if self.dissimilarity != "deprecated":
            if not isinstance(metric, bool) and metric != "euclidean":
                raise ValueError("You provided both `dissimilarity` and `metric`. Please use only `metric`.")
            warnings.warn(
                "The `dissimilarity` parameter is deprecated and will be removed in 1.10. Use `metric` instead.",
                FutureWarning,
                stacklevel=5,
            )
        self._by_ranks = not (metric if isinstance(metric, bool) else self.metric_mds)
        if isinstance(metric, bool):
            warnings.warn(
                f"Use metric_mds={metric} instead of metric={metric}. The support for metric={{True/False}} will be dropped in "
                "1.10.",
                FutureWarning,
                stacklevel=5,
            )
            metric = "euclidean"
        metric = metric if self.dissimilarity == "deprecated" else self.dissimilarity
        self.dissimilarity_matrix_ = self._distances(data.X, metric)
        settings = self._settings(data)
        start = self._start
        if start is None:
            start = "random" if getattr(self, "init", "random") in ("warn", "random") else "classical"
        settings["init"] = start
        if not isinstance(start, str) or start == "classical":
            settings["n_init"] = 1
        ours = nonmetric_mds.NonmetricMDS if self._by_ranks else self._ours
        return fresh(ours, **settings).fit(self.dissimilarity_matrix_)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        # Theirs counts a pair once, divides by the distances on the map, and gives ranks the mean square one.
        D = self.dissimilarity_matrix_
        size, points, unit = 0.5 * float((D**2).sum()), model.embedding_, 1.0
        normalized = self._by_ranks if self.normalized_stress == "auto" else bool(self.normalized_stress)
        if self._by_ranks and size > 0:
            unit = float(np.sqrt(0.5 * D.shape[0] * (D.shape[0] - 1) / size))
        raw = model.stress_ * size * unit**2
        drawn = 0.5 * float((pairwise_distances(points * unit) ** 2).sum())
        if self._by_ranks and drawn > 0:
            # Ranks know no unit: the map gets the best one, Σfd/Σd², and what is divided by the distances drawn falls too.
            best = 0.5 * (size * unit**2 + drawn - raw) / drawn
            raw, drawn, unit = max(raw - drawn * (1.0 - best) ** 2, 0.0), drawn * best**2, unit * best
        return {
            "embedding_": points * unit,
            "stress_": float(np.sqrt(raw / drawn)) if normalized and drawn > 0 else raw,
            "n_iter_": max(1, model.n_iter_),
        }
