"""A machine on a plane: its boundary, the edges of its street, and the rows that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.axes import axes_of

__all__ = ["plot_margin"]

POINTS = 200  # of the grid, along each side
COLORS = ("#3b6fb6", "#c8553d")


def plot_margin(model: Any, X: Any, y: Any, *, ax: Any = None) -> Any:
    """The decision boundary of two classes with its margins and support vectors, on two columns.

    Parameters
    ----------
    model : classifier
        Fitted, with `decision_function` of one score a row; rows of its `support_` are ringed.
    X : array of shape (n_samples, 2)
        The rows of the fit.
    y : array of shape (n_samples,)
        Their labels.
    ax : matplotlib axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SVC
    >>> from certifit.plots import plot_margin
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> plot_margin(SVC(C=10.0).fit(X, y), X, y).get_title()
    'The boundary, and the rows that hold its margins'
    """
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    classes = np.asarray(model.classes_)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn on a plane; got shape {rows.shape}.")
    if classes.shape[0] != 2:
        raise ValueError(f"model must tell two classes apart to have one boundary; it knows {classes.tolist()!r}.")
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"y must have one label for each of the {rows.shape[0]} rows of X; got shape {labels.shape}.")
    drawn = axes_of(ax)
    low, high = rows.min(axis=0), rows.max(axis=0)
    room = 0.08 * np.where(high > low, high - low, 1.0)
    across, up = (np.linspace(low[j] - room[j], high[j] + room[j], POINTS) for j in (0, 1))
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    score = np.asarray(model.decision_function(grid)).reshape(POINTS, POINTS)
    drawn.contourf(across, up, score, levels=[-np.inf, 0.0, np.inf], colors=COLORS, alpha=0.12)
    drawn.contour(
        across, up, score, levels=[-1.0, 0.0, 1.0], colors="0.25", linestyles=["--", "-", "--"], linewidths=1.0
    )
    for label, color in zip(classes, COLORS, strict=True):
        own = labels == label
        drawn.scatter(rows[own, 0], rows[own, 1], s=16, color=color, label=str(label))
    held = rows[np.asarray(getattr(model, "support_", []), dtype=np.intp)]
    drawn.scatter(
        held[:, 0], held[:, 1], s=60, facecolors="none", edgecolors="0.2", linewidths=0.8, label="support vectors"
    )
    drawn.set_title("The boundary, and the rows that hold its margins")
    drawn.legend(loc="best", fontsize="small")
    return drawn
