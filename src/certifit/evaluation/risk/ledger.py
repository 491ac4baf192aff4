"""The ledger of excess risk: where a model's error comes from.

    risk(f̂) − risk of the best possible = optimization + estimation + approximation

| part | what it compares | from |
|---|---|---|
| optimization | the fit with the best fit of its own objective | the certificate |
| estimation | risk on new rows with risk on training rows | test and training rows |
| approximation | the model with a richer one | the same test rows, paired |
| noise (Bayes) | the best possible with zero | nearest neighbors (Cover and Hart 1967) |
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from certifit.data.gate import check_sample_weight
from certifit.data.tabular import TableRows
from certifit.evaluation.metrics.inputs import check_level
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.registry import METRICS, Metric, resolve_metric
from certifit.evaluation.risk.bayes_error import bayes_error
from certifit.evaluation.risk.comparison import Pair, compare, compare_metric
from certifit.evaluation.risk.losses import loss_values
from certifit.evaluation.risk.risk import Risk, interval, metric_interval
from certifit.names import record

__all__ = ["Ledger", "LedgerRow", "ledger"]

ZERO_ONE = ("zero_one", "accuracy")


@record("LedgerRow")
class LedgerRow:
    """One part of the excess risk; None where nothing is known, and `text` says why."""

    part: str
    value: float | None
    low: float | None
    high: float | None
    text: str


@record("Ledger")
class Ledger:
    """The parts of a model's excess risk.

    Parameters
    ----------
    model : str
        What was judged.
    loss : str
        In which unit.
    rows : tuple of LedgerRow
        Optimization, estimation, approximation, noise.
    level : float
        Confidence of the intervals.
    """

    model: str
    loss: str
    rows: tuple[LedgerRow, ...]
    level: float

    def __getitem__(self, part: str) -> LedgerRow:
        for row in self.rows:
            if row.part.split()[:1] == str(part).split()[:1]:
                return row
        raise KeyError(f"No part {part!r}; the parts are {', '.join(row.part for row in self.rows)}.")

    def as_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for reports and JSON; infinite ends become None."""
        rows = [{k: _finite(v) for k, v in asdict(row).items()} for row in self.rows]
        return {"model": self.model, "metric": self.loss, "level": self.level, "rows": rows}

    def __str__(self) -> str:
        return "\n".join(f"{row.part}: {row.text}" for row in self.rows)


def ledger(
    model: Any,
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    loss: Any = "auto",
    richer: Any = None,
    train_weight: Any = None,
    test_weight: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
) -> Ledger:
    """Split the excess risk of a fitted model into its parts.

    Optimization is what a better fit of its own objective would gain, estimation what new rows cost beyond the training rows,
    approximation what a richer model gains; the noise is what the best possible model has left.

    Parameters
    ----------
    model : fitted estimator
    X_train, y_train : the rows it was fitted on
    X_test, y_test : rows it has not seen
    loss : str, Loss, Metric or callable, default="auto"
        As in `risk`.
    richer : estimator, optional
        A model of a larger hypothesis space; fitted here on the training rows unless it is fitted already.
    train_weight, test_weight : array, optional
        How often each row counts. The richer model is fitted with the weights of the training rows, as the model should have
        been; among nearest neighbors every row of positive weight is one point.
    level : float, default=0.95
        Confidence of the intervals.
    random_state : int, default=0
        Seed of resamples and drawn rows.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeRegressor, Ridge, ledger
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(600, 2))
    >>> y = np.abs(X[:, 0]) + 0.1 * rng.normal(size=600)
    >>> model = Ridge(alpha=1e-3).fit(X[:300], y[:300])
    >>> found = ledger(model, X[:300], y[:300], X[300:], y[300:], richer=DecisionTreeRegressor(max_depth=4))
    >>> [row.part for row in found.rows], found["approximation"].low > 0
    (['optimization', 'estimation', 'approximation', 'noise (Bayes)'], True)
    """
    level = check_level(level)
    if isinstance(loss, str) and loss == "auto":
        loss = "zero_one" if hasattr(model, "classes_") else "squared"
    judge = _Judge(loss, getattr(model, "classes_", None), level, random_state)
    train, test = _Rows(X_train, y_train, train_weight), _Rows(X_test, y_test, test_weight)
    rows = (
        _optimization(model),
        _estimation(judge.risk(model, train), unseen := judge.risk(model, test), judge.lower_is_better),
        _approximation(model, richer, train, test, judge),
        _noise(train, judge, random_state),
    )
    return Ledger(_name(model), unseen.loss, rows, level)


class _Rows(NamedTuple):
    """Rows, and how often each counts (None: once)."""

    X: Any
    y: Any
    weight: Any


