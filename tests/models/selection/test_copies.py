"""Distances of copies against a solver of semidefinite programs, and correlations against copies that are made."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from certifit._types import Array
from certifit.models.selection.copies import equal_distances, fixed_copies, largest_distances, model_copies


def correlations(d: int = 6, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(60, d)) + 1.5 * rng.normal(size=(60, 1)) * (np.arange(d) < 3)
    return np.asarray(np.corrcoef(rows.T))


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_distances_are_the_optimum_of_the_program(seed: int) -> None:
    R = correlations(8, seed)
    s, bound = largest_distances(R)
    free = cp.Variable(8)
    program = cp.Problem(cp.Maximize(cp.sum(free)), [free >= 0, free <= 1, 2 * R - cp.diag(free) >> 0])
    optimum = float(program.solve(solver="CLARABEL"))
    assert bound >= optimum - 1e-6
    assert s.sum() <= optimum + 1e-6
    assert s.sum() == pytest.approx(optimum, abs=8 * 6e-3 + 1e-3 * optimum)
    assert np.linalg.eigvalsh(2 * R - np.diag(s))[0] > 0
    assert s.sum() >= equal_distances(R).sum() - 1e-9


def test_fixed_copies_have_the_correlations_they_must() -> None:
    R, with_y = correlations(), np.array([0.3, 0.2, 0.1, 0.0, 0.2, -0.1])
    s, _ = largest_distances(R)
    found = fixed_copies(R, with_y, 200.0, s, np.random.RandomState(0))
    np.testing.assert_allclose(found.among, R)
    np.testing.assert_allclose(found.with_columns, R - np.diag(s))
    both = np.block([[R, found.with_columns.T], [found.with_columns, found.among]])
    assert np.linalg.eigvalsh(both)[0] > 0


def test_products_of_model_copies_are_distributed_as_those_of_copies_that_are_made() -> None:
    rng, n, d = np.random.default_rng(0), 40, 3
    rows = np.column_stack([rng.normal(size=n), rng.normal(size=(n, d)) @ rng.normal(size=(d, d))])
    rows -= rows.mean(axis=0)
    rows /= rows.std(axis=0)
    y, X = rows[:, 0], rows[:, 1:]
    R, with_y = X.T @ X / n, X.T @ y / n
    s, _ = largest_distances(R)
    spread = np.linalg.cholesky(2 * np.diag(s) - s[:, None] * np.linalg.inv(R) * s)
    made, told = [], []
    for seed in range(500):
        E = rng.normal(size=(n, d)) @ spread.T
        copies = X - X @ np.linalg.solve(R, np.diag(s)) + E - E.mean(axis=0)
        made.append(np.r_[copies.T @ y, (copies.T @ X).ravel(), (copies.T @ copies).ravel()] / n)
        found = model_copies(R, with_y, float(n), s, np.random.RandomState(seed))
        told.append(np.r_[found.with_y, found.with_columns.ravel(), found.among.ravel()])
    one, two = np.array(made), np.array(told)
    error = np.sqrt((one.var(axis=0) + two.var(axis=0)) / 500)
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 4.5 * error).all()
    np.testing.assert_allclose(two.std(axis=0), one.std(axis=0), rtol=0.25)
    np.testing.assert_allclose(np.cov(two.T), np.cov(one.T), atol=0.25 * float(one.var(axis=0).max()))
