"""Lower bounds from a point of stochastic gradient descent: feasible points of Fenchel's dual.

D(θ) = −Σ p_i ℓ*(y_i, θ_i) − R*(−Xᵀ(pθ))  ≤  min P        for every θ with Σ p_i θ_i = 0 (with an intercept)
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.optimization.objective.bounds import largest_scale
from certifit.optimization.objective.problem import Problem
from certifit.representation.design.products import matvec, rmatvec, weighted_gram

__all__ = ["averaged_bound", "balanced", "newton_bound"]

NEWTON_SAMPLE = 20_000  # rows that the Hessian of that system is taken from
NEWTON_STEPS = 3  # each at the cost of three passes over X


def newton_bound(problem: Problem, w: Array, f: Array, enough: float = np.inf) -> float:
    """The dual value at the slopes that Newton steps from here would lead to; stops at a value of `enough`.

    The plain dual point ℓ'(f) is off by ‖gradient‖²/(2·l2), which is large for a weak penalty. θ = ℓ'(f) + ℓ''(f)·(Xz + z₀)
    with the Newton step (z, z₀) is better by an order. Any step gives a valid bound, so a sample of rows serves the Hessian.
    """
    X, y, p, loss, regularizer = problem.X, problem.y, problem.p, problem.loss, problem.regularizer
    parts = regularizer.elastic()
    if parts is None or regularizer.constraint is not None or not np.isfinite(f).all():
        return 0.0
    l1, l2 = parts
    domain = regularizer.conjugate_domain()
    rows = slice(None, None, max(1, X.shape[0] // NEWTON_SAMPLE))
    sample, share = X[rows], p[rows] / p[rows].sum()
    w, best = w.copy(), 0.0
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            theta, h = loss.derivative(y, f), loss.second_derivative(y, f)
            v = -rmatvec(X, p * theta, exact=True)
            gram = weighted_gram(sample, share * h[rows])
            bend = np.diag(gram)[1:] + l2
            # Coefficients that a proximal step leaves at zero stay out of the system.
            active = np.flatnonzero(np.abs(w * bend + (v - l2 * w)) > l1)
            sign = np.sign(w * bend + (v - l2 * w))
            w[np.setdiff1d(np.arange(w.shape[0]), active)] = 0.0
            chosen = np.concatenate([[0], active + 1]) if problem.fit_intercept else active + 1
            if chosen.shape[0] == 0:
                return best
            system = gram[np.ix_(chosen, chosen)]
            right = np.concatenate([[-float(p @ theta)], (v - l2 * w - l1 * sign)[active]])[-chosen.shape[0] :]
            np.einsum("ii->i", system)[:] += np.concatenate([[0.0], l2[active]])[-chosen.shape[0] :]
            unit = 1.0 / np.sqrt(np.maximum(np.diag(system), 1e-300))
            try:
                z = unit * np.linalg.solve(unit[:, None] * system * unit + 1e-12 * np.eye(unit.shape[0]), unit * right)
            except np.linalg.LinAlgError:
                return best
            move = np.zeros(w.shape[0])
            move[active] = z[-active.shape[0] :] if active.shape[0] else 0.0
            shift = matvec(X, move, exact=True) + (z[0] if problem.fit_intercept else 0.0)
            candidate = theta + h * shift
            if problem.fit_intercept:
                candidate = candidate - h * (np.float64(p @ candidate) / np.float64(p @ h))
            v = -rmatvec(X, p * candidate, exact=True)
            scale = min(largest_scale(v, *domain), largest_scale(candidate, *loss.dual_domain(y)))
            bound = -float(p @ loss.conjugate(y, scale * candidate, start=f)) - regularizer.conjugate(scale * v)
            best = max(best, bound) if np.isfinite(bound) else best
            w, f = w + move, f + shift
            if best >= enough or not np.isfinite(f).all():
                break
    return best


def averaged_bound(problem: Problem, theta: Array) -> float:
    """The dual value at averaged slopes, made feasible: for losses with kinks, which have no curvature to use."""
    if problem.fit_intercept:
        theta = balanced(theta, problem.p)
    v = -rmatvec(problem.X, problem.p * theta, exact=True)
    scale = largest_scale(v, *problem.regularizer.conjugate_domain())
    with np.errstate(all="ignore"):
        conjugate = float(problem.p @ problem.loss.conjugate(problem.y, scale * theta))
        bound = -conjugate - problem.regularizer.conjugate(scale * v)
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def balanced(theta: Array, p: Array) -> Array:
    """Σ p·θ = 0 by shrinking the heavier sign: a dual point stays in its domain, which contains zero."""
    up, down = float(p @ np.maximum(theta, 0.0)), float(p @ np.maximum(-theta, 0.0))
    if up == 0.0 or down == 0.0:
        return np.zeros_like(theta)
    return np.where(theta > 0, theta * min(1.0, down / up), theta * min(1.0, up / down))
