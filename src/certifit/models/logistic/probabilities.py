"""Scores as logarithms of odds: what linear and kernel models of the logistic loss say about probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from certifit._types import Array
from certifit.base import HighestScoreMixin

__all__ = ["LogisticScores"]


class LogisticScores(HighestScoreMixin):
    """Probabilities of a classifier whose scores are those of the logistic loss, or of the softmax."""

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of `classes_`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class, accurate where the probability itself rounds to 0 or 1."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))
