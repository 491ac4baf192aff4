"""From arrays to grown trees: categories, fixed-point statistics, growth options, and the arrays of fitted
trees.

Weights and targets enter the native code in fixed point: scaled by a power of two and rounded to integers
whose sums are exact in double precision. So the worth of a split does not depend on the order of the rows,
and a row of weight 2 is two rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

import certifit._native.tree as native
from certifit._types import Array
from certifit.validation import check_choice, check_real, check_x

__all__ = [
    "Categories",
    "Growth",
    "TreeArrays",
    "encode",
    "feature_labels",
    "grow",
    "target_of_classes",
    "target_of_numbers",
]

EMPTY = np.empty(0)
MISSING_LEFT, CATEGORICAL, FEATURE = 1 << 31, 1 << 30, (1 << 30) - 1
SERIAL = 20_000
"""Below this number of entries of X one thread is faster than two."""
SERIAL_WALKS = 100_000
"""The same for prediction: rows times trees."""


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
    """Class probabilities or the prediction, a row for each node."""
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

    def apply(self, X: Array, threads: int) -> Array:
        """Leaf of each row in each tree."""
        return np.asarray(native.apply(self._native, X, threads))

    def predict(self, X: Array, threads: int) -> Array:
        """Mean over the trees of the values of the leaves."""
        return np.asarray(native.predict(self._native, self.values, X, threads))

    def importance(self) -> Array:
        """Decrease of impurity by the splits on each feature, as shares, averaged over the trees."""
        d = self.categories.shape[0]
        inner = np.flatnonzero(~self.is_leaf)
        tree = np.searchsorted(self.start, inner, side="right") - 1
        left = self.left[inner] + self.start[tree]
        decrease = np.maximum(self.loss[inner] - self.loss[left] - self.loss[left + 1], 0.0)
        flat = np.bincount(tree * d + self.feature[inner], weights=decrease, minlength=self.n_trees * d)
        each = flat.astype(np.float64).reshape(self.n_trees, d)
        total = each.sum(axis=1, keepdims=True)
        shares = np.divide(each, total, out=np.zeros_like(each), where=total > 0)
        return np.asarray(shares.mean(axis=0))

    def joined(self, other: TreeArrays) -> TreeArrays:
        """These trees, then the other ones."""
        together = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("nodes", "bits", "values", "loss", "weight", "depth")
        }
        start = np.concatenate([self.start, other.start[1:] + self.start[-1]])
        bits_start = np.concatenate([self.bits_start, other.bits_start[1:] + self.bits_start[-1]])
        return TreeArrays(**together, start=start, bits_start=bits_start, categories=self.categories)


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
        columns = _categorical_columns(X, given)
        mixed = bool(columns) and _is_mixed(X)
        if not mixed:
            table = check_x(estimator, X, reset=True, accept_sparse=False, allow_nan=True)
            if columns and max(columns) >= table.shape[1]:
                raise ValueError(
                    f"categorical_features names column {max(columns)}, but X has {table.shape[1]} columns, "
                    "numbered from 0."
                )
            levels = {j: [float(v) for v in np.unique(table[:, j][~np.isnan(table[:, j])])] for j in columns}
            found = cls(columns, levels)
            return found, found._coded_numbers(table, training=True) if columns else table
        lists = _column_lists(X)
        levels = {j: sorted({v for v in lists[j] if not _absent(v)}, key=_order) for j in columns}
        found = cls(columns, levels)
        return found, found._coded_mixed(estimator, X, reset=True)

    def transform(self, estimator: Any, X: Any) -> Array:
        """New rows, with codes in the place of categories."""
        if self.columns and _is_mixed(X):
            table = self._coded_mixed(estimator, X, reset=False)
        else:
            table = check_x(estimator, X, reset=False, accept_sparse=False, allow_nan=True)
            if self.columns:
                table = self._coded_numbers(table, training=False)
        return np.ascontiguousarray(table)

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
            absent = np.nan if training else float(levels.size)
            table[:, j] = np.where(np.isnan(column), absent, np.where(known, at, -1))
        return table

    def _coded_mixed(self, estimator: Any, X: Any, reset: bool) -> Array:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        lists = _column_lists(X)
        if not lists or not lists[0]:
            raise ValueError(
                "Found array with 0 sample(s) or 0 feature(s): X must have at least one row and one column."
            )
        table = np.empty((len(lists[0]), len(lists)), order="F")
        for j, values in enumerate(lists):
            if j in self.levels:
                code = {level: k for k, level in enumerate(self.levels[j])}
                absent = np.nan if reset else float(len(code))
                table[:, j] = [absent if _absent(v) else code.get(v, -1) for v in values]
                continue
            try:
                table[:, j] = [np.nan if _absent(v) else float(v) for v in values]
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"column {_column_name(X, j)} of X is not numeric: list it in categorical_features, or "
                    f"encode it. [{error}]"
                ) from error
            if np.isinf(table[:, j]).any():
                raise ValueError(f"Input X contains infinity in column {_column_name(X, j)}: replace infinite values.")
        return table


@dataclass
class Growth:
    """When to stop growing, in the units of the native code."""

    max_depth: int | None = None
    min_samples_split: float = 2
    min_samples_leaf: float = 1
    min_weight_fraction_leaf: float = 0.0
    max_leaves: int | None = None
    min_impurity_decrease: float = 0.0
    max_features: Any = None
    monotone: Array = field(default_factory=lambda: np.empty(0, dtype=np.int8))

    @classmethod
    def of(cls, estimator: Any, names: Any, n_features: int, total: float) -> Growth:
        """Checked options of an estimator; `total` is the weight of all rows."""
        for name in ("max_depth", "max_leaves"):
            if getattr(estimator, name) is not None:
                check_real(name, getattr(estimator, name), low=1, integer=True)
        check_real("min_impurity_decrease", estimator.min_impurity_decrease, low=0)
        return cls(
            max_depth=estimator.max_depth,
            min_samples_split=_rows("min_samples_split", estimator.min_samples_split, total),
            min_samples_leaf=_rows("min_samples_leaf", estimator.min_samples_leaf, total),
            min_weight_fraction_leaf=float(
                check_real("min_weight_fraction_leaf", estimator.min_weight_fraction_leaf, low=0, high=0.5)
            ),
            max_leaves=estimator.max_leaves,
            min_impurity_decrease=float(estimator.min_impurity_decrease),
            max_features=_feature_count(estimator.max_features, n_features),
            monotone=_signs(estimator.monotone_constraints, names, n_features),
        )

    def options(self, exponent: int, threads: int) -> Any:
        """The native options; impurities are measured in 2^exponent."""
        depth = (1 << 30) if self.max_depth is None else min(int(self.max_depth), 1 << 30)
        return native.Options(
            depth,
            self.min_samples_split,
            self.min_samples_leaf,
            self.min_weight_fraction_leaf,
            int(self.max_leaves or 0),
            float(np.ldexp(self.min_impurity_decrease, -exponent)),
            int(self.max_features),
            self.monotone,
            threads,
        )


@dataclass
class FixedTarget:
    """A native target; its values and impurities are measured in these powers of two."""

    native: Any
    value_exponent: int = 0
    loss_exponent: int = 0
    weight_unit: float = 1.0


def fixed_point(weight: Array) -> tuple[Array, float]:
    """Weights as integers with an exact sum, and the power of two they were multiplied by."""
    total = math.fsum(weight)
    if total <= 2.0**52 and not np.mod(weight, 1.0).any():
        return weight, 1.0
    scale = 2.0 ** (51 - math.ceil(math.log2(total)))
    return np.rint(weight * scale), scale


def target_of_classes(criterion: str, labels: Array, class_weight: Array, weight: Array, draws: int) -> FixedTarget:
    """Classes 0, 1, …; each draw of row i weighs weight[i] · class_weight[labels[i]]."""
    weights, scale = fixed_point(weight * class_weight[labels])
    total = float(weights.sum()) if draws == 0 else draws * float(weights.max())
    size_of = np.divide(1.0, class_weight * scale, out=np.zeros_like(class_weight), where=class_weight > 0)
    made = native.Target(
        criterion,
        labels.astype(np.uint16),
        int(class_weight.shape[0]),
        EMPTY,
        EMPTY,
        np.ascontiguousarray(weights),
        size_of,
        total <= 2.0**26,
        1.0,
    )
    return FixedTarget(made, weight_unit=1.0 / scale)


def target_of_numbers(criterion: str, y: Array, weight: Array, draws: int) -> FixedTarget:
    """Real targets, scaled by a power of two to about [−1, 1]."""
    least, most = float(y.min()), float(y.max())
    if criterion == "poisson" and least < 0:
        row = int(np.argmin(y))
        raise ValueError(f"criterion='poisson' needs targets >= 0; y is {least:g} at row {row}.")
    center = 0.0 if criterion == "poisson" else 0.5 * least + 0.5 * most
    # Two exponents: one brings the targets near 1, one their distances from the center, so that neither
    # overflows nor loses bits.
    exponent = math.frexp(max(abs(least), abs(most)))[1]
    spread = math.frexp(max(most - center, center - least))[1]
    offset = np.ldexp(y - center, -spread)
    weights, scale = fixed_point(weight)
    total = float(weights.sum()) if draws == 0 else float(draws) * float(weights.max())
    integral = scale == 1.0
    bits = 2.0 ** (51 - math.ceil(math.log2(max(total / scale, 1.0))))
    if criterion == "absolute":
        bits = bits if integral else 2.0**40
        fixed, unit = np.rint(offset * bits), math.ldexp(1.0 / bits, spread - exponent)
    else:
        # Integer weights multiply the rounded target, so that a weight is exactly a repetition.
        fixed = weights * np.rint(offset * bits) if integral else np.rint(weight * offset * bits)
        unit = math.ldexp(scale / bits, spread - exponent)
        unit = unit if criterion == "poisson" else unit * unit
    made = native.Target(
        criterion,
        np.empty(0, dtype=np.uint16),
        1,
        np.ldexp(y, -exponent),
        np.ascontiguousarray(fixed),
        np.ascontiguousarray(weights),
        np.array([1.0 / scale]),
        integral and total <= 2.0**26,
        max(unit, 1e-300),
    )
    return FixedTarget(made, exponent, 2 * exponent if criterion == "squared" else exponent, 1.0 / scale)


def encode(
    X: Array, categories: Categories, max_bins: int, presort: bool, threads: int, weight: Array | None = None
) -> Any:
    """The coded table of the training rows; max_bins = 0 keeps every distinct value."""
    flags = np.zeros(X.shape[1], dtype=np.uint8)
    flags[categories.columns] = 1
    return native.encode(np.asfortranarray(X), EMPTY if weight is None else weight, flags, max_bins, presort, threads)


def grow(
    table: Any,
    target: FixedTarget,
    growth: Growth,
    categories: Categories,
    n_features: int,
    seeds: Array,
    threads: int,
    draws: int = 0,
    chances: Array = EMPTY,
    order: Array = np.empty(0, dtype=np.uint32),  # noqa: B008 - never written to
) -> tuple[TreeArrays, Array]:
    """Trees for the seeds, and which rows each of them drew (a bit for each row; empty: all)."""
    options = growth.options(target.loss_exponent, threads)
    *arrays, bags = native.grow(table, target.native, options, seeds, draws, np.ascontiguousarray(chances), order)
    nodes, bits, start, bits_start, values, loss, weight, depth = arrays
    counts = np.zeros(n_features, dtype=np.uint32)
    counts[categories.columns] = categories.counts
    with np.errstate(over="ignore", under="ignore"):  # the square of a huge or tiny target has no better value
        values = np.ldexp(values, target.value_exponent) if target.value_exponent else values
        loss = np.ldexp(loss * target.weight_unit, target.loss_exponent)
    weight *= target.weight_unit
    return TreeArrays(nodes, bits, start, bits_start, values, loss, weight, depth, counts), bags


def feature_labels(estimator: Any) -> list[str]:
    """Names of the features, ``x0``, ``x1``, … where they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def _rows(name: str, value: Any, total: float) -> float:
    check_real(name, value, low=0, open_low=True)
    # As in scikit-learn, a fraction counts in parts of all rows.
    return float(np.ceil(value * total)) if isinstance(value, (float, np.floating)) and value < 1 else float(value)


