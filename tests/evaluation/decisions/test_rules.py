"""Risks of given rules, on tables and on densities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from certifit import bayes_action, bayes_estimate, bayes_risk, posterior_risk, rule_risk, rule_risk_of_densities

# Notes 000: cancer or not by weight gain, with a false negative five times as costly.
JOINT = np.array([[0.1 * 0.2, 0.9 * 0.01], [0.1 * 0.5, 0.9 * 0.1], [0.1 * 0.3, 0.9 * 0.89]])
COST = np.array([[0.0, 5.0], [1.0, 0.0]])  # rows: cancer, healthy; columns: say cancer, say healthy


def test_the_rule_of_the_notes() -> None:
    best = posterior_risk(JOINT / JOINT.sum(axis=1, keepdims=True), COST).argmin(axis=1)
    assert best.tolist() == [0, 0, 1]
    by_hand = 0.9 * 0.01 + 0.9 * 0.1 + 5 * 0.1 * 0.3
    np.testing.assert_allclose(rule_risk(JOINT, best, COST), by_hand)
    np.testing.assert_allclose(bayes_risk(JOINT, COST), by_hand)
    np.testing.assert_allclose(by_hand, 0.249)  # the notes' own number


def test_no_rule_is_below_the_bayes_risk() -> None:
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(12)).reshape(4, 3)
    cost = rng.random((3, 2))
    risks = [rule_risk(joint, [a, b, c, d], cost) for a in (0, 1) for b in (0, 1) for c in (0, 1) for d in (0, 1)]
    np.testing.assert_allclose(min(risks), bayes_risk(joint, cost))


def test_threshold_on_two_normals() -> None:
    for t in (-0.5, 0.0, 1.2):
        found = rule_risk_of_densities(
            [norm(-1).pdf, norm(1).pdf], [0.6, 0.4], lambda x, t=t: int(x > t), low=-12, high=12, points=[t]
        )
        np.testing.assert_allclose(found, 0.6 * norm(-1).sf(t) + 0.4 * norm(1).cdf(t), rtol=1e-7)


def test_estimates() -> None:
    values = [0.0, 1.0, 5.0, 9.0]
    assert bayes_estimate(values, "squared") == bayes_action(values, "squared") == 3.75


@pytest.mark.parametrize("rule", [[0, 1], [0, 1, 2], [0.5, 0, 1], "abc", [-1, 0, 0]])
def test_rules_that_are_none(rule) -> None:
    with pytest.raises(ValueError, match="rule must name one action"):
        rule_risk(JOINT, rule, COST)


@pytest.mark.parametrize("action", [5, -1, 0.7, None])
def test_rules_of_densities_that_are_none(action) -> None:
    with pytest.raises(ValueError, match="rule must name an action from 0 to 1 at every x"):
        rule_risk_of_densities([norm(-1).pdf, norm(1).pdf], [0.5, 0.5], lambda x: action)
