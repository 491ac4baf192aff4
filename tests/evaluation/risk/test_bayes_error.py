"""The bound of Cover and Hart on problems whose noise is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.evaluation.risk.test_ledger import band

from certifit import bayes_error


@pytest.mark.parametrize("flip", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("classes", [2, 4])
def test_bayes_error_brackets_a_known_noise(flip: float, classes: int) -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(0, classes, size=(4000, 1))
    truth = X[:, 0].astype(int)
    other = (truth + rng.integers(1, classes, size=4000)) % classes
    y = np.where(rng.random(4000) < flip, other, truth)
    found = bayes_error(X, y)
    assert found.low - 1e-3 <= flip <= found.high
    assert found.value == pytest.approx(flip, abs=0.02)


def test_intervals_of_neighbors_know_that_they_share_rows() -> None:
    """Labels without any rule, one in ten positive: the nearest neighbor errs at the rate 2·0.1·0.9."""
    hits = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(size=(200, 1)), rng.random(200) < 0.1
        found = bayes_error(X, y)
        hits.append(found.low <= 0.1 and found.high >= 2 * 0.1 * 0.9)
    assert np.mean(hits) >= 0.9


def test_bayes_error_of_frames_copies_and_missing_values() -> None:
    X, y = band(500, 0.1)
    plain = bayes_error(X, y)
    assert bayes_error(X * [1.0, 1000.0] + 5, y) == plain
    assert bayes_error(pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": ["x"] * 500}), y) == plain
    assert bayes_error(pd.DataFrame(X).assign(constant=1.0), y) == plain  # columns named 0 and 1
    missing = X.copy()
    missing[:50, 0] = np.nan
    assert np.isfinite(bayes_error(missing, y).value)
    assert bayes_error(X, y, max_rows=100).n == 100
    same = np.zeros((40, 2))
    same[20:] = 1.0
    copies = bayes_error(same, np.repeat(["a", "b"], 20))
    assert copies.value == 0.0


BAD = {
    "rows": (lambda: bayes_error(np.zeros((3, 1)), [0, 1]), "X has 3, y has 2"),
    "constant": (lambda: bayes_error(np.zeros((3, 1)), [0, 1, 1]), "no numeric column that varies"),
    "one class": (lambda: bayes_error(np.arange(3.0)[:, None], [1, 1, 1]), "2 classes"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
