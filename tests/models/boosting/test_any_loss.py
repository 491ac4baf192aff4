"""Additive models of any loss on any learner."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from certifit import AdditiveModel, DecisionTreeRegressor, ForwardStagewise, KernelRidge, LinearModel, LinearRegression
from certifit.kernels import RBF
from certifit.losses import LOSSES, Huber


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=80), rng.integers(1, 3, 80).astype(float)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_every_loss_falls_by_a_line_search_of_each_term(data, name: str) -> None:
    """The coefficient of the first term is what a search of SciPy finds."""
    X, y, weight = data
    loss = LOSSES[name]()
    y = (y > 0).astype(float) if loss.task == "binary" else np.exp(y) if name in ("poisson", "gamma") else y + 9.0
    model = AdditiveModel(loss, n_estimators=8).fit(X, y, weight)
    if loss.trivial:
        assert model.train_loss_.size == 0 or model.train_loss_[-1] >= 0
        return
    p = weight / weight.sum()
    constant = p @ loss.value(y, np.full(80, model.intercept_))
    assert (np.diff([constant, *model.train_loss_]) < 0).all()
    term = model.estimators_[0].predict(X)
    best = minimize_scalar(lambda v: p @ loss.value(y, model.intercept_ + v * term), tol=1e-12)
    np.testing.assert_allclose(model.train_loss_[0], best.fun, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(p @ loss.value(y, model.raw_predict(X)), model.train_loss_[-1], rtol=1e-9)


def test_squared_loss_is_forward_stagewise(data) -> None:
    X, y, weight = data
    ours, theirs = (
        cls("squared", DecisionTreeRegressor(max_depth=2), n_estimators=12, learning_rate=0.3).fit(X, y, weight)
        for cls in (AdditiveModel, ForwardStagewise)
    )
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


def test_linear_learners_reach_the_linear_optimum(data) -> None:
    """Functional gradients on linear functions are gradient descent with exact line search."""
    X, y, weight = data
    model = AdditiveModel(Huber(0.5), LinearRegression(), n_estimators=300).fit(X, y, weight)
    best = LinearModel(Huber(0.5), None, tol=1e-12).fit(X, y, weight)
    np.testing.assert_allclose(model.train_loss_[-1], best.certificate_.objective, rtol=1e-5)


def test_kernel_learners_and_stages(data) -> None:
    X, y, weight = data
    model = AdditiveModel("logistic", KernelRidge(alpha=0.1, kernel=RBF(1.0)), n_estimators=10).fit(X, y > 0, weight)
    stages = list(model.staged_predict(X))
    np.testing.assert_allclose(stages[-1], model.predict(X))
    assert ((model.predict(X) >= 0) & (model.predict(X) <= 1)).all()
    assert np.mean((model.predict(X) > 0.5) == (y > 0)) > 0.9


def test_refusals(data) -> None:
    X, y, _ = data
    with pytest.raises(ValueError, match="y must be 0 or 1"):
        AdditiveModel("hinge").fit(X, y)
    with pytest.raises(ValueError, match="loss"):
        AdditiveModel("no such loss").fit(X, y)
