"""The points of a curve: fits on a part of the rows of each fold, judged on these rows and on those left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from certifit._types import Array
from certifit.data.gate import check_real, check_sample_weight
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_labels, check_level
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.registry import Metric
from certifit.evaluation.resampling.fitting import aligned, each, warn_of_failures
from certifit.evaluation.risk.held_out import held_out_interval
from certifit.evaluation.risk.influence import influence
from certifit.evaluation.risk.resamples import generator

__all__ = ["FoldRows", "Point", "Trial", "along", "numbers_of_rows", "one_of"]

SMALLEST = 0.1  # share of the rows at the first point

OfFolds = tuple[float, ...]
"""One value for each fold."""


class FoldRows(NamedTuple):
    """What is fitted at one point on one fold."""

    fold: int
    rows: Array
    """Numbers of the training rows."""


class Judged(NamedTuple):
    """What one fold gave."""

    train: float
    held: float
    fit_seconds: float
    score_seconds: float
    moved: Array
    """Influence of each row left out on its metric."""

    @property
    def values(self) -> tuple[float, float, float, float]:
        """The numbers."""
        return self[:4]


class Point(NamedTuple):
    """Mean train and validation metric over the folds, and the values of each fold."""

    train: float
    validation: float
    low: float
    high: float
    """Interval of the validation metric."""
    train_folds: OfFolds
    validation_folds: OfFolds
    fit_seconds: OfFolds
    score_seconds: OfFolds


@dataclass(frozen=True)
class Trial:
    """The rows, how they are divided, and what judges predictions; a fit that fails is told in `failures`."""

    what: str
    table: TableRows
    y: Array
    weight: Array
    given: bool
    metric: Metric
    classes: Any
    level: float
    folds: Sequence[tuple[Array, Array]]
    params: Mapping[str, Any]
    contain: bool
    error_score: float | None
    n_jobs: int | None
    failures: list[str]

    @staticmethod
    def of(
        what: str,
        rows: tuple[Any, Any, Any],
        division: tuple[Any, Any, Any],
        metric: Metric,
        classes: Any,
        level: float,
        params: Mapping[str, Any] | None,
        error_score: Any,
        n_jobs: int | None,
    ) -> Trial:
        """Of rows (X, y, weights), divided by (cv, groups, seed): checked."""
        X, y, sample_weight = rows
        cv, groups, seed = division
        level = check_level(level)
        score = check_error_score(error_score)
        table, y = TableRows(X), check_labels("y", y)
        if y.shape[0] != table.n:
            raise ValueError(f"X and y must have the same number of rows: X has {table.n}, y has {y.shape[0]}.")
        weight = check_sample_weight(sample_weight, table.n)
        params = {} if params is None else dict(params)
        if sample_weight is not None and "sample_weight" in params:
            raise ValueError("sample_weight is given twice: leave it out of params.")
        folds = folds_for_curve(cv, y, weight, "regression" not in metric.tasks, generator(seed), groups)
        return Trial(
            what,
            table,
            y,
            weight,
            sample_weight is not None,
            metric,
            classes,
            level,
            folds,
            params,
            error_score != "raise",
            score,
            n_jobs,
            [],
        )

    def anew(self, estimator: Any) -> Callable[[FoldRows], Any]:
        """A clone fitted on the rows of a part; a function of row numbers fits by itself."""
        if hasattr(estimator, "fit"):
            return lambda part: clone(estimator).fit(*self._rows(part.rows), **self._options(part.rows))
        if callable(estimator):
            return lambda part: estimator(part.rows)
        raise TypeError(f"fit must be an estimator or a function of row numbers; got {type(estimator).__name__}.")

    def going_on(self, estimator: Any) -> Callable[[FoldRows], Any]:
        """One clone for each fold, which goes on with the rows that a part has beyond the last part of the fold."""
        if not hasattr(estimator, "partial_fit"):
            raise ValueError(
                f"exploit_incremental_learning needs an estimator with partial_fit; {type(estimator).__name__} has none."
            )
        models = [clone(estimator) for _ in self.folds]
        seen = [0] * len(models)
        classes = {"classes": np.unique(self.y[self.weight > 0])} if is_classifier(estimator) else {}

        def gone_on(part: FoldRows) -> Any:
            further = part.rows[seen[part.fold] :]
            models[part.fold].partial_fit(*self._rows(further), **classes, **self._options(further))
            seen[part.fold] = part.rows.shape[0]
            return models[part.fold]

        return gone_on

    def _rows(self, rows: Array) -> tuple[Any, Array]:
        return self.table.take(rows), self.y[rows]

    def _options(self, rows: Array) -> dict[str, Any]:
        """What else `fit` is given: of that which has an entry for each row, the entries of these."""
        options: dict[str, Any] = {"sample_weight": self.weight[rows]} if self.given else {}
        for name, value in self.params.items():
            shape = getattr(value, "shape", (len(value),) if isinstance(value, (list, tuple)) else ())
            if not shape or shape[0] != self.table.n:
                options[name] = value
            else:
                options[name] = np.asarray(value)[rows] if len(shape) == 1 else TableRows(value).take(rows)
        return options

    def point(self, train_with: Callable[[FoldRows], Any], size: int | None = None) -> Point:
        """Fit on so many rows of each fold, all by default, and judge."""
        parts = [FoldRows(k, rows if size is None else rows[:size]) for k, (rows, _) in enumerate(self.folds)]
        found = each(lambda part: self._judged(train_with, part), parts, self.n_jobs)
        self.failures.extend(one for one in found if isinstance(one, str))
        done = [(one, self.folds[k]) for k, one in enumerate(found) if not isinstance(one, str)]
        none = (np.nan,) * 4
        by_fold = zip(*(none if isinstance(one, str) else one.values for one in found), strict=True)
        if not done:
            return Point(*none, *by_fold)
        shares = [self.weight[outside] for _, (_, outside) in done]
        total = np.array([share.sum() for share in shares])
        value = float(total @ np.array([one.held for one, _ in done]) / total.sum())
        about = np.concatenate([one.moved + (one.held - value) for one, _ in done])
        overlap = float(np.mean([outside.shape[0] / rows.shape[0] for _, (rows, outside) in done]))
        ends = held_out_interval(self.metric, value, about, np.concatenate(shares), overlap, self.level)
        return Point(float(np.mean([one.train for one, _ in done])), value, *ends, *by_fold)

    def _judged(self, train_with: Callable[[FoldRows], Any], part: FoldRows) -> Judged | str:
        """What failed, where that shall not end it all."""
        try:
            return self._judge(train_with, part)
        except Exception as error:  # whatever a learner raises is its own affair, and is told
            if not self.contain:
                raise
            return f"{part.rows.shape[0]} rows of fold {part.fold + 1}: {type(error).__name__}: {error}"

    def _judge(self, train_with: Callable[[FoldRows], Any], part: FoldRows) -> Judged:
        start, outside = part.rows, self.folds[part.fold][1]
        began = time.perf_counter()
        model = train_with(part)
        fitted = time.perf_counter()
        known = getattr(model, "classes_", None)
        order, needs = known if self.classes is None else self.classes, self.metric.needs
        narrow = self.classes is None and known is not None and not np.isin(self.y[self.weight > 0], known).all()
        if narrow:
            order = np.unique(self.y[self.weight > 0])  # few rows may lack a class that others have

        def said(rows: Array) -> Array:
            one = predict_for(model, self.table.take(rows), needs)
            return aligned(model, one, needs, order) if narrow else one

        prediction, weight = said(outside), self.weight[outside]
        held = self.metric(self.y[outside], prediction, sample_weight=weight, classes=order)
        scored = time.perf_counter()
        train = self.metric(self.y[start], said(start), sample_weight=self.weight[start], classes=order)
        moved = influence(self.metric, self.y[outside], prediction, weight, order)[0]
        return Judged(float(train), float(held), fitted - began, scored - fitted, moved)

    @property
    def terms(self) -> dict[str, Any]:
        """By what the points of a curve are judged, and how sure they are."""
        of_metric = {
            "metric": self.metric.name,
            "label": self.metric.label,
            "lower_is_better": self.metric.lower_is_better,
        }
        return {**of_metric, "level": self.level, "error_score": self.error_score}

    def tell(self, fits: int) -> None:
        """Say how many of the fits failed; an error if all did."""
        if len(self.failures) == fits:
            raise ValueError(f"{self.what}: all {fits} fits failed. The first: {self.failures[0]}")
        warn_of_failures(self.what, self.failures, fits, stacklevel=4)


def check_error_score(error_score: Any) -> float | None:
    """The score of a fit that fails; None for NaN, and for "raise", where there is none."""
    if isinstance(error_score, str) and error_score == "raise":
        return None
    if isinstance(error_score, (bool, str)) or not isinstance(error_score, (int, float, np.number)):
        raise ValueError(f'error_score must be "raise" or a number; got {error_score!r}.')
    return None if np.isnan(error_score) else float(error_score)


def folds_for_curve(
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


def numbers_of_rows(sizes: Any, most: int) -> list[int]:
    """Numbers of training rows, from how many there shall be, shares of most, or the numbers."""
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


def along(points: Sequence[Point], *, times: bool = False) -> dict[str, Any]:
    """What the points have, one entry a point; the seconds only where they are asked for."""
    found = zip(Point._fields, zip(*points, strict=True), strict=True)
    return {name: values for name, values in found if times or not name.endswith("_seconds")}


def one_of(name: str, value: Any, theirs: str, other: Any) -> Any:
    """The argument, by our name or scikit-learn's."""
    if value is not None and other is not None:
        raise ValueError(f"{name} and {theirs} are two names of one argument; got both.")
    if value is None and other is None:
        raise ValueError(f"{name} is missing: give it, or {theirs}, scikit-learn's name of it.")
    return other if value is None else value
