"""Every loss on kernels: what the certificate says is true by an independent solver, and bad input is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from tests.contract.data import unbothered
from tests.oracles import convex

import certifit as cf
from certifit.kernels import RBF, Laplacian, Linear, Polynomial, Spectrum
from certifit.losses import LOSSES, EpsilonInsensitive, Huber, Quantile

SIMPLE = [name for name in LOSSES if name != "perceptron"]  # whose optimum is zero for every data
KERNELS = [RBF(gamma=0.3), Linear(), 0.5 * Polynomial(degree=2, gamma=0.2) + Laplacian(gamma=0.1)]


def data(loss: str, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    if LOSSES[loss].task == "binary":
        return X, (y > 0).astype(float)
    return X, np.exp(y) if loss in ("poisson", "gamma", "relative") else y


def root(gram: np.ndarray) -> np.ndarray:
    """Features whose products are the Gram matrix."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def reached(model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, loss: Any) -> float:
    """The objective, from the coefficients alone."""
    gram = model.kernel_(model.X_fit_)
    scores = model.kernel_(X, model.X_fit_) @ model.dual_coef_ + model.intercept_
    risk = convex.objective(scores[:, None], y, weight, loss, None, 0.0, np.ones(1), 0.0)
    return risk + 0.5 * model.alpha * float(model.dual_coef_ @ gram @ model.dual_coef_)


@pytest.mark.parametrize("loss", SIMPLE)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_certificate_is_true(loss: str, kernel: Any) -> None:
    X, y = data(loss)
    weight = np.random.default_rng(4).integers(1, 4, size=len(y)).astype(float)
    features = root(kernel(X))
    for alpha, fit_intercept, given in ((0.1, True, None), (1e-3, False, weight)):
        model = cf.KernelModel(loss=loss, kernel=kernel, alpha=alpha, fit_intercept=fit_intercept)
        model.fit(X, y, given)
        optimum, _, _ = convex.optimum(features, y, given, loss, "l2", alpha, None, fit_intercept)
        certificate = model.certificate_
        assert certificate.certified
        unit = certificate.gap / certificate.relative_gap if certificate.relative_gap > 0 else certificate.objective
        assert certificate.bound <= optimum + 1e-7 * unit
        assert certificate.objective >= optimum - 1e-7 * unit
        assert certificate.objective == pytest.approx(reached(model, X, y, given, loss), rel=1e-7)


@pytest.mark.parametrize("loss", [Huber(0.05), Quantile(0.2), EpsilonInsensitive(0.3)], ids=repr)
def test_a_fit_that_stops_early_stays_honest(loss: Any) -> None:
    X, y = data("squared")
    features = root(RBF(gamma=0.3)(X))
    optimum, _, _ = convex.optimum(features, y, None, loss, "l2", 1e-4, None, True)
    for most in (1, 2, 4):
        model = cf.KernelModel(loss=loss, kernel=RBF(gamma=0.3), alpha=1e-4, max_iter=most, tol=1e-13)
        with unbothered():
            model.fit(X, y)
        assert model.certificate_.bound <= optimum * (1 + 1e-6) <= model.certificate_.objective * (1 + 2e-6)


@pytest.mark.parametrize("model", [cf.KernelModel, cf.KernelRidge, cf.KernelQuantile])
def test_landmarks_are_the_best_of_their_span(model: Any) -> None:
    X, y = data("squared", 60)
    few = model(kernel=RBF(gamma=0.3), approximation="nystrom", n_components=12, random_state=1).fit(X, y)
    assert "landmarks" in few.certificate_.claim
    assert "landmarks" in str(few.certificate_)
    assert few.certificate_.certified
    landmarks = few.X_fit_
    features = np.linalg.solve(np.linalg.cholesky(few.kernel_(landmarks)), few.kernel_(landmarks, X)).T
    loss = Quantile(0.5) if model is cf.KernelQuantile else "squared"
    optimum, _, _ = convex.optimum(features, y, None, loss, "l2", few.alpha, None, True)
    assert few.certificate_.bound <= optimum * (1 + 1e-6) <= few.certificate_.objective * (1 + 2e-6)
    every = model(kernel=RBF(gamma=0.3), approximation="nystrom", n_components=60, random_state=1).fit(X, y)
    assert every.certificate_.claim == ""
    assert every.certificate_.objective <= few.certificate_.objective * (1 + 1e-9)


def test_many_rows_are_approximated_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certifit.models.kernel.model.MOST_ROWS", 50)
    X, y = data("squared", 60)
    assert len(cf.KernelModel(n_components=20).fit(X, y).dual_coef_) <= 20
    assert len(cf.KernelModel(n_components=20, approximation="none").fit(X, y).dual_coef_) == 60


