"""A table with a target: typed columns, the task, and all that is needed to read new rows the same way."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from certifit._types import Array
from certifit.contest.alarms.registry import of_classes, ring
from certifit.contest.record.description import describe_column
from certifit.contest.table.kinds import Column, Task, converted, infer_columns, labels
from certifit.contest.table.reading import RawTable, TableError, read_table
from certifit.contest.table.task import infer_task
from certifit.names import record

__all__ = ["Conformed", "Table", "TableSchema", "no_such_column"]

FEWEST_ROWS = 10
LISTED = 5
AS_OFTEN = 2.0  # times as many equal rows as chance gives are still chance: columns go together


@dataclass(frozen=True)
class Conformed:
    """New rows in the columns and kinds that a model was trained on.

    Attributes
    ----------
    features : polars.DataFrame
        As `Table.features`.
    notes : tuple of str
        What had to be decided: columns that were ignored, values that could not be read.
    bad_rows : tuple of (line, why)
        Rows that were left out.
    """

    features: pl.DataFrame
    notes: tuple[str, ...] = ()
    bad_rows: tuple[tuple[int, str], ...] = ()


@record("TableSchema")
class TableSchema:
    """What a model file carries to read new rows as the training rows were read: small, and JSON all through.

    Attributes
    ----------
    target : str
        Name of the target.
    task : Task
        What is asked of it.
    columns : tuple of Column
        The features, in order.
    """

    target: str
    task: Task
    columns: tuple[Column, ...]

    def as_dict(self) -> dict[str, Any]:
        """As plain lists, strings and numbers."""
        columns = [{**asdict(c), "levels": None if c.levels is None else list(c.levels)} for c in self.columns]
        task = {**self.task._asdict(), "classes": None if self.task.classes is None else list(self.task.classes)}
        return {"target": self.target, "task": task, "columns": columns}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableSchema:
        """The reverse of `as_dict`."""
        try:
            task = dict(data["task"])
            task["classes"] = None if task["classes"] is None else tuple(task["classes"])
            columns = tuple(
                Column(**{**column, "levels": None if column.get("levels") is None else tuple(column["levels"])})
                for column in data["columns"]
            )
            return cls(str(data["target"]), Task(**task), columns)
        except (KeyError, TypeError) as error:
            raise TableError(f"the description of the columns is damaged ({error}): save the model again.") from None

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of every feature."""
        return {column.name: column.kind for column in self.columns}

    def conform(self, source: Any) -> Conformed:
        """New rows, as the training rows were read.

        Parameters
        ----------
        source : path, "-", stream or data frame
            Other columns are ignored; categories that were never seen stay as they are; what should be a number or a
            date and is not becomes missing, and is counted in the notes.

        Raises
        ------
        TableError
            If a column is missing.
        """
        words = [c.name for c in self.columns if c.kind in ("category", "boolean", "text")]
        numbers = [c.name for c in self.columns if c.number_format]
        named, alone = [*self.kinds, self.target], len(self.columns) == 1
        raw = read_table(source, as_text=[*words, *numbers], named=named, alone=alone)
        absent = [c.name for c in self.columns if c.name not in raw.frame.columns]
        if absent:
            some = ", ".join(repr(name) for name in absent[:LISTED]) + (", …" if len(absent) > LISTED else "")
            raise TableError(
                f"{raw.source} lacks {len(absent)} of the {len(self.columns)} columns the model was trained on: {some}"
                f"{_did_you_mean(absent[0], raw.frame.columns)}; add them (empty where unknown)."
            )
        notes = list(raw.notes)
        extra = [name for name in raw.frame.columns if name not in self.kinds and name != self.target]
        if extra:
            some = ", ".join(extra[:LISTED]) + (", …" if len(extra) > LISTED else "")
            notes.append(f"columns the model does not use were ignored: {some}")
        series = []
        for column in self.columns:
            values, unread = converted(raw.frame.get_column(column.name), column)
            series.append(values)
            if unread:
                what = "number" if column.kind == "numeric" else "date"
                some, count = ("value", "counts") if unread == 1 else ("values", "count")
                notes.append(
                    f"{unread:,} {some} of '{column.name}' could not be read as a {what} and {count} as missing"
                )
        return Conformed(pl.DataFrame(series), tuple(notes), raw.bad_rows)


