"""Stochastic gradient descent beside scikit-learn: one pass of logistic regression over a tall table.

    python benchmarks/models/sgd.py [rows] [columns]

Both libraries fit the same penalized objective (alpha=1e-4); the table shows seconds (best of three) and the objective
reached. Certifit's time includes its certificate.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import certifit


def objective(X, y, model, alpha):
    f = X.astype(np.float64) @ model.coef_[0].astype(np.float64) + model.intercept_[0]
    return float(np.mean(np.logaddexp(0, f) - y * f) + 0.5 * alpha * np.sum(model.coef_.astype(np.float64) ** 2))


def best_of(build, X, y, repeats=3):
    seconds, model = np.inf, None
    for _ in range(repeats):
        model = build()
        start = time.perf_counter()
        model.fit(X, y)
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, model


def main(n=10**6, d=50):
    from sklearn.linear_model import SGDClassifier as Peer

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    truth = 2.0 * rng.standard_normal(d) / np.sqrt(d)
    y = (X @ truth + rng.logistic(size=n) > 0).astype(int)
    alpha = 1e-4
    print(f"{'data':<10}{'peer s':>9}{'ours s':>9}{'ratio':>7}{'peer objective':>17}{'our objective':>16}")
    for dtype in (np.float64, np.float32):
        Z = X.astype(dtype)
        peer_s, peer = best_of(lambda: Peer(loss="log_loss", alpha=alpha, max_iter=1, tol=None, random_state=0), Z, y)
        ours_s, ours = best_of(
            lambda: certifit.SGDClassifier(loss="logistic", alpha=alpha, max_iter=1, random_state=0), Z, y
        )
        values = objective(Z, y, peer, alpha), objective(Z, y, ours, alpha)
        name = np.dtype(dtype).name
        print(f"{name:<10}{peer_s:9.3f}{ours_s:9.3f}{peer_s / ours_s:7.2f}{values[0]:17.6f}{values[1]:16.6f}")


if __name__ == "__main__":
    main(*(int(float(a)) for a in sys.argv[1:3]))
