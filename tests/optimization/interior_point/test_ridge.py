"""The native interior point of an L2 penalty: against an independent solver, at its edges, and at its boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.convex import optimum

from certifit import LinearModel, LinearSVC
from certifit._native import interior_point as native
from certifit.evaluation.losses import Absolute, EpsilonInsensitive, Hinge, Loss, Quantile
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.evaluation.penalties import L2
from certifit.optimization.interior_point.ridge import solve_ridge
from certifit.optimization.interior_point.solve import solve_polyhedral

LOSSES: dict[str, Loss] = {
    "hinge": Hinge(),
    "tube": EpsilonInsensitive(0.4),
    "absolute": Absolute(),
    "quantile": Quantile(0.3),
}


def make(loss: Loss, n: int = 80, d: int = 6, seed: int = 0) -> tuple[Any, Any, Any]:
    """Columns of unequal size, far from zero; targets; weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(-2, 2, d) + 3.0
    y = (X - 3.0) @ (rng.standard_normal(d) / np.logspace(-2, 2, d)) + rng.standard_normal(n) + 5.0
    return X, (y > 5.0).astype(float) if isinstance(loss, Hinge) else y, rng.integers(1, 4, n).astype(float)


def dual_value(theta: Any, X: Any, terms: TwoSidedHinge, p: Any, l2: Any) -> float:
    """D(θ), written out."""
    kink = np.where(theta > 0, terms.upper, np.where(theta < 0, terms.lower, 0.0))
    return -float(p @ (theta * kink)) - 0.5 * float(np.sum((X.T @ (p * theta)) ** 2 / l2))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_the_optimum(name: str, fit_intercept: bool) -> None:
    loss = LOSSES[name]
    X, y, weight = make(loss)
    alpha, p = 0.03, weight / weight.sum()
    value, *_ = optimum(X, y, weight, loss, L2(), alpha, fit_intercept=fit_intercept)
    terms, l2 = loss.hinge_terms(y), np.full(X.shape[1], alpha)
    assert terms is not None
    found = solve_ridge(X, terms, p, l2, fit_intercept=fit_intercept, tol=1e-11)
    assert found is not None
    assert found.exact
    assert abs(found.objective - value) <= 1e-7 * value
    assert found.bound <= value + 1e-9 * value
    # What it says of its point and of its dual point, from their definitions.
    f = X @ found.coef + found.intercept
    assert found.objective == pytest.approx(p @ loss.value(y, f) + 0.5 * alpha * found.coef @ found.coef, rel=1e-12)
    assert found.bound == pytest.approx(dual_value(found.theta, X, terms, p, l2), rel=1e-9)
    assert (found.theta >= -np.asarray(terms.slope_low)).all()
    assert (found.theta <= np.asarray(terms.slope_high)).all()
    if fit_intercept:
        assert abs(p @ found.theta) <= 1e-13


@pytest.mark.parametrize("name", LOSSES)
def test_rows_that_depend_on_each_other(name: str) -> None:
    """Every row three times is the row with three times its weight, and so are integers with many ties."""
    loss = LOSSES[name]
    X, y, weight = make(loss, n=60, d=3)
    X, y = np.round(X), np.round(y)
    terms, many = loss.hinge_terms(y), loss.hinge_terms(np.tile(y, 3))
    assert terms is not None
    assert many is not None
    l2, p = np.full(3, 0.01), weight / weight.sum()
    once = solve_polyhedral(X, terms, p, l2=l2, tol=1e-11)
    thrice = solve_ridge(np.tile(X, (3, 1)), many, np.tile(p, 3) / 3, l2, tol=1e-10)
    assert thrice is not None
    assert abs(thrice.objective - once.objective) <= 2e-10
    assert thrice.bound <= once.objective + 1e-13


@pytest.mark.parametrize("alpha", [1e-9, 1e-5, 10.0])
def test_penalties_weak_and_strong(alpha: float) -> None:
    """The equations of the rows on kinks do not depend on how weak the penalty is."""
    X, y, weight = make(Hinge())
    terms, p = Hinge().hinge_terms(y), weight / weight.sum()
    l2 = np.full(X.shape[1], alpha)
    found, reference = solve_ridge(X, terms, p, l2, tol=1e-10), solve_polyhedral(X, terms, p, l2=l2, tol=1e-10)
    assert found is not None
    assert abs(found.objective - reference.objective) <= 2e-10


