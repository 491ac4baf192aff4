"""Moments and extremes of columns: blocks are all rows, and what is missing is not there."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from certifit.representation.basis.summaries import ColumnExtremes, ColumnMoments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5)) * np.array([1.0, 1e-3, 1e6, 1.0, 1.0]) + np.array([0.0, 5.0, -1e7, 3.0, 0.0])
X[:, 4] = RNG.poisson(0.3, size=200)
HOLES = X.copy()
HOLES[RNG.random(X.shape) < 0.2] = np.nan
HOLES[:, 0] = X[:, 0]
WEIGHT = RNG.integers(1, 4, size=200).astype(float)


def near(a: ColumnMoments, b: ColumnMoments) -> None:
    for one, other in ((a.weight, b.weight), (a.mean, b.mean), (a.deviation, b.deviation)):
        assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_array])
def test_moments_are_those_of_the_repeated_values(form: type) -> None:
    found = ColumnMoments.of(form(HOLES), WEIGHT, missing=True)
    repeated = np.repeat(HOLES, WEIGHT.astype(int), axis=0)
    assert_allclose(found.weight, (~np.isnan(repeated)).sum(axis=0))
    assert_allclose(found.mean, np.nanmean(repeated, axis=0))
    assert_allclose(found.deviation, np.nanstd(repeated, axis=0))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_blocks_are_all_rows(form: type) -> None:
    cuts = [slice(0, 1), slice(1, 70), slice(70, 200)]
    whole = ColumnMoments.of(form(HOLES), WEIGHT, missing=True)
    first, *rest = (ColumnMoments.of(form(HOLES[rows]), WEIGHT[rows], missing=True) for rows in cuts)
    for one in rest:
        first = first + one
    near(first, whole)
    parts = ColumnExtremes.of(form(HOLES[:50])) + ColumnExtremes.of(form(HOLES[50:]))
    assert_array_equal(parts.low, np.nanmin(HOLES, axis=0))
    assert_array_equal(parts.high, np.nanmax(HOLES, axis=0))


def test_a_column_of_nothing_is_unknown_until_a_value_comes() -> None:
    empty = np.full((3, 1), np.nan)
    nothing = ColumnMoments.of(empty, np.ones(3), missing=True)
    assert nothing.weight[0] == 0.0
    assert np.isnan(nothing.mean[0])
    some = ColumnMoments.of(np.array([[1.0], [3.0]]), np.ones(2))
    near(nothing + some, some)
    near(some + nothing, some)
    assert np.isnan(ColumnExtremes.of(empty).low[0])
    assert_array_equal((ColumnExtremes.of(empty) + ColumnExtremes.of(np.array([[2.0]]))).high, [2.0])


def test_magnitudes_at_the_ends_of_the_range() -> None:
    huge = np.array([[1e200], [-1e200], [3e200], [1e200]])
    parts = ColumnMoments.of(huge[:2], np.ones(2)) + ColumnMoments.of(huge[2:], np.ones(2))
    near(parts, ColumnMoments.of(huge, np.ones(4)))
    assert np.isfinite(parts.deviation).all()
    constant = ColumnMoments.of(np.full((2, 1), 0.1), np.ones(2)) + ColumnMoments.of(np.full((3, 1), 0.1), np.ones(3))
    assert constant.deviation[0] == 0.0
