"""Binary files are read by a process that may die; compressed ones grow within limits."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from certifit.contest.table import binary, reading
from certifit.contest.table.binary import read_parquet
from certifit.contest.table.reading import TableError, read_table

FRAME = pl.DataFrame(
    {
        "a": [1, None, 3],
        "b": ["x", "y", None],
        "c": [1.5, float("nan"), None],
        "d": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
        "e": pl.Series(["2020-01-01", "2021-02-03", None]).str.to_date(),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    FRAME.write_parquet(tmp_path / "table.parquet")
    return tmp_path / "table.parquet"


def test_the_table_arrives_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (path, path.read_bytes()):
        assert read_parquet(content, "x").equals(FRAME)
    assert list(path.parent.iterdir()) == [path]
    monkeypatch.setattr(binary.sys, "executable", "")  # where there is nothing to start, it is read here
    assert read_parquet(path, "x").equals(FRAME)
    path.write_bytes(b"PAR1garbagePAR1")
    with pytest.raises(TableError, match=r"cannot be read \(.*\): write it again"):
        read_parquet(path, "x")


@pytest.mark.parametrize("name", ["table[1].parquet", "a?b.parquet", "a*.parquet", "{a,b}.parquet"])
def test_a_name_is_no_pattern(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FRAME.head(1).write_parquet(tmp_path / "axb.parquet")
    path = tmp_path / name
    with path.open("wb") as file:
        FRAME.write_parquet(file)
    assert read_parquet(path, "x").equals(FRAME)
    monkeypatch.setattr(binary.sys, "executable", "")
    assert read_parquet(path, "x").equals(FRAME)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("import os; os.abort()", r"reader ends \(exit code -6\).*damaged, or larger than the memory"),
        ("import os; os.kill(os.getpid(), 9)", r"reader ends \(exit code -9\)"),
        ("import sys; sys.exit(1)", r"reader ends \(exit code 1\)"),
        ("import sys; sys.stdout.write('one\\ntwo'); sys.exit(3)", r"cannot be read \(one\): write it again"),
        ("import sys; sys.exit(3)", r"no reason given"),
    ],
)
def test_the_death_of_the_reader_is_one_line(
    end: str, words: str, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(binary, "_READER", end)
    with pytest.raises(TableError, match=words) as caught:
        read_table(path)
    assert str(caught.value).startswith("table.parquet is a Parquet file")
    assert "\n" not in str(caught.value)


def test_gzip_files_do_not_grow_without_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading, "most_inflated", lambda compressed: 10**5 + 100 * compressed)
    honest = b"a,b\n" + b"1,2\n" * 20_000
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * 10**6)
    (tmp_path / "bomb.csv.gz").write_bytes(bomb)
    assert read_table(io.BytesIO(gzip.compress(honest))).frame.height == 20_000
    with pytest.raises(TableError, match=r"bomb\.csv\.gz is a gzip file of \d+ bytes that holds more than \d+.*gunzip"):
        read_table(tmp_path / "bomb.csv.gz")


SEPARATORS: dict[str, tuple[str, Any]] = {
    "sep=;\na;b\n1;2\n": (";", ()),
    "sep=\t\na\tb\n1\t2\n": ("\t", ()),
    "SEP=^\r\na^b\r\n1^2\r\n": ("^", ()),
    "sep=¿\na,b\n1,2\n": (",", "¿"),
    'sep="\na,b\n1,2\n': (",", '"'),
    "sep=\x1e\na,b\n1,2\n": (",", "x1e"),
}


@pytest.mark.parametrize("text", SEPARATORS, ids=repr)
def test_the_delimiter_of_the_first_line(text: str) -> None:
    delimiter, told = SEPARATORS[text]
    raw = read_table(io.BytesIO(text.encode()))
    assert raw.delimiter == delimiter
    assert raw.frame.to_dict(as_series=False) == {"a": [1], "b": [2]}
    assert all(told in note for note in raw.notes) if told else raw.notes == ()


def test_a_delimiter_that_no_table_has_and_no_other() -> None:
    with pytest.raises(TableError, match="no delimiter"):
        read_table(io.BytesIO("sep=¿\na¿b\n1¿2\n".encode()))


def test_errors_are_one_line_whatever_the_table_says() -> None:
    assert str(TableError("a\nb\x1b[2J\u2028")) == "a\\nb\\x1b[2J\\u2028"
    with pytest.raises(TableError) as caught:
        read_table(io.BytesIO(b'"a\nb\x1b[31m","c"\n'))
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
