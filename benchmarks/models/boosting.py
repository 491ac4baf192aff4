"""Boosted trees beside LightGBM, XGBoost, CatBoost and scikit-learn: times, and loss on unseen rows.

    python benchmarks/models/boosting.py [--data DIRECTORY] [--threads 2] [--rounds 3] [--only PART]

One process; in each round every contender runs once, and the best round counts. Peers that are not installed are
left out. DIRECTORY holds adult/, diamonds/ and california_housing/ (CSV files); without it the quality part is
left out.
"""

from __future__ import annotations

import argparse
import gc
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

Maker = Callable[..., Any]
SETTINGS: dict[str, Any] = {"trees": 100, "leaves": 31, "rate": 0.1, "bins": 255}


# library → its classifier, its regressor, its names for trees, leaves, rate and bins, and what else it must be told
LIBRARIES: dict[str, tuple[str, str, tuple[str, str, str, str], dict[str, Any]]] = {
    "certifit": (
        "certifit.GradientBoostingClassifier",
        "certifit.GradientBoostingRegressor",
        ("n_estimators", "max_leaf_nodes", "learning_rate", "max_bins"),
        {"early_stopping": False},
    ),
    "LightGBM": (
        "lightgbm.LGBMClassifier",
        "lightgbm.LGBMRegressor",
        ("n_estimators", "num_leaves", "learning_rate", "max_bin"),
        {"verbose": -1},
    ),
    "XGBoost": (
        "xgboost.XGBClassifier",
        "xgboost.XGBRegressor",
        ("n_estimators", "max_leaves", "learning_rate", "max_bin"),
        {"max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist", "enable_categorical": True},
    ),
    "scikit-learn": (
        "sklearn.ensemble.HistGradientBoostingClassifier",
        "sklearn.ensemble.HistGradientBoostingRegressor",
        ("max_iter", "max_leaf_nodes", "learning_rate", "max_bins"),
        {"categorical_features": "from_dtype", "early_stopping": False},
    ),
    "CatBoost": (
        "catboost.CatBoostClassifier",
        "catboost.CatBoostRegressor",
        ("iterations", "max_leaves", "learning_rate", "border_count"),
        {"grow_policy": "Lossguide", "verbose": False, "allow_writing_files": False},
    ),
}
BINS = {"XGBoost": 256, "CatBoost": 254}  # how they count the same 255 bins
CATEGORICAL = {"certifit": "categorical_features", "CatBoost": "cat_features"}  # the others read the frame's types
THREADS = {"certifit": "n_jobs", "LightGBM": "n_jobs", "XGBoost": "n_jobs", "CatBoost": "thread_count"}


def contenders(threads: int) -> dict[str, Maker]:
    """Name → function (classify, categorical) that makes an unfitted model, of the libraries that are installed."""
    return {name: maker(name, threads) for name, row in LIBRARIES.items() if find_spec(row[0].partition(".")[0])}


def maker(name: str, threads: int) -> Maker:
    """How one library's model is made, at the common settings."""
    classifier, regressor, names, options = LIBRARIES[name]
    common = dict(zip(names, ({**SETTINGS, "bins": BINS.get(name, SETTINGS["bins"])}).values(), strict=True))

    def make(classify: bool, categorical: list[int]) -> Any:
        module, _, cls = (classifier if classify else regressor).rpartition(".")
        own = {**options, **({CATEGORICAL[name]: categorical} if name in CATEGORICAL else {})}
        own |= {THREADS[name]: threads} if name in THREADS else {}
        return getattr(import_module(module), cls)(**common, **own)

    return make


