"""Many classes by models of two: the same parts, the same votes, the same code words as scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.multiclass
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale

from certifit.sklearn import multiclass
from certifit.sklearn.linear_model import LogisticRegression

X, CODES = load_iris(return_X_y=True)
X = scale(X)
y = np.array(["a", "b", "c"])[CODES]
NAMES = multiclass.__all__


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("base", [LogisticRegression(C=0.5), GaussianNB()], ids=lambda base: type(base).__name__)
def test_the_parts_and_the_votes_are_those_of_scikit_learn(name: str, base: Any) -> None:
    seed = {"random_state": 0} if name == "OutputCodeClassifier" else {}
    theirs = getattr(sklearn.multiclass, name)(base, **seed).fit(X, y)
    ours = getattr(multiclass, name)(base, **seed).fit(X, y)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert len(ours.estimators_) == len(theirs.estimators_)
    assert_array_equal(ours.classes_, theirs.classes_)
    for method in ("decision_function", "predict_proba"):
        assert hasattr(ours, method) == hasattr(theirs, method)
        if hasattr(theirs, method):
            assert_allclose(getattr(ours, method)(X), getattr(theirs, method)(X))
    assert ours.certificate_.certified == isinstance(base, LogisticRegression)


def test_several_labels_a_row_and_one_that_all_have() -> None:
    rows, labels = make_multilabel_classification(60, n_features=4, random_state=0)
    labels[:, 2] = 1
    with pytest.warns(UserWarning, match="Label 2 is present in all"):
        ours = multiclass.OneVsRestClassifier(LogisticRegression()).fit(rows, labels)
    with pytest.warns(UserWarning, match="Label 2 is present in all"):
        theirs = sklearn.multiclass.OneVsRestClassifier(LogisticRegression()).fit(rows, labels)
    assert_array_equal(ours.predict(rows), theirs.predict(rows))
    assert_allclose(ours.predict_proba(rows), theirs.predict_proba(rows))
    assert_allclose(ours.decision_function(rows)[:, 2], 1.0)


@pytest.mark.parametrize("name", ["OneVsOneClassifier", "OneVsRestClassifier"])
def test_rows_in_parts(name: str) -> None:
    whole = getattr(multiclass, name)(GaussianNB()).fit(X, y)
    parts = getattr(multiclass, name)(GaussianNB())
    for rows in (slice(0, None, 2), slice(1, None, 2)):
        parts.partial_fit(X[rows], y[rows], classes=["a", "b", "c"])
    assert_array_equal(parts.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match="Mini-batch contains"):
        parts.partial_fit(X[:1], ["d"])
    with pytest.raises(ValueError, match="not the same as on last call"):
        parts.partial_fit(X[:1], ["a"], classes=["a", "b"])
    with pytest.raises(ValueError, match="first call"):
        getattr(multiclass, name)(GaussianNB()).partial_fit(X, y)
    assert not hasattr(getattr(multiclass, name)(LogisticRegression()), "partial_fit")


@pytest.mark.parametrize("name", NAMES)
def test_weights_travel_by_metadata_routing(name: str) -> None:
    weight = np.linspace(0.1, 2.0, len(y))
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        getattr(multiclass, name)(GaussianNB()).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        base = GaussianNB().set_fit_request(sample_weight=True)
        seed = {"random_state": 0} if name == "OutputCodeClassifier" else {}
        ours = getattr(multiclass, name)(base, **seed).fit(X, y, sample_weight=weight)
        theirs = getattr(sklearn.multiclass, name)(base, **seed).fit(X, y, sample_weight=weight)
        for part, other in zip(ours.estimators_, theirs.estimators_, strict=True):
            assert hasattr(part, "theta_") == hasattr(other, "theta_")  # a bit that all classes share needs no model
            if hasattr(part, "theta_"):
                assert_allclose(part.theta_, other.theta_)


def test_one_class_is_refused_by_one_against_one() -> None:
    with pytest.raises(ValueError, match="only one class"):
        multiclass.OneVsOneClassifier(GaussianNB()).fit(X, np.zeros(len(X)))
