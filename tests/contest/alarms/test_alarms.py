"""What looks wrong is said, and what is right is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import rankdata

from certifit.contest.alarms import alarms
from certifit.contest.alarms.measures import ranks
from certifit.contest.table.table import Table
from certifit.evaluation.splits.sealed import sealed_split

N = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
BINARY = (X + RNG.normal(size=N) > 0).astype(int)
CLASSES = np.array(["a", "b", "c"])[np.digitize(X + 0.5 * RNG.normal(size=N), [-0.5, 0.5])]
NUMBER = X + RNG.normal(size=N)


def said(data: dict[str, Any], target: str = "y", **options: Any) -> list[dict[str, Any]]:
    table = Table.from_source(pl.DataFrame(data), target, **options)
    codes = None if table.time is not None else table.codes
    split = sealed_split(table.y, task=table.task.kind, codes=codes, time=table.time, seed=1)
    found = alarms(table, split)
    for warning in found:
        assert set(warning) == {"kind", "code", "column", "text"}
        assert warning["text"].endswith(".")
    return found


def kinds(found: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(w["kind"], w["column"]) for w in found]


@pytest.mark.parametrize("y", [BINARY, CLASSES, NUMBER], ids=["binary", "multiclass", "regression"])
def test_an_honest_table_raises_no_suspicion(y: Any) -> None:
    assert said({"x": X, "z": RNG.normal(size=N), "k": RNG.choice(["u", "v"], N), "y": y}) == []


LEAKS: dict[str, tuple[Any, Any]] = {
    "binary number": (BINARY, BINARY * 2.0 + 0.1 * RNG.random(N)),
    "binary reversed": (BINARY, -1.0 * BINARY + 0.1 * RNG.random(N)),
    "binary in the middle": (BINARY, np.where(BINARY == 1, RNG.random(N), np.sign(X + 1e-9) * (2 + RNG.random(N)))),
    "binary category": (BINARY, np.array(["stays", "leaves"])[BINARY]),
    "binary missing": (BINARY, [None if b else 1.0 + 0.001 * (i % 9) for i, b in enumerate(BINARY)]),
    "multiclass category": (CLASSES, np.char.add("group ", CLASSES)),
    "multiclass number": (CLASSES, np.searchsorted(["a", "b", "c"], CLASSES) + 0.3 * RNG.random(N)),
    "regression curve": (NUMBER, np.exp(NUMBER)),
    "regression number": (NUMBER, 3 * NUMBER + 0.01 * X),
}


@pytest.mark.parametrize("case", LEAKS)
def test_leaks(case: str) -> None:
    y, leak = LEAKS[case]
    found = said({"x": X, "leak": leak, "y": y})
    assert ("leakage", "leak") in kinds(found)
    assert ("leakage", "x") not in kinds(found)


def test_ranks_are_those_of_scipy() -> None:
    values = RNG.integers(0, 9, 50).astype(float)
    np.testing.assert_allclose(ranks(values), rankdata(values))


def test_a_category_with_many_levels_is_no_leak_by_memory() -> None:
    """A label of its own on every second row would fit any target on the rows it was learned from."""
    found = said({"x": X, "k": [f"k{i // 2}" for i in range(N)], "y": BINARY}, types={"k": "category"})
    assert [w["code"] for w in found] == ["pooled"]
    assert "in 100 % of the rows" in found[0]["text"]


def test_copies() -> None:
    data = {"x": X[:300], "y": BINARY[:300]}
    twice = {name: np.concatenate([v, v]) for name, v in data.items()}
    found = said(twice)
    assert kinds(found) == [("duplicates", None)]
    assert "one side" in found[0]["text"]
    assert "too narrow" in found[0]["text"]
    few = said({"x": np.concatenate([X, X[:3]]), "y": np.concatenate([BINARY, BINARY[:3]])})
    assert "3 rows" in few[0]["text"]
    assert "too narrow" not in few[0]["text"]
    table = Table.from_source(pl.DataFrame(twice), "y")
    across = alarms(table, sealed_split(table.y, task="binary"))
    assert [w["kind"] for w in across] == ["duplicates", "duplicates"]
    assert "flatters" in across[1]["text"]


def test_missing_values() -> None:
    gaps = [None if i % 2 else float(x) for i, x in enumerate(X)]
    found = said({"x": X, "z": gaps, "y": BINARY})
    assert kinds(found) == [("missing", "z")]
    assert "50 %" in found[0]["text"]
    telling = [None if b and i % 2 else float(x) for i, (x, b) in enumerate(zip(X, BINARY, strict=True))]
    found = said({"x": X, "z": telling, "y": BINARY})
    assert "tells much" in found[0]["text"]


def test_rare_classes_small_tables_and_dropped_columns() -> None:
    rare = (np.arange(N) % 50 == 0).astype(int)
    found = said({"x": X, "row": np.arange(N), "same": [1] * N, "y": rare})
    assert kinds(found) == [("imbalance", "y"), ("dropped", "row"), ("dropped", "same")]
    found = said({"x": X[:40], "y": NUMBER[:40]})
    assert kinds(found) == [("small", None)]
    wide = {f"x{j}": RNG.normal(size=60) for j in range(80)}
    assert "more columns (80)" in said({**wide, "y": NUMBER[:60]})[1]["text"]


def test_drift_in_time() -> None:
    late = np.arange(N) / N
    data = {"t": np.arange(N), "x": X, "moved": X + 3 * late, "k": np.where(late > 0.75, "new", "old"), "y": BINARY}
    assert [w["column"] for w in said(data, time_column="t")] == ["k", "moved"]
    assert said({**data, "t": RNG.permutation(N)}, time_column="t") == []
