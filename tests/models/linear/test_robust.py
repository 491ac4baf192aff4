"""Huber, least absolute deviations, quantiles and Chebyshev: against linear programs and their own optimality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.models.linear.constructed import rows

from certifit import ChebyshevRegressor, HuberRegressor, LADRegressor, LinearRegression, QuantileRegressor
from certifit.base import ConvergenceWarning
from certifit.models.linear.model import BaseLinear


def heavy(n: int = 70) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, weight = rows(n)
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.3 + np.random.default_rng(4).standard_t(2, size=n)
    return X, y, weight


def quantile_program(X: np.ndarray, y: np.ndarray, weight: np.ndarray, q: float, alpha: float = 0.0) -> float:
    """min Σ p_i (q·r⁺ + (1 − q)·r⁻) + alpha·‖w‖₁  as a linear program in w⁺, w⁻, b⁺, b⁻, r⁺, r⁻ ≥ 0."""
    p, n = weight / weight.sum(), len(y)
    Z = np.column_stack([X, -X, np.ones(n), -np.ones(n), np.eye(n), -np.eye(n)])
    cost = np.concatenate([np.full(2 * X.shape[1], alpha), [0.0, 0.0], q * p, (1 - q) * p])
    found = linprog(cost, A_eq=Z, b_eq=y, method="highs")
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.83])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_quantiles_are_the_linear_program(q: float, alpha: float) -> None:
    X, y, weight = heavy()
    model = QuantileRegressor(quantile=q, alpha=alpha, penalty="l1", tol=1e-9).fit(X, y, sample_weight=weight)
    wanted = quantile_program(X, y, weight, q, alpha)
    assert model.certificate_.objective == pytest.approx(wanted, rel=1e-7)
    # The share of rows below is q, up to the rows that the plane goes through.
    r, p = y - model.predict(X), weight / weight.sum()
    below, above = p[r < -1e-6].sum(), p[r > 1e-6].sum()
    assert below <= q + 1e-9
    assert above <= 1 - q + 1e-9


def test_least_absolute_deviations_are_twice_the_median_program() -> None:
    X, y, weight = heavy()
    model = LADRegressor(tol=1e-9).fit(X, y, sample_weight=weight)
    wanted = 2 * quantile_program(X, y, weight, 0.5)
    residual = np.abs(y - X @ model.coef_ - model.intercept_)
    assert np.average(residual, weights=weight) == pytest.approx(wanted, rel=1e-7)
    assert model.certificate_.objective == pytest.approx(wanted, rel=1e-7)


def test_the_median_of_one_column_is_the_weighted_median() -> None:
    y, weight = np.array([3.0, -1.0, 10.0, 4.0, 100.0]), np.array([1.0, 1.0, 1.0, 3.0, 1.0])
    model = LADRegressor(alpha=1.0, penalty="l2").fit(np.zeros((5, 1)), y, sample_weight=weight)
    assert model.predict([[0.0]])[0] == pytest.approx(4.0, abs=1e-4)


def test_huber_solves_the_least_squares_of_its_own_weights() -> None:
    """ψ(r) = r·min(1, δ/|r|): the optimum is the weighted least-squares fit with the factors it ends with."""
    X, y, weight = heavy()
    model = HuberRegressor(delta=0.7, scale=1.0, alpha=0.0, tol=1e-13).fit(X, y, sample_weight=weight)
    r = np.abs(y - model.predict(X))
    assert (r > 0.7).any()
    assert (r < 0.7).any()
    again = LinearRegression().fit(X, y, sample_weight=weight * np.minimum(1.0, 0.7 / r))
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-6)
    assert again.intercept_ == pytest.approx(model.intercept_, abs=1e-6)


def test_huber_between_least_squares_and_least_absolute_deviations() -> None:
    X, y, weight = heavy()
    wide = HuberRegressor(delta=1e4, scale=1.0, alpha=0.0, tol=1e-13).fit(X, y, sample_weight=weight)
    squares = LinearRegression().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(wide.coef_, squares.coef_, atol=1e-7)
    narrow = HuberRegressor(delta=1e-4, scale=1.0, alpha=0.0, tol=1e-9).fit(X, y, sample_weight=weight)
    reached = np.average(np.abs(y - narrow.predict(X)), weights=weight)
    assert reached == pytest.approx(2 * quantile_program(X, y, weight, 0.5), rel=1e-3)


def test_chebyshev_is_the_linear_program_and_its_errors_alternate() -> None:
    X, y, weight = heavy(40)
    n, d = X.shape
    side = np.column_stack([X, np.ones(n)])
    bounds = np.vstack([np.column_stack([side, -np.ones(n)]), np.column_stack([-side, -np.ones(n)])])
    cost = np.zeros(d + 2)
    cost[-1] = 1.0
    wanted = linprog(cost, A_ub=bounds, b_ub=np.concatenate([y, -y]), bounds=(None, None), method="highs")
    model = ChebyshevRegressor(tol=1e-10).fit(X, y, sample_weight=weight)
    error = y - model.predict(X)
    largest = np.abs(error).max()
    assert largest == pytest.approx(wanted.fun, rel=1e-7)
    touched = np.abs(error) > largest * (1 - 1e-5)
    assert touched.sum() >= d + 2  # one more than the unknowns
    assert len(np.unique(np.sign(error[touched]))) == 2


# The scale of Huber

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
TRUTH = np.array([2.0, -1.0, 0.5])
Y = X @ TRUTH + 1.0 + 0.3 * RNG.standard_t(2, 150)


@pytest.mark.parametrize("unit", [1e-6, 1e-2, 1e3, 1e8])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_huber_is_the_same_fit_in_every_unit(unit: float, alpha: float) -> None:
    one, other = (HuberRegressor(alpha=alpha, tol=1e-10).fit(X, y) for y in (Y, unit * Y))
    np.testing.assert_allclose(other.coef_, unit * one.coef_, rtol=1e-4)
    assert other.scale_ == pytest.approx(unit * one.scale_, rel=1e-4)
    np.testing.assert_array_equal(other.outliers_, one.outliers_)
    assert one.certificate_.certified
    assert other.certificate_.certified


def test_the_scale_is_that_of_the_residuals() -> None:
    model = HuberRegressor(tol=1e-10).fit(X, Y)
    residuals = np.abs(Y - model.predict(X))
    assert model.scale_ == pytest.approx(1.4826 * np.median(residuals), rel=1e-3)
    np.testing.assert_array_equal(model.outliers_, residuals > model.delta * model.scale_)
    given = HuberRegressor(scale=model.scale_, tol=1e-10).fit(X, Y)
    np.testing.assert_allclose(given.coef_, model.coef_, rtol=1e-6)


def test_weights_are_repetitions_for_the_scale_too() -> None:
    weight = RNG.integers(0, 4, 150)
    heavy = HuberRegressor(tol=1e-10).fit(X, Y, sample_weight=weight)
    many = HuberRegressor(tol=1e-10).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    assert heavy.scale_ == pytest.approx(many.scale_, rel=1e-6)
    np.testing.assert_allclose(heavy.coef_, many.coef_, rtol=1e-6)


def test_a_few_wild_rows_change_little() -> None:
    wild = Y.copy()
    wild[:10] += 1e6
    model = HuberRegressor().fit(X, wild)
    assert np.abs(model.coef_ - TRUTH).max() < 0.2
    assert model.outliers_[:10].all()
    assert np.abs(LinearRegression().fit(X, wild).coef_ - TRUTH).max() > 10


def test_exact_and_constant_targets() -> None:
    exact = HuberRegressor().fit(X, X @ TRUTH)
    np.testing.assert_allclose(exact.coef_, TRUTH, atol=1e-5)
    flat = HuberRegressor().fit(X, np.full(150, 7.0))
    assert flat.intercept_ == pytest.approx(7.0)
    assert flat.scale_ > 0.0


@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_chebyshev_on_columns_of_any_size(size: float, alpha: float) -> None:
    X, y, _ = heavy()
    model = ChebyshevRegressor(alpha=alpha).fit(X * size, y)
    assert np.isfinite(model.certificate_.objective)
    assert model.certificate_
    if alpha == 0:
        assert model.coef_ * size == pytest.approx(ChebyshevRegressor().fit(X, y).coef_, rel=1e-6)
    elif size < 1:  # a coefficient that mattered would cost more than can be written down
        assert not model.coef_.any()


def test_a_power_penalty_of_strength_zero_is_no_penalty() -> None:
    X, y, weight = heavy()
    options = {"alpha": 0.0, "tol": 1e-9}
    one = LADRegressor(penalty="lq", solver="sequential", **options).fit(X, y, weight)
    assert one.certificate_
    assert one.coef_ == pytest.approx(LADRegressor(**options).fit(X, y, weight).coef_, abs=1e-6)
    assert one.solver_ == "sequential"


@pytest.mark.parametrize("alpha", [0.0, 0.05])
def test_the_joint_scale_is_a_stationary_point_of_a_convex_problem(alpha: float) -> None:
    X, weight = rows(60)
    y = X @ np.arange(X.shape[1]) + np.random.default_rng(1).standard_t(2, 60)
    d = X.shape[1]
    model = HuberRegressor(delta=1.35, scale="joint", alpha=alpha, tol=1e-12).fit(X, y, sample_weight=weight)
    p = weight / weight.sum()

    def objective(w: np.ndarray, b: float, s: float) -> float:
        z = np.abs(y - X @ w - b) / s
        huber = np.where(z <= 1.35, 0.5 * z**2, 1.35 * z - 0.5 * 1.35**2)
        return float(p @ huber * s + s / 2 + 0.5 * alpha * w @ w)

    best = objective(model.coef_, model.intercept_, model.scale_)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.3):
        for _ in range(20):
            step = size * rng.normal(size=d + 2)
            near = objective(model.coef_ + step[:d], model.intercept_ + step[d], model.scale_ * np.exp(step[-1]))
            assert near >= best - 1e-12
    times = HuberRegressor(scale="joint", tol=1e-12).fit(X, 1000 * y, sample_weight=weight)
    assert times.scale_ == pytest.approx(
        1000 * HuberRegressor(scale="joint", tol=1e-12).fit(X, y, weight).scale_, rel=1e-6
    )


def test_a_joint_scale_needs_a_quadratic_part_that_can_hold_it() -> None:
    X, weight = rows(20)
    with pytest.raises(ValueError, match="scale='joint' needs delta > 1"):
        HuberRegressor(delta=0.9, scale="joint").fit(X, weight)


@pytest.mark.parametrize("seed", [7, 9])
def test_rows_that_can_be_met_are_met_at_once_whatever_the_corner(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 80)), 1e6 * np.exp(rng.normal(size=60))  # more columns than rows: the best loss is zero
    model = HuberRegressor(delta=1e-6, penalty=None).fit(X, y)
    assert model.certificate_.certified
    assert model.n_iter_ < 5


def test_a_sharp_corner_is_reached_by_way_of_wider_ones() -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(60, 5)), 1e6 * np.exp(rng.normal(size=60))
    sharp = HuberRegressor(delta=1e-7, scale=1e6).fit(X, y)  # in the unit of y: 0.1, where residuals are of size 10⁶
    least = np.abs(y - LADRegressor().fit(X, y).predict(X)).mean()
    assert sharp.certificate_.certified
    assert np.abs(y - sharp.predict(X)).mean() == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_a_sharp_corner_with_an_l1_penalty(offset: float) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 5)), offset + rng.normal(size=5)  # an exact fit, at next to no cost
    model = HuberRegressor(delta=1e-6, penalty="elasticnet", alpha=1e-12).fit(X, y)
    assert model.certificate_.certified
    assert model.n_iter_ < 10
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_scales_that_repeat_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, fit = [], BaseLinear._fit_arrays

    def noted(self: Any, *data: Any) -> Any:
        tried.append(self.scale_)
        return fit(self, *data)

    monkeypatch.setattr(BaseLinear, "_fit_arrays", noted)
    rng = np.random.default_rng(97)
    X, y = rng.normal(size=(6, 1)), np.round(3 * rng.normal(size=6))
    with pytest.warns(ConvergenceWarning):
        model = HuberRegressor(delta=0.05, max_iter=1).fit(X, y)  # one step a fit: two scales take turns
    assert len(tried) < 12
    assert tried[-1] != pytest.approx(tried[-2])
    assert tried[-1] == pytest.approx(tried[-3])
    assert model.scale_ == tried[-1]


def test_a_fit_begins_where_the_scale_before_left_it_and_leaves_nothing_behind() -> None:
    X, y, weight = heavy(400)
    model = HuberRegressor(alpha=1e-3).fit(X, y, sample_weight=weight)
    alone = HuberRegressor(alpha=1e-3, scale=model.scale_).fit(X, y, sample_weight=weight)
    assert model.n_iter_ < alone.n_iter_
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-4)
    assert "_last" not in vars(model)
    model._last = np.ones(3), 0.0  # of a fit that was interrupted
    np.testing.assert_array_equal(model.fit(X[:, :2], y).coef_, HuberRegressor(alpha=1e-3).fit(X[:, :2], y).coef_)


@pytest.mark.parametrize("solver", ["auto", "newton", "prox_newton"])
@pytest.mark.parametrize("columns", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("far", [1e5, 1e8, 1e12])
def test_a_row_far_off_leaves_the_others_their_digits(far: float, columns: float, solver: str) -> None:
    rng = np.random.default_rng(1)
    X, y = columns * rng.normal(size=(12, 3)), rng.normal(size=12)
    y[0] = far
    model = HuberRegressor(alpha=0.02, solver=solver).fit(X, y)
    assert model.certificate_.certified
    assert np.abs(y - model.predict(X))[1:].max() < 4.0
