"""Lower bounds of the optimal value, from any slopes near those of the loss.

Fenchel's dual: for every θ with Σ p_i θ_i = 0 (when there is an intercept),

    D(θ) = −Σ p_i ℓ*(y_i, θ_i) − R*(−Xᵀ(pθ))  ≤  min P.

At the optimum θ_i = ℓ'(y_i, f_i). `dual_bound` makes any θ near that feasible and evaluates D.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from certifit._types import Array
from certifit.optimization.objective.fold import State, finite_sum, level_step, total
from certifit.representation.design.design import Design, weighted

__all__ = ["dual_bound", "dual_value", "factored", "largest_scale", "orthogonal_to"]

EXACT_LIMIT = 2500  # K·(columns + 1) up to which K > 1 scores are made orthogonal to free columns
SINGULAR_LIMIT = 600  # rows of a Hessian of K scores up to which directions without curvature are taken out of it


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
        tight = free | (one_sided & _any((w > lower) & (w < upper)))
        if theta is None and not tight.any() and np.isinf(high).all() and np.isinf(low).all():
            bound = _fused_bound(state)
            if bound is not None:
                return bound
        theta = state.theta if theta is None else theta
        if h is None:
            h = state.h if loss.smooth else [np.ones_like(part.f) for part in state.parts]
        for _ in range(5):
            theta, ok = _orthogonalize(state, theta, h, np.flatnonzero(tight))
            if not ok:
                return 0.0
            slope = state.pulled(theta, exact=exact)
            v = -slope.columns
            # What rounding left of exact orthogonality.
            slack = float((np.abs(v[..., tight]) * np.abs(w[..., tight])).sum())
            if problem.fit_intercept:
                slack += float(np.sum(np.abs(slope.level) * np.abs(state.b)))
            v[..., tight] = 0.0
            new = one_sided & ~tight & _any((v < low) | (v > high))
            if not new.any():
                break
            tight |= new
        bound = dual_value(state, theta, v, largest_scale(v, low, high)) - slack
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def dual_value(state: State, theta: list[Array], v: Array, scale: float = 1.0) -> float:
    """D(scale·θ) for slopes that satisfy the linear conditions, with v = −Xᵀ(pθ); −∞ outside of the domain.

    A saturated row (a probability of 1 − 1e-50) has its slope on the edge of the domain, and rounding puts it outside.
    Moving it in costs at most p·|move|·|f| of the dual equations; a move that is more than rounding is no repair, and then θ
    shrinks towards zero.
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
            if moved <= 1e-9 * size and cost <= 1e-9 * problem.scale:
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
    bound = -conjugate - problem.regularizer.conjugate(-columns) - slack
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def orthogonal_to(state: State, chosen: Array) -> tuple[list[Array], bool]:
    """The slopes of the loss, moved to be orthogonal to the intercept and the chosen columns, and whether they are."""
    with np.errstate(all="ignore"):
        return _orthogonalize(state, state.theta, state.h, chosen)


def _orthogonalize(state: State, theta: list[Array], h: list[Any], tight: Array) -> tuple[list[Array], bool]:
    """θ + h·(A z) with Aᵀ(p·) = 0 for A = [1 X_tight] (the ones only with an intercept)."""
    problem, k = state.problem, tight.shape[0]
    if k == 0:
        return _balance(state, theta, h) if problem.fit_intercept else (theta, True)
    K, n = problem.n_scores, problem.shape[0]
    if k >= n or (K > 1 and K * (k + 1) > EXACT_LIMIT):
        return theta, False
    designs = [part.block.design.columns(tight) for part in state.parts]
    solve = factored(state.hessian(h, designs), K, problem.loss.shift_invariant)
    if solve is None:
        return theta, False
    for _ in range(3):
        level, columns = _against(state, theta, designs)
        z, z_b = problem.split(solve(problem.join(columns, level)))
        theta = [t - c * design.scores(z, z_b, exact=True) for t, c, design in zip(theta, h, designs, strict=True)]
    return theta, _is_orthogonal(state, theta, designs)


def _balance(state: State, theta: list[Array], h: list[Any]) -> tuple[list[Array], bool]:
    """θ + h·z with Σ pθ = 0."""
    bend = state.bend(h)
    if np.ndim(bend) == 0 and not bend > 0:
        rows = [(part.block.p, t) for part, t in zip(state.parts, theta, strict=True)]
        return theta, abs(total(p @ t for p, t in rows)) <= 1e-14 * total(p @ np.abs(t) for p, t in rows)
    for _ in range(2):
        level = total(part.block.p @ t for part, t in zip(state.parts, theta, strict=True))
        z = level_step(bend, level)
        theta = [t - c * z for t, c in zip(theta, h, strict=True)]
    return theta, all(bool(np.isfinite(t).all()) for t in theta)


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


def factored(hessian: Array, K: int, invariant: bool) -> Callable[[Array], Array] | None:
    """The inverse of a Hessian of K scores by Cholesky, or that of its curved directions where others have no curvature.

    The direction that all scores of a shift-invariant loss share has no curvature and gets some: slopes sum to zero over
    the scores, and so do all right hand sides, so that what is added is never seen.
    """
    D = hessian.shape[0] // K
    own = np.diag(hessian).reshape(K, D).mean(axis=0)
    if not invariant and not (own > 1e-300).all():  # no curvature in some direction (all rows on a linear part)
        return None
    if invariant:
        hessian = hessian + np.kron(np.full((K, K), 1.0 / K), np.diag(np.where(own > 0.0, own, 1.0)))
    unit = 1.0 / np.sqrt(np.diag(hessian))
    scaled = hessian * unit[:, None] * unit
    for ridge in (0.0, 1e-13, 1e-10, 1e-7, 1e-4):
        factor, failed = lapack.dpotrf(scaled + ridge * np.eye(K * D), lower=1)
        if not failed and (float(np.diag(factor).min()) > 1e-6 or ridge == 1e-4):
            return partial(_solved, unit, factor)
        if K * D <= SINGULAR_LIMIT and np.isfinite(scaled).all():
            # Of rounding, in directions without curvature, an inverse would make the longest step of all.
            values, vectors = scipy.linalg.eigh(scaled, check_finite=False)
            kept = values > 1e-11 * max(float(values[-1]), 1e-300)
            half = unit[:, None] * (vectors[:, kept] / np.sqrt(values[kept]))
            return lambda right: np.asarray(half @ (half.T @ right.ravel())).reshape(right.shape)
    return None


def _solved(unit: Array, factor: Array, right: Array) -> Array:
    found: Array = unit * lapack.dpotrs(factor, unit * right.ravel(), lower=1)[0]
    return found.reshape(right.shape)


def largest_scale(v: Array, low: Array, high: Array) -> float:
    """Largest t in [0, 1] with low ≤ t·v ≤ high, where low ≤ 0 ≤ high."""
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.where(v > high, high / v, np.where(v < low, low / v, 1.0))
    return float(limits.min(initial=1.0))


def _any(where: Array) -> Array:
    """Columns for which something holds with any of the K scores."""
    return np.asarray(where if where.ndim == 1 else where.any(axis=0))
