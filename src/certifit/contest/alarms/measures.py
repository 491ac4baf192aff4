"""How well numbers or cells tell a target: ranks, AUC, R², cross-fitted guesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from certifit._types import Array
from certifit.contest.table.table import Table

__all__ = [
    "alone",
    "auc",
    "cells_of",
    "correlation",
    "nearest_guess",
    "numbers_of",
    "r2",
    "ranks",
    "sample",
    "score",
    "target",
    "under_one",
]

SAMPLE = 5_000
BINS = 50
MICROSECONDS = 86_400e6  # of a day


def sample(rows: Array, most: int = SAMPLE) -> Array:
    """At most so many rows, drawn always alike."""
    if rows.shape[0] <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def target(table: Table, rows: Array) -> Array:
    """The target as numbers: itself, 1 for the positive class, or the number of the class."""
    y = table.y[rows]
    if table.task.kind == "binary":
        return (y == table.task.positive).astype(np.float64)
    return np.unique(y, return_inverse=True)[1].reshape(-1) if table.task.kind == "multiclass" else y


def ranks(values: Array) -> Array:
    """Ranks from 1, equal values sharing their mean rank."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.append(True, ordered[1:] != ordered[:-1])
    ends = np.append(np.flatnonzero(new), values.shape[0])
    found = np.empty(values.shape[0])
    found[order] = (0.5 * (ends[:-1] + ends[1:] + 1))[np.cumsum(new) - 1]
    return found


def cells_of(ranked: Array) -> Array:
    """Equal counts in each of some cells; equal values share a cell."""
    return ((ranked - 1) * BINS / ranked.shape[0]).astype(np.int64)


def numbers_of(values: pl.Series) -> Array:
    """Numbers as they are, dates in days; NaN where they are missing."""
    if values.dtype.is_temporal():
        return values.dt.epoch("us").cast(pl.Float64).to_numpy() / MICROSECONDS
    return values.cast(pl.Float64).to_numpy()


def alone(values: pl.Series, kind: str, y: Array, task: str) -> tuple[float, str]:
    """How well one column predicts the target: AUC, accuracy above chance, or R²."""
    if kind == "text":
        return 0.0, ""
    if kind in ("numeric", "date"):
        raw = numbers_of(values)
        numbers: Any = ranks(np.where(np.isnan(raw), -np.inf, raw))
        cells = cells_of(numbers)
    else:
        cells, numbers = values.fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1, None
    return score(cells, numbers, y, task)


def score(cells: Array, numbers: Array | None, y: Array, task: str) -> tuple[float, str]:
    """How well cells, and where they have an order the ranks behind them, predict the target of rows left out."""
    guess = _cross_fitted(cells, y, task)
    if task == "regression":
        ordered = 0.0 if numbers is None else correlation(numbers, ranks(y)) ** 2
        return max(ordered, r2(guess, y)), "R²"
    if task == "binary":
        area = 0.5 if numbers is None else auc(numbers, y)
        return max(area, 1 - area, auc(ranks(guess), y)), "AUC"
    chance = np.bincount(y.astype(np.int64)).max() / y.shape[0]
    right = float((guess == y).mean())
    return (right if right - chance > 0.5 * (1 - chance) else 0.0), "accuracy"


def _cross_fitted(cells: Array, y: Array, task: str) -> Array:
    """Each half of the rows guessed from the other by the mean, or the majority, of the cell."""
    half = np.arange(y.shape[0]) % 2 == 0
    guess = np.empty(y.shape[0])
    for learn in (half, ~half):
        if task == "multiclass":
            counts = np.zeros((cells.max() + 1, int(y.max()) + 1))
            np.add.at(counts, (cells[learn], y[learn].astype(np.int64)), 1.0)
            counts += np.bincount(y[learn].astype(np.int64), minlength=counts.shape[1]) * 1e-9
            guess[~learn] = counts.argmax(axis=1)[cells[~learn]]
            continue
        total = np.bincount(cells[learn], weights=y[learn], minlength=cells.max() + 1)
        count = np.bincount(cells[learn], minlength=cells.max() + 1)
        mean = np.where(count > 0, total / np.maximum(count, 1), y[learn].mean())
        guess[~learn] = mean[cells[~learn]]
    return guess


def nearest_guess(values: Array, y: Array) -> Array:
    """Each half of the rows guessed from the other by the commonest class at the nearest value."""
    half = np.arange(y.shape[0]) % 2 == 0
    guess = np.empty_like(y)
    for learn in (half, ~half):
        known, cell = np.unique(values[learn], return_inverse=True)
        counts = np.zeros((known.shape[0], int(y.max()) + 1))
        np.add.at(counts, (cell.reshape(-1), y[learn]), 1.0)
        above = np.searchsorted(known, values[~learn]).clip(0, known.shape[0] - 1)
        below = np.maximum(above - 1, 0)
        nearest = np.where(values[~learn] - known[below] < known[above] - values[~learn], below, above)
        guess[~learn] = counts.argmax(axis=1)[nearest]
    return guess


def auc(ranked: Array, y: Array) -> float:
    """Area under the ROC curve of ranks."""
    positive = y == 1
    a, b = int(positive.sum()), int((~positive).sum())
    if not a or not b:
        return 0.5
    return float((ranked[positive].sum() - a * (a + 1) / 2) / (a * b))


def r2(guess: Array, y: Array) -> float:
    """Share of the variation of y that a guess explains."""
    unit = float(np.abs(y).max()) or 1.0  # squares of the largest numbers do not exist
    residual, spread = (y - guess) / unit, (y - y.mean()) / unit
    total = float(spread @ spread)
    return 1.0 - float(residual @ residual) / total if total > 0 else 0.0


def correlation(a: Array, b: Array) -> float:
    """Of two lists of numbers."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else 0.0


def under_one(value: float) -> str:
    """A score that is 1 only if it is exactly so."""
    return "1" if value == 1.0 else f"{min(value, 0.9999):.4f}"
