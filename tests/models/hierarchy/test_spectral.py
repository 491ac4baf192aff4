"""Spectral clusters: shapes that k-means cannot find, exact components, a bound below every cut of the graph."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.linalg import eigh
from sklearn.datasets import make_moons

from certifit import SpectralClustering
from certifit.metrics import adjusted_rand
from certifit.optimization.eigen import laplacian as module

Array = Any


def graph(n: int, seed: int, share: float = 0.7) -> Array:
    rng = np.random.default_rng(seed)
    W = rng.uniform(0.1, 1.0, size=(n, n)) * (rng.random((n, n)) < share)
    W = np.triu(W, 1)
    return W + W.T


def cost(W: Array, labels: Array, normalized: bool) -> float:
    size = W.sum(axis=1) if normalized else np.ones(len(W))
    total = 0.0
    for c in np.unique(labels):
        own = labels == c
        total += W[own][:, ~own].sum() / size[own].sum()
    return total


@pytest.mark.parametrize("n", [300, 1500])
def test_two_moons(n: int) -> None:
    X, y = make_moons(n, noise=0.05, random_state=0)
    model = SpectralClustering(2, random_state=0).fit(X)
    assert adjusted_rand(model.labels_, y) == 1.0
    assert model.residual_ < 1e-7
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_eigenvalues_jump_after_the_groups() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 2)) + at for at in ([0, 0], [6, 0], [0, 6])])
    model = SpectralClustering("eigengap", random_state=0).fit(X)
    assert model.n_clusters_ == 3
    assert model.eigenvectors_.shape == (240, 3)
    moons, _ = make_moons(500, noise=0.05, random_state=0)
    assert SpectralClustering("eigengap").fit(moons).n_clusters_ == 2
    assert SpectralClustering("eigengap").fit(X[:80]).n_clusters_ == 1
    assert SpectralClustering("eigengap").fit(np.linspace(0, 1, 90)[:, None]).n_clusters_ == 1


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_below_every_cut_of_the_graph(normalized: bool, seed: int) -> None:
    W = graph(8, seed)
    W /= W.max()
    k = 2 + seed % 2
    model = SpectralClustering(k, affinity="precomputed", normalized=normalized, random_state=0).fit(W)
    best = min(
        cost(W, np.array(labels), normalized)
        for labels in itertools.product(range(k), repeat=8)
        if len(set(labels)) == k
    )
    assert model.certificate_.kind == "eigen-residual"
    assert model.certificate_.objective == pytest.approx(cost(W, model.labels_, normalized))
    assert model.certificate_.bound <= best * (1 + 1e-12)
    assert model.certificate_.bound > 0


@pytest.mark.parametrize("normalized", [True, False])
def test_sparse_and_dense_solvers_give_the_same_spectrum(normalized: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    X[:40] += 50.0
    W = SpectralClustering(2, n_neighbors=6).fit(X)._graph(X)
    L, root = module.laplacian(W, normalized)
    expected = eigh(L.toarray(), eigvals_only=True)[:6]
    for dense in (400, 10):
        monkeypatch.setattr(module, "DENSE", dense)
        found = module.smallest_eigenvalues(L, 1.0 / root, 5)
        np.testing.assert_allclose(found.values, expected, atol=1e-9)
        np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(6), atol=1e-7)
        assert found.residuals.max() < 1e-7
        assert (found.values[:2] == 0.0).all()  # two components, known exactly
        assert found.complete(4)
        missed = module.LaplacianSpectrum(  # as if one had not been found
            found.values[[0, 1, 3, 4]], found.vectors[:, [0, 1, 3, 4]], found.residuals[[0, 1, 3, 4]],
            found.components, L, True,
        )  # fmt: skip
        assert not missed.complete(3)


def test_a_graph_in_many_dimensions_is_solved_by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DENSE", 10)
    monkeypatch.setattr(module, "FILLED", 20)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 6)), rng.normal(size=(60, 6)) + 3.0])
    model = SpectralClustering(2, random_state=0).fit(X)
    assert adjusted_rand(model.labels_, np.repeat([0, 1], 60)) == 1.0
    if model.n_components_ == 1:
        assert model.certificate_.kind == "none"
        L, _ = module.laplacian(model._graph(X), True)
        np.testing.assert_allclose(model.eigenvalues_[:2], eigh(L.toarray(), eigvals_only=True)[:2], atol=1e-4)


def test_components_are_clusters_and_too_many_are_joined_by_their_means() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0], [0.0, 108.0]])
    X = np.concatenate([rng.normal(size=(30, 2)) * 0.5 + center for center in centers])
    truth = np.repeat(np.arange(4), 30)
    four = SpectralClustering(4, n_neighbors=5).fit(X)
    assert four.n_components_ == 4
    assert adjusted_rand(four.labels_, truth) == 1.0
    assert four.certificate_.objective == 0.0
    three = SpectralClustering(3, n_neighbors=5).fit(X)
    assert adjusted_rand(three.labels_, np.minimum(truth, 2)) == 1.0
    five = SpectralClustering(5, n_neighbors=5, random_state=0).fit(X)
    assert five.n_clusters_ == 5
    assert all(len(np.unique(truth[five.labels_ == c])) == 1 for c in range(5))


def test_equal_rows_and_units() -> None:
    assert SpectralClustering(1).fit(np.ones((20, 2))).n_clusters_ == 1
    X, y = make_moons(200, noise=0.05, random_state=0)
    for unit in (1e150, 1e-150):
        assert adjusted_rand(SpectralClustering(2, random_state=0).fit(unit * X).labels_, y) == 1.0
    wide = SpectralClustering(2, sigma=5.0, random_state=0).fit(X)
    assert adjusted_rand(wide.labels_, SpectralClustering(2, weights="equal", random_state=0).fit(X).labels_) > 0.9


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[0.0, 1.0], [2.0, 0.0]], "symmetric"),
        ([[0.0, -1.0], [-1.0, 0.0]], "negative"),
        ([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]], "square"),
    ],
)
def test_bad_graphs(X: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SpectralClustering(affinity="precomputed").fit(X)


def test_a_graph_without_edges_is_all_components() -> None:
    model = SpectralClustering(2, affinity="precomputed").fit(np.zeros((5, 5)))
    assert model.n_components_ == 5
    assert model.n_clusters_ == 2
