"""Reading: delimiters, encodings, headers, bad rows, bad files."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certifit.contest.table import delimited
from certifit.contest.table.reading import RawTable, TableError, read_table


def read(text: str | bytes, **options: Any) -> RawTable:
    return read_table(io.BytesIO(text.encode() if isinstance(text, str) else text), **options)


def columns(raw: RawTable) -> dict[str, list[Any]]:
    return raw.frame.to_dict(as_series=False)


PLAIN = {"age": [31, 25], "name": ["Ann, the first", "Bé"], "wage": [1.5, 2.0]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_delimiters_encodings_and_ends_of_lines(delimiter: str, encoding: str, end: str) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end)
    writer.writerows([PLAIN.keys(), *zip(*PLAIN.values(), strict=True)])
    data = out.getvalue().encode(encoding)
    raw = read(data)
    assert columns(raw) == PLAIN
    assert raw.delimiter == delimiter
    assert raw.bad_rows == ()
    assert columns(read(gzip.compress(data))) == PLAIN


FIELD = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")) | st.sampled_from('",;\n|'), min_size=1, max_size=8
)


@given(st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=3, max_size=12))
def test_what_the_csv_module_writes_is_read_back(rows: list[tuple[str, str, str]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second", "third"), *(("x" + a, "x" + b, "x" + c) for a, b, c in rows)])
    raw = read(out.getvalue())
    wanted = [("x" + row[1]).strip() for row in rows]
    got = [str(v).strip() for v in columns(raw)["second"]]
    assert [v.strip() for v in got] == wanted or len(raw.bad_rows) > 0
    assert raw.frame.height + len(raw.bad_rows) == len(rows)


def test_ragged_rows_are_left_out_by_line() -> None:
    raw = read('a,b,c\n1,2,3\n4,5\n"6\nx",7,8\n9,10,11,12\n\n13,14,15\n')
    assert columns(raw)["c"] == [3, 8, 15]
    assert raw.bad_rows == ((3, "2 fields where 3 were expected"), (6, "4 fields where 3 were expected"))


def test_short_rows_are_seen_among_missing_last_values() -> None:
    """The fast parser fills up short rows without a word."""
    lines = ["a,b,c"] + [f"{i},x,{'' if i % 3 else i}" for i in range(300)]
    lines[100] = "7,x"
    raw = read("\n".join(lines))
    assert raw.bad_rows == ((101, "2 fields where 3 were expected"),)
    assert raw.frame.height == 299
    assert read("\n".join([*lines[:100], *lines[101:]])).bad_rows == ()


def test_the_careful_way_agrees_with_the_fast_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'a;b;c\n1;"x;y";NA\n2;"say ""no""";5\n3;z;\n'
    fast = columns(read(text))
    monkeypatch.setattr(delimited, "_short_rows", lambda *given: True)
    assert columns(read(text)) == fast == {"a": [1, 2, 3], "b": ["x;y", 'say "no"', "z"], "c": [None, 5, None]}


def test_a_quote_that_is_never_closed_costs_its_row_only() -> None:
    raw = read('a,b\n1,"x\n2,y\n3,z\n')
    assert columns(raw) == {"a": [2, 3], "b": ["y", "z"]}
    assert raw.bad_rows == ((2, "a quote is opened and never closed"),)


