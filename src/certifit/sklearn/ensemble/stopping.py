"""Early stopping of boosting by scikit-learn's rule: which rows are set aside, what is watched, and when it is enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split

from certifit._types import Array

__all__ = ["Stopping", "set_aside", "wanted"]

MANY = 10_000


def wanted(estimator: Any, rows: int, given: bool) -> bool:
    """Whether a fit stops early."""
    if given and estimator.early_stopping is False:
        raise ValueError(
            "X_val and y_val are passed to fit while at the same time early_stopping is False. When passing X_val and y_val to "
            "fit, early_stopping should be set to either 'auto' or True."
        )
    return given or (rows > MANY if estimator.early_stopping == "auto" else bool(estimator.early_stopping))


def set_aside(estimator: Any, y: Any, classes: bool, seed: int) -> Array | None:
    """Mark rows as scikit-learn draws them; None where the training rows themselves are watched."""
    if estimator.validation_fraction is None:
        return None
    rows = np.arange(len(y))
    _, chosen = train_test_split(
        rows, test_size=estimator.validation_fraction, stratify=y if classes else None, random_state=seed
    )
    marks = np.zeros(rows.shape[0], dtype=bool)
    marks[chosen] = True
    return marks


@dataclass
class Stopping:
    """Stops when none of the last `patience` scores is better than the one before them by `tol`."""

    model: Any
    scorer: Any
    patience: int
    tol: float
    weighted: bool

    def judge(self, y: Array, scores: Array, weight: Array) -> float | None:
        """The negative score; None leaves it at the loss."""
        if self.scorer is None:
            return None
        told = _Classes(self.model) if hasattr(self.model, "classes_") else _Numbers(self.model)
        truth = self.model.classes_[y.astype(np.intp)] if hasattr(self.model, "classes_") else y
        options = {"sample_weight": weight} if self.weighted else {}
        return -float(self.scorer(told, scores, truth, **options))

    def enough(self, history: list[float]) -> bool:
        """Scores are losses here: better is less."""
        if len(history) <= self.patience + 1:
            return False
        reference = history[-self.patience - 1] - self.tol
        return not any(one < reference for one in history[-self.patience :])


class _Numbers(RegressorMixin, BaseEstimator):
    """An estimator as scorers want it, of whose rows the raw scores are known already."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, scores: Array) -> Array:
        """Numbers by the link of the loss."""
        return np.asarray(self.model._resolved_loss().predict(scores[:, 0].astype(np.float64)))

    def score(self, scores: Array, y: Array, sample_weight: Any = None) -> float:
        """R²."""
        return float(super().score(scores, y, sample_weight))


class _Classes(ClassifierMixin, BaseEstimator):
    """The same for classes."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.classes_ = model.classes_

    def decision_function(self, scores: Array) -> Array:
        """The scores themselves."""
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, scores: Array) -> Array:
        """Probabilities of the logistic or the softmax loss."""
        scores = scores.astype(np.float64)
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        power = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(power / power.sum(axis=1, keepdims=True))

    def predict(self, scores: Array) -> Array:
        """The class of the highest score."""
        return np.asarray(self.classes_[self.predict_proba(scores).argmax(axis=1)])
