"""The least maximum of any convex loss, by cutting planes.

    minimize over w, b    max_i ℓ(y_i, x_i·w + b)  +  R(w)

A convex loss lies above its tangents, so that for any points z

    minimize over w, b, t ≥ 0    t + R(w)    subject to    t ≥ ℓ(y_i, z) + ℓ'(y_i, z)·(x_i·w + b − z)

is never above the optimum: a quadratic (or linear) program whose dual value is the bound. The first tangents of a row are those
where its loss equals the best maximum known, beyond which no better solution lies; piecewise linear losses are met by them
exactly. Then every row whose loss exceeds t at the program's solution gets a tangent there (Kelley 1960; one cut for each row).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, is_sparse
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.optimization.interior_point.solve import solve_polyhedral
from certifit.optimization.objective.problem import Problem, Solution
from certifit.progress import Progress

__all__ = ["best_constant", "minimax"]

INTERIOR_POINT_ITERATIONS = 200
BISECTIONS = 60


@dataclass
class _Cuts:
    """Tangents ℓ + ℓ'·(f − z) of rows."""

    problem: Problem
    row: Array = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    slope: Array = field(default_factory=lambda: np.empty(0))
    level: Array = field(default_factory=lambda: np.empty(0))
    """ℓ − ℓ'·z: the tangent at f = 0."""

    def add(self, rows: Array, z: Array) -> None:
        """Tangents of rows at scores z; those that floating point cannot say are left out."""
        y, loss = self.problem.y[rows], self.problem.loss
        with np.errstate(all="ignore"):
            slope = loss.derivative(y, z)
            level = loss.value(y, z) - slope * z
        known = np.isfinite(slope) & np.isfinite(level)
        self.row = np.concatenate([self.row, rows[known]])
        self.slope = np.concatenate([self.slope, slope[known]])
        self.level = np.concatenate([self.level, level[known]])

    def solve(self, tol: float) -> tuple[Array, float, float, float]:
        """w, b, t and a lower bound of the program."""
        problem, free = self.problem, self.problem.fit_intercept
        parts, d = problem.regularizer.elastic(), problem.shape[1]
        assert parts is not None
        unit = np.maximum(np.abs(self.slope), 1.0)
        ends = [self.slope / unit] if free else []
        tail = np.column_stack([*ends, -1.0 / unit])
        X: Any = problem.X[self.row]
        if is_sparse(X):
            rows: Any = sp.hstack([sp.diags_array(self.slope / unit) @ X, sp.csr_array(tail)], format="csr")
        else:
            rows = np.hstack([(self.slope / unit)[:, None] * X, tail])
        m, extra = self.row.shape[0], tail.shape[1]
        terms = TwoSidedHinge(np.full(m, -np.inf), -self.level / unit, np.zeros(m), np.full(m, np.inf))
        lower, upper = problem.regularizer.bounds()
        nothing = np.zeros(extra)
        found = solve_polyhedral(
            rows,
            terms,
            np.ones(m),
            c=np.append(np.zeros(d + extra - 1), 1.0),
            l1=np.concatenate([parts[0], nothing]),
            l2=np.concatenate([parts[1], nothing]),
            lower=np.concatenate([lower, np.full(extra - 1, -np.inf), [0.0]]),
            upper=np.concatenate([upper, np.full(extra, np.inf)]),
            fit_intercept=False,
            tol=tol,
            max_iter=INTERIOR_POINT_ITERATIONS,
            threads=problem.threads,
        )
        w = np.clip(found.coef[:d], lower, upper)
        return w, float(found.coef[d]) if free else 0.0, float(found.coef[-1]), max(found.bound, 0.0)


