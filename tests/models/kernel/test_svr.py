"""Support vector regression on kernels: optima, tubes, scales."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
import sklearn.svm

from certifit import SVR, LinearSVR, NuSVR, alpha_from_C, kernels


def curve(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n), rng.integers(0, 4, size=n).astype(float)


def optimum(K, y, limit, epsilon=None, nu=None):
    """The primal over f = Kβ: a price nu·Σlimit for the tube, or a tube of given width."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b, width = cvxpy.Variable(len(y)), cvxpy.Variable(), cvxpy.Variable(nonneg=True) if nu else epsilon
    loss = limit @ cvxpy.pos(cvxpy.abs(y - root @ w - b) - width)
    price = nu * limit.sum() * width if nu else 0.0
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + loss + price))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("kernel", [kernels.RBF(0.5), kernels.Linear(), kernels.Laplacian(0.5)], ids=str)
def test_the_optimum_is_the_one_of_an_independent_solver(kernel, epsilon, C):
    X, y, weight = curve()
    model = SVR(kernel=kernel, C=C, epsilon=epsilon, tol=1e-7).fit(X, y, weight)
    best = optimum(kernel(X), y, C * weight, epsilon) / (C * weight.sum())
    residual = np.maximum(np.abs(y - model.predict(X)) - epsilon, 0.0)
    beta = model.dual_coef_[0]
    reached = weight @ residual / weight.sum() + 0.5 * beta @ kernel(X[model.support_]) @ beta / (C * weight.sum())
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx(reached, rel=1e-8)
    assert model.certificate_.bound <= best * (1 + 1e-6)
    assert model.certificate_.objective >= best * (1 - 1e-6)


@pytest.mark.parametrize("nu", [0.15, 0.6])
def test_the_price_of_the_tube(nu):
    X, y, weight = curve()
    model = NuSVR(nu=nu, C=5.0, gamma=0.5, tol=1e-8).fit(X, y, weight)
    best = optimum(kernels.RBF(0.5)(X), y, 5.0 * weight, nu=nu) / (5.0 * weight.sum())
    assert model.certificate_.certified
    assert model.certificate_.bound <= best * (1 + 1e-6)
    assert model.certificate_.objective >= best * (1 - 1e-6)
    outside = weight @ (np.abs(y - model.predict(X)) > model.epsilon_ + 1e-6) / weight.sum()
    assert outside <= nu


@pytest.mark.parametrize("cls", ["SVR", "NuSVR"])
def test_the_same_as_scikit_learn(cls):
    X, y, _ = curve(n=150)
    ours = {"SVR": SVR, "NuSVR": NuSVR}[cls](C=3.0, gamma=0.5, tol=1e-11).fit(X, y)
    theirs = getattr(sklearn.svm, cls)(C=3.0, gamma=0.5, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-5)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3)


def test_the_linear_kernel_is_the_linear_machine():
    X, y, weight = curve()
    ours = SVR(kernel="linear", C=0.5, epsilon=0.2, tol=1e-9).fit(X, y, weight)
    linear = LinearSVR(alpha=alpha_from_C(0.5, weight.sum()), epsilon=0.2, tol=1e-9).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_[0], linear.coef_, atol=1e-5)
    assert ours.certificate_.objective == pytest.approx(linear.certificate_.objective, rel=1e-8)


def test_classes_of_the_kkt_conditions():
    X, y, _ = curve(n=200)
    model = SVR(epsilon=0.2, tol=1e-11).fit(X, y)
    far = np.abs(y - model.predict(X)) - 0.2
    assert (far[model.kkt_ == "none"] <= 1e-6).all()
    assert np.abs(far[model.kkt_ == "free"]).max() < 1e-6
    assert (far[model.kkt_ == "bound"] >= -1e-6).all()


def test_a_wide_tube_needs_no_function():
    X, y, _ = curve()
    model = SVR(epsilon=100.0).fit(X, y)
    assert model.n_support_.tolist() == [0]
    assert np.ptp(model.predict(X)) == 0
    assert model.certificate_.certified


def test_a_function_needs_its_kernel_for_coefficients():
    X, y, _ = curve()
    with pytest.raises(AttributeError, match="linear"):
        _ = SVR().fit(X, y).coef_
