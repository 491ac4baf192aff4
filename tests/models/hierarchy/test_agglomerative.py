"""Hierarchies against SciPy's, their cuts, and what their certificates claim, by brute force."""

from __future__ import annotations

import itertools
from typing import Any

import certifit._native.linkage as native
import numpy as np
import pytest
from scipy.cluster.hierarchy import is_valid_linkage, linkage
from scipy.spatial.distance import cdist, pdist, squareform
from tests.models.cluster.test_kmeans import best_cost

from certifit import AgglomerativeClustering
from certifit.metrics import adjusted_rand
from certifit.models.hierarchy.linkage import LINKAGES

Array = Any


def rows(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("method", LINKAGES)
@pytest.mark.parametrize(("n", "d"), [(2, 1), (3, 2), (40, 2), (331, 3), (120, 12)])
def test_the_merges_are_scipys(method: str, n: int, d: int) -> None:
    X = rows(n, d)
    expected = linkage(X, method)
    found = AgglomerativeClustering(1, linkage=method).fit(X).linkage_matrix_
    np.testing.assert_array_equal(found[:, [0, 1, 3]], expected[:, [0, 1, 3]])
    np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-9)
    for unit in (1e150, 1e-150):
        np.testing.assert_allclose(
            AgglomerativeClustering(1, linkage=method).fit(unit * X).distances_, unit * found[:, 2], rtol=1e-9
        )


