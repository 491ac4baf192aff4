"""Pictures of what a model looks at: which columns matter, and how predictions move with one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from certifit.axes import axes_of, drawn
from certifit.plots.frame import BLUE, GRAY, column_label, framed

__all__ = ["plot_dependence", "plot_importance"]


@drawn
def plot_importance(found: Sequence[Any], ax: Any = None, *, most: int = 20) -> Any:
    """What shuffling each column costs, with intervals, the costliest first.

    Parameters
    ----------
    found : list of Importance
        What `permutation_importance` found.
    most : int, default=20
        How many columns are drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import Ridge, permutation_importance
    >>> from certifit.plots import plot_importance
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> found = permutation_importance(Ridge(alpha=1e-5).fit(X, y), X, y)
    >>> plot_importance(found).get_yticklabels()[-1].get_text()
    's5'
    """
    if not len(found):
        raise ValueError("found is empty: give the importance of at least one column.")
    shown = list(found)[:most][::-1]
    mean, low, high = (np.array([getattr(one, name) for one in shown]) for name in ("mean", "low", "high"))
    ax, at = axes_of(ax), np.arange(len(shown))
    ax.barh(
        at, mean, color=BLUE, alpha=0.6, xerr=np.maximum([mean - low, high - mean], 0.0), ecolor="#444444", capsize=2
    )
    ax.axvline(0.0, color=GRAY, lw=0.8)
    ax.set_yticks(at, [column_label(one.feature) for one in shown])
    return framed(ax, xlabel="loss by shuffling the column")


@drawn
def plot_dependence(found: Any, ax: Any = None) -> Any:
    """The mean prediction over one column, the band of most rows, and the curves of single rows where they were kept.

    Parameters
    ----------
    found : Dependence
        What `partial_dependence` found; with ``lines=50``, say, it keeps the curves of 50 rows.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge, partial_dependence
    >>> from certifit.plots import plot_dependence
    >>> X = np.random.default_rng(0).normal(size=(80, 3))
    >>> found = partial_dependence(Ridge(alpha=0.01).fit(X, X[:, 1]), X, 1, lines=10)
    >>> len(plot_dependence(found).lines)
    11
    """
    ax = axes_of(ax)
    levels = found.kind == "category"
    at = np.arange(len(found.grid)) if levels else np.asarray(found.grid)
    if levels:
        reach = np.abs(np.array([found.low, found.high]) - np.asarray(found.mean))
        ax.errorbar(at, found.mean, yerr=reach, fmt="o", color=BLUE, capsize=3, label="mean, and 80 % of the rows")
        ax.set_xticks(at, [str(value) for value in found.grid])
    else:
        ax.fill_between(at, found.low, found.high, color=BLUE, alpha=0.15, lw=0, label="80 % of the rows")
        for line in found.lines:
            ax.plot(at, line, color=GRAY, lw=0.5, alpha=0.5)
        ax.plot(at, found.mean, color=BLUE, lw=2, label="mean")
    return framed(ax, xlabel=column_label(found.feature), ylabel="prediction")
