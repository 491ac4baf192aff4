"""How columns of any kind hang together: a strength between 0 and 1 for each pair, on the rows that have both.

number, number        |Spearman's ρ|
number, category      η of the ranks: √(share of their variance between the categories), less what chance gives (Wherry 1931)
category, category    Cramér's V, less what chance gives (Bergsma 2013)

Dates are numbers, truth values are categories. A pair is *clear* where its test of independence is below 1 % after Bonferroni's
correction for all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import chdtrc, fdtrc, stdtr

from certifit._types import Array
from certifit.representation.table.frames import Columns

__all__ = ["Association", "Coded", "associations", "coded"]

LEVEL = 0.01
MOST_LEVELS = 50  # the rarer ones count as one


@dataclass(frozen=True)
class Coded:
    """A column as numbers, NaN where missing: ranks can be taken of it, or it numbers categories."""

    name: str
    ordered: bool
    values: Array
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Association:
    """How two columns hang together.

    Parameters
    ----------
    left, right : str
        The columns.
    strength : float
        Between 0 and 1.
    sign : int
        −1 where one falls as the other rises, 0 where there is no order.
    p_value : float
        Of the hypothesis that they are independent.
    rows : int
        That have both.
    measure : str
        "Spearman", "eta" or "Cramér".
    """

    left: str
    right: str
    strength: float
    sign: int
    p_value: float
    rows: int
    measure: str

    def clear(self, pairs: int) -> bool:
        """Whether chance hardly explains it, among so many pairs."""
        return bool(self.p_value * pairs < LEVEL)


def coded(table: Columns, kinds: dict[str, str]) -> list[Coded]:
    """The columns of which associations are asked: numbers, dates, truth values and categories."""
    found = []
    for j, name in enumerate(table.names):
        if kinds[name] in ("numeric", "date"):
            found.append(Coded(name, True, table.numbers(j) if kinds[name] == "numeric" else table.moments(j)))
        elif kinds[name] in ("category", "boolean"):
            codes, levels = table.levels(j)
            count = np.bincount(codes[codes >= 0], minlength=len(levels))
            order = np.argsort(-count, kind="stable")
            place = np.minimum(np.argsort(order), MOST_LEVELS - 1)
            values = np.where(codes >= 0, place[codes] if len(levels) else 0, np.nan).astype(np.float64)
            names = [levels[k] for k in order[:MOST_LEVELS]]
            if len(levels) > MOST_LEVELS:
                names[-1] = "(other)"
            found.append(Coded(name, False, values, tuple(names)))
    return found


def associations(columns: list[Coded]) -> list[Association]:
    """All pairs, in the order of the columns."""
    return [_pair(a, b) for a, b in combinations([_Column.of(column) for column in columns], 2)]


@dataclass(frozen=True)
class _Column:
    """A column that has been sorted once, or counted: every pair asks for its ranks, or its groups, among some rows."""

    name: str
    ordered: bool
    known: Array
    """Rows that have it."""
    values: Array
    """Numbers in ascending order, or the group of each row."""
    order: Array
    """Rows in the order of their numbers."""

    @classmethod
    def of(cls, column: Coded) -> _Column:
        known = ~np.isnan(column.values)
        if not column.ordered:
            codes = np.where(known, column.values, 0).astype(np.int64)
            return cls(column.name, False, known, codes, codes[:0])
        order = np.flatnonzero(known)
        order = order[np.argsort(column.values[order])]
        return cls(column.name, True, known, column.values[order], order)

    def ranks(self, rows: Array) -> Array:
        """Ranks of some rows about their mean, equal numbers at the mean of their places; all zero if all are equal."""
        taken = rows[self.order]
        values = self.values[taken]
        edges = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1], [True]]))
        ranks = np.zeros(rows.shape[0])
        ranks[self.order[taken]] = np.repeat(0.5 * (edges[1:] + edges[:-1] - values.shape[0]), np.diff(edges))
        return ranks[rows]


def _pair(a: _Column, b: _Column) -> Association:
    both = a.known & b.known
    n = int(both.sum())
    found = (0.0, 0, 1.0, n, "none")
    if n >= 3:
        x, y = (column.ranks(both) if column.ordered else column.values[both] for column in (a, b))
        if (x != x[0]).any() and (y != y[0]).any():
            if a.ordered and b.ordered:
                found = (*_spearman(x, y), n, "Spearman")
            elif a.ordered or b.ordered:
                found = (*_eta(*((x, y) if a.ordered else (y, x))), n, "eta")
            else:
                found = (*_cramer(x, y), n, "Cramér")
    return Association(a.name, b.name, *found)


def _spearman(x: Array, y: Array) -> tuple[float, int, float]:
    """|ρ| of ranks about their means, its sign, and the p-value of the t test."""
    rho = float(np.clip(x @ y / math.sqrt(float(x @ x) * float(y @ y)), -1.0, 1.0))
    free = x.shape[0] - 2
    return (
        abs(rho),
        int(np.sign(rho)),
        float(2 * stdtr(free, -abs(rho) * math.sqrt(free / max(1e-300, 1 - rho * rho)))),
    )


def _eta(ranks: Array, codes: Array) -> tuple[float, int, float]:
    """η of ranks about their mean in groups, no sign, and the p-value of the F test on ranks."""
    count = np.bincount(codes)
    n, k = ranks.shape[0], int(np.count_nonzero(count))
    if n <= k:
        return 0.0, 0, 1.0
    sums = np.bincount(codes, weights=ranks)
    between, total = float((sums**2 / np.maximum(count, 1)).sum()), float(ranks @ ranks)
    share = between / total
    adjusted = max(0.0, 1.0 - (1.0 - share) * (n - 1) / (n - k))
    statistic = (between / (k - 1)) / max(1e-300, (total - between) / (n - k))
    return math.sqrt(adjusted), 0, float(fdtrc(k - 1, n - k, statistic))


def _cramer(x: Array, y: Array) -> tuple[float, int, float]:
    """V of two groupings, no sign, and the p-value of the χ² test."""
    n, shape = x.shape[0], (int(x.max()) + 1, int(y.max()) + 1)
    table = np.bincount(x * shape[1] + y, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    table = table[table.any(axis=1)][:, table.any(axis=0)]
    r, c = table.shape
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    statistic = float(((table - expected) ** 2 / expected).sum())
    free = (r - 1) * (c - 1)
    phi = max(0.0, statistic / n - free / (n - 1))
    rows, columns = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    return math.sqrt(min(1.0, phi / max(1e-300, min(rows, columns) - 1))), 0, float(chdtrc(free, statistic))
