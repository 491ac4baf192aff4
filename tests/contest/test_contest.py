"""The contest as a whole: honest scores, contained failures, repeatable, interruptible."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression as Foreign
from sklearn.linear_model import RidgeClassifier
from tests.contest.tables import kinds_of_flower, loans, prices

from certifit.contest.contest import Contest
from certifit.contest.entrants import ENTRANTS, trees
from certifit.contest.record.result import Result

FAST = ["logistic", "tree"]


@pytest.fixture(scope="module", autouse=True)
def few_stages() -> Iterator[None]:
    """Boosting tries all its settings with fewer trees: else it takes all of the time that the others leave."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "STAGES", trees.STAGES[:6])
        yield


@pytest.fixture(scope="module")
def binary() -> Result:
    return Contest(loans(), "default", time=40, cost="fp=1,fn=5").run()


@pytest.fixture(scope="module")
def numeric() -> Result:
    return Contest(prices(), "price", time=40).run()


@pytest.fixture(scope="module")
def several() -> Result:
    return Contest(kinds_of_flower(), "kind", time=40).run()


def test_every_entrant_of_the_registry_finishes_or_says_why(binary: Result, numeric: Result, several: Result) -> None:
    for result, task in ((binary, "binary"), (numeric, "regression"), (several, "multiclass")):
        shown = {e["name"]: e for e in result.record["entrants"]}
        wanted = {name for name, entrant in ENTRANTS.items() if task in entrant.tasks} | {"blend"}
        assert set(shown) == wanted
        for e in shown.values():
            assert e["status"] in ("finished", "not applicable"), (e["name"], e["status"], e["error"])
            assert (e["score"] is None) == (e["status"] != "finished")


def test_the_record_is_plain_json(binary: Result, numeric: Result, several: Result) -> None:
    for result in (binary, numeric, several):
        text = json.dumps(result.record, allow_nan=False)
        assert json.loads(text) == result.record
        assert all(sentence.endswith((".", "…")) for sentence in result.record["summary"])


def test_the_signal_is_found(binary: Result, numeric: Result, several: Result) -> None:
    assert binary.score(binary.winner.name) < 0.8 * binary.score("baseline")
    assert numeric.score("ridge") < 6.5  # the noise has a standard deviation of 5
    assert several.score("logistic") < 0.4 * several.score("baseline")


def test_scores_are_those_of_the_sealed_rows(binary: Result) -> None:
    """Computed again from nothing but the split and the shipped model."""
    contest = Contest(loans(), "default", time=20, cost="fp=1,fn=5")
    from certifit.evaluation.splits.sealed import sealed_split

    table = contest.table
    split = sealed_split(table.y, test_size=0.2, task="binary", codes=table.codes, seed=0)
    rows = table.frame[split.test]
    truth = (table.y[split.test] == "yes").astype(int)
    p = binary.models[binary.winner.name].predict_proba(rows)
    assert binary.winner.classes == ("no", "yes")
    log_loss = float(-np.mean(np.log(p[np.arange(len(truth)), truth])))
    assert log_loss == pytest.approx(binary.record["entrants"][0]["score"]["value"], rel=1e-9)


def test_the_threshold_of_the_costs_decides(binary: Result) -> None:
    p = binary.winner.predict_proba(loans(50, seed=9))
    labels = binary.winner.predict(loans(50, seed=9))
    assert binary.winner.threshold == pytest.approx(1 / 6)
    np.testing.assert_array_equal(labels == "yes", p[:, 1] >= 1 / 6)


def test_one_threshold_everywhere(binary: Result, several: Result) -> None:
    """Model, scores, confusion and the page's slider have the threshold of the costs, which no sealed row can change."""
    best = binary.record["entrants"][0]
    page = binary.record["finalists"][best["name"]]
    at = page["thresholds"]["threshold"].index(1 / 6)
    assert page["thresholds"]["chosen"] == binary.models[best["name"]].threshold == 1 / 6
    cells = {name: page["thresholds"][name][at] for name in ("tp", "fp", "tn", "fn")}
    assert page["confusion"]["counts"] == [[cells["tn"], cells["fp"]], [cells["fn"], cells["tp"]]]
    rows = sum(cells.values())
    assert best["metrics"]["accuracy"]["value"] == pytest.approx((cells["tp"] + cells["tn"]) / rows)
    assert best["metrics"]["expected_cost"]["value"] == pytest.approx((cells["fp"] + 5 * cells["fn"]) / rows)
    assert several.winner.threshold is None


