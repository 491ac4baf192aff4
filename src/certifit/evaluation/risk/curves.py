"""Learning curves, validation curves, and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.axes import picture
from certifit.data.gate import check_real
from certifit.evaluation.metrics.registry import metric_or_scorer
from certifit.evaluation.risk.points import Trial, along, numbers_of_rows, one_of
from certifit.evaluation.risk.resamples import critical
from certifit.names import Plain, record
from certifit.printable import plain_number

__all__ = ["LearningCurve", "ValidationCurve", "learning_curve", "reading", "validation_curve"]

EXPONENTS = (0.25, 0.5, 1.0)  # error falls as rows^(−exponent): slow, parametric with noise, parametric without
LAST = 0.7  # share of the rows at which, or before, the last sizes of a curve begin
WORTHWHILE = 0.01  # a gain below this share of the error is no reason to collect twice the rows


@record("LearningCurve")
class LearningCurve:
    """A metric on training and held-out rows, by the number of training rows.

    Parameters
    ----------
    rows : tuple of int
        Training rows.
    train, validation : tuple of float
        Mean over the folds.
    low, high : tuple of float
        Interval of the validation value.
    metric, label, format : str
        Name of the metric, its name for people, and how to print it.
    lower_is_better : bool
    level : float
    train_folds, validation_folds : tuple of tuple of float
        Values of each fold, for each number of rows; NaN where the fit failed.
    fit_seconds, score_seconds : tuple of tuple of float
        How long fits and judging of held-out rows took, where asked for.
    error_score : float, optional
        The score that a fit which failed has when the curve is unpacked; NaN by default.
    """

    rows: tuple[int, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    metric: str
    label: str
    format: str
    lower_is_better: bool
    level: float
    train_folds: tuple[tuple[float, ...], ...]
    validation_folds: tuple[tuple[float, ...], ...]
    fit_seconds: tuple[tuple[float, ...], ...] = ()
    score_seconds: tuple[tuple[float, ...], ...] = ()
    error_score: float | None = None

    def __iter__(self) -> Iterator[Array]:
        """Numbers of rows, scores of each size and fold on training and on held-out rows, the greater, the better; and times."""
        yield np.array(self.rows)
        yield from _scores(self)
        if self.fit_seconds:
            yield np.array(self.fit_seconds)
            yield np.array(self.score_seconds)

    @property
    def reading(self) -> str:
        """What the curve says, in one sentence."""
        return reading(self)

    def expected(self, rows: float) -> tuple[float, float, float]:
        """What to expect of so many training rows: the validation metric, and the ends of a band around it.

        The laws a + b·rows^(−c) with c one of ¼, ½ and 1 that fit the curve are followed to there, by all sizes and by the last
        ones alone. The value is the middle of what they say; the band has all of them, each with its uncertainty and that of the
        last point. Far beyond the rows of the curve it is a guess that the law goes on.

        Examples
        --------
        >>> from certifit.evaluation.risk.curves import LearningCurve
        >>> error = tuple(0.2 + 2 / n**0.5 for n in (100, 200, 400, 800))
        >>> folds = tuple((e - 1e-3, e + 1e-3) for e in error)
        >>> curve = LearningCurve((100, 200, 400, 800), (0.1,) * 4, error, error, error, "rmse", "root mean squared error",
        ...                       ".4g", True, 0.95, folds, folds)
        >>> [round(end, 3) for end in curve.expected(1600)]
        [0.25, 0.25, 0.25]
        """
        check_real("rows", rows, low=1.0)
        curve = _without_failures(self)
        if len(curve.rows) < 3:
            raise ValueError(f"the curve has {len(curve.rows)} sizes: a law needs at least three.")
        sign = -1.0 if self.lower_is_better else 1.0
        own = 0.5 * (curve.high[-1] - curve.low[-1])
        ends = [(sign * gain, float(np.hypot(half, own))) for gain, half in _gains(curve, float(rows))]
        moved = [gain for gain, _ in ends]
        now = curve.validation[-1]
        low, high = min(gain - half for gain, half in ends), max(gain + half for gain, half in ends)
        found = now + 0.5 * (min(moved) + max(moved)), now + low, now + high
        if curve.lower_is_better and np.min(curve.validation_folds) >= 0.0:
            return max(found[0], 0.0), max(found[1], 0.0), max(found[2], 0.0)  # no error is less than nothing
        return found

    def plot(self, ax: Any = None, *, until: float | None = None) -> Any:
        """`certifit.plots.plot_learning_curve` of it."""
        return picture("plot_learning_curve")(self, ax, until=until)

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and the reading, for reports and JSON."""
        lists = {
            name: [None if np.isnan(value) else value for value in getattr(self, name)]
            for name in ("rows", "train", "validation", "low", "high")
        }
        return {**lists, "metric": self.metric, "label": self.label, "reading": self.reading}


