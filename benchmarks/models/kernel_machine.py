"""Machines on kernels beside LIBSVM (through scikit-learn) and scikit-learn-intelex, to the same objective.

    python benchmarks/models/kernel_machine.py [svc8000] [mnist] [hard-linear] [hard-rbf] [memory] [--threads 2] [--repeat 3]

Each peer runs at its default tolerance; Certifit at a relative gap at which its objective is at most the peers'. Printed: wall
and processor seconds of the best of some interleaved runs, the objective (its excess over the best of all), and the accuracy on
rows left out.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tasks import parse_tasks

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def peers(threads: int, tol: float) -> dict[str, Callable[..., Any]]:
    """The classifiers, by name; intelex where it is installed."""
    import sklearn.svm

    from certifit import SVC

    def ours(**options: Any) -> Any:
        return SVC(n_jobs=threads, tol=tol, **options)

    found: dict[str, Callable[..., Any]] = {"certifit": ours, "LIBSVM": sklearn.svm.SVC}
    try:
        import sklearnex.svm
    except ImportError:
        print("scikit-learn-intelex is not installed here: pip install scikit-learn-intelex.")
    else:
        found["intelex"] = sklearnex.svm.SVC
    return found


def objective(model: Any, X: np.ndarray, y: np.ndarray, C: float) -> float:
    """Σ over pairs of the primal objective, computed alike for all from what the model says of itself."""
    from certifit.kernels import RBF, Linear

    kernel = Linear() if model.kernel == "linear" else RBF(float(model.gamma))
    classes, total, pair = model.classes_, 0.0, 0
    starts = np.concatenate([[0], np.cumsum(model.n_support_)])
    dual = np.asarray(model.dual_coef_)
    for i in range(len(classes)):
        for j in range(i + 1, len(classes)):
            first, second = np.arange(starts[i], starts[i + 1]), np.arange(starts[j], starts[j + 1])
            beta = np.concatenate([dual[j - 1, first], dual[i, second]])
            vectors = np.asarray(model.support_vectors_)[np.concatenate([first, second])]
            rows = (y == classes[i]) | (y == classes[j])
            sides = np.where(y[rows] == classes[1 if len(classes) == 2 else i], 1.0, -1.0)
            scores = np.asarray(kernel(X[rows], vectors)) @ beta
            intercept = float(np.ravel(model.intercept_)[pair])
            total += C * np.maximum(0.0, 1.0 - sides * (scores + intercept)).sum()
            total += 0.5 * beta @ (np.asarray(kernel(vectors)) @ beta)
            pair += 1
    return float(total)


def compare(name: str, train: Any, test: Any, arguments: argparse.Namespace, tol: float, **options: Any) -> None:
    X, y = train
    results: dict[str, list[Any]] = {}
    for turn in range(arguments.repeat):
        for who, make in peers(arguments.threads, tol).items():
            if turn and who == "LIBSVM" and results[who][0] > 20:
                continue  # the slow one once
            model = make(**options)
            wall, busy = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            spent = [time.perf_counter() - wall, time.process_time() - busy]
            kept = results.setdefault(who, [np.inf, np.inf, model])
            kept[0], kept[1], kept[2] = min(kept[0], spent[0]), min(kept[1], spent[1]), model
    values = {who: objective(model, X, y, options.get("C", 1.0)) for who, (_, _, model) in results.items()}
    best = min(values.values())
    print(f"{name}: {X.shape[0]} x {X.shape[1]}, {len(np.unique(y))} classes, {options}")
    base_wall, base_busy, _ = results["certifit"]
    for who, (wall, busy, model) in results.items():
        ratio = f"ratio {wall / base_wall:.2f} wall, {busy / base_busy:.2f} processor; " if who != "certifit" else ""
        print(
            f"  {who:9} {wall:7.2f} s ({busy:.2f} s of processor); {ratio}objective {values[who] / best - 1:.1e} above the best; "
            f"accuracy {np.mean(model.predict(test[0]) == test[1]):.4f}; {int(np.sum(model.n_support_))} support vectors"
        )


def curved(n: int, d: int, noise: float, seed: int = 0) -> tuple[Any, Any]:
    """Two classes with a curved boundary, and rows left out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 2000, d))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] + noise * rng.normal(size=n + 2000)
    y = (f > 0).astype(int)
    return (X[:n], y[:n]), (X[n:], y[n:])


def apart(n: int, d: int, linear: bool, seed: int = 0) -> tuple[Any, Any]:
    """Two classes with a narrow street between them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * n, d))
    f = X @ rng.normal(size=d) / np.sqrt(d) if linear else np.sin(2 * X[:, 0]) + X[:, 1]
    X, y = X[np.abs(f) > 0.03], (f > 0).astype(int)[np.abs(f) > 0.03]
    return (X[:n], y[:n]), (X[n : n + 2000], y[n : n + 2000])


def svc8000(arguments: argparse.Namespace) -> None:
    compare("SVC", *curved(8000, 20, 0.5), arguments, 1e-5, C=1.0, gamma=0.05, kernel="rbf")


def mnist(arguments: argparse.Namespace) -> None:
    path = arguments.data / "mnist" / "mnist.npz"
    if not path.exists():
        print(f"mnist: there is no {path}; give --data.")
        return
    with np.load(path) as stored:
        names = {name.lower(): stored[name] for name in stored.files}
    X = next(v for k, v in names.items() if "x" in k and "train" in k).reshape(-1, 784).astype(np.float64) / 255.0
    y = next(v for k, v in names.items() if "y" in k and "train" in k)
    rng = np.random.default_rng(0).permutation(X.shape[0])
    some, other = rng[:10_000], rng[10_000:12_000]
    gamma = float(1.0 / (784 * X[some].var()))
    train, test = (X[some], y[some]), (X[other], y[other])
    compare("SVC, digits", train, test, arguments, 1e-5, C=5.0, gamma=gamma, kernel="rbf")


def hard_linear(arguments: argparse.Namespace) -> None:
    compare("SVC, hard margin", *apart(5000, 10, True), arguments, 1e-8, C=1000.0, kernel="linear")


def hard_rbf(arguments: argparse.Namespace) -> None:
    compare("SVC, hard margin", *apart(5000, 5, False), arguments, 5e-6, C=1000.0, gamma=0.2, kernel="rbf")


def memory(arguments: argparse.Namespace) -> None:
    """In a child, so that what was allocated before does not count."""
    from certifit import SVC

    (X, y), _ = curved(50_000, 20, 0.5)
    if os.fork():
        os.wait()
        return
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = SVC(gamma=0.05, n_jobs=arguments.threads).fit(X, y)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory: 50000 x 20, {(after - before) / 2**10:.0f} MiB beyond the data; {model.certificate_}")
    os._exit(0)


TASKS = {"svc8000": svc8000, "mnist": mnist, "hard-linear": hard_linear, "hard-rbf": hard_rbf, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of mnist/mnist.npz")
    arguments, chosen = parse_tasks(parser, TASKS)
    for name in chosen:
        TASKS[name](arguments)


if __name__ == "__main__":
    main()