def minimax(problem: Problem, tol: float, max_iter: int, clock: Progress) -> Solution:
    """Cutting planes until the gap is at most `tol`; the weights of the problem do not matter.

    Parameters
    ----------
    problem : Problem
        With no, an L1, L2 or elastic-net penalty, in a box or without constraint.
    tol : float
        Absolute gap.
    max_iter : int
        Most programs to solve.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Squared
    >>> from certifit.penalties import NoPenalty
    >>> from certifit.optimization.objective.regularizer import Regularizer
    >>> X, y = np.arange(3.0)[:, None], np.array([0.0, 1.0, 0.0])
    >>> problem = Problem(X, y, np.full(3, 1 / 3), Squared(), Regularizer.of(NoPenalty(), 0.0, None, 1), True)
    >>> found = minimax(problem, 1e-9, 50, Progress())
    >>> round(found.objective, 6), round(found.intercept, 6)
    (0.125, 0.5)
    """
    y, loss, everyone = problem.y, problem.loss, np.arange(problem.shape[0])
    w, b = problem.start()[0], best_constant(problem) if problem.fit_intercept else 0.0
    cuts, bound, iteration = _Cuts(problem), 0.0, 0

    def losses(f: Array) -> Array:
        with np.errstate(all="ignore"):
            found = loss.value(y, f)
        return np.where(np.isnan(found), np.inf, found)

    inside = problem.scores(w, b, exact=True)
    top = float(losses(inside).max())
    best = (top + problem.regularizer.value(w), w, b)
    for side in (-1.0, 1.0):
        edge, found = _edge(losses, inside, side, best[0])
        cuts.add(everyone[found], edge[found])
    for iteration in range(1, max_iter + 1):
        if not cuts.row.size:
            break
        w, b, t, low = cuts.solve(0.1 * tol)
        f = problem.scores(w, b, exact=True)
        each = losses(f)
        value = float(each.max()) + problem.regularizer.value(w)
        stuck = low <= bound and not value < best[0]
        bound = max(bound, low)
        if value < best[0]:
            best, inside = (value, w, b), f
        clock.update(iteration, max_iter, (best[0] - bound) / max(problem.scale, 1e-300))
        if best[0] - bound <= tol:
            break
        above = everyone[each > t + 1e-3 * tol]
        before = cuts.row.size
        z = f[above]
        for _ in range(BISECTIONS):  # a loss that overflows has its tangent on the way there
            far = ~np.isfinite(each[above])
            if not far.any():
                break
            z = np.where(far, 0.5 * (z + inside[above]), z)
            with np.errstate(all="ignore"):
                each[above] = loss.value(y[above], z)
        cuts.add(above, z)
        if cuts.row.size == before or (stuck and iteration > 5):  # nothing left to say in double precision
            break
    value, w, b = best
    return Solution(w, b, max(iteration, 1), "cutting_planes", bound, value)


def best_constant(problem: Problem) -> float:
    """The constant score with the least maximum: the sign of the slope of the worst row says on which side it lies."""
    y, loss = problem.y, problem.loss

    def slope(c: float) -> float:
        with np.errstate(all="ignore"):
            each = loss.value(y, np.full(y.shape, c))
            worst = int(np.argmax(np.where(np.isnan(each), np.inf, each)))
            return float(loss.derivative(y[worst : worst + 1], np.array([c]))[0])

    low = high = float(problem.constant)
    step = 1.0 + abs(low)
    while slope(low) > 0 and step < 1e200:
        low, step = low - step, 2.0 * step
    step = 1.0 + abs(high)
    while slope(high) < 0 and step < 1e200:
        high, step = high + step, 2.0 * step
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return 0.5 * (low + high)


def _edge(losses: Any, inside: Array, side: float, level: float) -> tuple[Array, Array]:
    """Scores on one side at which each loss reaches the level, just outside, and where there are such."""
    near, step = inside.copy(), 1.0 + np.abs(inside)
    far, found = inside + side * step, np.zeros(inside.shape, dtype=bool)
    for _ in range(BISECTIONS):
        found = losses(far) > level
        if found.all():
            break
        near, step = np.where(found, near, far), np.where(found, step, 2.0 * step)
        far = np.where(found, far, far + side * step)
    for _ in range(BISECTIONS):
        middle = 0.5 * (near + far)
        beyond = losses(middle) > level
        near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
    return near, found
