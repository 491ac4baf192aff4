"""All alphas from one decomposition: what each refit without a row would have said, and the best of them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.kernel.test_ridge import KERNEL, data

from certifit import KernelRidge, KernelRidgeCV

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
