"""The .632+ estimate: between the error on training rows, which is too low, and that of the bootstrap, which is too high.

    error.632+ = (1 − w)·apparent + w·bootstrap,    w = 0.632/(1 − 0.368·R),    R = (bootstrap − apparent)/(γ − apparent)

γ is the error of the same predictions when they have nothing to do with the targets: the mean of loss(y_i, f(x_j)) over all
i and j. R runs from 0 (no overfitting) to 1 (nothing but).     Efron and Tibshirani (1997)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.metrics.registry import Metric

__all__ = ["error_632_plus", "no_information"]

EXACT = 300  # rows up to which every pair is met
SHIFTS = 200


def error_632_plus(apparent: float, bootstrap: float, chance: float) -> float:
    """The estimate from its three errors, of which lower is better.

    Examples
    --------
    >>> from certifit.evaluation.resampling.optimism import error_632_plus
    >>> round(error_632_plus(0.0, 0.5, 0.5), 4)  # nothing but overfitting: no better than chance
    0.5
    >>> round(error_632_plus(0.1, 0.1, 0.5), 4)
    0.1
    """
    worst = min(bootstrap, chance) if chance > apparent else bootstrap
    overfit = (worst - apparent) / (chance - apparent) if chance > apparent and bootstrap > apparent else 0.0
    w = 0.632 / (1.0 - 0.368 * min(max(overfit, 0.0), 1.0))
    return (1.0 - w) * apparent + w * worst


def no_information(
    metric: Metric, y: Array, prediction: Array, weight: Array, classes: Any, rng: np.random.Generator
) -> float:
    """γ: the mean loss when every prediction meets every target, or a random 200 of the n ways to shift them."""
    n = y.shape[0]
    order = rng.permutation(n)
    shifts = np.arange(n) if n <= EXACT else rng.choice(n, size=SHIFTS, replace=False)
    loss = mass = 0.0
    for shift in shifts:
        other = np.roll(order, -int(shift))
        pair = weight[order] * weight[other]
        loss += float(pair @ metric.losses(y[order], prediction[other], classes))
        mass += float(pair.sum())
    return loss / mass
