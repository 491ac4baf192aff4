"""A fit on blocks of rows is the fit in memory: closed form, Newton and prox-Newton, for one score and for several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from certifit.losses import Absolute, Hinge, Huber, Logistic, Loss, Poisson, Softmax, Squared, SquaredHinge
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.dispatch import SOLVERS, minimize
from certifit.optimization.objective.fold import Step
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.objective.units import condition, is_extreme
from certifit.penalties import L1, L2, L2Ball, Lq, NonNegative, NoPenalty, Penalty
from certifit.progress import Progress
from certifit.representation.design import design
from certifit.representation.design.blocks import row_blocks
from certifit.representation.design.design import Design, Partitioned

CUTS = {1: [0, 90], 2: [0, 37, 90], 7: [0, 10, 11, 40, 40, 41, 77, 90]}  # of the seven, the fourth is empty
CASES: list[tuple[Loss, Penalty, str]] = [
    (Squared(), NoPenalty(), "closed_form"),
    (Squared(), L2(), "closed_form"),
    (Logistic(), L2(), "newton"),
    (Poisson(), NoPenalty(), "newton"),
    (Huber(), L2(), "newton"),
    (Poisson(), L2(), "newton_cg"),
    (Softmax(3), L2(), "newton"),
    (Softmax(3), NoPenalty(), "newton"),
    (Squared(), L1(), "prox_newton"),
    (Logistic(), L1(), "prox_newton"),
    (Poisson(), L1(), "prox_newton"),
    (SquaredHinge(), L1(), "prox_newton"),
    (Softmax(3), L1(), "prox_newton"),
    (Logistic(), L2(), "proximal"),
    (Logistic(), L2(), "gradient"),
]


class Read(Design):
    """Rows that are no matrix: some of them at a time are read, as from a file."""

    dtype = np.dtype(np.float64)

    def __init__(self, stored: np.ndarray) -> None:
        self.stored = stored

    @property
    def shape(self) -> tuple[int, int]:
        return self.stored.shape[0], self.stored.shape[1]

    def dense_rows(self, rows: slice) -> np.ndarray:
        return self.stored[rows]


def data(loss: Loss, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) + np.array([0.0, 1.0, 0.0, -2.0])
    f = X @ [0.4, -0.3, 0.0, 0.3]
    if loss.task == "multiclass":
        y = (X @ rng.normal(size=(4, 3)) + rng.gumbel(size=(90, 3))).argmax(axis=1)
    elif loss.task == "binary":
        y = (f + rng.logistic(size=90) > 0).astype(float)
    else:
        y = rng.poisson(np.exp(f)).astype(float)
    p = rng.integers(1, 4, size=90).astype(float)
    return scale * X, y, p / p.sum()


def cut(problem: Problem, edges: list[int]) -> Problem:
    """The same rows in parts."""
    pieces = [slice(a, b) for a, b in pairwise(edges)]
    X = Partitioned([problem.X[piece] for piece in pieces])
    y, p = [problem.y[piece] for piece in pieces], [problem.p[piece] for piece in pieces]
    return Problem(X, y, p, problem.loss, problem.regularizer, problem.fit_intercept)


def whole(
    loss: Loss, penalty: Penalty, kind: Callable[[Any], Any] = np.asarray, *, intercept: bool = True, scale: float = 1.0
) -> Problem:
    X, y, p = data(loss, scale)
    return Problem(kind(X), y, p, loss, Regularizer.of(penalty, 0.02, None, 4), intercept)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("loss", "penalty", "solver"), CASES, ids=lambda case: str(case))
def test_the_fit_does_not_depend_on_the_blocks(loss: Loss, penalty: Penalty, solver: str, intercept: bool) -> None:
    problem, limit = whole(loss, penalty, intercept=intercept), 5000 if solver in ("proximal", "gradient") else 100
    tol = 1e-5 if limit == 5000 else 1e-9
    wanted, certificate = minimize(problem, solver, tol, limit, Progress())
    assert certificate.certified, str(certificate)
    for edges in CUTS.values():
        parts = cut(problem, edges)
        assert parts.scale == pytest.approx(problem.scale, rel=1e-13)
        np.testing.assert_allclose(parts.constant, problem.constant, atol=1e-12)
        found, c = minimize(parts, solver, tol, limit, Progress())
        np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-9)
        np.testing.assert_allclose(found.intercept, wanted.intercept, atol=1e-9)
        assert (c.certified, c.kind, found.solver) == (True, certificate.kind, solver)
        assert c.objective == pytest.approx(certificate.objective, rel=1e-12)
        assert c.bound == pytest.approx(certificate.bound, abs=1e-9 * problem.scale)


@pytest.mark.parametrize("kind", [np.asfortranarray, sp.csr_array, sp.csc_array], ids=lambda f: f.__name__)
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(3)], ids=repr)
@pytest.mark.parametrize("penalty", [L2(), L1()], ids=repr)
def test_blocks_of_other_matrices(loss: Loss, penalty: Penalty, kind: Callable[[Any], Any]) -> None:
    problem, parts = whole(loss, penalty), cut(whole(loss, penalty, kind), CUTS[7])
    wanted, _ = minimize(problem, "auto", 1e-9, 100, Progress())
    found, c = minimize(parts, "auto", 1e-9, 100, Progress())
    assert c.certified
    np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-6)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(3)], ids=repr)
def test_sums_at_a_point(loss: Loss) -> None:
    problem = whole(loss, L1())
    rng = np.random.default_rng(1)
    w, b = problem.start()
    w = w + rng.normal(size=w.shape)
    one, many = problem.at(w, b), cut(problem, CUTS[7]).at(w, b)
    assert many.risk == pytest.approx(one.risk, rel=1e-13)
    np.testing.assert_allclose(many.slope.columns, one.slope.columns, atol=1e-13)
    np.testing.assert_allclose(many.slope.level, one.slope.level, atol=1e-13)
    np.testing.assert_allclose(many.hessian(), one.hessian(), atol=1e-13)
    assert dual_bound(many) == pytest.approx(dual_bound(one), abs=1e-13)
    np.testing.assert_allclose(many.refitted().b, one.refitted().b, atol=1e-12)


@pytest.mark.parametrize("promised", [np.inf, np.nan, 1e3])
def test_no_promise_excuses_a_rise(promised: float) -> None:
    """Rounding may spoil the model of a step; the objective does not rise for it."""
    problem = whole(Softmax(3), L1())
    state = problem.at(*problem.start())
    with np.errstate(all="ignore"):
        assert Step(state, np.full(state.w.shape, 1e200), 0.0 * state.b).search(promised) == (0.0, state.objective)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(3)], ids=repr)
def test_extreme_units_on_blocks(loss: Loss) -> None:
    problem = whole(loss, NoPenalty(), scale=1e120)
    parts = cut(problem, CUTS[7])
    assert is_extreme(parts)
    np.testing.assert_array_equal(condition(parts)[1].column, condition(problem)[1].column)
    wanted, _ = minimize(whole(loss, NoPenalty()), "auto", 1e-9, 100, Progress())
    found, c = minimize(parts, "auto", 1e-9, 100, Progress())
    assert c.certified
    np.testing.assert_allclose(found.coef * 1e120, wanted.coef, atol=1e-6)


@pytest.mark.parametrize("constraint", [NonNegative(), L2Ball(0.2)], ids=repr)
def test_constraints_on_blocks(constraint: Any) -> None:
    X, y, p = data(Poisson())
    problem = Problem(X, y, p, Poisson(), Regularizer.of(NoPenalty(), 0.0, constraint, 4), True)
    wanted, _ = minimize(problem, "auto", 1e-8, 200, Progress())
    found, c = minimize(cut(problem, CUTS[7]), "auto", 1e-8, 200, Progress())
    assert c.certified
    np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-4)


def test_what_needs_rows_in_memory_says_so() -> None:
    parts = cut(whole(Squared(), L1()), CUTS[2])
    assert SOLVERS["coordinate"].in_memory
    with pytest.raises(ValueError, match=r"needs all rows in memory.*'prox_newton'"):
        minimize(parts, "coordinate", 1e-6, 100, Progress())
    with pytest.raises(ValueError, match="same columns"):
        Partitioned([np.eye(2), np.eye(3)])
    with pytest.raises(ValueError, match="all dense or all sparse"):
        Partitioned([np.eye(2), sp.csr_array(np.eye(2))])


@pytest.mark.parametrize("scale", [1.0, 1e120])
@pytest.mark.parametrize("penalty", [NoPenalty(), L2(), L1(), Lq(1.5)], ids=repr)
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(), SquaredHinge(), Softmax(3)], ids=repr)
def test_a_design_that_is_no_matrix(
    loss: Loss, penalty: Penalty, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind of design says what some of its rows are; all products come from blocks of them."""
    monkeypatch.setattr(design, "row_blocks", partial(row_blocks, entries=1))
    problem = whole(loss, penalty, scale=scale)
    wanted, certificate = minimize(problem, "auto", 1e-9, 100, Progress())
    found, c = minimize(replace(problem, X=Read(problem.X)), "auto", 1e-9, 100, Progress())
    assert c.certified == certificate.certified
    np.testing.assert_allclose(found.coef * scale, wanted.coef * scale, atol=1e-5)


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Softmax(3)], ids=repr)
def test_columns_of_no_matrix_far_from_zero(loss: Loss) -> None:
    """Their means are taken off, as those of a matrix are: products with the intercept would cancel."""
    X, y, p = data(loss)
    problem = Problem(X + 1e8, y, p, loss, Regularizer.of(L2(), 0.02, None, 4), True)
    wanted, certificate = minimize(problem, "newton", 1e-9, 100, Progress())
    found, c = minimize(replace(problem, X=Read(X + 1e8)), "newton", 1e-9, 100, Progress())
    assert certificate.certified
    assert c.certified
    np.testing.assert_allclose(found.coef, wanted.coef, atol=1e-7)


