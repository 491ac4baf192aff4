"""Costs and the rule that costs the least: names of any kind, costs of any shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certifit import BayesRule, CostMatrix

EVEN = [[0.0, 1.0], [1.0, 0.0]]


def test_names_stay_whole() -> None:
    costs = CostMatrix(EVEN, actions=[("call", 1), ("wait", 2)])
    assert costs.decide([[0.1, 0.9], [0.9, 0.1]]).tolist() == [("wait", 2), ("call", 1)]
    rule = BayesRule(costs, reject_cost=0.2, declined=("ask", "somebody", "else"))
    assert rule([[0.1, 0.9], [0.5, 0.5]]).action.tolist() == [("wait", 2), ("ask", "somebody", "else")]
    assert BayesRule(EVEN, reject_cost=0.2, declined=[1, 2])([[0.5, 0.5], [0.9, 0.1]]).action.tolist() == [[1, 2], 0]


def test_the_rule_against_all_actions() -> None:
    rng = np.random.default_rng(0)
    p, cost, reject = rng.dirichlet(np.ones(3), 20), rng.random((20, 3, 4)), rng.random(20)
    found = BayesRule(cost, reject_cost=reject)(p)
    for i in range(20):
        each = [sum(p[i, k] * cost[i, k, a] for k in range(3)) for a in range(4)]
        assert found.expected[i] == pytest.approx(min(*each, reject[i]))
        assert found.action[i] == (None if min(each) > reject[i] else int(np.argmin(each)))


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"classes": 3}, "classes must be a list of labels"),
        ({"classes": ["a", "a"]}, "classes must differ from each other"),
        ({"actions": 3}, "actions must name the 2 columns"),
        ({"actions": ["a"]}, "actions must name the 2 columns"),
    ],
)
def test_names_that_do_not_fit(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        CostMatrix(EVEN, **given)


@pytest.mark.parametrize(
    ("costs", "match"),
    [
        (None, "costs must have shape"),
        (3.0, "costs must have shape"),
        ([1.0, 2.0], "costs must have shape"),
        ("a", "costs must be numbers"),
        ([[0, 1], [1]], "costs must be numbers"),
    ],
)
def test_costs_that_are_none(costs: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BayesRule(costs)([[0.1, 0.9]])
