"""Classical scaling: distances to points and back, distances that no points have, and scikit-learn's class as a peer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist, pdist

import certifit.models.embedding.classical_mds as module
from certifit import PCA, ClassicalMDS

RNG = np.random.default_rng(5)
POINTS = RNG.normal(size=(40, 3)) * [4.0, 2.0, 1.0] + 7.0
# Four corners of a square whose diagonal is shorter than the paths along two sides allow no points: d(0,2) > d(0,1) + d(1,2).
BENT = np.array([[0.0, 1, 5, 1], [1, 0, 1, 1], [5, 1, 0, 1], [1, 1, 1, 0]])


def test_distances_give_the_points_back_up_to_a_rotation() -> None:
    model = ClassicalMDS(3, metric="precomputed").fit(cdist(POINTS, POINTS))
    assert procrustes(POINTS, model.embedding_)[2] < 1e-20
    np.testing.assert_allclose(cdist(model.embedding_, model.embedding_), cdist(POINTS, POINTS), atol=1e-10)
    assert model.non_euclidean_ == 0.0
    assert model.smallest_eigenvalue_ >= 0.0
    assert model.certificate_.certified
    assert model.certificate_.objective == pytest.approx(0.0, abs=1e-12)
    assert "Points have these dissimilarities" in model.certificate_.note


def test_of_rows_it_is_their_principal_components() -> None:
    model, components = ClassicalMDS(2).fit(POINTS), PCA(2).fit(POINTS)
    scores = components.transform(POINTS)
    signs = np.sign((model.embedding_ * scores).sum(axis=0))
    np.testing.assert_allclose(model.embedding_ * signs, scores, atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_, components.singular_values_**2)


def test_the_objective_is_the_strain_and_no_other_points_have_less() -> None:
    D = cdist(POINTS, POINTS, "cityblock")
    model = ClassicalMDS(2, metric="precomputed").fit(D)
    J = np.eye(40) - 1 / 40
    B = -0.5 * J @ D**2 @ J

    def strain(Y: np.ndarray) -> float:
        return float(((B - Y @ Y.T) ** 2).sum() / (B**2).sum())

    assert model.certificate_.objective == pytest.approx(strain(model.embedding_), rel=1e-9)
    for size in (1e-3, 1e-1):
        assert strain(model.embedding_ + size * RNG.normal(size=(40, 2))) > model.certificate_.objective
    values = np.linalg.eigvalsh(B)
    assert model.non_euclidean_ == pytest.approx((values[values < 0] ** 2).sum() / (values**2).sum())
    assert model.smallest_eigenvalue_ == pytest.approx(values[0])


def test_distances_that_no_points_have_are_told() -> None:
    model = ClassicalMDS(4, metric="precomputed").fit(BENT)
    assert model.smallest_eigenvalue_ < 0 < model.non_euclidean_
    assert "no points have these dissimilarities" in model.certificate_.note
    assert not model.embedding_[:, -1].any()  # a negative eigenvalue is drawn nowhere


def test_the_partial_solver_finds_what_the_whole_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    D = cdist(POINTS, POINTS, "cityblock")
    whole = ClassicalMDS(3, metric="precomputed").fit(D)
    monkeypatch.setattr(module, "WHOLE", 10)
    part = ClassicalMDS(3, metric="precomputed").fit(D)
    np.testing.assert_allclose(part.embedding_, whole.embedding_, atol=1e-7)
    assert part.smallest_eigenvalue_ == pytest.approx(whole.smallest_eigenvalue_, rel=1e-4)
    assert 0 < part.non_euclidean_ <= whole.non_euclidean_
    assert part.certificate_.certified
    assert "missed" in part.certificate_.claim


def test_equal_rows_break_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanczos has nothing to start from where all dissimilarities are zero, and breaks down where few differ."""
    monkeypatch.setattr(module, "WHOLE", 10)
    zero = ClassicalMDS(3, metric="precomputed").fit(np.zeros((40, 40)))
    np.testing.assert_array_equal(zero.embedding_, 0.0)
    assert zero.non_euclidean_ == 0.0
    X = np.repeat([[0.0, 0.0], [3.0, 4.0]], 20, axis=0)
    np.testing.assert_allclose(pdist(ClassicalMDS(3).fit(X).embedding_), pdist(X), atol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "precomputed"])
def test_rows_of_the_fit_are_placed_where_the_fit_has_them(metric: str) -> None:
    X = cdist(POINTS, POINTS) if metric == "precomputed" else POINTS
    model = ClassicalMDS(2, metric=metric).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-9)


def test_a_new_row_of_points_is_placed_exactly() -> None:
    model = ClassicalMDS(3).fit(POINTS)
    new = RNG.normal(size=(5, 3))
    np.testing.assert_allclose(cdist(model.transform(new), model.embedding_), cdist(new, POINTS), atol=1e-9)


def test_weights_are_repetitions() -> None:
    weight = RNG.integers(0, 4, size=40)
    D = cdist(POINTS, POINTS, "cityblock")
    one = ClassicalMDS(2, metric="precomputed").fit(D, sample_weight=weight)
    which = np.repeat(np.arange(40), weight)
    other = ClassicalMDS(2, metric="precomputed").fit(D[np.ix_(which, which)])
    np.testing.assert_allclose(one.embedding_[which], other.embedding_, atol=1e-9)
    np.testing.assert_allclose(one.eigenvalues_, other.eigenvalues_)
    assert one.non_euclidean_ == pytest.approx(other.non_euclidean_)


def test_more_columns_than_rows_and_equal_rows() -> None:
    model = ClassicalMDS(5).fit(POINTS[:3])
    assert model.embedding_.shape == (3, 5)
    assert not model.embedding_[:, 2:].any()
    assert not ClassicalMDS().fit(np.ones((6, 2))).embedding_.any()


@pytest.mark.parametrize(
    ("D", "words"),
    [
        ([[0.0, 1], [2, 0]], "X must be symmetric"),
        ([[0.0, -1], [-1, 0]], "dissimilarities >= 0"),
        ([[0.0, 1, 2], [1, 0, 2]], "square matrix"),
        ([[1.0, 1], [1, 0]], "zeros on its diagonal"),
    ],
)
def test_what_is_no_dissimilarity_is_refused(D: list[list[float]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ClassicalMDS(metric="precomputed").fit(D)


def test_scikit_learn_agrees() -> None:
    peer = pytest.importorskip("sklearn.manifold")
    if not hasattr(peer, "ClassicalMDS"):
        pytest.skip("scikit-learn before 1.8 has no classical scaling")
    D = cdist(POINTS, POINTS, "cityblock")
    theirs = peer.ClassicalMDS(2, metric="precomputed").fit(D)
    ours = ClassicalMDS(2, metric="precomputed").fit(D)
    np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(theirs.embedding_), atol=1e-9)


def test_rows_too_far_for_their_squares_are_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(12, 2))
    model = ClassicalMDS().fit(rows)
    with pytest.raises(ValueError, match="so far from those of the fit"):
        model.transform(1e162 * rows)
