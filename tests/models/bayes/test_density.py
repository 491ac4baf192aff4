"""Densities against SciPy, and the ellipsoid against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import neighbors

from certifit import GaussianDensity, KernelDensity

RNG = np.random.default_rng(3)
X = RNG.normal(size=(80, 3)) @ np.array([[2.0, 0.5, 0], [0, 1.0, 0.3], [0, 0, 0.4]]) + [1.0, -2.0, 5.0]


def test_the_gaussian_of_greatest_likelihood() -> None:
    model = GaussianDensity().fit(X)
    reference = stats.multivariate_normal(X.mean(0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(model.score_samples(X), reference.logpdf(X), rtol=1e-9)
    assert model.certificate_.objective == pytest.approx(-reference.logpdf(X).mean())
    ends = model.mean_ + model.radii_[:, None] * model.axes_
    np.testing.assert_allclose(model.mahalanobis(ends), 1.0)
    np.testing.assert_allclose(model.axes_ @ model.axes_.T, np.eye(3), atol=1e-12)
    drawn = model.sample(50_000, random_state=0)
    np.testing.assert_allclose(np.cov(drawn.T), model.covariance_, rtol=0.06, atol=0.03)


def test_marginals_and_conditionals() -> None:
    model = GaussianDensity().fit(X)
    S, m = model.covariance_, model.mean_
    part = model.marginal([2, 0])
    np.testing.assert_allclose(part.covariance_, S[np.ix_([2, 0], [2, 0])])
    given = model.conditional([1], [0.5])
    np.testing.assert_allclose(given.mean_, m[[0, 2]] + S[[0, 2], 1] / S[1, 1] * (0.5 - m[1]))
    np.testing.assert_allclose(
        given.covariance_, S[np.ix_([0, 2], [0, 2])] - np.outer(S[[0, 2], 1], S[1, [0, 2]]) / S[1, 1]
    )
    joint = model.score_samples([[0.1, 0.5, 4.0]])[0]
    assert model.marginal([1]).score_samples([[0.5]])[0] + given.score_samples([[0.1, 4.0]])[0] == pytest.approx(joint)


def test_a_quadratic_from_chosen_axes() -> None:
    V = np.array([[3.0, 4.0], [-4.0, 3.0]]) / 5
    model = GaussianDensity.from_axes(V, [2.0, 0.5], mean=[1.0, 1.0])
    np.testing.assert_allclose(np.abs(model.axes_), np.abs(V), atol=1e-12)
    np.testing.assert_allclose(model.radii_, [2.0, 0.5])
    np.testing.assert_allclose(model.mahalanobis([[1.0, 1.0] + 2.0 * V[0]]), 1.0)
    for wrong in (([[1, 0], [1, 1]], [1, 1]), ([[1, 0], [0, 1]], [1, -1]), ([[1, 0]], [1]), ([[0, 0], [0, 1]], [1, 1])):
        with pytest.raises(ValueError, match="axes"):
            GaussianDensity.from_axes(*wrong)


def test_blocks_and_flat_directions() -> None:
    parts = GaussianDensity().partial_fit(X[:30]).partial_fit(X[30:])
    np.testing.assert_allclose(parts.covariance_, GaussianDensity().fit(X).covariance_, rtol=1e-9)
    flat = GaussianDensity().fit(np.column_stack([X, X[:, 0]]))
    assert "left out" in str(flat.certificate_)
    assert np.isfinite(flat.score_samples(np.column_stack([X, X[:, 0]]))).all()


@pytest.mark.parametrize("kernel", ["gaussian", "tophat", "epanechnikov", "exponential", "linear"])
def test_kernel_densities_are_the_peer_s(kernel: str) -> None:
    weight = RNG.uniform(0.5, 2.0, 80)
    ours = KernelDensity(bandwidth=0.9, kernel=kernel).fit(X, sample_weight=weight)
    theirs = neighbors.KernelDensity(bandwidth=0.9, kernel=kernel, rtol=1e-12).fit(X, sample_weight=weight)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6)


def test_the_width_of_greatest_left_out_likelihood() -> None:
    x = RNG.normal(size=(200, 1))
    model = KernelDensity(bandwidth="likelihood").fit(x)

    def left_out(h: float) -> float:
        z = (x - x.T) / h
        K = np.exp(-0.5 * z**2) / (h * np.sqrt(2 * np.pi))
        np.fill_diagonal(K, 0.0)
        return float(np.log(K.sum(axis=1) / 199).mean())

    best = left_out(model.bandwidth_)
    assert all(left_out(model.bandwidth_ * factor) < best for factor in (0.7, 1.4))


def test_columns_must_exist() -> None:
    model = GaussianDensity().fit(X)
    for wrong in ([3], [0, 0], ["a"], []):
        with pytest.raises(ValueError, match="columns"):
            model.marginal(wrong)
    with pytest.raises(ValueError, match="nothing is left"):
        model.conditional([0, 1, 2], [0, 0, 0])
