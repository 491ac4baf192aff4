"""A contest beside LightGBM's defaults and the models of LazyPredict's list, on the same sealed rows.

    python benchmarks/contest/contest.py --data FOLDER [--time 120] [--lazy] [adult] [california]

FOLDER holds the public tables (adult/adult_train.csv.gz, california_housing/housing.csv.gz). `--lazy` fits every model of
LazyPredict's list with its default settings, each in a process of its own with a time limit; it needs `lazypredict`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

TABLES = {
    "adult": ("adult/adult_train.csv.gz", "income"),
    "california": ("california_housing/housing.csv.gz", "median_house_value"),
}
LIMIT = 60.0  # seconds for a model of the list


def contest(path: Path, target: str, seconds: float) -> tuple[Any, Any, Any, float]:
    from certifit import Contest

    started = time.perf_counter()
    held = Contest(str(path), target, time=seconds)
    result = held.run()
    return held, result, split_of(held), time.perf_counter() - started


def split_of(held: Any) -> Any:
    """The split the contest made, from its options alone."""
    from certifit.evaluation.splits.sealed import sealed_split

    table = held.table
    return sealed_split(
        table.y, test_size=held.options.test_size, task=table.task.kind, codes=table.codes, seed=held.options.seed
    )


def score(y: np.ndarray, predicted: np.ndarray, classes: tuple[str, ...]) -> float:
    if not classes:
        return float(np.sqrt(np.mean((y - predicted) ** 2)))
    code = np.array([classes.index(label) for label in y])
    return float(-np.mean(np.log(np.clip(predicted[np.arange(len(y)), code], 1e-15, 1.0))))


def lightgbm_default(held: Any, split: Any) -> float:
    import lightgbm as lgb

    frame = held.table.features.to_pandas()
    for name in frame.columns:
        if frame[name].dtype.kind not in "fiu":
            frame[name] = frame[name].astype("category")
    y = held.table.y
    train, test = split.train, split.test
    if held.classes:
        model = lgb.LGBMClassifier(verbose=-1, n_jobs=2).fit(frame.iloc[train], y[train])
        p = model.predict_proba(frame.iloc[test])[:, [list(model.classes_).index(c) for c in held.classes]]
        return score(y[test], p, held.classes)
    model = lgb.LGBMRegressor(verbose=-1, n_jobs=2).fit(frame.iloc[train], y[train])
    return score(y[test], model.predict(frame.iloc[test]), ())


def _one_of_the_list(name: str, X: Any, y: Any, train: Any, test: Any, classes: Any, pipe: Any) -> None:
    """In a process of its own: some models of the list need more memory or time than there is."""
    warnings.simplefilter("ignore")
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [c for c in X.columns if X[c].dtype.kind in "fiu"]
    words = [c for c in X.columns if c not in numbers]
    prepare = ColumnTransformer(
        [
            ("n", Pipeline([("i", SimpleImputer()), ("s", StandardScaler())]), numbers),
            (
                "c",
                Pipeline(
                    [
                        ("i", SimpleImputer(strategy="constant", fill_value="missing")),
                        ("o", OneHotEncoder(handle_unknown="ignore", sparse_output=False)),
                    ]
                ),
                words,
            ),
        ]
    )
    try:
        from lazypredict.Supervised import CLASSIFIERS, REGRESSORS

        model_class = dict(CLASSIFIERS if classes else REGRESSORS)[name]
        target = np.array([classes.index(label) for label in y]) if classes else y
        model = Pipeline([("prepare", prepare), ("model", model_class())]).fit(X.iloc[train], target[train])
        if classes:
            pipe.send(score(y[test], model.predict_proba(X.iloc[test]), classes))
        else:
            pipe.send(score(y[test], model.predict(X.iloc[test]), ()))
    except Exception as error:  # a model that cannot do it is out of the race
        pipe.send(f"{type(error).__name__}: {error}"[:80])


def lazy_names(pipe: Any, classifies: bool) -> None:
    """In a process of its own: the package patches scikit-learn when it is imported."""
    from lazypredict.Supervised import CLASSIFIERS, REGRESSORS

    pipe.send([name for name, _ in (CLASSIFIERS if classifies else REGRESSORS)])


def lazy_list(held: Any, split: Any) -> dict[str, Any]:
    """Scores of the models in LazyPredict's list."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=lazy_names, args=(there, bool(held.classes)))
    process.start()
    names = here.recv()
    process.join()
    X = held.table.features.to_pandas()
    found: dict[str, Any] = {}
    for name in names:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_one_of_the_list, args=(name, X, held.table.y, split.train, split.test, held.classes, there)
        )
        process.start()
        found[name] = here.recv() if here.poll(LIMIT) else f"more than {LIMIT:.0f} s"
        if process.is_alive():
            process.terminate()
        process.join()
        print(f"  {name}: {found[name]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--time", type=float, default=120.0)
    parser.add_argument("--lazy", action="store_true")
    given = parser.parse_args()
    for name in given.tables or TABLES:
        file, target = TABLES[name]
        held, result, split, seconds = contest(given.data / file, target, given.time)
        best = result.record["entrants"][0]
        answer = {
            "table": name,
            "metric": result.record["task"]["metric"]["label"],
            "certifit": best["score"]["value"],
            "winner": best["label"],
            "seconds": round(seconds, 1),
            "lightgbm default": lightgbm_default(held, split),
        }
        if given.lazy:
            scores = {k: v for k, v in lazy_list(held, split).items() if isinstance(v, float)}
            leader = min(scores, key=scores.__getitem__)
            answer["best of the list"] = [leader, scores[leader]]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
