"""The interior-point method against an independent conic solver, and at the edges of its domain."""

from __future__ import annotations

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from certifit.optimization.interior_point import reduce as interior_point_reduce
from certifit.optimization.interior_point.solve import TwoSidedHinge, solve_polyhedral
from certifit.optimization.programs.highs import lad_lp

LOSSES = ("absolute", "quantile", "epsilon", "hinge", "asymmetric")
PENALTIES = ("none", "l2", "l2 each", "l1", "elastic net")
CONSTRAINTS = ("none", "box", "nonnegative", "l1 ball", "l2 ball")


def make(seed, loss, n=40, d=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.array([1.0, 3.0, 0.3, 1.0, 1.0])[:d]
    y = X @ rng.standard_normal(d) + rng.standard_normal(n) + 0.7
    if loss == "absolute":
        terms = TwoSidedHinge(y, y, 1.0, 1.0)
    elif loss == "quantile":
        terms = TwoSidedHinge(y, y, 0.3, 0.7)
    elif loss == "epsilon":
        terms = TwoSidedHinge(y - 0.4, y + 0.4, 1.0, 1.0)
    elif loss == "hinge":
        label = np.where(y > 0.3, 1.0, -1.0)
        one, inf = np.ones(n), np.full(n, np.inf)
        terms = TwoSidedHinge(
            np.where(label > 0, one, -inf),
            np.where(label > 0, inf, -one),
            1.0 * (label > 0),
            1.0 * (label < 0),
        )
    else:
        terms = TwoSidedHinge(
            y - rng.random(n) * rng.integers(0, 2, n), y + rng.random(n), rng.random(n), 3 * rng.random(n)
        )
    p = rng.integers(0, 4, n) / n
    return X, terms, p


def settings(penalty, constraint, d=5):
    each = np.linspace(0.0, 0.2, d)
    options = {
        "none": {}, "l2": {"l2": 0.1}, "l2 each": {"l2": each}, "l1": {"l1": 0.15},
        "elastic net": {"l1": 0.05, "l2": 0.02},
    }[penalty]  # fmt: skip
    region = {
        "none": {}, "box": {"lower": -0.2, "upper": np.linspace(0.1, 0.6, d)}, "nonnegative": {"lower": 0.0},
        "l1 ball": {"ball": ("l1", 0.8)}, "l2 ball": {"ball": ("l2", 0.5)},
    }[constraint]  # fmt: skip
    return options | region


def oracle(X, terms, p, *, c=None, l1=0.0, l2=0.0, lower=None, upper=None, ball=None, fit_intercept=True):
    """The optimum by cvxpy and Clarabel."""
    n, d = X.shape
    w, b = cp.Variable(d), cp.Variable()
    f = X @ w + (b if fit_intercept else 0.0)
    wide = [
        np.broadcast_to(np.asarray(v, float), n) for v in (terms.lower, terms.upper, terms.slope_low, terms.slope_high)
    ]
    low_kink, high_kink, low, high = wide
    value, constraints = 0.0, []
    for score, kink, slope in ((f, high_kink, high), (-f, -low_kink, low)):
        soft = np.flatnonzero(np.isfinite(kink) & (slope > 0) & np.isfinite(slope) & (p > 0))
        hard = np.flatnonzero(np.isfinite(kink) & np.isinf(slope) & (p > 0))
        if soft.size:
            value = value + (p * np.where(np.isfinite(slope), slope, 0))[soft] @ cp.pos(score[soft] - kink[soft])
        if hard.size:
            constraints.append(score[hard] <= kink[hard])
    value = value + np.broadcast_to(l1, d) @ cp.abs(w) + 0.5 * np.broadcast_to(l2, d) @ cp.square(w)
    if c is not None:
        value = value + c @ w
    if lower is not None:
        constraints.append(w >= lower)
    if upper is not None:
        constraints.append(w <= upper)
    if ball is not None:
        constraints.append(cp.norm(w, 1 if ball[0] == "l1" else 2) <= ball[1])
    problem = cp.Problem(cp.Minimize(value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def true_objective(X, terms, p, coef, intercept, *, c=None, l1=0.0, l2=0.0, **_):
    f = X @ coef + intercept
    with np.errstate(invalid="ignore"):
        above = np.where(f > terms.upper, (f - terms.upper) * terms.slope_high, 0.0)
        below = np.where(f < terms.lower, (terms.lower - f) * terms.slope_low, 0.0)
    used = p > 0
    value = np.sum((p * (above + below))[used])
    value += np.sum(l1 * np.abs(coef)) + 0.5 * np.sum(l2 * coef**2)
    return value + (0.0 if c is None else c @ coef)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_and_bound_agree_with_a_conic_solver(loss, penalty):
    for seed, (constraint, fit_intercept) in enumerate(product(CONSTRAINTS, (True, False))):
        X, terms, p = make(seed, loss)
        options = settings(penalty, constraint) | {"fit_intercept": fit_intercept}
        best = oracle(X, terms, p, **options)
        scale = max(1.0, abs(best))
        where = f"{loss} {penalty} {constraint} {fit_intercept}"
        for max_iter in (1, 3, 6, 100):
            result = solve_polyhedral(X, terms, p, tol=1e-9, max_iter=max_iter, **options)
            assert result.bound <= best + 1e-9 * scale, where
            assert result.objective >= best - 1e-8 * scale, where
            assert result.gap >= result.objective - best - 2e-9 * scale, where
            assert np.isfinite(result.coef).all(), where
            assert np.isfinite(result.intercept), where
        assert result.status == "optimal", (where, result)
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-8), where
        assert result.gap <= 1e-9
        again = true_objective(X, terms, p, result.coef, result.intercept, **options)
        assert result.objective == pytest.approx(again, rel=1e-12, abs=1e-12), where


def absolute(y, low=1.0, high=1.0):
    y = np.asarray(y, dtype=float)
    return TwoSidedHinge(y, y, low, high)


def labels(sign, slope=1.0):
    inf = np.inf
    return TwoSidedHinge(np.where(sign > 0, 1.0, -inf), np.where(sign > 0, inf, -1.0), slope, slope)


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4))
    return X, X @ np.ones(4) + rng.standard_normal(60)


