"""Pictures of probabilities at work: what thresholds cost, and whether probabilities come true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.axes import axes_of, drawn
from certifit.evaluation.decisions.calibration import CalibrationCurve, calibration_curve
from certifit.evaluation.decisions.thresholds import Costs, parse_costs, threshold_table
from certifit.plots.frame import COLORS, color, framed

__all__ = ["plot_calibration", "plot_cost_curve"]


@drawn
def plot_cost_curve(
    y: Any, p: Any, cost: Any, ax: Any = None, *, sample_weight: Any = None, classes: Any = None
) -> Any:
    """Mean cost of a row over the threshold from which the second class is said.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of two classes.
    p : array of shape (n,), or (n, 2)
        Probability of the second.
    cost : Costs or str
        Such as ``"fp=1,fn=5"``.
    sample_weight : array of shape (n,), optional
    classes : sequence of two labels, optional
        The curve; the threshold that the costs call for; the costs of always saying the one or the other class.

    Examples
    --------
    >>> from certifit.plots import plot_cost_curve
    >>> ax = plot_cost_curve([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9], "fp=1,fn=4")
    >>> ax.get_legend().get_texts()[1].get_text()
    'called for by the costs: 0.2'
    """
    costs = cost if isinstance(cost, Costs) else parse_costs(cost)
    table = threshold_table(y, p, sample_weight=sample_weight, classes=classes)
    mean = table.cost(**costs.as_dict())
    ax = axes_of(ax)
    ax.step(table.threshold, mean, where="pre", color=COLORS[0], label="mean cost")
    ax.axvline(costs.threshold, color=COLORS[1], lw=1.2, label=f"called for by the costs: {costs.threshold:.3g}")
    for value, name, style in ((mean[0], "always yes", ":"), (mean[-1], "always no", "--")):
        ax.axhline(value, color="gray", lw=1, ls=style, label=name)
    return framed(ax, xlabel="threshold", ylabel="mean cost of a row", xlim=(0, 1), ylim=(0, None))


@drawn
def plot_calibration(y: Any, p: Any = None, ax: Any = None, **options: Any) -> Any:
    """Reliability diagram: of the rows with a probability near p, how many come true, with intervals.

    Parameters
    ----------
    y : array of shape (n,), CalibrationCurve, or mapping of name to CalibrationCurve
        Labels of two classes, or curves already computed by `calibration_curve`.
    p : array of shape (n,), (n, 2), or mapping of name to such arrays
        With labels: probabilities of the second class, of one model or of several.
    **options
        Of `calibration_curve`.

    Examples
    --------
    >>> from certifit.plots import plot_calibration
    >>> ax = plot_calibration([0, 0, 1, 0, 1, 1], [0.2, 0.2, 0.2, 0.8, 0.8, 0.8], bins=2)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['probabilities that come true', 'expected calibration error 0.133']
    """
    curves = _curves(y, p, options)
    ax = axes_of(ax)
    ax.plot([0, 1], [0, 1], color="gray", lw=1, ls="--", label="probabilities that come true")
    most = max(one.count for curve in curves.values() for one in curve.bins)
    for k, (name, curve) in enumerate(curves.items()):
        mean, rate, low, high, count = np.array([[b.mean, b.rate, b.low, b.high, b.count] for b in curve.bins]).T
        own = color(k)
        label = f"{name + ': ' if name else ''}expected calibration error {curve.error:.3g}"
        ends = np.maximum([rate - low, high - rate], 0.0)
        ax.errorbar(mean, rate, yerr=ends, color=own, capsize=2, lw=1, label=label)
        ax.scatter(mean, rate, s=10 + 60 * count / most, color=own, zorder=3)
    names = {"xlabel": "stated probability", "ylabel": "share that comes true"}
    return framed(ax, **names, xlim=(0, 1), ylim=(0, 1), aspect="equal", legend="upper left")


def _curves(y: Any, p: Any, options: dict[str, Any]) -> dict[str, CalibrationCurve]:
    """Curves by name; one alone has none."""
    if isinstance(y, CalibrationCurve):
        return {"": y}
    if isinstance(y, Mapping):
        found = {str(name): curve for name, curve in y.items()}
        wrong = [name for name, curve in found.items() if not isinstance(curve, CalibrationCurve)]
        if wrong or not found:
            raise TypeError(f"y must map names to curves of calibration_curve; {wrong[:1]!r} is none.")
        return found
    if p is None:
        raise ValueError("p must be given with labels: the probabilities of the second class.")
    parts = p if isinstance(p, Mapping) else {"": p}
    return {str(name): calibration_curve(y, one, **options) for name, one in parts.items()}
