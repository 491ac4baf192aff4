"""What the neighbors of a query count, and what they say together.

    prediction at x   Σ_i c_i y_i / Σ_i c_i        over the nearest rows i,   c_i = copies_i · weight(distance_i)

A row of weight s stands for s copies of it, all at the same distance: neighbors are taken in order until k copies are found,
of the last row only as many as are still wanted. So a weight of 2 is the row twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, Matrix
from certifit.models.neighbors.distance import NearestSearch

__all__ = ["Neighborhood", "influence", "neighborhood"]


class Neighborhood:
    """The nearest rows of some queries, in order, with the copies that each stands for: at least k in all, if there are."""

    def __init__(self, distance: Array, row: Array, copies: Array | None) -> None:
        self.distance, self.row, self.copies = distance, row, copies
        self.before = None if copies is None else np.cumsum(copies, axis=1) - copies

    def counted(self, k: int) -> Array:
        """How many copies of each row are among the k nearest, shape of `row`."""
        if self.copies is None or self.before is None:
            return np.broadcast_to(np.arange(self.row.shape[1]) < k, self.row.shape).astype(np.float64)
        return np.clip(k - self.before, 0.0, self.copies)


def neighborhood(
    search: NearestSearch, Q: Matrix, k: int, weight: Array | None, skip: Array | None = None
) -> Neighborhood:
    """The k nearest copies of each query. Where query i is row skip[i] itself, one copy of that row is left out."""
    if weight is None:
        return Neighborhood(*search.nearest(Q, k, skip), None)
    wide = min(search.n, k + (skip is not None))
    while True:
        distance, row = search.nearest(Q, wide)
        copies = weight[row]
        if skip is not None:
            copies = np.where(row == skip[:, None], np.maximum(copies - 1.0, 0.0), copies)
            # A row of which nothing is left comes last, where its distance, zero, tells nobody that the query was found.
            order = np.argsort(copies == 0.0, axis=1, kind="stable")
            row, copies = (np.take_along_axis(part, order, axis=1) for part in (row, copies))
            distance = np.maximum.accumulate(np.take_along_axis(distance, order, axis=1), axis=1)
        if wide == search.n or (copies.sum(axis=1) >= k).all():
            return Neighborhood(distance, row, copies)
        wide = min(search.n, 2 * wide)


def influence(weights: Any, distance: Array) -> Array:
    """weight(distance) of the neighbors of each query, up to a factor of the query."""
    if weights is None or weights == "uniform":
        return np.ones_like(distance)
    if weights == "distance":
        # d₁/d instead of 1/d: the nearest counts 1. Rows at distance zero are the query itself, and nobody else is heard.
        first = distance[:, :1]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(first > 0, first / distance, distance == 0)
        return np.where(np.isinf(first), 1.0, np.nan_to_num(share, nan=0.0))
    given = np.asarray(weights(distance.copy()), dtype=np.float64)
    if given.shape != distance.shape or not np.isfinite(given).all() or (given < 0).any():
        raise ValueError(
            f"weights must map distances of shape {distance.shape} to finite weights >= 0 of that shape; got {given.shape}"
            f"{'' if given.shape != distance.shape else ' with values that are negative or not finite'}."
        )
    if given.size and not (given.sum(axis=1) > 0).all():
        bad = int(np.flatnonzero(given.sum(axis=1) <= 0)[0])
        raise ValueError(
            f"weights gives no weight to any neighbor of row {bad}, whose nearest is at {distance[bad, 0]:g}."
        )
    return given
