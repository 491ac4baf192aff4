"""The page of an exploration: the record as figures, sentences and tables, in the style of the contest's report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from certifit.contest import numbers
from certifit.contest.folder import write_text
from certifit.contest.plain import plain
from certifit.contest.report.cleaning import embed, listed, mapped, parts, rounded, visible
from certifit.contest.report.figures import Axis, Figure, Reference, Series, bars, numbered, xy
from certifit.contest.report.page import filled
from certifit.contest.report.tables import column_rows
from certifit.exploration import sentences
from certifit.exploration.exploration import FORMAT
from certifit.exploration.structure import LEVEL, PLAINLY, STEADY
from certifit.printable import json_text

__all__ = ["FILES", "render", "write"]

Part = dict[str, Any]
FILES = {"page": "explore.html", "record": "explore.json"}
BARS = 15
PAIRS = 60
TONES = 8
CELL, NAME, ROW = 24, 150, 24  # of the drawn pairs and the drawn tree, in pixels
TREE = 420


def render(record: Mapping[str, Any]) -> str:
    """The page of a record, as one HTML file that needs nothing else."""
    if not isinstance(record, Mapping) or record.get("kind") != "exploration" or record.get("format") != FORMAT:
        raise ValueError(f"this is no record of an exploration of format {FORMAT}: explore the table again.")
    return filled("explore.html.jinja", _content(plain(dict(record), visible)))


def write(record: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Write the page and the record."""
    paths = {kind: folder / name for kind, name in FILES.items()}
    whole = {**record, "files": dict(FILES)}
    write_text(paths["record"], json_text(plain(whole, str), indent=1) + "\n")
    write_text(paths["page"], render(whole))
    return paths


def _content(run: Part) -> Part:
    structure = run.get("structure") or {}
    kinds = {str(c["name"]): c.get("kind") for c in parts(run["data"], "columns_info")}
    shown, more = column_rows(run["data"])
    groups = [
        {
            "name": sentences.group_name(k),
            "rows": group["rows"],
            "share": group["share"],
            "said": sentences.apart(group, kinds),
        }
        for k, group in enumerate(parts(structure, "groups"))
    ]
    figures = list(numbered([_map(run), _coloured(run), _stability(structure), _silhouettes(structure)], "groups"))
    strong = list(numbered([_strongest(run)], "pairs"))
    return {
        "run": run,
        "answer": sentences.answer(run),
        "summary": sentences.summary(run),
        "structure": structure,
        "steady_from": STEADY,
        "plainly": PLAINLY,
        "steady": sentences.steadiness(structure) if structure else [],
        "agreement": structure.get("label_agreement"),
        "groups": groups,
        "figures": figures,
        "strong": strong,
        "strongest": sentences.strongest(run),
        "pairs": sorted(parts(run, "associations"), key=lambda pair: -pair["strength"])[:PAIRS],
        "more_pairs": max(0, len(parts(run, "associations")) - PAIRS),
        "heat": _heat(run),
        "tree": _tree(run),
        "columns": shown,
        "more_columns": more,
        "bad_lines": parts(mapped(run["data"], "bad_rows"), "first"),
        "together": sentences.together(run["data"]),
        "copies": sentences.copies(run["data"]),
        "near": listed(mapped(run["data"], "near"), "groups"),
        "outliers": [{"row": one["row"], "why": sentences.odd(one, kinds)} for one in parts(run, "outliers")],
        "command": _command(run),
        "data_json": Markup(embed({"figures": {name: rounded(figure.spec) for name, figure in [*figures, *strong]}})),
    }


def _axes(run: Part) -> tuple[Axis, Axis]:
    shares = [*listed(mapped(run, "map"), "share"), 0.0, 0.0]
    words = [
        f"{word} axis ({numbers.percent(share, 0)} of the variance)"
        for word, share in zip(("first", "second"), shares, strict=False)
    ]
    return Axis(words[0]), Axis(words[1])


def _clouds(drawn: Part, names: list[Any], order: list[str]) -> list[Series]:
    """One cloud for each name."""
    found = []
    for tone, name in enumerate(order):
        at = [i for i, own in enumerate(names) if own == name]
        x, y, row = ([drawn[key][i] for i in at] for key in ("x", "y", "row"))
        found.append(Series(name, x, y, style="cloud", tone=tone % TONES, size=row))
    return [cloud for cloud in found if cloud.x]


