"""Certifit beside its peers at shapes that a seed draws.

    python benchmarks/shapes.py [--draws 200] [--seed 0] [--only lasso,ridge] [--least 1e6] [--numbers 2e8] [--processor]

Each draw is a family, a number of rows and of columns, a density, a correlation, a scale, a strength of the penalty, a number of
classes: whatever the seed says. The protocol is that of run.py: each contender in a process of its own, interleaved, peers at
their loosest tolerance that reaches our objective; ours runs with its defaults. Printed are the distribution of the ratios
(best peer / ours), the ten worst with their names, which draw the same case again, and memory. With `--processor` everybody
has one thread and is judged by the time of the processor, which means something on a busy machine too; all then run in this
process, and a peer that takes `--patience` times as long as we do is not asked to come closer, nor again: its ratio is at least
what is printed. It is ended where its first fit, or any of a long task, takes longer.

A family joins by one entry of FAMILIES: its data, its objective, and how each library is asked.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import linear_tasks
import logistic
import numpy as np
import run
from draws import Shape, draw, first_rows, numbers_to_predict, several_classes, two_classes
from linear_tasks import OURS, Data, Fit, Task

GRADIENT = (1e-3, *logistic.GRADIENT)
WANTED = 1e-6  # distance from the best objective, in units of that of the best constant: what `tol` means
THREADS = int(os.environ.get("OMP_NUM_THREADS", run.THREADS))  # of libraries that do not read it from there themselves
COMPILED = {"skglm"}  # just in time, which is to be over before a fit that may be ended
AS_IT_IS = (0.0,)  # of methods without a tolerance


# --- objectives ------------------------------------------------------------------------------------------------------


def ridge_objective(data: Data, w: np.ndarray, b: Any) -> float:
    r = data["y"] - data["X"] @ np.ravel(w) - b
    return 0.5 * float(r @ r) / len(r) + 0.5 * data["alpha"] * float(np.ravel(w) @ np.ravel(w))


def squares_objective(data: Data, w: np.ndarray, b: Any) -> float:
    return ridge_objective({**data, "alpha": 0.0}, w, b)


def logistic_l1_objective(data: Data, w: np.ndarray, b: Any) -> float:
    plain = logistic.binary_objective({**data, "alpha": 0.0}, w, b)
    return plain + data["alpha"] * float(np.abs(w).sum())


def hinge_objective(data: Data, w: np.ndarray, b: Any) -> float:
    w, sign = np.ravel(w), 2.0 * data["y"] - 1.0
    f = data["X"] @ w + float(np.ravel(b)[0])
    return float(np.maximum(1.0 - sign * f, 0.0).mean() + 0.5 * data["alpha"] * w @ w)


def log_loss(data: Data, probability: np.ndarray, _: Any) -> float:
    """Of the training rows: what is compared where the methods minimize nothing in common."""
    return float(-np.log(np.clip(probability[np.arange(len(data["y"])), data["y"]], 1e-12, 1.0)).mean())


def squared_error(data: Data, prediction: np.ndarray, _: Any) -> float:
    return float(np.mean((data["y"] - prediction) ** 2))


# --- how each library is asked ----------------------------------------------------------------------------------------


def model(module: str, name: str, data_key: str = "X", **options: Any) -> Fit:
    """A linear model of a library; options that are functions are asked for their value at the data and the tolerance."""

    def fit(data: Data, tol: float) -> tuple[np.ndarray, Any]:
        cls = getattr(__import__(module, fromlist=[name]), name)
        given = {key: value(data, tol) if callable(value) else value for key, value in options.items()}
        X = data[data_key] if data.get(data_key) is not None else data["X"]
        found = cls(**given).fit(X, data["y"])
        return found.coef_, found.intercept_

    return fit


def predicted(module: str, name: str, method: str, **options: Any) -> Fit:
    """What a fitted model says of its own rows."""

    def fit(data: Data, tol: float) -> tuple[np.ndarray, Any]:
        cls = getattr(__import__(module, fromlist=[name]), name)
        return getattr(cls(**options).fit(data["X"], data["y"]), method)(data["X"]), 0.0

    return fit


def tolerance(data: Data, tol: float) -> float:
    return tol


def alpha(data: Data, tol: float) -> float:
    return float(data["alpha"])


def alpha_sum(data: Data, tol: float) -> float:
    return float(data["alpha"] * len(data["y"]))


def inverse(data: Data, tol: float) -> float:
    return 1.0 / alpha_sum(data, tol)


OWN = {"alpha": alpha}
SKLEARN = "sklearn.linear_model"


def half_variance(data: Data) -> float:
    return 0.5 * float(np.var(data["y"]))


def entropy(data: Data) -> float:
    share = np.bincount(data["y"]) / len(data["y"])
    return -float(share[share > 0] @ np.log(share[share > 0]))


def twice_the_rarer(data: Data) -> float:
    """The hinge of the best constant."""
    share = float(np.mean(data["y"]))
    return 2.0 * min(share, 1.0 - share)


@dataclass(frozen=True)
class Family:
    """Data, objective, contenders (ours first, each with the tolerances it is tried with), and which shapes make sense."""

    data: Callable[[Shape], Data]
    objective: Callable[..., float]
    constant: Callable[[Data], float]
    """The objective of the best constant: the unit."""
    contenders: dict[str, tuple[Fit, tuple[float, ...]]]
    sparse: bool = True
    most_columns: float = 1e5
    numbers: float = math.inf
    wanted: float = WANTED
    options: dict[str, Any] = field(default_factory=dict)


FAMILIES = {
    "least squares": Family(
        numbers_to_predict,
        squares_objective,
        half_variance,
        {
            "certifit": (model("certifit", "LinearRegression"), AS_IT_IS),
            "scikit-learn": (model(SKLEARN, "LinearRegression"), AS_IT_IS),
            "intelex": (model("sklearnex.linear_model", "LinearRegression"), AS_IT_IS),
        },
        sparse=False,
        most_columns=1e4,
    ),
    "ridge": Family(
        numbers_to_predict,
        ridge_objective,
        half_variance,
        {
            "certifit": (model("certifit", "Ridge", **OWN), AS_IT_IS),
            "scikit-learn": (model(SKLEARN, "Ridge", alpha=alpha_sum), AS_IT_IS),
            "scikit-learn, iterating": (
                model(SKLEARN, "Ridge", alpha=alpha_sum, solver="sag", tol=tolerance),
                linear_tasks.TIGHTER,
            ),
            "intelex": (model("sklearnex.linear_model", "Ridge", alpha=alpha_sum), AS_IT_IS),
        },
        most_columns=2e4,
    ),
    "lasso": Family(
        partial(numbers_to_predict, columns=True),
        linear_tasks.lasso_objective,
        half_variance,
        {
            "certifit": (model("certifit", "Lasso", **OWN), OURS),
            "scikit-learn": (
                model(SKLEARN, "Lasso", "F", alpha=alpha, tol=tolerance, max_iter=100_000),
                linear_tasks.TIGHTER,
            ),
            "celer": (model("celer", "Lasso", "F", alpha=alpha, tol=tolerance), linear_tasks.TIGHTER),
            "skglm": (model("skglm", "Lasso", "F", alpha=alpha, tol=tolerance), linear_tasks.TIGHTER),
        },
    ),
    "logistic L2": Family(
        two_classes,
        logistic.binary_objective,
        entropy,
        {
            "certifit": (model("certifit", "LogisticRegression", **OWN), OURS),
            **{
                f"scikit-learn {solver}": (
                    model(SKLEARN, "LogisticRegression", C=inverse, solver=solver, tol=tolerance, max_iter=1000, **more),
                    tolerances,
                )
                for solver, tolerances, more in (
                    ("lbfgs", GRADIENT, {}),
                    ("newton-cholesky", GRADIENT, {}),
                    ("liblinear", logistic.DUAL, {"intercept_scaling": 100.0}),
                )
            },
        },
        most_columns=2e4,
    ),
    "logistic L1": Family(
        partial(two_classes, columns=True),
        logistic_l1_objective,
        entropy,
        {
            "certifit": (model("certifit", "LogisticRegression", penalty="l1", **OWN), OURS),
            "LIBLINEAR": (
                model(
                    SKLEARN, "LogisticRegression", C=inverse, l1_ratio=1.0, solver="liblinear", tol=tolerance,
                    intercept_scaling=100.0,
                ),
                logistic.DUAL,
            ),
            "skglm": (model("skglm", "SparseLogisticRegression", "X_csc", alpha=alpha, tol=tolerance), logistic.DUAL),
        },
    ),
    "softmax": Family(
        several_classes,
        logistic.softmax_objective,
        entropy,
        {
            "certifit": (model("certifit", "LogisticRegression", **OWN), OURS),
            "scikit-learn lbfgs": (model(SKLEARN, "LogisticRegression", C=inverse, tol=tolerance, max_iter=1000), GRADIENT),
            "scikit-learn newton-cholesky": (
                model(SKLEARN, "LogisticRegression", C=inverse, solver="newton-cholesky", tol=tolerance),
                GRADIENT,
            ),
        },
        sparse=False,
        most_columns=2e3,
        numbers=2e7,
    ),
    "linear SVM": Family(
        two_classes,
        hinge_objective,
        twice_the_rarer,
        {
            "certifit": (model("certifit", "LinearSVC", alpha=alpha, tol=1e-3), OURS),
            "LIBLINEAR": (
                model(
                    "sklearn.svm", "LinearSVC", C=inverse, loss="hinge", tol=tolerance, max_iter=20_000, intercept_scaling=10.0
                ),
                (1.0, 0.1, 1e-2, 1e-3, 1e-4),
            ),
        },
        most_columns=2e4,
        wanted=1e-3,
    ),
    "boosting": Family(
        two_classes,
        log_loss,
        entropy,
        {
            "certifit": (
                predicted("certifit", "GradientBoostingClassifier", "predict_proba", n_estimators=50, max_leaf_nodes=31),
                AS_IT_IS,
            ),
            "LightGBM": (
                predicted("lightgbm", "LGBMClassifier", "predict_proba", n_estimators=50, verbose=-1, n_jobs=THREADS),
                AS_IT_IS,
            ),
            "XGBoost": (
                predicted(
                    "xgboost", "XGBClassifier", "predict_proba", n_estimators=50, max_leaves=31, max_depth=0, n_jobs=THREADS,
                    learning_rate=0.1, grow_policy="lossguide",
                ),
                AS_IT_IS,
            ),
            "scikit-learn": (
                predicted("sklearn.ensemble", "HistGradientBoostingClassifier", "predict_proba", max_iter=50,
                          early_stopping=False),
                AS_IT_IS,
            ),
        },
        sparse=False,
        most_columns=2e3,
        numbers=1e7,
        wanted=math.inf,
    ),
    "tree": Family(
        numbers_to_predict,
        squared_error,
        half_variance,
        {
            "certifit": (predicted("certifit", "DecisionTreeRegressor", "predict", max_depth=8), AS_IT_IS),
            "scikit-learn": (predicted("sklearn.tree", "DecisionTreeRegressor", "predict", max_depth=8), AS_IT_IS),
        },
        sparse=False,
        most_columns=1e3,
        numbers=1e7,
        wanted=math.inf,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Drawn(Task):
    """A task whose objective is in units of the best constant's."""

    def goal(self, best: float) -> float:
        return best + self.target


