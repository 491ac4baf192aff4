"""Best subsets against the enumeration of all of them, and their bounds against the truth."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from certifit import BestSubset
from certifit.models.selection.subset.least_squares import best_subsets, separable_part
from certifit.models.selection.units import InUnits


def enumerate_all(X: Any, y: Any, weight: Any, most: int) -> np.ndarray[Any, Any]:
    """The least mean ½(y − f)² of each size, by a fit of every subset."""
    root = np.sqrt(weight / weight.sum())
    ones, best = np.ones((X.shape[0], 1)), []
    for size in range(most + 1):
        errors = []
        for chosen in itertools.combinations(range(X.shape[1]), size):
            A = np.hstack([ones, X[:, list(chosen)]]) * root[:, None]
            left = y * root - A @ np.linalg.lstsq(A, y * root, rcond=None)[0]
            errors.append(0.5 * left @ left)
        best.append(min(errors))
    return np.array(best)


def rows(kind: str, n: int = 40, d: int = 8) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(len(kind))
    X = rng.normal(size=(n, d))
    if kind == "correlated":
        X += 4 * rng.normal(size=(n, 1))
    if kind == "dependent":
        X[:, 3], X[:, 5], X[:, 6] = X[:, 1], X[:, 0] - X[:, 2], 7.0
    if kind == "wide":
        X = X[:6]
    y = X[:, 0] - X[:, 2] + 0.5 * X[:, 4] + 1.5 * rng.normal(size=X.shape[0])
    return X, y, rng.integers(1, 4, size=X.shape[0]).astype(float)


@pytest.mark.parametrize("kind", ["plain", "correlated", "dependent", "wide"])
def test_every_size_is_the_best_of_all(kind: str) -> None:
    X, y, weight = rows(kind)
    model = BestSubset(max_size=None, choose="size").fit(X, y, sample_weight=weight)
    truth = enumerate_all(X, y, weight, X.shape[1])
    np.testing.assert_allclose(model.path_.objectives, truth, rtol=1e-9, atol=1e-12)
    assert (model.path_.bounds <= truth + 1e-15).all()
    assert model.certificate_.certified
    reached = 0.5 * np.average((y - model.predict(X)) ** 2, weights=weight)
    assert reached == pytest.approx(model.certificate_.objective, abs=1e-12)


@pytest.mark.parametrize("seed", [40, 67, 113])
def test_columns_that_hardly_differ_are_bounded_by_what_they_may_explain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, alike = 30, 10.0 ** rng.uniform(-7, -6)
    X = rng.normal(size=(n, 4))
    X[:, 1] = X[:, 0] + alike * rng.normal(size=n)
    y = (X[:, 1] - X[:, 0]) / alike + 0.1 * rng.normal(size=n)
    basis = np.linalg.qr(np.c_[np.ones(n), X[:, 0], (X[:, 1] - X[:, 0]) / alike])[0]
    left = y - basis @ (basis.T @ y)
    truth = 0.5 * float(left @ left) / n
    model = BestSubset(max_size=2, choose="size")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.certificate_.bound <= truth * (1 + 1e-9)
    assert model.certificate_.certified == (model.certificate_.objective <= truth * (1 + 1e-6))
    # Columns of single precision, rounded as they are, are combinations of each other: that is no part of them.
    Z = np.c_[X[:, [0, 2]], X[:, 0] + X[:, 2]].astype(np.float32)
    assert BestSubset(max_size=3, choose="size").fit(Z, y.astype(np.float32)).certificate_.certified


def test_a_stopped_search_still_bounds_the_best() -> None:
    X, y, weight = rows("correlated", d=12)
    with pytest.warns(ConvergenceWarning, match="stopped after max_nodes=3"):
        model = BestSubset(max_size=6, max_nodes=3, choose="size").fit(X, y, sample_weight=weight)
    truth = enumerate_all(X, y, weight, 6)
    assert (model.path_.bounds <= truth + 1e-15).all()
    assert (model.path_.objectives >= truth - 1e-12).all()
    assert not model.certificate_.certified


@pytest.mark.parametrize("price", [0.0, 0.02, 0.3, 10.0])
def test_a_price_finds_the_least_score(price: float) -> None:
    X, y, weight = rows("plain")
    model = BestSubset(max_size=None, choose=price).fit(X, y, sample_weight=weight)
    best = (enumerate_all(X, y, weight, 8) + price * np.arange(9)).min()
    assert model.certificate_.objective == pytest.approx(best, rel=1e-9)
    assert model.certificate_.bound <= best * (1 + 1e-12)
    assert model.certificate_.certified


def test_criteria_choose_the_size() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    y = X[:, 2] + 0.3 * X[:, 5] + rng.normal(size=300)
    bic, aic = (BestSubset(choose=name).fit(X, y) for name in ("bic", "aic"))
    shares = bic.path_.objectives
    for model, cost in ((bic, np.log(300)), (aic, 2.0)):
        assert model.support_.sum() == np.argmin(300 * np.log(shares) + cost * np.arange(11))
    assert bic.support_.sum() <= aic.support_.sum()


def test_the_separable_part_lies_below_the_matrix() -> None:
    for kind in ("plain", "correlated"):
        X, y, weight = rows(kind)
        correlation = InUnits.of(X, y, weight).gram()[1:, 1:]
        delta, smallest = separable_part(correlation)
        assert np.linalg.eigvalsh(correlation - np.diag(delta))[0] >= -1e-14
        assert delta.min() > 0
        assert smallest == pytest.approx(np.linalg.eigvalsh(correlation)[0])


def test_forty_columns_are_closed() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 40))
    y = 0.3 * X[:, :7].sum(axis=1) + rng.normal(size=500)
    supports, shares, bounds, nodes = best_subsets(InUnits.of(X, y, np.ones(500)).gram(), 10)
    assert supports[7, :7].all()
    assert (shares - bounds < 1e-9).all()
    assert nodes < 100_000


def test_subset_selects_and_draws() -> None:
    X, y, _ = rows("plain")
    model = BestSubset(max_size=3, choose="size").fit(X, y)
    kept = model.transform(X)
    np.testing.assert_array_equal(kept, X[:, model.support_])
    np.testing.assert_array_equal(model.inverse_transform(kept)[:, model.support_], kept)
    assert list(model.get_feature_names_out()) == [f"x{j}" for j in model.get_support(indices=True)]
    with pytest.raises(ValueError, match="3 were selected"):
        model.inverse_transform(X)
    assert len(model.plot().lines) == 2


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_coefficients_beyond_the_range_are_refused(loss: str) -> None:
    rng = np.random.default_rng(0)
    X, y = 1e-300 * rng.normal(size=(40, 3)), np.exp(rng.normal(size=40))
    with pytest.raises(ValueError, match="beyond the range of double precision"):
        BestSubset(loss=loss, choose="size").fit(1e-10 * X, 1e150 * y if loss == "squared" else y)
