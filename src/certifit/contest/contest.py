"""An honest contest of methods on one table.

A part of the rows is sealed before anything is fitted. Every entrant chooses its settings by cross-validation on the rest, is
fitted once, and is scored once on the sealed rows by the referee.

`Contest.run` is the whole walk, one file a step:

    table/ (read and typed)  →  alarms/  →  search/race  →  search/blend  →  verdict/referee  →  verdict/examination  →
    record/record  →  Result, which writes the files
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from certifit._types import Array
from certifit.contest.alarms import alarms
from certifit.contest.alarms.aftermath import aftermath
from certifit.contest.costs import costs_of
from certifit.contest.entrants import Conditions, Encoded, Entrant, Path, entrants_for
from certifit.contest.numbers import readable
from certifit.contest.record.model import TableModel
from certifit.contest.record.record import write_record
from certifit.contest.record.result import Result
from certifit.contest.search.blend import blend
from certifit.contest.search.calibrated import calibrated
from certifit.contest.search.limits import Budget
from certifit.contest.search.race import race
from certifit.contest.search.refit import refit
from certifit.contest.standing import Silent, Standing, Watcher
from certifit.contest.table.encoded import Training
from certifit.contest.table.table import Table
from certifit.contest.verdict.examination import examine
from certifit.contest.verdict.promise import left_out, promise_of
from certifit.contest.verdict.referee import Ranking, Referee
from certifit.contest.verdict.scoring import Scoring, scoring_for
from certifit.data.gate import check_real
from certifit.evaluation.decisions.costs import CostMatrix
from certifit.evaluation.decisions.thresholds import Costs
from certifit.evaluation.splits.sealed import SealedSplit, folds, sealed_split
from certifit.threads import n_threads

__all__ = ["Contest"]

ALARMS_SHARE = 0.05  # of the time may go into the search for leaks
METRICS = 0.85  # of the time must be over before the scores that the summary quotes are given up
RESERVE = 0.25  # share of the time kept for scores, refit and diagnostics
WRITING = (0.5, 0.02)  # seconds, and share of the time, kept for the files
BEFORE = 0.25  # of the time at most counts as spent before the contest began
COLUMN = 1.5e-4  # seconds to keep for the files for each column
FEW_FOLDS, ONE_FOLD = 60_000, 250_000  # training rows above which three folds, or one part set aside, tell enough


@dataclass(frozen=True)
class Options:
    """The options of a contest, checked."""

    task: str | None = None
    types: Mapping[str, str] | None = None
    drop: tuple[str, ...] = ()
    group: str | None = None
    time_column: str | None = None
    cost: Costs | CostMatrix | None = None
    metric: str | None = None
    entrants: tuple[str, ...] | None = None
    time: float = 60.0
    seed: int = 0
    jobs: int | None = None
    test_size: float = 0.2
    refit: bool = True


class Contest:
    """A contest of methods on a table.

    Parameters
    ----------
    table : data frame, path of a CSV or Parquet file, or Table
        The rows; "-" reads standard input.
    target : str
        The column to predict.
    task : {"binary", "multiclass", "regression"}, optional
        Inferred from the target when not given.
    types : mapping of column to kind, optional
        Overrides of the inferred kinds: "numeric", "category", "boolean", "text", "date".
    drop : iterable of str
        Columns to leave out.
    group : str, optional
        Column whose equal values stay together: no group is both trained on and tested on.
    time_column : str, optional
        Column that orders the rows in time: the latest are sealed.
    cost : str, path, mapping, matrix, Costs or CostMatrix, optional
        Costs of the errors: ``"fp=1,fn=5"`` for two classes; for any number of them a table of what is true by what is said, as a
        CSV or JSON file, a mapping such as ``{"a": {"b": 5}, "b": {"a": 1}}``, or a matrix in the order of the classes.
    metric : str, optional
        What the contest is about; log loss for classes and root mean squared error for numbers by default.
    entrants : iterable of str, optional
        Names from ``certifit.contest.ENTRANTS``, or "blend"; all by default. The baseline always takes part.
    time : float, default=60
        Seconds the contest may take, reading the table included.
    seed : int, default=0
        Of every draw: the same seed gives the same splits and models.
    jobs : int, optional
        Threads; all cores by default.
    test_size : float, default=0.2
        Share of the rows that is sealed.
    refit : bool, default=True
        Whether the winner, once scored, is fitted anew with its settings on all rows, the sealed ones included, and shipped so.

    Examples
    --------
    >>> from certifit import Contest
    >>> from certifit.datasets import load_penguins
    >>> data = load_penguins()
    >>> result = Contest(data.frame, data.target, entrants=["logistic"], time=10).run()
    >>> result.winner.name
    'logistic'
    >>> bool(result.score("logistic") < result.score("baseline"))
    True
    """

    def __init__(
        self,
        table: Any,
        target: str,
        *,
        task: str | None = None,
        types: Mapping[str, str] | None = None,
        drop: Iterable[str] = (),
        group: str | None = None,
        time_column: str | None = None,
        cost: Any = None,
        metric: str | None = None,
        entrants: Iterable[str] | None = None,
        time: float = 60.0,
        seed: int = 0,
        jobs: int | None = None,
        test_size: float = 0.2,
        refit: bool = True,
    ) -> None:
        self.options = Options(
            task=task,
            types=dict(types or {}),
            drop=tuple(drop),
            group=group,
            time_column=time_column,
            metric=metric,
            entrants=None if entrants is None else tuple(entrants),
            time=float(check_real("time", time, low=0, open_low=True)),
            seed=int(check_real("seed", seed, low=0, high=2**31 - 1, integer=True)),
            jobs=jobs,
            test_size=float(check_real("test_size", test_size, low=0, high=1, open_low=True, open_high=True)),
            refit=bool(refit),
        )
        begun = clock.monotonic()
        self.table = table if isinstance(table, Table) else self._read(table, target)
        self.seconds_of_reading = clock.monotonic() - begun
        self._before = 0.0
        self._check_task(cost)
        self._guests: list[Entrant] = []

    def _read(self, source: Any, target: str) -> Table:
        o = self.options
        return Table.from_source(
            source, target, task=o.task, types=o.types, drop=o.drop, group=o.group, time_column=o.time_column
        )

    def _check_task(self, cost: Any) -> None:
        """What can be refused before anything is fitted."""
        kind = self.table.task.kind
        self.options = replace(self.options, cost=costs_of(cost, self.classes))
        self.scoring: Scoring = scoring_for(kind, self.options.metric, len(self.classes), self.options.cost)
        self.entrants = entrants_for(kind, None if self.options.entrants is None else list(self.options.entrants))

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels in the order of their codes; for two classes the positive one is last."""
        task = self.table.task
        if task.classes is None:
            return ()
        if task.positive is None:
            return tuple(task.classes)
        return (*(label for label in task.classes if label != task.positive), task.positive)

    def enter(self, name: str, estimator: Any, *, label: str | None = None, encoding: str = "matrix") -> Contest:
        """Enter any scikit-learn compatible estimator.

        Parameters
        ----------
        name : str
            Its name in the leaderboard.
        estimator : classifier or regressor, unfitted
            Fitted as it is: its settings are its owner's. A classifier without ``predict_proba`` is calibrated.
        label : str, optional
            How the report calls it.
        encoding : {"matrix", "codes"}, default="matrix"
            "matrix": standardized numbers, categories one-hot, gaps filled; "codes": raw numbers, category codes, NaN kept.

        Returns
        -------
        self
        """
        if name == "blend" or name in {entrant.name for entrant in (*self.entrants, *self._guests)}:
            raise ValueError(f"name {name!r} is taken: give the entrant another name.")
        if encoding not in ("matrix", "codes"):
            raise ValueError(f"encoding must be 'matrix' or 'codes'; got {encoding!r}.")
        classifies = self.table.task.kind != "regression"
        if not (is_classifier(estimator) if classifies else is_regressor(estimator)):
            wanted = "a classifier" if classifies else "a regressor"
            raise ValueError(f"estimator must be {wanted} for a {self.table.task.kind} task; got {estimator!r}.")
        calibrate = classifies and not hasattr(estimator, "predict_proba")

        def build(setting: Mapping[str, Any], data: Encoded) -> Any:
            return calibrated(clone(estimator)) if calibrate else clone(estimator)

        def paths(conditions: Conditions, data: Encoded) -> list[Path]:
            return [Path(({},), build)]

        described = " ".join(repr(estimator).split())
        self._guests.append(Entrant(name, label or name, described, paths, encoding=encoding, tasks=frozenset()))
        return self

    def charge(self, seconds: float) -> Contest:
        """Count seconds that were spent before the contest was set up, such as those of starting a program, as its own.

        At most a quarter of its time: on a machine so busy that starting takes longer, a late answer is better than none.
        """
        self._before = min(float(check_real("seconds", seconds, low=0)), BEFORE * self.options.time)
        return self

    def run(self, watcher: Watcher | None = None) -> Result:
        """Hold the contest.

        Returns
        -------
        Result
            The leaderboard, the fitted models, and everything the report shows. An interrupt (Ctrl-C) ends the contest early:
            the result has what was done until then.
        """
        watch = watcher or Silent()
        budget = Budget(self.options.time - self._writing, spent=self._before + self.seconds_of_reading)
        watch.phase("sealing the test rows")
        table, options, scoring = self.table, self.options, self.scoring
        split = sealed_split(
            table.y,
            test_size=options.test_size,
            task=table.task.kind,
            groups=table.groups,
            time=table.time,
            codes=table.copies,
            seed=options.seed,
        )
        conditions = Conditions(
            table.task.kind, scoring.metric.name, self.classes, options.seed, n_threads(options.jobs)
        )
        training, referee = self._sides(split)
        warnings = alarms(table, split, ALARMS_SHARE * options.time)
        standings = [Standing(entrant) for entrant in (*self.entrants, *self._guests)]
        watch.planned(standings)
        part = budget.part(1.0 - RESERVE)
        whole = race(standings, training, conditions=conditions, scoring=scoring, budget=part, watch=watch)
        if options.entrants is None or "blend" in options.entrants:
            blended = blend(standings, training, conditions, scoring)
            if blended is not None:
                standings.append(blended)
                watch.changed(blended)
        watch.phase("scoring on the sealed rows")
        ranking = referee.rank(standings, watch)
        winner, *others = [next(s for s in standings if s.name == name) for name in ranking.order]
        others.sort(key=lambda s: not s.entrant.baseline)  # what the summary quotes comes first
        unmeasured = referee.look_further([winner, *others], budget.part(METRICS))
        referee.look_further([winner, *others[:1]], budget.part(METRICS), Referee.add_intervals)
        models = self._models(standings)
        best, shipped = self._shipped(standings, ranking, models, referee.n_rows, conditions, budget, watch)
        promise = promise_of(winner, standings, training, referee)
        best = replace(best, promise=promise)
        models[winner.name] = replace(models[winner.name], promise=promise)
        examination = examine(
            standings,
            ranking,
            training=training,
            referee=referee,
            scoring=scoring,
            conditions=conditions,
            budget=budget,
            watch=watch,
        )
        unsure = referee.look_further([winner, *others], budget, Referee.add_intervals)
        late = [s for s in standings if s.status == "out of time"]
        every = len(ranking.order)
        examination.left_out = [
            *([f"{len(late)} of {len(standings)} entrants"] if late else []),
            *examination.left_out,
            *([f"further scores of {len(unmeasured)} of {every} entrants"] if unmeasured else []),
            *([f"the intervals of further scores of {len(unsure)} of {every} entrants"] if unsure else []),
        ]
        warnings += aftermath(
            winner,
            y=referee.unseal()[1],
            judged=_judged(winner, standings, training, scoring),
            scoring=scoring,
            removed=_removed(winner, standings),
            warned=warnings,
            left_out=examination.left_out,
            why_not_refitted=shipped["why"] if options.refit else "",
        )
        record = write_record(
            table=table,
            split=split,
            options=options,
            conditions=conditions,
            scoring=scoring,
            folds=len(training.folds),
            standings=standings,
            ranking=ranking,
            examination=examination,
            shipped=shipped,
            promise=None if promise is None else promise.as_dict(referee.predictions(winner.name)),
            warnings=warnings,
            interrupted=not whole or examination.interrupted,
            seconds=budget.spent,
        )
        return Result(record, models, best)

    @property
    def _writing(self) -> float:
        """Seconds to keep for the files: a table that took long to read, or has many columns, takes long to write about."""
        seconds = self.options.time
        table = 0.3 * self.seconds_of_reading + COLUMN * len(self.table.columns)
        return WRITING[0] + WRITING[1] * seconds + min(table, 0.15 * seconds)

    def _sides(self, split: SealedSplit) -> tuple[Training, Referee]:
        """The rows to learn from, in folds, and the referee with the sealed ones."""
        table, options = self.table, self.options
        train, test = split.train, split.test
        parts = folds(
            table.y[train],
            3 if train.shape[0] > FEW_FOLDS else 5,
            task=table.task.kind,
            groups=None if table.groups is None else table.groups[train],
            time=None if table.time is None else table.time[train],
            codes=None if table.copies is None else table.copies[train],
            seed=options.seed,
        )
        if train.shape[0] > ONE_FOLD:
            parts = parts[-1:]
        y, features = _coded(table.y, self.classes), table.features
        training = Training(features[train], y[train], parts, table.kinds)
        return training, Referee(features[test], y[test], self.scoring, options.seed)

    def _models(self, standings: list[Standing]) -> dict[str, TableModel]:
        """What was scored, ready to take a table."""
        schema, scoring = self.table.schema, self.scoring
        return {
            s.name: TableModel(
                schema, s.model, s.name, s.entrant.label, self.classes, scoring.threshold, costs=scoring.matrix
            )
            for s in standings
            if s.verdict is not None and s.model is not None
        }

    def _shipped(
        self,
        standings: list[Standing],
        ranking: Ranking,
        models: dict[str, TableModel],
        sealed: int,
        conditions: Conditions,
        budget: Budget,
        watch: Watcher,
    ) -> tuple[TableModel, dict[str, Any]]:
        """The model that goes into the file, and which rows it has seen."""
        winner = next(s for s in standings if s.name == ranking.order[0])
        scored, table = models[winner.name], self.table
        rows, refitted, why = len(table) - sealed, None, "as asked"
        if self.options.refit:
            watch.phase(f"fitting {winner.entrant.label} on all rows")
            refitted, why = refit(
                winner,
                standings,
                table.features,
                _coded(table.y, self.classes),
                conditions=conditions,
                kinds=table.kinds,
                budget=budget,
            )
        assert winner.verdict is not None
        metric = self.scoring.metric
        score = f"{metric.label} {readable(winner.verdict.score.value, metric.format)} on {sealed:,} sealed rows"
        if refitted is None:
            origin = f"Fitted on {rows:,} training rows, and scored as it is: {score}"
            origin += "." if why == "as asked" else f"; it was not fitted on all rows: {why}."
            return replace(scored, origin=origin), {"refitted": False, "rows": rows, "text": origin, "why": why}
        origin = (
            f"Fitted on all {len(table):,} rows, after the same settings fitted on {rows:,} of them had reached {score}: "
            "more rows should make it no worse, but no row is left to measure that."
        )
        return replace(scored, core=refitted, origin=origin), {
            "refitted": True,
            "rows": len(table),
            "text": origin,
            "why": "",
        }


def _judged(winner: Standing, standings: list[Standing], training: Training, scoring: Scoring) -> Array | None:
    """Losses of the winner on the rows left out in its search, None where there were none."""
    found = left_out(winner, standings)
    return None if found is None else scoring.losses(training.y[found[0]], found[1])


def _removed(winner: Standing, standings: list[Standing]) -> float | None:
    """Share of the baseline's log loss that the winner removes, whatever the contest is about; None for numbers."""
    floor = next((s for s in standings if s.entrant.baseline), None)
    mine, trivial = (
        None if s is None or s.verdict is None else s.verdict.metrics.get("log_loss", {}).get("value")
        for s in (winner, floor)
    )
    return None if mine is None or not trivial else 1.0 - mine / trivial


def _coded(y: Array, classes: tuple[str, ...]) -> Array:
    """Class codes, or the numbers."""
    if not classes:
        return np.asarray(y, dtype=np.float64)
    code = {label: k for k, label in enumerate(classes)}
    return np.array([code[str(label)] for label in y], dtype=np.intp)
