"""``certifit explore`` from the command line: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.exploration.tables import cloud
from typer.testing import CliRunner

from certifit.cli import app


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["explore", *words])
    return result.exit_code, result.output


def test_it_writes_page_and_record_and_says_the_answer(tmp_path: Path) -> None:
    cloud()[:60].write_csv(tmp_path / "cloud.csv")
    code, said = run(str(tmp_path / "cloud.csv"), "--out", str(tmp_path / "found"))
    assert code == 0
    assert "60 rows and 3 columns were read." in said
    assert (tmp_path / "found" / "explore.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    record = json.loads((tmp_path / "found" / "explore.json").read_text(encoding="utf-8"))
    assert record["data"]["rows"] == 60


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pl.DataFrame({"x": np.arange(30.0) ** 2}), ""),
        (
            pl.DataFrame(
                {"t": [f"the {a} {b} sat on mat {i}" for i, (a, b) in enumerate([("red", "cat"), ("big", "dog")] * 20)]}
            ),
            "",
        ),
        (pl.DataFrame({"x": [1.0] * 20, "k": ["a"] * 20}), "No column tells these rows apart"),
        (pl.DataFrame({"x": [1.0, 2.0] * 10, "k": ["a", "b"] * 10}), ""),
        (pl.DataFrame({"x": [None, 1.5] * 10, "k": ["b", None] * 10}), ""),
    ],
    ids=["one column", "only text", "all rows equal", "two distinct rows", "nothing in common"],
)
def test_poor_tables_get_a_page(tmp_path: Path, frame: pl.DataFrame, words: str) -> None:
    frame.write_parquet(tmp_path / "poor.parquet")
    frame.write_csv(tmp_path / "poor.csv")
    for name in ("poor.parquet", "poor.csv"):
        code, said = run(str(tmp_path / name), "--out", str(tmp_path / "found"))
        assert code == 0, said
        assert words in said
        assert (tmp_path / "found" / "explore.html").exists()


def test_wrong_names_and_empty_tables_are_refused_in_one_line(tmp_path: Path) -> None:
    cloud()[:60].write_csv(tmp_path / "cloud.csv")
    for words, wanted in (
        (["--label", "speices"], "has no column 'speices', given as label"),
        (["--drop", "nothing"], "has no column 'nothing', given as drop"),
        (["--types", "x=colour"], "x"),
    ):
        code, said = run(str(tmp_path / "cloud.csv"), "--out", str(tmp_path / "found"), *words)
        assert code == 2
        assert wanted in said
    (tmp_path / "one.csv").write_text("x\n" + "1;2\n" * 12, encoding="utf-8")
    code, said = run(str(tmp_path / "one.csv"), "--out", str(tmp_path / "found"))
    assert code == 2
    assert "one.csv has a semicolon in nearly every line, but none in the first, 'x'" in " ".join(said.split())
    cloud()[:5].write_csv(tmp_path / "short.csv")
    code, said = run(str(tmp_path / "short.csv"), "--out", str(tmp_path / "found"))
    assert code == 2
    assert "has 5 rows: at least 10 are needed" in said


def test_a_large_table_is_sampled_and_says_so(tmp_path: Path) -> None:
    cloud().write_csv(tmp_path / "cloud.csv")
    code, said = run(str(tmp_path / "cloud.csv"), "--out", str(tmp_path / "found"), "--rows", "120", "--json")
    assert code == 0
    assert json.loads(said)["data"]["sample"] == 120
    assert "120 rows drawn at random" in (tmp_path / "found" / "explore.html").read_text(encoding="utf-8")
