"""Metrics of predicted values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import rel_entr, xlogy

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.data.medians import weighted_median
from certifit.evaluation.losses import resolve_loss
from certifit.evaluation.metrics.inputs import value_rows
from certifit.parameters.docstrings import takes_as

__all__ = [
    "mae",
    "max_loss",
    "mean_bernoulli_deviance",
    "mean_gamma_deviance",
    "mean_poisson_deviance",
    "median_absolute_error",
    "mse",
    "pinball",
    "r2",
    "rmse",
]


def mse(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of (y − f)².

    Parameters
    ----------
    y, prediction : arrays of shape (n,)
        Actual and predicted values.
    sample_weight : array of shape (n,), optional
        How often each row counts.

    Examples
    --------
    >>> from certifit.metrics import mse
    >>> mse([1, 2], [1, 4])
    2.0
    """
    return _mean(squares, y, prediction, sample_weight)


@takes_as(mse)
def rmse(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Square root of the mean squared error, in the unit of y.

    Examples
    --------
    >>> from certifit.metrics import rmse
    >>> rmse([1, 2, 3, 4], [1, 2, 3, 6])
    1.0
    """
    return float(np.sqrt(mse(y, prediction, sample_weight=sample_weight)))


@takes_as(mse)
def mae(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of |y − f|.

    Examples
    --------
    >>> from certifit.metrics import mae
    >>> mae([1, 2], [1, 4]), mae([1, 2], [1, 4], sample_weight=[3, 1])
    (1.0, 0.5)
    """
    return _mean(distances, y, prediction, sample_weight)


@takes_as(mse)
def median_absolute_error(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Median of |y − f|; halfway between the two middle values when the weight splits evenly.

    Examples
    --------
    >>> from certifit.metrics import median_absolute_error
    >>> median_absolute_error([0, 0, 0], [1, 2, 100])
    2.0
    """
    y, f, weight = value_rows(y, prediction, sample_weight)
    return weighted_median(np.abs(y - f), weight)


@takes_as(mse)
def r2(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Share of the variance of y that is predicted: 1 − Σ(y − f)² / Σ(y − ȳ)².

    For a constant y the share has no meaning; it is then 1 for a perfect prediction and 0 for any other.

    Examples
    --------
    >>> from certifit.metrics import r2
    >>> r2([1, 2, 3], [1, 2, 2]), r2([1, 2, 3], [2, 2, 2])
    (0.5, 0.0)
    """
    y, f, weight = value_rows(y, prediction, sample_weight)
    residual = float(weight @ (y - f) ** 2)
    total = float(weight @ (y - np.average(y, weights=weight)) ** 2)
    if total == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return 1.0 - residual / total


def pinball(y: Any, prediction: Any, *, level: float = 0.5, sample_weight: Any = None) -> float:
    """Mean of max(level·(y − f), (level − 1)·(y − f)): least at the quantile `level`.

    Parameters
    ----------
    y, prediction, sample_weight
        As in `mse`.
    level : float in (0, 1), default=0.5
        The quantile that is predicted; 0.5 is half the mean absolute error.

    Examples
    --------
    >>> from certifit.metrics import pinball
    >>> pinball([10, 10], [8, 12], level=0.9)
    1.0
    """
    return _mean(partial(pinball_losses, level=level), y, prediction, sample_weight)


@takes_as(mse)
def mean_poisson_deviance(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of 2(y·ln(y/f) − y + f), for counts y ≥ 0 and predicted means f > 0.

    Examples
    --------
    >>> from certifit.metrics import mean_poisson_deviance
    >>> round(mean_poisson_deviance([0, 1, 2], [1, 1, 1]), 4)
    0.9242
    """
    return _mean(poisson_losses, y, prediction, sample_weight)


@takes_as(mse)
def mean_bernoulli_deviance(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of 2(y·ln(y/f) + (1 − y)·ln((1 − y)/(1 − f))), for shares y in [0, 1] and predicted probabilities f.

    For y of 0 and 1 it is twice the log loss.

    Examples
    --------
    >>> from certifit.metrics import mean_bernoulli_deviance
    >>> round(mean_bernoulli_deviance([0, 1, 0.5], [0.5, 0.5, 0.5]), 4)
    0.9242
    """
    return _mean(_bernoulli_losses, y, prediction, sample_weight)


def max_loss(y: Any, prediction: Any, *, loss: Any = "absolute", sample_weight: Any = None) -> float:
    """The largest loss of a row: what `MinimaxModel` minimizes (and `ChebyshevRegressor` for the absolute loss).

    Parameters
    ----------
    y, prediction, sample_weight
        As in `mse`; predictions are scores, as the loss takes them. Rows of weight zero do not count, other weights count alike.
    loss : str or Loss, default="absolute"
        A name from ``certifit.losses.LOSSES`` or a loss object.

    Examples
    --------
    >>> from certifit.metrics import max_loss
    >>> max_loss([1, 2], [1, 4]), max_loss([1, 2], [1, 4], loss="squared")
    (2.0, 2.0)
    """
    known = resolve_loss(loss)
    y, f, _ = value_rows(y, prediction, sample_weight)
    known.check_target(y)
    return float(known.value(y, f).max())


@takes_as(mse)
def mean_gamma_deviance(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of 2(y/f − 1 − ln(y/f)), for y > 0 and predicted means f > 0.

    Examples
    --------
    >>> from certifit.metrics import mean_gamma_deviance
    >>> round(mean_gamma_deviance([1, 2], [1, 1]), 4)
    0.3069
    """
    return _mean(gamma_losses, y, prediction, sample_weight)


def _mean(losses: Callable[[Array, Array], Array], y: Any, prediction: Any, sample_weight: Any) -> float:
    y, f, weight = value_rows(y, prediction, sample_weight)
    return float(weight @ losses(y, f) / weight.sum())


def squares(y: Any, prediction: Any, classes: Any = None) -> Array:
    """(y − f)², row by row."""
    y, f, _ = value_rows(y, prediction, None)
    return np.asarray((y - f) ** 2)


def distances(y: Any, prediction: Any, classes: Any = None) -> Array:
    """|y − f|, row by row."""
    y, f, _ = value_rows(y, prediction, None)
    return np.abs(y - f)


def pinball_losses(y: Any, prediction: Any, level: float = 0.5) -> Array:
    """Pinball loss, row by row."""
    check_real("level", level, low=0, high=1, open_low=True, open_high=True)
    y, f, _ = value_rows(y, prediction, None)
    return np.maximum(level * (y - f), (level - 1.0) * (y - f))


def _bernoulli_losses(y: Array, f: Array) -> Array:
    _check_sign("y", y, (y >= 0) & (y <= 1), "in [0, 1]")
    _check_sign("prediction", f, (f >= 0) & (f <= 1), "in [0, 1]")
    return np.asarray(2.0 * (rel_entr(y, f) + rel_entr(1.0 - y, 1.0 - f)))


def poisson_losses(y: Any, prediction: Any, classes: Any = None) -> Array:
    """Poisson deviance, row by row."""
    y, f, _ = value_rows(y, prediction, None)
    _check_sign("y", y, y >= 0, ">= 0")
    _check_sign("prediction", f, f > 0, "> 0")
    return np.asarray(2.0 * (xlogy(y, y / f) - y + f))


def gamma_losses(y: Any, prediction: Any, classes: Any = None) -> Array:
    """Gamma deviance, row by row."""
    y, f, _ = value_rows(y, prediction, None)
    _check_sign("y", y, y > 0, "> 0")
    _check_sign("prediction", f, f > 0, "> 0")
    ratio = y / f
    return np.asarray(2.0 * (ratio - 1.0 - np.log(ratio)))


def r2_statistics(y: Any, prediction: Any, classes: Any = None) -> Array:
    """Squared error, y and y² of each row, y measured from its mean: R² is a function of their means."""
    y, f, _ = value_rows(y, prediction, None)
    centered = y - y.mean()
    return np.column_stack([(y - f) ** 2, centered, centered**2])


def combine_r2(means: Array) -> Array:
    """R² from the means of `r2_statistics`."""
    total = means[..., 2] - means[..., 1] ** 2
    constant = total <= 1e-14 * means[..., 2]
    share = 1.0 - means[..., 0] / np.where(constant, 1.0, total)
    return np.where(constant, np.where(means[..., 0] == 0.0, 1.0, 0.0), share)


def combine_rmse(means: Array) -> Array:
    """RMSE from the mean squared error."""
    return np.sqrt(means[..., 0])


def _check_sign(name: str, values: Array, fine: Array, wanted: str) -> None:
    if not fine.all():
        row = int(np.flatnonzero(~fine)[0])
        raise ValueError(f"{name} must be {wanted} for this deviance; got {values[row]:g} at row {row}.")
