"""Prox-Newton's first steps with the curvature of some rows: fewer Hessians of all, the same optimum, bounds that hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.optimization.newton.problems import drawn

from certifit._types import Array
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import L1
from certifit.optimization.newton import proximal
from certifit.optimization.newton.proximal import prox_newton
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Problem, Solution
from certifit.progress import Progress

N, D = 9_000, 130
TOL = 1e-6


def problem(correlation: float = 0.0, alpha: float = 1e-3) -> Problem:
    rng = np.random.default_rng(3)
    X = np.sqrt(1.0 - correlation) * rng.standard_normal((N, D)) + np.sqrt(correlation) * rng.standard_normal((N, 1))
    return drawn(X, X[:, :30] @ rng.standard_normal(30), rng, HardLogistic(), L1(), alpha, True, least=0)


def solved(of: Problem, tol: float = TOL) -> Solution:
    return prox_newton(of, of.start(), tol * of.scale, 100, Progress())


def hessians(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each Hessian from now on, whether it is of all rows."""
    seen: list[bool] = []
    of_all, of_some = State.hessian, proximal._Model._of_some_rows

    def all_rows(self: State, *args: Any, **options: Any) -> Array:
        seen.append(True)
        return of_all(self, *args, **options)

    def some_rows(self: proximal._Model, state: State, chosen: Array) -> Array | None:
        found = of_some(self, state, chosen)
        seen.extend([False] * (found is not None))
        return found

    monkeypatch.setattr(State, "hessian", all_rows)
    monkeypatch.setattr(proximal._Model, "_of_some_rows", some_rows)
    return seen


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_two_hessians_of_all_rows_less(correlation: float, monkeypatch: pytest.MonkeyPatch) -> None:
    of, seen = problem(correlation), hessians(monkeypatch)
    found = solved(of)
    few = seen.count(True)
    assert not any(seen[: len(seen) - few])  # the part comes first
    assert len(seen) - few in (1, 2)
    exact = solved(of, 1e-12)
    seen.clear()
    monkeypatch.setattr(proximal._Model, "_of_some_rows", lambda *_: None)
    monkeypatch.setattr(proximal, "_coming", lambda *_: np.inf)
    by_all = solved(of)
    assert few <= seen.count(True) - 2
    assert abs(found.objective - by_all.objective) <= TOL * of.scale
    assert found.objective - exact.objective <= TOL * of.scale
    assert found.objective - found.bound <= TOL * of.scale
    assert found.bound <= exact.objective * (1 + 1e-14)
    np.testing.assert_allclose(found.coef, by_all.coef, atol=1e-2 * np.abs(by_all.coef).max())


def test_the_hessian_of_some_rows_is_about_that_of_all() -> None:
    of = problem(0.5)
    state = of.at(np.zeros(D), of.constant)
    for chosen in (np.arange(D), np.arange(10, 110)):
        part = proximal._Model(of)._of_some_rows(state, chosen)
        designs = [block.design.columns(chosen) for block in of.blocks]
        whole = np.linalg.cholesky(state.hessian(designs=designs))
        assert part is not None
        relative = np.linalg.solve(whole, np.linalg.solve(whole, part).T)
        np.testing.assert_allclose(relative, np.eye(chosen.size + 1), atol=0.2)


def test_a_start_near_the_optimum_needs_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    of = problem()
    at = solved(of)
    seen = hessians(monkeypatch)
    prox_newton(of, (at.coef, at.intercept), 1e-9 * of.scale, 100, Progress())
    assert seen
    assert all(seen)


def test_few_rows_of_great_weight_are_not_left_to_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    of = problem()
    p = np.random.default_rng(5).pareto(0.5, N)
    weighted = Problem(of.X, of.y, p / p.sum(), of.loss, of.regularizer, True)
    seen = hessians(monkeypatch)
    found = solved(weighted)
    assert seen
    assert all(seen)
    assert found.objective - found.bound <= TOL * weighted.scale


def test_what_promises_say_of_the_next() -> None:
    assert proximal._coming(1e-2, 1e-1) == pytest.approx(1e-4)
    assert proximal._coming(1e-2, np.inf) == np.inf  # one promise says nothing
    assert proximal._coming(1e-1, 1e-2) == np.inf  # nor do such that rise


def test_promises_of_nothing_promise_nothing_more() -> None:
    """At an optimum rounding leaves a promise of zero, or of less."""
    assert proximal._coming(1e-4, 1e-2) == pytest.approx(1e-8)
    assert [proximal._coming(last, 0.0) for last in (0.0, -1e-20, 1e-20)] == [np.inf] * 3
    assert proximal._coming(-2e-20, -1e-20) == np.inf
