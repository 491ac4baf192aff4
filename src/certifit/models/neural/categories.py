"""Columns of categories in a network: a learned vector for each category.

A category adds its vector to the inputs of the units of the first layer:

    z_1 = b_1 + W_1ᵀ x + Σ_j e_j(c_j)          c_j the category of column j,  e_j(c) a row of W_1

which is what an embedding and the layer behind it come to. So the vectors are rows of the first weights, for columns of 0 and 1
behind the columns of X, and are trained like all others; where most entries are zeros, these cost nothing. A category that was
not seen in training, and one that is missing, has the zero vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix
from certifit.data.gate import check_sample_weight
from certifit.models.tree.growing import Categories
from certifit.models.tree.rows import take_rows

__all__ = ["known", "learned", "places", "weighed"]


def weighed(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Without the rows of weight zero: a category that only these have was not seen."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if sample_weight is None or len(y) != n:
        return X, y, sample_weight
    weight = check_sample_weight(sample_weight, n)
    kept = weight > 0
    return (X, y, weight) if kept.all() else (take_rows(X, kept), np.asarray(y)[kept], weight[kept])


def learned(estimator: Any, X: Any) -> tuple[Categories, Matrix]:
    """The categories of training rows, and the rows with columns of 0 and 1 for them."""
    categories, table = Categories.fit(estimator, X, estimator.categorical_features)
    return categories, _spread(categories, table)


def known(estimator: Any, X: Any) -> Matrix:
    """New rows in the same columns."""
    categories: Categories = estimator._categories
    return _spread(categories, np.asarray(categories.transform(estimator, X)))


def places(categories: Categories, width: int) -> dict[int, slice]:
    """Where the columns of 0 and 1 of each column of categories lie, behind `width` columns of X."""
    ends = width + np.cumsum([0, *categories.counts])
    return {j: slice(int(ends[k]), int(ends[k + 1])) for k, j in enumerate(categories.columns)}


def _spread(categories: Categories, table: Array) -> Matrix:
    numbers = np.array(table)
    numbers[:, categories.columns] = 0.0
    blocks = [sp.csr_array(numbers)]
    for j, count in zip(categories.columns, categories.counts, strict=True):
        code = table[:, j]
        rows = np.flatnonzero((code >= 0) & (code < count))
        ones = np.ones(rows.shape[0], dtype=numbers.dtype)
        blocks.append(sp.csr_array((ones, (rows, code[rows].astype(np.intp))), shape=(table.shape[0], count)))
    return sp.csr_array(sp.hstack(blocks, format="csr"))
