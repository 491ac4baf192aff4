"""Losses as curves."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.losses import Huber
from certifit.plots import plot_losses


def test_curves_are_the_losses() -> None:
    ax = plot_losses(["hinge", "exponential"])
    at, hinge = ax.lines[0].get_data()
    np.testing.assert_allclose(hinge, np.maximum(0.0, 1.0 - at))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), np.exp(-at))
    values = plot_losses(["squared", Huber(0.5)], reach=2.0)
    at, squared = values.lines[0].get_data()
    np.testing.assert_allclose(squared, 0.5 * at**2)
    assert values.get_xlabel() == "residual f − y"
    assert at[[0, -1]].tolist() == [-2.0, 2.0]


def test_all_losses_of_two_classes_by_default() -> None:
    assert {"hinge", "logistic"} <= {line.get_label() for line in plot_losses().lines}


def test_one_task_only() -> None:
    with pytest.raises(ValueError, match="of one task"):
        plot_losses(["hinge", "squared"])
