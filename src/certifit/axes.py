"""Where a picture is drawn: the axes given, or new ones; and which picture a result draws of itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

__all__ = ["axes_of", "picture"]


def axes_of(ax: Any = None) -> Any:
    """The axes given, or those of a new figure; nothing is shown, so that headless machines draw too."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()


def picture(name: str) -> Callable[..., Any]:
    """A function of `certifit.plots`, found when something is drawn: pictures know results, results only the picture's name."""
    found: Callable[..., Any] = getattr(importlib.import_module("certifit.plots"), name)
    return found
