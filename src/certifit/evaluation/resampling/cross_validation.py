"""Cross-validation: what a learner is worth, with an interval that is honest about folds.

    value = Σ_k W_k metric_k / Σ_k W_k,        W_k the weight of the rows judged in part k

Every row is judged by models that have not seen it. The interval counts how rows vary, within parts and between them, and that
another sample would train other models (`certifit.evaluation.risk.held_out`); rows of one group vary together.
Where every row is a part of its own, the metric is that of all left-out predictions together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from certifit._types import Array
from certifit.data.gate import check_choice, check_sample_weight
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_labels, check_level
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.registry import Metric, resolve_metric
from certifit.evaluation.resampling.division import Division, column_of, divided
from certifit.evaluation.resampling.fitting import Data, FittedPart, aligned, each, fitted_on, warn_of_failures
from certifit.evaluation.resampling.optimism import error_632_plus, no_information
from certifit.evaluation.risk.held_out import held_out_interval, spread_factor
from certifit.evaluation.risk.influence import influence
from certifit.evaluation.risk.resamples import generator
from certifit.evaluation.risk.risk import clopper_pearson
from certifit.evaluation.splits.choice import Fold
from certifit.names import record, stored

__all__ = ["CrossValidation", "Score", "cross_validate"]

OUT_OF_BAG = 0.368 / 0.632  # rows out of a bag for each distinct row in it


@record("CrossValidationScore")
class Score:
    """A metric on rows left out, with its interval.

    Parameters
    ----------
    metric, label : str
    value, low, high, level : float
    lower_is_better : bool
    parts : tuple of float
        The value of each part; NaN where it failed. Empty where the rows were judged together.
    format : str
    """

    metric: str
    label: str
    value: float
    low: float
    high: float
    level: float
    lower_is_better: bool
    parts: tuple[float, ...]
    format: str = ".4g"

    def __str__(self) -> str:
        low, value, high = (format(end, self.format) for end in (self.low, self.value, self.high))
        return f"{self.label} {value}, between {low} and {high} with {100 * self.level:g} % confidence"


@stored("CrossValidation")
@dataclass(frozen=True, eq=False)
class CrossValidation:
    """What `cross_validate` found.

    Parameters
    ----------
    scores : tuple of Score
        One for each metric; ``found["rmse"]`` is the one of that name.
    predictions : dict of str to array of shape (n, …)
        Left-out predictions by kind (``"value"``, ``"label"``, ``"probability"``, ``"score"``): the mean over the fits that did
        not see the row, for labels the most frequent one; NaN or None where there is none.
    parts : list of Fold
        Rows fitted and rows judged.
    failures : tuple of str
        What went wrong, part by part.
    seconds : tuple of float
        Of each fit.
    models : tuple
        The fitted models, if they were to be kept.
    method : str
        How the rows were divided.
    """

    scores: tuple[Score, ...]
    predictions: dict[str, Array]
    parts: list[Fold]
    failures: tuple[str, ...]
    seconds: tuple[float, ...]
    models: tuple[Any, ...]
    method: str

    def __getitem__(self, metric: str) -> Score:
        for score in self.scores:
            if score.metric == metric:
                return score
        raise KeyError(f"No metric {metric!r}; there are {', '.join(score.metric for score in self.scores)}.")

    def __str__(self) -> str:
        lines = [f"By {self.method}:", *(f"  {score}" for score in self.scores)]
        return "\n".join([*lines, *(f"  failed: {text}" for text in self.failures)])

    def as_dict(self) -> dict[str, Any]:
        """Scores, method and failures as plain data, for reports and JSON; what is not a number becomes None."""
        scores = [asdict(score) for score in self.scores]
        for score in scores:
            for name, value in score.items():
                if isinstance(value, float) and not np.isfinite(value):
                    score[name] = None
            score["parts"] = [value if np.isfinite(value) else None for value in score["parts"]]
        return {"method": self.method, "scores": scores, "failures": list(self.failures)}

    def to_frame(self) -> Any:
        """A polars frame with a row for each part: rows fitted and judged, seconds, and the metrics."""
        import polars as pl

        judged = {score.metric: list(score.parts) for score in self.scores if score.parts}
        sizes = {name: [getattr(part, name).shape[0] for part in self.parts] for name in ("train", "test")}
        return pl.DataFrame({"part": list(range(len(self.parts))), **sizes, "seconds": list(self.seconds), **judged})


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    metrics: Any = "auto",
    cv: Any = 5,
    *,
    groups: Any = None,
    time: Any = None,
    repeats: int = 1,
    n_resamples: int = 100,
    sample_weight: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
    keep_models: bool = False,
    on_failure: str = "contain",
    n_jobs: int | None = None,
) -> CrossValidation:
    """Judge a learner on rows that its fits have not seen.

    Parameters
    ----------
    estimator : estimator
        Of scikit-learn's kind; cloned for each part.
    X : array, sparse matrix or data frame
    y : array of shape (n,)
    metrics : str, Metric or list of them, default="auto"
        ``"auto"`` is RMSE and R², for a classifier accuracy and, if it gives probabilities, log loss.
    cv : int, str, splitter or iterable of pairs, default=5
        A number of folds, with classes (or tenths of a numeric target) in proportion; ``"loo"``, each row or group by itself, in
        closed form where the estimator has `loo_predictions`; ``"bootstrap"``, judged on rows not drawn; ``".632+"``, the same
        corrected for learning from fewer distinct rows (means of losses only); ``"oob"``, from one fit of a bagged model; a
        splitter of scikit-learn; pairs of row numbers.
    groups : array of shape (n,), optional
        Rows of one group are never apart, and vary together in the interval.
    time : array of shape (n,), optional
        With folds: each is judged on the stretch of time after what it learned from. Rows without a time come first.
    repeats : int, default=1
        How often rows are dealt into folds.
    n_resamples : int, default=100
        Number of bootstrap samples.
    sample_weight : array of shape (n,), optional
        How often each row counts, in fitting and judging.
    level : float, default=0.95
        Confidence of the intervals.
    random_state : int, default=0
        Seed of the division.
    keep_models : bool, default=False
        Whether to return the fitted models.
    on_failure : {"contain", "raise"}, default="contain"
        A part whose fit or metric fails is left out, with a warning; or its error is raised. When all fail, it is raised.
    n_jobs : int, optional
        Threads that fit parts at the same time; one by default, -1 for all.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from certifit import Ridge, cross_validate
    >>> found = cross_validate(Ridge(alpha=1e-5), *load_diabetes(return_X_y=True), "rmse")
    >>> print(found["rmse"])
    root mean squared error 54.77, between 51.19 and 58.67 with 95 % confidence
    >>> found.predictions["value"].shape
    (442,)
    """
    judges = _judges(metrics, estimator)
    level = check_level(level)
    check_choice("on_failure", on_failure, ("contain", "raise"))
    table, y = TableRows(X), check_labels("y", y)
    if y.shape[0] != table.n:
        raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {y.shape[0]}.")
    columns: dict[str, Any] = {
        name: column_of(name, given, table.n) for name, given in (("groups", groups), ("time", time))
    }
    if groups is not None:
        check_labels("groups", columns["groups"])
    weight = check_sample_weight(sample_weight, table.n)
    used = np.flatnonzero(weight > 0)
    classes = None if "regression" in judges[0].tasks else np.unique(y[used])
    if classes is not None and classes.shape[0] < 2:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}: there is nothing to tell apart.")
    data = Data(table, y, weight, sample_weight is not None, classes)
    rng = generator(random_state)
    needs = sorted({metric.needs for metric in judges})
    if isinstance(cv, str) and cv == "oob":
        left = _out_of_bag(estimator, data, used, needs)
        return _together(judges, data, left, OUT_OF_BAG, level, "rows out of the bags of one fit")
    if (
        isinstance(cv, str)
        and cv == "loo"
        and groups is None
        and time is None
        and not data.given
        and needs == ["value"]
    ):
        closed = _closed_form(estimator, X, y)
        if closed is not None:
            method = "every row left out in turn, in closed form"
            return _together(judges, data, {"value": closed}, 1.0 / max(table.n - 1, 1), level, method)
    if isinstance(cv, str) and cv == ".632+":
        _check_means(judges)
    task = "regression" if classes is None else "binary" if classes.shape[0] == 2 else "multiclass"
    division = _division(
        cv, y, used, {"task": task, "repeats": repeats, "n_resamples": n_resamples, "rng": rng}, columns
    )
    contain = on_failure == "contain"
    fits = each(
        lambda part: fitted_on(part, estimator, data, needs, keep=keep_models, contain=contain), division.parts, n_jobs
    )
    units = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    failures = [f"part {k}: {_told(fit.error)}" for k, fit in enumerate(fits, 1) if fit.error is not None]
    if len(failures) == len(fits):
        raise next(fit.error for fit in fits if fit.error is not None)
    predictions = {need: _gathered(fits, need, data) for need in needs}
    scores = []
    for metric in judges:
        if division.kind == "loo":
            scores.append(_pooled(metric, data, predictions[metric.needs], division.overlap, level, units))
            continue
        score, undefined = _by_parts(metric, data, fits, division, level, units, contain)
        failures += undefined
        if division.kind == ".632+":
            score = _corrected(score, metric, estimator, data, used, rng)
        scores.append(score)
    warn_of_failures("cross_validate", failures, len(fits))
    seconds, models = tuple(fit.seconds for fit in fits), tuple(fit.model for fit in fits) if keep_models else ()
    return CrossValidation(tuple(scores), predictions, division.parts, tuple(failures), seconds, models, division.text)


def _judges(metrics: Any, estimator: Any) -> list[Metric]:
    if isinstance(metrics, str) and metrics == "auto":
        if is_classifier(estimator):
            metrics = ["accuracy", *(["log_loss"] if hasattr(estimator, "predict_proba") else [])]
        else:
            metrics = ["rmse", "r2"]
    several = isinstance(metrics, Sequence) and not isinstance(metrics, str)
    found = [resolve_metric(metric) for metric in (metrics if several else [metrics])]
    if not found:
        raise ValueError("metrics must name at least one metric.")
    if len({"regression" in metric.tasks for metric in found}) > 1:
        raise ValueError("metrics mixes metrics of values with metrics of classes: y is one or the other.")
    return found


def _check_means(judges: Sequence[Metric]) -> None:
    for metric in judges:
        if metric.per_example is None:
            raise ValueError(
                f"cv='.632+' corrects means of losses, and {metric.label} is none: take 'mse', 'mae', 'zero_one' or "
                "'log_loss', or cv='bootstrap'."
            )


def _division(cv: Any, y: Array, used: Array, options: dict[str, Any], columns: dict[str, Any]) -> Division:
    """The parts in row numbers of X, of which only rows with weight are used."""
    if isinstance(cv, (str, int, np.integer)):
        shorter: dict[str, Any] = {name: column if column is None else column[used] for name, column in columns.items()}
        found = divided(cv, y[used], **options, **shorter)
        return Division([Fold(used[train], used[test]) for train, test in found.parts], found.kind, found.text)
    found = divided(cv, y, **options, **columns)
    parts = [Fold(*(rows[np.isin(rows, used)] for rows in part)) for part in found.parts]
    parts = [part for part in parts if part.test.size]
    if not parts or any(part.train.size == 0 for part in parts):
        raise ValueError("cv leaves no rows of positive weight to fit or to judge: use fewer folds.")
    return Division(parts, found.kind, found.text)


def _told(error: Exception | None) -> str:
    return f"{type(error).__name__}: {error}"


def _by_parts(
    metric: Metric,
    data: Data,
    fits: Sequence[FittedPart],
    division: Division,
    level: float,
    units: Array | None,
    contain: bool,
) -> tuple[Score, list[str]]:
    """The weighted mean over the parts; a part where the metric is undefined is left out."""
    values, failures = np.full(len(fits), np.nan), []
    total, moved = np.zeros(len(fits)), {}
    first: Exception | None = None
    for k, fit in enumerate(fits):
        if fit.error is not None:
            continue
        rows = fit.part.test
        judged = (data.y[rows], fit.predictions[metric.needs])
        try:
            value = metric(*judged, sample_weight=data.weight[rows], classes=data.classes)
            moved[k] = influence(metric, *judged, data.weight[rows], data.classes)[0]
            if not np.isfinite(value):
                raise ValueError(f"{metric.label} is {value} there.")
        except ValueError as error:
            if not contain:
                raise
            first = first or error
            failures.append(f"part {k + 1}: {metric.name}: {error}")
            continue
        values[k], total[k] = value, data.weight[rows].sum()
    known = np.isfinite(values)
    if not known.any():
        raise first if first is not None else ValueError(f"{metric.label} is not defined in any part.")
    value = float(total[known] @ values[known] / total[known].sum())
    sums, counts = np.zeros(data.y.shape[0]), np.zeros(data.y.shape[0])
    for k in np.flatnonzero(known).tolist():
        rows = fits[k].part.test
        np.add.at(sums, rows, moved[k] + (values[k] - value))
        np.add.at(counts, rows, 1.0)
    seen = np.flatnonzero(counts)
    about = sums[seen] / counts[seen]
    ends = _ends(metric, value, about, data, seen, division.overlap, level, units)
    return _score(metric, value, ends, level, tuple(map(float, values))), failures


def _pooled(
    metric: Metric, data: Data, prediction: Array, overlap: float, level: float, units: Array | None = None
) -> Score:
    """The metric of all left-out predictions together."""
    rows = np.flatnonzero([one is not None for one in prediction] if prediction.dtype == object else _known(prediction))
    judged = prediction[rows].astype(data.y.dtype) if prediction.dtype == object else prediction[rows]
    value = metric(data.y[rows], judged, sample_weight=data.weight[rows], classes=data.classes)
    about = influence(metric, data.y[rows], judged, data.weight[rows], data.classes)[0]
    return _score(metric, value, _ends(metric, value, about, data, rows, overlap, level, units), level, ())


def _known(prediction: Array) -> Array:
    if prediction.dtype.kind != "f":
        return np.ones(prediction.shape[0], dtype=bool)
    return np.asarray(~np.isnan(prediction.reshape(prediction.shape[0], -1)).any(axis=1))


def _ends(
    metric: Metric,
    value: float,
    about: Array,
    data: Data,
    rows: Array,
    overlap: float,
    level: float,
    units: Array | None,
) -> tuple[float, float]:
    """The interval; of a share of right or wrong rows it is exact, with the rows that the overlap leaves."""
    weight = data.weight[rows]
    total = float(weight.sum())
    factor = spread_factor(overlap)
    if metric.name in ("accuracy", "zero_one") and units is None:
        return clopper_pearson(value * total / factor, total / factor, level)
    numbers = None if units is None else np.unique(units[rows], return_inverse=True)[1]
    low, high = held_out_interval(metric, value, about, weight, overlap, level, numbers)
    if metric.bound is not None:
        low, high = max(low, metric.bound[0]), min(high, metric.bound[1])
        if low == high:  # a perfect (or hopeless) sample: another may differ, and nothing has shown how
            count = total if numbers is None else float(numbers.max()) + 1.0
            share = (value - metric.bound[0]) / (metric.bound[1] - metric.bound[0])
            return clopper_pearson(share * count / factor, count / factor, level)
    return low, high


def _score(metric: Metric, value: float, ends: tuple[float, float], level: float, parts: tuple[float, ...]) -> Score:
    return Score(metric.name, metric.label, float(value), *ends, level, metric.lower_is_better, parts, metric.format)


def _gathered(fits: Sequence[FittedPart], need: str, data: Data) -> Array:
    """Left-out predictions in the order of X: the mean of those of a row, or the label most of them say."""
    n = data.y.shape[0]
    done = [fit for fit in fits if fit.error is None]
    shape = done[0].predictions[need].shape[1:]
    if need != "label":
        sums, counts = np.zeros((n, *shape)), np.zeros(n)
        for fit in done:
            np.add.at(sums, fit.part.test, fit.predictions[need])
            np.add.at(counts, fit.part.test, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / counts.reshape(n, *([1] * len(shape))))
    said = np.unique(np.concatenate([fit.predictions[need] for fit in done]))
    votes = np.zeros((n, said.shape[0]))
    for fit in done:
        np.add.at(votes, (fit.part.test, np.searchsorted(said, fit.predictions[need])), 1.0)
    labels = said[votes.argmax(axis=1)]
    if votes.any(axis=1).all():
        return np.asarray(labels)
    several = labels.astype(object)
    several[~votes.any(axis=1)] = None
    return np.asarray(several)


def _corrected(
    score: Score, metric: Metric, estimator: Any, data: Data, used: Array, rng: np.random.Generator
) -> Score:
    """The bootstrap's value, corrected; its interval keeps its relative width (Efron and Tibshirani 1997, section 5)."""
    model = data.fit(estimator, used)
    seen = aligned(model, predict_for(model, data.table.take(used), metric.needs), metric.needs, data.classes)
    y, weight = data.y[used], data.weight[used]
    sign = 1.0 if metric.lower_is_better else -1.0
    apparent = float(weight @ metric.losses(y, seen, data.classes) / weight.sum())
    chance = no_information(metric, y, seen, weight, data.classes, rng)
    value = sign * error_632_plus(apparent, sign * score.value, chance)
    shift = value - score.value
    ends = [score.low + shift, score.high + shift]
    if metric.bound is not None:
        ends = [min(max(end, metric.bound[0]), metric.bound[1]) for end in ends]
    return _score(metric, value, (min(ends[0], value), max(ends[1], value)), score.level, score.parts)


