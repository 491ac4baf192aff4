"""Gradient descent by name, for those who ask for it.

    w ← w − η_t ∇P(w)        (projected onto the constraint when there is one)

Step sizes: fixed c; decaying c/t or c/√t; backtracking line search. Convergence tests: the gap (always), and on request
a small gradient, a small change of the objective, or a small change of the parameters. Divergence is noticed and said.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_choice, check_real
from certifit.optimization.objective.problem import Problem, Solution, dual_bound
from certifit.progress import Progress
from certifit.representation.design.products import rmatvec

__all__ = ["GradientDescent"]

STEPS = ("backtracking", "fixed", "1/t", "1/sqrt(t)")
STOPS = ("gap", "gradient", "objective", "parameters")


@dataclass(frozen=True)
class GradientDescent:
    """Gradient descent with a chosen step size and convergence test.

    Parameters
    ----------
    step : {"backtracking", "fixed", "1/t", "1/sqrt(t)"}, default="backtracking"
        How the step size evolves.
    size : float or None, default=None
        The constant c of the fixed and decaying steps (backtracking: the first trial). None takes 1/L with L the
        curvature at the start.
    stop : {"gap", "gradient", "objective", "parameters"}, default="gap"
        Convergence test: the certificate's relative gap; or the norm of the gradient, the change of the objective, or
        the change of the parameters, each relative and below `precision`.
    precision : float, default=1e-8
        Threshold of the three classical tests.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GradientDescent, LinearModel
    >>> X, y = np.eye(3), np.array([1.0, 2.0, 3.0])
    >>> model = LinearModel(loss="squared", penalty="l2", alpha=0.1, solver=GradientDescent(step="backtracking"))
    >>> model.fit(X, y).certificate_.certified
    True
    """

    step: str = "backtracking"
    size: float | None = None
    stop: str = "gap"
    precision: float = 1e-8

    def __post_init__(self) -> None:
        check_choice("step", self.step, STEPS)
        check_choice("stop", self.stop, STOPS)
        check_real("precision", self.precision, low=0)
        if self.size is not None:
            check_real("size", self.size, low=0, open_low=True)

    def __call__(
        self, problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress
    ) -> Solution:
        """Descend until the convergence test holds."""
        (w, b), bound, note = start, 0.0, ""
        f = problem.scores(w, b)
        objective = first = self._value(problem, w, f)
        size = self.size if self.size is not None else 1.0 / self._curvature(problem, f)
        iteration, done = 0, False
        for iteration in range(1, max_iter + 1):
            g_w, g_b = self._gradient(problem, w, f)
            new_w, new_b, new_f, reached, size = self._step(problem, w, b, f, g_w, g_b, objective, size, iteration)
            if not np.isfinite(reached) or reached > 1e6 * (1.0 + first):
                note = f"Gradient descent diverged at iteration {iteration}: use a smaller size, or backtracking."
                break
            done = self._small(g_w, g_b, objective, reached, np.append(new_w - w, new_b - b), np.append(new_w, new_b))
            w, b, f, objective = new_w, new_b, new_f, reached
            if done or iteration % 10 == 0 or iteration == max_iter:
                bound = max(bound, dual_bound(problem, w, f))
                clock.update(iteration, max_iter, (objective - bound) / max(problem.scale, 1e-300))
                done = done or (self.stop == "gap" and objective - bound <= tol)
            if done:
                break
        return Solution(w, b, iteration, "gradient", bound, note=note)

    def _step(
        self,
        problem: Problem,
        w: Array,
        b: float,
        f: Array,
        g_w: Array,
        g_b: float,
        objective: float,
        size: float,
        t: int,
    ) -> tuple[Array, float, Array, float, float]:
        """One step; returns the new point, its scores and value, and the base of the next step size."""
        decay = {"1/t": 1.0 / t, "1/sqrt(t)": t**-0.5}.get(self.step, 1.0)
        for _ in range(60):
            length = size * decay
            new_w = problem.regularizer.project(w - length * g_w)
            new_b = b - length * g_b
            new_f = problem.scores(new_w, new_b)
            reached = self._value(problem, new_w, new_f)
            moved = float(np.sum((new_w - w) ** 2)) + (new_b - b) ** 2
            if self.step != "backtracking":
                break
            if reached <= objective - 0.5 * moved / length + 1e-15 * abs(objective):
                size *= 1.5  # try a longer step next time
                break
            size *= 0.5
        return new_w, new_b, new_f, reached, size

    def _small(self, g_w: Array, g_b: float, old: float, new: float, moved: Array, point: Array) -> bool:
        if self.stop == "gradient":
            return float(np.hypot(np.linalg.norm(g_w), g_b)) <= self.precision
        if self.stop == "objective":
            return abs(old - new) <= self.precision * max(abs(new), 1e-300)
        if self.stop == "parameters":
            return float(np.linalg.norm(moved)) <= self.precision * max(float(np.linalg.norm(point)), 1e-300)
        return False

    @staticmethod
    def _value(problem: Problem, w: Array, f: Array) -> float:
        return problem.risk(f) + problem.regularizer.value(w)

    @staticmethod
    def _gradient(problem: Problem, w: Array, f: Array) -> tuple[Array, float]:
        theta = problem.loss.derivative(problem.y, f)
        # At a kink of the penalty the middle of the subdifferential is the smallest choice for a symmetric one.
        low, high = problem.regularizer.penalty.subdifferential(w)
        g_w = rmatvec(problem.X, problem.p * theta) + 0.5 * problem.regularizer.alpha * (low + high)
        return g_w, float(problem.p @ theta) if problem.fit_intercept else 0.0

    @staticmethod
    def _curvature(problem: Problem, f: Array) -> float:
        from certifit.optimization.first_order.proximal import curvature

        parts = problem.regularizer.elastic()
        return curvature(problem, f) + (float(parts[1].max(initial=0.0)) if parts else 0.0)
