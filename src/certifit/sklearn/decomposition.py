"""``sklearn.decomposition``: principal components, from all rows or from blocks of them, and singular vectors without a mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.decomposition as theirs

from certifit._types import Array, is_sparse
from certifit.certificate import Certificate
from certifit.models.embedding import pca, svd
from certifit.sklearn.translation import COPY_X, By, Data, Free, Here, Of, Same, Table, fresh
from certifit.sklearn.translation.asking import Alone
from certifit.sklearn.translation.table import array

__all__ = ["PCA", "IncrementalPCA", "TruncatedSVD"]

SOLVERS = {
    "auto": "auto",
    "full": "svd",
    "covariance_eigh": "covariance",
    "arpack": "auto",
    "randomized": "auto",
}
NAMES = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_")


def _shape(X: Any) -> tuple[int, int]:
    return tuple(X.shape) if hasattr(X, "shape") else np.shape(array(X))  # type: ignore[return-value]


def _directions(value: Any, data: Data) -> Any:
    """How many directions, within scikit-learn's limits and in its words."""
    shape = _shape(data.X)
    if len(shape) != 2:  # the gate of the model will speak
        return None
    least, solver = min(shape), data.estimator.svd_solver
    if value is None:
        return max(1, least - (solver == "arpack"))
    named = "full" if solver == "auto" else solver
    if value == "mle" and solver in ("arpack", "randomized"):
        raise ValueError(f"n_components={value!r} cannot be a string with svd_solver={solver!r}")
    if value == "mle":
        if shape[0] < shape[1]:
            raise ValueError("n_components='mle' is only supported if n_samples >= n_features")
        return value
    if value == 0 and solver not in ("arpack", "randomized"):
        raise NotImplementedError(
            "PCA(n_components=0) is not offered by certifit.sklearn: give a number from 1 on or a share of the variance, or use "
            "scikit-learn's own class."
        )
    if isinstance(value, (int, np.integer)):
        low = 0 if solver not in ("arpack", "randomized") else 1
        if not low <= value <= least:
            raise ValueError(
                f"n_components={value!r} must be between {low} and min(n_samples, n_features)={least} with svd_solver={named!r}"
            )
        if solver == "arpack" and value == least:
            raise ValueError(
                f"n_components={value!r} must be strictly less than min(n_samples, n_features)={least} with svd_solver={solver!r}"
            )
    elif solver in ("arpack", "randomized"):
        raise ValueError(f"n_components={value!r} must be an integer with svd_solver={solver!r}")
    return value


class _Linear(Alone):
    """Coordinates along directions; what is made of these is scikit-learn's own."""

    def _judge(self, certificate: Certificate | None) -> None:
        """Scikit-learn's tolerance is that of an eigenvalue solver: it promises nothing about what is discarded."""
        if certificate is not None:
            self.certificate_ = certificate


