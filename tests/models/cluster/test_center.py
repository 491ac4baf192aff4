"""k centers: never more than twice the least radius, by trying all."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from certifit import KCenter


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_the_radius_is_within_two_of_the_best(seed: int, metric: str) -> None:
    rng = np.random.default_rng(seed)
    X, k = rng.normal(size=(11, 2)), 1 + seed % 4
    D = cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    best = min(D[list(chosen)].min(axis=0).max() for chosen in itertools.combinations(range(11), k))
    model = KCenter(k, metric=metric).fit(X)
    assert model.lower_bound_ <= best <= model.radius_ * (1 + 1e-12)
    assert model.radius_ == pytest.approx(2 * model.lower_bound_)
    assert model.radius_ == pytest.approx(D[model.center_indices_].min(axis=0).max())
    assert model.certificate_.kind == "2-approximation"


def test_a_dissimilarity_that_is_no_metric_proves_nothing() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    for metric, rows in (("sqeuclidean", X), ("precomputed", cdist(X, X))):
        model = KCenter(3, metric=metric).fit(rows)
        assert model.certificate_.kind == "none"
        assert model.lower_bound_ == 0.0
        assert "triangle inequality" in model.certificate_.note


def test_weights_of_zero_and_equal_rows() -> None:
    X = np.array([[0.0], [1.0], [5.0], [100.0]])
    assert KCenter(2).fit(X, sample_weight=[1, 1, 1, 0]).radius_ == 1.0
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        assert KCenter(3).fit(np.ones((4, 1))).radius_ == 0.0
    with pytest.raises(ValueError, match="n_samples=4 should be >= n_clusters=5"):
        KCenter(5).fit(X)


@pytest.mark.parametrize("exponent", [-300, -165, 156, 300])
def test_no_row_is_taken_for_a_copy_in_any_unit(exponent: int) -> None:
    X = np.arange(12.0)[:, None] ** 2
    model = KCenter(3).fit(X * 10.0**exponent)
    assert model.radius_ / 10.0**exponent == pytest.approx(KCenter(3).fit(X).radius_)
    assert np.unique(model.labels_).size == 3
