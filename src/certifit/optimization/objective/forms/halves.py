"""The lasso in split variables: w = u − v with u, v ≥ 0, so that ‖w‖₁ = Σ(u + v) is linear and a projection does the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, is_sparse
from certifit.evaluation.penalties import NonNegative
from certifit.evaluation.penalties.elastic import Strengths
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer

__all__ = ["halves", "in_halves", "whole"]


def in_halves(problem: Problem) -> Problem:
    """The problem of (u, v), for an L1 penalty and no constraint: the same optimum."""
    X, d = problem.X, problem.shape[1]
    parts = problem.regularizer.elastic()
    assert parts is not None
    both = sp.hstack([X, -X], format=X.format) if is_sparse(X) else np.hstack([X, -X])
    doubled = Regularizer(Strengths(np.tile(parts[0], 2), np.zeros(2 * d)), 1.0, NonNegative(), 2 * d)
    return replace(problem, X=both, regularizer=doubled)


def halves(w: Array) -> Array:
    """(u, v) with the least sum."""
    return np.concatenate([np.maximum(w, 0.0), np.maximum(-w, 0.0)])


def whole(both: Array) -> Array:
    """w = u − v."""
    d = both.shape[0] // 2
    return np.asarray(both[:d] - both[d:])
