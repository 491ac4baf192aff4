"""Values that make no sense, by the name of the parameter: no estimator may take them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.contract.discovery import Case

from certifit.parameters import parameters_of

FLAG = ["yes", 2, None]
NAME = ["no such name", 3, True]
POSITIVE = [0.0, -1.0, np.nan, "a", None]
NON_NEGATIVE = [-1.0, np.nan, np.inf, "a", None]
COUNT = [0, -1, 1.5, np.nan, "a", None]
LEAST = [-1.0, np.nan, "a", None]  # infinite means never
LIMIT = [0, -1, 1.5, np.nan, "a"]  # a count, or None for no limit
SHARE = [-0.1, 1.1, np.nan, "a"]
MODEL = ["tree", 3, int]
COLUMNS = ["no such column", 3.5, [99], ["no such column"]]

NONSENSE: dict[str, list[Any]] = {
    "algorithm": [*NAME, None],
    "alpha": [*NON_NEGATIVE, True],
    "alphas": [[], [-1.0], [np.nan], "a"],
    "average": FLAG,
    "averaged": FLAG,
    "batch_size": COUNT,
    "bins": [1, -2, 1.5, "a", None, [2.0, 1.0], [np.nan]],
    "bootstrap": FLAG,
    "categorical": COLUMNS,
    "categorical_features": COLUMNS,
    "categories": [*NAME, None],
    "category_smoothing": NON_NEGATIVE,
    "ccp_alpha": LEAST,
    "centers": [0, -1, 1.5, "a", None, [[np.nan] * 5], [[1.0, 2.0]]],
    "class_weight": ["no such name", 3, {0: -1.0, 1: 1.0}, {0: np.nan, 1: 1.0}, {0: "a", 1: 1.0}, {7: 1.0}],
    "clip": FLAG,
    "code": [*NAME, None, [[1.0, 1.0]], [[2.0], [-1.0]]],
    "code_size": POSITIVE,
    "colsample": [0.0, -0.1, 1.5, np.nan, "a", None],
    "constraint": ["no such constraint", 3],
    "criterion": [*NAME, None],
    "cv": [1, -2, 1.5, "a"],
    "decoding": [*NAME, None],
    "degree": [-1, 1.5, np.nan, "a", None],
    "delta": [0.0, -1.0, np.nan, np.inf, "a"],
    "early_stopping": ["yes", 2, None],
    "encode": [*NAME, None],
    "eps": POSITIVE,
    "epsilon": [-1.0, np.nan, "a", None],
    "estimator": MODEL,
    "fit_intercept": FLAG,
    "gamma": ["no such name", 0.0, -1.0, np.nan, np.inf, None],
    "half": ["no such name", 0.0, -1.0, np.nan, np.inf, None, [1.0]],
    "high": [np.nan, np.inf, "a", None, -1.0],
    "include_bias": FLAG,
    "interaction_only": FLAG,
    "interactions": ["no such name", 3, [[99]], [["no such column"]]],
    "keep_targets": FLAG,
    "kinds": ["text", 3, {"no such column": "numeric"}],
    "knots": [1, -2, 1.5, "a", None, [2.0, 1.0], [np.nan]],
    "l1_ratio": SHARE,
    "l2": NON_NEGATIVE,
    "learning_rate": [*POSITIVE, np.inf],
    "loss": ["no such loss", 3, None],
    "low": [np.nan, -np.inf, "a", None, 2.0],
    "max_bins": [*COUNT, 1],
    "max_depth": LIMIT,
    "max_epochs": COUNT,
    "max_features": [0, -1, 0.0, 1.5, np.nan, "a"],
    "max_gib": POSITIVE,
    "max_iter": COUNT,
    "max_leaves": LIMIT,
    "max_levels": COUNT,
    "max_samples": [0, -1, 0.0, 1.5, np.nan, "a"],
    "min_frequency": [-0.1, np.nan, "a", None],
    "min_impurity_decrease": LEAST,
    "min_samples_leaf": LEAST,
    "min_samples_split": LEAST,
    "min_weight_fraction_leaf": [*SHARE, None],
    "missing": [*NAME, None],
    "mode": [*NAME, None],
    "monotone": ["no such name", 3, [1], [2, 0, 0, 0, 0], {99: 1}],
    "monotone_constraints": ["no such name", 3, [1], [2, 0, 0, 0, 0], {99: 1}],
    "multi_class": [*NAME, None],
    "n_alphas": COUNT,
    "n_estimators": COUNT,
    "n_iter_no_change": COUNT,
    "n_jobs": ["a", 1.5, 0, np.nan],
    "norm": [*NAME, None],
    "numeric": [*NAME, None],
    "one_standard_error": FLAG,
    "oob_score": FLAG,
    "order": [*NAME, None],
    "penalty": ["no such penalty", 3],
    "plateau_cut": [0.0, 1.5, -0.5, np.nan, "a", None],
    "positive": FLAG,
    "quantile": [0.0, 1.0, -0.5, np.nan, "a", None],
    "random_state": ["a", -1, 1.5, np.nan],
    "schedule": [*NAME, None],
    "shape": [*NAME, None],
    "shuffle": FLAG,
    "soft_labels": FLAG,
    "solver": ["no such solver", 3, None],
    "sparse_output": FLAG,
    "splitter": [*NAME, None],
    "spread": FLAG,
    "start": [*NAME, None],
    "step": [0.0, -1.0, np.nan, np.inf, "a"],
    "strategy": [*NAME, None],
    "subsample": [0.0, -0.1, 1.5, np.nan, "a", None],
    "text_features": COUNT,
    "tol": [-1e-3, np.nan, "a", None],
    "validation_fraction": [0.0, 1.0, -0.5, np.nan, "a", None],
    "verbose": ["loud", -1, None],
    "warm_start": FLAG,
    "with_mean": FLAG,
    "with_std": FLAG,
}


def leaves(value: Any) -> Iterator[Any]:
    """The entries of nested containers; of a dictionary its keys too."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for entry in value:
            yield from leaves(entry)
    else:
        yield value


def is_told(value: Any, message: str) -> bool:
    """Whether a message says what was found: the value, and for containers the wrong entry or the wrong shape."""
    if repr(value) in message:
        return True
    if not isinstance(value, (list, dict)):
        return False
    shape = isinstance(value, list) and str(np.shape(value)) in message
    return shape or any(repr(entry).lower() in message.lower() for entry in leaves(value))


def attempts(case: Case) -> Iterator[tuple[str, Any]]:
    """What a class is tried with: every nonsense of its parameters, except its own defaults."""
    declared = parameters_of(case.cls)
    for name, default in case.build().get_params(deep=False).items():
        for value in declared[name].domain.nonsense() if name in declared else NONSENSE.get(name, []):
            if value is not default:
                yield name, value
