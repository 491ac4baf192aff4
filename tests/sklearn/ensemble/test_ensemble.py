"""Bags, AdaBoost and early stopping: the draws, votes and rules of scikit-learn, with its own learners inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.ensemble
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_diabetes, load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from certifit.sklearn import ensemble

X, y = load_iris(return_X_y=True)
NAMES = np.array(["a", "b", "c"])[y]
NUMBERS = load_diabetes(return_X_y=True)
BAGS: list[dict[str, Any]] = [
    {"estimator": DecisionTreeClassifier(max_depth=2), "oob_score": True},
    {"estimator": KNeighborsClassifier(3), "max_samples": 0.5, "max_features": 2},
    {"estimator": GaussianNB(), "bootstrap": False, "max_samples": 40, "bootstrap_features": True},
]


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")
@pytest.mark.parametrize("settings", BAGS, ids=lambda one: type(one["estimator"]).__name__)
def test_bags_are_those_of_scikit_learn(settings: dict[str, Any]) -> None:
    theirs = sklearn.ensemble.BaggingClassifier(random_state=3, **settings).fit(X, NAMES)
    ours = ensemble.BaggingClassifier(random_state=3, **settings).fit(X, NAMES)
    for mine, other in zip(ours.estimators_samples_, theirs.estimators_samples_, strict=True):
        assert_array_equal(mine, other)
    assert_array_equal(np.array(ours.estimators_features_), np.array(theirs.estimators_features_))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))
    if "oob_score" in settings:
        assert_allclose(ours.oob_decision_function_, theirs.oob_decision_function_)
        assert ours.oob_score_ == theirs.oob_score_
    assert ours.certificate_.kind == "none"


def test_bags_of_numbers_with_weights_and_more_of_them() -> None:
    rows, target = NUMBERS
    weight = np.linspace(0.0, 2.0, len(target))
    settings: dict[str, Any] = {"estimator": DecisionTreeRegressor(max_depth=3), "random_state": 0, "warm_start": True}
    models = [home.BaggingRegressor(n_estimators=3, **settings) for home in (sklearn.ensemble, ensemble)]
    for model in models:
        model.fit(rows, target, sample_weight=weight)
        model.set_params(n_estimators=5).fit(rows, target, sample_weight=weight)
    assert_allclose(models[1].predict(rows), models[0].predict(rows))
    with pytest.warns(UserWarning, match="does not fit new trees"):
        models[1].fit(rows, target, sample_weight=weight)
    with pytest.raises(ValueError, match="must be larger or equal"):
        models[1].set_params(n_estimators=2).fit(rows, target)
    with pytest.raises(ValueError, match="at least one weight that is not zero"):
        ensemble.BaggingRegressor().fit(rows, target, sample_weight=np.zeros(len(target)))
    with pytest.raises(ValueError, match="bootstrap=True"):
        ensemble.BaggingRegressor(bootstrap=False, oob_score=True).fit(rows, target)


def test_trees_of_ours_are_what_is_bagged_by_default() -> None:
    model = ensemble.BaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    assert all(hasattr(one, "certificate_") for one in model.estimators_)


@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_adaboost_is_that_of_scikit_learn(rate: float) -> None:
    settings: dict[str, Any] = {
        "estimator": DecisionTreeClassifier(max_depth=1),
        "n_estimators": 8,
        "learning_rate": rate,
    }
    theirs = sklearn.ensemble.AdaBoostClassifier(random_state=0, **settings).fit(X, NAMES)
    ours = ensemble.AdaBoostClassifier(random_state=0, **settings).fit(X, NAMES)
    assert_allclose(ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-6)
    assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-6, atol=1e-12)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_array_equal(list(ours.staged_predict(X))[-1], theirs.predict(X))


def test_adaboost_refuses_what_cannot_be_weighted_or_is_no_better_than_chance() -> None:
    with pytest.raises(ValueError, match="doesn't support sample_weight"):
        ensemble.AdaBoostClassifier(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="Negative values"):
        ensemble.AdaBoostClassifier().fit(X, y, sample_weight=np.full(len(y), -1.0))
    with pytest.raises(ValueError, match="worse than random"):
        ensemble.AdaBoostClassifier(n_estimators=2).fit(np.zeros((40, 1)), np.arange(40) % 2)


@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
def test_adaboost_on_numbers_is_as_good_as_scikit_learns(loss: str) -> None:
    rows, target = NUMBERS
    settings: dict[str, Any] = {"loss": loss, "n_estimators": 15, "learning_rate": 0.5, "random_state": 0}
    theirs = sklearn.ensemble.AdaBoostRegressor(**settings).fit(rows, target)
    ours = ensemble.AdaBoostRegressor(**settings).fit(rows, target)
    assert ours.score(rows, target) == pytest.approx(theirs.score(rows, target), abs=0.03)
    assert ours.estimator_errors_[0] == pytest.approx(theirs.estimator_errors_[0], abs=0.03)
    assert_allclose(ours.predict(rows), ours.model_.predict(rows))
    assert_allclose(list(ours.staged_predict(rows))[4], list(ours.model_.staged_predict(rows))[4])
    assert np.corrcoef(ours.feature_importances_, theirs.feature_importances_)[0, 1] > 0.9


def test_boosted_learners_see_rows_in_the_shape_and_format_they_came_in() -> None:
    cubes = np.random.default_rng(0).normal(size=(30, 2, 3))
    labels = (cubes[:, 0, 0] > 0).astype(int)
    for model in (
        ensemble.AdaBoostClassifier(Corner(), n_estimators=2),
        ensemble.AdaBoostRegressor(Corner(), n_estimators=2),
    ):
        assert_array_equal(model.fit(cubes, labels).predict(cubes), labels)
    assert model.estimators_[0].seen_ == (2, 3)


class Corner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learns nothing: the sign of a corner of each row."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Corner:
        self.seen_, self.classes_ = X.shape[1:], np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return (X[:, 0, 0] > 0).astype(int)


@pytest.mark.parametrize("scoring", ["loss", "neg_mean_absolute_error", None])
def test_boosting_stops_by_scikit_learns_rule(scoring: str | None) -> None:
    rows, target = NUMBERS
    settings: dict[str, Any] = {"early_stopping": True, "scoring": scoring, "random_state": 0, "max_iter": 60}
    theirs = sklearn.ensemble.HistGradientBoostingRegressor(**settings).fit(rows, target)
    ours = ensemble.HistGradientBoostingRegressor(**settings).fit(rows, target)
    assert ours.do_early_stopping_
    assert abs(ours.n_iter_ - theirs.n_iter_) <= 10
    assert len(ours.validation_score_) == ours.n_iter_ + 1
    if scoring != "loss":  # before the first tree both predict the mean of the same rows
        assert ours.validation_score_[0] == pytest.approx(theirs.validation_score_[0], rel=1e-6)


def test_rows_for_validation_of_ones_own() -> None:
    rows, target = NUMBERS
    settings: dict[str, Any] = {"max_iter": 40, "n_iter_no_change": 3, "scoring": "r2"}
    model = ensemble.HistGradientBoostingRegressor(**settings)
    model.fit(rows[:300], target[:300], X_val=rows[300:], y_val=target[300:])
    assert model.n_iter_ < 40
    assert model.validation_score_[-1] == pytest.approx(model.score(rows[300:], target[300:]))
    with pytest.raises(ValueError, match="y_val was not provided"):
        model.fit(rows, target, X_val=rows)
    with pytest.raises(ValueError, match="early_stopping is False"):
        model.set_params(early_stopping=False).fit(rows, target, X_val=rows, y_val=target)


def test_infinite_values_and_negative_categories() -> None:
    rows = np.array([[-np.inf, 0.0], [0.0, 1.0], [1.0, -1.0], [np.inf, np.nan]] * 10)
    target = np.array([0.0, 0.0, 1.0, 1.0] * 10)
    model = ensemble.HistGradientBoostingRegressor(min_samples_leaf=1, categorical_features=[1]).fit(rows, target)
    assert_allclose(model.predict(rows), target, atol=1e-3)
    unknown = np.array([[0.0, -5.0], [0.0, np.nan], [0.0, 7.0]])
    assert np.unique(model.predict(unknown)).size == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_boosting_bins_as_scikit_learn_does(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(700, 3))
    rows[:, 1] = np.round(rows[:, 1], 1)
    rows[::9, 2] = np.nan
    weight = rng.uniform(0.0, 3.0, 700) if weighted else None
    settings: dict[str, Any] = {"max_iter": 1, "random_state": 0, "early_stopping": True}
    theirs, ours = (
        home.HistGradientBoostingRegressor(**settings).fit(rows, rows[:, 0], sample_weight=weight)
        for home in (sklearn.ensemble, ensemble)
    )
    for mine, other in zip(ours.model_._binner.edges_, theirs._bin_mapper.bin_thresholds_, strict=True):
        assert_allclose(mine, other, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("weighted", [False, True])
def test_bins_of_many_rows_are_those_of_the_rows_that_are_drawn(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200_001, 1))
    weight = rng.uniform(0.5, 2.0, 200_001) if weighted else None
    settings: dict[str, Any] = {"max_iter": 1, "max_bins": 7, "random_state": 3, "early_stopping": False}
    theirs, ours = (
        home.HistGradientBoostingRegressor(**settings).fit(rows, rows[:, 0], sample_weight=weight)
        for home in (sklearn.ensemble, ensemble)
    )
    assert_allclose(ours.model_._binner.edges_[0], theirs._bin_mapper.bin_thresholds_[0], rtol=1e-14)


def test_leaves_of_boosting_have_so_many_rows_whatever_they_weigh() -> None:
    rows, target = np.arange(40.0)[:, None], np.repeat([0.0, 1.0], 20)
    settings: dict[str, Any] = {"max_iter": 1, "learning_rate": 1.0, "min_samples_leaf": 20, "loss": "poisson"}
    for weight in (np.full(40, 0.1), np.linspace(0.01, 0.2, 40), np.tile([1.0, 3.0], 20)):
        model = ensemble.HistGradientBoostingRegressor(**settings).fit(rows, target, sample_weight=weight)
        other = sklearn.ensemble.HistGradientBoostingRegressor(**settings).fit(rows, target, sample_weight=weight)
        assert len(set(model.predict(rows))) == 2
        assert_allclose(model.predict(rows), other.predict(rows), rtol=1e-6)
