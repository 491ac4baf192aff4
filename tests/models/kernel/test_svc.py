"""Support vector classification on kernels: optima, certificates, layouts, bad input."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from certifit import (
    SVC,
    SVR,
    KernelLogisticRegression,
    LinearSVC,
    NuSVC,
    OneClassSVM,
    alpha_from_C,
    is_mercer,
    kernels,
    load,
    save,
)

KERNELS = {
    "linear": kernels.Linear(),
    "rbf": kernels.RBF(0.3),
    "narrow": kernels.RBF(30.0),
    "poly": kernels.Polynomial(3, 0.2, 1.0),
    "laplacian": kernels.Laplacian(0.3),
    "sum": kernels.RBF(0.3) + 0.1 * kernels.Linear(),
}


def classes(n=90, d=4, K=2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    X = rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(K, d))[y]
    return X, y, rng.integers(0, 4, size=n).astype(float)


def dual_by_cvxpy(K, sides, limit):
    """max Σ y β − ½ βᵀKβ, 0 ≤ yβ ≤ limit, Σβ = 0: the optimum of both problems."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    beta = cvxpy.Variable(len(sides))
    constraints = [cvxpy.multiply(sides, beta) >= 0, cvxpy.multiply(sides, beta) <= limit, cvxpy.sum(beta) == 0]
    problem = cvxpy.Problem(cvxpy.Maximize(sides @ beta - 0.5 * cvxpy.sum_squares(root.T @ beta)), constraints)
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


def primal(model, X, y, weight):
    """The objective from what the model says of itself."""
    beta = model.dual_coef_[0]
    K = np.asarray(model.kernel_(X[model.support_]))
    sides = np.where(y == model.classes_[1], 1.0, -1.0)
    return 0.5 * beta @ K @ beta + model.C * weight @ np.maximum(0.0, 1.0 - sides * model.decision_function(X))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("C", [0.05, 1.0, 1000.0])
def test_the_optimum_is_the_one_of_an_independent_solver(name, C):
    X, y, weight = classes()
    model = SVC(C=C, kernel=KERNELS[name], tol=1e-7).fit(X, y, weight)
    kept = weight > 0
    optimum = dual_by_cvxpy(model.kernel_(X[kept]), np.where(y[kept] > 0, 1.0, -1.0), C * weight[kept])
    unit = C * weight.sum()
    c = model.certificate_
    assert c.certified
    assert c.objective == pytest.approx(primal(model, X, y, weight) / unit, rel=1e-9)
    assert c.bound <= optimum / unit * (1 + 1e-7) <= c.objective * (1 + 2e-7)
    assert c.gap <= 1e-7 * 2 * min(weight[y == 0].sum(), weight[y == 1].sum()) / weight.sum()


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_everything_is_laid_out_as_in_scikit_learn(K, kernel):
    X, y, _ = classes(n=150, K=K, seed=3)
    ours = SVC(C=2.0, kernel=kernel, tol=1e-11).fit(X, y)
    theirs = sklearn.svm.SVC(C=2.0, kernel=kernel, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
    for shape in ("ovr", "ovo"):
        for model in (ours, theirs):
            model.set_params(decision_function_shape=shape)
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    ties = {"decision_function_shape": "ovr", "break_ties": True}
    np.testing.assert_array_equal(ours.set_params(**ties).predict(X), theirs.set_params(**ties).predict(X))
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


def test_the_linear_kernel_is_the_linear_machine():
    X, y, weight = classes()
    ours = SVC(C=0.3, kernel="linear", tol=1e-9).fit(X, y, weight)
    linear = LinearSVC(alpha=alpha_from_C(0.3, weight.sum()), tol=1e-9).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, linear.coef_, atol=1e-4)
    assert ours.certificate_.objective == pytest.approx(linear.certificate_.objective, rel=1e-8)


