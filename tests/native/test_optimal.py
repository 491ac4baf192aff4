"""The search for the best tree: few rows whose best tree is plain, and what is refused at the boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certifit._native import optimal

RNG = np.random.default_rng(0)
RANKS = np.asfortranarray(np.argsort(RNG.uniform(size=(60, 3)), axis=0).argsort(axis=0).astype(np.uint32))
LABEL = ((RANKS[:, 0] > 29) ^ (RANKS[:, 1] > 29)).astype(np.uint32)


def limits(**changes: Any) -> Any:
    return optimal.Limits(**{"depth": 2, "price": 0.0, "slack": 0.0, "seconds": 1e9, "threads": 1, **changes})


def by_threads(threads: int) -> list[Any]:
    noisy = LABEL.copy()
    noisy[::7] = 1 - noisy[::7]
    moments = np.stack([np.ones(60), noisy * 1.0, noisy * 1.0, np.ones(60)], axis=1)
    three = optimal.classes(RANKS, noisy, 2, np.ones(60), limits(depth=3, threads=threads))
    numbers = optimal.numbers(RANKS, moments, limits(depth=3, threads=threads))
    return [np.asarray(part) for part in (*three, *numbers)]


def test_two_questions_part_what_one_cannot() -> None:
    feature, cut, value, lower, trees = optimal.classes(RANKS, LABEL, 2, np.ones(60), limits())
    assert (value, lower, trees) == (0.0, 0.0, 1)
    assert {*feature[:3].tolist()} == {0, 1}
    assert cut[0] == 29
    leaf = optimal.classes(RANKS, LABEL, 2, np.ones(60), limits(depth=0))
    assert leaf[2] == min(LABEL.sum(), 60 - LABEL.sum())
    assert (leaf[0] == -1).all()


def test_a_price_above_all_gains_leaves_one_leaf() -> None:
    feature, _, value, lower, _ = optimal.classes(RANKS, LABEL, 2, np.ones(60), limits(depth=3, price=100.0))
    assert (feature == -1).all()
    assert value == lower == 100.0 + min(LABEL.sum(), 60 - LABEL.sum())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": np.zeros((0, 2), dtype=np.uint32, order="F")}, "codes must have rows"),
        ({"codes": np.asfortranarray(RANKS + 60)}, "ranks below the number of rows"),
        ({"label": LABEL[:5]}, "label has length 5, wanted 60"),
        ({"label": LABEL + 2}, "a label is out of range"),
        ({"weight": np.full(60, 0.5)}, "whole numbers"),
        ({"weight": np.full(60, 2.0**50)}, "exact sum"),
        ({"count": 0}, "classes must lie in"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"codes": RANKS, "label": LABEL, "count": 2, "weight": np.ones(60), "limits": limits()}
    with pytest.raises(ValueError, match=message):
        optimal.classes(**{**given, **change})


def test_limits_and_moments_are_checked() -> None:
    for wrong in ({"depth": 5}, {"depth": -1}, {"price": np.nan}, {"slack": -1.0}, {"seconds": -1.0}, {"threads": 0}):
        with pytest.raises(ValueError, match=r"must"):
            limits(**wrong)
    with pytest.raises(ValueError, match="weight, sum, square and reach"):
        optimal.numbers(RANKS, np.ones((60, 3)), limits())
    with pytest.raises(ValueError, match="finite"):
        optimal.numbers(RANKS, np.full((60, 4), np.nan), limits())
