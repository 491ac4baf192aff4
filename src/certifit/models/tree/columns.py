"""Columns of a table as trees take them: zeros written out, values of any type, and which are categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse

__all__ = ["categorical_columns", "column_lists", "column_name", "dense", "is_mixed", "sort_key"]

MOST_ENTRIES = 100_000_000
"""Entries of a sparse matrix that are written out for trees and forests: 0.8 GB."""


def dense(X: Matrix) -> Array:
    """The matrix with its zeros written out; a sparse one that would take too much memory is refused."""
    if not is_sparse(X):
        return np.asarray(X)
    entries = X.shape[0] * X.shape[1]
    if entries > MOST_ENTRIES:
        raise ValueError(
            f"X is sparse and has {X.shape[0]} × {X.shape[1]} entries, zeros included; trees and forests write them out and "
            f"take at most {MOST_ENTRIES:,}. Choose fewer columns or rows, or use GradientBoostingClassifier or "
            "GradientBoostingRegressor, which keep one byte an entry."
        )
    return np.asarray(X.toarray(order="F"))


def is_mixed(X: Any) -> bool:
    """Frames and object arrays: columns may hold text."""
    if is_sparse(X):
        return False
    return hasattr(X, "columns") or hasattr(X, "column_names") or np.asarray(X).dtype.kind in "OUS"


def column_lists(X: Any) -> list[list[Any]]:
    """The values of each column."""
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        return [frame[name].to_list() for name in frame.columns]
    return [list(column) for column in np.asarray(X, dtype=object).T]


def column_name(X: Any, j: int) -> str:
    """Name of a column of a frame, in quotes; its number where it has none."""
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return str(j) if names is None else repr(str(list(names)[j]))


def sort_key(value: Any) -> tuple[str, Any]:
    """Puts categories of any type in order."""
    # Numbers of all kinds compare with each other; other types only among themselves.
    number = isinstance(value, (int, float, np.number))
    return ("" if number else type(value).__name__, value)


def categorical_columns(X: Any, given: Any) -> list[int]:
    """Numbers of the columns that hold categories, as asked for."""
    if given is None:
        return []
    names = getattr(X, "column_names", None)
    names = getattr(X, "columns", None) if names is None else names
    names = None if names is None else [*names]
    if isinstance(given, str):
        if given != "auto":
            raise ValueError(f"categorical_features must be 'auto', a list of columns, a mask or None; got {given!r}.")
        if names is None:
            return []
        import narwhals as nw

        schema = nw.from_native(X, eager_only=True).schema
        kinds = (nw.Categorical, nw.Enum, nw.String, nw.Object, nw.Boolean)
        return [j for j, name in enumerate(schema) if isinstance(schema[name], kinds)]
    items = list(np.atleast_1d(np.asarray(given, dtype=object)))
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        width = len(names) if names is not None else np.shape(X)[1]
        if len(items) != width:
            raise ValueError(f"categorical_features has {len(items)} entries, but X has {width} columns.")
        return [j for j, chosen in enumerate(items) if chosen]
    columns = []
    for item in items:
        if names is not None and item in names:
            columns.append(names.index(item))
        elif isinstance(item, (int, np.integer)) and item >= 0:
            columns.append(int(item))
        else:
            raise ValueError(f"categorical_features names {item!r}, which is not a column of X.")
    return sorted(set(columns))