def test_more_rows_than_a_block_and_than_the_cache():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2600, 5))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=2600) > 0).astype(int)
    whole = SVC(gamma=0.5, tol=1e-8).fit(X, y)
    little = SVC(gamma=0.5, tol=1e-8, cache_size=1.0).fit(X, y)
    assert whole.certificate_.certified
    assert little.certificate_.certified
    np.testing.assert_allclose(whole.decision_function(X), little.decision_function(X), atol=1e-5)
    theirs = sklearn.svm.SVC(gamma=0.5, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(whole.decision_function(X), theirs.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_hard_margins_are_as_exact_as_soft_ones(kernel):
    """Multipliers of 1e5 in single precision: refined until the gap is what was asked for."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    f = X[:, 0] if kernel == "linear" else np.sin(3 * X[:, 0]) + X[:, 1]
    X = X[np.abs(f) > 0.05]
    y = (f[np.abs(f) > 0.05] > 0).astype(int)
    model = SVC(C=1e5, kernel=kernel, tol=1e-9).fit(X, y)
    assert model.certificate_.certified
    assert (model.predict(X) == y).all()
    assert "bound" not in model.kkt_


def test_rows_may_be_dense_sparse_single_or_a_matrix_of_similarities():
    X, y, weight = classes(K=3)
    X[np.abs(X) < 0.7] = 0.0
    reference = SVC(tol=1e-9).fit(X, y, weight)
    wide = sp.hstack([sp.csr_array(X), sp.csr_array((X.shape[0], 300_000))]).tocsr()
    gamma = float(reference.kernel_.gamma)
    for rows, model in (
        (sp.csr_array(X), SVC(tol=1e-9)),
        (sp.csc_array(X), SVC(tol=1e-9)),
        (wide, SVC(tol=1e-9, gamma=gamma)),
        (reference.kernel_(X), SVC(tol=1e-9, kernel="precomputed")),
    ):
        model.fit(rows, y, weight)
        assert model.certificate_.certified
        np.testing.assert_allclose(model.decision_function(rows), reference.decision_function(X), atol=1e-6)
        np.testing.assert_array_equal(model.support_, reference.support_)
    callable_ = SVC(kernel=lambda A, B: np.asarray(reference.kernel_(A, B)), tol=1e-9).fit(X, y, weight)
    np.testing.assert_allclose(callable_.decision_function(X), reference.decision_function(X), atol=1e-6)
    single = SVC(tol=1e-6).fit(X.astype(np.float32), y, weight).decision_function(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, reference.decision_function(X), atol=1e-2)


def test_strings_are_compared_by_their_own_kernel(tmp_path):
    words = ["banana", "bandana", "cabana", "canal", "stop", "stoop", "spot", "post"] * 2
    labels = [0, 0, 0, 0, 1, 1, 1, 1] * 2
    model = SVC(kernel=kernels.Spectrum(2), C=10.0).fit(words, labels)
    assert model.predict(["bananas", "stops"]).tolist() == [0, 1]
    assert model.certificate_.certified
    save(model, tmp_path / "m.cfit")
    assert load(tmp_path / "m.cfit").predict(["bananas", "stops"]).tolist() == [0, 1]


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_classes_of_the_kkt_conditions(cls):
    X, y, _ = classes(n=200)
    model = cls(tol=1e-10).fit(X, y)
    margin = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    assert (margin[model.kkt_ == "none"] >= 1 - 1e-6).all()
    assert np.abs(margin[model.kkt_ == "free"] - 1).max() < 1e-5
    assert (margin[model.kkt_ == "bound"] <= 1 + 1e-6).all()
    np.testing.assert_array_equal(np.flatnonzero(model.kkt_ != "none"), np.sort(model.support_))


@pytest.mark.parametrize("nu", [0.1, 0.4])
@pytest.mark.parametrize("K", [2, 3])
def test_nu_is_scikit_learns(nu, K):
    X, y, _ = classes(n=150, K=K, seed=5)
    ours = NuSVC(nu=nu, gamma=0.2, tol=1e-11, decision_function_shape="ovo").fit(X, y)
    theirs = sklearn.svm.NuSVC(nu=nu, gamma=0.2, tol=1e-9, decision_function_shape="ovo").fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    assert ours.certificate_.certified
    if K == 2:
        sides = np.where(y == 1, 1.0, -1.0)
        errors = (sides * ours.decision_function(X) < 1 - 1e-6).mean()
        assert errors <= nu <= ours.n_support_.sum() / len(y)


def test_nu_beyond_the_smaller_class_is_all_of_it():
    X, y, _ = classes(n=80)
    rare = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:8]]
    model = NuSVC(nu=0.9).fit(X[rare], y[rare])
    assert "all that the smaller class has" in model.certificate_.note


def test_an_indefinite_matrix_is_fitted_and_nothing_is_claimed():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 40))
    K = K + K.T
    y = rng.integers(2, size=40)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = SVC(kernel="precomputed", max_iter=50).fit(K, y)
    assert model.certificate_.kind == "none"
    assert "negative eigenvalues" in model.certificate_.note
    crooked = SVC(kernel=lambda A, B: A @ B.T + A[:, :1], max_iter=50).fit(rng.normal(size=(30, 2)), np.arange(30) % 2)
    assert "not symmetric" in crooked.certificate_.note


@pytest.mark.parametrize("n", [40, 150])
def test_a_matrix_without_an_optimum_comes_to_an_end(n):
    rng = np.random.default_rng(0)
    model = SVC(kernel="precomputed", C=10.0).fit(rng.normal(size=(n, n)), np.arange(n) % 2)
    assert "not symmetric" in model.certificate_.note


def test_a_kernel_beyond_double_precision_is_told():
    X, y, _ = classes()
    with pytest.raises(ValueError, match="not finite"):
        SVC(kernel="poly", degree=3, gamma=1.0).fit(1e140 * X, y)
    with pytest.raises(ValueError, match="not finite"):
        SVC(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)).fit(X, y)


def test_degenerate_rows():
    twice = np.repeat(np.arange(5.0), 2)[:, None]
    model = SVC(C=1.0).fit(twice, np.tile([0, 1], 5))  # every point with both labels
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx(1.0)
    X, y, _ = classes()
    identity = SVC(gamma=1e6, C=10.0).fit(X, y)  # K = I
    assert identity.certificate_.certified
    assert identity.n_support_.sum() == len(y)
    assert (identity.predict(X) == y).all()
    two = SVC(kernel="linear", C=1e9).fit([[0.0], [2.0]], [0, 1])
    np.testing.assert_allclose(two.decision_function([[0.0], [1.0], [2.0]]), [-1.0, 0.0, 1.0], atol=1e-9)
    same = SVC().fit(np.ones((6, 2)), [0, 1, 1, 1, 0, 1])
    assert same.predict([[1.0, 1.0]]).tolist() == [1]


def test_a_limit_of_rounds_is_told():
    X, y, _ = classes(n=3000, seed=2)
    with pytest.warns(ConvergenceWarning, match="Not certified"):
        model = SVC(max_iter=1).fit(X, y)
    assert model.fit_status_ == 1
    assert model.certificate_.bound <= SVC().fit(X, y).certificate_.objective


@pytest.mark.parametrize(
    ("params", "X", "match"),
    [
        ({"kernel": "precomputed"}, np.ones((6, 2)), "square matrix"),
        ({"kernel": "no such"}, np.ones((6, 2)), "kernel must be"),
        ({"kernel": kernels.Spectrum(2)}, np.ones((6, 2)), "string"),
        ({}, np.array([["a", "b"]] * 6), "not numeric"),
        ({"kernel": lambda A, B: np.full((3, 3), 1.0)}, np.ones((6, 2)), "shape"),
    ],
)
def test_bad_input_is_named(params, X, match):
    with pytest.raises((ValueError, TypeError), match=match):
        SVC(**params).fit(X, [0, 1, 0, 1, 0, 1])


def test_ties_cannot_be_broken_between_pairs():
    X, y, _ = classes(K=3)
    with pytest.raises(ValueError, match="break_ties"):
        SVC(break_ties=True, decision_function_shape="ovo").fit(X, y).predict(X)


def test_a_sample_of_rows_is_drawn_by_content():
    X, y, _ = classes(n=2000, seed=4)
    rare = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]]
    X, y = X[rare], y[rare]
    model = SVC(max_rows=200).fit(X, y)
    assert model.certificate_.certified
    assert "rows" in model.certificate_.claim
    assert model.n_support_.sum() <= 200
    assert model.n_support_.min() > 0
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_allclose(
        SVC(max_rows=200).fit(X[order], y[order]).decision_function(X), model.decision_function(X)
    )
    assert SVC(max_rows=5000).fit(X, y).certificate_.claim == ""


@pytest.mark.parametrize("K", [2, 3])
def test_probabilities_come_true(K, tmp_path):
    X, y, weight = classes(n=900, K=K, seed=7)
    model = SVC(probability=True, decision_function_shape="ovo", cv=3).fit(X[:600], y[:600], weight[:600])
    p = model.predict_proba(X[600:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    said = p[np.arange(300), y[600:]]
    assert -np.log(said).mean() < -np.log(np.bincount(y[600:]) / 300)[y[600:]].mean() - 0.1
    assert abs(p.max(axis=1).mean() - (p.argmax(axis=1) == y[600:]).mean()) < 0.06
    assert (p.argmax(axis=1) == model.predict(X[600:])).mean() > 0.95
    save(model, tmp_path / "m.cfit")
    np.testing.assert_array_equal(load(tmp_path / "m.cfit").predict_proba(X), model.predict_proba(X))
    assert not hasattr(SVC().fit(X, y), "predict_proba")
    with pytest.raises(NotFittedError, match="probability=False"):
        SVC().fit(X, y).set_params(probability=True).predict_proba(X)
    with pytest.raises(ValueError, match="rows of numbers"):
        SVC(probability=True, kernel="precomputed").fit(X @ X.T, y)


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Sigmoid(1.0, -1.0),
        2.0 * kernels.Custom(lambda X, Z: np.tanh(X @ Z.T - 1.0)),
        kernels.Polynomial(2, 1.0, -3.0),
    ],
    ids=["sigmoid", "within the calculus", "negative offset"],
)
def test_similarities_that_are_no_inner_products_prove_nothing(kernel):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] * X[:, 1] > 0
    assert not is_mercer(kernel(X))
    model = SVC(kernel=kernel).fit(X, y)
    assert model.certificate_.kind == "none"
    assert "negative eigenvalues" in model.certificate_.note
    with pytest.raises(ValueError, match="eigenvalue"):
        KernelLogisticRegression(kernel=kernel).fit(X, y)


def test_the_sigmoid_by_name_is_that_of_libsvm():
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = X[:, 0] > 0
    ours, peer = (one(kernel="sigmoid", gamma=0.05, coef0=-0.1, tol=1e-6).fit(X, y) for one in (SVC, sklearn.svm.SVC))
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", [kernels.RBF(), 0.5 * kernels.Polynomial(2) + kernels.Laplacian()], ids=str)
def test_weights_are_copies_also_where_a_kernel_object_looks_at_the_spread(kernel):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(40, 2)), rng.integers(0, 4, size=40)
    y = X[:, 0] > 0
    one = SVC(kernel=kernel, tol=1e-8).fit(X, y, weight)
    other = SVC(kernel=kernel, tol=1e-8).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert str(one.kernel_) == str(other.kernel_)
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("K", [2, 3])
def test_a_warm_walk_along_c_saves_steps_and_reaches_the_same_optima(K, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 6))
    y = np.digitize(X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.normal(size=900), [0.0, 0.7][: K - 1])
    warm, saved, spent = SVC(warm_start=True), 0, 0
    for C in (0.1, 0.3, 1.0, 3.0):
        cold = SVC(C=C).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        assert warm.certificate_.certified
        for one, other in zip(warm.certificates_, cold.certificates_, strict=True):
            assert one.bound <= other.objective
            assert other.bound <= one.objective
            assert abs(one.objective - other.objective) <= max(one.gap, other.gap)
        if C != 0.1:
            saved, spent = saved + int((cold.n_iter_ - warm.n_iter_).sum()), spent + int(cold.n_iter_.sum())
    assert saved > 0.1 * spent
    save(warm, tmp_path / "warm.cfit")
    np.testing.assert_array_equal(load(tmp_path / "warm.cfit").predict(X), warm.predict(X))


def test_a_warm_start_takes_other_rows_labels_and_weights_as_they_come():
    X, y, weight = classes(120)
    warm = SVC(warm_start=True, C=3.0).fit(X, y)
    turned = np.where(np.arange(120) < 40, 1 - y, y)
    for rows, labels, weights in ((X, turned, None), (X[:70], y[:70], None), (X, y, weight), (X[::-1], y, None)):
        found = warm.fit(rows, labels, sample_weight=weights)
        cold = SVC(C=3.0).fit(rows, labels, sample_weight=weights)
        assert found.certificate_.certified
        np.testing.assert_allclose(found.certificate_.objective, cold.certificate_.objective, rtol=1e-4)


@pytest.mark.parametrize("n", [4, 10])
def test_hulls_of_equal_rows_meet_whatever_rounding_says(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 3))
    y = X[:, 0] > 0
    with pytest.warns(ConvergenceWarning, match="hulls of the classes meet"):
        model = NuSVC().fit(np.vstack([X, X]), np.r_[y, ~y])
    assert not model.certificate_
    assert np.isfinite(model.decision_function(X)).all()


def test_hulls_that_meet_are_found_out_early() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 2)), rng.integers(2, size=600)
    with pytest.warns(ConvergenceWarning, match="hulls of the classes meet"):
        model = NuSVC(nu=0.1, kernel="poly").fit(X, y)
    assert model.n_iter_[0] <= 40  # its gap closes after 137


@pytest.mark.parametrize("shift", [1e6, 1e9, 1e159])
@pytest.mark.parametrize("machine", [SVC, SVR, NuSVC, OneClassSVM])
def test_rows_far_from_zero_are_predicted_as_they_are_fitted(machine: Any, shift: float) -> None:
    rng = np.random.default_rng(0)
    near = rng.normal(size=(80, 3)) * max(1.0, 1e-9 * shift)
    X = near + shift
    y = (near[:, 0] > 0).astype(int)
    found, wanted = (machine().fit(rows, y) for rows in (X, X - shift))
    said, expected = (
        getattr(model, "decision_function", model.predict)(rows) for model, rows in ((found, X), (wanted, X - shift))
    )
    np.testing.assert_allclose(said, expected, rtol=1e-3, atol=1e-3)
