"""Every loss against its definition: derivatives, conjugate, best constant, scales, extremes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.evaluation.cases import allowed, label, losses, pairs, targets
from tests.evaluation.user_losses import USER_LOSSES

from certifit._types import Array
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.losses import LOSSES, Loss, ModifiedHuber, Poisson, Softmax, resolve_loss

EVERY = pytest.mark.parametrize("loss", [*losses(), *USER_LOSSES], ids=label)
REGISTERED = pytest.mark.parametrize("loss", losses(), ids=label)
SMOOTH = pytest.mark.parametrize("loss", [loss for loss in [*losses(), *USER_LOSSES] if loss.smooth], ids=label)
SCORES = np.linspace(-7.03, 7.01, 83)


def supremum(loss: Loss, y: float, u: float, reach: float = 200.0) -> float:
    """sup over f of u·f − ℓ(y, f): a grid, then a local search."""
    f = np.unique(np.concatenate([np.linspace(-reach, reach, 8001), np.linspace(y - 3, y + 3, 601)]))

    def gain(f: Array) -> Array:
        with np.errstate(over="ignore"):
            return u * f - loss.value(np.full_like(f, y), f)

    at = gain(f)
    best = int(np.argmax(at))
    found = minimize_scalar(
        lambda x: -gain(np.array([x]))[0],
        bounds=(f[best] - 0.1, f[best] + 0.1),  # twice the spacing of the grid
        method="bounded",
        options={"xatol": 1e-12},
    )
    return float(max(at[best], -found.fun))


@EVERY
def test_value_is_convex_with_minimum_zero(loss: Loss) -> None:
    for y in targets(loss):
        for f in (np.linspace(-60, 60, 2401), np.linspace(y - 2, y + 2, 801)):
            value = loss.value(np.full_like(f, y), f)
            assert (value >= 0).all()
            bend = value[2:] - 2 * value[1:-1] + value[:-2]
            assert (bend >= -1e-13 * (1 + abs(y) + value[2:] + value[:-2])).all()
        if y == 0 and not np.isfinite(loss.optimal_constant(np.zeros(1), np.ones(1))):
            continue  # the infimum is a limit: the best Poisson rate of y = 0 is zero
        best = loss.optimal_constant(np.array([y]), np.ones(1))
        assert loss.value(np.array([y]), np.array([best]))[0] <= 1e-13 * (1 + abs(y))


@EVERY
def test_derivative_is_a_subgradient(loss: Loss) -> None:
    """ℓ(g) ≥ ℓ(f) + ℓ'(f)(g − f) for all scores g, at kinks too."""
    for y in targets(loss):
        kinks = np.array([y, y - 0.1, y + 0.1, y + 1.5])
        f, g = pairs(np.concatenate([SCORES, kinks]), SCORES)
        target = np.full_like(f, y)
        line = loss.value(target, f) + loss.derivative(target, f) * (g - f)
        above = loss.value(target, g)
        assert (above >= line - 1e-12 * (1 + np.abs(line) + above)).all()


def differences(function: Callable[[Array, Array], Array], y: Array, f: Array, h: float) -> tuple[Array, Array]:
    """Slopes in f by central differences, and where both sides agree: away from kinks."""
    right = (function(y, f + h) - function(y, f)) / h
    left = (function(y, f) - function(y, f - h)) / h
    smooth = np.abs(right - left) <= 1e-3 * (1 + np.abs(right))
    assert smooth.mean() > 0.8
    return 0.5 * (left + right), smooth


@EVERY
def test_derivative_against_differences(loss: Loss) -> None:
    y, f = pairs(targets(loss), SCORES)
    slopes, smooth = differences(loss.value, y, f, 1e-5)
    got = loss.derivative(y, f)
    np.testing.assert_allclose(got[smooth], slopes[smooth], rtol=1e-6, atol=1e-6 * (1 + np.abs(y).max()))


@SMOOTH
def test_second_derivative_against_differences(loss: Loss) -> None:
    y, f = pairs(targets(loss), SCORES)
    slopes, smooth = differences(loss.derivative, y, f, 1e-6)
    got = loss.second_derivative(y, f)
    assert (got >= 0).all()
    np.testing.assert_allclose(got[smooth], slopes[smooth], rtol=1e-5, atol=1e-6 * (1 + np.abs(y).max()))
    assert (got <= loss.smoothness * (1 + 1e-12)).all()


