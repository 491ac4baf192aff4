"""Local logistic regression against a general minimizer, one query at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from certifit import LocallyWeightedLogisticRegression

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 2))
Y = (X[:, 0] * X[:, 1] + 0.5 * RNG.normal(size=150) > 0).astype(int)
S = RNG.integers(1, 4, size=150).astype(float)


def odds(q: Any, y: Any, s: Any, degree: int, width: float = 0.7, alpha: float = 0.01) -> float:
    z = (X - q) / width
    w = s * np.exp(-0.5 * (z**2).sum(axis=1))
    squares = [z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2]
    P = np.column_stack([np.ones(len(X)), *(z.T if degree else []), *(squares if degree == 2 else [])])
    share = np.average(y, weights=s)
    base = np.log(share / (1 - share))

    def objective(b: Any) -> float:
        return float((w / w.sum()) @ np.logaddexp(0, -(2 * y - 1) * (base + P @ b)) + 0.5 * alpha * b @ b)

    return base + float(minimize(objective, np.zeros(P.shape[1]), options={"gtol": 1e-8}).x[0])


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_log_odds_are_those_of_a_general_minimizer(degree: int) -> None:
    model = LocallyWeightedLogisticRegression(bandwidth=0.7, degree=degree, tol=1e-14).fit(X, Y, S)
    for q in (X[0] + 0.1, X[5] - 0.2):
        assert model.decision_function(q[None])[0] == pytest.approx(odds(q, Y, S, degree), abs=1e-5)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-model.decision_function(X))), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0).astype(int))


def test_a_class_of_almost_no_weight_leaves_odds_that_are_numbers() -> None:
    model = LocallyWeightedLogisticRegression(bandwidth="nearest", fraction=0.1)
    rows = np.array([[0.0], [1.0], [2.0]])
    for labels in ([0, 1, 1], [1, 0, 0], [0, 1, 2]):
        model.fit(rows, labels, sample_weight=[1e-18, 1.0, 1e-18])
        assert np.isfinite(model.decision_function(rows)).all()


def test_several_classes_are_told_apart_one_by_one() -> None:
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = LocallyWeightedLogisticRegression(bandwidth=0.7, tol=1e-14).fit(X, labels)
    q = X[3] + 0.1
    each = [1 / (1 + np.exp(-odds(q, (labels == c).astype(int), np.ones(150), 1))) for c in "abc"]
    np.testing.assert_allclose(model.predict_proba(q[None])[0], np.array(each) / np.sum(each), atol=1e-5)
    assert model.score(X, labels) > 0.9


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_errors_are_those_of_refits(weighted: bool) -> None:
    s = S[:50] if weighted else np.ones(50)
    model = LocallyWeightedLogisticRegression(tol=1e-12).fit(X[:50], Y[:50], s)
    k = int(np.argmin(model.loo_errors_))
    assert model.bandwidth_ == model.candidates_[k]
    lost = []
    for i in range(50):
        less = s.copy()
        less[i] -= 1.0
        fixed = LocallyWeightedLogisticRegression(bandwidth=model.bandwidth_, tol=1e-12).fit(X[:50], Y[:50], less)
        lost.append(-np.log(fixed.predict_proba(X[i : i + 1])[0, Y[i]]))
    # The shares of the classes are those of all rows in the one pass, and of the others in the refits.
    assert model.loo_errors_[k] == pytest.approx(np.average(lost, weights=s), rel=0.03)


def test_a_neighborhood_of_one_class_stays_finite() -> None:
    rows = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    model = LocallyWeightedLogisticRegression(bandwidth=0.3).fit(rows, [0, 0, 0, 1, 1, 1])
    p = model.predict_proba([[0.1], [5.1], [2.5], [1e6]])
    assert np.isfinite(p).all()
    assert p[0, 0] > 0.9
    assert p[1, 1] > 0.9
    with pytest.raises(ValueError, match="2 classes"):
        LocallyWeightedLogisticRegression().fit(rows, np.zeros(6))
