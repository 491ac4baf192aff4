"""The hard margin of K classes: the least coefficients that put every class ahead of all others by its cost.

    minimize ½‖W‖²    subject to    f_iy_i − f_ik ≥ Δ(y_i, k) for every row and every other class,    f_ik = w_k·x_i + b_k

Rows are (i, k) with the vectors (e_{y_i} − e_k) ⊗ x̃_i. Few of the n(K − 1) conditions matter, so they are let in as they are
violated; the optimum under some of them is a lower bound of the optimum under all. With λ_ik ≥ 0 their multipliers,
w_k = Σ_{y_i = k} Σ_j λ_ij x_i − Σ_i λ_ik x_i.     Crammer and Singer (2001)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.models.margin.hard import NotSeparableError, least_norm
from certifit.models.margin.separability import separability

__all__ = ["MulticlassHardMargin", "multiclass_hard_margin"]

FIRST = 500  # conditions to begin with, at least
ROUNDS = 100


@dataclass(frozen=True)
class MulticlassHardMargin:
    """θ_ik = λ_ik for other classes and −Σ_j λ_ij for the own one: W = −θᵀX."""

    coef: Array
    intercept: Array
    theta: Array
    objective: float
    bound: float
    iterations: int


def multiclass_hard_margin(
    X: Matrix, codes: Array, delta: Array, *, fit_intercept: bool, tol: float, max_iter: int
) -> MulticlassHardMargin:
    """Minimize ½‖W‖² with every class ahead by its cost, or raise NotSeparableError.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    codes : array of shape (n,)
        Class numbers 0 … K−1.
    delta : array of shape (K, K)
        Cost of class k when y is true, positive off the diagonal.
    fit_intercept : bool
    tol : float
        Gap relative to the optimum.
    max_iter : int
        Of the interior point method, in each round.

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[0.0], [1.0], [3.0], [6.0]]), np.array([0, 0, 1, 2])
    >>> found = multiclass_hard_margin(X, codes, 1 - np.eye(3), fit_intercept=True, tol=1e-9, max_iter=100)
    >>> found.coef.ravel().round(4), bool(found.objective - found.bound < 1e-8)
    (array([-0.8889,  0.1111,  0.7778]), True)
    """
    K = delta.shape[0]
    first = separability(X, codes, K, fit_intercept)
    if first.kind != "strict":
        assert first.weights is not None
        raise NotSeparableError(
            "alpha=0 asks for a hard margin, but no linear scores put the right class ahead in every row: a mixture of "
            f"{int((first.weights > 0).sum())} conditions contradicts itself (error.witness). Use alpha > 0.",
            first.weights,
            _residual(X, codes, first.weights, fit_intercept),
        )
    assert first.direction is not None
    assert first.intercept is not None
    size = float(max(abs(X).max(), 1e-300))
    unit = 2.0 ** np.round(np.log2(size))
    scaled = sp.csr_array(X, dtype=np.float64) * (1.0 / unit) if is_sparse(X) else np.asarray(X, np.float64) / unit
    direction = first.direction * unit
    W, b = direction, first.intercept
    if K == 2:
        W, b = np.vstack([-W, W]) / 2.0, np.array([-0.5, 0.5]) * b
    batch, iterations = max(FIRST, 4 * K * (X.shape[1] + 1)), 0
    chosen, bound, theta = np.empty(0, dtype=np.intp), 0.0, np.zeros(0)
    for _ in range(ROUNDS):
        lead = _lead(scaled, codes, delta, W, b).ravel()
        worst = np.argsort(lead, kind="stable")[:batch]
        # In the first round the tightest conditions of some separating scores, later those that are violated.
        fresh = np.setdiff1d(worst[lead[worst] < (1.0 - 1e-3 * tol if chosen.size else np.inf)], chosen)
        if chosen.size and not fresh.size:
            break
        chosen = np.union1d(chosen, fresh)
        W, b, theta, bound, used = _relaxed(scaled, codes, delta, chosen, fit_intercept, tol, max_iter)
        iterations += used
    least = float(_lead(scaled, codes, delta, W, b).min())
    if not least > 0:
        raise ValueError("The hard margin (alpha=0) could not be found in double precision. Use a small alpha > 0.")
    # What is left of a violation is scaled away: the scores then meet every condition.
    W, b = W / min(least, 1.0), b / min(least, 1.0)
    factor = float(1.0 / unit)
    full = np.zeros((codes.shape[0], K))
    full.reshape(-1)[chosen] = theta
    full[np.arange(codes.shape[0]), codes] = -full.sum(axis=1)
    with np.errstate(over="ignore", under="ignore"):
        square = factor * factor
        objective = 0.5 * float((W * W).sum()) * square
        return MulticlassHardMargin(W * factor, b, full * square, objective, bound * square, iterations)


def _lead(X: Matrix, codes: Array, delta: Array, W: Array, b: Array) -> Array:
    """(f_y − f_k)/Δ(y, k), which must be at least one; infinite for the own class."""
    scores = np.asarray(X @ W.T, dtype=np.float64) + b
    rows = np.arange(codes.shape[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        lead = (scores[rows, codes][:, None] - scores) / delta[codes]
    lead[rows, codes] = np.inf
    return lead


def _relaxed(
    X: Matrix, codes: Array, delta: Array, chosen: Array, fit_intercept: bool, tol: float, max_iter: int
) -> tuple[Array, Array, Array, float, int]:
    """W, b, multipliers, a lower bound and iterations under the chosen conditions only."""
    K, d = delta.shape[0], X.shape[1]
    i, k = np.divmod(chosen, K)
    y, m = codes[i], chosen.shape[0]
    # The scores of the last class carry no intercept: a common shift changes nothing.
    sides = sp.csr_array((np.repeat([1.0, -1.0], m), (np.tile(np.arange(m), 2), np.concatenate([y, k]))), shape=(m, K))
    rows: Any = sp.csr_array(X)[i] if is_sparse(X) else X[i]
    lifted: Any
    if is_sparse(X):
        lifted = sp.hstack([rows.multiply(sides[:, [c]]) for c in range(K)] + [sides[:, : K - 1]], format="csr")
    else:
        signs = sides.toarray()
        lifted = np.hstack([(signs[:, :, None] * rows[:, None, :]).reshape(m, K * d), signs[:, : K - 1]])
    width = K * d + (K - 1 if fit_intercept else 0)
    l2 = np.concatenate([np.ones(K * d), np.zeros(width - K * d)])
    terms = TwoSidedHinge(delta[y, k], np.full(m, np.inf), np.full(m, np.inf), np.zeros(m))
    found = least_norm(lifted[:, :width], terms, l2=l2, fit_intercept=False, tol=tol, max_iter=max_iter)
    b = np.append(found.coef[K * d :], 0.0) if fit_intercept else np.zeros(K)
    W = found.coef[: K * d].reshape(K, d)
    return W, b, np.maximum(-found.theta, 0.0), max(found.bound, 0.0), found.iterations


def _residual(X: Matrix, codes: Array, weights: Array, fit_intercept: bool) -> float:
    """How far the witness is from exact, relative to the size of what is mixed."""
    K = int(codes.max()) + 1
    own = np.arange(K) == codes[:, None]
    if weights.ndim == 1:  # two classes: one condition a row
        weights = np.where(own, 0.0, weights[:, None])
    signed = np.where(own, weights.sum(axis=1, keepdims=True), -weights)
    total, size = np.asarray(X.T @ signed), np.asarray(abs(X).T @ np.abs(signed))
    left = float((np.abs(total) / np.where(size > 0, size, 1.0)).max(initial=0.0))
    return max(left, float(np.abs(signed.sum(axis=0)).max()) if fit_intercept else 0.0)
