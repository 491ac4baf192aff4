"""Every penalty against its definition: prox, conjugate, subdifferential, scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.evaluation.cases import WEIGHTS, D, label, penalties

from certifit.penalties import PENALTIES, ElasticNet, Penalty, RowNorms, resolve_penalty, soft_threshold

EVERY = pytest.mark.parametrize("penalty", penalties(), ids=label)
STEP = pytest.mark.parametrize("step", [1e-3, 0.3, 2.0, 1e3])


def points(seed: int, scale: float = 1.0) -> np.ndarray:
    """A few vectors, with zeros, ties and signs."""
    rng = np.random.default_rng(seed)
    draws = scale * rng.normal(size=(6, D)) * np.array([0.1, 1, 1, 3, 10, 100])[:, None]
    return np.vstack([draws, np.zeros(D), np.ones(D) * scale, [-scale, 0, scale, 0.4 * scale]])


@EVERY
def test_value_is_even_convex_and_zero_at_zero(penalty: Penalty) -> None:
    assert penalty.value(np.zeros(D)) == 0.0
    for w, v in zip(points(0), points(1), strict=True):
        assert penalty.value(w) == penalty.value(-w) >= 0
        assert penalty.value(w) == pytest.approx(penalty.each(w).sum())
        middle = penalty.each(0.3 * w + 0.7 * v)
        assert (middle <= 0.3 * penalty.each(w) + 0.7 * penalty.each(v) + 1e-12 * (1 + middle)).all()


@EVERY
@STEP
def test_prox_satisfies_its_optimality_condition(penalty: Penalty, step: float) -> None:
    """(z − w)/step is a subgradient at w."""
    for z in points(2):
        w = penalty.prox(z, step)
        resolution = np.finfo(float).tiny ** 0.5  # a coefficient below it has no slope left to compare
        visible = (np.abs(w) > resolution) | (w == penalty.prox(z, 0.0))
        distance = step * penalty.subdifferential_distance(w, (w - z) / step)
        assert (distance <= 1e-11 * (1 + np.abs(z)))[visible | (penalty.power(D) is None)].all()


@EVERY
@STEP
def test_prox_against_brute_force(penalty: Penalty, step: float) -> None:
    for z in points(3)[::2]:
        w = penalty.prox(z, step)
        assert w.shape == z.shape
        for j in range(D):

            def objective(x: float, j: int = j, z: np.ndarray = z) -> float:
                trial = np.zeros(D)
                trial[j] = x
                return 0.5 * (x - z[j]) ** 2 + step * penalty.each(trial)[j]

            low, high = sorted((0.0, z[j]))
            found = minimize_scalar(objective, bounds=(low - 1e-9, high + 1e-9), method="bounded").fun
            best = min(found, objective(0.0), objective(z[j]))
            assert objective(w[j]) <= best + 1e-12 * (1 + best)


@EVERY
def test_prox_takes_one_step_for_each_coefficient(penalty: Penalty) -> None:
    z, steps = points(4)[1], np.array([0.1, 1.0, 2.0, 0.0])
    wanted = [penalty.prox(z, s)[j] for j, s in enumerate(steps)]
    np.testing.assert_allclose(penalty.prox(z, steps), wanted, rtol=1e-14)
    np.testing.assert_allclose(penalty.prox(z, 0.0), z, rtol=1e-15)


@EVERY
def test_prox_is_non_expansive_and_odd(penalty: Penalty) -> None:
    for z, v in zip(points(5), points(6), strict=True):
        a, b = penalty.prox(z, 0.7), penalty.prox(v, 0.7)
        assert np.linalg.norm(a - b) <= np.linalg.norm(z - v) * (1 + 1e-12)
        np.testing.assert_array_equal(penalty.prox(-z, 0.7), -a)


@EVERY
def test_conjugate_is_the_supremum(penalty: Penalty) -> None:
    grid = np.concatenate([[0.0], np.geomspace(1e-9, 1e9, 4001)])
    for v in points(7)[[0, 1, 2, 3, 6, 7, 8]]:
        conjugate = penalty.conjugate(v)
        trial = np.copysign(grid[:, None], v)  # the penalty is a sum over coordinates: all of them at once
        all_gains = v * trial - np.array([penalty.each(t) for t in trial])
        for j in range(D):
            gains = all_gains[:, j]
            best = int(np.argmax(gains))
            if best == grid.size - 1:  # still rising: the supremum is infinite, or beyond the grid
                assert conjugate[j] >= gains[best]
                continue
            assert conjugate[j] >= gains[best] - 1e-12 * (1 + abs(gains[best]))
            assert conjugate[j] <= gains[best] + 1e-9 + 1e-4 * abs(gains[best])  # the grid's own error


@EVERY
def test_argmax_attains_the_conjugate(penalty: Penalty) -> None:
    """v is a subgradient at argmax(v); Fenchel-Young holds with equality there."""
    for v in points(8)[:4]:
        w = penalty.argmax(v)
        finite = np.isfinite(w)
        np.testing.assert_array_equal(np.isfinite(penalty.conjugate(v)), finite)
        w = np.where(finite, w, 0.0)
        gain = v * w - penalty.each(w)
        np.testing.assert_allclose(penalty.conjugate(v)[finite], gain[finite], rtol=1e-14)
        distance = penalty.subdifferential_distance(w, -v)
        assert (distance <= 1e-11 * (1 + np.abs(v)))[finite & ((w != 0) | (v == 0))].all()
        for other in points(9):
            bound = penalty.each(other) + penalty.conjugate(v)
            assert (bound >= v * other - 1e-12 * (1 + np.abs(v * other))).all()


@EVERY
def test_subdifferential_contains_exactly_the_supporting_slopes(penalty: Penalty) -> None:
    for w in points(10):
        low, high = penalty.subdifferential(w)
        assert (low <= high).all()
        for slope in (low, high, 0.5 * (low + high)):
            np.testing.assert_array_equal(
                penalty.subdifferential_distance(w, -slope) <= 1e-14 * (1 + np.abs(slope)), True
            )
            for other in points(11):
                line = penalty.each(w) + slope * (other - w)
                assert (penalty.each(other) >= line - 1e-11 * (1 + np.abs(line))).all()
        np.testing.assert_allclose(penalty.subdifferential_distance(w, -(high + 0.5)), 0.5, rtol=1e-9)
        np.testing.assert_allclose(penalty.subdifferential_distance(w, -(low - 0.5)), 0.5, rtol=1e-9)


@EVERY
@pytest.mark.parametrize("unit", [np.array([0.5, 1.0, 3.0, 1e-3]), np.full(D, 1e50), np.array([1e-60, 1, 1e60, 2])])
def test_rescaled_is_the_same_penalty_in_other_units(penalty: Penalty, unit: np.ndarray) -> None:
    scaled = penalty.rescaled(unit)
    for w in points(12):
        np.testing.assert_allclose(scaled.each(w * unit), penalty.each(w), rtol=1e-12, atol=1e-300)


@EVERY
def test_elastic_and_power_forms_are_the_penalty(penalty: Penalty) -> None:
    elastic, power = penalty.elastic(D), penalty.power(D)
    for w in points(13):
        if elastic is not None:
            l1, l2 = elastic
            np.testing.assert_allclose(penalty.each(w), l1 * np.abs(w) + 0.5 * l2 * w**2, rtol=1e-14)
        if power is not None:
            q, c = power
            np.testing.assert_allclose(penalty.each(w), c * np.abs(w) ** q / q, rtol=1e-14)


@EVERY
@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e20, 1e150])
def test_magnitudes_up_to_1e150_give_no_nan(penalty: Penalty, scale: float) -> None:
    with np.errstate(over="ignore", under="ignore", divide="raise", invalid="raise"):
        for w in points(14, scale):
            low, high = penalty.subdifferential(w)
            for result in (penalty.each(w), penalty.argmax(w), penalty.conjugate(w), low, high):
                assert not np.isnan(result).any()
            for step in (1e-150, 1.0, 1e150):
                small = penalty.prox(w, step)
                assert np.isfinite(small).all()
                assert (np.abs(small) <= np.abs(w)).all()
                assert (small * w >= 0).all()


@EVERY
def test_weights_must_match_the_features(penalty: Penalty) -> None:
    if penalty.weights is None:
        assert penalty.each(np.ones(D + 3)).shape == (D + 3,)
        return
    with pytest.raises(ValueError, match=rf"{D} weights.*{D + 3} features"):
        penalty.each(np.ones(D + 3))


@pytest.mark.parametrize("name", [name for name in PENALTIES if name != "none"])
@pytest.mark.parametrize("weights", [[-1.0], [np.nan], [np.inf], [[1.0]], 1.0])
def test_bad_weights_are_named(name: str, weights: object) -> None:
    with pytest.raises(ValueError, match="weights"):
        PENALTIES[name](weights=weights)


@pytest.mark.parametrize(
    ("name", "parameters", "error"),
    [
        ("elasticnet", {"l1_ratio": -0.1}, ValueError),
        ("elasticnet", {"l1_ratio": 1.1}, ValueError),
        ("elasticnet", {"l1_ratio": "a"}, TypeError),
        ("lq", {"q": 1.0}, ValueError),
        ("lq", {"q": 2.1}, ValueError),
        ("lq", {"q": np.nan}, ValueError),
    ],
)
def test_bad_parameters_are_named(name: str, parameters: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(parameters))):
        PENALTIES[name](**parameters)


def test_names_resolve_and_unknown_names_list_the_choices() -> None:
    for name, cls in PENALTIES.items():
        assert type(resolve_penalty(name)) is cls
    assert resolve_penalty(None) == PENALTIES["none"]()
    assert resolve_penalty(PENALTIES["l1"](weights=WEIGHTS)) == PENALTIES["l1"](weights=WEIGHTS)
    assert resolve_penalty("elasticnet", l1_ratio=0.3) == PENALTIES["elasticnet"](l1_ratio=0.3)
    for bad in ("L3", 3, PENALTIES["l1"]):
        with pytest.raises(ValueError, match=r"penalty must be None, one of 'none', 'l2'"):
            resolve_penalty(bad)


@pytest.mark.parametrize("t", [-1.0, np.array([1.0, -1e-9]), np.nan])
def test_a_threshold_below_zero_is_none(t: Any) -> None:
    with pytest.raises(ValueError, match="t must be ≥ 0"):
        soft_threshold(np.array([1.0, 2.0]), t)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_norms_of_rows(l1_ratio: float) -> None:
    """Value by definition, prox by its optimality condition, conjugate against Fenchel's inequality, which the argmax attains."""
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 2.0, 0.5, 3.0])
    penalty = RowNorms(l1_ratio, weights)
    W, Z = rng.normal(size=(2, 3, 4))
    W[:, 2] = 0.0
    size = np.linalg.norm(W, axis=0)
    assert penalty.value(W) == pytest.approx((weights * (l1_ratio * size + (1 - l1_ratio) * 0.5 * size**2)).sum())
    near = penalty.prox(Z, 2.0)
    np.testing.assert_allclose(penalty.subdifferential_distance(near, (near - Z) / 2.0), 0.0, atol=1e-12)
    assert (near == 0).all(axis=0).any()
    V = 0.3 * Z if l1_ratio == 1.0 else 3.0 * Z
    V[:, 0] *= 0.01
    dual = penalty.conjugate(V)
    assert (dual[np.isfinite(dual)] >= ((V * W).sum(axis=0) - penalty.each(W))[np.isfinite(dual)] - 1e-12).all()
    best = penalty.argmax(V)
    finite = np.isfinite(best).all(axis=0)
    np.testing.assert_allclose(
        ((V * np.where(finite, best, 0.0)).sum(axis=0) - penalty.each(np.where(finite, best, 0.0)))[finite],
        dual[finite],
    )
    assert np.isinf(dual[~finite]).all()
    one = ElasticNet(l1_ratio, weights)
    for name in ("each", "argmax", "conjugate"):
        np.testing.assert_allclose(getattr(penalty, name)(W[0]), getattr(one, name)(W[0]))
    np.testing.assert_allclose(penalty.prox(W[0], 0.3), one.prox(W[0], 0.3))
    assert RowNorms().value(1e200 * W) == pytest.approx(1e200 * size.sum())
