"""What each column is; every decision comes with a phrase that says why."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from certifit.contest.table.reading import TableError
from certifit.contest.table.values import NumberFormat, date_format, finite, number_format, parse_dates
from certifit.names import record, stored

__all__ = ["KINDS", "Column", "Task", "converted", "example", "infer_columns", "labels"]

KINDS = ("numeric", "category", "boolean", "text", "date", "id")
"""Kinds a user may ask for; the others ("constant", "empty") are found only."""

TRUTH = {"yes": True, "no": False, "true": True, "false": False, "y": True, "n": False, "t": True, "f": False}
TRUTH |= {"on": True, "off": False}
CODE_NAME = re.compile(
    r"(?i)(^|[ _.-])(code|zip|zipcode|postcode|postal|category|cat|type|class|region|district)$|code$"
)
ID_NAME = re.compile(r"(?i)(^|[ _.-])(id|ids|uuid|guid|key|index|nr|no|number|rownames?|row|instant|serial)$|Id$|ID$")
FEW = 30
LARGE = 100_000
JUNK = 0.05


@record("TableColumn")
class Column:
    """What is known of one column."""

    name: str
    kind: str
    """"numeric", "category", "boolean", "text", "date", "id", "constant" or "empty"."""
    role: str = "feature"
    """"feature", "target", "dropped", "group" or "time"."""
    why: str | None = None
    """Why it is taken for this, in one phrase."""
    missing: int = 0
    distinct: int = 0
    """How many values are missing, and how many different ones there are."""
    levels: tuple[str, ...] | None = None
    """Of a boolean: the value that means no, then the one that means yes."""
    date_format: str | None = None
    number_format: str | None = None
    """How its strings are to be read."""


@stored("ContestTask")
class Task(NamedTuple):
    """What is asked of the target: unpacks into kind, classes, positive, why."""

    kind: str
    classes: tuple[str, ...] | None
    positive: str | None
    why: str


# Columns


def infer_columns(
    frame: pl.DataFrame,
    target: str | None = None,
    overrides: Mapping[str, str] | None = None,
    drop: Iterable[str] = (),
    group: str | None = None,
    time_column: str | None = None,
    delimiter: str | None = None,
) -> list[Column]:
    """Kind and role of every column of a frame.

    Parameters
    ----------
    frame : polars.DataFrame
        As `read_table` gives it.
    target, group, time_column : str, default=None
        Columns with a role of their own.
    overrides : mapping of name to kind, default=None
        Kinds that win over what would be inferred; "date:%d/%m/%Y" also gives the format.
    drop : names, default=()
        Columns to leave out.
    delimiter : str, default=None
        Of the file, which helps to tell decimal commas from thousands.

    Returns
    -------
    list of Column

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"wage": ["1,5", "2,25"], "born": ["13/1/1990", "2/1/1991"], "same": [1, 1]})
    >>> for column in infer_columns(frame):
    ...     print(column.name, column.kind, "|", column.why)
    wage numeric | numbers with decimal commas
    born date | dates, day first
    same constant | one value only
    """
    overrides = dict(overrides or {})
    dropped = set(drop)
    missing = frame.null_count().row(0) if frame.width else ()
    distinct = _distinct(frame)
    found = []
    for j, series in enumerate(frame.get_columns()):
        name = series.name
        known = Column(name, "numeric", missing=int(missing[j]), distinct=distinct[j])
        role = "target" if name == target else "group" if name == group else "time" if name == time_column else None
        if name in overrides:
            column = _asked(series, known, overrides[name], delimiter)
        else:
            column = _inferred(series, known, delimiter, has_role=role is not None)
        if role is not None:
            column = replace(column, role=role)
        elif name in dropped:
            column = replace(column, role="dropped", why="left out on request")
        elif column.kind in ("id", "constant", "empty"):
            column = replace(column, role="dropped")
        if column.kind == "category" and series.dtype.is_numeric():
            # "1", "1.0" and 1 are one level, also where new rows come as text.
            column = replace(column, number_format=NumberFormat().code)
        found.append(column)
    return found


def _distinct(frame: pl.DataFrame) -> list[int]:
    """Different values of each column, missing ones apart."""
    if frame.height <= LARGE:
        return list(frame.select(pl.all().drop_nulls().n_unique()).row(0)) if frame.width else []
    counts = []
    for series in frame.get_columns():
        if series.dtype.is_numeric():  # sorting takes less memory than a table of a million different numbers
            values = np.sort(series.drop_nulls().to_numpy())
            counts.append(int((values[1:] != values[:-1]).sum()) + int(values.size > 0))
        else:
            counts.append(series.drop_nulls().n_unique())
    return counts


def _asked(series: pl.Series, known: Column, kind: str, delimiter: str | None) -> Column:
    """The kind a user asked for, if the values allow it."""
    series = _plain(series)
    wanted, _, pattern = kind.partition(":")
    if wanted not in KINDS:
        raise TableError(
            f"types: column {known.name!r} cannot be {kind!r}; choose one of {', '.join(KINDS)} (or date:%d/%m/%Y)."
        )
    column = replace(known, kind=wanted, why="as asked")
    is_text = series.dtype == pl.String
    if wanted == "numeric" and is_text:
        style = number_format(series.unique(), delimiter, tolerate=0.5)
        if style is None:
            raise TableError(
                f"types: column {known.name!r} cannot be numeric: it holds {example(series)!r}; choose category or text."
            )
        return replace(column, number_format=style.code)
    if wanted == "numeric" and series.dtype.is_temporal():
        raise TableError(f"types: column {known.name!r} holds dates and cannot be numeric; choose date.")
    if wanted == "date" and not series.dtype.is_temporal():
        style_of = (pattern, "as asked") if pattern and is_text else date_format(series) if is_text else None
        if style_of is None or parse_dates(series, style_of[0]).drop_nulls().is_empty():
            raise TableError(
                f"types: column {known.name!r} cannot be a date: it holds {example(series)!r}; "
                "give the format, as in date:%d/%m/%Y."
            )
        return replace(column, date_format=style_of[0])
    if wanted == "boolean":
        if known.distinct > 2:
            raise TableError(
                f"types: column {known.name!r} cannot be boolean: it has {known.distinct} different values; "
                "choose category."
            )
        return replace(column, levels=_truth_levels(series))
    return column


def _inferred(series: pl.Series, known: Column, delimiter: str | None, has_role: bool) -> Column:
    if known.distinct == 0:
        return replace(known, kind="empty", why="no value at all")
    if known.distinct == 1 and not has_role:
        if known.missing == 0:
            return replace(known, kind="constant", why="one value only")
        return replace(known, kind="category", why="one value, or missing: whether it is there may tell")
    if series.dtype == pl.Boolean:
        return replace(known, kind="boolean", why="true or false", levels=("false", "true"))
    if series.dtype.is_temporal():
        return replace(known, kind="date", why="dates")
    if series.dtype.is_numeric():
        return _numbers(series, known, has_role)
    return _strings(series, known, delimiter, has_role)


def _numbers(series: pl.Series, known: Column, has_role: bool) -> Column:
    filled = series.len() - known.missing
    if not _whole(series):
        return replace(known, why="numbers")
    if known.distinct == filled and filled >= 20 and not has_role:
        values = series.drop_nulls()
        steps = int(values.max()) - int(values.min()) + 1 == filled  # type: ignore[arg-type]
        sorted_ = values.is_sorted() or values.is_sorted(descending=True)
        if (steps and sorted_) or (ID_NAME.search(known.name) and (steps or sorted_ or filled > 100)):
            return replace(known, kind="id", why="a different whole number on every row: it names the row")
    if ID_NAME.search(known.name) and known.distinct > 0.95 * filled and filled >= 20 and not has_role:
        return replace(known, kind="id", why="nearly all different, and named like an identifier")
    named = CODE_NAME.search(known.name) or ID_NAME.search(known.name)
    if 2 < known.distinct <= FEW and named and filled >= 5 * known.distinct:
        return replace(known, kind="category", why=f"{known.distinct} whole numbers, and named like a code")
    if known.distinct == 2 and set(series.drop_nulls().unique()) == {0, 1}:
        return replace(known, why="0 or 1")
    few = f", only {known.distinct} different ones" if known.distinct <= FEW else ""
    return replace(known, why=f"whole numbers{few}")


def _strings(series: pl.Series, known: Column, delimiter: str | None, has_role: bool) -> Column:
    filled = series.len() - known.missing
    values = _plain(series.unique()).drop_nulls()
    if series.dtype == pl.Categorical and (number_format(values, delimiter, 0.5) or date_format(values)):
        series = _plain(series)
    if known.distinct == 2 and {v.lower() for v in values} <= TRUTH.keys():
        levels = _truth_levels(series)
        return replace(known, kind="boolean", why=f"{levels[1]} or {levels[0]}", levels=levels)
    coded = bool(values.str.contains(r"^[+-]?0\d+$").any())
    style = None if coded else number_format(values, delimiter, JUNK if known.distinct > 20 else 0.0)
    if style is not None and style.leftovers and _unparsed(series, style) > JUNK * filled:
        style = None  # too often to be an accident
    if style is not None:
        return _written_numbers(series, known, style, has_role)
    dated = None if coded or series.dtype == pl.Categorical else date_format(series)
    if dated is not None:
        return replace(known, kind="date", why=dated[1], date_format=dated[0])
    if coded and values.str.contains(r"^\d+$").all():
        if known.distinct > 0.95 * filled and filled >= 20 and not has_role:
            return replace(known, kind="id", why="a different code on every row")
        return replace(known, kind="category", why="numbers with leading zeros: codes")
    return _words(values, known, filled, has_role)


def _written_numbers(series: pl.Series, known: Column, style: NumberFormat, has_role: bool) -> Column:
    if style.words is None and not style.leftovers:
        return replace(_numbers(style.parse(series), known, has_role), number_format=style.code)
    why = "numbers" + (f" with {style.words}" if style.words else "")
    if style.leftovers:
        count = _unparsed(series, style)
        some = ", ".join(repr(v) for v in style.leftovers[:3])
        why += f"; {count} value{'s' if count != 1 else ''} such as {some} count as missing"
        return replace(known, why=why, number_format=style.code, missing=known.missing + count)
    return replace(known, why=why, number_format=style.code)


def _unparsed(series: pl.Series, style: NumberFormat) -> int:
    return style.parse(series).null_count() - series.null_count()


def _words(values: pl.Series, known: Column, filled: int, has_role: bool) -> Column:
    sample = values.sort().gather_every(max(1, values.len() // 2000))
    words = sample.str.split(" ").list.len().mean()
    length = sample.str.len_chars().mean()
    mean_words, mean_length = float(words or 0.0), float(length or 0.0)  # type: ignore[arg-type]
    various = known.distinct > 0.5 * filled
    if mean_words >= 4 and mean_length > 25 and known.distinct > max(20, 0.2 * filled):
        return replace(known, kind="text", why=f"about {mean_words:.0f} words each: free text")
    if various and mean_words >= 1.8 and filled >= 20:
        vocabulary = sample.str.to_lowercase().str.split(" ").explode()
        if vocabulary.n_unique() < 0.7 * vocabulary.len():
            return replace(known, kind="text", why="several words, many of which return in other rows")
    if known.distinct > 0.95 * filled and filled >= 20 and not has_role:
        return replace(known, kind="id", why="a different value on nearly every row: it names the row")
    if various and filled >= 20:
        return replace(known, kind="category", why=f"{known.distinct} labels, most of them rare")
    return replace(known, kind="category", why=f"{known.distinct} labels")


def _plain(series: pl.Series) -> pl.Series:
    """Strings in place of categories; anything else as it is."""
    return series.cast(pl.String) if series.dtype == pl.Categorical else series


def _truth_levels(series: pl.Series) -> tuple[str, ...]:
    """The value that means no and the one that means yes."""
    values = sorted(str(v) for v in series.unique().cast(pl.String).drop_nulls())
    if len(values) == 2:
        truths = [TRUTH.get(v.lower(), v in ("1", "1.0")) for v in values]
        return (values[1], values[0]) if truths == [True, False] else (values[0], values[1])
    only = values[0] if values else "true"
    return ("no" if TRUTH.get(only.lower(), True) else "yes", only)


def example(series: pl.Series) -> str:
    """A value that shows what a column holds, an odd one where there is one."""
    filled = series.drop_nulls()
    odd = filled.filter(~filled.cast(pl.String).str.contains(r"^[\d.,+-]+$"))
    return str((odd if odd.len() else filled).first())


# Values as their kind wants them


def converted(series: pl.Series, column: Column) -> tuple[pl.Series, int]:
    """The column as its kind wants it, and how many values could not be read.

    Float64 for numeric, String for category, boolean and text, Datetime for date; others stay as they are.
    """
    before, kind, series = series.null_count(), column.kind, _plain(series)
    if kind == "numeric":
        if series.dtype == pl.String:
            series = NumberFormat.from_code(column.number_format).parse(series)
        elif series.dtype.is_temporal():
            series = pl.Series(series.name, [None] * series.len(), dtype=pl.Float64)
        else:
            series = finite(series.cast(pl.Float64))
    elif kind == "date":
        if series.dtype == pl.String:
            series = parse_dates(series, column.date_format or "%Y-%m-%d")
        elif series.dtype.is_temporal():
            if getattr(series.dtype, "time_zone", None) is not None:
                series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            series = series.cast(pl.Datetime("us"))
        else:
            series = pl.Series(series.name, [None] * series.len(), dtype=pl.Datetime("us"))
    elif kind in ("category", "boolean", "text"):
        if column.number_format is not None and series.dtype == pl.String:
            numbers = NumberFormat.from_code(column.number_format).parse(series)
            exact = (numbers.abs() < 2.0**53).fill_null(False)  # longer ones are kept digit by digit
            infinite = series.cast(pl.Float64, strict=False).is_finite().not_().fill_null(False)
            series = labels(numbers.set(~exact, None)).zip_with(exact, series.set(infinite, None))
        series = labels(series)
        if kind == "boolean" and column.levels is not None:
            series = _spelled(series, column.levels)
    return series, series.null_count() - before


def _spelled(series: pl.Series, levels: tuple[str, ...]) -> pl.Series:
    """Yes and no in the spelling of the training rows: "True", "true" and "TRUE" are one answer."""
    spelling = {level.lower(): level for level in levels}
    values = series.unique().drop_nulls()
    known = {value: spelling.get(value.lower(), value) for value in values}
    if all(a == b for a, b in known.items()):
        return series
    return series.replace_strict(list(known), list(known.values()), return_dtype=pl.String, default=None)


def _whole(series: pl.Series) -> bool:
    """Whether all numbers are whole, whatever type they come in: gaps turn whole numbers into fractions elsewhere."""
    if not series.dtype.is_float():
        return series.dtype.is_integer()
    if series.null_count() == 0:  # the first fraction settles it
        values = series.to_numpy()
        first = values[:1000]
        if not (first == np.round(first)).all():
            return False
        return bool((values == np.round(values)).all() and (np.abs(values) < 2.0**53).all())
    filled = series.drop_nulls()
    start = filled.head(1000)
    if not (start == start.round()).all():
        return False
    return bool((filled == filled.round()).all()) and bool((filled.abs() < 2.0**53).all())


def labels(series: pl.Series) -> pl.Series:
    """Values as strings; whole numbers are written without a decimal point, whatever type they came in."""
    if series.dtype.is_float() and _whole(series):
        series = series.cast(pl.Int64)
    return series.cast(pl.String)