class Draws(dict[str, Task]):
    """The task of a name such as "lasso 17 2e+08" or "lasso 17 1e+06..2e+08": a family, a seed, how many numbers."""

    def __missing__(self, name: str) -> Task:
        family, seed, numbers = name.rsplit(" ", 2)
        least, _, most = numbers.rpartition("..")
        chosen = FAMILIES[family]
        most_here = min(float(most), chosen.numbers)
        shape = draw(int(seed), most_here, chosen.sparse, chosen.most_columns, float(least or 0))
        return Drawn(
            name,
            f"{family} {shape}",
            lambda: chosen.data(shape),
            lambda data, *found: chosen.objective(data, *found) / chosen.constant(data),
            chosen.wanted,
            "≥ 1",
            dict(chosen.contenders),
        )


TASKS = Draws()


@dataclass(frozen=True)
class Outcome:
    """One draw."""

    name: str
    title: str
    ratio: float
    ours: run.Contender
    best: run.Contender

    @property
    def memory(self) -> float:
        """Ours beside that of the best peer in time; noise below a few MiB does not count."""
        return (self.ours.extra_mib + 16.0) / (self.best.extra_mib + 16.0)

    def __str__(self) -> str:
        return (
            f"{self.ratio:6.2f}  {self.name!r}: {self.title}; ours {self.ours.seconds:.4g} s, "
            f"{self.best.name} {self.best.seconds:.4g} s; memory {self.memory:.2f}"
        )


