"""Intervals and sets of the winner: what they promise, what the sealed rows say of it, and how files and commands give them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.contest.tables import kinds_of_flower, prices
from typer.testing import CliRunner

from certifit.cli import app
from certifit.contest.contest import Contest
from certifit.contest.record.promise import MOST, Promise
from certifit.contest.record.result import Result
from certifit.contest.report.page import render
from certifit.evaluation.splits.sealed import sealed_split

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def numeric() -> Result:
    return Contest(prices(), "price", time=20, entrants=["ridge", "tree", "blend"]).run()


@pytest.fixture(scope="module")
def several() -> Result:
    return Contest(kinds_of_flower(), "kind", time=20, entrants=["logistic"]).run()


def sealed_rows(table: Any, target: str, task: str) -> tuple[pl.DataFrame, np.ndarray]:
    read = Contest(table, target).table
    split = sealed_split(read.y, test_size=0.2, task=task, codes=read.codes, seed=0)
    return read.frame[split.test], read.y[split.test]


def test_by_hand() -> None:
    promise = Promise.of(np.zeros(9), np.arange(1.0, 10.0), np.zeros(4), np.array([-2.0, 7.0, 8.5, 1.0]))
    assert promise.quantile(0.8) == 8.0
    np.testing.assert_array_equal(promise.intervals(np.array([10.0]), 0.8), [[2.0, 18.0]])
    assert promise.coverage(0.8)[0] == 0.75
    assert promise.quantile(0.95) == np.inf  # nine scores say nothing of one row in twenty
    for bad in (0.0, 1.0, 1.5, np.nan, "a"):
        with pytest.raises((ValueError, TypeError), match="interval"):
            promise.quantile(bad)


def test_exchangeable_rows_are_covered_as_promised() -> None:
    """Means over 400 draws: at least the level, and little more."""
    for level in (0.6, 0.9):
        values, sets = [], []
        for _ in range(400):
            y = RNG.normal(size=150)
            values.append(Promise.of(np.zeros(100), y[:100], np.zeros(50), y[100:]).coverage(level)[0])
            p = RNG.dirichlet([1.0, 1.0, 1.0], size=150)
            codes = np.array([RNG.choice(3, p=row) for row in p])
            sets.append(Promise.of(p[:100], codes[:100], p[100:], codes[100:]).coverage(level)[0])
        assert level - 0.01 < np.mean(values) < level + 0.02
        assert np.mean(sets) > level - 0.01  # sets are never empty, and so may hold more


def test_coverage_of_sets_is_that_of_the_sets() -> None:
    p = RNG.dirichlet([0.5, 0.5, 0.5, 0.5], size=600)
    codes = np.array([RNG.choice(4, p=row) for row in p])
    promise = Promise.of(p[:300], codes[:300], p[300:], codes[300:])
    for level in (0.3, 0.7, 0.95):
        inside = promise.sets(p[300:], level)
        assert promise.coverage(level)[0] == pytest.approx(inside[np.arange(300), codes[300:]].mean())
        assert inside.any(axis=1).all()


def test_many_scores_are_thinned_to_the_safe_side() -> None:
    y = RNG.exponential(size=25_013)
    promise = Promise.of(np.zeros(25_013), y, np.zeros(10), y[:10])
    assert promise.scores.shape == (MOST,)
    for level in (0.5, 0.9, 0.999):
        assert level <= np.mean(y <= promise.quantile(level)) <= level + 3 / MOST


def test_measured_coverage_is_that_of_the_sealed_rows(numeric: Result) -> None:
    rows, truth = sealed_rows(prices(), "price", "regression")
    scored = numeric.models[numeric.winner.name]
    shown = numeric.record["promise"]
    assert shown["kind"] == "interval"
    assert shown["rows"] == 240
    for row in shown["levels"]:
        low, high = scored.predict_interval(rows, row["level"]).T
        inside = (low <= truth.astype(float)) & (truth.astype(float) <= high)
        assert row["coverage"] == pytest.approx(inside.mean())
        assert row["low"] < row["coverage"] <= row["high"]
        assert row["size"] == pytest.approx(float((high - low)[0]))
    assert shown["levels"][2]["coverage"] > 0.75


def test_sets_of_classes(several: Result) -> None:
    rows, truth = sealed_rows(kinds_of_flower(), "kind", "multiclass")
    scored = several.models[several.winner.name]
    for row in several.record["promise"]["levels"]:
        sets = scored.predict_set(rows, row["level"])
        assert row["coverage"] == pytest.approx(
            np.mean([label in held for label, held in zip(truth, sets, strict=True)])
        )
        assert row["size"] == pytest.approx(np.mean([len(held) for held in sets]))
    first = [held[0] for held in scored.predict_set(rows, 0.9)]
    assert first == [scored.classes[k] for k in scored.predict_proba(rows).argmax(axis=1)]
    with pytest.raises(ValueError, match="use predict_set"):
        scored.predict_interval(rows)


def test_the_command(numeric: Result, several: Result, tmp_path: Path) -> None:
    for result, table, columns in (
        (numeric, prices(), ["price", "price low", "price high"]),
        (several, kinds_of_flower(), ["kind", "kind is one of"]),
    ):
        folder = tmp_path / columns[0]
        result.save(folder)
        data = folder / "new.csv"
        table.head(20).write_csv(data)
        command = ["predict", str(folder / "model.cfit"), str(data), "--no-probabilities", "--interval"]
        said = CliRunner().invoke(app, [*command, "0.9"])
        assert said.exit_code == 0, said.output
        assert said.stdout.splitlines()[0].split(",") == columns
        assert "of 90 % of new rows, if these come from where the table's rows came from" in said.stderr
        assert "of the sealed rows" in said.stderr
        refused = CliRunner().invoke(app, [*command, "1.5"])
        assert refused.exit_code != 0
        assert "interval" in refused.output


def test_models_without_a_promise_say_so(numeric: Result) -> None:
    with pytest.raises(ValueError, match="interval is not offered by this model"):
        replace(numeric.winner, promise=None).predict_interval(prices())


def test_the_report_shows_promised_and_measured(numeric: Result) -> None:
    page = render(numeric.record)
    assert "What single predictions promise" in page
    assert "width of the interval" in page
    earlier = {key: part for key, part in numeric.record.items() if key != "promise"}
    assert "What single predictions promise" not in render(earlier)
