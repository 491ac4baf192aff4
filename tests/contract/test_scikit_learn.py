"""scikit-learn's own checks, without expected failures."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.contract.discovery import BROKEN, ESTIMATORS, Case

import certifit

INSTANCES = [Case(cls).build() for cls in ESTIMATORS]
if any(cls.__name__ == "LinearModel" for cls in ESTIMATORS):
    INSTANCES += [certifit.LinearModel(loss="absolute"), certifit.LinearModel(loss="huber", penalty="l1")]


def test_every_public_name_loads() -> None:
    assert not BROKEN


@parametrize_with_checks(INSTANCES)
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    check(estimator)
