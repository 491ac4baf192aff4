"""The rows of a fit of trees: checked, with codes in the place of categories and of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from certifit._types import Array, is_sparse
from certifit.data.gate import check_sample_weight, numbers_of, target_array
from certifit.models.tree.growing import Categories

__all__ = ["CodedRows", "as_columns", "read_classes", "read_numbers", "take_rows"]


@dataclass
class CodedRows:
    """The rows of one fit that count, with codes in the place of categories and of classes."""

    X: Array
    y: Array
    """One dimension; of several targets a column each."""
    weight: Array
    kept: Array
    """Which of the rows as given have a positive weight."""

    @property
    def truth(self) -> Array:
        """The targets as the native code compares them with predictions: a column each."""
        return as_columns(self.y)


def _read(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
    """Table, target as given and weights; categories are kept by the estimator."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give the target values."
        )
    estimator._categories, table = Categories.fit(estimator, X, estimator.categorical_features)
    y = target_array(y, multi_output=True)
    y = column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y
    if y.shape[0] != table.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows: X has {table.shape[0]}, y has {y.shape[0]}. "
            "Found input variables with inconsistent numbers of samples."
        )
    estimator.n_outputs_ = 1 if y.ndim == 1 else y.shape[1]
    if estimator.n_outputs_ > 1 and estimator.monotone_constraints is not None:
        raise ValueError("monotone_constraints are for one target; y has several: remove the constraints.")
    return table, y, check_sample_weight(sample_weight, table.shape[0])


def as_columns(y: Array) -> Array:
    """Targets as numbers, a column each, rows one after the other."""
    return np.ascontiguousarray(y.reshape(y.shape[0], -1), dtype=np.float64)


def read_classes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> CodedRows:
    """Rows of positive weight of a classification; sets `classes_`, of several targets a list."""
    table, y, weight = _read(estimator, X, y, sample_weight)
    check_classification_targets(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            "Input y contains NaN or infinity: the class of every training row must be known. Drop these rows."
        )
    kept = weight > 0
    if not kept.all():
        # A category only seen in rows of weight zero counts as unseen, exactly as if they had not been given.
        estimator._categories, table = Categories.fit(estimator, take_rows(X, kept), estimator.categorical_features)
        y, weight = y[kept], weight[kept]
    found = [np.unique(column, return_inverse=True) for column in (y.T if y.ndim == 2 else [y])]
    most = max(classes.shape[0] for classes, _ in found)
    if most > 65535:
        raise ValueError(f"y has {most} classes, more than 65535. Is it a regression?")
    if estimator.monotone_constraints is not None and most > 2:
        raise ValueError("monotone_constraints need two classes; y has more: remove the constraints.")
    if y.ndim == 1:
        estimator.classes_, labels = found[0]
    else:
        estimator.classes_, labels = [classes for classes, _ in found], np.stack([codes for _, codes in found], axis=1)
    return CodedRows(table, labels.astype(np.int64), weight, kept)


def read_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any) -> CodedRows:
    """Rows of positive weight of a regression."""
    table, y, weight = _read(estimator, X, y, sample_weight)
    y, kept = numbers_of(y), weight > 0
    if not kept.all():
        estimator._categories, table = Categories.fit(estimator, take_rows(X, kept), estimator.categorical_features)
        y, weight = y[kept], weight[kept]
    return CodedRows(table, y, weight, kept)


def take_rows(X: Any, kept: Array) -> Any:
    """Some rows of an array, a sparse matrix or a frame."""
    if is_sparse(X):
        return X.tocsr()[kept]
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals as nw

        return nw.from_native(X, eager_only=True).filter(kept.tolist()).to_native()
    return np.asarray(X)[kept]
