"""The target at the gate: labels to class numbers, and the weights of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from certifit._types import Array, Matrix, is_sparse
from certifit.data.gate import check_real, check_xy

__all__ = [
    "announced_classes",
    "check_labels",
    "check_several_labels",
    "check_shares",
    "class_weights",
    "codes_of",
    "encode_labels",
    "positive_class_weights",
    "several_classes",
    "several_labels",
]


def check_labels(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, class_weight: Any = None
) -> tuple[Matrix, Array, Array, Array]:
    """Validated rows, class numbers, weights (class weights included) and the sorted classes that have weight."""
    X, y, weight = check_xy(estimator, X, y, sample_weight=sample_weight, numeric_target=False)
    if y.dtype.kind not in "iub":  # whole numbers are labels, whatever they are
        check_classification_targets(y)
    classes, codes = encode_labels(y) if y.dtype.kind in "iu" else (np.unique(y), None)
    _need_two(estimator, classes)
    if codes is None:  # two classes need no search, and a search needs no sorting of all labels
        codes = (y == classes[1]).astype(np.intp) if classes.shape[0] == 2 else np.searchsorted(classes, y)
    weight = positive_class_weights(class_weight, classes, codes, weight)
    return X, codes, weight, classes


def several_labels(y: Any) -> Array | None:
    """A matrix that says which labels each row has, a column for each label; None if y has one column."""
    y = y.toarray() if is_sparse(y) else np.asarray(y)
    return y if y.ndim == 2 and y.shape[1] > 1 else None


def check_several_labels(
    estimator: Any, X: Any, y: Array, sample_weight: Any, class_weight: Any, known: Array | None = None
) -> tuple[Matrix, Array, Array, Array]:
    """Validated rows, their labels as columns of 0 and 1, weights and the numbers of the columns (or other names, if known)."""
    if class_weight is not None:
        raise ValueError(
            "class_weight is for rows of one class each; y has a column for each label: give sample_weight."
        )
    X, y, weight = check_xy(estimator, X, y, sample_weight=sample_weight, multi_output=True)
    if not np.isin(y, (0.0, 1.0)).all():
        odd = y[~np.isin(y, (0.0, 1.0))][0]
        raise ValueError(f"A y of several columns says which labels a row has and must hold 0 and 1; got {odd:g}.")
    names = np.arange(y.shape[1]) if known is None else known
    if names.shape[0] != y.shape[1]:
        raise ValueError(f"y has {y.shape[1]} columns, and classes names {names.shape[0]} labels.")
    return X, y, weight, names


def check_shares(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> tuple[Matrix, Array, Array]:
    """Validated rows, probabilities (of the second of two classes, or a column for each class) and weights."""
    X, y, weight = check_xy(estimator, X, y, sample_weight=sample_weight, multi_output=True)
    return X, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, weight


def several_classes(estimator: Any, y: Array) -> tuple[Array, Array]:
    """Sorted classes and the number of each label, where a single class is an error."""
    classes, codes = encode_labels(y)
    _need_two(estimator, classes)
    return classes, codes


def _need_two(estimator: Any, classes: Array) -> None:
    if classes.shape[0] < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least 2 classes, but the data has one class only: "
            f"{classes.tolist()[0]!r}. (Rows of weight zero do not count.)"
        )


def encode_labels(y: Array) -> tuple[Array, Array]:
    """Sorted classes and the number of each label; whole numbers of a small range are counted, not sorted."""
    if y.dtype.kind in "iub" and y.shape[0]:
        low, high = int(y.min()), int(y.max())
        if high - low < max(1000, min(y.shape[0], 1 << 20)):
            shifted = y.astype(np.intp) - low if low or y.dtype.kind != "i" else y
            present = np.bincount(shifted, minlength=high - low + 1) > 0
            classes = (np.flatnonzero(present) + low).astype(y.dtype)
            if present.all():
                return classes, shifted.astype(np.intp, copy=False)
            return classes, (np.cumsum(present) - 1)[shifted]
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    return classes, codes


def positive_class_weights(given: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """The weights of the rows times those of their classes, where a class of no weight would have the score −∞."""
    if given is not None:
        weight = weight * class_weights(given, classes, codes, weight)[codes]
    if not (np.bincount(codes, weights=weight, minlength=classes.shape[0]) > 0).all():
        raise ValueError("class_weight gives a class weight 0; drop the rows of that class instead.")
    return weight


def class_weights(given: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """The factor of each class: ones, W / (K·W_c) for ``"balanced"`` so that all classes weigh the same, or a dictionary's."""
    if given is None:
        return np.ones(classes.shape[0])
    if isinstance(given, str) and given == "balanced":
        held = np.bincount(codes, weights=weight, minlength=classes.shape[0])
        return np.asarray(weight.sum() / (classes.shape[0] * held))
    if not isinstance(given, dict):
        raise ValueError(f"class_weight must be None, 'balanced' or a dictionary of class → weight; got {given!r}.")
    known = classes.tolist()
    unknown = [label for label in given if label not in known]
    if unknown:
        raise ValueError(f"class_weight names classes that are not in y: {unknown!r}. The classes are {known!r}.")
    for label, factor in given.items():
        check_real(f"class_weight[{label!r}]", factor, low=0, open_high=True)
    found = np.array([float(given.get(label, 1.0)) for label in known])
    if not (found > 0).any():
        raise ValueError(f"class_weight must hold finite weights >= 0, not all zero; got {given!r}.")
    return found


def announced_classes(estimator: Any, classes: Any, first: bool, fewest: int = 2) -> Array:
    """The labels of `partial_fit`, given at the first call and the same ever after."""
    if isinstance(getattr(estimator, "class_weight", None), str):
        raise ValueError("class_weight='balanced' needs all labels at once: give partial_fit a dictionary of weights.")
    if first and classes is None:
        raise ValueError("classes must be passed on the first call to partial_fit: all labels there will ever be.")
    known = np.unique(np.asarray(classes)) if first else estimator.classes_
    if not first and classes is not None and not np.array_equal(np.unique(np.asarray(classes)), known):
        raise ValueError(
            f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {estimator.classes_!r}"
        )
    if known.shape[0] < fewest:
        raise ValueError(f"classes must hold at least 2 classes; got one class only: {known!r}.")
    return np.asarray(known)


def codes_of(known: Array, y: Array) -> Array:
    """The number of each label among sorted classes; a label that is not among them is an error."""
    check_classification_targets(y)
    unknown = np.setdiff1d(y, known)
    if unknown.shape[0]:
        raise ValueError(f"y has labels that are not in classes: {unknown.tolist()!r}; classes are {known.tolist()!r}.")
    return np.searchsorted(known, y)
