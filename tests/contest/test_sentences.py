"""Every sentence of the summary is said where it is true, and gone where a single fact makes it false."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.contest.record_of import record

from certifit.contest.alarms.registry import ALARMS, ring
from certifit.contest.record.summary import SENTENCES, SLOTS, summarize

Change = Callable[[dict[str, Any]], Any]


def _with_costs(mine: float, trivial: float) -> Change:
    def change(run: dict[str, Any]) -> None:
        run["options"]["cost"] = {"fp": 1.0, "fn": 10.0}
        run["task"]["threshold"] = 1 / 11
        for e, value in zip(run["entrants"], (mine, mine, trivial), strict=True):
            e["metrics"]["expected_cost"] = {"value": value}

    return change


def _cost_of_the_winner(value: float) -> Change:
    return _cost_of("boosting", value)


def _cost_of(name: str, value: float) -> Change:
    def change(run: dict[str, Any]) -> None:
        entrant = next(e for e in run["entrants"] if e["name"] == name)
        entrant["metrics"]["expected_cost"] = {"value": value}

    return change


def _only_the_baseline(run: dict[str, Any]) -> None:
    run["entrants"] = [run["entrants"][2] | {"rank": 1}]
    run["leaderboard"] = {"text": "", "tied": ["baseline"]}


def _nothing(run: dict[str, Any]) -> None:
    """The record as it is."""


def _a_number(run: dict[str, Any]) -> None:
    run["task"] |= {"kind": "regression", "classes": None, "positive": None}
    for e in run["entrants"]:
        e["metrics"] = {"mae": {"value": 12345.6}, "r2": {"value": 0.5}}


def _baseline_first(run: dict[str, Any]) -> None:
    run["entrants"] = [run["entrants"][2] | {"rank": 1}, run["entrants"][0] | {"rank": 2}]


def _accuracy(mine: float, trivial: float) -> Change:
    def change(run: dict[str, Any]) -> None:
        run["entrants"][0]["metrics"]["accuracy"]["value"] = mine
        run["entrants"][2]["metrics"]["accuracy"]["value"] = trivial

    return change


def both(*changes: Change) -> Change:
    return lambda run: [change(run) for change in changes]


def _warned(run: dict[str, Any]) -> None:
    run["data"]["warnings"] = [ring("leak", "x", what="AUC", score="0.99")]


def _no_curve(run: dict[str, Any]) -> None:
    run["finalists"]["boosting"]["learning_curve"] = None


def _nothing_matters(run: dict[str, Any]) -> None:
    run["finalists"]["boosting"]["importance"][0]["low"] = -0.1


# Sentence: words of it; the change that makes it true; the one fact that makes it false.
CASES: dict[str, tuple[str, Change, Change]] = {
    "cost: saved": ("costs 0.166 a row instead of 0.335", _with_costs(0.166, 0.335), _cost_of_the_winner(0.4)),
    "cost: saved among classes": (
        "costs 0.166 a row instead of 0.335 for the same answer every time; it says the class that costs the least",
        both(_with_costs(0.166, 0.335), lambda run: run["options"].update(cost={"a": {"b": 2.0}, "b": {"a": 1.0}})),
        lambda run: run["options"].update(cost={"fp": 1.0, "fn": 2.0}),
    ),
    "cost: lost": ("no model here pays", _with_costs(0.4, 0.335), _cost_of_the_winner(0.1)),
    "cost: another pays": (
        "Logistic costs 0.200: --metric cost ranks",
        both(_with_costs(0.4, 0.335), _cost_of("logistic", 0.2)),
        _cost_of("logistic", 0.5),
    ),
    "question": ("whether y is yes, from 1 column of 1,000 rows", _nothing, _a_number),
    "answer: nobody else": (
        "whether these columns help to predict y is not known",
        _only_the_baseline,
        lambda run: run["entrants"].append(run["entrants"][0] | {"name": "logistic", "rank": 2, "baseline": False}),
    ),
    "answer: nothing helps": (
        "nothing here shows that these columns help",
        _baseline_first,
        lambda run: run["entrants"].reverse() or run["entrants"][0].update(rank=1) or run["entrants"][1].update(rank=2),
    ),
    "answer": ("Boosting did best: log loss 0.3000, between 0.2700 and 0.3300", _nothing, _baseline_first),
    "rivals: none": (
        "There was no rival",
        lambda run: run["leaderboard"].update(text="", tied=[]),
        lambda run: run["leaderboard"].update(text="The first two cannot be told apart."),
    ),
    "rivals: the floor among them": (
        "The same answer every time is among them: that these columns help is not shown",
        lambda run: run["leaderboard"].update(tied=["boosting", "logistic", "baseline"]),
        lambda run: run["leaderboard"]["tied"].remove("baseline"),
    ),
    "rivals: a readable one": (
        "Logistic is among them and is simpler to explain",
        _nothing,
        lambda run: run["leaderboard"].update(tied=["boosting"]),
    ),
    "rivals": (
        "cannot be told apart",
        lambda run: run["entrants"][0].update(readable=True),
        lambda run: run["leaderboard"].update(text="Boosting is better than all others."),
    ),
    "meaning: off by": (
        "off by 12,346 on average, and 50.0 % of the variation".replace("50.0", "50"),
        _a_number,
        lambda run: run["entrants"][0]["metrics"].pop("mae"),
    ),
    "meaning: fewer right, for the costs": (
        "93.2 % of the sealed rows, less often than the same answer every time (96.7 %), and that is meant",
        both(_with_costs(0.166, 0.335), _accuracy(0.932, 0.967)),
        _accuracy(0.98, 0.967),
    ),
    "meaning: fewer right": ("use its probabilities, not its labels", _accuracy(0.6, 0.7), _accuracy(0.8, 0.7)),
    "meaning: right for": ("It is right for 89.0 % of the sealed rows", _nothing, _accuracy(0.5, 0.7)),
    "advice: a warning": ("Take care: 'x' alone predicts", _warned, lambda run: run["data"]["warnings"].clear()),
    "advice: what matters, and more rows": ("What matters most is x; more rows", _nothing, _nothing_matters),
    "advice: more rows": ("More rows would help.", _nothing_matters, _no_curve),
    "advice: what matters": ("What matters most is x.", _no_curve, _nothing_matters),
    "shipped: refitted": (
        "fitted anew on all 1,000 rows",
        _nothing,
        lambda run: run["shipped"].update(refitted=False, rows=800),
    ),
    "shipped: as scored": (
        "as it was scored, fitted on 800 training rows",
        lambda run: run["shipped"].update(refitted=False, rows=800),
        lambda run: run["shipped"].update(refitted=True),
    ),
    "time: left out": (
        "There was no time for the ledger and the learning curve",
        lambda run: run.update(left_out=["the ledger", "the learning curve"]),
        lambda run: run.update(left_out=[]),
    ),
}


def test_every_sentence_has_a_case_and_a_place() -> None:
    assert set(CASES) == {sentence.name for sentence in SENTENCES}
    assert {sentence.slot for sentence in SENTENCES} == set(SLOTS)


@pytest.mark.parametrize("name", CASES)
def test_a_sentence_is_said_where_it_is_true_and_only_there(name: str) -> None:
    words, make_true, make_false = CASES[name]
    run = record()
    make_true(run)
    assert any(words in sentence for sentence in summarize(run)), summarize(run)
    make_false(run)
    assert not any(words in sentence for sentence in summarize(run)), summarize(run)


def test_an_interval_that_is_not_trusted_is_not_quoted() -> None:
    run = record()
    run["entrants"][0]["score"]["trusted"] = False
    assert not any("confidence" in sentence for sentence in summarize(run))


def test_every_alarm_is_a_sentence_with_a_condition() -> None:
    for code, alarm in ALARMS.items():
        assert alarm.code == code
        assert alarm.when
        assert alarm.text.endswith((".", "}")), code
    with pytest.raises(KeyError):
        ring("no such alarm")


def test_nothing_is_simpler_than_the_same_answer_every_time() -> None:
    run = record()
    _baseline_first(run)
    run["leaderboard"]["tied"] = [e["name"] for e in run["entrants"]]
    run["entrants"][1]["readable"] = True
    assert "simpler" not in " ".join(summarize(run))
    run["entrants"][0] |= {"baseline": False}
    assert "simpler" in " ".join(summarize(run))
