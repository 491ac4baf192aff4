"""Predictions of the nearest rows against scikit-learn, and what it does not have: weights, leave-one-out, kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import neighbors as reference
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from certifit import KNeighborsClassifier, KNeighborsRegressor


def data(n: int = 90, d: int = 3, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    value = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    return X, value, np.array(["a", "b", "c"])[np.digitize(value, [-0.4, 0.4])]


@pytest.mark.parametrize("weights", ["uniform", "distance", None, lambda d: np.exp(-d)])
@pytest.mark.parametrize("k", [1, 5])
def test_predictions_are_those_of_scikit_learn(weights: Any, k: int) -> None:
    X, value, label = data()
    Q = np.vstack([data(seed=1)[0], X[:3]])  # some rows at distance zero
    both = np.column_stack([value, -2 * value])
    for y in (value, both):
        ours, theirs = (
            cls(n_neighbors=k, weights=weights).fit(X, y).predict(Q)
            for cls in (KNeighborsRegressor, reference.KNeighborsRegressor)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    for target in (label, np.column_stack([label, value > 0])):
        ours, theirs = (
            cls(n_neighbors=k, weights=weights).fit(X, target)
            for cls in (KNeighborsClassifier, reference.KNeighborsClassifier)
        )
        np.testing.assert_array_equal(ours.predict(Q), theirs.predict(Q))
        np.testing.assert_allclose(
            np.hstack([*ours.predict_proba(Q)]), np.hstack([*theirs.predict_proba(Q)]), atol=1e-12
        )


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_leave_one_out_errors_are_those_of_refits(weights: str) -> None:
    X, value, label = data(25)
    for model, y in ((KNeighborsRegressor, value), (KNeighborsClassifier, label)):
        found = model("loo", weights=weights, max_neighbors=12).fit(X, y)
        errors = []
        for k in range(1, 13):
            other = cross_val_predict(model(k, weights=weights), X, y, cv=LeaveOneOut())
            errors.append(np.mean(other != y) if y is label else np.mean((other - y) ** 2))
        np.testing.assert_allclose(found.loo_errors_, errors, rtol=1e-9, atol=1e-12)
        assert found.n_neighbors_ == np.flatnonzero(errors <= np.min(errors) * (1 + 1e-12))[-1] + 1
        assert found.certificate_.certified
        assert found.certificate_.objective == pytest.approx(np.min(errors))
        assert "leave-one-out" in found.certificate_.claim
        np.testing.assert_array_equal(found.predict(X), model(found.n_neighbors_, weights=weights).fit(X, y).predict(X))


@pytest.mark.parametrize("options", [{}, {"weights": "distance"}, {"metric": "manhattan"}])
def test_weights_are_copies_also_in_leave_one_out(options: dict[str, Any]) -> None:
    X, value, label = data(50)
    weight = np.random.default_rng(3).integers(0, 4, size=50).astype(float)
    copies = np.repeat(np.arange(50), weight.astype(int))
    for model, y in ((KNeighborsRegressor, value), (KNeighborsClassifier, label)):
        one = model("loo", max_neighbors=9, **options).fit(X, y, sample_weight=weight)
        other = model("loo", max_neighbors=9, **options).fit(X[copies], y[copies])
        np.testing.assert_allclose(one.loo_errors_, other.loo_errors_, rtol=1e-9, atol=1e-12)
        assert one.n_neighbors_ == other.n_neighbors_
        np.testing.assert_array_equal(one.predict(X), other.predict(X)) if y is label else np.testing.assert_allclose(
            one.predict(X), other.predict(X)
        )


def test_parts_of_copies_fill_up_the_count() -> None:
    """Two neighbors of weight 1.5: of the second, half a copy is asked."""
    model = KNeighborsRegressor(2).fit([[0.0], [1.0], [5.0]], [1.0, 3.0, 100.0], sample_weight=[1.5, 1.5, 1.0])
    assert model.predict([[0.1]])[0] == pytest.approx((1.5 * 1.0 + 0.5 * 3.0) / 2)


def test_rows_of_weight_zero_leave_a_matrix_of_distances() -> None:
    X, value, _ = data(30)
    weight = np.ones(30)
    weight[::4] = 0
    D = np.abs(X[:, None] - X[None]).sum(axis=2)
    one = KNeighborsRegressor(3, metric="precomputed").fit(D, value, sample_weight=weight)
    other = KNeighborsRegressor(3, metric="manhattan").fit(X, value, sample_weight=weight)
    np.testing.assert_allclose(one.predict(D), other.predict(X))


def test_all_distances_equal_and_one_row() -> None:
    X = np.ones((6, 2))
    y = np.array([0, 1, 0, 0, 1, 1])
    model = KNeighborsClassifier(3, weights="distance").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[:1]), [[2 / 3, 1 / 3]])  # the first three rows
    assert KNeighborsClassifier("loo").fit([[1.0]], ["only"]).predict([[3.0]]).tolist() == ["only"]
    assert KNeighborsRegressor(1).fit([[1.0]], [2.0]).predict([[3.0]]).tolist() == [2.0]


def test_bad_weights_of_neighbors_are_refused() -> None:
    X, value, _ = data(20)
    for wrong, told in (
        (lambda d: d[:, :1], "shape"),
        (lambda d: -d, "negative"),
        (lambda d: np.full_like(d, np.nan), "not finite"),
        (lambda d: np.zeros_like(d), "no weight to any neighbor"),
    ):
        with pytest.raises(ValueError, match=told):
            KNeighborsRegressor(3, weights=wrong).fit(X, value).predict(X)
    with pytest.raises(ValueError, match="n_samples_fit = 20"):
        KNeighborsRegressor(21).fit(X, value).predict(X)


def test_missing_values_and_sparse_rows() -> None:
    X, value, _ = data(60, 5)
    holes = np.where(np.random.default_rng(5).random(X.shape) < 0.2, np.nan, X)
    ours, theirs = (
        cls(4, metric="nan_euclidean").fit(holes, value).predict(holes)
        for cls in (KNeighborsRegressor, reference.KNeighborsRegressor)
    )
    np.testing.assert_allclose(ours, theirs)


def test_a_plain_fit_claims_nothing() -> None:
    X, value, _ = data()
    certificate = KNeighborsRegressor().fit(X, value).certificate_
    assert certificate.kind == "none"
    assert "found exactly" in certificate.note
