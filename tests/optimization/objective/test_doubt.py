"""A certificate knows what cancels in the scores of several classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from certifit.evaluation.losses import Softmax
from certifit.evaluation.penalties import L2
from certifit.optimization.objective.certify import certify
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress


@pytest.mark.parametrize("size", [1.0, 1e4, 1e17])
def test_intercepts_that_cancel_in_every_row_are_in_the_gap(size: float) -> None:
    """A column of 1e30 takes back what the intercepts add, and the penalty feels nothing of it."""
    y = np.arange(12) % 3
    X = np.column_stack([25.0 * np.eye(3)[y], np.full(12, 1e30)])
    problem = Problem(X, y, np.full(12, 1 / 12), Softmax(), Regularizer.of(L2(), 1e-12, None, 4), True)
    shift = size * np.array([1.0, -0.47, -0.53])
    coef, intercept = np.column_stack([np.eye(3), -shift / 1e30]), shift
    found = Solution(coef, intercept, 1, "newton", 0.0, problem.objective(coef, intercept))
    _, said = certify(problem, found, 1e-9, Progress())
    f = (X.astype(np.longdouble)[:, None, :] * coef.astype(np.longdouble)).sum(axis=2) + intercept
    exact = np.mean(logsumexp(f, axis=1) - f[np.arange(12), y]) + 0.5e-12 * float((coef**2).sum())
    assert abs(said.objective - float(exact)) <= max(said.gap, 1e-15)
    assert said.certified == (size <= 1e4)
