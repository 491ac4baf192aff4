"""k medoids: no exchange helps, and no other k rows go below the bound."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from certifit import KMedoids, kernels
from certifit.models.cluster.around_rows import NAMES

RNG = np.random.default_rng(0)


def cost_of(D: Any, weight: Any, medoids: Any) -> float:
    return float(weight @ D[list(medoids)].min(axis=0))


@pytest.mark.parametrize("seed", range(8))
def test_the_best_medoids_of_all_and_a_bound_below_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = 12, 1 + seed % 4
    X, weight = rng.normal(size=(n, 2)), rng.uniform(0.3, 3.0, size=n)
    D = cdist(X, X, "cityblock")
    best = min(cost_of(D, weight, chosen) for chosen in itertools.combinations(range(n), k))
    model = KMedoids(k, metric="manhattan", n_init=8, bound_steps=200, random_state=0).fit(X, sample_weight=weight)
    assert model.inertia_ == pytest.approx(best)
    assert 0.9 * best <= model.lower_bound_ <= best * (1 + 1e-12)
    assert cost_of(D, weight, model.medoid_indices_) == pytest.approx(best)
    few = KMedoids(k, metric="manhattan", bound_steps=1, random_state=0).fit(X, sample_weight=weight)
    assert few.lower_bound_ <= best * (1 + 1e-12)


def test_no_exchange_helps() -> None:
    X, weight = RNG.normal(size=(150, 3)), RNG.integers(1, 4, size=150).astype(float)
    D = cdist(X, X)
    model = KMedoids(6, random_state=0).fit(X, sample_weight=weight)
    for place, row in itertools.product(range(6), range(150)):
        other = model.medoid_indices_.copy()
        other[place] = row
        assert cost_of(D, weight, other) >= model.inertia_ * (1 - 1e-12)
    np.testing.assert_array_equal(model.labels_, D[model.medoid_indices_].argmin(axis=0))
    np.testing.assert_allclose(model.transform(X), D[:, model.medoid_indices_])
    assert "No exchange" in model.certificate_.note


def test_every_kind_of_dissimilarity() -> None:
    X = RNG.normal(size=(40, 3))
    names = {
        "euclidean": "euclidean",
        "sqeuclidean": "sqeuclidean",
        "manhattan": "cityblock",
        "chebyshev": "chebyshev",
        "cosine": "cosine",
    }
    for ours, theirs in names.items():
        named, given = KMedoids(4, metric=ours, random_state=0).fit(X), cdist(X, X, theirs)
        pre = KMedoids(4, metric="precomputed", random_state=0).fit(np.triu(given) + np.triu(given, 1).T)
        assert named.inertia_ == pytest.approx(given[named.medoid_indices_].min(axis=0).sum())
        assert pre.cluster_centers_ is None
        assert pre.inertia_ == pytest.approx(given[pre.medoid_indices_].min(axis=0).sum())
        np.testing.assert_array_equal(pre.predict(given), pre.labels_)
    function = KMedoids(4, metric=lambda x, z: float(np.abs(x - z).sum()), random_state=0).fit(X)
    assert function.inertia_ == pytest.approx(KMedoids(4, metric="manhattan", random_state=0).fit(X).inertia_)
    kernel = KMedoids(4, metric=kernels.Linear(), random_state=0).fit(X)
    assert kernel.inertia_ == pytest.approx(KMedoids(4, random_state=0).fit(X).inertia_, rel=1e-6)
    zero = KMedoids(2, metric="cosine", random_state=0).fit(np.vstack([X, np.zeros(3)]))
    assert np.isfinite(zero.transform(np.zeros((1, 3)))).all()


def test_many_rows_are_sampled_and_say_so() -> None:
    X = np.concatenate([RNG.normal(size=(700, 2)) + 20 * np.array([c // 2, c % 2]) for c in range(4)])
    model = KMedoids(4, max_rows=1200, random_state=0).fit(X)
    full = KMedoids(4, random_state=0).fit(X)
    assert full.inertia_ <= model.inertia_ < 1.05 * full.inertia_
    assert model.certificate_.kind == "none"
    assert "samples" in model.certificate_.note


BAD = {
    "asymmetric": (
        np.array([[0.0, 1.0], [2.0, 0.0]]),
        "X must be symmetric: row 0, column 1 is 1, and row 1, column 0 is 2",
    ),
    "negative": (np.array([[0.0, -1.0], [-1.0, 0.0]]), "X must hold dissimilarities >= 0; got -1 in row 0, column 1"),
    "diagonal": (np.array([[3.0, 1.0], [1.0, 0.0]]), "zeros on its diagonal: row 0 is at 3 from itself"),
    "oblong": (np.zeros((2, 3)), r"square matrix of dissimilarities .*; got shape \(2, 3\)"),
    "missing": (np.array([[0.0, np.nan], [np.nan, 0.0]]), "X contains NaN"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_dissimilarities_are_named(name: str) -> None:
    matrix, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        KMedoids(2, metric="precomputed").fit(matrix)


def test_bad_functions_few_rows_and_equal_rows() -> None:
    X = RNG.normal(size=(6, 2))
    with pytest.raises(ValueError, match="metric must give dissimilarities >= 0"):
        KMedoids(2, metric=lambda x, z: -1.0).fit(X)
    with pytest.raises(ValueError, match="n_samples=6 should be >= n_clusters=7"):
        KMedoids(7).fit(X)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(1\) found smaller than n_clusters \(3\)"):
        same = KMedoids(3, random_state=0).fit(np.ones((5, 2)))
    assert same.inertia_ == 0
    equal = KMedoids(3, metric="precomputed", random_state=0).fit(np.zeros((5, 5)))
    assert equal.inertia_ == 0
    with pytest.warns(ConvergenceWarning, match="Stopped after 1 exchanges"):
        KMedoids(5, max_iter=1, random_state=3).fit(RNG.normal(size=(300, 2)))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine"])
@pytest.mark.parametrize("exponent", [-300, -165, 156, 300])
def test_rows_whose_squares_are_no_numbers_have_dissimilarities(metric: str, exponent: int) -> None:
    X = np.concatenate([RNG.normal(size=(10, 3)) + far for far in (0.0, [9.0, 0.0, 3.0], [0.0, 9.0, -5.0])])
    model = KMedoids(3, metric=metric, n_init=5, random_state=0).fit(X * 10.0**exponent)
    unit = 0 if metric == "cosine" else exponent
    wanted = cdist(X, X[model.medoid_indices_], NAMES[metric])
    np.testing.assert_allclose(model.transform(X * 10.0**exponent) / 10.0**unit, wanted, atol=1e-12)
    assert model.inertia_ / 10.0**unit == pytest.approx(wanted.min(axis=1).sum())


def test_squares_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="dissimilarities are beyond double precision"):
        KMedoids(2, metric="sqeuclidean").fit(1e160 * RNG.normal(size=(9, 2)))
