"""Any convex loss on a Gram matrix, through the solvers of matrices.

The pivots of Cholesky's method give K = L Lᵀ with as many columns as K has rank. On the matrix L every solver of the table
minimizes

    Σ p_i ℓ(y_i, l_i·u + b) + alpha·½‖u‖²,      f = L u + b,

and the dual point that it leaves is judged with K itself, so that what rounding dropped from L is part of the gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.evaluation.penalties import L2
from certifit.optimization.newton.gram import newton_on_gram
from certifit.optimization.objective.dispatch import minimize
from certifit.optimization.objective.forms.gram import GramProblem, GramSolution
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.objective.trust import admitted
from certifit.progress import Progress
from certifit.representation.kernels.span import Span, pivoted

__all__ = ["minimize_on_gram"]


def minimize_on_gram(
    problem: GramProblem, solver: Any, tol: float, max_iter: int, clock: Progress, factor: Any = None
) -> tuple[GramSolution, Certificate]:
    """Minimize to the relative gap `tol` and prove how well it went.

    Smooth losses of one score are minimized on K itself by Newton's method; others, and solvers asked for by name, on a factor.
    """
    one_score = problem.loss.smooth and not problem.loss.coupled and problem.y.ndim == 1
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        if one_score and solver == "auto":
            found = newton_on_gram(problem, tol * problem.scale, max_iter, clock, factor)
        else:
            found = _by_factor(problem, solver, tol, max_iter, clock)
    if not (np.isfinite(found.beta).all() and np.isfinite(found.intercept).all()):
        raise ValueError("The best coefficients are beyond the range of double precision: scale X or y.")
    certificate = Certificate(
        found.kind,
        objective=found.objective,
        bound=found.bound,
        scale=problem.scale,
        tol=tol,
        iterations=found.iterations,
        seconds=clock.seconds,
        note=found.note,
    )
    return found, admitted(*_as_columns(problem, found), certificate)


def _by_factor(problem: GramProblem, solver: Any, tol: float, max_iter: int, clock: Progress) -> GramSolution:
    L, order = pivoted(problem.K)
    n, r = L.shape
    rows = np.empty_like(L)
    rows[order] = L
    on_factor = Problem(
        rows, problem.y, problem.p, problem.loss, Regularizer.of(L2(), problem.alpha, None, r), problem.fit_intercept
    )
    solution, certificate = minimize(on_factor, solver, tol, max_iter, clock)
    span = Span(order[:r], L[:r])
    beta = np.zeros((n, *solution.coef.shape[:-1]))
    beta[span.chosen] = span.coefficients(solution.coef)
    image = problem.K @ beta
    objective = problem.value(beta, image, solution.intercept)
    known = certificate.bound - _dropped(problem, rows)
    bound = min(max(known, _bound(problem, image, solution, objective, tol)), objective)
    kind = "duality gap" if certificate.kind != "closed form" else certificate.kind
    return GramSolution(
        beta, solution.intercept, objective, bound, solution.iterations, solution.solver, kind, solution.note
    )


def _dropped(problem: GramProblem, L: Array) -> float:
    """What a bound on the factor can lose on K: (pθ)ᵀ(K − LLᵀ)(pθ)/(2 alpha) with the largest slopes that the loss can have."""
    dropped = max(float(np.diagonal(problem.K).sum() - (L * L).sum()), 0.0)
    low, high = problem.loss.dual_domain(problem.y)
    slopes = problem.p * np.maximum(np.abs(low), np.abs(high)).T
    largest = float((slopes * slopes).sum())
    return dropped * largest / (2.0 * problem.alpha) if dropped > 0.0 else 0.0


def _bound(problem: GramProblem, image: Array, solution: Solution, objective: float, tol: float) -> float:
    """The best of the dual points at hand: the solver's own, and the slopes of the loss."""
    state, best = problem.state(image + solution.intercept, solution.intercept), 0.0
    if solution.dual is not None:
        candidate = problem.balanced(state, solution.dual)
        best = max(best, problem.dual(state, candidate, problem.K @ candidate))
    if problem.loss.smooth and objective - best > tol * problem.scale:
        candidate = problem.balanced(state)
        best = max(best, problem.dual(state, candidate, problem.K @ candidate))
    if solution.solver == "constant":  # nothing is below the loss of a perfect constant
        best = max(best, problem.plain.risk(state.parts[0].f))
    return best


def _as_columns(problem: GramProblem, found: GramSolution) -> tuple[Problem, Solution]:
    """The fit as a linear model of its own scores: the form in which a loss of the user's own is looked at."""
    scores = problem.K @ found.beta + found.intercept
    columns = scores.reshape(scores.shape[0], -1)
    K = columns.shape[1]
    regularizer = Regularizer.of(L2(), 1.0, None, K)
    own = Problem(columns, problem.y, problem.p, problem.loss, regularizer, False)
    return own, Solution(np.ones(1) if scores.ndim == 1 else np.eye(K), 0.0 if scores.ndim == 1 else np.zeros(K), 1, "")
