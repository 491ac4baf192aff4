"""Neighbors and densities: found exactly, here and there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import sklearn.neighbors
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import DistanceMetric

from certifit.sklearn import neighbors

RNG = np.random.default_rng(0)
X, QUERIES, WEIGHT = RNG.normal(size=(70, 3)), RNG.normal(size=(20, 3)), RNG.uniform(0.2, 2.0, 70)
y = X @ [1.0, -2.0, 0.5]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"n_neighbors": 3, "weights": "distance", "p": 1},
    {"metric": "cosine"},
    {"metric": lambda a, b, c: c * float(np.abs(a - b).max()), "metric_params": {"c": 2.0}},
    {"p": 3, "weights": lambda distance: np.exp(-distance)},
    {"metric": "braycurtis", "algorithm": "brute"},
    {"metric": "correlation"},
    {"metric": "sqeuclidean"},
    {"metric": "p", "p": 1.5, "algorithm": "kd_tree"},
    {"metric": "p", "p": None, "metric_params": {"p": 3}},
    {"metric": "infinity", "algorithm": "ball_tree"},
    {"metric": "seuclidean", "metric_params": {"V": np.array([1.0, 4.0, 0.5])}},
    {"metric": "mahalanobis", "metric_params": {"VI": np.diag([1.0, 4.0, 0.5])}, "algorithm": "brute"},
    {"metric_params": {"w": np.array([1.0, 4.0, 0.5])}},
    {"metric": DistanceMetric.get_metric("manhattan")},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_answers_of_the_nearest_rows(settings: dict[str, Any]) -> None:
    theirs, ours = (home.KNeighborsRegressor(**settings).fit(X, y) for home in (sklearn.neighbors, neighbors))
    assert_allclose(ours.predict(QUERIES), theirs.predict(QUERIES))
    if isinstance(settings.get("metric"), DistanceMetric):
        return  # scikit-learn's classifier does not take it
    theirs, ours = (home.KNeighborsClassifier(**settings).fit(X, y > 0) for home in (sklearn.neighbors, neighbors))
    assert_allclose(ours.predict_proba(QUERIES), theirs.predict_proba(QUERIES))
    assert_array_equal(ours.predict(QUERIES), theirs.predict(QUERIES))
    assert ours.score(QUERIES, ours.predict(QUERIES)) == 1.0
    told = {name for name in vars(theirs) if name.endswith("_")}
    assert told <= set(vars(ours))


def test_the_nearest_rows() -> None:
    theirs, ours = (home.NearestNeighbors(n_neighbors=4).fit(X) for home in (sklearn.neighbors, neighbors))
    for a, b in zip(ours.kneighbors(QUERIES), theirs.kneighbors(QUERIES), strict=True):
        assert_allclose(a, b)
    assert_allclose(ours.kneighbors_graph().toarray(), theirs.kneighbors_graph().toarray())
    near, by = (m.radius_neighbors_graph(QUERIES, 1.2, mode="distance") for m in (ours, theirs))
    assert_allclose(near.toarray(), by.toarray())
    for sort in (True, False):  # without, in the order of the rows
        theirs.set_params(algorithm="brute").fit(X)
        for a, b in zip(*(m.radius_neighbors(QUERIES, sort_results=sort)[1] for m in (ours, theirs)), strict=True):
            assert_array_equal(a, b)


def test_distances_of_truth_values() -> None:
    rows, asked = (np.column_stack([np.ones(len(part)), part > 0.5]) for part in (X, QUERIES))
    for metric in ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalmichener", "sokalsneath", "hamming"):
        found = [
            home.NearestNeighbors(metric=metric, algorithm="ball_tree").fit(rows).kneighbors(asked)[0]
            for home in (sklearn.neighbors, neighbors)
        ]
        assert_allclose(found[1], found[0], err_msg=metric)


def test_rows_that_a_tree_or_a_model_has_already() -> None:
    wanted = neighbors.NearestNeighbors().fit(X).kneighbors(QUERIES)[1]
    for held in (sklearn.neighbors.KDTree(X), sklearn.neighbors.BallTree(X), neighbors.NearestNeighbors().fit(X)):
        assert_array_equal(neighbors.NearestNeighbors().fit(held).kneighbors(QUERIES)[1], wanted)
        assert_array_equal(neighbors.KNeighborsRegressor().fit(held, y).kneighbors(QUERIES)[1], wanted)


def test_a_function_gets_sparse_rows() -> None:
    def apart(a: Any, b: Any) -> float:
        assert scipy.sparse.issparse(a)
        assert a.shape == (1, 3)
        return float(abs(a - b).sum())

    theirs, ours = (
        home.NearestNeighbors(metric=apart, algorithm="brute").fit(scipy.sparse.csr_array(X))
        for home in (sklearn.neighbors, neighbors)
    )
    asked = scipy.sparse.csr_array(QUERIES)
    assert_array_equal(ours.kneighbors(asked)[1], theirs.kneighbors(asked)[1])


def test_what_their_trees_refuse() -> None:
    for settings, words in (
        ({"algorithm": "kd_tree", "metric": "haversine"}, "not valid for algorithm='kd_tree'"),
        ({"algorithm": "kd_tree", "metric": lambda a, b: 1.0}, "not valid for algorithm='kd_tree'"),
        ({"algorithm": "ball_tree", "metric": "cosine"}, "not valid for algorithm='ball_tree'"),
        ({"algorithm": "kd_tree", "metric_params": {"w": np.ones(3)}}, "weight parameter 'w'"),
        ({"algorithm": "ball_tree", "p": 0.5}, "does not support 0 < p < 1"),
    ):
        for home, said in ((sklearn.neighbors, None), (neighbors, words)):
            with pytest.raises(ValueError, match=said):
                home.NearestNeighbors(**settings).fit(X)
    with pytest.warns(UserWarning, match="not distance metrics"):
        neighbors.NearestNeighbors(p=0.5).fit(X)
    with pytest.warns(SyntaxWarning, match="found in metric_params"):
        model = neighbors.NearestNeighbors(metric_params={"p": 1.0}).fit(X)
    assert_allclose(model.kneighbors(QUERIES)[0], neighbors.NearestNeighbors(p=1).fit(X).kneighbors(QUERIES)[0])
    with pytest.raises(ValueError, match="sparse queries"):
        neighbors.NearestNeighbors(algorithm="kd_tree").fit(X).kneighbors(scipy.sparse.csr_array(QUERIES))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("bandwidth", [0.5, "scott", "silverman"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "exponential", "linear", "tophat", "cosine"])
def test_densities(kernel: str, bandwidth: Any, weight: Any) -> None:
    theirs, ours = (
        home.KernelDensity(kernel=kernel, bandwidth=bandwidth).fit(X, sample_weight=weight)
        for home in (sklearn.neighbors, neighbors)
    )
    assert ours.bandwidth_ == pytest.approx(theirs.bandwidth_)
    assert_allclose(ours.score_samples(QUERIES), theirs.score_samples(QUERIES), rtol=1e-9)
    assert ours.score(X) == pytest.approx(theirs.score(X))


@pytest.mark.parametrize("metric", ["manhattan", "cityblock", "chebyshev", "infinity", "minkowski"])
def test_densities_of_other_distances(metric: str) -> None:
    theirs, ours = (home.KernelDensity(metric=metric).fit(X) for home in (sklearn.neighbors, neighbors))
    assert_allclose(ours.score_samples(QUERIES), theirs.score_samples(QUERIES), rtol=1e-9)
    for home, kind in ((sklearn.neighbors, "kd_tree"), (neighbors, "kd_tree")):
        with pytest.raises(ValueError, match="invalid metric"):
            home.KernelDensity(metric="haversine", algorithm=kind).fit(X[:, :2])
    with pytest.raises(NotImplementedError, match="metric='canberra'"):
        neighbors.KernelDensity(metric="canberra").fit(X)


def test_draws_from_a_density() -> None:
    model = neighbors.KernelDensity(bandwidth=0.1).fit(X)
    drawn = model.sample(4000, random_state=0)
    assert_allclose(drawn.mean(axis=0), X.mean(axis=0), atol=0.1)
    with pytest.raises(NotImplementedError, match="'gaussian' and 'tophat' only"):
        neighbors.KernelDensity(kernel="linear").fit(X).sample()


def test_what_is_not_offered() -> None:
    with pytest.raises(NotImplementedError, match="give the function as metric"):
        neighbors.KNeighborsRegressor(metric="pyfunc").fit(X, y)
    with pytest.raises(ValueError, match="not valid for sparse input"):
        neighbors.KNeighborsRegressor(metric="hamming").fit(scipy.sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="Unsupported mode"):
        neighbors.NearestNeighbors().fit(X).kneighbors_graph(mode="no such")
    with pytest.raises(ValueError, match="getting zero weights"):
        neighbors.KNeighborsClassifier(weights=np.zeros_like).fit(X, y > 0).predict(X)
    with pytest.raises(ValueError, match="sort_results"):
        neighbors.NearestNeighbors().fit(X).radius_neighbors(X, return_distance=False, sort_results=True)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("shrink", [None, 0.3])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("priors", ["uniform", "empirical", [0.2, 0.5, 0.3]], ids=["uniform", "empirical", "given"])
def test_centroids(priors: Any, metric: str, shrink: float | None, sparse: bool) -> None:
    labels = np.digitize(y, [-1.0, 1.5])
    rows = scipy.sparse.csr_array(X) if sparse else X
    theirs, ours = (
        home.NearestCentroid(metric=metric, shrink_threshold=shrink, priors=priors).fit(rows, labels)
        for home in (sklearn.neighbors, neighbors)
    )
    for told in ("centroids_", "class_prior_", "within_class_std_dev_", "deviations_", "classes_"):
        assert_allclose(getattr(ours, told), getattr(theirs, told), rtol=1e-9, atol=1e-12, err_msg=told)
    assert_array_equal(ours.predict(QUERIES), theirs.predict(QUERIES))
    if metric == "euclidean":
        assert_allclose(ours.predict_proba(QUERIES), theirs.predict_proba(QUERIES))
        assert_allclose(ours.model_.centroids_, [X[labels == k].mean(axis=0) for k in range(3)])


def test_centroids_that_mean_nothing() -> None:
    with pytest.raises(ValueError, match="zero variance"):
        neighbors.NearestCentroid().fit(np.ones((4, 2)), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="non-negative"):
        neighbors.NearestCentroid(priors=[-0.5, 1.5]).fit(X, y > 0)
    with pytest.warns(UserWarning, match="do not sum to 1"):
        model = neighbors.NearestCentroid(priors=[1.0, 3.0]).fit(X, y > 0)
    assert_allclose(model.class_prior_, [0.25, 0.75])
    with pytest.warns(UserWarning, match="zero standard deviation"):
        neighbors.NearestCentroid().fit(np.c_[X, np.ones(70)], y > 0)
