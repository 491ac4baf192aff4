"""Metrics of clusterings against scikit-learn's, and weights as repetitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import metrics as peer

from certifit import metrics as ours

OF_ROWS = {
    "silhouette": peer.silhouette_score,
    "calinski_harabasz": peer.calinski_harabasz_score,
    "davies_bouldin": peer.davies_bouldin_score,
}
OF_PAIRS = {
    "adjusted_rand": peer.adjusted_rand_score,
    "normalized_mutual_information": peer.normalized_mutual_info_score,
}


def table(seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 60))
    return rng.normal(size=(n, 3)), rng.integers(0, 4, size=n), rng.integers(0, 3, size=n)


@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize("seed", range(4))
def test_rows_as_scikit_learn_weights_as_repetitions_any_unit(name: str, seed: int) -> None:
    X, labels, count = table(seed)
    metric = getattr(ours, name)
    assert metric(X, labels) == pytest.approx(OF_ROWS[name](X, labels), rel=1e-9)
    assert metric(1e150 * X, labels) == pytest.approx(metric(X, labels), rel=1e-9)
    assert metric(1e-150 * X, labels.astype(str)) == pytest.approx(metric(X, labels), rel=1e-9)
    assert metric(X, labels, sample_weight=count) == pytest.approx(
        metric(np.repeat(X, count, axis=0), np.repeat(labels, count)), rel=1e-9
    )


@pytest.mark.parametrize("name", OF_PAIRS)
@pytest.mark.parametrize("seed", range(4))
def test_pairs_as_scikit_learn_weights_as_repetitions(name: str, seed: int) -> None:
    _, labels, count = table(seed)
    other = np.random.default_rng(seed + 9).permutation(labels)
    metric = getattr(ours, name)
    assert metric(labels, other) == pytest.approx(OF_PAIRS[name](labels, other), abs=1e-12)
    assert metric(labels, other, sample_weight=count) == pytest.approx(
        metric(np.repeat(labels, count), np.repeat(other, count)), abs=1e-12
    )
    assert metric(labels, labels + 7) == pytest.approx(1.0)
    assert metric(np.zeros(5), np.zeros(5)) == 1.0
    assert metric(np.arange(5), np.arange(5)) == pytest.approx(1.0)
    assert metric(np.zeros(5), np.arange(5)) == 0.0


def test_silhouettes_of_rows_and_of_dissimilarities_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels, count = table(3)
    labels[0] = 9  # alone in its cluster
    values = ours.silhouettes(X, labels)
    np.testing.assert_allclose(values, peer.silhouette_samples(X, labels), atol=1e-12)
    assert values[0] == 0.0
    np.testing.assert_allclose(ours.silhouettes(cdist(X, X), labels, metric="precomputed"), values, atol=1e-12)
    monkeypatch.setattr("certifit.evaluation.metrics.clusters.BLOCK", 3 * len(X))
    np.testing.assert_allclose(ours.silhouettes(X, labels), values, atol=1e-12)
    assert (ours.silhouettes(X, labels, sample_weight=count)[count == 0] == 0).all()
    assert ours.silhouette(np.ones((4, 2)), [0, 0, 1, 1]) == 0.0
    assert ours.davies_bouldin(np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 0, 1, 1]) == 0.0
    assert ours.calinski_harabasz(np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 0, 1, 1]) == 1.0


@pytest.mark.parametrize(
    ("X", "labels", "words"),
    [
        ([[1.0], [2.0], [3.0]], [0, 0, 0], "at least 2 clusters"),
        ([[1.0], [2.0], [3.0]], [0, 1, 2], "fewer than there are rows"),
        ([[1.0], [np.nan], [3.0]], [0, 1, 1], "NaN"),
        ([[1.0], [2.0]], [0, 1, 1], "labels"),
        ([1.0, 2.0, 3.0], [0, 1, 1], "rows and columns"),
    ],
)
def test_bad_rows(X: Any, labels: Any, words: str) -> None:
    for name in OF_ROWS:
        with pytest.raises(ValueError, match=words):
            getattr(ours, name)(X, labels)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda D: D[:2], "square"),
        (lambda D: D - 1.0, "negative"),
        (lambda D: D + np.triu(D), "symmetric"),
        (lambda D: D + np.eye(3), "itself"),
        (lambda D: D * np.nan, "NaN"),
    ],
)
def test_bad_dissimilarities(change: Any, words: str) -> None:
    D = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    with pytest.raises(ValueError, match=words):
        ours.silhouette(change(D), [0, 1, 1][: len(change(D))], metric="precomputed")
