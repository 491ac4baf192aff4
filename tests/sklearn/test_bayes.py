"""Naive Bayes and discriminant analysis: closed forms, equal to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.discriminant_analysis
import sklearn.naive_bayes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import ShrunkCovariance
from sklearn.datasets import load_iris

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


@pytest.mark.parametrize(
    "options",
    [{"shrinkage": 0.3}, {"shrinkage": "auto"}, {"covariance_estimator": ShrunkCovariance(shrinkage=0.2)}],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("name", discriminant_analysis.__all__)
def test_covariances_by_other_rules(name: str, options: dict[str, Any]) -> None:
    options = {"solver": "eigen", "store_covariance": True, **options}
    theirs, ours = (
        getattr(home, name)(**options).fit(X, y) for home in (sklearn.discriminant_analysis, discriminant_analysis)
    )
    assert_allclose(np.array(ours.covariance_), np.array(theirs.covariance_), atol=1e-10)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("name", discriminant_analysis.__all__)
def test_what_does_not_go_together_is_refused_in_scikit_learns_words(name: str) -> None:
    cls = getattr(discriminant_analysis, name)
    with pytest.raises(NotImplementedError, match="shrinkage not supported with 'svd'"):
        cls(shrinkage=0.1).fit(X, y)
    with pytest.raises(ValueError, match="Only one of the two can be set"):
        cls(solver="eigen", shrinkage=0.1, covariance_estimator=ShrunkCovariance()).fit(X, y)
    with pytest.raises(ValueError, match="not supported with"):
        cls(covariance_estimator=ShrunkCovariance()).fit(X, y)
    with pytest.raises(ValueError, match="does not have a covariance_ attribute"):
        cls(solver="eigen", covariance_estimator=WithoutCovariance()).fit(X, y)


def test_a_covariance_without_inverse_is_an_error_for_classes_of_their_own() -> None:
    model = discriminant_analysis.QuadraticDiscriminantAnalysis()
    with pytest.raises(np.linalg.LinAlgError, match=r"of class 0 is not full rank\. Increase the value of `reg_param`"):
        model.fit(np.c_[X, X[:, 0]], y)
    theirs = sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1).fit(np.c_[X, X[:, 0]], y)
    model.set_params(reg_param=0.1).fit(np.c_[X, X[:, 0]], y)
    assert_allclose(model.predict_proba(np.c_[X, X[:, 0]]), theirs.predict_proba(np.c_[X, X[:, 0]]), atol=1e-9)
    with pytest.raises(np.linalg.LinAlgError, match="number of samples in each class should be more"):
        discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X[:6], [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="only 1 sample in class"):
        discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X[:6], [0, 0, 0, 0, 0, 1])


class WithoutCovariance:
    """What can be fitted, and estimates nothing."""

    def fit(self, X: Any) -> None:
        """Nothing."""


def test_smoothing_that_is_almost_none() -> None:
    for name in ("BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB"):
        with pytest.warns(UserWarning, match=r"setting alpha = 1.0e-10"):
            ours = getattr(naive_bayes, name)(alpha=0.0, force_alpha=False).fit(X, y)
        forced = getattr(naive_bayes, name)(alpha=1e-10).fit(X, y)
        assert_allclose(ours.predict_proba(X), forced.predict_proba(X))
    alpha = np.array([0.5, 1.0, 2.0])
    theirs, ours = (home.MultinomialNB(alpha=alpha).fit(X, y) for home in (sklearn.naive_bayes, naive_bayes))
    assert_allclose(ours.feature_log_prob_, theirs.feature_log_prob_)
    theirs, ours = (home.ComplementNB(norm=True).fit(X, y) for home in (sklearn.naive_bayes, naive_bayes))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    with pytest.raises(ValueError, match="it should contains `n_features`"):
        naive_bayes.MultinomialNB(alpha=alpha[:2]).fit(X, y)
    with pytest.raises(ValueError, match="must be greater than 0"):
        naive_bayes.MultinomialNB(alpha=-alpha).fit(X, y)


def test_categories_are_whole_parts() -> None:
    theirs, ours = (home.CategoricalNB().fit(X + 0.7, y) for home in (sklearn.naive_bayes, naive_bayes))
    assert_allclose(ours.predict_proba(X + 0.2), theirs.predict_proba(X + 0.2))
    parts = naive_bayes.CategoricalNB().partial_fit(X[:40] + 0.7, y[:40], classes=[0, 1, 2]).partial_fit(X[40:], y[40:])
    assert_allclose(parts.predict_joint_log_proba(X + 0.2), theirs.predict_joint_log_proba(X + 0.2))
    with pytest.raises(ValueError, match="'min_categories' should have shape"):
        naive_bayes.CategoricalNB(min_categories=[[3, 2], [2, 4]]).fit(X, y)


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


def test_directions_may_be_columns_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    rows, labels = load_iris(return_X_y=True, as_frame=True)
    found = discriminant_analysis.LinearDiscriminantAnalysis().set_output(transform="pandas").fit(rows, labels)
    assert isinstance(found.transform(rows), pandas.DataFrame)
    assert list(found.transform(rows).columns) == ["lineardiscriminantanalysis0", "lineardiscriminantanalysis1"]
