"""What is wrong with columns and rows: missing values, rare classes, few rows, columns that were left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.contest.alarms.measures import correlation, sample, target
from certifit.contest.alarms.registry import LISTED, listed, ring
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import SealedSplit
from certifit.representation.table.encoder import TableEncoder

__all__ = ["imbalance", "left_out", "missing", "pooled", "size"]

MUCH_MISSING = 0.3
TELLING = 0.1
POOLED = 0.1
RARE = 0.05
FEW_ROWS = 200
LEFT_OUT = {"id": ("an identifier", "identifiers"), "constant": ("constant",) * 2, "empty": ("empty",) * 2}


def missing(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Columns with many gaps, and columns whose gaps tell the target."""
    found, much = [], []
    rows = sample(split.train)
    train, y = table.features[rows], target(table, rows)
    for name, nulls in zip(train.columns, train.null_count().row(0), strict=True):
        if nulls > MUCH_MISSING * train.height:
            much.append((name, 100 * nulls / train.height))
        if not 0.01 * train.height < nulls < 0.99 * train.height or train.height < 50:
            continue
        absent = train.get_column(name).is_null().to_numpy().astype(np.float64)
        if _association(absent, y, table.task.kind) > TELLING:
            found.append(ring("missing tells", name))
    if much:
        some = ", ".join(f"'{name}' ({share:.0f} %)" for name, share in much[:LISTED])
        more = f" and {len(much) - LISTED} more" if len(much) > LISTED else ""
        found.append(ring("missing", much[0][0], columns=some + more))
    return found


def _association(absent: Array, y: Array, task: str) -> float:
    """Squared correlation; for classes the largest over the classes."""
    targets = [y] if task == "regression" else [(y == c).astype(np.float64) for c in np.unique(y)]
    return max(correlation(absent, t) ** 2 for t in targets)


def imbalance(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """A class with few of the training rows."""
    if table.task.classes is None:
        return []
    labels, counts = np.unique(table.y[split.train], return_counts=True)
    share = counts / counts.sum()
    rare = int(np.argmin(share))
    if share[rare] >= (RARE if len(labels) == 2 else RARE / 2):
        return []
    return [
        ring(
            "rare class",
            table.target,
            label=labels[rare],
            count=counts[rare],
            rows=counts.sum(),
            share=f"{100 * share[rare]:.2g}",
        )
    ]


def pooled(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Columns whose rare categories, which the encoder takes together, hold many rows."""
    names = [name for name, kind in table.kinds.items() if kind == "category"]
    if not names:
        return []
    train = table.features[split.train].select(names)
    encoder = TableEncoder(kinds=dict.fromkeys(names, "category"), categories="ordinal", missing="keep")
    codes = np.asarray(encoder.fit_transform(train))
    found = {}
    for j, (name, learned) in enumerate(zip(names, encoder.columns_, strict=True)):
        kept, share = len(learned["levels"]), float(np.mean(codes[:, j] == len(learned["levels"])))
        if learned["other"] and share >= POOLED:
            every = train.get_column(name).drop_nulls().n_unique()
            found[name] = f"'{name}' ({every - kept:,} of {every:,}, in {100 * share:.0f} % of the rows)"
    return [ring("pooled", next(iter(found)), columns=", ".join(list(found.values())[:LISTED]))] if found else []


def size(table: Table, split: SealedSplit) -> list[dict[str, Any]]:
    """Few rows, or fewer rows than columns."""
    train, width = split.train.shape[0], table.features.width
    found = [ring("few rows", train=train, test=split.test.shape[0])] if train < FEW_ROWS else []
    return found + ([ring("wide", columns=width, train=train)] if width > train else [])


def left_out(table: Table) -> list[dict[str, Any]]:
    """Columns that nobody learns from, by reason."""
    found = []
    for kind, (one, many) in LEFT_OUT.items():
        names = [c.name for c in table.columns if c.role == "dropped" and c.kind == kind]
        if names:
            found.append(ring("left out", names[0], what=one if len(names) == 1 else many, columns=listed(names)))
    return found
