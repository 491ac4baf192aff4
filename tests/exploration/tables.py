"""Tables whose structure is known, and what exploration says of them, found once."""

from __future__ import annotations

import functools
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from certifit.contest.plain import plain
from certifit.exploration.exploration import explore

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">"


def groups(n: int = 240) -> pl.DataFrame:
    """Three groups that differ in several columns; two columns missing together; a copy; a row far out."""
    rng = np.random.default_rng(0)
    which = np.repeat([0, 1, 2], n // 3)
    width = np.array([10.0, 20.0, 30.0])[which] + rng.normal(size=n)
    weight = np.array([5.0, 1.0, 9.0])[which] + 0.3 * rng.normal(size=n)
    colour = np.array(["red", "green", "blue"])[np.where(rng.random(n) < 0.9, which, rng.integers(0, 3, n))]
    first, second = rng.normal(size=n), rng.normal(size=n)
    gone = rng.random(n) < 0.2
    width[7] = 500.0
    frame = pl.DataFrame(
        {
            "width": width,
            "weight": weight,
            "colour": colour,
            "left": np.where(gone, np.nan, first),
            "right": np.where(gone, np.nan, second),
            "day": [date(2020, 1, 1) + timedelta(days=int(k)) for k in rng.integers(0, 900, n)],
            "kind": np.array(["a", "b", "c"])[which],
        }
    ).fill_nan(None)
    return pl.concat([frame, frame[:3]])


def cloud() -> pl.DataFrame:
    """Numbers of one normal distribution, with correlation and without groups."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3)) @ np.array([[3.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return pl.DataFrame({name: X[:, j] for j, name in enumerate(("x", "y", "z"))})


def shares() -> pl.DataFrame:
    """Columns that know nothing of each other, of two values each."""
    rng = np.random.default_rng(2)
    return pl.DataFrame({name: rng.choice(["yes", "no"], size=160) for name in ("p", "q")})


def hostile() -> pl.DataFrame:
    """Names and labels that would like to be code."""
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {HOSTILE: rng.choice([HOSTILE, "b"], size=60), "x": rng.normal(size=60), "y": rng.normal(size=60)}
    )


TABLES = {"groups": (groups, "kind"), "cloud": (cloud, None), "shares": (shares, None), "hostile": (hostile, HOSTILE)}


@functools.cache
def record(name: str) -> dict[str, Any]:
    """What exploration says of one of these, as plain data."""
    make, label = TABLES[name]
    found: dict[str, Any] = plain(explore(make(), label=label), str)
    return found
