"""Delimited text: which delimiter, which header, and two ways to parse.

The fast way is polars' own parser. What it refuses, or fills in silently (a row with too few fields), goes the careful
way: record by record, rows that do not fit are left out and named by their line, and what is left is parsed again.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit.contest.table.values import MISSING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DELIMITERS", "Layout", "Parsed", "find_layout", "missed", "parse"]

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
RARE_DELIMITERS = {" ": "blank", ":": "colon"}
OTHER_DELIMITERS = "!#$%&*/@\\^~"
"""Taken where the first line says so."""
ALONE = "\x1f"
"""Stands for the delimiter of a single column, which has none: no text holds it."""
SAMPLE_RECORDS = 200
CONSISTENT = 0.9
LONGEST_FIELD = 1 << 24
BLOCK = 1 << 22
INFERRED = 10_000  # rows that tell the types
PIECE = 1 << 24
LARGE = 1 << 26
"""Bytes from which memory is saved: words that return often become categories, and whole numbers are read as the
floating point numbers they will be."""
FEW = 100
SPELLINGS = sorted({variant for m in MISSING for variant in (m, m.upper(), m.capitalize())} | {"NaN", "N/a"})
"""Missing markers as they are usually spelled; others are found later, since they leave their column as strings."""


@dataclass(frozen=True)
class Layout:
    """How the text is laid out."""

    delimiter: str
    names: tuple[str, ...]
    has_header: bool
    skip: int  # lines before the header
    notes: tuple[str, ...] = ()
    duplicated: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parsed:
    """A frame of what fitted, and the rest."""

    frame: pl.DataFrame
    bad_rows: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()


# Layout


def find_layout(sample: str, named: Iterable[str] = (), alone: bool = False) -> Layout | None:
    """The layout of a text by its first lines; None where no delimiter is found.

    A first row that holds one of the `named` columns is a header, whatever else speaks against it. Where a single column
    is a table (`alone`), lines without a delimiter are its values.
    """
    lines = list(io.StringIO(sample))  # only a line feed ends a line, not the dozen characters that Python knows
    skip, told, notes = 0, None, []
    first_line = lines[0].strip(" \r\n") if lines else ""
    if len(first_line) == 5 and first_line.lower().startswith("sep="):
        skip, told = 1, first_line[-1]  # spreadsheets say which delimiter they used
        if told not in (*DELIMITERS, *RARE_DELIMITERS, *OTHER_DELIMITERS):
            notes.append(f"the first line names a delimiter that tables do not have, {told!r}, and was left out")
            told = None
    while skip < len(lines) and (not lines[skip].strip() or lines[skip].lstrip().startswith("# ")):
        skip += 1
    body = lines[skip:]
    if told is None:
        delimiter = _sniff(body)
        if delimiter is None and alone and body and missed(body) is None:
            delimiter = ALONE
        if delimiter is None:
            return None
    else:
        delimiter = told
    records = _records_of(body, delimiter)
    first = records[0] if records else []
    if skip and told is None and not notes:
        notes.append(f"{skip} lines before the header were left out")
    if delimiter == ALONE:
        notes.append("no delimiter was found: every line is a value of a single column")
    names = [name.strip() for name in first]
    numbers = _is_data(names)
    has_header = not numbers and (not _returns_below(names, records[1:]) or _over_numbers(names, records[1:]))
    has_header = has_header or not set(named).isdisjoint(names)
    if not has_header:
        because = "holds numbers only" if numbers else "holds a value that returns below it"
        notes.append(f"no header: the first row {because}, so the columns were named column_1, column_2, …")
        names = [f"column_{j + 1}" for j in range(len(names))]
    fixed, duplicated, more = fix_names(names)
    return Layout(delimiter, tuple(fixed), has_header, skip, (*notes, *more), duplicated)


def fix_names(names: Iterable[str]) -> tuple[list[str], tuple[str, ...], list[str]]:
    """Names that are all there and all different; which were given more than once; and what to say about it."""
    names, notes = [str(name).strip() for name in names], []
    empty = [j + 1 for j, name in enumerate(names) if not name]
    names = [name or f"column_{j + 1}" for j, name in enumerate(names)]
    if empty:
        listed = ", ".join(map(str, empty[:5])) + (", …" if len(empty) > 5 else "")
        notes.append(f"columns without a name (number {listed}) were named column_{empty[0]} and so on")
    counts = Counter(names)
    duplicated = tuple(name for name, count in counts.items() if count > 1)
    used, fixed = set(names), []
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        number, new = seen[name], name
        while seen[name] > 1 and (new == name or new in used):
            new, number = f"{name} ({number})", number + 1
        used.add(new)
        fixed.append(new)
    if duplicated:
        listed = ", ".join(repr(name) for name in duplicated[:5])
        notes.append(f"several columns are called {listed}: the later ones were numbered, as in '{duplicated[0]} (2)'")
    return fixed, duplicated, notes


def _sniff(lines: list[str]) -> str | None:
    """The delimiter for which most records have as many fields as the first one."""
    for candidates, enough in ((DELIMITERS, 0.5), (RARE_DELIMITERS, 1.0)):
        best, found = (0.0, 0), None
        for delimiter in candidates:
            widths = _widths(lines, delimiter)
            if not widths:
                continue
            # Rows may all be one field longer than the header: names of rows, or a delimiter at the end.
            width, extra = widths[0], Counter(widths[1:]).most_common(1)
            usual = extra[0][0] if extra and widths[0] > 1 and extra[0][0] == widths[0] + 1 else width
            share = sum(w == usual for w in widths[1:]) / max(len(widths) - 1, 1) if len(widths) > 1 else 1.0
            if width > 1 and share >= enough and (round(share, 2), width) > best:
                best, found = (round(share, 2), width), delimiter
        if found is not None:
            return found
    # A file so ragged that no row agrees with its header still shows its delimiter in the header.
    header = lines[0] if lines else ""
    counts = {delimiter: header.count(delimiter) for delimiter in DELIMITERS}
    likely = max(counts, key=lambda d: counts[d])
    return likely if counts[likely] else None


def missed(lines: list[str]) -> str | None:
    """The delimiter that nearly all lines below a header without one agree on, unless it is the point of numbers."""
    for delimiter in DELIMITERS:
        records = _records_of(lines, delimiter)[1:]
        width, same = Counter(map(len, records)).most_common(1)[0] if records else (1, 0)
        numbers = delimiter == "," and all(_is_number(",".join(record)) for record in records)
        if width > 1 and same >= CONSISTENT * len(records) and not numbers:
            return delimiter
    return None


def _widths(lines: list[str], delimiter: str) -> list[int]:
    return [len(record) for record in _records_of(lines, delimiter)]


def _records_of(lines: list[str], delimiter: str) -> list[list[str]]:
    """The first records that are not empty."""
    records: list[list[str]] = []
    try:
        for record in csv.reader(lines, delimiter=delimiter):
            if record:
                records.append(record)
            if len(records) >= SAMPLE_RECORDS:
                break
    except csv.Error:  # a field without end: judge by what came before
        pass
    return records


def _returns_below(names: list[str], records: list[list[str]]) -> bool:
    """Whether a name is a frequent value of its own column: then the first row is one of the rows."""
    if len(records) < 20:
        return False
    for j, name in enumerate(names):
        if name.lower() not in MISSING:
            same = sum(len(record) > j and record[j].strip() == name for record in records)
            if same >= 0.05 * len(records):
                return True
    return False


def _over_numbers(names: list[str], records: list[list[str]]) -> bool:
    """Whether the first row is made of distinct words, some of them over columns of numbers: words do not count."""
    if len(set(names)) < len(names) or any(_is_number(name) for name in names):
        return False
    full = [record for record in records if len(record) == len(names)]
    filled = ([r[j].strip() for r in full if r[j].strip().lower() not in MISSING] for j in range(len(names)))
    return any(len(cells) >= 2 and all(map(_is_number, cells)) for cells in filled)


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def _is_data(cells: list[str]) -> bool:
    """Whether a first record holds numbers, and not the numbers 0, 1, 2, … that some programs write as names."""
    filled = [cell for cell in cells if cell.lower() not in MISSING]
    if not filled:
        return False
    try:
        numbers = [float(cell.replace(",", ".")) for cell in filled]
    except ValueError:
        return False
    counting = [float(cell) if cell.isdecimal() else None for cell in filled]
    start = numbers[0]
    counts_on = counting == [start + j for j in range(len(numbers))]
    return not (counts_on and (start == 0.0 or (start == 1.0 and len(numbers) >= 4)))


# Parsing


def parse(content: Path | bytes, layout: Layout, as_text: Iterable[str] = ()) -> Parsed:
    """The frame of a UTF-8 text.

    Parameters
    ----------
    content : Path or bytes
        UTF-8 (with or without byte order mark).
    layout : Layout
        Its layout.
    as_text : names
        Columns to be read as strings even where they look like numbers.

    Raises
    ------
    UnicodeDecodeError
        If the content is not UTF-8.
    """
    import polars as pl

    wanted = set(as_text)
    frame = None
    # Markers cost time on every field, so only those of the first rows are looked for; where others turn up, all of
    # them; and where a column begins with numbers and goes on with words, everything is read as strings.
    for infer, every_marker in ((True, False), (True, True), (False, True)):
        try:
            frame = _fast(content, layout, wanted, infer, every_marker)
            break
        except pl.exceptions.PolarsError as error:
            if "utf-8" in str(error).lower():
                raise UnicodeDecodeError("utf-8", b"", 0, 1, "not UTF-8") from error
            if "could not parse" not in str(error):
                break
    if (
        frame is not None
        and frame.width == len(layout.names)
        and frame.height
        and not _short_rows(content, layout, frame)
    ):
        frame.columns = list(layout.names)
        return Parsed(frame)
    return _careful(content, layout, wanted)


def _fast(
    content: Path | bytes, layout: Layout, as_text: set[str], infer: bool, every_marker: bool = True
) -> pl.DataFrame:
    import polars as pl

    common: dict[str, Any] = {
        "separator": layout.delimiter,
        "has_header": layout.has_header,
        "skip_lines": layout.skip,
        "infer_schema_length": INFERRED if infer else 0,
    }
    size = content.stat().st_size if isinstance(content, Path) else len(content)
    first = content if size <= LARGE else _first_rows(content)
    head = pl.read_csv(first, n_rows=1000, **{**common, "infer_schema_length": 0})
    if not every_marker:
        seen = head.select(pl.all().is_in(SPELLINGS).any()).row(0)
        names = [name for name, some in zip(head.columns, seen, strict=True) if some]
        markers = {value for name in names for value in head.get_column(name).unique() if value in SPELLINGS}
    common["null_values"] = SPELLINGS if every_marker else sorted(markers | {""})
    coded = [] if not infer else head.select(pl.all().str.contains(r"^\s*[+-]?0\d").any()).row(0)
    keep: dict[str, Any] = {
        own: pl.String
        for j, own in enumerate(head.columns)
        if (infer and coded[j]) or (j < len(layout.names) and layout.names[j] in as_text)
    }
    if infer and size > LARGE:
        types = pl.read_csv(first, n_rows=INFERRED, schema_overrides=keep, **common).schema
        often = [own for own in head.columns if own not in keep and head.get_column(own).n_unique() < FEW]
        keep |= {own: pl.Categorical for own in often if types[own] == pl.String}
        keep |= {own: pl.Float64 for own, kind in types.items() if kind.is_integer()}
        if isinstance(content, Path):
            options = {name: common[name] for name in ("separator", "null_values")}
            return _in_blocks(content, layout, {**types, **keep}, options)
    return pl.read_csv(content, schema_overrides=keep, **common)


def _in_blocks(path: Path, layout: Layout, schema: Mapping[str, Any], options: dict[str, Any]) -> pl.DataFrame:
    """A large file read piece by piece: mapped as a whole, it would stay in memory beside the table."""
    import polars as pl

    parts, rest = [], b""
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        for _ in range(layout.skip):
            file.readline()
        if layout.has_header:
            header = file.readline()
            while header.count(b'"') % 2:  # a name with a line end in it
                header += file.readline()
        while True:
            block = file.read(PIECE)
            data = rest + block
            cut = _end_of_rows(data) if block else len(data)
            if cut:
                parts.append(pl.read_csv(data[:cut], has_header=False, schema=schema, **options))
            rest = data[cut:]
            if not block:
                return pl.concat(parts, rechunk=False)


def _first_rows(content: Path | bytes) -> bytes:
    """The first piece of a large file, which need not be mapped for them."""
    data = next(_blocks(content, PIECE))
    return data[: _end_of_rows(data) or len(data)]


def _end_of_rows(data: bytes) -> int:
    """Length of the complete rows at the start of the data: up to the last line end that is not within quotes."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    letters = np.frombuffer(data, dtype=np.uint8)
    outside = np.cumsum(letters == 34, dtype=np.int64) % 2 == 0
    ends = np.flatnonzero((letters == 10) & outside)
    return int(ends[-1]) + 1 if ends.size else 0


