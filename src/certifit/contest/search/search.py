"""The search of one entrant: its settings judged on the folds of the training part, within a time limit.

Settings that are clearly behind after a fold are not fitted on the next ones: a setting is dropped when the losses of the rows
judged so far put it behind the leader by more than chance allows. What is left when time is up is chosen from.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm

from certifit._types import Array
from certifit.contest.entrants import Conditions, Encoded, Entrant, Path
from certifit.contest.record.model import Chain
from certifit.contest.search.limits import OutOfTime, time_limit
from certifit.contest.table.encoded import EncodedRows, Training
from certifit.contest.verdict.scoring import Scoring

__all__ = ["Found", "Trial", "fit_setting", "search"]

CLEARLY = float(norm.ppf(0.999))  # a setting this many standard errors behind the leader is dropped
HALF = 1 << 28  # bytes of predictions kept in double precision; beyond, single


@dataclass(frozen=True)
class FoldResult:
    """What a setting showed on one fold: kept in one piece, since an alarm may ring at any moment."""

    score: float
    losses: Array
    rows: Array
    predicted: Array


@dataclass
class Trial:
    """A setting and what it showed on the folds."""

    setting: Mapping[str, Any]
    path: Path
    results: list[FoldResult] = field(default_factory=list)
    dropped: bool = False
    """Clearly behind: not fitted on further folds, and never chosen."""

    @property
    def folds(self) -> int:
        """Folds judged."""
        return len(self.results)

    @property
    def score(self) -> float:
        """Mean over the folds judged."""
        return float(np.mean([fold.score for fold in self.results]))

    @property
    def standard_error(self) -> float | None:
        """Of the mean over the folds."""
        k = self.folds
        return float(np.std([fold.score for fold in self.results], ddof=1) / np.sqrt(k)) if k > 1 else None

    def losses(self, k: int) -> Array:
        """Losses of the rows of the first k folds."""
        return np.concatenate([fold.losses for fold in self.results[:k]])


@dataclass
class Found:
    """The outcome of a search."""

    trials: list[Trial]
    best: Trial
    seconds: float
    stopped: bool
    """Whether time ran out before all settings were tried."""

    def left_out(self) -> tuple[Array, Array]:
        """Rows judged with the chosen setting, and its predictions for them by models that did not see them."""
        judged = self.best.results
        return np.concatenate([fold.rows for fold in judged]), np.concatenate([fold.predicted for fold in judged])


def search(entrant: Entrant, training: Training, conditions: Conditions, scoring: Scoring, seconds: float) -> Found:
    """Judge the settings of an entrant on the folds for about `seconds`.

    The first path is given a little longer before it is stopped, since without it there is nothing to choose from; where even
    that is too little, the setting in the middle of the path is taken untried.
    """
    started = time.monotonic()
    whole = expanded(entrant, training.whole(entrant.encoding), conditions).train
    paths = entrant.paths(conditions, whole)
    trials: list[Trial] = []
    stopped = False
    if len(paths) == 1 and len(paths[0].settings) == 1:  # nothing to choose: one round of folds for the score
        seconds = max(seconds, 1.0)
    for path in paths:
        spent = time.monotonic() - started
        allowed = (seconds if trials else 1.2 * seconds) - spent
        if trials and allowed <= 0:
            stopped = True
            break
        try:
            with time_limit(allowed):
                _walk(path, entrant, training, conditions, scoring, trials)
        except OutOfTime:
            stopped = True
            break
    judged = [trial for trial in trials if trial.folds]
    if not judged:  # not even one fold: the middle of the first path is the setting to take untried
        settings = paths[0].settings
        return Found([], Trial(settings[len(settings) // 2], paths[0]), time.monotonic() - started, True)
    most = max(trial.folds for trial in judged if not trial.dropped)
    finalists = [trial for trial in judged if trial.folds == most and not trial.dropped]
    best = min(finalists, key=lambda trial: scoring.cost(trial.score))
    return Found(judged, best, time.monotonic() - started, stopped)


def _walk(
    path: Path, entrant: Entrant, training: Training, conditions: Conditions, scoring: Scoring, trials: list[Trial]
) -> None:
    """Judge the settings of one path fold by fold; what is appended to `trials` survives an alarm."""
    mine = [Trial(setting, path) for setting in path.settings]
    trials.extend(mine)
    for k, (_, validation) in enumerate(training.folds):
        alive = _alive(mine, trials, scoring, k)
        if not alive:
            return
        rows = expanded(entrant, training.fold(entrant.encoding, k), conditions)
        y = training.y[validation]
        results = []
        for j, predict in zip(alive, path.only(alive).fitted(rows.train, len(conditions.classes)), strict=True):
            predicted = predict(rows.validation)
            results.append((mine[j], scoring.score(y, predicted), scoring.losses(y, predicted), predicted))
        single = sum(r[3].nbytes for r in results) * len(training.folds) > HALF
        for trial, score, losses, predicted in results:
            kept = predicted.astype(np.float32) if single else predicted
            trial.results.append(FoldResult(score, losses, validation, kept))


def _alive(mine: list[Trial], trials: list[Trial], scoring: Scoring, k: int) -> list[int]:
    """Settings still in the race before fold k."""
    running = [j for j, trial in enumerate(mine) if trial.folds == k]
    if k == 0 or not running:
        return running
    rivals = [trial for trial in trials if trial.folds >= k and not trial.dropped]
    leader = min(rivals, key=lambda trial: float(np.mean(trial.losses(k))))
    lead = leader.losses(k)
    for j in running:
        behind = mine[j].losses(k) - lead
        error = float(np.std(behind)) / np.sqrt(behind.shape[0])
        mine[j].dropped = mine[j] is not leader and float(np.mean(behind)) > CLEARLY * error
    return [j for j in running if not mine[j].dropped]


def expanded(entrant: Entrant, rows: EncodedRows, conditions: Conditions) -> EncodedRows:
    """The rows after the entrant's own transformers, fitted on the training rows."""
    return _expanded(entrant.expand(conditions, rows.train), rows)


def _expanded(steps: list[Any], rows: EncodedRows) -> EncodedRows:
    if not steps:
        return rows
    X, validation = rows.train.X, rows.validation
    names: Any = rows.train.names
    for step in steps:
        X = step.fit_transform(X)
        validation = None if validation is None else step.transform(validation)
        names = step.get_feature_names_out(names)
    return EncodedRows(Encoded(X, rows.train.y, tuple(map(str, names))), validation, rows.encoder)


def fit_setting(entrant: Entrant, trial: Trial, rows: EncodedRows, conditions: Conditions) -> Chain:
    """The model of a setting on these rows."""
    steps = entrant.expand(conditions, rows.train)
    data = _expanded(steps, rows).train
    estimator = trial.path.build(trial.setting, data).fit(data.X, data.y)
    return Chain(rows.encoder, steps, estimator, len(conditions.classes))
