"""Newton's method on many dense columns in one native call: the optimum, and bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.oracles.convex import optimum

from certifit.evaluation.losses import Loss, Poisson
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import L1, L2, ElasticNet, NonNegative, Penalty
from certifit.optimization.newton.few_columns import KERNELS, on_dense_columns
from certifit.optimization.newton.proximal import prox_newton
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress

PENALTIES: dict[str, Penalty] = {"l1": L1(), "elasticnet": ElasticNet(0.4)}
LOSSES: dict[str, Loss] = {kernel: loss() for loss, kernel in KERNELS.items()}


def problem(
    loss: Loss, penalty: Penalty, alpha: float = 0.02, *, intercept: bool = True, n: int = 90, d: int = 200
) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) + 0.5
    f = X[:, :6] @ np.array([0.5, -0.4, 0.3, 0.3, -0.2, 0.1]) - 0.3
    y = rng.poisson(np.exp(f)) if isinstance(loss, Poisson) else rng.random(n) < 1 / (1 + np.exp(-f))
    weight = rng.integers(0, 4, n).astype(float)
    return Problem(X, y.astype(float), weight / weight.sum(), loss, Regularizer.of(penalty, alpha, None, d), intercept)


def solved(of: Problem, tol: float = 1e-9, max_iter: int = 100) -> Solution | None:
    return on_dense_columns(of, of.start(), tol * of.scale, max_iter, "prox_newton")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum(loss: str, penalty: str, intercept: bool) -> None:
    of = problem(LOSSES[loss], PENALTIES[penalty], intercept=intercept)
    value, *_ = optimum(of.X, of.y, of.p, of.loss, PENALTIES[penalty], 0.02, fit_intercept=intercept)
    found = solved(of)
    assert found is not None
    assert abs(found.objective - value) <= 1e-7 * of.scale
    assert found.bound <= value + 1e-8 * of.scale
    assert found.objective == pytest.approx(of.objective(found.coef, found.intercept), rel=1e-13)
    assert found.objective - found.bound <= 1e-9 * of.scale


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("loss", "alpha"), [("logistic", 0.02), ("logistic", 3e-4), ("poisson", 0.02)])
def test_bounds_hold_far_from_the_optimum(loss: str, penalty: str, alpha: float) -> None:
    """Whatever tolerance ends the steps, the bound is below the optimum and the value above it."""
    of = problem(LOSSES[loss], PENALTIES[penalty], alpha)
    best = solved(of, 1e-10)
    assert best is not None
    for tol in (0.3, 0.03, 1e-3, 1e-5):
        found = solved(of, tol)
        assert found is not None
        assert found.bound <= best.objective + 1e-14
        assert best.bound <= found.objective + 1e-14


def test_order_and_general_method() -> None:
    of = problem(HardLogistic(), L1())
    by_column = Problem(np.asfortranarray(of.X), of.y, of.p, of.loss, of.regularizer, True)
    found, turned = solved(of), solved(by_column)
    assert found is not None
    assert turned is not None
    np.testing.assert_allclose(turned.coef, found.coef, atol=1e-6)
    general = prox_newton(of, of.start(), 1e-9 * of.scale, 100, Progress())
    assert np.array_equal(general.coef, found.coef)


def test_what_is_left_to_the_general_method() -> None:
    of = problem(HardLogistic(), L1())
    assert solved(of, max_iter=1) is None  # too few steps
    assert solved(problem(HardLogistic(), L2())) is None
    held = Regularizer.of(L1(), 0.1, NonNegative(), 200)
    assert solved(Problem(of.X, of.y, of.p, of.loss, held, True)) is None
    assert solved(Problem(of.X.astype(np.float32), of.y, of.p, of.loss, of.regularizer, True)) is None
    assert solved(problem(HardLogistic(), L1(), d=60)) is None
