"""The outcome of a contest: the record that the report shows and `run.json` keeps, and the fitted models."""

from __future__ import annotations

import datetime
import math
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certifit.contest.record import RUN_FORMAT
from certifit.contest.record.model import Blend, TableModel
from certifit.contest.record.outputs import write_outputs
from certifit.contest.record.summary import summarize
from certifit.contest.search.limits import Budget
from certifit.contest.verdict.finalists import choose_finalists, diagnose
from certifit.contest.verdict.judging import Judge
from certifit.contest.verdict.reckoning import winner_ledger
from certifit.contest.verdict.referee import Verdicts
from certifit.contest.verdict.standing import Standing, Watcher

if TYPE_CHECKING:
    import polars as pl

    from certifit.contest.contest import Contest, _Run

__all__ = ["Result"]

MOST_BAD_ROWS = 20
MOST_SEARCHED = 40


class Result:
    """What a contest found.

    Attributes
    ----------
    record : dict
        Everything the report shows, as plain data; what `run.json` holds.
    models : dict of str to TableModel
        The fitted models by entrant.
    """

    def __init__(self, record: dict[str, Any], models: dict[str, TableModel]) -> None:
        self.record = record
        self.models = models

    @classmethod
    def of(
        cls,
        contest: Contest,
        run: _Run,
        standings: list[Standing],
        verdicts: Verdicts,
        warnings: list[dict[str, Any]],
        interrupted: bool,
        budget: Budget,
        watch: Watcher,
    ) -> Result:
        """Look at the finalists and write the record."""
        finalists = choose_finalists(standings, verdicts.order, verdicts.tied)
        by_name = {s.name: s for s in standings}
        left = Budget(max(2.0, contest.options.time - budget.spent))
        pages: dict[str, Any] = {}
        ledger = None
        try:
            for name in finalists:
                watch.phase(f"looking at {by_name[name].entrant.label}")
                pages[name] = diagnose(run, by_name[name], left, deep=name == finalists[0])
            ledger = winner_ledger(run, by_name, verdicts.order, left)
        except KeyboardInterrupt:
            interrupted = True
        for name in finalists:
            pages.setdefault(name, {})
        models = {
            s.name: TableModel(
                contest.table.schema, s.model, s.name, s.entrant.label, contest.classes, contest.judge.threshold
            )
            for s in standings
            if s.judgement is not None and s.model is not None
        }
        order = [by_name[name] for name in verdicts.order]
        order += [s for s in standings if s.judgement is None]
        record: dict[str, Any] = {
            "format": RUN_FORMAT,
            "certifit": version("certifit"),
            "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "seconds": budget.spent,
            "seed": contest.options.seed,
            "jobs": run.setting.jobs,
            "interrupted": interrupted,
            "options": _options(contest, run),
            "environment": environment(),
            "task": _task(contest),
            "data": _data(contest, run, warnings),
            "entrants": [_entrant(s, order, verdicts, contest.judge, finalists) for s in order],
            "leaderboard": _leaderboard(verdicts),
            "finalists": pages,
            "ledger": ledger,
        }
        record["summary"] = summarize(record)
        return cls(plain(record), models)

    @property
    def winner(self) -> TableModel:
        """The best model."""
        return self.models[self.record["entrants"][0]["name"]]

    def score(self, name: str) -> float:
        """Score of an entrant on the sealed rows."""
        for entrant in self.record["entrants"]:
            if entrant["name"] == name and entrant["score"] is not None:
                return float(entrant["score"]["value"])
        known = ", ".join(e["name"] for e in self.record["entrants"] if e["score"] is not None)
        raise ValueError(f"{name!r} has no score; {known} have one.")

    @property
    def leaderboard(self) -> pl.DataFrame:
        """One row per entrant."""
        import polars as pl

        return pl.DataFrame(leaderboard_rows(self.record), infer_schema_length=None)

    def save(self, folder: str | os.PathLike[str]) -> dict[str, Path]:
        """Write report.html, leaderboard.csv, model.cfit and run.json into a folder; nothing is left half-written.

        Returns
        -------
        dict of str to Path
            What was written.
        """
        return write_outputs(self, Path(folder))

    def __str__(self) -> str:
        return "\n".join(self.record["summary"])


