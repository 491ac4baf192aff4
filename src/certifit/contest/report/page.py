"""From a run to the page: the run is cleaned, turned into what is shown, and rendered with everything inside."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from certifit.contest import numbers
from certifit.contest.report.choices import choices_of
from certifit.contest.report.cleaning import embed, listed, mapped, readable_run, rounded
from certifit.contest.report.cleaning import parts as parts_of
from certifit.contest.report.diagnostics import short
from certifit.contest.report.figures import Axis, Figure, bars, numbers_only
from certifit.contest.report.finalists import comparison, finalists, links, setting
from certifit.contest.report.glossary import terms
from certifit.contest.report.standings import answer, name_of, pair_table, proven_whole, rows, scale, score_of, winner
from certifit.contest.report.tables import column_rows, grouped_warnings
from certifit.files import written_whole

__all__ = ["filled", "render", "write_report"]

Part = dict[str, Any]

SCRIPTS = (
    "dom",
    "scales",
    "plot",
    "curves",
    "bars",
    "matrix",
    "columns",
    "figures",
    "tables",
    "tabs",
    "decide",
    "choices",
    "main",
)
"""The page's script, in the order in which its parts build on one another."""

NOT_FILES = {"data frame": "table.csv", "standard input": "-"}
"""Sources without a file name, and what stands for them on a command line."""

TEST_SIZE = 0.2
"""The share that the command line seals by itself."""

UNITS: dict[str, Callable[[Any], str]] = {"time": numbers.duration, "test_size": numbers.percent}
"""Options that are quantities, and how they are written."""

LOUD = ("leakage", "split")
"""Kinds of warnings that question every score: the page says them before it says anything else."""

FILTERS = ("aligned", "count", "duration", "moment", "number", "percent", "with_format")


def render(run: Mapping[str, Any]) -> str:
    """
    The report of a contest as one HTML page.

    The page needs no other file and makes no request. What the run does not hold is left out.

    Parameters
    ----------
    run : mapping
        The run, as `run.json` holds it.

    Returns
    -------
    str
        The page.

    Raises
    ------
    TypeError, ValueError
        If `run` is no mapping, has another format than this version reads, or lacks the task or the entrants.

    Examples
    --------
    >>> entrant = {"name": "mean", "label": "Mean", "score": {"value": 2.5, "low": 2.1, "high": 2.9}}
    >>> page = render({"format": 1, "task": {"kind": "regression", "target": "price"}, "entrants": [entrant]})
    >>> "Mean predicts “price” best" in page
    True
    """
    clean = readable_run(run)
    if clean["task"].get("kind") == "tagging":
        from certifit.contest.tagging.page import content

        return filled("tagging.html.jinja", content(clean))
    return filled("page.html.jinja", _content(clean))


def filled(template: str, content: Part) -> str:
    """A template with its content, style and script."""
    style, script = _asset("style.css"), _script()
    return (
        _environment()
        .get_template(template)
        .render(**content, style=Markup(style), script=Markup(script), policy=_policy(style, script))
    )


def write_report(run: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """
    Write the report of a contest to a file, whole or not at all.

    Parameters
    ----------
    run : mapping
        The run, as `run.json` holds it.
    path : path
        Where to write; the folder must exist. An older report there is replaced.

    Returns
    -------
    Path
        The path written.

    Examples
    --------
    >>> import tempfile
    >>> run = {"format": 1, "task": {"kind": "regression", "target": "price"}, "entrants": []}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(run, Path(folder) / "report.html")
    ...     path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    """
    page = render(run)
    with written_whole(path) as file:
        file.write(page.encode("utf-8"))
    return Path(path)


@cache
def _asset(*parts: str) -> str:
    return resources.files("certifit.contest.report").joinpath(*parts).read_text(encoding="utf-8")


@cache
def _script() -> str:
    parts = "\n".join(_asset("js", f"{name}.js") for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();'


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _asset("templates", name)),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: "" if value is None else value,
        undefined=jinja2.ChainableUndefined,  # a part that the run lacks is an empty part
    )
    environment.filters.update({name: getattr(numbers, name) for name in FILTERS})
    environment.filters["setting"] = setting
    return environment


