"""Equations with a Gram matrix between weights, moved off singular by a multiple of the identity.

    (c I + S K S) x + s t = r,    s·x = e        S = diag(s)

The second condition and its multiplier t are there when an intercept is. A Cholesky factor in single precision costs half of
one in double, and as a preconditioner of conjugate gradients in double precision it loses nothing: a few products with K make up
for it (Carson and Higham 2018). The factor may be of other weights than those of the equations, as long as they are similar.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from certifit._types import Array

__all__ = ["MOST_STEPS", "SINGLE_FROM", "ShiftedFactor", "solve_shifted"]

SINGLE_FROM = 1000  # rows from which half the time of a factorization is felt
MOST_STEPS = 60  # of conjugate gradients; a useful factor needs a dozen


class ShiftedFactor:
    """Cholesky's factor of c I + S K S as a preconditioner, in single precision where that can hold it."""

    def __init__(self, K: Array, s: Array, c: float, *, double: bool = False) -> None:
        n = s.shape[0]
        unit = 1.0 / np.sqrt(c + float((s * s * np.diagonal(K)).max(initial=0.0)))
        self.unit, self.used = unit, 0
        found = None
        # Below the precision of its numbers the shift is not seen: leave a little more of it in the preconditioner.
        least = 4.0 * n * float(np.finfo(np.float32).eps)
        self.single = not double and n >= SINGLE_FROM and c * unit * unit > 1e-3 * least
        if self.single:
            found = self._factored(K, s * unit, max(c * unit * unit, 1e-2 * least), np.float32)
            self.single = found is not None
        if found is None:
            found = self._factored(K, s * unit, c * unit * unit, np.float64)
        self.factor = found

    @staticmethod
    def _factored(K: Array, s: Array, c: float, dtype: Any) -> Array | None:
        scaled = np.empty(K.shape, dtype=dtype)
        np.multiply(K, s[:, None], out=scaled, casting="same_kind")
        scaled *= s.astype(dtype)
        np.einsum("ii->i", scaled)[:] += dtype(c)
        potrf = lapack.spotrf if dtype is np.float32 else lapack.dpotrf
        # The transpose of a symmetric matrix is itself, and in the order that LAPACK wants.
        factor, info = potrf(scaled.T, lower=1, overwrite_a=1, clean=0)
        return factor if info == 0 else None

    def __call__(self, r: Array) -> Array:
        """The inverse, times r; the identity where K is so far from positive that there is no factor."""
        if self.factor is None:
            return r
        size = float(np.abs(r).max(initial=0.0)) or 1.0
        potrs = lapack.spotrs if self.single else lapack.dpotrs
        x, _ = potrs(self.factor, (r / size).astype(self.factor.dtype), lower=1)
        return np.asarray(x, dtype=np.float64) * (size * self.unit * self.unit)


def solve_shifted(
    K: Array,
    s: Array,
    c: float,
    r: Array,
    factor: ShiftedFactor,
    *,
    total: float | None,
    wanted: float,
    share: float = 0.0,
    most: int = MOST_STEPS,
) -> tuple[Array, float]:
    """x and t by preconditioned conjugate gradients, on the plane s·x = total if there is one.

    Stops when ½‖residual‖² + ½c·(residual in the norm of the inverse)² is at most `wanted`, or at most `share` of what it was.
    `factor.used` tells how many steps it took.
    """
    x, level = np.zeros_like(r), None
    if total is not None:
        level = s
        x = level * (total / float(level @ level))
        toward = factor(level)
        weight = float(level @ toward)

    def image(v: Array) -> Array:
        return np.asarray(c * v + s * (K @ (s * v)))

    def inner(v: Array) -> Array:
        z = factor(v)
        return z if level is None else z - toward * (float(level @ z) / weight)

    def seen(v: Array) -> Array:
        return v if level is None else v - level * (float(level @ v) / float(level @ level))

    residual = seen(r - image(x) if total else r)
    z = inner(residual)
    direction, rho = z, float(residual @ z)
    first = size = float(residual @ residual) + c * max(rho, 0.0)
    factor.used, best = 0, (size, x)
    while 0.5 * size > max(wanted, 0.5 * share * first) and rho > 0.0 and factor.used < most:
        product = image(direction)
        bend = float(direction @ product)
        if not bend > 0.0:
            break
        step = rho / bend
        x = x + step * direction
        residual = seen(residual - step * product)
        z = inner(residual)
        rho, before = float(residual @ z), rho
        factor.used += 1
        size = float(residual @ residual) + c * max(rho, 0.0)
        if size < best[0]:
            best = size, x
        elif factor.used > 20 and size > 1e3 * best[0]:  # rounding: no further progress
            break
        direction = z + (rho / before) * direction
    x = best[1]
    if level is None:
        return x, 0.0
    return x, float(level @ (r - image(x))) / float(level @ level)
