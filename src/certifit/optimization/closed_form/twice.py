"""Sums and products in twice the working precision, as pairs of a number and what its rounding left."""

from __future__ import annotations

import numpy as np

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


def sum_twice(terms: Array, carry: Array) -> tuple[Array, Array]:
    """Sum over the last axis as an unevaluated pair, as if in twice the precision, plus a small carry."""
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        s, e = two_sum(terms[:, :half], terms[:, half : 2 * half])
        carry = carry + e.sum(axis=1)
        terms = np.column_stack([s, terms[:, 2 * half :]]) if terms.shape[1] % 2 else s
    total = terms[:, 0] if terms.shape[1] else np.zeros(terms.shape[0])
    high, low = two_sum(total, carry)
    return high, low