def leaderboard_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The leaderboard as flat rows, for CSV and frames."""
    rows = []
    for e in record["entrants"]:
        score = e["score"] or {}
        certificate = e["certificate"] or {}
        rows.append(
            {
                "rank": e["rank"],
                "entrant": e["name"],
                "label": e["label"],
                "status": e["status"],
                record["task"]["metric"]["name"]: score.get("value"),
                "low": score.get("low"),
                "high": score.get("high"),
                "verdict": e["verdict"],
                "inner_score": (e["inner"] or {}).get("score"),
                "search_seconds": e["search_seconds"],
                "fit_seconds": e["fit_seconds"],
                "predict_seconds": e["predict_seconds"],
                "memory_mib": e["memory_mib"],
                "certificate": certificate.get("verdict"),
                "relative_gap": certificate.get("relative_gap"),
                "error": e["error"],
            }
        )
    return rows


def environment() -> dict[str, Any]:
    """Versions that a repetition should have."""
    packages = {name: version(name) for name in ("numpy", "scipy", "polars")}
    return {
        "python": platform.python_version(),
        **packages,
        "platform": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def plain(value: Any) -> Any:
    """Plain JSON data: NumPy numbers become numbers, NaN and infinities None."""
    if isinstance(value, Mapping):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    return str(value)


def _options(contest: Contest, run: _Run) -> dict[str, Any]:
    o = contest.options
    cost = None if o.cost is None else {"fp": o.cost.fp, "fn": o.cost.fn}
    return {
        "time": o.time,
        "task": o.task,
        "metric": o.metric,
        "entrants": None if o.entrants is None else list(o.entrants),
        "drop": list(o.drop),
        "types": dict(o.types or {}),
        "group": o.group,
        "time_column": o.time_column,
        "cost": cost,
        "test_size": o.test_size,
        "folds": len(run.table.folds),
    }


def _task(contest: Contest) -> dict[str, Any]:
    task, metric = contest.table.task, contest.judge.metric
    return {
        "kind": task.kind,
        "target": contest.table.target,
        "classes": list(contest.classes) or None,
        "positive": task.positive,
        "why": task.why,
        "metric": {
            "name": metric.name,
            "label": metric.label,
            "lower_is_better": metric.lower_is_better,
            "format": metric.format,
        },
    }


def _data(contest: Contest, run: _Run, warnings: list[dict[str, Any]]) -> dict[str, Any]:
    table, split = contest.table, run.split
    first = [{"line": line, "why": why} for line, why in table.bad_rows[:MOST_BAD_ROWS]]
    return {
        "source": table.source,
        "rows": table.frame.height,
        "columns": len(table.columns),
        "train_rows": int(split.train.shape[0]),
        "test_rows": int(split.test.shape[0]),
        "bad_rows": {"count": len(table.bad_rows), "first": first},
        "duplicates": {"rows": table.duplicates, "across_split": split.moved},
        "split": {
            "kind": split.kind,
            "column": contest.options.group or contest.options.time_column,
            "text": split.text,
        },
        "warnings": [*table.warnings, *warnings],
        "columns_info": table.describe(),
    }


def _entrant(
    standing: Standing, order: list[Standing], verdicts: Verdicts, judge: Judge, finalists: list[str]
) -> dict[str, Any]:
    judged = standing.judgement
    trials = [] if standing.found is None else standing.found.trials
    trials = sorted(trials, key=lambda t: (-t.folds, judge.cost(t.score)))[:MOST_SEARCHED]
    score = (
        None if judged is None else {"value": judged.score.value, "low": judged.score.low, "high": judged.score.high}
    )
    inner = {"score": standing.inner_score, "se": standing.inner_error, "folds": standing.inner_folds}
    return {
        "name": standing.name,
        "label": standing.entrant.label,
        "family": standing.entrant.family,
        "description": standing.entrant.description,
        "status": standing.status,
        "error": standing.error,
        "baseline": standing.entrant.baseline,
        "finalist": standing.name in finalists,
        "rank": verdicts.order.index(standing.name) + 1 if judged is not None else None,
        "estimator": _described(standing),
        "hyperparameters": dict(standing.hyperparameters or {}),
        "searched": [
            {"hyperparameters": dict(t.hyperparameters), "score": t.score, "se": t.standard_error, "folds": t.folds}
            for t in trials
        ],
        "inner": inner if standing.inner_score is not None else None,
        "search_seconds": standing.search_seconds,
        "fit_seconds": standing.fit_seconds,
        "predict_seconds": None if judged is None else judged.seconds,
        "predict_rows": None if judged is None else int(judged.predicted.shape[0]),
        "memory_mib": standing.memory_mib,
        "certificate": _certificate(standing),
        "score": score,
        "metrics": {} if judged is None else judged.metrics,
        "skill": _skill(standing, order, judge),
        "verdict": _verdict(standing, order, verdicts),
        "against_best": _against_best(standing, verdicts),
    }


def _described(standing: Standing) -> str | None:
    model = standing.model
    if model is None:
        return None
    if isinstance(model, Blend):
        return " + ".join(f"{weight:.2f} × {name}" for name, weight in model.weights.items())
    return " ".join(repr(model.estimator).split())


def _certificate(standing: Standing) -> dict[str, Any] | None:
    certificate = None if standing.model is None else standing.model.certificate
    if certificate is None:
        return None
    if certificate.kind == "none":
        verdict = "no bound possible"
    else:
        verdict = "certified" if certificate.certified else "not certified"
    return {**certificate.as_dict(), "sentence": str(certificate), "verdict": verdict}


def _skill(standing: Standing, order: list[Standing], judge: Judge) -> float | None:
    """Share of the baseline's distance from perfection that is gone; None for metrics without a perfect value of 0 or 1."""
    floor = next((s.judgement.score.value for s in order if s.entrant.baseline and s.judgement is not None), None)
    if standing.judgement is None or floor is None:
        return None
    value = standing.judgement.score.value
    perfect = 0.0 if judge.metric.lower_is_better else 1.0
    return (value - floor) / (perfect - floor) if floor != perfect else None


