"""Reads a table: CSV of any delimiter and encoding, compressed or not, Parquet, standard input, any data frame.

Whatever is wrong with the source is said in one line that names it and the cure (`TableError`); single rows that do
not fit are left out and listed by line.
"""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certifit.contest.table.binary import read_parquet
from certifit.contest.table.errors import TableError
from certifit.files import most_inflated

if TYPE_CHECKING:
    import polars as pl

    from certifit.contest.table.delimited import Layout

__all__ = ["RawTable", "TableError", "read_table"]

SAMPLE_BYTES = 1 << 18
WIDE = 5_000
FOREIGN = ("interval", "period")  # types of pandas that polars does not know


@dataclass(frozen=True)
class RawTable:
    """A table as it was read."""

    frame: pl.DataFrame
    """Numbers, booleans and dates where the source has them, otherwise strings without blanks around (in a large file those that
    return often are Categorical); null where a value is missing."""
    source: str
    """Name of the file, "standard input" or "data frame"."""
    bad_rows: tuple[tuple[int, str], ...] = ()
    """Line of each row that was left out, and why."""
    delimiter: str | None = None
    encoding: str | None = None
    """Of a text."""
    notes: tuple[str, ...] = ()
    """Decisions that a reader may want to know of."""
    duplicated: tuple[str, ...] = ()
    """Names that several columns had."""


def read_table(source: Any, *, as_text: Iterable[str] = (), named: Iterable[str] = (), alone: bool = False) -> RawTable:
    r"""Read a table from a path, from standard input ("-"), from a binary stream or from a data frame.

    Parameters
    ----------
    source : path, "-", binary stream or data frame
        CSV (comma, semicolon, tab or bar; UTF-8, UTF-16 or Windows-1252; also compressed with gzip) or Parquet, told
        apart by content; or a frame of polars, pandas or Arrow.
    as_text : names of columns, default=()
        Read as strings even where they look like numbers, so that codes keep their leading zeros.
    named : names of columns, default=()
        Columns that the caller knows: a first row that holds one of them is a header.
    alone : bool, default=False
        Whether a text of a single column is a table. Otherwise a text without a delimiter is refused.

    Raises
    ------
    TableError
        If there is no table to be had.

    Examples
    --------
    >>> import io
    >>> from certifit.contest.table.reading import read_table
    >>> raw = read_table(io.BytesIO(b"age;wage\n31;12,5\n?;13,0\n25\n"))
    >>> raw.frame.to_dict(as_series=False)
    {'age': [31, None], 'wage': ['12,5', '13,0']}
    >>> raw.bad_rows
    ((4, '1 field where 2 were expected'),)
    """
    _check_threads()
    if isinstance(source, (str, Path)) and str(source) != "-":
        return _from_path(Path(source), as_text, named, alone)
    if isinstance(source, str) or hasattr(source, "read"):
        stream = sys.stdin.buffer if isinstance(source, str) else source
        data = stream.read()
        name = "standard input" if isinstance(source, str) else str(getattr(source, "name", "stream"))
        return _from_bytes(data.encode() if isinstance(data, str) else data, name, as_text, named, alone)
    return _from_frame(source)


_readers: list[int] = []  # the process that read the first table


def _check_threads() -> None:
    """Polars has threads from its first table on. A forked child has none of them, and would wait for them for ever."""
    if not _readers:
        _readers.append(os.getpid())
    elif _readers[0] != os.getpid():
        raise TableError(
            "this process was forked from one that has read a table, and the threads of polars did not come along: start "
            'workers by multiprocessing.get_context("spawn") or joblib, or fork them before the first table is read.'
        )


# Sources


def _from_path(path: Path, as_text: Iterable[str], named: Iterable[str], alone: bool) -> RawTable:
    path = path.expanduser()
    name = path.name or str(path)
    try:
        if path.is_dir():
            raise TableError(f"{path} is a directory: give the path of a CSV or Parquet file.")
        with path.open("rb") as file:
            start = file.read(SAMPLE_BYTES)
    except FileNotFoundError:
        raise TableError(f"{path} does not exist: check the path{_similar(path)}") from None
    except PermissionError:
        raise TableError(f"{path} cannot be read: you lack the permission; change it with chmod.") from None
    except OSError as error:
        raise TableError(f"{path} cannot be read ({error.strerror or error}): check the path.") from None
    if start[:2] == b"\x1f\x8b":
        return _from_bytes(path.read_bytes(), name, as_text, named, alone)
    if start[:4] == b"PAR1":
        return _finished(read_parquet(path, name), name, encoding="parquet")
    return _from_text(path, start, name, as_text, named, alone)