def _feature_count(value: Any, d: int) -> int:
    if value is None:
        return d
    if isinstance(value, str):
        check_choice("max_features", value, ("sqrt", "log2"))
        return max(1, int(math.sqrt(d) if value == "sqrt" else math.log2(d)))
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return min(int(check_real("max_features", value, low=1, integer=True)), d)
    check_real("max_features", value, low=0, high=1, open_low=True)
    return max(1, int(value * d))


def _signs(given: Any, names: Any, d: int) -> Array:
    if given is None:
        return np.empty(0, dtype=np.int8)
    if isinstance(given, dict):
        known = list(range(d)) if names is None else [*names]
        unknown = [key for key in given if key not in known and not (isinstance(key, int) and 0 <= key < d)]
        if unknown:
            raise ValueError(f"monotone_constraints names {unknown[0]!r}, which is not a column of X.")
        signs = [0] * d
        for key, sign in given.items():
            signs[known.index(key) if key in known else int(key)] = sign
    else:
        signs = list(given)
    if len(signs) != d or any(sign not in (-1, 0, 1) for sign in signs):
        raise ValueError(
            f"monotone_constraints must hold −1, 0 or 1 for each of the {d} features, or be a dictionary of "
            "the constrained "
            f"ones; got {given!r}."
        )
    return np.array(signs, dtype=np.int8) if any(signs) else np.empty(0, dtype=np.int8)


