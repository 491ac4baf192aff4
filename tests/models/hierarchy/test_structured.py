"""Merges along a graph: scikit-learn's heights, SciPy's on a full graph, and what spanning trees promise by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import is_valid_linkage
from scipy.spatial.distance import cdist
from sklearn.cluster import linkage_tree, ward_tree

from certifit import AgglomerativeClustering
from certifit.models.hierarchy.linkage import LINKAGES

Array = Any
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
RING = np.roll(np.eye(60), 1, axis=1)
GRAPH = RING + (RNG.random((60, 60)) < 0.03)


def fitted(graph: Any, **given: Any) -> AgglomerativeClustering:
    return AgglomerativeClustering(connectivity=graph, **given)


@pytest.mark.parametrize("method", LINKAGES)
def test_a_full_graph_changes_nothing(method: str) -> None:
    free = AgglomerativeClustering(4, linkage=method).fit(X)
    bound = fitted(np.ones((60, 60)), n_clusters=4, linkage=method)
    # On a full graph every pair of parts is joined, so that complete and average linkage are the usual ones.
    np.testing.assert_allclose(bound.fit(X).linkage_matrix_, free.linkage_matrix_, rtol=1e-9)
    np.testing.assert_array_equal(bound.labels_, free.labels_)
    for unit in (1e150, 1e-150):
        np.testing.assert_allclose(bound.fit(unit * X).distances_, unit * free.distances_, rtol=1e-9)


@pytest.mark.parametrize("method", LINKAGES)
@pytest.mark.parametrize("graph", [RING, GRAPH], ids=["ring", "graph"])
def test_heights_and_clusters_are_scikit_learns(method: str, graph: Array) -> None:
    given = sp.csr_array(graph)
    if method == "ward":
        children, _, _, _, heights = ward_tree(X, connectivity=given, return_distance=True)
    else:
        children, _, _, _, heights = linkage_tree(X, connectivity=given, linkage=method, return_distance=True)
    for form in (given, graph, graph.astype(bool).tolist(), sp.coo_array(given).T, lambda rows: given):
        model = fitted(form, n_clusters=5, linkage=method).fit(X)
        assert is_valid_linkage(model.linkage_matrix_)
        np.testing.assert_allclose(model.distances_, heights, rtol=1e-9)
        np.testing.assert_array_equal(np.sort(children, axis=1), model.children_)
        assert model.n_connected_components_ == 1


def test_clusters_are_connected_and_heights_may_fall() -> None:
    model = fitted(RING, n_clusters=7).fit(X)
    for c in range(7):
        own = model.labels_ == c
        assert (own & ~np.roll(own, 1)).sum() == 1  # one run of the ring
    assert (np.diff(model.distances_) < 0).any()
    for height in np.quantile(model.distances_, [0.1, 0.5, 0.9]):
        found = fitted(RING, n_clusters=None, distance_threshold=height).fit(X)
        assert found.n_clusters_ == 1 + int((model.distances_ >= height).sum())
    centered = sum(((X[model.labels_ == c] - X[model.labels_ == c].mean(axis=0)) ** 2).sum() for c in range(7))
    assert model.certificate_.objective == pytest.approx(centered / 60)
    assert model.certificate_.bound <= model.certificate_.objective
    assert "along the graph" in model.certificate_.note


def test_the_cut_of_a_spanning_tree_keeps_clusters_farthest_apart() -> None:
    rows = X[:7]
    graph = (RNG.random((7, 7)) < 0.4) | np.eye(7, k=1, dtype=bool)
    graph |= graph.T
    D = np.where(graph & ~np.eye(7, dtype=bool), cdist(rows, rows), np.inf)
    model = fitted(graph, n_clusters=2, linkage="single").fit(rows)

    def apart(labels: Array) -> float:
        return float(D[np.not_equal.outer(labels, labels)].min())

    codes = [np.array([(code >> i) & 1 for i in range(7)]) for code in range(1, 64)]
    assert apart(model.labels_) == pytest.approx(max(map(apart, codes)))
    assert model.certificate_.certified
    assert "shortest spanning tree of the graph" in str(model.certificate_)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine"])
def test_metrics_and_given_dissimilarities_with_a_graph_in_parts(metric: str) -> None:
    parts = np.repeat([0, 1, 2], [6, 6, 3])
    rows = 0.1 * X[:15] + np.eye(3)[parts]  # apart in every metric
    names = {"manhattan": "cityblock"}
    D = cdist(rows, rows, names.get(metric, metric))
    D = 0.5 * (D + D.T)
    np.fill_diagonal(D, 0.0)
    graph = np.equal.outer(parts, parts)
    found = []
    for form, given in ((rows, metric), (D, "precomputed")):
        with pytest.warns(UserWarning, match=r"connected components of the connectivity matrix is 3 > 1"):
            found.append(fitted(graph, linkage="single", metric=given, n_clusters=3).fit(form))
        assert found[-1].n_connected_components_ == 3
    np.testing.assert_allclose(found[0].linkage_matrix_, found[1].linkage_matrix_, rtol=1e-9, atol=1e-12)
    # Bridges are the shortest there are, and so the spanning tree has those of the full graph between the parts.
    whole = AgglomerativeClustering(linkage="single", metric=metric, n_clusters=3).fit(rows)
    np.testing.assert_allclose(found[0].distances_, whole.distances_, rtol=1e-7, atol=1e-12)


def test_equal_rows_are_joined_at_height_zero() -> None:
    rows = np.repeat(X[:20], 3, axis=0)
    tree = fitted(GRAPH, linkage="single").fit(rows)
    _, _, _, _, heights = linkage_tree(rows, connectivity=sp.csr_array(GRAPH), linkage="single", return_distance=True)
    np.testing.assert_allclose(tree.distances_, heights, rtol=1e-9, atol=1e-12)
    assert (tree.distances_ == 0).any()
    assert is_valid_linkage(tree.linkage_matrix_)


def test_what_is_no_graph_is_named() -> None:
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(ValueError, match="connectivity contains NaN: give 0"):
            fitted(form(np.where(np.eye(60, k=3), np.nan, RING))).fit(X)
    with pytest.raises(ValueError, match=r"connectivity must have shape .* = \(60, 60\).*; got \(3, 3\)"):
        fitted(np.eye(3)).fit(X)
    with pytest.raises(TypeError, match="connectivity must hold numbers or truth values"):
        fitted(np.full((60, 60), "a")).fit(X)
    with pytest.raises(ValueError, match="row 2 of X is zero"):
        fitted(np.ones((4, 4)), linkage="average", metric="cosine").fit([[1.0], [2.0], [0.0], [1.0]])