def here(task: Task) -> list[run.Contender]:
    """All in this process, with one thread each."""
    data = task.make()
    few = first_rows(data, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in COMPILED & set(task.contenders):
            fit, tolerances = task.contenders[name]
            with suppress(Exception):  # what fails on so few rows is compiled by then
                fit(few, next(iter(tolerances)))
    return run.race(
        task, [run.Here(name, None, fit=fit, task=task, data=data) for name, (fit, _) in task.contenders.items()]
    )


def judged(name: str) -> Outcome | None:
    """None where no peer reaches the objective, or we do not: that is said, and is no ratio."""
    task = TASKS[name]
    ours, *peers = here(task) if run.THREADS == "1" else run.run_task("shapes", task)
    if ours.error:
        print(f"       {name!r}: {task.title}: certifit failed: {ours.error}", flush=True)
        return None
    goal = task.goal(task.goal(min(c.objective for c in (ours, *peers) if not c.error)))
    fair = [peer for peer in peers if not peer.error and (peer.slow or peer.objective <= goal)]
    if not fair or ours.objective > goal:
        who = "certifit does not reach" if fair else "no peer reaches"
        print(f"       {name!r}: {task.title}: {who} the objective", flush=True)
        return None
    best = min(fair, key=lambda peer: peer.seconds)
    outcome = Outcome(name, task.title, best.seconds / ours.seconds, ours, best)
    print(outcome, flush=True)
    return outcome


def summary(outcomes: list[Outcome]) -> str:
    ratios = np.array([outcome.ratio for outcome in outcomes])
    memory = np.array([outcome.memory for outcome in outcomes])  # nan where all peers were ended
    shares = ", ".join(f"{q:.0%} {np.quantile(ratios, q):.2f}" for q in (0.05, 0.25, 0.5, 0.75, 0.95))
    worst = sorted(outcomes, key=lambda outcome: outcome.ratio)[:10]
    return "\n".join(
        [
            f"{len(ratios)} draws: median ratio {np.median(ratios):.2f}, at least 1 in {np.mean(ratios >= 1):.1%}, "
            f"worst {ratios.min():.2f}; quantiles {shares}",
            f"memory beside the best peer's: median {np.nanmedian(memory):.2f}, most {np.nanmax(memory):.2f}, "
            f"above 1.2 in {int(np.sum(memory > 1.2))}",
            "the worst:",
            *map(str, worst),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases to draw again, as they were printed")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(FAMILIES))
    parser.add_argument("--numbers", type=float, default=2e8, help="the largest n × d")
    parser.add_argument(
        "--least", type=float, default=0.0, help="the smallest n × d; families without so large ones rest"
    )
    parser.add_argument("--patience", type=float, default=20.0, help="how much longer than ours a peer is waited for")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processor", action="store_true", help="one thread each, judged by the time of the processor")
    options = parser.parse_args()
    if options.processor:
        run.CLOCK, run.THREADS, run.PATIENCE = "processor", "1", options.patience
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            if os.environ.get(name) != "1":
                parser.error(f"--processor needs {name}=1 in the environment, set before Python starts.")
    run.ROUNDS = options.rounds
    families = [name for name in options.only.split(",") if FAMILIES[name].numbers > options.least]
    rng = np.random.default_rng(options.seed)
    numbers = f"{options.least:g}..{options.numbers:g}" if options.least else f"{options.numbers:g}"
    names = options.names or [
        f"{rng.choice(families)} {1000 * options.seed + k} {numbers}" for k in range(options.draws)
    ]
    outcomes = [outcome for name in names if (outcome := judged(name)) is not None]
    if outcomes:
        print(summary(outcomes))


if __name__ == "__main__":
    main()
