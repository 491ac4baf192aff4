"""Selection of columns beside scikit-learn and a mixed-integer solver.

    python benchmarks/models/selection.py [subset] [forward] [--solver-seconds 60]

subset   best subset, 40 columns, 500 rows, all sizes up to 10 with proof, beside HiGHS (scipy.optimize.milp has no quadratic
         objective, so it minimizes the mean absolute error of one size, 10: an easier program of the same subsets, stopped
         after the given seconds)
forward  30 of 300 columns by 5 folds, 5,000 rows, least squares, beside scikit-learn's SequentialFeatureSelector, of which the
         first steps are timed: each further step is dearer, so the ratio shown is a lower bound

Times are of the processor, on one thread, the least of three for Certifit.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from threadpoolctl import threadpool_limits

from certifit import BestSubset, StepwiseSelection

FIRST = 3  # steps of scikit-learn that are timed


def seconds(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def rows(n: int, d: int, useful: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, 0.3 * X[:, :useful].sum(axis=1) + rng.normal(size=n)


def absolute_program(X: Any, y: Any, size: int, limit: float) -> str:
    """min mean |y − Xw| with at most `size` columns, |w| ≤ 1: variables w, z, r."""
    n, d = X.shape
    eye, none = np.eye(d), np.zeros((d, n))
    rows_ = np.vstack(
        [
            np.hstack([X, np.zeros((n, d)), np.eye(n)]),
            np.hstack([-X, np.zeros((n, d)), np.eye(n)]),
            np.hstack([-eye, eye, none]),
            np.hstack([eye, eye, none]),
            np.hstack([np.zeros((1, d)), -np.ones((1, d)), np.zeros((1, n))]),
        ]
    )
    low = np.concatenate([y, -y, np.zeros(2 * d), [-size]])
    cost = np.concatenate([np.zeros(2 * d), np.full(n, 1 / n)])
    kinds = np.concatenate([np.zeros(d), np.ones(d), np.zeros(n)])
    bounds = Bounds(
        np.concatenate([-np.ones(d), np.zeros(d), np.zeros(n)]), np.concatenate([np.ones(2 * d), np.full(n, np.inf)])
    )
    found = milp(
        cost, integrality=kinds, bounds=bounds, constraints=LinearConstraint(rows_, low), options={"time_limit": limit}
    )
    return "closed" if found.status == 0 else f"stopped, gap {found.mip_gap:.1%}"


def subset(limit: float) -> None:
    X, y = rows(500, 40, 7)
    model = BestSubset(max_size=10, choose="size")
    ours = min(seconds(lambda: model.fit(X, y)) for _ in range(3))
    said: list[str] = []
    theirs = seconds(lambda: said.append(absolute_program(X, y, 10, limit)))
    print(f"| best subset 500 × 40, sizes to 10 | {ours:.4f} s, certified {model.certificate_.certified} |", end=" ")
    print(f"HiGHS, one size: {theirs:.1f} s, {said[0]} | {theirs / ours:.0f} |")


def forward() -> None:
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression

    X, y = rows(5000, 300, 40)
    ours = min(seconds(lambda: StepwiseSelection(n_features=30).fit(X, y)) for _ in range(3))
    peer = SequentialFeatureSelector(
        LinearRegression(), n_features_to_select=FIRST, scoring="neg_mean_squared_error", cv=5
    )
    theirs = seconds(lambda: peer.fit(X, y)) / FIRST * 30
    print(
        f"| forward 5,000 × 300, 30 columns | {ours:.3f} s | scikit-learn: at least {theirs:.0f} s | {theirs / ours:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=["subset", "forward"])
    parser.add_argument("--solver-seconds", type=float, default=60.0)
    options = parser.parse_args()
    print("| task | Certifit | peer | ratio |\n|---|---|---|---|")
    with threadpool_limits(1):
        if "subset" in options.tasks:
            subset(options.solver_seconds)
        if "forward" in options.tasks:
            forward()


if __name__ == "__main__":
    main()
