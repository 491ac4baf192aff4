"""What the pictures of decisions show is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import calibration_curve
from certifit.evaluation.decisions.thresholds import Costs
from certifit.plots import plot_calibration, plot_cost_curve

RNG = np.random.default_rng(0)
P = RNG.beta(0.7, 1.0, size=400)
Y = (RNG.random(400) < P).astype(int)


def test_the_cost_curve_is_the_mean_cost_at_each_threshold() -> None:
    costs = Costs(fp=1.0, fn=5.0, tp=0.5)
    ax = plot_cost_curve(Y, P, costs)
    curve, own, yes, no = ax.get_lines()
    for threshold, value in list(zip(*curve.get_data(), strict=True))[::20]:
        said = threshold <= P
        each = np.select([said & (Y == 0), ~said & (Y == 1), said & (Y == 1)], [1.0, 5.0, 0.5], 0.0)
        assert value == pytest.approx(each.mean())
    assert own.get_xdata()[0] == pytest.approx(costs.threshold)
    assert yes.get_ydata()[0] == pytest.approx((Y == 0).mean() + 0.5 * (Y == 1).mean())
    assert no.get_ydata()[0] == pytest.approx(5.0 * (Y == 1).mean())


def test_the_reliability_diagram_shows_the_bins() -> None:
    curve = calibration_curve(Y, P, bins=5)
    for ax in (plot_calibration(Y, P, bins=5), plot_calibration(curve), plot_calibration({"one": curve})):
        points = ax.collections[-1].get_offsets()
        np.testing.assert_allclose(points, [[one.mean, one.rate] for one in curve.bins])
        assert f"{curve.error:.3g}" in ax.get_legend().get_texts()[1].get_text()
    both = plot_calibration(Y, {"as it is": P, "squared": P**2})
    assert [text.get_text().split(":")[0] for text in both.get_legend().get_texts()[1:]] == ["as it is", "squared"]


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="p must be given"):
        plot_calibration(Y)
    with pytest.raises(TypeError, match="curves of calibration_curve"):
        plot_calibration({"a": [1, 2]})
    with pytest.raises(ValueError, match="Write costs as"):
        plot_cost_curve(Y, P, "fp=1")