@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_columns_of_few_entries(scale: float) -> None:
    """Rows without any lie on a kink, with the weight of many: the columns were centered there, and all the same."""
    rng = np.random.default_rng(0)
    X = np.zeros((82, 135))
    X[2:] = (rng.random((80, 135)) < 0.014) * rng.standard_normal((80, 135)) * scale
    y = np.r_[0.0, 1.0, rng.integers(0, 2, 80).astype(float)]
    p = np.r_[10.0, 20.0, np.ones(80)] / 110
    terms, l2 = Hinge().hinge_terms(y), np.full(135, 7e-4)
    found = solve_ridge(X, terms, p, l2, tol=1e-10)
    assert found is not None
    assert found.exact
    assert found.gap <= 1e-13
    f = X @ found.coef + found.intercept
    assert found.objective == pytest.approx(p @ Hinge().value(y, f) + 3.5e-4 * found.coef @ found.coef, rel=1e-12)
    assert found.bound == pytest.approx(dual_value(found.theta, X, terms, p, l2), rel=1e-12)


def test_layouts_and_precisions() -> None:
    X, y, weight = make(Hinge())
    terms, p, l2 = Hinge().hinge_terms(y), weight / weight.sum(), np.full(6, 0.1)
    single = X.astype(np.float32)
    whole = solve_ridge(single.astype(np.float64), terms, p, l2, tol=1e-10)
    wide = np.zeros((80, 12), dtype=np.float32)
    wide[:, ::2] = single
    for same in (single, np.asfortranarray(single), wide[:, ::2]):
        found = solve_ridge(same, terms, p, l2, tol=1e-10)
        assert found is not None
        assert whole is not None
        assert np.array_equal(found.coef, whole.coef)
        assert found.bound == whole.bound


def test_what_is_left_to_the_general_method() -> None:
    X, y, weight = make(Hinge())
    terms, l2 = Hinge().hinge_terms(y), np.full(6, 0.1)
    hard = TwoSidedHinge(terms.lower, terms.upper, np.where(y > 0.5, np.inf, 0.0), terms.slope_high)
    assert solve_ridge(X, hard, weight / weight.sum(), l2) is None
    assert solve_ridge(X, terms, np.where(np.arange(80) < 3, 0.0, 1 / 77), l2) is None
    assert solve_ridge(X, terms, weight / weight.sum(), l2, max_iter=1) is None


def test_an_intercept_that_is_an_interval() -> None:
    """Without a row inside its limits the middle of the best intercepts is taken, as before."""
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    model = LinearSVC(alpha=10.0).fit(X, y)
    assert model.solver_ == "interior_point"
    assert model.coef_[0, 0] == pytest.approx(0.1)
    assert model.intercept_[0] == pytest.approx(0.0, abs=1e-12)
    assert list(model.kkt_) == ["bound", "bound"]


def test_the_boundary_refuses() -> None:
    X, y, weight = make(Hinge())
    terms = Hinge().hinge_terms(y)
    arrays = [np.ascontiguousarray(side) for side in (terms.lower, terms.upper, terms.slope_low, terms.slope_high)]
    loss, options = native.Loss(*arrays, weight), native.Options(True, 1e-9, 1.0, 100, 1)
    with pytest.raises(ValueError, match="the loss has length 80, wanted 79"):
        native.ridge(X[:79], loss, np.ones(6), options)
    with pytest.raises(ValueError, match="l2 has length 5, wanted 6"):
        native.ridge(X, loss, np.ones(5), options)
    with pytest.raises(ValueError, match="upper has length 3"):
        native.Loss(arrays[0], np.ones(3), *arrays[2:], weight)
    with pytest.raises(ValueError, match="tolerance"):
        native.Options(True, float("nan"), 1.0, 100, 1)
    with pytest.raises(ValueError, match="threads"):
        native.Options(True, 0.0, 1.0, 100, 0)
    with pytest.raises(TypeError):
        native.ridge(X.astype(int), loss, np.ones(6), options)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", LOSSES)
