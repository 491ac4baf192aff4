"""Equal weights of least squares are one number: the same fit as from an array of them, and nothing beside X and y in memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit import LinearModel, LinearRegression, Ridge
from certifit._native import products
from certifit.data.gate import equal_weights, is_repeated


def data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 1.0
    return X, X[:, 0] + rng.normal(size=n) - 0.5


@pytest.mark.parametrize(
    "model", [LinearRegression(), LinearRegression(fit_intercept=False), Ridge(alpha=0.1)], ids=repr
)
def test_a_tall_fit_has_no_vector_beside_its_data(model: Any) -> None:
    X, y = data(200_000, 2)
    model.fit(X, y)  # what is imported late counts once
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.25 * y.nbytes
    assert model.certificate_.certified


KINDS: dict[str, Any] = {
    "C": np.asarray, "F": np.asfortranarray, "csr": sp.csr_array, "float32": np.float32, "huge": lambda X: X * 1e60,
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("shape", [(60, 3), (30, 60), (700, 600), (300, 1)])
def test_an_array_of_ones_gives_the_same(kind: Any, shape: tuple[int, int]) -> None:
    X, y = data(*shape)
    X = X.astype(np.float32) if kind is np.float32 else kind(X)
    for model in (LinearRegression, Ridge, lambda: LinearModel("squared", "l2", alpha=0.1, solver="closed_form")):
        one, many = model().fit(X, y), model().fit(X, y, np.ones(len(y)))
        np.testing.assert_allclose(one.coef_, many.coef_, rtol=1e-9, atol=1e-9 * np.abs(many.coef_).max())
        assert one.certificate_.certified
        assert one.certificate_.objective == pytest.approx(many.certificate_.objective, rel=1e-9)


def test_std_errors_know_how_many_rows_there_are() -> None:
    X, y = data(80, 3)
    one, many = LinearRegression().fit(X, y).summary(), LinearRegression().fit(X, y, np.ones(80)).summary()
    np.testing.assert_allclose(one.std_error, many.std_error, rtol=1e-12)
    np.testing.assert_allclose(one.std_error[1:], _errors(X, y), rtol=1e-10)


def _errors(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    A = np.column_stack([np.ones(len(y)), X]).astype(np.longdouble)
    inverse = np.linalg.inv((A.T @ A).astype(np.float64))
    r = y - A.astype(np.float64) @ (inverse @ (A.T @ y).astype(np.float64))
    return np.sqrt(np.diag(inverse) * (r @ r) / (len(y) - 4))[1:]


def test_native_code_reads_one_weight() -> None:
    X, y = data(100, 4)
    one = products.squares(X, y, np.full(1, 0.01), np.zeros(4), True, 1, np.inf)
    many = products.squares(X, y, np.full(100, 0.01), np.zeros(4), True, 1, np.inf)
    assert one is not None
    np.testing.assert_array_equal(one[0], many[0])
    with pytest.raises(ValueError, match="p has length 2"):
        products.squares(X, y, np.full(2, 0.01), np.zeros(4), True, 1, np.inf)


def test_one_number_looks_like_an_array() -> None:
    weights = equal_weights(0.25, 4)
    assert is_repeated(weights)
    assert weights.sum() == 1.0
    assert not is_repeated(np.ones(4))
