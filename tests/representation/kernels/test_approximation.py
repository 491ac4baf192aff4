"""Features that stand for a kernel: exact on the span of the landmarks, right on average for random waves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import KernelRidge, Nystroem, RandomFourierFeatures, Ridge
from certifit.kernels import RBF, Laplacian, Linear


def rows(n: int = 60) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 3))


def test_products_with_landmarks_are_exact() -> None:
    X = rows()
    kernel = RBF(gamma=0.3)
    found = Nystroem(kernel=kernel, n_components=15, random_state=1).fit(X)
    Z, C = found.transform(X), found.points_.rows + found.points_.center
    np.testing.assert_allclose(Z @ found.transform(C).T, kernel(X, C), atol=1e-7)
    # What is left out is positive semidefinite, and less with more landmarks.
    left = [
        np.linalg.eigvalsh(kernel(X) - Z @ Z.T)
        for Z in (Nystroem(kernel=kernel, n_components=m, random_state=1).fit_transform(X) for m in (5, 15, 40))
    ]
    assert min(values.min() for values in left) > -1e-9
    assert left[0].sum() > left[1].sum() > left[2].sum()


def test_dependent_landmarks_are_left_out() -> None:
    X = rows()
    found = Nystroem(kernel=Linear(), n_components=20, random_state=0).fit(X)
    Z = found.transform(X)
    assert Z.shape == (60, 3)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-9)
    assert list(found.get_feature_names_out()) == ["nystroem0", "nystroem1", "nystroem2"]


def test_a_linear_model_on_all_landmarks_is_kernel_ridge() -> None:
    X = rows()
    y = np.sin(X[:, 0])
    features = Nystroem(kernel=RBF(gamma=0.3), n_components=60).fit(X)
    line = Ridge(alpha=1e-3).fit(features.transform(X), y)
    model = KernelRidge(kernel=RBF(gamma=0.3), alpha=1e-3).fit(X, y)
    new = rows(10) + 0.2
    np.testing.assert_allclose(line.predict(features.transform(new)), model.predict(new), atol=1e-5)


@pytest.mark.parametrize(("name", "kernel"), [("rbf", RBF(gamma=0.2)), ("laplacian", Laplacian(gamma=0.2))])
def test_waves_have_the_kernel_as_their_mean(name: str, kernel: object) -> None:
    X = rows(20)
    draws = [
        RandomFourierFeatures(kernel=name, gamma=0.2, n_components=500, random_state=seed).fit_transform(X)
        for seed in range(40)
    ]
    products = np.array([Z @ Z.T for Z in draws])
    error = products.std(axis=0, ddof=1) / np.sqrt(len(draws))
    assert (np.abs(products.mean(axis=0) - kernel(X)) <= 5 * error).all()  # type: ignore[operator]


def test_landmarks_of_a_precomputed_matrix() -> None:
    X, new, weight = rows(), rows(7), np.r_[np.zeros(5), np.ones(rows().shape[0] - 5)]
    kernel = RBF(gamma=0.3)
    given = Nystroem(kernel="precomputed", n_components=15, random_state=1).fit(kernel(X), sample_weight=weight)
    chosen = given.component_indices_
    assert chosen.min() >= 5
    plain = Nystroem(kernel=kernel, n_components=15).fit(X[chosen])
    Z, other = given.transform(kernel(new, X)), plain.transform(new)
    np.testing.assert_allclose(Z @ Z.T, other @ other.T, atol=1e-10)
    with pytest.raises(ValueError, match="square"):
        Nystroem(kernel="precomputed").fit(kernel(new, X))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        Nystroem(kernel="precomputed").fit(-np.eye(3))


def test_the_rows_that_landmarks_are() -> None:
    X = np.vstack([rows(), rows()])  # every row twice
    found = Nystroem(kernel=RBF(gamma=0.3), n_components=15, random_state=1).fit(X)
    np.testing.assert_allclose(X[found.component_indices_], found.points_.rows + found.points_.center)


def test_features_of_sparse_rows_are_those_of_dense_ones() -> None:
    X = rows()
    dense, sparse = (
        Nystroem(kernel=RBF(0.5), n_components=20, random_state=0).fit_transform(Z) for Z in (X, sp.csr_array(X))
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-10)
