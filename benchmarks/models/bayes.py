"""Models of distributions beside scikit-learn's (and Intel's patch of it, where installed), fit and prediction.

    python benchmarks/models/bayes.py [gaussian] [discriminants] [text] [categories] [evidence] [relevance]
                                      [--share 1.0] [--repeats 3]

A time is the least of several runs, the two taken in turn: seconds on the wall, and of processor. Both answers are compared:
shares of rows that both label alike and log loss of both, or the error of the predictions. `--share` takes a part of the rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import discriminant_analysis, linear_model, naive_bayes
from sklearn.metrics import log_loss

import certifit as cf

try:
    from sklearnex.linear_model import LinearRegression as _Patched  # noqa: F401 - tells whether the patch is there

    PATCHED = True
except ImportError:
    PATCHED = False

Work = Callable[[], Any]


def timed(work: Work) -> tuple[float, float, Any]:
    wall, busy = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - busy, result


def race(name: str, mine: Work, theirs: Work, agree: Callable[[Any, Any], str], repeats: int, wanted: float) -> None:
    """Both in turn; the least time of each, and what their answers have in common."""
    best = [[np.inf, np.inf], [np.inf, np.inf]]
    answers: list[Any] = [None, None]
    for _ in range(repeats):
        for k, work in enumerate((mine, theirs)):
            wall, busy, answers[k] = timed(work)
            best[k] = [min(best[k][0], wall), min(best[k][1], busy)]
    (wall, busy), (their_wall, their_busy) = best
    print(name)
    print(f"  certifit     {wall:8.3f} s ({busy:.3f} s of processor)")
    print(f"  scikit-learn {their_wall:8.3f} s ({their_busy:.3f} s of processor)")
    print(
        f"  ratio {their_wall / wall:.2f}, of processor {their_busy / busy:.2f}, wanted {wanted:g}; {agree(*answers)}",
        flush=True,
    )


def alike(y: Any) -> Callable[[Any, Any], str]:
    """Labels that are the same, and the log loss of both."""

    def agree(a: Any, b: Any) -> str:
        same = float((a.argmax(axis=1) == b.argmax(axis=1)).mean())
        losses = [log_loss(y, np.clip(p, 1e-15, 1.0)) for p in (a, b)]
        return f"same label for {100 * same:.3f} % of the rows; log loss {losses[0]:.6f} and {losses[1]:.6f}"

    return agree


def both(models: list[Any], X: Any, y: Any) -> Work:
    """Fit each, and give the probabilities of the last."""
    return lambda: [model.fit(X, y).predict_proba(X) for model in models][-1]


def blobs(n: int, d: int, K: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    mix = 0.3 * rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)  # every covariance of full rank, with room to spare
    return rng.normal(size=(n, d)) @ mix + 0.4 * rng.normal(size=(K, d))[y], y


def gaussian(share: float, repeats: int) -> None:
    X, y = blobs(int(300_000 * share), 40, 5)
    mine, theirs = both([cf.GaussianNB()], X, y), both([naive_bayes.GaussianNB()], X, y)
    race(f"GaussianNB, {X.shape[0]:,} × 40, 5 classes", mine, theirs, alike(y), repeats, 3)


def discriminants(share: float, repeats: int) -> None:
    X, y = blobs(int(200_000 * share), 50, 5)
    pair = [discriminant_analysis.LinearDiscriminantAnalysis(), discriminant_analysis.QuadraticDiscriminantAnalysis()]
    race(
        f"LDA + QDA, {X.shape[0]:,} × 50, 5 classes",
        both([cf.LDA(), cf.QDA()], X, y),
        both(pair, X, y),
        alike(y),
        repeats,
        2,
    )
    print(f"  Intel's patch has no discriminants{'' if PATCHED else '; it is not installed here'}.")


def text(share: float, repeats: int) -> None:
    n, d, words, K = int(50_000 * share), 100_000, 100, 10
    rng = np.random.default_rng(0)
    frequency = 1.0 / np.arange(1, d + 1)
    y = rng.integers(K, size=n)
    drawn = np.empty((n, words), dtype=np.int64)
    for k in range(K):
        own = frequency * rng.gamma(0.3, size=d)
        drawn[y == k] = rng.choice(d, size=(int((y == k).sum()), words), p=own / own.sum())
    X = sp.csr_matrix((np.ones(n * words), (np.repeat(np.arange(n), words), drawn.ravel())), shape=(n, d))
    X.sum_duplicates()
    mine, theirs = both([cf.MultinomialNB()], X, y), both([naive_bayes.MultinomialNB()], X, y)
    race(f"MultinomialNB, sparse, {n:,} × {d:,}", mine, theirs, alike(y), repeats, 1.2)


def categories(share: float, repeats: int) -> None:
    n, d, size, K = int(500_000 * share), 20, 30, 3
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    shares = rng.dirichlet(np.ones(size), size=(K, d)).cumsum(axis=2)
    X = np.empty((n, d))
    for j in range(d):
        X[:, j] = (rng.random(n)[:, None] > shares[y, j]).sum(axis=1)
    X = np.minimum(X, size - 1)
    mine, theirs = both([cf.CategoricalNB()], X, y), both([naive_bayes.CategoricalNB()], X, y)
    race(f"CategoricalNB, {n:,} × {d}, {size} categories", mine, theirs, alike(y), repeats, 3)


def line(n: int, d: int, useful: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, d)), np.zeros(d)
    w[:useful] = rng.normal(size=useful)
    return X, X @ w + rng.normal(size=n), w


def close(X: Any, y: Any) -> Callable[[Any, Any], str]:
    """How far the fitted values of the two are apart, in standard deviations of the noise, and the noise of both."""

    def agree(a: Any, b: Any) -> str:
        gap = float(np.sqrt(np.mean((a.predict(X) - b.predict(X)) ** 2)))
        rest = [float(np.mean((y - model.predict(X)) ** 2)) for model in (a, b)]
        return f"fitted values {gap:.2e} apart; mean squared residuals {rest[0]:.6f} and {rest[1]:.6f}"

    return agree


def evidence(share: float, repeats: int) -> None:
    X, y, _ = line(int(50_000 * share), 200, 200)
    race(
        f"Bayesian linear regression with evidence, {X.shape[0]:,} × 200",
        lambda: cf.BayesianLinearRegression().fit(X, y),
        lambda: linear_model.BayesianRidge().fit(X, y),
        close(X, y),
        repeats,
        3,
    )


def relevance(share: float, repeats: int) -> None:
    X, y, _ = line(int(5_000 * share), 300, 20)
    race(
        f"automatic relevance, {X.shape[0]:,} × 300",
        lambda: cf.BayesianLinearRegression(relevance=True).fit(X, y),
        lambda: linear_model.ARDRegression().fit(X, y),
        close(X, y),
        repeats,
        3,
    )


ROWS = {f.__name__: f for f in (gaussian, discriminants, text, categories, evidence, relevance)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="row", help=f"any of {', '.join(ROWS)}; all by default")
    parser.add_argument("--share", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    for row in options.rows or ROWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ROWS[row](options.share, options.repeats)
