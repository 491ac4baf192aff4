"""Scaling by ranks: the stress falls, f is the isotonic regression, only the order counts, and scikit-learn does no better."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.isotonic import IsotonicRegression
from sklearn.manifold import smacof

from certifit import MetricMDS, NonmetricMDS

RNG = np.random.default_rng(11)
POINTS = RNG.normal(size=(30, 4))
D = cdist(POINTS, POINTS)
UPPER = np.triu_indices(30, 1)


def stress(Y: np.ndarray, D: np.ndarray, weight: np.ndarray) -> float:
    """The definition, with scikit-learn's isotonic regression."""
    pairs, drawn, given = np.outer(weight, weight)[UPPER], cdist(Y, Y)[UPPER], D[UPPER]
    f = IsotonicRegression().fit_transform(given, drawn, sample_weight=pairs)
    f *= np.sqrt((pairs @ given**2) / (pairs @ f**2))
    return float(pairs @ (f - drawn) ** 2 / (pairs @ f**2))


@pytest.mark.parametrize("init", ["classical", "random"])
@pytest.mark.parametrize("ties", [False, True])
def test_no_step_raises_the_stress_and_it_ends_where_none_lowers_it(init: str, ties: bool) -> None:
    given = np.ceil(2 * D) if ties else D
    weight = RNG.integers(1, 4, size=30).astype(float)
    model = NonmetricMDS(metric="precomputed", init=init, tol=1e-12, max_iter=4000, random_state=0)
    model.fit(given, sample_weight=weight)
    assert (np.diff(model.history_) <= 0).all()
    assert model.stress_ == pytest.approx(stress(model.embedding_, given, weight), rel=1e-8)
    for _ in range(20):
        moved = model.embedding_ + 1e-4 * RNG.normal(size=(30, 2))
        assert stress(moved, given, weight) > model.stress_ * (1 - 1e-7)
    assert not model.certificate_.certified
    assert "No step raised the stress" in model.certificate_.note


def test_only_the_order_counts() -> None:
    curved = np.expm1(D)
    ratio = np.sqrt((curved**2).sum() / (D**2).sum())
    start = RNG.normal(size=(30, 2))
    one, other = (
        NonmetricMDS(metric="precomputed", init=scale * start, max_iter=60).fit(given)
        for given, scale in ((D, 1.0), (curved, ratio))
    )
    np.testing.assert_allclose(one.history_[1:], other.history_[1:], rtol=1e-6)
    np.testing.assert_allclose(other.embedding_, ratio * one.embedding_, rtol=1e-4, atol=1e-4 * ratio)


def test_the_order_of_points_is_found_and_others_find_no_better() -> None:
    flat = POINTS[:, :2]
    bent = cdist(flat, flat) ** 3
    model = NonmetricMDS(metric="precomputed", tol=1e-9, max_iter=2000).fit(bent)
    assert spearmanr(cdist(model.embedding_, model.embedding_)[UPPER], bent[UPPER])[0] > 0.999
    assert model.stress_ < 1e-3 < MetricMDS(metric="precomputed", tol=1e-9).fit(bent).stress_
    points, theirs = smacof(
        D, metric=False, n_init=1, init=RNG.normal(size=(30, 2)), eps=1e-10, max_iter=3000, normalized_stress=True
    )
    scale = np.sqrt((D**2).sum() / (30 * 29))  # theirs have mean square one
    ours = NonmetricMDS(metric="precomputed", init=scale * points, tol=1e-10, max_iter=3000).fit(D)
    # Theirs divides by the squares of the distances drawn: at a minimum s²/(1 + s²) is the same by those of f.
    assert ours.history_[0] == pytest.approx(theirs**2 / (1 + theirs**2), rel=1e-3)
    assert ours.stress_ <= ours.history_[0]


def test_further_rows_join_by_their_ranks() -> None:
    model = NonmetricMDS(tol=1e-9).fit(POINTS)
    np.testing.assert_allclose(model.transform(POINTS), model.embedding_, atol=1e-9)
    near = model.transform(POINTS + 1e-3 * RNG.normal(size=POINTS.shape))
    assert (
        np.linalg.norm(near - model.embedding_, axis=1).mean() < 0.2 * np.linalg.norm(model.embedding_, axis=1).mean()
    )


def test_rows_that_are_all_equal_are_one_point() -> None:
    model = NonmetricMDS().fit(np.ones((5, 2)))
    assert model.stress_ == 0
    assert np.ptp(model.embedding_, axis=0).max() == 0


def test_pairs_whose_weight_vanishes_have_a_level() -> None:
    """Each share is a number, and the product of two is none."""
    X = np.array([[0.0], [1.0], [3.0]])
    model = NonmetricMDS().fit(X, sample_weight=[1e300, 1.0, 1.0])
    assert np.isfinite(model.embedding_).all()


def test_more_rows_than_memory_holds_are_refused_before_anything_is_computed() -> None:
    with pytest.raises(ValueError, match=r"takes at most 10,000 of them; got 10,001\. Fit a sample"):
        NonmetricMDS().fit(np.zeros((10_001, 1)))
