"""Logistic and softmax regression beside their peers.

    python benchmarks/logistic.py [task …]

The protocol is that of run.py: each contender in a process of its own, two threads, peers at their loosest tolerance that
comes within 1e-6 of the best objective, best of interleaved rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from linear_tasks import OURS, Data, Task

GRADIENT = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
DUAL = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)


# --- binary, L2, tall ------------------------------------------------------------------------------------------------


def tall_data() -> Data:
    rng = np.random.default_rng(0)
    n, d = 100_000, 100
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)) / np.sqrt(d))
    f = X @ rng.normal(size=d) * 1.5 / np.sqrt(d) - 0.5
    return {"X": X, "y": (rng.random(n) < 1 / (1 + np.exp(-f))).astype(int), "alpha": 1.0 / n}


def binary_objective(data: Data, coef: np.ndarray, intercept: Any) -> float:
    w, y = np.ravel(coef), data["y"]
    f = data["X"] @ w + float(np.ravel(intercept)[0])
    return float(np.mean(np.logaddexp(0.0, f) - y * f)) + 0.5 * data["alpha"] * float(w @ w)


TALL = Task("logistic_l2", "logistic L2, 100,000 × 100, C = 1, gap 1e-6", tall_data, binary_objective, 1e-6, "≥ 2")


# --- softmax, L2 -----------------------------------------------------------------------------------------------------


def softmax_data() -> Data:
    rng = np.random.default_rng(0)
    n, d, k = 50_000, 60, 8
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(d, d)) / np.sqrt(d))
    y = (X @ rng.normal(size=(d, k)) * 1.5 / np.sqrt(d) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return {"X": X, "y": y, "alpha": 1.0 / n}


def softmax_objective(data: Data, coef: np.ndarray, intercept: Any) -> float:
    f = data["X"] @ coef.T + intercept
    f -= f.max(axis=1, keepdims=True)
    loss = np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(f)), data["y"]]
    return float(loss.mean()) + 0.5 * data["alpha"] * float((coef * coef).sum())


SOFTMAX = Task(
    "softmax_l2", "softmax L2, 50,000 × 60, 8 classes, C = 1, gap 1e-6", softmax_data, softmax_objective, 1e-6, "≥ 2"
)


# --- who solves the two ----------------------------------------------------------------------------------------------


@TALL.solved_by("certifit", OURS)
@SOFTMAX.solved_by("certifit", OURS)
def certifit_logistic(data: Data, tol: float) -> tuple[np.ndarray, Any]:
    from certifit import LogisticRegression

    m = LogisticRegression(alpha=data["alpha"], tol=tol).fit(data["X"], data["y"])
    return m.coef_, m.intercept_


@TALL.solved_by("scikit-learn lbfgs", GRADIENT)
@SOFTMAX.solved_by("scikit-learn lbfgs", GRADIENT)
def sklearn_logistic(data: Data, tol: float, solver: str = "lbfgs", **options: Any) -> tuple[np.ndarray, Any]:
    from sklearn.linear_model import LogisticRegression

    C = 1.0 / (data["alpha"] * len(data["y"]))
    m = LogisticRegression(C=C, solver=solver, tol=tol, max_iter=1000, **options).fit(data["X"], data["y"])
    return m.coef_, m.intercept_


@TALL.solved_by("scikit-learn newton-cholesky", GRADIENT)
@SOFTMAX.solved_by("scikit-learn newton-cholesky", GRADIENT)
def newton_cholesky(data: Data, tol: float) -> tuple[np.ndarray, Any]:
    return sklearn_logistic(data, tol, "newton-cholesky")


@TALL.solved_by("LIBLINEAR", DUAL)
def liblinear(data: Data, tol: float) -> tuple[np.ndarray, Any]:
    # A large scaling keeps the intercept, which LIBLINEAR penalizes, as good as free.
    return sklearn_logistic(data, tol, "liblinear", intercept_scaling=100.0)


# --- binary, L1, sparse and wide -------------------------------------------------------------------------------------


def sparse_data() -> Data:
    rng = np.random.default_rng(0)
    n, d = 10_000, 50_000
    X = sp.random(n, d, density=0.002, format="csr", random_state=0, data_rvs=rng.standard_normal)
    w = np.zeros(d)
    w[rng.choice(d, 300, replace=False)] = 3 * rng.normal(size=300)
    y = (rng.random(n) < 1 / (1 + np.exp(-3 * (X @ w)))).astype(int)
    largest = np.abs(X.T @ (y - 0.5)).max() / n
    return {"X": X, "X_csc": X.tocsc(), "y": y, "alpha": 0.1 * largest}


def sparse_objective(data: Data, coef: np.ndarray, intercept: Any) -> float:
    w, y = np.ravel(coef), data["y"]
    f = data["X"] @ w
    return float(np.mean(np.logaddexp(0.0, f) - y * f)) + data["alpha"] * float(np.abs(w).sum())


SPARSE = Task(
    "logistic_l1_sparse",
    "logistic L1, sparse 10,000 × 50,000, density 0.002, λmax/10, gap 1e-6",
    sparse_data,
    sparse_objective,
    1e-6,
    "≥ 1.2",
)


@SPARSE.solved_by("certifit", OURS)
def certifit_sparse(data: Data, tol: float) -> tuple[np.ndarray, Any]:
    from certifit import LogisticRegression

    m = LogisticRegression(alpha=data["alpha"], penalty="l1", fit_intercept=False, tol=tol).fit(data["X"], data["y"])
    return m.coef_, 0.0


@SPARSE.solved_by("LIBLINEAR", DUAL)
def liblinear_sparse(data: Data, tol: float) -> tuple[np.ndarray, Any]:
    return sklearn_logistic(data, tol, "liblinear", penalty="l1", fit_intercept=False)


@SPARSE.solved_by("celer", DUAL)
def celer_sparse(data: Data, tol: float) -> tuple[np.ndarray, Any]:
    from celer import LogisticRegression

    C = 1.0 / (data["alpha"] * len(data["y"]))
    m = LogisticRegression(C=C, fit_intercept=False, tol=tol).fit(data["X_csc"], data["y"])
    return m.coef_, 0.0


@SPARSE.solved_by("skglm", DUAL)
def skglm_sparse(data: Data, tol: float) -> tuple[np.ndarray, Any]:
    from skglm import SparseLogisticRegression

    m = SparseLogisticRegression(alpha=data["alpha"], fit_intercept=False, tol=tol).fit(data["X_csc"], data["y"])
    return m.coef_, 0.0


TASKS = {task.name: task for task in (TALL, SOFTMAX, SPARSE)}

if __name__ == "__main__":
    import run

    run.MODULES = ("logistic",)
    run.main()
