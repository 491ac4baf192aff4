"""Nested cross-validation against loops by hand, and where the best of many scores is too good."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsClassifier

from certifit import Ridge, Search, nested_cv

RNG = np.random.default_rng(0)


def test_every_part_chooses_by_itself() -> None:
    X = RNG.normal(size=(60, 20))
    y = X[:, 0] + RNG.normal(size=60)
    cv = KFold(3)
    search = Search(Ridge(), {"alpha": [1e-4, 0.1, 3.0]})
    found = nested_cv(search, X, y, "mse", cv=cv)
    for (train, test), choice, value, believed in zip(
        cv.split(X), found.choices, found["mse"].parts, found.inner_scores, strict=True
    ):
        one = Search(Ridge(), {"alpha": [1e-4, 0.1, 3.0]}).fit(X[train], y[train])
        assert choice == one.best_params_
        assert believed == one.best_score_
        assert value == pytest.approx(np.mean((y[test] - one.predict(X[test])) ** 2))
    assert found.agreement in (1 / 3, 2 / 3, 1.0)
    assert "chose the same setting" in str(found)


def test_the_best_of_many_is_too_good_and_the_outer_score_is_not() -> None:
    X, y = RNG.normal(size=(60, 2)), RNG.choice(["a", "b"], size=60)
    search = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": list(range(1, 30, 2))}, cv=KFold(4, shuffle=True))
    found = nested_cv(search, X, y, "accuracy", cv=6)
    assert np.mean(found.inner_scores) > found["accuracy"].value
    assert found["accuracy"].low < 0.5 < found["accuracy"].high


def test_bad_input() -> None:
    X, y = RNG.normal(size=(30, 2)), RNG.normal(size=30)
    with pytest.raises(TypeError, match="no best_params_"):
        nested_cv(Ridge(), X, y)
    with pytest.raises(TypeError, match="estimator that chooses"):
        nested_cv(3, X, y)
    with pytest.raises(TypeError, match="leave out keep_models"):
        nested_cv(Search(), X, y, keep_models=True)
