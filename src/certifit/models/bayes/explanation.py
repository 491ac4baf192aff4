"""Why naive Bayes says what it says: the log odds that each feature adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.axes import axes_of

__all__ = ["Explanation"]


@dataclass(frozen=True)
class Explanation:
    """Why a row got its class: evidence of each feature, as log odds against the average of the other classes.

    Parameters
    ----------
    classes : array of shape (K,)
    features : list of str
    terms : array of shape (d, K)
        ln P(x_j | k).
    prior : array of shape (K,)
        ln π_k.
    """

    classes: Array
    features: list[str]
    terms: Array
    prior: Array

    @property
    def log_odds(self) -> Array:
        """What each feature adds to ln P(k|x) − the mean of that of the other classes, shape (d, K)."""
        K = self.terms.shape[1]
        if K == 1:
            return np.zeros_like(self.terms)
        with np.errstate(invalid="ignore"):
            others = (self.terms.sum(axis=1, keepdims=True) - self.terms) / (K - 1)
            return np.nan_to_num(self.terms - others, nan=0.0)

    @property
    def winner(self) -> Any:
        """The most probable class."""
        return self.classes[int((self.terms.sum(axis=0) + self.prior).argmax())]

    @property
    def sentence(self) -> str:
        """The winner and the features that speak most for it."""
        k = int((self.terms.sum(axis=0) + self.prior).argmax())
        order = np.argsort(-self.log_odds[:, k], kind="stable")
        speaking = [self.features[j] for j in order if self.log_odds[j, k] > 0]
        if not speaking:
            return f"Class {self.classes[k]}: no feature speaks for it, its share of the classes does."
        rest = f", {speaking[1]} next" if len(speaking) > 1 else ""
        return f"Class {self.classes[k]}: {speaking[0]} speaks most for it{rest}."

    def plot(self, ax: Any = None, most: int = 12) -> Any:
        """Bars of the evidence for the winner, strongest first; returns the axes."""
        ax = axes_of(ax)
        k = int((self.terms.sum(axis=0) + self.prior).argmax())
        value = self.log_odds[:, k]
        order = np.argsort(-np.abs(value), kind="stable")[:most][::-1]
        colors = ["tab:blue" if value[j] >= 0 else "tab:red" for j in order]
        ax.barh([self.features[j] for j in order], value[order], color=colors)
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_xlabel(f"log odds added for class {self.classes[k]}")
        return ax
