"""The referee: holds the sealed rows, lets nobody see them, and scores every entrant on them once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit._types import Array
from certifit.contest.search.limits import Budget, OutOfTime, time_limit
from certifit.contest.standing import Standing, Verdict, Watcher, one_line
from certifit.contest.verdict.scoring import Scoring
from certifit.evaluation.metrics.registry import Metric
from certifit.evaluation.risk.comparison import Comparison, compare_metric
from certifit.evaluation.risk.risk import Risk, metric_interval

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Ranking", "Referee"]

LEVEL = 0.95


@dataclass(frozen=True)
class Ranking:
    """The entrants in order, and which differences are real."""

    order: tuple[str, ...]
    comparison: Comparison | None
    text: str
    tied: tuple[str, ...] = field(default=())


class Referee:
    """Holds the sealed rows.

    The intervals of the scores hold for all entrants at once (each at level 1 − 0.05/entrants), so the interval of the winner is
    still honest although it was picked for its score.
    """

    def __init__(self, features: pl.DataFrame, y: Array, scoring: Scoring, seed: int) -> None:
        self._features, self._y, self._scoring, self._seed = features, y, scoring, seed
        self._predicted: dict[str, Array] = {}

    @property
    def n_rows(self) -> int:
        """Number of sealed rows."""
        return int(self._y.shape[0])

    def judge(self, name: str, model: Any, entrants: int) -> Verdict:
        """Score an entrant; a second try is refused, since the best of several tries is no honest score."""
        if name in self._predicted:
            raise ValueError(f"{name!r} was scored on the sealed rows already; an entrant is scored once.")
        started = time.perf_counter()
        predicted = np.asarray(model.predict(self._features), dtype=np.float64)
        seconds = time.perf_counter() - started
        if not np.isfinite(predicted).all():
            raise ValueError("the predictions of the sealed rows have NaN or infinity")
        score = self._interval(self._scoring.metric, predicted, 1.0 - (1.0 - LEVEL) / max(1, entrants))
        self._predicted[name] = predicted
        metric = self._scoring.metric
        return Verdict(predicted, seconds, score, {metric.name: _described(metric, score.value, score)})

    def add_metrics(self, verdict: Verdict) -> None:
        """The other metrics of the task, of predictions that were scored before, without intervals, which take longer."""
        for metric in self._scoring.metrics():
            if metric.name not in verdict.metrics:
                try:
                    value = self._scoring.score(self._y, verdict.predicted, metric)
                except ValueError:  # undefined here: a Gamma deviance of zeros, the area of a class that is absent
                    continue
                verdict.metrics[metric.name] = _described(metric, value)

    def add_intervals(self, verdict: Verdict) -> None:
        """The intervals of all metrics that have none yet."""
        for metric in self._scoring.metrics():
            if metric.name in verdict.metrics and verdict.metrics[metric.name]["low"] is None:
                risk = self._interval(metric, verdict.predicted, verdict.score.level)
                verdict.metrics[metric.name] = _described(metric, risk.value, risk)

    def _interval(self, metric: Any, predicted: Array, level: float) -> Risk:
        return metric_interval(
            metric,
            self._y,
            self._scoring.view(predicted, metric),
            level=level,
            classes=self._scoring.classes,
            random_state=self._seed,
        )

    def rank(self, standings: list[Standing], watch: Watcher) -> Ranking:
        """Every fitted entrant on the sealed rows, once; then which of them can be told apart, every pair on the same rows."""
        fitted = [standing for standing in standings if standing.model is not None]
        for standing in fitted:
            watch.phase(f"scoring {standing.entrant.label} on the sealed rows")
            try:
                standing.verdict = self.judge(standing.name, standing.model, len(fitted))
                standing.status = "finished"
            except Exception as error:  # predictions that fail are the entrant's failure
                standing.status, standing.error = "failed", one_line(error)
            watch.changed(standing)
        scores = {s.name: s.verdict.score.value for s in fitted if s.verdict is not None}
        if not scores:
            reasons = "; ".join(f"{s.entrant.label}: {s.error}" for s in standings if s.error)
            raise ValueError(
                f"No entrant finished ({reasons or 'stopped before the first'}). Give the contest more time."
            )
        watch.phase("comparing the scores")
        return self._compared(scores, {s.name: s.entrant.label for s in standings})

    def look_further(
        self, standings: list[Standing], budget: Budget, what: Callable[[Referee, Verdict], None] = add_metrics
    ) -> list[Standing]:
        """All other metrics of these entrants, or what else is to be done, in turn; those that there was no time for."""
        hurried = []
        for standing in standings:
            assert standing.verdict is not None
            try:
                with time_limit(budget.left):
                    what(self, standing.verdict)
            except OutOfTime:
                hurried.append(standing)
        return hurried

    def _compared(self, scores: Mapping[str, float], labels: Mapping[str, str]) -> Ranking:
        order = tuple(sorted(scores, key=lambda name: self._scoring.cost(scores[name])))
        if len(order) < 2:
            return Ranking(order, None, "", order)
        comparison = compare_metric(
            self._scoring.metric,
            self._y,
            {name: self._scoring.view(self._predicted[name]) for name in order},
            level=LEVEL,
            classes=self._scoring.classes,
            random_state=self._seed,
        )
        tied = (comparison.best, *comparison.tied_with_best)
        return Ranking(order, comparison, comparison.describe(labels), tied)

    def unseal(self) -> tuple[pl.DataFrame, Array]:
        """The rows themselves, for diagnostics after all scores are in."""
        return self._features, self._y

    def predictions(self, name: str) -> Array:
        """Predictions of an entrant judged before."""
        return self._predicted[name]


def _described(metric: Metric, value: float, risk: Risk | None = None) -> dict[str, Any]:
    return {
        "label": metric.label,
        "value": value,
        "low": None if risk is None else risk.low,
        "high": None if risk is None else risk.high,
        "lower_is_better": metric.lower_is_better,
        "format": metric.format,
    }