@pytest.mark.parametrize("kind", [Read, lambda X: Partitioned([X[:30], X[30:]])], ids=["read", "parts"])
@pytest.mark.parametrize("penalty", [NoPenalty(), L2(), L1(), Lq(1.5)], ids=repr)
@pytest.mark.parametrize("loss", [Absolute(), Hinge()], ids=repr)
def test_kinked_losses_where_rows_are_not_in_memory(loss: Loss, penalty: Penalty, kind: Callable[[Any], Any]) -> None:
    """The free choice takes a solver that asks for sums over rows, as any other way would be refused."""
    X, y, p = data(loss)
    y = y if loss.task == "binary" else y + X[:, 0]
    problem = Problem(X, y, p, loss, Regularizer.of(penalty, 0.02, None, 4), True)
    wanted, _ = minimize(problem, "auto", 1e-9, 200, Progress())
    cuts = {} if kind is Read else {"y": [y[:30], y[30:]], "p": [p[:30], p[30:]]}
    found, c = minimize(replace(problem, X=kind(X), **cuts), "auto", 1e-6, 1000, Progress())
    assert (found.solver, c.certified) == ("smoothing", True)
    best = problem.objective(wanted.coef, wanted.intercept)
    assert problem.objective(found.coef, found.intercept) <= best + 1e-6 * problem.scale
    assert c.bound <= best * (1 + 1e-9)


def test_the_closed_form_refuses_a_design_that_is_no_matrix() -> None:
    problem = whole(Squared(), L2())
    with pytest.raises(ValueError, match="needs rows of matrices; of another design use 'newton'"):
        minimize(replace(problem, X=Read(problem.X)), "closed_form", 1e-6, 100, Progress())
    with pytest.raises(ValueError, match="needs all rows in memory"):
        minimize(replace(problem, X=Read(problem.X)), "coordinate", 1e-6, 100, Progress())
