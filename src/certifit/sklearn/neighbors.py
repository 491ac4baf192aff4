"""``sklearn.neighbors``: the nearest rows, found exactly, and densities around rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.neighbors as theirs
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.models.bayes import density
from certifit.models.bayes.discriminant import centroid
from certifit.models.neighbors import model as ours
from certifit.models.neighbors.distance import NAMES
from certifit.sklearn.translation import By, Data, DropIn, Free, Here, Only, Row, Same, Table, fresh
from certifit.sklearn.translation.asking import Alone, AsksForValues

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "KernelDensity", "NearestCentroid", "NearestNeighbors"]

METRICS = (*NAMES, "minkowski", "precomputed")


def _metric(value: Any, data: Data) -> Any:
    if callable(value) or value in METRICS:
        return value
    raise NotImplementedError(
        f"{type(data.estimator).__name__}(metric={value!r}) is not offered by certifit.sklearn: it has "
        f"{', '.join(METRICS)} and functions of two rows. Use one of them, or scikit-learn's own class."
    )


def _further(value: Any, data: Data) -> dict[str, Any]:
    """Further arguments of the distance; the power is a parameter of its own in ours."""
    further = dict(value or {})
    power = {"p": further.pop("p")} if "p" in further and not callable(data.estimator.metric) else {}
    if further.get("w") is not None and not callable(data.estimator.metric):
        raise NotImplementedError(
            f"{type(data.estimator).__name__}(metric_params={value!r}) is not offered by certifit.sklearn: distances have no "
            "weights. Multiply the columns by the p-th roots of the weights, or use scikit-learn's own class."
        )
    return {"metric_params": further or None, **power}


ROWS: dict[str, Row] = {
    "n_neighbors": Same(),
    "algorithm": Free("the neighbors are the same, and found exactly; a tree is used where it pays"),
    "leaf_size": Free("the neighbors do not depend on it"),
    "p": By(lambda value, data: 2.0 if value is None else float(value), "the same"),
    "metric": By(_metric, f"the same: {', '.join(METRICS)} or a function of two rows"),
    "metric_params": By(_further, "the same for a function; of others the power only", None),
    "n_jobs": Same(),
}


class _Neighbors(DropIn):
    """Neighbors are asked of our model."""

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
        return self.model_.kneighbors(X, n_neighbors, return_distance)

    def kneighbors_graph(self, X: Any = None, n_neighbors: Any = None, mode: str = "connectivity") -> Any:
        """The nearest rows as a sparse matrix, as `kneighbors` takes its queries."""
        check_is_fitted(self)
        return self.model_.kneighbors_graph(X, n_neighbors, mode)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        told = ("effective_metric_", "effective_metric_params_", "n_samples_fit_", "classes_", "outputs_2d_")
        found = {name: getattr(model, name) for name in told if hasattr(model, name)}
        return {**found, "_fit_X": model._fit_X, "_fit_method": model._fit_method}


class _Voters(_Neighbors, AsksForValues):
    """Neighbors with answers; weights of rows are none of scikit-learn's."""

    def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """Keep the rows and their answers.

        Parameters
        ----------
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Answers.
        """
        return DropIn.fit(self, X, y)


class KNeighborsClassifier(_Voters, theirs.KNeighborsClassifier):
    """The vote of the nearest rows."""

    _ours = ours.KNeighborsClassifier
    _table: ClassVar[Table] = {**ROWS, "weights": Same()}

    def predict_proba(self, X: Any) -> Any:
        """Shares of the votes, as `predict` takes its rows."""
        check_is_fitted(self)
        return self.model_.predict_proba(X)


class KNeighborsRegressor(_Voters, theirs.KNeighborsRegressor):
    """The average of the nearest rows."""

    _ours = ours.KNeighborsRegressor
    _table: ClassVar[Table] = {**ROWS, "weights": Same()}


class NearestNeighbors(_Neighbors, Alone, theirs.NearestNeighbors):
    """The nearest rows themselves."""

    _ours = ours.NearestNeighbors
    _table: ClassVar[Table] = {**ROWS, "radius": Same()}

    def radius_neighbors(
        self, X: Any = None, radius: Any = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """All rows within a distance, always sorted, the nearest first."""
        check_is_fitted(self)
        if not return_distance and sort_results:
            raise ValueError("return_distance must be True if sort_results is True.")
        return self.model_.radius_neighbors(X, radius, return_distance, sort_results)

    def radius_neighbors_graph(
        self, X: Any = None, radius: Any = None, mode: str = "connectivity", sort_results: bool = False
    ) -> Any:
        """All rows within a distance as a sparse matrix, as `radius_neighbors` takes its queries."""
        check_is_fitted(self)
        return self.model_.radius_neighbors_graph(X, radius, mode)


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
        "kernel": By(lambda value, data: _shape(value, data), "the same, without the cosine"),
        "metric": Only(("euclidean", "l2", "minkowski"), "distances are Euclidean"),
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
        """Logarithm of the density at each row."""
        check_is_fitted(self)
        return np.asarray(self.model_.score_samples(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Sum of the logarithms of the densities."""
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Rows drawn from the density, for the Gaussian and the flat kernel.

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


def _shape(value: Any, data: Data) -> Any:
    if value == "cosine":
        raise NotImplementedError(
            "KernelDensity(kernel='cosine') is not offered by certifit.sklearn: use 'epanechnikov', which is close to it, or "
            "scikit-learn's own class."
        )
    return value


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
        return DropIn.fit(self, X, y)

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