def _policy(style: str, script: str) -> str:
    """Only this very script and style may run; nothing may be fetched, framed, or sent."""

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; script-src 'sha256-{digest(script)}'; style-src 'sha256-{digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _content(run: Part) -> Part:
    """What the templates show."""
    task, first = run["task"], winner(run)
    metric = mapped(task, "metric")
    metric["format"] = numbers.fixed(metric.get("format"), score_of(first or {}).get("value"))
    pages, side_by_side, ledger = finalists(run), comparison(run), _ledger(run)
    names, pairs = pair_table(run)
    shown, more = column_rows(run["data"])
    decide, choices = _decide(run), choices_of(run)
    drawn = [*side_by_side, *(figure for page in pages for figure in page.figures), *ledger]
    return {
        "run": run,
        "task": task,
        "metric": metric,
        "answer": answer(run),
        "winner": first,
        "loud": [str(w["text"]) for w in parts_of(run["data"], "warnings") if w.get("kind") in LOUD and w.get("text")],
        "costs": _costs(run, first),
        "proven": proven_whole(first),
        "finished": sum(1 for entrant in run["entrants"] if score_of(entrant)),
        "tied": sum(1 for e in run["entrants"] if e.get("verdict") == "tied with the best" and not e.get("baseline")),
        "rows": rows(run, links(run)),
        "scale": scale(run),
        "pair_names": names,
        "pairs": pairs,
        "finalists": pages,
        "comparison": side_by_side,
        "decide": decide,
        "choices": choices,
        "columns": shown,
        "more_columns": more,
        "bad_lines": parts_of(mapped(run["data"], "bad_rows"), "first"),
        "summary": [str(sentence).replace(" %", "\u00a0%") for sentence in listed(run, "summary") if sentence],
        "warnings": grouped_warnings(run["data"]),
        "ledger": ledger,
        "ledger_rows": parts_of(run["ledger"], "rows"),
        "ledger_model": _label(run, mapped(run, "ledger").get("model")),
        "promise": _promise(run),
        "options": _options(run["options"]),
        "command": _command(run),
        "terms": terms(run),
        "data_json": Markup(
            embed(
                {
                    "figures": {name: rounded(figure.spec) for name, figure in drawn},
                    "decide": decide,
                    "choices": choices and choices.live,
                }
            )
        ),
    }


def _costs(run: Part, first: Part | None) -> tuple[str, str] | None:
    """Cost a row of the winner and of the baseline, where costs were given."""
    floor = next((e for e in run["entrants"] if e.get("baseline")), None)
    values = [mapped(mapped(e or {}, "metrics"), "expected_cost").get("value") for e in (first, floor)]
    if not mapped(run["options"], "cost") or not all(map(numbers.is_number, values)):
        return None
    return numbers.readable(values[0], ".3g"), numbers.readable(values[1], ".3g")


def _decide(run: Part) -> Part | None:
    """What the cost slider reads: the finalists' counts at each threshold, in ascending order, and the costs to begin with."""
    task = run["task"]
    if task.get("kind") != "binary":
        return None
    cells = ("threshold", "tp", "fp", "tn", "fn")
    entrants = []
    for page in finalists(run):
        table = mapped(mapped(run["finalists"], str(page.entrant.get("name"))), "thresholds")
        if not (lists := numbers_only(*(table.get(cell) for cell in cells))):
            continue
        order = sorted(range(len(lists[0])), key=lambda k: lists[0][k])
        counts = {cell: [values[k] for k in order] for cell, values in zip(cells, lists, strict=True)}
        chosen = table.get("chosen")
        entrants.append({"label": page.label, "chosen": chosen if numbers.is_number(chosen) else None, **counts})
    if not entrants:
        return None
    cost = mapped(run["options"], "cost")
    start = {key: cost[key] if numbers.is_number(cost.get(key)) and cost[key] > 0 else 1 for key in ("fp", "fn")}
    start = {key: int(value) if value == int(value) else value for key, value in start.items()}
    positive = str(task.get("positive") or "yes")
    others = [str(c) for c in listed(task, "classes") if c is not None and str(c) != positive]
    return {
        "entrants": entrants,
        "fp": start["fp"],
        "fn": start["fn"],
        "given": bool(cost),
        "yes": positive,
        "no": others[0] if others else f"not {positive}",
    }