def _map(run: Part) -> Figure | None:
    drawn, structure = mapped(run, "map"), mapped(run, "structure")
    if not listed(drawn, "x"):
        return None
    k = structure["k"]
    order = [sentences.group_name(c) for c in range(k)] if k > 1 else ["rows"]
    names = [order[group] for group in drawn["group"]] if k > 1 else ["rows"] * len(drawn["x"])
    many = f"{numbers.count(len(drawn['x']))} of the rows are drawn." if len(drawn["x"]) < run["data"]["rows"] else ""
    title = f"A map of the rows, coloured by the {k} groups" if k > 1 else "A map of the rows: one cloud"
    return Figure(
        title,
        f"{numbers.count(len(drawn['x']))} points{f' in {k} groups' if k > 1 else ''}, near each other where rows are alike",
        f"Rows that are alike in all columns together are near each other. {many}".strip(),
        xy(*_axes(run), _clouds(drawn, names, order), square=True, numbered=True),
        wide=True,
    )


def _free(word: str, taken: Iterable[Any]) -> str:
    """The word, in brackets where a value is spelled like it, so that the two keep their own colours."""
    used = {str(value) for value in taken if value is not None}
    while word in used:
        word = f"({word})"
    return word


def _coloured(run: Part) -> Figure | None:
    """The map by the label that was asked for."""
    drawn, label = mapped(run, "map"), run["data"].get("label")
    if not listed(drawn, "label"):
        return None
    absent = _free("missing", drawn["label"])
    names = [absent if name is None else str(name) for name in drawn["label"]]
    order = sorted(set(names), key=lambda name: (-names.count(name), name))
    if len(order) > TONES:
        kept = order[: TONES - 1]
        rest = _free("others", kept)
        names, order = [name if name in kept else rest for name in names], [*kept, rest]
    return Figure(
        f"The same map, coloured by “{label}”",
        f"The points by {label}: {', '.join(order)}",
        f"“{label}” did not make the map: where its colours part, the other columns know of it.",
        xy(*_axes(run), _clouds(drawn, names, order), square=True, numbered=True),
        wide=True,
    )


def _stability(structure: Part) -> Figure | None:
    known = mapped(structure, "stability")
    if not known:
        return None
    ks = sorted(int(k) for k in known)
    rows = [known[str(k)] for k in ks]
    steady = [k for k, row in zip(ks, rows, strict=True) if row["survives"]]
    x = [float(k) for k in ks]

    def curve(name: str, keys: tuple[str, str, str], tone: int) -> Series:
        y, low, high = ([row[key] for row in rows] for key in keys)
        return Series(name, x, y, low, high, tone=tone)

    own = curve("these rows", ("value", "low", "high"), 0)
    cloud = curve("a table without groups", ("reference", "reference_low", "reference_high"), 1)
    names = ", ".join(str(k) for k in steady)
    title = f"Groups that survive resampling: {names}" if steady else "No number of groups survives resampling"
    return Figure(
        title,
        "; ".join(
            f"{k}: {row['value']:.2f}, without groups {row['reference']:.2f}" for k, row in zip(ks, rows, strict=True)
        ),
        f"How far groups of two samples of the rows agree, with {100 * LEVEL:.0f}\u00a0% intervals: of the mean for these "
        "rows, of a single one for tables without groups. A number survives where its own interval "
        f"begins at {STEADY} or above and the intervals part, or the groups are farther apart than those of rows without "
        "groups may be; and, where fewer groups have a better silhouette, the same holds beside tables that have these alone.",
        xy(Axis("number of groups"), Axis("agreement"), [own, cloud]),
    )


def _silhouettes(structure: Part) -> Figure | None:
    known = mapped(structure, "silhouettes")
    if not known:
        return None
    ks = sorted(int(k) for k in known)
    by = mapped(structure, "by")
    chosen = [Reference("vertical", "chosen", float(structure["k"]))] if structure["k"] > 1 else []
    return Figure(
        f"How many groups: {by['silhouette']} by silhouette, {by['gap']} by gap, {by['kink']} by kink of the cost",
        "; ".join(f"{k}: {known[str(k)]:.2f}" for k in ks),
        "Silhouette: how much nearer rows are to their own group than to the next; 1 is the most.",
        xy(
            Axis("number of groups"),
            Axis("mean silhouette"),
            [Series("silhouette", [float(k) for k in ks], [known[str(k)] for k in ks])],
            chosen,
        ),
    )