def higgs_like(n: int, d: int = 28, seed: int = 0) -> tuple[Any, Any]:
    """A noisy, nonlinear binary problem in float32: products, thresholds, waves, and columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[:, ::3] = np.abs(X[:, ::3]) ** 1.3
    k = np.arange(12) % d
    x = [X[:, j] for j in k]
    f = x[0] * x[1] - 0.6 * x[2] ** 2 + np.sin(2 * x[3]) * x[4] + 0.5 * x[5] + 0.3 * x[6] * x[7] * x[8]
    f += np.where(x[9] > 1, x[10], -x[11]) * 0.7
    return X, (f + 1.5 * rng.logistic(size=n) > 0).astype(np.int64)


def log_loss(y: Any, p: Any) -> float:
    p = np.clip(p[:, 1].astype(float), 1e-15, 1 - 1e-15)
    return float(-np.mean(np.where(y == 1, np.log(p), np.log1p(-p))))


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - start, result


def race(title: str, train: Any, test: Any, threads: int, rounds: int, skip: tuple[str, ...] = ()) -> None:
    """Fit and prediction times of all contenders, interleaved."""
    makers = {name: maker for name, maker in contenders(threads).items() if name not in skip}
    fit = dict.fromkeys(makers, np.inf)
    predict = dict.fromkeys(makers, np.inf)
    loss = dict.fromkeys(makers, np.nan)
    for _ in range(rounds):
        for name, maker in makers.items():
            model = maker(True, [])
            seconds, _ = timed(model.fit, *train)
            fit[name] = min(fit[name], seconds)
            seconds, p = timed(model.predict_proba, test[0])
            predict[name] = min(predict[name], seconds)
            loss[name] = log_loss(test[1], p)
    rows, columns = train[0].shape
    print(f"\n{title}: fit {rows:,} × {columns}, predict {test[0].shape[0]:,} rows, {threads} threads")
    print(f"| {'':12} | fit s | ours × | predict s | ours × | test log loss |")
    print("|---|---|---|---|---|---|")
    for name in makers:
        print(
            f"| {name:12} | {fit[name]:.3f} | {fit[name] / fit['certifit']:.2f} | {predict[name]:.3f} | "
            f"{predict[name] / predict['certifit']:.2f} | {loss[name]:.5f} |",
            flush=True,
        )


def tables(data: Path) -> dict[str, tuple[Any, Any, Any, Any, bool]]:
    """Adult, diamonds and California housing: train and test frames with categorical columns."""
    import pandas as pd

    def prepared(frame: Any) -> Any:
        for name in frame.columns:
            if not pd.api.types.is_numeric_dtype(frame[name]):
                frame[name] = frame[name].fillna("missing").astype("category")
        return frame

    def halves(frame: Any, y: Any) -> tuple[Any, Any, Any, Any]:
        test = np.random.default_rng(0).random(len(frame)) < 0.3
        return frame[~test], y[~test], frame[test], y[test]

    train = pd.read_csv(data / "adult" / "adult_train.csv.gz")
    test = pd.read_csv(data / "adult" / "adult_test.csv.gz")
    both = prepared(pd.concat([train, test], ignore_index=True))
    y = (both.pop("income") == ">50K").to_numpy().astype(int)
    n = len(train)
    result = {"Adult": (both[:n], y[:n], both[n:], y[n:], True)}
    frame = prepared(pd.read_csv(data / "diamonds" / "diamonds.csv.gz"))
    y = np.log(frame.pop("price").to_numpy())
    result["diamonds (log price)"] = (*halves(frame, y), False)
    frame = prepared(pd.read_csv(data / "california_housing" / "housing.csv.gz"))
    y = frame.pop("median_house_value").to_numpy() / 1e5
    result["California"] = (*halves(frame, y), False)
    return result


def quality(data: Path, threads: int) -> None:
    """Loss on unseen rows at equal settings."""
    for title, (X, y, X_test, y_test, classify) in tables(data).items():
        categorical = [j for j, kind in enumerate(X.dtypes) if str(kind) == "category"]
        print(f"\n{title}: {len(X):,} rows, {X.shape[1]} columns, {len(categorical)} categorical")
        print(f"| {'':12} | fit s | test {'log loss' if classify else 'RMSE'} |\n|---|---|---|")
        for name, maker in contenders(threads).items():
            model = maker(classify, categorical)
            seconds, _ = timed(model.fit, X, y)
            if classify:
                loss = log_loss(y_test, np.asarray(model.predict_proba(X_test)))
            else:
                loss = float(np.sqrt(np.mean((np.asarray(model.predict(X_test)) - y_test) ** 2)))
            print(f"| {name:12} | {seconds:.3f} | {loss:.5f} |", flush=True)


def memory(threads: int) -> None:
    """Peak memory of a fit beyond the data, each contender in its own process."""
    print("\nPeak memory of a fit, 1,000,000 × 28 float32, beyond the data and the imports")
    for name in contenders(threads):
        command = [sys.executable, __file__, "--threads", str(threads), "--peak", name]
        found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        print(f"| {name:12} | {found} |")


def peak(name: str, threads: int) -> None:
    maker = contenders(threads)[name]
    X, y = higgs_like(1_000_000)
    small = maker(True, [])
    small.fit(X[:1000], y[:1000])
    del small
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = kilobytes("VmRSS")
    maker(True, []).fit(X, y)
    used = kilobytes("VmHWM") - before
    print(f"{used / 1e3:.0f} MB, {used * 1024 / X.shape[0]:.0f} bytes a row")


def kilobytes(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["speed", "quality", "shapes", "memory"])
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    threads, wanted = arguments.threads, arguments.only
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if arguments.peak:
        peak(arguments.peak, threads)
        return
    if wanted in (None, "speed"):
        test = higgs_like(1_000_000, seed=1)
        race("Higgs-like", higgs_like(250_000), test, threads, arguments.rounds, skip=("CatBoost",))
    if wanted in (None, "shapes"):
        for n, d in ((5_000, 5), (20_000, 200), (1_000_000, 10)):
            test = higgs_like(100_000, d, seed=1)
            race("shape", higgs_like(n, d), test, threads, arguments.rounds, skip=("CatBoost",))
    if wanted in (None, "quality") and arguments.data:
        quality(arguments.data, threads)
    if wanted in (None, "memory"):
        memory(threads)
    print(f"\npeak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
