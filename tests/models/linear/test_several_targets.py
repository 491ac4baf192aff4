"""y of shape (n, K): one fit for each target, as scikit-learn's do, from one factorization where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model as reference

from certifit import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from certifit.optimization.closed_form import least_squares

MODELS: list[Any] = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    LinearRegression(positive=True),
    Ridge(0.1),
    Ridge(0.1, solver="newton"),
    Lasso(0.1),
    ElasticNet(0.1),
]


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5)) + 1.0
    Y = X @ rng.normal(size=(5, 3)) * [1.0, 1e3, 1e-3] + rng.normal(size=(60, 3))
    return X, Y, rng.integers(0, 3, 60).astype(float)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=lambda f: f.__name__)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_every_target_has_the_fit_it_would_have_alone(model: Any, kind: Any) -> None:
    X, Y, s = data()
    model.fit(kind(X), Y, sample_weight=s)
    assert model.coef_.shape == (3, 5)
    assert model.intercept_.shape == (3,)
    together = model.certificate_
    predicted, coef, intercept = model.predict(kind(X)), model.coef_, model.intercept_
    assert predicted.shape == (60, 3)
    alone = [type(model)(**model.get_params()).fit(kind(X), Y[:, k], sample_weight=s) for k in range(3)]
    for k, one in enumerate(alone):
        np.testing.assert_allclose(coef[k], one.coef_, rtol=1e-9, atol=1e-9 * np.abs(one.coef_).max())
        assert intercept[k] == pytest.approx(one.intercept_, rel=1e-8, abs=1e-9)
        np.testing.assert_allclose(predicted[:, k], one.predict(kind(X)), rtol=1e-7, atol=1e-9)
    assert together.certified
    assert together.objective == pytest.approx(sum(one.certificate_.objective for one in alone), rel=1e-9)
    assert together.bound <= together.objective * (1 + 1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LinearRegression(), reference.LinearRegression()),
        (Ridge(0.1), reference.Ridge(0.1 * 60)),
        (Lasso(0.1, tol=1e-10), reference.Lasso(0.1, tol=1e-12)),
        (ElasticNet(0.1, tol=1e-10), reference.ElasticNet(0.1, tol=1e-12)),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("columns", [1, 3])
def test_shapes_and_numbers_are_those_of_scikit_learn(ours: Any, theirs: Any, columns: int) -> None:
    X, Y, _ = data(1)
    Y = Y[:, :columns] / np.abs(Y[:, :columns]).max(axis=0)
    ours.fit(X, Y)
    theirs.fit(X, Y)
    np.testing.assert_allclose(ours.coef_, np.reshape(theirs.coef_, ours.coef_.shape), atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X).reshape(60, columns), atol=1e-6)
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y), abs=1e-6)


def test_least_squares_factors_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    factorize = least_squares.factorize
    monkeypatch.setattr(least_squares, "factorize", lambda *a, **k: made.append(1) or factorize(*a, **k))
    X, Y, _ = data(2)
    LinearRegression().fit(X, Y)
    assert len(made) == 1


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", ["deficient", "wide", "wide and penalized", "ill conditioned"])
def test_every_factorization_takes_several_targets(shape: str, fit_intercept: bool) -> None:
    rng = np.random.default_rng(3)
    n, d = (20, 30) if "wide" in shape else (40, 6)
    X = rng.normal(size=(n, d))
    if shape == "deficient":
        X[:, 1] = X[:, 0]
    if shape == "ill conditioned":
        X[:, 1] = X[:, 0] + 1e-9 * X[:, 1]
    Y, p = rng.normal(size=(n, 4)), np.full(n, 1.0 / n)
    l2 = np.full(d, 0.1) if "penalized" in shape else np.zeros(d)
    many = least_squares.solve_targets(X, Y, p, l2=l2, fit_intercept=fit_intercept)
    for k, found in enumerate(many):
        one = least_squares.solve_least_squares(X, Y[:, k], p, l2=l2, fit_intercept=fit_intercept)
        assert (found.method, found.rank) == (one.method, one.rank)
        np.testing.assert_allclose(found.coef, one.coef, rtol=1e-6, atol=1e-7 * np.abs(one.coef).max())


def test_a_constant_target_among_others() -> None:
    X, Y, _ = data(4)
    Y[:, 1] = 3.0
    model = Lasso(0.01).fit(X, Y)
    assert not model.coef_[1].any()
    assert model.intercept_[1] == pytest.approx(3.0, rel=1e-14)
    assert model.certificate_.certified


def test_what_is_refused() -> None:
    X, Y, _ = data()
    with pytest.raises(ValueError, match="1d array"):
        LogisticRegression().fit(X, np.sign(Y))
    with pytest.raises(ValueError, match="several targets"):
        LinearRegression().fit(X, Y).summary()
    Y[7, 2] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        Ridge().fit(X, Y)
