"""The kink of a falling curve."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.evaluation.metrics.kink import kink


@pytest.mark.parametrize(
    ("curve", "where"),
    [
        ([10, 5, 0, 0, 0], 2),
        ([10, 0, 0, 0], 1),
        ([3, 2, 1], 0),
        ([1, 1, 1, 1], 0),
        ([5, 4], 0),
        ([7], 0),
        ([9, 8.9, 1, 0.9], 2),
    ],
)
def test_the_point_farthest_below_the_line(curve: list[float], where: int) -> None:
    assert kink(curve) == where
    assert kink(1e-200 * np.array(curve)) == where
