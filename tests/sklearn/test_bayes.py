"""Naive Bayes and discriminant analysis: closed forms, equal to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.discriminant_analysis
import sklearn.naive_bayes
from numpy.testing import assert_allclose, assert_array_equal

from certifit.sklearn import discriminant_analysis, naive_bayes

RNG = np.random.default_rng(0)
X, y, WEIGHT = RNG.integers(0, 4, size=(80, 3)).astype(float), RNG.integers(0, 3, 80), RNG.uniform(0.5, 2.0, 80)
TOLD = ("class_count_", "class_log_prior_", "feature_log_prob_", "theta_", "var_", "epsilon_", "class_prior_")


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", naive_bayes.__all__)
def test_naive_bayes(name: str, weight: Any) -> None:
    theirs, ours = (getattr(home, name)().fit(X, y, weight) for home in (sklearn.naive_bayes, naive_bayes))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12 if weight is None else 1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-6)
    for told in TOLD:
        # What is added to variances is a share of the largest one: theirs of the rows as they are, ours of the weighted rows.
        if hasattr(theirs, told) and (weight is None or told != "epsilon_"):
            assert_allclose(getattr(ours, told), getattr(theirs, told), rtol=1e-6, err_msg=told)


@pytest.mark.parametrize("name", naive_bayes.__all__)
def test_rows_in_parts(name: str) -> None:
    cls = getattr(naive_bayes, name)
    settings = {"min_categories": 4} if name == "CategoricalNB" else {}
    parts = cls(**settings).partial_fit(X[:40], y[:40], classes=[0, 1, 2]).partial_fit(X[40:], y[40:])
    assert_allclose(parts.predict_proba(X), cls(**settings).fit(X, y).predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("priors", "words"),
    [([0.5, 0.5], "Number of priors"), ([0.5, 0.9, 0.1], "sum of the priors"), ([-1, 1, 1], "non-negative")],
)
def test_priors_are_refused_in_scikit_learns_words(priors: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        naive_bayes.GaussianNB(priors=np.array(priors)).fit(X, y)
    with pytest.raises(ValueError, match=words):
        naive_bayes.MultinomialNB(class_prior=np.array(priors)).fit(X, y)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        naive_bayes.GaussianNB().partial_fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", discriminant_analysis.__all__)
def test_discriminants(name: str, classes: int) -> None:
    target = np.minimum(y, classes - 1)
    theirs, ours = (
        getattr(home, name)().fit(X, target) for home in (sklearn.discriminant_analysis, discriminant_analysis)
    )
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.means_, theirs.means_)
    if name.startswith("Linear"):
        assert ours.transform(X).shape == theirs.transform(X).shape
    with pytest.raises(NotImplementedError, match="covariance_estimator"):
        getattr(discriminant_analysis, name)(solver="eigen", covariance_estimator=WithFit()).fit(X, target)


class WithFit:
    """What scikit-learn takes for an estimator of covariances."""

    def fit(self, X: Any) -> None:
        self.covariance_ = np.cov(X.T)


def test_other_errors_in_scikit_learns_words() -> None:
    model = naive_bayes.GaussianNB().partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="is not the same as on last call to partial_fit"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"The target label.* in y do not exist in the initial classes"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="n_components cannot be larger than"):
        discriminant_analysis.LinearDiscriminantAnalysis(n_components=3).fit(X, y)
    with pytest.raises(ValueError, match="priors must be non-negative"):
        discriminant_analysis.LinearDiscriminantAnalysis(priors=np.array([-0.5, 0.5, 1.0])).fit(X, y)