@SMOOTH
def test_slopes_are_the_two_derivatives(loss: Loss) -> None:
    y, f = pairs(targets(loss), SCORES)
    first, second = loss.slopes(y, f)
    np.testing.assert_array_equal(first, loss.derivative(y, f))
    np.testing.assert_array_equal(second, loss.second_derivative(y, f))


@pytest.mark.parametrize("loss", [LOSSES["logistic"](), HardLogistic()], ids=["soft", "hard"])
def test_logistic_slopes_keep_their_digits_at_large_scores(loss: Loss) -> None:
    f = np.array([0.0, 1e-3, 5.0, 40.0, 300.0, 700.0])
    small = np.exp(-f) / (1.0 + np.exp(-f))  # the probability of the other class: 1 − π has lost it from f = 37 on
    for y, s in ((np.ones(6), 1.0), (np.zeros(6), -1.0)):
        for first, second in (loss.slopes(y, s * f), (loss.derivative(y, s * f), loss.second_derivative(y, s * f))):
            np.testing.assert_allclose(first, -s * small, rtol=1e-14)
            np.testing.assert_allclose(second, small / (1.0 + np.exp(-f)), rtol=1e-14)
        np.testing.assert_allclose(loss.slopes(y, -s * f)[0], -s * (1.0 - small), rtol=1e-14)


@REGISTERED
def test_loss_without_curvature_says_so(loss: Loss) -> None:
    if loss.smooth:
        assert np.isfinite(loss.second_derivative(targets(loss), targets(loss) * 0.1)).all()
        return
    assert loss.hinge_terms(targets(loss)) is not None
    with pytest.raises(TypeError, match=type(loss).__name__):
        loss.second_derivative(targets(loss), targets(loss))


@EVERY
def test_smoothness_bounds_the_derivative(loss: Loss) -> None:
    if not np.isfinite(loss.smoothness):
        return
    y, f = pairs(targets(loss), SCORES)
    moved = loss.derivative(y, f + 0.37) - loss.derivative(y, f)
    assert (moved <= loss.smoothness * 0.37 * (1 + 1e-9)).all()


@EVERY
def test_conjugate_is_the_supremum(loss: Loss) -> None:
    for y in targets(loss):
        f = np.linspace(-4, 4, 9)
        slopes = loss.derivative(np.full_like(f, y), f)
        low, high = loss.dual_domain(np.array([y]))
        inner = np.clip([0.0, 0.01, -0.01], low, high)
        for u in np.unique(np.concatenate([slopes, inner])):
            wanted = supremum(loss, float(y), float(u))
            got = float(loss.conjugate(np.array([y]), np.array([u]))[0])
            assert got == pytest.approx(wanted, rel=1e-7, abs=1e-7)


@EVERY
def test_fenchel_young(loss: Loss) -> None:
    """ℓ(f) + ℓ*(u) ≥ u·f for all f and u, with equality at u = ℓ'(f)."""
    for y in targets(loss):
        f = SCORES[::2]
        target = np.full_like(f, y)
        slopes = loss.derivative(target, f)
        with np.errstate(over="ignore"):
            conjugate = loss.conjugate(target, slopes, f)
        value = loss.value(target, f)
        scale = 1 + np.abs(slopes * f) + value + np.abs(conjugate)
        np.testing.assert_array_less(np.abs(value + conjugate - slopes * f) / scale, 1e-12)
        score, u = pairs(f, slopes)
        target = np.full_like(score, y)
        right = score * u
        left = loss.value(target, score) + loss.conjugate(target, u)
        assert (left >= right - 1e-12 * (1 + np.abs(right) + loss.value(target, score))).all()


@EVERY
def test_conjugate_is_infinite_outside_its_domain_and_a_limit_at_its_edge(loss: Loss) -> None:
    y = targets(loss)
    low, high = loss.dual_domain(y)
    assert (low <= 0).all()
    assert (high >= 0).all()
    for edge, outwards in ((low, -1.0), (high, 1.0)):
        finite = np.isfinite(edge)
        if not finite.any():
            continue
        assert np.isposinf(loss.conjugate(y, edge + outwards * (1e-6 + 1e-6 * np.abs(edge)))[finite]).all()
        at_edge = loss.conjugate(y, edge)
        for i in np.flatnonzero(finite):
            # The supremum may be a limit; a conjugate below it would make a certificate false.
            f = np.concatenate([np.linspace(-40, 40, 161), y[i] + np.linspace(-40, 40, 161)])
            gains = edge[i] * f - loss.value(np.full_like(f, y[i]), f)
            assert at_edge[i] >= gains.max() - 1e-9 * (1 + np.abs(gains.max()))


