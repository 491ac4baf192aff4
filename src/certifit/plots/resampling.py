"""Pictures of what resampling found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certifit.axes import axes_of, drawn
from certifit.plots.frame import framed

__all__ = ["plot_bias_variance"]

COLORS = {"noise": "#bab0ac", "bias": "#4c78a8", "variance": "#f58518"}


@drawn
def plot_bias_variance(found: Mapping[Any, Any], ax: Any = None) -> Any:
    """Draw the parts of the error side by side, a group of bars for each model, with their intervals.

    Parameters
    ----------
    found : dict of name to Decomposition
        What `bias_variance` returned for each model, or for each value of a parameter.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PolynomialRegression, bias_variance
    >>> from certifit.plots import plot_bias_variance
    >>> x = np.linspace(0, 1, 30)[:, None]
    >>> found = {k: bias_variance(PolynomialRegression(k), x, np.sin(9 * x[:, 0]), n_rounds=20) for k in (1, 5)}
    >>> plot_bias_variance(found).get_ylabel()
    'squared error'
    """
    if not found:
        raise ValueError("found is empty: give at least one decomposition.")
    ax = axes_of(ax)
    shown = [name for name in COLORS if any(getattr(one, name) is not None for one in found.values())]
    width = 0.8 / len(shown)
    together = all(one.noise is None for one in found.values())
    for k, name in enumerate(shown):
        parts = [(at, getattr(one, name)) for at, one in enumerate(found.values()) if getattr(one, name) is not None]
        value, low, high = (np.array([getattr(part, end) for _, part in parts]) for end in ("value", "low", "high"))
        ax.bar(
            [at + (k - 0.5 * (len(shown) - 1)) * width for at, _ in parts],
            value,
            width,
            yerr=np.maximum([value - low, high - value], 0.0),
            color=COLORS[name],
            ecolor="#444444",
            capsize=3,
            label="bias and noise" if name == "bias" and together else name,
        )
    ax.axhline(0.0, color="#444444", lw=0.8)
    loss = next(iter(found.values())).loss
    ax.set_xticks(range(len(found)), [str(name) for name in found])
    return framed(ax, ylabel="squared error" if loss == "squared" else "error rate")
