"""Newton's method for a smooth loss of one score on a Gram matrix.

    P(β, b) = Σ p_i ℓ(y_i, (Kβ)_i + b) + alpha·½ βᵀKβ

With W = pℓ'' the step δ solves  alpha δ + W(Kδ + δ_b) = −(alpha β + pℓ'),  Σδ = 0.  As δ = √W γ this is symmetric,

    (alpha I + √W K √W) γ + √W δ_b = −(alpha β + pℓ')/√W,

and no factor of K itself is needed: K may be singular. The end of a step is a point of the dual, whatever conjugate gradients
left of the equations, so that every step comes with its proof.
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Squared
from certifit.optimization.closed_form.shifts.factor import MOST_STEPS, SINGLE_FROM, ShiftedFactor, solve_shifted
from certifit.optimization.newton.smooth import Damping
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.forms.gram import GramProblem, GramSolution
from certifit.progress import Progress

__all__ = ["newton_on_gram"]

PATIENCE = 16  # steps of conjugate gradients from which a factor of the present weights is worth its price
UNSEEN = 1e-12  # of alpha: curvature that changes nothing

GramPoint = tuple[Array, Array, float]
"""Coefficients, their image under K, and the intercept."""


def newton_on_gram(
    problem: GramProblem, tol: float, max_iter: int, clock: Progress, factor: ShiftedFactor | None = None
) -> GramSolution:
    """Newton to the absolute gap `tol`; the factor may come from another target with the squared loss."""
    given, (problem, kernel, target, unit) = problem, problem.in_units()
    tol = tol / unit
    n = problem.p.shape[0]
    beta, image, b = np.zeros(n), np.zeros(n), problem.plain.constant
    state = problem.state(np.full(n, b), b)
    value, bound, note, iteration = state.risk, 0.0, "", 0
    damping, solver = Damping(problem.loss), _Steps(problem, factor)
    for iteration in range(1, max_iter + 1):
        slope = problem.alpha * beta + problem.p * state.theta[0]
        h = damping.curvatures(state)[0]
        step = solver.step(h, slope, value - bound, tol)
        if step is None:  # all rows are on linear parts of the loss: borrow curvature
            damping.learn(0.0)
            continue
        delta, moved, db = step
        ahead = problem.state(image + moved + b + db, b + db)
        bound = max(bound, problem.dual(ahead, beta + delta, image + moved))
        promised = float(moved @ slope) + db * float(problem.p @ state.theta[0])
        t, state, reached = _search(problem, (beta, image, b), step, value, promised, ahead)
        clock.update(iteration, max_iter, (value - bound) / max(problem.scale, 1e-300))
        damping.learn(t)
        stalled = t == 0.0 or value - reached <= 1e-15 * abs(value)
        beta, image, b, value = beta + t * delta, image + t * moved, b + t * db, reached
        if value - bound > tol:  # the slopes at the new point may prove more than the end of the step
            point = problem.balanced(state)
            bound = max(bound, problem.dual(state, point, problem.K @ point))
        if value - bound <= tol:
            break
        if stalled and damping.level < 1.0:
            damping.learn(0.0)
        elif stalled:
            note = "Rounding limits the fit."
            break
    beta, b = beta * (target / kernel), b * target
    image = given.K @ beta
    value = given.value(beta, image, b)
    return GramSolution(beta, b, value, min(bound * unit, value), iteration, "newton", note=note, factor=solver.factor)


class _Steps:
    """Newton's equations, with a factor that is kept while it serves."""

    def __init__(self, problem: GramProblem, factor: ShiftedFactor | None) -> None:
        self.problem, self.factor = problem, factor
        self.largest = float(np.diagonal(problem.K).max(initial=0.0)) * problem.p.shape[0]

    def step(self, h: Array, slope: Array, gap: float, tol: float) -> GramPoint | None:
        """δ, Kδ and δ_b; None where no row has curvature."""
        problem, alpha = self.problem, self.problem.alpha
        w = problem.p * np.maximum(h, 0.0)
        seen = w * self.largest > UNSEEN * alpha
        if not seen.any():
            return None
        s = np.where(seen, np.sqrt(w), 0.0)
        apart = np.where(seen, 0.0, -slope / alpha)  # rows without curvature go their own way
        right = np.where(seen, -slope, 0.0) / np.where(seen, s, 1.0)
        if not seen.all():
            right -= s * (problem.K @ apart)
        total = None if not problem.fit_intercept else -float(apart.sum())
        # The model's error in primal and dual is to be small beside the present gap, and enough in the end.
        constant = isinstance(problem.loss, Squared)
        share = 0.0 if constant else min(1e-2, gap / max(problem.scale, 1e-300))
        kept, double = self.factor, False
        while True:
            most = MOST_STEPS if kept is None or constant else PATIENCE
            self.factor = ShiftedFactor(problem.K, s, alpha, double=double) if kept is None else kept
            gamma, db = solve_shifted(
                problem.K, s, alpha, right, self.factor, total=total, wanted=0.02 * tol, share=share, most=most
            )
            # A factor of other weights, or of fewer digits, that leads nowhere: the right one does.
            if self.factor.used < most or (kept is None and not self.factor.single):
                break
            kept, double = None, kept is None
        if not constant and s.shape[0] < SINGLE_FROM:
            self.factor = None
        delta = s * gamma + apart
        return delta, problem.K @ delta, db


def _search(
    problem: GramProblem, point: GramPoint, step: GramPoint, value: float, promised: float, ahead: State
) -> tuple[float, State, float]:
    """Halve the step until P falls by a share of what is promised: the share, 0 if it never does, the state and P there."""
    (beta, image, b), (delta, moved, db), t, state = point, step, 1.0, ahead
    for _ in range(40):
        reached = state.risk + 0.5 * problem.alpha * float((beta + t * delta) @ (image + t * moved))
        level = abs(promised) <= 1e-13 * abs(value) and reached <= value * (1 + 1e-15)
        if reached <= value + 1e-4 * t * promised or level:
            return t, state, reached
        t *= 0.5
        state = problem.state(image + b + t * (moved + db), b + t * db)
    return 0.0, problem.state(image + b, b), value
