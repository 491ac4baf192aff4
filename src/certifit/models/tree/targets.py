"""From arrays to grown trees: fixed-point statistics, growth options, and growth itself.

Weights and targets enter the native code in fixed point: scaled by a power of two and rounded to integers
whose sums are exact in double precision. So the worth of a split does not depend on the order of the rows,
and a row of weight 2 is two rows.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import certifit._native.tree as native
from certifit._types import Array
from certifit.data.targets import class_weights
from certifit.models.tree.growing import Categories, TreeArrays

__all__ = [
    "SERIAL",
    "SERIAL_WALKS",
    "FixedTarget",
    "Growth",
    "class_factors",
    "counted",
    "grow",
    "table_of",
    "target_of_classes",
    "target_of_numbers",
]

EMPTY = np.empty(0)
SERIAL = 20_000
"""Below this number of entries of X one thread is faster than two."""
SERIAL_WALKS = 100_000
"""The same for prediction: rows times trees."""


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
    drawn: bool = False
    """Whether each feature tried is given one threshold at random."""
    monotone: Array = field(default_factory=lambda: np.empty(0, dtype=np.int8))

    @classmethod
    def of(cls, estimator: Any, names: Any, n_features: int, total: float) -> Growth:
        """Options of an estimator; `total` is the weight of all rows."""
        return cls(
            max_depth=estimator.max_depth,
            min_samples_split=_rows(estimator.min_samples_split, total),
            min_samples_leaf=_rows(estimator.min_samples_leaf, total),
            min_weight_fraction_leaf=float(estimator.min_weight_fraction_leaf),
            max_leaves=estimator.max_leaf_nodes,
            min_impurity_decrease=float(estimator.min_impurity_decrease),
            max_features=_feature_count(estimator.max_features, n_features),
            drawn=estimator.thresholds == "random",
            monotone=_signs(estimator.monotone_constraints, names, n_features),
        )

    def presorts(self, n_features: int) -> bool:
        """Whether every node looks for the best threshold of all features: their rows are then sorted once."""
        return bool(self.max_features == n_features) and not self.drawn

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
            self.drawn,
            self.monotone,
            threads,
        )


@dataclass
class FixedTarget:
    """A native target; its values, impurities and weights are measured in these powers of two."""

    native: Any
    value_exponent: int = 0
    loss_exponent: int = 0
    weight_exponent: int = 0


def fixed_point(*factors: Array, most: float = 2.0**52) -> tuple[Array, int]:
    """The product of the factors, times a power of two, as integers with an exact sum; and the exponent.

    Whole numbers stay as they are, up to a sum of `most`. A weight below 2^-52 of all of them becomes zero.
    """
    with np.errstate(over="ignore", under="ignore"):
        product = np.multiply.reduce(factors) if len(factors) > 1 else factors[0]
    if product.sum() <= most and not np.mod(product, 1.0).any():
        return product, 0
    largest = [math.frexp(float(factor.max()))[1] for factor in factors]
    near_one = np.multiply.reduce([np.ldexp(f, -e) for f, e in zip(factors, largest, strict=True)])
    bits = 51 - math.ceil(math.log2(math.fsum(near_one)))
    return np.rint(np.ldexp(near_one, bits)), bits - sum(largest)


def few_digits(weight: Array, times: int) -> tuple[Array, int]:
    """Weights times a power of two, each rounded to so many bits that `times` of it is exact; and the exponent."""
    if not np.mod(weight, 1.0).any() and times * weight.max() <= 2.0**52:
        return weight, 0
    up, kept = 52 - math.frexp(float(weight.max()))[1], 52 - math.ceil(math.log2(times))
    mantissa, exponent = np.frexp(np.ldexp(weight, up))
    rounded = np.ldexp(np.rint(np.ldexp(mantissa, kept)), exponent - kept)
    # Squares of weights must stay numbers: what is 1e100 times lighter than the heaviest may as well be heavier.
    return np.where(weight > 0, np.maximum(rounded, 1e-100), 0.0), up


def class_factors(given: Any, classes: Any, labels: Array, weight: Array) -> list[Array]:
    """The factor of each class of each target; of several, `given` is None, "balanced" or a list of what is given for each."""
    if not isinstance(classes, list):
        return [class_weights(given, classes, labels, weight)]
    each = given if isinstance(given, list) else [given] * len(classes)
    if isinstance(given, dict) or len(each) != len(classes):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a list with an entry for each of the {len(classes)} targets; "
            f"got {given!r}."
        )
    parts = zip(each, classes, labels.T, strict=True)
    return [class_weights(of_one, names, codes, weight) for of_one, names, codes in parts]


def counted(factors: list[Array], labels: Array) -> Array:
    """Which rows weigh anything: those of whose classes none has the factor 0."""
    of_rows = [factor[codes] > 0 for factor, codes in zip(factors, labels.reshape(len(labels), -1).T, strict=True)]
    found = np.logical_and.reduce(of_rows)
    if not found.any():
        raise ValueError("class_weight gives every row a class of weight 0: give the classes of some row weights > 0.")
    return np.asarray(found)


def target_of_classes(criterion: str, labels: Array, factors: list[Array], weight: Array, draws: int) -> FixedTarget:
    """Classes 0, 1, …; each draw of row i weighs the product of the factors of its classes; without draws, times weight[i]."""
    if len(factors) == 1:
        return _one_target_of_classes(criterion, labels, factors[0], weight, draws)
    of_rows = [factor[codes] for factor, codes in zip(factors, labels.T, strict=True)]
    weights, exponent = few_digits(np.multiply.reduce(of_rows), draws) if draws else fixed_point(weight, *of_rows)
    made = native.Target(
        criterion,
        labels.astype(np.uint16).ravel(),
        np.array([factor.shape[0] for factor in factors], dtype=np.int32),
        EMPTY,
        EMPTY,
        np.ascontiguousarray(weights),
        np.ones(labels.shape[0]) if draws else weight,
        np.ones(len(factors)),
        False,
        1.0 / len(factors),
    )
    return FixedTarget(made, weight_exponent=-exponent)


def _one_target_of_classes(
    criterion: str, labels: Array, class_weight: Array, weight: Array, draws: int
) -> FixedTarget:
    if draws:
        # A sample may hold only the lightest of all classes: weights of any size must leave something of every row.
        by_class, exponent = few_digits(class_weight, draws)
        weights = by_class[labels]
        total = draws * float(weights.max())
    else:
        weights, exponent = fixed_point(weight, class_weight[labels])
        total = float(weights.sum())
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        size_of = np.where(class_weight > 0, np.ldexp(1.0 / class_weight, -exponent), 0.0)
    made = native.Target(
        criterion,
        labels.astype(np.uint16),
        np.array([class_weight.shape[0]], dtype=np.int32),
        EMPTY,
        EMPTY,
        np.ascontiguousarray(weights),
        size_of,
        np.ones(1),
        exponent == 0 and total <= 2.0**26,
        1.0,
    )
    return FixedTarget(made, weight_exponent=-exponent)


def target_of_numbers(criterion: str, y: Array, weight: Array, draws: int) -> FixedTarget:
    """Real targets, scaled by a power of two to about [−1, 1]; each draw of a row weighs 1, without draws its weight."""
    targets = y.reshape(y.shape[0], -1).T
    K = targets.shape[0]
    least, most = targets.min(axis=1), targets.max(axis=1)
    if criterion == "poisson" and least.min() < 0:
        row = int(np.argmin(targets[np.argmin(least)]))
        raise ValueError(f"criterion='poisson' needs targets >= 0; y is {least.min():g} at row {row}.")
    center = np.zeros(K) if criterion == "poisson" else 0.5 * least + 0.5 * most
    # Two exponents: one brings the targets near 1, one (of each target) their distances from the center, so that neither
    # overflows nor loses bits.
    size = max(float(np.abs(least).max()), float(np.abs(most).max()))
    value_exponent = math.frexp(size)[1]
    reach = np.maximum(most - center, center - least)
    spread = np.frexp(np.where(reach > 0, reach, float(reach.max()) or size))[1].astype(np.int64)
    offset = np.ldexp(targets - center[:, None], -spread[:, None])
    # Whole weights leave 25 bits or more for the targets that they multiply.
    weights, exponent = (np.ones(targets.shape[1]), 0) if draws else fixed_point(weight, most=2.0**26)
    total = float(draws) if draws else float(weights.sum())
    whole = exponent == 0
    # Bits of a target: as many as sums of exact integers leave beside those of the weights.
    bits = 51 - math.ceil(math.log2(max(total, 1.0))) if whole else 0
    if criterion == "absolute":
        bits = bits if whole else 40
        fixed = np.rint(np.ldexp(offset, bits))
    elif whole:
        fixed = weights * np.rint(np.ldexp(offset, bits))  # a weight is exactly a repetition
    else:
        fixed = np.rint(np.ldexp(weight, exponent) * offset)
    unit, power = math.ldexp(1.0, int(spread.max()) - value_exponent - bits), 2 if criterion == "squared" else 1
    made = native.Target(
        criterion,
        np.empty(0, dtype=np.uint16),
        np.ones(K, dtype=np.int32),
        np.ldexp(targets, -value_exponent).ravel(),
        fixed.ravel(),
        np.ascontiguousarray(weights),
        np.ldexp(np.ones(1), -exponent),
        np.ldexp(np.ones(K), power * (spread - spread.max())),
        whole and total <= 2.0**26,
        max(unit**power / K, 1e-300),
    )
    loss_exponent = 2 * value_exponent if criterion == "squared" else value_exponent
    return FixedTarget(made, value_exponent, loss_exponent, -exponent)


def table_of(
    X: Array, categories: Categories, max_bins: int, presort: bool, threads: int, weight: Array | None = None
) -> Any:
    """The training rows as trees take them: codes, or columns in order; max_bins = 0 keeps every distinct value."""
    flags = np.zeros(X.shape[1], dtype=np.uint8)
    flags[categories.columns] = 1
    return native.encode(X, EMPTY if weight is None else weight, flags, max_bins, presort, threads)


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
        for found, exponent in (
            (values, target.value_exponent),
            (loss, target.loss_exponent + target.weight_exponent),
            (weight, target.weight_exponent),
        ):
            np.ldexp(found, exponent, out=found)
    return TreeArrays(nodes, bits, start, bits_start, values, loss, weight, depth, counts), bags


def _rows(value: Any, total: float) -> float:
    # As in scikit-learn, a fraction counts in parts of all rows.
    return float(np.ceil(value * total)) if isinstance(value, (float, np.floating)) and value < 1 else float(value)


def _feature_count(value: Any, d: int) -> int:
    if value is None:
        return d
    if isinstance(value, str):
        return max(1, int(math.sqrt(d) if value == "sqrt" else math.log2(d)))
    return min(int(value), d) if isinstance(value, numbers.Integral) else max(1, int(value * d))


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
        signs = list(given) if isinstance(given, Iterable) else [given]
    if len(signs) != d or any(sign not in (-1, 0, 1) for sign in signs):
        raise ValueError(
            f"monotone_constraints must hold −1, 0 or 1 for each of the {d} features, or be a dictionary of "
            "the constrained "
            f"ones; got {given!r}."
        )
    return np.array(signs, dtype=np.int8) if any(signs) else np.empty(0, dtype=np.int8)