class _Judge:
    """One loss in every form the ledger asks for."""

    def __init__(self, loss: Any, classes: Any, level: float, random_state: Any) -> None:
        named = isinstance(loss, Metric) or (isinstance(loss, str) and loss in METRICS)
        self.metric = resolve_metric(loss) if named else None
        self.loss, self.classes, self.level, self.random_state = loss, classes, level, random_state
        self.lower_is_better = self.metric is None or self.metric.lower_is_better
        self.zero_one = self.metric is not None and self.metric.name in ZERO_ONE

    def risk(self, model: Any, rows: _Rows) -> Risk:
        """Value and interval of the loss of a model."""
        given = {"level": self.level, "random_state": self.random_state, "sample_weight": rows.weight}
        if self.metric is None:
            values, name = loss_values(model, rows.X, rows.y, self.loss)
            return interval(values, name=name, **given)
        prediction = predict_for(model, rows.X, self.metric.needs)
        return metric_interval(self.metric, rows.y, prediction, classes=self.classes, **given)

    def advantage(self, richer: Any, model: Any, rows: _Rows) -> Pair:
        """The difference of the model from the richer one: positive when the richer one is better."""
        models = {"model": model, "richer": richer}
        given = {"level": self.level, "random_state": self.random_state, "sample_weight": rows.weight}
        if self.metric is None:
            losses = {name: loss_values(one, rows.X, rows.y, self.loss)[0] for name, one in models.items()}
            found = compare(losses, **given)
        else:
            predictions = {name: predict_for(one, rows.X, self.metric.needs) for name, one in models.items()}
            found = compare_metric(self.metric, rows.y, predictions, classes=self.classes, **given)
        return found.pair("model", "richer") if self.lower_is_better else found.pair("richer", "model")


def _optimization(model: Any) -> LedgerRow:
    part = "optimization"
    steps = getattr(model, "steps", None)
    last = steps[-1][1] if steps else model
    certificate = getattr(last, "certificate_", None)
    if certificate is None:
        return LedgerRow(part, None, None, None, "Not bounded: the model has no certificate.")
    if certificate.kind == "none" or not math.isfinite(certificate.gap):
        return LedgerRow(
            part, None, None, None, "Not bounded: this kind of model has no bound on its distance from the best."
        )
    gap = float(certificate.gap)
    text = f"The fit is at most {gap:.2g} above the least value of its own objective ({certificate.kind})."
    return LedgerRow(part, gap, 0.0, gap, text)


def _estimation(seen: Risk, unseen: Risk, lower_is_better: bool) -> LedgerRow:
    # The training value is a known number for this model; what varies is the sample of new rows.
    if lower_is_better:
        value, low, high = unseen.value - seen.value, unseen.low - seen.value, unseen.high - seen.value
    else:
        value, low, high = seen.value - unseen.value, seen.value - unseen.high, seen.value - unseen.low
    text = f"The {unseen.loss} is {unseen.value:.4g} on new rows and {seen.value:.4g} on training rows."
    return LedgerRow("estimation", value, low, high, text)


def _approximation(model: Any, richer: Any, train: _Rows, test: _Rows, judge: _Judge) -> LedgerRow:
    part = "approximation"
    if richer is None:
        return LedgerRow(part, None, None, None, "Not estimated: no richer model was given to compare with.")
    if not _is_fitted(richer):
        more = {} if train.weight is None else {"sample_weight": train.weight}
        richer = clone(richer).fit(train.X, train.y, **more)
    found = judge.advantage(richer, model, test)
    name = _name(richer)
    value, low, high = (max(end, 0.0) for end in (found.difference, found.low, found.high))
    if found.distinguishable and found.difference > 0.0:
        text = f"A richer model ({name}) does better on the same new rows by {value:.4g}."
    elif found.distinguishable:
        text = f"A richer model ({name}) does worse on the same new rows: nothing is lost by the simpler form."
    else:
        text = f"A richer model ({name}) cannot be told apart on the same new rows."
    return LedgerRow(part, value, low, high, text)


def _noise(rows: _Rows, judge: _Judge, random_state: Any) -> LedgerRow:
    part = "noise (Bayes)"
    if not judge.zero_one:
        return LedgerRow(part, None, None, None, "Estimated for the error rate only.")
    table = TableRows(rows.X)
    columns = len(table.numeric()[1])
    X, y = rows.X, rows.y
    if rows.weight is not None:
        counted = np.flatnonzero(check_sample_weight(rows.weight, table.n))
        X, y = table.take(counted), np.asarray(y)[counted]
    try:
        found = bayes_error(X, y, level=judge.level, random_state=random_state)
    except ValueError as error:
        return LedgerRow(part, None, None, None, f"Not estimated: {error}")
    scope = "" if columns == len(table.names) else f" (from the {columns} numeric columns of {len(table.names)})"
    text = f"Nearest neighbors suggest that no classifier errs on less than {found.value:.4g} of the rows{scope}."
    return LedgerRow(part, found.value, found.low, found.high, text)


def _is_fitted(model: Any) -> bool:
    if not hasattr(model, "fit"):
        return True  # a function of X
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _name(model: Any) -> str:
    return str(getattr(model, "label", type(model).__name__))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
