"""Products of centered, weighted rows: dense and sparse, by columns, by rows and as an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.representation.design.moments import Moments
from certifit.representation.design.scatter import centered_rows, inner, outer, product

Array = Any


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


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.9, 3.1, 1e6])
@pytest.mark.parametrize("late", [False, True])
def test_means_of_every_size_lose_no_digits(shift: float, late: bool) -> None:
    """Products of rows as they are cancel where means are large: also where the first rows do not show it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    X[2000 if late else 0 :, 1] += shift
    found = Moments.of(X, np.full(3000, 0.5))
    exact = X.astype(np.longdouble)
    mean = exact.mean(axis=0)
    scatter = 0.5 * (exact - mean).T @ (exact - mean)
    np.testing.assert_allclose(found.mean[0], mean.astype(np.float64), rtol=1e-13, atol=1e-15)
    size = np.sqrt(np.outer(np.diagonal(scatter), np.diagonal(scatter))).astype(np.float64)
    assert (np.abs(found.scatter[0] - scatter.astype(np.float64)) / size).max() < 2e-13


@pytest.mark.parametrize("weight", [np.full(3000, 0.5), np.random.default_rng(1).uniform(0.1, 2.0, size=3000)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_first_rows_that_are_not_like_the_others_and_columns_of_one_value(weight: Array, dtype: type) -> None:
    """The point that products are taken about comes from the first rows, and is mended where they mislead."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 4))
    X[:64, 1] = 1e4 + 1e-3 * X[:64, 1]
    X[64:, 1] = -1e7 + 1e-3 * X[64:, 1]
    X[:, 2] = 0.1
    X[:, 3] += 50.0
    X = X.astype(dtype)
    found = Moments.of(X, weight)
    exact, total = X.astype(np.longdouble), weight.sum()
    mean = (weight @ exact) / total
    scatter = (((exact - mean).T * weight) @ (exact - mean)).astype(np.float64)
    np.testing.assert_allclose(found.mean[0], mean.astype(np.float64), rtol=1e-13, atol=1e-15)
    size = np.sqrt(np.maximum(np.diagonal(scatter), 1e-15 * total * mean.astype(np.float64) ** 2))
    assert (np.abs(found.scatter[0] - scatter) / np.outer(size, size)).max() < 2e-13


@pytest.mark.parametrize("value", [3.1, 1e9 / 7, -0.1])
@pytest.mark.parametrize("weight", [np.ones(300), np.random.default_rng(1).uniform(0.1, 2.0, size=300)])
def test_equal_numbers_have_no_scatter(value: float, weight: Array) -> None:
    """Neither what rounding leaves of it, which may be below zero, nor products with other columns."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[:, 0] = value
    whole = Moments.of(X, weight)
    grouped = Moments.of(X, weight, np.zeros(300, dtype=int))
    parts = Moments.of(X[:7], weight[:7]) + Moments.of(X[7:], weight[7:])
    for found in (whole, grouped, parts):
        assert not found.scatter[0][0].any()
        assert not found.scatter[0][:, 0].any()
        np.testing.assert_allclose(found.scatter[0][1:, 1:], whole.scatter[0][1:, 1:], rtol=1e-12)
    assert Moments.of(X, weight, np.zeros(300, dtype=int), full=False).scatter[0][0] == 0.0
