"""Lower bounds of the optimal value, from any slopes near those of the loss.

Fenchel's dual: for every θ with Σ p_i θ_i = 0 (when there is an intercept),

    D(θ) = −Σ p_i ℓ*(y_i, θ_i) − R*(−Xᵀ(pθ))  ≤  min P.

At the optimum θ_i = ℓ'(y_i, f_i). `dual_bound` makes any θ near that feasible and evaluates D.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.optimization.objective.curvature import EPS, Curvature, by_singular_values, factored, where_curved
from certifit.optimization.objective.fold import State, finite_sum, level_step, total
from certifit.representation.design.design import Design, weighted

__all__ = ["any_score", "dual_bound", "dual_value", "largest_scale", "orthogonal_to"]

EXACT_LIMIT = 2500  # K·(columns + 1) up to which K > 1 scores are made orthogonal to free columns
SUMS = 4.0 * EPS  # error of a sum over rows, relative to that of its absolute terms


def dual_bound(
    state: State, theta: list[Array] | None = None, h: list[Any] | None = None, *, exact: bool = False
) -> float:
    """A lower bound of the optimal value from a dual candidate, the slopes of the loss at the scores by default.

    The candidate is made orthogonal to the intercept and to unpenalized columns by one Newton step in the dual
    (which multiplies the curvature, and so stays inside the domain of the conjugate), then scaled towards zero
    until it satisfies the remaining conditions. Zero is always a bound, since losses and penalties are not negative.
    """
    problem = state.problem
    loss, regularizer, w = problem.loss, problem.regularizer, state.w
    if not (loss.smooth or theta is not None) or not state.is_finite():
        return 0.0
    with np.errstate(all="ignore"):
        low, high = regularizer.conjugate_domain()
        free = (low == 0.0) & (high == 0.0)
        # One-sided conditions (non-negative, unpenalized): equality where the coefficient is off its bound.
        one_sided = ~free & ((low == 0.0) | (high == 0.0))
        lower, upper = regularizer.bounds()
        tight = free | (one_sided & any_score((w > lower) & (w < upper)))
        if theta is None and not tight.any() and np.isinf(high).all() and np.isinf(low).all():
            bound = _fused_bound(state)
            if bound is not None:
                return bound
        theta = state.theta if theta is None else theta
        if h is None:
            h = state.h if loss.smooth else [np.ones_like(part.f) for part in state.parts]
        for _ in range(5):
            theta, curvature = _orthogonalize(state, theta, h, np.flatnonzero(tight))
            if theta is None:
                return 0.0
            slope = state.pulled(theta, exact=exact)
            v = -slope.columns
            slack = _slack(state, theta, v[..., tight], slope.level, np.flatnonzero(tight), curvature)
            v[..., tight] = 0.0
            new = one_sided & ~tight & any_score((v < low) | (v > high))
            if not new.any():
                break
            tight |= new
        bound = dual_value(state, theta, v, largest_scale(v, low, high)) - slack - _steep(state, theta, v)
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def _steep(state: State, theta: list[Array] | None, v: Array) -> float:
    """What rounding of v = −Xᵀ(pθ) may add to the bound of a penalty Σ c_j|w_j|^q/q.

    Its conjugate has the slope (|v_j|/c_j)^(1/(q−1)), which far from the optimum is far beyond the coefficients.
    """
    power = state.problem.regularizer.power()
    if power is None or state.problem.regularizer.elastic() is not None:
        return 0.0
    (q, strength), theta = power, state.theta if theta is None else theta
    held = np.where(strength > 0.0, strength, np.inf)
    size = sum(float(np.abs(part.block.p @ np.abs(own)).sum()) for part, own in zip(state.parts, theta, strict=True))
    largest = np.max([part.block.design.largest() for part in state.parts], axis=0)
    found = EPS * size * float(((np.abs(v) / held) ** (1.0 / (q - 1.0)) @ largest).sum())
    return found if np.isfinite(found) else np.inf


def dual_value(state: State, theta: list[Array], v: Array, scale: float = 1.0) -> float:
    """D(scale·θ) for slopes that satisfy the linear conditions, with v = −Xᵀ(pθ); −∞ outside of the domain.

    A saturated row (a probability of 1 − 1e-50) has its slope on the edge of the domain, and rounding puts it outside.
    Moving it in costs at most p·|move|·|f| of the equations of free columns, and changes v; a move that is more than rounding is
    no repair, and then θ shrinks towards zero. Nor is one of a row that alone holds a free column: what the coefficient could be
    without it is unknown.
    """
    problem, slack = state.problem, 0.0
    rows = [(part.block, part.f, t) for part, t in zip(state.parts, theta, strict=True)]
    inside = [problem.loss.into_domain(block.y, t) for block, _, t in rows]
    if any(new is not t for new, t in zip(inside, theta, strict=True)):
        moves = [np.abs(new - t) for new, t in zip(inside, theta, strict=True)]
        moved = total((block.p @ move).sum() for (block, _, _), move in zip(rows, moves, strict=True))
        if moved > 0.0:
            size = total((block.p @ np.abs(t)).sum() for block, _, t in rows)
            cost = total((block.p @ (move * np.abs(f))).sum() for (block, f, _), move in zip(rows, moves, strict=True))
            small = moved <= 1e-9 * size and cost <= 1e-9 * problem.scale
            if small and not _held_by(state, [move.reshape(len(move), -1).any(axis=1) for move in moves]):
                change = state.pulled([new - t for new, t in zip(inside, theta, strict=True)], exact=True).columns
                low, high = problem.regularizer.conjugate_domain()
                v = np.where((v == 0.0) & ((low == 0.0) | (high == 0.0)), 0.0, v - change)
                scale = min(scale, largest_scale(v, low, high))
                theta, slack = inside, float(cost)
            else:
                limits = [largest_scale(t, *problem.loss.dual_domain(block.y)) for block, _, t in rows]
                scale = min(scale, *limits)
    if not scale > 0.0 or not all(np.isfinite(t).all() for t in theta):
        return -np.inf
    if scale < 1.0:
        theta, v = [scale * t for t in theta], scale * v
    conjugate = finite_sum(
        problem.loss.conjugate_risk(block.y, block.p, t, start=f) for (block, f, _), t in zip(rows, theta, strict=True)
    )
    return -conjugate - problem.regularizer.conjugate(v) - slack


def _held_by(state: State, rows: list[Array]) -> bool:
    """Whether these rows have most of the squares of a free column."""
    low, high = state.problem.regularizer.conjugate_domain()
    free = np.flatnonzero((low == 0.0) & (high == 0.0))
    if not free.size:
        return False
    blocks = [
        (part.block.design.columns(free), part.block.p, chosen) for part, chosen in zip(state.parts, rows, strict=True)
    ]
    every = total(design.squares(p) for design, p, _ in blocks)
    theirs = total(design.squares(p * chosen) for design, p, chosen in blocks)
    return bool((theirs > 0.5 * every).any())


def _fused_bound(state: State) -> float | None:
    """The bound at the slopes of the loss in one pass, where the loss has one and R* is finite everywhere."""
    problem, shift = state.problem, np.zeros(state.problem.n_scores)
    if not problem.loss.coupled or any(part.fused is None for part in state.parts):
        return None
    if problem.fit_intercept:
        bend = state.bend()
        for _ in range(2):  # the second step removes what rounding left of the first
            shift = shift - level_step(bend, state.slope.level + bend @ shift)
    found = [
        part.block.loss.fused_dual(
            part.block.design.X, part.block.y, part.block.p, part.h, shift, part.block.design.threads
        )
        for part in state.parts
    ]
    if any(one is None for one in found):
        return None
    level = total(one.level for one in found if one is not None)
    columns = total(one.columns for one in found if one is not None)
    slack = float(np.abs(level) @ np.abs(state.b)) if problem.fit_intercept else 0.0
    conjugate = finite_sum(one.conjugate for one in found if one is not None)
    bound = -conjugate - problem.regularizer.conjugate(-columns) - slack - _steep(state, None, columns)
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def orthogonal_to(state: State, chosen: Array) -> list[Array] | None:
    """The slopes of the loss, moved to be orthogonal to the intercept and the chosen columns; None where they cannot be."""
    with np.errstate(all="ignore"):
        return _orthogonalize(state, state.theta, state.h, chosen)[0]


def _slack(state: State, theta: list[Array], v: Array, level: Any, tight: Array, curvature: Curvature | None) -> float:
    """What rounding left of exact orthogonality costs: the first and the second order of moving the slopes all the way.

    The first is v·w. The second is that of the step that v would still take, which columns that are nearly dependent make long.
    """
    problem = state.problem
    slack = float((np.abs(v) * np.abs(state.w[..., tight])).sum())
    if problem.fit_intercept:
        slack += float(np.sum(np.abs(level) * np.abs(state.b)))
    if curvature is not None and tight.size:
        rows = [(part.block, t) for part, t in zip(state.parts, theta, strict=True)]
        size = np.sqrt(total(block.p @ (t * t) for block, t in rows))  # of each score
        squares = total(block.design.columns(tight).squares(block.p) for block, _ in rows)
        rounding = SUMS * np.multiply.outer(size, problem.join(np.sqrt(squares), 1.0))
        slack += 0.5 * curvature.energy(problem.join(v, level), rounding)
    return slack


def _orthogonalize(
    state: State, theta: list[Array], h: list[Any], tight: Array
) -> tuple[list[Array] | None, Curvature | None]:
    """θ + h·(A z) with Aᵀ(p·) = 0 for A = [1 X_tight] (the ones only with an intercept), and the curvature AᵀpHA."""
    problem, k = state.problem, tight.shape[0]
    if k == 0:
        return (_balance(state, theta, h) if problem.fit_intercept else theta), None
    K, n = problem.n_scores, problem.shape[0]
    if k >= n or (K > 1 and K * (k + 1) > EXACT_LIMIT):
        return None, None
    designs = [part.block.design.columns(tight) for part in state.parts]
    hessian = state.hessian(h, designs)
    curvature = factored(hessian, K, problem.loss.shift_invariant) or where_curved(hessian, K)
    if curvature is not None and not curvature.regular:
        curvature = by_singular_values(state, h, designs, np.zeros(k)) or curvature
    if curvature is None:
        return None, None
    for _ in range(3):
        level, columns = _against(state, theta, designs)
        z, z_b = problem.split(curvature(problem.join(columns, level)))
        theta = [t - c * design.scores(z, z_b, exact=True) for t, c, design in zip(theta, h, designs, strict=True)]
    return (theta if _is_orthogonal(state, theta, designs) else None), curvature


def _balance(state: State, theta: list[Array], h: list[Any]) -> list[Array] | None:
    """θ + h·z with Σ pθ = 0."""
    bend = state.bend(h)
    if np.ndim(bend) == 0 and not bend > 0:
        rows = [(part.block.p, t) for part, t in zip(state.parts, theta, strict=True)]
        even = abs(total(p @ t for p, t in rows)) <= 1e-14 * total(p @ np.abs(t) for p, t in rows)
        return theta if even else None
    for _ in range(2):
        level = total(part.block.p @ t for part, t in zip(state.parts, theta, strict=True))
        z = level_step(bend, level)
        theta = [t - c * z for t, c in zip(theta, h, strict=True)]
    return theta if all(bool(np.isfinite(t).all()) for t in theta) else None


def _against(state: State, theta: list[Array], designs: list[Design]) -> tuple[Any, Array]:
    """Σ p θ and Σ p θ x of the given columns, in double precision."""
    rows = [(part.block.p, t, design) for part, t, design in zip(state.parts, theta, designs, strict=True)]
    return total(p @ t for p, t, _ in rows), total(d.pull(weighted(p, t), exact=True) for p, t, d in rows)


def _is_orthogonal(state: State, theta: list[Array], designs: list[Design]) -> bool:
    """Whether Aᵀ(pθ) is zero up to rounding.

    Rows without curvature cannot be moved: where the others do not span all columns, no move makes θ orthogonal, and the
    regularized equations do not say so by themselves.
    """
    rows = [(part.block.p, t, design) for part, t, design in zip(state.parts, theta, designs, strict=True)]
    size = np.sqrt(total((p @ (t * t)).sum() for p, t, _ in rows))
    squares = total(design.squares(p) for p, _, design in rows)
    level, columns = _against(state, theta, designs)
    if state.problem.fit_intercept and not (np.abs(level) <= 1e-9 * size).all():
        return False
    return bool((np.abs(columns) <= 1e-9 * size * np.sqrt(squares)).all())


def largest_scale(v: Array, low: Array, high: Array) -> float:
    """Largest t in [0, 1] with low ≤ t·v ≤ high, where low ≤ 0 ≤ high."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(v > high, high / v, np.where(v < low, low / v, 1.0))
    return float(limits.min(initial=1.0))


def any_score(where: Array) -> Array:
    """Columns for which something holds with any of the K scores."""
    return np.asarray(where if where.ndim == 1 else where.any(axis=0))
