"""The contest in plain sentences.

Every sentence the summary can say is listed once in `SENTENCES`, with the condition under which it is true. A slot of the summary
says the first of its sentences whose condition holds; a condition reads the record and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from certifit.contest.numbers import count, number, percent, readable
from certifit.printable import listing

__all__ = ["SENTENCES", "SLOTS", "Sentence", "summarize"]

Run = Mapping[str, Any]

SLOTS = ("cost", "question", "answer", "rivals", "meaning", "advice", "shipped", "time")
"""In the order in which the summary says them; "cost", "shipped" and "time" only where they apply."""

PRESSING = ("leakage", "split", "drift", "small")
"""Kinds of warnings that the summary repeats, the most pressing first."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of the summary."""

    name: str
    """Its name in tests."""
    slot: str
    """Its place in the summary."""
    when: Callable[[Run], Any]
    """Whether it is true of a record."""
    text: Callable[[Run], str]


def summarize(run: Run) -> list[str]:
    """What a reader without statistics should know, in the order of `SLOTS`."""
    found = []
    for slot in SLOTS:
        said = next((s for s in SENTENCES if s.slot == slot and s.when(run)), None)
        if said is not None:
            found.append(said.text(run).replace("\u00a0%", " %"))
    return found


# What the conditions and sentences read of a record


def best(run: Run) -> Mapping[str, Any]:
    """The entrant with the best score."""
    return next(e for e in run["entrants"] if e["rank"] == 1)


def floor(run: Run) -> Mapping[str, Any] | None:
    """The trivial baseline, where it was scored."""
    return next((e for e in run["entrants"] if e["baseline"] and e["score"]), None)


def metric_of(entrant: Mapping[str, Any] | None, name: str) -> float | None:
    """A metric of an entrant on the sealed rows."""
    part = ((entrant or {}).get("metrics") or {}).get(name)
    return None if part is None else float(part["value"])


def shown(run: Run, value: float) -> str:
    """A value of the contest's metric."""
    return readable(value, run["task"]["metric"]["format"], beside=best(run)["score"]["value"])


def _costs(run: Run) -> tuple[float, float] | None:
    """Cost a row of the winner and of the trivial rule."""
    mine, trivial = (metric_of(e, "expected_cost") for e in (best(run), floor(run)))
    return None if mine is None or trivial is None or not run["options"]["cost"] else (mine, trivial)


def _saves(run: Run) -> bool:
    costs = _costs(run)
    return costs is not None and costs[0] < costs[1]


def _by_classes(run: Run) -> bool:
    """Whether costs are a table of classes, not those of false alarms and misses."""
    return any(isinstance(row, Mapping) for row in (run["options"]["cost"] or {}).values())


def _below_the_floor(run: Run) -> bool:
    """Whether the winner decides fewer rows rightly than the same answer every time."""
    mine, trivial = (metric_of(e, "accuracy") for e in (best(run), floor(run)))
    return mine is not None and trivial is not None and mine < trivial


def _only_the_floor(run: Run) -> bool:
    """Whether the baseline is the only one with a score."""
    return all(e["baseline"] for e in run["entrants"] if e["score"])


def _floor_is_tied(run: Run) -> bool:
    """Whether the best entrant is not shown to beat the baseline."""
    base = floor(run)
    return base is not None and not best(run)["baseline"] and base["name"] in run["leaderboard"]["tied"]


def _cheaper(run: Run) -> Mapping[str, Any] | None:
    """The cheapest entrant that costs less than the same answer every time, where the winner does not."""
    costs = _costs(run)
    if costs is None or costs[0] < costs[1]:
        return None
    priced = [(cost, e) for e in run["entrants"] if (cost := metric_of(e, "expected_cost")) is not None]
    cost, entrant = min(priced, key=lambda pair: pair[0])
    return entrant if cost < costs[1] else None


def _readable_rival(run: Run) -> Mapping[str, Any] | None:
    tied = [e for e in run["entrants"] if e["name"] in run["leaderboard"]["tied"]]
    if not tied or tied[0]["readable"] or tied[0]["baseline"]:  # nothing is simpler than the same answer every time
        return None
    return next((e for e in tied[1:] if e["readable"]), None)


def _pressing(run: Run) -> Mapping[str, Any] | None:
    warnings = run["data"]["warnings"]
    return next((w for kind in PRESSING for w in warnings if w["kind"] == kind), None)


