"""Where perceptrons start and how far they step, against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certifit import LinearRegression, MulticlassPerceptron, Perceptron, PocketPerceptron

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = (X @ [1.0, -1.0, 0.5] + 0.2 > 0).astype(int)
C = 2.0 ** np.floor(np.log2(np.sqrt((X * X).sum(axis=1)).max()))  # the constant column of the offset
W0, B0 = np.array([-2.0, 3.0, 1.0]), 4.0


def by_hand(epochs: int, step: float, averaged: bool, batch: bool) -> tuple[np.ndarray, float]:
    rows, sign = np.column_stack([X, np.full(len(X), C)]), 2 * Y - 1
    w, total, steps = np.append(W0, B0 / C), np.zeros(4), 0
    for _ in range(epochs):
        before = w.copy()
        if batch:
            wrong = sign * (rows @ w) <= 0
            if not wrong.any():
                break
            w = w + step * (sign * wrong) @ rows / len(X)
            total, steps = total + w, steps + 1
            continue
        for x, s in zip(rows, sign, strict=True):
            if s * (x @ w) <= 0:
                w = w + step * s * x
            total, steps = total + w, steps + 1
        if (w == before).all():
            break
    w = total / steps if averaged else w
    return w[:-1], C * w[-1]


@pytest.mark.parametrize("mode", ["stochastic", "batch"])
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("step", [0.1, 1.0, 7.0])
def test_start_and_step_are_those_of_the_definition(mode: str, averaged: bool, step: float) -> None:
    model = Perceptron(mode, averaged=averaged, max_iter=9, shuffle=False, start=(W0, B0), step=step).fit(X, Y)
    w, b = by_hand(9, step, averaged, mode == "batch")
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept_[0], b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("mode", ["stochastic", "batch"])
@pytest.mark.parametrize("step", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_from_any_start(mode: str, step: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = (10.0 ** rng.uniform(-2, 2) * rng.normal(size=3), float(rng.normal()))
    model = Perceptron(mode, start=start, step=step, max_iter=200_000, random_state=seed).fit(X, Y)
    assert model.certificate_.kind == "witness"
    assert model.n_mistakes_ <= model.mistake_bound_ < np.inf


def test_a_start_that_separates_stays() -> None:
    first = Perceptron(random_state=0).fit(X, Y)
    again = Perceptron(random_state=1, start=(first.coef_, first.intercept_), step=0.3).fit(X, Y)
    np.testing.assert_allclose(again.coef_, first.coef_, rtol=1e-12)
    assert again.n_mistakes_ == 0


@pytest.mark.parametrize("cls", [Perceptron, PocketPerceptron])
def test_regression_is_a_start(cls: Any) -> None:
    """No step is taken where the regression separates; what is kept is the regression."""
    far = X + 3.0 * np.outer(2 * Y - 1, [1.0, -1.0, 0.5])
    fit = LinearRegression().fit(far, 2.0 * Y - 1)
    model = cls(start="regression", step=2.0).fit(far, Y)
    np.testing.assert_allclose(model.coef_[0], fit.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_[0], fit.intercept_, rtol=1e-8, atol=1e-12)


def test_several_classes_have_a_start_each() -> None:
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    start = (RNG.normal(size=(3, 3)), RNG.normal(size=3))
    model = Perceptron(start=start, max_iter=3, shuffle=False).fit(X, labels)
    one = Perceptron(start=(start[0][1], start[1][1]), max_iter=3, shuffle=False).fit(X, labels == 1)
    np.testing.assert_allclose(model.coef_[1], one.coef_[0])


@pytest.mark.parametrize("units", [2.0**-500, 2.0**500])
def test_extreme_units_of_x_change_no_decision(units: float) -> None:
    Z = X * 2.0 ** -np.floor(np.log2(np.abs(X).max()))  # the units in which steps are taken
    plain = Perceptron(start=(W0, B0), max_iter=9, shuffle=False).fit(Z, Y)
    other = Perceptron(start=(W0 / units, B0), max_iter=9, shuffle=False).fit(units * Z, Y)
    np.testing.assert_array_equal(plain.predict(Z), other.predict(units * Z))
    np.testing.assert_allclose(other.coef_ * units, plain.coef_)


@pytest.mark.parametrize(
    ("start", "match"),
    [
        ((np.ones(2), 0.0), "shape"),
        ((np.ones(3), [0.0, 1.0]), "intercepts"),
        ((np.full(3, np.nan), 0.0), "finite"),
        ((1.0, 2.0, 3.0), "pair"),
        ("ones", "start"),
    ],
)
def test_starts_that_make_no_sense(start: Any, match: str) -> None:
    for cls in (Perceptron, PocketPerceptron):
        with pytest.raises(ValueError, match=match):
            cls(start=start).fit(X, Y)
    with pytest.raises(ValueError, match="fit_intercept"):
        Perceptron(fit_intercept=False, start=(W0, B0)).fit(X, Y)


@pytest.mark.parametrize("cls", [PocketPerceptron, MulticlassPerceptron])
def test_history_of_the_others(cls: Any) -> None:
    noisy = np.where(np.arange(50) % 7 == 0, 1 - Y, Y)
    model = cls(max_iter=6, random_state=0).fit(X, noisy)
    assert model.history_.shape == (6,)
    assert model.history_[-1] == pytest.approx(np.mean(model.predict(X) != noisy))
    if cls is PocketPerceptron:
        assert (np.diff(model.history_) <= 0).all()
