"""Classes that are rare, absent from a fold, or removed by their weights."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.utils import get_tags
from tests.grids import exhaustive

import certifit
from certifit import LinearSVC, LogisticRegression, LogisticRegressionCV, SGDClassifier

CLASSIFIERS = sorted(
    {
        name
        for name in certifit.__all__
        if isinstance(getattr(certifit, name), type) and issubclass(getattr(certifit, name), ClassifierMixin)
    }
)


def build(name: str) -> Any:
    """A small, quick and reproducible model."""
    model = getattr(certifit, name)()
    quick = {"random_state": 0, "n_estimators": 5, "max_iter": 5, "cv": 3, "n_jobs": 1}
    known = model.get_params(deep=False)
    return model.set_params(**{key: value for key, value in quick.items() if key in known})


def three_classes(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of three classes, as counts for models that count."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 30)
    X = rng.normal(size=(90, 3)) + 2.0 * (y[:, None] == ["a", "b", "c"])
    tags = get_tags(getattr(certifit, name)()).input_tags
    return np.maximum(np.floor(2.0 * X), 0.0) if tags.positive_only else X, y


def ten_among(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Many rows, ten of which are of the other class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.zeros(n, dtype=int)
    rows = rng.choice(n, 10, replace=False)
    y[rows] = 1
    X[rows, 0] += 4.0
    return X, y


@pytest.fixture(scope="module")
def ten_in_a_million() -> tuple[np.ndarray, np.ndarray]:
    return ten_among(1_000_000)


def test_logistic_regression_of_ten_in_a_million(ten_in_a_million: Any) -> None:
    X, y = ten_in_a_million
    model = LogisticRegression(alpha=1e-9, tol=1e-8).fit(X, y)
    assert model.certificate_.certified, str(model.certificate_)
    # The equations of the maximum: probabilities sum to the count, and to the sums of the features up to the penalty.
    probability = model.predict_proba(X)[:, 1]
    assert probability.sum() == pytest.approx(10.0, abs=1e-2)
    np.testing.assert_allclose(X.T @ (probability - y) / 1e6, -1e-9 * model.coef_[0], atol=1e-8)
    assert model.coef_[0, 0] == pytest.approx(4.0, abs=1.5)  # the shift of the class, in units of its variance


@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=exhaustive)])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_linear_svc_of_ten_among_many(class_weight: str | None, n: int) -> None:
    X, y = ten_among(n)
    model = LinearSVC(alpha=1e-3, class_weight=class_weight).fit(X, y)
    assert model.certificate_.certified, str(model.certificate_)
    score = model.decision_function(X)
    weight = np.ones(n) if class_weight is None else np.where(y == 1, n / 20, n / 2 / (n - 10))
    value = np.average(np.maximum(0.0, 1.0 - (2 * y - 1) * score), weights=weight)
    value += 0.5e-3 * float(model.coef_[0] @ model.coef_[0])
    assert value == pytest.approx(model.certificate_.objective, rel=1e-9)
    if class_weight == "balanced":
        assert score[y == 1].min() > np.median(score)
        assert np.mean(score[y == 1] > 0) >= 0.8
    else:
        assert value <= 20 / n * (1 + model.tol)  # never worse than the constant −1, which errs on the ten


def test_sgd_of_ten_in_a_million(ten_in_a_million: Any) -> None:
    X, y = ten_in_a_million
    model = SGDClassifier(alpha=1e-4, class_weight="balanced", max_iter=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert np.isfinite(model.coef_).all()
    right = model.predict(X) == y
    assert 0.5 * (right[y == 1].mean() + right[y == 0].mean()) > 0.9


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_that_a_training_part_has_not_seen(name: str) -> None:
    X, y = three_classes(name)  # sorted: without shuffling, each training part lacks one class
    model = build(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = cross_val_score(model, X, y, cv=KFold(3), error_score="raise")
        assert scores == pytest.approx(0.0)  # every tested row is of the unseen class
        mixed = cross_val_score(model, X, y, cv=StratifiedKFold(3, shuffle=True, random_state=0), error_score="raise")
    assert mixed.mean() > 0.5


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_weights_that_remove_a_class(name: str) -> None:
    X, y = three_classes(name)
    kept = y != "b"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = build(name).fit(X, y, sample_weight=kept.astype(float))
        without = build(name).fit(X[kept], y[kept])
    assert list(model.classes_) == ["a", "c"]
    agree = np.mean(model.predict(X) == without.predict(X))
    assert agree == 1.0 if not hasattr(model, "estimators_") else agree > 0.8  # bags draw their rows by weight
    try:
        alone = build(name).fit(X, y, sample_weight=(y == "a").astype(float))
    except ValueError as error:
        assert "one class only: 'a'" in str(error)  # noqa: PT017 - both answers are right
    else:  # a method that can do nothing but name the only class it knows, such as a tree, may do so
        assert (alone.predict(X) == "a").all()


def test_cross_validated_logistic_regression_names_the_class_that_a_fold_lacks() -> None:
    X, y = three_classes("LogisticRegressionCV")
    with pytest.raises(ValueError, match=r"training part has no row of class 'a'"):
        LogisticRegressionCV(cv=KFold(3), n_alphas=5).fit(X, y)
    y[1:30] = "b"  # one row of class a: it stays in every training part
    model = LogisticRegressionCV(cv=3, n_alphas=5).fit(X, y)
    assert list(model.classes_) == ["a", "b", "c"]
    assert np.isfinite(model.log_loss_path_).all()


def test_cross_validation_without_the_rows_of_a_removed_class() -> None:
    X, y = three_classes("LogisticRegressionCV")
    kept = y != "b"
    model = LogisticRegressionCV(cv=3, n_alphas=5).fit(X, y, sample_weight=kept.astype(float))
    without = LogisticRegressionCV(cv=3, n_alphas=5).fit(X[kept], y[kept])
    assert model.alpha_ == without.alpha_
    np.testing.assert_allclose(model.coef_, without.coef_, atol=1e-8)
