"""From the constructor arguments of a boosted model to a checked plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.models.boosting.fit import Plan
from certifit.threads import n_threads

__all__ = ["plan_of"]

NO_LIMIT = 1 << 30


def plan_of(model: Any, d: int, names: Array | None, text_columns: list[int]) -> Plan:
    """The plan of checked parameters; what depends on the columns of X is checked here, and errors name the argument."""
    categorical = _columns("categorical_features", model.categorical_features, d, names, text_columns)
    monotone = _monotone(model.monotone_constraints, d, names)
    if categorical and monotone[categorical].any():
        column = next(j for j in categorical if monotone[j])
        raise ValueError(
            f"monotone_constraints asks for an order on column {_label(column, names)}, which is categorical."
        )
    return Plan(
        n_estimators=int(model.n_estimators),
        learning_rate=float(model.learning_rate),
        max_leaves=NO_LIMIT if model.max_leaf_nodes is None else int(model.max_leaf_nodes),
        max_depth=NO_LIMIT if model.max_depth is None else int(model.max_depth),
        min_samples_leaf=float(model.min_samples_leaf),
        l2=float(model.l2),
        subsample=float(model.subsample),
        colsample=float(model.colsample),
        max_bins=int(model.max_bins),
        category_smoothing=float(model.category_smoothing),
        monotone=monotone if monotone.any() else np.empty(0, dtype=np.int8),
        interactions=_interactions(model.interactions, d, names),
        categorical=categorical,
        n_iter_no_change=int(model.n_iter_no_change),
        tol=float(model.tol),
        n_threads=n_threads(model.n_jobs),
    )


def _label(j: int, names: Array | None) -> str:
    return str(j) if names is None else repr(str(names[j]))


def _column(argument: str, column: Any, d: int, names: Array | None) -> int:
    """Number of a column given by number or name."""
    if isinstance(column, str):
        if names is None or column not in names:
            known = "X has no column names" if names is None else f"X has {', '.join(map(repr, map(str, names)))}"
            raise ValueError(f"{argument} names the column {column!r}, but {known}.")
        return int(np.flatnonzero(names == column)[0])
    return int(check_real(f"a column in {argument}", column, low=-d, high=d - 1, integer=True)) % d


def _columns(argument: str, wanted: Any, d: int, names: Array | None, text_columns: list[int]) -> list[int]:
    if wanted is None:
        return []
    if isinstance(wanted, str):
        return sorted(text_columns)
    listed = list(wanted)
    if len(listed) == d and d > 0 and all(isinstance(c, (bool, np.bool_)) for c in listed):
        listed = [j for j, chosen in enumerate(listed) if chosen]
    return sorted({*text_columns, *(_column(argument, c, d, names) for c in listed)})


def _monotone(wanted: Any, d: int, names: Array | None) -> Array:
    result = np.zeros(d, dtype=np.int8)
    if wanted is None:
        return result
    if isinstance(wanted, dict):
        pairs = [(_column("monotone_constraints", c, d, names), value) for c, value in wanted.items()]
    else:
        values = np.asarray(wanted).tolist()
        if not isinstance(values, list) or len(values) != d:
            raise ValueError(f"monotone_constraints must have one entry for each of the {d} columns; got {wanted!r}.")
        pairs = list(enumerate(values))
    for j, value in pairs:
        if value not in (-1, 0, 1):
            raise ValueError(f"monotone_constraints must hold -1, 0 or 1; got {value!r} for column {_label(j, names)}.")
        result[j] = value
    return result


def _interactions(wanted: Any, d: int, names: Array | None) -> Array:
    """A row of 0 and 1 for each set of columns that may meet."""
    if wanted is None:
        return np.empty((0, d), dtype=np.uint8)
    if isinstance(wanted, str):
        if wanted == "none":
            return np.eye(d, dtype=np.uint8)
        sets = [[i, j] for i in range(d) for j in range(i)] or [[0]]
    elif not all(isinstance(group, Iterable) for group in wanted):
        raise TypeError(f"interactions must be 'pairwise', 'none', None or a list of lists; got {wanted!r}.")
    else:
        sets = [[_column("interactions", c, d, names) for c in group] for group in wanted]
    rest = sorted(set(range(d)) - {j for group in sets for j in group})
    masks = np.zeros((len(sets) + bool(rest), d), dtype=np.uint8)
    for row, group in zip(masks, [*sets, rest], strict=False):
        row[group] = 1
    return masks
