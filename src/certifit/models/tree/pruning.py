"""Cost-complexity pruning: the subtree of least risk + alpha · leaves, for every alpha.

The native code gives each inner node the alpha at which it becomes a leaf (weakest links, Breiman et al.
1984, chapter 3).
"""

from __future__ import annotations

import numpy as np

import certifit._native.tree as native
from certifit._types import Array
from certifit.models.tree.growing import TreeArrays
from certifit.names import record

__all__ = ["PruningPath", "collapse_alphas", "cut", "parents", "pruning_path", "range_of_use"]


@record("PruningPath")
class PruningPath:
    """Optimal subtrees: the k-th is best for alphas[k] ≤ alpha < alphas[k + 1].

    Parameters
    ----------
    alphas : array
        Prices of a leaf, rising from 0.
    risks : array
        Weighted mean impurity of each subtree.
    n_leaves : array
        Size of each subtree.
    """

    alphas: Array
    risks: Array
    n_leaves: Array


def parents(tree: TreeArrays) -> Array:
    """Parent of each node of the first tree, −1 for the root."""
    inner = np.flatnonzero(~tree.is_leaf)
    left = tree.left[inner]
    found = np.full(tree.nodes.shape[0], -1, dtype=np.int64)
    found[left] = inner
    found[left + 1] = inner
    return found


def collapse_alphas(tree: TreeArrays) -> Array:
    """The alpha at which each node becomes a leaf; −inf where it is one."""
    risk = tree.loss / tree.weight[0]
    return np.asarray(native.weakest_links(tree.left, np.ascontiguousarray(risk)))


def range_of_use(tree: TreeArrays, collapse: Array) -> tuple[Array, Array]:
    """Node t is a leaf of the optimal subtree for low[t] ≤ alpha < high[t] (empty if low ≥ high)."""
    high = np.full(collapse.shape, np.inf)
    inner = np.flatnonzero(~tree.is_leaf)
    left = tree.left
    for t in inner.tolist():  # parents come before their children
        bound = min(high[t], collapse[t])
        high[left[t]] = high[left[t] + 1] = bound
    return collapse, high


def pruning_path(tree: TreeArrays, collapse: Array) -> PruningPath:
    """The sequence of optimal subtrees."""
    low, high = range_of_use(tree, collapse)
    root = float(tree.loss[0] / tree.weight[0])
    steps = np.unique(collapse[np.isfinite(collapse)])
    alphas = [0.0]
    for alpha in steps.tolist():
        if alpha > alphas[-1] * (1 + 1e-9) + 1e-14 * root:  # equal but for rounding
            alphas.append(alpha)
        else:
            alphas[-1] = max(alphas[-1], alpha)
    grid = np.array(alphas)
    used = low < high
    # A node serves from `low` to `high`: differences at both ends, then a running sum.
    first = np.searchsorted(grid, low[used], side="left")
    last = np.searchsorted(grid, high[used], side="left")
    leaves = np.zeros(grid.shape[0] + 1)
    risks = np.zeros(grid.shape[0] + 1)
    share = tree.loss[used] / tree.weight[0]
    np.add.at(leaves, first, 1)
    np.add.at(leaves, last, -1)
    np.add.at(risks, first, share)
    np.add.at(risks, last, -share)
    grid[0] = 0.0
    return PruningPath(grid, np.maximum(np.cumsum(risks)[:-1], 0.0), np.cumsum(leaves)[:-1].astype(np.int64))


def cut(tree: TreeArrays, collapse: Array, alpha: float) -> tuple[TreeArrays, Array]:
    """The optimal subtree at alpha, with its own collapse alphas."""
    leaf, left = tree.is_leaf, tree.left
    reach = alpha * (1 + 1e-12)
    order, depth, children = [0], [0], []
    at = 0
    # Siblings side by side and children behind their parents, as the native code expects; breadth first does
    # both.
    while at < len(order):
        t = order[at]
        if leaf[t] or collapse[t] <= reach:
            children.append(at)
        else:
            children.append(len(order))
            order += [int(left[t]), int(left[t]) + 1]
            depth += [depth[at] + 1] * 2
        at += 1
    kept, child = np.array(order), np.array(children, dtype=np.int64)
    ends = child == np.arange(kept.shape[0])
    nodes = tree.nodes[kept].copy()
    flags = np.where(ends, np.int64(1 << 31), nodes[:, 1] & np.int64(0xFFFFFFFF))
    nodes[:, 1] = (child << 32) | flags
    nodes[:, 0] = np.where(ends, np.array(np.inf).view(np.int64), nodes[:, 0])
    n = np.array([0, kept.shape[0]], dtype=np.int64)
    new = TreeArrays(
        nodes,
        tree.bits,
        n,
        tree.bits_start,
        np.ascontiguousarray(tree.values[kept]),
        tree.loss[kept],
        tree.weight[kept],
        np.array([max(depth)], dtype=np.int32),
        tree.categories,
    )
    return new, np.where(ends, -np.inf, collapse[kept])
