"""Maps of rows: scikit-learn's points where they are the only ones, and no more stress where they are not."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.manifold as theirs
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from certifit.sklearn import manifold

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))


@pytest.mark.skipif(not hasattr(theirs, "ClassicalMDS"), reason="scikit-learn before 1.8 has no classical scaling")
def test_classical_scaling_is_theirs() -> None:
    for metric, given in (("euclidean", X), ("manhattan", X), ("precomputed", cdist(X, X, "chebyshev"))):
        ours, other = (cls(2, metric=metric).fit(given) for cls in (manifold.ClassicalMDS, theirs.ClassicalMDS))
        assert_allclose(np.abs(ours.embedding_), np.abs(other.embedding_), atol=1e-9)
        assert_allclose(ours.eigenvalues_, other.eigenvalues_)
        assert_allclose(ours.dissimilarity_matrix_, other.dissimilarity_matrix_, atol=1e-12)
        assert ours.certificate_.kind == "eigen-residual"
    assert_allclose(manifold.ClassicalMDS(2).fit_transform(X), manifold.ClassicalMDS(2).fit(X).embedding_)


@pytest.mark.parametrize("normalized", [True, False])
def test_stress_is_in_their_unit_and_no_larger(normalized: bool) -> None:
    settings = {"n_init": 4, "eps": 1e-9, "max_iter": 3000, "random_state": 0, "normalized_stress": normalized}
    ours, other = (cls(2, init="random", **settings).fit(X) for cls in (manifold.MDS, theirs.MDS))
    assert ours.stress_ <= other.stress_ * 1.02
    D = cdist(X, X)
    drawn = cdist(ours.embedding_, ours.embedding_)
    raw = ((D - drawn) ** 2).sum() / 2
    expected = np.sqrt(raw / ((drawn**2).sum() / 2)) if normalized else raw
    assert ours.stress_ == pytest.approx(expected)


def test_points_may_be_given_and_ranks_alone_count() -> None:
    start = RNG.normal(size=(40, 2))
    found = manifold.MDS(2, n_init=1, init="random", random_state=0).fit_transform(X, init=start)
    assert found.shape == (40, 2)
    settings = {"metric_mds": False, "n_init": 1, "init": "classical_mds", "eps": 1e-9, "max_iter": 2000}
    ours, other = (cls(2, **settings).fit(X) for cls in (manifold.MDS, theirs.MDS))
    assert ours.stress_ == pytest.approx(other.stress_, rel=0.02)  # normalized, by default
    sizes = [float((cdist(Y, Y) ** 2).sum()) for Y in (ours.embedding_, other.embedding_)]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.02)


def test_the_stress_of_ranks_falls_with_every_step() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 5))
    found = [
        manifold.MDS(metric_mds=False, init="random", n_init=1, max_iter=steps, eps=0.0, random_state=0).fit(rows)
        for steps in range(1, 15)
    ]
    assert (np.diff([model.stress_ for model in found]) < 0).all()
    for model in found:  # and no other unit of the map is better
        apart = cdist(model.embedding_, model.embedding_)
        assert 0.5 * (apart**2).sum() == pytest.approx(0.5 * 60 * 59 / (1.0 + model.stress_**2), rel=1e-6)
