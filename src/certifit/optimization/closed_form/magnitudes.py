"""Magnitudes whose squares are numbers, and the powers of two that make them so: they change no digit."""

from __future__ import annotations

import numpy as np

from certifit._types import Array, Matrix, is_sparse


def power_of_two(x: float) -> float:
    """The power of two next to x; one for zero."""
    return float(2.0 ** np.floor(np.log2(x))) if x > 0 and np.isfinite(x) else 1.0


def powers_of_two(x: Array) -> Array:
    """The same of each number, as far as the inverse is a number too."""
    return np.asarray(np.exp2(np.clip(np.floor(np.log2(np.where(x > 0, x, 1.0))), -1000, 1000)))


def in_units(values: Matrix) -> tuple[Matrix, float]:
    """The array divided by a power of two, where its squares would overflow or vanish, and that power."""
    entries = values.data if is_sparse(values) else values
    top = float(max(entries.max(initial=0.0), -entries.min(initial=0.0)))
    if top == 0.0 or 1e-60 < top < 1e60:
        return values, 1.0
    unit = power_of_two(top)
    return values / unit, unit


def sane(magnitudes: Array, allow_zero: bool = True, columns: Matrix | None = None) -> bool:
    """Whether squares and fourth powers of these magnitudes neither overflow nor vanish."""
    if not float(magnitudes.max(initial=0.0)) <= 1e70:  # neither is what is not a number
        return False
    if magnitudes.ndim == 1:
        tiny = magnitudes < 1e-70
        if allow_zero:
            tiny &= magnitudes > 0
        elif tiny.any() and columns is not None:  # a column that is zero everywhere is no reason to worry
            suspects = columns[:, np.flatnonzero(tiny)]
            tiny = np.asarray((abs(suspects) > 0).sum(axis=0)).ravel() > 0
        return not tiny.any()
    largest = magnitudes.max(axis=0, initial=0.0)
    return not ((largest > 0) & (largest < 1e-70)).any()
