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
from scipy.stats import chi2, f, rankdata, t

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
    return [_pair(a, b) for a, b in combinations(columns, 2)]


def _pair(a: Coded, b: Coded) -> Association:
    both = ~(np.isnan(a.values) | np.isnan(b.values))
    x, y, n = a.values[both], b.values[both], int(both.sum())
    if n < 3 or (x == x[0]).all() or (y == y[0]).all():
        return Association(a.name, b.name, 0.0, 0, 1.0, n, "none")
    if a.ordered and b.ordered:
        rho, p = _spearman(rankdata(x), rankdata(y))
        return Association(a.name, b.name, abs(rho), int(np.sign(rho)), p, n, "Spearman")
    if a.ordered or b.ordered:
        number, codes = (x, y) if a.ordered else (y, x)
        return Association(a.name, b.name, *_eta(rankdata(number), codes), n, "eta")
    return Association(a.name, b.name, *_cramer(x, y), n, "Cramér")


def _spearman(x: Array, y: Array) -> tuple[float, float]:
    x, y = x - x.mean(), y - y.mean()
    rho = float(np.clip(x @ y / math.sqrt(float(x @ x) * float(y @ y)), -1.0, 1.0))
    free = x.shape[0] - 2
    return rho, float(2 * t.sf(abs(rho) * math.sqrt(free / max(1e-300, 1 - rho * rho)), free))


def _eta(ranks: Array, codes: Array) -> tuple[float, int, float]:
    """η of numbers in groups, no sign, and the p-value of the F test on ranks."""
    _, which, count = np.unique(codes, return_inverse=True, return_counts=True)
    n, k = ranks.shape[0], count.shape[0]
    ranks = ranks - ranks.mean()
    means = np.bincount(which, weights=ranks) / count
    between, total = float(count @ means**2), float(ranks @ ranks)
    if n <= k:
        return 0.0, 0, 1.0
    share = between / total
    adjusted = max(0.0, 1.0 - (1.0 - share) * (n - 1) / (n - k))
    statistic = (between / (k - 1)) / max(1e-300, (total - between) / (n - k))
    return math.sqrt(adjusted), 0, float(f.sf(statistic, k - 1, n - k))


def _cramer(x: Array, y: Array) -> tuple[float, int, float]:
    """V of two groupings, no sign, and the p-value of the χ² test."""
    i, j = np.unique(x, return_inverse=True)[1], np.unique(y, return_inverse=True)[1]
    r, c, n = int(i.max()) + 1, int(j.max()) + 1, x.shape[0]
    table = np.bincount(i * c + j, minlength=r * c).reshape(r, c).astype(np.float64)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    statistic = float(((table - expected) ** 2 / expected).sum())
    free = (r - 1) * (c - 1)
    phi = max(0.0, statistic / n - free / (n - 1))
    rows, columns = r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)
    return math.sqrt(min(1.0, phi / max(1e-300, min(rows, columns) - 1))), 0, float(chi2.sf(statistic, free))
