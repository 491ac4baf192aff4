"""Kernel ridge against scikit-learn's two readings of it, and leave-one-out against refitting."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.kernel_ridge import KernelRidge as Peer

from certifit import KernelRidge
from certifit.kernels import RBF, Linear

KERNEL = RBF(gamma=0.3)


def data(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def test_predictions_are_those_of_scikit_learn() -> None:
    X, y = data()
    Y = np.column_stack([y, y**2])
    model = KernelRidge(kernel=KERNEL, alpha=0.01, fit_intercept=False).fit(X, Y)
    peer = Peer(alpha=0.01 * len(y), kernel="rbf", gamma=0.3).fit(X, Y)
    np.testing.assert_allclose(model.predict(X + 0.1), peer.predict(X + 0.1), atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_leaving_one_out_is_refitting_without_it(fit_intercept: bool, weighted: bool) -> None:
    X, y = data(20)
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float) if weighted else np.ones(len(y))
    model = KernelRidge(kernel=KERNEL, alpha=0.01, fit_intercept=fit_intercept)
    found = model.fit(X, y, weight).loo_predictions()
    for i in range(len(y)):
        without = weight - (np.arange(len(y)) == i)
        other = KernelRidge(kernel=KERNEL, alpha=0.01, fit_intercept=fit_intercept).fit(X, y, without)
        assert found[i] == pytest.approx(other.predict(X[i : i + 1])[0], abs=1e-10)


def test_the_deviation_is_that_of_the_gaussian_process() -> None:
    X, y = data()
    model = KernelRidge(kernel=KERNEL, alpha=0.01, fit_intercept=False).fit(X, y)
    peer = GaussianProcessRegressor(
        kernels.ConstantKernel(model.amplitude_**2) * kernels.RBF(1 / np.sqrt(0.6)),
        alpha=model.noise_**2,
        optimizer=None,
    ).fit(X, y)
    new = X[:7] + 0.3
    for ours, theirs in zip(model.predict(new, return_std=True), peer.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)
    # The amplitude has the greatest likelihood among those with this ratio of noise to signal.
    for factor in (0.9, 1.1):
        other = GaussianProcessRegressor(
            kernels.ConstantKernel((factor * model.amplitude_) ** 2) * kernels.RBF(1 / np.sqrt(0.6)),
            alpha=(factor * model.noise_) ** 2,
            optimizer=None,
        ).fit(X, y)
        assert other.log_marginal_likelihood_value_ < peer.log_marginal_likelihood_value_


def test_an_intercept_of_any_size_is_a_constant_of_great_variance() -> None:
    X, y = data()
    model = KernelRidge(kernel=KERNEL, alpha=0.01).fit(X, y)
    ratio = 1e7
    wide = KernelRidge(kernel=KERNEL + ratio, alpha=0.01, fit_intercept=False).fit(X, y)
    new = X[:5] + 0.3
    ours, theirs = model.predict(new, return_std=True), wide.predict(new, return_std=True)
    np.testing.assert_allclose(ours[0], theirs[0], atol=1e-5)
    np.testing.assert_allclose(ours[1] / model.amplitude_, theirs[1] / wide.amplitude_, atol=1e-3)


def test_weights_are_rows_also_for_what_is_unknown() -> None:
    X, y = data()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y))
    one = KernelRidge(kernel=KERNEL).fit(X, y, weight)
    two = KernelRidge(kernel=KERNEL).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.predict(X, return_std=True), two.predict(X, return_std=True), rtol=1e-9)
    np.testing.assert_allclose(np.repeat(one.loo_predictions(), weight), two.loo_predictions(), rtol=1e-9)


def test_single_precision_factors_lose_nothing() -> None:
    """From a thousand rows on the factor is in single precision; the equations are not."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1100, 4))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=1100)
    model = KernelRidge(kernel=RBF(gamma=0.1), alpha=1e-6, fit_intercept=False).fit(X, y)
    peer = Peer(alpha=1e-6 * 1100, kernel="rbf", gamma=0.1).fit(X, y)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.predict(X[:50] + 0.1), peer.predict(X[:50] + 0.1), atol=1e-5)


def test_a_rank_deficient_kernel_is_linear_ridge() -> None:
    X, y = data()
    model = KernelRidge(kernel=Linear(), alpha=1e-7).fit(X, y)
    plane = np.linalg.lstsq(np.column_stack([np.ones(len(y)), X]), y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), np.column_stack([np.ones(len(y)), X]) @ plane, atol=1e-5)


def test_landmarks_do_not_tell_what_is_unknown() -> None:
    X, y = data()
    model = KernelRidge(approximation="nystrom", n_components=10, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="approximation='none'"):
        model.loo_predictions()
    with pytest.raises(ValueError, match="landmarks"):
        model.predict(X, return_std=True)
