"""k-means from batches: close to k-means, honest about it, and a running mean of what it saw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import KMeans, MiniBatchKMeans

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6000, 4)) + 6.0 * RNG.normal(size=(5, 4))[RNG.integers(5, size=6000)]


def test_close_to_kmeans_and_above_its_bound() -> None:
    full = KMeans(5, random_state=0, n_init=5).fit(X)
    for form in (X, sp.csr_array(X), X.astype(np.float32)):
        model = MiniBatchKMeans(5, random_state=0, batch_size=500).fit(form)
        assert full.lower_bound_ <= full.inertia_ <= model.inertia_ * (1 + 1e-6) < 1.1 * full.inertia_
        assert model.lower_bound_ == pytest.approx(full.lower_bound_, rel=1e-4)
        assert model.certificate_.kind == "lower bound"
        np.testing.assert_array_equal(model.labels_, model.predict(form))


def test_a_center_is_the_mean_of_all_rows_it_ever_had() -> None:
    model = MiniBatchKMeans(1, random_state=0)
    weight = RNG.integers(0, 3, size=6000)
    for rows in np.array_split(np.arange(6000), 7):
        model.partial_fit(X[rows], sample_weight=weight[rows])
    np.testing.assert_allclose(model.cluster_centers_[0], np.average(X, axis=0, weights=weight))
    assert model.counts_[0] == weight.sum()
    assert model.certificate_.kind == "none"
    assert model.n_iter_ == 7


def test_batches_need_as_many_rows_as_clusters_to_begin() -> None:
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        MiniBatchKMeans(4).partial_fit(X[:3])
    model = MiniBatchKMeans(4, random_state=0).partial_fit(X[:4]).partial_fit(X[4:5])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda rows: rows.astype(np.float32)])
def test_kmeans_goes_on_with_further_rows(form: Any) -> None:
    weight = RNG.integers(0, 3, size=6000)
    first, *others = np.array_split(np.arange(6000), 4)
    model = KMeans(5, n_init=5, random_state=0).partial_fit(form(X[first]), sample_weight=weight[first])
    whole = KMeans(5, n_init=5, random_state=0).fit(form(X[first]), sample_weight=weight[first])
    np.testing.assert_array_equal(model.cluster_centers_, whole.cluster_centers_)
    assert model.certificate_.kind == "lower bound"
    sums, counts = model.counts_[:, None] * model.cluster_centers_, model.counts_.copy()
    assert counts.sum() == weight[first].sum()
    for rows in others:
        own = np.eye(5)[model.predict(form(X[rows]))] * weight[rows, None]  # by the centers before the move
        sums, counts = sums + own.T @ X[rows], counts + own.sum(axis=0)
        model.partial_fit(form(X[rows]), sample_weight=weight[rows])
        np.testing.assert_allclose(model.cluster_centers_, sums / counts[:, None], rtol=1e-4)
        np.testing.assert_allclose(model.counts_, counts)
    assert model.certificate_.kind == "none"
    assert model.labels_.shape == rows.shape
    assert -model.score(X) < 1.02 * KMeans(5, n_init=5, random_state=0).fit(X).inertia_
    anew = model.fit(form(X[first]), sample_weight=weight[first])  # a fit forgets the batches
    np.testing.assert_array_equal(anew.cluster_centers_, whole.cluster_centers_)
