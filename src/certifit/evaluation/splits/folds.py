"""Folds of the rows by what they contain.

Equal rows always share a fold. So a row of weight 2 and the row
given twice lead to the same folds, the order of the rows does not matter, and no copy of a training row is ever tested on.
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array, Matrix
from certifit.data.equal_rows import row_codes

__all__ = ["content_folds"]


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
