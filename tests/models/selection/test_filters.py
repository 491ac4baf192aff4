"""Scores of single columns against scikit-learn's and SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array
from scipy.stats import pearsonr
from sklearn.feature_selection import chi2, f_classif, f_regression
from sklearn.metrics import mutual_info_score

from certifit import SelectBest
from certifit.models.selection.filters import BINS
from certifit.representation.table.binning import equal_weight_bins


def rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)) + 2.0
    y = X[:, 1] + 0.5 * X[:, 3] + rng.normal(size=80)
    return X, y, rng.integers(0, 4, size=80)


def test_numbers() -> None:
    X, y, weight = rows()
    again, target = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    score, p = f_regression(again, target)
    model = SelectBest("f", k=2).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.scores_, score, rtol=1e-9)
    np.testing.assert_allclose(model.pvalues_, p, rtol=1e-7)
    assert list(model.get_support(indices=True)) == [1, 3]
    r = [abs(pearsonr(column, target)[0]) for column in again.T]
    np.testing.assert_allclose(SelectBest("correlation").fit(X, y, sample_weight=weight).scores_, r, rtol=1e-9)


@pytest.mark.parametrize(("name", "truth"), [("anova", f_classif), ("chi2", chi2)])
def test_classes(name: str, truth: Any) -> None:
    X, y, weight = rows()
    X, labels = np.abs(X), np.array(["a", "b", "c"])[np.digitize(y, [2.0, 4.0])]
    score, p = truth(np.repeat(X, weight, axis=0), np.repeat(labels, weight))
    model = SelectBest(name, k=2).fit(X, labels, sample_weight=weight)
    np.testing.assert_allclose(model.scores_, score, rtol=1e-9)
    np.testing.assert_allclose(model.pvalues_, p, rtol=1e-7)


def test_information() -> None:
    X, y, _ = rows()
    weight = np.ones(80)
    model = SelectBest("mutual_information", k=1).fit(X, y)
    truth = [
        mutual_info_score(equal_weight_bins(column, weight, BINS), equal_weight_bins(y, weight, BINS)) for column in X.T
    ]
    np.testing.assert_allclose(model.scores_, truth, rtol=1e-9)
    assert np.bincount(equal_weight_bins(y, weight, BINS)).tolist() == [8] * 10
    assert equal_weight_bins(np.array([3.0, 1.0, 3.0]), np.ones(3), BINS).tolist() == [1, 0, 1]


def test_constant_columns_say_nothing_and_perfect_ones_all() -> None:
    X, y, _ = rows()
    X[:, 0], X[:, 2] = 4.0, y
    for name in ("correlation", "f", "mutual_information"):
        scores = SelectBest(name, k=1).fit(X, y).scores_
        assert scores[0] == 0
        assert scores.argmax() == 2
    labels = (y > 2).astype(int)
    X[:, 2] = labels
    assert SelectBest("anova", k=1).fit(X, labels).support_[2]


def test_counts_are_not_negative() -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        SelectBest("chi2").fit([[-1.0], [1.0]], [0, 1])


def test_two_rows_test_nothing() -> None:
    model = SelectBest("f", k=1).fit([[0.0, 1.0], [1.0, 1.0]], [0.0, 1.0])
    assert model.scores_.tolist() == [0.0, 0.0]
    assert np.isnan(model.pvalues_).all()


@pytest.mark.parametrize("by", ["correlation", "f", "anova", "chi2"])
def test_sparse_rows_have_the_scores_of_dense_ones(by: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, size=(70, 6)) * rng.uniform(0.5, 2.0, size=6)
    X[:, 5] = 0.0
    y, weight = X[:, 1] + rng.normal(size=70), rng.integers(1, 4, size=70)
    target = y if by in ("correlation", "f") else y > 0
    dense = SelectBest(by, k=2).fit(X, target, sample_weight=weight)
    for form in (csr_array, csc_array):
        sparse = SelectBest(by, k=2).fit(form(X), target, sample_weight=weight)
        np.testing.assert_allclose(sparse.scores_, dense.scores_, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(sparse.transform(form(X)).toarray(), dense.transform(X))


def test_scores_are_drawn_best_first() -> None:
    X = np.random.default_rng(0).normal(size=(30, 5))
    model = SelectBest("f", k=2).fit(X, X[:, 3])  # one column explains all of y
    axes = model.plot()
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == sorted(heights, reverse=True)
    assert np.isfinite(heights).all()
    assert axes.get_ylabel() == "score by f"
