"""Convex problems over the simplex {w ≥ 0, Σw = 1} in few dimensions: the weights of a blend.

    least squares     min ½ wᵀHw − cᵀw                    one active-set solve
    log likelihood    min −Σ_i p_i log(Σ_k w_k P_ik)        Newton steps, each such a problem

A convex f over the simplex is at most f(w) − f* ≤ g·w − min_k g_k above its least value, g the gradient at w: the gap is exact to
compute and needs no multiplier.
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array

__all__ = ["mixture_weights", "simplex_gap", "simplex_quadratic"]

RIDGE = 1e-12  # relative: equal columns share their weight, and the systems stay solvable


def simplex_gap(gradient: Array, w: Array) -> float:
    """How far f(w) may be above the least value of a convex f over the simplex."""
    return max(0.0, float(gradient @ w - gradient.min()))


def simplex_quadratic(H: Array, c: Array, start: Array | None = None) -> Array:
    """The w of the simplex with the least ½ wᵀHw − cᵀw, H positive semidefinite, by an active-set method."""
    k = c.shape[0]
    unit = max(float(np.trace(H)) / k, np.finfo(float).tiny)
    H, c = H / unit + RIDGE * np.eye(k), c / unit
    if start is None:
        w = np.zeros(k)
        w[int(np.argmin(0.5 * np.diag(H) - c))] = 1.0
    else:
        w = np.array(start, dtype=np.float64)
    free = w > 0
    for _ in range(20 * k + 50):
        target = np.zeros(k)
        target[free] = _on_plane(H[np.ix_(free, free)], c[free])
        if (target[free] >= 0).all():
            w = target
            gradient = H @ w - c
            level = float(gradient @ w)
            worst = int(np.argmin(np.where(free, np.inf, gradient)))
            scale = float(np.abs(gradient).max()) + abs(level)
            if free.all() or gradient[worst] >= level - 1e-14 * scale:
                break
            free[worst] = True
            continue
        # Go as far as the first weight that would turn negative, and take it out.
        falling = free & (target < 0)
        step = float(np.min(w[falling] / (w[falling] - target[falling])))
        w = w + step * (target - w)
        free &= w > 1e-15
        w[~free] = 0.0
        w /= w.sum()
    return w


def _on_plane(H: Array, c: Array) -> Array:
    """The least point of ½ wᵀHw − cᵀw with Σw = 1 alone."""
    k = c.shape[0]
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = H
    system[:k, k] = system[k, :k] = 1.0
    right = np.append(c, 1.0)
    return np.asarray(np.linalg.lstsq(system, right, rcond=1e-15)[0][:k])


def mixture_weights(P: Array, weight: Array, tol: float = 1e-9, max_iter: int = 100) -> tuple[Array, float, int]:
    """The w of the simplex with the least −Σ_i weight_i log(P_i·w); also the gap reached and the Newton steps.

    Parameters
    ----------
    P : array of shape (n, k), positive
        The probability that each of k members gave to what happened.
    weight : array of shape (n,)
        Sums to one.
    """
    w = np.full(P.shape[1], 1.0 / P.shape[1])
    value, gap, steps = _mean_loss(P, weight, w), np.inf, 0
    for steps in range(1, max_iter + 1):  # noqa: B007 - the count is returned
        R = P / (P @ w)[:, None]
        gradient = -(weight @ R)
        gap = simplex_gap(gradient, w)
        if gap <= tol:
            break
        H = (R * weight[:, None]).T @ R
        direction = simplex_quadratic(H, H @ w - gradient, w) - w
        slope, step = float(gradient @ direction), 1.0
        while step > 1e-12:
            trial = _mean_loss(P, weight, w + step * direction)
            if trial <= value + 0.25 * step * slope:
                break
            step *= 0.5
        else:
            break  # rounding: no step improves
        w, value = np.maximum(w + step * direction, 0.0), trial
        w /= w.sum()
    return w, gap, steps


def _mean_loss(P: Array, weight: Array, w: Array) -> float:
    mix = P @ w
    return float(-(weight @ np.log(mix))) if (mix > 0).all() else np.inf
