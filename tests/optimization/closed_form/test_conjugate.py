"""Ridge regression by conjugate gradients beside the closed form."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import Ridge


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [1e-5, 1e-3, 1e-1, 10.0, 1e6])
@pytest.mark.parametrize(("n", "d"), [(117, 2000), (1500, 400)])
def test_coefficients_are_near_those_of_all_digits(n: int, d: int, alpha: float, sparse: bool) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    if sparse:
        X = sp.csr_array(np.where(rng.random((n, d)) < 0.05, X, 0.0))
    y = X[:, :5].sum(axis=1) + rng.normal(size=n)
    found, exact = Ridge(alpha).fit(X, y), Ridge(alpha, solver="closed_form").fit(X, y)
    assert found.certificate_.certified
    assert np.linalg.norm(found.coef_ - exact.coef_) <= 1e-2 * np.linalg.norm(exact.coef_)  # 10·√tol
    assert found.certificate_.bound <= exact.certificate_.objective * (1 + 1e-9)


def test_products_are_taken_where_they_pay() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3000))
    assert Ridge(100.0).fit(X, X[:, 0]).solver_ == "newton_cg"
    tall = np.random.default_rng(0).normal(size=(1000, 900))
    assert Ridge(1e-9).fit(tall, tall[:, 0]).solver_ == "closed_form"


@pytest.mark.parametrize("alpha", [1e-12, 1e-8, 1e-4])
def test_a_weak_penalty_costs_rows_that_are_few_no_products(alpha: float) -> None:
    X = np.random.default_rng(0).normal(size=(100, 3000))
    found = Ridge(alpha).fit(X, X[:, 0])
    assert found.solver_ == "newton_cg"
    assert found.n_iter_ < 20
    exact = Ridge(alpha, solver="closed_form").fit(X, X[:, 0])
    assert found.certificate_.bound <= exact.certificate_.objective * (1 + 1e-9)
    assert np.linalg.norm(found.coef_ - exact.coef_) <= 1e-3 * np.linalg.norm(exact.coef_)
