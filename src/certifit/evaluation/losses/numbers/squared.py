"""Squared loss ½(y − f)²."""

from __future__ import annotations

import numpy as np

import certifit._native.products as _products
from certifit._types import Array
from certifit.evaluation.losses.base import Loss

FEW = 1 << 14  # rows of a block whose vectors stay in the cache


class Squared(Loss):
    """ℓ(y, f) = ½(y − f)²; the best constant is the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Squared
    >>> Squared().value(np.array([1.0]), np.array([3.0]))
    array([2.])
    """

    name = "squared"
    kernel = ("squared",)
    convex = True
    smoothness = 1.0

    def value(self, y: Array, f: Array) -> Array:
        r = f - y
        r *= r  # in place: a fit of few columns is made of such vectors
        r *= 0.5
        return r

    def derivative(self, y: Array, f: Array) -> Array:
        return f - y

    def second_derivative(self, y: Array, f: Array) -> Array:
        return np.ones_like(f)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        return u * (0.5 * u + y)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def optimal_constant(self, y: Array, weight: Array) -> float:
        if weight.strides == (0,):  # equal weights that are one number: a product would make an array of them
            return float(y.mean())
        return float(weight @ y / weight.sum())

    def constant_risks(self, y: Array, p: Array, constant: float) -> tuple[float, float]:
        if p.strides == (0,) and y.dtype == np.float64 and y.flags.c_contiguous:  # equal weights that are one number
            (mean,), (squares,) = _products.moments(y[:, None], 1).tolist()
            off = mean - float(constant)
            risk = 0.5 * float(p[0]) * (squares + y.shape[0] * (off * off))
        else:  # blocks that stay in the cache, and no vector as long as y
            level, mean = np.asarray(constant), float(p @ y)
            risk = sum(float(p[i : i + FEW] @ self.value(y[i : i + FEW], level)) for i in range(0, y.shape[0], FEW))
        return risk, risk + constant * (mean - 0.5 * constant)  # for weights whose sum is one

    def rescaled(self, unit: float) -> tuple[Loss, float]:
        return self, unit * unit
