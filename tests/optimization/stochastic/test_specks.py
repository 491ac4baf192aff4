"""Exact zeros after stochastic steps: never a higher objective, and only where the penalty wants them."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import SGDClassifier, SGDRegressor
from certifit.evaluation.losses import Squared
from certifit.evaluation.penalties import resolve_penalty
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.stochastic.specks import without_specks


def _problem(penalty: str, alpha: float, l1_ratio: float | None = None) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = X[:, 0] - 2.0 * X[:, 1] + 0.1 * rng.normal(size=200)
    options = {} if l1_ratio is None else {"l1_ratio": l1_ratio}
    regularizer = Regularizer.of(resolve_penalty(penalty, **options), alpha, None, 6)
    return Problem(X, y, np.full(200, 1 / 200), Squared(), regularizer, True)


def test_the_least_are_taken_out_and_the_objective_falls() -> None:
    problem = _problem("l1", 0.2)
    w = np.array([0.75, -1.8, 1e-3, -2e-3, 0.0, 1e-4])
    before = problem.objective(w, 0.0)
    sparse, after = without_specks(problem, w, 0.0, before)
    assert (sparse[2:] == 0.0).all()
    assert (sparse[:2] != 0.0).all()
    assert after == problem.objective(sparse, 0.0) < before


@pytest.mark.parametrize(("penalty", "l1_ratio"), [("l2", None), ("none", None), ("elasticnet", 1e-10)])
def test_other_penalties_leave_the_point_as_it_is(penalty: str, l1_ratio: float | None) -> None:
    problem = _problem(penalty, 0.2, l1_ratio)
    w = np.array([0.75, -1.8, 1e-3, -2e-3, 0.0, 1e-4])
    assert without_specks(problem, w, 0.0, 1.0)[0] is w


def test_sparse_models_of_stochastic_steps() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 12))
    y = X[:, 0] + 0.1 * rng.normal(size=300)
    numbers = SGDRegressor(penalty="l1", alpha=0.1, random_state=0).fit(X, y)
    assert np.flatnonzero(numbers.coef_).tolist() == [0]
    classes = SGDClassifier("hinge", penalty="l1", alpha=0.1, random_state=0).fit(X, y > 0)
    assert np.flatnonzero(classes.coef_).tolist() == [0]
