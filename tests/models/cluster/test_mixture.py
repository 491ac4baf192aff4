"""Mixtures of Gaussians: each step by its definition, scikit-learn's optimum from the same start, and no claim beyond that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

from certifit import GaussianDensity, GaussianMixture
from certifit._native import mixture

TYPES = ["full", "tied", "diag", "spherical"]
RNG = np.random.default_rng(0)


def rows(n: int = 600, d: int = 3) -> Any:
    centers = 5.0 * RNG.normal(size=(3, d))
    return centers[RNG.integers(3, size=n)] + RNG.normal(size=(n, d)) * RNG.uniform(0.5, 1.5, size=d) + 10.0


@pytest.mark.parametrize("kind", TYPES)
def test_the_optimum_of_scikit_learn(kind: str) -> None:
    X = rows()
    ours = GaussianMixture(3, covariance_type=kind, tol=1e-9, max_iter=1000, reg_covar=0.0, random_state=0).fit(X)
    inverse = {
        "full": lambda c: np.linalg.inv(c),
        "tied": lambda c: np.linalg.inv(c),
        "diag": lambda c: 1 / c,
        "spherical": lambda c: 1 / c,
    }[kind]
    peer = Peer(
        3, covariance_type=kind, tol=1e-9, max_iter=1000, reg_covar=0.0, weights_init=ours.weights_, means_init=ours.means_,
        precisions_init=inverse(ours.covariances_),
    ).fit(X)  # fmt: skip
    np.testing.assert_allclose(ours.covariances_, peer.covariances_, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours.means_, peer.means_, rtol=1e-4)
    assert ours.lower_bound_ == pytest.approx(peer.lower_bound_, abs=1e-6)
    assert ours.score(X) == pytest.approx(peer.score(X), abs=1e-6)
    assert ours.bic(X) == pytest.approx(peer.bic(X), rel=1e-6)
    assert ours.aic(X) == pytest.approx(peer.aic(X), rel=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-3)
    assert ours.converged_


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("n", "d", "K"), [(1, 1, 1), (64, 3, 2), (200, 5, 4), (333, 1, 3)])
def test_the_native_step_is_the_definition(diagonal: bool, n: int, d: int, K: int) -> None:
    X, weight, mean = RNG.normal(size=(n, d)), RNG.uniform(0.1, 2.0, size=n), RNG.normal(size=(K, d))
    factors = [
        np.diag(RNG.uniform(0.5, 2.0, size=d)) if diagonal else np.tril(RNG.normal(size=(d, d))) + 2 * np.eye(d)
        for _ in range(K)
    ]
    constant = RNG.normal(size=K)
    A = np.array([np.diagonal(F) if diagonal else F.ravel() for F in factors])
    total, sums = mixture.step(X, weight, mean, A, constant, 2)
    logs = np.array([constant[k] - 0.5 * (((X - mean[k]) @ factors[k].T) ** 2).sum(axis=1) for k in range(K)]).T
    np.testing.assert_allclose(mixture.densities(X, mean, A, constant, 1), logs, rtol=1e-10, atol=1e-10)
    joint = np.log(np.exp(logs - logs.max(axis=1, keepdims=True)).sum(axis=1)) + logs.max(axis=1)
    assert total == pytest.approx(weight @ joint, rel=1e-12)
    share = np.exp(logs - joint[:, None]) * weight[:, None]
    for k in range(K):
        Z = X - mean[k]
        scatter = (Z * share[:, [k]]).T @ Z
        packed = np.diagonal(scatter) if diagonal else scatter[np.tril_indices(d)]
        np.testing.assert_allclose(sums[k], [share[:, k].sum(), *(share[:, k] @ Z), *packed], rtol=1e-9, atol=1e-11)


def test_likelihood_never_falls_and_one_gaussian_is_closed_form() -> None:
    X = rows()
    values = []
    for steps in range(1, 12):
        with pytest.warns(ConvergenceWarning, match="Stopped after"):
            values.append(GaussianMixture(4, tol=0.0, max_iter=steps, random_state=1).fit(X).lower_bound_)
    assert (np.diff(values) >= -1e-10).all()
    one, density = GaussianMixture(1, reg_covar=0.0).fit(X), GaussianDensity().fit(X)
    np.testing.assert_allclose(one.covariances_[0], density.covariance_)
    np.testing.assert_allclose(one.score_samples(X), density.score_samples(X))
    np.testing.assert_allclose(one.score_samples(X), multivariate_normal(one.means_[0], one.covariances_[0]).logpdf(X))


def test_weights_are_repetitions_and_nothing_is_claimed() -> None:
    X, weight = rows(200), RNG.integers(0, 3, size=200)
    one = GaussianMixture(2, random_state=0).fit(X, sample_weight=weight)
    other = GaussianMixture(2, random_state=0).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-8)
    assert one.certificate_.kind == "none"
    assert "other starts may end higher" in one.certificate_.note


@pytest.mark.parametrize("kind", TYPES)
def test_samples_have_the_moments_of_the_mixture(kind: str) -> None:
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows(2000))
    draws, label = model.sample(40_000, random_state=0)
    np.testing.assert_allclose(np.bincount(label) / 40_000, model.weights_, atol=0.02)
    again = GaussianMixture(3, covariance_type=kind, random_state=0).fit(draws)
    order, found = np.argsort(model.means_[:, 0]), np.argsort(again.means_[:, 0])
    np.testing.assert_allclose(again.means_[found], model.means_[order], atol=0.3)


@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random"])
def test_starts(init: str) -> None:
    X = rows()
    many = GaussianMixture(3, init_params=init, n_init=4, random_state=0).fit(X)
    assert many.lower_bound_ >= GaussianMixture(3, init_params=init, random_state=0).fit(X).lower_bound_ - 1e-9


@pytest.mark.parametrize("kind", TYPES)
def test_only_shares_of_the_weights_count_and_squares_must_be_numbers(kind: str) -> None:
    X = rows(90, 2) * 1e150
    heavy, light = (
        GaussianMixture(2, covariance_type=kind, random_state=0).fit(X, sample_weight=np.full(90, w)).predict_proba(X)
        for w in (2.0**1000, 1.0)
    )
    np.testing.assert_array_equal(heavy, light)
    with pytest.raises(ValueError, match="squares are beyond double precision"):
        GaussianMixture(2, covariance_type=kind).fit(X * 1e5)


def test_bad_input() -> None:
    X = rows(5)
    with pytest.raises(ValueError, match="n_samples=5 should be >= n_components=6"):
        GaussianMixture(6).fit(X)
    with pytest.raises(ValueError, match="shrunk onto a plane or a point of X"):
        GaussianMixture(3, reg_covar=0.0, random_state=0).fit(X)
    flat = GaussianMixture(2, random_state=0).fit(np.ones((6, 2)))
    assert np.isfinite(flat.score_samples(np.ones((1, 2)))).all()


def test_rows_too_far_for_their_squares_are_judged_by_their_direction() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2)) * [3.0, 1.0]
    for kind in ("full", "diag"):
        model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(rows)
        assert np.isfinite(model.predict_proba(1e162 * rows)).all()
        np.testing.assert_array_equal(model.predict(1e162 * rows), model.predict(1e9 * rows))
