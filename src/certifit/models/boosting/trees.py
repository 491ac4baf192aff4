"""The trees of a boosted model: printable one by one, and packed for prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import certifit._native.boosting as native
from certifit._types import Array, Matrix, is_sparse
from certifit.names import stored
from certifit.representation.table.binning import Binner

__all__ = ["Tree", "TreeSum"]

SPARSE_ENTRIES = 1 << 20
"""Entries of a sparse matrix that are written out at the same time."""


@stored("BoostedTree")
@dataclass(frozen=True, eq=False)
class Tree:
    """One tree: arrays over its nodes, the root first, children after their parent."""

    feature: Array
    """Column on which a node splits; −1 for leaves."""
    threshold: Array
    """Rows with x ≤ threshold go left; NaN for leaves and categorical nodes."""
    bin: Array
    """The same threshold as a bin, uint8."""
    missing_left: Array
    """Whether missing values go left."""
    left: Array
    right: Array
    """Children; −1 for leaves."""
    categories: dict[int, Array]
    """Categorical node → the categories that go left."""
    value: Array
    """What a leaf adds to the score, learning rate included."""
    gain: Array
    """By how much a split lowers the quadratic model of the weighted total loss."""
    count: Array
    """Weight of the rows of a node."""
    sets: Array
    """Four words, uint64, of bins that go left for each categorical node, numbered by `category`."""
    category: Array
    """Number of the node's set; −1 where there is none."""

    @classmethod
    def of(cls, grown: dict[str, Any], binner: Binner, rules: tuple[Array, ...], step: float) -> Tree:
        """From what the native grower returns; `rules` are the binner's tables, `step` scales the values."""
        feature = grown["feature"]
        threshold = np.full(feature.shape, np.nan)
        categories: dict[int, Array] = {}
        inner = feature >= 0
        offsets, values, _, categorical, missing = rules
        chosen = np.flatnonzero(inner if not categorical.any() else inner & (categorical[feature] == 0))
        j, k = feature[chosen], grown["bin"][chosen]
        # The bin after the last edge: values against missing values.
        edged = k + 1 < missing[j]
        threshold[chosen] = np.inf
        threshold[chosen[edged]] = values[offsets[j[edged]] + k[edged]]
        for v in np.flatnonzero(grown["category"] >= 0):
            known = binner.categories_[int(feature[v])]
            assert known is not None
            words = grown["sets"][4 * grown["category"][v] :][:4]
            inside = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
            categories[int(v)] = known[inside[: known.shape[0]]]
        return cls(
            feature=feature,
            threshold=threshold,
            bin=grown["bin"],
            missing_left=grown["missing_left"].astype(bool),
            left=grown["left"],
            right=grown["right"],
            categories=categories,
            value=np.where(inner, 0.0, step * grown["value"]),
            gain=grown["gain"],
            count=grown["count"],
            sets=grown["sets"],
            category=grown["category"],
        )

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int((self.feature < 0).sum())

    def rules(self, names: Sequence[str] | None = None, labels: dict[int, Array] | None = None) -> str:
        """The tree as indented text.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the columns; x0, x1, … without.
        labels : dict, optional
            For columns of text, the label of each category number.
        """
        lines: list[str] = []

        def condition(v: int) -> str:
            j = int(self.feature[v])
            name = names[j] if names is not None else f"x{j}"
            missing = " or missing" if self.missing_left[v] else ""
            if v not in self.categories:
                threshold = self.threshold[v]
                return f"{name} is known" if np.isinf(threshold) else f"{name} <= {threshold:.6g}{missing}"
            members = self.categories[v]
            if labels is not None and j in labels:
                shown = [str(labels[j][int(c)]) for c in members]
            else:
                shown = [f"{c:g}" for c in members]
            return f"{name} in {{{', '.join(shown)}}}{missing}"

        stack = [(0, 0, "")]
        while stack:
            v, depth, prefix = stack.pop()
            indent = "  " * depth + prefix
            if self.feature[v] < 0:
                lines.append(f"{indent}{self.value[v]:+.6g}  (weight {self.count[v]:g})")
                continue
            lines.append(f"{indent}if {condition(v)}:  (gain {self.gain[v]:.4g}, weight {self.count[v]:g})")
            stack.append((int(self.right[v]), depth + 1, "else: "))
            stack.append((int(self.left[v]), depth + 1, "then: "))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.rules()


@stored("BoostedTreeSum")
class TreeSum:
    """start + Σ of trees, evaluated by native code; tree t adds to output t mod K."""

    def __init__(self, trees: Sequence[Tree], binner: Binner, start: Array) -> None:
        def joined(name: str, dtype: Any) -> Array:
            parts = [np.asarray(getattr(tree, name), dtype=dtype) for tree in trees]
            return np.concatenate([np.empty(0, dtype=dtype), *parts])

        self.start = np.asarray(start, dtype=np.float64)
        self.tables = binner.tables()
        sizes = np.array([tree.feature.shape[0] for tree in trees], dtype=np.int64)
        sets = np.array([tree.sets.shape[0] // 4 for tree in trees], dtype=np.int64)
        category = joined("category", np.int32)
        before = np.repeat(np.cumsum(sets) - sets, sizes) if len(trees) else np.empty(0, dtype=np.int64)
        self._arrays = (
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            joined("feature", np.int32),
            joined("left", np.int32),
            joined("right", np.int32),
            np.where(category >= 0, category + before, -1).astype(np.int32),
            joined("bin", np.uint8),
            joined("missing_left", np.uint8),
            joined("value", np.float64),
            joined("sets", np.uint64),
            self.tables[-1],
            int(self.start.shape[0]),
        )
        self._native: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None}  # rebuilt on first use

    @property
    def native(self) -> Any:
        """The checked native view of the arrays."""
        if self._native is None:
            self._native = native.Forest(*self._arrays)
        return self._native

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self._arrays[0].shape[0]) - 1

    def scores(self, X: Matrix, n_threads: int) -> Array:
        """Raw scores of shape (n, K), float64. Sparse rows are written out some at a time."""
        out = np.tile(self.start, X.shape[0])
        if not is_sparse(X):
            self.native.predict(X, *self.tables, 0, self.n_trees, out, n_threads)
            return out.reshape(X.shape[0], -1)
        rows, width = X.tocsr(), self.start.shape[0]
        size = max(1, SPARSE_ENTRIES // X.shape[1])
        for k in range(0, X.shape[0], size):
            part = out[k * width : (k + size) * width]
            self.native.predict(rows[k : k + size].toarray(), *self.tables, 0, self.n_trees, part, n_threads)
        return out.reshape(X.shape[0], -1)

    def add(self, bins: Array, out: Array, first: int, last: int, n_threads: int) -> None:
        """Add trees first … last − 1 to flat scores of rows already binned."""
        self.native.predict_bins(bins, first, last, out, n_threads)

    def leaves(self, bins: Array, n_threads: int) -> Array:
        """Node in which each row ends, shape (n, trees)."""
        out = np.empty(bins.shape[0] * self.n_trees, dtype=np.int32)
        self.native.apply(bins, out, n_threads)
        return out.reshape(bins.shape[0], self.n_trees)