def _from_bytes(data: bytes, name: str, as_text: Iterable[str], named: Iterable[str], alone: bool) -> RawTable:
    if data[:2] == b"\x1f\x8b":
        data = _inflated(data, name)
    if data[:4] == b"PAR1":
        return _finished(read_parquet(data, name), name, encoding="parquet")
    return _from_text(data, data[:SAMPLE_BYTES], name, as_text, named, alone)


def _inflated(data: bytes, name: str) -> bytes:
    """What a gzip file holds, unless it grows beyond what tables do."""
    most = most_inflated(len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            found = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{name} is a damaged gzip file ({error}): get it again.") from None
    if len(found) > most:
        raise TableError(
            f"{name} is a gzip file of {len(data)} bytes that holds more than {most}: if you trust it, unpack it with gunzip "
            "and give the file that comes out."
        )
    return found


def _from_frame(source: Any) -> RawTable:
    import narwhals as nw
    import polars as pl

    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return _finished(source, "data frame")
    if hasattr(source, "columns") and hasattr(source, "iloc"):
        source = _pandas_with_names(source)
    try:
        frame = nw.from_native(source, eager_only=True).to_polars()
    except TypeError:
        raise TableError(
            f"a table must be a path, '-' or a data frame of polars, pandas or Arrow; got {type(source).__name__}."
        ) from None
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise TableError(f"the data frame has a column of mixed types ({reason}): give each column one type.") from None
    return _finished(frame, "data frame")


def _pandas_with_names(frame: Any) -> Any:
    """Names that are strings, and columns of mixed objects, intervals and periods as strings: polars has none of them."""
    frame = frame.copy(deep=False)
    frame.columns = [str(name) for name in frame.columns]
    if len(set(frame.columns)) < len(frame.columns):
        twice = next(name for name in frame.columns if list(frame.columns).count(name) > 1)
        raise TableError(f"the data frame has several columns called {twice!r}: rename them.")
    for name in frame.columns:
        if _is_foreign(frame[name].dtype):
            values = frame[name].astype(object)
            frame[name] = values.where(values.isna(), values.map(str))
    return frame


def _is_foreign(dtype: Any) -> bool:
    """Whether a type of pandas, or that of its categories, is one of objects, intervals or periods."""
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return str(dtype) == "object" or str(dtype).startswith(FOREIGN)
    return str(categories.dtype).startswith(
        FOREIGN
    )  # strings as categories have the type of objects, and polars knows them


# Text


def _from_text(
    content: Path | bytes, start: bytes, name: str, as_text: Iterable[str], named: Iterable[str], alone: bool
) -> RawTable:
    from certifit.contest.table.delimited import parse

    if not start.strip():
        raise TableError(f"{name} is empty: give a file with a header and rows.")
    encoding = _encoding(start, name)
    content, start = _as_utf8(content, start, encoding)
    layout = _layout(start, name, named, alone)
    try:
        parsed = parse(content, layout, as_text)
    except UnicodeDecodeError:  # plain at the start, accents later
        encoding = "cp1252"
        content, start = _as_utf8(content, start, encoding)
        layout = _layout(start, name, named, alone)
        parsed = parse(content, layout, as_text)
    if parsed.frame.height == 0:
        _no_rows(name, layout, parsed.bad_rows)
    notes = (*layout.notes, *parsed.notes)
    if encoding == "cp1252":
        notes = (*notes, "the text is not UTF-8 and was read as Windows-1252")
    return _finished(
        parsed.frame, name, parsed.bad_rows, layout.delimiter, encoding, notes, duplicated=layout.duplicated
    )


def _layout(start: bytes, name: str, named: Iterable[str], alone: bool) -> Layout:
    from certifit.contest.table.delimited import DELIMITERS, find_layout, missed

    text = codecs.getincrementaldecoder("utf-8")("ignore").decode(start).removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if len(start) >= SAMPLE_BYTES and "\n" in text:  # a line that is cut off would look ragged
        text = text[: text.rindex("\n") + 1]
    layout = find_layout(text, named, alone)
    if layout is None:
        lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("# ")]
        line = lines[0].strip()[:60] if lines else ""
        if alone and (mark := missed(lines)):
            raise TableError(
                f"{name} has a {DELIMITERS[mark]} in nearly every line, but none in the first, {line!r}: name every column "
                "in the first line, or, if there is only one, put its values in quotes."
            )
        raise TableError(
            f"{name} has no delimiter (tried comma, semicolon, tab and bar; the first line is {line!r}): "
            "a table needs at least two columns, separated by one of these."
        )
    return layout


