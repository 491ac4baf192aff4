"""Choices and explanations that rest on many fits or many predictions, beside scikit-learn (and celer, if it is installed).

    python benchmarks/evaluation.py [lasso] [ridge] [importance] [--scale 1.0]

lasso       10 folds × 100 alphas, 2,000 rows × 2,000 columns
ridge       leave-one-out over 50 alphas, 20,000 rows × 200 columns
importance  permutation importance of a forest of 100 trees, 20,000 rows × 30 columns, 5 repetitions

Times are of the processor, on one thread, each with its own default tolerance: a relative gap of 1e-6 for our lasso, 1e-4 of
‖y‖² for scikit-learn's. `--scale` makes the rows fewer.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.linear_model as theirs
from sklearn.inspection import permutation_importance as their_importance
from threadpoolctl import threadpool_limits

import certifit as cf

try:
    from celer import LassoCV as CelerCV

    CelerCV()
except (ImportError, TypeError):  # celer 0.7 cannot be built with scikit-learn 1.9
    CelerCV = None


def seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def show(task: str, ours: float, peers: dict[str, float]) -> None:
    best = min(peers.values())
    said = ", ".join(f"{name} {took:.2f} s" for name, took in peers.items())
    print(f"| {task} | {ours:.2f} s | {said} | {best / ours:.1f} |", flush=True)


def rows(n: int, d: int, useful: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X[:, :useful].sum(axis=1) + rng.normal(size=n)


def lasso(scale: float) -> None:
    X, y = rows(int(2000 * scale), int(2000 * scale), 20)
    model = cf.LassoCV(cv=10, n_alphas=100, n_jobs=1)
    ours = seconds(lambda: model.fit(X, y))
    peers = {"scikit-learn": seconds(lambda: theirs.LassoCV(cv=10, alphas=100).fit(X, y))}
    if CelerCV is not None:
        peers["celer"] = seconds(lambda: CelerCV(cv=10, n_alphas=100).fit(X, y))
    show(f"lasso, 10 folds × 100 alphas, {X.shape[0]:,} × {X.shape[1]:,}", ours, peers)


def ridge(scale: float) -> None:
    X, y = rows(int(20_000 * scale), 200, 50)
    alphas = np.geomspace(1e-4, 1e2, 50)
    ours = min(seconds(lambda: cf.RidgeCV(alphas=alphas).fit(X, y)) for _ in range(2))
    other = min(seconds(lambda: theirs.RidgeCV(alphas=alphas * X.shape[0]).fit(X, y)) for _ in range(2))
    show(f"ridge, leave-one-out over 50 alphas, {X.shape[0]:,} × 200", ours, {"scikit-learn": other})


def importance(scale: float) -> None:
    X, y = rows(int(20_000 * scale), 30, 8)
    model = cf.RandomForestRegressor(
        n_estimators=100, min_samples_leaf=5, max_features=1 / 3, random_state=0, n_jobs=1
    ).fit(X, y)
    ours = seconds(lambda: cf.permutation_importance(model, X, y, n_repeats=5, random_state=0))
    from sklearn.ensemble import RandomForestRegressor

    peer = RandomForestRegressor(n_estimators=100, min_samples_leaf=5, max_features=1 / 3, random_state=0).fit(X, y)
    other = seconds(lambda: their_importance(peer, X, y, n_repeats=5, random_state=0))
    show(f"permutation importance, forest, {X.shape[0]:,} × 30", ours, {"scikit-learn": other})


TASKS = {"lasso": lasso, "ridge": ridge, "importance": importance}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    print("| task | Certifit | peers | ratio |\n|---|---|---|---|")
    with threadpool_limits(1):
        for task in options.tasks:
            TASKS[task](options.scale)


if __name__ == "__main__":
    main()
