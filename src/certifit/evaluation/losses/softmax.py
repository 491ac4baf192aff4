"""Softmax (categorical) loss over K classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import xlogy

from certifit._types import Array


class Softmax:
    """ℓ(y, f) = ln Σ_k e^(f_k) − f_y for class numbers y and scores f of shape (n, K); its infimum over f is zero.

    Shifting all K scores of a row by one number changes nothing, so slopes sum to zero over the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Softmax
    >>> Softmax().value(np.array([0]), np.zeros((1, 2))).round(4)
    array([0.6931])
    >>> Softmax().conjugate(np.array([0]), np.array([[-0.5, 0.5]])).round(4)
    array([-0.6931])
    """

    name = "softmax"
    task = "multiclass"
    smooth = True
    smoothness = 0.5
    """Largest eigenvalue of diag(π) − ππᵀ over all probabilities π (Böhning 1992)."""

    def value(self, y: Array, f: Array) -> Array:
        """Loss of each row."""
        highest = f.max(axis=1)
        total = np.exp(f - highest[:, None]).sum(axis=1)
        return np.maximum(np.log(total) + (highest - f[np.arange(y.shape[0]), y]), 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        """Gradient with respect to the scores, shape (n, K): probabilities minus the indicator of y."""
        g = self.predict(f)
        g[np.arange(y.shape[0]), y] -= 1.0
        return g

    def second_derivative(self, y: Array, f: Array) -> Array:
        """Diagonal of the Hessian, shape (n, K): π(1 − π)."""
        probability = self.predict(f)
        return np.asarray(probability * (1.0 - probability))

    def hessian_product(self, f: Array, z: Array) -> Array:
        """(diag(π) − ππᵀ)·z of each row, shape (n, K)."""
        probability = self.predict(f)
        weighted = probability * z
        return np.asarray(weighted - probability * weighted.sum(axis=1, keepdims=True))

    def conjugate(self, y: Array, u: Array) -> Array:
        """Negative entropy Σ_k π_k ln π_k of π = u + indicator(y), shape (n,); infinity unless π is a probability.

        The sum of u over the classes must be zero; rounding of a few units in the last place is accepted.
        """
        probability = np.array(u, dtype=np.float64)
        probability[np.arange(y.shape[0]), y] += 1.0
        with np.errstate(invalid="ignore"):
            inside = xlogy(probability, probability).sum(axis=1)
        feasible = (probability >= 0).all(axis=1) & (np.abs(u.sum(axis=1)) <= 1e-12 * u.shape[1])
        return np.where(feasible, inside, np.inf)

    def optimal_constant(self, y: Array, weight: Array, n_classes: int) -> Array:
        """Log shares of the classes, centered; a class that is absent gets a very low score."""
        share = np.bincount(y, weights=weight, minlength=n_classes) / weight.sum()
        score = np.log(np.maximum(share, 1e-300))
        return np.asarray(score - score.mean())

    def predict(self, f: Array) -> Array:
        """Probabilities."""
        e = np.exp(f - f.max(axis=1, keepdims=True))
        e /= e.sum(axis=1, keepdims=True)
        return np.asarray(e)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """No parameters: softmax losses are all alike."""
        return {}

    def __repr__(self) -> str:
        return "Softmax()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))
