"""What is missing together and what is there twice, against counting by hand."""

from __future__ import annotations

import numpy as np
import polars as pl

from certifit.exploration.holes import exact_copies, missing_together, near_copies


def test_columns_missing_in_the_same_rows_are_one_group() -> None:
    frame = pl.DataFrame(
        {
            "a": [None, None, None, None, None, 1.0, 2.0, 3.0],
            "b": [None, None, None, None, "x", "y", "z", "x"],
            "c": [None, 1, 2, 3, 4, 5, 6, 7],
            "d": [1, 2, 3, 4, 5, 6, 7, 8],
        }
    )
    (found,) = missing_together(frame)
    assert found.columns == ("a", "b")
    assert (found.any, found.all) == (5, 4)
    assert missing_together(frame.select("a", "c", "d")) == []


def test_copies_exact_and_near() -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"x": rng.uniform(0, 100, size=60), "k": rng.choice(["a", "b"], size=60)})
    assert exact_copies(frame) == 0
    twins = frame[:4].with_columns(pl.col("x") + 0.01)
    whole = pl.concat([frame, frame[:2], twins])
    assert exact_copies(whole) == 2
    rows, groups = near_copies(whole)
    assert rows >= 8
    assert [0, 62] in groups or groups[0][:2] == [0, 62]
    # Rows of a group agree in the category, and in the number to 1 % of its spread.
    spread = whole["x"].quantile(0.95) - whole["x"].quantile(0.05)
    for group in groups:
        assert whole["k"][group].n_unique() == 1
        assert whole["x"][group].max() - whole["x"][group].min() <= 0.0101 * spread


def test_categories_alone_have_no_near_copies() -> None:
    assert near_copies(pl.DataFrame({"k": ["a", "b", "a"]})) == (0, [])
