"""Trees, forests and boosted trees as one TreeEnsemble operator.

Numeric questions are x ≤ threshold in double precision, so that every row takes the path it takes in Certifit.
A column of categories becomes a column of numbers first (0: not seen in training, 1 … L: the category, L + 1:
missing), and its questions ask for membership in a set of these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.models.boosting.base import BaseBoosting
from certifit.models.forest.model import BaseForest
from certifit.models.tree.growing import TreeArrays
from certifit.models.tree.model import BaseTree
from certifit.models.tree.outputs import class_lists
from certifit.onnx.answers import Answer, classified, flat
from certifit.onnx.errors import NotExportableError
from certifit.onnx.graph import Graph
from certifit.onnx.linear import link

__all__ = ["EXPORTERS", "export_boosting", "export_trees", "text_columns"]

LESS_OR_EQUAL, MEMBER = 0, 6


@dataclass(frozen=True)
class Splits:
    """The questions of many trees; node numbers run through all trees."""

    width: int
    """Columns of the table."""
    start: Array
    """First node of each tree, and the end."""
    feature: Array
    """−1 for leaves."""
    threshold: Array
    missing_left: Array
    left: Array
    right: Array
    sets: dict[int, Array] = field(default_factory=dict)
    """Categorical node → whether each number of the coded column goes left."""
    levels: dict[int, Array] = field(default_factory=dict)
    """Categorical column → its categories."""

    @property
    def leaf(self) -> Array:
        """Which nodes are leaves."""
        return np.asarray(self.feature < 0)

    @property
    def tree(self) -> Array:
        """The tree of each node."""
        return np.repeat(np.arange(self.start.shape[0] - 1), np.diff(self.start))


def text_columns(model: Any) -> dict[int, tuple[list[str], float]]:
    """Columns whose categories are text, with their labels and the code of a label that was not seen in training."""
    if isinstance(model, BaseBoosting):
        return {j: ([str(label) for label in labels], np.nan) for j, labels in model._labels.items()}
    found = {}
    for j, levels in getattr(getattr(model, "_categories", None), "levels", {}).items():
        if any(isinstance(level, str) for level in levels):
            if not all(isinstance(level, str) for level in levels):
                raise NotExportableError(f"column {j} has both text and numbers as categories; ONNX takes one of them.")
            found[j] = (list(levels), -1.0)
    return found


def export_trees(graph: Graph, table: str, model: Any) -> Answer:
    """A decision tree or a random forest: the mean of the values of the leaves."""
    arrays: TreeArrays = model._tree if hasattr(model, "_tree") else model._trees
    splits = _splits_of_arrays(arrays, model._categories.levels)
    T = arrays.n_trees
    if arrays.values.shape[1] == 1 and not hasattr(model, "classes_"):
        total = _walk(graph, table, splits, np.zeros(T, dtype=np.int64), arrays.values[:, 0], 1)
        return Answer(value=flat(graph, graph.add("Div", total, graph.constant(float(T)))))
    # A leaf has one number in ONNX: here the number of its row of values.
    number = np.cumsum(splits.leaf) - 1.0
    leaves = graph.cast(_walk(graph, table, splits, np.arange(T), number, T), "INT64")
    shares = graph.add("Gather", graph.constant(arrays.values[splits.leaf], "values"), leaves, axis=0)
    mean = graph.add("ReduceMean", shares, graph.constant(np.array([1])), keepdims=0)
    if not hasattr(model, "classes_"):
        return Answer(value=mean, width=model.n_outputs_)
    answers, first = [], 0
    for classes in class_lists(model.classes_):
        own = graph.constant(np.arange(first, first + classes.shape[0]))
        part = graph.add("Gather", mean, own, axis=1) if isinstance(model.classes_, list) else mean
        index = graph.add("ArgMax", part, axis=1, keepdims=0)
        answers.append(Answer(index=index, probabilities=part, classes=classes))
        first += classes.shape[0]
    return Answer(targets=tuple(answers)) if isinstance(model.classes_, list) else answers[0]


def export_boosting(graph: Graph, table: str, model: Any) -> Answer:
    """Boosted trees: start plus the sum of the leaves, then the link of the loss."""
    outputs = model.start_.shape[0]
    if model.trees_:
        splits, values = _splits_of_trees(model)
        total = _walk(graph, table, splits, np.arange(len(model.trees_)) % outputs, values, outputs)
    else:  # stopped before the first tree
        total = graph.add("MatMul", graph.zeros(table), graph.constant(np.zeros((1, outputs))))
    scores = graph.add("Add", total, graph.constant(model.start_[None, :], "start"))
    if not hasattr(model, "classes_"):
        return Answer(value=link(graph, flat(graph, scores), model._loss))
    return classified(graph, scores, model.classes_, _probabilities(graph, scores, model))


def _probabilities(graph: Graph, scores: str, model: Any) -> str | None:
    K = model.classes_.shape[0]
    if not hasattr(model, "predict_proba"):
        return None
    if K > 2:
        return graph.add("Softmax", scores, axis=1)
    if K == 1:
        return graph.add("Add", graph.zeros(scores), graph.constant(1.0))
    positive = link(graph, scores, model._loss)
    return graph.add("Concat", graph.add("Sub", graph.constant(1.0), positive), positive, axis=1)


def _splits_of_arrays(arrays: TreeArrays, levels: dict[int, list[Any]]) -> Splits:
    tree = np.repeat(np.arange(arrays.n_trees), np.diff(arrays.start))
    left = arrays.left.astype(np.int64) + arrays.start[tree]
    feature, missing_left = arrays.feature, arrays.missing_left
    sets: dict[int, Array] = {}
    for node in np.flatnonzero(arrays.is_categorical & (feature >= 0)):
        count = int(arrays.categories[feature[node]])
        codes = np.arange(count + 1)
        words = arrays.bits[arrays.bits_start[tree[node]] + int(arrays.nodes[node, 0]) + codes // 64]
        goes = ((words >> (codes % 64).astype(np.uint64)) & np.uint64(1)).astype(bool)
        sets[int(node)] = np.concatenate([[missing_left[node]], goes])  # the last code stands for a missing value
    coded = {j: _level_values(values) for j, values in levels.items()}
    return Splits(
        int(arrays.categories.shape[0]),
        arrays.start,
        feature,
        arrays.threshold,
        missing_left,
        left,
        left + 1,
        sets,
        coded,
    )


def _level_values(levels: list[Any]) -> Array:
    """Categories as numbers; text was numbered at the input."""
    if any(isinstance(level, str) for level in levels):
        return np.arange(len(levels), dtype=np.float64)
    try:
        return np.array(levels, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NotExportableError(
            f"categories such as {levels[0]!r} cannot be exported to ONNX: use text or numbers."
        ) from error


def _splits_of_trees(model: Any) -> tuple[Splits, Array]:
    trees, binner = model.trees_, model._binner
    start = np.concatenate([[0], np.cumsum([tree.feature.shape[0] for tree in trees])]).astype(np.int64)

    def joined(name: str) -> Array:
        return np.concatenate([getattr(tree, name) for tree in trees])

    sets: dict[int, Array] = {}
    for tree, first in zip(trees, start[:-1], strict=True):
        for node in np.flatnonzero(tree.category >= 0):
            bins = int(binner.n_bins_[tree.feature[node]])
            words = tree.sets[4 * tree.category[node] :][:4]
            inside = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
            # Categories that were not seen share the bin of missing values.
            sets[int(first + node)] = np.concatenate([[inside[bins]], inside[:bins], [inside[bins]]])
    levels = {j: values for j, values in enumerate(binner.categories_) if values is not None}
    shift = np.repeat(start[:-1], np.diff(start))
    splits = Splits(
        model.n_features_in_,
        start,
        joined("feature"),
        joined("threshold"),
        joined("missing_left"),
        joined("left") + shift,
        joined("right") + shift,
        sets,
        levels,
    )
    return splits, joined("value")


def _walk(graph: Graph, table: str, splits: Splits, target: Array, value: Array, n_targets: int) -> str:
    """Sum over the trees of the value of the leaf of each row; tree t adds to target[t]. Shape (rows, n_targets)."""
    table, place = _with_codes(graph, table, splits)
    leaf, tree = splits.leaf, splits.tree
    inner = np.flatnonzero(~leaf)
    number = np.where(leaf, np.cumsum(leaf) - 1, np.cumsum(~leaf) - 1)
    feature, threshold = splits.feature[inner].astype(np.int64), splits.threshold[inner].copy()
    missing = splits.missing_left[inner].astype(np.int64)
    mode = np.full(inner.shape[0], LESS_OR_EQUAL, dtype=np.uint8)
    members: list[float] = []
    for k, node in enumerate(inner):
        goes = splits.sets.get(int(node))
        if goes is None:
            continue
        feature[k], missing[k] = place[int(feature[k])], 0
        chosen = np.flatnonzero(goes)
        if chosen.size:
            mode[k], threshold[k] = MEMBER, 0.0
            members += [*chosen.astype(float).tolist(), np.nan]
        else:
            threshold[k] = -1.0  # no number of a category is so small: all go right
    yes, no = splits.left[inner], splits.right[inner]
    # A tree that is a leaf only: ONNX wants a question, and both answers lead to that leaf.
    alone = splits.start[:-1][leaf[splits.start[:-1]]]
    roots = number[splits.start[:-1]].copy()
    roots[leaf[splits.start[:-1]]] = inner.shape[0] + np.arange(alone.shape[0])
    extra = np.zeros(alone.shape[0])

    def with_lonely(values: Array, more: Array) -> list[int]:
        return [int(v) for v in np.concatenate([values, more])]

    ones = extra + 1
    attributes: dict[str, Any] = {
        "nodes_featureids": with_lonely(feature, extra),
        "nodes_truenodeids": with_lonely(number[yes], number[alone]),
        "nodes_falsenodeids": with_lonely(number[no], number[alone]),
        "nodes_trueleafs": with_lonely(leaf[yes], ones),
        "nodes_falseleafs": with_lonely(leaf[no], ones),
        "nodes_missing_value_tracks_true": with_lonely(missing, extra),
        "nodes_splits": graph.tensor(np.concatenate([threshold, extra]), "splits"),
        "nodes_modes": graph.tensor(np.concatenate([mode, extra.astype(np.uint8)]), "modes"),
        "leaf_targetids": [int(t) for t in target[tree[leaf]]],
        "leaf_weights": graph.tensor(value[leaf].astype(np.float64), "weights"),
        "tree_roots": [int(root) for root in roots],
    }
    if members:
        attributes["membership_values"] = graph.tensor(np.array(members), "members")
    return graph.add(
        "TreeEnsemble",
        table,
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function=1,
        post_transform=0,
        **attributes,
    )


def _with_codes(graph: Graph, table: str, splits: Splits) -> tuple[str, dict[int, int]]:
    """The table with a coded column behind it for each column of categories, and where these columns are."""
    used = sorted({int(splits.feature[node]) for node in splits.sets})
    if not used:
        return table, {}
    columns = []
    for j in used:
        levels = splits.levels[j]
        column = graph.column(table, j)
        hits = graph.cast(graph.add("Equal", column, graph.constant(levels[None, :], "levels")), "DOUBLE")
        code = graph.add("MatMul", hits, graph.constant(np.arange(1.0, levels.shape[0] + 1)[:, None]))
        columns.append(graph.add("Where", graph.add("IsNaN", column), graph.constant(float(levels.shape[0] + 1)), code))
    return graph.add("Concat", table, *columns, axis=1), {j: splits.width + k for k, j in enumerate(used)}


EXPORTERS = {(BaseTree, BaseForest): export_trees, (BaseBoosting,): export_boosting}
"""Classes of models and the function that writes them."""
