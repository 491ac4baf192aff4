"""Clusterings: k-means from the same centers, the same hierarchies, cuts of the same graphs, with bounds besides."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import sklearn.cluster
import sklearn.metrics
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from certifit.sklearn.cluster import AgglomerativeClustering, KMeans, MiniBatchKMeans, SpectralClustering

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 6)) + 5.0 * np.eye(6)[RNG.integers(0, 4, size=120)]
WEIGHT = RNG.uniform(0.2, 2.0, 120)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("algorithm", ["lloyd", "elkan"])
def test_the_same_way_from_the_same_centers(algorithm: str, weight: object) -> None:
    settings = {"n_clusters": 4, "init": X[:4], "n_init": 1, "tol": 0.0, "algorithm": algorithm}
    theirs, ours = (cls(**settings).fit(X, sample_weight=weight) for cls in (sklearn.cluster.KMeans, KMeans))
    assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)
    assert_array_equal(ours.labels_, theirs.labels_)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.inertia_ == pytest.approx(theirs.inertia_)
    assert_allclose(ours.transform(X), theirs.transform(X))
    assert ours.score(X, sample_weight=weight) == pytest.approx(theirs.score(X, sample_weight=weight))
    assert 0 < ours.model_.lower_bound_ <= ours.inertia_
    assert ours.certificate_.kind == "lower bound"


def test_as_good_a_clustering_from_any_start() -> None:
    theirs, ours = (cls(4, n_init=10, random_state=0).fit(X) for cls in (sklearn.cluster.KMeans, KMeans))
    assert ours.inertia_ <= theirs.inertia_ * 1.01
    assert_allclose(KMeans(3, random_state=1).fit_transform(X), KMeans(3, random_state=1).fit(X).transform(X))
    batches = MiniBatchKMeans(4, random_state=0).fit(X)
    assert batches.inertia_ < 1.2 * ours.inertia_
    parts = MiniBatchKMeans(4, random_state=0).partial_fit(X[:60]).partial_fit(X[60:])
    assert parts.n_steps_ == 2
    assert parts.predict(X).shape == (120,)
    assert_allclose(
        parts.transform(X).min(axis=1) ** 2, ((X - parts.cluster_centers_[parts.predict(X)]) ** 2).sum(axis=1)
    )
    assert MiniBatchKMeans(4, random_state=0).fit_transform(X).shape == (120, 4)


def test_centers_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="does not match the number of clusters 4"):
        KMeans(4, init=X[:3]).fit(X)
    with pytest.raises(ValueError, match="does not match the number of features"):
        KMeans(4, init=X[:4, :2]).fit(X)
    with pytest.warns(RuntimeWarning, match="performing only one init in KMeans instead of n_init=3"):
        model = KMeans(4, init=X[:4], n_init=3).fit(X)
    assert list(model.get_feature_names_out()) == ["kmeans0", "kmeans1", "kmeans2", "kmeans3"]
    for wrong, words in ((X[:3], "number of clusters 4"), (X[:4, :2], "number of features")):
        with pytest.raises(ValueError, match=f"initial centers .* does not match the {words}"):
            KMeans(4, init=lambda rows, k, random_state, wrong=wrong: wrong).fit(X)
    again = pickle.loads(pickle.dumps(KMeans(4, init=first_rows, n_init=1).fit(X)))
    assert_array_equal(again.labels_, KMeans(4, init=X[:4], n_init=1).fit(X).labels_)


def first_rows(rows: np.ndarray, k: int, random_state: object) -> np.ndarray:
    return X[:k]


@pytest.mark.parametrize("model", [KMeans(1, algorithm="elkan"), MiniBatchKMeans(5, init_size=4)])
def test_what_theirs_warn_of(model: KMeans | MiniBatchKMeans) -> None:
    with pytest.warns(RuntimeWarning, match="a single cluster|should be larger than n_clusters"):
        model.fit(X)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("model", [KMeans(4, n_init=1), MiniBatchKMeans(4)])
def test_single_precision_draws_the_same(model: KMeans | MiniBatchKMeans, form: type) -> None:
    for seed in range(5):
        labels = model.set_params(random_state=seed).fit(form(X)).labels_
        assert_array_equal(model.fit(form(X.astype(np.float32))).labels_, labels)


@pytest.mark.parametrize("tol", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("most", [3, 300])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_iterations_are_counted_as_theirs(tol: float, most: int, form: type) -> None:
    for seed in range(4):
        rows = np.random.default_rng(seed).normal(size=(200, 3))
        settings = {"n_clusters": 5, "init": rows[:5], "n_init": 1, "tol": tol, "max_iter": most}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, ours = (cls(**settings).fit(form(rows)) for cls in (sklearn.cluster.KMeans, KMeans))
        assert ours.n_iter_ == theirs.n_iter_
        assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)


@pytest.mark.parametrize("linkage", ["ward", "complete", "average", "single"])
def test_hierarchies_are_theirs(linkage: str) -> None:
    for settings in ({"n_clusters": 4}, {"n_clusters": None, "distance_threshold": 4.0}):
        theirs, ours = (
            cls(linkage=linkage, **settings).fit(X)
            for cls in (sklearn.cluster.AgglomerativeClustering, AgglomerativeClustering)
        )
        assert sklearn.metrics.adjusted_rand_score(theirs.labels_, ours.labels_) == 1.0
        assert ours.n_clusters_ == theirs.n_clusters_
        if linkage != "single":  # whose merges scikit-learn does not put in order
            assert_array_equal(ours.labels_, theirs.labels_)
            assert_array_equal(ours.children_, theirs.children_)
    ring = np.roll(np.eye(X.shape[0]), 1, axis=1)
    for graph in (ring, lambda rows: ring, np.kron(np.eye(2), np.ones((X.shape[0] // 2,) * 2))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the last graph, which is in two parts
            theirs, ours = (
                cls(4, linkage=linkage, connectivity=graph).fit(X)
                for cls in (sklearn.cluster.AgglomerativeClustering, AgglomerativeClustering)
            )
        assert sklearn.metrics.adjusted_rand_score(theirs.labels_, ours.labels_) == 1.0
        assert ours.n_connected_components_ == theirs.n_connected_components_
    with pytest.raises(ValueError, match=r"Wrong shape for connectivity matrix: \(3, 3\)"):
        AgglomerativeClustering(linkage=linkage, connectivity=np.eye(3)).fit(X)
    with pytest.raises(ValueError, match="Ward can only work with euclidean distances"):
        AgglomerativeClustering(linkage="ward", metric="cosine").fit(X)


@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors", "laplacian", "precomputed", "sparse"])
def test_graphs_are_cut_as_theirs(affinity: str) -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 80)
    radius = np.repeat([1.0, 5.0], 40) + 0.05 * rng.normal(size=80)
    rows = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    given = rows
    if affinity in ("precomputed", "sparse"):
        given = sklearn.metrics.pairwise.rbf_kernel(rows, gamma=2.0)
        given[given < 1e-6] = 0.0
        given = csr_array(given) if affinity == "sparse" else given
    kind = "precomputed" if affinity == "sparse" else affinity
    settings = {"n_clusters": 2, "affinity": kind, "gamma": 2.0, "n_neighbors": 6, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (cls(**settings).fit(given) for cls in (sklearn.cluster.SpectralClustering, SpectralClustering))
    difference = ours.affinity_matrix_ - theirs.affinity_matrix_
    assert abs(difference).max() < 1e-12
    assert sklearn.metrics.adjusted_rand_score(theirs.labels_, ours.labels_) == 1.0
    assert ours.certificate_.kind in ("eigen-residual", "none")
    assert ours.n_features_in_ == given.shape[1]


def test_graphs_that_are_given_by_their_nearest_rows() -> None:
    rows = np.concatenate([RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2)) + 20.0])
    far = csr_array(sklearn.metrics.pairwise_distances(rows) + 1e-9)
    with pytest.warns(UserWarning, match="not fully connected"):
        model = SpectralClustering(2, affinity="precomputed_nearest_neighbors", n_neighbors=8, n_components=3).fit(far)
    assert sorted(np.bincount(model.labels_)) == [30, 30]
    with pytest.raises(ValueError, match="8 neighbors are required per samples"):
        SpectralClustering(2, affinity="precomputed_nearest_neighbors", n_neighbors=8).fit(csr_array(np.eye(9)))