def test_the_winner_is_fitted_anew_on_all_rows_and_says_so(binary: Result, numeric: Result) -> None:
    for result, rows, sealed in ((binary, 400, 80), (numeric, 300, 60)):
        scored, shipped = result.models[result.winner.name], result.winner
        assert result.record["shipped"] == {"refitted": True, "rows": rows, "text": shipped.origin, "why": ""}
        assert f"all {rows} rows" in shipped.origin
        assert f"{sealed} sealed rows" in shipped.origin
        assert scored.core is not shipped.core
        assert f"The file holds it fitted anew on all {rows} rows." in result.record["summary"]


def test_a_refit_has_the_settings_of_the_winner_and_the_weights_of_all_rows() -> None:
    from certifit import LogisticRegression

    result = Contest(loans(), "default", entrants=["logistic"], time=20).run()
    setting = result.record["entrants"][0]["hyperparameters"]
    core = result.winner.core
    assert core.estimator.alpha == setting["alpha"]
    X = core.encoded(Contest(loans(), "default").table.features)
    wanted = LogisticRegression(**setting).fit(X, (loans()["default"] == "yes").to_numpy())
    np.testing.assert_allclose(core.estimator.coef_, wanted.coef_, atol=1e-3)
    assert not np.allclose(core.estimator.coef_, result.models["logistic"].core.estimator.coef_, atol=1e-3)


def test_no_refit_ships_what_was_scored() -> None:
    result = Contest(loans(), "default", entrants=["logistic"], time=20, refit=False).run()
    assert result.winner.core is result.models["logistic"].core
    assert not result.record["shipped"]["refitted"]
    assert "scored as it is" in result.winner.origin
    assert "The file holds it as it was scored, fitted on 320 training rows." in result.record["summary"]
    assert result.record["options"]["refit"] is False


def test_costs_come_first(binary: Result, numeric: Result) -> None:
    first = binary.record["summary"][0]
    mine, trivial = (
        next(e for e in binary.record["entrants"] if e["name"] == name)["metrics"]["expected_cost"]["value"]
        for name in (binary.winner.name, "baseline")
    )
    assert f"{mine:.3f} a row instead of {trivial:.3f}" in first
    assert "from probability 0.167 on" in first
    assert "costs" not in numeric.record["summary"][0]


def test_a_threshold_of_ones_own(binary: Result, numeric: Result) -> None:
    rows = loans(50, seed=9)
    shy = binary.winner.with_threshold(0.9)
    np.testing.assert_array_equal(shy.predict(rows) == "yes", binary.winner.predict_proba(rows)[:, 1] >= 0.9)
    with pytest.raises(ValueError, match="two classes, and 'price' is a number"):
        numeric.winner.with_threshold(0.9)


def test_leaderboard_is_in_order_with_intervals_around_the_scores(binary: Result) -> None:
    finished = [e for e in binary.record["entrants"] if e["score"]]
    values = [e["score"]["value"] for e in finished]
    assert values == sorted(values)
    assert [e["rank"] for e in finished] == list(range(1, len(finished) + 1))
    for e in finished:
        assert e["score"]["low"] <= e["score"]["value"] <= e["score"]["high"]
    assert finished[0]["verdict"] == "best"
    assert binary.leaderboard.height == len(binary.record["entrants"])


def test_linear_entrants_are_certified(binary: Result, numeric: Result) -> None:
    for result, names in ((binary, ["logistic", "svm"]), (numeric, ["ridge", "elastic_net", "huber", "svr"])):
        shown = {e["name"]: e for e in result.record["entrants"]}
        for name in names:
            assert shown[name]["certificate"]["verdict"] == "certified", name


