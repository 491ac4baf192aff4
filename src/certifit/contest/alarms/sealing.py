"""What is wrong with the split: groups, classes and copies on the wrong side, features that drift."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from certifit.contest.alarms.measures import sample
from certifit.contest.alarms.registry import LISTED, of_classes, ring
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import SealedSplit

__all__ = ["copies", "drift", "sides"]

DRIFT = 0.3
MANY_COPIES = 0.05
FEW_GROUPS = 10
FEWEST = 30


def copies(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Exact copies of rows, and those that are on both sides."""
    share = f"{100 * table.duplicates / len(table):.1f}"
    if table.repeats:
        return [ring("repeats", count=table.duplicates, share=share)]
    across = int(np.isin(table.codes[split.test], table.codes[split.train]).sum())
    found = []
    if table.duplicates:
        aside = "." if across else "; copies were kept on one side of the split."
        if table.duplicates >= MANY_COPIES * len(table):
            aside += (
                " Intervals count each as a row of its own: unless they are cases of their own, they are too narrow."
            )
        found.append(ring("copies", count=table.duplicates, share=share, aside=aside))
    if across:
        found.append(ring("copies across", count=across))
    return found


def sides(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Groups and classes that are missing from one side."""
    found = []
    if split.kind == "group" and table.groups is not None:
        sealed = np.unique(table.groups[split.test])
        if 1 < sealed.shape[0] < FEW_GROUPS:
            found.append(ring("few groups", count=sealed.shape[0]))
        if sealed.shape[0] == 1:
            name = next(column.name for column in table.columns if column.role == "group")
            group = table.frame.get_column(name)[int(split.test[0])]
            found.append(ring("one group", name, group=group))
    if table.task.classes is None:
        return found
    labels, counts = np.unique(table.y, return_counts=True)
    train, test = set(table.y[split.train]), set(table.y[split.test])
    unsealed = [str(label) for label, n in zip(labels, counts, strict=True) if label not in test and n > 1]
    untrained = [str(label) for label in labels if label not in train]
    if unsealed:
        found.append(ring("class not sealed", table.target, **of_classes(unsealed)))
    if untrained:
        found.append(ring("class not trained", table.target, **of_classes(untrained)))
    return found


def drift(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """With a split by time: features whose distribution has moved, by the distance of Kolmogorov and Smirnov."""
    if split.kind != "time":
        return []
    before, after = table.features[sample(split.train)], table.features[sample(split.test)]
    if min(before.height, after.height) < FEWEST:
        return []
    moved = []
    for name, kind in table.kinds.items():
        if kind not in ("text", "date"):
            distance = _distance(before.get_column(name), after.get_column(name), kind)
            if distance > DRIFT:
                moved.append((distance, name))
    return [ring("drift", name) for _, name in sorted(moved, reverse=True)[:LISTED]]


def _distance(a: pl.Series, b: pl.Series, kind: str) -> float:
    a, b = a.drop_nulls(), b.drop_nulls()
    if not a.len() or not b.len():
        return 0.0
    if kind == "numeric":
        x, z = np.sort(a.to_numpy()), np.sort(b.to_numpy())
        grid = np.concatenate([x, z])
        steps = np.searchsorted(x, grid, side="right") / x.size - np.searchsorted(z, grid, side="right") / z.size
        return float(np.abs(steps).max())
    shares = [{v: c / s.len() for v, c in s.value_counts().iter_rows()} for s in (a, b)]
    return 0.5 * sum(abs(shares[0].get(v, 0.0) - shares[1].get(v, 0.0)) for v in shares[0].keys() | shares[1].keys())
