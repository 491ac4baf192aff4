"""The number to name when what is known of it is a distribution: the Bayes action of a loss.

    a*  =  argmin_a E ℓ(Y, a)          squared: mean      absolute: median      quantile: quantile      zero-one: mode

A loss of the package is convex in its score f, so that the best one is where E ∂ℓ/∂f(Y, f) changes its sign: sums over a table
or draws, an integral over the quantiles of a density. The action is the loss's prediction for that score, in units of Y.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from certifit._types import Array
from certifit.data.gate import check_sample_weight
from certifit.evaluation.decisions.expectation import Expectation
from certifit.evaluation.losses import LOSSES, Absolute, Loss, Quantile, Squared, resolve_loss
from certifit.evaluation.metrics.inputs import check_vector

__all__ = ["ZERO_ONE", "bayes_estimate"]

ZERO_ONE = "zero_one"
RARE = 1e-15  # probability of what a table of a discrete distribution leaves out on either side
MOST_VALUES = 1_000_000  # of such a table
GRID = 1001  # quantiles from which the search over a density starts


def bayes_estimate(posterior: Any, loss: Any, weight: Any = None) -> Any:
    """The number with the least expected loss; one for each coordinate of a distribution of several.

    Parameters
    ----------
    posterior : conjugate posterior, frozen SciPy distribution, or array of shape (n,)
        An array holds the possible values, or draws.
    loss : str or Loss
        As everywhere in the package, or "zero_one".
    weight : array of shape (n,), optional
        Probabilities of the values, up to a factor.

    Examples
    --------
    >>> from certifit import bayes_estimate
    >>> [float(bayes_estimate([0.0, 1.0, 5.0], loss)) for loss in ("squared", "absolute")]
    [2.0, 1.0]
    """
    known = _loss(loss)
    distribution = getattr(posterior, "distribution", posterior)
    if not hasattr(distribution, "rvs"):
        return _of_table(*_table(posterior, weight), known)
    if weight is not None:
        raise ValueError("weight goes with an array of values; a distribution has its own probabilities.")
    if known is None and hasattr(posterior, "mode"):
        return posterior.mode
    if hasattr(posterior, "marginals"):
        return np.array([_of_distribution(one, known) for one in posterior.marginals])
    return _of_distribution(distribution, known)


def _loss(loss: Any) -> Loss | None:
    """The loss; None stands for zero-one, which has no slopes."""
    if isinstance(loss, str) and loss == ZERO_ONE:
        return None
    if isinstance(loss, str) and loss not in LOSSES:
        names = ", ".join(repr(name) for name in (*LOSSES, ZERO_ONE))
        raise ValueError(f"loss must be one of {names}, an instance of certifit.losses.Loss, or costs; got {loss!r}.")
    known = resolve_loss(loss)
    if not known.convex:
        raise ValueError(
            f"loss must be convex, so that a slope of zero is a minimum; {type(known).__name__} does not say that it is."
        )
    return known


def _table(values: Any, weight: Any) -> tuple[Array, Array]:
    v = check_vector("posterior", values).astype(np.float64)
    w = check_sample_weight(weight, v.shape[0])
    return v[w > 0], w[w > 0]


def _of_table(values: Array, weight: Array, loss: Loss | None) -> float:
    if loss is None:
        distinct, which = np.unique(values, return_inverse=True)
        return float(distinct[np.bincount(which, weights=weight).argmax()])
    loss.check_target(values)
    return float(loss.predict(np.array([loss.optimal_constant(values, weight)]))[0])


def _of_distribution(distribution: Any, loss: Loss | None) -> float:
    one_number = hasattr(distribution, "support") and not np.shape(distribution.median())
    if not one_number:
        raise ValueError("posterior must be the distribution of one number: name its parameters as single numbers.")
    low, high = (float(end) for end in distribution.support())
    if hasattr(getattr(distribution, "dist", distribution), "pmf"):
        return _of_table(*_masses(distribution), loss)
    if loss is None:
        return _mode(distribution, low, high)
    if isinstance(loss, Squared):
        return _finite(distribution.mean(), loss)
    if isinstance(loss, Absolute):
        return float(distribution.median())
    if isinstance(loss, Quantile):
        return float(distribution.ppf(loss.quantile))
    return _by_slope(distribution, loss)


def _finite(mean: Any, loss: Loss) -> float:
    if not np.isfinite(mean):
        raise ValueError(
            f"posterior has no finite mean, and so no action has the least expected {type(loss).__name__} loss; "
            "'absolute' has one."
        )
    return float(mean)


def _masses(distribution: Any) -> tuple[Array, Array]:
    """Values and probabilities of a discrete distribution, up to what is next to impossible."""
    low, high = float(distribution.ppf(RARE)), float(distribution.isf(RARE))
    if not high - low < MOST_VALUES:
        raise ValueError(f"posterior has more than {MOST_VALUES:,} values: draw from it, and give the draws.")
    values = np.arange(low, high + 1.0)
    mass = np.asarray(distribution.pmf(values))
    return values[mass > 0], mass[mass > 0]


def _mode(distribution: Any, low: float, high: float) -> float:
    """Where the density is highest: an end that it runs to, or the top of the hill around the best of many quantiles."""
    with np.errstate(divide="ignore"):
        for end in (low, high):
            if np.isfinite(end) and np.isposinf(distribution.pdf(end)):
                return end
        grid = np.unique(distribution.ppf((np.arange(GRID) + 0.5) / GRID))
        grid = np.concatenate([grid, [end for end in (low, high) if np.isfinite(end)]])
        grid.sort()
        density = distribution.pdf(grid)
    k = int(density.argmax())
    left, right = grid[max(k - 1, 0)], grid[min(k + 1, grid.shape[0] - 1)]
    found = minimize_scalar(
        lambda x: -distribution.pdf(x),
        bounds=(left, right),
        method="bounded",
        options={"xatol": 1e-12 * (right - left)},
    )
    return float(found.x if -found.fun > density[k] else grid[k])


def _by_slope(distribution: Any, loss: Loss) -> float:
    """The root of E ∂ℓ/∂f, bracketed from the best score of many quantiles."""
    sample = np.asarray(distribution.ppf((np.arange(GRID) + 0.5) / GRID), dtype=np.float64)
    loss.check_target(sample)
    start = float(loss.optimal_constant(sample, np.ones(GRID)))
    mean = Expectation(distribution)
    score = _root(lambda f: mean(lambda y: loss.derivative(y, np.full(y.shape, f))), start, 1e-3 * (1.0 + abs(start)))
    return _finite(loss.predict(np.array([score]))[0], loss)


def _root(slope: Callable[[float], float], start: float, step: float) -> float:
    """Where a non-decreasing function changes its sign."""
    at = slope(start)
    if at == 0.0:
        return start
    side, near = -np.sign(at), start
    for _ in range(60):
        far = near + side * step
        value = slope(far)
        if value == 0.0:
            return far
        if np.sign(value) != np.sign(at):
            return float(brentq(slope, min(near, far), max(near, far), xtol=1e-13 * (1.0 + abs(start)), rtol=1e-14))
        near, step = far, 2.0 * step
    raise ValueError("no action has the least expected loss: it falls for ever in one direction.")
