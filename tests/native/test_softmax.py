"""One pass of softmax regression against NumPy, a descent against SciPy, for every width and remainder; threads; bad input."""

from __future__ import annotations

from typing import Any

import certifit._native.softmax as native
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax


def run(X: Any, y: Any, p: Any, W: Any, b: Any, threads: int = 1) -> tuple[float, Any, Any, Any]:
    K, n = W.shape[0], X.shape[0]
    f, pi, sums = np.empty((K, n)), np.empty((K, n)), np.empty((K, X.shape[1] + 1))
    return native.evaluate(X, y, p, W, b, f, pi, sums, threads), f, pi, sums


def data(n: int, d: int, K: int, dtype: Any = np.float64) -> tuple[Any, ...]:
    rng = np.random.default_rng(n + 31 * d + 7 * K)
    p = rng.uniform(0.1, 1.0, n)
    X = rng.normal(size=(n, d)).astype(dtype)
    return X, rng.integers(0, K, n), p / p.sum(), rng.normal(size=(K, d)), rng.normal(size=K)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [1, 2, 3, 7, 8, 9, 17])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 5), (64, 3), (67, 0), (130, 11), (5000, 40)])
def test_agrees_with_numpy(n: int, d: int, K: int, dtype: Any) -> None:
    X, y, p, W, b = data(n, d, K, dtype)
    value, f, pi, sums = run(X, y, p, W, b)
    wanted = X.astype(np.float64) @ W.T + b
    np.testing.assert_allclose(f, wanted.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(pi, softmax(wanted, axis=1).T, rtol=1e-10, atol=1e-300)
    assert value == pytest.approx(-float(p @ log_softmax(wanted, axis=1)[np.arange(n), y]), rel=1e-11, abs=1e-15)
    slope = softmax(wanted, axis=1)
    slope[np.arange(n), y] -= 1.0
    slope *= p[:, None]
    np.testing.assert_allclose(sums, np.column_stack([slope.sum(axis=0), slope.T @ X]), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("K", [2, 5, 8, 11])
@pytest.mark.parametrize(("n", "d"), [(3, 2), (70, 5), (4000, 33)])
def test_the_dual_point_agrees_with_numpy(n: int, d: int, K: int) -> None:
    X, y, p, W, b = data(n, d, K)
    pi = np.ascontiguousarray(softmax(X @ W.T + b, axis=1).T)
    shift = 0.1 * np.random.default_rng(0).normal(size=K)
    sums = np.empty((K, d + 1))
    entropy, inside = native.dual(X, y, p, pi, shift, sums, 2)
    q = pi + pi * (shift[:, None] - shift @ pi)
    assert inside
    assert entropy == pytest.approx(float((q * np.log(q)).sum(axis=0) @ p), rel=1e-11)
    theta = q.copy()
    theta[y, np.arange(n)] -= 1.0
    np.testing.assert_allclose(sums, np.column_stack([theta @ p, (theta * p) @ X]), rtol=1e-9, atol=1e-13)
    assert not native.dual(X, y, p, pi, 1e3 * np.sign(shift) * np.arange(K), sums, 1)[1]


def test_threads_do_not_change_a_bit() -> None:
    arguments = data(40_000, 30, 5)
    one, two, many = (run(*arguments, threads=t) for t in (1, 2, 7))
    for other in (two, many):
        assert one[0] == other[0]
        for a, b in zip(one[1:], other[1:], strict=True):
            np.testing.assert_array_equal(a, b)


def test_huge_scores_do_not_overflow_and_nan_stays_nan() -> None:
    X, y, p, W, b = data(20, 3, 4)
    value, _, pi, _ = run(X, y, p, 1e300 * W, b)
    assert np.isfinite(value)
    np.testing.assert_allclose(pi.sum(axis=0), 1.0)
    W[2, 1] = np.nan
    assert np.isnan(run(X, y, p, W, b)[0])


@pytest.mark.parametrize("change", ["y", "p", "W", "b", "class", "f", "threads"])
def test_bad_shapes_are_refused(change: str) -> None:
    X, y, p, W, b = data(10, 3, 4)
    f, pi, sums = np.empty((4, 10)), np.empty((4, 10)), np.empty((4, 4))
    bad: dict[str, tuple[Any, ...]] = {
        "y": (X, y[:5], p, W, b, f, pi, sums, 1),
        "p": (X, y, p[:5], W, b, f, pi, sums, 1),
        "W": (X, y, p, np.ascontiguousarray(W[:, :2]), b, f, pi, sums, 1),
        "b": (X, y, p, W, b[:2], f, pi, sums, 1),
        "class": (X, y + 4, p, W, b, f, pi, sums, 1),
        "f": (X, y, p, W, b, f[:2], pi, sums, 1),
        "threads": (X, y, p, W, b, f, pi, sums, 0),
    }
    with pytest.raises(ValueError):
        native.evaluate(*bad[change])


def descend(
    arguments: tuple[Any, ...], intercept: bool = True, inverse: Any = None, threads: int = 1, **changed: Any
) -> Any:
    """(x, objective, bound, iterations) from zero, by the diagonal that bounds the Hessian unless there is another inverse."""
    X, y, p, W, _ = arguments
    K, d = W.shape
    width = d + intercept
    most = np.concatenate([np.ones(width - d), p @ X.astype(np.float64) ** 2 + 0.1])
    if inverse is None:
        inverse = native.Inverse(np.ascontiguousarray(np.tile(2.0 / most, (K, 1))))
    options = native.Options(intercept=intercept, tolerance=1e-10, scale=1.0, max_iter=500, threads=threads)
    given = {"X": X, "y": y, "p": p, "l2": np.full(d, 0.1), "start": np.zeros((K, width)), "inverse": inverse}
    given |= {"options": options, "patience": 500, "step": 1e9, "least": 20}
    return native.descend(*{**given, **changed}.values())


def penalized(x: Any, X: Any, y: Any, p: Any, K: int, intercept: bool) -> tuple[float, Any]:
    """Value and gradient with a penalty of 0.1."""
    x = x.reshape(K, -1)
    w, X = x[:, intercept:], X.astype(np.float64)
    f = X @ w.T + (x[:, 0] if intercept else 0.0)
    slope = softmax(f, axis=1)
    slope[np.arange(len(y)), y] -= 1.0
    slope *= p[:, None]
    g = slope.T @ X + 0.1 * w
    value = -float(p @ log_softmax(f, axis=1)[np.arange(len(y)), y]) + 0.05 * float((w * w).sum())
    return value, (np.column_stack([slope.sum(axis=0), g]) if intercept else g).ravel()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [2, 3, 8, 9])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (20, 1), (67, 5), (20, 40), (4000, 11)])
