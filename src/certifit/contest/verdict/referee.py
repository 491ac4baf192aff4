"""The referee: holds the sealed rows, lets nobody see them, and scores every entrant on them once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit._types import Array
from certifit.contest.search.limits import Budget
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
    left_out: tuple[str, ...] = ()
    """Scores that there was no time for, in words."""


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

    def judge(self, name: str, model: Any, entrants: int, *, all_metrics: bool = True) -> Verdict:
        """Score an entrant; a second try is refused, since the best of several tries is no honest score."""
        if name in self._predicted:
            raise ValueError(f"{name!r} was scored on the sealed rows already; an entrant is scored once.")
        started = time.perf_counter()
        predicted = np.asarray(model.predict(self._features), dtype=np.float64)
        seconds = time.perf_counter() - started
        if not np.isfinite(predicted).all():
            raise ValueError("the predictions of the sealed rows have NaN or infinity")
        level = 1.0 - (1.0 - LEVEL) / max(1, entrants)
        score = self._interval(self._scoring.metric, predicted, level)
        self._predicted[name] = predicted
        metrics = self._scoring.metrics() if all_metrics else [self._scoring.metric]
        return Verdict(predicted, seconds, score, self._scored(metrics, predicted, score, level))

    def _interval(self, metric: Any, predicted: Array, level: float) -> Risk:
        return metric_interval(
            metric,
            self._y,
            self._scoring.view(predicted, metric),
            level=level,
            classes=self._scoring.classes,
            random_state=self._seed,
        )

    def _scored(self, metrics: list[Metric], predicted: Array, score: Risk, level: float) -> dict[str, dict[str, Any]]:
        found = {}
        for metric in metrics:
            try:
                risk = score if metric is self._scoring.metric else self._interval(metric, predicted, level)
            except ValueError:  # undefined here: a Gamma deviance of zeros, the area of a class that is absent
                continue
            found[metric.name] = {
                "label": metric.label,
                "value": risk.value,
                "low": risk.low,
                "high": risk.high,
                "lower_is_better": metric.lower_is_better,
                "format": metric.format,
            }
        return found

    def rank(self, standings: list[Standing], budget: Budget, watch: Watcher) -> Ranking:
        """Every fitted entrant on the sealed rows, once; then which of them can be told apart, every pair on the same rows."""
        fitted = [standing for standing in standings if standing.model is not None]
        hurried = []
        for standing in fitted:
            watch.phase(f"scoring {standing.entrant.label} on the sealed rows")
            all_metrics = budget.left > 0.0
            if not all_metrics:
                hurried.append(standing.entrant.label)
            try:
                standing.verdict = self.judge(standing.name, standing.model, len(fitted), all_metrics=all_metrics)
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
        found = self._compared(scores, {s.name: s.entrant.label for s in standings})
        return replace(found, left_out=(f"further scores of {', '.join(hurried)}",)) if hurried else found

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
