"""Newton's steps by conjugate gradients in one native call: an independent solver, all layouts, and where they give way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.convex import optimum

from certifit import LogisticRegression
from certifit.evaluation.losses import Loss
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import L1, L2, NonNegative
from certifit.optimization.newton import truncated
from certifit.optimization.newton.few_columns import KERNELS
from certifit.optimization.newton.truncated import by_conjugate_gradients, has_kernel
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer

LOSSES: dict[str, Loss] = {kernel: loss() for loss, kernel in KERNELS.items()}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truncated, "newton_products", lambda problem: np.inf)


def problem(
    loss: Loss, n: int = 60, d: int = 90, alpha: float = 0.02, *, intercept: bool = True, seed: int = 0
) -> Problem:
    """Half of the entries are zero; columns of unequal size that share a factor; weights."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) + 0.5) * np.logspace(-0.5, 0.5, d)
    X[rng.random((n, d)) < 0.5] = 0.0
    f = X[:, :5].sum(axis=1) - 0.5
    y = rng.poisson(np.exp(np.clip(f, -3, 2))) if LOSSES["poisson"] is loss else f + rng.logistic(size=n) > 0
    weight = rng.integers(0, 4, n) + 0.5
    return Problem(X, y.astype(float), weight / weight.sum(), loss, Regularizer.of(L2(), alpha, None, d), intercept)


def on(of: Problem, X: Any) -> Problem:
    return Problem(X, of.y, of.p, of.loss, of.regularizer, of.fit_intercept)


def solved(of: Problem, tol: float = 1e-9, start: Any = None) -> Solution:
    return by_conjugate_gradients(of, of.start() if start is None else start, tol * of.scale, 100)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("n", "d"), [(60, 90), (150, 9)])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum(loss: str, n: int, d: int, intercept: bool) -> None:
    of = problem(LOSSES[loss], n, d, intercept=intercept)
    value, *_ = optimum(of.X, of.y, of.p, of.loss, L2(), 0.02, fit_intercept=intercept)
    found = solved(of)
    assert abs(found.objective - value) <= 1e-7 * of.scale
    assert found.bound <= value + 1e-8 * of.scale
    assert found.objective == pytest.approx(of.objective(found.coef, found.intercept), rel=1e-12)
    assert found.objective - found.bound <= 1e-9 * of.scale


@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_far_from_the_optimum(loss: str) -> None:
    of = problem(LOSSES[loss], alpha=1e-3)
    best = solved(of, 1e-12)
    for tol in (0.3, 0.03, 1e-3, 1e-5):
        found = solved(of, tol)
        assert -np.inf < found.bound <= best.objective + 1e-14
        assert best.bound <= found.objective + 1e-14


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_any_layout_and_precision(loss: str) -> None:
    of = problem(LOSSES[loss])
    single = of.X.astype(np.float32)
    wanted = solved(on(of, single.astype(np.float64)), 1e-13)
    twice = sp.csr_array(single)  # every stored entry as two halves: a matrix that is not canonical
    twice = sp.csr_array((np.repeat(twice.data / 2, 2), np.repeat(twice.indices, 2), 2 * twice.indptr), twice.shape)
    long = sp.csr_array(single)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    for X in (
        single,
        np.asfortranarray(single),
        sp.csr_array(single),
        sp.csc_array(single),
        sp.csr_matrix(single),
        twice,
        long,
    ):
        assert has_kernel(on(of, X))
        np.testing.assert_allclose(
            solved(on(of, X), 1e-13).coef, wanted.coef, rtol=0.0, atol=3e-6
        )  # what the gap allows


def test_classes_that_are_nearly_apart_take_long_steps() -> None:
    """Newton's steps gain one in the margin each; the search doubles them while the objective falls faster than a parabola."""
    of = problem(HardLogistic(), 40, 300, 1e-9)
    value, *_ = optimum(of.X, of.y, of.p, of.loss, L2(), 1e-9, fit_intercept=True)
    found = solved(of, 1e-6)
    assert -np.inf < found.bound <= value + 1e-9 <= found.objective + 2e-9
    assert found.objective - found.bound <= 1e-6 * of.scale
    assert found.iterations <= 6  # 13 by whole steps


@pytest.mark.parametrize("threads", [2, 3])
def test_no_result_depends_on_the_threads(threads: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30_000, 80))
    y = (X[:, 0] + rng.logistic(size=30_000) > 0).astype(float)
    regularizer = Regularizer.of(L2(), 1e-3, None, 80)
    fits = [
        solved(Problem(Z, y, np.full(30_000, 1 / 30_000), HardLogistic(), regularizer, True, t))
        for Z in (X, sp.csr_array(np.where(np.abs(X) > 1.0, X, 0.0)))
        for t in (1, threads)
    ]
    for one, more in (fits[:2], fits[2:]):
        assert np.array_equal(one.coef, more.coef)
        assert (one.intercept, one.objective, one.bound) == (more.intercept, more.objective, more.bound)


def test_what_the_kernel_does_not_take() -> None:
    of = problem(HardLogistic())
    assert has_kernel(of)
    held = Regularizer.of(L2(), 0.1, NonNegative(), 90)
    assert not has_kernel(Problem(of.X, of.y, of.p, of.loss, held, True))
    assert not has_kernel(Problem(of.X, of.y, of.p, of.loss, Regularizer.of(L1(), 0.1, None, 90), True))
    assert not has_kernel(on(of, of.X[:, ::2].T.copy().T[:, ::2]))
    assert not has_kernel(on(of, sp.coo_array(of.X)))


def test_too_many_products_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The general method goes on from where the products ended, and says how many steps there were in all."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 60)) * np.logspace(0, -2, 60) @ np.linalg.qr(rng.normal(size=(60, 60)))[0]
    y = (X.sum(axis=1) + 0.1 * rng.logistic(size=200) > 0).astype(int)
    wanted = LogisticRegression(alpha=1e-7, solver="newton", tol=1e-12).fit(X, y)
    monkeypatch.setattr(truncated, "newton_products", lambda problem: 30.0)
    found = LogisticRegression(alpha=1e-7, tol=1e-12).fit(X, y)
    assert (found.solver_, found.certificate_.certified) == ("newton", True)
    assert found.n_iter_ > 1
    assert found.certificate_.objective == pytest.approx(wanted.certificate_.objective, rel=1e-8)


def test_the_boundary_refuses() -> None:
    native = truncated.native
    options = native.Options(True, 1e-6, 1.0, 10, 1)
    X, v = np.ones((3, 2)), np.ones(3)
    good: dict[str, Any] = {
        "y": v,
        "p": v,
        "l2": np.ones(2),
        "coef": np.zeros(2),
        "intercept": 0.0,
        "options": options,
        "most": 9.0,
    }
    for name, value in (("y", v[:2]), ("p", v[:2]), ("l2", v), ("coef", v), ("l2", np.zeros(2))):
        with pytest.raises(ValueError, match=name):
            native.truncated("logistic", X, **{**good, name: value})
    with pytest.raises(ValueError, match="loss"):
        native.truncated("hinge", X, **good)
    wrong = sp.csr_array(X)
    with pytest.raises(ValueError, match="index"):
        native.truncated("logistic", wrong.data, wrong.indices + 1, wrong.indptr, 2, **good)
