"""The one objective, as solvers see it, and the proof of how well it was minimized.

    minimize over w, b    P(w, b) = Σ p_i ℓ(y_i, x_i·w + b) + R(w),        p_i = s_i / Σs

Fenchel's dual: for every θ with Σ p_i θ_i = 0 (when there is an intercept),

    D(θ) = −Σ p_i ℓ*(y_i, θ_i) − R*(−Xᵀ(pθ))  ≤  min P.

At the optimum θ_i = ℓ'(y_i, f_i). `dual_bound` makes any θ near that feasible and evaluates D.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg

from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses import Loss
from certifit.optimization.objective.regularizer import Regularizer
from certifit.representation.design.products import columns, matvec, rmatvec, weighted_gram

__all__ = ["Problem", "Solution", "dual_bound", "into_domain"]


@dataclass(frozen=True)
class Problem:
    """Data, loss and regularizer of one fit; p sums to one and is positive."""

    X: Matrix
    y: Array
    p: Array
    loss: Loss
    regularizer: Regularizer
    fit_intercept: bool
    threads: int = 1
    constant: float = field(init=False)
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        constant = self.loss.optimal_constant(self.y, self.p) if self.fit_intercept else 0.0
        constant = max(constant, -800.0)  # a log link with nothing but zeros wants −∞; e^−800 is zero too
        with np.errstate(over="ignore", invalid="ignore"):
            at_constant = float(self.p @ self.loss.value(self.y, np.full(self.y.shape, constant)))
            at_zero = float(self.p @ self.loss.value(self.y, np.zeros(self.y.shape)))
        object.__setattr__(self, "constant", constant)
        # Rounding of y itself is no gap: a constant target would otherwise never be certified.
        object.__setattr__(self, "scale", max(at_constant, 1e-15 * at_zero if np.isfinite(at_zero) else 0.0))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of X."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    def start(self) -> tuple[Array, float]:
        """The best constant model, moved into the constraint."""
        return self.regularizer.project(np.zeros(self.shape[1])), self.constant

    def scores(self, w: Array, b: float, *, exact: bool = False) -> Array:
        """f = X·w + b."""
        return matvec(self.X, w, exact=exact) + b

    def risk(self, f: Array) -> float:
        """Weighted mean loss of scores; infinite where a loss overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            value = float(self.p @ self.loss.value(self.y, f))
        return value if np.isfinite(value) else np.inf

    def objective(self, w: Array, b: float) -> float:
        """P(w, b), in double precision whatever the precision of X."""
        return self.risk(self.scores(w, b, exact=True)) + self.regularizer.value(w)

    def refit_intercept(self, f: Array, b: float) -> tuple[Array, float]:
        """Shift the scores so that the mean derivative is zero; a few scalar Newton steps."""
        slope = float(self.p @ self.loss.derivative(self.y, f))
        for _ in range(20):
            curvature = float(self.p @ self.loss.second_derivative(self.y, f))
            if not (curvature > 0 and np.isfinite(slope / curvature)):
                break
            step = -slope / curvature
            if abs(step) <= 1e-12 * (1 + abs(b)):
                break
            trial = f + step
            new = float(self.p @ self.loss.derivative(self.y, trial))
            if not abs(new) < abs(slope):
                break
            f, b, slope = trial, b + step, new
        return f, b


@dataclass(frozen=True)
class Solution:
    """What a solver returns: the point, the best proven bound, and how it went."""

    coef: Array
    intercept: float
    iterations: int
    solver: str
    bound: float = -np.inf
    objective: float = np.nan
    """The value at the point, if the solver knows it in double precision."""
    kind: str = "duality gap"
    note: str = ""
    dual: Array | None = None
    """θ, the slope of each row's loss at the dual point behind the bound, from solvers that keep one."""
    extra: dict[str, Any] = field(default_factory=dict)


