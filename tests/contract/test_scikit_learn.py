"""scikit-learn's own checks, all but those on rows that an estimator must refuse.

One setting a class by default, every setting in the exhaustive run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from tests.contract.discovery import BROKEN, CASES, ESTIMATORS, ONE_EACH, Case
from tests.grids import exhaustive, tell

import certifit as cf
from certifit import losses


def refuses_their_targets(estimator: Any) -> bool:
    """Whether a regressor takes shares, or divides by targets: the checks give it 0 and 2, and no tag would say otherwise."""
    name = getattr(estimator, "loss", None)
    if not is_regressor(estimator) or name not in losses.LOSSES:
        return False
    smallest = 1.0 if get_tags(estimator).target_tags.positive_only else 0.0
    return not losses.resolve_loss(name).takes(np.array([smallest, 2.0]))


# Settings of the families beyond those of the contract: other branches of fit, and small sizes.
FURTHER: list[BaseEstimator] = [
    cf.AdaBoostClassifier(n_estimators=5, algorithm="real"),
    cf.DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=8),
    cf.DecisionTreeRegressor(criterion="absolute", max_depth=3),
    cf.Discretizer(bins=4, strategy="uniform", encode="ordinal"),
    cf.Discretizer(bins=[-1.0, 0.5]),
    cf.ForwardStagewise("exponential", n_estimators=5),
    cf.GradientBoostingClassifier(n_estimators=15, colsample=0.7, l2=1.0, max_leaf_nodes=None, max_depth=3),
    cf.GradientBoostingRegressor(n_estimators=15, loss="absolute"),
    cf.LinearModel(loss="absolute"),
    cf.LinearModel(loss="huber", penalty="l1"),
    cf.LinearSVC(solver="dual", tol=1e-12, max_iter=100_000),
    cf.LogTransform(mode="signed"),
    cf.MinMaxScaler(feature_range=(-2.0, 3.0), clip=True),
    cf.MulticlassPerceptron(averaged=True),
    cf.Normalizer(norm="l1"),
    cf.Normalizer(norm="max"),
    cf.OutputCode(code="exhaustive", decoding="hamming"),
    cf.Perceptron(mode="batch", max_iter=50),
    cf.PocketPerceptron(start="regression"),
    cf.PolynomialFeatures(degree=3, interaction_only=True, include_bias=True, order="F"),
    cf.QuantileScaler(output="uniform", n_quantiles=3),
    cf.RBFFeatures(centers=4),
    cf.RBFFeatures(centers=4, gamma="median", spread=True),
    cf.RandomForestClassifier(n_estimators=8, bootstrap=False, max_features=None),
    cf.RandomForestRegressor(n_estimators=8, bootstrap=False, splitter="histogram"),
    cf.RidgeCV(alphas=[0.1, 1.0], cv=2),
    cf.RidgeCV(fit_intercept=False),
    cf.SGDClassifier(multi_class="softmax", batch_size=8, max_iter=50),
    cf.SGDRegressor(loss="huber", penalty="elasticnet", batch_size=4),
    cf.Saturation(shape="tanh", half=2.0),
    cf.SplineBasis(knots=4, degree=2, strategy="uniform", include_bias=True),
    cf.StandardScaler(with_std=False),
    cf.TableEncoder(missing="keep"),
    cf.TableEncoder(numeric="raw", categories="ordinal"),
    cf.TableEncoder(numeric="raw", categories="ordinal", missing="keep"),
    cf.TableEncoder(sparse_output=True),
]
# Weights and repetitions are compared to seven digits: two fits of these agree so far only if they are solved further.
FURTHER_SOLVED = (cf.LinearModel, cf.MultiTaskLassoCV)


def solved(case: Case) -> BaseEstimator:
    return case.build(**({"tol": 1e-9} if case.cls in FURTHER_SOLVED else {}))


# As the constructor leaves them, and every setting of the contract: how many classes there are is up to the check.
SETTINGS = [
    *(solved(Case(cls)) for cls in ESTIMATORS),
    *(solved(case) for case in CASES if case.classes == 2 and not refuses_their_targets(case.build())),
]
EVERY = {repr(estimator): estimator for estimator in [*SETTINGS, *FURTHER]}


def test_every_public_name_loads() -> None:
    assert not BROKEN


def not_applicable(estimator: Any) -> dict[str, str]:
    """Checks of another aim, and those whose rows it must refuse: tests/contract/test_weights.py asks it on rows it takes."""
    if Case(type(estimator)).takes_codes:
        return {
            "check_sample_weight_equivalence_on_dense_data": "its X are fractions, which are no codes of categories"
        }
    if isinstance(estimator, cf.MinimaxModel) and get_tags(estimator).target_tags.positive_only:
        return {"check_regressors_train": "it asks for a small mean square; the worst ratio of all rows is another aim"}
    if getattr(estimator, "loss", None) == "gamma" and hasattr(estimator, "transform"):
        names = ("general", "data_not_an_array", "preserve_dtypes")
        return {
            f"check_transformer_{name}": "they give every transformer a target of 0, whatever its tags say"
            for name in names
        }
    return {}


def check(estimator: Any) -> None:
    """All of scikit-learn's checks; every one that failed is told."""
    results = check_estimator(estimator, expected_failed_checks=not_applicable(estimator), on_fail=None)
    assert results
    tell({result["check_name"]: result["exception"] for result in results if result["status"] == "failed"})


@pytest.mark.parametrize("case", ONE_EACH, ids=str)
def test_scikit_learn_contract(case: Case) -> None:
    check(case.build())


@exhaustive
@pytest.mark.parametrize("estimator", EVERY.values(), ids=EVERY)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract_of_every_setting(estimator: Any) -> None:
    check(estimator)
