"""Probabilities for classifiers that have scores or labels alone, and how files of earlier contests hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from certifit._types import Array, Matrix
from certifit.models.reductions.calibrated import CalibratedClassifier, scores_of
from certifit.names import stored

__all__ = ["Calibrated", "calibrated"]


def calibrated(estimator: Any) -> CalibratedClassifier:
    """The classifier with a logistic regression on its scores of rows left out."""
    return CalibratedClassifier(estimator, method="matrix", cv=3)


@stored("Calibrated")
class Calibrated(ClassifierMixin, BaseEstimator):
    """A calibrated classifier as contests of 0.1.0 stored it; it is read, and no longer fitted.

    Attributes
    ----------
    estimator_ : the classifier
    calibrator_ : LogisticRegression on its scores
    classes_ : array
    """

    estimator_: Any
    calibrator_: Any
    classes_: Array

    def predict_proba(self, X: Matrix) -> Array:
        """Probabilities of `classes_`."""
        return np.asarray(self.calibrator_.predict_proba(scores_of(self.estimator_, X, self.classes_)))

    def predict(self, X: Matrix) -> Array:
        """The most probable class."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
