"""Alarms once the scores are in: too good to be true, heavy tails, parts without time, files that were hard to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.contest.tables import loans, prices

from certifit.contest.alarms.aftermath import aftermath, has_heavy_tail
from certifit.contest.contest import Contest
from certifit.contest.entrants import ENTRANTS
from certifit.contest.search.limits import OutOfTime
from certifit.contest.standing import Standing, Verdict
from certifit.contest.table.table import Table
from certifit.contest.verdict.scoring import scoring_for
from certifit.evaluation.risk.risk import interval


def codes(record: dict[str, Any]) -> set[str]:
    return {warning["code"] for warning in record["data"]["warnings"]}


def judged(name: str, y: Any, predicted: Any, r2: float = 0.5) -> Standing:
    verdict = Verdict(predicted, 0.0, interval(np.abs(y - predicted)), {"r2": {"value": r2}})
    return Standing(ENTRANTS[name], "finished", verdict=verdict)


def said(standing: Standing, y: Any, **more: Any) -> set[str]:
    options = {"removed": 0.5, "warned": [], "left_out": [], "why_not_refitted": "", **more}
    return {w["code"] for w in aftermath(standing, y=y, scoring=scoring_for("regression", None, 0, None), **options)}


def test_too_good_to_be_true_unless_a_leak_was_named_already() -> None:
    y = np.random.default_rng(0).normal(size=100)
    perfect = judged("ridge", y, y + 1e-6 * np.arange(100), r2=0.99999999)
    assert said(perfect, y) == {"too good"}
    assert said(perfect, y, warned=[{"kind": "leakage"}]) == set()
    assert said(judged("ridge", y, 0.9 * y, r2=0.99), y) == set()
    assert said(judged("ridge", y[:20], y[:20] + 1e-6 * np.arange(20), r2=1.0), y[:20]) == set(), "too few rows to tell"


@pytest.mark.parametrize("metric", ["log_loss", "roc_auc", "accuracy"])
def test_classes_that_are_told_too_well_are_doubted_whatever_the_metric(metric: str) -> None:
    y = np.tile([0, 1], 50)
    options = {"warned": [], "left_out": [], "why_not_refitted": ""}
    scoring = scoring_for("binary", metric, 2, None)
    for removed, doubted in ((0.9995, True), (0.99, False), (None, False)):
        found = aftermath(judged("logistic", y, y), y=y, scoring=scoring, removed=removed, **options)
        assert [w["code"] for w in found] == ["too good"] * doubted


def test_what_is_removed_of_the_baselines_log_loss_is_known_whatever_the_metric() -> None:
    record = Contest(loans(), "default", entrants=["logistic"], metric="roc_auc", time=20).run().record
    assert all("log_loss" in entrant["metrics"] for entrant in record["entrants"])


def test_a_tail_is_that_of_the_metric() -> None:
    y = np.zeros(100)
    wild = np.where(np.arange(100) < 2, 12.0, 1.0)
    for metric, heavy in (("rmse", True), ("mae", False)):
        options = {"removed": None, "warned": [], "left_out": [], "why_not_refitted": ""}
        found = aftermath(judged("ridge", y, wild), y=y, scoring=scoring_for("regression", metric, 0, None), **options)
        assert ("heavy tail" in {w["code"] for w in found}) == heavy, metric


def test_heavy_tails_are_noticed_and_light_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    assert not any(has_heavy_tail(rng.normal(size=200) ** 2) for _ in range(50))
    assert not any(has_heavy_tail(rng.laplace(size=200) ** 2) for _ in range(50))
    assert np.mean([has_heavy_tail(rng.standard_cauchy(200) ** 2) is not None for _ in range(50)]) > 0.9
    losses = np.ones(100)
    losses[:2] = 200.0
    assert has_heavy_tail(losses) == (2, 100, pytest.approx(400 / 498))
    assert has_heavy_tail(np.zeros(100)) is None


def test_a_tail_that_the_sealed_rows_do_not_show_is_seen_in_the_rows_of_the_search() -> None:
    """Of 60 contests each: an interval covers the truth, or is said not to be trusted, as often as it says."""
    draws: dict[str, tuple[Callable[[Any, int], Any], float]] = {
        "t": (lambda rng, n: rng.standard_t(3, n) ** 2, 3.0),
        "normal": (lambda rng, n: rng.normal(size=n) ** 2, 1.0),
    }
    doubted, honest = {}, {}
    for name, (draw, truth) in draws.items():
        tails, covers = [], []
        for seed in range(60):
            rng = np.random.default_rng(seed)
            sealed, judged = draw(rng, 100), draw(rng, 400)
            tails.append(has_heavy_tail(sealed, judged) is not None)
            found = interval(sealed, level=1 - 0.05 / 17)
            covers.append(found.low <= truth <= found.high)
        doubted[name] = np.mean(tails)
        honest[name] = np.mean(np.logical_or(tails, covers))
    assert doubted["t"] > 0.5
    assert doubted["normal"] == 0.0
    assert min(honest.values()) >= 0.95
    light = rng.normal(size=3000) ** 2
    assert has_heavy_tail(light, draws["t"][0](rng, 9000)) is None, "many sealed rows speak for themselves"


def test_an_interval_over_a_heavy_tail_is_not_quoted() -> None:
    wild = prices().with_columns(price=pl.col("price") + pl.Series(1e5 * (np.arange(300) % 97 == 3)))
    record = Contest(wild, "price", entrants=["ridge"], time=20).run().record
    assert "heavy tail" in codes(record)
    assert record["entrants"][0]["score"]["trusted"] is False
    assert not any("confidence" in sentence for sentence in record["summary"])
    tame = Contest(prices(), "price", entrants=["ridge"], time=20).run().record
    assert "heavy tail" not in codes(tame)
    assert any("confidence" in sentence for sentence in tame["summary"])


def test_what_there_was_no_time_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*arguments: Any) -> None:
        raise OutOfTime

    monkeypatch.setattr("certifit.contest.verdict.examination.growth", slow)
    monkeypatch.setattr("certifit.contest.search.refit.fit_setting", slow)
    result = Contest(loans(), "default", entrants=["logistic"], time=20).run()
    assert result.record["left_out"] == ["the learning curve"]
    assert {"no time", "not refitted"} <= codes(result.record)
    assert "There was no time for the learning curve" in result.record["summary"][-1]
    assert not result.record["shipped"]["refitted"]
    assert "no time left to fit it again" in result.winner.origin
    monkeypatch.undo()
    calm = Contest(loans(), "default", entrants=["logistic"], time=60).run()
    assert not {"no time", "not refitted"} & codes(calm.record)


def test_a_table_that_was_hard_to_read_says_so(tmp_path: Any) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,a,y\n" + "".join(f"{i},{i % 7},{i % 3}\n" for i in range(60)) + "1,2\n")
    assert {w["code"] for w in Table.from_source(path, "y").warnings} == {"bad rows", "reading"}
    path.write_text("a,b,y\n" + "".join(f"{i},{i % 7},{i % 3}\n" for i in range(60)))
    assert Table.from_source(path, "y").warnings == ()
