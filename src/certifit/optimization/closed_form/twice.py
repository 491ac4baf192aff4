"""Sums and products in twice the working precision, as pairs of a number and what its rounding left."""

from __future__ import annotations

from certifit._types import Array


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum and error with s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Product and error with x + e = a·b exactly (Dekker, with Veltkamp's splitting)."""
    x = a * b
    c = 134217729.0 * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = 134217729.0 * b
    b_high = c - (c - b)
    b_low = b - b_high
    return x, a_low * b_low - (((x - a_high * b_high) - a_low * b_high) - a_high * b_low)
