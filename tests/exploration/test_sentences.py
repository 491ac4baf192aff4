"""Every sentence stands under its condition: each is made true and false, and said and not said."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.exploration.tables import record

from certifit.exploration import sentences


def changed(name: str, **data: Any) -> dict[str, Any]:
    found = copy.deepcopy(record(name))
    found["data"].update(data)
    return found


def test_the_headline_is_the_verdict() -> None:
    assert sentences.answer(record("groups")) == "The rows fall into 3 groups that survive resampling"
    assert sentences.answer(record("cloud")) == "No structure that survives resampling"
    found = copy.deepcopy(record("groups"))
    found["structure"]["verdict"] = "columns"
    assert "shuffled columns make groups as steady" in sentences.answer(found)
    assert sentences.answer({"structure": None}) == "No column tells these rows apart"


def test_a_sample_is_said_where_there_is_one() -> None:
    assert not any("drawn at random" in s for s in sentences.summary(record("cloud")))
    said = sentences.summary(changed("cloud", rows=1_000_000, sample=20_000))
    assert any("20,000 rows drawn at random" in s for s in said)


@pytest.mark.parametrize(
    ("copies", "near", "words"),
    [
        (0, 0, "No row is a copy of another."),
        (1, 0, "1 row is a copy of an earlier row."),
        (3, 0, "3 rows are copies of an earlier row."),
        (0, 4, "At least 4 distinct rows agree with another one but for small differences in numbers."),
    ],
)
def test_copies(copies: int, near: int, words: str) -> None:
    assert sentences.copies({"copies": copies, "near": {"rows": near}}) == words


def test_missing_together() -> None:
    (said,) = sentences.together(record("groups")["data"])
    assert said.startswith("“left” and “right” are missing together: of the ")
    assert said.endswith("that miss either, 100\u00a0% miss both.")
    assert sentences.together(record("cloud")["data"]) == ["No value is missing."]
    assert "No two columns are missing together" in sentences.together(changed("groups", together=[])["data"])[0]


def test_missing_in_the_summary() -> None:
    assert "No value is missing." in sentences.summary(record("cloud"))
    assert any(s.startswith("Values are missing in 2 columns") for s in sentences.summary(record("groups")))


def test_the_strongest_pair() -> None:
    assert sentences.strongest(record("cloud")).startswith("The strongest association is that of “x” and “y”: 0.")
    none = copy.deepcopy(record("cloud"))
    for pair in none["associations"]:
        pair["clear"] = False
    assert sentences.strongest(none) == "No two columns are clearly associated."
    same = copy.deepcopy(record("cloud"))
    same["associations"][0] |= {"strength": 0.999, "clear": True}
    assert "say nearly the same" in sentences.strongest(same)
    assert sentences.strongest({"associations": []}) == ""


def test_steadiness_names_its_evidence() -> None:
    said = sentences.steadiness(record("groups")["structure"])
    assert "grouped into 3" in said[0]
    assert said[2].endswith(
        "these groups are steadier, or plainly farther apart, and so lie in how columns go together."
    )
    assert sentences.steadiness(record("cloud")["structure"])[0].endswith("no structure that survives resampling.")
    assert sentences.steadiness({"k": 1, "stability": {}}) == ["There are too few distinct rows to look for groups."]
    cut = copy.deepcopy(record("groups")["structure"])
    cut["stability"]["3"]["fewer"] = {"k": 2, "reference_high": 0.875, "separation_high": 0.25}
    assert sentences.steadiness(cut)[2] == (
        "2 groups have a better silhouette, but did not survive. A single table with these alone agrees up to 0.88, and up to "
        "25\u00a0% of its variance lies between its groups."
    )
    single = copy.deepcopy(record("groups")["structure"])
    single["verdict"] = "columns"
    assert sentences.steadiness(single)[2].endswith("come from the values of single columns.")


def test_what_tells_a_group_apart_is_said_with_its_numbers() -> None:
    traits = [
        {"column": "x", "strength": 0.9, "level": None, "inside": [1.0, 2.0], "outside": [3.0, 4.0], "higher": False},
        {"column": "k", "strength": 0.8, "level": "a", "inside": [0.9], "outside": [0.1], "higher": True},
        {
            "column": "d",
            "strength": 0.7,
            "level": None,
            "inside": [0.0, 8.64e10],
            "outside": [0.0, 0.0],
            "higher": True,
        },
    ]
    said = sentences.apart({"traits": traits}, {"d": "date"})
    assert said[0] == "“x” is lower: its middle half is 1 to 2, elsewhere 3 to 4."
    assert said[1] == "“k” is “a” in 90\u00a0% of its rows, elsewhere in 10\u00a0%."
    assert said[2] == "“d” is higher: its middle half is 1970-01-01 to 1970-01-02, elsewhere 1970-01-01 to 1970-01-01."
    assert "No single column tells it apart" in sentences.apart({"traits": []}, {})[0]


def test_why_a_row_stands_out() -> None:
    row = {
        "odd": [{"column": "x", "value": 9.0, "low": 1.0, "high": 2.0}, {"column": "k", "value": "z", "share": 0.001}]
    }
    assert (
        sentences.odd(row, {}) == "“x” is 9 (98\u00a0% of the rows: 1 to 2); “k” is “z”, as in 0.10\u00a0% of the rows."
    )
    assert sentences.odd({"odd": []}, {}) == "Each value is usual; their combination is not."
    assert "No row stands out from all others." in sentences.summary({**record("cloud"), "outliers": []})
    assert "1 row stands out from all others." in sentences.summary({**record("cloud"), "outliers": [{"row": 1}]})
