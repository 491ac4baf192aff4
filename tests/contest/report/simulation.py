"""What a contest would measure, from simulated predictions: intervals, curves, importances, descriptions of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from scipy.integrate import trapezoid

Array = np.ndarray
Predict = Callable[[dict[str, Array]], Array]


def sigmoid(z: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-z))


def interval(losses: Array) -> dict[str, float]:
    mean, error = losses.mean(), losses.std(ddof=1) / np.sqrt(losses.size)
    return {"value": float(mean), "low": float(mean - 1.96 * error), "high": float(mean + 1.96 * error)}


def pair(a: Array, b: Array, pairs: int) -> dict[str, Any]:
    d = a - b
    error = d.std(ddof=1) / np.sqrt(d.size)
    p = 1.0 if error == 0 else float(2 * stats.norm.sf(abs(d.mean() / error)))
    adjusted = min(1.0, p * pairs)
    wide = 2.8 * error
    ends = {"low": float(d.mean() - wide), "high": float(d.mean() + wide)}
    return {"difference": float(d.mean()), **ends, "p": p, "p_adjusted": adjusted, "distinguishable": adjusted < 0.05}


def thresholds(y: Array, p: Array, points: int = 200) -> dict[str, Any]:
    grid = np.unique(np.concatenate([[0.0], np.quantile(p, np.linspace(0, 1, points - 2)), [1.0]]))
    said = p[:, None] >= grid
    counts = {
        "tp": (said & (y == 1)[:, None]).sum(0),
        "fp": (said & (y == 0)[:, None]).sum(0),
        "tn": (~said & (y == 0)[:, None]).sum(0),
        "fn": (~said & (y == 1)[:, None]).sum(0),
    }
    return {"threshold": grid.tolist(), **{key: value.tolist() for key, value in counts.items()}, "chosen": 1 / 6}


def calibration(hit: Array, p: Array) -> dict[str, Any]:
    bins, error = [], 0.0
    for rows in np.array_split(np.argsort(p), 10):
        mean, rate, n = p[rows].mean(), hit[rows].mean(), rows.size
        half = 1.96 * np.sqrt(max(rate * (1 - rate), 0.25 / n) / n)
        low, high = max(0.0, rate - half), min(1.0, rate + half)
        bins.append({"mean": float(mean), "rate": float(rate), "low": low, "high": high, "count": int(n)})
        error += abs(mean - rate) * n / p.size
    return {"bins": bins, "error": float(error)}


def binary_diagnostics(y: Array, p: Array, labels: list[str]) -> dict[str, Any]:
    table = thresholds(y, p)
    tp, fp, tn, fn = (np.array(table[key], float) for key in ("tp", "fp", "tn", "fn"))
    tpr, fpr = (tp / (tp + fn))[::-1], (fp / (fp + tn))[::-1]
    alarms = np.maximum(tp + fp, 1)
    recall, precision = (tp / (tp + fn))[::-1], np.where(tp + fp > 0, tp / alarms, 1.0)[::-1]
    said = p >= 0.5
    counts = [[int(np.sum((y == a) & (said == b))) for b in (0, 1)] for a in (0, 1)]
    return {
        "roc": {"fpr": fpr.tolist(), "tpr": tpr.tolist(), "auc": float(trapezoid(tpr, fpr))},
        "pr": {
            "recall": recall.tolist(),
            "precision": precision.tolist(),
            "average_precision": float(np.sum(np.diff(recall, prepend=0.0) * precision)),
        },
        "calibration": calibration(y, p),
        "thresholds": table,
        "confusion": {"labels": labels, "counts": counts},
    }


def importance(
    predict: Predict, X: dict[str, Array], losses: Callable[[Array], Array], rng: Any
) -> list[dict[str, Any]]:
    base, found = losses(predict(X)), []
    for name, column in X.items():
        moved = losses(predict({**X, name: rng.permutation(column)})) - base
        found.append(
            {
                "feature": name,
                "mean": float(moved.mean()),
                **{k: v for k, v in interval(moved).items() if k != "value"},
            }
        )
    return sorted(found, key=lambda item: -item["mean"])


def dependence(predict: Predict, X: dict[str, Array], name: str, kind: str, label: str) -> dict[str, Any]:
    rows = {key: column[:300] for key, column in X.items()}
    column = X[name]
    grid = np.unique(column) if kind == "category" else np.quantile(column, np.linspace(0.02, 0.98, 30))
    each = [predict({**rows, name: np.full(300, value, dtype=column.dtype)}) for value in grid]
    shown = [str(np.datetime64(int(v), "D")) for v in grid] if kind == "date" else grid.tolist()
    return {
        "feature": name,
        "kind": kind,
        "grid": shown,
        "mean": [float(e.mean()) for e in each],
        "low": [float(np.quantile(e, 0.1)) for e in each],
        "high": [float(np.quantile(e, 0.9)) for e in each],
        "label": label,
    }


def learning(final: float, noise: float) -> dict[str, Any]:
    rows = np.array([250, 500, 1000, 2000, 4000, 8000])
    validation = final + noise * 6 / np.sqrt(rows)
    train = final - noise * 4 / np.sqrt(rows)
    return {
        "rows": rows.tolist(),
        "train": train.tolist(),
        "validation": validation.tolist(),
        "low": (validation - noise / np.sqrt(rows)).tolist(),
        "high": (validation + noise / np.sqrt(rows)).tolist(),
        "reading": "More data would help a little: doubling the rows should lower the loss by about 0.004.",
    }


def describe_column(
    name: str, values: Array, kind: str, role: str = "feature", missing: int = 0, why: str | None = None
) -> dict[str, Any]:
    info: dict[str, Any] = {"name": name, "kind": kind, "role": role, "why": why, "missing": missing}
    info |= {"distinct": int(np.unique(values).size), "numbers": None, "histogram": None, "top": None, "other": None}
    if kind in ("numeric", "date"):
        counts, edges = np.histogram(values, 24)
        shown = [str(np.datetime64(int(e), "D")) for e in edges] if kind == "date" else edges.tolist()
        info["histogram"] = {"edges": shown, "counts": counts.tolist()}
        if kind == "numeric":
            q = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
            info["numbers"] = dict(zip(("min", "q1", "median", "q3", "max"), q, strict=True))
            info["numbers"] |= {"mean": float(values.mean()), "sd": float(values.std())}
    elif kind not in ("constant", "empty"):
        levels, counts = np.unique(values, return_counts=True)
        order = np.argsort(-counts, kind="stable")[:12]
        info["top"] = [{"value": str(levels[k]), "count": int(counts[k])} for k in order]
        info["other"] = int(counts.sum() - counts[order].sum())
    return info