def _short_rows(content: Path | bytes, layout: Layout, frame: pl.DataFrame) -> bool:
    """Whether the parser may have filled up rows with too few fields.

    Such a row ends in a missing value. It has refused rows with too many fields, so the rows are all right exactly
    when the delimiters outside quotes number (columns − 1) for each row.
    """
    last = frame.get_column(frame.columns[-1])
    if last.null_count() == 0:
        return False
    expected = (frame.width - 1) * (frame.height + int(layout.has_header))
    found, inside, skip = 0, 0, layout.skip
    mark = ord(layout.delimiter)
    for block in _blocks(content):
        while skip:
            end = block.find(b"\n")
            block, skip = block[end + 1 :], skip - 1
        data = np.frombuffer(block, dtype=np.uint8)
        marks = data == mark
        quotes = data == 34
        if inside or quotes.any():
            depth = (np.cumsum(quotes, dtype=np.int64) + inside) & 1
            found += int(np.count_nonzero(marks & (depth == 0)))
            inside = int(depth[-1])
        else:
            found += int(np.count_nonzero(marks))
    return found != expected


def _blocks(content: Path | bytes, length: int = BLOCK) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield from (content[start : start + length] for start in range(0, len(content), length))
        return
    with content.open("rb") as file:
        while block := file.read(length):
            yield block


