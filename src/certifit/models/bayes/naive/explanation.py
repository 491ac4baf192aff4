"""Why naive Bayes says what it says: the log odds that each feature adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.axes import axes_of

__all__ = ["Explanation"]

IMPOSSIBLE = 1e149  # a logarithm as far below zero stands for that of zero


@dataclass(frozen=True)
class Explanation:
    """Why a row got its class: evidence of each feature, as log odds against the average of the other classes.

    Parameters
    ----------
    classes : array of shape (K,)
    features : list of str
    terms : array of shape (d, K)
        ln P(x_j | k); below −1e149 where the value is impossible.
    prior : array of shape (K,)
        ln π_k.
    """

    classes: Array
    features: list[str]
    terms: Array
    prior: Array

    @property
    def log_odds(self) -> Array:
        """What each feature adds to ln P(k|x) − the mean of that of the other classes, shape (d, K).

        Infinite where the value is impossible in one class and not in the others; 0 where it is in all.
        """
        K = self.terms.shape[1]
        if K == 1:
            return np.zeros_like(self.terms)
        terms = np.where(np.abs(self.terms) < IMPOSSIBLE, self.terms, np.copysign(np.inf, self.terms))
        with np.errstate(invalid="ignore"):
            others = np.column_stack([np.delete(terms, k, axis=1).mean(axis=1) for k in range(K)])
            return np.nan_to_num(terms - others, nan=0.0, posinf=np.inf, neginf=-np.inf)

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
        finite = np.abs(value[np.isfinite(value)])
        most_shown = 1.2 * float(finite.max(initial=0.0)) or 1.0
        bars = ax.barh(np.arange(order.shape[0]), np.clip(value[order], -most_shown, most_shown), color=colors)
        ax.set_yticks(np.arange(order.shape[0]), [self.features[j] for j in order])
        ax.bar_label(bars, ["" if np.isfinite(value[j]) else "∞" if value[j] > 0 else "−∞" for j in order])
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.set_xlabel(f"log odds added for class {self.classes[k]}")
        return ax
