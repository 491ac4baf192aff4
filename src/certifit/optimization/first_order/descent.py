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
from certifit.optimization.first_order.proximal import curvature
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.fold import State
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.progress import Progress

__all__ = ["GradientDescent"]

STEPS = ("backtracking", "fixed", "1/t", "1/sqrt(t)")
STOPS = ("gap", "gradient", "objective", "parameters")


@dataclass(frozen=True)
class GradientDescent:
    """Gradient descent with a chosen step size and convergence test, for a loss of one score or of K (softmax).

    With a fixed step η ≤ 1/L, L the Lipschitz constant of the gradient, P(w_k) − P* ≤ ‖w_0 − w*‖²/(2ηk); the certificate's note
    has the number, with w* taken to be where the descent ended.

    Parameters
    ----------
    step : {"backtracking", "fixed", "1/t", "1/sqrt(t)"}, default="backtracking"
        How the step size evolves.
    size : float or None, default=None
        The constant c of the fixed and decaying steps (backtracking: the first trial). None takes 1/L with L the
        curvature at the start.
    stop : {"gap", "gradient", "objective", "parameters"}, default="gap"
        Convergence test: the certificate's relative gap; or one of the classical tests, below `precision`: the norm of the
        gradient (as a share of the steepest one met), the change of the objective (of the objective), the change of the
        parameters (of their norm).
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
    >>> from certifit import LogisticRegression
    >>> classes = LogisticRegression(alpha=0.1, solver=GradientDescent("fixed", size=0.5)).fit(np.eye(3), ["a", "b", "c"])
    >>> classes.coef_.shape, "2ηk" in classes.certificate_.note
    ((3, 3), True)
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

    def __call__(self, problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
        """Descend until the convergence test holds."""
        state, bound, note = problem.at(*start), 0.0, ""
        first, steepest = state.objective, 0.0
        parts = problem.regularizer.elastic()
        bend = curvature(state) + (float(parts[1].max(initial=0.0)) if parts else 0.0)
        size = self.size if self.size is not None else 1.0 / bend
        iteration, done = 0, False
        for iteration in range(1, max_iter + 1):
            g = self.gradient(state)
            steepest = max(steepest, float(np.linalg.norm(g)))
            new, size = self._step(state, g, size, iteration)
            if not np.isfinite(new.objective) or new.objective > 1e6 * (1.0 + first):
                note = f"Gradient descent diverged at iteration {iteration}: use a smaller size, or backtracking."
                break
            done = self._small(g, state, new, steepest)
            state = new
            if done or iteration % 10 == 0 or iteration == max_iter:
                bound = max(bound, dual_bound(state))
                clock.update(iteration, max_iter, (state.objective - bound) / max(problem.scale, 1e-300))
                done = done or (self.stop == "gap" and state.objective - bound <= tol)
            if done:
                break
        if self.step == "fixed" and not note:
            note = _fixed_step_bound(problem, start, state, size, iteration)
        return Solution(state.w, state.b, iteration, "gradient", bound, note=note)

    def _step(self, state: State, g: Array, size: float, t: int) -> tuple[State, float]:
        """One step; returns the new point and the base of the next step size."""
        problem, decay = state.problem, {"1/t": 1.0 / t, "1/sqrt(t)": t**-0.5}.get(self.step, 1.0)
        old = problem.join(state.w, state.b)
        for _ in range(60):
            length = size * decay
            w, b = problem.split(old - length * g)
            new = problem.at(problem.regularizer.project(w), b)
            if self.step != "backtracking":
                break
            moved = float(np.sum((problem.join(new.w, new.b) - old) ** 2))
            if new.objective <= state.objective - 0.5 * moved / length + 1e-15 * abs(state.objective):
                size *= 1.5  # try a longer step next time
                break
            size *= 0.5
        return new, size

    def _small(self, g: Array, old: State, new: State, steepest: float) -> bool:
        if self.stop == "gradient":
            return float(np.linalg.norm(g)) <= self.precision * steepest
        if self.stop == "objective":
            return abs(old.objective - new.objective) <= self.precision * max(abs(new.objective), 1e-300)
        if self.stop == "parameters":
            before, after = (state.problem.join(state.w, state.b) for state in (old, new))
            return float(np.linalg.norm(after - before)) <= self.precision * max(float(np.linalg.norm(after)), 1e-300)
        return False

    @staticmethod
    def gradient(state: State) -> Array:
        """∇P, or a subgradient, with the intercept first."""
        problem = state.problem
        # At a kink of the penalty the middle of the subdifferential is the smallest choice for a symmetric one.
        low, high = problem.regularizer.penalty.subdifferential(state.w)
        columns = state.slope.columns + 0.5 * problem.regularizer.alpha * (low + high)
        return problem.join(columns, state.slope.level)


def _fixed_step_bound(problem: Problem, start: Point, state: State, size: float, k: int) -> str:
    """The theorem on fixed steps in numbers, where its premise η ≤ 1/L can be shown."""
    parts, smoothness = problem.regularizer.elastic(), problem.loss.smoothness
    if not np.isfinite(smoothness) or parts is None or parts[0].any():
        return ""
    # L ≤ smoothness · Σ p ‖(1, x)‖² + l2, the trace of the matrix whose largest eigenvalue counts.
    norms = sum(float(block.design.squares(block.p).sum()) for block in problem.blocks) + float(problem.fit_intercept)
    lipschitz = smoothness * norms + float(parts[1].max(initial=0.0))
    if size * lipschitz > 1.0:
        return f"The step {size:.3g} may exceed 1/L (L <= {lipschitz:.3g}): the theorem on fixed steps says nothing."
    moved = float(np.sum((problem.join(state.w, state.b) - problem.join(*start)) ** 2))
    return f"With the fixed step η = {size:.3g} <= 1/L the theory gives ‖w_0 − w*‖²/(2ηk) = {moved / (2.0 * size * k):.3g}."
