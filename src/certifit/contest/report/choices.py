"""Decisions among several classes: the table of costs, and what the finalists cost under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from certifit.contest.numbers import count, is_number, number, percent, readable
from certifit.contest.report.cleaning import listed, mapped
from certifit.contest.report.finalists import finalists

__all__ = ["Choices", "choices_of"]

MOST_CLASSES = 8  # of which a table of costs can still be typed


@dataclass(frozen=True)
class Choices:
    """What the page shows."""

    classes: list[str]
    table: list[tuple[str, list[tuple[str, bool]]]]
    """Of each true class the costs of the answers, and whether they are right."""
    rows: list[tuple[str, ...]]
    """Of each finalist: label, cost by the costs, cost by the most probable class, share saved, rows decided otherwise."""
    answer: str
    """The cheapest answer for all rows, which costs `always`."""
    always: str
    live: dict[str, Any] | None = None
    """What the page computes with when the reader changes a cost; nothing where there are too many classes."""


def choices_of(run: dict[str, Any]) -> Choices | None:
    """The decisions of a run, where it has more than two classes and costs."""
    costs, classes = mapped(run["options"], "cost"), [str(c) for c in listed(run["task"], "classes")]
    table = [[mapped(costs, k).get(a) for a in classes] for k in classes]
    if not classes or not all(is_number(cell) for row in table for cell in row):
        return None
    found = {
        page.label: mapped(mapped(run["finalists"], str(page.entrant.get("name"))), "decisions")
        for page in finalists(run)
    }
    found = {label: part for label, part in found.items() if _whole(part, len(classes))}
    if not found:
        return None
    always = next(iter(found.values()))["always"]
    cheapest = min(range(len(classes)), key=lambda a: always[a])
    return Choices(
        classes,
        [
            (k, [(number(cell), k == a) for a, cell in zip(classes, row, strict=True)])
            for k, row in zip(classes, table, strict=True)
        ],
        [_row(label, part, always[cheapest]) for label, part in found.items()],
        classes[cheapest],
        readable(always[cheapest], ".3g"),
        _live(classes, table, found),
    )


def _live(classes: list[str], table: list[list[Any]], found: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    """Costs to begin with, and of each finalist the true classes and the probabilities of some sealed rows."""
    entrants = []
    for label, part in found.items():
        truth, rows = listed(part, "truth"), listed(part, "probabilities")
        if truth and len(truth) == len(rows) and _fit(truth, rows, len(classes)):
            entrants.append({"label": label, "truth": truth, "probabilities": rows, "rows": part["rows"]})
    if not entrants or len(classes) > MOST_CLASSES:
        return None
    costs = [[int(cell) if cell == int(cell) else cell for cell in row] for row in table]
    return {"classes": classes, "costs": costs, "entrants": entrants}


def _fit(truth: list[Any], rows: list[Any], n_classes: int) -> bool:
    """Whether these are codes of classes and a probability for each class."""
    coded = all(isinstance(k, int) and 0 <= k < n_classes for k in truth)
    return coded and all(isinstance(row, list) and len(row) == n_classes and all(map(is_number, row)) for row in rows)


def _whole(part: dict[str, Any], n_classes: int) -> bool:
    always = listed(part, "always")
    fields = [*always, *(part.get(key) for key in ("cost", "most_probable", "changed", "rows"))]
    return len(always) == n_classes and all(map(is_number, fields))


def _row(label: str, part: dict[str, Any], trivial: float) -> tuple[str, ...]:
    saved = (trivial - part["cost"]) / trivial if trivial > 0 else 0.0
    return (
        label,
        readable(part["cost"], ".3g"),
        readable(part["most_probable"], ".3g"),
        percent(saved),
        f"{count(part['changed'])} of {count(part['rows'])}",
    )
