"""Every verdict on separability comes with a witness that holds, and the verdicts agree with an independent program."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from certifit import is_separable
from certifit.models.margin.separability import is_balanced, overlap_weights, strictly_separable


def lattice(seed: int, k: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Few distinct values: ties and rows on planes are common."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 25)), int(rng.integers(1, 4))
    X = rng.integers(-2, 3, size=(n, d)).astype(float)
    y = rng.integers(0, k, size=n)
    if seed % 2:
        y = (X @ rng.integers(-2, 3, size=(d, k)) + rng.integers(-1, 2, size=k)).argmax(axis=1)
    y[:k] = np.arange(k)
    return X, y


def oracle(X: np.ndarray, y: np.ndarray, fit_intercept: bool) -> str:
    """The kind, by the largest total margin inside a box, from another solver."""
    k = int(y.max()) + 1
    W, b = cp.Variable((k, X.shape[1])), cp.Variable(k)
    rows = [(W[y[i]] - W[j]) @ X[i] + b[y[i]] - b[j] for i in range(len(y)) for j in range(k) if j != y[i]]
    t = cp.Variable(len(rows))
    conditions = [cp.hstack(rows) >= t, t >= 0, t <= 1, cp.abs(W) <= 1e4, cp.abs(b) <= 1e4]
    cp.Problem(cp.Maximize(cp.sum(t)), conditions + ([] if fit_intercept else [b == 0])).solve(solver=cp.CLARABEL)
    ahead = np.asarray(t.value) > 0.5
    return "strict" if ahead.all() else "quasi" if ahead.any() else "no"


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_verdict_and_witness(seed: int, k: int, fit_intercept: bool) -> None:
    X, y = lattice(seed, k)
    found = is_separable(X, y, fit_intercept=fit_intercept)
    assert found.kind == oracle(X, y, fit_intercept)
    assert found.check()
    assert found.separable == (found.kind != "no")


@given(st.integers(0, 10_000), st.booleans())
def test_witness_on_random_data(seed: int, fit_intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(4, 60)), int(rng.integers(1, 6)), int(rng.integers(2, 4))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d)
    y = (X @ rng.normal(size=(d, k)) * (seed % 2) + rng.normal(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    assert is_separable(X, y, fit_intercept=fit_intercept).check()


def test_kinds() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert is_separable(X, [0, 0, 1, 1]).kind == "strict"
    assert is_separable(X, [0, 1, 0, 1]).kind == "no"
    assert is_separable(np.array([[0.0], [1.0], [1.0], [2.0]]), [0, 0, 1, 1]).kind == "quasi"
    assert is_separable(X + 1.0, [0, 0, 1, 1], fit_intercept=False).kind == "no"


@pytest.mark.parametrize("seed", range(10))
def test_rows_on_every_separating_plane_balance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.vstack([np.zeros((2, 3)), rng.normal(size=(30, 3))])
    y = np.concatenate([[0, 1], X[2:] @ [1.0, -2.0, 0.5] > 0]).astype(int)
    found = is_separable(X, y)
    assert found.kind == "quasi"
    assert found.check()
    assert found.weights is not None
    assert (found.weights[:2] > 0.0).all()
    assert found.weights[:2] == pytest.approx(0.5)
    assert not found.weights[2:].any()
    assert strictly_separable(X, y, True) is False
    assert strictly_separable(X[2:], y[2:], True) is True


def test_margin_is_a_distance() -> None:
    found = is_separable(np.array([[0.0, 0.0], [0.0, 2.0]]), ["a", "b"])
    assert 0.0 < found.margin <= 1.0 + 1e-9


def test_weights_do_not_matter_but_zero_drops() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0], [-5.0]])
    assert is_separable(X, [0, 0, 1, 1, 1], [1, 1, 1, 1, 0]).kind == "strict"
    assert is_separable(X, [0, 0, 1, 1, 1], [1, 2, 3, 4, 5]).kind == "no"


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_scale_and_sparse(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    for y, kind in (((X[:, 0] > 0.1).astype(int), "strict"), (rng.integers(0, 2, 40), "no")):
        for rows in (scale * X, sp.csr_array(scale * X)):
            found = is_separable(rows, y)
            assert found.kind == kind
            assert found.check()


@pytest.mark.parametrize("seed", [8, 22, 30])
def test_one_row_far_off(seed: int) -> None:
    """The linear program gave up on columns measured by their largest entry."""
    X, y = np.random.default_rng(seed).normal(size=(20, 2)), np.arange(20) % 3
    X[0] *= 1e9
    found = is_separable(X, y)
    assert found.check()
    assert found.kind == "no"


@pytest.mark.parametrize("seed", [2, 4, 9])
def test_a_column_far_from_zero(seed: int) -> None:
    """Likewise; and planes may be anywhere, so that the answer is that of the column without its level."""
    X, y = np.random.default_rng(seed).normal(size=(20, 4)), np.arange(20) % 4
    far = X.copy()
    far[:, 0] += 1e9
    found = is_separable(far, y)
    assert found.check()
    assert found.kind == is_separable(X, y).kind


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("level", [1e6, 1e9])
def test_classes_apart_are_apart_wherever_zero_is(level: float, seed: int) -> None:
    """Nothing balances them, also where all rows look alike beside their distance from zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2))
    y = (X @ rng.normal(size=2) > 0).astype(int)
    far = X + level
    found = is_separable(far, y)
    assert found.kind == "strict"
    assert found.check()
    alike = np.where(y == 1, 0.5 / y.sum(), 0.5 / (20 - y.sum()))
    assert not is_balanced(far, y, alike, True)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("rows", "kind"), [(6, "no"), (7, "quasi"), (10, "quasi")])