@pytest.mark.parametrize("method", ["single", "complete", "average"])
@pytest.mark.parametrize(("metric", "theirs"), [("euclidean",) * 2, ("manhattan", "cityblock"), ("cosine",) * 2])
def test_other_metrics_and_given_dissimilarities(method: str, metric: str, theirs: str) -> None:
    X = rows(60, 4)
    expected = linkage(pdist(X, theirs), method)
    D = squareform(pdist(X, theirs))
    before = D.copy()
    for model in (
        AgglomerativeClustering(linkage=method, metric=metric).fit(X),
        AgglomerativeClustering(linkage=method, metric="precomputed").fit(D),
    ):
        np.testing.assert_allclose(model.linkage_matrix_, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(D, before)


@pytest.mark.parametrize("method", ["complete", "average"])
def test_a_circle_of_rounding_errors_has_an_end(method: str) -> None:
    more = 1 + 3e-9  # within what passes for symmetric: each row is nearest to the next
    D = np.array([[0.0, 1.0, more], [more, 0.0, 1.0], [1.0, more, 0.0]])
    model = AgglomerativeClustering(1, linkage=method, metric="precomputed").fit(D)
    np.testing.assert_allclose(model.distances_, 1.0, rtol=1e-8)


@pytest.mark.parametrize("method", ["complete", "average"])
def test_rows_that_wait_long_for_their_turn_know_of_all_merges(method: str) -> None:
    """Rows of a chain take from later rows what they lack: tight pairs far apart, of which a row reads nothing for long."""
    rng = np.random.default_rng(3)
    centers = 100.0 * rng.normal(size=(90, 2))
    X = (centers[:, None] + rng.exponential(size=(90, 5, 1)) * rng.normal(size=(90, 5, 2))).reshape(-1, 2)
    X = X[rng.permutation(len(X))]
    expected = linkage(X, method)
    for threads in (1, 2):
        found = AgglomerativeClustering(1, linkage=method, n_jobs=threads).fit(X).linkage_matrix_
        np.testing.assert_array_equal(found[:, [0, 1, 3]], expected[:, [0, 1, 3]])
        np.testing.assert_allclose(found[:, 2], expected[:, 2], rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_the_spanning_tree_of_a_tree_of_boxes_is_that_of_all_distances(d: int) -> None:
    rng = np.random.default_rng(d)
    for X in (rng.normal(size=(700, d)), rng.integers(0, 4, size=(700, d)).astype(float), np.ones((50, d))):
        fast, slow = native.single(X, True, 1), native.single(X, False, 1)
        np.testing.assert_allclose(fast[:, 2], slow[:, 2], rtol=1e-14)
        np.testing.assert_array_equal(fast, native.single(X, True, 3))
        assert is_valid_linkage(fast)
        height = np.median(fast[:, 2]) * (1 + 1e-9)
        labels = [cut(Z, height) for Z in (fast, slow)]
        assert adjusted_rand(*labels) == 1.0


def cut(Z: Array, height: float) -> Array:
    """Labels below a height, by hand."""
    n = len(Z) + 1
    members = {i: {i} for i in range(n)}
    for t, (a, b, h, size) in enumerate(Z):
        if h <= height:
            members[n + t] = members.pop(int(a)) | members.pop(int(b))
            assert len(members[n + t]) == size
    labels = np.empty(n, dtype=int)
    for label, group in enumerate(members.values()):
        labels[list(group)] = label
    return labels


@pytest.mark.parametrize("method", LINKAGES)
def test_ties_and_equal_rows_are_a_hierarchy_all_the_same(method: str) -> None:
    X = np.random.default_rng(0).integers(0, 3, size=(150, 2)).astype(float)
    model = AgglomerativeClustering(9, linkage=method).fit(X)
    assert is_valid_linkage(model.linkage_matrix_)
    assert model.n_clusters_ == 9
    assert adjusted_rand(model.labels_, 3 * X[:, 0] + X[:, 1]) == 1.0
    equal = AgglomerativeClustering("gap", linkage=method).fit(np.ones((30, 2)))
    assert equal.n_clusters_ == 1
    assert not equal.distances_.any()


def test_cuts() -> None:
    X = rows(80, 2)
    model = AgglomerativeClustering(5, linkage="average").fit(X)
    np.testing.assert_array_equal(model.labels_, model.cut(5))
    height = model.distances_[-4]
    by_height = AgglomerativeClustering(None, linkage="average", distance_threshold=height).fit(X)
    assert by_height.n_clusters_ == 5  # the merge at the height itself is not made
    np.testing.assert_array_equal(by_height.labels_, model.labels_)
    assert adjusted_rand(model.labels_, cut(model.linkage_matrix_, np.nextafter(height, 0))) == 1.0
    np.testing.assert_array_equal(model.cut(80), np.arange(80))
    assert not model.cut(1).any()
    groups = np.concatenate([rows(20, 2) + 30 * np.array(at) for at in ([0, 0], [1, 0], [0, 1])])
    assert AgglomerativeClustering("gap").fit(groups).n_clusters_ == 3
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()  # the largest first
    np.testing.assert_array_equal(model.children_, model.linkage_matrix_[:, :2])
    for wrong in ({}, {"n_clusters": 2, "height": 1.0}, {"n_clusters": 81}, {"height": -1.0}):
        with pytest.raises(ValueError, match=r"n_clusters|height"):
            model.cut(**wrong)


def test_single_linkage_keeps_clusters_as_far_apart_as_can_be() -> None:
    X = rows(7, 2)
    D = cdist(X, X)
    model = AgglomerativeClustering(3, linkage="single").fit(X)

    def spacing(labels: Array) -> float:
        return float(D[labels[:, None] != labels].min())

    best = max(spacing(np.array(labels)) for labels in itertools.product(range(3), repeat=7) if len(set(labels)) == 3)
    assert spacing(model.labels_) == best
    assert model.certificate_.certified
    assert model.certificate_.claim == "shortest spanning tree"


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_a_ward_cut_is_below_every_clustering(seed: int) -> None:
    X = rows(7, 3, seed)
    model = AgglomerativeClustering(2).fit(X)
    best = best_cost(X, np.ones(7), 2) / 7
    cost = sum(((X[model.labels_ == c] - X[model.labels_ == c].mean(axis=0)) ** 2).sum() for c in range(2)) / 7
    assert model.certificate_.objective == pytest.approx(cost)
    assert 0 < model.certificate_.bound <= best * (1 + 1e-12) <= cost * (1 + 1e-9)
    assert not AgglomerativeClustering(2, linkage="average").fit(X).certificate_


def test_new_rows_go_with_the_nearest_row() -> None:
    X, new = rows(50, 3), rows(20, 3, seed=1)
    model = AgglomerativeClustering(6, linkage="complete", metric="manhattan").fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    distances = cdist(new, X, "cityblock")
    np.testing.assert_array_equal(model.predict(new), model.labels_[distances.argmin(axis=1)])
    given = AgglomerativeClustering(6, linkage="complete", metric="precomputed").fit(cdist(X, X, "cityblock"))
    np.testing.assert_array_equal(given.predict(distances), model.predict(new))


@pytest.mark.parametrize(
    ("options", "X", "words"),
    [
        ({"metric": "precomputed", "linkage": "average"}, [[0.0, 1.0], [2.0, 0.0]], "symmetric"),
        ({"metric": "precomputed", "linkage": "single"}, [[0.0, -1.0], [-1.0, 0.0]], "negative"),
        ({"metric": "precomputed", "linkage": "single"}, [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0]], "square"),
        ({"metric": "precomputed"}, [[0.0, 1.0], [1.0, 0.0]], "ward"),
        ({"n_clusters": None}, [[0.0], [1.0]], "exactly one"),
        ({"distance_threshold": 1.0}, [[0.0], [1.0]], "exactly one"),
        ({"n_clusters": 3}, [[0.0], [1.0]], "n_clusters=3"),
        ({"linkage": "average", "metric": "cosine"}, [[0.0], [1.0]], "no direction"),
        ({}, [[0.0], [np.nan]], "NaN"),
    ],
)
def test_bad_input(options: Any, X: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AgglomerativeClustering(**options).fit(X)


def test_too_many_distances_are_refused_before_memory_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("certifit.models.hierarchy.linkage.MOST_ENTRIES", 99)
    with pytest.raises(ValueError, match="take a sample"):
        AgglomerativeClustering(linkage="complete").fit(rows(10, 2))
    AgglomerativeClustering(linkage="single").fit(rows(10, 2))
