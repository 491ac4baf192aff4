"""Folds of the rows.

`content_folds` deals rows into folds by what they contain: equal rows always share a fold. So a row of weight 2 and the row
given twice lead to the same folds, the order of the rows does not matter, and no copy of a training row is ever tested on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from certifit._types import Array, Matrix
from certifit.data.equal_rows import row_codes

__all__ = ["content_folds", "splits"]


def splits(cv: Any, X: Matrix, y: Array, weight: Array) -> Iterator[tuple[Array, Array]]:
    """Pairs (train, test) of row numbers; an integer cv deals by content, anything else goes to scikit-learn."""
    if cv is None or isinstance(cv, (int, np.integer)):
        folds = content_folds(X, y, 5 if cv is None else int(cv))
        for k in range(folds.max() + 1):
            yield np.flatnonzero(folds != k), np.flatnonzero(folds == k)
    else:
        yield from check_cv(cv).split(X, y)


def content_folds(X: Matrix, y: Array, k: int) -> Array:
    """Fold of each row: distinct rows are ordered by a code of their content and dealt in turn to at most k folds."""
    if k < 2:
        raise ValueError(f"cv must be at least 2 folds, or a splitter; got {k}.")
    distinct, which = np.unique(row_codes(X, y), return_inverse=True)
    if distinct.shape[0] < 2:
        raise ValueError(
            "Cross-validation needs at least 2 distinct rows; the data has 1 sample, once copies are counted once."
        )
    return np.asarray(which % min(k, distinct.shape[0]))