@pytest.mark.parametrize("d", [3, 60, 800])
def test_fewer_rows_than_columns(d: int, rows: int, kind: str, classes: int) -> None:
    """Equal rows of all classes, and others."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(1, d))] * 6 + [1e3 * rng.normal(size=(1, d)), rng.normal(size=(3, d))])[:rows]
    found = is_separable(X, np.arange(rows) % classes)
    assert found.kind == kind or d < 2 * rows
    assert found.check()


def test_a_false_witness_is_refused() -> None:
    import dataclasses

    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    no = is_separable(X, y)
    assert not dataclasses.replace(no, weights=np.full(4, 0.25)).check()
    assert not dataclasses.replace(no, kind="strict", direction=np.ones((1, 1)), intercept=np.zeros(1)).check()
    assert not dataclasses.replace(no, kind="quasi", direction=np.zeros((1, 1)), intercept=np.zeros(1)).check()


def test_a_fit_carries_the_proof_of_overlap() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    from certifit import LogisticRegression

    model = LogisticRegression(alpha=0.0).fit(X, y)
    weights = overlap_weights(X, y, np.full(300, 1 / 300), model.predict_proba(X)[:, 1], True)
    assert weights is not None
    signed = np.where(y == 1, weights, -weights)
    assert (weights > 0).all()
    np.testing.assert_allclose(signed @ np.column_stack([np.ones(300), X]), 0.0, atol=1e-15)


@pytest.mark.parametrize("y", [[0, 0, 0, 0], ["a"] * 4])
def test_one_class(y: Any) -> None:
    with pytest.raises(ValueError, match="2 classes"):
        is_separable(np.arange(4.0)[:, None], y)


def test_text() -> None:
    found = is_separable(np.array([[0.0], [1.0]]), [0, 1])
    assert "strictly separated" in str(found)
    assert "Not separable" in str(is_separable(np.array([[0.0], [1.0], [0.0], [1.0]]), [0, 1, 1, 0]))


def test_the_answer_is_a_truth_value():
    X = np.arange(4.0)[:, None]
    assert is_separable(X, [0, 0, 1, 1])
    assert not is_separable(X, [0, 1, 0, 1])
    assert is_separable(np.array([[0.0], [1.0], [1.0], [2.0]]), [0, 0, 1, 1])  # up to rows on the plane
