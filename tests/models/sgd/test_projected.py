"""Projected stochastic steps, and the lasso in split variables, against exact solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from certifit import Lasso, LinearModel, SGDClassifier, SGDRegressor
from certifit.optimization.stochastic.descent import Steps, descend
from certifit.penalties import Box, Constraint, L1Ball, L2Ball, NonNegative
from certifit.progress import Progress

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)) + np.array([0.0, 1.0, 0.0, -1.0])
Y = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=200)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("constraint", [NonNegative(), Box(-0.5, 0.7), L2Ball(0.8), L1Ball(0.8)], ids=repr)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_projected_descent_nears_the_constrained_optimum(loss: str, constraint: Constraint) -> None:
    model = SGDRegressor(loss, alpha=0.01, constraint=constraint, batch_size=20, max_epochs=100, random_state=0)
    model.fit(X, Y)
    best = LinearModel(loss, alpha=0.01, constraint=constraint, tol=1e-9).fit(X, Y).certificate_
    found = model.certificate_
    assert constraint.contains(model.coef_, 1e-9)
    assert found.bound <= best.objective + 1e-9
    assert best.objective - 1e-9 <= found.objective <= 1.01 * best.objective
    f = X @ model.coef_ + model.intercept_
    each = 0.5 * (Y - f) ** 2 if loss == "squared" else np.abs(Y - f)
    assert found.objective == pytest.approx(each.mean() + 0.005 * model.coef_ @ model.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_epoch_is_the_definition() -> None:
    """z = w − η·mean gradient, w ← the projection of z onto the box."""
    model = SGDRegressor(
        penalty=None, alpha=0.0, constraint=Box(-0.1, 0.3), batch_size=50, schedule="1/sqrt(t)", step=0.2,
        average=False, shuffle=False, max_epochs=1, fit_intercept=False,
    ).fit(X, Y)  # fmt: skip
    w = np.zeros(4)
    for t in range(4):
        rows = slice(50 * t, 50 * t + 50)
        w = np.clip(w - 0.2 / np.sqrt(t + 1) * X[rows].T @ (X[rows] @ w - Y[rows]) / 50, -0.1, 0.3)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_epoch_in_split_variables_is_the_definition() -> None:
    """u ← max(u − η(g + λ), 0) and v ← max(v − η(−g + λ), 0)."""
    model = SGDRegressor(
        penalty="l1", alpha=0.1, split=True, batch_size=50, schedule="constant", step=0.05,
        average=False, shuffle=False, max_epochs=1, fit_intercept=False,
    ).fit(X, Y)  # fmt: skip
    u, v = np.zeros(4), np.zeros(4)
    for t in range(4):
        rows = slice(50 * t, 50 * t + 50)
        g = X[rows].T @ (X[rows] @ (u - v) - Y[rows]) / 50
        u, v = np.maximum(u - 0.05 * (g + 0.1), 0.0), np.maximum(v - 0.05 * (-g + 0.1), 0.0)
    np.testing.assert_allclose(model.coef_, u - v, rtol=1e-12)


def test_split_variables_are_the_lasso() -> None:
    model = SGDRegressor(penalty="l1", alpha=0.1, split=True, batch_size=20, max_epochs=400, random_state=0).fit(X, Y)
    best = Lasso(0.1, tol=1e-10).fit(X, Y)
    assert model.certificate_.certified
    assert model.certificate_.bound <= best.certificate_.objective <= model.certificate_.objective + 1e-12
    np.testing.assert_allclose(model.coef_, best.coef_, atol=0.02)
    with_aside = SGDRegressor(
        penalty="l1", alpha=0.1, split=True, batch_size=20, early_stopping=True, random_state=0
    ).fit(X, Y)
    assert with_aside.coef_.shape == (4,)
    assert with_aside.validation_loss_


@pytest.mark.parametrize("options", [{"constraint": L2Ball(0.5)}, {"penalty": "l1", "alpha": 0.05, "split": True}])
def test_parts_of_the_data(options: dict[str, Any]) -> None:
    model = SGDRegressor(batch_size=20, average=False, random_state=0, **options)
    for _ in range(40):
        model.partial_fit(X, Y)
    again = SGDRegressor(batch_size=20, random_state=0, **options).set_params(**options)
    again.coef_, again.intercept_, again.t_, again.n_iter_ = model.coef_, model.intercept_, model.t_, 1
    again.n_features_in_ = 4
    again.partial_fit(X, Y)
    best = LinearModel(
        "squared", options.get("penalty", "l2"), options.get("alpha", 1e-4), constraint=options.get("constraint")
    ).fit(X, Y)
    np.testing.assert_allclose(model.coef_, best.coef_, atol=0.1)
    np.testing.assert_allclose(again.coef_, best.coef_, atol=0.1)
    if "constraint" in options:
        assert np.linalg.norm(model.coef_) <= 0.5 + 1e-12


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_classes_each_meet_the_constraint() -> None:
    labels = np.digitize(Y, [-1.0, 1.0])
    model = SGDClassifier(alpha=0.01, constraint=NonNegative(), batch_size=20, random_state=0).fit(X, labels)
    assert model.coef_.shape == (3, 4)
    assert (model.coef_ >= 0).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"split": True}, "penalty='l1'"),
        ({"split": True, "penalty": "l1", "alpha": 0.0}, "alpha > 0"),
        ({"split": True, "penalty": "l1", "constraint": NonNegative()}, "no constraint"),
        ({"constraint": "ball"}, "constraint"),
        ({"constraint": NonNegative(), "loss": "perceptron"}, "perceptron"),
        ({"constraint": NonNegative(), "multi_class": "softmax"}, "ovr"),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        SGDClassifier(**options).fit(X, np.digitize(Y, [-1.0, 1.0]))


class Recorder:
    """An engine whose loss on the rows set aside never falls; it remembers the steps that it was given."""

    scale, goal, t = 1.0, 0.0, 0.0

    def __init__(self) -> None:
        self.steps: list[float] = []

    def epoch(self, order: Any, schedule: Any, average_from: int) -> tuple[float, bool]:
        self.steps.append(schedule[0])
        return 1.0, False

    def restart(self) -> None:
        """Nothing to forget."""

    def save(self) -> None:
        """Nothing to keep."""

    def load(self, saved: Any) -> None:
        """Nothing to go back to."""

    def point(self) -> tuple[np.ndarray, float]:
        return np.zeros(1), 0.0

    def evaluate(self, w: Any, b: Any) -> tuple[float, float]:
        return 1.0, 0.0


@pytest.mark.parametrize(("cut", "expected"), [(0.5, [1, 1, 1, 1, 0.5, 0.5, 0.5]), (1.0, [1] * 7)])
def test_the_step_is_cut_when_the_rows_set_aside_gain_nothing(cut: float, expected: list[float]) -> None:
    class Rows:
        def next(self) -> np.ndarray:
            return np.arange(10)

    engine: Any = Recorder()
    rows: Any = Rows()
    steps = Steps("constant", 1.0, cut=cut)
    found = descend(engine, rows, steps, (1.0, 0.0), 1e-3, 50, Progress(), lambda w, b: 1.0, patience=6)
    assert engine.steps == expected
    assert found.stopped_early
