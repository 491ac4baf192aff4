"""The data page: columns with their small distributions, warnings, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from certifit.contest.numbers import count, is_number, number, percent
from certifit.contest.report.cleaning import listed, mapped, named, parts

__all__ = ["COLUMNS", "ColumnRow", "column_rows", "grouped_warnings"]

Part = dict[str, Any]

COLUMNS = 300
"""Columns shown on the page; a table of thousands is read elsewhere, and would make the page too large."""

WARNINGS = 8
"""Warnings of one kind shown in full."""


@dataclass(frozen=True)
class ColumnRow:
    """
    A column of the table: its words, and its distribution as bars (left, width, height: per cent of the drawing).

    `alt` says in words what the bars show.
    """

    name: str
    kind: str
    role: str
    why: str
    missing: str
    missing_share: float
    distinct: str
    bars: tuple[tuple[float, float, float], ...]
    alt: str
    words: str
    keys: dict[str, Any]


def column_rows(data: Part) -> tuple[list[ColumnRow], int]:
    """The columns that are shown, the target first, and how many more there are."""
    found = parts(data, "columns_info")
    found.sort(key=lambda column: column.get("role") != "target")  # stable: the rest keep the table's order
    total = data.get("rows")
    return [_row(column, k, total) for k, column in enumerate(found[:COLUMNS])], max(0, len(found) - COLUMNS)


def _row(column: Part, k: int, total: Any) -> ColumnRow:
    missing = column.get("missing")
    share = missing / total if is_number(missing) and is_number(total) and total > 0 else 0.0
    bars, alt, words = _histogram(column) or _levels(column) or ((), "", "")
    return ColumnRow(
        name=named(column, "name"),
        kind=str(column.get("kind") or ""),
        role=str(column.get("role") or "feature"),
        why=str(column.get("why") or ""),
        missing=percent(share) if missing else "none",
        missing_share=round(100 * min(1.0, share), 2),
        distinct=count(column.get("distinct")),
        bars=bars,
        alt=alt,
        words=words,
        keys={"order": k, "name": named(column, "name"), "missing": missing, "distinct": column.get("distinct")},
    )


Drawn = tuple[tuple[tuple[float, float, float], ...], str, str]


def _heights(counts: list[Any]) -> tuple[tuple[float, float, float], ...]:
    top = max(counts)
    width = 100 / len(counts)
    gap = min(1.0, width * 0.12)
    return tuple(
        (round(k * width + gap / 2, 3), round(width - gap, 3), round(max(100 * value / top, 2.5 if value else 0), 2))
        for k, value in enumerate(counts)
    )


def _histogram(column: Part) -> Drawn | None:
    histogram, numbers = mapped(column, "histogram"), mapped(column, "numbers")
    edges, counts = listed(histogram, "edges"), listed(histogram, "counts")
    if len(edges) != len(counts) + 1:
        return None
    if not all(is_number(c) for c in counts) or not counts or max(counts) <= 0:
        return None
    ends = [str(e)[:10] if isinstance(e, str) else number(e) for e in (edges[0], edges[-1])]
    words = f"{ends[0]} to {ends[1]}"
    if is_number(numbers.get("median")):
        words += f"; median {number(numbers['median'])}"
    alt = f"Histogram from {ends[0]} to {ends[1]}, tallest bar {count(max(counts))} rows"
    if is_number(numbers.get("q1")) and is_number(numbers.get("q3")):
        alt += f"; the middle half lies between {number(numbers['q1'])} and {number(numbers['q3'])}"
    return _heights(counts), alt, words


def _levels(column: Part) -> Drawn | None:
    top = [t for t in parts(column, "top") if is_number(t.get("count"))]
    if not top or max(t["count"] for t in top) <= 0:
        return None
    other = column.get("other") if is_number(column.get("other")) else 0
    total = sum(t["count"] for t in top) + (other or 0)
    shares = [f"{str(t.get('value'))[:40]} {percent(t['count'] / total, 0)}" for t in top]
    words = ", ".join(shares[:3])
    rest = (column.get("distinct") or len(top)) - min(3, len(top))
    if is_number(rest) and rest > 0:
        words += f" and {count(rest)} more"
    counts = [t["count"] for t in top] + ([other] if other else [])
    return _heights(counts), f"Rows per level, the most frequent first: {', '.join(shares)}", words


def grouped_warnings(data: Part) -> list[tuple[str, list[Part], int]]:
    """The warnings by kind, in order of appearance: kind, the first few, and how many more."""
    kinds: dict[str, list[Part]] = {}
    for warning in parts(data, "warnings"):
        if warning.get("text"):
            kinds.setdefault(str(warning.get("kind") or "other"), []).append(warning)
    return [(kind, found[:WARNINGS], max(0, len(found) - WARNINGS)) for kind, found in kinds.items()]
