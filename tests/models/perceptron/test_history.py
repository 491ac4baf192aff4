"""Errors of each epoch, and the bound from the widest margin."""

from __future__ import annotations

import numpy as np
import pytest

from certifit import LinearSVC, LinearSVR, MulticlassSVC, OutputCode, Perceptron, SGDClassifier


@pytest.mark.parametrize("mode", ["stochastic", "batch"])
def test_history_ends_with_the_error_of_the_plane(mode: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    model = Perceptron(mode=mode, max_iter=7, random_state=0).fit(X, y)
    assert model.history_.shape == (model.n_iter_,) == (7,)
    np.testing.assert_allclose(model.history_[-1], np.mean(model.predict(X) != y))


def test_history_of_several_classes_and_of_separable_rows() -> None:
    X = np.vstack([np.eye(3) * 5, np.eye(3) * 6])
    model = Perceptron(random_state=0).fit(X, [0, 1, 2, 0, 1, 2])
    assert [h[-1] for h in model.history_] == [0.0, 0.0, 0.0]


def test_bound_from_the_widest_margin() -> None:
    """Two rows (x, c) of signs ±1 in one dimension, by hand: γ is half the distance of s·x̃ from zero."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 2))
    y = (X @ [1.0, 0.5] > 0).astype(int)
    X += 0.3 * np.where(y == 1, 1.0, -1.0)[:, None] * [1.0, 0.5]
    model = Perceptron(random_state=0).fit(X, y)
    tight = Perceptron.tightest_mistake_bound(X, y)
    assert model.n_mistakes_ <= tight * (1 + 1e-6) <= model.mistake_bound_ * (1 + 2e-6)
    widest = LinearSVC(alpha=0, fit_intercept=False, tol=1e-9).fit(X, y)
    by_svm = (X**2).sum(axis=1).max() / widest.margin_**2
    np.testing.assert_allclose(Perceptron.tightest_mistake_bound(X, y, fit_intercept=False), by_svm, rtol=1e-6)
    assert Perceptron.tightest_mistake_bound(np.vstack([X, -X]), np.concatenate([y, y])) == np.inf


def test_support_vectors_are_the_rows_that_support() -> None:
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(50, 3)), (np.arange(50) % 4 > 0).astype(float)
    y = (X[:, 0] > 0.2).astype(int) + (X[:, 1] > 0.5)
    for model in (LinearSVC(alpha=0.05).fit(X, y, sample_weight=weight), LinearSVR().fit(X, X[:, 0], weight)):
        np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
        assert 0 < len(model.support_) < 50
    model = MulticlassSVC(alpha=0.05).fit(X, y)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


def test_bits_are_a_code() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=60)
    X = np.eye(3)[y] + 0.1 * rng.normal(size=(60, 3))
    bits = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    models = [OutputCode(SGDClassifier(random_state=0), code=code).fit(X, y) for code in (bits, 2 * bits - 1)]
    np.testing.assert_array_equal(models[0].code_, models[1].code_)
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
