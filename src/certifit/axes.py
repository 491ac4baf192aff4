"""Where a picture is drawn: the axes given, or new ones."""

from __future__ import annotations

from typing import Any

__all__ = ["axes_of"]


def axes_of(ax: Any = None) -> Any:
    """The axes given, or those of a new figure; nothing is shown, so that headless machines draw too."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()
