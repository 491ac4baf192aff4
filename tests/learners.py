"""Learners of a few lines, whose answers are known without a fit."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin


class Mean(RegressorMixin, BaseEstimator):
    """The mean of the targets."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Mean:
        self.mean_ = y.mean()
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.mean_)
