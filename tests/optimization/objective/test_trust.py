"""A certificate is never above what a global search finds, whatever the loss claims about itself."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from certifit import LinearModel, SGDRegressor
from certifit.losses import Loss
from certifit.penalties import Box


class Drawn(Loss):
    """½r² or ln cosh r, distorted: waves, a jump, a derivative of something else, a shift below zero."""

    convex = True

    def __init__(
        self, base: str = "square", wave: float = 0.0, pitch: float = 3.0, jump: float = 0.0, at: float = 0.5,
        factor: float = 1.0, lift: float = 0.0,
    ) -> None:  # fmt: skip
        self.base, self.wave, self.pitch, self.jump = base, wave, pitch, jump
        self.at, self.factor, self.lift = at, factor, lift

    def value(self, y: Any, f: Any) -> Any:
        r = f - y
        size = np.abs(r)
        base = 0.5 * r * r if self.base == "square" else size + np.log1p(np.exp(-2 * size)) - np.log(2)
        return base + self.wave * (1 - np.cos(self.pitch * r)) + self.jump * (r > self.at) + self.lift

    def derivative(self, y: Any, f: Any) -> Any:
        r = f - y
        base = r if self.base == "square" else np.tanh(r)
        return self.factor * (base + self.wave * self.pitch * np.sin(self.pitch * r))

    def second_derivative(self, y: Any, f: Any) -> Any:
        r = f - y
        base = np.ones_like(r) if self.base == "square" else 1 - np.tanh(r) ** 2
        return self.factor * (base + self.wave * self.pitch**2 * np.cos(self.pitch * r))


def found_by_search(loss: Loss, X: Any, y: Any, alpha: float, penalty: str, around: Any) -> float:
    """The least objective of many points: everywhere, and close to the given one."""
    rng = np.random.default_rng(0)
    wide = rng.uniform(-6.0, 6.0, size=(6000, X.shape[1] + 1))
    steps = 10.0 ** rng.uniform(-4, 0.5, size=(6000, 1)) * rng.normal(size=(6000, X.shape[1] + 1))
    points = np.concatenate([wide, around + steps])
    for _ in range(3):
        scores = points[:, 1:] @ X.T + points[:, :1]
        size = np.abs(points[:, 1:]).sum(axis=1) if penalty == "l1" else 0.5 * (points[:, 1:] ** 2).sum(axis=1)
        values = loss.value(np.broadcast_to(y, scores.shape), scores).mean(axis=1)
        values = values + (0.0 if penalty == "none" else alpha * size)
        best = points[np.argsort(values)[:20]]
        points = np.concatenate([best, *(best + s * rng.normal(size=best.shape) for s in (0.3, 0.1, 0.03, 0.01, 1e-3))])
    return float(values.min())


distortions = st.one_of(
    st.fixed_dictionaries({"wave": st.floats(0.02, 4.0), "pitch": st.floats(1.0, 9.0)}),
    st.fixed_dictionaries({"jump": st.floats(-3.0, 3.0).filter(lambda j: abs(j) > 1e-3), "at": st.floats(-1.0, 1.0)}),
    st.fixed_dictionaries({"factor": st.floats(-2.0, 3.0).filter(lambda c: abs(c - 1.0) > 1e-3)}),
    st.fixed_dictionaries({"lift": st.floats(-2.0, -1e-3)}),
)


@settings(max_examples=60, deadline=None)
@given(
    base=st.sampled_from(["square", "logcosh"]),
    change=distortions,
    penalty=st.sampled_from(["none", "l2", "l1"]),
    seed=st.integers(0, 10_000),
    n=st.integers(6, 60),
)
def test_no_certificate_above_a_point_that_a_search_found(
    base: str, change: dict[str, float], penalty: str, seed: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    y = 1.5 * X[:, 0] + rng.standard_t(3, size=n)
    loss = Drawn(base, **change)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearModel(loss, penalty, alpha=0.1, max_iter=40).fit(X, y)
    certificate = model.certificate_
    point = np.append(model.intercept_, model.coef_)
    least = found_by_search(loss, X, y, 0.1, penalty, point)
    assert certificate.bound <= least + 1e-6 * abs(least), f"{loss} {certificate}"
    if certificate.kind == "none":
        assert not certificate
        assert "Drawn" in certificate.note


def waves(convex: bool) -> Loss:
    loss = Drawn(wave=3.0, pitch=3.0)
    loss.convex = convex
    return loss


@pytest.mark.parametrize("model", [LinearModel, lambda loss: SGDRegressor(loss=loss, max_iter=20, tol=1e-3)])
@pytest.mark.parametrize("convex", [True, False])
def test_waves_have_no_certificate(model: Any, convex: bool) -> None:
    """r²/2 + 3(1 − cos 3r)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        certificate = model(waves(convex)).fit(X, y).certificate_
    assert certificate.kind == "none"
    assert ("declares that it is convex, but" if convex else "does not declare") in certificate.note


def test_a_constant_target_is_no_proof_for_a_loss_of_ones_own() -> None:
    lifted = Drawn(lift=0.5)  # convex, but not zero at its minimum: the constant is best, and a bound of zero is true
    certificate = LinearModel(lifted, "l2", alpha=0.1).fit(np.arange(6.0)[:, None], np.full(6, 2.0)).certificate_
    assert certificate.objective == pytest.approx(0.5)
    assert certificate.bound <= 0.5 * (1 + 1e-9)


def test_coefficients_outside_their_constraint_have_no_certificate() -> None:
    from certifit.certificate import Certificate
    from certifit.losses import Squared
    from certifit.optimization.objective.problem import Problem, Solution
    from certifit.optimization.objective.regularizer import Regularizer
    from certifit.optimization.objective.trust import admitted
    from certifit.penalties import NoPenalty

    X, y = np.eye(3), np.arange(3.0)
    problem = Problem(X, y, np.full(3, 1 / 3), Squared(), Regularizer.of(NoPenalty(), 0.0, Box(0.5, 2.0), 3), True)
    proof = Certificate("duality gap", objective=1.0, bound=1.0, scale=1.0, tol=1e-6)
    assert admitted(problem, Solution(np.full(3, 0.5), 0.0, 1, "x"), proof) is proof
    told = admitted(problem, Solution(np.array([0.5, 6e-11, 1.0]), 0.0, 1, "x"), proof)
    assert told.kind == "none"
    assert "coefficient 6e-11 of column 1 violates the constraint" in told.note
