"""The page in a real browser: it draws all it says, asks nobody for anything, and fits every screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contest.report.conftest import Page
from tests.exploration.tables import HOSTILE, TABLES, record

from certifit.exploration.page import render, write

Open = Callable[[str], Page]


@pytest.fixture(scope="module")
def page(driver: Any, tmp_path_factory: pytest.TempPathFactory) -> Open:
    folder = tmp_path_factory.mktemp("explored")

    def get(name: str) -> Page:
        (folder / name).mkdir(exist_ok=True)
        return Page(driver, write(record(name), folder / name)["page"])

    return get


@pytest.mark.parametrize("name", TABLES)
def test_no_errors_no_requests_and_every_figure_drawn(page: Open, name: str) -> None:
    shown = page(name).open()
    for tab in shown.all(".tabs a"):
        shown.visit(tab)
        assert shown.js("return document.documentElement.scrollWidth <= innerWidth")
    shown.shows_all_and_asks_nobody()


def test_groups_are_drawn_in_their_colours_and_told_apart(page: Open) -> None:
    shown, found = page("groups").open("groups"), record("groups")
    assert shown.find("h1").text == "The rows fall into 3 groups that survive resampling"
    for group in range(3):
        drawn = f"return document.querySelectorAll('[data-figure=groups-1] .series.tone-{group} .speck').length"
        assert shown.js(drawn) == found["map"]["group"].count(group)
    assert [node.text.split(":")[0] for node in shown.all(".card h3")[:3]] == ["Group A", "Group B", "Group C"]
    assert "“width” is" in shown.find(".card .told").text
    assert "The groups agree with “kind” to" in shown.find("#groups").text


def test_a_point_is_read_with_its_row(page: Open) -> None:
    shown = page("groups").open("groups")
    plot = shown.find("[data-figure=groups-1] svg")
    plot.send_keys("\ue014")
    shown.settle()
    assert "row " in shown.js("return document.querySelector('#spoken').textContent || document.body.textContent")


def test_no_structure_is_said_first(page: Open) -> None:
    shown = page("cloud").open()
    assert shown.find("h1").text == "No structure that survives resampling"
    assert "No row is a copy of another." in shown.find(".summary").text
    assert not shown.all("#groups .card")


def test_tree_and_pairs_hold_every_column(page: Open) -> None:
    shown = page("groups").open("columns")
    names = {node.text for node in shown.all("svg.tree text")}
    assert {"width", "weight", "colour", "left", "right", "day"} <= names
    shown.open("pairs")
    assert len(shown.all("svg.heat rect")) == 30  # six columns: fifteen pairs, twice
    assert len(shown.all("#pairs table.plain tbody tr")) >= 15


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(page: Open, dark: bool) -> None:
    for part in ("groups", "columns", "pairs", "rows", "method"):
        shown = page("groups").open(part, width=390, height=800, dark=dark)
        assert shown.shown() == [part]
        assert shown.js("return document.documentElement.scrollWidth <= innerWidth")


def test_hostile_names_are_text(page: Open) -> None:
    shown = page("hostile").open()
    assert shown.js("return document.images.length") == 0
    assert shown.driver.title != "owned"
    assert HOSTILE in shown.js("return document.querySelector('#columns').textContent")


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    for wrong in ({}, {"kind": "exploration", "format": 99}, {"format": 1}):
        with pytest.raises(ValueError, match="no record of an exploration"):
            render(wrong)


def test_labels_spelled_like_missing_and_others_keep_their_colours() -> None:
    found = record("groups")
    words = 2 * ["missing", None, "others", "(others)"] + list("abcdefgh")
    labels = [words[i % len(words)] for i in range(len(found["map"]["label"]))]
    text = render({**found, "map": {**found["map"], "label": labels}})
    shown = next(line for line in text.splitlines() if "The points by kind: " in line)
    names = shown.split("The points by kind: ")[1].split('"')[0].split(", ")
    assert {"missing", "(missing)", "others", "(others)", "((others))"} <= set(names)
    assert len(set(names)) == len(names) == 8
