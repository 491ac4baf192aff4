"""A fitted tree as ``tree_`` shows it: scikit-learn's arrays, nodes numbered in the order of a walk that goes left first."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.models.tree.growing import TreeArrays

__all__ = ["TreeView"]

LEAF, NOTHING = -1, -2


class TreeView:
    """The public attributes of scikit-learn's ``Tree``.

    Parameters
    ----------
    tree : TreeArrays
        One tree.
    model : estimator
        Our model, which walks the rows down.
    counted : array of shape (n_nodes,), optional
        Rows of each node of `tree`, where they have weights.
    """

    def __init__(self, tree: TreeArrays, model: Any, counted: Array | None = None) -> None:
        count = tree.nodes.shape[0]
        left, leaf = tree.left.astype(np.int64), tree.is_leaf
        size = np.ones(count, dtype=np.int64)
        for node in range(count - 1, -1, -1):  # children come after their parents
            if not leaf[node]:
                size[node] += size[left[node]] + size[left[node] + 1]
        place = np.zeros(count, dtype=np.int64)
        for node in range(count):
            if not leaf[node]:
                place[left[node]] = place[node] + 1
                place[left[node] + 1] = place[node] + 1 + size[left[node]]
        order = np.argsort(place)
        inner = ~leaf[order]
        self._place, self._model = place, model
        self.node_count = self.capacity = count
        self.max_depth = int(tree.depth[0])
        self.n_leaves = int(leaf.sum())
        self.n_features = int(model.n_features_in_)
        self.n_outputs, counts = model.n_outputs_, model._class_counts
        self.n_classes = counts.astype(np.intp) if counts.size else np.ones(self.n_outputs, dtype=np.intp)
        self.max_n_classes = int(self.n_classes.max())
        self.children_left = np.where(inner, place[np.where(leaf, 0, left)][order], LEAF)
        self.children_right = np.where(inner, place[np.where(leaf, 0, left + 1)][order], LEAF)
        self.feature = np.where(inner, tree.feature[order], NOTHING).astype(np.int64)
        self.threshold = np.where(inner, tree.threshold[order], float(NOTHING))
        self.missing_go_to_left = np.where(inner, tree.missing_left[order], False).astype(np.uint8)
        self.value = np.zeros((count, self.n_outputs, self.max_n_classes))
        for k, part in enumerate(np.split(tree.values[order], np.cumsum(self.n_classes)[:-1], axis=1)):
            self.value[:, k, : part.shape[1]] = part
        self.weighted_n_node_samples = np.asarray(tree.weight[order], dtype=np.float64)
        # Without weights, the weight of a node is the number of its rows.
        rows = self.weighted_n_node_samples if counted is None else counted[order]
        self.n_node_samples = np.rint(rows).astype(np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            self.impurity = np.asarray(tree.loss[order] / self.weighted_n_node_samples)

    def apply(self, X: Any) -> Array:
        """Number of the leaf of each row."""
        return np.asarray(self._place[self._model.apply(X)])

    def decision_path(self, X: Any) -> Any:
        """Which nodes each row visits, a sparse matrix."""
        path = self._model.decision_path(X).tocoo()
        return type(path)((path.data, (path.row, self._place[path.col])), shape=path.shape).tocsr()

    def predict(self, X: Any) -> Array:
        """Value of the leaf of each row."""
        said = self.value[self.apply(X)]
        return said[:, 0] if self.n_outputs == 1 else said

    def compute_feature_importances(self, normalize: bool = True) -> Array:
        """Share of each feature in the decrease of impurity."""
        drop = np.zeros(self.n_features)
        lost = self.weighted_n_node_samples * self.impurity
        inner = np.flatnonzero(self.children_left >= 0)
        gain = lost[inner] - lost[self.children_left[inner]] - lost[self.children_right[inner]]
        np.add.at(drop, self.feature[inner], gain / self.weighted_n_node_samples[0])
        total = drop.sum()
        return np.asarray(drop / total if normalize and total > 0 else drop)
