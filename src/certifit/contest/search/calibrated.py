"""Scores of a classifier turned into probabilities.

The classifier is fitted on the parts of a K-fold split; a logistic regression then maps the scores of the rows left out to
classes. A classifier judged on its own training rows looks surer than it is, so the rows left out are what counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from certifit._types import Array, Matrix
from certifit.evaluation.splits.folds import content_folds
from certifit.models.logistic.model import LogisticRegression
from certifit.names import stored

__all__ = ["Calibrated"]


@stored("Calibrated")
class Calibrated(ClassifierMixin, BaseEstimator):
    """A classifier with `decision_function`, or labels alone, made to give probabilities.

    Parameters
    ----------
    estimator : classifier
        Fitted on all rows in the end.
    folds : int, default=3
        Parts of the split that gives the scores of rows left out.

    Attributes
    ----------
    estimator_ : the classifier fitted on all rows
    calibrator_ : LogisticRegression on its scores
    certificate_ : of `estimator_`, where it has one
    classes_ : array
    """

    def __init__(self, estimator: Any, folds: int = 3) -> None:
        self.estimator = estimator
        self.folds = folds

    def fit(self, X: Matrix, y: Array) -> Calibrated:
        """Fit the parts, the calibrator on the scores of rows left out, and the classifier on all rows."""
        self.classes_ = np.unique(y)
        scores = self._left_out(X, np.asarray(y))
        known = np.isfinite(scores).all(axis=1)
        # The alpha keeps the map finite when the scores separate the classes.
        self.calibrator_ = LogisticRegression(alpha=1e-6).fit(scores[known], y[known])
        self.estimator_ = clone(self.estimator).fit(X, y)
        if hasattr(self.estimator_, "certificate_"):
            self.certificate_ = self.estimator_.certificate_
        return self

    def _left_out(self, X: Matrix, y: Array) -> Array:
        """Scores of each row from a classifier that did not see it; NaN where there is none."""
        part = np.empty(y.shape[0], dtype=np.int64)
        for label in self.classes_:
            rows = np.flatnonzero(y == label)
            part[rows] = _dealt(X[rows], y[rows], self.folds)
        scores = np.full((y.shape[0], self._width), np.nan)
        for k in range(self.folds):
            train, test = np.flatnonzero(part != k), np.flatnonzero(part == k)
            if test.size and np.unique(y[train]).shape[0] == self.classes_.shape[0]:
                scores[test] = self._scores(clone(self.estimator).fit(X[train], y[train]), X[test])
        if not np.isfinite(scores).any():  # too few rows to leave any out
            scores = self._scores(clone(self.estimator).fit(X, y), X)
        return scores

    @property
    def _width(self) -> int:
        return 1 if self.classes_.shape[0] == 2 else int(self.classes_.shape[0])

    def _scores(self, model: Any, X: Matrix) -> Array:
        if hasattr(model, "decision_function"):
            return np.asarray(model.decision_function(X), dtype=np.float64).reshape(X.shape[0], -1)
        labels = np.asarray(model.predict(X))
        indicator = (labels[:, None] == self.classes_).astype(np.float64)
        return indicator[:, 1:] if self._width == 1 else indicator

    def predict_proba(self, X: Matrix) -> Array:
        """Probabilities of `classes_`."""
        return np.asarray(self.calibrator_.predict_proba(self._scores(self.estimator_, X)))

    def predict(self, X: Matrix) -> Array:
        """The most probable class."""
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


def _dealt(X: Matrix, y: Array, k: int) -> Array:
    """Fold of each row of one class; copies share a fold, and a class of one distinct row is in the first."""
    try:
        return content_folds(X, y, k)
    except ValueError:
        return np.zeros(y.shape[0], dtype=np.int64)
