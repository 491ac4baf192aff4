"""AdaBoost and forward stagewise modeling against plain transcriptions of the algorithms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from certifit import AdaBoostClassifier, DecisionTreeClassifier, DecisionTreeRegressor, ForwardStagewise


def rings(n: int = 80, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(1)
    return X, ((X**2).sum(axis=1) + 0.3 * rng.normal(size=n) > 1.4).astype(int)


def stump(X: list[list[float]], y: list[int], w: list[float]) -> tuple[int, float, int, int]:
    """The stump of least weighted Gini impurity, by trying all; (feature, threshold, left label, right
    label).
    """
    best = (float("inf"), 0, 0.0, 0, 0)
    for j in range(len(X[0])):
        values = sorted({row[j] for row in X})
        for a, b in itertools.pairwise(values):
            cut, total, labels = 0.5 * (a + b), 0.0, []
            for side in (True, False):
                mass = [
                    sum(wi for row, yi, wi in zip(X, y, w, strict=True) if (row[j] <= cut) == side and yi == c)
                    for c in (-1, 1)
                ]
                total += sum(mass) - sum(m * m for m in mass) / sum(mass)
                labels.append(1 if mass[1] > mass[0] else -1)
            if total < best[0] - 1e-11:
                best = (total, j, cut, labels[0], labels[1])
    return best[1:]


def test_discrete_adaboost_against_a_transcription() -> None:
    X, labels = rings(40)
    y = [2 * int(c) - 1 for c in labels]
    rows = X.tolist()
    start = np.random.default_rng(1).integers(1, 3, 40).astype(float)
    w = list(start)
    F, errors, coefficients, bounds = [0.0] * 40, [], [], 1.0
    model = AdaBoostClassifier(n_estimators=12, algorithm="discrete").fit(X, labels, start)
    for m in range(12):
        j, cut, low, high = stump(rows, y, w)
        h = [low if row[j] <= cut else high for row in rows]
        W = sum(w)
        error = sum(wi for wi, hi, yi in zip(w, h, y, strict=True) if hi != yi) / W
        alpha = np.log((1 - error) / error)
        v = alpha / 2
        F = [f + v * hi for f, hi in zip(F, h, strict=True)]
        w = [wi * np.exp(alpha * (hi != yi)) for wi, hi, yi in zip(w, h, y, strict=True)]
        errors.append(error)
        coefficients.append(v)
        bounds *= 2 * np.sqrt(error * (1 - error))
        assert model.training_bound_[m] == pytest.approx(bounds)
    np.testing.assert_allclose(model.estimator_errors_, errors, rtol=1e-8)
    np.testing.assert_allclose(model.estimator_weights_, coefficients, rtol=1e-8)
    np.testing.assert_allclose(model.decision_function(X), F, rtol=1e-8, atol=1e-10)
    p = start / start.sum()
    assert model.certificate_.objective == pytest.approx(p @ np.exp(-np.array(y) * np.array(F)))
    assert bounds == pytest.approx(model.certificate_.objective), "the bound is the mean exponential loss"


@pytest.mark.parametrize("algorithm", ["discrete", "samme", "real"])
def test_the_bound_holds_at_every_stage(algorithm: str) -> None:
    X, y = rings(300)
    model = AdaBoostClassifier(n_estimators=60, algorithm=algorithm, learning_rate=0.8).fit(X, y)
    errors = [np.mean(said != y) for said in model.staged_predict(X)]
    assert len(errors) == len(model.estimators_) == model.training_bound_.shape[0]
    assert (np.array(errors) <= model.training_bound_ + 1e-12).all()
    assert (np.diff(model.training_bound_) <= 1e-12).all()
    assert errors[-1] < 0.1


def test_for_two_classes_samme_is_discrete() -> None:
    X, y = rings()
    a = AdaBoostClassifier(n_estimators=15, algorithm="samme").fit(X, y)
    b = AdaBoostClassifier(n_estimators=15, algorithm="discrete").fit(X, y)
    np.testing.assert_allclose(a.estimator_weights_, 2 * b.estimator_weights_)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X))
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X))


def test_samme_with_three_classes_against_a_transcription() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    learner = DecisionTreeClassifier(max_depth=1)
    model = AdaBoostClassifier(learner, 10).fit(X, y)
    w, votes = np.ones(90), np.zeros((90, 3))
    for m in range(len(model.estimators_)):
        h = DecisionTreeClassifier(max_depth=1).fit(X, y, w).predict(X)
        error = w @ (h != y) / w.sum()
        alpha = np.log((1 - error) / error) + np.log(2)
        assert model.estimator_weights_[m] == pytest.approx(alpha)
        votes += alpha * (h[:, None] == np.arange(3))
        w = w * np.exp(alpha * (h != y))
        w *= 90 / w.sum()
    np.testing.assert_allclose(model.decision_function(X), votes, rtol=1e-9)
    assert np.array_equal(model.predict(X), votes.argmax(axis=1))
    assert np.mean(model.predict(X) != y) <= model.training_bound_[-1]


def test_any_learner_with_weights() -> None:
    X, y = rings(200)
    model = AdaBoostClassifier(LogisticRegression(), 5, algorithm="real").fit(X, y)
    assert model.predict_proba(X).shape == (200, 2)
    with pytest.raises(ValueError, match="sample_weight"):
        AdaBoostClassifier(KNeighborsClassifier()).fit(X, y)
    with pytest.raises(ValueError, match="samme"):
        AdaBoostClassifier(algorithm="discrete").fit(X[:3], [0, 1, 2])


def test_perfect_and_useless_learners_stop_the_sum() -> None:
    X = np.arange(8.0)[:, None]
    perfect = AdaBoostClassifier().fit(X, X[:, 0] > 3)
    assert len(perfect.estimators_) == 1
    assert perfect.score(X, X[:, 0] > 3) == 1
    useless = AdaBoostClassifier().fit(np.ones((4, 1)), [0, 0, 1, 1])
    assert len(useless.estimators_) == 1
    assert AdaBoostClassifier().fit(X, ["only"] * 8).predict(X).tolist() == ["only"] * 8


def test_weights_are_repetitions() -> None:
    X, y = rings(60)
    w = np.random.default_rng(0).integers(0, 4, 60)
    a = AdaBoostClassifier(n_estimators=8).fit(X, y, w)
    b = AdaBoostClassifier(n_estimators=8).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(a.estimator_errors_, b.estimator_errors_, atol=1e-10)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-8)


class TestForwardStagewise:
    def test_squared_loss_against_a_transcription(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(60, 2))
        y, w = np.sin(2 * X[:, 0]) + X[:, 1], rng.uniform(0.5, 2, 60)
        model = ForwardStagewise(n_estimators=20, learning_rate=0.5).fit(X, y, w)
        F = np.full(60, w @ y / w.sum())
        for v in model.estimator_weights_:
            tree = DecisionTreeRegressor(max_depth=1).fit(X, y - F, w)
            h = tree.predict(X)
            assert v == pytest.approx(0.5 * (w @ (h * (y - F))) / (w @ h**2))
            F = F + v * h
        np.testing.assert_allclose(model.predict(X), F, rtol=1e-9, atol=1e-12)
        assert model.train_loss_[-1] == pytest.approx(w @ (0.5 * (y - F) ** 2) / w.sum())
        assert (np.diff(model.train_loss_) <= 0).all()

    def test_a_linear_learner_needs_one_term(self) -> None:
        X = np.random.default_rng(0).normal(size=(30, 3))
        model = ForwardStagewise(estimator=LinearRegression(), n_estimators=10).fit(X, X @ [1.0, 2.0, 3.0])
        assert model.train_loss_[0] < 1e-20
        np.testing.assert_allclose(model.predict(X), X @ [1.0, 2.0, 3.0])

    def test_exponential_loss_is_adaboost(self) -> None:
        X, y = rings(120)
        a = ForwardStagewise("exponential", n_estimators=25).fit(X, y)
        b = AdaBoostClassifier(n_estimators=25, algorithm="discrete").fit(X, y)
        k = min(len(a.estimators_), len(b.estimators_))
        np.testing.assert_allclose(a.estimator_weights_[:k], b.estimator_weights_[:k], rtol=1e-8)
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-8)
        assert len(list(a.staged_predict(X))) == len(a.estimators_)

    def test_errors_name_the_argument(self) -> None:
        with pytest.raises(ValueError, match="loss must be one of"):
            ForwardStagewise("hinge").fit([[0.0], [1.0]], [0, 1])
        with pytest.raises(ValueError, match="binary"):
            ForwardStagewise("exponential").fit([[0.0], [1.0], [2.0]], [0, 1, 2])


@pytest.mark.parametrize("algorithm", ["samme", "discrete", "real"])
def test_one_class_left_by_the_weights(algorithm):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    model = AdaBoostClassifier(algorithm=algorithm).fit(X, y, sample_weight=(y == 0).astype(float))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((40, 1)))
    np.testing.assert_array_equal(model.predict(X), 0)
