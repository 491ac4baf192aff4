"""An honest contest of methods on one table.

A part of the rows is sealed before anything is fitted. Every entrant chooses its settings by cross-validation on the rest, is
fitted once, and is scored once on the sealed rows by the referee.
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from certifit._types import Array
from certifit.contest.entrants import Encoded, Entrant, NotApplicable, Path, Setting, entrants_for
from certifit.contest.record.model import Blend, Chain
from certifit.contest.record.result import Result
from certifit.contest.search.blend import blend_weights
from certifit.contest.search.calibrated import Calibrated
from certifit.contest.search.limits import Budget, OutOfTime, peak_memory, time_limit
from certifit.contest.search.search import fit_setting, search
from certifit.contest.table.encoded import EncodedTable
from certifit.contest.table.table import Table
from certifit.contest.verdict.judging import Judge, judge_for
from certifit.contest.verdict.referee import Referee, Verdicts
from certifit.contest.verdict.standing import Silent, Standing, Watcher
from certifit.contest.verdict.suspicions import suspicions
from certifit.data.gate import check_real
from certifit.evaluation.decisions.thresholds import Costs, parse_costs
from certifit.evaluation.splits.sealed import SealedSplit, folds, sealed_split
from certifit.threads import n_threads

__all__ = ["Contest"]

RESERVE = 0.2  # share of the time kept for the diagnostics of the finalists
FEW_FOLDS, ONE_FOLD = 60_000, 250_000  # training rows above which three folds, or one part set aside, tell enough
GRACE = 5.0  # seconds a final fit may take beyond its share


@dataclass(frozen=True)
class Options:
    """The options of a contest, checked."""

    task: str | None = None
    types: Mapping[str, str] | None = None
    drop: tuple[str, ...] = ()
    group: str | None = None
    time_column: str | None = None
    cost: Costs | None = None
    metric: str | None = None
    entrants: tuple[str, ...] | None = None
    time: float = 60.0
    seed: int = 0
    jobs: int | None = None
    test_size: float = 0.2


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
    cost : str, mapping or Costs, optional
        Costs of the errors for two classes, such as ``"fp=1,fn=5"``.
    metric : str, optional
        What the contest is about; log loss for classes and root mean squared error for numbers by default.
    entrants : iterable of str, optional
        Names from ``certifit.contest.ENTRANTS``; all by default. The baseline always takes part.
    time : float, default=60
        Seconds the contest may take.
    seed : int, default=0
        Of every draw: the same seed gives the same splits and models.
    jobs : int, optional
        Threads; all cores by default.
    test_size : float, default=0.2
        Share of the rows that is sealed.

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
    ) -> None:
        self.options = Options(
            task=task,
            types=dict(types or {}),
            drop=tuple(drop),
            group=group,
            time_column=time_column,
            cost=_costs(cost),
            metric=metric,
            entrants=None if entrants is None else tuple(entrants),
            time=float(check_real("time", time, low=0, open_low=True)),
            seed=int(check_real("seed", seed, low=0, high=2**31 - 1, integer=True)),
            jobs=jobs,
            test_size=float(check_real("test_size", test_size, low=0, high=1, open_low=True, open_high=True)),
        )
        self.table = table if isinstance(table, Table) else self._read(table, target)
        self._check_task()
        self._guests: list[Entrant] = []

    def _read(self, source: Any, target: str) -> Table:
        o = self.options
        return Table.from_source(
            source, target, task=o.task, types=o.types, drop=o.drop, group=o.group, time_column=o.time_column
        )

    def _check_task(self) -> None:
        """What can be refused before anything is fitted."""
        kind = self.table.task.kind
        if self.options.cost is not None and kind != "binary":
            raise ValueError(f"cost is for two classes, and the task is {kind}: leave it out.")
        self.judge: Judge = judge_for(kind, self.options.metric, len(self.classes), self.options.cost)
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

        def build(settings: Mapping[str, Any], data: Encoded) -> Any:
            return Calibrated(clone(estimator)) if calibrate else clone(estimator)

        def paths(setting: Setting, data: Encoded) -> list[Path]:
            return [Path(({},), build)]

        described = " ".join(repr(estimator).split())
        self._guests.append(
            Entrant(name, label or name, "guest", described, paths, encoding=encoding, tasks=frozenset())
        )
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
        budget = Budget(self.options.time * (1.0 - RESERVE))
        watch.phase("sealing the test rows")
        run = _Run(self, watch)
        notes = suspicions(self.table, run.split)
        standings = [Standing(entrant) for entrant in (*self.entrants, *self._guests)]
        blending = self.options.entrants is None or "blend" in self.options.entrants
        watch.planned(standings)
        interrupted = not run.fit_all(standings, budget)
        if blending:
            blend = run.blend(standings)
            if blend is not None:
                standings.append(blend)
                watch.changed(blend)
        watch.phase("scoring on the sealed rows")
        verdicts = run.score_all(standings)
        return Result.of(self, run, standings, verdicts, notes, interrupted, budget, watch)


class _Run:
    """The rows of one contest, split, and the steps every entrant goes through."""

    def __init__(self, contest: Contest, watch: Watcher) -> None:
        table, options = contest.table, contest.options
        self.watch, self.judge = watch, contest.judge
        self.split: SealedSplit = sealed_split(
            table.y,
            test_size=options.test_size,
            task=table.task.kind,
            groups=table.groups,
            time=table.time,
            codes=table.codes,
            seed=options.seed,
        )
        y = self._coded(table.y, contest.classes)
        train, test = self.split.train, self.split.test
        features = table.features
        self.y_train: Array = y[train]
        self.setting = Setting(
            table.task.kind, contest.judge.metric.name, contest.classes, options.seed, n_threads(options.jobs)
        )
        parts = folds(
            table.y[train],
            3 if train.shape[0] > FEW_FOLDS else 5,
            task=table.task.kind,
            groups=None if table.groups is None else table.groups[train],
            time=None if table.time is None else table.time[train],
            codes=table.codes[train],
            seed=options.seed,
        )
        if train.shape[0] > ONE_FOLD:
            parts = parts[-1:]
        self.table = EncodedTable(features[train], self.y_train, parts, table.kinds)
        self.referee = Referee(features[test], y[test], contest.judge, options.seed)

    @staticmethod
    def _coded(y: Array, classes: tuple[str, ...]) -> Array:
        """Class codes, or the numbers."""
        if not classes:
            return np.asarray(y, dtype=np.float64)
        code = {label: k for k, label in enumerate(classes)}
        return np.array([code[str(label)] for label in y], dtype=np.intp)

    def fit_all(self, standings: list[Standing], budget: Budget) -> bool:
        """Search and fit every entrant; False when an interrupt ended it."""
        for i, standing in enumerate(standings):
            weights = sum(s.entrant.weight for s in standings[i:])
            try:
                self._fit(standing, budget.share(standing.entrant.weight, weights))
            except KeyboardInterrupt:
                for rest in standings[i:]:
                    rest.status, rest.error = "interrupted", "stopped by an interrupt"
                return False
            self.watch.changed(standing)
        return True

    def _fit(self, standing: Standing, seconds: float) -> None:
        """One entrant; what goes wrong with it stays with it."""
        entrant = standing.entrant
        standing.status = "searching"
        self.watch.changed(standing)
        started = clock.monotonic()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what a fit has to say is in its certificate
                found = search(entrant, self.table, self.setting, self.judge, 0.7 * seconds)
                standing.found, standing.search_seconds = found, found.seconds
                standing.inner_score, standing.inner_error = found.best.score, found.best.standard_error
                standing.inner_folds, standing.hyperparameters = found.best.folds, found.best.hyperparameters
                standing.status = "fitting"
                self.watch.changed(standing)
                rows = self.table.whole(entrant.encoding)
                left = seconds - (clock.monotonic() - started)
                begun = clock.perf_counter()
                with time_limit(max(left, 0.0) + max(GRACE, seconds)), peak_memory() as memory:
                    standing.model = fit_setting(entrant, found.best, rows, self.setting)
                standing.fit_seconds = clock.perf_counter() - begun
                standing.memory_mib = memory["mib"]
            standing.status = "fitted"
        except NotApplicable as reason:
            standing.status, standing.error = "not applicable", str(reason)
        except OutOfTime:
            standing.status, standing.error = (
                "out of time",
                "its share of the time was over: give the contest more --time",
            )
        except Exception as error:  # an entrant that fails must not stop the others; the report shows its error
            standing.status, standing.error = "failed", _one_line(error)

    def blend(self, standings: list[Standing]) -> Standing | None:
        """The stacked blend of the fitted entrants that were judged on all folds."""
        members = {}
        for standing in standings:
            if standing.fitted and standing.found is not None and not standing.entrant.baseline:
                rows, predicted = standing.found.left_out()
                members[standing.name] = (standing, rows, predicted)
        most = max((rows.shape[0] for _, rows, _ in members.values()), default=0)
        members = {name: m for name, m in members.items() if m[1].shape[0] == most}
        if len(members) < 2:
            return None
        started = clock.perf_counter()
        rows = next(iter(members.values()))[1]
        y = self.y_train[rows]
        weights = blend_weights({name: m[2] for name, m in members.items()}, y, len(self.setting.classes))
        if len(weights.weights) < 2:
            label = members[next(iter(weights.weights))][0].entrant.label
            return Standing(BLEND, "not applicable", f"no average of the entrants is better than {label} alone")
        models = {name: members[name][0].model for name in weights.weights}
        chains = {name: model for name, model in models.items() if isinstance(model, Chain)}
        model = Blend(chains, weights.weights, weights.certificate)
        shown = {f"weight of {members[name][0].entrant.label}": weight for name, weight in weights.weights.items()}
        standing = Standing(BLEND, "fitted", model=model, hyperparameters=shown)
        standing.search_seconds = clock.perf_counter() - started
        standing.fit_seconds = sum(members[name][0].fit_seconds for name in weights.weights)
        memory = [members[name][0].memory_mib or 0.0 for name in weights.weights]
        standing.memory_mib = max(memory)
        standing.inner_score = self.judge.score(y, weights.predicted)
        standing.inner_folds = len(self.table.folds)
        return standing

    def score_all(self, standings: list[Standing]) -> Verdicts:
        """Every fitted entrant on the sealed rows, once."""
        fitted = [s for s in standings if s.fitted]
        for standing in fitted:
            try:
                standing.judgement = self.referee.judge(standing.name, standing.model, len(fitted))
                standing.status = "finished"
            except Exception as error:  # predictions that fail are the entrant's failure
                standing.status, standing.error = "failed", _one_line(error)
            self.watch.changed(standing)
        scores = {s.name: s.judgement.score.value for s in fitted if s.judgement is not None}
        if not scores:
            reasons = "; ".join(f"{s.entrant.label}: {s.error}" for s in standings if s.error)
            raise ValueError(
                f"No entrant finished ({reasons or 'stopped before the first'}). Give the contest more time."
            )
        return self.referee.compare(scores, {s.name: s.entrant.label for s in standings})


BLEND = Entrant(
    "blend",
    "Blend",
    "blend",
    "A weighted average of the other entrants, the weights chosen on rows their models had not seen.",
    lambda setting, data: [],
)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _costs(cost: Any) -> Costs | None:
    if cost is None or isinstance(cost, Costs):
        return cost
    if isinstance(cost, str):
        return parse_costs(cost)
    if isinstance(cost, Mapping):
        return parse_costs(",".join(f"{name}={value}" for name, value in cost.items()))
    raise ValueError(f"cost must look like 'fp=1,fn=5'; got {cost!r}.")
