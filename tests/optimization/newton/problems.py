"""Problems that Newton's method solves in one native call, and what every such solution has to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.oracles.convex import optimum

from certifit.evaluation.losses import Loss, Poisson
from certifit.evaluation.penalties import L1, ElasticNet, Penalty
from certifit.optimization.newton.few_columns import KERNELS
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer

SPARSE: dict[str, Penalty] = {"l1": L1(), "elasticnet": ElasticNet(0.4)}
"""Penalties that leave few columns in use."""
LOSSES: dict[str, Loss] = {kernel: loss() for loss, kernel in KERNELS.items()}


def drawn(
    X: Any,
    f: Any,
    rng: np.random.Generator,
    loss: Loss,
    penalty: Penalty,
    alpha: float,
    intercept: bool,
    least: int = 1,
) -> Problem:
    """Targets as the scores f say, counts or two classes; weights from `least` to 3."""
    y = rng.poisson(np.exp(f)) if isinstance(loss, Poisson) else rng.random(f.shape[0]) < 1 / (1 + np.exp(-f))
    weight = rng.integers(least, 4, f.shape[0]).astype(float)
    regularizer = Regularizer.of(penalty, alpha, None, X.shape[1])
    return Problem(X, y.astype(float), weight / weight.sum(), loss, regularizer, intercept)


def check_optimum(
    of: Problem,
    found: Solution | None,
    penalty: Penalty,
    alpha: float,
    *,
    apart: float = 1e-7,
    above: float = 1e-8,
    gap: float = 1e-9,
) -> Solution:
    """Against an independent solver: how far the value is apart, the bound above its optimum; and the value is the objective."""
    X = of.X if isinstance(of.X, np.ndarray) else of.X.toarray()
    value, *_ = optimum(X, of.y, of.p, of.loss, penalty, alpha, fit_intercept=of.fit_intercept)
    assert found is not None
    assert abs(found.objective - value) <= apart * of.scale
    assert found.bound <= value + above * of.scale
    assert found.objective == pytest.approx(of.objective(found.coef, found.intercept), rel=1e-13)
    assert found.objective - found.bound <= gap * of.scale
    return found


def check_bounds_far_from_the_optimum(solved: Callable[[float], Solution | None], nearest: float) -> None:
    """Whatever tolerance ends the steps, the bound is below the optimum and the value above it."""
    best = solved(nearest)
    assert best is not None
    for tol in (0.3, 0.03, 1e-3, 1e-5):
        found = solved(tol)
        assert found is not None
        assert found.bound <= best.objective + 1e-14
        assert best.bound <= found.objective + 1e-14
