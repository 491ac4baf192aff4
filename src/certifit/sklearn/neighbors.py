"""``sklearn.neighbors``: the nearest rows, found exactly, and densities around rows."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
import sklearn.neighbors as theirs
from sklearn.metrics import DistanceMetric
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.models.bayes import density
from certifit.models.bayes.discriminant import centroid
from certifit.models.neighbors import model as ours
from certifit.models.neighbors.base import MODES
from certifit.models.neighbors.metric import DENSE
from certifit.sklearn.translation import By, Data, DropIn, Free, Here, Of, Only, Row, Same, Table, fresh
from certifit.sklearn.translation.asking import Alone
from certifit.sklearn.translation.table import labels

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KernelDensity", "NearestCentroid", "NearestNeighbors"]

OTHER_NAMES = {"p": "minkowski", "infinity": "chebyshev", "sokalmichener": "rogerstanimoto"}
"""Names of scikit-learn's for distances that have another one too."""


class _Blocks:
    """A `DistanceMetric` of scikit-learn's as a function of two rows, which has one of two blocks."""

    def __init__(self, metric: Any) -> None:
        self.metric = metric

    def pairwise(self, A: Any, B: Any) -> Array:
        """All distances."""
        return np.asarray(self.metric.pairwise(*(np.ascontiguousarray(part, dtype=np.float64) for part in (A, B))))

    def __call__(self, x: Any, z: Any) -> float:
        return float(self.pairwise(x[None, :], z[None, :])[0, 0])


def _metric(value: Any, data: Data) -> Any:
    if isinstance(value, DistanceMetric):
        return _Blocks(value)
    if callable(value):
        return _of_sparse_rows(value, type(data.X)) if is_sparse(data.X) else value
    if value == "pyfunc":
        raise NotImplementedError(
            f"{type(data.estimator).__name__}(metric='pyfunc') is not offered by certifit.sklearn: give the function as metric."
        )
    return OTHER_NAMES.get(value, value)


def _of_sparse_rows(function: Any, kind: Any) -> Any:
    """A function that gets rows as sparse as they were given."""
    return lambda x, z, **further: function(*(_row(part, kind) for part in (x, z)), **further)


def _row(values: Array, kind: Any) -> Any:
    matrix = issubclass(kind, scipy.sparse.spmatrix)
    return (scipy.sparse.csr_matrix if matrix else scipy.sparse.csr_array)(values[None, :])


def _further(value: Any, data: Data) -> dict[str, Any]:
    """Further arguments of the distance; the power is a parameter of its own in ours."""
    further = dict(value or {})
    named = isinstance(data.estimator.metric, str)
    power = {"p": further.pop("p")} if named and "p" in further else {}
    return {"metric_params": further or None, **power}


def _tree_cannot(value: Any, data: Data) -> str:
    """The search: of what one of scikit-learn's trees cannot do, it is told; rows are found by whatever search can."""
    estimator, rows = data.estimator, data.X
    metric, further = estimator.metric, estimator.metric_params or {}
    trees = ("kd_tree", "ball_tree")
    judged = value in trees and not isinstance(metric, DistanceMetric) and (value == "kd_tree" or not callable(metric))
    if judged and metric not in theirs.VALID_METRICS[value]:
        raise ValueError(
            f"Metric {metric!r} not valid for algorithm={value!r}. Use "
            f"sorted(sklearn.neighbors.VALID_METRICS[{value!r}]) to get valid options, or algorithm='auto'."
        )
    if is_sparse(rows) and isinstance(metric, str) and metric in DENSE:
        raise ValueError(f"Metric {metric!r} not valid for sparse input: it compares dense rows.")
    if value == "kd_tree" and further.get("w") is not None:
        raise ValueError(
            "algorithm='kd_tree' is not valid for metric='minkowski' with a weight parameter 'w': try algorithm='ball_tree' "
            "or algorithm='brute' instead."
        )
    if "p" in further and estimator.p is not None and isinstance(metric, str):
        warnings.warn(
            "Parameter p is found in metric_params. The corresponding parameter from __init__ is ignored.",
            SyntaxWarning,
            stacklevel=6,
        )
    p = further.get("p", estimator.p)
    if metric == "minkowski" and p is not None and p < 1:
        if value in trees:
            raise ValueError(
                f'algorithm="{value}" does not support 0 < p < 1 for the Minkowski metric. To resolve this problem either '
                'set p >= 1 or algorithm="brute".'
            )
        warnings.warn(
            "Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. Continuing the execution with "
            "`algorithm='brute'`.",
            UserWarning,
            stacklevel=6,
        )
    return "auto"


