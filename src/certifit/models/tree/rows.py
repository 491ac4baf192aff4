"""The rows of a fit of trees: checked, with codes in the place of categories and of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from certifit._types import Array, is_sparse
from certifit.data.gate import check_sample_weight
from certifit.models.tree.growing import Categories

__all__ = ["Rows", "read_classes", "read_numbers"]


@dataclass
class Rows:
    """The rows of one fit that count, with codes in the place of categories and of classes."""

    X: Array
    y: Array
    weight: Array
    kept: Array
    """Which of the rows as given have a positive weight."""


def _read(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
    """Table, target as given and weights; categories are kept by the estimator."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give the target values."
        )
    estimator._categories, table = Categories.fit(estimator, X, estimator.categorical_features)
    y = column_or_1d(y, warn=True)
    if y.shape[0] != table.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows: X has {table.shape[0]}, y has {y.shape[0]}. "
            "Found input variables with inconsistent numbers of samples."
        )
    return table, y, check_sample_weight(sample_weight, table.shape[0])


def read_classes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows of positive weight of a classification; sets `classes_`."""
    table, y, weight = _read(estimator, X, y, sample_weight)
    check_classification_targets(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            "Input y contains NaN or infinity: the class of every training row must be known. Drop these rows."
        )
    kept = weight > 0
    if not kept.all():
        # A category only seen in rows of weight zero counts as unseen, exactly as if they had not been given.
        estimator._categories, table = Categories.fit(estimator, _take(X, kept), estimator.categorical_features)
        y, weight = y[kept], weight[kept]
    estimator.classes_, labels = np.unique(y, return_inverse=True)
    if estimator.classes_.shape[0] > 65535:
        raise ValueError(f"y has {estimator.classes_.shape[0]} classes, more than 65535. Is it a regression?")
    return Rows(table, labels.astype(np.int64), weight, kept)


def read_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows of positive weight of a regression."""
    table, y, weight = _read(estimator, X, y, sample_weight)
    if y.dtype.kind not in "fiub":
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must be numeric for a regression; got {y[:1]!r} of dtype {y.dtype}.") from error
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        bad = int(np.flatnonzero(~np.isfinite(y))[0])
        what = "NaN" if np.isnan(y[bad]) else "infinity"
        raise ValueError(
            f"Input y contains {what} (first at row {bad}): the target of a fit must be known. Drop these rows."
        )
    kept = weight > 0
    if not kept.all():
        estimator._categories, table = Categories.fit(estimator, _take(X, kept), estimator.categorical_features)
        y, weight = y[kept], weight[kept]
    return Rows(table, y, weight, kept)


def _take(X: Any, kept: Array) -> Any:
    if is_sparse(X):
        return X.tocsr()[kept]
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals as nw

        return nw.from_native(X, eager_only=True).filter(kept.tolist()).to_native()
    return np.asarray(X)[kept]
