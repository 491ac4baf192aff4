"""Logistic regression along a sequence of alphas, each fit started from the last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit._types import Array, is_sparse
from certifit.evaluation.penalties import Penalty, resolve_penalty
from certifit.models.linear.path.path import RegularizationPath, alpha_grid
from certifit.models.logistic.fit import LogisticData, alpha_max, logistic_data, solve_logistic
from certifit.progress import Progress
from certifit.threads import n_threads

__all__ = ["fold_path", "logistic_alphas", "logistic_path"]

LEAST_SHARE = 1e-3  # a ridge path starts where an L1 share of this size would still select nothing


def logistic_path(
    X: Any,
    y: Any,
    *,
    penalty: Any = "l2",
    l1_ratio: float = 0.5,
    n_alphas: int = 30,
    eps: float = 1e-4,
    alphas: Any = None,
    sample_weight: Any = None,
    class_weight: Any = None,
    soft_labels: bool = False,
    fit_intercept: bool = True,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_jobs: int | None = None,
) -> RegularizationPath:
    """Solve mean log loss + alpha·penalty(w) for a decreasing sequence of alphas.

    Parameters
    ----------
    X, y, sample_weight, class_weight
        The data.
    penalty, l1_ratio, soft_labels, fit_intercept, n_jobs
        As in `LogisticRegression`.
    n_alphas : int, default=30
        Number of alphas, evenly spaced in the logarithm.
    eps : float, default=1e-4
        Smallest alpha divided by the largest.
    alphas : array, optional
        The alphas themselves, instead of `n_alphas` and `eps`.
    tol : float, default=1e-6
        Wanted relative gap of each solution.
    max_iter : int, default=1000
        Most iterations for each alpha.

    Returns
    -------
    RegularizationPath
        Coefficients have shape (n_alphas, n_features) for two classes, (n_alphas, n_classes, n_features) for more.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 4))
    >>> y = X[:, 0] + rng.normal(size=80) > 0
    >>> alphas, coefs, intercepts, gaps = LogisticRegression.path(X, y, penalty="l1", n_alphas=10)
    >>> coefs.shape, bool((gaps <= 1e-6).all()), int(np.count_nonzero(coefs[0]))
    ((10, 4), True, 0)
    """
    options = {"l1_ratio": l1_ratio} if penalty == "elasticnet" else {}
    shape = resolve_penalty(penalty, **options)
    data = logistic_data(BaseEstimator(), X, y, sample_weight, class_weight, soft_labels)[0]
    data = replace(data, X=data.X.tocsc()) if is_sparse(data.X) else data
    grid = logistic_alphas(data, shape, n_alphas, eps, alphas, fit_intercept)
    coefs, intercepts, gaps = fold_path(
        data, shape, grid, fit_intercept, tol=tol, max_iter=max_iter, threads=n_threads(n_jobs)
    )
    if data.n_classes == 2:
        coefs, intercepts = coefs[:, 0], intercepts[:, 0]
    return RegularizationPath(grid, coefs.astype(data.X.dtype), intercepts, gaps)


def logistic_alphas(
    data: LogisticData, penalty: Penalty, n_alphas: int, eps: float, alphas: Any, fit_intercept: bool
) -> Array:
    """The alphas of a path, decreasing; an L1 path starts where all coefficients are zero."""

    def largest() -> float:
        parts = penalty.elastic(data.X.shape[1])
        share = LEAST_SHARE if parts is None else max(float(parts[0].max(initial=0.0)), LEAST_SHARE)
        return max(alpha_max(data, share, fit_intercept), float(np.finfo(np.float64).resolution))

    return alpha_grid(largest, n_alphas, eps, alphas)


def fold_path(
    data: LogisticData, penalty: Penalty, grid: Array, fit_intercept: bool, *, tol: float, max_iter: int, threads: int
) -> tuple[Array, Array, Array]:
    """Coefficients (n_alphas, 1 or K, d), intercepts (n_alphas, 1 or K) and relative gaps (n_alphas,)."""
    coefs, intercepts, gaps, start = [], [], [], None
    for alpha in grid:
        fit = solve_logistic(
            data, penalty, float(alpha), fit_intercept, threads=threads, solver="auto", tol=tol, max_iter=max_iter,
            clock=Progress(), start=start,
        )  # fmt: skip
        start = fit.start
        coefs.append(fit.coef)
        intercepts.append(fit.intercept)
        gaps.append(fit.certificate.relative_gap)
    return np.array(coefs), np.array(intercepts), np.array(gaps)
