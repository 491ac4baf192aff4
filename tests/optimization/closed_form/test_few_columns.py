"""Least squares of few ordinary columns, beside the general way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.optimization.closed_form import least_squares
from certifit.optimization.closed_form.few_columns import solve_few
from certifit.optimization.closed_form.least_squares import solve_least_squares


def data(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1)) + 0.3
    p = rng.integers(1, 4, n).astype(float)
    return X, X @ rng.normal(size=d) + rng.normal(size=n), p / p.sum()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize(("n", "d"), [(500, 5), (4000, 1), (3000, 60)])
def test_the_general_way_finds_the_same(
    n: int, d: int, l2: float, fit_intercept: bool, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, p = data(n, d)
    X, given = np.array(X, order=order), {"l2": np.full(d, l2), "fit_intercept": fit_intercept}
    assert solve_few(X, y, p, threads=1, **given) is not None
    found = solve_least_squares(X, y, p, keep_inverse=True, **given)
    monkeypatch.setattr(least_squares, "solve_few", lambda *_, **__: None)
    wanted = solve_least_squares(X, y, p, keep_inverse=True, **given)
    assert found.inverse is not None
    assert wanted.inverse is not None
    np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(found.inverse.matrix, wanted.inverse.matrix, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found.inverse.mean, wanted.inverse.mean)
    assert found.intercept == pytest.approx(wanted.intercept, rel=1e-12, abs=1e-14)
    assert found.objective == pytest.approx(wanted.objective, rel=1e-13)
    assert found.condition == pytest.approx(wanted.condition, rel=1e-9)
    assert (found.rank, found.method, found.note) == (wanted.rank, wanted.method, wanted.note)
    assert 0.0 <= found.gap <= 1e-25 * found.objective
    assert found.digits == pytest.approx(wanted.digits, abs=0.5)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("far", [30.0, -1e3, 1e6])
def test_targets_far_from_zero_are_taken_about_their_mean(
    far: float, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, p = data(400, 3)
    y = np.sort(y) + far
    rows = sp.csr_array(X) if sparse else X
    given = {"l2": np.full(3, 0.1), "fit_intercept": True}
    found = solve_few(rows, y, p, threads=1, **given)
    assert found is not None
    monkeypatch.setattr(least_squares, "solve_few", lambda *_, **__: None)
    wanted = solve_least_squares(X, y, p, **given)
    np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-13 * abs(far))
    assert found.intercept == pytest.approx(wanted.intercept, rel=1e-14)
    assert found.objective == pytest.approx(wanted.objective, rel=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_columns_of_zeros_have_no_part_in_it(l2: float, sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, p = data(400, 5)
    X = X * [1.0, 0.0, 1.0, 0.0, 1.0]
    rows = sp.csr_array(X) if sparse else X
    given = {"l2": np.full(5, l2), "fit_intercept": True}
    few = solve_few(rows, y, p, threads=1, **given)
    assert few is not None
    found = solve_least_squares(rows, y, p, keep_inverse=True, **given)
    monkeypatch.setattr(least_squares, "solve_few", lambda *_, **__: None)
    wanted = solve_least_squares(rows, y, p, keep_inverse=True, **given)
    assert (found.coef[[1, 3]] == 0.0).all()
    np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-12)
    assert found.intercept == pytest.approx(wanted.intercept, rel=1e-12)
    assert found.inverse is not None
    assert wanted.inverse is not None
    np.testing.assert_allclose(found.inverse.matrix, wanted.inverse.matrix, rtol=1e-11, atol=1e-13)
    assert (found.rank, found.note, found.inverse.rank) == (3, wanted.note, wanted.inverse.rank)
    assert "2 of 5 columns are constant" in found.note


@pytest.mark.parametrize(("n", "d", "l2"), [(166, 7, 0.0), (300, 40, 0.0), (103, 60, 1e-4), (100_000, 2, 0.0)])
def test_columns_that_share_a_factor_have_sums_in_twice_the_precision(
    n: int, d: int, l2: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n)
    X = 1e-3 * rng.normal(size=(n, d)) + rng.normal(size=(n, 1)) + 5.0
    y, p, given = (
        X @ rng.normal(size=d) + rng.normal(size=n),
        np.full(n, 1.0 / n),
        {"l2": np.full(d, l2), "fit_intercept": True},
    )
    found = solve_few(X, y, p, threads=1, **given)
    assert found is not None
    assert found.digits > 14.0
    monkeypatch.setattr(least_squares, "solve_few", lambda *_, **__: None)
    wanted = solve_least_squares(X, y, p, **given)
    np.testing.assert_allclose(found.coef, wanted.coef, rtol=1e-13, atol=1e-15 * np.abs(wanted.coef).max())
    assert found.intercept == pytest.approx(wanted.intercept, rel=1e-13)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X * [1.0, 1e-200, 1.0], y),  # a column whose squares vanish
        lambda X, y: (X * 0.0, y),
        lambda X, y: (X * [0.0, 1.0, 1.0] + [1.0, 0.0, 0.0], y),  # a constant one
        lambda X, y: (X + 1e5, y),  # far from zero
        lambda X, y: (np.column_stack([X, X[:, 0] + 1e-9 * X[:, 1]]), y),  # nearly equal
        lambda X, y: (X * 1e40, y),
        lambda X, y: (X, np.zeros_like(y)),
        lambda X, y: (X.astype(np.float32), y),
        lambda X, y: (X[::2], y[::2]),
        lambda X, y: (X[:3], y[:3]),
    ],
)
def test_what_is_not_ordinary_is_left_to_the_general_way(change: Any) -> None:
    X, y = change(*data(400, 3)[:2])
    given = {"l2": np.zeros(X.shape[1]), "fit_intercept": True, "threads": 1}
    with np.errstate(all="ignore"):
        assert solve_few(X, y, np.full(y.shape[0], 1.0 / y.shape[0]), **given) is None
