"""A matrix between rotations: the band is what the reflections say it is, and inverses and diagonals are those of the matrix."""

from __future__ import annotations

import numpy as np
import pytest

from certifit.optimization.closed_form.shifts.band import Band, inverse_diagonals

RIDGES = (1e-3, 1.0, 1e3)


def gram(n: int, rank: int) -> np.ndarray:
    M = np.random.default_rng(n).normal(size=(n, rank))
    return np.asarray(M @ M.T)


# A last block of one row, of all rows, panels that fill their stripes exactly, one block more than fits, a matrix of low rank.
@pytest.mark.parametrize(
    ("n", "rank", "width"), [(9, 9, 8), (37, 37, 4), (40, 40, 4), (64, 64, 32), (70, 5, 8), (300, 300, 32)]
)
def test_inverses_are_those_of_the_matrix(n: int, rank: int, width: int) -> None:
    A = gram(n, rank)
    given = A.copy()
    band = Band.of(A, width)
    np.testing.assert_array_equal(A, given)
    factors = [band.factor(ridge) for ridge in RIDGES]
    Q = band.rotation()
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-12)
    turned = Q.T @ A @ Q
    beside = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > width
    assert np.abs(turned[beside]).max(initial=0.0) < 1e-12 * np.abs(turned).max()
    inverses = [np.linalg.inv(A + ridge * np.eye(n)) for ridge in RIDGES]
    np.testing.assert_allclose(
        inverse_diagonals(Q, factors), np.column_stack([np.diagonal(one) for one in inverses]), rtol=1e-8
    )
    v = np.random.default_rng(1).normal(size=(n, 3))
    for factor, inverse in zip(factors, inverses, strict=True):
        np.testing.assert_allclose(Q @ factor.solve(Q.T @ v), inverse @ v, rtol=1e-7, atol=1e-7)


def test_columns_that_need_no_reflection() -> None:
    A = np.diag(np.arange(1.0, 41.0))
    band = Band.of(A, 8)
    factor = band.factor(1.0)
    np.testing.assert_allclose(
        inverse_diagonals(band.rotation(), [factor])[:, 0], 1.0 / np.arange(2.0, 42.0), rtol=1e-13
    )


def test_a_matrix_that_is_not_positive_has_no_factor() -> None:
    A = gram(40, 40)
    band = Band.of(A - 100.0 * np.eye(40), 8)
    with pytest.raises(np.linalg.LinAlgError):
        band.factor(1e-3)
