"""What tells a group from the other rows, and a row from all others, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from certifit._types import Array
from certifit.exploration.association import Coded

__all__ = ["Trait", "oddities", "outlying", "traits"]

PLAIN = 0.3
"""Strength below which a difference is not spoken of."""
RARE = 0.02
MOST = 4
SPREADS = 3.0  # interquartile ranges beyond the third quartile that make a row stand out


@dataclass(frozen=True)
class Trait:
    """How a group differs from the other rows in one column.

    Parameters
    ----------
    column : str
        Where.
    strength : float
        Between 0 and 1: of numbers |2 P(a row of the group is larger than another row) − 1|, of categories how much
        larger the share of `level` is.
    level : str or None
        Of a category: the value that the group has most beyond others.
    inside, outside : list of float
        First and third quartile of a number, or the share of `level`, in the group and elsewhere.
    """

    column: str
    strength: float
    level: str | None
    inside: list[float]
    outside: list[float]

    @property
    def higher(self) -> bool:
        """Whether the group has more of it."""
        return bool(np.mean(self.inside) > np.mean(self.outside))


def traits(columns: list[Coded], member: Array) -> list[Trait]:
    """The plainest differences between the rows of a group and the others, the plainest first."""
    found = [trait for column in columns if (trait := _trait(column, member)) is not None]
    return sorted((one for one in found if one.strength >= PLAIN), key=lambda one: -one.strength)[:MOST]


def _trait(column: Coded, member: Array) -> Trait | None:
    known = ~np.isnan(column.values)
    inside, outside = column.values[known & member], column.values[known & ~member]
    if not inside.size or not outside.size:
        return None
    if column.ordered:
        ranks = rankdata(np.concatenate([inside, outside]))[: inside.size]
        larger = (ranks.sum() - inside.size * (inside.size + 1) / 2) / (inside.size * outside.size)
        quartiles = [[float(q) for q in np.quantile(part, [0.25, 0.75])] for part in (inside, outside)]
        return Trait(column.name, abs(2 * float(larger) - 1), None, quartiles[0], quartiles[1])
    width = len(column.levels)
    shares = [np.bincount(part.astype(np.int64), minlength=width) / part.size for part in (inside, outside)]
    at = int(np.argmax(shares[0] - shares[1]))
    strength = float(shares[0][at] - shares[1][at])
    return Trait(column.name, strength, column.levels[at], [float(shares[0][at])], [float(shares[1][at])])


def outlying(near: Array, most: int = 10) -> Array:
    """Places of the rows that are far from their nearest neighbors, beyond what is usual, the farthest first."""
    low, high = np.quantile(near, [0.25, 0.75])
    far = np.flatnonzero(near > high + SPREADS * (high - low) + 1e-9)
    return far[np.argsort(-near[far], kind="stable")][:most]


def oddities(columns: list[Coded], place: int) -> list[dict[str, Any]]:
    """The columns in which a row is unusual: numbers beyond all but one in a hundred, categories that few rows have."""
    found: list[tuple[float, dict[str, Any]]] = []
    for column in columns:
        value, known = column.values[place], column.values[~np.isnan(column.values)]
        if np.isnan(value):
            continue
        if column.ordered:
            low, high = (float(q) for q in np.quantile(known, [0.01, 0.99]))
            spread = (high - low) or 1.0
            if value > high or value < low:
                beyond = max(value - high, low - value) / spread
                found.append((1 + beyond, {"column": column.name, "value": float(value), "low": low, "high": high}))
        else:
            share = float((known == value).mean())
            if share < RARE:
                level = column.levels[int(value)]
                found.append((1 - share, {"column": column.name, "value": level, "share": share}))
    return [one for _, one in sorted(found, key=lambda pair: -pair[0])[:3]]
