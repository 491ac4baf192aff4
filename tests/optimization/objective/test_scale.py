"""The unit of relative gaps, the risk of the best constant, where the targets are far from zero."""

from __future__ import annotations

import numpy as np
import pytest

import certifit as cf
from certifit.evaluation.losses import LOSSES, Poisson
from certifit.evaluation.penalties import L2
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer

SHIFTED = ["squared", "absolute", "huber", "quantile", "epsilon_insensitive"]


def problem(loss: str, y: np.ndarray) -> Problem:
    n = y.shape[0]
    return Problem(np.ones((n, 1)), y, np.full(n, 1 / n), LOSSES[loss](), Regularizer.of(L2(), 1.0, None, 1), True)


@pytest.mark.parametrize("shift", [-1e3, -1e6, 1e6])
@pytest.mark.parametrize("loss", SHIFTED)
def test_the_scale_moves_with_no_shift_of_the_targets(loss: str, shift: float) -> None:
    y = np.random.default_rng(0).normal(size=50)
    wanted, found = problem(loss, y), problem(loss, y + shift)
    assert found.constant == pytest.approx(wanted.constant + shift, rel=1e-9)
    assert found.scale == pytest.approx(wanted.scale, rel=1e-6)


@pytest.mark.parametrize("loss", SHIFTED)
def test_targets_far_below_zero_are_fitted_like_their_mirror_image(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60) - 1e5
    below, above = (cf.LinearModel(loss, penalty="l1", alpha=0.1, tol=1e-8).fit(X, target) for target in (y, -y))
    np.testing.assert_allclose(below.coef_, -above.coef_, atol=1e-4)
    assert below.coef_.any()
    assert below.certificate_.objective == pytest.approx(above.certificate_.objective, rel=1e-7)


@pytest.mark.parametrize("level", [-1e6, -900.0, -3e200, 1e6])
def test_a_constant_target_is_its_own_intercept(level: float) -> None:
    model = cf.Ridge().fit(np.random.default_rng(0).normal(size=(9, 2)), np.full(9, level))
    assert model.intercept_ == pytest.approx(level, rel=1e-12)
    assert not model.coef_.any()


def test_counts_that_are_all_zero_have_a_finite_score() -> None:
    assert Poisson().optimal_constant(np.zeros(3), np.ones(3)) == -np.inf
    assert problem("poisson", np.zeros(3)).constant == -800.0
