"""A machine on a plane: its boundary, the edges of its street, and the rows that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.plots.bayes import GRID, plot_classes

__all__ = ["plot_margin"]


def plot_margin(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """`plot_classes` of two classes on two columns, with the margins of the boundary and rings around support vectors.

    Parameters
    ----------
    model : classifier
        Fitted on these rows, with one score a row by `decision_function` and the numbers of rows in `support_`.
    X, y : arrays of shape (n_samples, 2) and (n_samples,)
        The rows of the fit and their labels.
    ax : matplotlib axes, optional
        Where to draw.

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
    >>> [text.get_text() for text in plot_margin(SVC(C=10.0).fit(X, y), X, y).get_legend().get_texts()]
    ['0', '1', 'support vectors']
    """
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn on a plane; got shape {rows.shape}.")
    ax = plot_classes(model, rows, y, ax)
    if len(model.classes_) != 2:
        raise ValueError(
            f"model must tell two classes apart to have one boundary; it knows {list(model.classes_)!r}. plot_classes draws more."
        )
    across, up = (np.linspace(low, high, GRID) for low, high in (ax.get_xlim(), ax.get_ylim()))
    grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    score = np.asarray(model.decision_function(grid)).reshape(GRID, GRID)
    ax.contour(across, up, score, levels=[-1.0, 0.0, 1.0], colors="0.25", linestyles=["--", "-", "--"], linewidths=1.0)
    held = rows[np.asarray(model.support_, dtype=np.intp)]
    ax.plot(held[:, 0], held[:, 1], "o", mfc="none", mec="0.2", ms=8, mew=0.8, label="support vectors")
    ax.legend(frameon=False)
    return ax
