"""Learning curves, validation curves, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.axes import picture
from certifit.data.gate import check_real, check_sample_weight
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_labels, check_level
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.registry import Metric, metric_or_scorer, resolve_metric
from certifit.evaluation.resampling.fitting import aligned
from certifit.evaluation.risk.held_out import held_out_interval
from certifit.evaluation.risk.influence import influence
from certifit.evaluation.risk.resamples import critical, generator
from certifit.names import stored
from certifit.printable import plain_number

__all__ = ["LearningCurve", "ValidationCurve", "learning_curve", "reading", "validation_curve"]

SMALLEST = 0.1  # share of the rows at the first point
EXPONENTS = (0.25, 0.5, 1.0)  # error falls as rows^(−exponent): slow, parametric with noise, parametric without
WORTHWHILE = 0.01  # a gain below this share of the error is no reason to collect twice the rows


@stored("LearningCurve")
@dataclass(frozen=True)
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
        Values of each fold, for each number of rows.
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

    def __iter__(self) -> Iterator[Array]:
        """Numbers of rows, scores of each size and fold on training rows, and on held-out rows: the greater, the better."""
        sign = -1.0 if self.lower_is_better else 1.0
        yield np.array(self.rows)
        yield sign * np.array(self.train_folds)
        yield sign * np.array(self.validation_folds)

    @property
    def reading(self) -> str:
        """What the curve says, in one sentence."""
        return reading(self)

    def expected(self, rows: float) -> tuple[float, float, float]:
        """What to expect of so many training rows: the validation metric, and the ends of a band around it.

        The laws a + b·rows^(−c) with c one of ¼, ½ and 1 that fit the curve are followed to there. The value is the middle of
        what they say; the band has all of them, each with its uncertainty and that of the last point. Far beyond the rows of the
        curve it is a guess that the law goes on.

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
        if len(self.rows) < 3:
            raise ValueError(f"the curve has {len(self.rows)} sizes: a law needs at least three.")
        sign = -1.0 if self.lower_is_better else 1.0
        own = 0.5 * (self.high[-1] - self.low[-1])
        ends = [(sign * gain, float(np.hypot(half, own))) for gain, half in _gains(self, float(rows))]
        moved = [gain for gain, _ in ends]
        now = self.validation[-1]
        low, high = min(gain - half for gain, half in ends), max(gain + half for gain, half in ends)
        return now + 0.5 * (min(moved) + max(moved)), now + low, now + high

    def plot(self, ax: Any = None, *, until: float | None = None) -> Any:
        """`certifit.plots.plot_learning_curve` of it."""
        return picture("plot_learning_curve")(self, ax, until=until)

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and the reading, for reports and JSON."""
        lists = {name: list(getattr(self, name)) for name in ("rows", "train", "validation", "low", "high")}
        return {**lists, "metric": self.metric, "label": self.label, "reading": self.reading}


@stored("ValidationCurve")
@dataclass(frozen=True)
class ValidationCurve:
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

    @property
    def reading(self) -> str:
        """What the curve says, in one sentence."""
        return reading(self)

    def plot(self, ax: Any = None) -> Any:
        """`certifit.plots.plot_validation_curve` of it."""
        return picture("plot_validation_curve")(self, ax)

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dictionary."""
        return asdict(self)


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
    train_sizes, scoring, n_jobs
        Scikit-learn's names of `sizes` and `metric`, with its names of scorers; the curve does not depend on `n_jobs`.
    groups : array of shape (n,), optional
        What a splitter keeps together.
    shuffle, verbose, pre_dispatch
        Scikit-learn's, without effect: which rows the smaller sizes have is always drawn.

    Returns
    -------
    LearningCurve
        It unpacks into the numbers of rows and the scores of each fold on training and held-out rows, as scikit-learn's function
        returns them: what is better is greater.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge, learning_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 30))
    >>> y = X.sum(axis=1) + rng.normal(size=600)
    >>> curve = learning_curve(Ridge(alpha=1e-3), X, y, "rmse", sizes=[60, 100, 200, 400])
    >>> curve.rows, curve.validation[0] > curve.validation[-1]
    ((60, 100, 200, 400), True)
    """
    metric = metric_or_scorer(metric, scoring, estimator)
    sizes = sizes if train_sizes is None else train_sizes
    level = check_level(level)
    table, y = TableRows(X), check_labels("y", y)
    if y.shape[0] != table.n:
        raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {y.shape[0]}.")
    weight = check_sample_weight(sample_weight, table.n)
    folds = _folds(cv, y, weight, "regression" not in metric.tasks, generator(random_state), groups)
    steps = _sizes(sizes, min(train.shape[0] for train, _ in folds))
    train_with = _fitter(estimator, table, y, None if sample_weight is None else weight)
    judged = [_judge(train_with, table, y, weight, metric, classes, folds, size, level) for size in steps]
    train, validation, low, high, by_fold = zip(*judged, strict=True)
    return LearningCurve(
        tuple(steps),
        train,
        validation,
        low,
        high,
        metric.name,
        metric.label,
        metric.format,
        metric.lower_is_better,
        level,
        tuple(values[0] for values in by_fold),
        tuple(values[1] for values in by_fold),
    )


def validation_curve(
    estimator: Any,
    X: Any,
    y: Any,
    metric: Any,
    parameter: str,
    values: Sequence[Any],
    *,
    cv: Any = 3,
    sample_weight: Any = None,
    classes: Any = None,
    random_state: Any = 0,
    level: float = 0.95,
) -> ValidationCurve:
    """Fit with each value of a parameter, and judge on rows held out.

    Parameters
    ----------
    estimator : estimator
        Cloned, with the parameter set.
    X, y, metric, cv, sample_weight, classes, random_state, level
        As in `learning_curve`.
    parameter : str
        Name of the parameter, ``"step__name"`` inside a pipeline.
    values : sequence
        Its values.

    Returns
    -------
    ValidationCurve

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge, validation_curve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> y = X.sum(axis=1) + rng.normal(size=200)
    >>> validation_curve(Ridge(), X, y, "rmse", "alpha", [1e-3, 1e3]).best
    0.001
    """
    metric = resolve_metric(metric)
    level = check_level(level)
    values = list(values)
    if not values:
        raise ValueError("values must not be empty: give the values of the parameter to try.")
    table, y = TableRows(X), check_labels("y", y)
    if y.shape[0] != table.n:
        raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {y.shape[0]}.")
    weight = check_sample_weight(sample_weight, table.n)
    folds = _folds(cv, y, weight, "regression" not in metric.tasks, generator(random_state))
    judged = []
    for value in values:
        fitted = clone(estimator).set_params(**{parameter: value})
        train_with = _fitter(fitted, table, y, None if sample_weight is None else weight)
        judged.append(_judge(train_with, table, y, weight, metric, classes, folds, None, level))
    train, validation, low, high, _ = zip(*judged, strict=True)
    best = values[int(np.argmin(validation) if metric.lower_is_better else np.argmax(validation))]
    facts = (metric.name, metric.label, metric.lower_is_better, level)
    return ValidationCurve(parameter, tuple(values), train, validation, low, high, best, *facts)


def reading(curve: LearningCurve | ValidationCurve) -> str:
    """What a curve says, in one sentence: about more data, or about a parameter.

    The validation values are fitted by a + b·rows^(−c), with an own level for each fold and c one of ¼, ½ and 1: of those that
    fit, the one that promises least. What twice the rows would gain follows from b, and its uncertainty from the residuals. Only
    a gain that is surely worth having counts.

    Examples
    --------
    >>> from certifit.evaluation.risk.curves import LearningCurve, reading
    >>> error = tuple(0.2 + 2 / n**0.5 for n in (100, 200, 400, 800))
    >>> folds = tuple((e - 1e-3, e + 1e-3) for e in error)
    >>> reading(LearningCurve((100, 200, 400, 800), (0.1,) * 4, error, error, error, "rmse", "root mean squared error",
    ...                       ".4g", True, 0.95, folds, folds))
    'More data would help: twice the rows should bring the root mean squared error from 0.2707 to about 0.25.'
    """
    if isinstance(curve, ValidationCurve):
        return _reading_of_values(curve)
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
        return f"More data would help: twice the rows should bring the {curve.label} from {text['now']} to about {text['then']}."
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
    k = int(np.argmin(found))
    half = 0.5 * (curve.high[k] - curve.low[k])
    shown = f"{curve.parameter}={curve.best!r}"
    if found.max() - found.min() <= half:
        ends = f"{curve.values[0]!r} to {curve.values[-1]!r}"
        return f"{curve.parameter} hardly matters here: from {ends} all values do as well as {shown}."
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
    """The improvement from so many rows and half the width of its interval, by every law that fits as well as the best one."""
    values = np.array(curve.validation_folds)
    sizes, folds = values.shape
    deviation = values - values.mean(axis=0)
    df = sizes * folds - folds - 1
    fits = []
    sign = 1.0 if curve.lower_is_better else -1.0
    for c in EXPONENTS:
        x = np.array(curve.rows, dtype=np.float64) ** -c
        x = x - x.mean()
        square = folds * float(x @ x)
        b = float(x @ deviation.sum(axis=1)) / square
        drop = curve.rows[-1] ** -c - rows**-c
        fits.append((sign * b * drop, float(((deviation - b * x[:, None]) ** 2).sum()), abs(drop) / np.sqrt(square)))
    if df <= 0:
        return [(gain, np.inf) for gain, _, _ in fits]
    student = critical(curve.level, df)
    well = (1.0 + student**2 / df) * min(residual for _, residual, _ in fits)
    return [
        (gain, student * float(np.sqrt(residual / df)) * reach) for gain, residual, reach in fits if residual <= well
    ]


def _folds(
    cv: Any, y: Array, weight: Array, stratify: bool, rng: np.random.Generator, groups: Any = None
) -> list[tuple[Array, Array]]:
    """Pairs of training and held-out rows; training rows in an order whose every start is a fair sample."""
    if hasattr(cv, "split") and not isinstance(cv, str):
        cv = cv.split(np.zeros((y.shape[0], 1)), y, groups)
    used = np.flatnonzero(weight > 0)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        check_real("cv", cv, low=2, high=used.shape[0], integer=True)
        order = used[_fair_order(y[used], stratify, rng)]
        deal = np.arange(order.shape[0]) % int(cv)
        pairs = [(order[deal != k], order[deal == k]) for k in range(int(cv))]
    elif isinstance(cv, (float, np.floating)):
        check_real("cv", cv, low=0.0, high=1.0, open_low=True, open_high=True)
        order = used[_fair_order(y[used], stratify, rng)]
        held = max(1, round(float(cv) * order.shape[0]))
        # Every start of the order is fair, and so is what remains after one.
        pairs = [(order[held:], order[:held])]
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = [(np.asarray(a, dtype=np.intp), np.asarray(b, dtype=np.intp)) for a, b in cv]
        pairs = [(a[weight[a] > 0], b[weight[b] > 0]) for a, b in pairs]
    else:
        raise ValueError(
            f"cv must be a number of folds, a share held out, a splitter, or pairs of row numbers; got {cv!r}."
        )
    if not pairs or any(a.shape[0] == 0 or b.shape[0] == 0 for a, b in pairs):
        raise ValueError("cv leaves a part without rows: use fewer folds or more rows.")
    return [(a[_fair_order(y[a], stratify, rng)], b) for a, b in pairs]


def _fair_order(y: Array, stratify: bool, rng: np.random.Generator) -> Array:
    """A random order; stratified, every start of it has the classes in proportion."""
    order = rng.permutation(y.shape[0])
    if not stratify:
        return order
    _, codes = np.unique(y[order], return_inverse=True)
    position = np.empty(order.shape[0])
    for k in range(int(codes.max()) + 1):
        members = np.flatnonzero(codes == k)
        position[members] = (np.arange(members.shape[0]) + 0.5) / members.shape[0]
    return np.asarray(order[np.argsort(position, kind="stable")])


def _sizes(sizes: Any, most: int) -> list[int]:
    if isinstance(sizes, (int, np.integer)) and not isinstance(sizes, bool):
        check_real("sizes", sizes, low=1, integer=True)
        shares: Any = np.geomspace(SMALLEST, 1.0, int(sizes)) if sizes > 1 else np.array([1.0])
    else:
        shares = np.asarray(sizes)
    if shares.ndim != 1 or shares.shape[0] == 0 or shares.dtype.kind not in "iuf" or not (shares > 0).all():
        raise ValueError(f"sizes must be a number of sizes, shares up to 1.0, or numbers of rows; got {sizes!r}.")
    rows = (
        np.round(shares * most).astype(int) if shares.dtype.kind == "f" and shares.max() <= 1.0 else shares.astype(int)
    )
    if rows.max() > most:
        raise ValueError(f"sizes asks for {rows.max()} training rows, but a fold has {most} only.")
    return sorted(set(np.maximum(rows, 1).tolist()))


def _fitter(fit: Any, table: TableRows, y: Array, weight: Array | None) -> Callable[[Array], Any]:
    if hasattr(fit, "fit"):

        def fitted(rows: Array) -> Any:
            more = {} if weight is None else {"sample_weight": weight[rows]}
            return clone(fit).fit(table.take(rows), y[rows], **more)

        return fitted
    if callable(fit):
        return fit  # type: ignore[no-any-return]
    raise TypeError(f"fit must be an estimator or a function of row numbers; got {type(fit).__name__}.")


def _judge(
    train_with: Callable[[Array], Any],
    table: TableRows,
    y: Array,
    weight: Array,
    metric: Metric,
    classes: Any,
    folds: Sequence[tuple[Array, Array]],
    size: int | None,
    level: float,
) -> tuple[float, float, float, float, tuple[tuple[float, ...], tuple[float, ...]]]:
    """Mean train and validation metric over the folds, the interval of the latter, and the values of each fold."""
    train, held, moved, shares = [], [], [], []
    for rows, outside in folds:
        start = rows if size is None else rows[:size]
        model = train_with(start)
        known = getattr(model, "classes_", None)
        order = known if classes is None else classes
        said = [predict_for(model, table.take(part), metric.needs) for part in (start, outside)]
        if classes is None and known is not None and not np.isin(y[weight > 0], known).all():
            order = np.unique(y[weight > 0])  # few rows may lack a class that others have
            said = [aligned(model, one, metric.needs, order) for one in said]
        inside, prediction = said
        train.append(metric(y[start], inside, sample_weight=weight[start], classes=order))
        held.append(metric(y[outside], prediction, sample_weight=weight[outside], classes=order))
        moved.append(influence(metric, y[outside], prediction, weight[outside], order)[0])
        shares.append(weight[outside])
    total = np.array([share.sum() for share in shares])
    value = float(total @ np.array(held) / total.sum())
    about = np.concatenate([inner + (own - value) for inner, own in zip(moved, held, strict=True)])
    overlap = float(np.mean([outside.shape[0] / rows.shape[0] for rows, outside in folds]))
    ends = held_out_interval(metric, value, about, np.concatenate(shares), overlap, level)
    by_fold = (tuple(map(float, train)), tuple(map(float, held)))
    return float(np.mean(train)), value, *ends, by_fold
