"""The record of a contest: everything the report shows and `run.json` keeps, as plain data."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from certifit.contest.costs import as_plain
from certifit.contest.entrants import Conditions
from certifit.contest.plain import plain
from certifit.contest.record import RUN_FORMAT
from certifit.contest.record.model import Blend
from certifit.contest.record.summary import summarize
from certifit.contest.standing import Standing
from certifit.contest.table.table import Table
from certifit.contest.verdict.examination import Examination
from certifit.contest.verdict.referee import Ranking
from certifit.contest.verdict.scoring import Scoring
from certifit.evaluation.splits.sealed import SealedSplit

if TYPE_CHECKING:
    from certifit.contest.contest import Options

__all__ = ["leaderboard_rows", "write_record"]

MOST_BAD_ROWS = 20
MOST_SEARCHED = 40


def write_record(
    *,
    table: Table,
    split: SealedSplit,
    options: Options,
    conditions: Conditions,
    scoring: Scoring,
    folds: int,
    standings: list[Standing],
    ranking: Ranking,
    examination: Examination,
    shipped: dict[str, Any],
    promise: dict[str, Any] | None,
    warnings: list[dict[str, Any]],
    interrupted: bool,
    seconds: float,
) -> dict[str, Any]:
    """The record of one contest."""
    by_name = {s.name: s for s in standings}
    order = [by_name[name] for name in ranking.order]
    order += [s for s in standings if s.verdict is None]
    record: dict[str, Any] = {
        "format": RUN_FORMAT,
        "certifit": version("certifit"),
        "created": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "seconds": seconds,
        "seed": conditions.seed,
        "jobs": conditions.jobs,
        "interrupted": interrupted,
        "options": _options(options, folds),
        "environment": environment(),
        "task": _task(table, scoring, conditions),
        "data": _data(table, split, options, warnings),
        "entrants": [_entrant(s, order, ranking, scoring, examination) for s in order],
        "leaderboard": _leaderboard(ranking),
        "finalists": examination.pages,
        "ledger": examination.ledger,
        "left_out": examination.left_out,
        "shipped": shipped,
        "promise": promise,
    }
    if any(warning["code"] == "heavy tail" for warning in warnings):
        record["entrants"][0]["score"]["trusted"] = False
    record["summary"] = summarize(record)
    found: dict[str, Any] = plain(record)
    return found


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


def _options(o: Options, folds: int) -> dict[str, Any]:
    return {
        "time": o.time,
        "task": o.task,
        "metric": o.metric,
        "entrants": None if o.entrants is None else list(o.entrants),
        "drop": list(o.drop),
        "types": dict(o.types or {}),
        "group": o.group,
        "time_column": o.time_column,
        "cost": as_plain(o.cost),
        "test_size": o.test_size,
        "refit": o.refit,
        "folds": folds,
    }


def _task(table: Table, scoring: Scoring, conditions: Conditions) -> dict[str, Any]:
    task, metric = table.task, scoring.metric
    return {
        "kind": task.kind,
        "target": table.target,
        "classes": list(conditions.classes) or None,
        "positive": task.positive,
        "why": task.why,
        "threshold": scoring.threshold,
        "metric": {
            "name": metric.name,
            "label": metric.label,
            "lower_is_better": metric.lower_is_better,
            "format": metric.format,
        },
    }


def _data(table: Table, split: SealedSplit, options: Options, warnings: list[dict[str, Any]]) -> dict[str, Any]:
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
            "column": options.group or options.time_column,
            "text": split.text,
        },
        "warnings": [*table.warnings, *warnings],
        "columns_info": table.describe(),
    }


def _entrant(
    standing: Standing, order: list[Standing], ranking: Ranking, scoring: Scoring, examination: Examination
) -> dict[str, Any]:
    verdict = standing.verdict
    trials = [] if standing.found is None else standing.found.trials
    trials = sorted(trials, key=lambda t: (-t.folds, scoring.cost(t.score)))[:MOST_SEARCHED]
    score = (
        None
        if verdict is None
        else {"value": verdict.score.value, "low": verdict.score.low, "high": verdict.score.high}
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
        "readable": standing.entrant.readable,
        "finalist": standing.name in examination.pages,
        "rank": ranking.order.index(standing.name) + 1 if verdict is not None else None,
        "estimator": _described(standing),
        "hyperparameters": dict(standing.setting or {}),
        "searched": [
            {"hyperparameters": dict(t.setting), "score": t.score, "se": t.standard_error, "folds": t.folds}
            for t in trials
        ],
        "inner": inner if standing.inner_score is not None else None,
        "search_seconds": standing.search_seconds,
        "fit_seconds": standing.fit_seconds,
        "predict_seconds": None if verdict is None else verdict.seconds,
        "predict_rows": None if verdict is None else int(verdict.predicted.shape[0]),
        "memory_mib": standing.memory_mib,
        "certificate": _certificate(standing),
        "score": score,
        "metrics": {} if verdict is None else verdict.metrics,
        "skill": _skill(standing, order, scoring),
        "verdict": _verdict(standing, order, ranking),
        "against_best": _against_best(standing, ranking),
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


def _skill(standing: Standing, order: list[Standing], scoring: Scoring) -> float | None:
    """Share of the baseline's distance from perfection that is gone; None for metrics without a perfect value of 0 or 1."""
    floor = next((s.verdict.score.value for s in order if s.entrant.baseline and s.verdict is not None), None)
    if standing.verdict is None or floor is None:
        return None
    value = standing.verdict.score.value
    perfect = 0.0 if scoring.metric.lower_is_better else 1.0
    return (value - floor) / (perfect - floor) if floor != perfect else None


def _verdict(standing: Standing, order: list[Standing], ranking: Ranking) -> str | None:
    if standing.verdict is None:
        return None
    if standing.name == ranking.order[0]:
        return "best"
    if standing.name in ranking.tied:
        return "tied with the best"
    floor = next((s.name for s in order if s.entrant.baseline and s.verdict is not None), None)
    if ranking.comparison is not None and floor is not None and standing.name != floor:
        behind = ranking.order.index(standing.name) > ranking.order.index(floor)
        if behind or not ranking.comparison.pair(standing.name, floor).distinguishable:
            return "no better than the baseline"
    return "worse than the best"


def _pair(pair: Any) -> dict[str, Any]:
    names = ("difference", "low", "high", "p", "p_adjusted", "distinguishable")
    return {name: getattr(pair, name) for name in names}


def _against_best(standing: Standing, ranking: Ranking) -> dict[str, Any] | None:
    if ranking.comparison is None or standing.verdict is None or standing.name == ranking.order[0]:
        return None
    return _pair(ranking.comparison.pair(standing.name, ranking.order[0]))


def _leaderboard(ranking: Ranking) -> dict[str, Any]:
    comparison = ranking.comparison
    pairs = [] if comparison is None else [{"a": p.a, "b": p.b, **_pair(p)} for p in comparison.pairs]
    return {"text": ranking.text, "tied": list(ranking.tied), "correction": "Holm", "level": 0.95, "pairs": pairs}
