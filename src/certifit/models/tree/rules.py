"""A tree in words: questions, rules, and what each leaf says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import stats

from certifit.models.tree.growing import TreeArrays
from certifit.names import record

__all__ = ["LeafInterval", "Words", "leaf_intervals", "renamed", "rule_text"]

SHOWN = 6
"""Categories listed before the rest are counted."""


@record("LeafInterval")
class LeafInterval:
    """What a leaf says and how sure it is.

    Parameters
    ----------
    leaf : int
        Number of the leaf, as given by `apply`.
    count : float
        Training rows, counted by weight.
    value : object
        The predicted class, or the predicted number.
    estimate : float
        Share of that class among the rows of the leaf, or the predicted number.
    low, high : float
        Confidence interval of the estimate.
    """

    leaf: int
    count: float
    value: Any
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Words:
    """What features, classes and categories are called."""

    features: Sequence[str]
    classes: Sequence[Any] | None = None
    """Names of the classes of each target; None for numbers."""
    categories: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    missing: Collection[int] = ()
    """Features in which values were missing in training."""

    def questions(self, tree: TreeArrays, node: int, precision: int) -> tuple[str, str]:
        """What holds on the left and on the right of an inner node of the first tree."""
        j = int(tree.feature[node])
        name = self.features[j]
        missing = " or missing" if j in self.missing else ""
        to_left, to_right = (missing, "") if tree.missing_left[node] else ("", missing)
        if tree.is_categorical[node]:
            goes = tree.left_categories(node)
            sides = ([v for v, g in zip(self.categories[j], goes, strict=False) if g == side] for side in (True, False))
            left, right = (_listed(side) for side in sides)
            return f"{name} in {left}{to_left}", f"{name} in {right}{to_right}"
        threshold = float(tree.threshold[node])
        if np.isinf(threshold):
            return f"{name} known", f"{name} missing"
        return f"{name} <= {threshold:.{precision}g}{to_left}", f"{name} > {threshold:.{precision}g}{to_right}"

    def prediction(self, tree: TreeArrays, node: int, precision: int) -> str:
        """What a node of the first tree predicts, and its rows."""
        weight = float(tree.weight[node])
        count = f"{weight:.{max(precision, 6)}g} row{'' if weight == 1 else 's'}"
        values = tree.values[node]
        if self.classes is None:
            return f"{', '.join(f'{value:.{precision}g}' for value in values)} ({count})"
        said, shares, at = [], [], 0
        for names in self.classes:
            part = values[at : at + len(names)]
            best, at = int(np.argmax(part)), at + len(names)
            said.append(str(names[best]))
            shares.append(f"{100 * part[best]:.0f}%")
        return f"{', '.join(said)} ({', '.join([count, *shares])})"


def renamed(words: Words, feature_names: Any, class_names: Any, category_names: Any) -> Words:
    """The words of a model, with those a user gives in their place."""
    if feature_names is not None:
        words = replace(words, features=_as_many(feature_names, len(words.features), "feature_names", "features"))
    if class_names is not None:
        if words.classes is None:
            raise ValueError("class_names are for classes: this tree predicts numbers.")
        given = [*class_names] if len(words.classes) > 1 else [class_names]
        if len(given) != len(words.classes):
            raise ValueError(
                f"class_names must hold the names of each of the {len(words.classes)} targets; got {len(given)}."
            )
        named = [
            _as_many(names, len(known), "class_names", "classes")
            for names, known in zip(given, words.classes, strict=True)
        ]
        words = replace(words, classes=named)
    if category_names is not None:
        names = dict(words.categories)
        for key, given in dict(category_names).items():
            j = words.features.index(key) if key in words.features else key
            if j not in names:
                raise ValueError(f"category_names has {key!r}, which is not a categorical feature of this tree.")
            names[j] = _as_many(given, len(names[j]), f"category_names[{key!r}]", "categories")
        words = replace(words, categories=names)
    return words


def _as_many(given: Any, count: int, name: str, of: str) -> list[str]:
    names = [str(each) for each in given]
    if len(names) != count:
        raise ValueError(f"{name} must name all {count} {of}, in their order; got {len(names)} names.")
    return names


def _listed(values: list[Any]) -> str:
    shown = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values[:SHOWN])
    return "{" + shown + (f", … {len(values) - SHOWN} more" if len(values) > SHOWN else "") + "}"


def rule_text(tree: TreeArrays, words: Words, precision: int, max_depth: int | None) -> str:
    """The first tree, one line a branch, indented by depth."""
    leaf, left = tree.is_leaf, tree.left
    if leaf[0]:
        return f"always: {words.prediction(tree, 0, precision)}"
    lines: list[str] = []
    stack = [(0, 0, "")]
    while stack:
        node, depth, text = stack.pop()
        indent = "|   " * max(depth - 1, 0)
        hidden = max_depth is not None and depth >= max_depth
        if leaf[node] or hidden:
            more = "" if leaf[node] else " …"
            lines.append(f"{indent}{text}: {words.prediction(tree, node, precision)}{more}")
            continue
        if text:
            lines.append(f"{indent}{text}")
        yes, no = words.questions(tree, node, precision)
        stack.append((int(left[node]) + 1, depth + 1, no))
        stack.append((int(left[node]), depth + 1, yes))
    return "\n".join(lines)


def leaf_intervals(model: Any, level: float) -> list[LeafInterval]:
    """One entry for each leaf, in the order of their numbers."""
    tree = model._tree
    found = []
    for node in np.flatnonzero(tree.is_leaf).tolist():
        count, values = float(tree.weight[node]), tree.values[node]
        tail = 0.5 * (1 - level)
        if hasattr(model, "classes_"):
            best = int(np.argmax(values))
            share = float(values[best])
            hits, misses = share * count, (1 - share) * count
            low = float(stats.beta.ppf(tail, hits, misses + 1)) if hits > 0 else 0.0
            high = float(stats.beta.ppf(1 - tail, hits + 1, misses)) if misses > 1e-12 * count else 1.0
            found.append(LeafInterval(node, count, model.classes_[best], share, low, high))
            continue
        value = float(values[0])
        if count > 1 and model.criterion != "absolute":
            spread = (
                float(tree.loss[node]) / (count - 1) if model.criterion == "squared" else value * count / (count - 1)
            )
            half = float(stats.t.ppf(1 - tail, count - 1)) * np.sqrt(spread / count)
        else:  # one row says nothing about spread, and a mean distance gives no variance
            half = np.inf
        found.append(LeafInterval(node, count, value, value, value - half, value + half))
    return found
