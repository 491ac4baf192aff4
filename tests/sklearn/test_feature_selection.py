"""Selected columns: those of scikit-learn, by scores, by steps and by elimination."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import sklearn.feature_selection as theirs
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import is_classifier
from sklearn.linear_model import LogisticRegression, Ridge
from tests.grids import grid

from certifit.sklearn.feature_selection import RFE, SelectKBest, SequentialFeatureSelector

SETTINGS = 50
X = np.random.default_rng(0).normal(size=(60, 6))
y = X @ [2.0, 0.0, -1.0, 0.0, 0.3, 0.0] + 0.3 * np.random.default_rng(1).normal(size=60)
SCORES = (theirs.f_classif, theirs.f_regression, theirs.chi2)
DRAWN: dict[type, Mapping[str, Sequence[Any]]] = {
    SelectKBest: {"score_func": SCORES, "k": (0, 2, 5, "all")},
    RFE: {"estimator": (Ridge(),), "n_features_to_select": (None, 1, 3, 0.5), "step": (1, 2, 0.3)},
}


@pytest.mark.parametrize("cls", DRAWN, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_random_settings_select_the_same_columns(cls: type, form: Any) -> None:
    other = getattr(theirs, cls.__name__)
    rng = np.random.default_rng(len(cls.__name__))
    for _ in range(SETTINGS):
        settings = {name: values[int(rng.integers(len(values)))] for name, values in DRAWN[cls].items()}
        rows = rng.poisson(1.5, size=(50, 6)) * rng.uniform(0.5, 2.0, size=6)
        target = rows @ rng.normal(size=6) + rng.normal(size=50)
        if settings.get("score_func") in (theirs.f_classif, theirs.chi2):
            target = np.digitize(target, np.quantile(target, [0.3, 0.7]))
        ours, expected = (one(**settings).fit(form(rows), target) for one in (cls, other))
        assert_array_equal(ours.get_support(), expected.get_support())
        for name in ("scores_", "pvalues_", "ranking_"):
            if hasattr(expected, name):
                assert_allclose(getattr(ours, name), getattr(expected, name), rtol=1e-8, err_msg=str(settings))


@grid(
    direction=["forward", "backward"],
    settings=[{}, {"n_features_to_select": 2}, {"tol": 0.01}, {"n_features_to_select": 0.5}],
    estimator=[Ridge(), LogisticRegression()],
)
def test_steps_are_theirs(direction: str, settings: dict[str, Any], estimator: Any) -> None:
    target = y > 0 if is_classifier(estimator) else y
    ours, expected = (
        cls(estimator, direction=direction, cv=3, **settings).fit(X, target)
        for cls in (SequentialFeatureSelector, theirs.SequentialFeatureSelector)
    )
    assert_array_equal(ours.support_, expected.support_)
    assert ours.n_features_to_select_ == expected.n_features_to_select_


def test_functions_of_ones_own_score() -> None:
    model = SelectKBest(lambda X, y: np.abs(X).sum(axis=0), k=1).fit(X)
    assert model.pvalues_ is None
    assert model.transform(X).shape == (60, 1)
    information = SelectKBest(lambda X, y: theirs.mutual_info_regression(X, y, random_state=0), k=1).fit(X, y)
    assert information.get_support()[0]
    with pytest.warns(UserWarning, match="k=9 is greater than n_features=6"):
        SelectKBest(theirs.f_regression, k=9).fit(X, y)


def test_elimination_speaks_as_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    model = RFE(Ridge(), n_features_to_select=4, verbose=1).fit(X, y)
    assert capsys.readouterr().out.splitlines() == [
        "Fitting estimator with 6 features.",
        "Fitting estimator with 5 features.",
    ]
    assert_allclose(model.predict(X), Ridge().fit(X[:, model.support_], y).predict(X[:, model.support_]))
    with pytest.raises(ValueError, match="should have `coef_` or"):
        RFE(theirs.SelectKBest(k=1)).fit(X, y > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RFE(Ridge(), importance_getter=lambda one: one.coef_ * 2.0).fit(X, y).n_features_ == 3
