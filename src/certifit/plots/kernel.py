"""Kernels in pictures: a machine on a plane with the rows that hold its street, and the similarities of all pairs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.axes import axes_of, drawn
from certifit.plots.bayes import plot_classes
from certifit.plots.frame import GRID
from certifit.representation.kernels import Kernel, resolve_kernel

__all__ = ["plot_gram", "plot_margin"]


@drawn
def plot_margin(model: Any, X: Any, y: Any, ax: Any = None) -> Any:
    """`plot_classes` of two classes on two columns, with the margins of the boundary and rings around support vectors.

    Parameters
    ----------
    model : classifier
        Fitted on these rows, with one score a row by `decision_function` and the numbers of rows in `support_`.
    X, y : arrays of shape (n_samples, 2) and (n_samples,)
        The rows of the fit and their labels.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from certifit import SVC
    >>> from certifit.plots import plot_margin
    >>> X, y = make_moons(60, noise=0.1, random_state=0)
    >>> [text.get_text() for text in plot_margin(SVC(C=10.0).fit(X, y), X, y).get_legend().get_texts()]
    ['0', '1', 'support vectors']
    """
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise ValueError(f"X must have two columns to be drawn on a plane; got shape {rows.shape}.")
    check_is_fitted(model)
    if not hasattr(model, "support_"):
        raise TypeError(
            f"model must be a classifier with support vectors, such as SVC; got {type(model).__name__}. "
            "plot_classes draws its boundary."
        )
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


@drawn
def plot_gram(kernel: Any, X: Any, y: Any = None, ax: Any = None) -> Any:
    """The Gram matrix as an image, its rows ordered so that similar ones are neighbors.

    With labels the rows go class by class, each class in an order of its own. Bright blocks on the diagonal are
    groups that the kernel sees; labels that it can tell apart are such blocks.

    Parameters
    ----------
    kernel : str, Kernel, callable or fitted model
        As models on a kernel take it, or a fitted one, whose ``kernel_`` is drawn.
    X : array or sparse matrix of shape (n, d), or a sequence of what the kernel takes
        The rows; the matrix itself for ``"precomputed"``.
    y : array of shape (n,), optional
        Labels.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.kernels import RBF
    >>> from certifit.plots import plot_gram
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0.0], [5.0], [10.0]], 20, axis=0)
    >>> ax = plot_gram(RBF(gamma=0.1), X, np.repeat(["a", "b", "c"], 20))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['a', 'b', 'c']
    """
    similarity: Kernel = getattr(kernel, "kernel_", None) or resolve_kernel(kernel)
    K = similarity(X)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not K.size or not np.isfinite(K).all():
        raise ValueError(
            f"the similarities must be a square matrix of finite numbers to be drawn; got shape {K.shape}."
        )
    n = K.shape[0]
    labels, codes = (np.zeros(1), np.zeros(n, dtype=np.intp)) if y is None else np.unique(y, return_inverse=True)
    if codes.shape != (n,):
        raise ValueError(f"y must have a label for each of the {n} rows; got {codes.size}.")
    groups = [np.flatnonzero(codes == k) for k in range(labels.shape[0])]
    order = np.concatenate([rows[np.argsort(_coordinate(K[np.ix_(rows, rows)]), kind="stable")] for rows in groups])
    ax = axes_of(ax)
    image = ax.imshow(K[np.ix_(order, order)], cmap="viridis", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label=str(similarity))
    ends = np.cumsum([rows.size for rows in groups])
    for end in ends[:-1]:
        ax.axhline(end - 0.5, color="white", lw=0.8)
        ax.axvline(end - 0.5, color="white", lw=0.8)
    if y is not None:
        middle = ends - 0.5 * np.array([rows.size for rows in groups]) - 0.5
        ax.set_xticks(middle, [str(label) for label in labels])
        ax.set_yticks(middle, [str(label) for label in labels])
    return ax


def _coordinate(K: Array) -> Array:
    """Fiedler's vector of the similarities: its order is right wherever some order has them fall away from the diagonal.

    Atkins, Boman and Hendrickson 1998. The sign is that which makes the first large entry positive.
    """
    if K.shape[0] < 3:
        return np.zeros(K.shape[0])
    similar = 0.5 * (K + K.T)
    similar -= similar.min()
    laplacian = np.diag(similar.sum(axis=0)) - similar
    fiedler = scipy.linalg.eigh(laplacian, subset_by_index=[1, 1], check_finite=False)[1][:, 0]
    return np.asarray(fiedler * np.sign(fiedler[np.argmax(np.abs(fiedler) > 0.5 * np.abs(fiedler).max())]))