ROWS: dict[str, Row] = {
    "n_neighbors": Same(),
    "algorithm": By(
        _tree_cannot,
        "the neighbors are the same, by a tree where it pays; what scikit-learn's trees refuse is refused",
    ),
    "leaf_size": Free("the neighbors do not depend on it"),
    "p": Of(
        lambda value, data: 2.0 if value is None or data.estimator.metric == "p" else float(value),
        "the same; ``metric='p'`` has its own in `metric_params`",
    ),
    "metric": By(_metric, "the same"),
    "metric_params": By(_further, "the same", None),
    "n_jobs": Same(),
}


class _Neighbors(DropIn):
    """Neighbors are asked of our model."""

    algorithm: Any
    weights: Any

    def kneighbors(self, X: Any = None, n_neighbors: Any = None, return_distance: bool = True) -> Any:
        """The nearest rows, the nearest first.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_queries, n_features), optional
            Queries; by default the rows of the fit, each of which then is no neighbor of itself.
        n_neighbors : int, optional
            How many.
        return_distance : bool, default=True
            Whether distances come with them.

        Returns
        -------
        distances, rows : arrays of shape (n_queries, n_neighbors)
        """
        check_is_fitted(self)
        return self.model_.kneighbors(self._queries(X), n_neighbors, return_distance)

    def kneighbors_graph(self, X: Any = None, n_neighbors: Any = None, mode: str = "connectivity") -> Any:
        """The nearest rows as a sparse matrix, as `kneighbors` takes its queries."""
        check_is_fitted(self)
        _check_mode(mode)
        return self.model_.kneighbors_graph(self._queries(X), n_neighbors, mode)

    def _queries(self, X: Any) -> Any:
        """Queries; a tree that was asked for takes dense ones only."""
        if self.algorithm in ("kd_tree", "ball_tree") and is_sparse(X) and not is_sparse(self.model_._fit_X):
            raise ValueError(
                f"algorithm={self.algorithm!r} does not work with sparse queries: make them dense, or set algorithm='brute'."
            )
        return X

    def _rows(self, X: Any) -> Any:
        """The rows, also of a tree or of a model that has them already."""
        if isinstance(X, theirs.KDTree | theirs.BallTree):
            return np.asarray(X.data)
        return X.model_._fit_X if isinstance(X, _Neighbors) else X

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        told = ("effective_metric_", "effective_metric_params_", "n_samples_fit_", "classes_", "outputs_2d_")
        found = {name: getattr(model, name) for name in told if hasattr(model, name)}
        return {**found, "_fit_X": model._fit_X, "_fit_method": model._fit_method}


def _check_mode(mode: Any) -> None:
    if mode not in MODES:
        raise ValueError(f'Unsupported mode, must be one of "connectivity", or "distance" but got "{mode}" instead')