def _no_rows(name: str, layout: Layout, bad_rows: tuple[tuple[int, str], ...]) -> None:
    if bad_rows:
        line, why = bad_rows[0]
        raise TableError(
            f"{name} has no usable row: the header has {len(layout.names)} names, but line {line} has {why}; "
            "check the header and the delimiter."
        )
    raise TableError(f"{name} has a header ({', '.join(layout.names[:5])}) but no rows: give a file with rows.")


def _encoding(start: bytes, name: str) -> str:
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if start.startswith(mark):
            return encoding
    if b"\0" in start:
        for offset, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            half = start[offset::2]
            if half.count(0) > 0.8 * len(half) and start[1 - offset :: 2].count(0) < 0.05 * len(half):
                return encoding
        raise _binary(start, name)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        odd = sum(byte < 32 and byte not in (9, 10, 13) for byte in start)
        if odd > 0.01 * len(start):
            raise _binary(start, name) from None
        return "cp1252"
    return "utf-8"


def _binary(start: bytes, name: str) -> TableError:
    known = {b"PK": "a zip archive or spreadsheet", b"%P": "a PDF", b"\x89P": "an image", b"SQ": "a database"}
    what = known.get(start[:2], "a binary file")
    return TableError(f"{name} is {what}, not a text: export the table as CSV or Parquet.")


def _as_utf8(content: Path | bytes, start: bytes, encoding: str) -> tuple[Path | bytes, bytes]:
    """The same text in UTF-8; a file that is UTF-8 already, with the usual ends of lines, is not touched."""
    old_ends = b"\r" in start and b"\n" not in start  # lines that end in a carriage return alone
    if encoding in ("utf-8", "utf-8-sig") and not old_ends:
        return content, start
    data = content if isinstance(content, bytes) else content.read_bytes()
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode("latin-1" if encoding == "cp1252" else encoding, errors="replace")
    text = text.removeprefix("\ufeff")
    if old_ends:
        text = text.replace("\r", "\n")
    data = text.encode("utf-8")
    return data, data[:SAMPLE_BYTES]


# What all sources share


def _finished(
    frame: pl.DataFrame,
    source: str,
    bad_rows: tuple[tuple[int, str], ...] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
    notes: tuple[str, ...] = (),
    duplicated: tuple[str, ...] = (),
) -> RawTable:
    """Strings cleaned, unusual types made usual, names trimmed."""
    import polars as pl

    from certifit.contest.table.delimited import fix_names
    from certifit.contest.table.values import clean_strings, finite, is_clean

    if frame.width == 0 or frame.height == 0:
        raise TableError(f"{source} has {frame.height} rows and {frame.width} columns: give a table with rows.")
    if delimiter is None:
        names, duplicated, more = fix_names(frame.columns)
        notes = (*notes, *more)
    else:
        names = frame.columns
    columns, left_out = [], []
    for name, column in zip(names, frame.get_columns(), strict=True):
        kind = column.dtype
        plain = (
            kind.is_numeric() or kind.is_temporal() or kind in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)
        )
        if not plain:  # nested ones, bytes, objects, and the types that other libraries add
            left_out.append(name)
            continue
        if kind in (pl.Categorical, pl.Enum, pl.Time) and not (delimiter is not None and is_clean(column)):
            column = column.cast(pl.String)
        elif kind.is_decimal():
            column = column.cast(pl.Float64)
        elif kind == pl.Duration:
            column = column.dt.total_microseconds() / 1e6
        if column.dtype == pl.String:
            column = clean_strings(column)
        elif column.dtype.is_float():
            column = finite(column)
        columns.append(column.alias(name))
    if left_out:
        notes = (*notes, f"columns that hold lists or objects were left out: {', '.join(left_out[:5])}")
    if len(columns) > WIDE:
        notes = (*notes, f"{len(columns):,} columns: such a wide table takes time and invites chance findings")
    return RawTable(pl.DataFrame(columns), source, bad_rows, delimiter, encoding, notes, duplicated)


def _similar(path: Path) -> str:
    """The end of a sentence: names in the same folder that the user may have meant."""
    import difflib

    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return "."
    close = difflib.get_close_matches(path.name, names, n=2)
    return f"; did you mean {' or '.join(close)}?" if close else "."
