"""Clusters and components beside scikit-learn, intelex, faiss and kmedoids, to the same objective.

    python benchmarks/models/cluster.py [kmeans] [narrow] [medoids] [pca] [mixture] [--scale 1.0]

k-means starts from the same rows on both sides and runs as many iterations, or to the same fixed point; mixtures make as many
steps from their own starts; components are compared by the variance they hold. Two threads on both sides. Times are the least
of a few runs in turn, by the clock and of the processor; a ratio above one says that Certifit was faster.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import cluster, decomposition, mixture
from threadpoolctl import threadpool_limits

from certifit import PCA, GaussianMixture, KMeans, KMedoids

THREADS = 2
Run = Callable[[], float]
"""A fit that gives its objective."""


def intelex(module: str, name: str) -> Any:
    """A class of scikit-learn-intelex, or None where it is not installed."""
    try:
        return getattr(__import__(f"sklearnex.{module}", fromlist=[name]), name)
    except ImportError:
        return None


def compare(title: str, runs: dict[str, Run], repeats: int = 3) -> None:
    """Print the least times of each, taken in turn."""
    print(title)
    wall, busy, value = (dict.fromkeys(runs, np.inf) for _ in range(3))
    for _ in range(repeats):
        for name, run in runs.items():
            started, worked = time.perf_counter(), time.process_time()
            value[name] = run()
            wall[name] = min(wall[name], time.perf_counter() - started)
            busy[name] = min(busy[name], time.process_time() - worked)
    for name in runs:
        ratio = "" if name == "certifit" else f"   ratio {wall[name] / wall['certifit']:5.2f}"
        print(
            f"  {name:13s} {wall[name]:8.3f} s ({busy[name]:7.3f} s of processor)   objective {value[name]:.10g}{ratio}"
        )


def kmeans_runs(X: Any, start: Any, iterations: int, fixed: bool) -> dict[str, Run]:
    k = start.shape[0]

    def theirs(kind: Any) -> Run:
        return lambda: float(kind(k, init=start, n_init=1, max_iter=iterations, tol=0.0).fit(X).inertia_)

    def faiss_run() -> float:
        import faiss

        single = np.ascontiguousarray(X, dtype=np.float32)
        engine = faiss.Clustering(X.shape[1], k)
        engine.niter, engine.max_points_per_centroid, engine.min_points_per_centroid = iterations, X.shape[0], 1
        faiss.copy_array_to_vector(np.ascontiguousarray(start, dtype=np.float32).ravel(), engine.centroids)
        index = faiss.IndexFlatL2(X.shape[1])
        engine.train(single, index)
        return float(index.search(single, 1)[0].sum())

    runs: dict[str, Run] = {
        "certifit": lambda: KMeans(k, init=start, max_iter=iterations, n_jobs=THREADS).fit(X).inertia_,
        "scikit-learn": theirs(cluster.KMeans),
    }
    if (other := intelex("cluster", "KMeans")) is not None:
        runs["intelex"] = theirs(other)
    try:
        import faiss  # noqa: F401
    except ImportError:
        return runs
    if not fixed:  # it has no test of convergence
        runs["faiss"] = faiss_run
    return runs


def kmeans(scale: float) -> None:
    rng = np.random.default_rng(0)
    n = int(200_000 * scale)
    X = rng.normal(size=(n, 32)) + rng.normal(size=(64, 32))[rng.integers(64, size=n)]
    start = X[rng.choice(n, size=64, replace=False)]
    compare(f"k-means, {n} x 32, k = 64, 50 iterations", kmeans_runs(X, start, 50, fixed=False))


def narrow(scale: float) -> None:
    rng = np.random.default_rng(1)
    n = int(1_000_000 * scale)
    X = rng.normal(size=(n, 4)) + 3.0 * rng.normal(size=(20, 4))[rng.integers(20, size=n)]
    start = X[rng.choice(n, size=20, replace=False)]
    compare(f"k-means, {n} x 4, k = 20, to convergence", kmeans_runs(X, start, 1000, fixed=True), repeats=2)


def medoids(scale: float) -> None:
    rng = np.random.default_rng(2)
    n = int(4000 * scale)
    X = rng.normal(size=(n, 10)) + 2.0 * rng.normal(size=(20, 10))[rng.integers(20, size=n)]
    runs: dict[str, Run] = {
        "certifit": lambda: KMedoids(20, random_state=0, n_jobs=THREADS).fit(X).inertia_,
        "without bound": lambda: KMedoids(20, random_state=0, bound_steps=0, n_jobs=THREADS).fit(X).inertia_,
    }
    try:
        import kmedoids as peer
        from sklearn.metrics import pairwise_distances

        runs["kmedoids"] = lambda: float(peer.fasterpam(pairwise_distances(X), 20, random_state=0, n_cpu=THREADS).loss)
    except ImportError:
        print("kmedoids is not installed here: pip install kmedoids.")
    compare(f"k-medoids, {n} x 10, k = 20, distances included", runs)


def pca(scale: float) -> None:
    rng = np.random.default_rng(3)
    n = int(100_000 * scale)
    X = rng.normal(size=(n, 200)) * 0.97 ** np.arange(200) + 1.0
    runs: dict[str, Run] = {
        "certifit": lambda: float(PCA(10).fit(X).explained_variance_.sum()),
        "scikit-learn": lambda: float(decomposition.PCA(10).fit(X).explained_variance_.sum()),
    }
    if (other := intelex("decomposition", "PCA")) is not None:
        runs["intelex"] = lambda: float(other(10).fit(X).explained_variance_.sum())
    compare(f"PCA, 10 of {n} x 200", runs, repeats=5)


def gaussians(scale: float) -> None:
    rng = np.random.default_rng(4)
    n = int(100_000 * scale)
    X = rng.normal(size=(n, 10)) + 2.0 * rng.normal(size=(8, 10))[rng.integers(8, size=n)]
    options = {"tol": 0.0, "max_iter": 30, "random_state": 0}
    compare(
        f"Gaussian mixture, {n} x 10, 8 components, 30 steps",
        {
            "certifit": lambda: (
                GaussianMixture(8, init_params="k-means++", n_jobs=THREADS, **options).fit(X).lower_bound_
            ),
            "scikit-learn": lambda: mixture.GaussianMixture(8, init_params="k-means++", **options).fit(X).lower_bound_,
        },
        repeats=2,
    )


TASKS = {"kmeans": kmeans, "narrow": narrow, "medoids": medoids, "pca": pca, "mixture": gaussians}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=", ".join(TASKS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    arguments = parser.parse_args()
    unknown = set(arguments.tasks) - set(TASKS)
    if unknown:
        parser.error(f"unknown task {', '.join(sorted(unknown))}: choose among {', '.join(TASKS)}")
    warnings.simplefilter("ignore")  # a fixed number of iterations is no convergence, and both sides say so
    with threadpool_limits(THREADS):
        for name, task in TASKS.items():
            if not arguments.tasks or name in arguments.tasks:
                task(arguments.scale)


if __name__ == "__main__":
    main()
