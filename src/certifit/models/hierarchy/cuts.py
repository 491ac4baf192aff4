"""Where a tree of merges is cut: at a number of clusters, at a height, or where the heights jump."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from certifit._types import Array

__all__ = ["by_size", "cut_after", "largest_gap"]


def cut_after(Z: Array, merges: int) -> Array:
    """Labels of the rows after the first `merges` merges; 0 is the largest cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.hierarchy.cuts import cut_after
    >>> Z = np.array([[0, 2, 1.0, 2], [1, 3, 5.0, 3]])
    >>> cut_after(Z, 0), cut_after(Z, 1), cut_after(Z, 2)
    (array([0, 1, 2]), array([0, 1, 0]), array([0, 0, 0]))
    """
    n = Z.shape[0] + 1
    joined = Z[:merges, :2].astype(np.int64).ravel()
    parent = n + np.repeat(np.arange(merges), 2)
    graph = coo_array((np.ones(joined.size, dtype=np.int8), (parent, joined)), shape=(n + merges, n + merges))
    return by_size(connected_components(graph, directed=False)[1][:n])


def by_size(labels: Array) -> Array:
    """The same clusters, numbered from the largest to the smallest; equal ones in the order of their first rows."""
    _, first, codes, count = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    number = np.empty(first.size, dtype=np.int64)
    number[np.lexsort((first, -count))] = np.arange(first.size)
    return np.asarray(number[codes.ravel()])


def largest_gap(heights: Array) -> int:
    """How many clusters there are where the next merge is farthest above the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.models.hierarchy.cuts import largest_gap
    >>> largest_gap(np.array([1.0, 1.1, 7.0, 8.0]))
    3
    """
    if heights.size < 2 or heights[0] == heights[-1]:
        return 1
    return int(heights.size - np.argmax(np.diff(heights)))
