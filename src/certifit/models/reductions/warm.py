"""Settings that differ in alpha alone, from one walk along the path of a linear model instead of a fit for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.models.linear.regression import ElasticNet, Lasso, Ridge

__all__ = ["along_the_path", "has_path", "path_groups"]

SOLVED = ("fit_intercept", "positive", "tol", "max_iter", "n_jobs")
# Parameters that the path of a class takes; with any other parameter away from its default, each setting is fitted by itself.
PATHS: dict[type, tuple[str, ...]] = {
    Ridge: ("fit_intercept",),
    Lasso: SOLVED,
    ElasticNet: ("l1_ratio", *SOLVED),
}
IRRELEVANT = frozenset({"alpha", "verbose"})
CLOSED_FORM = frozenset({"tol", "max_iter", "n_jobs"})  # of ridge: a decomposition has no use for them


def has_path(estimator: Any) -> bool:
    """Whether all alphas of this estimator can come from one walk: the class has a path, and nothing else was asked of it."""
    taken = PATHS.get(type(estimator))
    if taken is None:
        return False
    usual = type(estimator)().get_params()
    free = {*taken, *IRRELEVANT, *(CLOSED_FORM if type(estimator) is Ridge else ())}
    return all(name in free or value == usual[name] for name, value in estimator.get_params().items())


def path_groups(estimator: Any, settings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Numbers of the settings that one path serves: two or more, positive alphas, everything else equal."""
    groups: dict[str, list[int]] = {}
    for number, setting in enumerate(settings):
        alpha = setting.get("alpha")
        if isinstance(alpha, (int, float, np.number)) and not isinstance(alpha, bool) and 0 < alpha < np.inf:
            others = sorted((name, repr(value)) for name, value in setting.items() if name != "alpha")
            groups.setdefault(repr(others), []).append(number)
    return [
        group
        for group in groups.values()
        if len(group) > 1 and has_path(clone(estimator).set_params(**settings[group[0]]))
    ]


def along_the_path(estimator: Any, alphas: Array, X: Any, y: Array, sample_weight: Any, held: Any) -> list[Array]:
    """Predictions for the rows of `held` with each alpha, in the order of the alphas."""
    grid, place = np.unique(np.asarray(alphas, dtype=np.float64), return_inverse=True)
    options = {name: getattr(estimator, name) for name in PATHS[type(estimator)]}
    path = type(estimator).path(X, y, alphas=grid, sample_weight=sample_weight, **options)
    if not np.array_equal(path.alphas, grid[::-1]):
        raise ValueError("the path has other alphas than were asked for.")
    rows = held if hasattr(held, "dtype") else np.asarray(held, dtype=np.float64)
    scores = np.asarray(rows @ path.coefs.T) + path.intercepts
    return [scores[:, grid.shape[0] - 1 - k] for k in place]