@record("ValidationCurve")
class ValidationCurve(Plain):
    """A metric on training and held-out rows, by the value of a parameter.

    Parameters
    ----------
    parameter : str
    values : tuple
        Values of the parameter.
    train, validation, low, high : tuple of float
        As in `LearningCurve`.
    best : object
        The value with the best validation metric.
    metric, label : str
    lower_is_better : bool
    level : float
    train_folds, validation_folds, error_score
        As in `LearningCurve`.
    """

    parameter: str
    values: tuple[Any, ...]
    train: tuple[float, ...]
    validation: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    best: Any
    metric: str
    label: str
    lower_is_better: bool
    level: float
    train_folds: tuple[tuple[float, ...], ...] = ()
    validation_folds: tuple[tuple[float, ...], ...] = ()
    error_score: float | None = None

    def __iter__(self) -> Iterator[Array]:
        """Scores of each value and fold on training rows, and on held-out rows: the greater, the better."""
        yield from _scores(self)

    @property
    def reading(self) -> str:
        """What the curve says, in one sentence."""
        return reading(self)

    def plot(self, ax: Any = None) -> Any:
        """`certifit.plots.plot_validation_curve` of it."""
        return picture("plot_validation_curve")(self, ax)


def learning_curve(
    estimator: Any,
    X: Any,
    y: Any,
    metric: Any = None,
    *,
    sizes: int | Sequence[float] = 5,
    cv: Any = 3,
    sample_weight: Any = None,
    classes: Any = None,
    random_state: Any = 0,
    level: float = 0.95,
    train_sizes: Any = None,
    scoring: Any = None,
    n_jobs: Any = None,
    groups: Any = None,
    shuffle: bool = True,
    verbose: int = 0,
    pre_dispatch: Any = "all",
    exploit_incremental_learning: bool = False,
    error_score: Any = np.nan,
    return_times: bool = False,
    params: Mapping[str, Any] | None = None,
) -> LearningCurve:
    """Fit on more and more rows, and judge on rows held out.

    The rows of a smaller size are among those of a larger one, and for a classification metric every size has the classes
    in proportion.

    Parameters
    ----------
    estimator : estimator, or a function of row numbers
        An estimator is cloned and fitted; a function gets an array of row numbers and returns a fitted estimator or a
        function of X.
    X : array, sparse matrix or data frame
    y : array of shape (n,)
    metric : str or Metric, optional
        By default what the estimator's `score` measures.
    sizes : int or sequence, default=5
        How many sizes, evenly spaced in the logarithm from a tenth of the training rows to all of them; or shares (up to
        1.0) or numbers of rows.
    cv : int, float, splitter or iterable, default=3
        Folds; or the share of rows held out once; or a splitter of scikit-learn's; or pairs (train rows, held-out rows).
    sample_weight : array of shape (n,), optional
        How often each row counts, in fitting (estimators only) and judging.
    classes : sequence, optional
        Order of the classes; the fitted model's own by default.
    random_state : int, default=0
        Seed of the split.
    level : float, default=0.95
        Confidence of the intervals.
    train_sizes, scoring
        Scikit-learn's names of `sizes` and `metric`, with its names of scorers.
    n_jobs : int, optional
        Threads that fit folds at the same time, one by default; the curve does not depend on it.
    groups : array of shape (n,), optional
        What a splitter keeps together.
    shuffle, verbose, pre_dispatch
        Scikit-learn's, without effect: which rows the smaller sizes have is always drawn.
    exploit_incremental_learning : bool, default=False
        Whether the model of each fold goes on, by `partial_fit`, with the rows that a size has beyond the last one.
    error_score : "raise" or float, default=nan
        What a fit that fails does: it ends the curve with its error; or it is left out of means and intervals with a warning,
        and has this score when the curve is unpacked. If all fail, that is an error.
    return_times : bool, default=False
        Whether the seconds of fits and of judging held-out rows are kept; the curve then unpacks into them too.
    params : dict, optional
        What else `fit` or `partial_fit` is given; what has an entry for each row is cut to the rows fitted. Weights given here
        are for fitting alone.

    Returns
    -------
    LearningCurve
        It unpacks into the numbers of rows and the scores of each fold on training and held-out rows, as scikit-learn's function
        returns them: what is better is greater.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import Ridge, learning_curve
    >>> X, y = load_diabetes(return_X_y=True)
    >>> curve = learning_curve(Ridge(alpha=1e-5), X, y, "rmse", sizes=[30, 60, 120, 240])
    >>> curve.rows, curve.validation[0] > curve.validation[-1]
    ((30, 60, 120, 240), True)
    """
    metric = metric_or_scorer(metric, scoring, estimator)
    rows, division = (X, y, sample_weight), (cv, groups, random_state)
    trial = Trial.of("learning_curve", rows, division, metric, classes, level, params, error_score, n_jobs)
    most = min(train.shape[0] for train, _ in trial.folds)
    steps = numbers_of_rows(sizes if train_sizes is None else train_sizes, most)
    train_with = trial.going_on(estimator) if exploit_incremental_learning else trial.anew(estimator)
    points = [trial.point(train_with, size) for size in steps]
    trial.tell(len(steps) * len(trial.folds))
    return LearningCurve(
        rows=tuple(steps),
        **along(points, times=return_times),
        format=metric.format,
        **trial.terms,
    )


