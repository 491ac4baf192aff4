"""Densities against SciPy, and the ellipsoid against its definition."""

from __future__ import annotations

import numpy as np
import pandas as pd
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


KERNELS = ["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_densities_of_any_distance_have_the_integral_one(kernel: str, metric: str) -> None:
    grid = np.linspace(-12.0, 12.0, 601)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    model = KernelDensity(bandwidth=0.9, kernel=kernel, metric=metric).fit([[0.0, 0.3], [1.0, -1.0]])
    total = np.exp(model.score_samples(points)).sum() * (grid[1] - grid[0]) ** 2
    assert total == pytest.approx(1.0, abs=2e-2 if kernel == "tophat" else 2e-3)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
@pytest.mark.parametrize("kernel", ["gaussian", "tophat"])
def test_draws_have_the_distances_of_the_density(kernel: str, metric: str) -> None:
    model = KernelDensity(bandwidth=0.5, kernel=kernel, metric=metric).fit([[0.0, 0.0, 0.0]])
    drawn = model.sample(4000, random_state=0)
    length = np.abs(drawn).sum(axis=1) if metric == "manhattan" else np.abs(drawn).max(axis=1)
    law = stats.chi(3, scale=0.5) if kernel == "gaussian" else stats.powerlaw(3, scale=0.5)
    assert stats.kstest(length, law.cdf).pvalue > 1e-3
    # Uniform in a ball is uniform in the cube it fills, or in the simplex of its octant.
    if kernel == "tophat":
        first = np.abs(drawn[:, 0]) / 0.5
        assert stats.kstest(first, (stats.uniform if metric == "chebyshev" else stats.beta(1, 3)).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kernel", KERNELS)
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


@pytest.mark.parametrize("factor", [2.0, 3.0, 7.0, 0.1, 1e-3])
def test_a_column_that_another_determines_has_no_variance_left(factor: float) -> None:
    rows = np.column_stack([X[:, 0], factor * X[:, 0], X[:, 1]])
    given = GaussianDensity().fit(rows).conditional([0], [1.0])
    assert given.mean_[0] == pytest.approx(factor)
    assert not given.covariance_[0].any()
    assert given.radii_[-1] == 0.0
    alone = stats.norm(given.mean_[1], np.sqrt(given.covariance_[1, 1]))
    assert given.score_samples([[factor, 0.3]])[0] == pytest.approx(alone.logpdf(0.3))


def test_parts_keep_the_names_of_their_columns() -> None:
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = GaussianDensity().fit(table)
    assert model.marginal(["c", "a"]).feature_names_in_.tolist() == ["c", "a"]
    given = model.conditional("b", 0.5)
    assert given.feature_names_in_.tolist() == ["a", "c"]
    np.testing.assert_array_equal(given.mean_, model.conditional([1], [0.5]).mean_)


def test_axes_and_radii_of_any_size() -> None:
    model = GaussianDensity.from_axes(1e200 * np.eye(2), [1e-150, 1e150])
    np.testing.assert_array_equal(model.radii_, [1e150, 1e-150])
    np.testing.assert_array_equal(model.axes_, [[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_array_equal(GaussianDensity.from_axes(1e-200 * np.eye(2), [1.0, 2.0]).radii_, [2.0, 1.0])


def test_numbers_that_are_none_are_named() -> None:
    model = GaussianDensity().fit(X)
    for name, call in {
        "values": lambda: model.conditional([0], ["a"]),
        "axes": lambda: GaussianDensity.from_axes("a", [1.0]),
        "mean": lambda: GaussianDensity.from_axes(np.eye(2), [1.0, 1.0], mean=[np.nan, 0.0]),
        "n_samples": lambda: model.sample(-1),
    }.items():
        with pytest.raises(ValueError, match=f"^{name} must be"):
            call()
    with pytest.raises(TypeError, match="n_samples must be an integer"):
        KernelDensity().fit(X).sample("a")  # type: ignore[arg-type]


def test_the_logarithm_of_the_density_by_its_name() -> None:
    for model in (GaussianDensity().fit(X), KernelDensity().fit(X)):
        np.testing.assert_array_equal(model.log_density(X), model.score_samples(X))