@SMOOTH
def test_default_conjugate_equals_the_closed_form(loss: Loss) -> None:
    for y in targets(loss):
        f = np.linspace(-6, 6, 25)
        target = np.full_like(f, y)
        u = loss.derivative(target, f)
        low, high = loss.dual_domain(target)
        u = np.concatenate([u, 0.5 * u, 0.999 * u])
        target, low, high = (np.tile(a, 3) for a in (target, low, high))
        usable = (u > low) & (u < high)
        closed, default = loss.conjugate(target, u), Loss.conjugate(loss, target, u)
        # A closed form adds terms of the size of y·ln y.
        scale = 1 + np.abs(u) * (1 + np.abs(np.log(np.abs(y) + 1e-300)) * (y != 0)) + np.abs(y) * 4
        assert (np.abs(closed - default) <= 1e-11 * scale)[usable].all()


@SMOOTH
def test_default_conjugate_does_not_depend_on_its_start(loss: Loss) -> None:
    for y in targets(loss):
        f = np.linspace(-6, 6, 13)
        target = np.full_like(f, y)
        u = 0.7 * loss.derivative(target, f)
        far = Loss.conjugate(loss, target, u, np.full_like(f, 50.0))
        near = Loss.conjugate(loss, target, u, f)
        np.testing.assert_allclose(far, near, rtol=1e-10, atol=1e-10 * (1 + abs(y)))


@EVERY
def test_default_dual_domain_equals_the_closed_form(loss: Loss) -> None:
    y = targets(loss)
    for default, closed in zip(Loss.dual_domain(loss, y), loss.dual_domain(y), strict=True):
        infinite = np.abs(default) > 1e150
        np.testing.assert_allclose(np.where(infinite, np.copysign(np.inf, default), default), closed, rtol=1e-12)


@REGISTERED
def test_hinge_terms_are_the_loss(loss: Loss) -> None:
    y, f = pairs(targets(loss), SCORES)
    terms = loss.hinge_terms(y)
    if loss.smooth:
        assert terms is None
        return
    assert terms is not None
    value = terms.slope_high * np.maximum(f - terms.upper, 0) + terms.slope_low * np.maximum(terms.lower - f, 0)
    np.testing.assert_allclose(loss.value(y, f), value, rtol=1e-14)
    assert (terms.lower <= terms.upper).all()


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_optimal_constant_beats_all_others(loss: Loss, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.choice(targets(loss), size=15) if seed else targets(loss)
    y = allowed(loss, np.where(np.abs(y) < 20, y + 0.01 * rng.normal(size=y.size), y))
    y = y if y.size else targets(loss)
    weight = rng.integers(1, 4, size=y.size).astype(float)

    def mean_loss(c: float) -> float:
        with np.errstate(over="ignore"):
            return float(weight @ loss.value(y, np.full_like(y, c)) / weight.sum())

    best = loss.optimal_constant(y, weight)
    assert isinstance(best, float)
    reached = mean_loss(best)
    for c in np.concatenate([np.linspace(-45, 45, 1801), best + np.linspace(-1e-2, 1e-2, 21), y]):
        assert reached <= mean_loss(c) * (1 + 1e-12) + 1e-12


@EVERY
def test_default_optimal_constant_reaches_the_same_loss(loss: Loss) -> None:
    y = targets(loss)
    weight = np.linspace(1.0, 2.0, y.size)
    default = Loss.optimal_constant(loss, y, weight)
    closed = loss.optimal_constant(y, weight)
    ours, theirs = (weight @ loss.value(y, np.full_like(y, c)) for c in (default, closed))
    assert ours == pytest.approx(theirs, rel=1e-10, abs=1e-12)


@REGISTERED
@pytest.mark.parametrize("unit", [1e-100, 1e-6, 1.0, 1e6, 1e100])
def test_optimal_constant_follows_the_unit_of_y(loss: Loss, unit: float) -> None:
    if loss.rescaled(unit) is None:
        return
    y = targets(loss)
    weight = np.linspace(1.0, 2.0, y.size)
    scaled, _ = loss.rescaled(1 / unit)  # type: ignore[misc]
    np.testing.assert_allclose(scaled.optimal_constant(y * unit, weight), loss.optimal_constant(y, weight) * unit)


@REGISTERED
def test_weight_two_is_a_target_twice(loss: Loss) -> None:
    y = targets(loss)
    weight = 1.0 + (np.arange(y.size) % 2)
    repeated = np.repeat(y, weight.astype(int))
    a, b = loss.optimal_constant(y, weight), loss.optimal_constant(repeated, np.ones(repeated.size))
    ours, theirs = (np.ones(repeated.size) @ loss.value(repeated, np.full_like(repeated, c)) for c in (a, b))
    assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-14)


