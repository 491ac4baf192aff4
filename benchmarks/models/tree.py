"""Trees and forests beside their peers: one process, interleaved rounds, best of several.

    python benchmarks/models/tree.py [--rounds 3] [--quick]

Peers that are not installed are left out. Accuracy is on rows nobody was trained on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import certifit

try:
    from sklearnex.ensemble import RandomForestClassifier as FastClassifier
    from sklearnex.ensemble import RandomForestRegressor as FastRegressor
except ImportError:
    FastClassifier = FastRegressor = None


@dataclass
class Case:
    """One row of the table: rows to learn from, rows to test on, and a maker for each entrant."""

    title: str
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    makers: dict[str, Callable[[int], Any]]
    fits: dict[str, list[float]] = field(default_factory=dict)
    predicts: dict[str, list[float]] = field(default_factory=dict)
    scores: dict[str, list[float]] = field(default_factory=dict)

    def round(self, seed: int) -> None:
        for name, maker in self.makers.items():
            model = maker(seed)
            began = time.perf_counter()
            model.fit(*self.train)
            fitted = time.perf_counter()
            said = model.predict(self.test[0])
            predicted = time.perf_counter()
            truth = self.test[1]
            score = np.mean(said == truth) if truth.dtype.kind == "i" else 1 - np.var(truth - said) / np.var(truth)
            for store, value in (
                (self.fits, fitted - began),
                (self.predicts, predicted - fitted),
                (self.scores, score),
            ):
                store.setdefault(name, []).append(float(value))

    def show(self) -> None:
        print(f"\n{self.title}")
        ours = min(self.fits["certifit"])
        for name in self.makers:
            fit, predict = min(self.fits[name]), min(self.predicts[name])
            ratio = "" if name == "certifit" else f"  certifit is {fit / ours:5.2f} × faster"
            score = np.mean(self.scores[name])
            print(f"  {name:22s} fit {fit:7.3f} s  predict {predict:7.4f} s  score {score:.4f}{ratio}")


def split(X: np.ndarray, y: np.ndarray, n: int) -> tuple[Any, Any]:
    return (X[:n], y[:n]), (X[n:], y[n:])


def cases(quick: bool) -> list[Case]:
    few = 5 if quick else 1
    found = []
    n = 50_000 // few
    X, y = make_classification(n + n // 2, 20, n_informative=10, n_classes=3, random_state=0)
    for depth in (None, 10):
        makers: dict[str, Callable[[int], Any]] = {
            "certifit": lambda seed, depth=depth: certifit.DecisionTreeClassifier(max_depth=depth, n_jobs=2),
            "certifit (1 thread)": lambda seed, depth=depth: certifit.DecisionTreeClassifier(max_depth=depth, n_jobs=1),
            "scikit-learn": lambda seed, depth=depth: DecisionTreeClassifier(max_depth=depth, random_state=seed),
        }
        found.append(Case(f"exact tree, {n:,} × 20, 3 classes, max_depth={depth}", *split(X, y, n), makers))
    Xr, yr = make_regression(n + n // 2, 20, n_informative=10, noise=10.0, random_state=0)
    makers = {
        "certifit": lambda seed: certifit.DecisionTreeRegressor(n_jobs=2),
        "scikit-learn": lambda seed: DecisionTreeRegressor(random_state=seed),
    }
    found.append(Case(f"exact regression tree, {n:,} × 20", *split(Xr, yr, n), makers))
    n = 20_000 // few
    X, y = make_classification(2 * n, 30, n_informative=10, n_classes=3, random_state=0)
    makers = {
        "certifit": lambda seed: certifit.RandomForestClassifier(100, random_state=seed, n_jobs=2),
        "scikit-learn": lambda seed: RandomForestClassifier(100, random_state=seed, n_jobs=2),
    }
    if FastClassifier is not None:
        makers["scikit-learn-intelex"] = lambda seed: FastClassifier(100, random_state=seed, n_jobs=2)
    found.append(Case(f"random forest, 100 trees, {n:,} × 30, 3 classes", *split(X, y, n), makers))
    Xr, yr = make_regression(2 * n, 30, n_informative=10, noise=10.0, random_state=0)
    makers = {
        "certifit": lambda seed: certifit.RandomForestRegressor(100, max_features=1 / 3, random_state=seed, n_jobs=2),
        "scikit-learn": lambda seed: RandomForestRegressor(100, max_features=1 / 3, random_state=seed, n_jobs=2),
    }
    if FastRegressor is not None:
        makers["scikit-learn-intelex"] = lambda seed: FastRegressor(
            100, max_features=1 / 3, random_state=seed, n_jobs=2
        )
    found.append(Case(f"regression forest, 100 trees, {n:,} × 30, a third of the features", *split(Xr, yr, n), makers))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rows")
    parser.add_argument("--only", default="", help="cases whose title contains this")
    arguments = parser.parse_args()
    for case in cases(arguments.quick):
        if arguments.only not in case.title:
            continue
        for seed in range(arguments.rounds):
            case.round(seed)
        case.show()


if __name__ == "__main__":
    main()
