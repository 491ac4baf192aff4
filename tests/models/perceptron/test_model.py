"""Perceptrons against plain transcriptions, Novikoff's bound, and the proofs of separability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from certifit import MulticlassPerceptron, Perceptron, PocketPerceptron
from certifit.models.margin.separability import strictly_separable

MODELS = [Perceptron, PocketPerceptron, MulticlassPerceptron]


def separable(n=60, d=4, seed=0, gap=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * n, d))
    truth = rng.normal(size=d) / np.sqrt(d)
    score = X @ truth + 0.2
    X, score = X[np.abs(score) > gap][:n], score[np.abs(score) > gap][:n]
    return X, (score > 0).astype(int)


def constant_column(X):
    return 2.0 ** np.floor(np.log2(np.sqrt((X * X).sum(axis=1)).max()))


def transcription(X, y, epochs, averaged):
    """Rows in the given order, as the definition says."""
    c, sign = constant_column(X), 2 * y - 1
    w, total, steps, mistakes = np.zeros(X.shape[1] + 1), np.zeros(X.shape[1] + 1), 0, 0
    rows = np.column_stack([X, np.full(len(X), c)])
    for _ in range(epochs):
        made = 0
        for x, s in zip(rows, sign, strict=True):
            if s * (x @ w) <= 0:
                w, made = w + s * x, made + 1
            total, steps = total + w, steps + 1
        mistakes += made
        if made == 0:
            break
    w = total / steps if averaged else w
    return w[:-1], c * w[-1], mistakes


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("averaged", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
def test_the_perceptron_is_its_transcription(averaged, noisy, sparse):
    X, y = separable()
    y = np.where(np.arange(len(y)) % 9 == 0, 1 - y, y) if noisy else y
    model = Perceptron(shuffle=False, averaged=averaged, max_iter=30).fit(sp.csr_array(X) if sparse else X, y)
    w, b, mistakes = transcription(X, y, 30, averaged)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.intercept_[0], b, rtol=1e-10, atol=1e-12)
    assert model.n_mistakes_ == mistakes


@pytest.mark.parametrize("mode", ["stochastic", "batch"])
@given(seed=st.integers(0, 10_000), gap=st.floats(0.05, 1.0))
def test_mistakes_stay_below_novikoffs_bound(mode, seed, gap):
    X, y = separable(seed=seed, gap=gap)
    if len(np.unique(y)) < 2:
        return
    model = Perceptron(mode=mode, max_iter=20_000, random_state=seed).fit(X, y)
    assert model.certificate_.kind == "witness"
    assert model.certificate_.certified
    assert model.certificate_.objective == model.certificate_.bound == 0.0
    assert (model.predict(X) == y).all()
    assert 0 < model.n_mistakes_ <= model.mistake_bound_ < np.inf
    distance = np.abs(X @ model.coef_[0] + model.intercept_[0]) / np.linalg.norm(model.coef_)
    assert model.margin_ == pytest.approx(distance.min())


def test_rows_that_no_plane_separates_get_a_proof():
    X, y = np.array([[-1.0], [0.0], [1.0]]), np.array([0, 1, 0])
    model = Perceptron(max_iter=20, random_state=0).fit(X, y)
    assert model.certificate_.kind == "none"
    assert not model.certificate_.certified
    assert "No separating plane exists" in model.certificate_.note
    assert model.mistake_bound_ == np.inf
    assert model.margin_ == 0
    assert strictly_separable(X, y, True) is False
    assert strictly_separable(X[:2], y[:2], True) is True


def test_too_few_epochs_are_not_called_inseparable():
    X, y = separable(gap=0.01, n=200)
    model = Perceptron(max_iter=1, random_state=0).fit(X, y)
    assert model.certificate_.kind == "none"
    assert "exists, but 1 epochs" in model.certificate_.note


def test_batches_follow_the_definition():
    X, y = separable()
    sign, c, w = 2 * y - 1, constant_column(X), np.zeros(X.shape[1] + 1)
    rows = np.column_stack([X, np.full(len(X), c)])
    for _ in range(7):
        wrong = sign * (rows @ w) <= 0
        w = w + (sign * wrong) @ rows / len(X)
    model = Perceptron(mode="batch", max_iter=7, shuffle=False).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], w[:-1], rtol=1e-9)
    np.testing.assert_allclose(model.intercept_[0], c * w[-1], rtol=1e-9)


def best_error(X, y, rng):
    """Least training error of a plane, by trying every plane through pairs of rows (two columns) and its sides."""
    best = 1.0
    for i in range(len(X)):
        for j in range(i):
            normal = np.array([X[j, 1] - X[i, 1], X[i, 0] - X[j, 0]])
            for shift in (1e-9, -1e-9):
                for tilt in (1e-9, -1e-9):
                    w = normal + tilt * np.array([-normal[1], normal[0]])
                    f = X @ w - w @ (0.5 * (X[i] + X[j])) + shift
                    error = np.mean((f > 0) != (y == 1))
                    best = min(best, error, 1 - error)
    return best


@pytest.mark.parametrize("start", ["zeros", "regression"])
def test_the_pocket_comes_near_the_least_error(start):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] + 0.6 * rng.normal(size=40) > 0).astype(int)
    model = PocketPerceptron(start=start, max_iter=500, random_state=0).fit(X, y)
    least = best_error(X, y, rng)
    assert model.error_ == pytest.approx(np.mean(model.predict(X) != y))
    assert least - 1e-12 <= model.error_ <= least + 0.051


def test_the_pocket_never_gets_worse_with_more_epochs():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, size=80)
    errors = [PocketPerceptron(max_iter=k, random_state=1).fit(X, y).error_ for k in (1, 3, 10, 30, 100)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] <= min(y.mean(), 1 - y.mean())


def test_the_pocket_of_weighted_rows_minimizes_weighted_error():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    heavy = PocketPerceptron(max_iter=200, random_state=0).fit(X, y, sample_weight=[1.0, 1.0, 5.0])
    assert heavy.predict([[2.0]]) == 0
    assert heavy.error_ == pytest.approx(1 / 7)


def test_prototypes_are_their_transcription():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 3, size=50)
    X = np.eye(3)[y] + 0.4 * rng.normal(size=(50, 3))
    c, W, mistakes = constant_column(X), np.zeros((3, 4)), 0
    rows = np.column_stack([X, np.full(50, c)])
    for _ in range(9):
        for x, k in zip(rows, y, strict=True):
            scores = W @ x
            others = np.where(np.arange(3) == k, -np.inf, scores)
            if scores[k] <= others.max():
                W[k] += x
                W[int(np.argmax(others))] -= x
                mistakes += 1
    model = MulticlassPerceptron(shuffle=False, max_iter=9).fit(X, y)
    np.testing.assert_allclose(model.coef_, W[:, :-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, c * W[:, -1], rtol=1e-10, atol=1e-12)
    assert model.n_mistakes_ == mistakes


def test_mistakes_of_prototypes_stay_below_their_bound():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 4, size=200)
    X = 3 * np.eye(4)[y] + rng.uniform(-1, 1, size=(200, 4))
    model = MulticlassPerceptron(random_state=0).fit(X, y)
    assert model.certificate_.kind == "witness"
    assert 0 < model.n_mistakes_ <= model.mistake_bound_ < np.inf


@pytest.mark.parametrize("cls", MODELS)
def test_units_of_x_change_no_decision(cls):
    X, y = separable(seed=3)
    plain = cls(random_state=0).fit(X, y)
    for scale in (1e-150, 2.0**-20, 2.0**30, 1e150):
        model = cls(random_state=0).fit(X * scale, y)
        np.testing.assert_array_equal(model.predict(X * scale), plain.predict(X))
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("cls", MODELS)
def test_weights_are_repetitions_and_order_is_nothing(cls):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, size=40)
    weight = rng.integers(0, 4, size=40)
    rows = rng.permutation(np.repeat(np.arange(40), weight))
    one = cls(random_state=0, max_iter=20).fit(X, y, sample_weight=weight)
    two = cls(random_state=0, max_iter=20).fit(X[rows], y[rows])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-12)


@pytest.mark.parametrize("cls", MODELS)
def test_labels_threads_precision_and_refusals(cls):
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(90, 3)), rng.choice(["red", "green", "blue"], size=90)
    one, two = (cls(random_state=0, max_iter=20, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert set(one.predict(X)) <= {"red", "green", "blue"}
    assert cls(random_state=0, max_iter=20).fit(X.astype(np.float32), y).coef_.dtype == np.float32
    with pytest.raises(ValueError, match="one class only"):
        cls().fit(X, np.ones(90))
    with pytest.raises(ValueError, match="max_iter"):
        cls(max_iter=0).fit(X, y)
    rare = np.where(np.arange(90) == 0, "rare", "usual")
    assert cls(random_state=0, max_iter=20).fit(X, rare).score(X, rare) > 0.9


@pytest.mark.parametrize("model", [Perceptron(averaged=True), Perceptron(), PocketPerceptron()], ids=repr)
@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float64, 1e-300), (np.float64, 1.0), (np.float64, 1e150), (np.float32, 1e-30), (np.float32, 1e30)],
)
@pytest.mark.parametrize("step", [1e-300, 1e150, 1e300])
def test_a_step_only_scales_whatever_its_size(model: Any, dtype: Any, size: float, step: float) -> None:
    """Coefficients and scores that would be beyond the range, or vanish, are kept in another unit."""
    rng = np.random.default_rng(0)
    X, y = (size * rng.normal(size=(60, 2))).astype(dtype), rng.integers(3, size=60)
    plain = clone(model).set_params(max_iter=20, random_state=0).fit(X, y)
    scaled = clone(model).set_params(max_iter=20, random_state=0, step=step).fit(X, y)
    assert np.isfinite(scaled.decision_function(X)).all()
    np.testing.assert_array_equal(scaled.predict(X), plain.predict(X))