def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    metric: Any = None,
    parameter: str | None = None,
    values: Sequence[Any] | None = None,
    *,
    cv: Any = 3,
    sample_weight: Any = None,
    classes: Any = None,
    random_state: Any = 0,
    level: float = 0.95,
    param_name: str | None = None,
    param_range: Sequence[Any] | None = None,
    scoring: Any = None,
    n_jobs: Any = None,
    groups: Any = None,
    verbose: int = 0,
    pre_dispatch: Any = "all",
    error_score: Any = np.nan,
    params: Mapping[str, Any] | None = None,
) -> ValidationCurve:
    """Fit with each value of a parameter, and judge on rows held out.

    Parameters
    ----------
    estimator : estimator
        Cloned, with the parameter set.
    X, y, metric, cv, sample_weight, classes, random_state, level, scoring, n_jobs, groups, error_score, params
        As in `learning_curve`.
    parameter : str
        Name of the parameter, ``"step__name"`` inside a pipeline.
    values : sequence
        Its values.
    param_name, param_range
        Scikit-learn's names of `parameter` and `values`.
    verbose, pre_dispatch
        Scikit-learn's, without effect.

    Returns
    -------
    ValidationCurve
        It unpacks into the scores of each value and fold on training and held-out rows, as scikit-learn's function returns
        them: what is better is greater.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import Ridge, validation_curve
    >>> X, y = load_diabetes(return_X_y=True)
    >>> validation_curve(Ridge(), X, y, "rmse", "alpha", [1e-7, 1e-5, 1e-3, 1e-1]).best
    1e-05
    """
    metric = metric_or_scorer(metric, scoring, estimator)
    name = one_of("parameter", parameter, "param_name", param_name)
    values = list(one_of("values", values, "param_range", param_range))
    if not values:
        raise ValueError("values must not be empty: give the values of the parameter to try.")
    rows, division = (X, y, sample_weight), (cv, groups, random_state)
    trial = Trial.of("validation_curve", rows, division, metric, classes, level, params, error_score, n_jobs)
    points = [trial.point(trial.anew(clone(estimator).set_params(**{name: value}))) for value in values]
    trial.tell(len(values) * len(trial.folds))
    found = along(points)
    return ValidationCurve(
        parameter=name,
        values=tuple(values),
        **found,
        best=values[_best(found["validation"], metric.lower_is_better)],
        **trial.terms,
    )


