"""All alphas from one decomposition: what each refit without a row would have said, and the best of them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.kernel.test_ridge import KERNEL, data

from certifit import KernelRidge, KernelRidgeCV
from certifit.optimization.closed_form import resolvent

ALPHAS = [1.0, 1e-2, 1e-4]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_errors_are_those_of_leaving_one_out(fit_intercept: bool) -> None:
    X, y = data()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y)).astype(float)
    for given in (None, weight):
        found = KernelRidgeCV(kernel=KERNEL, alphas=ALPHAS, fit_intercept=fit_intercept).fit(X, y, given)
        errors = []
        for alpha in ALPHAS:
            one = KernelRidge(kernel=KERNEL, alpha=alpha, fit_intercept=fit_intercept).fit(X, y, given)
            errors.append(np.average((one.loo_predictions() - y) ** 2, weights=given))
        np.testing.assert_allclose(found.cv_error_path_, errors, rtol=1e-8)
        assert found.alpha_ == ALPHAS[int(np.argmin(errors))]


def test_the_fit_is_that_of_the_chosen_alpha() -> None:
    X, y = data()
    Y = np.column_stack([y, -3.0 * y])
    model = KernelRidgeCV(kernel=KERNEL).fit(X, Y)
    wanted = KernelRidge(kernel=KERNEL, alpha=model.alpha_).fit(X, Y)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.predict(X), wanted.predict(X), atol=1e-7)
    np.testing.assert_allclose(model.predict(X, return_std=True)[1], wanted.predict(X, return_std=True)[1], atol=1e-6)
    np.testing.assert_allclose(model.loo_predictions(), wanted.loo_predictions(), atol=1e-7)


def test_one_standard_error_takes_a_simpler_model() -> None:
    X, y = data()
    least = KernelRidgeCV(kernel=KERNEL).fit(X, y)
    simple = KernelRidgeCV(kernel=KERNEL, one_standard_error=True).fit(X, y)
    assert simple.alpha_ > least.alpha_


def test_too_many_rows_are_refused_before_their_matrix_is_made() -> None:
    X = np.arange(16_000.0)[:, None]
    with pytest.raises(ValueError, match="take fewer rows"):
        KernelRidgeCV().fit(X, X[:, 0])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_band_says_what_eigenvectors_say(fit_intercept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(210, 3)), rng.normal(size=(210, 2))
    weight = rng.integers(0, 4, size=210).astype(float)
    alphas = [10.0, 1e-3, 1e-6]

    def found() -> KernelRidgeCV:
        return KernelRidgeCV(kernel=KERNEL, alphas=alphas, fit_intercept=fit_intercept).fit(X, Y, weight)

    spectrum = found()
    monkeypatch.setattr(resolvent, "BAND_FROM", 100)
    monkeypatch.setattr(resolvent, "BAND_RIDGES", 1.0)
    monkeypatch.setattr(resolvent.scipy.linalg, "eigh", None)  # would be called were the band not taken
    band = found()
    np.testing.assert_allclose(band.cv_error_path_, spectrum.cv_error_path_, rtol=1e-9)
    np.testing.assert_allclose(band.predict(X), spectrum.predict(X), rtol=1e-9, atol=1e-11)
    assert band.alpha_ == spectrum.alpha_
    assert band.certificate_.certified


def test_ridges_below_rounding_go_back_to_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.repeat(np.linspace(-1.0, 1.0, 120), 2)[:, None] + 1e-9 * np.tile([0.0, 1.0], 120)[:, None]
    y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(size=240)
    wanted = KernelRidgeCV(kernel=KERNEL, alphas=[1e-2, 1e-30]).fit(X, y)
    monkeypatch.setattr(resolvent, "BAND_FROM", 100)
    monkeypatch.setattr(resolvent, "BAND_RIDGES", 1.0)
    model = KernelRidgeCV(kernel=KERNEL, alphas=[1e-2, 1e-30]).fit(X, y)
    np.testing.assert_array_equal(model.cv_error_path_, wanted.cv_error_path_)
