"""What a drop-in for scikit-learn costs beside our own class: microseconds of processor time of one fit on a tiny table.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 python benchmarks/dropin.py [names] [--fits 400]

The calls of `fit` that a drop-in makes on our class are recorded and made again without it, on a model of the same settings and
with the same arguments. Both are timed in turn, construction included; the least of many fits is shown.
"""

from __future__ import annotations

import argparse
import inspect
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import is_classifier

import certifit as cf
from certifit.sklearn import replacements
from certifit.sklearn.translation import fresh

WANTED = 50.0
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3)) + 4.0
NUMBERS = np.abs(X @ [1.0, -0.5, 0.3] + 0.3 * RNG.normal(size=24)) + 0.1
CLASSES = (np.median(NUMBERS) < NUMBERS).astype(int)
TEXTS = ["red green", "green blue", "blue red red", "grey"] * 6

SMALL = {"n_estimators": 1, "n_init": 1, "cv": 2, "random_state": 0}
"""Parameters of a fit that takes little itself, and always the same: the difference shows beside it."""
SETTINGS: dict[str, dict[str, Any]] = {
    "HistGradientBoostingClassifier": {"max_iter": 1},
    "HistGradientBoostingRegressor": {"max_iter": 1},
    "HashingVectorizer": {"n_features": 16},
    "KMeans": {"n_clusters": 2},
    "MiniBatchKMeans": {"n_clusters": 2, "n_init": 1},
    "MLPClassifier": {"max_iter": 2, "hidden_layer_sizes": (4,)},
    "MLPRegressor": {"max_iter": 2, "hidden_layer_sizes": (4,)},
    "Nystroem": {"n_components": 5},
    "SelectKBest": {"k": 2},
    "SpectralClustering": {"n_clusters": 2},
    "RidgeCV": {"cv": None},
    "LassoCV": {"alphas": 5},
    "ElasticNetCV": {"alphas": 5},
    "MultiTaskLassoCV": {"alphas": 5},
    "MultiTaskElasticNetCV": {"alphas": 5},
    "LogisticRegressionCV": {"Cs": 2, "l1_ratios": (0.0,), "use_legacy_attributes": False},
}
Fit = Callable[[], Any]


def base(name: str) -> Any:
    """The estimator of a class that is made of others: one of ours, the same for both."""
    if "Regressor" in name:
        return cf.LinearRegression()
    return cf.LogisticRegression() if name in ("RFE", "SequentialFeatureSelector") else cf.GaussianNB()


COUNTERPARTS: dict[str, Callable[[], Any]] = {
    "BaggingClassifier": lambda: cf.BaggingClassifier(base(""), n_estimators=1),
    "BaggingRegressor": lambda: cf.BaggingRegressor(base("Regressor"), n_estimators=1),
    "KBinsDiscretizer": lambda: cf.Discretizer(),
    "LogisticRegressionCV": lambda: cf.LogisticRegressionCV(alphas=[1e-4, 1.0], cv=2),
    "RidgeCV": lambda: cf.RidgeCV(alphas=[0.1, 1.0, 10.0]),
    "SplineTransformer": lambda: cf.SplineBasis(strategy="uniform"),
    "OneVsOneClassifier": lambda: cf.OneVsOne(base("")),
    "OneVsRestClassifier": lambda: cf.OneVsRest(base("")),
    "OutputCodeClassifier": lambda: cf.OutputCode(base("")),
}
"""Our classes beside drop-ins that ask others, or ask them for a part of the work only."""


def target(name: str, cls: Any) -> Any:
    """What is learned."""
    if name.startswith("MultiTask"):
        return np.column_stack([NUMBERS, X[:, 0]])
    if name.startswith(("OneVs", "Output")):
        return np.digitize(NUMBERS, np.quantile(NUMBERS, [0.3, 0.6]))
    return CLASSES if is_classifier(cls) or name.startswith("Select") else NUMBERS


def drop_in(name: str, cls: Any) -> Fit:
    """One fit of a drop-in."""
    known = inspect.signature(cls).parameters
    settings = {key: value for key, value in SMALL.items() if key in known} | SETTINGS.get(name, {})
    if "estimator" in known and not name.startswith("AdaBoost"):
        settings["estimator"] = base(name)
    rows: Any = TEXTS if name.endswith("Vectorizer") else (X > 4.0).astype(int) if name == "CategoricalNB" else X
    y = target(name, cls(**settings))
    return lambda: cls(**settings).fit(rows, y)


@contextmanager
def recorded(cls: Any):
    """The calls of `fit` and `partial_fit` of a class, the outer ones: type, settings, method, arguments."""
    calls: list[tuple[Any, dict[str, Any], str, tuple[Any, ...], dict[str, Any]]] = []
    inside = []

    def wrapper(method: str, own: Any) -> Any:
        def call(self: Any, *arguments: Any, **named: Any) -> Any:
            if not inside:
                settings = {key: getattr(self, key) for key in inspect.signature(type(self)).parameters}
                calls.append((type(self), settings, method, arguments, named))
            inside.append(self)
            try:
                return own(self, *arguments, **named)
            finally:
                inside.pop()

        return call

    methods = {name: getattr(cls, name) for name in ("fit", "partial_fit") if hasattr(cls, name)}
    before = {name: vars(cls).get(name) for name in methods}
    for name, own in methods.items():
        setattr(cls, name, wrapper(name, own))
    try:
        yield calls
    finally:
        for name, own in before.items():
            delattr(cls, name) if own is None else setattr(cls, name, own)


def counterpart(name: str, cls: Any, fit: Fit) -> Fit | None:
    """The same work of our own class; None where there is none."""
    if name in COUNTERPARTS:
        y = target(name, cls(base(""))) if name.startswith(("Bagging", "OneVs", "Output")) else target(name, cls())
        return lambda: COUNTERPARTS[name]().fit(X, y)
    with recorded(cls._ours) as calls:
        fit()
    if not calls:
        return None

    def again() -> None:
        for kind, settings, method, arguments, named in calls:
            getattr(fresh(kind, **settings), method)(*arguments, **named)

    return again


def cheapest(fits: list[Fit], count: int) -> list[float]:
    """Least microseconds of each, one after the other in turn."""
    least = [np.inf] * len(fits)
    for _ in range(count):
        for i, fit in enumerate(fits):
            start = time.process_time_ns()
            fit()
            least[i] = min(least[i], (time.process_time_ns() - start) / 1000)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="classes, such as Ridge; all by default")
    parser.add_argument("--fits", type=int, default=400)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'class':<32}{'drop-in':>9}{'ours':>9}{'between':>9}   µs")
    for path, (_, cls) in replacements().items():
        name = path.rpartition(".")[2]
        if not inspect.isclass(cls) or (options.names and name not in options.names):
            continue
        fit = drop_in(name, cls)
        own = counterpart(name, cls, fit)
        if own is None:
            print(f"{name:<32}{'has no counterpart: its fit is made of several':>30}")
            continue
        start = time.perf_counter()
        fit(), own()
        count = min(options.fits, max(5, int(2.0 / (time.perf_counter() - start))))
        there, here = cheapest([fit, own], count)
        mark = "" if there - here <= WANTED else "  ← above"
        print(f"{name:<32}{there:9.0f}{here:9.0f}{there - here:9.0f}{mark}", flush=True)


if __name__ == "__main__":
    main()
