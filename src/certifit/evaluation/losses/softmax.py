"""Softmax (categorical) loss over K classes."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from certifit._types import Array


class Softmax:
    """ℓ(y, f) = ln Σ_k e^(f_k) − f_y for class numbers y and scores f of shape (n, K).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Softmax
    >>> Softmax().value(np.array([0]), np.zeros((1, 2))).round(4)
    array([0.6931])
    """

    name = "softmax"
    task = "multiclass"
    smooth = True

    def value(self, y: Array, f: Array) -> Array:
        """Loss of each row."""
        rows = np.arange(y.shape[0])
        return np.maximum(logsumexp(f, axis=1) - f[rows, y], 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        """Gradient with respect to the scores, shape (n, K): probabilities minus the indicator of y."""
        g = softmax(f, axis=1)
        g[np.arange(y.shape[0]), y] -= 1.0
        return np.asarray(g)

    def second_derivative(self, y: Array, f: Array) -> Array:
        """Diagonal of the Hessian, shape (n, K): π(1 − π)."""
        probability = softmax(f, axis=1)
        return np.asarray(probability * (1.0 - probability))

    def optimal_constant(self, y: Array, weight: Array, n_classes: int) -> Array:
        """Log shares of the classes, centered; a class that is absent gets a very low score."""
        share = np.bincount(y, weights=weight, minlength=n_classes) / weight.sum()
        score = np.log(np.maximum(share, 1e-300))
        return np.asarray(score - score.mean())

    def predict(self, f: Array) -> Array:
        """Probabilities."""
        return np.asarray(softmax(f, axis=1))

    def __repr__(self) -> str:
        return "Softmax()"
