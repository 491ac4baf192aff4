"""Pictures of hierarchies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.axes import axes_of, drawn
from certifit.data.gate import check_real

__all__ = ["plot_dendrogram"]


@drawn
def plot_dendrogram(model: Any, ax: Any = None, names: Sequence[str] | None = None, max_leaves: int = 40) -> Any:
    """Draw the tree of merges: how high each one stands is how far apart its two clusters were.

    Parameters
    ----------
    model : AgglomerativeClustering, or array of shape (n - 1, 4)
        A fitted hierarchy, or a linkage matrix. A line marks where a model is cut.
    names : sequence of n strings, optional
        What rows are called; their numbers, if it is not given.
    max_leaves : int, default=40
        A larger tree shows its last merges only, with the number of rows below them in brackets.

    Examples
    --------
    >>> from certifit import AgglomerativeClustering
    >>> from certifit.plots import plot_dendrogram
    >>> ax = plot_dendrogram(AgglomerativeClustering().fit([[0.0], [1.0], [5.0]]), names=["a", "b", "c"])
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['c', 'a', 'b']
    """
    from matplotlib.collections import LineCollection

    check_real("max_leaves", max_leaves, low=2, integer=True)
    Z = np.asarray(getattr(model, "linkage_matrix_", model), dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != 4 or Z.shape[0] < 1:
        raise ValueError(f"a linkage matrix has four columns and a row for each merge; got shape {Z.shape}.")
    n = Z.shape[0] + 1
    if names is not None and len(names) != n:
        raise ValueError(f"names must have one name for each of {n} rows; got {len(names)}.")
    leaves, lines = _layout(Z, max(0, n - max_leaves))
    ax = axes_of(ax)
    ax.add_collection(LineCollection(lines, colors="#4c78a8", linewidths=1.2))
    texts = [
        f"({int(Z[leaf - n, 3])})" if leaf >= n else str(leaf) if names is None else str(names[leaf]) for leaf in leaves
    ]
    ax.set(xlim=(0, 10 * len(leaves)), ylim=(0, 1.05 * float(Z[:, 2].max()) or 1.0), ylabel="height")
    ax.set_xticks(5 + 10 * np.arange(len(leaves)), texts, rotation=90 if len(leaves) > 8 else 0, fontsize=8)
    k = getattr(model, "n_clusters_", 1)
    if k > 1:
        below, above = float(Z[: n - k, 2].max(initial=0.0)), float(Z[n - k :, 2].min())
        if below <= above:  # heights along a graph may fall: then no height cuts these clusters
            ax.axhline(0.5 * (below + above), color="#999999", lw=0.8, ls="--")
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    return ax


def _layout(Z: Array, hidden: int) -> tuple[list[int], list[Array]]:
    """Leaves from left to right, 10 apart, and a bracket for each merge but the first `hidden`, as SciPy draws them.

    Without recursion: a chain of merges is as deep as it is long.
    """
    n = Z.shape[0] + 1
    pairs = Z[:, :2].astype(np.int64).tolist()
    leaves, ahead = [], [2 * n - 2]
    while ahead:
        node = ahead.pop()
        if node >= n + hidden:
            ahead += pairs[node - n][::-1]
        else:
            leaves.append(node)
    across, height = np.zeros(2 * n - 1), np.zeros(2 * n - 1)
    across[leaves] = 5.0 + 10.0 * np.arange(len(leaves))
    lines = []
    for t in range(hidden, n - 1):
        left, right = pairs[t]
        height[n + t], across[n + t] = Z[t, 2], 0.5 * (across[left] + across[right])
        x = across[[left, left, right, right]]
        lines.append(np.column_stack([x, [height[left], Z[t, 2], Z[t, 2], height[right]]]))
    return leaves, lines
