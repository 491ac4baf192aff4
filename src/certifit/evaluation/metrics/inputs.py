"""What every judgement checks before it counts: targets, predictions, probabilities and weights of the same rows.

A weight counts repetitions, so a row of weight 0 is dropped here, before classes and curves are read off the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_sample_weight
from certifit.data.missing import is_absent

__all__ = [
    "binary_rows",
    "check_binary",
    "check_labels",
    "check_level",
    "check_probabilities",
    "check_vector",
    "class_codes",
    "label_rows",
    "probability_rows",
    "value_rows",
]

SUM_TOLERANCE = 1e-6


def _one_each(name: str, values: Any, what: str) -> Array:
    """A vector, also of a table with one column."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be one {what} for each row, of shape (n,); got shape {array.shape}.")
    return array


def check_vector(name: str, values: Any, n: int | None = None) -> Array:
    """Finite numbers, one for each row, as float64 (float32 is kept, so that its precision is known)."""
    array = _one_each(name, values, "number")
    if array.dtype != np.float32:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be numbers; got values such as {array[:1].tolist()} ({error}).") from error
    _check_length(name, array, n)
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite; got {array[row]} at row {row}. Drop or repair these rows.")
    return array


def check_labels(name: str, values: Any, n: int | None = None) -> Array:
    """Labels of any type, one for each row; missing ones are refused."""
    array = _one_each(name, values, "label")
    _check_length(name, array, n)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    elif array.dtype == object:
        missing = np.array([is_absent(v) for v in array.tolist()], dtype=bool)
    else:
        return array
    if missing.any():
        raise ValueError(f"{name} has a missing label at row {int(np.flatnonzero(missing)[0])}: drop these rows.")
    return array


def class_codes(classes: Any, *named: tuple[str, Array]) -> tuple[Array, list[Array]]:
    """The classes, in the given order or sorted, and the class number of each label of the named arrays."""
    found = [_distinct(name, labels) for name, labels in named]
    if classes is None:
        distinct = set().union(*(values.tolist() for values, _ in found))
        try:
            order = sorted(distinct)
        except TypeError as error:
            raise ValueError(f"The labels are of types that cannot be sorted ({error}): pass classes=[…].") from error
    else:
        order = np.asarray(classes).tolist()
        if len(set(order)) != len(order):
            raise ValueError(f"classes must be distinct; got {order!r}.")
    number = {label: k for k, label in enumerate(order)}
    codes = []
    for (name, _), (values, which) in zip(named, found, strict=True):
        unknown = [label for label in values.tolist() if label not in number]
        if unknown:
            raise ValueError(f"{name} has labels that are not among the classes: {unknown[:5]!r}; classes: {order!r}.")
        codes.append(np.array([number[label] for label in values.tolist()], dtype=np.intp)[which])
    return np.asarray(order if classes is None else classes), codes


def check_probabilities(name: str, values: Any, n: int | None = None, n_classes: int | None = None) -> Array:
    """Probabilities of shape (n, K); a vector is the probability of the second of two classes."""
    array = np.asarray(values)
    if array.dtype != np.float32:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be probabilities; got values such as {array[:1].tolist()}.") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (n,) or (n, K); got {array.shape}.")
    _check_length(name, array, n)
    slack = 4.0 * float(np.finfo(array.dtype).eps)  # a sum of rounded shares may end a hair above one
    outside = ~((array >= -slack) & (array <= 1.0 + slack))
    if outside.any():
        row = int(np.flatnonzero(outside.any(axis=1) if array.ndim == 2 else outside)[0])
        raise ValueError(
            f"{name} must be probabilities between 0 and 1; got {array[row].tolist()} at row {row}. "
            "Scores must be turned into probabilities first."
        )
    if array.ndim == 1:
        array = np.column_stack([1.0 - array, array]).astype(array.dtype, copy=False)
    else:
        total = array.sum(axis=1, dtype=np.float64)
        off = np.abs(total - 1.0) > SUM_TOLERANCE
        if off.any():
            row = int(np.flatnonzero(off)[0])
            raise ValueError(f"The rows of {name} must sum to 1; row {row} sums to {total[row]:.6g}.")
    if n_classes is not None and array.shape[1] != n_classes:
        raise ValueError(
            f"{name} has {array.shape[1]} columns for {n_classes} classes: one column for each class is needed, in the "
            "order of classes=[…]."
        )
    return np.clip(array, 0.0, 1.0)


