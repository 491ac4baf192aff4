"""Predictions may be opened by a spreadsheet, and shown on a terminal: labels are texts of strangers."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.text import Text
from typer.testing import CliRunner

from certifit.cli import app
from certifit.contest.contest import Contest
from certifit.contest.record.spreadsheet import csv_text, guarded
from certifit.contest.terminal import SafeConsole

EVIL = '=HYPERLINK("http://example.com","x")'


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "--1", EVIL])
def test_formulas_are_guarded(text: str) -> None:
    assert guarded(text) == "'" + text


@pytest.mark.parametrize("value", ["-1", "+1.5", "-1e-3", "1=1", "", "a@b", -1, -2.5, None, True, "-inf"])
def test_numbers_and_other_texts_are_not(value: Any) -> None:
    assert guarded(value) is value


def test_names_and_values_both() -> None:
    text, changed = csv_text([{"=a": EVIL, "b": -1.0}, {"=a": "x,y", "b": 2.0}], ["=a", "b"])
    assert changed == 2
    assert list(csv.reader(io.StringIO(text))) == [["'=a", "b"], ["'" + EVIL, "-1.0"], ["x,y", "2.0"]]
    text, changed = csv_text([{"=a": EVIL, "b": -1.0}], ["=a", "b"], raw=True)
    assert changed == 0
    assert list(csv.reader(io.StringIO(text)))[1][0] == EVIL


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A contest on a table whose labels are formulas and whose columns command the terminal."""
    folder = tmp_path_factory.mktemp("evil")
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    label = np.where(x + rng.normal(size=200) > 0, EVIL, "no")
    frame = pl.DataFrame({"a\x1b[2Jb": x, "c\x9b31m": rng.normal(size=200), "y": label})
    frame.write_csv(folder / "table.csv")
    Contest(folder / "table.csv", "y", entrants=["logistic"], time=5).run().save(folder / "out")
    return folder


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def test_predict_guards_labels_and_says_so(evil: Path) -> None:
    done = run("predict", evil / "out" / "model.cfit", evil / "table.csv")
    labels = [row["y"] for row in csv.DictReader(io.StringIO(done.stdout))]
    assert set(labels) == {"'" + EVIL, "no"}
    assert "--raw writes labels as they are" in done.stderr
    raw = run("predict", evil / "out" / "model.cfit", evil / "table.csv", "--raw")
    assert {row["y"] for row in csv.DictReader(io.StringIO(raw.stdout))} == {EVIL, "no"}
    assert "apostrophe" not in raw.stderr


def test_names_do_not_reach_the_terminal_as_commands(evil: Path, tmp_path: Path) -> None:
    outputs = [
        run("compete", evil / "table.csv", "-t", "y", "--entrants", "logistic", "--time", "4", "--out", tmp_path / "o"),
        run("inspect", evil / "out" / "model.cfit"),
        run("inspect", evil / "out" / "model.cfit", "--json"),
        run("predict", evil / "out" / "model.cfit", evil / "table.csv", "--json"),
        run("compete", evil / "table.csv", "-t", "z"),
    ]
    for done in outputs:
        text = done.stdout + done.stderr
        assert not set(text) & {"\x1b", "\x9b", "\x07", "\r"}
    assert "a\\x1b[2Jb" in outputs[1].stdout
    assert "a\\u001b[2Jb" in outputs[2].stdout


def test_the_console_obeys_itself_only() -> None:
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, width=60)
    console.print(Text("evil\x1b[2J", style="bold"))
    console.print("also\x1b]0;title\x07", markup=False)
    assert "\x1b[1m" in file.getvalue()
    assert "evil\\x1b[2J" in file.getvalue()
    assert "\x1b]0" not in file.getvalue()
    assert "\x07" not in file.getvalue()