@REGISTERED
@pytest.mark.parametrize("unit", [1e-100, 1e-3, 0.5, 7.0, 1e100])
def test_rescaled_is_the_same_loss_in_another_unit(loss: Loss, unit: float) -> None:
    y, f = pairs(targets(loss), SCORES)
    other = loss.rescaled(unit)
    if other is None:
        return
    scaled, factor = other
    np.testing.assert_allclose(
        factor * scaled.value(y / unit, f / unit),
        loss.value(y, f),
        rtol=1e-12,
        atol=1e-13 * loss.value(y, f).max(),
    )


@REGISTERED
def test_magnitudes_up_to_1e150_give_no_nan(loss: Loss) -> None:
    sizes = np.array([0.0, 1e-150, 1e-20, 1e-3, 1.0, 1e3, 1e20, 1e150])
    signed = np.unique(np.concatenate([-sizes, sizes]))
    y, f = pairs(allowed(loss, signed), signed)
    with np.errstate(over="ignore", divide="raise", invalid="raise"):  # only an overflow to infinity is allowed
        value, slope = loss.value(y, f), loss.derivative(y, f)
        curvature = loss.second_derivative(y, f) if loss.smooth else np.zeros_like(f)
        conjugate = loss.conjugate(y, np.where(np.isfinite(slope), slope, 0.0), f)
    for result in (value, slope, curvature, conjugate):
        assert not np.isnan(result).any()
    assert (value >= 0).all()
    assert (curvature >= 0).all()
    best = [loss.optimal_constant(np.array([t]), np.ones(1)) for t in np.unique(y)]
    assert not np.isnan(best).any()


@REGISTERED
def test_near_its_minimum_the_value_keeps_its_precision(loss: Loss) -> None:
    """Values near zero come from a difference; its rounding must not grow with y."""
    y = allowed(loss, np.array([1e-8, 1.0, 1e8, 1e12]))
    best = np.array([loss.optimal_constant(np.array([t]), np.ones(1)) for t in y])
    assert (loss.value(y, best) <= 1e-14 * np.maximum(y, 1e-8)).all()


@EVERY
def test_single_precision_agrees_with_double(loss: Loss) -> None:
    y, f = pairs(targets(loss), np.linspace(-3.03, 3.02, 13))
    single = (y.astype(np.float32), f.astype(np.float32))
    double = tuple(a.astype(np.float64) for a in single)
    methods = [loss.value, loss.derivative, *([loss.second_derivative] if loss.smooth else [])]
    for method in methods:
        got, wanted = method(*single), method(*double)
        assert got.dtype in (np.float32, np.float64)
        assert got.shape == f.shape
        np.testing.assert_allclose(got, wanted, rtol=3e-5, atol=3e-5 * (1 + np.abs(wanted).max()))
        assert wanted.dtype == np.float64


@EVERY
def test_inputs_are_left_alone(loss: Loss) -> None:
    y, f = pairs(targets(loss), SCORES)
    for array in (y, f):
        array.flags.writeable = False
    loss.value(y, f), loss.derivative(y, f), loss.dual_domain(y), loss.optimal_constant(y, np.ones(y.size))
    loss.conjugate(y, 0.1 * np.minimum(loss.derivative(y, f), 1.0), f)


@REGISTERED
def test_predict_is_monotone(loss: Loss) -> None:
    prediction = loss.predict(SCORES)
    # Only the modified Huber loss reaches the probabilities 0 and 1, and stays there.
    ended = isinstance(loss, ModifiedHuber) & np.isin(prediction[1:], (0.0, 1.0)) & (np.abs(SCORES[1:]) > 1.0)
    assert ((np.diff(prediction) > 0) | ended).all()
    assert prediction.shape == SCORES.shape


