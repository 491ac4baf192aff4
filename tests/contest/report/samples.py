"""Runs as the contest writes them, with numbers computed from simulated tables: every figure has something true to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.contest.report.simulation import (
    Array,
    Predict,
    binary_diagnostics,
    calibration,
    dependence,
    describe_column,
    importance,
    interval,
    learning,
    pair,
    sigmoid,
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


def _run(
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


def _table(rng: Any, n: int) -> dict[str, Array]:
    return {
        "income": np.round(rng.lognormal(10.4, 0.5, n), 0),
        "age": np.round(rng.uniform(18, 80, n)),
        "balance": np.round(rng.gamma(2.0, 420.0, n), 2),
        "region": rng.choice(np.array(["coast", "hills", "plain", "town"]), n, p=[0.2, 0.1, 0.3, 0.4]),
        "opened": rng.integers(14000, 20000, n),
    }


KINDS = {"income": "numeric", "age": "numeric", "balance": "numeric", "region": "category", "opened": "date"}


def _data(X: dict[str, Array], target: dict[str, Any], n: int, sealed: int, text: str) -> dict[str, Any]:
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


def _task(
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


def binary(seed: int = 0, n: int = 10_000, sealed: int = 2_000) -> dict[str, Any]:
    """Who defaults on a loan: boosting and the blend tie, a tree and the linear model follow."""
    rng = np.random.default_rng(seed)
    X = _table(rng, n)
    bump = {"coast": 0.4, "hills": -0.2, "plain": 0.0, "town": 0.2}

    def truth(c: dict[str, Array]) -> Array:
        region = np.array([bump[str(r)] for r in c["region"]])
        wave = 1.1 * np.cos((c["age"] - 20) / 14)
        return -2.3 + 0.0021 * c["balance"] - 0.9 * (np.log(c["income"]) - 10.4) + wave + region

    y = (rng.uniform(size=n) < sigmoid(truth(X))).astype(int)
    held = slice(n - sealed, n)
    X_test, y_test = {name: column[held] for name, column in X.items()}, y[held]
    rate = y[: n - sealed].mean()
    models: dict[str, Predict] = {
        "boosting": lambda c: sigmoid(truth(c) + 0.22 * np.sin(c["income"] / 900)),
        "blend": lambda c: sigmoid(0.95 * truth(c) - 0.06 + 0.2 * np.sin(c["income"] / 700)),
        "forest": lambda c: sigmoid(0.72 * truth(c) - 0.42 + 0.35 * np.sin(c["balance"] / 60)),
        "logistic": lambda c: sigmoid(-2.4 + 0.0021 * c["balance"] - 0.9 * (np.log(c["income"]) - 10.4)),
        "tree": lambda c: sigmoid(-2.2 + 1.9 * (c["balance"] > 1100) + 0.8 * (c["age"] < 40)),
        "baseline": lambda c: np.full(c["age"].size, rate),
    }
    given = {name: np.clip(model(X_test), 1e-9, 1 - 1e-9) for name, model in models.items()}

    def log_loss(p: Array) -> Array:
        return -np.where(y_test == 1, np.log(np.clip(p, 1e-9, 1)), np.log(np.clip(1 - p, 1e-9, 1)))

    losses = {name: log_loss(p) for name, p in given.items()}
    metrics = {}
    for name, p in given.items():
        right, brier = interval(1.0 * ((p >= 0.5) == y_test)), interval((p - y_test) ** 2)
        metrics[name] = {
            "log_loss": {"label": "log loss", **interval(losses[name]), "lower_is_better": True},
            "accuracy": {"label": "accuracy", **right, "lower_is_better": False},
            "brier": {"label": "Brier score", **brier, "lower_is_better": True},
        }
    finalists = {}
    for name in ("boosting", "blend", "logistic"):
        label = "probability of Yes"
        finalists[name] = binary_diagnostics(y_test, given[name], ["No", "Yes"]) | {
            "importance": importance(models[name], X_test, log_loss, rng),
            "dependence": [
                dependence(models[name], X_test, column, KINDS[column], label)
                for column in ("balance", "age", "income", "region", "opened")
            ],
            "learning_curve": learning(float(losses[name].mean()), 0.12),
            "coefficients": [
                {"feature": "balance", "value": 1.24},
                {"feature": "log income", "value": -0.45},
                {"feature": "region = coast", "value": 0.0},
            ]
            if name == "logistic"
            else None,
            "rules": None,
        }
    task = _task("binary", "defaulted", ["No", "Yes"], LOG_LOSS, "two distinct values", positive="Yes")
    target = describe_column("defaulted", np.where(y == 1, "Yes", "No"), "boolean", "target")
    text = "20 % of the rows, drawn at random with every class in proportion, were sealed."
    return _run(task, losses, metrics, finalists, _data(X, target, n, sealed, text))


def multiclass(seed: int = 1, n: int = 1_500, sealed: int = 300) -> dict[str, Any]:
    """Three kinds of customers; the forest wins."""
    rng = np.random.default_rng(seed)
    X = _table(rng, n)
    names = ["saver", "spender", "traveller"]

    def scores(c: dict[str, Array], tilt: float) -> Array:
        z = np.stack([0.05 * (c["age"] - 50), 0.002 * (c["balance"] - 800), 0.6 * (c["region"] == "coast")], 1) * tilt
        e = np.exp(z - z.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    chance = scores(X, 2.0)
    y = (rng.uniform(size=(n, 1)) > chance.cumsum(1)).sum(1).clip(0, 2)
    held = slice(n - sealed, n)
    X_test, y_test = {name: column[held] for name, column in X.items()}, y[held]
    rates = np.bincount(y[: n - sealed], minlength=3) / (n - sealed)
    given = {
        "forest": scores(X_test, 1.8),
        "logistic": scores(X_test, 1.1),
        "tree": scores(X_test, 3.6),
        "baseline": np.tile(rates, (sealed, 1)),
    }
    losses = {name: -np.log(p[np.arange(sealed), y_test]) for name, p in given.items()}
    metrics, finalists = {}, {}
    for name, p in given.items():
        hit = 1.0 * (p.argmax(1) == y_test)
        metrics[name] = {
            "log_loss": {"label": "log loss", **interval(losses[name]), "lower_is_better": True},
            "accuracy": {"label": "accuracy", **interval(hit), "lower_is_better": False},
        }
        if name in ("forest", "logistic"):
            counts = [[int(np.sum((y_test == a) & (p.argmax(1) == b))) for b in range(3)] for a in range(3)]

            def loss(q: Array) -> Array:
                return -np.log(q)

            def own(c: dict[str, Array], tilt: float = 1.8 if name == "forest" else 1.1) -> Array:
                return scores(c, tilt)[np.arange(c["age"].size), y_test[: c["age"].size]]

            finalists[name] = {
                "calibration": calibration(hit, p.max(1)),
                "confusion": {"labels": names, "counts": counts},
                "importance": importance(own, X_test, loss, rng),
                "dependence": [
                    dependence(lambda c: scores(c, 1.8)[:, 0], X_test, "age", "numeric", "probability of saver")
                ],
                "learning_curve": None,
                "coefficients": None,
                "rules": "if balance < 812.5:\n    saver (61 %)\nelse:\n    spender (72 %)"
                if name == "forest"
                else None,
            }
    task = _task("multiclass", "segment", names, LOG_LOSS, "three distinct values")
    target = describe_column("segment", np.array(names)[y], "category", "target")
    return _run(task, losses, metrics, finalists, _data(X, target, n, sealed, "20 % of the rows were sealed."))


def priced(seed: int = 4, rows: int = 300) -> dict[str, Any]:
    """Three kinds of customers, and what each mistake about them costs."""
    run, rng = multiclass(), np.random.default_rng(seed)
    names = run["task"]["classes"]
    costs = np.array([[0.0, 1.0, 2.5], [20.0, 0.0, 4.0], [1.0, 3.0, 0.5]])
    truth = rng.integers(3, size=rows)
    for page in run["finalists"].values():
        p = np.round(rng.dirichlet(np.ones(3), rows) * 0.6 + 0.4 * np.eye(3)[truth], 4)
        said, likely = (p @ costs).argmin(1), p.argmax(1)
        page["decisions"] = {
            "truth": truth.tolist(),
            "probabilities": p.tolist(),
            "cost": float(costs[truth, said].mean()),
            "most_probable": float(costs[truth, likely].mean()),
            "always": costs[truth].mean(axis=0).tolist(),
            "changed": int((said != likely).sum()),
            "rows": rows,
        }
    run["options"]["cost"] = {
        k: dict(zip(names, row, strict=True)) for k, row in zip(names, costs.tolist(), strict=True)
    }
    return run


def regression(seed: int = 2, n: int = 6_000, sealed: int = 1_200) -> dict[str, Any]:
    """The price of a house, in dollars."""
    rng = np.random.default_rng(seed)
    X = _table(rng, n)

    def truth(c: dict[str, Array]) -> Array:
        return 90_000 + 4.2 * c["income"] + 900 * np.maximum(0, 60 - c["age"]) + 40_000 * (c["region"] == "coast")

    y = truth(X) * np.exp(rng.normal(0, 0.12, n))
    held = slice(n - sealed, n)
    X_test, y_test = {name: column[held] for name, column in X.items()}, y[held]
    models: dict[str, Predict] = {
        "boosting": lambda c: truth(c) * (1 + 0.02 * np.sin(c["balance"])),
        "ridge": lambda c: 125_000 + 4.0 * c["income"],
        "baseline": lambda c: np.full(c["age"].size, y[: n - sealed].mean()),
    }

    def absolute(p: Array) -> Array:
        return np.abs(y_test - p)

    losses = {name: absolute(model(X_test)) for name, model in models.items()}
    metrics, finalists = {}, {}
    for name, model in models.items():
        predicted = model(X_test)
        metrics[name] = {
            "mae": {"label": "mean absolute error", **interval(losses[name]), "lower_is_better": True},
            "r2": {
                "label": "R²",
                "value": float(1 - np.sum((y_test - predicted) ** 2) / np.sum((y_test - y_test.mean()) ** 2)),
                "low": None,
                "high": None,
                "lower_is_better": False,
            },
        }
        if name != "baseline":
            counts, edges = np.histogram(y_test - predicted, 30)
            finalists[name] = {
                "residuals": {
                    "predicted": predicted[:1000].tolist(),
                    "actual": y_test[:1000].tolist(),
                    "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
                },
                "importance": importance(model, X_test, absolute, rng),
                "dependence": [
                    dependence(model, X_test, "income", "numeric", "predicted price, dollars"),
                    dependence(model, X_test, "region", "category", "predicted price, dollars"),
                ],
                "learning_curve": learning(float(losses[name].mean()), 60_000.0),
                "coefficients": None,
                "rules": None,
            }
    task = _task("regression", "price", None, MAE, "5,998 distinct numbers")
    target = describe_column("price", y, "numeric", "target")
    return _run(task, losses, metrics, finalists, _data(X, target, n, sealed, "20 % of the rows were sealed."))


def troubled() -> dict[str, Any]:
    """A contest in which one entrant failed and one ran out of time."""
    run = multiclass()
    blank = {"baseline": False, "finalist": False, "rank": None, "score": None, "metrics": {}, "verdict": None}
    run["entrants"] += [
        {
            **blank,
            "name": "svm",
            "label": "Linear SVM",
            "status": "failed",
            "error": "column 'income' holds missing values",
        },
        {**blank, "name": "polynomial", "label": "Polynomial ridge", "status": "out of time", "error": None},
    ]
    return run


def interrupted() -> dict[str, Any]:
    """A contest stopped after its baseline: nearly everything is missing."""
    run = regression()
    keep = [entrant for entrant in run["entrants"] if entrant["baseline"]]
    rest = [
        {
            "name": "ridge",
            "label": "Ridge regression",
            "status": "interrupted",
            "error": "stopped by the user",
            "score": None,
        }
    ]
    return run | {
        "interrupted": True,
        "entrants": keep + rest,
        "finalists": {},
        "ledger": None,
        "summary": [],
        "leaderboard": {"text": None, "tied": [], "pairs": []},
    }


def hostile() -> dict[str, Any]:
    """The binary contest with every name and text written by an attacker."""

    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: spoil(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [spoil(v, key) for v in value]
        kept = ("kind", "role", "status", "verdict", "format", "created", "a", "b", "name", "grid")
        return value if not isinstance(value, str) or key in kept else HOSTILE

    run: dict[str, Any] = spoil(binary())
    for column in run["data"]["columns_info"]:
        column["name"] = HOSTILE
    return run


SAMPLES: dict[str, Callable[[], dict[str, Any]]] = {
    "binary": binary,
    "multiclass": multiclass,
    "priced": priced,
    "regression": regression,
    "troubled": troubled,
    "interrupted": interrupted,
    "hostile": hostile,
}
