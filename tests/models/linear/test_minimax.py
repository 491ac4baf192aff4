"""The maximum of any loss against Clarabel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles import convex

from certifit import ChebyshevRegressor, MinimaxModel
from certifit.losses import LOSSES, Loss
from certifit.metrics import max_loss
from certifit.penalties import L1, L2, Box, ElasticNet, L2Ball, Lq, NonNegative

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
F = X @ [1.0, -0.5, 0.2] + 0.3


def target(loss: Loss) -> np.ndarray:
    rng = np.random.default_rng(1)
    y = F + 0.5 * rng.normal(size=40)
    if loss.task == "binary":
        return (y > 0).astype(float)
    made = {"poisson": rng.poisson(np.exp(F)).astype(float), "gamma": rng.gamma(2.0, np.exp(F)), "relative": y + 4.0}
    return made.get(loss.name, y)


@pytest.mark.parametrize("loss", [cls() for name, cls in LOSSES.items() if name != "perceptron"], ids=lambda x: x.name)
@pytest.mark.parametrize(
    ("penalty", "alpha", "constraint", "intercept"),
    [
        (None, 0.0, None, True),
        (L2(), 0.1, None, True),
        (ElasticNet(0.4), 0.1, Box(-0.3, [0.2, np.inf, 0.5]), True),
        (L1(), 0.05, NonNegative(), False),
    ],
)
def test_optimum(loss: Loss, penalty: Any, alpha: float, constraint: Any, intercept: bool) -> None:
    y = target(loss)
    model = MinimaxModel(loss, penalty, alpha, constraint=constraint, fit_intercept=intercept, tol=1e-8).fit(X, y)
    best = convex.optimum(X, y, None, loss, penalty, alpha, constraint, intercept, maximum=True)[0]
    found = model.certificate_
    assert found.certified, str(found)
    assert found.bound <= best + 1e-6
    assert found.objective == pytest.approx(best, abs=2e-6)
    scores = X @ model.coef_ + model.intercept_
    size = 0.0 if penalty is None else alpha * penalty.value(model.coef_)
    assert found.objective == pytest.approx(max_loss(y, scores, loss=loss) + size)
    assert constraint is None or constraint.contains(model.coef_, 1e-9)


def test_the_absolute_loss_is_chebyshevs() -> None:
    y = target(LOSSES["absolute"]())
    one, other = MinimaxModel("absolute", tol=1e-10).fit(X, y), ChebyshevRegressor(tol=1e-10).fit(X, y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    # The largest squared error is least where the largest error is.
    squared = MinimaxModel("squared", tol=1e-10).fit(X, y)
    assert squared.certificate_.objective == pytest.approx(0.5 * other.certificate_.objective**2)


def test_a_smaller_maximum_than_the_mean_fit() -> None:
    from certifit import PoissonRegressor

    y = target(LOSSES["poisson"]())
    mean, worst = PoissonRegressor(alpha=0.0).fit(X, y), MinimaxModel("poisson").fit(X, y)
    scores = [X @ m.coef_ + m.intercept_ for m in (mean, worst)]
    assert max_loss(y, scores[1], loss="poisson") < max_loss(y, scores[0], loss="poisson")


def test_rows_count_once_and_rows_of_weight_zero_not_at_all() -> None:
    y = target(LOSSES["squared"]())
    weight = np.ones(40)
    weight[:5] = 0.0
    plain = MinimaxModel("squared", tol=1e-9).fit(X[5:], y[5:])
    weighted = MinimaxModel("squared", tol=1e-9).fit(np.vstack([X, X]), np.tile(y, 2), np.tile(3.0 * weight, 2))
    np.testing.assert_allclose(weighted.coef_, plain.coef_, atol=1e-6)


@pytest.mark.parametrize("convert", [sp.csr_array, lambda Z: Z.astype(np.float32)])
def test_kinds_of_matrices(convert: Any) -> None:
    y = target(LOSSES["gamma"]())
    plain, other = MinimaxModel("gamma", "l2", 0.1).fit(X, y), MinimaxModel("gamma", "l2", 0.1).fit(convert(X), y)
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_units(unit: float) -> None:
    y = target(LOSSES["absolute"]())
    plain, other = MinimaxModel("absolute").fit(X, y), MinimaxModel("absolute").fit(X * unit, y)
    assert other.certificate_.certified
    np.testing.assert_allclose(other.coef_ * unit, plain.coef_, atol=1e-5)


def test_losses_of_ones_own() -> None:
    class Cubic(Loss):
        """|y − f|³/3."""

        convex = True

        def value(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
            return np.abs(y - f) ** 3 / 3.0

        def derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
            return np.sign(f - y) * (y - f) ** 2

        def second_derivative(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
            return 2.0 * np.abs(y - f)

    y = target(LOSSES["absolute"]())
    least = ChebyshevRegressor(tol=1e-10).fit(X, y).certificate_.objective
    model = MinimaxModel(Cubic(), tol=1e-7).fit(X, y)
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx(least**3 / 3.0, rel=1e-5)
    Cubic.convex = False
    undeclared = MinimaxModel(Cubic(), tol=1e-7).fit(X, y).certificate_
    assert not undeclared.certified
    assert "convex" in undeclared.note


@pytest.mark.parametrize(
    ("options", "match"),
    [({"penalty": Lq(1.5), "alpha": 0.1}, "penalty"), ({"constraint": L2Ball(1.0)}, "constraint")],
)
def test_what_is_no_quadratic_program(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        MinimaxModel("squared", **options).fit(X, F)