def _best(validation: Sequence[float], lower_is_better: bool) -> int:
    """Where the metric is best, of the points with a fit that did not fail."""
    return int(np.nanargmin(validation) if lower_is_better else np.nanargmax(validation))


def _scores(curve: LearningCurve | ValidationCurve) -> Iterator[Array]:
    """Of each point and fold on training rows, and on held-out rows: the greater, the better."""
    sign = -1.0 if curve.lower_is_better else 1.0
    for folds in (curve.train_folds, curve.validation_folds):
        values = sign * np.array(folds)
        yield values if curve.error_score is None else np.where(np.isnan(values), curve.error_score, values)


def _without_failures(curve: LearningCurve) -> LearningCurve:
    """The sizes at which some fit did not fail, and of them the folds in which none did."""
    failed = np.isnan(np.array(curve.validation_folds))
    if not failed.any():
        return curve
    sizes = np.flatnonzero(~failed.all(axis=1))
    folds = np.flatnonzero(~failed[sizes].any(axis=0))
    if not folds.size:
        sizes = folds
    of_sizes: dict[str, Any] = {
        name: tuple(getattr(curve, name)[i] for i in sizes) for name in ("rows", "train", "validation", "low", "high")
    }
    of_folds: dict[str, Any] = {
        name: tuple(tuple(getattr(curve, name)[i][k] for k in folds) for i in sizes)
        for name in ("train_folds", "validation_folds")
    }
    return replace(curve, **of_sizes, **of_folds)


def reading(curve: LearningCurve | ValidationCurve) -> str:
    """What a curve says, in one sentence: about more data, or about a parameter.

    The validation values are fitted by a + b·rows^(−c), with an own level for each fold and c one of ¼, ½ and 1: of those that
    fit, by all sizes or the last ones alone, the one that promises least. What twice the rows would gain follows from b, and its
    uncertainty from the residuals. Only a gain that is surely worth having counts.

    Examples
    --------
    >>> from certifit.evaluation.risk.curves import LearningCurve, reading
    >>> error = tuple(0.2 + 2 / n**0.5 for n in (100, 200, 400, 800))
    >>> folds = tuple((e - 1e-3, e + 1e-3) for e in error)
    >>> reading(LearningCurve((100, 200, 400, 800), (0.1,) * 4, error, error, error, "rmse", "root mean squared error",
    ...                       ".4g", True, 0.95, folds, folds))
    'More data would help: twice the rows should bring the root mean squared error in cross-validation from 0.2707 to about 0.25.'
    """
    if isinstance(curve, ValidationCurve):
        return _reading_of_values(curve)
    curve = _without_failures(curve)
    if len(curve.rows) < 3:
        return "Too few sizes to read a trend: the curve needs at least three."
    now, train, rows = curve.validation[-1], curve.train[-1], curve.rows[-1]
    gain, half = _gain_of_doubling(curve)
    shown = {"now": now, "then": now - gain if curve.lower_is_better else now + gain, "train": train}
    text = {name: plain_number(value, curve.format) for name, value in shown.items()}
    # The part of the metric that is error: all of it, or what is missing from 1.
    error = abs(now) if curve.lower_is_better else max(1.0 - now, 0.0)
    gap = now - train if curve.lower_is_better else train - now
    own = 0.5 * (curve.high[-1] - curve.low[-1])
    if gain - half > 0.5 * WORTHWHILE * error and gain > WORTHWHILE * error:
        return (
            f"More data would help: twice the rows should bring the {curve.label} in cross-validation from {text['now']} to "
            f"about {text['then']}."
        )
    if gap > own and gap > 0.5 * error:
        return (
            f"Training error far below validation error: {curve.label} {text['train']} on {rows:,} training rows, "
            f"{text['now']} on others; a simpler model or a stronger penalty may do better."
        )
    if half > max(0.1 * error, own):
        return f"The curve is too uneven to read: with {rows:,} rows the {curve.label} is {text['now']}, and no trend is sure."
    most = max(gain + half, 0.0)
    return (
        f"The curve is flat: twice the rows would improve the {curve.label} of {text['now']} by less than "
        f"{plain_number(most, '.2g')}; better features or a richer model may."
    )


