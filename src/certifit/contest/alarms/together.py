"""Small sets of columns that give the target away, none of which does alone.

A number may be a sum or a product. With standardized columns z, r = corr(z, y) and C = corr(z, z), the best combination of
columns j and k explains

    R² = (r_j² + r_k² − 2 r_j r_k C_jk) / (1 − C_jk²)

for all pairs at once; the best pair and the best column are then grown by the column that explains most of what is left. Products
and quotients of positive numbers are sums of logarithms. What is found must hold on rows it was not found on.

Of all other rules of two columns (a product of any signs, a curve of a difference, classes that are bands of a ratio) every sum,
difference, product and quotient is formed, and for classes every sum of three with their signs. A hundred rows or two are enough
to dismiss nearly all of them: along a combination that decides, the target rises or falls throughout, and classes change a few
times only. The rest is judged on all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from certifit._types import Array
from certifit.contest.alarms.measures import auc, correlation, nearest_guess, numbers_of, r2, ranks, under_one
from certifit.contest.alarms.registry import ring
from certifit.contest.search.limits import Budget
from certifit.contest.table.table import Table

__all__ = ["together"]

FEWEST = 20
EXACT = 0.9999  # R² of a combination: a residual below one hundredth of the spread
LARGEST_SET = 8
MOST_COLUMNS = 300
STRONG = 0.99  # what a column may not tell alone
WEAK = 0.9  # what it may tell where the pair only orders two classes well
PAIR_COLUMNS, TRIPLE_COLUMNS = 100, 25
PAIR_AUC = 0.999
LARGEST = 1e100  # squares of products of larger numbers do not exist
STRAY = 0.001  # of the rows that a rule of classes may get wrong beside those at a border
AT_ONE = 3  # rows at a border that may be nearer to one of the other side
SCREENED = 150  # rows that dismiss nearly all combinations
PROMISING = 0.98  # R² of ranks on these
AT_BORDER = 0.07  # of a class lies in the tenth of its range next to a border, on average, where a threshold cuts
MOST_AT_BORDER = 0.15  # that counts of one class
ENOUGH = 30  # combinations that show whether classes are cut
MAIN = 0.1  # of the rows of a class make a band of it


def together(
    table: Table, part: pl.DataFrame, y: Array, codes: Array, scores: dict[str, float], clock: Budget
) -> list[dict[str, Any]]:
    """An alarm if a small set of columns of numbers or dates gives the target away.

    Parameters
    ----------
    table : Table
        The table.
    part : polars.DataFrame
        Features of the rows to look at.
    y : array of shape (n_rows,)
        Their target, as numbers.
    codes : array of shape (n_rows,)
        A number for each row, equal for rows that are copies.
    scores : dict
        How well each column tells the target alone.
    clock : Budget
        The time for all leaks; what it leaves out is said.
    """
    names = [name for name, kind in table.kinds.items() if kind in ("numeric", "date")]
    # Of very many, those that tell most alone: a summand goes with the sum.
    names = sorted(names, key=lambda name: -scores[name])[:MOST_COLUMNS] if len(names) > MOST_COLUMNS else names
    if len(names) < 2:
        return []
    once = np.sort(np.unique(codes, return_index=True)[1])  # copies would be guessed from each other
    X, y = np.column_stack([numbers_of(part.get_column(name)) for name in names])[once], y[once]
    numeric = table.task.kind == "regression"
    found = _combination(X, y.astype(np.float64), names) if numeric else []
    if found or y.shape[0] < 5 * FEWEST:
        return found
    usable = [j for j, name in enumerate(names) if scores[name] < STRONG and (np.abs(X[:, j]) < LARGEST).mean() > 0.99]
    usable = usable[:PAIR_COLUMNS]
    rows = (np.abs(X[:, usable]) < LARGEST).all(axis=1)
    X, y = X[rows][:, usable], y[rows]
    if y.shape[0] < 5 * FEWEST or np.unique(y).shape[0] < 2:
        return []
    if not numeric:
        y = y.astype(np.int64)
        alone = {names[j]: _density_at_borders(X[:, k], y) for k, j in enumerate(usable)}
        found = [
            ring("leak", name, what="accuracy", score=under_one(right))
            for name, (dense, right) in alone.items()
            if dense is not None and dense > AT_BORDER
        ]
        if found:
            return found
        apart = [alone[names[j]][0] is None for j in usable]
        X, usable = X[:, apart], [j for j, use in zip(usable, apart, strict=True) if use]
    weak = {names[j]: scores[names[j]] for j in usable}
    dated = {name for name in weak if table.kinds[name] == "date"}
    return _rule(X, y, weak, dated, table.task.kind, clock)


# A number that is a sum or a product


def _combination(X: Array, y: Array, names: list[str]) -> list[dict[str, Any]]:
    for transform, write in ((lambda v: v, _sum), (_logarithm, _product)):
        Z, z = transform(X), transform(y)
        if z is None or Z is None:
            continue
        usable = np.isfinite(Z).mean(axis=0) > 0.99
        rows = np.isfinite(Z[:, usable]).all(axis=1) & np.isfinite(z)
        columns = [name for name, use in zip(names, usable, strict=True) if use]
        if rows.sum() < FEWEST or len(columns) < 2:
            continue
        chosen, weights, explained = _small_set(Z[rows][:, usable], z[rows])
        if explained > EXACT:
            formula = write([columns[j] for j in chosen], weights)
            return [_of_a_number(columns[chosen[0]], formula, "R²", explained)]
    return []


def _of_a_number(column: str, formula: str, what: str, explained: float) -> dict[str, Any]:
    return ring("leak of several", column, formula=formula, what=what, score=under_one(explained))


def _logarithm(values: Array) -> Array | None:
    """Logarithms where all numbers are positive; columns that are not become NaN."""
    if values.ndim == 1 and not (values > 0).all():
        return None
    with np.errstate(all="ignore"):
        return np.where(values > 0, np.log(np.where(values > 0, values, 1.0)), np.nan)


def _small_set(X: Array, y: Array) -> tuple[list[int], Array, float]:
    """Columns of the smallest set that explains the target, their weights in units of the columns, and R² on the other half."""
    half = np.arange(y.shape[0]) % 2 == 0
    mean, unit = X.mean(axis=0), np.maximum(np.abs(X).max(axis=0), 1e-300)
    Z = (X - mean) / unit
    spread = np.sqrt(np.maximum((Z**2).mean(axis=0), 1e-300))
    Z = np.where(spread > 1e-9, Z / spread, 0.0)
    scale = float(np.abs(y).max()) or 1.0
    z = (y - y.mean()) / scale
    C = Z[half].T @ Z[half] / half.sum()
    r = Z[half].T @ z[half] / half.sum() / (float(np.sqrt((z[half] ** 2).mean())) or 1.0)
    with np.errstate(all="ignore"):
        pairs = (r[:, None] ** 2 + r[None, :] ** 2 - 2 * np.outer(r, r) * C) / (1 - C**2)
    pairs = np.where((np.abs(C) < 1 - 1e-9) & np.isfinite(pairs), pairs, 0.0)
    np.fill_diagonal(pairs, 0.0)
    best: tuple[list[int], float] = ([], 0.0)
    for start in (list(np.unravel_index(int(np.argmax(pairs)), pairs.shape)), [int(np.argmax(np.abs(r)))]):
        chosen = [int(j) for j in start]
        while True:
            w = np.linalg.lstsq(Z[half][:, chosen], z[half], rcond=None)[0]
            held_out = r2(Z[~half][:, chosen] @ w, z[~half])
            if held_out > best[1] + 1e-12:
                best = (list(chosen), held_out)
            if held_out > EXACT or len(chosen) >= min(LARGEST_SET, Z.shape[1]):
                break
            residual = z[half] - Z[half][:, chosen] @ w
            gain = np.abs(Z[half].T @ residual)
            gain[chosen] = -1.0
            chosen.append(int(np.argmax(gain)))
        if best[1] > EXACT:
            break
    chosen = best[0]
    w = np.linalg.lstsq(Z[:, chosen], z, rcond=None)[0] * scale / (spread[chosen] * unit[chosen])
    order = sorted(range(len(chosen)), key=lambda k: chosen[k])
    return [chosen[k] for k in order], w[order], best[1]


def _sum(names: list[str], weights: Array) -> str:
    """Columns with their weights, as in "casual + registered"."""
    if np.allclose(np.abs(weights), 1.0, rtol=1e-2):
        return _signed(names, weights)
    return "a weighted sum of " + " and ".join(
        ", ".join(part) if isinstance(part, list) else part
        for part in ([f"'{name}'" for name in names[:-1]], f"'{names[-1]}'")
    )


def _signed(names: list[str], weights: Any) -> str:
    """A sum with its signs, what is added first."""
    ordered = sorted(zip(names, weights, strict=True), key=lambda pair: pair[1] < 0)
    first = ("−" if ordered[0][1] < 0 else "") + f"'{ordered[0][0]}'"
    return first + "".join(f" {'−' if w < 0 else '+'} '{name}'" for name, w in ordered[1:])


def _product(names: list[str], weights: Array) -> str:
    """Columns with their powers, as in "price × amount"."""
    if np.allclose(np.abs(weights), 1.0, atol=1e-2):
        up = " × ".join(f"'{name}'" for name, w in zip(names, weights, strict=True) if w > 0)
        down = " × ".join(f"'{name}'" for name, w in zip(names, weights, strict=True) if w < 0)
        constant = "proportional to "
        return f"{constant}{up or '1'}" + (f" ÷ {down}" if down else "")
    return "a product of powers of " + " and ".join(f"'{name}'" for name in names)


# Any target that a combination of two or three columns decides

Combine = Callable[..., Array]
Rule = tuple[list[str], str, Array, Array]  # names of columns, the formula, values, target


def _quotient(a: Array, b: Array) -> Array:
    return a / np.where(b != 0, b, np.nan)


def _share(a: Array, b: Array) -> Array:
    """Classes are cut by shares and rates: where a divisor changes its sign, clouds have values beyond any range too."""
    return a / np.where(b > 0, b, np.nan)


PAIRS: dict[str, Combine] = {"{0} − {1}": np.subtract, "{0} + {1}": np.add, "{0} × {1}": np.multiply}
OF_NUMBERS = PAIRS | {"{0} ÷ {1}": _quotient, "{1} ÷ {0}": lambda a, b: _quotient(b, a)}
OF_CLASSES = PAIRS | {"{0} ÷ {1}": _share, "{1} ÷ {0}": lambda a, b: _share(b, a)}
TRIPLES: dict[str, Combine] = {
    "{0} + {1} + {2}": lambda a, b, c: a + b + c,
    "{0} + {1} − {2}": lambda a, b, c: a + b - c,
    "{0} − {1} + {2}": lambda a, b, c: a - b + c,
    "{1} + {2} − {0}": lambda a, b, c: b + c - a,
}


def _rule(
    X: Array, y: Array, scores: dict[str, float], dated: set[str], task: str, clock: Budget
) -> list[dict[str, Any]]:
    """An alarm for a combination that decides the target."""
    rules = (
        rule
        for rule in _combinations(X, y, list(scores), task, clock)
        # The first of all days is nobody's zero: dates are only subtracted from each other.
        if not dated & set(rule[0]) or (dated >= set(rule[0]) and " − " in rule[1] and len(rule[0]) == 2)
    )
    if task == "regression":
        found = _curve(rules)
    else:
        found = _cut(rules, scores)
    if found is None and clock.left == 0.0:
        return [ring("no time", parts="a search for leaks in sets of columns")]
    return [] if found is None else [found]


def _curve(rules: Iterator[Rule]) -> dict[str, Any] | None:
    """The alarm of the first combination that a number is a line or a curve in."""
    for columns, formula, values, y in rules:
        explained, straight = _straight(values, y)
        if explained > EXACT:
            return _of_a_number(columns[0], formula if straight else f"a linear function of {formula}", "R²", explained)
        ordered = correlation(ranks(values), ranks(y))
        if ordered**2 > EXACT:
            way = "rises" if ordered > 0 else "falls"
            return _of_a_number(columns[0], f"a function that {way} with {formula}", "R² of ranks", ordered**2)
    return None


def _cut(rules: Iterator[Rule], scores: dict[str, float]) -> dict[str, Any] | None:
    """The alarm of a combination that classes are bands of, or that orders two better than weak columns can.

    Classes that are apart by nature are bands of many combinations, and thin or with a gap where they meet. A threshold cuts
    through rows without regard to them, and of one combination: half of those found, or more, must look cut.
    """
    found: list[tuple[float, dict[str, Any]]] = []
    for columns, formula, values, y in rules:
        code = "leak of two" if len(columns) == 2 else "leak of three"
        if y.max() == 1 and all(scores[name] < WEAK for name in columns):
            area = auc(ranks(values), y)
            if max(area, 1 - area) > PAIR_AUC:
                return ring(code, columns[0], formula=formula, what="AUC", score=under_one(max(area, 1 - area)))
        dense, right = _density_at_borders(values, y)
        if dense is not None:
            found.append((dense, ring(code, columns[0], formula=formula, what="accuracy", score=under_one(right))))
        if len(found) == ENOUGH:
            break
    if not found or float(np.median([dense for dense, _ in found])) < AT_BORDER:
        return None
    return next(alarm for dense, alarm in found if dense >= AT_BORDER)


def _few_of_each(y: Array, task: str) -> Array:
    """Rows for a first look: some of each class, in an order that tells nothing."""
    order = np.random.default_rng(0).permutation(y.shape[0])
    if task == "regression":
        return order[:SCREENED]
    labels = np.unique(y)
    each = max(SCREENED // labels.shape[0], 10)
    return order[np.sort(np.concatenate([np.flatnonzero(y[order] == label)[:each] for label in labels]))]


def _combinations(X: Array, y: Array, names: list[str], task: str, clock: Budget) -> Iterator[Rule]:
    """Combinations that pass the first look, with their values and the target on all rows where they have one."""
    few = _few_of_each(y, task)
    for columns, formula, combine in _promising(X[few], y[few], task, clock):
        with np.errstate(all="ignore"):
            values = combine(*X[:, columns].T)
        known = np.isfinite(values)
        if known.mean() > 0.99:
            chosen = [names[j] for j in columns]
            yield chosen, formula.format(*(f"'{name}'" for name in chosen)), values[known], y[known]


def _promising(X: Array, y: Array, task: str, clock: Budget) -> Iterator[tuple[list[int], str, Combine]]:
    """Combinations that pass the first look: all pairs, and for classes sums of three; sums of numbers were fitted."""
    promises, pairs = (_rises, OF_NUMBERS) if task == "regression" else (_changes_seldom, OF_CLASSES)
    for j in range(X.shape[1] - 1):
        for formula, combine in pairs.items():
            if clock.left == 0.0:
                return
            with np.errstate(all="ignore"):
                passed = np.flatnonzero(promises(combine(X[:, [j]], X[:, j + 1 :]), y))
            for k in (passed + j + 1).tolist():
                yield [j, k], formula, combine
    few = range(0 if task == "regression" else min(X.shape[1], TRIPLE_COLUMNS))
    for j, k in combinations(few, 2):
        for formula, three in TRIPLES.items():
            passed = np.flatnonzero(promises(three(X[:, [j]], X[:, [k]], X[:, k + 1 : len(few)]), y))
            for m in (passed + k + 1).tolist():
                yield [j, k, m], formula, three


def _rises(values: Array, y: Array) -> Array:
    """Whether the target rises or falls along each column of values."""
    place = np.argsort(np.argsort(values, axis=0), axis=0) - 0.5 * (y.shape[0] - 1)
    wanted = ranks(y)
    wanted = (wanted - wanted.mean()) / np.linalg.norm(wanted - wanted.mean())
    return (wanted @ place) ** 2 > PROMISING * (place**2).sum(axis=0)


def _changes_seldom(values: Array, y: Array) -> Array:
    """Whether the classes change a few times only along each column of values."""
    labels = y[np.argsort(values, axis=0)]
    return (labels[1:] != labels[:-1]).sum(axis=0) <= 2 * np.unique(y).shape[0] + 0.05 * y.shape[0]


def _straight(values: Array, y: Array) -> tuple[float, bool]:
    """R² of the target as a line in the values, each half of the rows from the other, the lower; and whether it is the values."""
    half = np.arange(y.shape[0]) % 2 == 0
    explained = []
    for learn in (half, ~half):
        slope = correlation(values[learn], y[learn]) * y[learn].std() / (values[learn].std() or 1.0)
        explained.append(r2(y[learn].mean() + slope * (values[~learn] - values[learn].mean()), y[~learn]))
    return min(explained), bool(np.allclose(values, y, rtol=1e-2, atol=1e-2 * float(y.std())))


def _density_at_borders(values: Array, y: Array) -> tuple[float | None, float]:
    """Of classes that are bands of the values, how dense rows are where they meet, or None; and how often they are guessed.

    The share of a class in the tenth of its range next to a border, on average. Of normal values it is 3 % or less, of a class
    that was cut off 10 % or more.
    """
    n, counts = y.shape[0], np.bincount(y)
    wrong = int((nearest_guess(values, y) != y).sum())
    order = np.lexsort((y, values))
    ordered, labels = values[order], y[order]
    borders = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    many = borders.shape[0] > 2 * ((counts > 0).sum() - 1 + STRAY * n)
    if many or wrong > min(AT_ONE * borders.shape[0] + STRAY * n, 0.1 * (n - counts.max())):
        return None, 1 - wrong / n
    sizes = counts[labels[np.append(0, borders)]]
    bands = [run for run, size in zip(np.split(ordered, borders), sizes, strict=True) if run.shape[0] > MAIN * size]
    shares = []
    for place, band in enumerate(bands):
        tenth, others = 0.1 * (band[-1] - band[0]), max(band.shape[0] - 1, 1)
        if place > 0:
            shares.append(((band <= band[0] + tenth).sum() - 1) / others)
        if place + 1 < len(bands):
            shares.append(((band >= band[-1] - tenth).sum() - 1) / others)
    return (float(np.minimum(shares, MOST_AT_BORDER).mean()) if shares else None), 1 - wrong / n
