"""Pictures of learning: scores over the rows or over a parameter, and what more rows should bring."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from certifit.axes import axes_of, drawn
from certifit.plots.frame import BLUE, GRAY, RED, framed

__all__ = ["plot_learning_curve", "plot_validation_curve"]


@drawn
def plot_learning_curve(curve: Any, ax: Any = None, *, until: float | None = None) -> Any:
    """Scores of training rows and of rows not seen as the training rows grow, with the interval of the latter.

    Parameters
    ----------
    curve : LearningCurve
        What `learning_curve` found.
    until : float, optional
        How many rows to expect scores for: the fitted law is drawn so far, with its band.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import Ridge, learning_curve
    >>> from certifit.plots import plot_learning_curve
    >>> curve = learning_curve(Ridge(alpha=1e-5), *load_diabetes(return_X_y=True), "rmse")
    >>> plot_learning_curve(curve, until=1000).get_xlabel()
    'training rows'
    """
    ax = axes_of(ax)
    rows = np.asarray(curve.rows, dtype=np.float64)
    _pair(ax, rows, curve)
    if until is not None:
        ahead = np.linspace(rows[-1], float(until), 40)
        expected, low, high = np.array([curve.expected(n) for n in ahead]).T
        ax.fill_between(ahead, low, high, color=BLUE, alpha=0.1, lw=0)
        ax.plot(ahead, expected, color=BLUE, ls=":", label="expected of more rows")
    ax.set_title(textwrap.fill(curve.reading, 56), fontsize=9)
    return framed(ax, xlabel="training rows", ylabel=curve.label)


@drawn
def plot_validation_curve(curve: Any, ax: Any = None) -> Any:
    """Scores of training rows and of rows not seen over a parameter; the best value is marked.

    Parameters
    ----------
    curve : ValidationCurve
        What `validation_curve` found. Positive numbers that span more than a factor of twenty are drawn on a logarithmic axis.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import Ridge, validation_curve
    >>> from certifit.plots import plot_validation_curve
    >>> curve = validation_curve(Ridge(), *load_diabetes(return_X_y=True), "rmse", "alpha", [1e-7, 1e-5, 1e-3])
    >>> plot_validation_curve(curve).get_xscale()
    'log'
    """
    ax = axes_of(ax)
    numeric = all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in curve.values)
    at = np.asarray(curve.values, dtype=np.float64) if numeric else np.arange(len(curve.values), dtype=np.float64)
    _pair(ax, at, curve)
    best = float(curve.best) if numeric else float([*curve.values].index(curve.best))
    ax.axvline(best, color=GRAY, lw=1, ls="--", label=f"best: {curve.best:.3g}" if numeric else f"best: {curve.best}")
    if not numeric:
        ax.set_xticks(at, [str(value) for value in curve.values])
    elif at.min() > 0 and at.max() > 20 * at.min():
        ax.set_xscale("log")
    return framed(ax, xlabel=curve.parameter, ylabel=curve.label)


def _pair(ax: Any, at: Any, curve: Any) -> None:
    """Both lines, and the interval of rows not seen."""
    ax.plot(at, curve.train, "o-", color=RED, ms=3, label="training rows")
    ax.fill_between(at, curve.low, curve.high, color=BLUE, alpha=0.2, lw=0)
    ax.plot(at, curve.validation, "o-", color=BLUE, ms=3, label=f"rows not seen, {100 * curve.level:g} % interval")
