"""The questions that a tree may ask, as columns of ranks: a question splits the ranks of one column into low and high ones.

number              its rank; x ≤ t
number, missing     two columns: one in which missing values come first, one in which they come last
category            a column for each category: it or another one; a missing value is one more category
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from certifit._types import Array
from certifit.data.equal_rows import merge_rows
from certifit.models.tree.growing import CATEGORICAL, MISSING_LEFT, Categories, TreeArrays
from certifit.representation.table.binning import equal_weight_bins

__all__ = ["MOST_COLUMNS", "Questions", "Target", "tree_of"]

MOST_COLUMNS = 400
"""Bounds are kept for each pair of columns: more of them would take too much memory."""


class Column(NamedTuple):
    """What a column of ranks asks about."""

    feature: int
    level: int = -1
    """The category, −1 for numbers."""
    missing: str = ""
    """Where missing values of a number are: "first", "last", or nowhere."""


@dataclass(frozen=True)
class Questions:
    """Columns of ranks, shape (n, number of columns), and what each asks about."""

    ranks: Array
    columns: tuple[Column, ...]

    @staticmethod
    def of(X: Array, categories: Categories, weight: Array, max_thresholds: int | None) -> Questions:
        """All questions about the rows; of more than `max_thresholds` of a number, those that part the weight evenly."""
        columns: list[Column] = []
        ranks: list[Array] = []
        for j in range(X.shape[1]):
            x, known = X[:, j], ~np.isnan(X[:, j])
            if j in categories.levels:
                code = np.where(known, x, len(categories.levels[j])).astype(np.intp)
                seen = np.unique(code)
                for level in seen if len(seen) > 2 else seen[:1]:
                    columns.append(Column(j, int(level)))
                    ranks.append(code != level)
                continue
            rank = np.zeros(x.shape, dtype=np.intp)
            if known.any():
                most = np.inf if max_thresholds is None else max_thresholds + 1
                rank[known] = equal_weight_bins(x[known], weight[known], most)
            if known.all():
                columns.append(Column(j))
                ranks.append(rank)
                continue
            columns += [Column(j, missing="last"), Column(j, missing="first")]
            ranks += [np.where(known, rank, rank.max() + 1), np.where(known, rank + 1, 0)]
        if len(columns) > MOST_COLUMNS:
            raise ValueError(
                f"the best tree is sought in at most {MOST_COLUMNS} columns (a category counts as one); X has "
                f"{len(columns)}: select columns first, for example with SelectBest."
            )
        table = np.empty((X.shape[0], len(columns)), dtype=np.uint32, order="F")
        for j, values in enumerate(ranks):
            # A column of categories or of missing values only may leave ranks out.
            table[:, j] = np.unique(values, return_inverse=True)[1]
        return Questions(table, tuple(columns))

    def merged(self, y: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Ranks, target and weight of the distinct rows: of trees that are equally good, the same is found for every order of the
        rows, and for a row of weight 2 and the row twice.
        """
        ranks, y, weight = merge_rows(self.ranks.astype(np.float64), y, weight)
        return np.asfortranarray(ranks, dtype=np.uint32), y, weight


@dataclass(frozen=True)
class Target:
    """What the rows of a node say: sums of `parts`, shape (n, k), and from them values, loss and weight."""

    parts: Array
    classes: bool

    def values(self, total: Array) -> Array:
        """Shares of the classes, or the mean."""
        return total / total.sum() if self.classes else total[1:2] / total[0]

    def loss(self, rows: Array) -> float:
        """Weight of wrong labels, or sum of squares around the mean."""
        total = self.parts[rows].sum(axis=0)
        if self.classes:
            return float(total.sum() - total.max())
        weight, y = self.parts[rows, 0], self.parts[rows, 1] / self.parts[rows, 0]
        return float(weight @ (y - total[1] / total[0]) ** 2)

    def weight(self, total: Array) -> float:
        """Of the rows."""
        return float(total.sum() if self.classes else total[0])


class _Place(NamedTuple):
    node: int
    question: int
    rows: Array
    depth: int


def tree_of(
    feature: Array, cut: Array, questions: Questions, X: Array, categories: Categories, target: Target
) -> TreeArrays:
    """The tree of the questions found, as every tree is kept; a threshold is the middle between the rows of its node."""
    nodes: list[tuple[int, int]] = []
    bits: list[int] = []
    values, loss, weight, deepest = [], [], [], 0
    waiting = [_Place(0, 0, np.arange(X.shape[0]), 0)]
    for place in _breadth_first(waiting):
        total = target.parts[place.rows].sum(axis=0)
        values.append(target.values(total))
        loss.append(target.loss(place.rows))
        weight.append(target.weight(total))
        deepest = max(deepest, place.depth)
        asked = int(feature[place.question]) if place.question < feature.shape[0] else -1
        if asked < 0:
            nodes.append((np.array(np.inf).view(np.int64).item(), (place.node << 32) | MISSING_LEFT))
            continue
        first, flags, yes = _node(questions, asked, int(cut[place.question]), X, categories, place.rows, bits)
        left = place.node + len(waiting) + 1
        nodes.append((first, (left << 32) | flags))
        swapped = int(not yes.aligned)
        for side, rows in enumerate((place.rows[yes.left], place.rows[~yes.left])):
            follow = 2 * place.question + 1 + (side ^ swapped)
            waiting.append(_Place(left + side, follow, rows, place.depth + 1))
    counts = np.zeros(X.shape[1], dtype=np.uint32)
    counts[categories.columns] = categories.counts
    return TreeArrays(
        np.array(nodes, dtype=np.int64),
        np.array(bits, dtype=np.uint64),
        np.array([0, len(nodes)], dtype=np.int64),
        np.array([0, len(bits)], dtype=np.int64),
        np.ascontiguousarray(np.stack(values)),
        np.array(loss),
        np.array(weight),
        np.array([deepest], dtype=np.int32),
        counts,
    )


def _breadth_first(waiting: list[_Place]) -> Iterator[_Place]:
    while waiting:
        yield waiting.pop(0)


class _Answer(NamedTuple):
    left: Array
    """Which rows of the node go left."""
    aligned: bool
    """Whether left is "yes" of the question as it was searched for."""


def _node(
    questions: Questions, asked: int, cut: int, X: Array, categories: Categories, rows: Array, bits: list[int]
) -> tuple[int, int, _Answer]:
    """The two words of an inner node, without its child, and the answers of its rows."""
    column = questions.columns[asked]
    yes = questions.ranks[rows, asked] <= cut
    majority = MISSING_LEFT if yes.sum() >= (~yes).sum() else 0
    x = X[rows, column.feature]
    if column.level >= 0:
        words = [0] * (len(categories.levels[column.feature]) // 64 + 1)
        words[column.level // 64] = 1 << (column.level % 64)
        first = len(bits)
        bits += words
        return first, column.feature | CATEGORICAL | majority, _Answer(yes, True)
    known = ~np.isnan(x)
    if not (yes & known).any() or not (~yes & known).any():  # known on one side, missing on the other
        return np.array(np.inf).view(np.int64).item(), column.feature, _Answer(known, bool((yes == known).all()))
    below, above = float(x[yes & known].max()), float(x[~yes & known].min())
    middle = 0.5 * below + 0.5 * above
    threshold = middle if below <= middle < above else below
    # Where the node saw no missing value, they go to the larger side.
    missing = majority if known.all() else MISSING_LEFT if column.missing == "first" else 0
    return np.array(threshold).view(np.int64).item(), column.feature | missing, _Answer(yes, True)
