"""Softmax (categorical) loss over K classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import certifit._native.softmax as _native
from certifit._types import Array, Matrix
from certifit.evaluation.losses.base import Fused, FusedDual, Loss

__all__ = ["Simplex", "Softmax", "check_class_numbers", "class_count", "own_score"]

MOST_CLASSES = 2**20  # every row has a score of each


class Softmax(Loss):
    """ℓ(y, f) = ln Σ_k e^(f_k) − Σ_k y_k f_k − H(y), with f of shape (n, K); its infimum over f is zero.

    y holds class numbers 0 … K − 1, or rows of probabilities; H(y) is their entropy, zero for class numbers. Shifting all K
    scores of a row by one number changes nothing, so slopes sum to zero over the classes.

    Parameters
    ----------
    n_classes : int or None, default=None
        K; None reads it off the targets, of which the last class must then be one.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Softmax
    >>> Softmax().value(np.array([0]), np.zeros((1, 2))).round(4)
    array([0.6931])
    >>> Softmax().conjugate(np.array([0]), np.array([[-0.5, 0.5]])).round(4)
    array([-0.6931])
    >>> Softmax().derivative(np.array([[0.5, 0.25, 0.25]]), np.zeros((1, 3))).round(4)
    array([[-0.1667,  0.0833,  0.0833]])
    """

    name = "softmax"
    convex = True
    task = "multiclass"
    metric = "log_loss"
    coupled = True
    kernel = ("softmax",)
    shift_invariant = True
    smoothness = 0.5
    """Largest eigenvalue of diag(π) − ππᵀ over all probabilities π (Böhning 1992)."""

    def __init__(self, n_classes: int | None = None) -> None:
        self.n_classes = n_classes

    def n_scores(self, y: Array) -> int:
        return class_count(y, self.n_classes)

    def value(self, y: Array, f: Array) -> Array:
        """Loss of each row, shape (n,)."""
        rows, top = np.arange(f.shape[0]), f.argmax(axis=1)
        highest = f[rows, top]
        others = np.exp(f - highest[:, None])
        others[rows, top] = 0.0  # beside the one that it is, the others would lose their digits
        return np.maximum(np.log1p(others.sum(axis=1)) + (highest - own_score(y, f)) + _negative_entropy(y), 0.0)

    def derivative(self, y: Array, f: Array) -> Array:
        """Gradient with respect to the scores, shape (n, K): probabilities minus those of y."""
        return _minus(self.predict(f), y)

    def second_derivative(self, y: Array, f: Array) -> Array:
        """Diagonal of the Hessian, shape (n, K): π(1 − π)."""
        return Simplex(self.predict(f)).diagonal()

    def hessian_product(self, f: Array, z: Array) -> Array:
        """(diag(π) − ππᵀ)·z of each row, shape (n, K)."""
        return Simplex(self.predict(f)) * z

    def slopes(self, y: Array, f: Array) -> tuple[Array, Simplex]:
        """The gradient, and the whole Hessian as a factor of changes of the scores."""
        probability = self.predict(f)
        return _minus(probability.copy(order="K"), y), Simplex(probability)

    def conjugate(self, y: Array, u: Array, start: Array | None = None) -> Array:
        """Negative entropy Σ_k π_k ln π_k of π = u + y, shape (n,); infinity unless π is a probability.

        The sum of u over the classes must be zero; rounding of a few units in the last place is accepted.
        """
        probability = _minus(u, y, -1.0)
        with np.errstate(invalid="ignore"):
            # At the smallest normal number, π ln π is zero to all digits that count.
            inside = (probability * np.log(np.maximum(probability, np.finfo(float).tiny))).sum(axis=1)
            feasible = (probability.min(axis=1) >= 0) & (np.abs(u.sum(axis=1)) <= 1e-12 * u.shape[1])
        return np.where(feasible, inside - _negative_entropy(y), np.inf)

    def dual_domain(self, y: Array) -> tuple[Array, Array]:
        low = _minus(np.zeros((y.shape[0], self.n_scores(y))), y)
        return low, 1.0 + low

    def into_domain(self, y: Array, u: Array) -> Array:
        probability = _minus(u, y, -1.0)
        if not probability.min(initial=0.0) < 0.0:
            return u
        np.maximum(probability, 0.0, out=probability)
        probability /= probability.sum(axis=1, keepdims=True)
        return _minus(probability, y)

    def optimal_constant(self, y: Array, weight: Array) -> Array:
        """Log shares of the classes, centered; a class that is absent gets a very low score."""
        share = weight @ y if y.ndim == 2 else np.bincount(y, weights=weight, minlength=self.n_scores(y))
        score = np.log(np.maximum(share / weight.sum(), 1e-300))
        return np.asarray(score - score.mean())

    def predict(self, f: Array) -> Array:
        """Probabilities."""
        e = np.exp(f - f.max(axis=1, keepdims=True))
        e /= e.sum(axis=1, keepdims=True)
        return np.asarray(e)

    def check_target(self, y: Array) -> None:
        if y.ndim == 1:
            check_class_numbers(y, self.n_classes, self.name)
            return
        bad = (y < 0).any(axis=1) | (np.abs(y.sum(axis=1) - 1.0) > 1e-6)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"rows of y must be probabilities that sum to 1 for the softmax loss; got {y[row]} at row {row}."
            )

    def fused(self, X: Matrix, y: Array, p: Array, w: Array, b: Array, threads: int) -> Fused | None:
        if y.ndim == 2 or not X.flags.c_contiguous:
            return None
        K, n = w.shape[0], y.shape[0]
        f, probability, sums = np.empty((K, n)), np.empty((K, n)), np.empty((K, X.shape[1] + 1))
        w, b = np.ascontiguousarray(w), np.ascontiguousarray(b)
        risk = _native.evaluate(X, y, p, w, b, f, probability, sums, threads)
        theta: Callable[[], Array] = lambda: _minus(probability.T.copy(order="K"), y)  # noqa: E731 - made when asked for
        return Fused(risk, sums[:, 0], sums[:, 1:], f.T, Simplex(probability.T), theta)

    def fused_dual(self, X: Matrix, y: Array, p: Array, h: Simplex, shift: Array, threads: int) -> FusedDual | None:
        if y.ndim == 2 or not h.probability.flags.f_contiguous:
            return None
        sums = np.empty((shift.shape[0], X.shape[1] + 1))
        conjugate, inside = _native.dual(X, y, p, h.probability.T, shift, sums, threads)
        return FusedDual(conjugate if inside else np.inf, sums[:, 0], sums[:, 1:])


class Simplex:
    """diag(π) − ππᵀ of each row: the curvature of the softmax loss, a factor of changes of the scores.

    With a `rate` ρ of each score it is diag(ρ)(diag(π) − ππᵀ)diag(ρ): of scores which enter the softmax as ln g(f), ρ = g′/g.
    """

    def __init__(self, probability: Array, extra: float = 0.0, rate: Array | None = None) -> None:
        self.probability, self.extra, self.rate = probability, extra, rate

    def __mul__(self, z: Array) -> Array:
        """The product with z of each row; z may be one vector for all rows."""
        out = self.probability * z if self.rate is None else self.probability * (self.rate * z)
        out -= self.probability * out.sum(axis=1, keepdims=True)
        out = out if self.rate is None else self.rate * out
        return out + self.extra * z if self.extra else out

    def __add__(self, extra: float) -> Simplex:
        """The same with a multiple of the identity."""
        return Simplex(self.probability, self.extra + extra, self.rate)

    def __getitem__(self, rows: slice) -> Simplex:
        return Simplex(self.probability[rows], self.extra, None if self.rate is None else self.rate[rows])

    @property
    def vector(self) -> Array:
        """u in diag(v) − uuᵀ: π, or ρπ."""
        return self.probability if self.rate is None else self.rate * self.probability

    @property
    def weight(self) -> Array:
        """v in diag(v) − uuᵀ: π, or ρ²π."""
        return self.probability if self.rate is None else self.rate * self.rate * self.probability

    def diagonal(self) -> Array:
        """π(1 − π), shape (n, K)."""
        return np.asarray(self.weight * (1.0 - self.probability) + self.extra)

    def max(self) -> float:
        """The largest entry of the diagonals."""
        return float(self.diagonal().max())

    def mean(self, p: Array) -> Array:
        """Σ p_i (diag(π_i) − π_i π_iᵀ), shape (K, K)."""
        vector = self.vector
        return np.diag(p @ self.weight + self.extra * p.sum()) - (p[:, None] * vector).T @ vector


def class_count(y: Array, given: int | None) -> int:
    """K: what was given, or what the targets show; of one class alone, that and another."""
    return given if given is not None else int(y.shape[1] if y.ndim == 2 else max(1, y.max(initial=0)) + 1)


def check_class_numbers(y: Array, given: int | None, name: str) -> None:
    """Raise a ValueError that names the first target that is no class number."""
    highest = MOST_CLASSES if given is None else given
    bad = (y < 0) | (y != np.floor(y)) | (y >= highest)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"y must hold class numbers from 0 to {highest - 1} for the {name} loss; got {y[row]} at row {row}. "
            "np.unique(y, return_inverse=True)[1] numbers the classes of any labels."
        )


def own_score(y: Array, f: Array) -> Array:
    """The score of the class of each row, or its mean over the probabilities of y."""
    return np.asarray((y * f).sum(axis=1) if y.ndim == 2 else f[np.arange(y.shape[0]), y])


def _minus(u: Array, y: Array, sign: float = 1.0) -> Array:
    """u − sign·y with y as probabilities; with sign 1 in place."""
    u = u if sign > 0 else np.array(u, dtype=np.float64, order="K")
    if y.ndim == 2:
        u -= sign * y
    else:
        u[np.arange(y.shape[0]), y] -= sign
    return u


def _negative_entropy(y: Array) -> Array | float:
    """Σ_k y_k ln y_k of rows of probabilities; zero for class numbers."""
    return (y * np.log(np.maximum(y, np.finfo(float).tiny))).sum(axis=1) if y.ndim == 2 else 0.0
