"""Leaks: columns, small sets of columns, identifiers and the order of the rows that give the target away."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl

from certifit._types import Array
from certifit.contest.alarms.measures import alone, cells_of, ranks, sample, score, target, under_one
from certifit.contest.alarms.registry import ring
from certifit.contest.alarms.together import together
from certifit.contest.search.limits import Budget
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import SealedSplit

__all__ = ["leaks", "order"]

NEARLY_PERFECT = 0.99
FEWEST = 20
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
            parts = f"a search for leaks in {unseen:,} of {len(scores):,} columns and in sets of columns"
            found.append(ring("no time", parts=parts))
            break
        scores[name], what = alone(part.get_column(name), kind, y, table.task.kind)
        if scores[name] > NEARLY_PERFECT:
            found.append(ring("leak", name, what=what, score=under_one(scores[name])))
    if not found:
        copies = np.arange(rows.shape[0]) if table.copies is None else table.copies[rows]
        found += together(table, part, y, copies, scores, clock)
    return found + _identifiers(table, rows, y)


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
