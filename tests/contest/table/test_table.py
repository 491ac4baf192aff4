"""Tables: roles, targets, schema, new rows, descriptions."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from certifit import datasets
from certifit.contest.table import delimited
from certifit.contest.table.reading import TableError
from certifit.contest.table.table import Table, TableSchema
from certifit.evaluation.splits.sealed import sealed_split

N = 60


def frame(**more: Any) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    data: dict[str, Any] = {
        "age": rng.integers(20, 60, N),
        "wage": [None if i % 10 == 0 else float(i) for i in range(N)],
        "job": [["smith", "cook", "pilot", None][i % 4] for i in range(N)],
        "married": ["Yes", "No"] * (N // 2),
        "born": [f"{i % 28 + 1}/{i % 12 + 1}/1990" for i in range(N)],
        "note": [f"the {'red' if i % 2 else 'blue'} house number {i} stood on the hill" for i in range(N)],
        "id": np.arange(N),
        "same": ["x"] * N,
        "y": ["good", "bad", "good"] * (N // 3),
    }
    return pl.DataFrame({**data, **more})


def text(table: pl.DataFrame, **options: Any) -> io.BytesIO:
    return io.BytesIO(table.write_csv(**options).encode())


def test_a_table_from_a_file() -> None:
    table = Table.from_source(text(frame()), "y")
    assert table.kinds == {
        "age": "numeric",
        "wage": "numeric",
        "job": "category",
        "married": "boolean",
        "born": "date",
        "note": "text",
    }
    assert [str(t) for t in table.features.dtypes] == [
        "Float64",
        "Float64",
        "String",
        "String",
        "Datetime(time_unit='us', time_zone=None)",
        "String",
    ]
    assert table.task[:3] == ("binary", ("bad", "good"), "bad")
    assert table.y.dtype.kind == "U"
    assert list(table.y[:3]) == ["good", "bad", "good"]
    assert len(table) == N
    assert table.duplicates == 0
    assert table.groups is None
    assert table.time is None
    assert {c.name for c in table.columns if c.role == "dropped"} == {"id", "same"}


@pytest.mark.parametrize(
    "make", [lambda f: text(f), lambda f: text(f, separator=";"), lambda f: f, lambda f: f.to_pandas()]
)
def test_every_source_gives_the_same_table(make: Any) -> None:
    table, wanted = Table.from_source(make(frame()), "y"), Table.from_source(frame(), "y")
    assert table.kinds == wanted.kinds
    assert table.features.equals(wanted.features)
    np.testing.assert_array_equal(table.y, wanted.y)


def test_a_large_file_is_read_like_a_small_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In large files words that return often are kept as numbers; nobody should notice."""
    more = {
        "gaps": ["x", " NA ", "y ", "z"] * (N // 4),
        "price": ["1,5", "2,25", "1,5"] * (N // 3),
        "when": ["1/2/2020", "13/2/2020"] * (N // 2),
        "who": ["p", "q", "r"] * (N // 3),
    }
    source = text(frame(**more), separator=";").getvalue()
    small = Table.from_source(io.BytesIO(source), "y", group="who", types={"job": "text"})
    monkeypatch.setattr(delimited, "LARGE", 0)
    large = Table.from_source(io.BytesIO(source), "y", group="who", types={"job": "text"})
    assert pl.Categorical in large.frame.dtypes
    assert pl.Categorical not in small.frame.dtypes
    assert large.columns == small.columns
    assert large.features.equals(small.features)
    assert large.features.schema == small.features.schema
    assert large.describe() == small.describe()
    np.testing.assert_array_equal(large.y, small.y)
    np.testing.assert_array_equal(large.groups, small.groups)
    assert large.duplicates == small.duplicates
    assert large.conform(io.BytesIO(source)).features.equals(small.features)


def test_rows_without_a_target_are_left_out_and_counted() -> None:
    y = [None if i < 4 else "ab"[i % 2] for i in range(N)]
    table = Table.from_source(text(frame(y=y)), "y")
    assert len(table) == N - 4 == table.features.height == table.y.shape[0]
    assert table.features["wage"][0] == 4.0
    assert {
        "kind": "missing",
        "code": "target missing",
        "column": "y",
        "text": "4 rows without a value of the target were left out.",
    } in table.warnings


def test_bad_rows_and_notes_are_warnings() -> None:
    lines = text(frame()).getvalue().decode().splitlines()
    lines[5] += ",more"
    table = Table.from_source(io.BytesIO("\n".join(lines).encode("cp1252")), "y")
    assert table.bad_rows == ((6, "10 fields where 9 were expected"),)
    kinds = {w["kind"]: w["text"] for w in table.warnings}
    assert "line 6" in kinds["bad rows"]


def test_a_class_with_one_row_is_said() -> None:
    table = Table.from_source(frame(y=["a", "b"] * (N // 2 - 1) + ["a", "odd"]), "y")
    assert [w["kind"] for w in table.warnings] == ["small"]
    assert "'odd'" in table.warnings[0]["text"]


def test_regression_targets() -> None:
    table = Table.from_source(text(frame(y=[f"{i},5" for i in range(N)]), separator=";"), "y")
    assert table.task.kind == "regression"
    assert table.y.dtype == np.float64
    np.testing.assert_array_equal(table.y, np.arange(N) + 0.5)
    assert table.schema.target == "y"


def test_groups_and_time() -> None:
    who = [None if i in (3, 4) else f"p{i % 7}" for i in range(N)]
    table = Table.from_source(frame(who=who), "y", group="who")
    groups = table.groups
    assert groups is not None
    assert "who" not in table.features.columns
    assert np.unique(groups).size == 9
    assert groups[3] != groups[4]
    assert groups[0] == groups[7]
    table = Table.from_source(frame(), "y", time_column="born")
    time = table.time
    assert time is not None
    assert time[0] == (dt.datetime(1990, 1, 1) - dt.datetime(1970, 1, 1)).days
    table = Table.from_source(frame(), "y", time_column="id")
    np.testing.assert_array_equal(table.time, np.arange(N))


def test_copies_are_counted_and_coded() -> None:
    doubled = pl.concat([frame().drop("id"), frame().drop("id").head(5)])
    table = Table.from_source(doubled, "y")
    assert table.duplicates == 5
    np.testing.assert_array_equal(table.codes[:5], table.codes[-5:])
    assert np.unique(table.codes).size == N


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"target": "yy"}, r"no column 'yy', given as target \(did you mean 'y'\?\); the columns are age"),
    ({"target": "Y"}, "did you mean 'y'"),
    ({"drop": ["wages"]}, "no column 'wages', given as drop.*did you mean 'wage'"),
    ({"types": {"jobs": "category"}}, "no column 'jobs'"),
    ({"group": "who"}, "no column 'who'"),
    ({"time_column": "when"}, "no column 'when', given as time column"),
    ({"drop": ["y"]}, "'y' cannot be both target and drop"),
    ({"group": "job", "time_column": "job"}, "'job' cannot be both group and time column"),
    ({"time_column": "job"}, "'job' holds 'smith', neither dates nor numbers"),
    ({"target": "same"}, "one value only"),
    ({"drop": ["age", "wage", "job", "married", "born", "note"]}, "no column to learn from"),
    ({"types": {"job": "money"}}, "cannot be 'money'"),
    ({"task": "regression"}, "classification"),
]


@pytest.mark.parametrize(("options", "word"), ERRORS)
def test_mistakes_are_named(options: dict[str, Any], word: str) -> None:
    with pytest.raises(TableError, match=word) as caught:
        Table.from_source(frame(), **{"target": "y", **options})
    assert "\n" not in str(caught.value)


def test_names_that_clash() -> None:
    with pytest.raises(TableError, match="several columns called 'y'"):
        Table.from_source(io.BytesIO(b"x,y, y\n" + b"1,2,3\n" * 20), "y")
    with pytest.raises(TableError, match="several columns called 'y'"):
        Table.from_source(pd.DataFrame(np.ones((20, 2)), columns=["y", "y"]), "y")


@pytest.mark.parametrize("rows", [1, 5, 9])
def test_too_few_rows(rows: int) -> None:
    with pytest.raises(TableError, match=f"{rows} usable rows.*at least 10"):
        Table.from_source(frame().head(rows), "y")
    with pytest.raises(TableError, match="usable rows with a known 'y'"):
        Table.from_source(frame(y=[None] * (N - rows) + ["a"] * rows), "y")


def test_the_schema_survives_json() -> None:
    schema = Table.from_source(text(frame()), "y").schema
    again = TableSchema.from_dict(json.loads(json.dumps(schema.as_dict(), allow_nan=False)))
    assert again == schema
    with pytest.raises(TableError, match="damaged"):
        TableSchema.from_dict({"target": "y"})
    with pytest.raises(TableError, match="damaged"):
        TableSchema.from_dict({**schema.as_dict(), "columns": [{"nom": "x"}]})


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_the_training_file_conforms_to_itself(name: str) -> None:
    table = Table.from_source(datasets.path(name), datasets.load(name).target)
    again = table.conform(datasets.path(name))
    assert again.features.equals(table.features)
    assert again.bad_rows == ()


def test_new_rows() -> None:
    table = Table.from_source(text(frame(price=[f"1,{i:02d}" for i in range(N)]), separator=";"), "y")
    new = b"extra;price;note;born;married;job;wage;age\n1;2,5;red house;2/1/1991;YES;astronaut;abc;30\n2;3;;31/31/1990;;cook;7;\n"
    rows = table.conform(io.BytesIO(new))
    assert rows.features.columns == table.features.columns
    assert rows.features.schema == table.features.schema
    first, second = rows.features.rows(named=True)
    assert first["job"] == "astronaut"
    assert first["wage"] is None
    assert first["price"] == 2.5
    assert first["married"] == "Yes"
    assert first["born"] == dt.datetime(1991, 1, 2)
    assert second["born"] is None
    assert second["age"] is None
    assert second["wage"] == 7.0
    said = " | ".join(rows.notes)
    assert "ignored: extra" in said
    assert "1 value of 'wage' could not be read as a number" in said
    assert "'born' could not be read as a date" in said


def test_one_new_row_is_read_as_the_training_rows_were() -> None:
    """A single row tells neither the order of a date nor a decimal comma from a thousands separator."""
    table = Table.from_source(text(frame(price=[f"1,{i:03d}" for i in range(N)]), separator=";"), "y")
    row = io.BytesIO(b'age,wage,job,married,born,note,price\n30,1.5,cook,No,2/3/1990,red,"1,250"\n')
    assert table.conform(row).features["price"].to_list() == [1.25]
    row.seek(0)
    assert table.conform(row).features["born"].to_list() == [dt.datetime(1990, 3, 2)]


def test_missing_columns_are_named() -> None:
    table = Table.from_source(frame(), "y")
    with pytest.raises(TableError, match=r"lacks 1 of the 6 columns.*'wage'.*did you mean 'wages'"):
        table.conform(frame().rename({"wage": "wages"}))


def test_codes_in_numbers_stay_the_same_category() -> None:
    data = {"shop_code": [1, 2, 3] * 10, "y": [0, 1] * 15}
    table = Table.from_source(pl.DataFrame(data), "y")
    assert table.kinds == {"shop_code": "category"}
    new = pd.DataFrame({"shop_code": [1.0, np.nan, 3.0]})
    assert table.conform(new).features["shop_code"].to_list() == ["1", None, "3"]
    new_file = io.BytesIO(b"shop_code,z\n2,1\n2.0,1\nclosed,1\n")
    assert table.conform(new_file).features["shop_code"].to_list() == ["2", "2", "closed"]


def test_overrides_keep_leading_zeros() -> None:
    lines = b"zip,y\n" + b"".join(b"%05d,%d\n" % (i % 5, i % 2) for i in range(40))
    table = Table.from_source(io.BytesIO(lines), "y", types={"zip": "category"})
    assert table.features["zip"][3] == "00003"


def test_descriptions_are_json_and_right() -> None:
    table = Table.from_source(text(frame()), "y")
    info = {column["name"]: column for column in json.loads(json.dumps(table.describe(), allow_nan=False))}
    assert list(info) == frame().columns
    assert set(info["age"]) == {
        "name",
        "kind",
        "role",
        "why",
        "missing",
        "distinct",
        "numbers",
        "histogram",
        "top",
        "other",
    }
    wage = frame()["wage"].drop_nulls()
    assert info["wage"]["missing"] == 6
    assert info["wage"]["numbers"]["mean"] == pytest.approx(wage.mean())
    assert info["wage"]["numbers"]["sd"] == pytest.approx(wage.std(ddof=0))
    assert info["wage"]["numbers"]["median"] == pytest.approx(wage.median())
    histogram = info["age"]["histogram"]
    assert sum(histogram["counts"]) == N
    assert len(histogram["edges"]) == len(histogram["counts"]) + 1
    assert info["job"]["top"] == [{"value": v, "count": 15} for v in ("cook", "pilot", "smith")]
    assert info["job"]["other"] == 0
    assert info["born"]["histogram"]["edges"][0] == "1990-01-01"
    assert sum(info["born"]["histogram"]["counts"]) == N
    assert info["y"]["role"] == "target"
    assert info["note"]["other"] == N - 12
    assert table.describe(most=0)[0]["histogram"] is None


@pytest.mark.parametrize("values", [[1e308, -1e308] * 30, [5.0] * 30 + [5.1] * 30, list(range(60)), [0.0, 1e-300] * 30])
def test_descriptions_of_extremes(values: list[float]) -> None:
    table = Table.from_source(pl.DataFrame({"x": values, "y": [0, 1] * 30}), "y", types={"x": "numeric"})
    info = table.describe()[0]
    json.dumps(info, allow_nan=False)
    assert sum(info["histogram"]["counts"]) == 60


def test_damaged_files_give_a_table_or_one_line() -> None:
    rng = np.random.default_rng(0)
    good = text(frame()).getvalue()
    tables, complaints = 0, []
    for _ in range(60):
        damaged = bytearray(good)
        for place in rng.integers(0, len(good), rng.integers(1, 30)):
            damaged[place] = rng.integers(0, 256)
        try:
            table = Table.from_source(io.BytesIO(bytes(damaged)), "y")
        except TableError as error:
            complaints.append(str(error))
            continue
        tables += 1
        assert table.features.height == table.y.shape[0] == len(table)
        json.dumps([table.describe(), table.schema.as_dict()], allow_nan=False)
    assert tables > 5
    assert all("\n" not in said for said in complaints)


def test_equal_cases_are_no_copies_and_copies_are_no_cases() -> None:
    """Kept together, equal cases of one class would be learned from and those of the other sealed."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, (600, 4))
    y = rng.random(600) < np.where(cells[:, 0] == 0, 0.8, 0.2)
    frame = pl.DataFrame({**{name: cells[:, j].astype(str) for j, name in enumerate("abcd")}, "y": y})
    table = Table.from_source(frame, "y")
    assert table.repeats
    assert table.copies is None
    numbers = frame.with_columns(z=rng.normal(size=600))
    assert Table.from_source(numbers, "y").copies is not None
    twice = Table.from_source(pl.concat([numbers, numbers]), "y")
    assert not twice.repeats
    assert twice.duplicates == 600


def test_what_categories_tell_is_seen_on_the_sealed_rows() -> None:
    gains = {True: 0.0, False: 0.0}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cells = rng.integers(0, 3, (500, 4))
        y = rng.random(500) < np.where(cells[:, 0] == 0, 0.7, 0.3)
        frame = pl.DataFrame({**{name: cells[:, j].astype(str) for j, name in enumerate("abcd")}, "y": y})
        table = Table.from_source(frame, "y")
        for kept, codes in ((True, table.codes), (False, table.copies)):
            split = sealed_split(table.y, task="binary", codes=codes, seed=seed)
            X = np.unique(cells @ [27, 9, 3, 1], return_inverse=True)[1].reshape(-1)
            count, right = np.bincount(X[split.train], minlength=81), np.bincount(X[split.train], y[split.train], 81)
            p = np.clip((right + 1) / (count + 2), 0.01, 0.99)[X[split.test]]
            q, t = float(y[split.train].mean()), y[split.test]
            gains[kept] += float(np.mean(np.where(t, np.log(p / q), np.log((1 - p) / (1 - q))))) / 5
    assert gains[False] > 0.0 > gains[True]
