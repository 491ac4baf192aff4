"""The multiclass support vector machine with costs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.optimization.dual.test_hinge import multiclass_optimum

from certifit import LinearSVC, MulticlassSVC


def data(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    label = np.digitize(X[:, 0] + 0.4 * rng.normal(size=n), [-0.6, 0.6])
    return X, np.array(["low", "mid", "top"])[label], rng.integers(0, 4, size=n).astype(float)


@pytest.mark.parametrize("costs", [None, [[0, 1, 5], [1, 0, 1], [2, 1, 0]]])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_optimum(costs, fit_intercept):
    X, y, weight = data()
    model = MulticlassSVC(alpha=0.01, delta=costs, fit_intercept=fit_intercept, tol=1e-6).fit(X, y, weight)
    kept = weight > 0
    delta = 1 - np.eye(3) if costs is None else np.array(costs, dtype=float)
    label = np.searchsorted(model.classes_, y)
    p = (weight / weight.sum())[kept]
    optimum = multiclass_optimum(X[kept], label[kept], p, delta, 0.01, fit_intercept)
    c = model.certificate_
    assert c.certified
    assert c.bound <= optimum + 1e-8 <= c.objective + 2e-8
    assert -(p[:, None] * model.dual_coef_[kept]).T @ X[kept] / 0.01 == pytest.approx(model.coef_, abs=1e-2)
    assert model.dual_coef_.sum(axis=1) == pytest.approx(0.0, abs=1e-12)
    if fit_intercept:
        assert p @ model.dual_coef_[kept] == pytest.approx(0.0, abs=1e-12)
        assert model.intercept_.sum() == pytest.approx(0.0, abs=1e-12)


def test_the_unit_of_the_gap_is_the_best_constant():
    X, y, _ = data()
    model = MulticlassSVC(alpha=1e6).fit(X, y)  # so strong a penalty leaves the constant model
    c = model.certificate_
    share = np.unique(y, return_counts=True)[1] / len(y)
    # The best constant scores: the loss of a linear program; with zero-one costs at most 1.
    assert c.objective == pytest.approx(c.bound, abs=1e-3)
    assert 0 < c.objective <= 1.0 + 1e-9
    assert c.objective >= 1 - share.max() - 1e-9


def test_two_classes_are_the_binary_machine():
    X, y, _ = data()
    y = np.where(y == "top", "yes", "no")
    # Two rows w and −w share the penalty: alpha/2·2‖w‖² with margins of 2w·x against costs of 1.
    both = MulticlassSVC(alpha=0.02, delta=[[0, 1], [1, 0]], tol=1e-8, max_iter=100_000).fit(X, y)
    one = LinearSVC(alpha=0.01, tol=1e-8).fit(X, y)
    assert both.coef_[1] - both.coef_[0] == pytest.approx(one.coef_[0], abs=1e-3)
    assert both.decision_function(X).shape == (90,)
    np.testing.assert_array_equal(both.predict(X), one.predict(X))


def test_weights_count_repetitions_and_sparse_is_dense():
    X, y, weight = data(40)
    again = np.repeat(np.arange(40), weight.astype(int))
    options = {"alpha": 0.05, "tol": 1e-10, "max_iter": 100_000}
    one = MulticlassSVC(**options).fit(X, y, weight)
    two = MulticlassSVC(**options).fit(X[again], y[again])
    three = MulticlassSVC(**options).fit(sp.csr_array(X), y, weight)
    assert one.coef_ == pytest.approx(two.coef_, abs=1e-6)
    assert one.coef_ == pytest.approx(three.coef_, abs=1e-6)


def test_single_precision_and_seeds():
    X, y, _ = data(400)
    model = MulticlassSVC(alpha=0.01).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32
    again = MulticlassSVC(alpha=0.01, n_jobs=2).fit(X.astype(np.float32), y)
    np.testing.assert_array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_scales(scale):
    X, y, _ = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MulticlassSVC(max_iter=200).fit(X * scale, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.certificate_.objective)


@pytest.mark.parametrize(
    ("delta", "match"),
    [
        (np.zeros((3, 3)), "zero everywhere"),
        (np.ones((3, 3)), "diagonal"),
        (-1 + np.eye(3), ">= 0"),
        (np.ones((2, 2)), "shape"),
        ("costs", "delta"),
    ],
)
def test_bad_costs(delta, match):
    X, y, _ = data()
    with pytest.raises((ValueError, TypeError), match=match):
        MulticlassSVC(delta=delta).fit(X, y)


def test_one_class_is_refused():
    with pytest.raises(ValueError, match="one class"):
        MulticlassSVC().fit(np.ones((4, 2)), np.ones(4))
