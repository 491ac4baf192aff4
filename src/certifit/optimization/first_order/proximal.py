"""Accelerated proximal gradient (FISTA) for any smooth loss and any regularizer with a prox.

    z = w + momentum,   w⁺ = prox_{R/L}(z − ∇(z)/L)

L is found by backtracking, and the momentum restarts when it points uphill.     Beck & Teboulle 2009; O'Donoghue & Candès 2015
"""

from __future__ import annotations

import numpy as np

from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.fold import Part, State, Step
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.progress import Progress

__all__ = ["curvature", "proximal_gradient"]

CHECK_EVERY = 10  # iterations between two evaluations of the gap


def proximal_gradient(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """Minimize P to the absolute gap `tol`; the intercept is minimized out exactly at every check."""
    regularizer = problem.regularizer
    state = ahead = best = problem.at(*start)
    lipschitz, momentum, bound = curvature(state), 1.0, 0.0
    iteration = 0
    for iteration in range(1, max_iter + 1):
        slope = ahead.slope
        level = slope.level if problem.fit_intercept else 0.0 * slope.level
        for _ in range(100):
            dw = regularizer.prox(ahead.w - slope.columns / lipschitz, 1.0 / lipschitz) - ahead.w
            db = -level / lipschitz
            new = Step(ahead, dw, db).ahead()
            model = float((slope.columns * dw).sum() + np.sum(level * db))
            model += 0.5 * lipschitz * float((dw * dw).sum() + np.sum(db * db))
            if new.risk <= ahead.risk + model + 1e-14 * abs(ahead.risk):
                break
            lipschitz *= 2.0
        # Restart when the step turns against the last direction of travel.
        turned = float(((ahead.w - new.w) * (new.w - state.w)).sum() + np.sum((ahead.b - new.b) * (new.b - state.b)))
        if turned > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        ahead = _beyond(state, new, (momentum - 1.0) / following)
        state, momentum = new, following
        lipschitz *= 0.98  # let a step that was too careful grow again
        if iteration % CHECK_EVERY == 0 or iteration == max_iter:
            # Undo the drift of the running sums, of both: what one has more than the other grows with every step beyond.
            state, ahead = problem.at(state.w, state.b), problem.at(ahead.w, ahead.b)
            check = state.refitted() if problem.fit_intercept else state
            best = check if check.objective < best.objective else best
            bound = max(bound, dual_bound(check))
            clock.update(iteration, max_iter, (best.objective - bound) / max(problem.scale, 1e-300))
            if best.objective - bound <= tol:
                break
    return Solution(best.w, best.b, iteration, "proximal", bound)


def _beyond(old: State, new: State, push: float) -> State:
    """The point a share `push` beyond the way from old to new."""
    parts = [Part(a.block, a.f + push * (a.f - z.f)) for z, a in zip(old.parts, new.parts, strict=True)]
    return State(new.problem, new.w + push * (new.w - old.w), new.b + push * (new.b - old.b), parts)


def curvature(state: State) -> float:
    """An estimate of the largest curvature of the risk, by power iteration; from below, so steps are checked."""
    direction, none = np.random.default_rng(0).normal(size=state.w.shape), 0.0 * np.asarray(state.b)
    for _ in range(5):
        image = state.curved(state.h, direction, none)[1].columns
        size = float(np.linalg.norm(image))
        if not (size > 0 and np.isfinite(size)):
            return 1.0
        direction = image / size
    return max(size, float(np.trace(np.atleast_2d(state.bend()))), 1e-300)
