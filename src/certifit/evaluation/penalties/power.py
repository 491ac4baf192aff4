"""Lq penalty for 1 < q ≤ 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.penalties.base import Penalty


class Lq(Penalty):
    """Ω(w) = Σ_j weights_j·|w_j|^q / q, between lasso (q → 1) and ridge (q = 2).

    Parameters
    ----------
    q : float in (1, 2], default=1.5
        Exponent.
    weights : array of shape (n_features,) or None
        Strength of each coefficient.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.penalties import L2, Lq
    >>> w = np.array([3.0, -4.0])
    >>> Lq(q=2.0).value(w) == L2().value(w)
    True
    """

    name = "lq"

    def __init__(self, q: float = 1.5, weights: Any = None) -> None:
        super().__init__(weights)
        self.q = float(check_real("q", q, low=1, high=2, open_low=True))

    def each(self, w: Array) -> Array:
        return self.strength(w.shape[-1]) * np.abs(w) ** self.q / self.q

    def prox(self, z: Array, step: float | Array) -> Array:
        # |w| = t solves t + c·t^(q−1) = |z|. In s = t^(q−1) the equation s^p + c·s = |z|, p = 1/(q−1) ≥ 1, is
        # convex and increasing: Newton's method falls monotonically from above the root, however small t is.
        size, c, p = np.abs(z), step * self.strength(z.shape[-1]), 1.0 / (self.q - 1.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            s = np.fmin(size ** (self.q - 1.0), size / c)
            for _ in range(100):
                power = s**p
                new = np.minimum(s - (power + c * s - size) / (p * s ** (p - 1.0) + c), s)
                new = np.where(new > 0, new, s)
                if not (np.abs(new - s) > 2e-16 * s).any():
                    break
                s = new
            t = np.where(c * s < 0.5 * size, size - c * s, s**p)  # the form without cancellation
        return np.sign(z) * np.where(c > 0, np.minimum(t, size), size)

    def argmax(self, v: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            size = (np.abs(v) / self.strength(v.shape[-1])) ** (1.0 / (self.q - 1.0))
        return np.where(v == 0.0, 0.0, np.sign(v) * size)

    def conjugate(self, v: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.abs(v) * np.abs(self.argmax(v)) * (1.0 - 1.0 / self.q)

    def subdifferential(self, w: Array) -> tuple[Array, Array]:
        slope = self.strength(w.shape[-1]) * np.sign(w) * np.abs(w) ** (self.q - 1.0)
        return slope, slope

    def power(self, d: int) -> tuple[float, Array]:
        return self.q, self.strength(d)

    def rescaled(self, unit: Array) -> Penalty:
        return Lq(self.q, self.strength(unit.shape[0]) / unit**self.q)
