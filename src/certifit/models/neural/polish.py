"""A proof for the last layer.

Given the features h of the last hidden layer, the output layer is a convex problem like any linear model,

    minimize over W, b    Σ p_i ℓ(y_i, Wᵀh_i + b) + alpha · ½‖W‖²

which the general solver brings to a wanted duality gap. The claim is about this layer on these features, and no more.
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.evaluation.penalties import L2
from certifit.models.neural.objective import Target
from certifit.optimization.objective.dispatch import check_solver, minimize
from certifit.optimization.objective.forms.targets import minimize_targets
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress

__all__ = ["CLAIM", "best_output_layer"]

CLAIM = "best output layer on these features"
MOST = 500  # iterations


def best_output_layer(
    features: Array, target: Target, alpha: float, tol: float, threads: int, clock: Progress
) -> tuple[Array, Array, Certificate]:
    """Weights (units, K), biases (K,) and the certificate, all in the units of y."""
    check_solver("auto", target.inner, L2(), alpha, None)
    several = target.y.ndim == 2 and not target.inner.coupled
    first = np.ascontiguousarray(target.y[:, 0]) if several else target.y
    share, regularizer = target.weight / target.weight.sum(), Regularizer.of(L2(), alpha, None, features.shape[1])
    problem = Problem(features, first, share, target.inner, regularizer, True, threads)
    if several:
        solution, found = minimize_targets(problem, target.y, "auto", tol, MOST, clock)
    else:
        solution, found = minimize(problem, "auto", tol, MOST, clock)
    coef, intercept = np.atleast_2d(solution.coef).T, np.atleast_1d(solution.intercept)
    return coef * target.unit, intercept * target.unit, found.about(CLAIM).rescaled(target.factor)
