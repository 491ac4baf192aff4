"""The certificate of a solution, at the coefficients that the user gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import certifit._native.products as _products
from certifit._types import Array
from certifit.certificate import Certificate
from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.convexity import is_own
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.fold import Part, State
from certifit.optimization.objective.problem import Problem, Solution
from certifit.progress import Progress
from certifit.representation.design.design import Dense, Design, Sparse
from certifit.representation.design.products import few_rows

__all__ = ["certify"]

NO_USE = 1e8  # times the objective of the best constant: it takes the place of a point so far off
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 4.0 * EPS
ORDINARY = 1e3  # times their range: terms of scores that large cancel, and what that leaves is looked at
SAMPLE = 1 << 10  # entries of X in which such terms are looked for first
UNSEEN = 1e-12  # of the scale: rounding that nobody asks for


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
    # Zero is a bound whatever rounding does, but then the objective is what may be off, and the gap is that much larger.
    doubt = _doubt(problem, coef, solution.intercept, objective, state)
    if doubt > UNSEEN * max(problem.scale, objective):
        bound = bound - doubt if bound <= 0.0 else max(bound - doubt, 0.0)
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


def _doubt(problem: Problem, coef: Array, intercept: Any, objective: float, state: State | None) -> float:
    """What rounding of the scores, relative to |x|·|w| + |b|, may do to the value and to the bound; zero where it does not show.

    Each score may be off by a few units in the last place of its largest term, the loss by as much times its slope, and the
    equations Xᵀ(pθ) of the bound, times w, by the same sum. Where that is not small beside one, slopes of
    labels change on the way.
    """
    if not coef.any():
        return 0.0  # scores are the intercept itself
    if state is None:
        if all(_ordinary(block.design, coef, intercept) for block in problem.blocks):
            return 0.0
        if _harmless(problem, coef, intercept, objective):
            return 0.0
        state = problem.at(coef, intercept, exact=True)
    with np.errstate(all="ignore"):
        parts = [(part, part.block.design.reach(state.w, state.b)) for part in state.parts]
        # Scores of labels have the unit one; numbers are rounded as much as the scores that meet them.
        bend = problem.loss.smoothness if problem.loss.task != "regression" else 0.0
        if not np.isfinite(bend):  # a kink that rounding may have passed: what slopes are on its other side
            off = (_steepest(problem.loss, part, EPS * reach) * reach for part, reach in parts)
        else:
            off = (np.abs(part.theta) * reach + 0.5 * bend * EPS * reach**2 for part, reach in parts)
        return EPS * float(sum((part.block.p @ each).sum() for (part, _), each in zip(parts, off, strict=True)))


def _steepest(loss: Loss, part: Part, off: Array) -> Array:
    """The size of the slope of each row at most, for scores of labels that may be `off` by so much."""
    if part.f.ndim == 2:
        return np.abs(part.theta)
    ends = (np.abs(loss.derivative(part.block.y, part.f + side * off)) for side in (-1.0, 1.0))
    return np.maximum(np.abs(part.theta), np.maximum(*ends))


def _harmless(problem: Problem, coef: Array, intercept: Any, objective: float) -> bool:
    """Whether the doubt cannot be seen whatever the rows are, for a sparse X and one score.

    No row reaches further than the largest entry times ‖w‖₁, and Σ p |ℓ'| ≤ √(2Lρ) for the risk ρ where slopes have the Lipschitz
    constant L: a loss that is never negative falls by ℓ'²/2L at least. Of a piecewise linear loss it is at most the steepest
    slope.
    """
    if problem.n_scores > 1 or not problem.loss.convex or is_own(problem.loss):
        return False
    designs = [block.design for block in problem.blocks]
    if not all(isinstance(design, Sparse) for design in designs):
        return False
    largest = max(float(max(d.X.data.max(initial=0.0), -d.X.data.min(initial=0.0))) for d in designs)
    reach = largest * float(np.abs(coef).sum()) + abs(float(intercept))
    terms = problem.hinge_terms if problem.in_memory else None
    if terms is None:
        slopes = float(np.sqrt(2.0 * problem.loss.smoothness * objective))
    else:
        slopes = float(max(np.max(terms.slope_low), np.max(terms.slope_high)))
    return EPS * slopes * reach <= UNSEEN * max(problem.scale, objective)


def _ordinary(design: Design, coef: Array, intercept: Any) -> bool:
    """Whether no terms of the scores of a few rows are far beyond their range."""
    if not isinstance(design, Dense):
        return False
    rows, step = few_rows(design.X, SAMPLE)
    planes = np.ascontiguousarray(coef if coef.ndim == 2 else coef[None], dtype=np.float64)
    far, width = _products.reach(rows, step, planes, np.array(intercept, dtype=np.float64, ndmin=1))
    return bool(far <= ORDINARY * width)
