"""A loss of K scores (softmax) in Newton's method and prox-Newton, against an independent optimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles import convex
from tests.peak import bytes_a_row, needs_proc

from certifit.losses import Softmax
from certifit.optimization.newton import proximal, several_scores, smooth, systems
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.dispatch import minimize
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.penalties import L1, L2, ElasticNet, NoPenalty, Penalty
from certifit.progress import Progress

ALPHA = 0.02
WEIGHTS = [1.0, 0.0, 2.0, 1.0]
PENALTIES: list[Penalty] = [NoPenalty(), L2(), L1(), ElasticNet(0.4), L2(weights=WEIGHTS), L1(weights=WEIGHTS)]


def data(seed: int = 0, n: int = 90, d: int = 4, k: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + [0.0, 1.0, 0.0, -2.0][:d]
    y = (X @ rng.normal(size=(d, k)) + 1.5 * rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    p = rng.integers(1, 4, size=n).astype(float)
    return X, y, p / p.sum()


def optimum(X: np.ndarray, y: np.ndarray, p: np.ndarray, penalty: Penalty, alpha: float, intercept: bool) -> float:
    k, (n, d) = int(y.max()) + 1, X.shape
    W, b = cp.Variable((k, d)), cp.Variable((1, k))
    f = X @ W.T + np.ones((n, 1)) @ b
    loss = p @ (cp.log_sum_exp(f, axis=1) - cp.sum(cp.multiply(f, np.eye(k)[y]), axis=1))
    total = sum(cp.sum(convex.penalty_terms(penalty, W[j])) for j in range(k))
    conditions = [] if intercept else [b == 0]
    if isinstance(penalty, NoPenalty):
        conditions.append(cp.sum(W, axis=0) == 0)
    return convex.solve(cp.Problem(cp.Minimize(loss + alpha * total), conditions))


def problem(
    X: Any, y: np.ndarray, p: np.ndarray, penalty: Penalty, intercept: bool = True, alpha: float = ALPHA
) -> Problem:
    return Problem(X, y, p, Softmax(), Regularizer.of(penalty, alpha, None, X.shape[1]), intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_optimum_and_honest_gaps(penalty: Penalty, intercept: bool) -> None:
    X, y, p = data()
    best = optimum(X, y, p, penalty, ALPHA, intercept)
    for max_iter in (1, 2, 3, 1000):
        for rows in (X, sp.csr_array(X)) if max_iter > 2 else (X,):
            solution, c = minimize(problem(rows, y, p, penalty, intercept), "auto", 1e-8, max_iter, Progress())
            assert c.bound <= best + 1e-8
            assert c.objective >= best - 1e-8
            assert c.gap >= c.objective - best - 1e-8
            assert c.certified or max_iter < 1000, str(c)
            assert intercept or not solution.intercept.any()


@pytest.mark.parametrize("penalty", [L2(), L1(), ElasticNet(0.4)], ids=repr)
def test_bound_at_random_points(penalty: Penalty) -> None:
    X, y, p = data(1)
    best = optimum(X, y, p, penalty, ALPHA, True)
    rng = np.random.default_rng(0)
    for size in (1e-3, 0.1, 1.0, 10.0):
        point = size * rng.normal(size=(3, 4)), size * rng.normal(size=3)
        for rows in (X, np.asfortranarray(X), sp.csr_array(X)):  # with the native pass, and without it
            state = problem(rows, y, p, penalty).at(*point)
            assert 0.0 <= dual_bound(state) <= best + 1e-9


@pytest.mark.parametrize("path", ["by class", "diagonal", "kronecker"])
def test_large_problems_take_other_routes(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, p = data(2)
    penalty = L1() if path == "by class" else L2()
    monkeypatch.setattr(proximal, "JOINT_LIMIT", 0)
    monkeypatch.setattr(systems, "EXACT_LIMIT", 0)
    if path == "diagonal":
        monkeypatch.setattr(systems, "BLOCK_LIMIT", 0)
    best = optimum(X, y, p, penalty, ALPHA, True)
    _, c = minimize(problem(X, y, p, penalty), "auto", 1e-7, 1000, Progress())
    assert c.certified, str(c)
    assert abs(c.objective - best) <= 2e-7 * problem(X, y, p, penalty).scale


@pytest.mark.parametrize("alpha", [1e-4, 0.0])
def test_tall_data_starts_on_a_part(alpha: float) -> None:
    X, y, p = data(3, n=12_000)
    tall = problem(X, y, p, L2(), alpha=alpha)
    solution, c = minimize(tall, "auto", 1e-8, 1000, Progress())
    assert c.certified, str(c)
    state = tall.at(solution.coef, solution.intercept)
    np.testing.assert_allclose(state.slope.columns + alpha * solution.coef, 0.0, atol=1e-5)
    # The result does not depend on the threads.
    from dataclasses import replace

    again, _ = minimize(replace(tall, threads=2), "auto", 1e-8, 1000, Progress())
    np.testing.assert_array_equal(again.coef, solution.coef)


@pytest.mark.parametrize("kind", [np.ascontiguousarray, np.asfortranarray, sp.csr_array], ids=lambda f: f.__name__)
def test_everything_at_a_point(kind: Any) -> None:
    """The native pass, NumPy in blocks and sparse products give the formulas."""
    X, y, p = data(4, n=30)
    rng = np.random.default_rng(0)
    w, b, dw, db = rng.normal(size=(3, 4)), rng.normal(size=3), rng.normal(size=(3, 4)), rng.normal(size=3)
    state, loss = problem(kind(X), y, p, L2()).at(w, b), Softmax()
    tilde, f = np.column_stack([np.ones(30), X]), X @ w.T + b
    theta = loss.derivative(y, f)
    assert state.risk == pytest.approx(p @ loss.value(y, f), rel=1e-13)
    np.testing.assert_allclose(state.parts[0].f, f, atol=1e-13)
    np.testing.assert_allclose(state.theta[0], theta, atol=1e-13)
    np.testing.assert_allclose(state.slope.level, p @ theta, atol=1e-13)
    np.testing.assert_allclose(state.slope.columns, (p[:, None] * theta).T @ X, atol=1e-13)
    wanted = sum(
        p[i] * np.kron(np.diag(q) - np.outer(q, q), np.outer(tilde[i], tilde[i])) for i, q in enumerate(loss.predict(f))
    )
    np.testing.assert_allclose(state.hessian(), wanted, atol=1e-14)
    np.testing.assert_allclose(state.hessian(single=True), wanted, atol=1e-6)
    np.testing.assert_allclose(
        state.hessian([state.h[0] + 0.5]), wanted + 0.5 * np.kron(np.eye(3), tilde.T @ (p[:, None] * tilde)), atol=1e-13
    )
    (z,), image = state.curved(state.h, dw, db)
    np.testing.assert_allclose(z, X @ dw.T + db, atol=1e-13)
    product = (wanted @ np.column_stack([db, dw]).ravel()).reshape(3, 5)
    np.testing.assert_allclose(np.column_stack([image.level, image.columns]), product, atol=1e-13)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_extreme_units(scale: float) -> None:
    X, y, p = data(5)
    reference, _ = minimize(problem(X, y, p, NoPenalty()), "auto", 1e-10, 1000, Progress())
    found, c = minimize(problem(scale * X, y, p, NoPenalty()), "auto", 1e-10, 1000, Progress())
    assert c.certified
    np.testing.assert_allclose(found.coef * scale, reference.coef, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_penalty_that_selects_nothing(intercept: bool) -> None:
    """No column is in the working set, and without an intercept nothing at all."""
    X, y, p = data(6)
    for rows in (X, sp.csr_array(X)):
        solution, c = minimize(problem(rows, y, p, L1(), intercept, alpha=100.0), "auto", 1e-8, 100, Progress())
        assert c.certified
        assert not solution.coef.any()


def test_soft_labels() -> None:
    """Rows of probabilities: the fit is that of each row repeated for every class, weighted by its probability."""
    X, y, p = data(7, n=40)
    soft = 0.7 * np.eye(3)[y] + 0.1
    one = problem(X, soft, p, L2())
    repeated = problem(np.repeat(X, 3, axis=0), np.tile(np.arange(3), 40), (p[:, None] * soft).ravel(), L2())
    found, c = minimize(one, "auto", 1e-9, 100, Progress())
    wanted, _ = minimize(repeated, "auto", 1e-9, 100, Progress())
    assert c.certified
    np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-5)


@pytest.mark.parametrize("solver", ["newton", "newton_cg", "prox_newton", "proximal", "gradient"])
def test_every_solver_of_several_scores_agrees(solver: str) -> None:
    X, y, p = data(8)
    best = optimum(X, y, p, L2(), ALPHA, True)
    _, c = minimize(problem(X, y, p, L2()), solver, 1e-5, 20_000, Progress())
    assert c.certified, str(c)
    assert c.bound <= best + 1e-9
    assert c.objective == pytest.approx(best, abs=2e-5)


def test_an_easy_fit_forms_no_hessian_of_all_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, p = data(n=300, k=4)
    wanted, _ = minimize(problem(X, y, p, L2()), "newton", 1e-11, 100, Progress())

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("gradients alone reach the gap")

    monkeypatch.setattr(State, "hessian", never)
    found, certificate = minimize(problem(X, y, p, L2()), "newton", 1e-6, 100, Progress())
    assert certificate.certified
    assert 0.0 <= certificate.objective - wanted.objective <= certificate.gap + 1e-12
    np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-2)


def test_many_columns_begin_with_the_diagonal_and_end_certified() -> None:
    rng = np.random.default_rng(9)
    X = 0.3 * rng.normal(size=(150, 110)) + rng.normal(size=(150, 1))  # one direction that the diagonal does not see
    y = np.digitize(X[:, :5].sum(axis=1) + rng.normal(size=150), [-2.0, 2.0])
    p = np.full(150, 1.0 / 150)
    for alpha in (1.0, 1e-3):
        found, c = minimize(problem(X, y, p, L2(), alpha=alpha), "newton", 1e-6, 1000, Progress())
        wanted, _ = minimize(problem(X, y, p, L2(), alpha=alpha), "newton_cg", 1e-9, 1000, Progress())
        assert c.certified
        assert c.objective - wanted.objective <= c.gap + 1e-9
        np.testing.assert_allclose(found.coef.sum(axis=0), 0.0, atol=1e-12)


def classes(seed: int, n: int, d: int, k: int, scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Classes by slices of a score, columns that share a factor."""
    rng = np.random.default_rng(seed)
    X = scale * (0.3 * rng.normal(size=(n, d)) + rng.normal(size=(n, 1)))
    f = X @ rng.normal(size=d)
    y = np.digitize(f / f.std() + 0.5 * rng.normal(size=n), np.linspace(-1, 1, k - 1))
    y[:k] = np.arange(k)
    return X, y, np.full(n, 1.0 / n)