def check_dual(result, X, terms, p, fit_intercept=True):
    """Theta is in its box and orthogonal to the constant."""
    assert (result.theta >= -np.asarray(terms.slope_low)).all()
    assert (result.theta <= np.asarray(terms.slope_high)).all()
    if fit_intercept:
        assert abs(p @ result.theta) <= 1e-12 * max(1.0, np.abs(p * result.theta).sum())


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_theta_gives_the_bound(data, fit_intercept):
    X, y = data
    p = np.linspace(0, 2, 60)
    terms = absolute(y, 0.3, 0.7)
    result = solve_polyhedral(X, terms, p, l2=0.5, tol=1e-10, fit_intercept=fit_intercept)
    check_dual(result, X, terms, p, fit_intercept)
    v = X.T @ (p * result.theta)
    assert -(p * result.theta) @ y - v @ v / (2 * 0.5) == pytest.approx(result.bound, rel=1e-12)


def test_a_linear_term_and_per_coefficient_penalties(data):
    X, y = data
    c, l1 = np.array([1.0, -2.0, 0.0, 3.0]), np.array([0.0, 1.0, 5.0, 50.0])
    best = oracle(X, absolute(y), np.ones(60), c=c, l1=l1)
    result = solve_polyhedral(X, absolute(y), c=c, l1=l1, tol=1e-9)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize(
    ("low", "high"), [(np.inf, 1.0), (1.0, np.inf), (np.r_[np.inf, np.ones(59)], np.r_[np.inf, np.ones(59)])]
)
def test_hard_sides(data, low, high):
    X, y = data
    terms = absolute(y, low, high)
    result = solve_polyhedral(X, terms, tol=1e-9)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(oracle(X, terms, np.ones(60)), rel=1e-7)


@pytest.mark.parametrize("options", [{"l2": 1.0}, {"l1": 1.0}])
def test_hard_margin(data, options):
    X, _ = data
    sign = np.sign(X @ np.ones(4) + 0.2)
    terms = labels(sign, np.inf)
    result = solve_polyhedral(X, terms, tol=1e-9, **options)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(oracle(X, terms, np.ones(60), **options), rel=1e-7)
    assert (sign * (X @ result.coef + result.intercept)).min() >= 1 - 1e-9


def test_equal_bounds_fix_a_coefficient(data):
    X, y = data
    box = {"lower": np.array([1.0, -np.inf, 0.0, 0.0]), "upper": np.array([1.0, np.inf, 0.0, 5.0])}
    result = solve_polyhedral(X, absolute(y), l2=0.1, tol=1e-9, **box)
    assert result.objective == pytest.approx(oracle(X, absolute(y), np.ones(60), l2=0.1, **box), rel=1e-8)
    assert result.coef[0] == 1.0
    assert result.coef[2] == 0.0


@pytest.mark.parametrize("options", [{}, {"l1": 2.0}, {"l2": 1.0}, {"ball": ("l2", 1.0)}])
def test_weight_is_repetition_and_zero_is_absence(data, options):
    X, y = data
    p = np.random.default_rng(0).integers(0, 4, 60)
    weighted = solve_polyhedral(X, absolute(y), p, tol=1e-9, **options)
    repeated = solve_polyhedral(np.repeat(X, p, axis=0), absolute(np.repeat(y, p)), tol=1e-9, **options)
    assert weighted.objective == pytest.approx(repeated.objective, abs=3e-9)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-4)
    assert not weighted.theta[p == 0].any()


