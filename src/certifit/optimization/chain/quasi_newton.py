"""Limited-memory quasi-Newton for many parameters, with or without an L1 penalty.

    minimize over w    f(w) + l2/2·‖w‖² + l1·‖w‖₁

L-BFGS (Liu & Nocedal 1989), orthant-wise with l1 > 0 (Andrew & Gao 2007). The iteration runs in u = w/scale, where the
curvatures of rare and frequent features are nearer to each other: scale is a small power of them. The past steps and
changes of the slope are the rows of one matrix: the inner products that the two-loop recursion asks for are one product
with it, and the direction is another, so that an iteration reads the history twice instead of once for every pair and
loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from certifit._types import Array
from certifit.progress import Progress

__all__ = ["Minimum", "minimize"]

MEMORY = 8
ARMIJO = 1e-4
CURVATURE = 0.9
TRIES = 30
FARTHEST = 10.0  # how much longer than the last a tried step may be
SPREAD = 0.15  # how far the units of the parameters follow their curvatures: 0.5 would be Newton's on a diagonal


@dataclass(frozen=True)
class Minimum:
    """Where the iteration ended: the point, its objective, the bound, and the iterations and evaluations spent."""

    w: Array
    objective: float
    bound: float
    iterations: int
    evaluations: int


class History:
    """Pairs (s, y) of steps and changes of the slope, and the inverse Hessian they describe."""

    def __init__(self, size: int) -> None:
        self.rows = np.empty((2 * MEMORY, size))  # steps above, changes below
        self.gram = np.zeros((2 * MEMORY, 2 * MEMORY))
        self.order: list[int] = []  # slots, oldest first

    def add(self, step: Array, change: Array) -> None:
        """Remember a pair, unless it shows no curvature."""
        curvature = float(step @ change)
        if not curvature > 1e-12 * float(np.sqrt((step @ step) * (change @ change))):
            return
        slot = len(self.order) if len(self.order) < MEMORY else self.order.pop(0)
        self.order.append(slot)
        self.rows[slot], self.rows[MEMORY + slot] = step, change
        used = [*self.order, *(MEMORY + k for k in self.order)]
        inner = self.rows @ self.rows[[slot, MEMORY + slot]].T if len(self.order) == MEMORY else None
        for column, at in enumerate((slot, MEMORY + slot)):
            for k in used:
                value = float(self.rows[k] @ self.rows[at]) if inner is None else float(inner[k, column])
                self.gram[k, at] = self.gram[at, k] = value

    def apply(self, g: Array) -> Array:
        """The inverse Hessian times g: the two-loop recursion in coefficients of (steps, changes, g)."""
        if not self.order:
            return g
        m = len(self.order)
        rows = self.rows if m == MEMORY else self.rows[[*self.order, *(MEMORY + k for k in self.order)]]
        steps = self.order if m == MEMORY else list(range(m))
        half = MEMORY if m == MEMORY else m
        gram = self.gram
        if m < MEMORY:
            used = [*self.order, *(MEMORY + k for k in self.order)]
            gram = self.gram[np.ix_(used, used)]
        with_g = rows @ g
        coef = np.zeros(2 * half)  # of q = g + coef·rows
        alpha = {}
        for k in reversed(steps):
            alpha[k] = (with_g[k] + coef @ gram[:, k]) / gram[k, half + k]
            coef[half + k] -= alpha[k]
        last = steps[-1]
        gamma = gram[last, half + last] / gram[half + last, half + last]
        coef *= gamma
        for k in steps:
            beta = (gamma * with_g[half + k] + coef @ gram[:, half + k]) / gram[k, half + k]
            coef[k] += alpha[k] - beta
        out = coef @ rows
        out += gamma * g
        return out


def minimize(
    loss: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    l1: float,
    l2: float,
    curvature: Array,
    units: Array | float = 1.0,
    bound: Callable[[Array, float, Array], float],
    unit: float,
    tol: float,
    max_iter: int,
    clock: Progress,
) -> Minimum:
    """Minimize until objective − bound ≤ tol·unit.

    Parameters
    ----------
    loss : callable
        f and its gradient at w.
    start : array
        Where to begin.
    l1, l2 : float
        Strengths of the penalties.
    curvature : array
        About the diagonal of the Hessian of f + l2/2·‖w‖²; sets the units of the parameters and the first step.
    units : array or float
        Units that the parameters are known to have, such as 1 over the size of a column of numbers; those of the curvature
        come on top of them.
    bound : callable
        A lower bound of the objective from (w, f(w), ∇f(w)).
    unit : float
        Objective of the best constant model.
    tol : float
        Wanted relative gap.
    max_iter : int
        Most iterations.
    clock : Progress
        Is told every iteration.
    """
    w = start.copy()
    scale = units * _units(curvature * units * units)
    f, g = loss(w)
    objective = f + 0.5 * l2 * float(w @ w) + l1 * float(np.abs(w).sum())
    best, evaluations, iteration, history = bound(w, f, g), 1, 0, History(w.shape[0])
    slope = scale * (g + l2 * w)
    stalled = 0
    while iteration < max_iter and objective - best > tol * unit:
        steepest = slope if l1 == 0.0 else pseudo_slope(w, slope, l1 * scale)
        direction = -history.apply(steepest)
        if l1 > 0.0:
            direction[direction * steepest >= 0.0] = 0.0
        descent = float(direction @ steepest)
        if not descent < 0.0:
            if not history.order:
                break
            history = History(w.shape[0])
            continue
        path = scale * direction
        # Without a history: not farther than one unit, nor than Newton's method would go if the Hessian were diagonal.
        newton = -descent / max(float(curvature @ path**2), np.finfo(float).tiny)
        step = 1.0 if history.order else min(1.0 / float(np.sqrt(-descent)), newton)
        found = _search(loss, w, objective, path, steepest, scale, descent, step, l1, l2)
        evaluations += found.evaluations
        if not found.improved:
            if not history.order:
                break
            history = History(w.shape[0])  # rounding has spoilt it: once more from the plain slope
            stalled += 1
            if stalled > 2:
                break
            continue
        new_slope = scale * (found.g + l2 * found.w)
        history.add((found.w - w) / scale, new_slope - slope)
        w, slope, objective = found.w, new_slope, found.objective
        best = max(best, bound(w, found.f, found.g))
        iteration += 1
        clock.update(iteration, max_iter, (objective - best) / unit if unit > 0 else 0.0)
    return Minimum(w, objective, min(best, objective), iteration, evaluations)


@dataclass(frozen=True)
class _Found:
    w: Array
    f: float
    g: Array
    objective: float
    evaluations: int
    improved: bool


def _search(
    loss: Callable[[Array], tuple[float, Array]],
    w: Array,
    objective: float,
    direction: Array,
    steepest: Array,
    scale: Array,
    descent: float,
    step: float,
    l1: float,
    l2: float,
) -> _Found:
    """A step along the direction with enough decrease; on a smooth objective it also goes far enough."""
    orthant = np.where(w != 0.0, np.sign(w), -np.sign(steepest)) if l1 > 0.0 else None
    low, high = 0.0, np.inf
    kept: _Found | None = None
    for tried in range(1, TRIES + 1):
        point = w + step * direction
        if orthant is not None:
            point[point * orthant < 0.0] = 0.0
        f, g = loss(point)
        value = f + 0.5 * l2 * float(point @ point) + l1 * float(np.abs(point).sum())
        # Along the projected path the decrease is measured by the step that was really made.
        wanted = step * descent if orthant is None else float(((point - w) / scale) @ steepest)
        if not value <= objective + ARMIJO * wanted:  # NaN too
            high = step
            ahead = value - objective - wanted
            fit = -0.5 * wanted * step / ahead if ahead > 0.0 and np.isfinite(ahead) else 0.1 * step
            step = min(max(fit, low + 0.1 * (high - low)), low + 0.5 * (high - low))
            if kept is not None:
                break
            continue
        kept = _Found(point, f, g, value, tried, value < objective)
        if orthant is not None or np.isfinite(high):
            break
        along = float(direction @ (g + l2 * point))
        if along >= CURVATURE * descent:
            break
        # Where the slope would vanish if it went on as it changed so far.
        reach = step * descent / (descent - along) if along > descent else np.inf
        low, step = step, min(max(reach, 2.0 * step), FARTHEST * step)
    if kept is None:
        return _Found(w, np.nan, direction, objective, TRIES, False)
    return kept


def _units(curvature: Array) -> Array:
    """Units of the parameters: a small power of their curvature, with nothing at zero."""
    floor = float(curvature.max(initial=0.0)) * 1e-12
    return np.maximum(curvature, floor if floor > 0 else 1.0) ** -SPREAD


def pseudo_slope(w: Array, slope: Array, l1: Array) -> Array:
    """The slope of steepest descent of the objective with the absolute values."""
    inside = np.sign(slope) * np.maximum(np.abs(slope) - l1, 0.0)
    return np.where(w != 0.0, slope + l1 * np.sign(w), inside)
