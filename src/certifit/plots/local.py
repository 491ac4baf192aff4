"""Pictures of local fits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from certifit.axes import axes_of, drawn
from certifit.data.gate import check_real
from certifit.plots.frame import framed

__all__ = ["plot_local_fit"]


@drawn
def plot_local_fit(model: Any, ax: Any = None, level: float = 0.95, points: int = 300) -> Any:
    """Draw a local regression of one column: the rows, the curve, and a band around the curve.

    Parameters
    ----------
    model : LocallyWeightedRegression
        Fitted on one column and one target.
    level : float, default=0.95
        Of the band, at each place by itself, from the standard errors; it knows nothing of the bias of a wide bandwidth.
    points : int, default=300
        Places at which the curve is computed.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LocallyWeightedRegression
    >>> from certifit.plots.local import plot_local_fit
    >>> x = np.linspace(0, 6, 80)[:, None]
    >>> ax = plot_local_fit(LocallyWeightedRegression().fit(x, np.sin(x[:, 0])))
    >>> len(ax.lines)
    1
    """
    check_real("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    check_real("points", points, low=2, integer=True)
    if not hasattr(model, "rows"):
        raise TypeError(f"model must be a LocallyWeightedRegression; got {type(model).__name__}.")
    X, y = model.rows()
    if X.shape[1] != 1 or y.shape[1] != 1:
        raise ValueError(
            f"a curve is drawn for one column and one target; the model has {X.shape[1]} columns and {y.shape[1]} targets."
        )
    at = np.linspace(X.min(), X.max(), points)
    mean, error = (np.asarray(part).reshape(-1) for part in model.predict(at[:, None], return_std=True))
    ax = axes_of(ax)
    ax.scatter(X[:, 0], y[:, 0], s=8, color="#999999", alpha=0.5, lw=0)
    if np.isfinite(error).all():
        wide = float(ndtri(0.5 + 0.5 * level)) * error
        ax.fill_between(at, mean - wide, mean + wide, color="#4c78a8", alpha=0.2, lw=0, label=f"{100 * level:g} % band")
    ax.plot(at, mean, color="#4c78a8")
    name = getattr(model, "feature_names_in_", ["x"])[0]
    return framed(ax, xlabel=str(name), ylabel="y")
