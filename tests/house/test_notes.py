"""The page that maps lecture notes to names: every name it promises exists."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path

import pytest

import certifit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "notes.md"
ROW = re.compile(r"^\| (?!section)(?P<section>[^|]+) \| (?P<names>[^|]+) \|", re.MULTILINE)
SECTIONS = [(found["section"], found["names"]) for found in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def test_all_five_notes_are_there() -> None:
    assert re.findall(r"^## (\d{3}):", PAGE.read_text(encoding="utf-8"), re.MULTILINE) == [
        "000",
        "001",
        "002",
        "003",
        "004",
    ]
    assert len(SECTIONS) > 90


@pytest.mark.parametrize(("section", "names"), SECTIONS)
def test_names_of_a_section_exist(section: str, names: str) -> None:
    found = re.findall(r"`([^`]+)`", names)
    assert found, f"{section} names nothing"
    for name in found:
        first, *rest = name.split(".")
        assert first in certifit.__all__, f"{section}: certifit has no public name {first!r}"
        reduce(getattr, rest, getattr(certifit, first))
