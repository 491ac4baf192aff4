"""The page of a contest of taggers: what the template shows, in the style of the contest's report."""

from __future__ import annotations

import shlex
from typing import Any

from markupsafe import Markup

from certifit.contest import numbers
from certifit.contest.report.cleaning import embed, listed, mapped, parts, rounded
from certifit.contest.report.diagnostics import confusion
from certifit.contest.report.figures import Axis, Figure, bars, numbered
from certifit.contest.report.standings import answer, name_of, pair_table, rows, scale, winner

__all__ = ["content"]

Part = dict[str, Any]


def content(run: Part) -> Part:
    """What the template of taggers shows of a cleaned run."""
    names, pairs = pair_table(run)
    best, report = winner(run), mapped(mapped(run, "winner"), "report")
    figures = list(numbered([_scores(report, "labels"), _scores(report, "spans"), _confusion(report)], "tagging"))
    tied = sum(1 for e in run["entrants"] if e.get("verdict") == "tied with the best" and not e.get("baseline"))
    return {
        "run": run,
        "metric": mapped(run["task"], "metric"),
        "answer": answer(run),
        "winner": best,
        "winner_label": name_of(best) if best else "",
        "tied": tied,
        "finished": sum(1 for entrant in run["entrants"] if entrant.get("rank")),
        "rows": rows(run, {}),
        "scale": scale(run),
        "pair_names": names,
        "pairs": pairs,
        "report": report,
        "figures": figures,
        "mistakes": parts(mapped(run, "winner"), "mistakes"),
        "transitions": parts(mapped(run, "winner"), "transitions"),
        "features": [part for part in parts(mapped(run, "winner"), "features") if listed(part, "features")],
        "command": _command(run),
        "data_json": Markup(embed({"figures": {name: rounded(figure.spec) for name, figure in figures}})),
    }


def _scores(report: Part, kind: str) -> Figure | None:
    """F1 of each label or kind of span, with its interval, the frequent ones first."""
    table = [
        (name, mapped(score, "f1"), score.get("support"))
        for name, score in mapped(report, kind).items()
        if name != "all"
    ]
    table = [entry for entry in table if numbers.is_number(entry[1].get("value")) and numbers.is_number(entry[2])]
    if not table:
        return None
    table.sort(key=lambda entry: -entry[2])
    what = "label" if kind == "labels" else "kind of span"
    worst = min((entry for entry in table if entry[2] >= 10), key=lambda entry: entry[1]["value"], default=table[0])
    items = [
        {"label": f"{name} ({numbers.count(support)})", **{k: f1.get(k) for k in ("value", "low", "high")}}
        for name, f1, support in table[:25]
    ]
    return Figure(
        f"The hardest {what} is {worst[0]}: F1 {numbers.with_format(worst[1]['value'], '.3f')}",
        "; ".join(f"{item['label']}: {numbers.number(item['value'])}" for item in items),
        "Whiskers are 95\u00a0% intervals over sentences; in brackets, how often it occurs in the test file.",
        bars(Axis("F1", domain=(0.0, 1.0)), items, heading=what),
    )


def _confusion(report: Part) -> Figure | None:
    labels, counts = listed(report, "names"), listed(report, "confusion")
    found = confusion({"confusion": {"labels": labels, "counts": counts}})
    if found is None:
        return None
    return Figure(found.title.replace("sealed rows", "words"), found.alt, found.note, found.spec, found.wide)


def _command(run: Part) -> str:
    """The command line that repeats the contest."""
    data = run["data"]
    words = ["certifit", "tag", str(data.get("source") or "train"), str(data.get("test") or "test")]
    words += ["--target", str(run["task"].get("target") or "")]
    return shlex.join([*words, "--seed", str(run.get("seed") or 0)])
