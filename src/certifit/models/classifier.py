"""What all linear classifiers share: labels, class weights, scores and decisions.

Labels of any type become class numbers 0 … K−1 in sorted order. A binary model has one score, positive for the second
class; a model of K > 2 classes has K scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.base import CertifiedEstimator
from certifit.validation import check_real, check_x, check_xy

__all__ = ["LinearClassifier", "check_labels", "class_weights"]


def check_labels(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, class_weight: Any = None
) -> tuple[Matrix, Array, Array, Array]:
    """Validated rows, class numbers, weights (class weights included) and the sorted classes that have weight."""
    X, y, weight = check_xy(estimator, X, y, sample_weight=sample_weight, numeric_target=False)
    check_classification_targets(y)
    classes = np.unique(y)
    if classes.shape[0] < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least 2 classes, but the data has one class only: "
            f"{classes.tolist()[0]!r}. (Rows of weight zero do not count.)"
        )
    # Two classes need no search, and a search needs no sorting of all labels.
    codes = (y == classes[1]).astype(np.intp) if classes.shape[0] == 2 else np.searchsorted(classes, y)
    weight = weight * class_weights(class_weight, classes, codes, weight)[codes]
    if not (np.bincount(codes, weights=weight, minlength=classes.shape[0]) > 0).all():
        raise ValueError("class_weight gives a class weight 0; drop the rows of that class instead.")
    return X, codes, weight, classes


def class_weights(class_weight: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """The factor of each class: given by a dictionary, or "balanced" so that all classes weigh the same."""
    if class_weight is None:
        return np.ones(classes.shape[0])
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dictionary; got {class_weight!r}.")
        totals = np.bincount(codes, weights=weight, minlength=classes.shape[0])
        return np.asarray(weight.sum() / (classes.shape[0] * totals))
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be None, 'balanced' or a dictionary; got {class_weight!r}.")
    known = list(classes.tolist())
    unknown = [label for label in class_weight if label not in known]
    if unknown:
        raise ValueError(f"class_weight names classes that are not in y: {unknown!r}. The classes are {known!r}.")
    for label, factor in class_weight.items():
        check_real(f"class_weight[{label!r}]", factor, low=0, open_low=True, open_high=True)
    return np.array([float(class_weight.get(label, 1.0)) for label in known])


class LinearClassifier(ClassifierMixin, CertifiedEstimator):
    """Scores X·coefᵀ + intercept and the decision they stand for; subclasses fit `coef_` and `intercept_`.

    Attributes
    ----------
    classes_ : array of shape (K,)
    coef_ : array of shape (1, d) for two classes, (K, d) for more
    intercept_ : array of shape (1,) or (K,)
    """

    classes_: Array
    coef_: Array
    intercept_: Array

    def decision_function(self, X: Any) -> Array:
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        X = check_x(self, X, reset=False)
        scores = np.asarray(X @ self.coef_.T.astype(X.dtype, copy=False)) + self.intercept_.astype(X.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of the highest score.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        array of shape (n_samples,)
        """
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