class _Voters(_Neighbors):
    """Neighbors with answers; weights of rows are none of scikit-learn's."""

    def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Keep the rows and their answers.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Answers.
        """
        return DropIn.fit(self, self._rows(X), y)

    def predict(self, X: Any) -> Array:
        """What our model predicts, of the rows of the fit without themselves if X is None."""
        check_is_fitted(self)
        with _weightless():
            return self.model_.predict(self._queries(X))


@contextmanager
def _weightless() -> Iterator[None]:
    """What scikit-learn says of neighbors that all count nothing."""
    try:
        yield
    except ValueError as error:
        if "gives no weight" not in str(error):
            raise
        raise ValueError(
            "All neighbors of some sample is getting zero weights. Please modify 'weights' to avoid this case if you are using "
            f"a user-defined function. {error}"
        ) from error


class KNeighborsClassifier(_Voters, theirs.KNeighborsClassifier):
    """The vote of the nearest rows."""

    _ours = ours.KNeighborsClassifier
    _table: ClassVar[Table] = {**ROWS, "weights": Same()}

    def predict_proba(self, X: Any) -> Any:
        """Shares of the votes, as `predict` takes its rows."""
        check_is_fitted(self)
        with _weightless():
            return self.model_.predict_proba(self._queries(X))


class KNeighborsRegressor(_Voters, theirs.KNeighborsRegressor):
    """The average of the nearest rows."""

    _ours = ours.KNeighborsRegressor
    _table: ClassVar[Table] = {**ROWS, "weights": Same()}


class NearestNeighbors(_Neighbors, Alone, theirs.NearestNeighbors):
    """The nearest rows themselves."""

    _ours = ours.NearestNeighbors
    _table: ClassVar[Table] = {**ROWS, "radius": Same()}

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """As `DropIn.fit`; y is not used."""
        return super().fit(self._rows(X))

    def radius_neighbors(
        self, X: Any = None, radius: Any = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """All rows within a distance, in the order of their numbers or, if `sort_results`, the nearest first."""
        check_is_fitted(self)
        if not return_distance and sort_results and self.metric != "precomputed":
            raise ValueError("return_distance must be True if sort_results is True.")
        graph = self.radius_neighbors_graph(X, radius, "distance", sort_results)
        parts = [np.empty(graph.shape[0], dtype=object) for _ in range(2)]
        for i, (a, b) in enumerate(itertools.pairwise(graph.indptr)):
            parts[0][i], parts[1][i] = graph.data[a:b], graph.indices[a:b].astype(np.intp)
        return tuple(parts) if return_distance else parts[1]

    def radius_neighbors_graph(
        self, X: Any = None, radius: Any = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """All rows within a distance as a sparse matrix, as `radius_neighbors` takes its queries."""
        check_is_fitted(self)
        _check_mode(mode)
        graph = self.model_.radius_neighbors_graph(self._queries(X), radius, mode)
        if not sort_results:
            graph.sort_indices()
        return graph


def _width(value: Any, data: Data) -> Any:
    """Scott's and Silverman's rules are here without the spread of the rows."""
    if not isinstance(value, str):
        return value
    rows, columns = np.shape(data.X)
    factor = 1.0 if value == "scott" else (columns + 2) / 4
    return float((rows * factor) ** (-1 / (columns + 4)))


class KernelDensity(DropIn, theirs.KernelDensity):
    """A bump on every row; the sum is exact."""

    _ours = density.KernelDensity
    _table: ClassVar[Table] = {
        "bandwidth": By(_width, "the same; the rules take rows of spread one, as scikit-learn's do"),
        "algorithm": Free("sums are exact"),
        "kernel": Same(),
        "metric": By(lambda value, data: _norm(value, data), "the same: Euclidean, Manhattan or Chebyshev distances"),
        "atol": Free("sums are exact"),
        "rtol": Free("sums are exact"),
        "breadth_first": Free("there is no tree to walk"),
        "leaf_size": Free("there is no tree to walk"),
        "metric_params": Only((None,), "the Euclidean distance has none"),
    }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """As `DropIn.fit`; y is not used."""
        return super().fit(X, None, sample_weight)

    def _learn(self, data: Data) -> Any:
        return fresh(self._ours, **self._settings(data)).fit(data.X, None, data.sample_weight)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {"bandwidth_": model.bandwidth_}

    def score_samples(self, X: Any) -> Array:
        """Logarithm of the density at each row; of distances that are not Euclidean, it has no integral of one there."""
        check_is_fitted(self)
        d = self.model_.n_features_in_
        taken = density._log_ball(self.model_.metric, d) - density._log_ball("euclidean", d)
        return np.asarray(self.model_.score_samples(X) + taken)

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of the logarithms of the densities."""
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Rows drawn from the density, with its own distance, for the Gaussian and the flat kernel.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None
            Draws them.

        Returns
        -------
        array of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if self.kernel not in ("gaussian", "tophat"):
            raise NotImplementedError(
                f"Rows are drawn for the kernels 'gaussian' and 'tophat' only; got {self.kernel!r}."
            )
        return np.asarray(self.model_.sample(n_samples, random_state))