def _strongest(run: Part) -> Figure | None:
    pairs = sorted((p for p in parts(run, "associations") if p["clear"]), key=lambda pair: -pair["strength"])[:BARS]
    if not pairs:
        return None
    items = [{"label": f"{pair['left']} · {pair['right']}", "value": pair["strength"]} for pair in pairs]
    return Figure(
        f"The strongest of {numbers.count(len(parts(run, 'associations')))} pairs of columns",
        "; ".join(f"{item['label']}: {item['value']:.2f}" for item in items),
        "Only pairs whose association is clear: chance gives it in less than 1\u00a0% of tables, all pairs considered.",
        bars(Axis("strength of association", domain=(0.0, 1.0)), items, heading="pair"),
        wide=True,
    )


def _leaves(tree: Part) -> list[int]:
    """Columns in the order in which the tree has them, so that no branches cross."""
    n = len(tree["names"])

    def below(node: int) -> list[int]:
        if node < n:
            return [node]
        left, right, _ = tree["merges"][node - n]
        return [*below(left), *below(right)]

    return below(n + len(tree["merges"]) - 1)


def _tree(run: Part) -> Part | None:
    """The tree of the columns as lines."""
    tree = run.get("tree")
    if not tree:
        return None
    order = _leaves(tree)
    n = len(order)
    at = {leaf: (NAME, (k + 0.5) * ROW) for k, leaf in enumerate(order)}
    lines = []
    for node, (left, right, height) in enumerate(tree["merges"], start=n):
        x = NAME + height * TREE
        (x1, y1), (x2, y2) = at[left], at[right]
        lines += [[round(v, 1) for v in line] for line in ((x1, y1, x, y1), (x2, y2, x, y2), (x, y1, x, y2))]
        at[node] = (x, (y1 + y2) / 2)
    names = [(str(tree["names"][leaf]), (k + 0.5) * ROW + 4) for k, leaf in enumerate(order)]
    first = tree["merges"][0]
    words = (
        f"Nearest are {tree['names'][first[0]]} and {tree['names'][first[1]]}, at {first[2]:.2f}"
        if first[0] < n > first[1]
        else ""
    )
    ticks = [(NAME + share * TREE, f"{1 - share:g}") for share in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return {"names": names, "lines": lines, "width": NAME + TREE + 20, "height": n * ROW, "alt": words, "ticks": ticks}


def _heat(run: Part) -> Part | None:
    """Every pair of columns as a square, the stronger the darker."""
    pairs = parts(run, "associations")
    if len(pairs) < 3:
        return None
    tree = run["tree"]
    names = [str(tree["names"][leaf]) for leaf in _leaves(tree)]
    place = {name: k for k, name in enumerate(names)}
    cells = []
    for pair in pairs:
        i, j = place[pair["left"]], place[pair["right"]]
        sign = " (one falls as the other rises)" if pair["sign"] < 0 else ""
        title = f"{pair['left']} and {pair['right']}: {pair['strength']:.2f}{sign}"
        for a, b in ((i, j), (j, i)):
            cells.append(
                (NAME + a * CELL, NAME + b * CELL, round(0.03 + 0.97 * pair["strength"], 3), pair["sign"] < 0, title)
            )
    return {"names": names, "cells": cells, "size": NAME + len(names) * CELL, "cell": CELL, "left": NAME}


def _command(run: Part) -> str:
    """The command line that repeats it."""
    data, options = run["data"], mapped(run, "options")
    words = ["certifit", "explore", str(data["source"])]
    words += ["--label", str(data["label"])] if data.get("label") else []
    for column, kind in mapped(options, "types").items():
        words += ["--types", f"{column}={kind}"]
    for column in listed(options, "drop"):
        words += ["--drop", str(column)]
    return shlex.join([*words, "--rows", str(options.get("rows")), "--seed", str(run.get("seed") or 0)])
