"""Newton's method in one native call: against an independent solver, at its edges, and at its boundary."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.optimization.newton.problems import SPARSE, check_bounds_far_from_the_optimum, check_optimum, drawn
from tests.oracles.convex import optimum
from tests.peak import bytes_a_row, needs_proc

from certifit._native import newton as native
from certifit.evaluation.losses import Loss, Poisson
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import L1, L2, NonNegative, NoPenalty, Penalty
from certifit.optimization.newton import proximal
from certifit.optimization.newton.few_columns import FEW_KERNELS, in_one_call
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress
from certifit.representation.design.design import Partitioned

PENALTIES: dict[str, Penalty] = {"l2": L2(), **SPARSE}
LOSSES: dict[str, Loss] = {kernel: loss() for loss, kernel in FEW_KERNELS.items()}


def problem(loss: Loss, penalty: Penalty, alpha: float = 0.03, *, intercept: bool = True, d: int = 7) -> Problem:
    """Correlated columns of unequal size."""
    rng, n = np.random.default_rng(0), 90
    X = (rng.standard_normal((n, d)) + rng.standard_normal((n, 1))) * np.logspace(-1, 1, d) + 0.5
    f = (X - 0.5) @ (rng.standard_normal(d) / np.logspace(-1, 1, d)) * 0.5
    return drawn(X, f, rng, loss, penalty, alpha, intercept)


def solved(of: Problem, tol: float = 1e-9, start: Any = None) -> Solution | None:
    return in_one_call(of, of.start() if start is None else start, tol * of.scale, 100, "newton")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum(loss: str, penalty: str, intercept: bool) -> None:
    of = problem(LOSSES[loss], PENALTIES[penalty], intercept=intercept)
    found = check_optimum(of, solved(of), PENALTIES[penalty], 0.03)
    zero = np.abs(of.at(found.coef, found.intercept).slope.columns) < 0.9 * 0.03 * (penalty == "l1")
    assert (found.coef[zero] == 0.0).all()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_far_from_the_optimum(loss: str, penalty: str) -> None:
    of = problem(LOSSES[loss], PENALTIES[penalty], 0.003)
    check_bounds_far_from_the_optimum(lambda tol: solved(of, tol), 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_in_any_place_layout_and_precision(loss: str) -> None:
    of = problem(LOSSES[loss], L1())
    single = of.X.astype(np.float32)
    whole = Problem(single.astype(np.float64), of.y, of.p, of.loss, of.regularizer, True)
    wanted = solved(whole)
    assert wanted is not None
    wide = np.zeros((90, 14), dtype=np.float32)
    wide[:, ::2] = single
    cut = [slice(0, 30), slice(30, 31), slice(31, 90)]
    parts = Partitioned([whole.X[rows] for rows in cut])
    y, p = [of.y[rows] for rows in cut], [of.p[rows] for rows in cut]
    others = [
        Problem(X, of.y, of.p, of.loss, of.regularizer, True) for X in (single, np.asfortranarray(single), wide[:, ::2])
    ]
    for other in (*others, Problem(parts, y, p, of.loss, of.regularizer, True)):
        found = solved(other)
        assert found is not None
        np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_columns_of_zeros_stay_out(intercept: bool) -> None:
    of = problem(HardLogistic(), L1(), intercept=intercept)
    X = of.X.copy()
    X[:, [0, 3]] = 0.0
    of = Problem(X, of.y, of.p, of.loss, of.regularizer, intercept)
    value, *_ = optimum(X, of.y, of.p, of.loss, L1(), 0.03, fit_intercept=intercept)
    for start in (of.start(), (np.ones(7), 0.0)):
        found = solved(of, start=start)
        assert found is not None
        assert (found.coef[[0, 3]] == 0.0).all()
        assert abs(found.objective - value) <= 1e-7 * of.scale


def test_a_start_near_the_end() -> None:
    of = problem(HardLogistic(), L2())
    cold = solved(of)
    assert cold is not None
    warm = solved(of, start=(cold.coef, cold.intercept))
    assert warm is not None
    assert warm.iterations == 1 < cold.iterations


def test_what_is_left_to_the_general_method() -> None:
    of = problem(HardLogistic(), L2())
    assert in_one_call(of, of.start(), 1e-9 * of.scale, 1, "newton") is None  # too few steps
    assert solved(problem(HardLogistic(), NoPenalty(), 0.0)) is None
    held = Regularizer.of(L2(), 0.1, NonNegative(), 7)
    assert solved(Problem(of.X, of.y, of.p, of.loss, held, True)) is None
    assert solved(problem(HardLogistic(), L2(np.array([0.0, *[1.0] * 6])))) is None  # a column without a penalty


def test_the_boundary_refuses() -> None:
    of = problem(HardLogistic(), L2())
    options, l1, l2, w = native.Options(True, 1e-9, 1.0, 100, 1), np.zeros(7), np.ones(7), np.zeros(7)
    with pytest.raises(ValueError, match="loss must be"):
        native.minimize("squared", of.X, of.y, of.p, l1, l2, w, 0.0, options)
    with pytest.raises(ValueError, match="y has length 3, wanted 90"):
        native.minimize("logistic", of.X, np.ones(3), of.p, l1, l2, w, 0.0, options)
    with pytest.raises(ValueError, match="every column needs a penalty"):
        native.minimize("logistic", of.X, of.y, of.p, l1, l1, w, 0.0, options)
    with pytest.raises(ValueError, match="tolerance"):
        native.Options(True, float("nan"), 1.0, 100, 1)
    with pytest.raises(TypeError):
        native.minimize("logistic", of.X[::2], of.y[::2].copy(), of.p[::2].copy(), l1, l2, w, 0.0, options)


@pytest.mark.parametrize("rest", [1e-10, 1e-20, 1e-30])
def test_a_bound_is_not_above_the_value(rest: float) -> None:
    """Where nearly all weight is on one row, conjugates cancel to less than their rounding, which may be to either side."""
    of = problem(Poisson(), L2(), 1e-3)
    p = np.array([1.0, *[rest] * 89])
    found = solved(Problem(of.X, of.y + 1.0, p / p.sum(), of.loss, of.regularizer, True), 1e-6)
    assert found is not None
    assert found.bound <= found.objective


def test_tall_rows_with_an_l1_penalty_are_one_call_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 6)) + rng.standard_normal((60_000, 1))
    of = drawn(X, X @ rng.standard_normal(6), rng, HardLogistic(), L1(), 0.01, True)
    found, tol = solved(of, 1e-9), 1e-9 * of.scale
    assert found is not None
    assert found.objective - found.bound <= tol
    squares = replace(of, regularizer=Regularizer.of(L2(), 0.01, None, 6))
    assert solved(squares) is None  # there a start on part of the rows is better
    monkeypatch.setattr(proximal, "in_one_call", lambda *_: None)
    general = proximal.prox_newton(of, of.start(), tol, 100, Progress())
    assert found.bound - tol <= general.bound <= found.objective
    np.testing.assert_allclose(general.coef, found.coef, atol=1e-4)


@needs_proc
def test_tall_rows_with_an_l1_penalty_take_little_memory() -> None:
    """Seven vectors as long as y, labels included; fourteen by the general way."""
    model, rows = "LogisticRegression(penalty='l1', alpha=0.003)", "X = X[:, :3].astype(float)"
    assert bytes_a_row(model, rows) < 95
