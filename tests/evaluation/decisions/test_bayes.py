"""Bayes actions and risks against enumeration and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from certifit.evaluation.decisions.bayes import (
    bayes_action,
    bayes_risk,
    bayes_risk_of_densities,
    posterior_risk,
)

RNG = np.random.default_rng(0)


def test_posterior_risk_and_action_by_enumeration() -> None:
    p, cost = RNG.dirichlet(np.ones(3), size=20), RNG.uniform(size=(3, 4))
    expected = [[sum(p[i, k] * cost[k, a] for k in range(3)) for a in range(4)] for i in range(20)]
    np.testing.assert_allclose(posterior_risk(p, cost), expected)
    np.testing.assert_array_equal(bayes_action(p, cost), np.argmin(expected, axis=1))
    own = np.stack([cost * (i + 1) for i in range(20)])
    np.testing.assert_allclose(posterior_risk(p, own), np.array(expected) * np.arange(1, 21)[:, None])


def test_zero_one_costs_choose_the_most_probable_class() -> None:
    p = RNG.dirichlet(np.ones(4), size=50)
    np.testing.assert_array_equal(bayes_action(p, 1 - np.eye(4)), p.argmax(axis=1))


def test_reject_where_no_class_is_probable_enough() -> None:
    p = RNG.dirichlet(np.ones(3), size=200)
    found = bayes_action(p, 1 - np.eye(3), reject_cost=0.4)
    np.testing.assert_array_equal(found == -1, p.max(axis=1) < 0.6)
    np.testing.assert_array_equal(bayes_action(p, 1 - np.eye(3), reject_cost=np.full(200, 2.0)), p.argmax(axis=1))


def test_bayes_risk_of_a_table() -> None:
    joint = RNG.dirichlet(np.ones(12)).reshape(4, 3)
    assert bayes_risk(joint) == pytest.approx(1 - joint.max(axis=1).sum())
    cost = RNG.uniform(size=(3, 2))
    rules = [np.array(np.unravel_index(k, (2,) * 4)) for k in range(16)]
    risks = [sum(joint[x] @ cost[:, rule[x]] for x in range(4)) for rule in rules]
    assert bayes_risk(joint, cost) == pytest.approx(min(risks))


def test_bayes_risk_of_densities() -> None:
    assert bayes_risk_of_densities([norm(0).pdf, norm(3).pdf], [0.5, 0.5]) == pytest.approx(norm.sf(1.5))
    prior, cost = np.array([0.7, 0.3]), np.array([[0.0, 1.0], [4.0, 0.0]])
    cut = 1.0 + np.log(prior[0] * 1.0 / (prior[1] * 4.0)) / 2.0
    exact = prior[0] * norm.sf(cut) + prior[1] * 4.0 * norm.cdf(cut - 2.0)
    assert bayes_risk_of_densities([norm(0).pdf, norm(2).pdf], prior, cost) == pytest.approx(exact)


def test_densities_are_found_wherever_they_are() -> None:
    far = bayes_risk_of_densities([norm(1000).pdf, norm(1002).pdf], [0.5, 0.5])
    assert far == pytest.approx(norm.sf(1.0), rel=1e-9)
    narrow = bayes_risk_of_densities([norm(1000, 0.1).pdf, norm(1001, 0.1).pdf], [0.5, 0.5])
    assert narrow == pytest.approx(norm.sf(5.0), rel=1e-6)
    own = bayes_risk_of_densities(
        [lambda x: norm.pdf(x - 50), lambda x: norm.pdf(x - 52)], [0.5, 0.5], points=[50.0, 52.0]
    )
    assert own == pytest.approx(norm.sf(1.0), rel=1e-9)


BAD = {
    "cost shape": (lambda: bayes_action([0.5], [[0, 1, 1]]), r"shape \(2, actions\)"),
    "infinite": (lambda: bayes_action([0.5], [[0, np.inf], [1, 0]]), "finite"),
    "reject": (lambda: bayes_action([0.5], [[0, 1], [1, 0]], reject_cost=[1, 2]), "reject_cost"),
    "probability": (lambda: bayes_action([1.5], [[0, 1], [1, 0]]), "probabilities"),
    "joint": (lambda: bayes_risk([[0.5, 0.6]]), "sums to 1"),
    "priors": (lambda: bayes_risk_of_densities([norm.pdf], [0.5, 0.5]), "as many; got 1 and 2"),
    "ends": (lambda: bayes_risk_of_densities([norm.pdf] * 2, [0.5, 0.5], low=1.0, high=0.0), "low"),
    "words": (lambda: bayes_action([0.5], "no such loss"), "loss must be one of"),
    "cost of words": (lambda: posterior_risk([0.5], "costs"), "cost_matrix must be numbers; got 'costs'"),
    "reject words": (lambda: bayes_action([0.5], [[0, 1], [1, 0]], reject_cost="much"), "reject_cost must be numbers"),
    "no density": (
        lambda: bayes_risk_of_densities([norm.pdf, lambda x: 0.0], [0.5, 0.5]),
        r"densities\[1\] adds up to 0 from -inf to inf, not to 1",
    ),
    "hidden": (
        lambda: bayes_risk_of_densities([lambda x: norm.pdf(x - 1e5), norm.pdf], [0.5, 0.5]),
        r"densities\[0\] adds up to 0 .* where it lives",
    ),
    "NaN": (lambda: bayes_risk_of_densities([norm.pdf, lambda x: np.nan], [0.5, 0.5]), "adds up to nan"),
    "weight": (lambda: bayes_action([0.5], [[0, 1], [1, 0]], weight=[1.0]), "weight goes with values"),
    "rejected number": (lambda: bayes_action([0.5], "squared", reject_cost=1.0), "reject_cost goes with costs"),
    "cost rows": (lambda: bayes_risk([[0.5, 0.5]], [[0, 1]]), "each of the 2 classes"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_named(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        call()
