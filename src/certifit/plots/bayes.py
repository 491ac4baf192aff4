"""Pictures of distributions: classes and their boundaries, what observations change, bands of a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.axes import axes_of, drawn
from certifit.data.gate import check_real
from certifit.plots.frame import COLORS, GRID, color, framed, panels, spanned

__all__ = ["plot_band", "plot_classes", "plot_updates"]

RADII = (1.0, 2.0)  # standard deviations of the ellipses


@drawn
def plot_classes(model: Any, X: Any, y: Any, ax: Any = None, *, columns: Sequence[int] = (0, 1)) -> Any:
    """Rows of each class in two columns, the regions where the model says it, and the ellipses of its Gaussians.

    Parameters
    ----------
    model : classifier
        Fitted. `LDA`, `QDA`, `NearestCentroid` and `GaussianNB` have ellipses (1 and 2 standard deviations); of any other
        classifier rows and regions are drawn.
    X : array of shape (n_samples, n_features)
        Columns beside the two are held at their means for the regions.
    y : array of shape (n_samples,)
    columns : two ints, default=(0, 1)
        Which ones are drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import QDA
    >>> from certifit.plots import plot_classes
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 2)) + np.repeat([[0], [3]], 20, axis=0), np.repeat(["a", "b"], 20)
    >>> [text.get_text() for text in plot_classes(QDA().fit(X, y), X, y).get_legend().get_texts()]
    ['a', 'b']
    """
    check_is_fitted(model)
    if not hasattr(model, "classes_"):
        raise TypeError(f"model must be a classifier; {type(model).__name__} has no classes.")
    rows, (a, b) = _rows(X, columns), columns
    labels = np.asarray(y)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y must have a label for each of the {rows.shape[0]} rows; got shape {labels.shape}.")
    ax = axes_of(ax)
    _regions(ax, model, rows, a, b)
    for k, label in enumerate(model.classes_):
        own = labels == label
        ax.plot(rows[own, a], rows[own, b], "o", color=color(k), ms=4, mec="white", mew=0.4, label=str(label))
    for k, (mean, spread) in enumerate(_gaussians(model, a, b)):
        ax.plot(*mean, "+", color=color(k), ms=10, mew=2)
        for radius in RADII:
            ax.plot(*_ellipse(mean, spread, radius), color=color(k), lw=1.4, ls="-" if radius == 1.0 else "--")
    names = getattr(model, "feature_names_in_", None)
    labels_of = {f"{axis}label": f"x{j}" if names is None else str(names[j]) for axis, j in (("x", a), ("y", b))}
    return framed(ax, **labels_of)


def plot_updates(
    prior: Any, x: Any, steps: Sequence[int] = (0, 1, 2, 10), axes: Any = None, *, level: float = 0.95
) -> Any:
    """From prior to posterior: the density of a parameter after the first observations, a panel for each number of them.

    Parameters
    ----------
    prior : BetaBernoulli, GammaPoisson, NormalNormal or NormalInverseGamma
        A conjugate prior of one number; of `NormalInverseGamma` the mean is drawn.
    x : array of shape (n,)
        Observations in their order.
    steps : sequence of int, default=(0, 1, 2, 10)
        After how many of them to draw; numbers beyond `n` are left out.
    axes : sequence of matplotlib axes, optional
        One for each panel.
    level : float, default=0.95
        Of the shaded credible interval.

    Returns
    -------
    list of matplotlib axes

    Examples
    --------
    >>> from certifit import BetaBernoulli
    >>> from certifit.plots import plot_updates
    >>> [ax.get_title() for ax in plot_updates(BetaBernoulli(2, 2), [1, 1, 0, 1], steps=(0, 1, 4))]
    ['prior', 'after 1', 'after 4']
    """
    if hasattr(prior, "marginals") or not hasattr(prior, "distribution"):
        raise TypeError(f"prior must be a conjugate prior of one number, such as BetaBernoulli; got {prior!r}.")
    seen = np.atleast_1d(np.asarray(x))
    wanted = [n for n in steps if 0 <= check_real("steps", n, low=0, integer=True) <= seen.shape[0]]
    if not wanted:
        raise ValueError(f"steps must name a number from 0 to {seen.shape[0]}, of observations; got {tuple(steps)!r}.")
    known = [prior.update(seen[:n]) for n in wanted]
    ends = np.array([one.distribution.ppf([0.001, 0.999]) for one in known])
    grid = np.linspace(ends[:, 0].min(), ends[:, 1].max(), 2 * GRID + 1)
    drawn = panels(len(wanted), sharex=True) if axes is None else list(np.ravel(axes))
    if len(drawn) != len(wanted):
        raise ValueError(f"axes must be {len(wanted)}, one for each panel; got {len(drawn)}.")
    for n, one, ax in zip(wanted, known, drawn, strict=True):
        density = one.distribution.pdf(grid)
        low, high = one.credible_interval(level)
        inside = (grid >= low) & (grid <= high)
        ax.plot(grid, density, color=COLORS[0])
        ax.fill_between(grid[inside], density[inside], color=COLORS[0], alpha=0.2, lw=0)
        ax.axvline(one.mean, color=COLORS[1], lw=1)
        finite = density[np.isfinite(density)]
        framed(
            ax, title="prior" if n == 0 else f"after {n}", xlabel="parameter", ylim=(0, 1.1 * finite.max()), yticks=[]
        )
        ax.spines["left"].set_visible(False)
    return drawn


@drawn
def plot_band(
    model: Any, X: Any = None, y: Any = None, ax: Any = None, *, level: float = 0.95, lines: int = 5, grid: Any = None
) -> Any:
    """The line of a Bayesian linear regression on one column, bands of the line and of observations, and draws of the line.

    Parameters
    ----------
    model : BayesianLinearRegression
        Fitted on one column.
    X, y : arrays, optional
        Observations to draw.
    level : float, default=0.95
        Probability of the bands.
    lines : int, default=5
        Lines drawn from the posterior.
    grid : array, optional
        Where to evaluate; a little more than the range of X by default, or −1 to 1 without.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import BayesianLinearRegression
    >>> from certifit.plots import plot_band
    >>> x = np.linspace(0, 1, 12)[:, None]
    >>> ax = plot_band(BayesianLinearRegression().fit(x, x[:, 0] + np.sin(9 * x[:, 0])), x, np.zeros(12))
    >>> len(ax.collections)
    2
    """
    check_is_fitted(model)
    if not all(hasattr(model, name) for name in ("covariance_", "predict_interval", "sample")):
        raise TypeError(
            f"model must be a BayesianLinearRegression, whose line has a distribution; {type(model).__name__} is fitted but "
            "gives no lines to draw. plot_local_fit draws the band of a local regression."
        )
    if model.n_features_in_ != 1:
        raise ValueError(f"model must be fitted on one column; it has {model.n_features_in_}.")
    rows = None if X is None else _rows(X, (0,))[:, 0]
    at = np.asarray(spanned(rows) if grid is None else grid, dtype=np.float64).ravel()
    ax = axes_of(ax)
    for of, alpha, text in (("observation", 0.15, "an observation"), ("line", 0.35, "the line")):
        low, high = model.predict_interval(at[:, None], level, of=of)
        ax.fill_between(at, low, high, color=COLORS[0], alpha=alpha, lw=0, label=f"{100 * level:g} % band of {text}")
    coef, intercept = model.sample(int(check_real("lines", lines, low=0, integer=True)), random_state=0)
    for w, c in zip(coef, intercept, strict=True):
        ax.plot(at, w[0] * at + c, color=COLORS[1], lw=0.7, alpha=0.7)
    ax.plot(at, model.predict(at[:, None]), color=COLORS[0], lw=2, label="mean")
    if rows is not None and y is not None:
        ax.plot(rows, np.asarray(y), "o", color="black", ms=3.5)
    names = getattr(model, "feature_names_in_", None)
    return framed(ax, xlabel="x0" if names is None else str(names[0]), ylabel="y")


def _rows(X: Any, columns: Sequence[int]) -> Array:
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"X must have rows and columns; got shape {rows.shape}.")
    wrong = [j for j in columns if not 0 <= j < rows.shape[1]]
    if wrong or len(set(columns)) < len(columns):
        raise ValueError(f"columns must be distinct columns from 0 to {rows.shape[1] - 1}; got {tuple(columns)!r}.")
    return rows


def _regions(ax: Any, model: Any, rows: Array, a: int, b: int) -> None:
    """Where each class is said, as a light color."""
    x, z = (spanned(rows[:, j]) for j in (a, b))
    across, up = np.meshgrid(x, z)
    points = np.tile(np.nanmean(rows, axis=0), (across.size, 1))
    points[:, a], points[:, b] = across.ravel(), up.ravel()
    said = np.searchsorted(model.classes_, model.predict(points)).reshape(across.shape)
    for k in range(len(model.classes_)):  # each by itself: between the numbers of two classes lie those of others
        own = (said == k).astype(np.float64)
        if own.any():
            ax.contourf(across, up, own, levels=[0.5, 1.5], colors=[color(k)], alpha=0.12)
        if own.any() and not own.all():
            ax.contour(across, up, own, levels=[0.5], colors="black", linewidths=0.6)


def _gaussians(model: Any, a: int, b: int) -> list[tuple[Array, Array]]:
    """Mean and covariance of each class in two columns, where the model has them."""
    pair = np.ix_([a, b], [a, b])
    if hasattr(model, "_forms"):
        forms = zip(model.means_, model._forms, strict=True)
        return [(mean[[a, b]], form.covariance[pair]) for mean, form in forms]
    if hasattr(model, "theta_"):
        moments = zip(model.theta_, model.var_, strict=True)
        return [(mean[[a, b]], np.diag(variance[[a, b]])) for mean, variance in moments]
    return []


def _ellipse(mean: Array, spread: Array, radius: float) -> tuple[Array, Array]:
    """Points of Mahalanobis distance `radius`."""
    values, vectors = np.linalg.eigh(spread)
    turn = np.linspace(0.0, 2.0 * np.pi, GRID)
    circle = np.vstack([np.cos(turn), np.sin(turn)])
    x, y = mean[:, None] + radius * (vectors * np.sqrt(np.maximum(values, 0.0))) @ circle
    return x, y
