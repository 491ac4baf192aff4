"""Runs as the contest writes them, with numbers computed from simulated tables: every figure has something true to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.contest.report.parts import HOSTILE, KINDS, LOG_LOSS, MAE, columns_of, data_of, run_of, task_of
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
    sigmoid,
)


def binary(seed: int = 0, n: int = 10_000, sealed: int = 2_000) -> dict[str, Any]:
    """Who defaults on a loan: boosting and the blend tie, a tree and the linear model follow."""
    rng = np.random.default_rng(seed)
    X = columns_of(rng, n)
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
    task = task_of("binary", "defaulted", ["No", "Yes"], LOG_LOSS, "two distinct values", positive="Yes")
    target = describe_column("defaulted", np.where(y == 1, "Yes", "No"), "boolean", "target")
    text = "20 % of the rows, drawn at random with every class in proportion, were sealed."
    return run_of(task, losses, metrics, finalists, data_of(X, target, n, sealed, text))


def multiclass(seed: int = 1, n: int = 1_500, sealed: int = 300) -> dict[str, Any]:
    """Three kinds of customers; the forest wins."""
    rng = np.random.default_rng(seed)
    X = columns_of(rng, n)
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
    task = task_of("multiclass", "segment", names, LOG_LOSS, "three distinct values")
    target = describe_column("segment", np.array(names)[y], "category", "target")
    return run_of(task, losses, metrics, finalists, data_of(X, target, n, sealed, "20 % of the rows were sealed."))


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
    X = columns_of(rng, n)

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
    task = task_of("regression", "price", None, MAE, "5,998 distinct numbers")
    target = describe_column("price", y, "numeric", "target")
    return run_of(task, losses, metrics, finalists, data_of(X, target, n, sealed, "20 % of the rows were sealed."))


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
