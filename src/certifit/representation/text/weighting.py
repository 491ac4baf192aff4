"""Counts of terms as numbers that models like: presence, logarithms, rarity, unit length."""

from __future__ import annotations

import numpy as np

from certifit._types import Array, Matrix
from certifit.representation.basis.blocks import index_of_entries, unit_entries, with_data

__all__ = ["document_frequency", "frequent_terms", "inverse_frequency", "weighted_counts"]

SLACK = 1e-12
"""Forgives the rounding of sums of weights that are not integers."""


def document_frequency(counts: Matrix, weight: Array) -> Array:
    """Weight of the texts that have each term, of a CSR matrix."""
    present = counts.data != 0
    mass = weight[index_of_entries(counts, axis=0)[present]]
    return np.bincount(counts.indices[present], weights=mass, minlength=counts.shape[1])


def frequent_terms(
    frequency: Array, sums: Array, total: float, *, least: float, most: float | None = None, limit: int | None = None
) -> Array:
    """Numbers of the terms that some text of positive weight has, and at least and at most so many; of these the largest sums.

    Terms come in alphabetical order, and of equal sums the first are taken.
    """
    within = (frequency > 0) & (frequency >= least * (1 - SLACK))
    within &= frequency <= (total if most is None else most) * (1 + SLACK)
    kept = np.flatnonzero(within)
    if limit is not None and kept.shape[0] > limit:
        kept = np.sort(kept[np.argsort(-sums[kept], kind="stable")[:limit]])
    return kept


def inverse_frequency(frequency: Array, total: float, *, smooth: bool = True) -> Array:
    """1 + ln((1 + n) / (1 + df)), as if one more text had every term; without that, 1 + ln(n / df).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.representation.text.weighting import inverse_frequency
    >>> inverse_frequency(np.array([3.0, 1.0]), 3.0)
    array([1.        , 1.69314718])
    """
    extra = float(smooth)
    with np.errstate(divide="ignore"):  # a term that no text has is infinitely rare
        return 1.0 + np.log((extra + total) / (extra + frequency))


def weighted_counts(counts: Matrix, *, sublinear: bool, inverse: Array | None, norm: str | None) -> Matrix:
    """Counts (or 1 + their logarithm, with the sign of a hashed sum) times rarity, in rows of norm one if asked for."""
    values = counts.data
    if sublinear:
        size = np.abs(values)
        values = np.sign(values) * (1.0 + np.log(size, where=size > 0, out=np.zeros_like(values)))
    if inverse is not None:
        values = values * inverse[counts.indices]
    weighted = with_data(counts, values)
    return weighted if norm is None else unit_entries(weighted, norm)
