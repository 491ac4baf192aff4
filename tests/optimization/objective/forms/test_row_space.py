"""Wide data in the space of its rows: the same fit, the same value, the same proof."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certifit import LinearModel, LogisticRegression
from certifit.losses import Absolute, EpsilonInsensitive, Hinge, Loss, Poisson
from certifit.optimization.objective.dispatch import minimize
from certifit.optimization.objective.forms.row_space import row_space
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.penalties import L2
from certifit.progress import Progress


def wide(n: int = 40, d: int = 200, *, repeated: bool = False) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 0.5
    if repeated:  # rows that span less than they count, and one column that outweighs the others
        X[n // 2 :] = X[: n - n // 2]
        X[:, 0] *= 1e6
    return X, X[:, 1] + rng.normal(size=n)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_two_classes(repeated: bool, fit_intercept: bool) -> None:
    X, y = wide(repeated=repeated)
    options: dict[str, Any] = {"alpha": 0.02, "fit_intercept": fit_intercept, "tol": 1e-12}
    free = LogisticRegression(**options).fit(X, y > 0)
    whole = LogisticRegression(solver="newton_cg", max_iter=5000, **options).fit(X, y > 0)
    assert free.certificate_.certified
    assert free.certificate_.objective == pytest.approx(whole.certificate_.objective, rel=1e-8)
    np.testing.assert_allclose(free.decision_function(X), whole.decision_function(X), atol=2e-4)


def test_three_classes_and_single_precision() -> None:
    X, y = wide()
    labels = np.digitize(y, [0.0, 1.0])
    free = LogisticRegression(alpha=0.05, tol=1e-9).fit(X, labels)
    narrow = LogisticRegression(alpha=0.05, tol=1e-9).fit(X @ np.linalg.qr(X.T)[0], labels)  # a rotation of the rows
    assert free.certificate_.certified
    np.testing.assert_allclose(free.certificate_.objective, narrow.certificate_.objective, rtol=1e-8)
    np.testing.assert_allclose(free.predict_proba(X), narrow.predict_proba(X @ np.linalg.qr(X.T)[0]), atol=1e-4)
    single = LogisticRegression(alpha=0.05).fit(X.astype(np.float32), labels)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, free.coef_, atol=1e-3)


def test_a_start_is_carried_over() -> None:
    X, y = wide()
    problem = Problem(X, np.abs(y), np.full(40, 1 / 40), Poisson(), Regularizer.of(L2(), 0.1, None, 200), True)
    solution, certificate = minimize(problem, "auto", 1e-10, 100, Progress())
    again, _ = minimize(problem, "auto", 1e-10, 100, Progress(), (solution.coef, solution.intercept))
    assert certificate.certified
    assert again.iterations < solution.iterations
    np.testing.assert_allclose(again.coef, solution.coef, atol=1e-5)


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1), Absolute()])
@pytest.mark.parametrize("repeated", [False, True])
def test_losses_with_kinks(loss: Loss, repeated: bool) -> None:
    """More columns than native code takes, fewer rows: their problem has as many columns as rows."""
    X, y = wide(repeated=repeated)
    target = (y > 0).astype(float) if isinstance(loss, Hinge) else y
    problem = Problem(X, target, np.full(40, 1 / 40), loss, Regularizer.of(L2(), 0.02, None, 200), True)
    rows = row_space(problem)
    assert rows is not None
    assert rows.problem.shape == (40, 40)
    free, proof = minimize(problem, "auto", 1e-9, 200, Progress())
    whole, _ = minimize(problem, "interior_point", 1e-9, 200, Progress())
    assert free.solver == "interior_point"
    assert proof.certified
    assert proof.objective == pytest.approx(problem.at(whole.coef, whole.intercept).objective, rel=1e-8)
    assert problem.at(free.coef, free.intercept).objective == pytest.approx(proof.objective, rel=1e-8)
    many = Problem(np.tile(X, (5, 1)), np.tile(target, 5), np.full(200, 1 / 200), loss, problem.regularizer, True)
    assert row_space(many) is None


@pytest.mark.parametrize("penalty", ["l1", "none"])
def test_it_is_left_where_single_columns_matter(penalty: str) -> None:
    X, y = wide()
    model = LinearModel(loss="logistic", penalty=penalty, alpha=0.1)
    loss, chosen, alpha, _ = model._objective()
    assert isinstance(loss, Loss)
    assert (
        row_space(
            Problem(X, (y > 0).astype(float), np.full(40, 1 / 40), loss, Regularizer.of(chosen, alpha, None, 200), True)
        )
        is None
    )
