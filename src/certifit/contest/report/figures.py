"""The figures as data: what is drawn, and in words what it shows. The page's script draws four kinds of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from certifit.contest.numbers import is_number

__all__ = ["Axis", "Figure", "Reference", "Series", "bars", "columns", "matrix", "numbered", "numbers_only", "xy"]

Spec = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """
    One axis: its label with the unit, whether it counts numbers, shares or dates, and its ends where they are fixed.

    Parameters
    ----------
    label : str
        What is measured, with its unit.
    kind : {"number", "share", "date"}
        Shares are drawn as percentages; dates come as milliseconds since 1970.
    domain : tuple of float, optional
        The ends; from the data when absent.
    """

    label: str
    kind: str = "number"
    domain: tuple[float, float] | None = None

    def spec(self) -> Spec:
        """The axis as the script reads it."""
        return {"label": self.label, "kind": self.kind, "domain": list(self.domain) if self.domain else None}


@dataclass(frozen=True)
class Series:
    """
    One line or cloud of points, with a band where it has one.

    Parameters
    ----------
    name : str
        What the legend calls it.
    x, y : list of float
        The points.
    low, high : list of float, optional
        Ends of the interval at each point.
    style : {"line", "points", "cloud"}
        Points are joined to their intervals by whiskers; a cloud is many small dots.
    tone : int
        Which of the page's colours.
    size : list of float, optional
        Rows behind each point, for the tooltip.
    """

    name: str
    x: list[float]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    style: str = "line"
    tone: int = 0
    size: list[float] | None = None

    def spec(self) -> Spec:
        """The series as the script reads it, without what it lacks."""
        every: Spec = {"name": self.name, "x": self.x, "y": self.y, "low": self.low, "high": self.high}
        every |= {"style": self.style, "tone": self.tone, "size": self.size}
        return {key: value for key, value in every.items() if value is not None}


@dataclass(frozen=True)
class Reference:
    """A line to compare with: the diagonal, a level (``"horizontal"``, its label at one side) or a place (``"vertical"``)."""

    kind: str
    label: str
    value: float | None = None
    side: str = "right"

    def spec(self) -> Spec:
        """The line as the script reads it."""
        return {"kind": self.kind, "label": self.label, "value": self.value, "side": self.side}


@dataclass(frozen=True)
class Figure:
    """A figure of the page."""

    title: str
    """The finding, as a sentence."""
    alt: str
    """What the picture shows, for those who do not see it."""
    note: str = ""
    """How to read it."""
    spec: Spec = field(default_factory=dict)
    """What the script draws."""
    wide: bool = False
    """Whether it takes the whole width of the page."""


def numbers_only(*lists: Any) -> list[list[float]] | None:
    """The positions at which every list holds a number, or None where fewer than one is left or a list is missing."""
    if not lists or not all(isinstance(part, list) for part in lists):
        return None
    rows = [row for row in zip(*lists, strict=False) if all(is_number(value) for value in row)]
    return [list(part) for part in zip(*rows, strict=True)] if rows else None


def xy(
    x: Axis,
    y: Axis,
    series: Iterable[Series],
    references: Iterable[Reference] = (),
    *,
    square: bool = False,
    numbered: bool = False,
) -> Spec:
    """Curves and points over two axes; in a `numbered` cloud `size` holds the number of each point's row."""
    return {
        "kind": "xy",
        "x": x.spec(),
        "y": y.spec(),
        "series": [part.spec() for part in series],
        "references": [reference.spec() for reference in references],
        "square": square,
        **({"numbered": True} if numbered else {}),
    }


def bars(x: Axis, items: Iterable[Mapping[str, Any]], *, mark: str = "bar", heading: str = "column") -> Spec:
    """Named values with their intervals, one under the other; `mark` is ``"bar"`` (from zero) or ``"dot"``."""
    kept = [dict(item) for item in items if is_number(item.get("value"))]
    return {"kind": "bars", "x": x.spec(), "items": kept, "mark": mark, "heading": heading}


def columns(x: Axis, y: Axis, edges: list[Any], counts: list[Any], references: Iterable[Reference] = ()) -> Spec:
    """A histogram."""
    return {
        "kind": "columns",
        "x": x.spec(),
        "y": y.spec(),
        "edges": edges,
        "counts": counts,
        "references": [reference.spec() for reference in references],
    }


def matrix(labels: list[str], counts: list[list[float]]) -> Spec:
    """Counts of actual (rows) against predicted (columns) classes."""
    return {"kind": "matrix", "labels": labels, "counts": counts}


def numbered(figures: Iterable[Figure | None], prefix: str) -> Iterator[tuple[str, Figure]]:
    """The figures that exist, each with the name by which the page and its script know it."""
    for k, figure in enumerate(figure for figure in figures if figure is not None):
        yield f"{prefix}-{k + 1}", figure
