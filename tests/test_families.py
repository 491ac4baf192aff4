"""One line enrols a family: what the line promises is there."""

from __future__ import annotations

from pathlib import Path

import pytest

import certifit.contest
from certifit.contest.entrants import ENTRANTS, Entrant
from certifit.families import FAMILIES, Family, family

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("one", FAMILIES, ids=lambda one: one.name)
def test_a_family_has_what_its_line_says(one: Family) -> None:
    assert (ROOT / "src/certifit/contest/entrants" / f"{one.name}.py").is_file() == one.entrants
    assert (ROOT / "src/certifit/onnx" / f"{one.name}.py").is_file() == one.exporter
    if one.page is not None:
        assert (ROOT / "docs/methods" / one.page).read_text(encoding="utf-8").startswith("# ")
    if one.entrants:
        assert all(isinstance(entrant, Entrant) for entrant in one.entrant_module().ENTRANTS)
    if one.exporter:
        assert all(callable(function) for function in one.exporter_module().EXPORTERS.values())


def test_every_entrant_comes_from_a_family_and_names_are_taken_once() -> None:
    enrolled = [e.name for one in FAMILIES if one.entrants for e in one.entrant_module().ENTRANTS]
    assert len(enrolled) == len(set(enrolled))
    assert list(ENTRANTS) == enrolled
    assert {e.family for e in ENTRANTS.values()} == {one.name for one in FAMILIES if one.entrants}
    assert certifit.contest.ENTRANTS is ENTRANTS


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(ValueError, match="no family 'forests'; choose among baseline"):
        family("forests")
    with pytest.raises(AttributeError, match="ENTRANT"):
        certifit.contest.ENTRANT  # noqa: B018
