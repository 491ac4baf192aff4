"""``sklearn.kernel_ridge``: minimize Σ s_i (y_i − f(x_i))² + alpha·‖f‖² over functions f of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.kernel_ridge as theirs

from certifit._types import is_sparse
from certifit.models.kernel.ridge.model import KernelRidge as OurRidge
from certifit.representation.kernels import Precomputed, resolve_kernel
from certifit.sklearn.kernel_approximation import kernel_of
from certifit.sklearn.translation import By, Data, Here, Table
from certifit.sklearn.translation.asking import AsksForValues

__all__ = ["KernelRidge"]


def _strength(alpha: Any, data: Data) -> float:
    if np.size(alpha) > 1:
        raise NotImplementedError(
            "KernelRidge(alpha=[…]) is not offered by certifit.sklearn: give one number, or fit one model for each target."
        )
    strength = float(np.ravel(alpha)[0]) / data.total
    return strength or NEARLY_NONE * _size(data)


NEARLY_NONE = 1e-11
"""Of the mean of k(x, x): without a penalty, functions that differ by nothing on the rows differ elsewhere."""


def _size(data: Data) -> float:
    """The mean of k(x, x) over the rows."""
    kernel = resolve_kernel(kernel_of(data.estimator.kernel, data))
    if isinstance(kernel, Precomputed):
        own = np.diagonal(np.asarray(data.X, dtype=np.float64))
    else:
        rows = data.X.tocsr() if is_sparse(data.X) else np.asarray(data.X, dtype=np.float64)
        bound = kernel.bound(rows)
        own = bound.own(bound.prepare(rows))
    return float(np.mean(own)) or 1.0


class KernelRidge(AsksForValues, theirs.KernelRidge):
    """Ridge regression on a kernel, without intercept."""

    _ours = OurRidge
    _table: ClassVar[Table] = {
        "alpha": By(_strength, "divided by the sum of the weights; one for all targets, and nearly none for 0"),
        "kernel": By(kernel_of, "the same"),
        "gamma": Here("a part of the kernel"),
        "degree": Here("a part of the kernel"),
        "coef0": Here("a part of the kernel"),
        "kernel_params": Here("a part of the kernel"),
    }
    _always: ClassVar[Mapping[str, Any]] = {"fit_intercept": False, "approximation": "none"}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        weight = np.ones(data.rows) if data.sample_weight is None else np.asarray(data.sample_weight, dtype=np.float64)
        kept, which = (
            weight > 0,
            model._which,
        )  # ours sums over different rows; equal rows share a coefficient by weight
        share = weight[kept] / np.bincount(which, weights=weight[kept])[which]
        dual = np.zeros((data.rows, *model.dual_coef_.shape[1:]))
        dual[kept] = (model.dual_coef_[which].T * share).T
        return {"dual_coef_": dual, "X_fit_": data.X if is_sparse(data.X) else np.asarray(data.X)}
