"""Subgradient descent by name: any convex loss and penalty, kinks included.

    w ← w − η_t g_t,   g_t a subgradient of P at w,   η_t = c/√t  (or c/t)       (projected onto the constraint if there is one)

A step need not descend, so the best point met is kept. With ‖g_t‖ ≤ G and R the distance of the start from the optimum,

    P_best − P* ≤ (R² + G² Σ η_t²) / (2 Σ η_t),       about (R² + c²G² ln T) / (4c√T) for c/√t.     Shor 1985; Nesterov 2004, 3.2

The gap of the certificate does not rest on it: it is a duality gap like any other. At a kink a single slope says little, so that
for losses with kinks the dual point is the mean of the slopes met, weighted by the steps, over the last half of the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit.data.gate import check_choice, check_real
from certifit.optimization.first_order.descent import GradientDescent
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.optimization.stochastic.bounds import averaged_bound
from certifit.progress import Progress

__all__ = ["SubgradientDescent"]

CHECK_EVERY = 100  # iterations between two looks at the bound, which costs a pass over X


@dataclass(frozen=True)
class SubgradientDescent:
    """Batch subgradient descent: for the hinge, the absolute loss, the lasso, and everything else.

    Parameters
    ----------
    step : {"1/sqrt(t)", "1/t"}, default="1/sqrt(t)"
        How the step size decays.
    size : float or None, default=None
        The constant c. None takes the size of the first gradient into account: a first step that would halve the objective if it
        were linear.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearModel, SubgradientDescent
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]), np.array([1.0, 3.0, 5.0, 7.0, 40.0])
    >>> model = LinearModel("squared", "l1", alpha=1.0, solver=SubgradientDescent(), tol=0.05).fit(X, y)
    >>> model.certificate_.certified, "at most" in model.certificate_.note
    (True, True)
    """

    step: str = "1/sqrt(t)"
    size: float | None = None

    def __post_init__(self) -> None:
        check_choice("step", self.step, ("1/sqrt(t)", "1/t"))
        if self.size is not None:
            check_real("size", self.size, low=0, open_low=True)

    def __call__(self, problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
        """Descend until the gap is small enough, or the iterations are used."""
        state = best = problem.at(*start)
        first = problem.join(*start)
        bound, steepest, total, squares, size = 0.0, 0.0, 0.0, 0.0, self.size
        met = _Slopes(problem)
        iteration = 0
        for iteration in range(1, max_iter + 1):
            g = GradientDescent.gradient(state)
            norm = float(np.linalg.norm(g))
            if (
                norm == 0.0
            ):  # zero is a subgradient: of a convex objective an optimum, of another perhaps a plain far away
                best = state if state.objective <= best.objective else best
                bound = max(bound, dual_bound(best))
                break
            steepest = max(steepest, norm)
            size = 0.5 * state.objective / norm**2 if size is None else size
            eta = size * (iteration**-0.5 if self.step == "1/sqrt(t)" else 1.0 / iteration)
            total, squares = total + eta, squares + eta * eta
            met.add(state, eta, iteration)
            w, b = problem.split(problem.join(state.w, state.b) - eta * g)
            state = problem.at(problem.regularizer.project(w), b)
            if state.objective < best.objective:
                best = state
            if iteration % CHECK_EVERY == 0 or iteration == max_iter:
                bound = max(bound, dual_bound(best), met.bound())
                clock.update(iteration, max_iter, (best.objective - bound) / max(problem.scale, 1e-300))
                if best.objective - bound <= tol:
                    break
        moved = float(np.linalg.norm(problem.join(best.w, best.b) - first))
        rate = (moved**2 + steepest**2 * squares) / (2.0 * total) if total > 0 else 0.0
        note = (
            f"After {iteration} steps the theory gives at most (R² + G²Ση²)/(2Ση) = {rate:.3g} above the optimum, "
            "if the optimum is no farther from the start than the point reached."
        )
        return Solution(best.w, best.b, iteration, "subgradient", bound, note=note)


class _Slopes:
    """The mean slope of each row over the last half of the way, for a loss with kinks of rows in memory."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.wanted = problem.in_memory and not problem.loss.smooth and problem.n_scores == 1
        self.windows = [(np.zeros(0), 0.0)] * 2
        """Sums since the last power of two, and since the one before."""

    def add(self, state: State, eta: float, iteration: int) -> None:
        """One more point; at powers of two a new window begins."""
        if not self.wanted:
            return
        if iteration & (iteration - 1) == 0:
            self.windows = [(np.zeros(self.problem.shape[0]), 0.0), self.windows[0]]
        theta = eta * state.theta[0]
        self.windows = [(total + theta if total.size else total, weight + eta) for total, weight in self.windows]

    def bound(self) -> float:
        """The best dual value of the windows."""
        if not self.wanted:
            return 0.0
        means = [total / weight for total, weight in self.windows if total.size and weight > 0]
        return max((averaged_bound(self.problem, mean) for mean in means), default=0.0)