def test_many_rows(name: str, fit_intercept: bool) -> None:
    """Only those near a kink are asked: what is said of all of them is true, and as near to the optimum as was wanted."""
    loss = LOSSES[name]
    X, y, weight = make(loss, n=7000, d=4)
    alpha, p = 1e-3, weight / weight.sum()
    value, *_ = optimum(X, y, weight, loss, L2(), alpha, fit_intercept=fit_intercept)
    terms, l2, tol = loss.hinge_terms(y), np.full(4, alpha), 1e-5 * value
    assert terms is not None
    found = solve_ridge(X, terms, p, l2, fit_intercept=fit_intercept, tol=tol, scale=value, tall=True)
    assert found is not None
    assert found.gap <= tol
    assert found.bound <= value + 1e-8 * value
    assert value - 1e-8 * value <= found.objective <= value + tol
    f = X @ found.coef + found.intercept
    assert found.objective == pytest.approx(p @ loss.value(y, f) + 0.5 * alpha * found.coef @ found.coef, rel=1e-12)
    assert found.bound == pytest.approx(dual_value(found.theta, X, terms, p, l2), rel=1e-9)
    assert (found.theta >= -np.asarray(terms.slope_low) - 1e-12).all()
    assert (found.theta <= np.asarray(terms.slope_high) + 1e-12).all()
    if fit_intercept:
        assert abs(p @ found.theta) <= 1e-13
    same = solve_ridge(sp.csr_array(X), terms, p, l2, fit_intercept=fit_intercept, tol=tol, scale=value, tall=True)
    assert same is not None
    np.testing.assert_allclose(same.coef, found.coef, rtol=1e-9)


def test_many_rows_of_few_kinds() -> None:
    """Every distance to a kink stands for many rows: none is singled out, and the bound is that of all."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(9000, 3)).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=9000) > 1.5).astype(float)
    terms, p, l2 = Hinge().hinge_terms(y), np.full(9000, 1 / 9000), np.full(3, 1e-3)
    exact = solve_ridge(X, terms, p, l2, tol=1e-9)
    found = solve_ridge(X, terms, p, l2, tol=1e-4, tall=True)
    assert exact is not None
    assert found is None or exact.bound - 1e-9 <= found.objective <= exact.objective + 1e-4
    model = LinearSVC(alpha=1e-3).fit(X, y)  # which asks each kind once
    assert model.certificate_.certified
    assert exact.bound - 1e-9 <= model.certificate_.objective <= exact.objective + 1e-3


def test_many_rows_of_which_a_sample_says_nothing() -> None:
    """One row in a thousand has all the weight: the sample misses most of them, and the gap says so."""
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(8000, 3)), np.full(8000, 1e-12)
    y = (X[:, 0] + rng.normal(size=8000) > 0).astype(float)
    p[::1000] = 1.0
    p /= p.sum()
    exact = solve_ridge(X, Hinge().hinge_terms(y), p, np.full(3, 1e-2), tol=1e-10)
    model = LinearSVC(alpha=1e-2, tol=1e-6).fit(X, y, sample_weight=p)
    assert exact is not None
    assert model.certificate_.certified
    assert model.certificate_.bound <= exact.objective + 1e-12
    assert exact.bound - 1e-9 <= model.certificate_.objective <= exact.objective + 1e-6


@pytest.mark.parametrize("small", [1e-6, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("name", LOSSES)
def test_rows_of_next_to_no_weight(name: str, small: float) -> None:
    """They do not hold up the others: the optimum is nearly that of the rows that count."""
    loss = LOSSES[name]
    X, y, weight = make(loss, n=160, d=3)
    weight = np.where(np.arange(160) % 8 == 0, weight, small * weight)
    p, terms, l2 = weight / weight.sum(), loss.hinge_terms(y), np.full(3, 1e-2)
    assert terms is not None
    few = np.flatnonzero(weight > 0.5)
    heavy = loss.hinge_terms(y[few])
    assert heavy is not None
    whole = solve_ridge(X, terms, p, l2, tol=1e-10)
    alone = solve_ridge(X[few], heavy, p[few] / p[few].sum(), l2, tol=1e-10)
    general = solve_polyhedral(X, terms, p, l1=np.zeros(3), l2=l2, tol=1e-10)
    assert whole is not None
    assert alone is not None
    assert whole.gap <= 1e-10
    assert general.gap <= 1e-10
    assert whole.objective == pytest.approx(alone.objective, abs=1e3 * small + 1e-9)
    assert whole.bound - 1e-12 <= general.objective <= whole.objective + 1e-10


@pytest.mark.parametrize("penalty", ["l2", "elasticnet", "l1", "none"])
@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive"])
@pytest.mark.parametrize("n", [50, 3000])
def test_weights_of_any_size_take_no_more_than_some_iterations(n: int, loss: str, penalty: str) -> None:
    """Weights of long tails, and of ten orders of magnitude, beside none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + rng.normal(size=n)
    y = (y > 0).astype(float) if loss == "hinge" else y
    model = LinearModel(loss, penalty, 1e-2, solver="interior_point")
    usual = model.fit(X, y).certificate_.iterations
    for weight in (rng.exponential(size=n) ** 3, 10.0 ** rng.uniform(-10, 0, size=n)):
        found = model.fit(X, y, sample_weight=weight).certificate_
        assert found.certified
        assert found.iterations <= 2 * usual + 10