def _careful(content: Path | bytes, layout: Layout, as_text: set[str]) -> Parsed:
    """Record by record; rows that do not fit are left out with a reason."""
    import polars as pl

    data = content if isinstance(content, bytes) else content.read_bytes()
    text = data.decode("utf-8-sig")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = [line + "\n" for line in lines[layout.skip :]]
    records = list(_records(lines, layout.delimiter, layout.skip + 1))
    if layout.has_header and records:
        records = records[1:]
    names, notes = list(layout.names), []
    widths = Counter(len(fields) for _, fields, _ in records if fields)
    usual = widths.most_common(1)[0][0] if widths else len(names)
    if usual == len(names) + 1:
        if all(not fields[-1].strip() for _, fields, _ in records if len(fields) == usual):
            notes.append("every row ends with a delimiter: the empty last column was left out")
            records = [(n, f[:-1] if len(f) == usual else f, why) for n, f, why in records]
        else:
            names.insert(0, "row" if "row" not in names else "row name")
            notes.append(f"the rows have one field more than the header: the first column was named '{names[0]}'")
    bad: list[tuple[int, str]] = []
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([f"c{j}" for j in range(len(names))])
    kept = 0
    for line, fields, why in records:
        if why is not None:
            bad.append((line, why))
        elif len(fields) != len(names):
            count = len(fields)
            bad.append((line, f"{count} field{'s' if count != 1 else ''} where {len(names)} were expected"))
        else:
            writer.writerow(fields)
            kept += 1
    if not kept:
        return Parsed(pl.DataFrame(schema=dict.fromkeys(names, pl.String)), tuple(bad), tuple(notes))
    plain = Layout(",", tuple(names), True, 0)
    clean = out.getvalue().encode()
    try:
        frame = _fast(clean, plain, as_text, infer=True)
    except pl.exceptions.PolarsError:
        frame = _fast(clean, plain, as_text, infer=False)
    frame.columns = names
    return Parsed(frame, tuple(bad), tuple(notes))


def _records(lines: list[str], delimiter: str, first_line: int) -> Iterator[tuple[int, list[str], str | None]]:
    """Line, fields and, where there is one, the complaint of every record; empty lines are passed over.

    A quote that is never closed would swallow the rest of the file: its line is reported and reading goes on after it.
    """
    previous_limit = csv.field_size_limit(LONGEST_FIELD)
    start = 0
    try:
        while start < len(lines):
            position = start
            reader = csv.reader(lines[start:] if start else lines, delimiter=delimiter, strict=False)
            try:
                for fields in reader:
                    end = start + reader.line_num
                    if end - position > 1 and end == len(lines) and _is_open(lines[position:end]):
                        raise csv.Error("open quote")
                    if fields:
                        yield first_line + position, fields, None
                    position = end
                start = len(lines)
            except csv.Error:
                yield first_line + position, [], "a quote is opened and never closed"
                start = position + 1
    finally:
        csv.field_size_limit(previous_limit)


def _is_open(lines: list[str]) -> bool:
    return sum(line.count('"') for line in lines) % 2 == 1
