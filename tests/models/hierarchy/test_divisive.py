"""Divisions from the top down: the algorithm in plain Python, SciPy's reading of the tree, brute force for the bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_monotonic, is_valid_linkage
from scipy.spatial.distance import cdist

from certifit import DivisiveClustering
from certifit.metrics import adjusted_rand

RNG = np.random.default_rng(2)


def by_hand(D: np.ndarray, k: int) -> list[set[int]]:
    """Kaufman and Rousseeuw's algorithm, with means computed anew every time."""
    clusters = [set(range(len(D)))]

    def mean(i: int, others: set[int]) -> float:
        return float(np.mean([D[i, j] for j in others]))

    while len(clusters) < k:
        widest = max(clusters, key=lambda c: max(D[i, j] for i in c for j in c))
        clusters.remove(widest)
        first = max(sorted(widest), key=lambda i: mean(i, widest - {i}))
        left, stay = {first}, widest - {first}
        while len(stay) > 1:
            gain = {i: mean(i, stay - {i}) - mean(i, left) for i in sorted(stay)}
            best = max(gain, key=lambda i: gain[i])
            if gain[best] <= 0:
                break
            stay.remove(best)
            left.add(best)
        clusters += [left, stay]
    return clusters


@pytest.mark.parametrize("seed", range(4))
def test_every_cut_is_that_of_the_algorithm(seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(25, 2))
    D = cdist(X, X)
    model = DivisiveClustering(metric="precomputed").fit(D)
    for k in (1, 2, 3, 5, 9, 25):
        labels = np.empty(25, dtype=int)
        for number, members in enumerate(by_hand(D, k)):
            labels[list(members)] = number
        assert adjusted_rand(model.cut(n_clusters=k), labels) == 1.0


def test_the_tree_is_scipys_and_heights_are_diameters() -> None:
    X = RNG.normal(size=(60, 3))
    model = DivisiveClustering().fit(X)
    Z = model.linkage_matrix_
    assert is_valid_linkage(Z, throw=True)
    assert is_monotonic(Z)
    for k in (2, 4, 11):
        ours = model.cut(n_clusters=k)
        assert adjusted_rand(ours, fcluster(Z, k, "maxclust")) == 1.0
        widest = max(cdist(X[ours == c], X[ours == c]).max() for c in range(k))
        assert widest == pytest.approx(Z[60 - k - 1, 2])


def test_the_bound_holds_for_every_clustering() -> None:
    for seed in range(5):
        X = np.random.default_rng(seed).normal(size=(8, 2))
        D = cdist(X, X)
        for k in (2, 3):
            model = DivisiveClustering(n_clusters=k).fit(X)
            best = min(
                max(D[np.ix_(part, part)].max() for c in range(k) if len(part := np.flatnonzero(np.array(labels) == c)))
                for labels in itertools.product(range(k), repeat=8)
            )
            certificate = model.certificate_
            assert certificate.bound <= best * (1 + 1e-12)
            assert best <= certificate.objective * (1 + 1e-12)
            assert certificate.bound >= 0.5 * best  # k + 1 rows far apart: within twice


def test_groups_far_apart_are_found_and_new_rows_join_them() -> None:
    X = np.concatenate([RNG.normal(size=(20, 2)) + at for at in ([0, 0], [30, 0], [0, 30])])
    model = DivisiveClustering(n_clusters="gap").fit(X)
    assert model.n_clusters_ == 3
    assert adjusted_rand(model.labels_, np.repeat([0, 1, 2], 20)) == 1.0
    assert model.predict([[29.0, 1.0]])[0] == model.labels_[20]
    assert DivisiveClustering(n_clusters=None, distance_threshold=15.0).fit(X).n_clusters_ == 3


def test_equal_rows_part_at_height_zero() -> None:
    Z = DivisiveClustering().fit(np.array([[1.0], [1.0], [1.0], [4.0]])).linkage_matrix_
    np.testing.assert_array_equal(Z[:, 2], [0.0, 0.0, 3.0])
    assert is_valid_linkage(Z, throw=True)


@pytest.mark.parametrize(
    ("settings", "X", "words"),
    [
        ({"n_clusters": 9}, [[0.0], [1.0]], "should be >= n_clusters=9"),
        (
            {"n_clusters": 2, "distance_threshold": 1.0},
            [[0.0], [1.0]],
            "exactly one of n_clusters and distance_threshold",
        ),
        ({"metric": "precomputed"}, [[0.0, 1], [2, 0]], "must be symmetric"),
        ({"metric": "precomputed"}, [[0.0, -1], [-1, 0]], "must not be negative"),
        ({}, [[np.nan], [1.0]], "Input X contains NaN"),
    ],
)
def test_bad_input_is_refused(settings: dict[str, object], X: list[list[float]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        DivisiveClustering(**settings).fit(X)
