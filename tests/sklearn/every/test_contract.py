"""Scikit-learn's checks of estimators, on every drop-in; and messages that speak of the class that was called."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator
from tests.grids import exhaustive

from certifit.sklearn import replacements
from certifit.sklearn.linear_model import LogisticRegression, Ridge

WEIGHTS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
DRAWN = dict.fromkeys(WEIGHTS, "the draws are not those of repeated rows, nor are scikit-learn's")
STEPS = dict.fromkeys(WEIGHTS, "a path of steps, which ends near the optimum; scikit-learn's fails too")
VISITS = dict.fromkeys(WEIGHTS, "a weight is how often a batch visits the row")
SHARES = dict.fromkeys(WEIGHTS, "scales and shares are of rows, not of weights; scikit-learn's fails too")
DIFFERENT: dict[str, dict[str, str]] = {
    **dict.fromkeys(("BaggingClassifier", "BaggingRegressor", "RandomForestClassifier", "RandomForestRegressor"), DRAWN),
    **dict.fromkeys(("SGDClassifier", "SGDRegressor"), STEPS),
    **dict.fromkeys(("MLPClassifier", "MLPRegressor"), VISITS),
    **dict.fromkeys(("NuSVR", "OneClassSVM", "SVC", "SVR"), SHARES),
    "NuSVC": {**SHARES, "check_class_weight_classifiers": "ours has no weights of classes, and says so"},
    "LogisticRegressionCV": {"check_sparsify_coefficients": "so few rows have no five folds; scikit-learn's fails too"},
    "QuadraticDiscriminantAnalysis": dict.fromkeys(
        ("check_sample_weights_shape", "check_sample_weights_not_overwritten", WEIGHTS[0]),
        "covariances of so few rows have no inverse, which scikit-learn refuses too; it takes no weights",
    ),
    "RFE": {"check_classifiers_one_label_sample_weights": "the learner speaks; scikit-learn's fails too"},
    "Ridge": {"check_non_transformer_estimators_n_iter": "n_iter_ of a factorization is None, as scikit-learn's"},
}  # fmt: skip
MENDED = (
    "AdaBoostClassifier", "BernoulliNB", "CalibratedClassifierCV", "HistGradientBoostingClassifier", "IncrementalPCA",
    "MultiTaskLasso", "NearestCentroid", "OneVsOneClassifier", "OneVsRestClassifier", "OutputCodeClassifier", "Perceptron",
    "SplineTransformer", "TruncatedSVD",
)  # fmt: skip
"""Classes that once failed a check: always tried, the others where all are."""
CLASSES = {path.rpartition(".")[2]: ours for path, (_, ours) in replacements().items() if inspect.isclass(ours)}


def made(name: str) -> Any:
    """The drop-in with what it must be given."""
    needed = [one.name for one in inspect.signature(CLASSES[name]).parameters.values() if one.default is one.empty]
    return CLASSES[name](**dict.fromkeys(needed, Ridge() if name.endswith("Regressor") else LogisticRegression()))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in MENDED else exhaustive) for name in sorted(CLASSES)]
)
def test_scikit_learn_takes_it_for_an_estimator_of_its_own(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = check_estimator(made(name), expected_failed_checks=DIFFERENT.get(name, {}), on_fail=None, on_skip=None)
    assert {one["check_name"]: repr(one["exception"]) for one in told if one["status"] == "failed"} == {}
    assert {one["check_name"] for one in told if one["status"] == "xfail"} == set(DIFFERENT.get(name, {}))


@pytest.mark.parametrize(
    ("name", "behind"),
    [
        ("LinearDiscriminantAnalysis", "LDA"),
        ("QuadraticDiscriminantAnalysis", "QDA"),
        ("HistGradientBoostingClassifier", "GradientBoosting"),
        ("HistGradientBoostingRegressor", "GradientBoosting"),
        ("BayesianRidge", "BayesianLinearRegression"),
        ("ARDRegression", "BayesianLinearRegression"),
        ("RBFSampler", "RandomFourierFeatures"),
        ("SelectKBest", "SelectBest"),
    ],
)
def test_errors_speak_of_the_class_that_was_called(name: str, behind: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    settings = {"k": 2} if name == "SelectKBest" else {}
    with pytest.raises(ValueError, match=rf"required by {name}\.") as caught:
        CLASSES[name](**settings).fit(X[:0], y[:0])
    assert f" {behind}" not in str(caught.value)
    model = CLASSES[name](**settings).fit(X, y)
    for ask in ("predict", "decision_function", "transform", "staged_predict"):
        if hasattr(model, ask):
            with pytest.raises(ValueError, match=rf"but {name} is expecting 3 features"):
                np.asarray(list(getattr(model, ask)(X[:, :2])))
