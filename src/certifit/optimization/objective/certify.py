"""The certificate of a solution, at the coefficients that the user gets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit.certificate import Certificate
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.problem import Problem, Solution
from certifit.progress import Progress

__all__ = ["certify"]

NO_USE = 1e8  # times the objective of the best constant: it takes the place of a point so far off
ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


def certify(problem: Problem, solution: Solution, tol: float, clock: Progress) -> tuple[Solution, Certificate]:
    """Objective and bound in double precision; the solver's own where it knows them."""
    coef, objective, bound, state = solution.coef, solution.objective, solution.bound, None
    if not np.isfinite(objective) or problem.X.dtype != np.float64:
        coef = problem.regularizer.project(coef).astype(problem.X.dtype).astype(np.float64)
        state = problem.at(coef, solution.intercept, exact=True)
        objective = state.objective
    if not objective <= NO_USE * problem.scale:
        first = problem.at(*problem.start(), exact=True)
        if first.objective < problem.scale * NO_USE:
            solution = replace(solution, coef=first.w, intercept=first.b, objective=first.objective)
            coef, objective, state = first.w, first.objective, first
    if objective - bound > tol * problem.scale:
        state = problem.at(coef, solution.intercept, exact=True) if state is None else state
        bound = max(bound, dual_bound(state, exact=True))
    # A gap that the objective itself cannot be told to, in double precision, is none; where the best constant is perfect, or
    # far outside the constraint, it would be large beside the scale.
    if 0.0 < objective - bound <= ROUNDING * abs(objective):
        bound = objective
    certificate = Certificate(
        solution.kind,
        objective=objective,
        bound=bound,
        scale=problem.scale,
        tol=tol,
        iterations=solution.iterations,
        seconds=clock.seconds,
        note=solution.note,
    )
    return solution if coef is solution.coef else replace(solution, coef=coef), certificate