def _page(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run["finalists"].get(best(run)["name"], {})
    return found


def _matters(run: Run) -> list[str]:
    """Columns whose shuffling worsens the score beyond chance, the first three."""
    items = _page(run).get("importance") or []
    return [row["feature"] for row in items[:3] if row["low"] is not None and row["low"] > 0]


def _reading(run: Run) -> str | None:
    return (_page(run).get("learning_curve") or {}).get("reading")


def _shipped(run: Run) -> Mapping[str, Any]:
    found: Mapping[str, Any] = run.get("shipped") or {}
    return found


# The sentences


def _cost(run: Run) -> str:
    mine, trivial = _costs(run) or (0.0, 0.0)
    cost, task = run["options"]["cost"], run["task"]
    return (
        f"With your costs (a false alarm {number(cost['fp'])}, a miss {number(cost['fn'])}), {best(run)['label']} costs "
        f"{readable(mine, '.3g')} a row instead of {readable(trivial, '.3g')} for the same answer every time; it says "
        f"“{task['positive']}” from probability {number(task['threshold'])} on."
    )


def _cost_of_classes(run: Run) -> str:
    mine, trivial = _costs(run) or (0.0, 0.0)
    return (
        f"With your costs, {best(run)['label']} costs {readable(mine, '.3g')} a row instead of {readable(trivial, '.3g')} for "
        "the same answer every time; it says the class that costs the least in expectation, not always the most probable one."
    )


def _cost_lost(run: Run) -> str:
    mine, trivial = _costs(run) or (0.0, 0.0)
    return (
        f"With your costs, no model here pays: {best(run)['label']} costs {readable(mine, '.3g')} a row, the same answer every "
        f"time {readable(trivial, '.3g')}."
    )


def _cost_of_another(run: Run) -> str:
    mine, trivial = _costs(run) or (0.0, 0.0)
    other = _cheaper(run)
    return (
        f"With your costs, {best(run)['label']} does not pay: it costs {readable(mine, '.3g')} a row, the same answer every time "
        f"{readable(trivial, '.3g')}. {(other or {})['label']} costs {readable(metric_of(other, 'expected_cost'), '.3g')}: "
        "--metric cost ranks by what you pay."
    )


def _question(run: Run) -> str:
    task, data = run["task"], run["data"]
    used = sum(column["role"] == "feature" for column in data["columns_info"])
    source = "the data frame" if data["source"] == "data frame" else data["source"]
    asked = {
        "binary": f"whether {task['target']} is {task['positive']}",
        "multiclass": f"which of {len(task['classes'] or ())} classes {task['target']} is",
        "regression": f"the number {task['target']}",
    }[task["kind"]]
    return (
        f"The question was {asked}, from {count(used)} column{'' if used == 1 else 's'} of {count(data['rows'])} rows of "
        f"{source}; {count(data['test_rows'])} rows were sealed before anything was fitted, and every score below "
        "is from them."
    )


def _nothing_helps(run: Run) -> str:
    metric = run["task"]["metric"]
    return (
        f"No method did better than giving the same answer for every row ({metric['label']} "
        f"{shown(run, best(run)['score']['value'])}): nothing here shows that these columns help to predict "
        f"{run['task']['target']}."
    )


def _nobody_else(run: Run) -> str:
    metric = run["task"]["metric"]
    return (
        f"Only the same answer for every row has a score ({metric['label']} {shown(run, best(run)['score']['value'])}): no "
        f"method got as far, and whether these columns help to predict {run['task']['target']} is not known."
    )


def _answer(run: Run) -> str:
    first, metric = best(run), run["task"]["metric"]
    score, base = first["score"], floor(run)
    text = f"{first['label']} did best: {metric['label']} {shown(run, score['value'])}"
    if score["low"] is not None and score["high"] is not None and score.get("trusted", True):
        text += f", between {shown(run, score['low'])} and {shown(run, score['high'])} with 95 % confidence"
    if base is not None:
        text += f", against {shown(run, base['score']['value'])} for the same answer every time"
        if first["skill"] is not None and first["skill"] > 0:
            text += f" ({percent(first['skill'], 0)} of the way to perfect)"
    return text + "."


def _rivals(run: Run) -> str:
    return str(run["leaderboard"]["text"]).strip()


def _rivals_readable(run: Run) -> str:
    simple = _readable_rival(run)
    assert simple is not None
    return f"{_rivals(run)} {simple['label']} is among them and is simpler to explain."


def _rivals_and_floor(run: Run) -> str:
    return f"{_rivals(run)} The same answer every time is among them: that these columns help is not shown."


def _off_by(run: Run) -> str:
    mae, r2 = metric_of(best(run), "mae"), metric_of(best(run), "r2")
    text = f"A prediction is off by {readable(mae, '.4g')} on average"
    if r2 is not None and r2 > 0:
        return f"{text}, and {percent(r2, 0)} of the variation is explained."
    return f"{text}." if r2 is None else f"{text}; nothing of the variation is explained."


def _right_for(run: Run) -> str:
    first = best(run)
    text = f"It is right for {percent(metric_of(first, 'accuracy'))} of the sealed rows"
    area = metric_of(first, "roc_auc")
    if run["task"]["kind"] == "binary" and area is not None:
        text += (
            f", and it ranks a random {run['task']['positive']} above a random other row {percent(area, 0)} of the time"
        )
    return text + "."


def _right_for_less(run: Run) -> str:
    cost, mine, trivial = run["options"]["cost"], metric_of(best(run), "accuracy"), metric_of(floor(run), "accuracy")
    if _by_classes(run):
        dear, cheap = "others", "cheap mistakes"
    else:
        dear, cheap = ("misses", "false alarms") if cost["fn"] >= cost["fp"] else ("false alarms", "misses")
    return (
        f"It is right for {percent(mine)} of the sealed rows, less often than the same answer every time ({percent(trivial)}), "
        f"and that is meant: it accepts {cheap} to avoid {dear}, which cost more."
    )


def _right_for_fewer(run: Run) -> str:
    mine, trivial = metric_of(best(run), "accuracy"), metric_of(floor(run), "accuracy")
    return (
        f"Its labels are right for {percent(mine)} of the sealed rows, less often than the same answer every time "
        f"({percent(trivial)}): use its probabilities, not its labels."
    )


def _matters_and_reading(run: Run) -> str:
    reading = str(_reading(run))
    return f"What matters most is {listing(_matters(run))}; {reading[0].lower()}{reading[1:]}"


SENTENCES = (
    Sentence("cost: saved among classes", "cost", lambda r: _saves(r) and _by_classes(r), _cost_of_classes),
    Sentence("cost: saved", "cost", _saves, _cost),
    Sentence("cost: another pays", "cost", lambda r: _cheaper(r) is not None, _cost_of_another),
    Sentence("cost: lost", "cost", lambda r: _costs(r) is not None and not _saves(r), _cost_lost),
    Sentence("question", "question", lambda r: True, _question),
    Sentence("answer: nobody else", "answer", _only_the_floor, _nobody_else),
    Sentence("answer: nothing helps", "answer", lambda r: best(r)["baseline"], _nothing_helps),
    Sentence("answer", "answer", lambda r: not best(r)["baseline"], _answer),
    Sentence("rivals: none", "rivals", lambda r: not _rivals(r), lambda r: "There was no rival to compare it with."),
    Sentence("rivals: the floor among them", "rivals", _floor_is_tied, _rivals_and_floor),
    Sentence("rivals: a readable one", "rivals", lambda r: _readable_rival(r) is not None, _rivals_readable),
    Sentence("rivals", "rivals", lambda r: _rivals(r), _rivals),
    Sentence("meaning: off by", "meaning", lambda r: metric_of(best(r), "mae") is not None, _off_by),
    Sentence(
        "meaning: fewer right, for the costs",
        "meaning",
        lambda r: _below_the_floor(r) and r["options"]["cost"] and not best(r)["baseline"],
        _right_for_less,
    ),
    Sentence(
        "meaning: fewer right", "meaning", lambda r: _below_the_floor(r) and not best(r)["baseline"], _right_for_fewer
    ),
    Sentence("meaning: right for", "meaning", lambda r: metric_of(best(r), "accuracy") is not None, _right_for),
    Sentence(
        "advice: a warning",
        "advice",
        lambda r: _pressing(r) is not None,
        lambda r: f"Take care: {(_pressing(r) or {})['text']}",
    ),
    Sentence(
        "advice: what matters, and more rows", "advice", lambda r: _matters(r) and _reading(r), _matters_and_reading
    ),
    Sentence("advice: more rows", "advice", _reading, lambda r: str(_reading(r))),
    Sentence("advice: what matters", "advice", _matters, lambda r: f"What matters most is {listing(_matters(r))}."),
    Sentence(
        "shipped: refitted",
        "shipped",
        lambda r: _shipped(r).get("refitted"),
        lambda r: f"The file holds it fitted anew on all {count(_shipped(r)['rows'])} rows.",
    ),
    Sentence(
        "shipped: as scored",
        "shipped",
        lambda r: _shipped(r).get("refitted") is False,
        lambda r: f"The file holds it as it was scored, fitted on {count(_shipped(r)['rows'])} training rows.",
    ),
    Sentence(
        "time: left out",
        "time",
        lambda r: r.get("left_out"),
        lambda r: f"There was no time for {listing(list(r['left_out']))}: give the contest more --time.",
    ),
)