@pytest.mark.parametrize(
    "marker", ["", "NA", "na", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?", "-", ".", " NA ", "  "]
)
def test_missing_markers(marker: str) -> None:
    raw = read(f"a,b,c\n1,x,1\n{marker},{marker},2\n3,z,3\n")
    assert columns(raw)["b"] == ["x", None, "z"]
    assert [None if v is None else float(v) for v in columns(raw)["a"]] == [1.0, None, 3.0]


def test_a_marker_or_a_word_far_down() -> None:
    body = "1,2\n" * 12_000
    raw = read(f"a,b\n{body}?,3\n")
    assert raw.frame["a"].null_count() == 1
    assert raw.frame["a"].dtype == pl.Int64
    raw = read(f"a,b\n{body}x,3\n")
    assert raw.frame["a"].dtype == pl.String
    assert raw.frame["a"][-1] == "x"
    assert raw.frame.height == 12_001


def test_accents_far_down() -> None:
    raw = read(("a,b\n" + "1,x\n" * 100_000 + "2,é\n").encode("cp1252"))
    assert raw.frame["b"][-1] == "é"
    assert raw.encoding == "cp1252"
    assert "Windows-1252" in raw.notes[-1]


def test_codes_keep_leading_zeros() -> None:
    text = "zip,n\n01234,1\n99999,2\n"
    assert columns(read(text))["zip"] == ["01234", "99999"]
    assert columns(read(text, as_text=["n"]))["n"] == ["1", "2"]


HEADERS = {
    "a,a,b\n1,2,3\n": (["a", "a (2)", "b"], "several columns are called 'a'"),
    "a, a ,b\n1,2,3\n": (["a", "a (2)", "b"], "several columns"),
    "a,a,a (2)\n1,2,3\n": (["a", "a (3)", "a (2)"], "several columns"),
    "a,,b\n1,2,3\n": (["a", "column_2", "b"], "without a name"),
    "1.5,2,7\n3,4,5\n": (["column_1", "column_2", "column_3"], "no header"),
    "x,y\nr1,1,2\nr2,3,4\n": (["row", "x", "y"], "one field more"),
    "x,y\n1,2,\n3,4,\n": (["x", "y"], "ends with a delimiter"),
    "# made by a program\nx,y\n1,2\n": (["x", "y"], "before the header"),
    "\n\nx,y\n1,2\n": (["x", "y"], "before the header"),
    "sep=;\nx;y\n1;2\n": (["x", "y"], None),
    "0,1,2\n5,6,7\n8,9,9\n": (["0", "1", "2"], None),
}


@pytest.mark.parametrize("text", HEADERS)
def test_headers(text: str) -> None:
    names, note = HEADERS[text]
    raw = read(text)
    assert raw.frame.columns == names
    assert any(note in said for said in raw.notes) if note else raw.notes == ()
    assert raw.frame.height >= 1


def test_a_first_row_with_a_column_that_is_asked_for_is_a_header() -> None:
    """A column `spam` may hold the value spam."""
    text = "spam,kind\n" + "\n".join(["spam,a", "ham,b"] * 30)
    assert read_table(io.BytesIO(text.encode())).frame.columns == ["column_1", "column_2"]
    for named in (["spam"], ["kind"]):
        assert read_table(io.BytesIO(text.encode()), named=named).frame.columns == ["spam", "kind"]
    assert read_table(io.BytesIO(text.encode()), named=["other"]).frame.columns == ["column_1", "column_2"]


def test_words_over_numbers_are_a_header() -> None:
    text = "spam,length\n" + "\n".join(["spam,12", "ham,7"] * 30)
    assert read_table(io.BytesIO(text.encode())).frame.columns == ["spam", "length"]


def test_a_first_row_of_words_that_return_is_no_header() -> None:
    rows = "".join(f"{'spam' if i % 5 else 'ham'}\tmessage {i}\n" for i in range(50))
    raw = read(rows)
    assert raw.frame.shape == (50, 2)
    assert raw.frame.columns == ["column_1", "column_2"]
    assert "returns below" in raw.notes[0]
    assert read("kind\ttext\n" + rows).frame.shape == (50, 2)


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("wage\n1\n\n3\n", "wage", [1, None, 3]),
        ("1.5\n2.5\n", "column_1", [1.5, 2.5]),
        ('said\nyes\n"no, never"\nwell, or so\n', "said", ["yes", "no, never", "well, or so"]),
        ("wage\n12,5\n13,0\n", "wage", ["12,5", "13,0"]),
    ],
)
def test_a_text_of_one_column_is_a_table_where_one_is_asked_for(text: str, name: str, values: list[Any]) -> None:
    raw = read_table(io.BytesIO(text.encode()), alone=True)
    assert raw.frame.to_dict(as_series=False) == {name: values}
    assert "no delimiter was found: every line is a value of a single column" in raw.notes


