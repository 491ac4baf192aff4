"""The dual of support vectors: intercepts, gaps, and kernels that native code does not know."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from certifit import kernels
from certifit.optimization.dual.smo import Dual, Gram, judge, solve


def problem(n=60, groups=1, seed=0):
    """Any bounds and kinks, and a start between them."""
    rng = np.random.default_rng(seed)
    lower = rng.normal(size=(groups, n))
    upper = lower + rng.uniform(0, 1, size=(groups, n))
    high, low = rng.uniform(0, 2, size=(groups, n)), -rng.uniform(0, 2, size=(groups, n))
    high[:, ::3], low[:, 1::3] = 0.0, 0.0
    return rng.normal(size=(n, 3)), Dual(np.arange(n), lower, upper, low, high, rng.uniform(0, 1, (groups, n)) * high)


def primal(dual, beta, scores, intercepts):
    f = scores + np.asarray(intercepts)[:, None]
    loss = np.maximum(np.maximum(dual.high * (dual.lower - f), dual.low * (dual.upper - f)), 0.0)
    return 0.5 * beta.sum(axis=0) @ scores + loss.sum() + np.asarray(intercepts) @ dual.start.sum(axis=1)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_intercepts_are_the_best_ones(groups):
    X, dual = problem(groups=groups)
    scores = kernels.RBF(0.5)(X) @ dual.start.sum(axis=0)
    found = judge(dual, dual.start, scores)
    assert found.primal == pytest.approx(primal(dual, dual.start, scores, found.intercepts))
    assert found.primal - found.dual == pytest.approx(found.gap)
    for k in range(groups):

        def along(b, k=k):
            return primal(dual, dual.start, scores, [b if j == k else c for j, c in enumerate(found.intercepts)])

        best = minimize_scalar(along, bounds=(-20, 20), method="bounded", options={"xatol": 1e-10})
        assert found.primal <= best.fun + 1e-9


def test_of_many_best_intercepts_the_middle():
    rows = np.arange(4)
    sides = np.array([[1.0, 1.0, -1.0, -1.0]])
    dual = Dual(rows, sides, sides, np.minimum(sides, 0.0), np.maximum(sides, 0.0), np.zeros((1, 4)))
    assert judge(dual, dual.start, np.zeros(4)).intercepts.tolist() == [0.0]


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), kernels.Laplacian(0.5), kernels.Linear()], ids=str)
def test_the_gap_closes_and_the_sums_stay(groups, kernel):
    X, dual = problem(n=90, groups=groups)
    ((beta, scores, rounds, gap),) = solve(
        Gram(kernel, X), [dual], np.array([1e-8]), megabytes=1.0, max_rounds=-1, threads=1
    )
    found = judge(dual, beta, scores)
    assert rounds >= 1
    assert found.gap <= gap + 1e-12 <= 2e-8
    np.testing.assert_allclose(beta.sum(axis=1), dual.start.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(scores, kernel(X) @ beta.sum(axis=0), atol=1e-9)
    assert ((beta >= dual.low) & (beta <= dual.high)).all()


def test_parts_of_a_kernel_of_python_are_solved_like_the_whole():
    X, dual = problem(n=90)
    some = np.arange(0, 90, 2)
    part = Dual(some, *(v[:, some] for v in (dual.lower, dual.upper, dual.low, dual.high, dual.start)))
    options = {"megabytes": 1.0, "max_rounds": -1, "threads": 2}
    K = kernels.RBF(0.5)
    (first,) = solve(Gram(K, X), [part], np.array([1e-9]), **options)
    for gram in (Gram(K * 1.0, X), Gram(kernels.Precomputed(), K(X))):
        ((_, scores, _, _),) = solve(gram, [part], np.array([1e-9]), **options)
        np.testing.assert_allclose(scores, first[1], atol=1e-6)
