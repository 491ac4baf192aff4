"""Bayes actions of a number: each minimizes its expected loss, which is computed here by sums and quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.optimize import minimize_scalar

from certifit import (
    BetaBernoulli,
    DirichletCategorical,
    GammaPoisson,
    NormalInverseGamma,
    NormalNormal,
    bayes_action,
    losses,
)

RNG = np.random.default_rng(0)
RESIDUAL = [
    losses.Squared(),
    losses.Absolute(),
    losses.Quantile(0.8),
    losses.Huber(0.7),
    losses.EpsilonInsensitive(0.3),
    losses.RelativeError(),
    losses.Poisson(),
    losses.Gamma(),
]
POSTERIORS = [
    BetaBernoulli(3, 5),
    GammaPoisson(4.0, 2.0),
    NormalNormal(1.0, 4.0),
    NormalInverseGamma(1.0, 2.0, 3.0, 4.0),
    stats.lognorm(0.6),
]


def score_of(loss: losses.Loss, action: float) -> float:
    """The score whose prediction is the action."""
    return float(np.log(action)) if loss.name in ("poisson", "gamma") else action


@pytest.mark.parametrize("loss", RESIDUAL, ids=repr)
def test_the_action_minimizes_the_mean_loss_of_a_table(loss: losses.Loss) -> None:
    values, weight = RNG.exponential(size=30), RNG.exponential(size=30)

    def expected(f: float) -> float:
        return float(weight @ loss.value(values, np.full(30, f)))

    best = expected(score_of(loss, bayes_action(values, loss, weight=weight)))
    assert best <= min(expected(f) for f in np.linspace(-3, 3, 4001)) + 1e-9


@pytest.mark.parametrize("loss", RESIDUAL, ids=repr)
@pytest.mark.parametrize("posterior", POSTERIORS, ids=lambda p: type(p).__name__)
def test_the_action_minimizes_the_expected_loss_of_a_density(posterior: Any, loss: losses.Loss) -> None:
    density = getattr(posterior, "distribution", posterior)
    low, _ = density.support()
    if loss.name in ("poisson", "gamma", "relative") and low < 0:  # no such targets, or an infinite loss at zero
        with pytest.raises(ValueError, match=r"y must be|infinite"):
            bayes_action(posterior, loss)
        return
    f = score_of(loss, bayes_action(posterior, loss))

    # An independent expectation: the density on a grid so fine that kinks do not show.
    y = np.linspace(*density.ppf([1e-9, 1 - 1e-9]), 200_001)
    mass = density.pdf(y)

    def expected(at: float) -> float:
        return float(trapezoid(loss.value(y, np.full(y.shape, at)) * mass, y))

    at = expected(f)
    assert at <= min(expected(f - 1e-3), expected(f + 1e-3)) + 1e-8
    assert at == pytest.approx(minimize_scalar(expected, bracket=(f - 0.3, f + 0.2)).fun, abs=1e-7)


def test_mean_median_mode_and_quantile_are_special_cases() -> None:
    for posterior in (*POSTERIORS[:4], BetaBernoulli(1, 3), GammaPoisson(0.5, 1.0)):
        assert bayes_action(posterior, "squared") == pytest.approx(posterior.mean)
        assert bayes_action(posterior, "absolute") == pytest.approx(posterior.median)
        assert bayes_action(posterior, losses.Quantile(0.2)) == pytest.approx(posterior.ppf(0.2))
        assert bayes_action(posterior, "zero_one") == pytest.approx(posterior.mode)
    assert bayes_action(stats.gamma(3.0), "zero_one") == pytest.approx(2.0, abs=1e-6)
    assert bayes_action(stats.expon(), "zero_one") == 0.0
    assert bayes_action(stats.beta(0.5, 2.0), "zero_one") == 0.0


def test_deviances_and_log_loss_ask_for_the_mean() -> None:
    rate = GammaPoisson(4.0, 2.0)
    assert bayes_action(rate, "poisson") == pytest.approx(2.0, rel=1e-8)
    assert bayes_action(rate, "gamma") == pytest.approx(2.0, rel=1e-8)
    assert bayes_action(BetaBernoulli(3, 5), "logistic") == pytest.approx(3 / 8, rel=1e-8)
    assert bayes_action([0, 1, 1, 1], "logistic") == pytest.approx(0.75)


def test_the_next_observation_and_several_probabilities() -> None:
    coming = GammaPoisson(4.0, 2.0).predictive
    assert bayes_action(coming, "squared") == pytest.approx(coming.mean())
    assert bayes_action(coming, "absolute") == coming.median()
    assert bayes_action(coming, "zero_one") == np.argmax(coming.pmf(np.arange(50)))
    die = DirichletCategorical([3.0, 1.0, 4.0])
    for loss, wanted in (("squared", die.mean), ("absolute", die.median), ("zero_one", die.mode)):
        np.testing.assert_allclose(bayes_action(die, loss), wanted)


def test_draws_come_near_the_density() -> None:
    posterior = GammaPoisson(4.0, 2.0)
    draws = posterior.sample(200_000, random_state=0)
    for loss in ("squared", "absolute", losses.Huber(0.5), losses.EpsilonInsensitive(0.3)):
        assert bayes_action(draws, loss) == pytest.approx(bayes_action(posterior, loss), abs=0.01)


def test_the_mode_of_a_table_and_repetition() -> None:
    assert bayes_action([1, 2, 2, 3], "zero_one") == 2.0
    assert bayes_action([1, 2, 3], "zero_one", weight=[0.2, 0.3, 0.5]) == 3.0
    for loss in ("squared", "absolute", "quantile", "huber"):
        assert bayes_action([1, 2, 5], loss, weight=[2, 0, 1]) == pytest.approx(bayes_action([1, 1, 5], loss))


class Odd(losses.Loss):
    """A loss that does not say that it is convex."""

    def value(self, y: Any, f: Any) -> Any:
        return (y - f) ** 2

    def derivative(self, y: Any, f: Any) -> Any:
        return 2 * (f - y)


BAD = {
    "name": (lambda: bayes_action([1.0], "no such loss"), "loss must be one of"),
    "not convex": (lambda: bayes_action([1.0], Odd()), "must be convex"),
    "classes": (lambda: bayes_action([1.0], losses.Softmax()), "one score a row"),
    "targets": (lambda: bayes_action([-1.0], "poisson"), "y"),
    "weights": (lambda: bayes_action(stats.norm(), "squared", weight=[1.0]), "weight goes with an array"),
    "NaN": (lambda: bayes_action([np.nan], "squared"), "finite"),
    "shape": (lambda: bayes_action([[1.0, 2.0]], "squared"), "shape"),
    "several": (lambda: bayes_action(stats.norm([0.0, 1.0]), "squared"), "one number"),
    "vector": (lambda: bayes_action(stats.dirichlet([1.0, 2.0]), "squared"), "one number"),
    "no mean": (lambda: bayes_action(stats.cauchy(), "squared"), "no finite mean"),
    "endless": (lambda: bayes_action(stats.nbinom(1e-3, 1e-12), "squared"), "more than"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