@pytest.mark.parametrize(("mark", "word"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_values_that_agree_on_a_delimiter_are_no_single_column(mark: str, word: str) -> None:
    text = "# a remark\nname\n" + "".join(f"a{i}{mark}b\n" for i in range(9)) + "c\n"
    with pytest.raises(TableError, match=f"a {word} in nearly every line, but none in the first, 'name'"):
        read_table(io.BytesIO(text.encode()), alone=True)
    assert read_table(io.BytesIO(f"{text}d\n".encode()), alone=True).frame.height == 11
    with pytest.raises(TableError, match="no delimiter"):
        read_table(io.BytesIO(b"# nothing but a remark\n"), alone=True)


BAD: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n ", "is empty"),
    "header only": (b"a,b\n", "no rows"),
    "one column": (b"a\n1\n2\n", "no delimiter"),
    "binary": (b"\x00\x01\x02\xff" * 50, "binary file.*CSV"),
    "spreadsheet": (b"PK\x03\x04\x00\x00\x00", "spreadsheet.*CSV"),
    "damaged gzip": (gzip.compress(b"a,b\n1,2\n" * 100)[:20], "damaged gzip"),
    "damaged parquet": (b"PAR1garbagePAR1", "Parquet.*cannot be read"),
    "all rows ragged": (b"a,b\n1,2,3,4\n5,6,7,8\n", "no usable row.*line 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(case: str, tmp_path: Path) -> None:
    data, word = BAD[case]
    path = tmp_path / "loans.csv"
    path.write_bytes(data)
    for source in (path, str(path)):
        with pytest.raises(TableError, match=rf"loans.csv.*{word}") as caught:
            read_table(source)
        assert "\n" not in str(caught.value)
    with pytest.raises(TableError, match=word):
        read(data)


def test_bad_paths(tmp_path: Path) -> None:
    (tmp_path / "loans.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=r"loan\.csv does not exist.*did you mean loans\.csv"):
        read_table(tmp_path / "loan.csv")
    with pytest.raises(TableError, match="is a directory"):
        read_table(tmp_path)
    with pytest.raises(TableError, match=r"cannot be read|does not exist"):
        read_table(tmp_path / "loans.csv" / "deeper")
    with pytest.raises(TableError, match=r"data frame.*got int"):
        read_table(3)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Console:
        buffer = io.BytesIO(b"a,b\n1,2\n")

    monkeypatch.setattr("sys.stdin", Console())
    raw = read_table("-")
    assert raw.source == "standard input"
    assert columns(raw) == {"a": [1], "b": [2]}


def test_ten_thousand_columns() -> None:
    names = ",".join(f"c{j}" for j in range(10_000))
    row = ",".join("1" for _ in range(10_000))
    raw = read(f"{names}\n{row}\n{row}\n")
    assert raw.frame.shape == (2, 10_000)
    assert "10,000 columns" in raw.notes[-1]


def test_parquet(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, None], "b": ["x ", "?"], "c": [[1], [2]], "d": [1.0, float("nan")]})
    frame.write_parquet(tmp_path / "t.parquet")
    raw = read_table(tmp_path / "t.parquet")
    assert columns(raw) == {"a": [1, None], "b": ["x", None], "d": [1.0, None]}
    assert "lists" in raw.notes[0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, lambda d: pl.DataFrame(d).lazy()])
def test_frames(make: Any) -> None:
    raw = read_table(make({" a ": [1, 2], "b": ["x", " ?"], "c": [1.5, np.nan]}))
    assert columns(raw) == {"a": [1, 2], "b": ["x", None], "c": [1.5, None]}
    assert raw.source == "data frame"


def test_awkward_pandas_frames() -> None:
    frame = pd.DataFrame(
        {0: [1, "x", None], "c": pd.Categorical(["u", "v", "u"]), "n": pd.array([1, None, 3], dtype="Int64")}
    )
    assert columns(read_table(frame)) == {"0": ["1", "x", None], "c": ["u", "v", "u"], "n": [1, None, 3]}
    bands, months = pd.cut([0.5, 1.5, np.nan], [0.0, 1.0, 2.0]), pd.period_range("2020-01", periods=3, freq="M")
    told = {"bands": ["(0.0, 1.0]", "(1.0, 2.0]", None], "months": ["2020-01", "2020-02", "2020-03"]}
    assert columns(read_table(pd.DataFrame({"bands": bands, "months": months}))) == told
    assert (
        columns(read_table(pd.DataFrame({"bands": bands.astype("interval"), "months": months.astype("category")})))
        == told
    )
    with pytest.raises(TableError, match="several columns called 'a'"):
        read_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(TableError, match="0 rows"):
        read_table(pd.DataFrame({"a": []}))


@pytest.mark.parametrize("piece", [257, 301, 4096])  # the first piece also tells the types
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_large_file_read_in_pieces_is_the_same_table(
    piece: int, mark: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line ends within quotes, quotes within quotes and gaps, cut at every place."""
    rng = np.random.default_rng(0)
    words = ["plain", "two\nlines", 'a "quoted" word', "comma, inside", None, "Ünï"]
    frame = pl.DataFrame(
        {
            "name\nof two lines": [words[k] for k in rng.integers(0, 6, 300)],
            "number": [None if k % 17 == 0 else float(v) for k, v in enumerate(rng.normal(size=300).round(4))],
            "y": rng.choice(["yes", "no"], 300),
        }
    )
    path = tmp_path / "t.csv"
    path.write_bytes(mark + frame.write_csv().encode())
    whole = read_table(path).frame
    monkeypatch.setattr("certifit.contest.table.delimited.LARGE", 1000)
    monkeypatch.setattr("certifit.contest.table.delimited.PIECE", piece)
    pieces = read_table(path).frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert pieces.equals(whole)
