"""Products of centered, weighted rows: dense and sparse, by columns, by rows and as an operator."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.representation.design.moments import Moments
from certifit.representation.design.scatter import centered_rows, inner, outer, product


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
def test_all_forms_agree_with_the_definition(center: bool, form: type) -> None:
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(20, 6)) + 3.0, rng.uniform(0.1, 2.0, size=20)
    wanted = np.average(X, axis=0, weights=weight) if center else np.zeros(6)
    Z = centered_rows(X, weight, wanted)
    for function, product_of in ((inner, Z.T @ Z), (outer, Z @ Z.T)):
        found, mean = function(form(X), weight, center=center)
        np.testing.assert_allclose(found, product_of, atol=1e-10)
        np.testing.assert_allclose(mean, wanted, atol=1e-12)
    V = rng.normal(size=(6, 3))
    np.testing.assert_allclose(product(form(X), weight, wanted)(V), Z.T @ (Z @ V), atol=1e-10)


@pytest.mark.parametrize("far", [0.0, 1.0, 30.0, 1e8])
def test_moments_keep_their_digits_with_and_without_a_centered_copy(far: float) -> None:
    X = np.random.default_rng(1).normal(size=(5000, 3))
    moments = Moments.of(X + far, np.full(5000, 2.0))
    Z = (X + far) - (X + far).mean(axis=0)
    np.testing.assert_allclose(moments.scatter[0], 2.0 * Z.T @ Z, rtol=1e-11, atol=1e-8)
    np.testing.assert_allclose(moments.mean[0], (X + far).mean(axis=0))
