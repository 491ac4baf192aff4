"""What all pictures share."""

from __future__ import annotations

import inspect
import re

import numpy as np

from certifit import plots
from certifit.axes import axes_of, drawn
from certifit.plots.frame import COLORS, color, column_label, framed, panels, spanned


def test_colors_go_round() -> None:
    assert color(len(COLORS) + 1) == COLORS[1]


def test_a_legend_only_where_something_is_named() -> None:
    assert framed(axes_of(), xlabel="x").get_legend() is None
    ax = axes_of()
    ax.plot([0, 1], label="line")
    assert framed(ax, ylabel="y") is ax
    assert ax.get_legend() is not None
    assert ax.get_ylabel() == "y"
    assert not ax.spines["top"].get_visible()
    assert framed(axes_of(), legend=False).get_legend() is None


def test_grids_reach_beyond_the_values() -> None:
    grid = spanned(np.array([0.0, 10.0, np.nan]))
    assert grid[0] < 0.0 < 10.0 < grid[-1]
    assert spanned(np.array([3.0]))[[0, -1]].tolist() == [2.0, 4.0]
    assert spanned(None)[[0, -1]].tolist() == [-1.0, 1.0]


def test_panels_and_names_of_columns() -> None:
    assert len(panels(3)) == 3
    assert column_label("age") == "age"
    assert column_label(np.int64(4)) == "column 4"


def test_every_picture_says_where_it_is_drawn_and_what_comes_back() -> None:
    for name in plots.__all__:
        draw = getattr(plots, name)
        text = inspect.getdoc(draw) or ""
        sections = [text.count(f"\n\n{title}\n{'-' * len(title)}\n") for title in ("Parameters", "Returns")]
        assert sections == [1, 1], name
        named = len(re.findall(r"^(?:\w+, )*ax\b", text, re.MULTILINE))
        assert named == ("ax" in inspect.signature(draw).parameters), name


def test_a_picture_of_one_sentence_is_completed() -> None:
    @drawn
    def draw(ax: object = None) -> None:
        """A line."""

    where = "ax : matplotlib axes, optional\n    Where to draw; new ones are made if it is not given."
    text = f"A line.\n\nParameters\n----------\n{where}\n\n"
    assert draw.__doc__ == text + "Returns\n-------\nmatplotlib axes"
