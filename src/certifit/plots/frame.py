"""What all pictures share: colors, the frame around what is drawn, grids that reach a little beyond the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array

__all__ = ["BLUE", "COLORS", "GRAY", "GRID", "RED", "color", "column_label", "framed", "panels", "spanned"]

COLORS = ("#4c78a8", "#e45756", "#54a24b", "#b279a2", "#f58518", "#72b7b2", "#9d755d", "#bab0ac")
BLUE, RED = COLORS[:2]
GRAY = "#888888"
GRID = 200


def color(k: int) -> str:
    """The k-th color, round and round."""
    return COLORS[k % len(COLORS)]


def framed(ax: Any, *, legend: bool | str = True, **settings: Any) -> Any:
    """Names of the axes and the like, two sides instead of four, and a legend where something is named; returns the axes.

    The legend is where matplotlib finds room, at the place that is named, or ``"above"`` the axes, where it covers nothing.
    """
    ax.set(**settings)
    ax.spines[["top", "right"]].set_visible(False)
    if legend and ax.get_legend_handles_labels()[0]:
        place: dict[str, Any] = {"loc": legend} if isinstance(legend, str) else {}
        if legend == "above":
            place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.0}
        ax.legend(frameon=False, **place)
    return ax


def column_label(feature: Any) -> str:
    """What a column is called: its name, or its number."""
    return f"column {feature}" if isinstance(feature, (int, np.integer)) else str(feature)


def panels(n: int, width: float = 2.6, height: float = 2.4, **options: Any) -> list[Any]:
    """New axes side by side."""
    from matplotlib.figure import Figure

    return list(np.ravel(Figure(figsize=(width * n, height), layout="constrained").subplots(1, n, **options)))


def spanned(values: Array | None) -> Array:
    """A grid over the range of values and a little more; from −1 to 1 without any."""
    if values is None:
        return np.linspace(-1.0, 1.0, GRID)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.08 * (high - low) or 1.0
    return np.linspace(low - room, high + room, GRID)
