"""Columns that are nearly dependent, where rounding of the Hessian hides most of what there is to gain, against sixty digits."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.fuzz import proofs
from tests.fuzz.judge import check_proof, failure
from tests.grids import exhaustive
from tests.oracles.exact import Exact

from certifit import ChebyshevRegressor, LinearModel, LogisticRegression
from certifit.certificate import Certificate
from certifit.losses import LOSSES, Poisson
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.curvature import factored, where_curved
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.penalties import NoPenalty


@pytest.fixture
def rng() -> np.random.Generator:
    """Of each test its own: what one draws must not hang on which ran before it."""
    return np.random.default_rng(0)


def nearly_equal(rng: np.random.Generator, apart: float, size: float = 1.0) -> Any:
    x = rng.normal(size=12)
    return size * np.column_stack([x, x * (1.0 + apart * rng.normal(size=12))])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", [0, 1, *(pytest.param(more, marks=exhaustive) for more in range(2, 6))])
def test_certificates_hold_in_exact_arithmetic(batch: int) -> None:
    cases = [proofs.code(np.random.default_rng([7, batch, k])) for k in range(12)]
    found = [(code, wrong) for code in cases if (wrong := failure(code)) is not None]
    assert not found, "\n".join(found[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("apart", [1e-5, 1e-7, 1e-9, 1e-11])
@pytest.mark.parametrize("loss", ["poisson", "logistic", "huber", "absolute", "quantile"])
def test_what_differs_little_is_used(rng: np.random.Generator, loss: str, apart: float) -> None:
    """The optimum has coefficients of 1/apart, and the fit that does without them is no optimum."""
    X = nearly_equal(rng, apart)
    y = 1.0 * (rng.random(12) < 0.5) if loss == "logistic" else rng.poisson(3.0, size=12) + 0.0
    model = LinearModel(loss, penalty="none").fit(X, y)
    check_proof(model, X, y, None)
    one = LinearModel(loss, penalty="none").fit(X[:, :1], y)
    assert model.certificate_.objective <= one.certificate_.objective
    if apart >= 1e-7:
        assert model.certificate_.certified


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("apart", [1e-6, 1e-7, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("sparse", [False, True])
def test_several_classes_use_what_differs_little(rng: np.random.Generator, apart: float, sparse: bool) -> None:
    base, other, third = rng.normal(size=(3, 60))
    y = np.digitize(other + 2.0 * rng.logistic(size=60), [-1.0, 1.0])
    X = np.column_stack([base, base + apart * other, third])
    basis = np.column_stack([base, (X[:, 1] - base) / apart, third])  # the difference is exact
    wanted = LogisticRegression(penalty="none").fit(basis, y).certificate_
    assert wanted.certified
    found = LogisticRegression(penalty="none").fit(sp.csr_array(X) if sparse else X, y).certificate_
    assert found.bound <= wanted.objective + 1e-9
    assert not found.certified or found.objective == pytest.approx(wanted.objective, abs=2e-6)
    assert found.certified or apart < 1e-8


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_several_classes_of_dependent_columns_are_certified(rng: np.random.Generator, classes: int) -> None:
    """All groups have a column each: two such codings sum to the same ones."""
    codes = rng.integers(4, size=(900, 2))
    X = np.hstack([np.eye(4)[codes[:, 0]], np.eye(4)[codes[:, 1]], 1e3 + rng.normal(size=(900, 1))])
    X = np.column_stack([X, X @ rng.normal(size=X.shape[1])])
    assert LogisticRegression(penalty="none").fit(X, rng.integers(classes, size=900)).certificate_.certified


@pytest.mark.parametrize("size", [3, 700])
def test_what_a_hessian_cannot_tell_may_be_anything(rng: np.random.Generator, size: int) -> None:
    """Beyond the size of which directions are found there is only a factor with a ridge."""
    root = rng.normal(size=(size - 1, size))
    hessian = root.T @ root
    curvature = factored(hessian, 1, False)
    assert curvature is not None
    assert not curvature.regular
    flat = np.linalg.eigh(hessian)[1][:, 0]
    rounding = 1e-16 * np.sqrt(np.diag(hessian))
    assert curvature.energy(1e-17 * flat, rounding) < 1e-12
    assert curvature.energy(1e-6 * flat, rounding) == np.inf
    assert curvature.energy(1e-15 * root[0], rounding) < 1e-12  # rounding, where there is curvature


@pytest.mark.filterwarnings("ignore")
def test_poisson_reaches_the_optimum_of_nearly_equal_columns(rng: np.random.Generator) -> None:
    X, y = nearly_equal(rng, 1e-8, 1e10), rng.poisson(3.0, size=12) + 0.0
    model = LinearModel("poisson", penalty="none").fit(X, y)
    exact = Exact(X, y, None, Poisson(), NoPenalty(), 0.0)
    reached, least = exact.objective(model.coef_, model.intercept_), exact.better(model.coef_, model.intercept_)
    assert float(reached - least) <= 1e-6 * float(exact.constant())


@pytest.mark.filterwarnings("ignore")
def test_the_largest_residual_of_nearly_equal_columns(rng: np.random.Generator) -> None:
    X, y = nearly_equal(rng, 1e-9), rng.normal(size=12)
    model = ChebyshevRegressor().fit(X, y)
    basis = np.column_stack([X[:, 0], (X[:, 1] - X[:, 0]) * 1e9])  # the difference is exact
    wanted = ChebyshevRegressor().fit(basis, y)
    assert model.certificate_.bound <= wanted.certificate_.objective * (1 + 1e-9)
    assert model.certificate_.objective == pytest.approx(wanted.certificate_.objective, rel=1e-4)


def test_a_bound_above_its_objective_is_off_by_as_much() -> None:
    one = Certificate("duality gap", objective=1.0, bound=1.0 + 1e-8, scale=2.0, tol=1e-6)
    assert one.certified
    assert one.bound == pytest.approx(1.0 - 1e-8, abs=1e-15)
    assert one.relative_gap == pytest.approx(5e-9, rel=1e-6)
    assert not one.judged(1e-9).certified
    assert not Certificate("duality gap", objective=1.0, bound=1.1, scale=2.0, tol=1e-6).certified


def test_a_proof_that_is_none_is_noticed(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    model = LinearModel("squared", alpha=0.1).fit(X, y)
    check_proof(model, X, y, None)
    right = model.certificate_
    for objective, bound in ((right.objective, right.objective * 1.001), (right.objective * 1.001, right.bound)):
        model.certificate_ = Certificate("duality gap", objective=objective, bound=bound, scale=1.0, tol=1e-2)
        model.certificate_ = model.certificate_._with(bound=bound, relative_gap=0.0)
        with pytest.raises(AssertionError, match="of the scale"):
            check_proof(model, X, y, None)


@pytest.mark.parametrize("solver", ["newton", "prox_newton"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_of_nothing_ask_nothing_of_a_proof(solver: str, fit_intercept: bool) -> None:
    """Nor do free columns that have entries only where they are, beside a row on the linear part of the loss."""
    y = np.r_[1e8, np.arange(11.0)]
    for X in (sp.csr_array((12, 3)), sp.csr_array(np.outer(np.cos(y), [0.0, 1.0, 0.0]))):
        model = LinearModel("huber", "none", solver=solver, fit_intercept=fit_intercept).fit(X, y)
        assert model.certificate_
        check_proof(model, X.toarray(), y, None)


def test_what_only_rows_without_curvature_hold_is_no_proof() -> None:
    """The slope of a row on the linear part of the loss cannot move, and so its column has no equation that could be met."""
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]]), np.array([1e8, 1.0, 2.5])
    given = Problem(X, y, np.full(3, 1 / 3), LOSSES["huber"](), Regularizer.of(NoPenalty(), 0.0, None, 2), False)
    assert dual_bound(given.at(np.array([0.0, 1.2]), 0.0)) == 0.0
    assert where_curved(np.diag([0.0, 2.0]), 1).energy(np.array([1e-9, 0.0]), np.zeros(2)) == np.inf


@pytest.mark.parametrize("invariant", [True, False])
def test_the_inverse_holds_two_matrices_beside_the_hessian(rng, invariant):
    """It may weigh as much as X: seven of them were held at once."""
    K, D = 4, 150
    A = rng.standard_normal((900, K * D))
    hessian = A.T @ A
    before = hessian.copy()
    tracemalloc.start()
    curvature = factored(hessian, K, invariant)
    peak = tracemalloc.get_traced_memory()[1] / hessian.nbytes
    tracemalloc.stop()
    assert curvature is not None
    assert peak < 2.5
    assert np.array_equal(hessian, before)
    right = np.linspace(-1.0, 1.0, K * D).reshape(K, D)
    own = np.diag(np.diag(hessian).reshape(K, D).mean(axis=0))
    shift = np.kron(np.full((K, K), 1.0 / K), own) if invariant else 0.0
    np.testing.assert_allclose(curvature(right).ravel(), np.linalg.solve(hessian + shift, right.ravel()), rtol=1e-8)