def dual_bound(problem: Problem, w: Array, f: Array, *, theta: Array | None = None, exact: bool = False) -> float:
    """A lower bound of the optimal value from a dual candidate, −loss' at the scores f by default.

    The candidate is made orthogonal to the intercept and to unpenalized columns by one Newton step in the dual
    (which multiplies the curvature, and so stays inside the domain of the conjugate), then scaled towards zero
    until it satisfies the remaining conditions. Zero is always a bound, since losses and penalties are not negative.
    """
    y, p, loss, regularizer = problem.y, problem.p, problem.loss, problem.regularizer
    if not (loss.smooth or theta is not None) or not np.isfinite(f).all():
        return 0.0
    with np.errstate(all="ignore"):
        theta = loss.derivative(y, f) if theta is None else theta
        h = loss.second_derivative(y, f) if loss.smooth else np.ones_like(f)
        low, high = regularizer.conjugate_domain()
        free = (low == 0.0) & (high == 0.0)
        # One-sided conditions (non-negative, unpenalized): equality where the coefficient is off its bound.
        one_sided = ~free & ((low == 0.0) | (high == 0.0))
        lower, upper = regularizer.bounds()
        tight = free | (one_sided & (w > lower) & (w < upper))
        v = np.zeros(w.shape)
        for _ in range(5):
            theta, ok = _orthogonalize(problem, theta, h, np.flatnonzero(tight))
            if not ok:
                return 0.0
            v = -rmatvec(problem.X, p * theta, exact=exact)
            slack = float(np.abs(v[tight]) @ np.abs(w[tight]))  # what rounding left of exact orthogonality
            v[tight] = 0.0
            new = one_sided & ~tight & ((v < low) | (v > high))
            if not new.any():
                break
            tight |= new
        inside, moved = into_domain(problem, theta, f)
        if moved <= 1e-9 * problem.scale:  # rounding at the edge of the domain, not a direction that leads out of it
            theta, slack = inside, slack + moved
        scale = min(_largest_scale(v, low, high), _largest_scale(theta, *loss.dual_domain(y)))
        if scale <= 0.0 or not np.isfinite(theta).all():
            return 0.0
        conjugate = loss.conjugate(y, scale * theta, start=f)
        bound = -float(p @ conjugate) - regularizer.conjugate(scale * v) - slack
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def into_domain(problem: Problem, theta: Array, f: Array) -> tuple[Array, float]:
    """θ moved to the nearest slopes that the loss can have, and what the move may cost the dual equations.

    A saturated row (a probability of 1 − 1e-50) has its slope on the edge of the domain, and rounding puts it outside.
    A move that is more than rounding costs infinitely much: the scores f tell its price only where they are the best ones.
    """
    low, high = problem.loss.dual_domain(problem.y)
    inside = np.clip(theta, low, high)
    move = np.abs(inside - theta)
    if not float(problem.p @ move) <= 1e-9 * float(problem.p @ np.abs(theta)):
        return inside, np.inf
    return inside, float(problem.p @ (move * np.abs(f)))


def _orthogonalize(problem: Problem, theta: Array, h: Array, tight: Array) -> tuple[Array, bool]:
    """θ + h·(A z) with Aᵀ(p·) = 0 for A = [1 X_tight] (the ones only with an intercept)."""
    X, p = problem.X, problem.p
    k = tight.shape[0]
    if k == 0 and not problem.fit_intercept:
        return theta, True
    if k >= X.shape[0]:
        return theta, False
    if k == 0:
        total = float(p @ h)
        if not total > 0:
            return theta, abs(float(p @ theta)) <= 1e-14 * float(p @ np.abs(theta))
        for _ in range(2):
            theta = theta - h * (float(p @ theta) / total)
        return theta, True
    part = columns(X, tight)
    gram = weighted_gram(X, p * h, tight if k < X.shape[1] else None)
    if not problem.fit_intercept:
        gram = gram[1:, 1:]
    diagonal = np.diag(gram)
    if not (diagonal > 1e-300).all():  # no curvature in some direction (all rows on a linear part of the loss)
        return theta, False
    unit = 1.0 / np.sqrt(diagonal)
    scaled = unit[:, None] * gram * unit
    try:
        factor = scipy.linalg.cho_factor(scaled + 1e-14 * np.eye(gram.shape[0]), check_finite=False)
    except scipy.linalg.LinAlgError:
        return theta, False
    for _ in range(3):
        rest = rmatvec(part, p * theta, exact=True)
        if problem.fit_intercept:
            rest = np.concatenate([[p @ theta], rest])
        z = unit * scipy.linalg.cho_solve(factor, unit * rest, check_finite=False)
        shift = matvec(part, z[1:], exact=True) + z[0] if problem.fit_intercept else matvec(part, z, exact=True)
        theta = theta - h * shift
    return theta, _is_orthogonal(problem, part, theta)


def _is_orthogonal(problem: Problem, part: Matrix, theta: Array) -> bool:
    """Whether Aᵀ(pθ) is zero up to rounding.

    Rows without curvature cannot be moved: where the others do not span all columns, no move makes θ orthogonal, and the
    regularized equations do not say so by themselves.
    """
    p = problem.p
    size = np.sqrt(float(p @ (theta * theta)))
    squares = part.multiply(part).T @ p if is_sparse(part) else np.einsum("ij,ij,i->j", part, part, p)
    left = np.abs(rmatvec(part, p * theta, exact=True))
    if problem.fit_intercept and abs(float(p @ theta)) > 1e-9 * size:
        return False
    return bool((left <= 1e-9 * size * np.sqrt(np.asarray(squares, dtype=np.float64))).all())


def _largest_scale(v: Array, low: Array, high: Array) -> float:
    """Largest t in [0, 1] with low ≤ t·v ≤ high, where low ≤ 0 ≤ high."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(v > high, high / v, np.where(v < low, low / v, 1.0))
    return float(limits.min(initial=1.0))
