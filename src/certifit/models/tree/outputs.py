"""What the leaves of trees say, target by target: shares of classes, or numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from certifit._types import Array
from certifit.data.gate import like_input
from certifit.models.tree.rows import as_columns

__all__ = ["OfClasses", "OfNumbers", "by_target", "class_lists", "labels_of"]


def class_lists(classes: Any) -> list[Array]:
    """The classes of each target; `classes` is an array, or of several targets a list of arrays."""
    return classes if isinstance(classes, list) else [classes]


def by_target(values: Array, classes: Any) -> list[Array]:
    """Shares of the classes of all targets, cut into those of each."""
    ends = np.cumsum([each.shape[0] for each in class_lists(classes)])
    return list(np.split(values, ends[:-1], axis=1))


def labels_of(values: Array, classes: Any) -> Array:
    """The class of the largest share: of shape (n,), or of several targets (n, n_outputs)."""
    parts = zip(class_lists(classes), by_target(values, classes), strict=True)
    said = [each[np.argmax(part, axis=1)] for each, part in parts]
    return np.stack(said, axis=1) if isinstance(classes, list) else said[0]


class OfClasses(ClassifierMixin):
    """A tree or a forest of classes: probabilities and labels from the mean over its trees."""

    classes_: Any
    _mean: Any

    @property
    def _class_counts(self) -> Array:
        """The number of classes of each target, for the native code."""
        return np.array([each.shape[0] for each in class_lists(self.classes_)], dtype=np.int32)

    def _truth(self, y: Array) -> Array:
        """Targets as the error of a leaf counts them: numbers of classes; a new class is always wrong."""
        columns = y.T if y.ndim == 2 else [y]
        places = [{label: k for k, label in enumerate(each.tolist())} for each in class_lists(self.classes_)]
        found = [
            [place.get(label, -1) for label in column.tolist()] for place, column in zip(places, columns, strict=True)
        ]
        return as_columns(np.array(found, dtype=np.float64).T)

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes in the leaf of each row, their mean over the trees; of several targets a list of such arrays."""
        shares = like_input(X, self._mean(X))
        return by_target(shares, self.classes_) if isinstance(self.classes_, list) else shares

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            logarithms = np.log(like_input(X, self._mean(X)))
        return by_target(logarithms, self.classes_) if isinstance(self.classes_, list) else logarithms

    def predict(self, X: Any) -> Array:
        """The class with the largest share; of several targets a column each."""
        return labels_of(self._mean(X), self.classes_)


class OfNumbers(RegressorMixin):
    """A tree or a forest of numbers: the mean over its trees."""

    n_outputs_: int
    _mean: Any
    _class_counts = np.empty(0, dtype=np.int32)

    def _truth(self, y: Array) -> Array:
        """Targets as the error of a leaf counts them."""
        return as_columns(y)

    def predict(self, X: Any) -> Array:
        """Value of the leaf of each row, its mean over the trees; of several targets a column each."""
        values = like_input(X, self._mean(X))
        return values[:, 0] if values.shape[1] == 1 else values
