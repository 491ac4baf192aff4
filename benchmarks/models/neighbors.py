"""Nearest neighbors and local regression beside scikit-learn, scikit-learn-intelex, faiss and statsmodels, on two threads.

    python benchmarks/models/neighbors.py [wide] [narrow] [line] [plane] [--repeat 5]

Each task is fit and answer together, in double precision; of the repetitions, which take turns, the least time counts. Neighbors
are compared row by row: ours are exact, faiss computes in single precision.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import neighbors as reference
from threadpoolctl import threadpool_limits

from certifit import LocallyWeightedRegression, NearestNeighbors

THREADS, K = 2, 10
Work = Callable[[], Any]


def intelex() -> Any:
    """intelex's NearestNeighbors, or None."""
    try:
        from sklearnex.neighbors import NearestNeighbors as Patched
    except ImportError:
        return None
    return Patched


def faiss_flat(X: Any, Q: Any) -> Any:
    """faiss's exhaustive search, or None."""
    try:
        import faiss
    except ImportError:
        return None

    def work() -> Any:
        faiss.omp_set_num_threads(THREADS)
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(np.ascontiguousarray(X, dtype=np.float32))
        return index.search(np.ascontiguousarray(Q, dtype=np.float32), K)[1]

    return work


def report(title: str, works: dict[str, Work | None], repeat: int, agree: Callable[[Any, Any], str]) -> None:
    """The least times of works that take turns, and how their answers agree with ours, which come first."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name, work in works.items() if work is not None}
    answers: dict[str, Any] = {}
    with threadpool_limits(THREADS):
        for _ in range(repeat):
            for name in times:
                wall, busy = time.perf_counter(), time.process_time()
                answers[name] = works[name]()  # type: ignore[misc]
                times[name].append((time.perf_counter() - wall, time.process_time() - busy))
    print(title)
    ours = None
    for name, spent in times.items():
        wall, busy = (min(part) for part in zip(*spent, strict=True))
        ours = (wall, busy, answers[name]) if ours is None else ours
        line = f"  {name:14s} {wall:8.3f} s ({busy:.3f} s of processor)"
        if name != next(iter(times)):
            line += f"  {wall / ours[0]:6.2f} x the time, {busy / ours[1]:6.2f} x the processor; {agree(ours[2], answers[name])}"
        print(line)
    for name in works.keys() - times.keys():
        print(f"  {name} is not installed here.")


def same_rows(one: Any, other: Any) -> str:
    return f"{np.mean(one == other):.5f} of the neighbors are ours"


def nearest(title: str, n: int, d: int, queries: int, repeat: int) -> None:
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(n, d)), rng.normal(size=(queries, d))
    patched = intelex()

    def by(cls: Any) -> Work:
        return lambda: cls(n_neighbors=K, n_jobs=THREADS).fit(X).kneighbors(Q)[1]

    works = {
        "certifit": by(NearestNeighbors),
        "scikit-learn": by(reference.NearestNeighbors),
        "intelex": None if patched is None else by(patched),
        "faiss flat": faiss_flat(X, Q),
    }
    report(f"{title}: {n} x {d}, {queries} queries, k = {K}", works, repeat, same_rows)


def difference(one: Any, other: Any) -> str:
    return f"answers differ by {np.abs(one - other).max():.1e}"


def line(repeat: int) -> None:
    try:
        from statsmodels.nonparametric.smoothers_lowess import lowess
    except ImportError:
        lowess = None
    rng = np.random.default_rng(0)
    x, at = rng.uniform(0, 10, size=20_000), np.linspace(0.1, 9.9, 2000)
    y = np.sin(x) + 0.3 * rng.normal(size=20_000)
    for fraction in (2 / 3, 0.1):
        same = np.ceil(fraction * x.shape[0]) / x.shape[0]  # lowess would leave out a row that lies half inside
        model = LocallyWeightedRegression("tricube", "nearest", fraction, n_jobs=THREADS)
        works: dict[str, Work | None] = {
            "certifit": lambda model=model: model.fit(x[:, None], y).predict(at[:, None]),
            "statsmodels": None if lowess is None else lambda f=same: lowess(y, x, frac=f, it=0, xvals=at),
        }
        report(
            f"local lines, 20000 rows of one column, 2000 queries, fraction {fraction:.2f}", works, repeat, difference
        )


def plane(repeat: int) -> None:
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(20_000, 5)), rng.normal(size=(2000, 5))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=20_000)

    def loop() -> Any:
        answers = []
        for q in Q:
            z = X - q
            weighted = np.column_stack([np.ones(len(X)), z]).T * np.exp(-0.5 * (z * z).sum(axis=1))
            design = np.column_stack([np.ones(len(X)), z])
            answers.append(np.linalg.solve(weighted @ design, weighted @ y)[0])
        return np.array(answers)

    model = LocallyWeightedRegression(bandwidth=1.0, n_jobs=THREADS)
    works: dict[str, Work | None] = {"certifit": lambda: model.fit(X, y).predict(Q), "NumPy, a loop": loop}
    report("local planes, 20000 rows of five columns, 2000 queries, width 1", works, repeat, difference)


TASKS: dict[str, Callable[[int], None]] = {
    "wide": lambda repeat: nearest("many columns", 50_000, 64, 4000, repeat),
    "narrow": lambda repeat: nearest("few columns", 200_000, 3, 4000, repeat),
    "line": line,
    "plane": plane,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=list(TASKS), help=", ".join(TASKS))
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    for task in options.tasks:
        TASKS[task](options.repeat)


if __name__ == "__main__":
    main()
