"""The parts of a run as the contest writes them: entrants, a table, a task."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.contest.report.simulation import (
    Array,
    describe_column,
    interval,
    pair,
)

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">&'\u2028\u202e{{ 7*7 }}"
LABELS = {
    "boosting": ("Gradient boosting", "trees", "Many small trees, each correcting the ones before."),
    "blend": ("Stacked blend", "blend", "A weighted mean of the best entrants."),
    "forest": ("Random forest", "trees", "The mean of many trees grown on resampled rows."),
    "logistic": ("Logistic regression", "linear", "A weighted sum of the columns, turned into a probability."),
    "ridge": ("Ridge regression", "linear", "A weighted sum of the columns with small weights."),
    "tree": ("Pruned tree", "trees", "One tree of yes/no questions, cut back by cross-validation."),
    "baseline": ("Trivial baseline", "baseline", "Always the same answer, whatever the row."),
}


def _certificate(name: str) -> dict[str, Any]:
    if name in ("logistic", "ridge", "tree", "baseline"):
        closed = name != "logistic"
        gap = 0.0 if closed else 3.1e-8
        return {
            "kind": "closed form" if closed else "duality gap",
            "objective": 0.4171,
            "bound": 0.4171 - gap,
            "gap": gap,
            "relative_gap": gap / 0.53,
            "certified": True,
            "iterations": 0 if closed else 9,
            "seconds": 0.04,
            "note": "",
            "sentence": "Certified: the optimum, in closed form; 0.04 s"
            if closed
            else "Certified: within 5.8e-08 of the optimum, relative; 9 iterations, 0.04 s",
            "verdict": "certified",
            "claim": "best tree of depth 3 over at most 30 thresholds of a column" if name == "tree" else "",
        }
    return {
        "kind": "none",
        "objective": 0.331,
        "bound": None,
        "gap": None,
        "relative_gap": None,
        "certified": False,
        "iterations": 140,
        "seconds": 1.3,
        "note": "Greedy trees have no known bound.",
        "sentence": "Not certified: no bound is known for boosted trees; 140 iterations, 1.3 s",
        "verdict": "no bound possible",
    }


SETTINGS: dict[str, dict[str, Any]] = {
    "boosting": {"learning_rate": 0.05, "max_leaf_nodes": 15, "rounds": 140, "subsample": 0.8},
    "blend": {"members": ["boosting", "forest", "logistic"]},
    "forest": {"trees": 200, "max_features": "sqrt", "min_leaf": 5},
    "logistic": {"alpha": 0.00082, "l1_ratio": 0.5},
    "ridge": {"alpha": 0.0031},
    "tree": {"alpha": 0.0021, "leaves": 11},
    "baseline": {},
}


def _entrant(
    name: str, rank: int, losses: dict[str, Array], best: str, metrics: dict[str, Any], finalist: bool
) -> dict[str, Any]:
    label, family, description = LABELS[name]
    pairs = len(losses) * (len(losses) - 1) // 2
    against = None if name == best else pair(losses[name], losses[best], pairs)
    floor = float(losses["baseline"].mean())
    verdict = (
        "best"
        if name == best
        else "worse than the best"
        if against and against["distinguishable"]
        else "tied with the best"
    )
    if verdict.startswith("worse") and not pair(losses[name], losses["baseline"], pairs)["distinguishable"]:
        verdict = "no better than the baseline"
    inner = float(losses[name].mean()) + 0.004
    search = [
        {"hyperparameters": {**SETTINGS[name], "trial": k}, "score": inner + 0.002 * k, "se": 0.004} for k in range(9)
    ]
    return {
        "name": name,
        "label": label,
        "family": family,
        "status": "finished",
        "error": None,
        "baseline": name == "baseline",
        "finalist": finalist,
        "rank": rank,
        "description": description,
        "estimator": f"{label.title().replace(' ', '')}({', '.join(f'{k}={v!r}' for k, v in SETTINGS[name].items())})",
        "hyperparameters": SETTINGS[name],
        "searched": search if SETTINGS[name] else [],
        "inner": {"score": inner, "se": 0.004, "folds": 5},
        "search_seconds": 5.2,
        "fit_seconds": {"boosting": 1.31, "blend": 3.4, "forest": 2.2}.get(name, 0.043),
        "predict_seconds": {"boosting": 0.011, "forest": 0.09, "blend": 0.12}.get(name, 0.0004),
        "predict_rows": int(losses[name].size),
        "memory_mib": {"boosting": 31.0, "forest": 118.0, "blend": 164.0}.get(name, 4.2),
        "certificate": _certificate(name),
        "score": interval(losses[name]),
        "metrics": metrics,
        "skill": 1 - float(losses[name].mean()) / floor,
        "verdict": verdict,
        "against_best": against,
    }


def run_of(
    task: dict[str, Any],
    losses: dict[str, Array],
    metrics: dict[str, Any],
    finalists: dict[str, Any],
    data: dict[str, Any],
) -> dict[str, Any]:
    order = sorted(losses, key=lambda name: losses[name].mean())
    entrants = [_entrant(n, k + 1, losses, order[0], metrics[n], n in finalists) for k, n in enumerate(order)]
    tied = [e["name"] for e in entrants if e["verdict"] in ("best", "tied with the best")]
    pairs = len(order) * (len(order) - 1) // 2
    table = [{"a": a, "b": b, **pair(losses[a], losses[b], pairs)} for i, a in enumerate(order) for b in order[i + 1 :]]
    best = LABELS[order[0]][0]
    value = entrants[0]["score"]
    metric = task["metric"]["label"]
    return {
        "format": 1,
        "certifit": "0.1.0",
        "created": "2026-11-15T10:00:00Z",
        "seconds": 41.2,
        "seed": 0,
        "jobs": 2,
        "interrupted": False,
        "options": {
            "time": 60,
            "metric": None,
            "entrants": None,
            "drop": ["row"],
            "types": {"region": "category"},
            "group": None,
            "time_column": None,
            "cost": {"fp": 1, "fn": 5} if task["kind"] == "binary" else None,
            "test_size": 0.2,
            "folds": 5,
        },
        "environment": {
            "python": "3.11.2",
            "numpy": "2.3.1",
            "scipy": "1.16.0",
            "platform": "Linux x86_64",
            "cores": 2,
        },
        "task": task,
        "summary": [
            f"{best} predicts “{task['target']}” best, with a {metric} of {value['value']:.3f} on rows it had not seen.",
            f"With other rows of the same kind it would most likely lie between {value['low']:.3f} and {value['high']:.3f}.",
            f"That is {entrants[0]['skill']:.0%} less than always giving the same answer would cost.",
            "The simplest model that comes close is the linear one, and its fit is proven to be the best of its kind.",
            "One column was left out because it numbers the rows; nothing else looked suspicious.",
        ],
        "data": data,
        "entrants": entrants,
        "leaderboard": {
            "text": f"The first {len(tied)} cannot be told apart."
            if len(tied) > 1
            else f"{best} is better than all others.",
            "tied": tied,
            "correction": "Holm",
            "level": 0.95,
            "pairs": table,
        },
        "finalists": finalists,
        "ledger": {
            "model": best,
            "metric": metric,
            "rows": [
                {
                    "part": "optimization",
                    "value": None,
                    "low": None,
                    "high": None,
                    "text": "No bound is known for this model.",
                },
                {
                    "part": "estimation",
                    "value": 0.021,
                    "low": 0.006,
                    "high": 0.036,
                    "text": "Loss on sealed rows minus loss on training rows: what was learnt by heart.",
                },
                {
                    "part": "approximation",
                    "value": 0.003,
                    "low": 0.0,
                    "high": 0.009,
                    "text": "What a richer model of the contest gains on the training rows.",
                },
                {
                    "part": "noise (Bayes)",
                    "value": 0.11,
                    "low": 0.082,
                    "high": 0.131,
                    "text": "At least this much nobody can predict from these columns, by nearest neighbours.",
                },
            ],
        },
        "files": {"report": "report.html", "leaderboard": "leaderboard.csv", "model": "model.cfit", "run": "run.json"},
    }


def columns_of(rng: Any, n: int) -> dict[str, Array]:
    return {
        "income": np.round(rng.lognormal(10.4, 0.5, n), 0),
        "age": np.round(rng.uniform(18, 80, n)),
        "balance": np.round(rng.gamma(2.0, 420.0, n), 2),
        "region": rng.choice(np.array(["coast", "hills", "plain", "town"]), n, p=[0.2, 0.1, 0.3, 0.4]),
        "opened": rng.integers(14000, 20000, n),
    }


KINDS = {"income": "numeric", "age": "numeric", "balance": "numeric", "region": "category", "opened": "date"}


def data_of(X: dict[str, Array], target: dict[str, Any], n: int, sealed: int, text: str) -> dict[str, Any]:
    return {
        "source": "loans.csv",
        "rows": n,
        "columns": 9,
        "train_rows": n - sealed,
        "test_rows": sealed,
        "bad_rows": {
            "count": 3,
            "first": [
                {"line": 17, "why": "12 fields where 11 were expected"},
                {"line": 90, "why": "a quote is never closed"},
            ],
        },
        "duplicates": {"rows": 12, "across_split": 3},
        "split": {"kind": "stratified", "column": None, "text": text},
        "warnings": [
            {
                "kind": "leakage",
                "column": "balance",
                "text": "alone ranks the target almost perfectly (area 0.992): is it known before the answer is?",
            },
            {
                "kind": "missing",
                "column": "income",
                "text": "7 % of its values are missing, and the missing ones go with another rate of the target.",
            },
            {"kind": "dropped", "column": "row", "text": "numbers the rows, and says nothing about new ones."},
        ],
        "columns_info": [
            *(
                describe_column(name, column, KINDS[name], missing=560 if name == "income" else 0)
                for name, column in X.items()
            ),
            describe_column("row", np.arange(n), "id", "dropped", why="a different whole number in every row")
            | {"top": None},
            describe_column("currency", np.full(n, "EUR"), "constant", "dropped", why="one value only"),
            describe_column("dependents", np.arange(n) % 5, "numeric", why="whole numbers that count"),
            target,
        ],
    }


LOG_LOSS = {"name": "log_loss", "label": "log loss", "lower_is_better": True, "format": ".4f"}
MAE = {"name": "mae", "label": "mean absolute error", "lower_is_better": True, "format": ".0f"}


def task_of(
    kind: str, target: str, classes: list[str] | None, metric: dict[str, Any], why: str, positive: str | None = None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "target": target,
        "classes": classes,
        "positive": positive,
        "metric": metric,
        "why": why,
    }
