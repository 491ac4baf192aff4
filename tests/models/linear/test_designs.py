"""Linear models on what is no matrix: a design that the model makes of X, and rows that are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from certifit import LinearModel
from certifit.losses import LOSSES
from certifit.representation.design.design import Design


class Rows(Design):
    """Rows that a function makes of those of a matrix."""

    dtype = np.dtype(np.float64)

    def __init__(self, X: np.ndarray, made: Callable[[np.ndarray], np.ndarray]) -> None:
        self.given, self.made = X, made

    @property
    def shape(self) -> tuple[int, int]:
        return self.given.shape[0], self.made(self.given[:1]).shape[1]

    def dense_rows(self, rows: slice) -> np.ndarray:
        return self.made(self.given[rows])


def with_products(X: np.ndarray) -> np.ndarray:
    """The columns, and the product of any two."""
    first, second = np.triu_indices(X.shape[1])
    return np.hstack([X, X[:, first] * X[:, second]])


class PairwiseModel(LinearModel):
    """Any loss with any penalty on columns and on products of two."""

    def _design(self, X: np.ndarray) -> Design:
        return Rows(X, with_products)


def data(loss: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first 40 rows are twice as many copies: equal rows are merged where the optimum need not be unique."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 3)), np.where(np.arange(60) < 40, 2, 1), axis=0)
    y = X[:, 0] * X[:, 1] + rng.normal(size=100)
    y = np.asarray(y > 0, dtype=float) if LOSSES[loss].task == "binary" else np.exp(np.clip(y, -2.0, 2.0))
    return X, y, rng.integers(1, 3, size=100).astype(float)


# The perceptron's is zero at a constant score, and nobody fits it.
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "perceptron"])
def test_a_model_on_a_design_of_its_own(loss: str, penalty: str) -> None:
    X, y, weight = data(loss)
    settings: dict[str, Any] = {"loss": loss, "penalty": penalty, "alpha": 0.05}
    wanted = LinearModel(**settings, tol=1e-9, max_iter=5000).fit(with_products(X), y, sample_weight=weight)
    found = PairwiseModel(**settings, tol=1e-6).fit(X, y, sample_weight=weight)
    assert found.certificate_.certified, str(found.certificate_)
    unit = found.certificate_.gap / (found.certificate_.relative_gap or 1.0)
    assert found.certificate_.objective <= wanted.certificate_.objective * (1 + 1e-9) + 1e-6 * (unit or 1.0)
    assert found.certificate_.bound <= wanted.certificate_.objective * (1 + 1e-9)
    coef = found.coef_
    np.testing.assert_allclose(
        found.predict(X), found._loss.predict(with_products(X) @ coef + found.intercept_), rtol=1e-12
    )


@pytest.mark.parametrize("loss", ["absolute", "huber", "hinge", "logistic"])
def test_rows_that_are_read(loss: str) -> None:
    X, y, weight = data(loss)
    wanted = LinearModel(loss, "l1", alpha=0.01, tol=1e-9).fit(X, y, sample_weight=weight)
    read = LinearModel(loss, "l1", alpha=0.01, tol=1e-5)._fit_arrays(Rows(X, np.array), y, weight)
    assert read.certificate_.certified
    assert read.certificate_.objective == pytest.approx(wanted.certificate_.objective, rel=1e-4)
