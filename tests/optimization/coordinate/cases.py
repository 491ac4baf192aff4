"""Problems of least squares with their optima by an independent solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np


def problem(seed, n=40, d=25, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) @ np.diag(rng.uniform(0.5, 2, d)) + rng.uniform(-1, 1, d)
    if density < 1:
        X *= rng.random((n, d)) < density
    y = X[:, :5] @ np.array([3.0, -2.0, 1.5, 0.5, -1.0]) + 0.5 * rng.standard_normal(n) + 2.0
    p = rng.uniform(0.2, 2.0, n)
    p[rng.integers(n, size=3)] = 0.0
    return X, y, p / p.sum(), rng


def objective(X, y, p, w, b, l1, l2):
    return 0.5 * p @ (y - X @ w - b) ** 2 + np.sum(l1 * np.abs(w)) + 0.5 * np.sum(l2 * w * w)


def dual_value(X, y, p, theta, l1, l2, lower, upper):
    """D(θ) by brute force, independent of the kernel."""
    v = -(X.T @ (p * theta))
    total = -p @ (0.5 * theta**2 + theta * y)
    for j, value in enumerate(v):
        if l2[j] > 0:
            w = np.clip(np.sign(value) * max(abs(value) - l1[j], 0) / l2[j], lower[j], upper[j])
        elif abs(value) <= l1[j] + 1e-12:
            w = np.clip(0.0, lower[j], upper[j])
        else:
            w = upper[j] if value > 0 else lower[j]
        if np.isinf(w):
            return -np.inf
        total -= value * w - l1[j] * abs(w) - 0.5 * l2[j] * w * w
    return total


def oracle(X, y, p, l1, l2, lower, upper, intercept):
    d = X.shape[1]
    w, b = cp.Variable(d), cp.Variable()
    f = X @ w + (b if intercept else 0)
    cost = 0.5 * cp.sum_squares(cp.multiply(np.sqrt(p), y - f))
    cost += cp.norm1(cp.multiply(l1, w)) + 0.5 * cp.sum_squares(cp.multiply(np.sqrt(l2), w))
    bounds = [w[j] >= lower[j] for j in range(d) if np.isfinite(lower[j])]
    bounds += [w[j] <= upper[j] for j in range(d) if np.isfinite(upper[j])]
    task = cp.Problem(cp.Minimize(cost), bounds)
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return task.value


CASES = {
    "lasso": {"l1": 0.1, "l2": 0.0},
    "elastic net": {"l1": 0.05, "l2": 0.1},
    "ridge": {"l1": 0.0, "l2": 0.1},
    "own l1": {"l1": np.linspace(0.01, 0.3, 25), "l2": 0.0},
    "own l1, one free": {"l1": np.r_[0.0, np.full(24, 0.1)], "l2": 0.0},
    "nonnegative lasso": {"l1": 0.05, "l2": 0.0, "lower": 0.0},
    "nonnegative": {"l1": 0.0, "l2": 0.0, "lower": 0.0},
    "box": {"l1": 0.0, "l2": 0.0, "lower": -0.5, "upper": 1.0},
    "box lasso": {"l1": 0.05, "l2": 0.02, "lower": -0.5, "upper": 1.0},
    "box without zero": {"l1": 0.05, "l2": 0.0, "lower": 0.1, "upper": np.inf},
    "unpenalized": {"l1": 0.0, "l2": 0.0},
    "zero": {"l1": 1e3, "l2": 0.0},
}


def full(case, d):
    values = {"l1": 0.0, "l2": 0.0, "lower": -np.inf, "upper": np.inf} | case
    return {name: np.broadcast_to(np.asarray(value, float), (d,)).copy() for name, value in values.items()}
