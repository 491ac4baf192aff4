"""A certificate claims only what its numbers prove."""

from __future__ import annotations

import math

import pytest

from certifit import Certificate

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("objective", "bound", "scale", "tol"),
    [
        (NAN, 0.0, 1.0, 1e-6),
        (NAN, NAN, 1.0, 1e-6),
        (1.0, NAN, 1.0, 1e-6),
        (1.0, 1.0 - 1e-9, NAN, 1e-6),
        (1.0, 1.0 - 1e-9, 1.0, NAN),
        (INF, INF, 1.0, 1e-6),
        (INF, 0.0, 1.0, INF),
        (INF, 0.0, INF, 1e-6),
        (-INF, 0.0, 1.0, 1e-6),
        (1.0, -INF, 1.0, 1e-6),
        (1.0, INF, 1.0, 1e-6),
        (1.0, 0.5, 0.0, 1e-6),
        (1.0, 1.1, 1.0, 1e-6),
    ],
)
def test_numbers_that_prove_nothing(objective: float, bound: float, scale: float, tol: float) -> None:
    said = Certificate("x", objective=objective, bound=bound, scale=scale, tol=tol)
    assert not said.certified
    assert not said
    assert not str(said).startswith("Certified")


@pytest.mark.parametrize("bound", [1.0, 1.0 - 1e-7, 1.0 + 1e-7])
def test_numbers_that_do(bound: float) -> None:
    said = Certificate("x", objective=1.0, bound=bound, scale=1.0, tol=1e-6)
    assert said
    assert said.gap >= 0.0
    assert said.bound <= said.objective
    assert str(said).startswith("Certified")


def test_worst_and_total_of_one_without_a_number() -> None:
    fine = Certificate("x", objective=1.0, bound=1.0, scale=1.0, tol=1e-6)
    broken = Certificate("x", objective=NAN, bound=0.0, scale=1.0, tol=1e-6)
    for several in ([fine, broken], [broken, fine]):
        assert not Certificate.worst(several)
        assert not Certificate.total(several)
