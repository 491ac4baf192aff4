"""Logistic regression along a sequence of alphas, each fit started from the last."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from certifit._types import Array, is_sparse
from certifit.evaluation.penalties import Penalty, resolve_penalty
from certifit.models.linear.parameters import EPS, N_ALPHAS, PENALTY
from certifit.models.linear.path.path import AlongAlphas, RegularizationPath, alpha_grid
from certifit.models.logistic.fit import LogisticData, alpha_max, logistic_data, solve_logistic
from certifit.models.logistic.parameters import SOFT_LABELS
from certifit.parameters import CLASS_WEIGHT, L1_RATIO, MAX_ITER, N_JOBS, check_parameters
from certifit.progress import Progress
from certifit.threads import n_threads

__all__ = ["LogisticPath", "fold_path", "logistic_alphas"]

LEAST_SHARE = 1e-3  # a ridge path starts where an L1 share of this size would still select nothing


class LogisticPath(AlongAlphas):
    """Minimize mean log loss + alpha·penalty(w) for a decreasing sequence of alphas, evenly spaced in the logarithm.

    `coefs` have the shape (n_alphas, n_features) for two classes, (n_alphas, n_classes, n_features) for more.

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

    penalty: Any = PENALTY
    l1_ratio: float = L1_RATIO
    class_weight: Any = CLASS_WEIGHT
    soft_labels: bool = SOFT_LABELS
    n_alphas: int = N_ALPHAS.but(30)
    eps: float = EPS.but(1e-4)
    max_iter: int = MAX_ITER.but(text="Most iterations for each alpha.")
    n_jobs: int | None = N_JOBS

    def solve(self, X: Any, y: Any, sample_weight: Any = None) -> RegularizationPath:
        """The path of some data."""
        check_parameters(self)
        options = {"l1_ratio": self.l1_ratio} if self.penalty == "elasticnet" else {}
        shape = resolve_penalty(self.penalty, **options)
        data = logistic_data(BaseEstimator(), X, y, sample_weight, self.class_weight, self.soft_labels)[0]
        data = replace(data, X=data.X.tocsc()) if is_sparse(data.X) else data
        grid = logistic_alphas(data, shape, self)
        stop: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "threads": n_threads(self.n_jobs)}
        coefs, intercepts, gaps = fold_path(data, shape, grid, self.fit_intercept, **stop)
        if data.n_classes == 2:
            coefs, intercepts = coefs[:, 0], intercepts[:, 0]
        return RegularizationPath(grid, coefs.astype(data.X.dtype), intercepts, gaps)


def logistic_alphas(data: LogisticData, penalty: Penalty, asked: Any) -> Array:
    """The alphas of a path, decreasing; an L1 path starts where all coefficients are zero."""

    def largest() -> float:
        parts = penalty.elastic(data.X.shape[1])
        share = LEAST_SHARE if parts is None else max(float(parts[0].max(initial=0.0)), LEAST_SHARE)
        return max(alpha_max(data, share, asked.fit_intercept), float(np.finfo(np.float64).resolution))

    return alpha_grid(largest, asked)


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