@pytest.mark.parametrize(("name", "bad"), [("poisson", -1.0), ("gamma", 0.0), ("gamma", -2.0), ("relative", 0.0)])
def test_a_target_outside_the_domain_is_named(name: str, bad: float) -> None:
    y = np.array([1.0, 2.0, bad, bad])
    with pytest.raises(ValueError, match=r"y .*row 2"):
        LOSSES[name]().check_target(y)
    LOSSES[name]().check_target(np.abs(y) + 1)


@pytest.mark.parametrize(
    ("name", "parameters", "error"),
    [
        ("huber", {"delta": 0.0}, ValueError),
        ("huber", {"delta": np.inf}, ValueError),
        ("huber", {"curvature": -1.0}, ValueError),
        ("huber", {"delta": "1"}, TypeError),
        ("quantile", {"quantile": 0.0}, ValueError),
        ("quantile", {"quantile": 1.0}, ValueError),
        ("quantile", {"quantile": np.nan}, ValueError),
        ("epsilon_insensitive", {"epsilon": -0.1}, ValueError),
        ("epsilon_insensitive", {"epsilon": True}, TypeError),
    ],
)
def test_bad_parameters_are_named(name: str, parameters: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(parameters))):
        LOSSES[name](**parameters)


def test_huber_from_lambda_mu_is_the_textbook_form() -> None:
    lam, mu = 1.7, 0.6
    z = np.linspace(-5, 5, 101)
    wanted = np.where(np.abs(z) < lam / (2 * mu), mu * z**2, lam * (np.abs(z) - lam / (4 * mu)))
    got = LOSSES["huber"].from_lambda_mu(lam, mu).value(np.zeros_like(z), z)  # type: ignore[attr-defined]
    np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_names_resolve_and_unknown_names_list_the_choices() -> None:
    for name, cls in LOSSES.items():
        assert type(resolve_loss(name)) is cls
        assert resolve_loss(cls()) == cls()
    for bad in ("sqared", None, 3, LOSSES["squared"]):
        with pytest.raises(ValueError, match="loss must be one of 'squared'"):
            resolve_loss(bad)


@pytest.mark.parametrize("name", ["logistic", "exponential", "squared_hinge", "modified_huber", "hinge"])
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_the_best_constant_of_one_class_is_a_number_however_shares_are_rounded(name: str, label: float) -> None:
    loss = LOSSES[name]()
    for n in range(1, 200):
        found = loss.optimal_constant(np.full(n, label), np.full(n, 1.0 / n))
        assert np.isfinite(found), n
        assert (found > 0) == (label > 0)


@pytest.mark.parametrize("score", [1.0, 21.6, 36.0, 40.0, 300.0])
def test_the_loss_of_a_label_that_is_nearly_certain_keeps_its_digits(score: float) -> None:
    wanted = np.full(2, np.log1p(np.exp(-score)))
    signs, labels = np.array([1.0, -1.0]), np.array([1, 0])
    for loss in (LOSSES["logistic"](), HardLogistic()):
        np.testing.assert_allclose(loss.value(labels.astype(float), score * signs), wanted, rtol=1e-14)
    two_scores = np.outer(0.5 * score * signs, [-1.0, 1.0])
    np.testing.assert_allclose(Softmax().value(labels, two_scores), wanted, rtol=1e-13)


@pytest.mark.parametrize("y", [1.0, 7.0, 1e9])
@pytest.mark.parametrize("away", [1e-6, 1e-3, 0.1, -0.1, 0.49, 0.51])
def test_poisson_keeps_its_digits_near_a_count_that_is_met(y: float, away: float) -> None:
    f = np.log(y) + away
    off = float(f - np.log(y))
    remainder = y * float(sum(Fraction(off) ** k / factorial(k) for k in range(2, 24)))
    rounding = 4e-16 * y * (abs(off) if abs(off) < 0.5 else 30.0)
    assert Poisson().value(np.array([y]), np.array([f]))[0] == pytest.approx(remainder, rel=1e-13, abs=rounding)
    slope = y * np.expm1(off)
    dual = slope * f - remainder
    assert Poisson().conjugate(np.array([y]), np.array([slope]))[0] == pytest.approx(dual, rel=1e-14, abs=3 * rounding)
