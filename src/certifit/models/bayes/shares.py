"""Classes and their shares: what naive Bayes and the discriminants know of y."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.parameters import Either, Given, Nothing, Parameter

__all__ = ["PRIORS", "checked_priors", "classes_of_blocks", "same_columns"]

PRIORS = Parameter(
    None,
    Either(Nothing(), Given("array of shape (K,)", wrong=([0.5, 0.6], [1.5, -0.5], "a", 3))),
    "Probabilities of the classes in sorted order; None takes their shares of the weight.",
)


def checked_priors(priors: Any, classes: Array) -> Array:
    """Probabilities of the classes as an array that sums to one."""
    try:
        share = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        share = np.zeros(0)
    K = classes.shape[0]
    fine = share.shape == (K,) and np.isfinite(share).all() and (share >= 0).all() and abs(share.sum() - 1.0) < 1e-6
    if not fine:
        raise ValueError(
            f"priors must be {K} probabilities that sum to 1, one for each of the classes {classes.tolist()!r}; got "
            f"{priors!r}."
        )
    return np.asarray(share / share.sum())


def classes_of_blocks(model: Any, classes: Any, y: Array, *, first: bool) -> Array:
    """Class numbers of a block of labels; the first block comes with all labels there will ever be."""
    if first:
        if classes is None:
            raise ValueError("classes must be given in the first call of partial_fit: all labels that will ever come.")
        model.classes_ = np.unique(np.asarray(classes))
    unknown = np.setdiff1d(y, model.classes_)
    if unknown.size:
        raise ValueError(f"y holds labels that are not in classes: {unknown.tolist()!r}.")
    return np.searchsorted(model.classes_, y)


def same_columns(model: Any, before: tuple[int, Any] | None) -> None:
    """Raise if a block has other columns than those `before` it; the model keeps the ones it knows."""
    if before is None or model.n_features_in_ == before[0]:
        return
    found, model.n_features_in_ = model.n_features_in_, before[0]
    if before[1] is not None:
        model.feature_names_in_ = before[1]
    raise ValueError(f"X has {found} features, but {type(model).__name__} is expecting {before[0]} features as input.")
