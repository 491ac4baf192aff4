"""Conjugate pairs against quadrature and against the notes' own example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from certifit import BetaBernoulli, DirichletCategorical, GammaPoisson, NormalInverseGamma, NormalNormal


def test_the_coin_of_the_notes() -> None:
    coin = BetaBernoulli(2.0, 3.0).update([1] * 8 + [0] * 2)
    assert (coin.a, coin.b) == (10.0, 5.0)
    assert coin.mean == pytest.approx(10 / 15)
    assert coin.mode == pytest.approx(9 / 13)
    assert BetaBernoulli(1, 1).update([1] * 8 + [0] * 2).mode == pytest.approx(
        0.8
    )  # flat prior: the likelihood's maximum


@pytest.mark.parametrize(
    ("prior", "x", "likelihood", "low", "high"),
    [
        (BetaBernoulli(2, 3), [1, 0, 1], lambda t: t**2 * (1 - t), 0, 1),
        (GammaPoisson(2, 0.5), [3, 1], lambda t: stats.poisson(t).pmf([3, 1]).prod(), 0, 60),
        (
            NormalNormal(1.0, 2.0, 0.5),
            [2.0, 0.3],
            lambda t: stats.norm(t, np.sqrt(0.5)).pdf([2.0, 0.3]).prod(),
            -20,
            20,
        ),
    ],
)
def test_the_posterior_is_prior_times_likelihood(prior: Any, x: Any, likelihood: Any, low: float, high: float) -> None:
    def density(t: float) -> float:
        return float(prior.distribution.pdf(t) * likelihood(t))

    total = quad(density, low, high, points=[prior.mean] if prior.mean < high else None)[0]
    posterior = prior.update(x)
    for t in posterior.ppf([0.1, 0.5, 0.9]):
        assert posterior.distribution.pdf(t) == pytest.approx(density(t) / total, rel=1e-6)
    low95, high95 = posterior.credible_interval(0.95)
    assert posterior.distribution.cdf(high95) - posterior.distribution.cdf(low95) == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("prior", "x"),
    [
        (BetaBernoulli(), [1.0, 0.0, 1.0, 1.0]),
        (DirichletCategorical([1.0, 2.0, 1.0]), [0.0, 2.0, 2.0, 1.0]),
        (GammaPoisson(), [2.0, 0.0, 5.0]),
        (NormalNormal(), [0.3, -2.0, 1.0]),
        (NormalInverseGamma(), [0.3, -2.0, 1.0]),
    ],
)
def test_one_at_a_time_is_all_at_once_and_weights_count(prior: Any, x: list[float]) -> None:
    whole, step = prior.update(x), prior
    for value in x:
        step = step.update(value)
    twice = prior.update(x + x[:1])
    weighted = prior.update(x, sample_weight=[2.0] + [1.0] * (len(x) - 1))
    for one, two in ((whole, step), (twice, weighted)):
        np.testing.assert_allclose(one.mean, two.mean)
        np.testing.assert_allclose(one.ppf(0.3), two.ppf(0.3))
    np.testing.assert_allclose(prior.update([]).mean, prior.mean)


def test_the_normal_inverse_gamma_by_quadrature() -> None:
    prior, x = NormalInverseGamma(0.5, 2.0, 3.0, 1.5), np.array([1.0, 2.5, 0.0])
    posterior = prior.update(x)

    def joint(mu: float) -> float:
        return quad(
            lambda v: (
                stats.invgamma(3.0, scale=1.5).pdf(v)
                * stats.norm(0.5, np.sqrt(v / 2.0)).pdf(mu)
                * stats.norm(mu, np.sqrt(v)).pdf(x).prod()
            ),
            1e-6,
            60,
            limit=200,
        )[0]

    ratio = joint(1.2) / joint(0.4)
    assert posterior.distribution.pdf(1.2) / posterior.distribution.pdf(0.4) == pytest.approx(ratio, rel=1e-5)


def test_predictive_distributions() -> None:
    calls = GammaPoisson(3.0, 2.0)
    by_hand = quad(lambda r: stats.gamma(3.0, scale=0.5).pdf(r) * stats.poisson(r).pmf(2), 0, 40)[0]
    assert calls.predictive.pmf(2) == pytest.approx(by_hand, rel=1e-8)
    found = NormalNormal(1.0, 2.0, 0.5).predictive
    assert (found.mean(), found.var()) == (pytest.approx(1.0), pytest.approx(2.5))
    assert BetaBernoulli(3, 1).predictive.pmf(1) == pytest.approx(0.75)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: BetaBernoulli(0.0, 1.0),
        lambda: BetaBernoulli().update([2]),
        lambda: BetaBernoulli().update([np.nan]),
        lambda: BetaBernoulli().update("a"),
        lambda: DirichletCategorical([1.0]),
        lambda: DirichletCategorical([1.0, -1.0]),
        lambda: DirichletCategorical([1.0, 1.0]).update([2]),
        lambda: GammaPoisson().update([-1]),
        lambda: GammaPoisson().update([1.5]),
        lambda: NormalNormal(variance=0.0),
        lambda: BetaBernoulli().update([1], sample_weight=[-1.0]),
        lambda: BetaBernoulli().credible_interval(1.5),
    ],
)
def test_nonsense_is_refused(wrong: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        wrong()


def test_pictures_have_two_curves() -> None:
    prior = BetaBernoulli(2, 2)
    assert len(prior.update([1, 1]).plot(prior).lines) == 2
    many = DirichletCategorical([1.0, 1.0, 2.0])
    assert many.update([2]).plot(many).get_ylabel() == "probability"


def test_numbers_too_large_to_be_squared_are_refused() -> None:
    with pytest.raises(ValueError, match="x holds numbers whose squares are beyond double precision"):
        NormalInverseGamma().update([1e200, 2e200])
    with pytest.raises(ValueError, match="alpha must be numbers"):
        DirichletCategorical("ab")
    with pytest.raises(ValueError, match="n must be an integer"):
        NormalInverseGamma().sample(-1)
