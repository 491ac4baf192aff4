"""Losses, penalties and constraints are values, and nested parameters of scikit-learn."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from sklearn.base import BaseEstimator, clone
from tests.evaluation.cases import constraints, label, losses, penalties
from tests.evaluation.user_losses import USER_LOSSES

NESTED = [*losses(), *USER_LOSSES, *penalties()]
VALUES = [*NESTED, *constraints()]


class Holder(BaseEstimator):
    """An estimator with one part."""

    def __init__(self, part: Any = None) -> None:
        self.part = part


@pytest.mark.parametrize("part", VALUES, ids=label)
def test_parts_are_equal_by_what_they_say(part: Any) -> None:
    for twin in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert twin == part
        assert hash(twin) == hash(part)
    assert repr(part).startswith(type(part).__name__ + "(")
    assert part != object()


@pytest.mark.parametrize("part", NESTED, ids=label)
def test_parts_are_nested_parameters(part: Any) -> None:
    """`clone` and `set_params(part__…)` treat an object with get_params as part of the estimator."""
    assert type(part)(**part.get_params()) == part
    assert clone(Holder(part)).part == part
    params = Holder(part).get_params()
    assert clone(Holder(part)).set_params(**params).part == part