class PCA(_Linear, theirs.PCA):
    """Principal components."""

    _ours = pca.PCA
    _table: ClassVar[Table] = {
        "n_components": By(_directions, "the same, from 1 on"),
        "whiten": Same(),
        "svd_solver": Of(
            lambda value, data: SOLVERS[value], "the solver that suits the shape, or the one named", "solver"
        ),
        "copy": COPY_X,
        "tol": Free("directions are exact, or as near as the certificate says"),
        "iterated_power": Free("a randomized solver goes on until its residuals are small"),
        "n_oversamples": Free("a part of the solver"),
        "power_iteration_normalizer": Free("a part of the solver"),
        "random_state": Same(),
    }

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        n, d = _shape(data.X)
        found = {name: getattr(model, name) for name in (*NAMES, "mean_", "n_components_", "noise_variance_")}
        return {**found, "n_samples_": n, "_fit_svd_solver": _their_solver(self, n, d)}

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and give the coordinates."""
        return np.asarray(self.fit(X).model_.transform(X))


def _their_solver(estimator: Any, n: int, d: int) -> str:
    """Which of its solvers scikit-learn would take: its own methods ask."""
    if estimator.svd_solver != "auto":
        return str(estimator.svd_solver)
    if d <= 1000 and n >= 10 * d:
        return "covariance_eigh"
    wanted = estimator.n_components
    few = isinstance(wanted, (int, np.integer)) and 1 <= wanted < 0.8 * min(n, d)
    return "randomized" if max(n, d) > 500 and few else "full"


class IncrementalPCA(_Linear, theirs.IncrementalPCA):
    """Principal components of rows that come in blocks; those of all rows, where scikit-learn's are near them."""

    _ours = pca.IncrementalPCA
    _table: ClassVar[Table] = {
        "n_components": Here("``n_components``; where none is given, as many as the first block allows"),
        "whiten": Same(),
        "copy": COPY_X,
        "batch_size": Same(),
    }

    def fit(self, X: Any, y: Any = None) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """As `DropIn.fit`, block after block; y is not used."""
        shape = _shape(X)
        self.batch_size_ = self.batch_size if self.batch_size is not None else 5 * (shape[1] if len(shape) == 2 else 1)
        return super().fit(X)

    def _learn(self, data: Data) -> Any:
        n, d = _shape(data.X) if len(_shape(data.X)) == 2 else (0, 0)
        wanted = _number(self.n_components, min(n, self.batch_size_) if self.n_components is not None else n, d)
        return fresh(self._ours, **self._settings(data), n_components=wanted).fit(data.X)

    def partial_fit(self, X: Any, y: Any = None, check_input: bool = True) -> Any:
        """Learn from one more block of rows."""
        if is_sparse(X):
            raise TypeError(
                "IncrementalPCA.partial_fit does not support sparse input. Either convert data to dense or use "
                "IncrementalPCA.fit to do so in batches."
            )
        self._checked(self)
        data = Data(self, X)
        shape = _shape(X)
        known = "model_" in vars(self)
        if known and self.n_components is not None and self.n_components != self.n_components_:
            raise ValueError(
                f"Number of input features has changed from {self.n_components_} to {self.n_components} between calls to "
                "partial_fit! Try setting n_components to a fixed value."
            )
        if not known:
            wanted = _number(self.n_components, shape[0], shape[1]) if len(shape) == 2 else None
            model = fresh(self._ours, **self._settings(data), n_components=wanted)
        else:
            model = self.model_
        self._keep(model.partial_fit(X), data)
        return self

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        found = {name: getattr(model, name) for name in (*NAMES, "mean_", "n_components_", "noise_variance_")}
        return {**found, "n_samples_seen_": int(model.n_samples_seen_), "var_": model.variances()}

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and give the coordinates."""
        return np.asarray(self.fit(X).transform(X))


def _number(wanted: Any, rows: int, columns: int) -> int:
    """How many directions the first block of rows allows, in scikit-learn's words."""
    if wanted is None:
        return max(1, min(rows, columns))
    if not 1 <= wanted <= columns:
        raise ValueError(
            f"n_components={wanted!r} invalid for n_features={columns}, need more rows than columns for IncrementalPCA processing"
        )
    if wanted > rows:
        raise ValueError(
            f"n_components={wanted!r} must be less or equal to the batch number of samples {rows} for the first partial_fit call."
        )
    return int(wanted)


def _vectors(value: int, data: Data) -> int:
    """As many singular vectors as there are columns at most, in scikit-learn's words."""
    shape = _shape(data.X)
    if len(shape) != 2 or 0 in shape or getattr(getattr(data.X, "dtype", None), "kind", "") == "c":
        return value  # the gate of the model will speak
    if value > shape[1]:
        raise ValueError(f"n_components({value}) must be <= n_features({shape[1]}).")
    if data.estimator.algorithm == "arpack" and value >= min(shape):
        raise ValueError(
            f"n_components({value}) must be < min(n_samples, n_features)={min(shape)} with algorithm='arpack'."
        )
    return value


class TruncatedSVD(_Linear, theirs.TruncatedSVD):
    """Singular vectors of the rows as they are."""

    _ours = svd.TruncatedSVD
    _table: ClassVar[Table] = {
        "n_components": By(_vectors, "the same"),
        "algorithm": Here(
            'exact, by the solver that suits the shape; "arpack" allows no more vectors than scikit-learn\'s'
        ),
        "n_iter": Free("a part of the solver"),
        "n_oversamples": Free("a part of the solver"),
        "power_iteration_normalizer": Free("a part of the solver"),
        "random_state": Same(),
        "tol": Free("directions are exact, or as near as the certificate says"),
    }

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {name: getattr(model, name) for name in NAMES}

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit, and give the coordinates."""
        return np.asarray(self.fit(X).model_.transform(X))
