"""Data whose solution is known because they were built from it.

A smooth objective  Σ p_i·ℓ(y_i, x_i·w + b) + alpha·Ω(w)  is minimal at (w, b) when the slopes g_i = ℓ'(y_i, f_i) satisfy

    Σ p_i g_i = 0        and        Σ p_i g_i x_i ∈ −alpha·∂Ω(w).

So choose w, b and a subgradient, find slopes of least size that satisfy both, and turn them into targets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
COEF = np.array([0.4, -0.3, 0.0, 0.2])
INTERCEPT = 0.5


def rows(n: int = 80, seed: int = 0) -> tuple[Array, Array]:
    """Features, and the shares of rows with whole weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(COEF))) + np.array([0.0, 1.0, -0.5, 0.0])
    weight = rng.integers(1, 4, size=n).astype(float)
    return X, weight


def slopes(X: Array, weight: Array, gradient: Array, seed: int = 1, size: float = 0.2) -> Array:
    """Slopes with Σ p g = 0 and Σ p g x = gradient: the projection of noise on these conditions."""
    p = weight / weight.sum()
    Z = np.column_stack([np.ones(len(X)), X])
    noise = size * np.random.default_rng(seed).uniform(-1, 1, size=len(X))
    wanted = np.concatenate([[0.0], gradient])
    missing = wanted - Z.T @ (p * noise)
    return noise + Z @ np.linalg.solve(Z.T @ (p[:, None] * Z), missing)


def subgradient(penalty: str, coef: Array, l1_ratio: float = 0.5) -> Array:
    """An element of ∂Ω; at zero one inside the interval, so that the coefficient stays zero."""
    sign = np.where(coef == 0, 0.3, np.sign(coef))
    return {"none": 0 * coef, "l2": coef, "l1": sign, "elasticnet": l1_ratio * sign + (1 - l1_ratio) * coef}[penalty]