def _is_mixed(X: Any) -> bool:
    """Frames and object arrays: columns may hold text."""
    return hasattr(X, "columns") or hasattr(X, "column_names") or np.asarray(X).dtype.kind in "OUS"


def _column_lists(X: Any) -> list[list[Any]]:
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        return [frame[name].to_list() for name in frame.columns]
    return [list(column) for column in np.asarray(X, dtype=object).T]


def _column_name(X: Any, j: int) -> str:
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return str(j) if names is None else repr(str(list(names)[j]))


def _absent(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and value != value


def _order(value: Any) -> tuple[str, Any]:
    # Numbers of all kinds compare with each other; other types only among themselves.
    number = isinstance(value, (int, float, np.number))
    return ("" if number else type(value).__name__, value)


def _categorical_columns(X: Any, given: Any) -> list[int]:
    if given is None:
        return []
    names = getattr(X, "column_names", None)
    names = getattr(X, "columns", None) if names is None else names
    names = None if names is None else [*names]
    if isinstance(given, str):
        check_choice("categorical_features", given, ("auto",))
        if names is None:
            return []
        import narwhals as nw

        schema = nw.from_native(X, eager_only=True).schema
        kinds = (nw.Categorical, nw.Enum, nw.String, nw.Object, nw.Boolean)
        return [j for j, name in enumerate(schema) if isinstance(schema[name], kinds)]
    items = list(np.atleast_1d(np.asarray(given, dtype=object)))
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        width = len(names) if names is not None else np.shape(X)[1]
        if len(items) != width:
            raise ValueError(f"categorical_features has {len(items)} entries, but X has {width} columns.")
        return [j for j, chosen in enumerate(items) if chosen]
    columns = []
    for item in items:
        if names is not None and item in names:
            columns.append(names.index(item))
        elif isinstance(item, (int, np.integer)) and item >= 0:
            columns.append(int(item))
        else:
            raise ValueError(f"categorical_features names {item!r}, which is not a column of X.")
    return sorted(set(columns))
