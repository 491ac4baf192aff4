"""Where a picture is drawn: the axes given, or new ones; and which picture a result draws of itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from certifit.parameters.docstrings import takes_as

__all__ = ["axes_of", "drawn", "picture"]

Draws = TypeVar("Draws", bound=Callable[..., Any])
RETURNS = "Returns\n-------\nmatplotlib axes"


def axes_of(ax: Any = None) -> Any:
    """The axes given, or those of a new figure; nothing is shown, so that headless machines draw too.

    Parameters
    ----------
    ax : matplotlib axes, optional
        Where to draw; new ones are made if it is not given.
    """
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").subplots()


def drawn(draw: Draws) -> Draws:
    """Complete what a picture says of itself: `ax`, and the axes that come back."""
    text, examples, rest = (takes_as(axes_of)(draw).__doc__ or "").rstrip().partition("\n\nExamples\n")
    draw.__doc__ = f"{text}\n\n{RETURNS}{examples}{rest}"
    return draw


def picture(name: str) -> Callable[..., Any]:
    """A function of `certifit.plots`, found when something is drawn: pictures know results, results only the picture's name."""
    found: Callable[..., Any] = getattr(importlib.import_module("certifit.plots"), name)
    return found
