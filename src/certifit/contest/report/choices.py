"""Decisions among several classes: the table of costs, and what the finalists cost under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from certifit.contest.numbers import count, is_number, number, percent, readable
from certifit.contest.report.cleaning import listed, mapped
from certifit.contest.report.finalists import finalists

__all__ = ["Choices", "choices_of"]


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
    )


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
