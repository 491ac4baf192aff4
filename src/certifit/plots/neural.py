"""Pictures of networks: the losses of the epochs, and the first layer as images."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit.axes import axes_of, drawn
from certifit.data.gate import check_real
from certifit.plots.frame import COLORS, framed

__all__ = ["plot_first_layer", "plot_history"]


@drawn
def plot_history(model: Any, ax: Any = None) -> Any:
    """Loss of each epoch, of the rows learned from and of those set aside; a dot marks the weights that were kept.

    Parameters
    ----------
    model : MLPClassifier, MLPRegressor or NeuralNetwork
        A fitted network.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MLPRegressor
    >>> from certifit.plots import plot_history
    >>> X = np.linspace(-1, 1, 60)[:, None]
    >>> model = MLPRegressor(hidden=(8,), max_iter=5, early_stopping=True, random_state=0).fit(X, X[:, 0] ** 2)
    >>> [line.get_label() for line in plot_history(model).lines]
    ['training', 'held out', 'kept']
    """
    check_is_fitted(model)
    ax = axes_of(ax)
    curves = {"training": model.history_["loss"], "held out": model.history_["validation_loss"]}
    shown = {name: values for name, values in curves.items() if values}
    for (name, values), color in zip(shown.items(), COLORS, strict=False):
        ax.plot(np.arange(1, len(values) + 1), values, color=color, label=name)
    if shown and model.best_epoch_ > 0:
        watched = list(shown.values())[-1]
        ax.plot([model.best_epoch_], [watched[model.best_epoch_ - 1]], "o", color="black", label="kept")
    return framed(ax, xlabel="iteration" if model.optimizer == "lbfgs" else "epoch", ylabel="mean loss")


@drawn
def plot_first_layer(model: Any, shape: tuple[int, int], ax: Any = None, n_units: int = 25) -> Any:
    """What the units of the first layer look for, as images: the units with the longest weights, in rows.

    Parameters
    ----------
    model : MLPClassifier, MLPRegressor or NeuralNetwork
        A network fitted on pixels.
    shape : (int, int)
        Height and width of an image; their product is the number of columns of X.
    n_units : int, default=25
        Most units shown.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from certifit import MLPClassifier
    >>> from certifit.plots import plot_first_layer
    >>> digits = load_digits()
    >>> model = MLPClassifier(hidden=(16,), max_iter=5, random_state=0).fit(digits.data, digits.target)
    >>> plot_first_layer(model, (8, 8)).images[0].get_array().shape  # four by four units, a line between them
    (35, 35)
    """
    check_is_fitted(model)
    weights = model.coefs_[0]
    check_real("n_units", n_units, low=1, integer=True)
    height, width = shape if np.shape(shape) == (2,) else (0, 0)
    if min(height, width) < 1 or height * width != weights.shape[0]:
        raise ValueError(f"shape must have as many pixels as X has columns, {weights.shape[0]}; got {shape!r}.")
    chosen = np.argsort(-np.linalg.norm(weights, axis=0), kind="stable")[:n_units]
    across = int(np.ceil(np.sqrt(chosen.shape[0])))
    down = int(np.ceil(chosen.shape[0] / across))
    canvas = np.full((down * (height + 1) - 1, across * (width + 1) - 1), np.nan)
    for place, unit in enumerate(chosen):
        image = weights[:, unit].reshape(height, width) / max(float(np.abs(weights[:, unit]).max()), 1e-300)
        top, left = (place // across) * (height + 1), (place % across) * (width + 1)
        canvas[top : top + height, left : left + width] = image
    ax = axes_of(ax)
    ax.imshow(canvas, cmap="RdBu", vmin=-1.0, vmax=1.0, interpolation="nearest")
    ax.set_axis_off()
    return ax