@pytest.mark.parametrize(("n", "d", "k", "scale", "alpha"), [(111, 145, 11, 5.7, 0.04), (700, 30, 9, 80.0, 1e-4)])
def test_gradients_prove_what_they_reach(
    n: int, d: int, k: int, scale: float, alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gap that the step of the intercept leaves open, or a weak penalty, is closed by more gradients, not by a Hessian."""
    X, y, p = classes(0, n, d, k, scale)
    fit = problem(X, y, p, L2(), alpha=alpha)
    monkeypatch.setattr(State, "hessian", lambda *_, **__: pytest.fail("a Hessian of all scores"))
    solution, c = minimize(fit, "auto", 1e-6, 1000, Progress())
    assert c.certified, str(c)
    monkeypatch.undo()
    _, exact = minimize(fit, "auto", 1e-10, 1000, Progress())
    assert exact.certified, str(exact)
    assert c.bound <= exact.objective + 1e-12
    assert c.objective <= exact.bound + 1.1e-6 * fit.scale
    assert solution.solver == "newton"


@pytest.mark.parametrize("rare", [False, True])
@pytest.mark.parametrize("d", [4, 120])
def test_scores_of_like_curvature_share_an_inverse(rare: bool, d: int) -> None:
    """As a preconditioner it is as good: between ⅔ and 1½ of the Hessian of constant scores, and all of it for equal classes."""
    X, y, p = classes(1, 400, d, 4, 1.0)
    y = np.arange(400) % 4 if not rare else (np.arange(400) % 40 < 4) * (1 + np.arange(400) % 3)
    fit = problem(X, y, p, L2(), alpha=0.1)
    state = fit.at(*fit.start())
    known = systems.levels(fit)
    assert len(known.groups) == (1 if not rare else 2)
    whole = systems.with_penalty(state.hessian(), fit)
    inverse = systems.kronecker(fit, known)
    rng = np.random.default_rng(0)
    for _ in range(5):
        v = fit.centered(rng.normal(size=(4, d + 1)))
        again = inverse((whole @ v.ravel()).reshape(v.shape))
        ratio = float((v * (whole @ inverse(v).ravel()).reshape(v.shape)).sum() / (v * v).sum())
        assert 0.6 < ratio < 1.6
        if not rare:
            np.testing.assert_allclose(again, v, atol=1e-6)


@needs_proc
def test_tall_rows_of_several_classes_hold_few_scores() -> None:
    """Some numbers a row beside the labels; scores and probabilities of four classes many times over by passes of NumPy."""
    rows = "X = X[:, :3].astype(float); y = np.digitize(X[:, 0] + rng.normal(size=n), [-1.0, 0.0, 1.0])"
    assert bytes_a_row("LogisticRegression(alpha=1e-3, n_jobs=1)", rows) < 60


@pytest.mark.parametrize("intercept", [True, False])
def test_gradients_on_the_hessian_of_a_part_prove_the_same_optimum(
    intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, p = data(3, 30_000)
    of = problem(X, y, p, L2(), intercept, 1e-3)
    assert smooth.has_part(of)
    tol = 1e-8 * of.scale
    found = smooth.newton(of, of.start(), tol, 100, Progress())
    again = smooth.newton(replace(of, threads=3), of.start(), tol, 100, Progress())
    np.testing.assert_array_equal(again.coef, found.coef)
    monkeypatch.setattr(several_scores, "native_pass", lambda _: False)
    general = smooth.newton(of, of.start(), 1e-4 * tol, 100, Progress())
    assert 0.0 <= found.objective - found.bound <= tol
    assert found.bound - 1e-4 * tol <= general.objective
    assert found.objective >= general.bound
    np.testing.assert_allclose(found.coef, general.coef, atol=1e-4)


def test_a_heavy_hessian_of_a_part_is_not_formed() -> None:
    X, y, p = data(0, 30_000)
    wide = np.random.default_rng(0).normal(size=(30_000, 170))
    assert smooth.has_part(problem(X, y, p, L2()))
    assert not smooth.has_part(problem(wide, y, p, L2()))
    assert smooth.has_part(problem(wide, y, p, NoPenalty()))  # native code takes none of them
