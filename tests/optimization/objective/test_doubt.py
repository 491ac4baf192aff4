"""A certificate knows what cancels in the scores of several classes."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

import certifit as cf


def objective(model: cf.LogisticRegression, X: np.ndarray, y: np.ndarray) -> float:
    """In the longest numbers there are."""
    f = X.astype(np.longdouble) @ model.coef_.T.astype(np.longdouble) + model.intercept_.astype(np.longdouble)
    risk = np.mean(logsumexp(f, axis=1) - f[np.arange(len(y)), y])
    return float(risk + model.alpha * 0.5 * (model.coef_.astype(np.longdouble) ** 2).sum())


def test_intercepts_that_cancel_in_every_row_are_in_the_gap() -> None:
    """Columns so large that the penalty feels nothing of them: intercepts of 1e16 are as good as none, but for rounding."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = 1e30 * rng.normal(size=(12, 20)), np.repeat([0, 0, 0, 0, 1, 2], 2)
        model = cf.LogisticRegression(alpha=1.0, tol=1e-9).fit(X, y)
        said, scale = model.certificate_, np.log(3.0)
        off = abs(said.objective - objective(model, X, y)) / scale
        assert off <= max(1e-8, said.relative_gap)
        found += off > 1e-8
    assert found or np.abs(model.intercept_).max() < 1e3
