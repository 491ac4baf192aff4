"""AdaBoost.R2 against a plain transcription of Drucker's algorithm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csc_array
from sklearn.base import clone
from sklearn.neighbors import KNeighborsRegressor

from certifit import AdaBoostRegressor, DecisionTreeRegressor

LOSSES = ("linear", "square", "exponential")


def waves(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(1)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def drucker(X: np.ndarray, y: np.ndarray, loss: str, rate: float, terms: int) -> tuple[list[Any], list[float]]:
    """One learner after the other, row by row."""
    w = [1.0 / len(y)] * len(y)
    models, votes = [], []
    for _ in range(terms):
        model = DecisionTreeRegressor(max_depth=1).fit(X, y, sample_weight=np.array(w) * len(y))
        far = [abs(a - b) for a, b in zip(model.predict(X), y, strict=True)]
        share = [one / max(far) for one in far]
        e = {"linear": share, "square": [s * s for s in share], "exponential": [1 - math.exp(-s) for s in share]}[loss]
        error = sum(a * b for a, b in zip(w, e, strict=True))
        if error >= 0.5:
            break
        beta = error / (1 - error)
        models.append(model)
        votes.append(rate * math.log(1 / beta))
        w = [a * beta ** (rate * (1 - b)) for a, b in zip(w, e, strict=True)]
        w = [a / sum(w) for a in w]
    return models, votes


def median(models: list[Any], votes: list[float], row: np.ndarray) -> float:
    held, half = 0.0, 0.5 * sum(votes)
    for said, vote in sorted(
        (float(model.predict(row[None])[0]), vote) for model, vote in zip(models, votes, strict=True)
    ):
        held += vote
        if held >= half:
            return said
    raise AssertionError("the votes do not add up")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_the_learners_their_votes_and_their_median(loss: str, rate: float) -> None:
    X, y = waves()
    model = AdaBoostRegressor(DecisionTreeRegressor(max_depth=1), 6, learning_rate=rate, loss=loss).fit(X, y)
    models, votes = drucker(X, y, loss, rate, 6)
    assert_allclose(model.estimator_weights_, votes, rtol=1e-8)
    assert_allclose(model.predict(X), [median(models, votes, row) for row in X], rtol=1e-8)
    stages = list(model.staged_predict(X))
    assert_allclose(stages[1], [median(models[:2], votes[:2], row) for row in X], rtol=1e-8)
    assert_allclose(stages[-1], model.predict(X))
    assert model.certificate_.objective == pytest.approx(np.abs(model.predict(X) - y).mean())


def test_a_weight_is_a_repetition() -> None:
    X, y = waves(40)
    times = np.random.default_rng(1).integers(0, 3, 40)
    for bootstrap in (False, True):
        model = AdaBoostRegressor(n_estimators=5, bootstrap=bootstrap, random_state=0)
        weighted = model.fit(X, y, times).predict(X)
        assert_allclose(weighted, model.fit(X.repeat(times, axis=0), y.repeat(times)).predict(X), rtol=1e-9)


def test_learners_without_weights_see_drawn_rows() -> None:
    X, y = waves()
    with pytest.raises(ValueError, match="must take sample_weight"):
        AdaBoostRegressor(KNeighborsRegressor()).fit(X, y)
    model = AdaBoostRegressor(KNeighborsRegressor(3), 10, bootstrap=True, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8


def test_sparse_rows_are_the_same_rows() -> None:
    X, y = waves()
    for bootstrap in (False, True):
        model = AdaBoostRegressor(n_estimators=3, bootstrap=bootstrap, random_state=0).fit(csc_array(X), y)
        assert_allclose(model.predict(csc_array(X)), clone(model).fit(X, y).predict(X))


def test_a_perfect_learner_ends_it_and_so_does_a_useless_one() -> None:
    X = np.arange(8.0)[:, None]
    perfect = AdaBoostRegressor(DecisionTreeRegressor()).fit(X, X[:, 0] ** 2)
    assert len(perfect.estimators_) == 1
    assert perfect.score(X, X[:, 0] ** 2) == 1.0
    blind = AdaBoostRegressor().fit(np.zeros((4, 1)), [0.0, 0.0, 1.0, 1.0])
    assert len(blind.estimators_) == 1
    assert_allclose(blind.predict([[0.0]]), 0.5)
