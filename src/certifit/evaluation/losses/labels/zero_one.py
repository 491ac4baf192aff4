"""The 0-1 loss: what a decision is judged by, and what no solver minimizes."""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.labels.margin import check_binary


class ZeroOne(Loss):
    """ℓ(y, f) = 1 where the sign of the score is on the wrong side of y in {0, 1}, 0 elsewhere; a score of zero decides for 0.

    It evaluates; its slope is zero wherever it has one, so that models are fitted with the losses that lie above it (hinge,
    logistic divided by ln 2, exponential).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import ZeroOne
    >>> ZeroOne().value(np.array([0.0, 1.0, 1.0]), np.array([-1.0, -1.0, 2.0]))
    array([0., 1., 0.])
    """

    name = "zero_one"
    task = "binary"

    def value(self, y: Array, f: Array) -> Array:
        return ((f > 0) != (y == 1)).astype(np.float64)

    def derivative(self, y: Array, f: Array) -> Array:
        raise TypeError(
            "The 0-1 loss has no slope to follow: fit with 'logistic', 'hinge' or 'exponential', which lie above it."
        )

    def optimal_constant(self, y: Array, weight: Array) -> float:
        """A score on the side of the class of most weight."""
        return 1.0 if float(weight @ y) > 0.5 * float(weight.sum()) else -1.0

    def check_target(self, y: Array) -> None:
        check_binary(y, "0-1")
