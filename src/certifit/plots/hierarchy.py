"""Pictures of hierarchies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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
    ax : matplotlib axes, optional
        Where to draw; new ones are made if it is not given.
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
    from scipy.cluster.hierarchy import dendrogram

    check_real("max_leaves", max_leaves, low=2, integer=True)
    Z = np.asarray(getattr(model, "linkage_matrix_", model), dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != 4 or Z.shape[0] < 1:
        raise ValueError(f"a linkage matrix has four columns and a row for each merge; got shape {Z.shape}.")
    n = Z.shape[0] + 1
    if names is not None and len(names) != n:
        raise ValueError(f"names must have one name for each of {n} rows; got {len(names)}.")
    tree = dendrogram(
        Z, p=max_leaves, truncate_mode="lastp" if n > max_leaves else None, no_plot=True,
        labels=None if names is None else [str(name) for name in names],
    )  # fmt: skip
    ax = axes_of(ax)
    lines = [np.column_stack(bracket) for bracket in zip(tree["icoord"], tree["dcoord"], strict=True)]
    ax.add_collection(LineCollection(lines, colors="#4c78a8", linewidths=1.2))
    leaves = len(tree["ivl"])
    ax.set(xlim=(0, 10 * leaves), ylim=(0, 1.05 * float(Z[-1, 2]) or 1.0), ylabel="height")
    ax.set_xticks(5 + 10 * np.arange(leaves), tree["ivl"], rotation=90 if leaves > 8 else 0, fontsize=8)
    k = getattr(model, "n_clusters_", 1)
    if k > 1:
        below = Z[n - k - 1, 2] if n > k else 0.0
        ax.axhline(0.5 * (below + Z[n - k, 2]), color="#999999", lw=0.8, ls="--")
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    return ax
