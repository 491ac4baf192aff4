"""Leave-one-out in closed form against refits without each row."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from certifit import LinearRegression, Ridge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 4))
Y = X @ [1.0, -2.0, 0.0, 0.5] + RNG.normal(size=25)
MODELS = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    Ridge(alpha=0.3),
    Ridge(alpha=[0.1, 1.0, 0.0, 5.0]),
    Ridge(alpha=2.0, fit_intercept=False),
]


def refitted(model: object, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    found = []
    for i in range(y.shape[0]):
        left = np.ones(y.shape[0]) if weight is None else weight.astype(float).copy()
        left[i] -= 1.0
        found.append(clone(model).fit(X, y, sample_weight=left).predict(X[i : i + 1])[0])
    return np.array(found)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_it_is_the_refit_without_the_row(model: Ridge) -> None:
    np.testing.assert_allclose(model.loo_predictions(X, Y), refitted(model, X, Y), rtol=1e-7)
    assert not hasattr(model, "coef_")


def test_rows_of_weight_two_and_sparse_and_several_targets() -> None:
    twice = np.full(25, 2)
    model = Ridge(alpha=0.3)
    np.testing.assert_allclose(model.loo_predictions(X, Y, twice), refitted(model, X, Y, twice), rtol=1e-7)
    np.testing.assert_allclose(model.loo_predictions(sp.csr_matrix(X), Y), model.loo_predictions(X, Y), rtol=1e-7)
    both = model.loo_predictions(X, np.column_stack([Y, -2 * Y]))
    np.testing.assert_allclose(both, np.column_stack([model.loo_predictions(X, Y), -2 * model.loo_predictions(X, Y)]))


def test_what_has_no_answer() -> None:
    alone = np.zeros((4, 1))
    alone[0] = 1.0
    assert np.isinf(LinearRegression().loo_predictions(alone, [1.0, 2.0, 3.0, 4.0])[0])
    with pytest.raises(ValueError, match="no closed form"):
        Ridge(positive=True).loo_predictions(X, Y)
    with pytest.raises(ValueError, match="2"):
        Ridge().loo_predictions(X[:1], Y[:1])