def check_binary(y: Any, classes: Any = None, name: str = "y") -> Array:
    """Whether each row belongs to the second class; without `classes`, 0 and 1 (False and True) speak for themselves."""
    labels = check_labels(name, y)
    if classes is None and labels.shape[0]:
        values, _ = _distinct(name, labels)
        if set(values.tolist()) <= {0, 1}:
            classes = [0, 1]
    order, (codes,) = class_codes(classes, (name, labels))
    if order.shape[0] != 2:
        raise ValueError(
            f"{name} must have two classes; found {order.shape[0]}: {order.tolist()[:5]!r}. Name both with classes=[…] "
            "when the rows show one of them only."
        )
    return np.asarray(codes == 1)


def value_rows(y: Any, prediction: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
    """Target, predicted values and weights of a regression, in double precision."""
    y = check_vector("y", y).astype(np.float64, copy=False)
    f = check_vector("prediction", prediction, y.shape[0]).astype(np.float64, copy=False)
    weight, kept = _weights(sample_weight, y.shape[0])
    return (y, f, weight) if kept is None else (y[kept], f[kept], weight[kept])


def label_rows(y: Any, prediction: Any, sample_weight: Any, classes: Any) -> tuple[Array, Array, Array, Array]:
    """Class numbers of target and prediction, weights, and the classes."""
    y = check_labels("y", y)
    labels = check_labels("prediction", prediction, y.shape[0])
    weight, kept = _weights(sample_weight, y.shape[0])
    if kept is not None:
        y, labels, weight = y[kept], labels[kept], weight[kept]
    order, (actual, predicted) = class_codes(classes, ("y", y), ("prediction", labels))
    return actual, predicted, weight, order


def binary_rows(y: Any, score: Any, sample_weight: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Whether each row is positive, its score (the second column of two), and weights."""
    score = np.asarray(score)
    if score.ndim == 2 and score.shape[1] == 2:
        score = score[:, 1]
    y = check_labels("y", y)
    score = check_vector("score", score, y.shape[0])
    weight, kept = _weights(sample_weight, y.shape[0])
    if kept is not None:
        y, score, weight = y[kept], score[kept], weight[kept]
    return check_binary(y, classes), score, weight


def probability_rows(y: Any, probability: Any, sample_weight: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Class numbers, probabilities of shape (n, K), and weights."""
    y = check_labels("y", y)
    p = np.asarray(probability)
    weight, kept = _weights(sample_weight, y.shape[0])
    _check_length("probability", p, y.shape[0])
    if kept is not None:
        y, p, weight = y[kept], p[kept], weight[kept]
    if classes is None and (p.ndim == 1 or p.shape[1] <= 2):
        codes = check_binary(y).astype(np.intp)
        return codes, check_probabilities("probability", p, n_classes=2), weight
    order, (codes,) = class_codes(classes, ("y", y))
    return codes, check_probabilities("probability", p, n_classes=order.shape[0]), weight


def check_level(level: Any) -> float:
    """A confidence level strictly between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, (int, float, np.floating)) or not 0.0 < float(level) < 1.0:
        raise ValueError(f"level must be a number in (0, 1), for example 0.95; got {level!r}.")
    return float(level)


def _weights(sample_weight: Any, n: int) -> tuple[Array, Array | None]:
    """Weights, and which rows to keep (None: all)."""
    weight = check_sample_weight(sample_weight, n)
    kept = weight > 0
    return weight, None if kept.all() else kept


def _distinct(name: str, labels: Array) -> tuple[Array, Array]:
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        # Labels of mixed types have no order; equality is enough when the caller gives the classes.
        seen: dict[Any, int] = {}
        which = np.array([seen.setdefault(label, len(seen)) for label in labels.tolist()], dtype=np.intp)
        values = np.empty(len(seen), dtype=object)
        values[:] = list(seen)
        return values, which


def _check_length(name: str, array: Array, n: int | None) -> None:
    if array.ndim == 0 or array.shape[0] == 0:
        raise ValueError(f"{name} is empty: at least one row is needed.")
    if n is not None and array.shape[0] != n:
        raise ValueError(f"y and {name} must have the same number of rows: y has {n}, {name} has {array.shape[0]}.")