def _together(
    judges: Sequence[Metric], data: Data, predictions: dict[str, Array], overlap: float, level: float, method: str
) -> CrossValidation:
    """What left-out predictions that came without parts are worth."""
    scores = tuple(_pooled(metric, data, predictions[metric.needs], overlap, level) for metric in judges)
    return CrossValidation(scores, predictions, [], (), (), (), method)


def _closed_form(estimator: Any, X: Any, y: Array) -> Array | None:
    """Leave-one-out predictions without refits, where the estimator has them; None where it must be refitted."""
    if not hasattr(estimator, "loo_predictions"):
        return None
    try:
        found = np.asarray(clone(estimator).loo_predictions(X, y))
    except ValueError:  # constraints, or landmarks instead of rows: no closed form, or an error that refits will tell
        return None
    return found if np.isfinite(found).all() and found.shape == y.shape else None


def _out_of_bag(estimator: Any, data: Data, used: Array, needs: Sequence[str]) -> dict[str, Array]:
    """What the members of a bagged model say about rows they have not seen."""
    if "oob_score" not in estimator.get_params():
        raise ValueError(f"cv='oob' needs a bagged model with oob_score; {type(estimator).__name__} has none.")
    model = data.fit(clone(estimator).set_params(oob_score=True), used)
    n, found = data.y.shape[0], {}
    said = np.asarray(model.oob_prediction_ if data.classes is None else model.oob_decision_function_)
    known = _known(said)
    for need in needs:
        values = said
        if need == "score":
            values = said[:, 1]
        elif need == "label" and data.classes is not None:
            labels = np.full(n, None, dtype=object)
            labels[used[known]] = data.classes[np.nan_to_num(said).argmax(axis=1)][known]
            found[need] = labels
            continue
        found[need] = np.full((n, *values.shape[1:]), np.nan)
        found[need][used] = values
    return found