def test_a_precomputed_matrix_is_the_kernel() -> None:
    X, y = data("squared")
    kernel = RBF(gamma=0.3)
    weight = np.r_[0.0, np.ones(len(y) - 2), 2.0]
    wanted = cf.KernelModel(loss="huber", kernel=kernel).fit(X, y, weight)
    model = cf.KernelModel(loss="huber", kernel="precomputed").fit(kernel(X), y, weight)
    np.testing.assert_allclose(model.predict(kernel(X)), wanted.predict(X), rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="square"):
        model.fit(kernel(X)[:, :5], y)


@pytest.mark.parametrize("model", [cf.KernelModel(), cf.KernelModel(loss="absolute"), cf.KernelRidge()])
def test_an_indefinite_matrix_is_refused_with_its_eigenvalue(model: Any) -> None:
    X, y = data("squared")
    gram = RBF(gamma=0.3)(X) - 0.5 * np.eye(len(y))
    with pytest.raises(ValueError, match=r"not positive semidefinite.*-0\.[45]"):
        clone(model).set_params(kernel="precomputed").fit(gram, y)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        clone(model).set_params(kernel=lambda A, B: -np.asarray(A @ B.T)).fit(X, y)
    asymmetric = np.eye(len(y)) + 1e-3 * np.triu(np.ones((len(y), len(y))), 1)
    with pytest.raises(ValueError, match="not symmetric"):
        clone(model).set_params(kernel="precomputed").fit(asymmetric, y)


def test_equal_points_with_opposite_labels() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(10, 2)), 2, axis=0)
    y = np.tile([0.0, 1.0], 10)
    for loss in ("logistic", "hinge", "squared_hinge"):
        model = cf.KernelModel(loss=loss, alpha=1e-6).fit(X, y)
        assert model.certificate_.certified
        np.testing.assert_allclose(model._scores(X)[::2], model._scores(X)[1::2])


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_a_kernel_that_knows_no_neighbors(loss: str) -> None:
    X, y = data(loss)
    model = cf.KernelModel(loss=loss, kernel=RBF(gamma=1e12), alpha=1e-6).fit(X, y)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.predict(X), y, atol=1e-2)
    np.testing.assert_allclose(model.predict(X + 5.0), model.intercept_)  # far from all rows there is the intercept


def test_distances_far_from_the_origin() -> None:
    X, y = data("squared")
    near = cf.KernelRidge(kernel=RBF(gamma=0.3)).fit(X, y).predict(X)
    far = cf.KernelRidge(kernel=RBF(gamma=0.3)).fit(X + 1e7, y).predict(X + 1e7)
    np.testing.assert_allclose(far, near, atol=1e-6)


def test_strings_are_rows_too() -> None:
    words = ["aabb", "abab", "bbaa", "ccdd", "cdcd", "ddcc"]
    model = cf.KernelModel(kernel=Spectrum(2), alpha=1e-3).fit(words, [1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    assert model.predict(["abba"])[0] > 0 > model.predict(["dccd"])[0]
    with pytest.raises(ValueError, match="not numeric"):
        cf.KernelModel().fit(np.array([["a"], ["b"]]), [0.0, 1.0])
    with pytest.raises(TypeError, match="sequence"):
        cf.KernelModel(kernel=Spectrum(2)).fit("word", [1.0])


def test_parameters_of_the_kernel_reach_a_grid_search() -> None:
    X, y = data("squared", 60)
    found = GridSearchCV(
        cf.KernelModel(kernel=RBF(), loss=Huber()), {"kernel__gamma": [1e-4, 0.3], "loss__delta": [1.0]}
    )
    assert found.fit(X, y).best_params_ == {"kernel__gamma": 0.3, "loss__delta": 1.0}


def test_a_model_on_a_composed_kernel_is_saved(tmp_path: Any) -> None:
    X, y = data("squared")
    model = cf.KernelModel(kernel=2.0 * RBF(gamma=0.3) + Linear().on([0, 1]), loss="absolute").fit(X, y)
    cf.save(model, tmp_path / "model.cfit")
    np.testing.assert_array_equal(cf.load(tmp_path / "model.cfit").predict(X), model.predict(X))


def test_losses_of_several_scores_are_sent_to_the_classifier() -> None:
    with pytest.raises(ValueError, match="classifier"):
        cf.KernelModel(loss=cf.losses.Softmax(3)).fit([[0.0], [1.0]], [0, 1])


def test_a_loss_that_a_constant_has_none_of_is_at_its_optimum() -> None:
    """Zero scores minimize the perceptron's loss, and a wide tube holds every y: nothing is learned, and that is proven."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    for loss, y in (("perceptron", (X[:, 0] > rng.normal(size=40)).astype(int)), (EpsilonInsensitive(9.0), X[:, 0])):
        model = cf.KernelModel(loss=loss, alpha=0.1).fit(X, y)
        assert (model.certificate_.objective, model.certificate_.bound) == (0.0, 0.0)
        assert model.certificate_.certified
