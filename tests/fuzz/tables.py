"""Tables: delimited text of strange cells, frames of strange types, and the bytes of both damaged."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import polars as pl
from tests.fuzz.mutation import chosen, mutations

__all__ = ["binary", "parquet", "text"]

HEAD = ["import datetime as dt", "import numpy as np", "import pandas as pd", "import polars as pl"]
CELLS = "1 0 -1 1.5 1,5 1e999 -1e-320 nan inf NA ? null yes no TRUE a b 2020-01-01 31/12/1999 2020-13-45".split()
CELLS += "12:30 9999-12-31T23:59:59Z 0001-01-01 007 50% $5 =1+1 @x 10000000000000000000000 0x10 1_0".split()
CELLS += ["", " ", "1'000", "x" * 300, '"', '""', "'", "\x1b[2J", "é", "日本", "\u202e", "\ufeff", "\x00"]
CELLS += ["٣"]
HEADERS = "a b y a 1 unnamed index a.b sep=; # {x}".split()
HEADERS += ["", " ", "y ", '"q"', "x" * 200, "\x1b[31m", "日"]
FRAMES = [
    "[1, 2, 3] * k",
    "[None] * (3 * k)",
    "[[1], [2, 3], []] * k",
    "[{'p': 1}, {'p': 2}, {'p': 3}] * k",
    "[b'x', b'', b'\\xff'] * k",
    "[dt.date(2020, 1, 1), None, dt.date(9999, 12, 31)] * k",
    "[dt.datetime(1, 1, 1), dt.datetime(2020, 1, 1), None] * k",
    "[dt.timedelta(1), dt.timedelta(0), dt.timedelta(-9)] * k",
    "[dt.time(1), dt.time(2), dt.time(3)] * k",
    "[1e308, -1e308, 5e-324] * k",
    "[float('nan'), float('inf'), 1.0] * k",
    "[2**62, -2**62, 0] * k",
    "['a', 'b', 'é'] * k",
    "[True, False, None] * k",
    "list(range(3 * k))",
    "[str(i) for i in range(3 * k)]",
]
OBJECTS = [
    "[1, 'a', None] * k",
    "[object()] * (3 * k)",
    "[1 + 2j, 1j, 0] * k",
    "[(1, 2), 3, 'x'] * k",
    "pd.Categorical(['a', None, 'b'] * k)",
]
OBJECTS += [
    "pd.period_range('2020', periods=3 * k, freq='D')",
    "pd.array([1, None, 3] * k, dtype='Int64')",
    "pd.interval_range(0, 3 * k)",
]


def _table(rng: np.random.Generator) -> str:
    """A small delimited text, mostly with a column y."""
    width, delimiter = int(rng.integers(1, 6)), chosen(rng, [",", ";", "\t", "|", " "])
    names = [chosen(rng, HEADERS) for _ in range(width - 1)]
    names.insert(int(rng.integers(width)), "y")
    kinds = [[chosen(rng, CELLS) for _ in range(int(rng.integers(1, 5)))] for _ in names]
    rows = [names] if rng.random() < 0.9 else []
    for _ in range(int(chosen(rng, [0, 1, 2, 10, 30, 60]))):
        row = [chosen(rng, kind if rng.random() < 0.95 else CELLS) for kind in kinds]
        rows.append(row[:-1] if rng.random() < 0.02 else row)
    return chosen(rng, ["\n", "\r\n", "\n", "\r"]).join(delimiter.join(row) for row in rows)


def text(rng: np.random.Generator) -> str:
    """A case: a delimited text, its bytes perhaps damaged."""
    data = _table(rng).encode(chosen(rng, ["utf-8", "utf-8", "utf-16", "utf-8-sig"]), errors="replace")
    lines = ["from tests.fuzz.judge import check_table", f"data = bytearray({data!r})"]
    lines += mutations(rng, len(data)) if rng.random() < 0.4 else []
    return "\n".join([*lines, "check_table(data)"]) + "\n"


def _columns(rng: np.random.Generator, kinds: list[str]) -> list[str]:
    names = ["y", *(f"c{i}" for i in range(int(rng.integers(0, 4))))]
    return [f"    {name!r}: {chosen(rng, kinds)}," for name in names]


def parquet(rng: np.random.Generator) -> str:
    """A case: a frame of strange types, given as it is or as the bytes of a Parquet file, perhaps damaged."""
    lines = [*HEAD, "from tests.fuzz.judge import check_table", f"k = {chosen(rng, [0, 1, 5, 12])}"]
    if rng.random() < 0.4:
        pandas = rng.random() < 0.6
        kinds = [*FRAMES, *OBJECTS] if pandas else FRAMES
        lines += [f"frame = {'pd' if pandas else 'pl'}.DataFrame({{", *_columns(rng, kinds), "})"]
        if pandas and rng.random() < 0.3:
            lines.append("frame.columns = ['y'] * frame.shape[1]")
        return "\n".join([*lines, "check_table(frame)"]) + "\n"
    lines += ["from tests.fuzz.tables import binary", "data = binary(pl.DataFrame({", *_columns(rng, FRAMES), "}))"]
    lines += mutations(rng, 1200) if rng.random() < 0.8 else []
    return "\n".join([*lines, "check_table(data)"]) + "\n"


def binary(frame: Any) -> bytearray:
    """The frame as the bytes of a Parquet file."""
    assert isinstance(frame, pl.DataFrame)
    file = io.BytesIO()
    frame.write_parquet(file)
    return bytearray(file.getvalue())
