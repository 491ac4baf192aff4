"""Leading eigenvectors by three ways, against LAPACK, with residuals that are true."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certifit.optimization.eigen.leading import Eigenpairs, exact, power, subspace

RNG = np.random.default_rng(0)


def matrix(d: int, decay: float) -> Any:
    Q = np.linalg.qr(RNG.normal(size=(d, d)))[0]
    return (Q * decay ** np.arange(d)) @ Q.T


def by(name: str, A: Any, k: int) -> Eigenpairs:
    if name == "exact":
        return exact(A, k)
    method = {"power": power, "subspace": subspace}[name]
    return method(lambda V: A @ V, A.shape[0], k, tol=1e-10, max_iter=3000, rng=np.random.RandomState(0))


@pytest.mark.parametrize("name", ["exact", "power", "subspace"])
@pytest.mark.parametrize(("d", "k", "decay"), [(30, 4, 0.8), (30, 30, 0.7), (1, 1, 0.5), (12, 5, 0.9), (80, 3, 0.95)])
def test_values_and_vectors_are_those_of_lapack(name: str, d: int, k: int, decay: float) -> None:
    A = matrix(d, decay)
    found = by(name, A, k)
    values, vectors = np.linalg.eigh(A)
    np.testing.assert_allclose(found.values, values[::-1][:k], atol=1e-9)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(k), atol=1e-9)
    true = np.linalg.norm(A @ found.vectors - found.vectors * found.values, axis=0)
    np.testing.assert_allclose(found.residuals, true, atol=1e-12)
    assert true.max() <= 1e-9
    few = min(k, 3)
    agreement = np.abs((found.vectors * vectors[:, ::-1][:, :k]).sum(axis=0))[:few]
    np.testing.assert_allclose(agreement, 1.0, atol=1e-6)


@pytest.mark.parametrize("name", ["exact", "power", "subspace"])
def test_equal_eigenvalues_and_a_zero_matrix(name: str) -> None:
    found = by(name, np.diag([2.0, 2.0, 2.0, 1.0]), 3)
    np.testing.assert_allclose(found.values, 2.0)
    np.testing.assert_allclose(found.vectors[3], 0.0, atol=1e-6)
    assert not by(name, np.zeros((5, 5)), 2).values.any()


def test_an_early_stop_shows_in_the_residuals() -> None:
    A = matrix(60, 0.99)
    for method in (power, subspace):
        found = method(lambda V: A @ V, 60, 2, tol=1e-12, max_iter=1, rng=np.random.RandomState(0))
        assert found.residuals.max() > 1e-6
