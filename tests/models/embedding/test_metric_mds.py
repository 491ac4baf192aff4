"""Metric scaling: the stress falls, its gradient vanishes, exact distances are found, and scikit-learn does no better."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist
from sklearn.manifold import smacof

from certifit import MetricMDS

RNG = np.random.default_rng(11)
POINTS = RNG.normal(size=(45, 5))
D = cdist(POINTS, POINTS)


def stress(Y: np.ndarray, D: np.ndarray, weight: np.ndarray | None = None) -> float:
    s = np.ones(len(D)) if weight is None else weight
    pairs = np.outer(s, s)
    return float((pairs * (D - cdist(Y, Y)) ** 2).sum() / (pairs * D**2).sum())


@pytest.mark.parametrize("init", ["classical", "random"])
def test_no_step_raises_the_stress_and_it_ends_where_none_lowers_it(init: str) -> None:
    model = MetricMDS(metric="precomputed", init=init, tol=1e-11, max_iter=5000, random_state=0).fit(D)
    assert model.history_.shape == (model.n_iter_ + 1,)
    assert (np.diff(model.history_) <= 1e-15).all()
    assert model.history_[0] > model.history_[-1] == model.stress_
    assert model.stress_ == pytest.approx(stress(model.embedding_, D), rel=1e-9)
    gradient = np.zeros_like(model.embedding_)
    for at in np.ndindex(gradient.shape):
        for sign in (1, -1):
            moved = model.embedding_.copy()
            moved[at] += sign * 1e-5
            gradient[at] += sign * stress(moved, D) / 2e-5
    assert np.abs(gradient).max() < 1e-5
    assert not model.certificate_.certified
    assert "No step raised the stress" in model.certificate_.note


def test_distances_of_points_are_found_exactly() -> None:
    flat = POINTS[:, :2]
    model = MetricMDS(metric="precomputed", init="random", n_init=5, tol=1e-12, max_iter=5000, random_state=0)
    model.fit(cdist(flat, flat))
    assert model.stress_ < 1e-9
    assert procrustes(flat, model.embedding_)[2] < 1e-6


def test_scikit_learn_does_no_better_from_the_same_start() -> None:
    start = RNG.normal(size=(45, 2))
    ours = MetricMDS(metric="precomputed", init=start, tol=1e-10, max_iter=5000).fit(D)
    theirs, _ = smacof(D, init=start, n_init=1, eps=1e-10, max_iter=5000, normalized_stress=False)
    assert ours.stress_ <= stress(theirs, D) * (1 + 1e-6)


def test_weights_are_repetitions_and_rows_without_weight_are_placed() -> None:
    weight = RNG.integers(0, 3, size=45)
    one = MetricMDS(metric="precomputed", tol=1e-12, max_iter=3000).fit(D, sample_weight=weight)
    which = np.repeat(np.arange(45), weight)
    other = MetricMDS(metric="precomputed", tol=1e-12, max_iter=3000).fit(D[np.ix_(which, which)])
    assert one.stress_ == pytest.approx(other.stress_, rel=1e-9)
    assert one.stress_ == pytest.approx(stress(one.embedding_, D, weight), rel=1e-9)
    np.testing.assert_allclose(one.embedding_[which], other.embedding_, atol=1e-4)
    assert np.isfinite(one.embedding_).all()
    absent = int(np.flatnonzero(weight == 0)[0])
    away = cdist(one.embedding_[[absent]], one.embedding_)[0]
    assert np.corrcoef(away[which], D[absent, which])[0, 1] > 0.5


def test_threads_change_nothing() -> None:
    X = RNG.normal(size=(600, 3))
    one, two = (MetricMDS(n_jobs=jobs, max_iter=5).fit(X).embedding_ for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_start_in_a_plane_too_small_leaves_it() -> None:
    """Classical scaling draws a simplex of unequal sides in fewer dimensions than asked; the stress asks for more."""
    bent = np.array([[0.0, 1, 3], [1, 0, 1], [3, 1, 0]])
    model = MetricMDS(2, metric="precomputed", random_state=0, tol=1e-12).fit(bent)
    assert (np.diff(model.history_) <= 1e-15).all()
    assert model.stress_ == pytest.approx(stress(model.embedding_, bent))


def test_bad_starts_and_dissimilarities_are_refused() -> None:
    with pytest.raises(ValueError, match=r"init must hold finite numbers of shape \(45, 2\)"):
        MetricMDS(metric="precomputed", init=np.ones((3, 2))).fit(D)
    with pytest.raises(ValueError, match="X must be symmetric"):
        MetricMDS(metric="precomputed").fit([[0.0, 1], [2, 0]])


def test_equal_rows_fall_together() -> None:
    assert not MetricMDS().fit(np.ones((5, 3))).embedding_.any()
    assert MetricMDS().fit(np.ones((5, 3))).stress_ == 0.0
