"""Classes and their shares: what naive Bayes and the discriminants know of y."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.parameters import Either, Given, Nothing, Parameter

__all__ = ["PRIORS", "checked_priors"]

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
