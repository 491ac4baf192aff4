"""What is missing, whether it is missing together, and which rows are there twice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["Together", "exact_copies", "missing_together", "near_copies"]

TOGETHER = 0.8
"""Share of the rows missing one of two columns that miss both, from which on they are missing together."""
NEAR = 0.01
"""Share of the spread of a number, between its 5th and 95th percentile, within which two values are nearly equal."""


@dataclass(frozen=True)
class Together:
    """Columns that are missing in the same rows."""

    columns: tuple[str, ...]
    any: int
    """Rows that miss one of them at least."""
    all: int
    """Rows that miss all of them."""


def missing_together(frame: pl.DataFrame) -> list[Together]:
    """Groups of columns that are missing in the same rows, those of most rows first."""
    names = [name for name in frame.columns if frame.get_column(name).null_count()]
    if len(names) < 2:
        return []
    masks = np.column_stack([frame.get_column(name).is_null().to_numpy() for name in names]).astype(np.float32)
    both = masks.T @ masks
    count = np.diagonal(both)
    either = count[:, None] + count - both
    linked = both >= TOGETHER * either
    _, part = connected_components(coo_array(linked), directed=False)
    found = []
    for number in np.unique(part):
        members = np.flatnonzero(part == number)
        if members.size > 1:
            some = masks[:, members].sum(axis=1)
            every = int((some == members.size).sum())
            found.append(Together(tuple(names[j] for j in members), int((some > 0).sum()), every))
    return sorted(found, key=lambda group: -group.any)


def exact_copies(frame: pl.DataFrame) -> int:
    """Rows that are equal to an earlier one in every column."""
    return frame.height - frame.n_unique()


def near_copies(frame: pl.DataFrame, most: int = 5) -> tuple[int, list[list[int]]]:
    """How many rows nearly equal another one, and some of the groups, by row number; exact copies are not counted.

    Rows are put into cells as wide as what is nearly equal, twice, the second time half a cell further: rows in one cell agree.
    Two rows that agree may yet be parted by the edges of both, so there may be more.
    """
    numbers = [
        name
        for name in frame.columns
        if frame.get_column(name).dtype.is_numeric() or frame.get_column(name).dtype.is_temporal()
    ]
    if not numbers:
        return 0, []
    first = frame.with_row_index("").unique(subset=frame.columns, keep="first", maintain_order=True)
    row = first.get_column("").to_numpy()
    near, groups = np.zeros(row.shape[0], dtype=bool), []
    for shift in (0.0, 0.5):
        cells = [
            _cells(first.get_column(name), shift) if name in numbers else first.get_column(name)
            for name in frame.columns
        ]
        codes = pl.DataFrame(cells).hash_rows(seed=0).to_numpy()
        _, which, count = np.unique(codes, return_inverse=True, return_counts=True)
        near |= count[which] > 1
        for cell in np.flatnonzero(count > 1)[:most]:
            groups.append(sorted(int(i) for i in row[which == cell][:3]))
    distinct = sorted({tuple(group) for group in groups})[:most]
    return int(near.sum()), [list(group) for group in distinct]


def _cells(values: pl.Series, shift: float) -> pl.Series:
    """Numbers of cells of a column of numbers; values without any spread stay as they are."""
    numbers = values.cast(pl.Int64) if values.dtype.is_temporal() else values
    low, high = numbers.quantile(0.05), numbers.quantile(0.95)
    if low is None or high is None or not high > low:
        return values
    width = NEAR * (high / 2 - low / 2) * 2
    return (numbers.cast(pl.Float64) / width + shift).floor()