def _promise(run: Part) -> list[tuple[str, str, str, str]]:
    """Level, share of the sealed rows that were inside, its interval, and the mean size, as text."""
    found = []
    for row in parts_of(run["promise"], "levels"):
        keys = ("level", "coverage", "low", "high")
        if all(numbers.is_number(row.get(key)) for key in keys):
            level, share, low, high = (numbers.percent(row[key]) for key in keys)
            size = numbers.number(row["size"]) if numbers.is_number(row.get("size")) else "unbounded"
            found.append((level, share, f"{low} to {high}", size))
    return found


def _ledger(run: Part) -> list[tuple[str, Figure]]:
    """The parts of the remaining error as one figure, where the run has a ledger."""
    ledger = run.get("ledger")
    if not isinstance(ledger, dict):
        return []
    parts = [row for row in parts_of(ledger, "rows") if numbers.is_number(row.get("value"))]
    if not parts:
        return []
    most = max(parts, key=lambda row: row["value"])
    items = [{"label": str(p.get("part")), **{k: p.get(k) for k in ("value", "low", "high")}} for p in parts]
    figure = Figure(
        f"The largest known part is {short(most.get('part'))}: {numbers.number(most['value'])}",
        "; ".join(f"{item['label']}: {numbers.number(item['value'])}" for item in items),
        "Whiskers are 95\u00a0% intervals. Parts that nobody can bound are not drawn; the table says why.",
        bars(Axis(str(ledger.get("metric") or "loss")), items, heading="part"),
        wide=True,
    )
    return [("ledger-1", figure)]


def _label(run: Part, name: Any) -> str:
    """What the entrant with a name is called on the page."""
    return next((name_of(entrant) for entrant in run["entrants"] if entrant.get("name") == name), str(name or ""))


def _options(options: Part) -> list[tuple[str, str]]:
    """The options in words, without those left at nothing."""
    found = []
    for key, value in options.items():
        if value is None or value == [] or value == {}:
            continue
        if key == "cost" and isinstance(value, dict):
            found.append((key, _cost_words(value)))
            continue
        if key in UNITS:
            found.append((key.replace("_", " "), UNITS[key](value)))
            continue
        text = ", ".join(f"{k}={setting(v)}" for k, v in value.items()) if isinstance(value, dict) else setting(value)
        found.append((key.replace("_", " "), text))
    return found


def _cost_words(cost: Part) -> str:
    """Costs as the command line takes them."""
    if any(isinstance(row, dict) for row in cost.values()):
        return json.dumps(cost, ensure_ascii=False)
    return ",".join(f"{key}={value:.12g}" for key, value in cost.items() if numbers.is_number(value))


def _command(run: Part) -> str:
    """The command line that repeats the contest."""
    options, source = run["options"], str(run["data"].get("source") or "data frame")
    words = ["certifit", "compete", NOT_FILES.get(source, source), "--target", str(run["task"].get("target") or "y")]
    for key in ("task", "metric", "group", "time_column"):
        if options.get(key) is not None:
            words += [f"--{key.replace('_', '-')}", str(options[key])]
    for value in filter(None, listed(options, "drop")):
        words += ["--drop", str(value)]
    if entrants := [str(value) for value in filter(None, listed(options, "entrants"))]:
        words += ["--entrants", ",".join(entrants)]
    for column, kind in mapped(options, "types").items():
        words += ["--types", f"{column}={kind}"] if kind else []
    if cost := mapped(options, "cost"):
        words += ["--cost", _cost_words(cost)]
    if numbers.is_number(size := options.get("test_size")) and size != TEST_SIZE:
        words += ["--test-size", str(size)]
    if options.get("refit") is False:
        words.append("--no-refit")
    for key, value in (("time", options.get("time")), ("seed", run.get("seed")), ("jobs", run.get("jobs"))):
        if numbers.is_number(value):
            words += [f"--{key}", str(int(value) if value == int(value) else value)]
    return shlex.join(words)
