"""Settings that differ in one parameter alone, from one walk instead of a fit for each.

The path of a linear model gives all alphas at once; a model that says what it `walks_along` is fitted at one value after
the other, each time from where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.resampling.fitting import aligned
from certifit.models.linear.regression import ElasticNet, Lasso, Ridge
from certifit.models.logistic.model import LogisticRegression
from certifit.models.logistic.probabilities import LogisticScores

__all__ = ["along_the_path", "has_path", "path_groups", "walk_groups"]

SOLVED = ("fit_intercept", "tol", "max_iter", "n_jobs")
# Parameters that the path of a class takes; with any other parameter away from its default, each setting is fitted by itself.
PATHS: dict[type, tuple[str, ...]] = {
    Ridge: ("fit_intercept",),
    Lasso: ("positive", *SOLVED),
    ElasticNet: ("l1_ratio", "positive", *SOLVED),
    LogisticRegression: ("penalty", "l1_ratio", "class_weight", *SOLVED),
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
    return [
        group
        for group in _alike_but_for("alpha", settings)
        if has_path(clone(estimator).set_params(**settings[group[0]]))
    ]


def walk_groups(estimator: Any, settings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Numbers of the settings that are fitted one from the other, from the least value of what the model walks along."""
    name = getattr(type(estimator), "walks_along", None)
    if name is None:
        return []
    return [sorted(group, key=lambda k: float(settings[k][name])) for group in _alike_but_for(name, settings)]


def _alike_but_for(name: str, settings: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """Numbers of two or more settings with positive values of one parameter, and everything else equal."""
    groups: dict[str, list[int]] = {}
    for number, setting in enumerate(settings):
        value = setting.get(name)
        if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and 0 < value < np.inf:
            others = sorted((other, repr(given)) for other, given in setting.items() if other != name)
            groups.setdefault(repr(others), []).append(number)
    return [group for group in groups.values() if len(group) > 1]


class _Scored(LogisticScores):
    """The classes of a path at one alpha, read from its scores."""

    def __init__(self, classes: Array) -> None:
        self.classes_ = classes

    def decision_function(self, X: Any) -> Array:
        """The scores, which are given."""
        return np.asarray(X)


def along_the_path(
    estimator: Any,
    alphas: Array,
    X: Any,
    y: Array,
    sample_weight: Any,
    held: Any,
    need: str = "value",
    classes: Array | None = None,
) -> list[Array]:
    """Predictions for the rows of `held` with each alpha, in the order of the alphas; of classes, what a metric needs."""
    grid, place = np.unique(np.asarray(alphas, dtype=np.float64), return_inverse=True)
    options = {name: getattr(estimator, name) for name in PATHS[type(estimator)]}
    path = type(estimator).path(X, y, alphas=grid, sample_weight=sample_weight, **options)
    if not np.array_equal(path.alphas, grid[::-1]):
        raise ValueError("the path has other alphas than were asked for.")
    rows = held if hasattr(held, "dtype") else np.asarray(held, dtype=np.float64)
    flat = np.asarray(rows @ path.coefs.reshape(-1, path.coefs.shape[-1]).T)
    scores = flat.reshape(rows.shape[0], *path.coefs.shape[:-1]) + path.intercepts
    found = [scores[:, grid.shape[0] - 1 - k] for k in place]
    if classes is None:
        return found
    read = _Scored(np.unique(y))
    return [aligned(read, predict_for(read, one, need), need, classes) for one in found]
