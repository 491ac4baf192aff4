"""Where a falling curve stops falling: the kink."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["kink"]


def kink(values: Any) -> int:
    """Position of the kink of a falling curve: the point farthest below the line from its first value to its last.

    Parameters
    ----------
    values : sequence of float
        The curve, such as the cost of 1, 2, … clusters or the variances of components.

    Returns
    -------
    int
        A position from 0 on; 0 for fewer than three values and for a straight line.

    Examples
    --------
    >>> from certifit.evaluation.metrics.kink import kink
    >>> kink([100.0, 40.0, 10.0, 8.0, 7.0, 6.0])
    2
    """
    curve = np.asarray(values, dtype=np.float64)
    if curve.shape[0] < 3 or curve[0] == curve[-1]:
        return 0
    steps = np.linspace(0.0, 1.0, curve.shape[0])
    below = (1.0 - steps) - (curve - curve[-1]) / (curve[0] - curve[-1])
    return int(np.argmax(below)) if below.max() > 1e-12 else 0
