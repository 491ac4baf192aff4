"""Columns left out one after the other: scikit-learn's ranks, shares of columns, weights, sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.feature_selection import RFE

from certifit import DecisionTreeClassifier, KNeighborsRegressor, LogisticRegression, RecursiveElimination, Ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 7))
y = X @ [3.0, 0.0, -1.0, 0.2, 0.0, 0.5, 0.05] + 0.1 * RNG.normal(size=80)


@pytest.mark.parametrize("step", [1, 2, 0.4])
@pytest.mark.parametrize("n_features", [None, 1, 5])
def test_ranks_are_scikit_learns(step: Any, n_features: Any) -> None:
    ours = RecursiveElimination(n_features=n_features, step=step).fit(X, y)
    theirs = RFE(Ridge(), n_features_to_select=n_features, step=step).fit(X, y)
    assert_array_equal(ours.ranking_, theirs.ranking_)
    assert_array_equal(ours.transform(X), X[:, theirs.support_])


def test_classes_importances_and_sparse_rows() -> None:
    labels = np.where(y > 0, "yes", "no")
    by_coef = RecursiveElimination(LogisticRegression(alpha=0.01), n_features=2)
    assert by_coef.fit(X, labels).get_support(indices=True).tolist() == [0, 2]
    assert_array_equal(by_coef.fit(sp.csr_array(X), labels).ranking_, by_coef.fit(X, labels).ranking_)
    assert RecursiveElimination(DecisionTreeClassifier(), n_features=1).fit(X, labels).support_[0]
    weighted = by_coef.fit(X, labels, sample_weight=np.repeat([1.0, 0.0], 40)).ranking_
    assert_array_equal(weighted, by_coef.fit(X[:40], labels[:40]).ranking_)


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match="neither coef_ nor feature_importances_"):
        RecursiveElimination(KNeighborsRegressor()).fit(X, y)
    assert RecursiveElimination(n_features=70).fit(X, y).support_.all()


def test_columns_are_drawn_by_the_fits_they_stayed_for() -> None:
    model = RecursiveElimination(n_features=2, step=2).fit(X, y)
    axes = model.plot()
    assert (axes.get_yticks() % 1 == 0).all()
    bars = axes.patches
    # Seven columns, then five, three and two.
    assert [bar.get_height() for bar in bars] == [4, 4, 3, 2, 2, 1, 1]
    assert len({bar.get_facecolor() for bar in bars[:2]}) == len({bar.get_facecolor() for bar in bars[2:]}) == 1
    assert bars[0].get_facecolor() != bars[2].get_facecolor()
