"""What columns are taken for, and the task."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certifit.contest.table.kinds import Column, converted, infer_columns
from certifit.contest.table.reading import TableError
from certifit.contest.table.task import infer_task
from certifit.contest.table.values import NumberFormat, clean_strings, date_format, number_format, parse_dates

N = 200
RNG = np.random.default_rng(0)
WORDS = ["the", "red", "house", "stood", "on", "a", "hill", "near", "old", "town", "river"]


def sentence(i: int) -> str:
    return " ".join(WORDS[j] for j in np.random.default_rng(i).integers(0, len(WORDS), 8)) + f" {i % 7}"


COLUMNS: dict[str, tuple[Any, str]] = {
    "wage": (RNG.normal(size=N), "numeric"),
    "children": (RNG.integers(0, 5, N), "numeric"),
    "shop_code": (RNG.integers(0, 5, N), "category"),
    "store id": (RNG.integers(1, 6, N), "category"),
    "flag": (RNG.integers(0, 2, N), "numeric"),
    "customer_id": (RNG.permutation(10**6)[:N], "id"),
    "row": (np.arange(N), "id"),
    "down": (np.arange(N)[::-1] + 7, "id"),
    "hash": ([f"k{i:08x}" for i in RNG.permutation(10**6)[:N]], "id"),
    "spent": (RNG.permutation(10**6)[:N], "numeric"),
    "married": (["Yes", "no"] * (N // 2), "boolean"),
    "truth": ([True, False] * (N // 2), "boolean"),
    "color": (["red", "green", "blue", "red"] * (N // 4), "category"),
    "zip": ([f"{i % 20:05d}" for i in range(N)], "category"),
    "note": ([sentence(i) for i in range(N)], "text"),
    "car": ([f"{['ford', 'fiat', 'opel'][i % 3]} model {i % 90} a{i}" for i in range(N)], "text"),
    "day": ([f"{i % 28 + 1}/{i % 12 + 1}/2020" for i in range(N)], "date"),
    "iso": ([f"2020-{i % 12 + 1:02d}-{i % 28 + 1:02d} {i % 24:02d}:30" for i in range(N)], "date"),
    "stamp": ([dt.datetime(2020, 1, 1) + dt.timedelta(hours=i) for i in range(N)], "date"),
    "price": ([f"{i},{i % 10}5" for i in range(N)], "numeric"),
    "money": ([f"$1,{i % 900 + 100}.50" for i in range(N)], "numeric"),
    "share": ([f"{i % 100} %" for i in range(N)], "numeric"),
    "same": ([3] * N, "constant"),
    "ticked": (["x", None] * (N // 2), "category"),
    "void": ([None] * N, "empty"),
    "mostly": ([*(str(i * 1.5) for i in range(N - 3)), "unknown", "unknown", "broken"], "numeric"),
}


def test_kinds_roles_and_reasons() -> None:
    frame = pl.DataFrame({name: pl.Series(values) for name, (values, _) in COLUMNS.items()})
    found = {column.name: column for column in infer_columns(frame)}
    assert {name: column.kind for name, column in found.items()} == {name: kind for name, (_, kind) in COLUMNS.items()}
    for column in found.values():
        assert column.why
        assert column.role == ("dropped" if column.kind in ("id", "constant", "empty") else "feature")
        assert column.distinct == frame[column.name].drop_nulls().n_unique()
    assert found["void"].missing == N
    assert found["mostly"].missing == 3
    assert "'unknown'" in str(found["mostly"].why)
    assert found["married"].levels == ("no", "Yes")
    assert "decimal commas" in str(found["price"].why)
    assert converted(frame["price"], found["price"])[0].to_list()[:3] == [0.05, 1.15, 2.25]
    assert converted(frame["money"], found["money"])[0][0] == 1100.5
    assert converted(frame["mostly"], found["mostly"])[1] == 3


def test_roles_win_over_kinds() -> None:
    frame = pl.DataFrame(
        {"row": np.arange(N), "who": [f"p{i}" for i in range(N)], "y": np.arange(N), "x": np.arange(N) % 7}
    )
    roles = {c.name: (c.role, c.kind) for c in infer_columns(frame, "y", drop=["x"], group="who", time_column="row")}
    assert roles == {
        "row": ("time", "numeric"),
        "who": ("group", "category"),
        "y": ("target", "numeric"),
        "x": ("dropped", "numeric"),
    }


def test_overrides() -> None:
    frame = pl.DataFrame({"n": [1, 2, 3] * 5, "d": ["1/2/2020"] * 14 + ["3/4/2020"], "s": ["a", "b", "c"] * 5})
    found = infer_columns(frame, overrides={"n": "category", "d": "date:%m/%d/%Y", "s": "id"})
    assert [c.kind for c in found] == ["category", "date", "id"]
    assert found[2].role == "dropped"
    assert converted(frame["d"], found[1])[0][0] == dt.datetime(2020, 1, 2)
    for overrides, word in [
        ({"n": "number"}, "'n'.*numeric, category"),
        ({"s": "numeric"}, "'s' cannot be numeric.*'a'"),
        ({"s": "date"}, "'s' cannot be a date"),
        ({"s": "boolean"}, "'s' cannot be boolean.*3 different"),
    ]:
        with pytest.raises(TableError, match=word):
            infer_columns(frame, overrides=overrides)


NUMBERS: list[tuple[list[str], str | None, list[float] | None]] = [
    (["1", "2.5", "-3e5", ".5", "5."], ",", [1, 2.5, -3e5, 0.5, 5]),
    (["3,14", "2,5"], ";", [3.14, 2.5]),
    (["1,234", "12,345"], ",", [1234, 12345]),
    (["1,234", "2,345"], ";", [1.234, 2.345]),
    (["0,234", "2,345"], ",", [0.234, 2.345]),
    (["1.234,5", "2,0", "7"], ";", [1234.5, 2, 7]),
    (["1,234.5", "200"], ",", [1234.5, 200]),
    (["1,234,567", "12"], ";", [1234567, 12]),
    (["1.234.567", "12"], ",", [1234567, 12]),
    (["1 234", "2"], ",", [1234, 2]),
    (["1'234.5", "2"], ",", [1234.5, 2]),
    (["$1,200", "$3"], ",", [1200, 3]),
    (["-5 €", "3,5 €"], ";", [-5, 3.5]),
    (["12 %", "5.5%"], ",", [12, 5.5]),
    (["1.234", "2.345"], ";", [1.234, 2.345]),
    (["42 m²", "95 m²", "101.5 m²", "7 m²", "1,008 m²"], ",", [42, 95, 101.5, 7, 1008]),
    (["5kg", "6kg", "7kg", "8.5kg", "9 kg"], ",", [5, 6, 7, 8.5, 9]),
    (["-3 °C", "2,5 °C", "4 °C", "7 °C", "9 °C"], ";", [-3, 2.5, 4, 7, 9]),
    (["2 doors", "4 doors"], ",", None),
    (["12a", "13a", "14a", "15a", "16a"], ",", None),
    (["5 kg", "6 g", "7 kg", "8 kg", "9 kg"], ",", None),
    (["a", "1"], ",", None),
    (["1-2", "3"], ",", None),
    (["1,2,3"], ",", None),
    (["192.168.1.1"], ",", None),
    (["2020-01-02"], ",", None),
    (["1,23", "1.23"], ",", None),
]


@pytest.mark.parametrize(("values", "delimiter", "wanted"), NUMBERS)
def test_number_formats(values: list[str], delimiter: str, wanted: list[float] | None) -> None:
    series = pl.Series(values)
    found = number_format(series, delimiter)
    if wanted is None:
        assert found is None
        return
    assert found is not None
    for style in (found, NumberFormat.from_code(found.code)):
        assert style.parse(series).to_list() == pytest.approx(wanted)


@given(st.lists(st.integers(-(10**9), 10**9).map(lambda cents: cents / 100), min_size=1, max_size=20))
def test_european_and_american_numbers_are_read_back(values: list[float]) -> None:
    american = pl.Series([f"{v:,.2f}" for v in values])
    european = pl.Series([f"{v:,.2f}".translate(str.maketrans(",.", ".,")) for v in values])
    for series, delimiter in ((american, ","), (european, ";")):
        style = number_format(series, delimiter)
        assert style is not None
        assert style.parse(series).to_list() == pytest.approx(values)


DATES: list[tuple[list[str], list[dt.datetime] | None]] = [
    (["2020-01-02", "2021-12-31"], [dt.datetime(2020, 1, 2), dt.datetime(2021, 12, 31)]),
    (["1/2/2011", "1/13/2011"], [dt.datetime(2011, 1, 2), dt.datetime(2011, 1, 13)]),
    (["1/2/2011", "13/1/2011"], [dt.datetime(2011, 2, 1), dt.datetime(2011, 1, 13)]),
    (
        ["1/1/2011", "1/2/2011", "1/3/2011", "2/1/2011"],
        [dt.datetime(2011, 1, d) for d in (1, 2, 3)] + [dt.datetime(2011, 2, 1)],
    ),
    (["05/06/2011", "03/04/2011"], [dt.datetime(2011, 6, 5), dt.datetime(2011, 4, 3)]),
    (["1.2.13", "28.2.13"], [dt.datetime(2013, 2, 1), dt.datetime(2013, 2, 28)]),
    (
        ["2020-01-02T03:04:05Z", "2020-01-02T03:04:05.5Z"],
        [dt.datetime(2020, 1, 2, 3, 4, 5), dt.datetime(2020, 1, 2, 3, 4, 5, 500000)],
    ),
    (["2020-01-02T03:04:05+02:00"], [dt.datetime(2020, 1, 2, 1, 4, 5)]),
    (["2020/01/02 3:04"], [dt.datetime(2020, 1, 2, 3, 4)]),
    (["1/31/20 3:04 PM"], [dt.datetime(2020, 1, 31, 15, 4)]),
    (["3 Jan 2011", "4 March 2012"], [dt.datetime(2011, 1, 3), dt.datetime(2012, 3, 4)]),
    (["Jan 3, 2011"], [dt.datetime(2011, 1, 3)]),
    (["2011", "2012"], None),
    (["31/31/2011"], None),
    (["2020-01-02", "soon"], None),
    (["1577836800"], None),
]


@pytest.mark.parametrize(("values", "wanted"), DATES)
def test_date_formats(values: list[str], wanted: list[dt.datetime] | None) -> None:
    found = date_format(pl.Series(values))
    if wanted is None:
        assert found is None
        return
    assert found is not None
    assert parse_dates(pl.Series(values), found[0]).to_list() == wanted


def test_strings_are_cleaned() -> None:
    assert clean_strings(pl.Series([" a", "NA", " n/A ", "b", None, "-", "a-b"])).to_list() == [
        "a",
        None,
        None,
        "b",
        None,
        None,
        "a-b",
    ]


TASKS: list[tuple[list[Any], str, tuple[str, ...] | None, str | None]] = [
    (["No", "Yes", "No"], "binary", ("No", "Yes"), "Yes"),
    (["<=50K", ">50K", "<=50K"], "binary", ("<=50K", ">50K"), ">50K"),
    ([0, 1, 1, 1], "binary", ("0", "1"), "1"),
    ([0.0, 1.0, 1.0], "binary", ("0", "1"), "1"),
    ([True, False], "binary", ("false", "true"), "true"),
    (["good", "bad", "good"], "binary", ("bad", "good"), "bad"),
    (["spam", "ham"], "binary", ("ham", "spam"), "spam"),
    (["fraud", "no fraud", "fraud"], "binary", ("fraud", "no fraud"), "fraud"),
    (["cat", "dog", "cat"], "binary", ("cat", "dog"), "dog"),
    (["cat", "dog"], "binary", ("cat", "dog"), "dog"),
    ([-1, 1, 1], "binary", ("-1", "1"), "1"),
    (["a", "b", "c"] * 3, "multiclass", ("a", "b", "c"), None),
    ([1, 2, 3] * 10, "multiclass", ("1", "2", "3"), None),
    (["1", "2", "3"] * 10, "multiclass", ("1", "2", "3"), None),
    ([3, 4, 5] * 10, "regression", None, None),
    ([1, 2, 4] * 10, "multiclass", ("1", "2", "4"), None),
    ([0, 1, 2, 3, 5] * 20, "multiclass", ("0", "1", "2", "3", "5"), None),
    ([0, 1, 2, 3, 50] * 20, "regression", None, None),
    ([0] * 97 + [1, 2, 4, 5], "regression", None, None),
    ([1.5, 2.5, 3.5], "regression", None, None),
    (["1,5", "2,5", "3,5"], "regression", None, None),
    (list(range(30)), "regression", None, None),
]


@pytest.mark.parametrize(("values", "kind", "classes", "positive"), TASKS)
def test_tasks(values: list[Any], kind: str, classes: tuple[str, ...] | None, positive: str | None) -> None:
    task = infer_task(pl.Series("y", values), delimiter=";")
    assert task[:3] == (kind, classes, positive)
    assert task.why


def test_the_task_can_be_asked_for() -> None:
    digits = pl.Series("y", [1, 2, 3] * 10)
    assert infer_task(digits, "regression").kind == "regression"
    assert infer_task(pl.Series("y", [3, 4, 5] * 10), "classification").kind == "multiclass"
    assert infer_task(pl.Series("y", [3, 4] * 10), "multiclass").kind == "multiclass"


@pytest.mark.parametrize(
    ("values", "task", "word"),
    [
        ([1, 1, 1], None, "one value only.*1"),
        ([None, None], None, "no value at all"),
        (["a", "b"], "regression", "'y' holds 'a'.*classification"),
        (["a", "b", "c"] * 4, "binary", "3 different values.*multiclass"),
        ([f"k{i}" for i in range(30)], None, "30 different labels in 30 rows"),
        (["2020-01-01", "2020-01-02"] * 5, None, "holds dates"),
        ([1, 2], "ranking", "task must be one of"),
    ],
)
def test_bad_targets(values: list[Any], task: str | None, word: str) -> None:
    with pytest.raises(TableError, match=word):
        infer_task(pl.Series("y", values), task)


def test_truth_is_spelled_as_in_training() -> None:
    column = Column("b", "boolean", levels=("false", "true"))
    assert converted(pl.Series("b", ["True", "FALSE", "true", "maybe", None]), column)[0].to_list() == [
        "true",
        "false",
        "true",
        "maybe",
        None,
    ]
    assert converted(pl.Series("b", [True, False]), column)[0].to_list() == ["true", "false"]


@pytest.mark.parametrize("name", ["visits", "n_children", "rating", "quality", "star", "count of items"])
def test_names_of_counts_and_ratings_are_quantities(name: str) -> None:
    assert infer_task(pl.Series(name, [0, 1, 2, 3] * 30)).kind == "regression"
    assert infer_task(pl.Series("stage", [0, 1, 2, 3] * 30)).kind == "multiclass"


def test_what_was_inferred_comes_with_the_option_that_changes_it() -> None:
    assert "--task regression" in infer_task(pl.Series("stage", [0, 1, 2, 3, 5] * 30)).why
    assert "--task classification" in infer_task(pl.Series("visits", [0, 1, 2, 3] * 30)).why
