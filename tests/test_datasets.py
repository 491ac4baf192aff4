"""The bundled tables are there, small, and what they say they are."""

from __future__ import annotations

import polars as pl
import pytest

from certifit import datasets
from certifit.datasets import DATASETS, load

SHAPES = {"default": (10_000, 4), "penguins": (344, 8), "wage": (3_000, 10)}


@pytest.mark.parametrize("name", DATASETS)
def test_tables(name: str) -> None:
    data = load(name)
    assert data.name == name
    assert isinstance(data.frame, pl.DataFrame)
    assert data.frame.shape == SHAPES[name]
    assert data.target in data.frame.columns
    assert data.frame[data.target].null_count() == 0
    assert data.description.endswith(".")
    assert data.license.split(";")[0] in ("BSD-3-Clause", "CC0")
    assert datasets.path(name).is_file()
    assert DATASETS[name]().frame.equals(data.frame)


def test_values() -> None:
    assert (load("default").frame["default"] == "Yes").sum() == 333
    assert load("default").frame["balance"].mean() == pytest.approx(835.3749, abs=1e-4)
    counts = dict(load("penguins").frame["species"].value_counts().iter_rows())
    assert counts == {"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}
    assert load("penguins").frame["sex"].null_count() == 11
    assert load("wage").frame["wage"].mean() == pytest.approx(111.7036, abs=1e-4)
    assert "logwage" not in load("wage").frame.columns


def test_they_are_small() -> None:
    assert sum(datasets.path(name).stat().st_size for name in DATASETS) < 300_000


def test_an_unknown_name_lists_the_known_ones() -> None:
    for function in (datasets.path, load):
        with pytest.raises(ValueError, match=r"default, penguins, wage; got 'iris'"):
            function("iris")
