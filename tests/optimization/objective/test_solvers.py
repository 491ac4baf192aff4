"""Every loss with every penalty under every constraint, by every solver, against an independent optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.evaluation.cases import label
from tests.evaluation.user_losses import USER_LOSSES
from tests.grids import grid
from tests.oracles import convex

from certifit import GradientDescent, LinearModel, LinearSVC
from certifit.losses import LOSSES, EpsilonInsensitive, Huber, Loss, Quantile
from certifit.optimization.objective.dispatch import SOLVERS
from certifit.penalties import L1, L2, Box, Constraint, ElasticNet, L1Ball, L2Ball, Lq, NonNegative, NoPenalty, Penalty

REGRESSION = [cls() for cls in LOSSES.values() if cls.task == "regression"]
# The perceptron's loss has the perfect constant 0, so that its relative gap has no unit.
BINARY = [cls() for name, cls in LOSSES.items() if cls.task == "binary" and name != "perceptron"]
LOSS_CASES = [*REGRESSION, *BINARY, Huber.from_lambda_mu(0.5, 2.0), Quantile(0.9), EpsilonInsensitive(0.5)]
PENALTY_CASES: list[Penalty] = [
    NoPenalty(),
    L2(),
    L2(weights=[1.0, 0.0, 2.0, 0.5]),
    L1(),
    L1(weights=[0.0, 1.0, 1.0, 2.0]),
    ElasticNet(l1_ratio=0.3),
    Lq(q=1.5),
]
CONSTRAINT_CASES: list[Constraint | None] = [
    None,
    NonNegative(),
    Box(-0.2, [0.1, 0.2, np.inf, 0.4]),
    L1Ball(0.3),
    L2Ball(0.25),
]
ALPHA = 0.05


def data(loss: Loss, seed: int = 0, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 1.0, 0.0, -3.0]
    f = X @ [0.4, -0.3, 0.0, 0.3] + 0.5
    y = f + rng.standard_t(3, size=n)
    if loss.name == "poisson" or "weedie" in type(loss).__name__:
        y = rng.poisson(np.exp(f)).astype(float)
    elif loss.name == "gamma":
        y = rng.gamma(2.0, np.exp(f))
    elif loss.name == "relative":
        y = np.where(np.abs(y) < 0.2, 1.0, y)
    elif loss.task == "binary":
        y = (y > np.median(y)).astype(float)
    return X, y, rng.integers(0, 4, size=n).astype(float)


def check(model: Any, X: Any, y: np.ndarray, s: np.ndarray, tol: float = 1e-7) -> None:
    """The certificate is valid, tight, and its numbers are those of the oracle."""
    dense = X.toarray() if sp.issparse(X) else X
    loss, penalty, alpha, constraint = model._objective()
    best, _, _ = convex.optimum(dense, y, s, loss, penalty, alpha, constraint, model.fit_intercept)
    c = model.certificate_
    value = convex.objective(dense, y, s, loss, penalty, alpha, model.coef_, model.intercept_)
    scale = c.gap / c.relative_gap if c.relative_gap > 0 else 1.0
    slack = 1e-7 * max(scale, abs(best))  # what the oracle itself is good for
    assert c.objective == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert c.certified, str(c)
    assert c.bound <= best + slack
    assert c.objective >= best - slack
    assert c.gap >= c.objective - best - slack
    assert c.objective <= best + tol * scale + slack
    if constraint is not None:
        assert constraint.contains(model.coef_, 1e-7)


@grid(label, loss=LOSS_CASES, penalty=PENALTY_CASES, constraint=CONSTRAINT_CASES, intercept=[True, False])
def test_auto_reaches_the_optimum(loss: Loss, penalty: Penalty, constraint: Constraint | None, intercept: bool) -> None:
    X, y, s = data(loss)
    tol = 1e-6 if not loss.smooth and penalty.elastic(4) is None else 1e-7  # smoothing is a first-order route
    model = LinearModel(loss, penalty, ALPHA, constraint=constraint, fit_intercept=intercept, tol=tol)
    check(model.fit(X, y, sample_weight=s), X, y, s, tol)


@grid(
    label,
    solver=[
        name for name in SOLVERS if name != "subgradient"
    ],  # c/√t does not come so far: first_order/test_subgradient
    loss=REGRESSION,
    penalty=[L2(), L1(), ElasticNet(), Lq()],
    constraint=[None, NonNegative(), L2Ball(0.3)],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_solver_that_accepts_agrees(
    solver: str, loss: Loss, penalty: Penalty, constraint: Constraint | None
) -> None:
    model = LinearModel(loss, penalty, ALPHA, constraint=constraint, solver=solver, tol=1e-5, max_iter=20_000)
    X, y, s = data(loss, seed=1)
    if SOLVERS[solver].refuses(loss, penalty, constraint):
        with pytest.raises(ValueError, match=rf"{solver}.*Solvers that can.*auto"):
            model.fit(X, y)
        return
    if solver == "gradient" and penalty.subdifferential(np.zeros(1))[1] != 0:
        pytest.skip("not applicable: plain gradient descent stalls at the kinks of an L1 penalty")
    model.fit(X, y, sample_weight=s)
    # Newton on so few rows of a kinked loss hands over to the interior point, and says so.
    assert model.solver_ == solver or (solver == "newton" and not loss.smooth)
    check(model, X, y, s, 1e-5)


@pytest.mark.parametrize("penalty", [L2(), L1(), ElasticNet()], ids=label)
@pytest.mark.parametrize("loss", REGRESSION, ids=label)
def test_sparse_wide(loss: Loss, penalty: Penalty) -> None:
    rng = np.random.default_rng(3)
    X = sp.random(30, 60, density=0.2, random_state=3, format="csr", data_rvs=rng.standard_normal)
    _, y, s = data(loss, n=30)
    model = LinearModel(loss, penalty, ALPHA, tol=1e-6).fit(X, y, sample_weight=s)
    check(model, X, y, s, 1e-6)


@grid(label, loss=REGRESSION, penalty=[NoPenalty(), L2(), L1(), Lq()], max_iter=[1, 2, 4])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_gap_is_honest_when_stopped_early(loss: Loss, penalty: Penalty, max_iter: int) -> None:
    X, y, s = data(loss, seed=2)
    model = LinearModel(loss, penalty, ALPHA, max_iter=max_iter, tol=1e-12).fit(X, y, sample_weight=s)
    best, _, _ = convex.optimum(X, y, s, loss, penalty, ALPHA)
    c = model.certificate_
    assert c.bound <= best + 1e-7 * max(1.0, abs(best))
    assert c.gap >= c.objective - best - 1e-7 * max(1.0, abs(best))


@pytest.mark.parametrize("step", ["backtracking", "fixed", "1/t", "1/sqrt(t)"])
@pytest.mark.parametrize("stop", ["gap", "gradient", "objective", "parameters"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gradient_descent_variants(step: str, stop: str) -> None:
    X, y, s = data(LOSSES["squared"]())
    solver = GradientDescent(step=step, stop=stop, precision=1e-9)
    model = LinearModel("squared", "l2", 0.1, solver=solver, max_iter=3000).fit(X, y, sample_weight=s)
    c = model.certificate_
    best, _, _ = convex.optimum(X, y, s, LOSSES["squared"](), L2(), 0.1)
    assert c.gap >= c.objective - best - 1e-10
    if step in ("backtracking", "fixed"):
        assert c.relative_gap < 1e-4


def test_divergence_is_said() -> None:
    X, y, _ = data(LOSSES["squared"]())
    with pytest.warns(ConvergenceWarning, match="diverged"):
        LinearModel("squared", "l2", 0.1, solver=GradientDescent("fixed", size=100.0), max_iter=500).fit(X, y)


@grid(label, loss=USER_LOSSES, penalty=PENALTY_CASES, constraint=[None, NonNegative(), L1Ball(0.3), L2Ball(0.3)])
def test_a_loss_of_your_own_works_with_everything(loss: Loss, penalty: Penalty, constraint: Constraint | None) -> None:
    X, y, s = data(loss)
    model = LinearModel(loss, penalty, ALPHA, constraint=constraint, tol=1e-6).fit(X, y, sample_weight=s)
    assert model.certificate_.certified, str(model.certificate_)
    # No point near the solution is better than the bound says.
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        w = model.coef_ + size * rng.normal(size=4)
        w = w if constraint is None else constraint.project(w)
        f = X @ w + model.intercept_ + size * rng.normal()
        value = (s / s.sum()) @ loss.value(y, f) + ALPHA * penalty.value(w)
        assert value >= model.certificate_.bound


def test_margins_come_from_the_same_table() -> None:
    """What a support vector machine gets, the general model gets: one dispatcher."""
    rng = np.random.default_rng(0)
    tall, broader = rng.normal(size=(7000, 3)), rng.normal(size=(9000, 70))
    wide = sp.random(2000, 600, density=0.01, format="csr", random_state=0, data_rvs=rng.standard_normal)
    cases = (
        (tall, 1e-5, "interior_point"),
        (broader, 1e-5, "newton"),
        (broader, 0.3, "dual"),
        (wide, 0.01, "dual"),
        (tall[:50], 0.01, "interior_point"),
    )
    for X, alpha, solver in cases:
        y = (np.asarray(X[:, :3].sum(axis=1)).ravel() + rng.normal(size=X.shape[0]) > 0).astype(float)
        general = LinearModel("hinge", "l2", alpha, tol=1e-4).fit(X, y)
        preset = LinearSVC(alpha=alpha).fit(X, y)
        assert general.solver_ == preset.solver_ == solver
        assert general.certificate_.certified
        assert general.certificate_.objective == pytest.approx(preset.certificate_.objective, rel=1e-3)


@pytest.mark.parametrize(
    ("solver", "loss", "penalty", "alpha", "reason"),
    [
        ("dual", "absolute", L2(), 0.0, "alpha > 0"),
        ("dual", "absolute", L2(weights=[1.0, 0.0, 1.0, 1.0]), 1.0, "every coefficient"),
        ("newton", "absolute", L1(), 1.0, "piecewise linear one"),
        ("pegasos", "absolute", L2(), 1.0, "hinge loss"),
        ("pegasos", "perceptron", L2(), 1.0, "hinge loss"),
        ("pegasos", "hinge", L2(weights=[1.0, 2.0, 1.0, 1.0]), 1.0, "one strength"),
        ("dual", "squared", L2(), 1.0, "piecewise linear"),
    ],
)
def test_solvers_of_margins_refuse_with_a_reason(
    solver: str, loss: str, penalty: Penalty, alpha: float, reason: str
) -> None:
    X, y, _ = data(Huber())
    with pytest.raises(ValueError, match=reason):
        LinearModel(loss, penalty, alpha, solver=solver).fit(X, (y > 0).astype(float))


def test_the_gradient_test_is_relative() -> None:
    """With y in another unit it stops at the same point, not before it began."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    y = X @ [1.0, 2.0, 0.0, -1.0] + 0.1 * rng.normal(size=100)
    solver = GradientDescent("fixed", stop="gradient", precision=1e-5)
    fits = [
        LinearModel(penalty="l2", alpha=0.01, solver=solver, max_iter=5000).fit(X, unit * y) for unit in (1.0, 1e-6)
    ]
    assert fits[0].n_iter_ == fits[1].n_iter_
    np.testing.assert_allclose(fits[1].coef_, 1e-6 * fits[0].coef_, rtol=1e-9)
