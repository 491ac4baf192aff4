"""Every constraint against its definition: projection, prox and conjugate of a penalty on the set."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.evaluation.cases import D, constraints, label, penalties
from tests.grids import grid
from tests.oracles import convex

from certifit.penalties import CONSTRAINTS, Constraint, Penalty, resolve_constraint

EVERY = pytest.mark.parametrize("constraint", constraints(), ids=label)
WITH_PENALTY = pytest.mark.parametrize("penalty", penalties(), ids=label)


def feasible(constraint: Constraint, count: int = 40) -> np.ndarray:
    """Points of the set, many of them on its boundary, drawn without the projection under test."""
    rng = np.random.default_rng(0)
    draws = np.vstack([rng.normal(size=(count, D)) * 5, np.eye(D) * 9, -np.eye(D) * 9])
    low, high = constraint.bounds(D)
    radius = getattr(constraint, "radius", None)
    if radius is not None:
        order = 1 if constraint.name == "l1_ball" else 2
        size = np.linalg.norm(draws, ord=order, axis=1, keepdims=True)
        draws = draws * (radius / size) * rng.choice([1.0, 1.0, 0.5], size=(draws.shape[0], 1))
    return np.clip(draws, low, high)


def points(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(3, D)) * np.array([0.2, 1.0, 6.0])[:, None], [0, 1, -1, 1]])


@EVERY
def test_projection_is_the_nearest_point(constraint: Constraint) -> None:
    """(z − p)·(w − p) ≤ 0 for every w of the set, which characterizes the projection."""
    others = feasible(constraint)
    for z in points(1):
        p = constraint.project(z)
        assert constraint.contains(p)
        np.testing.assert_allclose(constraint.project(p), p, rtol=1e-12, atol=1e-15)
        assert ((others - p) @ (z - p) <= 1e-9).all()
    for w in others:
        assert constraint.contains(w)
        np.testing.assert_allclose(constraint.project(w), w, rtol=1e-12, atol=1e-12)


@EVERY
def test_contains_tells_points_outside(constraint: Constraint) -> None:
    outside = [w for w in np.vstack([np.eye(D), -np.eye(D)]) * 100 if not np.allclose(constraint.project(w), w)]
    for w in outside:
        assert not constraint.contains(w)
    assert outside or constraint == CONSTRAINTS["box"]()


@grid(label, constraint=constraints(), penalty=penalties(), step=[0.3, 4.0])
def test_prox_on_the_set(constraint: Constraint, penalty: Penalty, step: float) -> None:
    """A strongly convex function exceeds its minimum over the set by at least half the squared distance."""

    def objective(w: np.ndarray, z: np.ndarray) -> float:
        return 0.5 * float(np.sum((w - z) ** 2)) + step * penalty.value(w)

    for z in points(2):
        best = constraint.prox(penalty, z, step)
        assert constraint.contains(best)
        reached = objective(best, z)
        near = [constraint.project(best + move) for move in 1e-3 * np.vstack([np.eye(D), -np.eye(D)])]
        for w in [*feasible(constraint), *near]:
            assert objective(w, z) >= reached + 0.5 * np.sum((w - best) ** 2) - 1e-10 * (1 + reached)


@EVERY
@WITH_PENALTY
def test_prox_against_the_oracle(constraint: Constraint, penalty: Penalty) -> None:
    z, step = points(3)[1] * 2, 0.5
    w = cp.Variable(D)
    distance = 0.5 * cp.sum_squares(w - z) + step * cp.sum(convex.penalty_terms(penalty, w))
    wanted = convex.solve(cp.Problem(cp.Minimize(distance), convex.constraint_terms(constraint, w)))
    got = constraint.prox(penalty, z, step)
    assert 0.5 * np.sum((got - z) ** 2) + step * penalty.value(got) == pytest.approx(wanted, rel=1e-7, abs=1e-8)


@grid(label, constraint=constraints(), penalty=penalties(), alpha=[0.0, 0.02, 1.0])
def test_conjugate_is_an_upper_bound_and_tight(constraint: Constraint, penalty: Penalty, alpha: float) -> None:
    """Below the supremum it would make certificates false, above it loose."""
    for v in points(4):
        got = constraint.conjugate(penalty, alpha, v)
        for w in feasible(constraint):
            gain = v @ w - alpha * penalty.value(w)
            assert got >= gain - 1e-12 * (1 + abs(gain))
        wanted = supremum(constraint, penalty, alpha, v)
        if np.isinf(wanted):
            assert got > 1e6
        else:
            assert got == pytest.approx(wanted, rel=1e-7, abs=1e-7)


def supremum(constraint: Constraint, penalty: Penalty, alpha: float, v: np.ndarray) -> float:
    """sup over w in the set of v·w − alpha·Ω(w): by coordinates on a box, by the oracle on a ball."""
    if hasattr(constraint, "radius"):
        w = cp.Variable(D)
        gain = v @ w - alpha * cp.sum(convex.penalty_terms(penalty, w)) if alpha else v @ w
        return convex.solve(cp.Problem(cp.Maximize(gain), convex.constraint_terms(constraint, w)))
    total = 0.0
    for j, (low, high) in enumerate(zip(*constraint.bounds(D), strict=True)):

        def loss(x: float, j: int = j) -> float:
            w = np.zeros(D)
            w[j] = x
            return float(alpha * penalty.each(w)[j] - v[j] * x)

        sizes = np.geomspace(1e-12, 1e120, 397)
        tried = np.unique(np.clip(np.concatenate([-sizes, [0.0], sizes]), low, high))
        at = np.array([loss(x) for x in tried])
        best = int(np.argmin(np.where(at == at.min(), np.abs(tried), np.inf)))  # of equal ones the smallest
        if abs(tried[best]) > 1e119:
            return np.inf
        bounds = (tried[max(best - 1, 0)], tried[min(best + 1, tried.size - 1)])
        found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-10 * abs(tried[best])})
        total -= min(at[best], found.fun)
    return total


@EVERY
@WITH_PENALTY
def test_conjugate_at_zero_is_zero_when_zero_is_allowed(constraint: Constraint, penalty: Penalty) -> None:
    if constraint.contains(np.zeros(D)):
        assert constraint.conjugate(penalty, 0.5, np.zeros(D)) == pytest.approx(0.0, abs=1e-15)


@grid(label, constraint=constraints(), penalty=penalties(), scale=[1e-100, 1e100])
def test_extreme_magnitudes_give_no_nan(constraint: Constraint, penalty: Penalty, scale: float) -> None:
    for z in points(5) * scale:
        assert np.isfinite(constraint.project(z)).all()
        best = constraint.prox(penalty, z, 0.5)
        assert np.isfinite(best).all()
        assert constraint.contains(best)
        with np.errstate(over="ignore"):
            assert not np.isnan(constraint.conjugate(penalty, 0.5, z))


@EVERY
@pytest.mark.parametrize("unit", [np.full(D, 0.25), np.full(D, 1e50), np.array([0.5, 2.0, 3.0, 1.0])])
def test_rescaled_is_the_same_set_in_other_units(constraint: Constraint, unit: np.ndarray) -> None:
    if hasattr(constraint, "radius") and np.ptp(unit) > 0:
        with pytest.raises(ValueError, match="unit"):
            constraint.rescaled(unit)
        return
    scaled = constraint.rescaled(unit)
    for w in feasible(constraint):
        np.testing.assert_allclose(scaled.project(w * unit), w * unit, rtol=1e-12)
    for z in points(6) * 20:
        assert scaled.contains(z * unit) == constraint.contains(z)


@EVERY
def test_bounds_enclose_the_set(constraint: Constraint) -> None:
    low, high = constraint.bounds(D)
    assert low.shape == high.shape == (D,)
    for w in feasible(constraint):
        assert (low <= w).all()
        assert (w <= high).all()


@pytest.mark.parametrize(
    ("name", "parameters", "error", "match"),
    [
        ("box", {"lower": 1.0, "upper": 0.0}, ValueError, "lower <= upper"),
        ("box", {"lower": np.nan}, ValueError, "lower <= upper"),
        ("l1_ball", {"radius": -1.0}, ValueError, "radius"),
        ("l2_ball", {"radius": np.nan}, ValueError, "radius"),
        ("l2_ball", {"radius": "1"}, TypeError, "radius"),
    ],
)
def test_bad_parameters_are_named(name: str, parameters: dict[str, object], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        CONSTRAINTS[name](**parameters)


def test_a_box_must_match_the_features() -> None:
    with pytest.raises(ValueError, match=r"3 bounds.*4 features"):
        CONSTRAINTS["box"](np.zeros(3), np.ones(3)).project(np.zeros(4))


def test_names_resolve_and_unknown_names_list_the_choices() -> None:
    assert resolve_constraint(None) is None
    assert resolve_constraint("non_negative") == CONSTRAINTS["non_negative"]()
    ball = CONSTRAINTS["l1_ball"](2.0)
    assert resolve_constraint(ball) is ball
    for bad in ("positive", 3, "l1_ball", CONSTRAINTS["l1_ball"]):
        with pytest.raises(ValueError, match="constraint must be None, 'non_negative'"):
            resolve_constraint(bad)
