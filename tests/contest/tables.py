"""Small tables with a known truth."""

from __future__ import annotations

import numpy as np
import polars as pl


def loans(n: int = 400, seed: int = 0) -> pl.DataFrame:
    """Two classes: the chance of a default falls with income and is higher for students; a tenth of the incomes is missing."""
    rng = np.random.default_rng(seed)
    income = np.exp(rng.normal(10.0, 0.5, n))
    student = rng.random(n) < 0.4
    region = rng.choice(["north", "south", "east"], n)
    score = 1.5 * student - 2.0 * (np.log(income) - 10.0) - 0.5
    default = rng.random(n) < 1 / (1 + np.exp(-2.0 * score))
    shown = np.where(rng.random(n) < 0.1, np.nan, income)
    return pl.DataFrame(
        {
            "income": shown,
            "student": np.where(student, "yes", "no"),
            "region": region,
            "noise": rng.normal(size=n),
            "default": np.where(default, "yes", "no"),
        }
    ).with_columns(pl.col("income").fill_nan(None))


def prices(n: int = 300, seed: int = 0) -> pl.DataFrame:
    """A number: linear in size with an effect of the town, and noise of standard deviation 5."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(20, 200, n)
    town = rng.choice(["A", "B", "C"], n)
    effect = np.select([town == "A", town == "B"], [30.0, 0.0], -20.0)
    return pl.DataFrame({"size": size, "town": town, "price": 2.0 * size + effect + rng.normal(0, 5, n)})


def kinds_of_flower(n: int = 240, seed: int = 0) -> pl.DataFrame:
    """Three classes around three points."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 3, n)
    centre = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[label]
    x = centre + rng.normal(size=(n, 2))
    return pl.DataFrame({"length": x[:, 0], "width": x[:, 1], "kind": np.array(["a", "b", "c"])[label]})