def _reading_of_values(curve: ValidationCurve) -> str:
    """Whether the parameter matters, whether its best value may lie beyond those tried, and what training rows say at it."""
    if len(curve.values) < 2:
        return "Too few values to read anything: the curve needs at least two."
    sign = 1.0 if curve.lower_is_better else -1.0
    found = sign * np.array(curve.validation)
    k = int(np.nanargmin(found))
    half = 0.5 * (curve.high[k] - curve.low[k])
    shown = f"{curve.parameter}={curve.best!r}"
    if np.nanmax(found) - np.nanmin(found) <= half:
        ends = f"{curve.values[0]!r} to {curve.values[-1]!r}"
        but = " that could be fitted" if np.isnan(found).any() else ""
        return f"{curve.parameter} hardly matters here: from {ends} all values{but} do as well as {shown}."
    where = ""
    if k in (0, len(found) - 1) and len(found) > 2:
        where = f" It is the {'first' if k == 0 else 'last'} of the values: the best may lie beyond."
    gap = sign * (curve.validation[k] - curve.train[k])
    error = abs(curve.validation[k]) if curve.lower_is_better else max(1.0 - curve.validation[k], 0.0)
    if gap > half and gap > 0.5 * error:
        return f"{shown} does best, and even there training rows are fitted far better than others: it overfits.{where}"
    return f"{shown} does best.{where}"


def _gain_of_doubling(curve: LearningCurve) -> tuple[float, float]:
    """Expected improvement of the validation metric from twice the rows, and half the width of its interval."""
    # Slow laws promise more for the same points: among those that fit as well as the best one, the least promise counts.
    return min(_gains(curve, 2.0 * curve.rows[-1]))


def _gains(curve: LearningCurve, rows: float) -> list[tuple[float, float]]:
    """The improvement from so many rows and half the width of its interval, by every law that fits as well as the best one.

    Each law twice: as all sizes have it, and with the slope of the last ones alone, since few rows may fall faster than any law.
    """
    values, numbers = np.array(curve.validation_folds), np.array(curve.rows, dtype=np.float64)
    sizes, folds = values.shape
    deviation = values - values.mean(axis=0)
    df = sizes * folds - folds - 1
    fits = []
    sign = 1.0 if curve.lower_is_better else -1.0
    begins = max(int(np.searchsorted(numbers, LAST * numbers[-1], side="right")) - 1, 0)
    for c in EXPONENTS:
        x = numbers**-c
        slope, last = (_slope(x[k:], values[k:].mean(axis=1)) for k in (0, begins))
        drop = curve.rows[-1] ** -c - rows**-c
        left = deviation - slope * (x - x.mean())[:, None]
        # What the law misses is the same in every fold: then the folds say no more than their mean.
        missed = folds * float((left.mean(axis=1) ** 2).sum())
        reach = abs(drop) / np.sqrt(folds * float(((x - x.mean()) ** 2).sum()))
        fits.append(((sign * slope * drop, sign * last * drop), float((left**2).sum()), missed, reach))
    if df <= 0:
        return [(gain, np.inf) for gains, *_ in fits for gain in gains]
    student, few = critical(curve.level, df), critical(curve.level, sizes - 2)
    well = (1.0 + student**2 / df) * min(residual for _, residual, _, _ in fits)
    return [
        (gain, float(max(student * np.sqrt(residual / df), few * np.sqrt(missed / (sizes - 2)))) * reach)
        for gains, residual, missed, reach in fits
        if residual <= well
        for gain in gains
    ]


def _slope(x: Array, y: Array) -> float:
    """Of the line of least squares."""
    x = x - x.mean()
    return float(x @ y) / float(x @ x)
