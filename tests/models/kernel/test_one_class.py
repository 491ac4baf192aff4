"""One class: the optimum, the share of outliers, scikit-learn's scale."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
import sklearn.svm

from certifit import OneClassSVM, kernels


def cloud(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5], rng.integers(0, 4, size=n).astype(float)


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_the_optimum_is_the_one_of_an_independent_solver(nu):
    X, weight = cloud()
    kernel = kernels.RBF(0.2)
    model = OneClassSVM(nu=nu, kernel=kernel, tol=1e-8).fit(X, sample_weight=weight)
    values, vectors = np.linalg.eigh(kernel(X))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    beta = cvxpy.Variable(len(X), nonneg=True)
    problem = cvxpy.Problem(
        cvxpy.Minimize(0.5 * cvxpy.sum_squares(root.T @ beta)), [beta <= weight, cvxpy.sum(beta) == nu * weight.sum()]
    )
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    best = problem.value / (nu * weight.sum()) ** 2
    assert model.certificate_.certified
    assert model.certificate_.bound <= best * (1 + 1e-6)
    assert model.certificate_.objective >= best * (1 - 1e-6)
    outliers = weight @ (model.predict(X) < 0) / weight.sum()
    assert outliers <= nu <= weight[model.support_].sum() / weight.sum()


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_same_as_scikit_learn(kernel):
    X, _ = cloud()
    X = X + 4.0
    ours = OneClassSVM(nu=0.213, kernel=kernel, gamma=0.1, tol=1e-12).fit(X)
    theirs = sklearn.svm.OneClassSVM(nu=0.213, kernel=kernel, gamma=0.1, tol=1e-10).fit(X)
    size = np.abs(theirs.score_samples(X)).max()
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-5 * size)
    np.testing.assert_allclose(ours.offset_, theirs.offset_[0], atol=1e-5 * size)
    clear = np.abs(theirs.decision_function(X)) > 1e-5 * size
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])


@pytest.mark.parametrize("nu", [0.1, 0.9])
@pytest.mark.parametrize("unit", [1e-100, 1.0, 1e100])
def test_rows_about_zero_are_certified(nu, unit):
    """With a linear kernel some weights cancel all rows: the optimum is zero, and so is the offset."""
    X = cloud()[0]
    X = (X - X.mean(axis=0)) * unit
    model = OneClassSVM(nu=nu, kernel="linear", tol=1e-6).fit(X)
    assert model.certificate_.certified
    assert abs(model.offset_) <= 1e-6 * unit**2