@dataclass(frozen=True)
class Table:
    """A table, what was inferred of its columns, and what is asked of its target.

    Build it with `Table.from_source`.

    Attributes
    ----------
    frame : polars.DataFrame
        Every column, as its kind wants it, on the rows whose target is known; in a large table words that return often
        are Categorical here, and strings in `features`.
    columns : tuple of Column
        What each one is.
    task : Task
        Binary, multiclass or regression; the classes; why.
    target, source : str
        Name of the target, and of the source.
    bad_rows : tuple of (line, why)
        Rows of the source that were left out.
    warnings : tuple of dict
        ``{"kind", "code", "column", "text"}`` each.

    Examples
    --------
    >>> from certifit import datasets
    >>> from certifit.contest.table.table import Table
    >>> table = Table.from_source(datasets.path("penguins"), "species")
    >>> table.task.kind, table.task.classes
    ('multiclass', ('Adelie', 'Chinstrap', 'Gentoo'))
    >>> table.kinds["sex"], table.features.shape
    ('category', (344, 7))
    """

    frame: pl.DataFrame
    columns: tuple[Column, ...]
    task: Task
    target: str
    source: str
    bad_rows: tuple[tuple[int, str], ...] = ()
    warnings: tuple[dict[str, Any], ...] = ()

    @classmethod
    def from_source(
        cls,
        source: Any,
        target: str,
        *,
        task: str | None = None,
        types: Mapping[str, str] | None = None,
        drop: Iterable[str] = (),
        group: str | None = None,
        time_column: str | None = None,
    ) -> Table:
        """Read a table and infer what its columns are.

        Parameters
        ----------
        source : path, "-", stream or data frame
            See `read_table`.
        target : str
            The column to predict.
        task : {"binary", "multiclass", "classification", "regression"}, default=None
            Inferred if None.
        types : mapping of column to kind, default=None
            "numeric", "category", "boolean", "text", "date" (also "date:%d/%m/%Y") or "id"; wins over inference.
        drop : names, default=()
            Columns to leave out.
        group : str, default=None
            Rows of one group are never on both sides of a split.
        time_column : str, default=None
            The split is by time. Neither it nor the group is a feature.
        """
        types, drop = dict(types or {}), [drop] if isinstance(drop, str) else list(drop)
        as_text = [target, *(name for name, kind in types.items() if kind in ("category", "text", "id"))]
        named = [target, *types, *drop, *(name for name in (group, time_column) if name is not None)]
        raw = read_table(source, as_text=as_text, named=named)
        _check_names(raw, target, types, drop, group, time_column)
        columns = infer_columns(raw.frame, target, types, drop, group, time_column, raw.delimiter)
        # The frame is handed over in a list, so that no name keeps what has been replaced alive.
        handed_over = [raw.frame]
        raw = replace(raw, frame=raw.frame.clear())
        return _typed(raw, handed_over, columns, target, task)

    @cached_property
    def schema(self) -> TableSchema:
        """What a model file carries."""
        return TableSchema(self.target, self.task, tuple(c for c in self.columns if c.role == "feature"))

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of every feature: what ``TableEncoder(kinds=…)`` takes."""
        return self.schema.kinds

    @cached_property
    def features(self) -> pl.DataFrame:
        """Feature columns: Float64 for numeric, String for category, boolean and text, Datetime for date."""
        chosen = [self.frame.get_column(column.name) for column in self.schema.columns]
        return pl.DataFrame([c.cast(pl.String) if c.dtype == pl.Categorical else c for c in chosen])

    @cached_property
    def y(self) -> Array:
        """The target: float64, or labels as strings."""
        values = self.frame.get_column(self.target)
        if self.task.classes is None:
            return values.to_numpy().astype(np.float64)
        known = list(self.task.classes)
        codes = values.replace_strict(known, range(len(known)), return_dtype=pl.Int32).to_numpy()
        return np.asarray(np.array(known)[codes])

    @cached_property
    def groups(self) -> Array | None:
        """Number of the group of each row, if there is a group column; a row without one is a group of its own."""
        if (values := self._with_role("group")) is None:
            return None
        rank = values.rank("dense").cast(pl.Int64).to_numpy(allow_copy=True)
        alone = values.is_null().to_numpy()
        start = 0 if alone.all() else int(np.nanmax(rank.astype(np.float64))) + 1
        return np.where(alone, start + np.cumsum(alone), np.nan_to_num(rank.astype(np.float64))).astype(np.int64)

    @cached_property
    def time(self) -> Array | None:
        """Moment of each row as float64 (days since 1970 for dates), NaN where missing, if there is a time column."""
        if (values := self._with_role("time")) is None:
            return None
        if values.dtype.is_temporal():
            values = values.dt.epoch("us") / 86_400e6
        return values.cast(pl.Float64).to_numpy().astype(np.float64)

    @cached_property
    def codes(self) -> Array:
        """A 64-bit code of the features and the target of each row: equal for exact copies."""
        return self.frame.select([*self.kinds, self.target]).hash_rows(seed=0).to_numpy()

    @cached_property
    def duplicates(self) -> int:
        """Rows that are copies of an earlier one."""
        return int(self.codes.shape[0] - np.unique(self.codes).shape[0])

    @cached_property
    def repeats(self) -> bool:
        """Whether rows repeat about as often by chance, as where all columns are categories: then each is a case of its own.

        Chance is what is left if every column is shuffled for itself. Such rows must not be kept together: copies have the same
        target, so that of equal cases those of one class would be on one side and those of the other on the other.
        """
        if not self.duplicates:
            return False
        rows = self.frame.select([*self.kinds, self.target])
        fewest = self.duplicates / AS_OFTEN
        distinct = [column.n_unique() for column in rows.iter_columns()]
        # Shuffling one feature tells nothing of it: its values must be few.
        if len(self) - max(distinct) < fewest or (rows.width == 2 and 2 * distinct[0] * distinct[1] > len(self)):
            return False
        shuffled = rows.with_columns(pl.col(name).shuffle(seed=j) for j, name in enumerate(rows.columns))
        return len(self) - shuffled.hash_rows(seed=0).n_unique() >= fewest

    @property
    def copies(self) -> Array | None:
        """Codes of rows that a split keeps together if they are equal; None where equal rows are cases of their own."""
        return None if self.repeats else self.codes

    def __len__(self) -> int:
        return self.frame.height

    def describe(self, most: int = 500) -> list[dict[str, Any]]:
        """Every column in plain JSON: kind, role, why, missing and distinct; for the first `most` also the distribution."""
        return [
            describe_column(self.frame.get_column(column.name), column, whole=j < most or column.role == "target")
            for j, column in enumerate(self.columns)
        ]

    def conform(self, source: Any) -> Conformed:
        """New rows, as this table was read: see `TableSchema.conform`."""
        return self.schema.conform(source)

    def _with_role(self, role: str) -> pl.Series | None:
        return next((self.frame.get_column(column.name) for column in self.columns if column.role == role), None)


# From what was read to a table


def _check_names(
    raw: RawTable, target: str, types: Mapping[str, str], drop: Sequence[str], group: str | None, time: str | None
) -> None:
    """Every name that was given exists once and has one role."""
    asked: list[tuple[str, str]] = [("target", target)]
    asked += [("types", name) for name in types] + [("drop", name) for name in drop]
    asked += [(what, name) for what, name in (("group", group), ("time column", time)) if name is not None]
    known = raw.frame.columns
    for what, name in asked:
        if name not in known:
            raise no_such_column(raw, what, name)
        if name in raw.duplicated and what != "drop":
            raise TableError(f"{raw.source} has several columns called {name!r} ({what}): rename all but one of them.")
    roles: dict[str, str] = {}
    for what, name in asked:
        if what != "types" and roles.setdefault(name, what) != what:
            raise TableError(f"column {name!r} cannot be both {roles[name]} and {what}: choose one.")


def no_such_column(raw: RawTable, what: str, name: str) -> TableError:
    """The error for a name that no column has: what it was given as, and the names that are near."""
    known = raw.frame.columns
    hint = _did_you_mean(name, known)
    some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return TableError(f"{raw.source} has no column {name!r}, given as {what}{hint}; the columns are {some}.")


def _typed(
    raw: RawTable, handed_over: list[pl.DataFrame], columns: list[Column], target: str, task: str | None
) -> Table:
    """Columns as their kinds want them, on the rows whose target is known; the frame is taken from its list."""
    frame, warnings = handed_over.pop(), []
    warnings += [ring("reading", note=f"{note[:1].upper()}{note[1:]}") for note in raw.notes]
    if raw.bad_rows:
        line, why = raw.bad_rows[0]
        warnings.append(ring("bad rows", **_plural(len(raw.bad_rows)), line=line, why=why))
    unknown = frame.get_column(target).null_count()
    if frame.height - unknown < FEWEST_ROWS:
        known = f" with a known {target!r}" if unknown else ""
        raise TableError(
            f"{raw.source} has {frame.height - unknown} usable rows{known}: at least {FEWEST_ROWS} are needed to learn "
            "and judge; add rows."
        )
    found = infer_task(frame.get_column(target), task, raw.delimiter)
    columns = [
        _as_target(c, found, frame.get_column(target), raw.delimiter) if c.name == target else c for c in columns
    ]
    if unknown:
        warnings.append(ring("target missing", target, **_plural(unknown)))
        frame = frame.filter(frame.get_column(target).is_not_null())
    if not any(column.role == "feature" for column in columns):
        reasons = "; ".join(f"{c.name}: {c.why}" for c in columns if c.role == "dropped")[:200]
        raise TableError(f"{raw.source} has no column to learn from ({reasons or 'only the target'}): add columns.")
    series = []
    waiting = frame.get_columns()[::-1]
    del frame  # columns leave the list one by one, so that the memory of what is replaced is used again
    for column in columns:
        values = waiting.pop()
        if column.role == "target":
            values = labels(values) if found.classes is not None else converted(values, column)[0]
        elif column.role == "time":
            values = _moments(values, column)
        elif column.role == "group":
            values = labels(values)
        elif column.role == "feature" and not (
            values.dtype == pl.Categorical and column.kind in ("category", "boolean")
        ):
            values = converted(values, column)[0]
        series.append(values)
    if found.classes is not None:
        counts = dict(series[[c.name for c in columns].index(target)].value_counts().iter_rows())
        single = [name for name, count in sorted(counts.items()) if count == 1]
        if single:
            warnings.append(ring("single row", target, **of_classes(single)))
    return Table(pl.DataFrame(series), tuple(columns), found, target, raw.source, raw.bad_rows, tuple(warnings))


def _plural(count: int) -> dict[str, Any]:
    return {"count": count, "s": "" if count == 1 else "s", "were": "was" if count == 1 else "were"}


def _as_target(column: Column, task: Task, values: pl.Series, delimiter: str | None) -> Column:
    from certifit.contest.table.values import number_format

    kind = "numeric" if task.kind == "regression" else "boolean" if column.kind == "boolean" else "category"
    style = number_format(values.unique(), delimiter) if kind == "numeric" and values.dtype == pl.String else None
    return replace(column, kind=kind, why=task.why, number_format=style.code if style is not None else None)


def _moments(values: pl.Series, column: Column) -> pl.Series:
    """The time column as dates or numbers."""
    if column.kind in ("date", "numeric"):
        return converted(values, column)[0]
    if values.dtype.is_numeric():
        return values.cast(pl.Float64)
    raise TableError(
        f"the time column {column.name!r} holds {values.drop_nulls().first()!r}, neither dates nor numbers: "
        "choose another, or give its format with types, as in date:%d/%m/%Y."
    )


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    lower = {k.lower(): k for k in known}
    close = [lower[k] for k in difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)]
    return f" (did you mean {' or '.join(repr(k) for k in close)}?)" if close else ""
