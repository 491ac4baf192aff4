"""Splits of the rows.

`content_folds` deals rows into folds by what they contain: equal rows always share a fold. So a row of weight 2 and the row
given twice lead to the same folds, the order of the rows does not matter, and no copy of a training row is ever tested on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import check_cv

from certifit._types import Array, Matrix

__all__ = ["content_folds", "splits"]

MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def splits(cv: Any, X: Matrix, y: Array, weight: Array) -> Iterator[tuple[Array, Array]]:
    """Pairs (train, test) of row numbers; an integer cv deals by content, anything else goes to scikit-learn."""
    if cv is None or isinstance(cv, (int, np.integer)):
        folds = content_folds(X, y, 5 if cv is None else int(cv))
        for k in range(folds.max() + 1):
            yield np.flatnonzero(folds != k), np.flatnonzero(folds == k)
    else:
        yield from check_cv(cv).split(X, y)


def content_folds(X: Matrix, y: Array, k: int) -> Array:
    """Fold of each row, 0 … k−1: distinct rows are ordered by a hash of their content and dealt in turn."""
    if k < 2:
        raise ValueError(f"cv must be at least 2 folds, or a splitter; got {k}.")
    with np.errstate(over="ignore"):
        code = _mixed(_bits(y), np.uint64(0))
        if sp.issparse(X):
            entries = X.tocoo()
            nonzero = entries.data != 0
            mixed = _mixed(_bits(entries.data[nonzero]), entries.col[nonzero].astype(np.uint64) + np.uint64(1))
            np.add.at(code, entries.row[nonzero], mixed)
        else:
            for j in range(X.shape[1]):
                column = X[:, j]
                code += np.where(column != 0, _mixed(_bits(column), np.uint64(j + 1)), np.uint64(0))
        code = _mixed(code, np.uint64(0))
    distinct, which = np.unique(code, return_inverse=True)
    if distinct.shape[0] < k:
        raise ValueError(
            f"cv={k} folds need at least {k} distinct rows; the data has {distinct.shape[0]}. Use a smaller cv."
        )
    return np.asarray(which % k)


def _bits(values: Array) -> Array:
    # Adding 0.0 turns −0.0 into 0.0, so that equal numbers have equal bits.
    return np.ascontiguousarray(np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _mixed(bits: Array, salt: Any) -> Array:
    """splitmix64's finalizer: every input bit moves half of the output bits."""
    z = bits + (salt + np.uint64(1)) * MIX[0]
    z = (z ^ (z >> np.uint64(30))) * MIX[1]
    z = (z ^ (z >> np.uint64(27))) * MIX[2]
    return np.asarray(z ^ (z >> np.uint64(31)))
