"""What growing leaves: the arrays of fitted trees, and the codes of the categories they know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

import certifit._native.tree as native
from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_x
from certifit.data.missing import is_absent
from certifit.models.tree.columns import (
    categorical_columns,
    column_lists,
    column_name,
    dense,
    is_mixed,
    sort_key,
)
from certifit.names import stored
from certifit.parameters import check_parameters

__all__ = ["Categories", "TreeArrays", "feature_labels", "importances"]

MISSING_LEFT, CATEGORICAL, FEATURE = 1 << 31, 1 << 30, (1 << 30) - 1
SPARSE_ENTRIES = 1 << 20
"""Entries of a sparse matrix that are written out at the same time."""


@stored("TreeArrays")
@dataclass(eq=False)
class TreeArrays:
    """Fitted trees, one after the other; node numbers count from the root of their tree."""

    nodes: Array
    """Two words a node: threshold bits (or place of the categories), and feature with flags and left child.
    """
    bits: Array
    """Sets of categories."""
    start: Array
    """First node of each tree, and the end."""
    bits_start: Array
    values: Array
    """Class probabilities or the prediction, a row for each node; of several targets side by side."""
    loss: Array
    """Weight times impurity of each node."""
    weight: Array
    depth: Array
    categories: Array
    """Number of categories of each feature; 0 for numbers."""

    @cached_property
    def _native(self) -> Any:
        return native.Forest(self.nodes, self.bits, self.start, self.bits_start, self.categories)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_native"}

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.start.shape[0]) - 1

    @property
    def _second(self) -> Array:
        return self.nodes[:, 1].view(np.uint64)

    @property
    def left(self) -> Array:
        """Left child of each node, itself for a leaf; the right child follows."""
        return (self._second >> np.uint64(32)).astype(np.int32)

    @property
    def is_leaf(self) -> Array:
        """Whether each node is a leaf."""
        own = np.arange(self.nodes.shape[0]) - np.repeat(self.start[:-1], np.diff(self.start))
        return np.asarray(self.left == own)

    @property
    def feature(self) -> Array:
        """Feature each inner node asks about; −1 for a leaf."""
        found = (self._second & np.uint64(FEATURE)).astype(np.int32)
        return np.where(self.is_leaf, np.int32(-1), found)

    @property
    def threshold(self) -> Array:
        """Values up to the threshold go left; NaN for leaves and sets of categories."""
        numeric = ~self.is_leaf & ~self.is_categorical
        return np.where(numeric, self.nodes[:, 0].view(np.float64), np.nan)

    @property
    def missing_left(self) -> Array:
        """Whether missing values go left."""
        return np.asarray((self._second & np.uint64(MISSING_LEFT)) != 0)

    @property
    def is_categorical(self) -> Array:
        """Whether a node asks for a set of categories."""
        return np.asarray((self._second & np.uint64(CATEGORICAL)) != 0)

    def left_categories(self, node: int) -> Array:
        """Which category codes go left at a node of the first tree (the last code stands for a missing
        value).
        """
        count = int(self.categories[self.feature[node]]) + 1
        codes = np.arange(count)
        words = self.bits[int(self.nodes[node, 0]) + codes // 64]
        return np.asarray((words >> (codes % 64).astype(np.uint64)) & np.uint64(1)).astype(bool)

    def apply(self, X: Matrix, threads: int) -> Array:
        """Leaf of each row in each tree."""
        return _joined([native.apply(self._native, part, threads) for part in _dense_blocks(X)])

    def predict(self, X: Matrix, threads: int) -> Array:
        """Mean over the trees of the values of the leaves."""
        return _joined([native.predict(self._native, self.values, part, threads) for part in _dense_blocks(X)])

    def out_of_bag(
        self, X: Array, bags: Array, y: Array, classes: Array, weight: Array, threads: int
    ) -> tuple[Array, Array, Array]:
        """Sums over the trees that did not draw a row, their number, and the error after each tree.

        y has a column for each target; `classes` counts the classes of each, and is empty for numbers.
        """
        found = native.out_of_bag(self._native, self.values, X, bags, y, classes, weight, threads)
        return found[0], found[1], found[2]

    def permutation_importance(
        self, X: Array, bags: Array, y: Array, classes: Array, weight: Array, seed: int, threads: int
    ) -> Array:
        """Rise of the error of each tree, on the rows it did not draw, when a feature is permuted: (trees, features)."""
        return np.asarray(
            native.permutation_importance(self._native, self.values, X, bags, y, classes, weight, seed, threads)
        )

    def importance(self) -> Array:
        """Decrease of impurity by the splits on each feature, as shares, averaged over the trees."""
        d = self.categories.shape[0]
        inner = np.flatnonzero(~self.is_leaf)
        tree = np.searchsorted(self.start, inner, side="right") - 1
        left = self.left[inner] + self.start[tree]
        with np.errstate(invalid="ignore"):  # sums of squares beyond all numbers have no shares
            decrease = np.maximum(self.loss[inner] - self.loss[left] - self.loss[left + 1], 0.0)
        flat = np.bincount(tree * d + self.feature[inner], weights=decrease, minlength=self.n_trees * d)
        each = flat.astype(np.float64).reshape(self.n_trees, d)
        total = each.sum(axis=1, keepdims=True)
        shares = np.divide(each, total, out=np.zeros_like(each), where=(total > 0) & (total < np.inf))
        return np.asarray(shares.mean(axis=0))

    def alone(self, k: int) -> TreeArrays:
        """The k-th tree; its arrays are views of these."""
        nodes, bits = (slice(int(start[k]), int(start[k + 1])) for start in (self.start, self.bits_start))
        of_nodes = {name: getattr(self, name)[nodes] for name in ("nodes", "values", "loss", "weight")}
        ends = (np.array([0, part.stop - part.start], dtype=np.int64) for part in (nodes, bits))
        return TreeArrays(
            **of_nodes,
            bits=self.bits[bits],
            start=next(ends),
            bits_start=next(ends),
            depth=self.depth[k : k + 1],
            categories=self.categories,
        )

    def joined(self, other: TreeArrays) -> TreeArrays:
        """These trees, then the other ones."""
        together = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("nodes", "bits", "values", "loss", "weight", "depth")
        }
        start = np.concatenate([self.start, other.start[1:] + self.start[-1]])
        bits_start = np.concatenate([self.bits_start, other.bits_start[1:] + self.bits_start[-1]])
        return TreeArrays(**together, start=start, bits_start=bits_start, categories=self.categories)


def _dense_blocks(X: Matrix) -> Iterator[Array]:
    """All rows at once, or some of a sparse matrix with their zeros written out."""
    if not is_sparse(X):
        yield X
        return
    size = max(1, SPARSE_ENTRIES // X.shape[1])
    for k in range(0, X.shape[0], size):
        yield X[k : k + size].toarray()


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@stored("TreeCategories")
class Categories:
    """Which columns hold categories, and the code of every category seen in training.

    Codes count from 0 in the order of the sorted categories; missing values stay missing; a category that was
    not seen gets −1 and goes, at every split, where most of the training rows went.
    """

    def __init__(self, columns: list[int], levels: dict[int, list[Any]]) -> None:
        self.columns, self.levels = columns, levels

    @property
    def counts(self) -> list[int]:
        """Number of categories of each categorical column."""
        return [len(self.levels[j]) for j in self.columns]

    @classmethod
    def fit(cls, estimator: Any, X: Any, given: Any) -> tuple[Categories, Array]:
        """Categories of the training data, and the table with codes in their place."""
        columns = categorical_columns(X, given)
        mixed = bool(columns) and is_mixed(X)
        if not mixed:
            table = dense(check_x(estimator, X, reset=True, allow_nan=True))
            if columns and max(columns) >= table.shape[1]:
                raise ValueError(
                    f"categorical_features names column {max(columns)}, but X has {table.shape[1]} columns, "
                    "numbered from 0."
                )
            levels = {j: [float(v) for v in np.unique(table[:, j][~np.isnan(table[:, j])])] for j in columns}
            found = cls(columns, levels)
            return found, found._coded_numbers(table, training=True) if columns else table
        check_parameters(estimator)
        lists = column_lists(X)
        levels = {j: sorted({v for v in lists[j] if not is_absent(v)}, key=sort_key) for j in columns}
        found = cls(columns, levels)
        return found, found._coded_mixed(estimator, X, reset=True)

    def coded(self, estimator: Any, X: Any) -> Matrix:
        """New rows with codes, for learners that take these as categories: missing values stay missing, unseen ones are −1."""
        table = self.transform(estimator, X)
        for j, count in zip(self.columns, self.counts, strict=True):
            table[:, j] = np.where(table[:, j] == count, np.nan, table[:, j])
        return table

    def transform(self, estimator: Any, X: Any) -> Matrix:
        """New rows, with codes in the place of categories; sparse rows stay sparse if all columns are numbers."""
        if self.columns and is_mixed(X):
            return np.ascontiguousarray(self._coded_mixed(estimator, X, reset=False))
        table = check_x(estimator, X, reset=False, allow_nan=True)
        if self.columns:
            table = self._coded_numbers(dense(table), training=False)
        return table.tocsr() if is_sparse(table) else np.ascontiguousarray(table)

    def _coded_numbers(self, table: Array, training: bool) -> Array:
        table = np.array(table)  # the user's array stays as it is
        for j in self.columns:
            levels = np.array(self.levels[j], dtype=np.float64)
            if levels.dtype.kind != "f" or (levels.size and isinstance(self.levels[j][0], str)):
                raise ValueError(
                    f"column {j} held text in training and holds numbers now: give the same kind of values."
                )
            column = table[:, j]
            at = np.minimum(np.searchsorted(levels, column), max(levels.size - 1, 0))
            known = levels[at] == column if levels.size else np.zeros(column.shape, dtype=bool)
            missing = np.nan if training else float(levels.size)
            table[:, j] = np.where(np.isnan(column), missing, np.where(known, at, -1))
        return table

    def _coded_mixed(self, estimator: Any, X: Any, reset: bool) -> Array:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        lists = column_lists(X)
        if not lists or not lists[0]:
            raise ValueError(
                "Found array with 0 sample(s) or 0 feature(s): X must have at least one row and one column."
            )
        table = np.empty((len(lists[0]), len(lists)), order="F")
        for j, values in enumerate(lists):
            if j in self.levels:
                code = {level: k for k, level in enumerate(self.levels[j])}
                missing = np.nan if reset else float(len(code))
                table[:, j] = [missing if is_absent(v) else code.get(v, -1) for v in values]
                continue
            try:
                table[:, j] = [np.nan if is_absent(v) else float(v) for v in values]
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {column_name(X, j)} of X is not numeric: list it in categorical_features, or "
                    f"encode it. [{error}]"
                ) from error
            if np.isinf(table[:, j]).any():
                raise ValueError(f"Input X contains infinity in column {column_name(X, j)}: replace infinite values.")
        return table


def importances(rises: Array) -> dict[str, Array]:
    """What permuting a feature costs: mean and deviation over the rows of `rises`, and the rises themselves."""
    return {"importances_mean": rises.mean(axis=0), "importances_std": rises.std(axis=0), "importances": rises.T}


def feature_labels(estimator: Any) -> list[str]:
    """Names of the features, ``x0``, ``x1``, … where they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]
