"""Pictures of classifiers at all thresholds at once, and at one: ROC, precision and recall, confusion.

The bands hold the whole curve at once. The rates of n rows of a class are everywhere within

    ε = √(ln(2 / (1 − √level)) / (2 n))

of those of all such rows, with probability √level (Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990): the band is the curve
moved by the ε of the one class upward and downward, and by that of the other class sideways.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.axes import axes_of, drawn
from certifit.evaluation.metrics.inputs import check_labels, check_level
from certifit.evaluation.metrics.labels import confusion_matrix
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.ranking import average_precision, pr_curve, roc_auc, roc_curve
from certifit.plots.frame import GRAY, GRID, color, framed

__all__ = ["plot_confusion", "plot_precision_recall", "plot_roc", "roc_band"]


def roc_band(y: Any, score: Any, level: float = 0.95, *, classes: Any = None) -> tuple[Array, Array, Array]:
    """False positive rates, and the least and greatest true positive rates there, of the band that holds the whole curve."""
    found = roc_curve(y, score, classes=classes)
    labels = np.unique(y) if classes is None else np.asarray(classes)
    positive = int((np.asarray(y) == labels[1]).sum())
    up, across = (_reach(n, check_level(level)) for n in (positive, np.asarray(y).shape[0] - positive))
    grid = np.linspace(0.0, 1.0, GRID + 1)
    low = np.clip(_steps(found.fpr, found.tpr, grid - across) - up, 0.0, 1.0)
    high = np.clip(_steps(found.fpr, found.tpr, grid + across) + up, 0.0, 1.0)
    return grid, low, high


def _reach(n: int, level: float) -> float:
    return float(np.sqrt(np.log(2.0 / (1.0 - np.sqrt(level))) / (2.0 * n)))


def _steps(fpr: Array, tpr: Array, at: Array) -> Array:
    """The greatest true positive rate with at most these false ones; nothing before zero."""
    place = np.searchsorted(fpr, at + 1e-12, side="right") - 1
    return np.where(at < 0.0, 0.0, tpr[np.maximum(place, 0)])


@drawn
def plot_roc(model: Any, X: Any, y: Any, ax: Any = None, *, level: float | None = 0.95, classes: Any = None) -> Any:
    """True against false positive rate over all thresholds, with a band that holds the whole curve.

    Parameters
    ----------
    model : fitted classifier, function of X, or mapping of name to such
        With `decision_function` or `predict_proba`, of two classes.
    X, y : arrays of shape (n_samples, n_features) and (n_samples,)
        Rows that the model has not seen, and their labels.
    level : float or None, default=0.95
        Confidence of the band; None draws none.
    classes : sequence of two labels, optional
        First the negative, then the positive class.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LogisticRegression
    >>> from certifit.plots import plot_roc
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
    >>> ax = plot_roc(LogisticRegression().fit(X[:100], y[:100]), X[100:], y[100:])
    >>> ax.get_legend().get_texts()[1].get_text()
    'area 0.806'
    """
    ax, labels = axes_of(ax), check_labels("y", y)
    ax.plot([0, 1], [0, 1], color=GRAY, lw=1, ls="--", label="by chance")
    for k, (name, one) in enumerate(_named(model).items()):
        score = _score(one, X)
        found = roc_curve(labels, score, classes=classes)
        area = roc_auc(labels, score, classes=classes)
        if level is not None:
            grid, low, high = roc_band(labels, score, level, classes=classes)
            ax.fill_between(grid, low, high, color=color(k), alpha=0.15, lw=0)
        ax.plot(found.fpr, found.tpr, color=color(k), drawstyle="steps-post", label=f"{name}area {area:.3f}")
    names = {"xlabel": "false positive rate", "ylabel": "true positive rate"}
    return framed(ax, **names, xlim=(0, 1), ylim=(0, 1.01), aspect="equal", legend="lower right")


def plot_precision_recall(
    model: Any, X: Any, y: Any, ax: Any = None, *, level: float | None = 0.95, classes: Any = None
) -> Any:
    """Precision over recall at all thresholds, with the band that follows from that of the ROC curve.

    Precision depends on how common the positive class is: curve and band are for its share among these rows.

    Parameters
    ----------
    model, X, y, ax, level, classes
        As for `plot_roc`.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from certifit import DecisionTreeClassifier, LogisticRegression
    >>> from certifit.plots import plot_precision_recall
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> models = {"line": LogisticRegression().fit(X, y), "tree": DecisionTreeClassifier(max_depth=3).fit(X, y)}
    >>> [text.get_text() for text in plot_precision_recall(models, X, y).get_legend().get_texts()]
    ['share of 1: 0.5', 'line: average precision 0.932', 'tree: average precision 0.916']
    """
    ax, labels = axes_of(ax), check_labels("y", y)
    known = np.unique(labels) if classes is None else np.asarray(classes)
    share = float(np.mean(labels == known[1]))
    ax.axhline(share, color=GRAY, lw=1, ls="--", label=f"share of {known[1]}: {share:.3g}")
    for k, (name, one) in enumerate(_named(model).items()):
        score = _score(one, X)
        found = pr_curve(labels, score, classes=classes)
        area = average_precision(labels, score, classes=classes)
        if level is not None:
            recall, least, most = _precision_band(*roc_band(labels, score, level, classes=classes), share)
            ax.fill_between(recall, least, most, color=color(k), alpha=0.15, lw=0)
        ax.plot(found.recall, found.precision, color=color(k), label=f"{name}average precision {area:.3f}")
    return framed(ax, xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.01), legend="lower left")


def _precision_band(grid: Array, low: Array, high: Array, share: float) -> tuple[Array, Array, Array]:
    """For each recall the false positive rates within the band, and the precisions that they make."""
    recall = np.linspace(0.01, 1.0, GRID)
    fewest = grid[np.minimum(np.searchsorted(high, recall - 1e-12), grid.shape[0] - 1)]
    reached = np.searchsorted(low, recall - 1e-12)
    most = np.where(reached < grid.shape[0], grid[np.minimum(reached, grid.shape[0] - 1)], 1.0)
    hits = share * recall
    return recall, hits / (hits + (1.0 - share) * most), hits / (hits + (1.0 - share) * fewest)


@drawn
def plot_confusion(model: Any, X: Any, y: Any, ax: Any = None, *, normalize: bool = True) -> Any:
    """How rows of each class were called: counts, and colors by their share of the class.

    Parameters
    ----------
    model : fitted classifier
    X, y : arrays of shape (n_samples, n_features) and (n_samples,)
    normalize : bool, default=True
        Whether shares stand beside the counts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from certifit import LogisticRegression
    >>> from certifit.plots import plot_confusion
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_confusion(LogisticRegression().fit(X, y), X, y, normalize=False)
    >>> [text.get_text() for text in ax.texts]
    ['50', '0', '0', '0', '47', '3', '0', '1', '49']
    """
    labels, said = check_labels("y", y), np.asarray(model.predict(X))
    known = np.unique(np.concatenate([getattr(model, "classes_", labels), labels]))
    counts = confusion_matrix(labels, said, classes=known)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    ax = axes_of(ax)
    ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0)
    for i, j in np.ndindex(*counts.shape):
        text = f"{counts[i, j]:g}" + (f"\n{100 * share[i, j]:.0f} %" if normalize else "")
        ax.text(j, i, text, ha="center", va="center", color="white" if share[i, j] > 0.5 else "black")
    names = [str(label) for label in known]
    ax.set_xticks(range(len(names)), names)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def _named(model: Any) -> dict[str, Any]:
    """Models by what stands before their numbers; one alone needs no name."""
    if not isinstance(model, Mapping):
        return {"": model}
    if not model:
        raise ValueError("model is empty: give at least one.")
    return {f"{name}: ": one for name, one in model.items()}


def _score(model: Any, X: Any) -> Array:
    score = predict_for(model, X, "score")
    return score[:, 1] if score.ndim == 2 and score.shape[1] == 2 else score
