"""Pictures of trees and forests."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.axes import axes_of, drawn
from certifit.plots.frame import framed

__all__ = ["plot_oob_curve", "plot_tree"]


@drawn
def plot_tree(model: Any, ax: Any = None, max_depth: int | None = None, precision: int = 3) -> Any:
    """Draw a fitted decision tree: questions in the boxes, yes to the left, colored by the prediction.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A fitted tree.
    ax : matplotlib axes, optional
        Where to draw; a figure of a fitting size is made if it is not given.
    max_depth : int, optional
        Deepest level drawn.
    precision : int, default=3
        Significant digits.

    Examples
    --------
    >>> from certifit import DecisionTreeClassifier
    >>> from certifit.plots.tree import plot_tree
    >>> ax = plot_tree(DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"]))
    >>> len(ax.patches)
    3
    """
    return model.plot(ax=ax, max_depth=max_depth, precision=precision)


@drawn
def plot_oob_curve(forest: Any, ax: Any = None) -> Any:
    """Out-of-bag error of a forest after each tree.

    Parameters
    ----------
    forest : RandomForestClassifier or RandomForestRegressor
        Fitted with ``oob_score=True``.
    """
    check_is_fitted(forest)
    if not hasattr(forest, "oob_curve_"):
        raise ValueError("the forest has no out-of-bag estimates: fit it with oob_score=True.")
    ax = axes_of(ax)
    ax.plot(np.arange(1, forest.oob_curve_.shape[0] + 1), forest.oob_curve_, color="#4c78a8")
    if hasattr(forest, "oob_interval_"):
        low, high = forest.oob_interval_
        ax.axhspan(low, high, color="#4c78a8", alpha=0.15, lw=0, label="95 % interval of the last value")
    return framed(ax, xlabel="trees", ylabel="out-of-bag error", ylim=(0, None))