def test_a_descent_proves_its_gap(n: int, d: int, K: int, dtype: Any, intercept: bool) -> None:
    arguments = data(n, d, K, dtype)
    x, objective, bound, iterations = descend(arguments, intercept)
    X, y, p, *_ = arguments
    value, _ = penalized(x.ravel(), X, y, p, K, intercept)
    assert objective == pytest.approx(value, rel=1e-12, abs=1e-15)
    assert 0 <= iterations <= 500
    if not intercept or np.bincount(y, minlength=K).all():  # a class that is nowhere wants an intercept of −∞
        best = minimize(penalized, x.ravel(), (X, y, p, K, intercept), "L-BFGS-B", jac=True, tol=1e-15)
        assert objective - bound <= 1e-10
        assert bound <= best.fun + 1e-15
    else:
        assert bound <= objective + 1e-15


def test_an_inverse_for_each_of_the_vectors_of_the_classes() -> None:
    X, _, p, *_ = arguments = data(500, 6, 3)
    vectors = np.linalg.qr(np.column_stack([np.ones(3), np.random.default_rng(0).normal(size=(3, 2))]))[0]
    ones = np.column_stack([np.ones(500), X])
    H = (ones.T * p) @ ones / 3 + np.diag([0.0, *np.full(6, 0.1)])
    inverse = native.Inverse(np.ascontiguousarray(vectors), np.zeros(3, dtype=np.int64), np.linalg.inv(H)[None])
    found, wanted = descend(arguments, inverse=inverse), descend(arguments)
    assert found[1] == pytest.approx(wanted[1], abs=2e-10)
    assert found[1] - found[2] <= 1e-10
    assert found[3] < wanted[3]


def test_a_factor_of_all_classes_is_an_inverse_too() -> None:
    """The Hessian of constant scores by its factor: the steps of its inverse by classes."""
    arguments = data(500, 6, 3)
    X, p = arguments[0], arguments[2]
    ones = np.column_stack([np.ones(500), X])
    gram, penalty = (ones.T * p) @ ones / 3, np.diag([0.0, *np.full(6, 0.1)])
    vectors = np.linalg.qr(np.column_stack([np.ones(3), np.random.default_rng(0).normal(size=(3, 2))]))[0]
    by_class = native.Inverse(
        np.ascontiguousarray(vectors), np.zeros(3, dtype=np.int64), np.linalg.inv(gram + penalty)[None]
    )
    unit = np.random.default_rng(1).uniform(0.5, 2.0, 21)
    whole = np.kron(np.eye(3), gram + penalty) * unit[:, None] * unit
    factor = native.Inverse(np.ascontiguousarray(np.linalg.cholesky(whole).T), unit)
    found, wanted = descend(arguments, inverse=factor), descend(arguments, inverse=by_class)
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-9)
    assert found[3] == wanted[3]
    assert found[1] - found[2] <= 1e-10


