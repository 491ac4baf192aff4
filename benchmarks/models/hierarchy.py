"""Hierarchies and spectral clusters beside SciPy, scikit-learn and fastcluster, on two threads.

    OMP_NUM_THREADS=2 python benchmarks/models/hierarchy.py [average] [single] [ward] [spectral]

Each time is the best of three. Heights of the merges are compared with SciPy's where both give them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from sklearn import cluster as peer
from sklearn.datasets import make_moons

import certifit

try:
    import fastcluster
except ImportError:
    fastcluster = None

ROUNDS = 3


def timed(name: str, contenders: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Times in turn, so that a slow moment of the machine meets all; one line of the table."""
    best, result = dict.fromkeys(contenders, np.inf), {}
    for _ in range(ROUNDS):
        for who, work in contenders.items():
            start = time.perf_counter()
            result[who] = work()
            best[who] = min(best[who], time.perf_counter() - start)
    ours = best.pop("certifit")
    others = "  ".join(f"{who} {seconds:.2f} s" for who, seconds in best.items())
    print(f"{name:44s} certifit {ours:.2f} s  {others}  ratio {min(best.values()) / ours:.1f}", flush=True)
    return result


def hierarchy(name: str, n: int, d: int, *, matrix: bool) -> None:
    """One linkage; SciPy only where n² distances are to be had."""
    X = np.random.default_rng(0).normal(size=(n, d))
    contenders: dict[str, Callable[[], Any]] = {
        "certifit": lambda: certifit.AgglomerativeClustering(linkage=name, n_jobs=2).fit(X).linkage_matrix_
    }
    if matrix:
        contenders["scipy"] = lambda: linkage(X, name)
    if name != "average":
        contenders["scikit-learn"] = lambda: peer.AgglomerativeClustering(linkage=name).fit(X)
    if fastcluster is not None:
        contenders["fastcluster"] = lambda: (
            fastcluster.linkage(X, name) if matrix else fastcluster.linkage_vector(X, name)
        )
    found = timed(f"{name} linkage, n={n}, d={d}", contenders)
    if matrix:
        np.testing.assert_allclose(found["certifit"][:, 2], found["scipy"][:, 2], rtol=1e-9)


def spectral(n: int, noise: float) -> None:
    """Little noise leaves the moons apart, and their graph in pieces; more of it connects them."""
    X, y = make_moons(n, noise=noise, random_state=0)
    labels = timed(
        f"spectral, two moons, n={n}, noise {noise}",
        {
            "certifit": lambda: certifit.SpectralClustering(2, n_jobs=2, random_state=0).fit_predict(X),
            "scikit-learn": lambda: peer.SpectralClustering(
                2, affinity="nearest_neighbors", n_jobs=2, random_state=0
            ).fit_predict(X),
        },
    )
    for who, found in labels.items():
        print(f"    {who}: agreement with the moons {certifit.metrics.adjusted_rand(found, y):.3f}")


RUNS: dict[str, Callable[[], None]] = {
    "average": lambda: hierarchy("average", 6000, 10, matrix=True),
    "single": lambda: hierarchy("single", 50_000, 3, matrix=False),
    "ward": lambda: hierarchy("ward", 6000, 10, matrix=True),
    "spectral": lambda: [spectral(n, noise) for noise in (0.05, 0.15) for n in (4000, 20_000)] and None,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", choices=[*RUNS, []], default=[])
    for what in parser.parse_args().what or RUNS:
        RUNS[what]()
