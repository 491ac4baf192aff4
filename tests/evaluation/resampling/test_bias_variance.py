"""Bias and variance: the notes' two points of a sine, closed forms of least squares, enumerated classifiers, and bad input."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import FitFailedWarning
from tests.learners import Mean

from certifit import DecisionTreeClassifier, LinearRegression, Ridge, bias_variance


class Line(RegressorMixin, BaseEstimator):
    """The line through two points."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Line:
        self.slope_ = (y[1] - y[0]) / (X[1, 0] - X[0, 0])
        self.level_ = y[0] - self.slope_ * X[0, 0]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.level_ + self.slope_ * X[:, 0])


class First(ClassifierMixin, BaseEstimator):
    """Says of every row what the first row was."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> First:
        self.classes_, self.said_ = np.unique(y), y[0]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), self.said_)


class Fails(DummyRegressor):
    """Fails on samples that start below zero, or on all."""

    def __init__(self, always: bool = False):
        super().__init__()
        self.always = always

    def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> Any:
        if self.always or X[0, 0] < 0.0:
            raise RuntimeError("below zero")
        return super().fit(X, y)


class Unsure(Mean):
    """Knows nothing of any row."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.full(len(X), np.nan)


def draw(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(-1.0, 1.0, size=(n, 1))


def sine(X: np.ndarray) -> np.ndarray:
    return np.sin(np.pi * X[:, 0])


@pytest.mark.parametrize(("model", "bias", "variance"), [(Mean(), 0.50, 0.25), (Line(), 0.21, 1.69)], ids=str)
def test_two_points_of_a_sine(model: Any, bias: float, variance: float) -> None:
    found = bias_variance(model, draw, target=sine, n_train=2, n_rounds=3000, n_test=1000)
    assert found.bias.value == pytest.approx(bias, abs=0.03)
    assert found.variance.value == pytest.approx(variance, rel=0.06)
    assert found.bias.low < bias < found.bias.high
    assert found.variance.low < variance < found.variance.high
    assert found.noise is not None
    assert found.noise.value == 0.0
    assert found.error.value == pytest.approx(found.bias.value + found.variance.value)


def test_least_squares_has_the_variance_of_theory() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4))
    found = bias_variance(
        LinearRegression(),
        lambda rng, n: X if n == 20 else X[rng.integers(0, 20, size=n)],
        target=lambda X: X.sum(axis=1),
        noise=0.5,
        n_train=20,
        n_test=2000,
        n_rounds=300,
    )
    # At the training rows the mean variance of a fit with 5 coefficients is 5/20 of the noise, and it has no bias.
    assert found.variance.low < 0.25 * 5 / 20 < found.variance.high
    assert found.bias.low < 0.0 < found.bias.high
    assert found.noise is not None
    assert found.noise.value == 0.25


def test_labels_against_enumeration() -> None:
    # One row decides: it is of class 1 with chance p. The usual answer is the likelier label, so there is no bias.
    p = 0.7
    found = bias_variance(
        First(), draw, target=lambda X: np.full(len(X), p), n_train=1, n_rounds=1500, loss="zero_one", n_test=50
    )
    assert found.bias.value == 0.0
    assert found.variance.value == pytest.approx(1 - p, abs=0.03)
    assert found.error.value == pytest.approx(2 * p * (1 - p), abs=0.02)
    assert found.noise is not None
    assert found.error.value == pytest.approx(found.bias.value + found.variance.value + found.noise.value)


def test_variance_helps_where_the_usual_answer_is_wrong() -> None:
    # Class 1 is rare in samples, and right at the rows judged.
    found = bias_variance(
        First(),
        lambda rng, n: np.full((n, 1), -1.0 if n == 1 else 1.0),
        target=lambda X: np.where(X[:, 0] < 0, 0.2, 1.0),
        n_train=1,
        n_rounds=1000,
        loss="zero_one",
        n_test=10,
    )
    assert found.bias.value == 1.0
    assert found.variance.value == pytest.approx(-0.2, abs=0.05)