BAD = {
    "y": {"y": np.zeros(3, dtype=np.int64)},
    "class": {"y": np.full(10, 4)},
    "p": {"p": np.ones(3)},
    "l2": {"l2": np.ones(2)},
    "no penalty": {"l2": np.zeros(3)},
    "start": {"start": np.zeros((4, 3))},
    "classes": {"start": np.zeros((0, 4))},
    "diagonal": {"inverse": native.Inverse(np.ones((4, 3)))},
    "vectors": {"inverse": native.Inverse(np.eye(3), np.zeros(4, dtype=np.int64), np.eye(4)[None])},
    "which": {"inverse": native.Inverse(np.eye(4), np.ones(4, dtype=np.int64), np.eye(4)[None])},
    "before": {"inverse": native.Inverse(np.eye(4), np.full(4, -1), np.eye(4)[None])},
    "matrices": {"inverse": native.Inverse(np.eye(4), np.zeros(4, dtype=np.int64), np.eye(3)[None])},
    "factor": {"inverse": native.Inverse(np.eye(12), np.ones(12))},
    "unit": {"inverse": native.Inverse(np.eye(16), np.ones(4))},
    "least": {"least": 0},
}


@pytest.mark.parametrize("change", BAD)
def test_a_descent_refuses_what_does_not_fit(change: str) -> None:
    arguments = data(10, 3, 4)
    descend(arguments)
    with pytest.raises(ValueError):
        descend(arguments, **BAD[change])


def fitted(data: tuple[Any, ...], l2: Any, tol: float = 1e-9, most: float = 1e9, *, intercept: bool = True) -> Any:
    """Newton's steps by conjugate gradients from zero."""
    X, y, p, W, _ = data
    options = native.Options(intercept, tol, 1.0, 200, 1)
    return native.truncated(X, y, p, l2, np.zeros((W.shape[0], X.shape[1] + intercept)), options, most)


def by_quasi_newton(data: tuple[Any, ...], l2: Any, intercept: bool) -> float:
    """The least value, by another method and NumPy alone."""
    X, y, p, W, _ = data
    X, K = X.astype(np.float64), W.shape[0]
    A = np.column_stack([np.ones(len(y)), X]) if intercept else X
    strength = np.concatenate([[0.0], l2]) if intercept else l2

    def value(x: Any) -> Any:
        V = x.reshape(K, -1)
        f = A @ V.T
        slope = softmax(f, axis=1)
        slope[np.arange(len(y)), y] -= 1.0
        risk = -float(p @ log_softmax(f, axis=1)[np.arange(len(y)), y])
        return risk + 0.5 * float((V * V * strength).sum()), ((slope * p[:, None]).T @ A + V * strength).ravel()

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
    return float(minimize(value, np.zeros(K * A.shape[1]), jac=True, method="L-BFGS-B", options=options).fun)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [2, 3, 5, 8, 11])
@pytest.mark.parametrize(("n", "d"), [(70, 3), (64, 41), (33, 150), (130, 16)])
def test_steps_reach_the_optimum(n: int, d: int, K: int, dtype: Any, intercept: bool) -> None:
    given, l2 = data(n, d, K, dtype), np.linspace(0.01, 0.1, d)
    x, objective, bound, _ = fitted(given, l2, intercept=intercept)
    best = by_quasi_newton(given, l2, intercept)
    assert objective - bound <= 1e-9
    assert bound <= best + 1e-12
    assert objective <= best + 1e-9
    np.testing.assert_allclose(x.sum(axis=0), 0.0, atol=1e-12)


def test_steps_that_are_rough_have_honest_bounds() -> None:
    given, l2 = data(90, 120, 4), np.full(120, 1e-4)
    best = by_quasi_newton(given, l2, True)
    for tol in (0.3, 1e-2, 1e-4, 1e-6):
        _, objective, bound, _ = fitted(given, l2, tol)
        assert bound <= best + 1e-10 <= objective + 2e-10
        assert objective - bound <= tol


def test_steps_grow_where_classes_are_apart() -> None:
    """A Newton step gains one in every margin: without longer steps it takes thirteen of them."""
    given, l2 = data(30, 200, 3), np.full(200, 1e-9)
    _, objective, bound, steps = fitted(given, l2, 1e-5)
    assert objective - bound <= 1e-5
    assert steps <= 5


def test_steps_end_with_the_products_they_may_take() -> None:
    given, l2 = data(90, 120, 4), np.full(120, 1e-6)
    x, objective, bound, _ = fitted(given, l2, 1e-10, 20.0)
    _, least, _, _ = fitted(given, l2, 1e-10)
    assert np.isfinite(x).all()
    assert bound == -np.inf
    assert least < objective < np.log(4.0)


def test_bad_steps_are_refused() -> None:
    X, y, p, _, _ = data(10, 3, 4)
    options, l2, start = native.Options(True, 1e-6, 1.0, 10, 1), np.ones(3), np.zeros((4, 4))
    for bad in (
        (X, y, p, l2, start[:, :3].copy()),
        (X, y, p, l2[:2], start),
        (X, y, p, 0 * l2, start),
        (X, y + 4, p, l2, start),
    ):
        with pytest.raises(ValueError):
            native.truncated(*bad, options, 10.0)
