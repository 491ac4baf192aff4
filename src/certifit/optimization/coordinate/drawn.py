"""Coordinate descent by name, cyclic or in a random order: one column, one step, for any loss whose slope is Lipschitz.

    w_j ← prox_{R_j/L_j}(w_j − g_j/L_j),   g_j = Σ p_i ℓ'(y_i, f_i) x_ij,   L_j = L·Σ p_i x_ij²,   ℓ'' ≤ L

For the squared loss L = 1 and the step is the exact minimum in w_j, for the lasso a soft threshold (the shooting algorithm,
Fu 1998). The random order draws a column at each step, uniformly and with replacement (Shalev-Shwartz and Tewari 2009;
Nesterov 2012); d steps are an iteration. ``solver="coordinate"`` is the fast one, over working sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.data.gate import check_choice
from certifit.optimization.objective.bounds import dual_bound
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.progress import Progress

__all__ = ["CoordinateDescent"]

CHECK_EVERY = 10  # iterations between two looks at the bound, which costs a pass over X


@dataclass(frozen=True)
class CoordinateDescent:
    """Plain coordinate descent, for those who ask for it by name.

    Parameters
    ----------
    order : {"random", "cyclic"}, default="random"
        A column drawn at each step, or one after the other.
    seed : int, default=0
        Of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import CoordinateDescent, LinearModel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 5))
    >>> y = X @ [1.0, 0.0, -2.0, 0.0, 0.0] + 0.1 * rng.normal(size=100)
    >>> model = LinearModel("squared", "l1", alpha=0.1, solver=CoordinateDescent("random", seed=1)).fit(X, y)
    >>> model.coef_.round(2), model.certificate_.certified
    (array([ 0.87,  0.  , -1.86,  0.  ,  0.  ]), True)
    """

    order: str = "random"
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice("order", self.order, ("random", "cyclic"))

    def __call__(self, problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
        """Iterations of d steps until the gap is small enough."""
        columns, p, y, loss = _Columns(problem), problem.p, problem.y, problem.loss
        w, b = np.array(start[0], dtype=np.float64), float(start[1])
        f = problem.scores(w, b, exact=True)
        steep = float(loss.smoothness) * columns.squares
        moving = np.flatnonzero(steep > 0)
        # A column without variation moves nothing but the penalty.
        w = np.where(steep > 0, w, problem.regularizer.prox(np.zeros_like(w), 1.0))
        draw, bound, iteration = np.random.default_rng(self.seed), -np.inf, 0
        for iteration in range(1, max_iter + 1):
            chosen = moving if self.order == "cyclic" else draw.choice(moving, size=moving.size)
            for j in chosen.tolist():
                x = columns[j]
                z = w.copy()
                z[j] -= float(x @ (p * loss.derivative(y, f))) / steep[j]
                change = float(problem.regularizer.prox(z, 1.0 / steep[j])[j]) - w[j]
                w[j], b, f = w[j] + change, b - change * columns.mean[j], f + change * x
            if problem.fit_intercept:
                move = -float(p @ loss.derivative(y, f)) / float(loss.smoothness)
                b, f = b + move, f + move
            if iteration % CHECK_EVERY == 0 or iteration == max_iter or not moving.size:
                state = problem.at(w, b)
                bound = max(bound, dual_bound(state))
                clock.update(iteration, max_iter, (state.objective - bound) / max(problem.scale, 1e-300))
                if state.objective - bound <= tol:
                    break
                f = problem.scores(w, b, exact=True)  # without the rounding of the steps
        return Solution(w, b, iteration, "random_coordinate", bound)


class _Columns:
    """Columns of X, less their means where there is an intercept: it then follows every step by itself."""

    def __init__(self, problem: Problem) -> None:
        X, p = problem.X, problem.p
        self.X: Any = X.tocsc() if is_sparse(X) else np.asfortranarray(X)
        d = problem.shape[1]
        self.mean = np.asarray(p @ self.X, dtype=np.float64) if problem.fit_intercept else np.zeros(d)
        self.squares = np.array([float(p @ self[j] ** 2) for j in range(d)])
        # What is left of a constant column is rounding.
        size = np.array([float(p @ (self[j] + self.mean[j]) ** 2) for j in range(d)])
        self.squares[self.squares <= 1e-28 * size] = 0.0

    def __getitem__(self, j: int) -> Array:
        x = self.X[:, [j]].toarray().ravel() if is_sparse(self.X) else self.X[:, j]
        return np.asarray(x, dtype=np.float64) - self.mean[j]
