"""Metrics of predicted probabilities: proper scores, least in expectation at the true probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.metrics.inputs import probability_rows
from certifit.parameters.docstrings import takes_as

__all__ = ["brier", "log_loss"]

LARGEST_LOG_LOSS = float(-np.log(np.finfo(np.float64).eps))
"""Of one row: probabilities are kept away from zero by the rounding unit."""


def log_loss(y: Any, probability: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Mean of −ln(probability given to what happened).

    Probabilities are kept away from 0 and 1 by the rounding unit of their type, so that one confident mistake costs
    much but not everything.

    Parameters
    ----------
    y : array of shape (n,)
        Labels, of any type.
    probability : array of shape (n, K), or (n,) for the second of two classes
        Columns in the order of `classes`; rows must sum to 1.
    sample_weight : array of shape (n,), optional
        How often each row counts.
    classes : sequence, optional
        The classes in the order of the columns; by default those of y, sorted.

    Examples
    --------
    >>> from certifit.metrics import log_loss
    >>> round(log_loss(["no", "yes"], [0.5, 0.5]), 4)
    0.6931
    """
    codes, p, weight = probability_rows(y, probability, sample_weight, classes)
    return float(weight @ _log_losses(codes, p) / weight.sum())


@takes_as(log_loss)
def brier(y: Any, probability: Any, *, sample_weight: Any = None, classes: Any = None) -> float:
    """Mean of ½ Σ_k (p_k − [y = k])², between 0 and 1; for two classes this is the mean of (p − y)².

    Examples
    --------
    >>> from certifit.metrics import brier
    >>> round(brier([0, 1], [0.1, 0.7]), 4)
    0.05
    """
    codes, p, weight = probability_rows(y, probability, sample_weight, classes)
    return float(weight @ _squares(codes, p) / weight.sum())


def losses_log(y: Any, probability: Any, classes: Any = None) -> Array:
    """−ln(probability given to what happened), row by row."""
    codes, p, _ = probability_rows(y, probability, None, classes)
    return _log_losses(codes, p)


def losses_brier(y: Any, probability: Any, classes: Any = None) -> Array:
    """½ Σ_k (p_k − [y = k])², row by row."""
    codes, p, _ = probability_rows(y, probability, None, classes)
    return _squares(codes, p)


def _log_losses(codes: Array, p: Array) -> Array:
    eps = np.finfo(p.dtype).eps
    return -np.log(np.clip(p[np.arange(codes.shape[0]), codes].astype(np.float64), eps, 1.0 - eps))


def _squares(codes: Array, p: Array) -> Array:
    wide = p.astype(np.float64)
    happened = wide[np.arange(codes.shape[0]), codes]
    # (1 − p_y)² + Σ over the others of p², without building the indicator matrix.
    return 0.5 * ((1.0 - happened) ** 2 + np.maximum((wide**2).sum(axis=1) - happened**2, 0.0))
