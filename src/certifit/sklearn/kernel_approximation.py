"""``sklearn.kernel_approximation``: features whose products are nearly those of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import sklearn.kernel_approximation as theirs
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from certifit import kernels
from certifit._types import Array
from certifit.representation.kernels import approximation as ours
from certifit.sklearn.translation import By, Data, Free, Here, Same, Table, same
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
        "kernel": By(kernel_of, "the same"),
        "gamma": Here("a part of the kernel"),
        "coef0": Here("a part of the kernel"),
        "degree": Here("a part of the kernel"),
        "kernel_params": Here("a part of the kernel"),
        **same("n_components", "random_state"),
        "n_jobs": Free("the kernel has threads of its own"),
    }

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        rows = model.points_.rows if model.points_.center is None else model.points_.rows + model.points_.center
        return {"components_": rows, "_n_features_out": model._n_features_out}

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