def test_shares_of_labels_lie_between_none_and_all() -> None:
    found = bias_variance(
        DecisionTreeClassifier(max_depth=2),
        lambda rng, n: rng.uniform(-1, 1, size=(n, 1)),
        target=lambda X: 1 / (1 + np.exp(-2 * X[:, 0])),
        n_train=30,
        n_rounds=10,
        n_test=40,
        loss="zero_one",
    )
    assert found.bias.low == 0.0 < found.bias.value < found.bias.high < 1.0
    assert found.error.low >= 0.0


def test_data_by_the_bootstrap() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = X[:, 0] + rng.normal(size=80)
    stiff, loose = (bias_variance(Ridge(alpha), X, y, n_rounds=60) for alpha in (100.0, 1e-6))
    assert stiff.noise is None
    assert stiff.bias.value > loose.bias.value
    # What is left of the stiff one is a mean, and the loose one has four coefficients.
    assert stiff.variance.low < y.var() / 80 < stiff.variance.high
    assert stiff.variance.value < loose.variance.value
    assert bias_variance(Ridge(1e-6), X, y, n_rounds=60, n_jobs=2) == loose
    assert "bias and noise" in str(loose)
    assert json.loads(json.dumps(loose.as_dict()))["rounds"] == 60
    labels = np.where(y > 0, "up", "down")
    shallow, deep = (
        bias_variance(DecisionTreeClassifier(max_depth=d), X, labels, loss="zero_one", n_rounds=40) for d in (1, None)
    )
    assert shallow.error.value == pytest.approx(shallow.bias.value + shallow.variance.value)
    assert deep.variance.value > shallow.variance.value - 0.1


def test_samples_that_fail_are_left_out() -> None:
    with pytest.warns(FitFailedWarning, match="of 40 failed"):
        found = bias_variance(Fails(), draw, target=sine, n_train=2, n_rounds=40)
    assert 3 <= found.rounds < 40
    with pytest.raises(RuntimeError, match="below zero"):
        bias_variance(Fails(always=True), draw, target=sine, n_train=2, n_rounds=5)


def test_bad_input() -> None:
    X, y = np.zeros((5, 1)), np.zeros(5)
    for message, arguments in {
        "one of them": {"X": X},
        "give y for data": {"X": X, "y": y, "target": sine},
        "n_train must say": {"X": draw, "target": sine},
        "n_rounds": {"X": X, "y": y, "n_rounds": 2},
        "loss": {"X": X, "y": y, "loss": "absolute"},
        "noise": {"X": X, "target": sine, "noise": -1.0},
        "noise must be a number in .0, inf.; got inf": {"X": X, "target": sine, "noise": np.inf},
        "noise must be 0": {"X": X, "target": sine, "noise": 1.0, "loss": "zero_one"},
        "finite number for each row": {"X": X, "target": lambda X: 3.0},
        "probabilities of class 1": {"X": X, "target": lambda X: X[:, 0] + 2.0, "loss": "zero_one"},
        "same number of rows": {"X": X, "y": y[:3]},
        "y must be numbers": {"X": X, "y": np.array(list("abcde"))},
        "leave hardly any of the 5 rows": {"X": X, "y": y, "n_train": 1000},
        "leave hardly any of the 1 rows": {"X": X[:1], "y": y[:1]},
    }.items():
        with pytest.raises(ValueError, match=message):
            bias_variance(DummyRegressor(), **arguments)
    with pytest.raises(TypeError, match="target must be a function of rows; got 3"):
        bias_variance(DummyRegressor(), X, target=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Unsure predicts values that are not finite"):
        bias_variance(Unsure(), X, y)


def test_answers_that_are_no_labels_are_wrong() -> None:
    X, y = np.zeros((30, 1)), np.arange(30) % 2
    for constant in (-0.5, 0.5, 1.5):
        found = bias_variance(
            DummyRegressor(strategy="constant", constant=constant), X, y, loss="zero_one", n_rounds=20
        )
        assert (found.error.value, found.bias.value, found.variance.value) == (1.0, 1.0, 0.0)