@pytest.mark.parametrize("options", [{}, {"l1": 0.5}, {"l2": 0.5}, {"ball": ("l1", 1.0)}, {"ball": ("l2", 1.0)}])
def test_sparse_and_float32_agree_with_dense(data, options):
    X, y = data
    X = np.where(np.abs(X) > 0.5, X, 0.0).astype(np.float32)
    dense = solve_polyhedral(X, absolute(y), tol=1e-9, **options)
    assert dense.coef.dtype == np.float64
    for kind in (sp.csr_matrix, sp.csc_array):
        sparse = solve_polyhedral(kind(X), absolute(y), tol=1e-9, **options)
        assert sparse.status == "optimal"
        assert sparse.objective == pytest.approx(dense.objective, abs=3e-9)


def test_rank_deficient_designs_cost_nothing(data):
    X, y = data
    best = solve_polyhedral(X, absolute(y), tol=1e-10).objective
    for extra in (X[:, :1] + X[:, 1:2], X, np.ones((60, 1)), np.zeros((60, 2))):
        result = solve_polyhedral(np.hstack([X, extra]), absolute(y), tol=1e-9)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(best, abs=2e-9)


@pytest.mark.parametrize(
    "options", [{}, {"l2": 0.1}, {"l1": 0.1}, {"l1": 1e-6}, {"ball": ("l2", 0.1)}, {"ball": ("l1", 0.5)}]
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_wide_designs(options, fit_intercept):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((20, 50)), rng.standard_normal(20)
    options = options | {"fit_intercept": fit_intercept}
    result = solve_polyhedral(X, absolute(y), tol=1e-9, **options)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(oracle(X, absolute(y), np.ones(20), **options), abs=5e-7)


def test_degenerate_data_have_exact_answers(data):
    X, y = data
    one = np.zeros(60)
    one[3] = 1.0
    zero = {
        "constant target": (X, absolute(np.full(60, 3.0)), None),
        "one sample": (X[:1], absolute(y[:1]), None),
        "two samples": (X[:2], absolute(y[:2]), None),
        "one weight": (X, absolute(y), one),
        "no weight": (X, absolute(y), np.zeros(60)),
        "all in the tube": (X, TwoSidedHinge(y - 1e3, y + 1e3, 1.0, 1.0), None),
    }
    for name, (design, terms, p) in zero.items():
        for options in ({}, {"fit_intercept": False} if name == "one sample" else {"l2": 0.0}):
            result = solve_polyhedral(design, terms, p, tol=1e-9, **options)
            assert result.status == "optimal", name
            assert 0 <= result.objective <= 1e-9, name
    no_columns = solve_polyhedral(X[:, :0], absolute(y), tol=1e-9)
    assert no_columns.objective == pytest.approx(np.abs(y - np.median(y)).sum())
    ties = solve_polyhedral(np.sign(X), absolute(np.sign(y)), tol=1e-9)
    assert ties.objective == pytest.approx(lad_lp(np.sign(X), np.sign(y)).objective, abs=1e-9)


@pytest.mark.parametrize("x_scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("y_scale", [1e-150, 1.0, 1e150])
def test_extreme_magnitudes(data, x_scale, y_scale):
    X, y = data
    plain = solve_polyhedral(X, absolute(y), l1=1.0, tol=1e-9)
    with np.errstate(over="raise", invalid="raise"):
        moved = solve_polyhedral(X * x_scale, absolute(y * y_scale), l1=x_scale, tol=1e-9 * y_scale)
    assert moved.status == "optimal"
    assert moved.objective / y_scale == pytest.approx(plain.objective, abs=2e-9)


def test_shifted_and_contaminated_data(data):
    X, y = data
    best = solve_polyhedral(X, absolute(y), tol=1e-9)
    shifted = solve_polyhedral(X + 1e6, absolute(y + 1e6), tol=1e-9)
    assert shifted.objective == pytest.approx(best.objective, abs=1e-7)
    y = np.r_[1e12, y[1:]]
    outlier = solve_polyhedral(X, absolute(y), tol=1e-3)
    assert outlier.status == "optimal"
    X = np.r_[1e6 * X[:1], X[1:]]
    leverage = solve_polyhedral(X, absolute(y), tol=1e-3)
    assert leverage.objective >= leverage.bound


def test_contradictory_constraints_are_infeasible(data):
    X, y = data
    n = len(y)
    inf = np.full(n, np.inf)
    both = TwoSidedHinge(np.r_[y, -inf], np.r_[inf, y - 1], np.inf, np.inf)
    far = TwoSidedHinge(np.full(n, 1e3), inf, np.inf, 0.0)
    noisy = labels(np.sign(y * np.where(np.arange(n) < 5, -1, 1)), np.inf)
    results = [
        solve_polyhedral(np.vstack([X, X]), both, tol=1e-8),
        solve_polyhedral(X, noisy, l2=1.0, tol=1e-8),
        *(solve_polyhedral(X, far, fit_intercept=False, tol=1e-8, **region)
          for region in ({"lower": -1, "upper": 1}, {"ball": ("l1", 1.0)}, {"ball": ("l2", 1.0)})),
    ]  # fmt: skip
    for result in results:
        assert result.status == "infeasible"
        assert result.objective == result.gap == np.inf
        assert "contradict" in result.message
        assert np.isfinite(result.coef).all()


def test_unbounded_problems_are_named(data):
    X, y = data
    for terms, c in ((absolute(y), 1e4), (TwoSidedHinge(np.ones(60), np.full(60, np.inf), 1.0, 0.0), -1.0)):
        result = solve_polyhedral(X, terms, c=np.full(4, c), tol=1e-8)
        assert result.status == "unbounded"
        assert result.bound == -np.inf
        assert np.isfinite(result.coef).all()


def test_large_balls_do_not_bind_and_small_ones_do(data):
    X, y = data
    best = solve_polyhedral(X, absolute(y), tol=1e-9).objective
    constant = np.abs(y - np.median(y)).sum()
    for kind in ("l1", "l2"):
        assert solve_polyhedral(X, absolute(y), ball=(kind, 1e9), tol=1e-9).objective == pytest.approx(best)
        tiny = solve_polyhedral(X, absolute(y), ball=(kind, 1e-9), tol=1e-9)
        assert tiny.status == "optimal"
        assert tiny.objective == pytest.approx(constant, rel=1e-8)


@pytest.mark.parametrize("loss", ["absolute", "epsilon", "hinge"])
def test_guessing_the_pieces_keeps_the_certificate(loss, monkeypatch):
    options = {"l2": 1e-3} if loss == "hinge" else {}
    X, terms, p = make(5, loss, n=28000)
    tol = 1e-8
    guessed = solve_polyhedral(X, terms, p, tol=tol, **options)
    monkeypatch.setattr(interior_point_reduce, "MANY_ROWS", 10**9)
    whole = solve_polyhedral(X, terms, p, tol=tol, **options)
    assert guessed.status == whole.status == "optimal"
    assert guessed.iterations != whole.iterations  # the shorter way was taken
    assert guessed.objective == pytest.approx(whole.objective, abs=2 * tol)
    assert guessed.gap <= tol
    check_dual(guessed, X, terms, p)


def test_sorted_data_do_not_fool_the_subsample():
    rng = np.random.default_rng(0)
    X = np.sort(rng.standard_normal((25000, 2)), axis=0)
    y = np.where(np.arange(25000) < 800, 50.0, X @ np.ones(2)) + rng.standard_cauchy(25000)
    result = solve_polyhedral(X, absolute(y), tol=1e-6)
    assert result.status == "optimal"
    assert result.gap <= 1e-6


def test_bad_arguments_are_named(data):
    X, y = data
    for wrong, word in (
        ({"p": -np.ones(60)}, "p must"),
        ({"l1": -1.0}, "l1"),
        ({"l2": np.ones(3)}, "l2"),
        ({"lower": 1.0, "upper": 0.0}, "lower"),
        ({"ball": ("l3", 1.0)}, "ball"),
        ({"ball": ("l1", -1.0)}, "ball"),
    ):
        with pytest.raises(ValueError, match=word):
            solve_polyhedral(X, absolute(y), tol=1e-8, **wrong)
    with pytest.raises(ValueError, match="kinks"):
        solve_polyhedral(X, TwoSidedHinge(y + 1, y, 1.0, 1.0), tol=1e-8)


@pytest.mark.parametrize("ball", [None, ("l1", 5.0), ("l2", 5.0)])
def test_one_point_only(ball):
    """A box of equal bounds and no intercept leave nothing to choose."""
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(7, 3)), rng.normal(size=7), np.array([0.5, -1.0, 0.0])
    terms = TwoSidedHinge(y - 0.1, y + 0.1, np.full(7, 2.0), np.full(7, 0.5))
    found = solve_polyhedral(X, terms, l1=0.3, l2=0.2, lower=w, upper=w, ball=ball, fit_intercept=False)
    above, below = np.maximum(X @ w - y - 0.1, 0), np.maximum(y - 0.1 - X @ w, 0)
    value = (0.5 * above + 2.0 * below).sum() + 0.3 * np.abs(w).sum() + 0.1 * w @ w
    assert found.coef.tolist() == w.tolist()
    assert found.objective == found.bound == pytest.approx(value)
    if ball is not None:
        with pytest.raises(ValueError, match="no room in the ball"):
            solve_polyhedral(X, terms, lower=w, upper=w, ball=(ball[0], 0.5), fit_intercept=False)
