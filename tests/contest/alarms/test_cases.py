"""Sixty small tables, and what the contest must and must not say of each."""

from __future__ import annotations

import zlib

import numpy as np
import polars as pl
import pytest
from tests.contest.alarms.cases import CASES, COSTS, Case

from certifit.contest.alarms import alarms
from certifit.contest.alarms.registry import ALARMS
from certifit.contest.contest import Contest
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import sealed_split

AFTERWARDS = {"too good", "heavy tail", "no time", "not refitted", "not saved", "bad rows", "reading"}
"""Alarms that ring when a file is read or when the race is over: tested there."""


def made(name: str, case: Case) -> pl.DataFrame:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return pl.DataFrame({k: v if isinstance(v, pl.Series) else np.asarray(v) for k, v in case.make(rng).items()})


def codes(name: str) -> tuple[set[str], str]:
    case = CASES[name]
    frame = made(name, case)
    options = dict(case.options)
    table = Table.from_source(frame, options.pop("target", "y"), **options)
    split = sealed_split(
        table.y, task=table.task.kind, groups=table.groups, time=table.time, codes=table.copies, seed=1
    )
    said = [*table.warnings, *alarms(table, split)]
    return {warning["code"] for warning in said}, table.task.kind


def test_there_are_sixty_and_every_alarm_has_one() -> None:
    assert len(CASES) >= 60
    assert {code for case in CASES.values() for code in case.says} == set(ALARMS) - AFTERWARDS
    assert set(ALARMS) - AFTERWARDS <= {code for case in CASES.values() for code in case.silent} <= set(ALARMS)


@pytest.mark.parametrize("name", CASES)
def test_what_is_said(name: str) -> None:
    said, task = codes(name)
    case = CASES[name]
    assert set(case.says) <= said, f"missing: {set(case.says) - said}; said: {said}"
    assert not set(case.silent) & said, f"wrongly said: {set(case.silent) & said}"
    assert case.task in (None, task)


@pytest.mark.parametrize("name", COSTS)
def test_what_is_said_of_costs(name: str) -> None:
    case = COSTS[name]
    record = Contest(made(name, case), "y", entrants=["logistic"], time=20, refit=False, **case.options).run().record
    said = " ".join(record["summary"])
    assert [words for words in case.says if words not in said] == [], said
    assert [words for words in case.silent if words in said] == [], said
    assert record["summary"][0].startswith("With your costs") == bool(case.options)
