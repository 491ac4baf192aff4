"""Leaks: columns, small sets of columns, identifiers and the order of the rows that give the target away.

Sums and products are found among small sets of columns. With standardized columns z, r = corr(z, y) and C = corr(z, z), the best
combination of columns j and k explains

    R² = (r_j² + r_k² − 2 r_j r_k C_jk) / (1 − C_jk²)

for all pairs at once; the best pair and the best column are then grown by the column that explains most of what is left. Products
and quotients are sums of logarithms. What is found must hold on rows it was not found on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from certifit._types import Array
from certifit.contest.alarms.measures import alone, auc, cells_of, r2, ranks, sample, score, target, under_one
from certifit.contest.alarms.registry import ring
from certifit.contest.search.limits import Budget
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import SealedSplit

__all__ = ["leaks", "order"]

NEARLY_PERFECT = 0.99
FEWEST = 20
EXACT = 0.9999  # R² of a combination: a residual below one hundredth of the spread
LARGEST_SET = 8
MOST_COLUMNS = 300
PAIR_AUC, WEAK = 0.999, 0.9
PAIR_COLUMNS, PAIR_ROWS = 25, 1_000
TELLING_ID = 0.9
SORTED = 0.95
TREND = {"R²": 0.1, "AUC": 0.65, "accuracy": 0.75}
FEW_FOR_TREND = 100


def leaks(table: Table, split: SealedSplit, seconds: float) -> list[dict[str, Any]]:
    """Columns, or small sets of them, that predict the target almost perfectly, judged on a sample of the training rows."""
    rows = sample(split.train)
    y = target(table, rows)
    if y.shape[0] < FEWEST or np.unique(y).shape[0] < 2:
        return []
    part = table.features[rows]
    found, scores, clock = [], dict.fromkeys(table.kinds, 0.0), Budget(seconds)
    for seen, (name, kind) in enumerate(table.kinds.items()):
        if clock.left == 0.0:
            unseen = len(scores) - seen
            found.append(ring("no time", parts=f"a search for leaks in {unseen:,} of {len(scores):,} columns"))
            break
        scores[name], what = alone(part.get_column(name), kind, y, table.task.kind)
        if scores[name] > NEARLY_PERFECT:
            found.append(ring("leak", name, what=what, score=under_one(scores[name])))
    if not any(w["code"] == "leak" for w in found):
        found += _together(table, part, y, scores)
    return found + _identifiers(table, rows, y)


def _together(table: Table, part: pl.DataFrame, y: Array, scores: dict[str, float]) -> list[dict[str, Any]]:
    """Small sets of columns of numbers that give the target away, none of which does alone."""
    numbers = [name for name, kind in table.kinds.items() if kind == "numeric"]
    # Of very many, those that tell most alone: a summand goes with the sum.
    numbers = sorted(numbers, key=lambda name: -scores[name])[:MOST_COLUMNS] if len(numbers) > MOST_COLUMNS else numbers
    if len(numbers) < 2:
        return []
    X = part.select(numbers).to_numpy().astype(np.float64)
    if table.task.kind == "regression":
        return _combination(X, y.astype(np.float64), numbers)
    return _pair(X, y, numbers, scores) if table.task.kind == "binary" else []


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
            return [ring("leak of several", columns[chosen[0]], formula=formula, score=under_one(explained))]
    return []


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
    if np.allclose(weights, weights[0], rtol=1e-2) and abs(weights[0] - 1) < 1e-2:
        return " + ".join(f"'{name}'" for name in names)
    return "a weighted sum of " + " and ".join(
        ", ".join(part) if isinstance(part, list) else part
        for part in ([f"'{name}'" for name in names[:-1]], f"'{names[-1]}'")
    )


def _product(names: list[str], weights: Array) -> str:
    """Columns with their powers, as in "price × amount"."""
    if np.allclose(np.abs(weights), 1.0, atol=1e-2):
        up = " × ".join(f"'{name}'" for name, w in zip(names, weights, strict=True) if w > 0)
        down = " × ".join(f"'{name}'" for name, w in zip(names, weights, strict=True) if w < 0)
        constant = "proportional to "
        return f"{constant}{up or '1'}" + (f" ÷ {down}" if down else "")
    return "a product of powers of " + " and ".join(f"'{name}'" for name in names)


# Two classes that two columns decide

PAIRS: tuple[tuple[str, Callable[[Array, Array], Array]], ...] = (
    ("−", lambda a, b: a - b),
    ("+", lambda a, b: a + b),
    ("×", lambda a, b: a * b),
)


def _pair(X: Array, y: Array, names: list[str], scores: dict[str, float]) -> list[dict[str, Any]]:
    """Two columns that together order the classes almost perfectly although neither does alone."""
    weak = [j for j, name in enumerate(names) if scores[name] < WEAK][:PAIR_COLUMNS]
    X, y = X[:PAIR_ROWS], y[:PAIR_ROWS]
    if y.shape[0] < 5 * FEWEST:
        return []
    weak = [j for j in weak if np.isfinite(X[:, j]).all()]
    for place, j in enumerate(weak):
        for k in weak[place + 1 :]:
            for sign, combine in PAIRS:
                area = auc(ranks(combine(X[:, j], X[:, k])), y)
                if max(area, 1 - area) > PAIR_AUC:
                    formula = f"'{names[j]}' {sign} '{names[k]}'"
                    return [ring("leak of two", names[j], formula=formula, score=under_one(max(area, 1 - area)))]
    return []


# Identifiers and the order of rows


def _identifiers(table: Table, rows: Array, y: Array) -> list[dict[str, Any]]:
    """Columns left out as identifiers that tell the target: by their number, or by the letters before it."""
    found = []
    for column in table.columns:
        if column.role != "dropped" or column.kind != "id":
            continue
        values = table.frame.get_column(column.name).cast(pl.String)[rows].fill_null("")
        digits = values.str.extract(r"(\d+)\D*$").cast(pl.Float64, strict=False).fill_null(-1.0).to_numpy()
        letters = [re.sub(r"\d.*", "", value) for value in values]
        best, what = 0.0, ""
        if np.unique(letters).shape[0] > 1:
            best, what = alone(pl.Series(letters), "category", y, table.task.kind)
        if _in_order(table, column.name):  # it counts the rows: their order is looked at by itself
            digits = np.zeros(0)
        if digits.size and np.unique(digits).shape[0] > 1:
            ranked = ranks(digits)
            best, what = max((best, what), score(cells_of(ranked), ranked, y, table.task.kind))
        if best > TELLING_ID:
            found.append(ring("leak in an identifier", column.name, what=what, score=under_one(best)))
    return found


def _in_order(table: Table, name: str) -> bool:
    values = table.frame.get_column(name)
    return values.dtype.is_numeric() and (values.is_sorted() or values.is_sorted(descending=True))


def order(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Whether the target goes with the order of the rows, or with a date, and nobody said that time matters."""
    if split.kind == "time":
        return []
    rows = sample(split.train)
    y = target(table, rows)
    if y.shape[0] < FEW_FOR_TREND or np.unique(y).shape[0] < 2:
        return []
    task = table.task.kind
    part = table.features[rows]
    for name, kind in table.kinds.items():
        if kind == "date":
            best, what = alone(part.get_column(name), kind, y, task)
            if best > TREND[what]:
                return [ring("trend", name, what=what, score=under_one(best))]
    places = rows.astype(np.float64) + 1.0
    ranked = ranks(places)
    best, what = score(cells_of(ranked), ranked, y, task)
    if best > SORTED:
        return [ring("sorted", None, what=what, score=under_one(best))]
    return [ring("order", None, what=what, score=under_one(best))] if best > TREND[what] else []