def test_finalists_have_their_pages(binary: Result, numeric: Result) -> None:
    page = binary.record["finalists"][binary.winner.name]
    assert {"roc", "pr", "calibration", "thresholds", "confusion", "importance", "dependence"} <= set(page)
    total = np.sum(page["confusion"]["counts"])
    assert total == binary.record["data"]["test_rows"]
    for k in range(len(page["thresholds"]["threshold"])):
        assert sum(page["thresholds"][name][k] for name in ("tp", "fp", "tn", "fn")) == total
    leading = page["importance"][0]["feature"]
    assert leading in ("income", "student")
    assert "residuals" in numeric.record["finalists"][numeric.winner.name]


def test_the_same_seed_gives_the_same_contest() -> None:
    one, other = (Contest(loans(), "default", entrants=FAST, time=30, seed=3).run() for _ in range(2))
    assert [e["score"] for e in one.record["entrants"]] == [e["score"] for e in other.record["entrants"]]
    assert one.record["finalists"] == other.record["finalists"]
    another = Contest(loans(), "default", entrants=FAST, time=30, seed=4).run()
    assert another.score("logistic") != one.score("logistic")


def test_any_estimator_can_be_entered() -> None:
    contest = Contest(loans(), "default", entrants=["logistic"], time=20)
    contest.enter("theirs", Foreign(C=1.0)).enter("margin", RidgeClassifier(), label="No probabilities of its own")
    result = contest.run()
    assert result.score("theirs") < result.score("baseline")
    assert result.score("margin") < result.score("baseline")


def test_a_winner_that_cannot_be_saved_is_said_not_to_be_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "model.cfit").write_bytes(b"of an earlier contest")
    result = Contest(loans(), "default", entrants=["baseline"], time=20).enter("theirs", Foreign(C=1.0)).run()
    assert "model" not in result.save(tmp_path)
    assert not (tmp_path / "model.cfit").exists()
    written = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert "not saved" in {w["code"] for w in written["data"]["warnings"]}
    assert any("The file holds it" in sentence for sentence in result.record["summary"])
    assert not any("The file holds it" in sentence for sentence in written["summary"])
    assert "The file holds it" not in (tmp_path / "report.html").read_text(encoding="utf-8")


class Broken(ClassifierMixin, BaseEstimator):
    """Fails on purpose."""

    def fit(self, X: Any, y: Any) -> Broken:
        raise RuntimeError("out of\nluck")

    def predict_proba(self, X: Any) -> Any:
        raise AssertionError


class Wild(Broken):
    """Predicts nonsense."""

    def fit(self, X: Any, y: Any) -> Wild:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return np.full((X.shape[0], 2), np.nan)


def test_a_failure_stays_with_the_one_that_failed() -> None:
    contest = Contest(loans(), "default", entrants=["logistic"], time=20)
    result = contest.enter("broken", Broken()).enter("wild", Wild()).run()
    shown = {e["name"]: e for e in result.record["entrants"]}
    assert shown["broken"]["status"] == shown["wild"]["status"] == "failed"
    assert shown["broken"]["error"] == "RuntimeError: out of luck"
    assert shown["logistic"]["status"] == "finished"


class Slow(Broken):
    """Takes longer than anybody waits."""

    def fit(self, X: Any, y: Any) -> Slow:
        time.sleep(60)
        return self


def test_a_slow_entrant_runs_out_of_time() -> None:
    started = time.monotonic()
    contest = Contest(loans(), "default", entrants=["logistic"], time=4)
    result = contest.enter("slow", Slow()).run()
    shown = {e["name"]: e for e in result.record["entrants"]}
    assert shown["slow"]["status"] == "out of time"
    assert shown["logistic"]["status"] == "finished"
    assert time.monotonic() - started < 30


