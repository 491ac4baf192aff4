"""Thresholds and costs against counting by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certifit.evaluation.decisions.thresholds import (
    Costs,
    best_threshold,
    parse_costs,
    threshold_from_costs,
    threshold_table,
)


def data(seed: int, n: int, digits: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.3
    p = np.round(np.clip(0.3 + 0.25 * y + 0.2 * rng.normal(size=n), 0, 1), digits)
    return y, p, rng.integers(0, 3, size=n).astype(float)


@pytest.mark.parametrize("n", [5, 60, 3000])
@pytest.mark.parametrize("max_points", [3, 10, 200])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_exact(n: int, max_points: int, weighted: bool) -> None:
    y, p, weight = data(0, n)
    weight = weight if weighted else np.ones(n)
    table = threshold_table(y, p, max_points=max_points, sample_weight=weight)
    assert table.threshold.shape[0] <= max_points
    assert (np.diff(table.threshold) > 0).all()
    for k, t in enumerate(table.threshold):
        yes = p >= t
        for name, rows in (("tp", yes & y), ("fp", yes & ~y), ("tn", ~yes & ~y), ("fn", ~yes & y)):
            assert getattr(table, name)[k] == pytest.approx(weight[rows].sum()), name
    assert table.fn[0] == table.tn[0] == 0
    assert table.tp[-1] == table.fp[-1] == 0


def test_ends_when_probabilities_reach_zero_and_one() -> None:
    table = threshold_table([0, 1, 1], [0.0, 0.5, 1.0])
    assert table.threshold[0] == 0.0
    assert table.tp[0] == 2
    assert table.threshold[-1] == np.nextafter(1.0, 2.0)
    assert table.tp[-1] == 0
    assert table.as_dict()["tp"][-1] == 0.0


@given(st.integers(0, 1000), st.floats(0.05, 20), st.floats(0.05, 20))
def test_the_table_holds_the_best_decision_for_every_cost(seed: int, fp: float, fn: float) -> None:
    y, p, _ = data(seed, 150)
    everywhere = [fp * np.sum(~y & (p >= t)) + fn * np.sum(y & (p < t)) for t in [*p, 2.0]]
    least = min(everywhere) / 150
    table = threshold_table(y, p)
    assert table.cost(fp=fp, fn=fn).min() == pytest.approx(least)
    t = best_threshold(y, p, {"fp": fp, "fn": fn})
    assert (fp * np.sum(~y & (p >= t)) + fn * np.sum(y & (p < t))) / 150 == pytest.approx(least)


def test_best_threshold_counts_all_four_outcomes() -> None:
    y, p, weight = data(1, 100)
    costs = Costs(fp=3, fn=7, tp=1, tn=-1)

    def total(t: float) -> float:
        yes = p >= t
        cells = ((yes & ~y, 3), (~yes & y, 7), (yes & y, 1), (~yes & ~y, -1))
        return sum(cost * weight[rows].sum() for rows, cost in cells)

    found = best_threshold(y, p, costs, sample_weight=weight)
    assert total(found) == pytest.approx(min(total(t) for t in [*p, 2.0]))
    assert best_threshold(y, p, costs.matrix, sample_weight=weight) == found
    assert best_threshold(y, p, "fp=3,fn=7,tp=1,tn=-1", sample_weight=weight) == found
    assert best_threshold(np.repeat(y, weight.astype(int)), np.repeat(p, weight.astype(int)), costs) == found


def test_always_and_never() -> None:
    assert best_threshold([0, 1], [0.9, 0.1], "fp=100,fn=1") > 0.9
    assert best_threshold([0, 1], [0.9, 0.1], "fp=1,fn=100") <= 0.1
    assert best_threshold([0, 0], [1.0, 0.1], "fp=1,fn=1") > 1.0


def test_threshold_from_costs_minimizes_the_expected_cost() -> None:
    for fp, fn, tp, tn in [(1, 4, 0, 0), (2, 3, 1, -1), (5, 5, 0, 2)]:
        t = threshold_from_costs(fp, fn, tp, tn)
        for p in np.linspace(0.01, 0.99, 50):
            yes, no = p * tp + (1 - p) * fp, p * fn + (1 - p) * tn
            assert (yes <= no) == (p >= t) or yes == pytest.approx(no)
    assert threshold_from_costs(1, 4) == 0.2


def test_parse_costs() -> None:
    assert parse_costs("fp=1,fn=5") == Costs(1.0, 5.0)
    assert parse_costs(" FN = 2.5 ; fp=1e2, tp = -1,tn=0") == Costs(100.0, 2.5, -1.0, 0.0)
    assert Costs(1, 5).matrix.tolist() == [[0, 1], [5, 0]]
    assert Costs(1, 5).as_dict() == {"fp": 1, "fn": 5, "tp": 0.0, "tn": 0.0}


BAD = {
    "empty": (lambda: parse_costs("  "), "empty.*fp=1,fn=5"),
    "name": (lambda: parse_costs("fp=1,miss=5"), "'miss=5' is not one of fp"),
    "no equals": (lambda: parse_costs("fp 1"), "'fp 1' is not one of"),
    "number": (lambda: parse_costs("fp=1,fn=x"), "fn='x' is not a number"),
    "nan": (lambda: parse_costs("fp=1,fn=nan"), "fn must be a number"),
    "twice": (lambda: parse_costs("fp=1,fp=2,fn=1"), "fp is given twice"),
    "missing": (lambda: parse_costs("fp=1"), "fn missing in 'fp=1'"),
    "free mistake": (lambda: parse_costs("fp=0,fn=1"), "A mistake must cost more"),
    "mapping": (lambda: best_threshold([0, 1], [0.1, 0.2], {"fp": 1}), "must give fp and fn"),
    "matrix": (lambda: best_threshold([0, 1], [0.1, 0.2], [1, 2, 3]), "2×2 matrix"),
    "range": (lambda: threshold_table([0, 1], [0.1, 3.0]), "between 0 and 1"),
    "points": (lambda: threshold_table([0, 1], [0.1, 0.3], max_points=2), "max_points"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
