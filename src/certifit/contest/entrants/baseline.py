"""The trivial entrant: one answer for every row. Whoever does not beat it has learned nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.contest.entrants.base import Conditions, Encoded, Entrant, Path
from certifit.names import stored

__all__ = ["ENTRANTS", "Constant"]


@stored("ConstantModel")
class Constant(BaseEstimator):
    """The best constant answer: the shares of the classes, the mean, or the median.

    Parameters
    ----------
    answer : {"shares", "mean", "median"}
        Which constant is best depends on the loss: shares for log loss, the mean for squared, the median for absolute error.
    """

    def __init__(self, answer: str = "shares") -> None:
        self.answer = answer

    def fit(self, X: Matrix, y: Array) -> Constant:
        """Keep the constant."""
        if self.answer == "shares":
            self.classes_, counts = np.unique(y, return_counts=True)
            self.value_ = counts / counts.sum()
            objective = float(-(self.value_ @ np.log(self.value_)))
        else:
            self.value_ = np.asarray(np.mean(y) if self.answer == "mean" else np.median(y))
            residual = np.asarray(y) - self.value_
            objective = float(np.mean(0.5 * residual**2 if self.answer == "mean" else np.abs(residual)))
        self.certificate_ = Certificate.exact(objective, "The best constant.", iterations=0)
        return self

    def predict(self, X: Matrix) -> Array:
        """The constant value, or the most frequent class, for every row."""
        n = X.shape[0]
        if self.answer == "shares":
            return np.full(n, self.classes_[int(np.argmax(self.value_))])
        return np.full(n, float(self.value_))


@stored("ConstantSharesModel")
class ConstantShares(Constant):
    """The shares of the classes for every row."""

    def __init__(self) -> None:
        super().__init__("shares")

    def predict_proba(self, X: Matrix) -> Array:
        """The shares, for every row."""
        return np.tile(self.value_, (X.shape[0], 1))


def constant_paths(conditions: Conditions, data: Encoded) -> list[Path]:
    """Nothing to choose."""

    def build(s: Mapping[str, Any], fold: Encoded) -> Any:
        if conditions.classifies:
            return ConstantShares()
        return Constant("median" if conditions.metric in ("mae", "median_absolute_error") else "mean")

    return [Path(({},), build)]


ENTRANTS = (
    Entrant(
        "baseline",
        "Baseline",
        "The same answer for every row: the shares of the classes, or the average. It is the floor to beat.",
        constant_paths,
        encoding="none",
        weight=0.2,
        baseline=True,
        richness=0,
    ),
)