def _verdict(standing: Standing, order: list[Standing], verdicts: Verdicts) -> str | None:
    if standing.judgement is None:
        return None
    if standing.name == verdicts.order[0]:
        return "best"
    if standing.name in verdicts.tied:
        return "tied with the best"
    floor = next((s.name for s in order if s.entrant.baseline and s.judgement is not None), None)
    if verdicts.comparison is not None and floor is not None and standing.name != floor:
        behind = verdicts.order.index(standing.name) > verdicts.order.index(floor)
        if behind or not verdicts.comparison.pair(standing.name, floor).distinguishable:
            return "no better than the baseline"
    return "worse than the best"


def _pair(pair: Any) -> dict[str, Any]:
    names = ("difference", "low", "high", "p", "p_adjusted", "distinguishable")
    return {name: getattr(pair, name) for name in names}


def _against_best(standing: Standing, verdicts: Verdicts) -> dict[str, Any] | None:
    if verdicts.comparison is None or standing.judgement is None or standing.name == verdicts.order[0]:
        return None
    return _pair(verdicts.comparison.pair(standing.name, verdicts.order[0]))


def _leaderboard(verdicts: Verdicts) -> dict[str, Any]:
    comparison = verdicts.comparison
    pairs = [] if comparison is None else [{"a": p.a, "b": p.b, **_pair(p)} for p in comparison.pairs]
    return {"text": verdicts.text, "tied": list(verdicts.tied), "correction": "Holm", "level": 0.95, "pairs": pairs}
