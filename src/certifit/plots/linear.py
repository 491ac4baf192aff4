"""Pictures of linear models: their coefficients, the path of them, residuals, and rows that pull."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from certifit._types import Array
from certifit.axes import axes_of, drawn
from certifit.plots.frame import BLUE, GRAY, RED, color, framed, panels

__all__ = ["plot_coefficients", "plot_influence", "plot_path", "plot_residuals"]

NAMED = 8  # lines that the legend of a path names


@drawn
def plot_path(path: Any, ax: Any = None, *, names: Any = None, chosen: float | None = None) -> Any:
    """Coefficients over alpha, from strong penalties on the left to weak ones on the right.

    Parameters
    ----------
    path : RegularizationPath, or tuple of alphas and coefficients
        Such as ``Lasso.path(X, y)``; of scikit-learn's ``lasso_path`` too, whose coefficients are the other way round.
    names : sequence of str, optional
        Of the columns; those of the largest coefficients are in the legend.
    chosen : float, optional
        An alpha to mark.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import Lasso
    >>> from certifit.plots import plot_path
    >>> len(plot_path(Lasso.path(*load_diabetes(return_X_y=True))).lines)  # one for each column, and zero
    11
    """
    alphas, coefs = np.asarray(path[0], dtype=np.float64), np.asarray(path[1], dtype=np.float64)
    if coefs.ndim != 2 or alphas.shape[0] not in coefs.shape:
        raise ValueError(f"path must have a row of coefficients for each alpha; got {alphas.shape} and {coefs.shape}.")
    coefs = coefs if coefs.shape[0] == alphas.shape[0] else coefs.T
    labels = [f"x{j}" for j in range(coefs.shape[1])] if names is None else [str(name) for name in names]
    if len(labels) != coefs.shape[1]:
        raise ValueError(f"names must be {coefs.shape[1]}, one for each column; got {len(labels)}.")
    ax = axes_of(ax)
    ax.axhline(0.0, color=GRAY, lw=0.8)
    for k, j in enumerate(np.argsort(-np.abs(coefs).max(axis=0), kind="stable")):
        shown = k < NAMED
        tone = color(k) if shown else GRAY
        ax.plot(alphas, coefs[:, j], color=tone, lw=1.4 if shown else 0.6, label=labels[j] if shown else None)
    if chosen is not None:
        ax.axvline(chosen, color="black", lw=1, ls="--", label=f"chosen: {chosen:.3g}")
    ax.set_xscale("log")
    return framed(ax, xlabel="alpha", ylabel="coefficient", xlim=(alphas.max(), alphas.min()))


@drawn
def plot_coefficients(model: Any, ax: Any = None, *, level: float = 0.95, most: int = 25, names: Any = None) -> Any:
    """Coefficients with their intervals, the largest first.

    Parameters
    ----------
    model : fitted linear model
        One with `summary` has intervals, of an unpenalized fit; of any other with `coef_` the coefficients alone are drawn.
    level : float, default=0.95
        Confidence of the intervals.
    most : int, default=25
        How many are drawn.
    names : sequence of str, optional
        Of the columns; those of the data frame of the fit by default.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import LinearRegression
    >>> from certifit.plots import plot_coefficients
    >>> model = LinearRegression().fit(*load_diabetes(return_X_y=True, as_frame=True))
    >>> [text.get_text() for text in plot_coefficients(model, most=3).get_yticklabels()]
    ['bmi', 's5', 's1']
    """
    coef = np.ravel(model.coef_)
    known = getattr(model, "feature_names_in_", None) if names is None else names
    labels = [f"x{j}" for j in range(coef.shape[0])] if known is None else [str(name) for name in known]
    if len(labels) != coef.shape[0]:
        raise ValueError(f"names must be {coef.shape[0]}, one for each coefficient; got {len(labels)}.")
    ends = _ends(model, coef, level)
    order = np.argsort(-np.abs(coef), kind="stable")[:most][::-1]
    ax, at = axes_of(ax), np.arange(order.shape[0])
    ax.axvline(0.0, color=GRAY, lw=0.8)
    if ends is not None:
        reach = np.abs(ends[:, order] - coef[order])
        ax.errorbar(
            coef[order], at, xerr=reach, fmt="none", ecolor=BLUE, capsize=3, label=f"{100 * level:g} % interval"
        )
    ax.plot(coef[order], at, "o", color=BLUE, ms=5)
    ax.set_yticks(at, [labels[j] for j in order])
    return framed(ax, xlabel="coefficient")


def _ends(model: Any, coef: Array, level: float) -> Array | None:
    """Lower and upper ends, where the model has them."""
    if not hasattr(model, "summary"):
        return None
    try:
        table = model.summary(level=level)
    except (AttributeError, ValueError):  # a penalized fit has no such intervals, and its error says so
        return None
    slopes = np.asarray(table.coef).shape[0] - coef.shape[0]
    return np.array([table.lower[slopes:], table.upper[slopes:]])


def plot_residuals(model: Any, X: Any, y: Any, axes: Any = None) -> Any:
    """Three looks at the residuals: over the predictions, against the normal distribution, and their size over the predictions.

    Parameters
    ----------
    model : fitted regressor
    X, y : arrays of shape (n_samples, n_features) and (n_samples,)
    axes : sequence of three matplotlib axes, optional
        Where to draw.

    Returns
    -------
    list of matplotlib axes

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearRegression
    >>> from certifit.plots import plot_residuals
    >>> x = np.arange(50.0)[:, None]
    >>> [ax.get_title() for ax in plot_residuals(LinearRegression().fit(x, x[:, 0] ** 2), x, x[:, 0] ** 2)]
    ['over predictions', 'against normal ones', 'size over predictions']
    """
    drawn = panels(3, 4.0, 3.4) if axes is None else list(np.ravel(axes))
    if len(drawn) != 3:
        raise ValueError(f"axes must be three; got {len(drawn)}.")
    predicted = np.asarray(model.predict(X), dtype=np.float64)
    rest = np.asarray(y, dtype=np.float64) - predicted
    scale = float(rest.std()) or 1.0
    normal = norm.ppf((np.arange(rest.shape[0]) + 0.5) / rest.shape[0])
    first, second, third = drawn
    first.axhline(0.0, color=GRAY, lw=1)
    for ax, values in ((first, rest), (third, np.sqrt(np.abs(rest) / scale))):
        ax.plot(predicted, values, "o", color=BLUE, ms=3, alpha=0.6)
        ax.plot(*_running_mean(predicted, values), color=RED, label="running mean")
    second.plot(normal, np.sort(rest) / scale, "o", color=BLUE, ms=3)
    second.plot(normal[[0, -1]], normal[[0, -1]], color=GRAY, lw=1)
    framed(first, title="over predictions", xlabel="prediction", ylabel="residual")
    framed(second, title="against normal ones", xlabel="normal quantile", ylabel="residual, in standard deviations")
    framed(third, title="size over predictions", xlabel="prediction", ylabel="√|residual|, in standard deviations")
    return drawn


def _running_mean(at: Array, values: Array, parts: int = 12) -> tuple[Array, Array]:
    """Means of neighboring rows."""
    order = np.argsort(at, kind="stable")
    groups = np.array_split(order, min(parts, order.shape[0]))
    return np.array([at[g].mean() for g in groups]), np.array([values[g].mean() for g in groups])


@drawn
def plot_influence(model: Any, X: Any, y: Any, ax: Any = None, *, most: int = 5) -> Any:
    """Studentized residuals over leverage, with disks as large as Cook's distance; the rows that pull most have their numbers.

    Parameters
    ----------
    model : fitted regressor
        Any: leverage and residuals are those of least squares on X, with an intercept if the model has one.
    X, y : arrays of shape (n_samples, n_features) and (n_samples,)
        The rows of the fit.
    most : int, default=5
        How many rows have their number.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearRegression
    >>> from certifit.plots import plot_influence
    >>> x = np.append(np.linspace(-1, 1, 30), 9.0)[:, None]
    >>> ax = plot_influence(LinearRegression().fit(x, x[:, 0] ** 2), x, x[:, 0] ** 2, most=1)
    >>> ax.texts[0].get_text()
    '30'
    """
    rows, target = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    constant = [np.ones(rows.shape[0])] if getattr(model, "fit_intercept", True) else []
    basis, size, _ = np.linalg.svd(np.column_stack([*constant, rows]), full_matrices=False)
    basis = basis[:, size > size[0] * 1e-10]
    n, p = basis.shape
    if n <= p + 1:
        raise ValueError(f"X must have more rows than columns to tell influence; got {n} rows and {p} coefficients.")
    leverage = np.minimum((basis**2).sum(axis=1), 1.0)
    rest = target - basis @ (basis.T @ target)
    free = np.maximum(1.0 - leverage, 1e-12)
    others = np.maximum((rest @ rest - rest**2 / free) / (n - p - 1), 1e-300)  # variance without the row
    studentized = rest / np.sqrt(others * free)
    cook = rest**2 * leverage / (p * (rest @ rest / (n - p)) * free**2)
    ax = axes_of(ax)
    ax.axhline(0.0, color=GRAY, lw=1)
    for limit in (-2, 2):
        ax.axhline(limit, color=GRAY, lw=0.8, ls=":")
    ax.axvline(2 * p / n, color=GRAY, lw=0.8, ls="--", label="twice the mean leverage")
    ax.scatter(leverage, studentized, s=8 + 300 * np.minimum(cook, 2.0), color=BLUE, alpha=0.5, lw=0)
    for i in np.argsort(-cook, kind="stable")[:most]:
        ax.annotate(str(i), (leverage[i], studentized[i]), xytext=(4, 4), textcoords="offset points")
    return framed(ax, legend="above", xlabel="leverage", ylabel="studentized residual")
