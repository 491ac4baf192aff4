"""What all linear classifiers share: labels, class weights, scores and decisions.

Labels of any type become class numbers 0 … K−1 in sorted order. A binary model has one score, positive for the second
class; a model of K > 2 classes has K scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator, HighestScoreMixin, TakesSparse
from certifit.data.gate import check_x

__all__ = ["LinearClassifier"]


class LinearClassifier(HighestScoreMixin, TakesSparse, ClassifierMixin, CertifiedEstimator):
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
        """Scores: shape (n,) for two classes (positive: the second class), (n, K) for more."""
        check_is_fitted(self)
        X = check_x(self, X, reset=False)
        scores = np.asarray(X @ self.coef_.T.astype(X.dtype, copy=False)) + self.intercept_.astype(X.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores
