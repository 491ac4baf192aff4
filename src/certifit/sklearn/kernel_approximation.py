"""``sklearn.kernel_approximation``: features whose products are nearly those of a kernel."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import sklearn.kernel_approximation as theirs
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit import kernels
from certifit._types import Array, is_sparse
from certifit.representation.kernels import approximation as ours
from certifit.sklearn.translation import By, Data, Free, Here, Same, Table, fresh, same
from certifit.sklearn.translation.asking import Alone

__all__ = ["Nystroem", "RBFSampler", "kernel_of"]


def kernel_of(value: Any, data: Data) -> Any:
    """Scikit-learn's kernel with its parameters as one of ours; what we have no name for is asked of scikit-learn."""
    estimator = data.estimator
    gamma = "auto" if estimator.gamma is None else estimator.gamma  # one over the number of columns, here and there
    if value == "rbf" and gamma != 0:
        return kernels.RBF(gamma=gamma)
    if value == "laplacian" and gamma != 0:
        return kernels.Laplacian(gamma=gamma)
    if value == "linear":
        return kernels.Linear()
    if value == "precomputed":
        return value
    if callable(value):
        return partial(pairwise_kernels, metric=value, **(estimator.kernel_params or {}))
    given = {name: getattr(estimator, name) for name in ("gamma", "degree", "coef0")}
    given = {name: number for name, number in given.items() if number is not None}
    return partial(pairwise_kernels, metric=value, filter_params=True, **given)


class Nystroem(Alone, theirs.Nystroem):
    """Coordinates in the span of rows that are drawn; the products are scikit-learn's, the axes are not."""

    _ours = ours.Nystroem
    _table: ClassVar[Table] = {
        "kernel": By(
            kernel_of, "the same; of one that is not positive semidefinite the absolute value, with a warning"
        ),
        "gamma": Here("a part of the kernel"),
        "coef0": Here("a part of the kernel"),
        "degree": Here("a part of the kernel"),
        "kernel_params": Here("a part of the kernel"),
        **same("n_components", "random_state"),
        "n_jobs": Free("the kernel has threads of its own"),
    }

    def _learn(self, data: Data) -> Any:
        parts = (self.gamma, self.coef0, self.degree)
        if (callable(self.kernel) or self.kernel == "precomputed") and any(part is not None for part in parts):
            raise ValueError(
                "Don't pass gamma, coef0 or degree to Nystroem if using a callable or precomputed kernel: a function has them in "
                "kernel_params."
            )
        try:
            return super()._learn(data)
        except ValueError as error:
            if "not positive semidefinite" not in str(error) or self.kernel == "precomputed":
                raise
        warnings.warn(
            f"Nystroem(kernel={self.kernel!r}): the kernel is not positive semidefinite on these rows and has no features. Those "
            "of its absolute value on the landmarks, √(K²), are given instead.",
            UserWarning,
            stacklevel=4,
        )
        return self._of_absolute_value(data)

    def _of_absolute_value(self, data: Data) -> Any:
        """Our model of k(x, C) |k(C, C)|⁻¹ k(C, z), whose Gram matrix on landmarks C is |k(C, C)|."""
        rows = data.X.tocsr() if is_sparse(data.X) else np.asarray(data.X, dtype=np.float64)
        number = min(self.n_components, rows.shape[0])
        chosen = check_random_state(self.random_state).permutation(rows.shape[0])[:number]
        landmarks, settings = rows[chosen], self._settings(data)
        kernel = settings["kernel"]
        values, vectors = np.linalg.eigh(np.asarray(kernel(landmarks, landmarks), dtype=np.float64))
        large = np.abs(values) > 1e-12 * np.abs(values).max()
        root = vectors[:, large] / np.sqrt(np.abs(values[large]))

        def absolute(A: Any, B: Any) -> Array:
            left, right = (np.asarray(kernel(part, landmarks)) @ root for part in (A, B))
            return np.asarray(left @ right.T)

        model = fresh(self._ours, **{**settings, "kernel": absolute, "n_components": number}).fit(landmarks)
        model.component_indices_ = chosen[model.component_indices_]
        return model

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        rows = model.points_.rows if model.points_.center is None else model.points_.rows + model.points_.center
        if model.points_.precomputed:
            rows = np.asarray(data.X)[model.component_indices_]
        return {
            "components_": rows,
            "component_indices_": model.component_indices_,
            "_n_features_out": model._n_features_out,
        }

    def transform(self, X: Any) -> Array:
        """The features of rows."""
        check_is_fitted(self)
        return np.asarray(self.model_.transform(X))


class RBFSampler(Alone, theirs.RBFSampler):
    """Random waves whose products have the Gaussian kernel as their mean; the draws are scikit-learn's."""

    _ours = ours.RandomFourierFeatures
    _table: ClassVar[Table] = {"gamma": Same(), "n_components": Same(), "random_state": Same()}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {
            "random_weights_": model.waves_,
            "random_offset_": model.offsets_,
            "_n_features_out": model._n_features_out,
            "_gamma": model.gamma_,
        }

    def transform(self, X: Any) -> Array:
        """The waves at each row."""
        check_is_fitted(self)
        return np.asarray(self.model_.transform(X))
