"""Newton's method on many dense columns in one native call: the optimum, and bounds that hold."""

from __future__ import annotations

import numpy as np
import pytest
from tests.optimization.newton.problems import LOSSES, SPARSE, check_bounds_far_from_the_optimum, check_optimum, drawn

from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import L1, L2, NonNegative, Penalty
from certifit.optimization.newton.few_columns import on_dense_columns
from certifit.optimization.newton.proximal import prox_newton
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress


def problem(
    loss: Loss, penalty: Penalty, alpha: float = 0.02, *, intercept: bool = True, n: int = 90, d: int = 200
) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) + 0.5
    f = X[:, :6] @ np.array([0.5, -0.4, 0.3, 0.3, -0.2, 0.1]) - 0.3
    return drawn(X, f, rng, loss, penalty, alpha, intercept, least=0)


def solved(of: Problem, tol: float = 1e-9, max_iter: int = 100) -> Solution | None:
    return on_dense_columns(of, of.start(), tol * of.scale, max_iter, "prox_newton")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", SPARSE)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum(loss: str, penalty: str, intercept: bool) -> None:
    of = problem(LOSSES[loss], SPARSE[penalty], intercept=intercept)
    check_optimum(of, solved(of), SPARSE[penalty], 0.02)


@pytest.mark.parametrize("penalty", SPARSE)
@pytest.mark.parametrize(("loss", "alpha"), [("logistic", 0.02), ("logistic", 3e-4), ("poisson", 0.02)])
def test_bounds_hold_far_from_the_optimum(loss: str, penalty: str, alpha: float) -> None:
    of = problem(LOSSES[loss], SPARSE[penalty], alpha)
    check_bounds_far_from_the_optimum(lambda tol: solved(of, tol), 1e-10)


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
