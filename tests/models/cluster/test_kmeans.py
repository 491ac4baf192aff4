"""k-means: the labels of double precision, the fixed point, and a bound that no clustering goes below."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans as Peer
from sklearn.exceptions import ConvergenceWarning

from certifit import KMeans
from certifit.models.cluster.bound import median_bound, spectral_bound, total_scatter
from certifit.models.cluster.rows import rows_of

Array = Any


def best_cost(X: Array, weight: Array, k: int) -> float:
    """The least cost over all clusterings, one by one."""
    least = np.inf
    for tail in itertools.product(range(k), repeat=len(X) - 1):
        labels = np.array([0, *tail])
        cost = 0.0
        for c in range(k):
            own = labels == c
            if own.any():
                mean = np.average(X[own], axis=0, weights=weight[own])
                cost += float(weight[own] @ ((X[own] - mean) ** 2).sum(axis=1))
        least = min(least, cost)
    return least


def few_rows(
    rng: np.random.Generator, *, rows: tuple[int, int], columns: tuple[int, int], clusters: tuple[int, int]
) -> tuple[Array, Array, int]:
    """Weighted rows, few enough that all clusterings can be tried, and a number of clusters."""
    n, d, k = (int(rng.integers(*range_)) for range_ in (rows, columns, clusters))
    return rng.normal(size=(n, d)), rng.uniform(0.3, 3.0, size=n), k


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_below_every_clustering_and_restarts_find_the_best(seed: int) -> None:
    X, weight, k = few_rows(np.random.default_rng(seed), rows=(5, 8), columns=(1, 5), clusters=(1, 4))
    n, best = len(X), best_cost(X, weight, k)
    model = KMeans(k, n_init=25, random_state=0).fit(X, sample_weight=weight)
    assert model.inertia_ == pytest.approx(best, rel=1e-9)
    assert 0 <= model.lower_bound_ <= best * (1 + 1e-12)
    assert model.certificate_.bound == pytest.approx(min(model.lower_bound_, best) / weight.sum())
    for form in (sp.csr_array(X), sp.csr_array(np.hstack([X, np.zeros((n, 9))]))):
        total, bound = spectral_bound(form, weight, k)
        assert total == pytest.approx(total_scatter(X, weight))
        assert bound == pytest.approx(spectral_bound(X, weight, k)[1], abs=1e-9 * total)
        assert bound <= model.lower_bound_ + 1e-9 * total
    assert median_bound(X, weight, model.cluster_centers_) <= best * (1 + 1e-12)


def test_in_few_columns_rows_as_centers_give_the_bound() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2)) + 6.0 * rng.normal(size=(5, 2))[rng.integers(5, size=120)]
    for scale in (1e-150, 1.0, 1e150):
        model = KMeans(5, n_init=5, random_state=0).fit(scale * X)
        assert spectral_bound(scale * X, np.ones(120), 5)[1] == 0.0
        assert 0.4 < model.lower_bound_ / model.inertia_ <= 1.0


def test_the_bound_of_far_groups_is_tight_and_an_expensive_one_is_zero() -> None:
    rng = np.random.default_rng(0)
    X = 100.0 * np.eye(5)[rng.integers(5, size=300)] + 0.01 * rng.normal(size=(300, 5))
    model = KMeans(5, random_state=0, tol=1e-3).fit(X)
    assert model.certificate_.certified
    assert model.certificate_.relative_gap < 1e-6
    wide = rng.normal(size=(2000, 1500))
    assert spectral_bound(wide, np.ones(2000), 3)[1] == 0.0


@pytest.mark.parametrize(
    ("n", "d", "k", "kind"),
    [(700, 1, 5, float), (3000, 3, 17, float), (1500, 20, 33, float), (2000, 6, 9, np.float32), (900, 70, 4, float)],
)
def test_the_same_fixed_point_as_scikit_learn_from_the_same_start(n: int, d: int, k: int, kind: Any) -> None:
    rng = np.random.default_rng(n)
    X = (rng.normal(size=(n, d)) + 3.0 * rng.normal(size=(6, d))[rng.integers(6, size=n)] + 50.0).astype(kind)
    weight = rng.uniform(0.2, 2.0, size=n)
    start = X[rng.choice(n, size=k, replace=False)]
    ours = KMeans(k, init=start).fit(X, sample_weight=weight)
    peer = Peer(k, init=start, n_init=1, tol=0.0).fit(X, sample_weight=weight)
    exact = 1e-9 if kind is float else 1e-4
    assert ours.inertia_ == pytest.approx(peer.inertia_, rel=exact)
    np.testing.assert_array_equal(ours.labels_, peer.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, peer.cluster_centers_, rtol=10 * exact)
    assert "fixed point" in ours.certificate_.note


def test_a_fixed_point_is_one() -> None:
    X = np.random.default_rng(3).normal(size=(5000, 8))
    model = KMeans(25, random_state=1).fit(X)
    away = cdist(X, model.cluster_centers_, "sqeuclidean")
    np.testing.assert_array_equal(model.labels_, away.argmin(axis=1))
    means = np.array([X[model.labels_ == c].mean(axis=0) for c in range(25)])
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-12)
    assert model.inertia_ == pytest.approx(away.min(axis=1).sum())
    assert model.score(X) == pytest.approx(-model.inertia_)
    np.testing.assert_allclose(model.transform(X), np.sqrt(away), atol=1e-9)


@pytest.mark.parametrize("gap", [1e-9, 1e-12])
def test_ties_beyond_single_precision_are_decided_in_double(gap: float) -> None:
    """Rows between two centers that lie nearer to one of them by less than single precision can see."""
    centers = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 500.0]])
    side = np.random.default_rng(0).choice([-1.0, 1.0], size=200)
    X = np.column_stack([side * gap, np.linspace(-3.0, 3.0, 200)])
    model = KMeans(3, init=centers, max_iter=1).fit
    with pytest.warns(ConvergenceWarning, match="before a fixed point"):
        fitted = model(np.vstack([X, centers]))
    fitted.cluster_centers_ = centers
    np.testing.assert_array_equal(fitted.predict(X), (side > 0).astype(int))


def test_empty_clusters_are_filled() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    start = np.vstack([X[:2], 1e3 + np.arange(10.0).reshape(5, 2)])
    for form in (X, sp.csr_array(X)):
        model = KMeans(7, init=start).fit(form)
        assert len(np.unique(model.labels_)) == 7
        assert model.inertia_ < 0.8 * KMeans(2, init=X[:2]).fit(X).inertia_


def test_sparse_rows_give_the_clusters_of_dense_ones() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 12)) * (rng.random((400, 12)) < 0.3)
    start = X[:6] + 0.01
    dense, sparse = (KMeans(6, init=start).fit(form) for form in (X, sp.csr_array(X)))
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    assert dense.inertia_ == pytest.approx(sparse.inertia_)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-7)
    drawn = [KMeans(6, random_state=0).fit(form).inertia_ for form in (X, sp.csr_array(X))]
    assert drawn[0] == pytest.approx(drawn[1])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_starts_are_drawn_in_proportion_to_squared_distances(form: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(500, 2)), rng.normal(size=(5, 2)) + 200, rng.normal(size=(5, 2)) - 200])
    group = np.repeat([0, 1, 2], [500, 5, 5])
    weight = rng.integers(1, 4, size=510).astype(float)
    rows = rows_of(form(X), weight, 1)
    for seed in range(20):
        assert set(group[rows.seed(np.random.default_rng(seed).random((3, 2)))]) == {0, 1, 2}
    grid = (np.arange(2000) + 0.5) / 2000
    first = np.array([rows.seed(np.array([[u]]))[0] for u in grid])
    share = np.bincount(first, minlength=510) / 2000
    assert np.abs(share - weight / weight.sum()).max() <= 1 / 2000 + 1e-9
    second = np.array([rows.seed(np.array([[0.0], [u]]))[1] for u in grid])
    away = weight * ((X - X[0]) ** 2).sum(axis=1)
    assert np.abs(np.bincount(second, minlength=510) / 2000 - away / away.sum()).max() <= 2 / 2000


def test_starts_from_a_function() -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    chosen = KMeans(3, init=lambda X, k, random_state: X[random_state.choice(len(X), k)], random_state=0).fit(X)
    assert len(np.unique(chosen.labels_)) == 3


def test_fewer_distinct_rows_than_clusters() -> None:
    X = np.repeat(np.arange(3.0)[:, None], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(3\) found smaller than n_clusters \(4\)"):
        model = KMeans(4, random_state=0).fit(X)
    assert model.inertia_ == 0
    assert model.certificate_.certified
    with pytest.raises(ValueError, match="n_samples=3 should be >= n_clusters=4"):
        KMeans(4).fit(X[::5])
    with pytest.raises(ValueError, match="n_samples=2 should be >= n_clusters=4"):
        KMeans(4).fit(X, sample_weight=[1, 1] + [0] * 13)


def test_wrong_starts_are_named() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"init must have shape \(n_clusters, n_features\) = \(3, 2\); got \(2, 2\)"):
        KMeans(3, init=X[:2]).fit(X)
    with pytest.raises(ValueError, match="init must hold finite numbers"):
        KMeans(2, init=[[np.inf, 0.0], [0.0, 0.0]]).fit(X)


def test_an_early_stop_says_so_and_a_wanted_one_does_not(recwarn: pytest.WarningsRecorder) -> None:
    X = np.random.default_rng(0).normal(size=(2000, 3))
    stopped = KMeans(8, random_state=0, min_shift=1e-2).fit(X)
    assert "before a fixed point" in stopped.certificate_.note
    assert not recwarn.list
    short = KMeans(8, random_state=0, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="KMeans: Not certified.*before a fixed point"):
        short.fit(X)
    assert short.n_iter_ == 2
    np.testing.assert_array_equal(short.labels_, short.predict(X))
    wanted = KMeans(8, random_state=0, n_init=3, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="Not certified: at most"):
        wanted.fit(X)


def test_weight_zero_rows_are_labeled() -> None:
    X = np.array([[0.0], [0.1], [5.0], [5.1], [4.0]])
    model = KMeans(2, random_state=0).fit(X, sample_weight=[1, 1, 1, 1, 0])
    assert model.labels_[4] == model.labels_[2]
    assert sorted(model.cluster_centers_.ravel()) == pytest.approx([0.05, 5.05])


def test_a_cost_beyond_double_precision_is_said_to_be_so() -> None:
    X = np.array([[0.0], [1.0], [8.0], [9.0]])
    with pytest.warns(ConvergenceWarning, match="The cost is beyond double precision: give large columns"):
        model = KMeans(2, random_state=0).fit(1e160 * X)
    assert model.labels_[0] == model.labels_[1] != model.labels_[2]
    assert "nan" not in str(model.certificate_)


@pytest.mark.filterwarnings("ignore:.*The cost is be")
@pytest.mark.parametrize("unit", [2.0**-900, 2.0**600, 2.0**1010])
def test_labels_and_distances_know_no_unit(unit: float) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    ordinary = KMeans(4, init=X[:4]).fit(X)
    assert total_scatter(sp.csr_array(unit * X), np.ones(60)) == total_scatter(unit * X, np.ones(60))
    for form in (unit * X, sp.csr_array(unit * X)):
        model = KMeans(4, init=unit * X[:4]).fit(form)
        np.testing.assert_array_equal(model.labels_, ordinary.labels_)
        np.testing.assert_array_equal(model.predict(form), ordinary.labels_)
        np.testing.assert_allclose(model.transform(form) / unit, ordinary.transform(X), rtol=1e-6)
        small = model.transform(X)  # rows of another size than the centers
        assert np.isfinite(small).all()
        np.testing.assert_array_equal(model.predict(X), small.argmin(axis=1))
    with pytest.raises(ValueError, match="distances are beyond double precision"):
        KMeans(1).fit(np.full((3, 200), 1.0)).transform(np.full((1, 200), 1.7e308))


@pytest.mark.parametrize("unit", [2.0**-500, 2.0**-580, 2.0**-900])
def test_small_rows_have_the_labels_of_large_ones_and_a_lost_cost_is_said_to_be_so(unit: float) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    large = KMeans(4, init=X[:4]).fit(X)
    for form in (unit * X, sp.csr_array(unit * X)):
        if unit < 2.0**-500:
            with pytest.warns(ConvergenceWarning, match="The cost is below double precision: give small columns"):
                small = KMeans(4, init=unit * X[:4]).fit(form)
            assert not small.certificate_.certified
        else:
            small = KMeans(4, init=unit * X[:4]).fit(form)
            assert small.inertia_ == pytest.approx(large.inertia_ * unit**2, rel=1e-9)
        np.testing.assert_array_equal(small.labels_, large.labels_)
        np.testing.assert_array_equal(small.predict(form), large.labels_)
        np.testing.assert_allclose(small.cluster_centers_ / unit, large.cluster_centers_, rtol=1e-9)
        np.testing.assert_array_equal(small.predict(X), small.predict(sp.csr_array(X)))
    # Rows of another size than the centers are measured as they are.
    np.testing.assert_array_equal(large.predict(unit * X), large.predict(np.zeros((60, 3))))
    equal = KMeans(2, random_state=0).fit(unit * np.repeat(X[:2], 5, axis=0))
    assert equal.certificate_.certified
    assert equal.inertia_ == 0
