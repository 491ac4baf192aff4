"""The table that is explored: columns of known kind, and the rows that the costly questions are asked of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from certifit._types import Array
from certifit.contest.record.description import describe_column
from certifit.contest.table.kinds import Column, converted, infer_columns, labels
from certifit.contest.table.reading import RawTable, TableError, read_table
from certifit.contest.table.table import no_such_column

__all__ = ["Explored", "read"]

FEWEST_ROWS = 10
SAMPLE = 20_000
"""Rows whose associations, groups and outliers are looked at; of a larger table a sample drawn without repetition."""


@dataclass(frozen=True)
class Explored:
    """A table without a target."""

    frame: pl.DataFrame
    """All rows, each column as its kind wants it."""
    columns: tuple[Column, ...]
    label: str | None
    """The column that only colours the map."""
    source: str
    sample: Array
    """Numbers of the rows that the costly questions are asked of, ascending."""
    bad_rows: tuple[tuple[int, str], ...] = ()
    """Line of each row that could not be read, and why."""
    notes: tuple[str, ...] = ()
    """What was decided while reading."""

    @property
    def kinds(self) -> dict[str, str]:
        """Kinds of the columns that tell rows apart."""
        return {column.name: column.kind for column in self.columns if column.role == "feature"}

    @property
    def features(self) -> pl.DataFrame:
        """These columns, of all rows."""
        chosen = [self.frame.get_column(name) for name in self.kinds]
        return pl.DataFrame([c.cast(pl.String) if c.dtype == pl.Categorical else c for c in chosen])

    def describe(self) -> list[dict[str, Any]]:
        """Every column in plain JSON, over all rows."""
        return [describe_column(self.frame.get_column(column.name), column) for column in self.columns]


def read(
    source: Any, label: str | None, types: Mapping[str, str] | None, drop: Iterable[str], rows: int, seed: int
) -> Explored:
    """Read a table and infer what its columns are."""
    types, drop = dict(types or {}), list(drop)
    asked = [name for name in (label, *types, *drop) if name is not None]
    as_text = [name for name, kind in types.items() if kind in ("category", "text", "id")]
    raw = read_table(source, as_text=as_text, named=asked, alone=True)
    for what, names in (("label", [label] if label else []), ("types", types), ("drop", drop)):
        for name in names:
            if name not in raw.frame.columns:
                raise no_such_column(raw, what, name)
    if raw.frame.height < FEWEST_ROWS:
        raise TableError(
            f"{raw.source} has {raw.frame.height} rows: at least {FEWEST_ROWS} are needed to find anything."
        )
    columns = infer_columns(raw.frame, label, types, drop, delimiter=raw.delimiter)
    columns = [replace(column, role="label") if column.name == label else column for column in columns]
    frame = pl.DataFrame([_typed(raw, column) for column in columns])
    height, sample = frame.height, np.arange(frame.height)
    if height > rows:
        sample = np.sort(np.random.default_rng(seed).choice(height, rows, replace=False))
    return Explored(frame, tuple(columns), label, raw.source, sample, raw.bad_rows, raw.notes)


def _typed(raw: RawTable, column: Column) -> pl.Series:
    """A column as its kind wants it; a label in words, unless it is a quantity."""
    values = raw.frame.get_column(column.name)
    if column.role == "label" and column.kind not in ("numeric", "date"):
        return labels(values)
    return converted(values, column)[0] if column.role in ("feature", "label") else values