def test_an_interrupt_keeps_what_is_done() -> None:
    contest = Contest(loans(), "default", entrants=["logistic"], time=60)
    contest.enter("slow", Slow())

    class Stopper:
        """Interrupts as soon as the slow entrant is at work."""

        def planned(self, standings: Any) -> None:
            pass

        def phase(self, text: str) -> None:
            pass

        def changed(self, standing: Any) -> None:
            if standing.name == "slow" and standing.status == "searching":
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    result = contest.run(Stopper())
    shown = {e["name"]: e for e in result.record["entrants"]}
    assert result.record["interrupted"]
    assert shown["slow"]["status"] == "interrupted"
    assert shown["logistic"]["status"] == "finished"


def test_groups_are_never_on_both_sides() -> None:
    table = loans().with_columns(pl.Series("person", np.arange(400) // 4))
    contest = Contest(table, "default", group="person", entrants=["tree"], time=10)
    result = contest.run()
    assert result.record["data"]["split"]["kind"] == "group"
    assert "person" not in {row["feature"] for row in result.record["finalists"]["tree"]["importance"]}


def test_the_latest_rows_are_sealed_when_time_matters() -> None:
    days = pl.date_range(pl.date(2020, 1, 1), pl.date(2021, 2, 3), eager=True)[:400]
    result = Contest(
        loans().with_columns(days.alias("day")), "default", time_column="day", entrants=["tree"], time=10
    ).run()
    assert result.record["data"]["split"]["kind"] == "time"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "rmse"}, "metric must be one of .*log_loss"),
        ({"metric": "cost"}, "fp=1,fn=5"),
        ({"entrants": ["logistik"]}, "logistik.*logistic"),
        ({"time": 0}, "time"),
        ({"time": float("nan")}, "time"),
        ({"test_size": 1.5}, "test_size"),
        ({"cost": "fp=-1,fn=2"}, "fp"),
        ({"cost": 3}, "cost"),
        ({"seed": -1}, "seed"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Contest(loans(), "default", **options)


def test_seconds_before_the_contest_count() -> None:
    """They are counted as spent, up to a quarter of the time."""
    contest = Contest(loans(), "default", entrants=["baseline"], time=40)
    assert 3.0 < contest.charge(3.0).run().record["seconds"] < 10.0
    assert 10.0 < contest.charge(1000.0).run().record["seconds"] < 17.0
    with pytest.raises(ValueError, match="seconds"):
        contest.charge(-1)


def test_where_time_was_too_short_for_all_nothing_is_said_of_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certifit.contest.search.race.LEAST", 1000.0)
    record = Contest(loans(), "default", entrants=["logistic"], time=10).run().record
    assert [e["status"] for e in record["entrants"]] == ["finished", "out of time"]
    assert "whether these columns help to predict default is not known" in record["summary"][1]
    assert record["left_out"][0] == "1 of 2 entrants"


def test_guests_are_checked() -> None:
    contest = Contest(loans(), "default", entrants=FAST)
    with pytest.raises(ValueError, match="taken"):
        contest.enter("logistic", Foreign())
    from sklearn.linear_model import LinearRegression

    with pytest.raises(ValueError, match="classifier"):
        contest.enter("line", LinearRegression())
    with pytest.raises(ValueError, match="encoding"):
        contest.enter("x", Foreign(), encoding="tensor")


def test_a_metric_that_is_not_a_mean() -> None:
    result = Contest(loans(), "default", metric="roc_auc", entrants=FAST, time=15).run()
    values = [e["score"]["value"] for e in result.record["entrants"] if e["score"]]
    assert values == sorted(values, reverse=True)
    assert result.winner.name != "baseline"


def test_files_are_written_whole_and_the_model_reads_a_table(binary: Result, tmp_path: Any) -> None:
    import certifit

    files = binary.save(tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        "report.html",
        "leaderboard.csv",
        "model.cfit",
        "run.json",
    }
    model = certifit.load(files["model"])
    fresh = loans(60, seed=5).drop("default")
    np.testing.assert_array_equal(model.predict_proba(fresh), binary.winner.predict_proba(fresh))
    assert json.loads(files["run"].read_text())["format"] == 1
    assert pl.read_csv(files["leaderboard"]).height == len(binary.record["entrants"])
