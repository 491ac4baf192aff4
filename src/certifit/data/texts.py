"""The gate for texts: what users give as a column of texts becomes a tuple of str, with None where there is no text."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import is_sparse
from certifit.data.missing import is_absent

__all__ = ["check_texts"]


def check_texts(X: Any, name: str = "X") -> tuple[str | None, ...]:
    """Texts of a list, an array, a series or a frame of one column.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.data.texts import check_texts
    >>> check_texts(np.array([["one"], ["two"]])), check_texts(["one", float("nan"), None])
    (('one', 'two'), ('one', None, None))
    >>> check_texts("one text")
    Traceback (most recent call last):
    ValueError: X must be several texts, one for each row; got a single str: put it into a list.
    """
    if isinstance(X, (str, bytes)):
        raise ValueError(
            f"{name} must be several texts, one for each row; got a single {type(X).__name__}: put it into a list."
        )
    return tuple(value if type(value) is str else _checked(value, i, name) for i, value in enumerate(_listed(X, name)))


def _checked(value: Any, i: int, name: str) -> str | None:
    if isinstance(value, str):
        return value
    if is_absent(value):
        return None
    cure = ": decode it first, as in text.decode()" if isinstance(value, bytes) else ""
    raise TypeError(f"{name} must hold texts (str); got {type(value).__name__} at position {i}{cure}.")


def _listed(X: Any, name: str) -> Any:
    """The values of X one by one; columns of a table are no texts of their own."""
    if is_sparse(X):
        raise TypeError(f"{name} must hold texts (str), not numbers; got a sparse matrix.")
    if not isinstance(X, (list, tuple, np.ndarray)):
        import narwhals as nw  # on demand: lists and arrays do not need it

        found = nw.from_native(X, eager_only=True, pass_through=True, allow_series=True)
        if isinstance(found, nw.DataFrame):
            _check_one_column(found.shape, name)
            return found[:, 0].to_list()
        if isinstance(found, nw.Series):
            return found.to_list()
        if not hasattr(X, "__iter__"):
            raise TypeError(f"{name} must be texts, one for each row; got {X!r}.")
    if isinstance(X, np.ndarray):
        if X.ndim != 1:
            _check_one_column(X.shape, name)
            X = X[:, 0]
        return X.tolist()
    return X


def _check_one_column(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2 or shape[1] != 1:
        raise ValueError(
            f"{name} must be one column of texts; got shape {tuple(shape)}: select the column, as ColumnTransformer does."
        )