NORMS = {
    **dict.fromkeys(("euclidean", "l2", "minkowski", "p"), "euclidean"),
    **dict.fromkeys(("manhattan", "cityblock", "l1"), "manhattan"),
    **dict.fromkeys(("chebyshev", "infinity"), "chebyshev"),
}


def _norm(value: Any, data: Data) -> str:
    """The distance of a density, of those that are a norm."""
    if data.estimator.algorithm == "kd_tree" and value not in theirs.KDTree.valid_metrics:
        raise ValueError(f"invalid metric: {value!r} for algorithm='kd_tree'.")
    if value in NORMS:
        return NORMS[value]
    raise NotImplementedError(
        f"KernelDensity(metric={value!r}) is not offered by certifit.sklearn: densities are of {', '.join(NORMS)}. Use one of "
        "them, or scikit-learn's own class."
    )


def _shares(value: Any, data: Data) -> Any:
    """Probabilities of the classes, by scikit-learn's names for them."""
    _, counts = np.unique(np.asarray(data.y), return_counts=True)
    if isinstance(value, str):
        return None if value == "uniform" else counts / counts.sum()
    priors = np.asarray(value, dtype=np.float64)
    if (priors < 0).any():
        raise ValueError(f"priors must be non-negative; got {value!r}.")
    if not np.isclose(priors.sum(), 1.0):
        warnings.warn("The priors do not sum to 1. Normalizing such that it sums to one.", UserWarning, stacklevel=6)
    return priors / priors.sum()


class NearestCentroid(DropIn, theirs.NearestCentroid):
    """The class with the nearest mean; with the Manhattan distance, median.

    Predictions follow scikit-learn's rule, which measures distances in deviations within classes once the priors differ and
    may shrink the centroids; `model_` gives the probabilities of Gaussians with one variance.
    """

    _ours = centroid.NearestCentroid
    _table: ClassVar[Table] = {
        "metric": Here("`model_` has means and Euclidean distances; centroids and predictions follow the metric"),
        "shrink_threshold": Here("`model_` has the means; centroids and predictions are shrunken"),
        "priors": By(_shares, "the same; None where scikit-learn says 'uniform', shares for 'empirical'"),
    }

    def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Find the centroids.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Labels.
        """
        return DropIn.fit(self, X, labels(y))

    def _learn(self, data: Data) -> Any:
        rows = data.X.toarray() if is_sparse(data.X) else data.X
        model = fresh(self._ours, **self._settings(data)).fit(rows, data.y)
        if not np.ptp(np.asarray(rows, dtype=np.float64), axis=0).any():
            raise ValueError("All features have zero variance. Division by zero.")
        return model

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        rows = np.asarray(data.X.toarray() if is_sparse(data.X) else data.X, dtype=np.float64)
        codes = np.searchsorted(model.classes_, np.asarray(data.y))
        counts, K = np.bincount(codes), model.classes_.shape[0]
        centers = np.array(model.centroids_, dtype=np.float64)
        if self.metric == "manhattan":
            centers = np.array([np.median(rows[codes == k], axis=0) for k in range(K)])
        spread = np.sqrt(((rows - centers[codes]) ** 2).sum(axis=0) / (rows.shape[0] - K))
        if (spread == 0).any():
            warnings.warn(
                "self.within_class_std_dev_ has at least 1 zero standard deviation. Inputs within the same classes for at "
                "least 1 feature are identical.",
                UserWarning,
                stacklevel=4,
            )
        # Tibshirani, Hastie, Narasimhan and Chu (2002): t = (class mean − mean) / (m·(s + median s)), drawn toward zero
        unit = np.sqrt(1.0 / counts - 1.0 / rows.shape[0])[:, None] * (spread + np.median(spread))
        middle = rows.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = (centers - middle) / unit
        if self.shrink_threshold:
            apart = np.sign(apart) * np.maximum(np.abs(apart) - self.shrink_threshold, 0.0)
            centers = middle + unit * apart
        return {
            "classes_": model.classes_,
            "class_prior_": model.priors_,
            "centroids_": centers,
            "within_class_std_dev_": spread,
            "deviations_": apart,
        }
