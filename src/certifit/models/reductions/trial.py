"""The settings of a search on its folds, in turn, rung by rung, or along the path of a model."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.evaluation.resampling.fitting import Data, FittedPart, each, fitted_on
from certifit.evaluation.splits.choice import Curve, Fold
from certifit.models.reductions.warm import along_the_path, path_groups, walk_groups

if TYPE_CHECKING:
    from certifit.models.reductions.search import Search

__all__ = ["Trial"]

FEWEST = 10  # training rows of the first rung of halving, for each class


class Trial:
    """The settings of a search on its folds: errors by setting and fold, and how far each setting got."""

    def __init__(
        self, search: Search, data: Data, parts: list[Fold], order: Array, started: float, numbers: Any
    ) -> None:
        self.numbers = numbers
        self.search, self.data, self.parts, self.order, self.started = search, data, parts, order, started
        self.weights = np.array([float(data.weight[part.test].sum()) for part in parts])
        self.metric = search._judged()
        self.failures: list[str] = []
        self.first: Exception | None = None
        self.complete, self.fits = True, 0

    def run(self, settings: list[dict[str, Any]], bar: Any) -> None:
        """All settings in turn; by halving, rung by rung."""
        n, k = len(settings), len(self.parts)
        self.errors, self.seconds = np.full((n, k), np.nan), np.full((n, k), np.nan)
        self.rung, self.rows = np.full(n, -1), np.zeros(n, dtype=np.int64)
        rungs = self._rungs(n)
        alive, done, total = np.arange(n), 0, 0
        total = sum(max(1, math.ceil(n / self.search.factor**r)) for r in range(len(rungs)))
        for rung, share in enumerate(rungs):
            parts = [self._start(part, share) for part in self.parts]
            together = self._together(settings, alive)
            for number in alive:
                if self._late() and (rung or number != alive[0]):
                    self.complete = False
                    return
                if int(number) in together:
                    walk, group = together.pop(int(number))
                    walk(group, settings, parts, rung)
                elif self.rung[number] < rung:
                    self._try(int(number), settings[number], parts, rung)
                done += 1
                bar.update(done, total, float("nan"))
            mean = Curve.of(self.errors[alive], self.weights).mean
            best = np.argsort(np.where(np.isfinite(mean), mean, np.inf), kind="stable")
            alive = np.sort(alive[best[: max(1, math.ceil(alive.shape[0] / self.search.factor))]])

    def _rungs(self, n: int) -> list[float]:
        """Shares of the training rows, the last one all."""
        if self.search.strategy != "halving":
            return [1.0]
        rows = min(part.train.shape[0] for part in self.parts)
        classes = 1 if self.data.classes is None else self.data.classes.shape[0]
        most = max(math.log(rows / (FEWEST * classes), self.search.factor), 0.0)
        steps = min(math.ceil(math.log(n, self.search.factor)), math.floor(most)) if n > 1 else 0
        return [float(self.search.factor) ** (r - steps) for r in range(steps + 1)]

    def _late(self) -> bool:
        limit = self.search.time_limit
        return limit is not None and time.perf_counter() - self.started > limit

    def _start(self, part: Fold, share: float) -> Fold:
        """The first rows of the fair order, a share of each class by weight; all of them for a share of 1."""
        if share >= 1.0:
            return part
        taken = []
        y = self.data.y[part.train]
        for label in [None] if self.data.classes is None else self.data.classes:
            rows = part.train if label is None else part.train[y == label]
            rows = rows[np.argsort(self.order[rows], kind="stable")]
            mass = np.cumsum(self.data.weight[rows])
            taken.append(rows[mass - self.data.weight[rows] < share * mass[-1]] if rows.size else rows)
        return Fold(np.sort(np.concatenate(taken)), part.test)

    def _together(self, settings: list[dict[str, Any]], alive: Array) -> dict[int, tuple[Any, list[int]]]:
        """By the number of its first setting, each group that one walk serves, and how it is walked."""
        if self.search.time_limit is not None:
            return {}  # a limit is looked at between settings, and a walk has no between
        inner, chosen = self.search._inner(), [settings[k] for k in alive]
        told = self.data.classes is not None or self.metric.needs == "value"
        walks = [
            (self._walk, group) for group in (path_groups(inner, chosen) if told and self.numbers is not None else [])
        ]
        walks += [(self._climb, group) for group in walk_groups(inner, chosen)]
        return {int(alive[min(group)]): (walk, [int(alive[k]) for k in group]) for walk, group in walks}

    def _climb(self, group: list[int], settings: list[dict[str, Any]], parts: list[Fold], rung: int) -> None:
        """All settings of a group on each part, every fit from where the one before it ended."""
        data, needs = self.data, [self.metric.needs]

        def climbed(part: Fold) -> list[FittedPart]:
            model = clone(self.search._inner()).set_params(warm_start=True)
            return [fitted_on(part, model.set_params(**settings[k]), data, needs, anew=False) for k in group]

        for number, *fits in zip(group, *each(climbed, parts, self.search.n_jobs), strict=True):
            self._note(number, settings[number], fits, rung)

    def _walk(self, group: list[int], settings: list[dict[str, Any]], parts: list[Fold], rung: int) -> None:
        """All settings of a group from one path a part; where a path fails, each is fitted by itself and tells why."""
        model = clone(self.search._inner()).set_params(**settings[group[0]])
        alphas = np.array([settings[k]["alpha"] for k in group], dtype=np.float64)
        data, numbers, need = self.data, self.numbers, self.metric.needs

        def walked(part: Fold) -> tuple[list[Array], float]:
            begun = time.perf_counter()
            weight = data.weight[part.train] if data.given else None
            held = numbers[part.test]
            rows = numbers[part.train], data.y[part.train], weight
            said = along_the_path(model, alphas, *rows, held, need, data.classes)
            return said, (time.perf_counter() - begun) / len(group)

        try:
            found = each(walked, parts, self.search.n_jobs)
        except Exception:  # whatever it is, a fit of its own says it better
            for number in group:
                self._try(number, settings[number], parts, rung)
            return
        for at, number in enumerate(group):
            fits = [FittedPart(part, {need: said[at]}, spent) for part, (said, spent) in zip(parts, found, strict=True)]
            self._note(number, settings[number], fits, rung)

    def _try(self, number: int, setting: dict[str, Any], parts: list[Fold], rung: int) -> None:
        """Fit one setting on all parts; a part that fails takes its setting out of the race."""
        metric, data = self.metric, self.data
        model = clone(self.search._inner()).set_params(**setting)
        fits = each(lambda part: fitted_on(part, model, data, [metric.needs]), parts, self.search.n_jobs)
        self._note(number, setting, fits, rung)

    def _note(self, number: int, setting: dict[str, Any], fits: Sequence[FittedPart], rung: int) -> None:
        """The errors of a setting; one that is no number takes it out of the race."""
        self.rung[number], self.rows[number] = rung, max(fit.part.train.shape[0] for fit in fits)
        for k, fit in enumerate(fits):
            self.fits += 1
            self.seconds[number, k], self.errors[number, k] = fit.seconds, np.nan
            try:
                self.errors[number, k] = self._error(fit)
            except Exception as error:  # of the learner or of the metric: told, and the setting is out
                self.first = self.first or error
                self.failures.append(f"{setting}, fold {k + 1}: {type(error).__name__}: {error}")

    def _error(self, fit: FittedPart) -> float:
        if fit.error is not None:
            raise fit.error
        metric, rows = self.metric, fit.part.test
        value = metric(
            self.data.y[rows],
            fit.predictions[metric.needs],
            sample_weight=self.data.weight[rows],
            classes=self.data.classes,
        )
        if not np.isfinite(value):
            raise ValueError(f"{metric.label} is {value}.")
        return value if metric.lower_is_better else -value

    def results(self, settings: list[dict[str, Any]], curve: Curve) -> dict[str, Any]:
        """scikit-learn's `cv_results_`; settings that were not tried have no scores."""
        score = -curve.mean
        # A setting that got further is ahead, whatever it scored on fewer rows.
        standing = np.lexsort((np.where(np.isfinite(curve.mean), curve.mean, np.inf), -self.rung))
        rank = np.empty(len(settings), dtype=np.int32)
        rank[standing] = np.arange(1, len(settings) + 1)
        for before, after in itertools.pairwise(standing):
            if curve.mean[before] == curve.mean[after] and self.rung[before] == self.rung[after]:
                rank[after] = rank[before]
        with np.errstate(invalid="ignore"):
            found: dict[str, Any] = {
                "mean_fit_time": self.seconds.mean(axis=1),
                "std_fit_time": self.seconds.std(axis=1),
                "n_resources": self.rows,
                "iter": self.rung,
                "mean_test_score": score,
                "std_test_score": self.errors.std(axis=1),
                "rank_test_score": rank,
            }
        for k in range(len(self.parts)):
            found[f"split{k}_test_score"] = -self.errors[:, k]
        for name in sorted({name for setting in settings for name in setting}):
            column = np.empty(len(settings), dtype=object)
            column[:] = [setting.get(name) for setting in settings]
            found[f"param_{name}"] = column
        return {**found, "params": settings}
