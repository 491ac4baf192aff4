"""Descent from row to row of coefficients, for targets that share the columns they use.

    min_{W,b}  ½ Σ_i p_i ‖y_i − Wx_i − b‖²  +  Σ_j ( l1_j ‖w_j‖ + ½ l2_j ‖w_j‖² )

w_j is column j of W (K × d). Working sets of columns are solved on their Gram matrix, by sweeps (``native/coordinate/rows.hpp``)
and by Newton steps on the columns in use, where the objective is smooth. The residuals R of a point, scaled into the dual, bound
the optimum: with V = X'PR and a factor s for which every s·v_j is in the domain of the conjugate,

    gap = ½(1 − s)² Σ p ‖r‖² + Σ_j [ Ω_j(w_j) + Ω_j*(s v_j) − s v_j·w_j ],

a sum of terms that are not negative: nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import certifit._native.coordinate as _native
from certifit._types import Array, Matrix, is_sparse

__all__ = ["CenteredRows", "RowsResult", "least_squares_rows"]

FEW = 200  # columns up to which all are one working set
FIRST = 20  # columns of the first working set of more
SWEEPS = 40  # between two Newton steps
LARGEST = 1200  # unknowns of a Newton step
ROUNDS = 50  # sweeps and Newton steps in one working set


@dataclass(frozen=True)
class CenteredRows:
    """X and Y about their weighted means, the root of the weights multiplied in; a sparse X stays sparse."""

    X: Matrix
    Y: Array
    p: Array
    mean: Array
    level: Array

    @staticmethod
    def of(X: Matrix, Y: Array, p: Array, fit_intercept: bool) -> CenteredRows:
        """Of checked arrays; Y has shape (n, K)."""
        level = p @ Y if fit_intercept else np.zeros(Y.shape[1])
        root = np.sqrt(p)[:, None]
        if is_sparse(X):
            rows = X.astype(np.float64).tocsc()
            mean = np.asarray(rows.T @ p) if fit_intercept else np.zeros(X.shape[1])
            return CenteredRows(rows.multiply(root).tocsc(), root * (Y - level), np.sqrt(p), mean, level)
        mean = p @ X.astype(np.float64, copy=False) if fit_intercept else np.zeros(X.shape[1])
        return CenteredRows(np.asfortranarray(root * (X - mean)), root * (Y - level), np.sqrt(p), mean, level)

    def slopes(self, R: Array) -> Array:
        """X'R, shape (d, K)."""
        found = np.asarray(self.X.T @ R)
        return found - np.outer(self.mean, self.p @ R) if is_sparse(self.X) else found

    def residuals(self, W: Array) -> Array:
        """Y − XW."""
        used = np.flatnonzero(W.any(axis=1))
        if not used.size:
            return self.Y.copy()
        scores = np.asarray(self.X[:, used] @ W[used])
        if is_sparse(self.X):
            scores -= np.outer(self.p, self.mean[used] @ W[used])
        return self.Y - scores

    def objective(self, W: Array, l1: Array, l2: Array) -> float:
        """The value at W."""
        R, size = self.residuals(W), _sizes(W)
        return 0.5 * float((R * R).sum()) + float((l1 * size + 0.5 * l2 * size * size).sum())

    @cached_property
    def whole_gram(self) -> Array:
        """X'X."""
        return self.gram(np.arange(self.X.shape[1]))

    def gram(self, columns: Array) -> Array:
        """X'X of some columns."""
        part = self.X[:, columns]
        if is_sparse(part):
            return np.asarray((part.T @ part).todense()) - np.outer(self.mean[columns], self.mean[columns])
        return np.asarray(part.T @ part)


@dataclass(frozen=True)
class RowsResult:
    """A solution and its proof; `coef` has shape (d, K)."""

    coef: Array
    objective: float
    gap: float
    iterations: int


def least_squares_rows(
    data: CenteredRows,
    l1: Array,
    l2: Array,
    *,
    coef: Array | None = None,
    tol: float,
    max_iter: int = 1000,
    told: Callable[[int, float], None] = lambda iteration, gap: None,
) -> RowsResult:
    """Minimize until the duality gap is at most `tol`.

    Parameters
    ----------
    data
        The centered rows.
    l1, l2
        Penalties of each column, one of them positive.
    coef
        Where to start, shape (d, K).
    tol
        Absolute duality gap to reach.
    max_iter
        Most working sets to solve.
    told
        Is told the number of working sets and the gap.
    """
    d, K = data.X.shape[1], data.Y.shape[1]
    W = np.zeros((d, K)) if coef is None else coef.copy()
    R = data.residuals(W)
    best, bound, size, stalled = W, -np.inf, FIRST, 0
    least, gram = np.inf, data.whole_gram if d <= FEW else None
    for iteration in range(max_iter + 1):
        V = data.slopes(R)
        objective, gap = _judged(W, R, V, l1, l2)
        stalled = 0 if min(least, objective) - max(bound, objective - gap) < 0.9 * (least - bound) else stalled + 1
        bound = max(bound, objective - gap)
        if objective <= least:
            best, least = W, objective
        told(iteration, least - bound)
        if gap <= tol or least - bound <= tol or stalled > 2 or iteration == max_iter:
            break
        columns = np.arange(d) if gram is not None else _violators(W, V, l1, l2, size)
        G = gram if gram is not None else data.gram(columns)
        energy = float((R * R).sum())
        W = W.copy()
        W[columns] = _solved(G, V[columns], W[columns], l1[columns], l2[columns], energy, 0.3 * max(tol, 1e-3 * gap))
        size = max(2 * int(np.count_nonzero(W.any(axis=1))), FIRST, size)
        size = 2 * size if stalled else size
        R = data.residuals(W)
    if tol == 0.0:
        best = _polished(data, best, l1, l2)
        objective, gap = _judged(best, R := data.residuals(best), data.slopes(R), l1, l2)
        return RowsResult(best, objective, max(min(gap, objective - bound), 0.0), iteration)
    # A gap near rounding is known from its own sum alone, not from the difference of two values.
    return RowsResult(best, least, min(gap, least - bound) if best is W else max(least - bound, 0.0), iteration)


def _sizes(A: Array) -> Array:
    return np.sqrt(np.einsum("jk,jk->j", A, A))


def _judged(W: Array, R: Array, V: Array, l1: Array, l2: Array) -> tuple[float, float]:
    """Objective and duality gap."""
    size, slope, energy = _sizes(W), _sizes(V), float((R * R).sum())
    penalty = l1 * size + 0.5 * l2 * size * size
    hard = l2 == 0.0
    over = hard & (slope > l1)
    scale = float((l1[over] / slope[over]).min(initial=1.0))
    excess = np.maximum(scale * slope - l1, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        conjugate = np.where(hard, 0.0, 0.5 * excess * excess / l2)
    terms = penalty + conjugate - scale * np.einsum("jk,jk->j", V, W)
    gap = 0.5 * (1.0 - scale) ** 2 * energy + float(np.maximum(terms, 0.0).sum())
    return 0.5 * energy + float(penalty.sum()), gap


def _violators(W: Array, V: Array, l1: Array, l2: Array, size: int) -> Array:
    """The columns in use, and those that are farthest from their place."""
    used = W.any(axis=1)
    away = np.where(used, np.inf, _sizes(V) - l1)
    count = min(max(size, int(used.sum())), W.shape[0])
    return np.sort(np.argpartition(-away, count - 1)[:count])


def _solved(G: Array, C: Array, W: Array, l1: Array, l2: Array, energy: float, tol: float) -> Array:
    """The problem of some columns, given their Gram matrix and the negative slopes C at W."""
    penalty = _native.Penalty(
        *map(np.ascontiguousarray, (l1, l2, np.full(l1.shape, -np.inf), np.full(l1.shape, np.inf))), 0.0
    )
    G = np.ascontiguousarray(G)
    for _ in range(ROUNDS):
        options = _native.Options(False, float(tol), SWEEPS, 1)
        w, c, sweeps = _native.gram_rows(
            G, np.ascontiguousarray(C.T), penalty, np.ascontiguousarray(W.T), energy, options
        )
        W, C = w.reshape(W.shape[::-1]).T, c.reshape(W.shape[::-1]).T
        if sweeps < SWEEPS:
            break
        W, C = _newton(G, C, W, l1, l2)
    return W


def _polished(data: CenteredRows, W: Array, l1: Array, l2: Array) -> Array:
    """Newton steps on the columns in use from slopes of all rows, as long as the slopes become less: coefficients to rounding."""
    used = np.flatnonzero(W.any(axis=1))
    if not used.size or used.size * W.shape[1] > LARGEST:
        return W
    G, least = data.gram(used), np.inf
    best = W
    for _ in range(ROUNDS):
        C = data.slopes(data.residuals(W))[used]
        size = _sizes(W[used])
        if not (size > 0).all():
            break
        slope = _slope(C, W[used], size, l1[used], l2[used])
        if not (worst := float(np.abs(slope).max())) < least:
            break
        best, least, W = W, worst, W.copy()
        W[used] += _direction(G, slope, W[used], size, l1[used], l2[used])
    return best


def _slope(C: Array, w: Array, size: Array, l1: Array, l2: Array) -> Array:
    """Negative slope of the objective where no w_j is zero."""
    return C - (l1 / size + l2)[:, None] * w


def _direction(G: Array, slope: Array, w: Array, size: Array, l1: Array, l2: Array) -> Array:
    """Newton's step there; zeros where the equations have no solution."""
    m, K = w.shape
    along, bend = w / size[:, None], np.einsum("ij,kl->ikjl", G, np.eye(K))
    across = (l1 / size)[:, None, None] * (np.eye(K) - along[:, :, None] * along[:, None, :])
    bend[np.arange(m), :, np.arange(m), :] += l2[:, None, None] * np.eye(K) + across
    try:
        step = np.linalg.solve(bend.reshape(m * K, m * K), slope.ravel()).reshape(m, K)
    except np.linalg.LinAlgError:
        return np.zeros_like(w)
    return step if np.isfinite(step).all() else np.zeros_like(w)


def _newton(G: Array, C: Array, W: Array, l1: Array, l2: Array) -> tuple[Array, Array]:
    """One Newton step on the columns in use, if it lowers the objective."""
    used = np.flatnonzero(W.any(axis=1))
    m, K = used.size, W.shape[1]
    if not m or m * K > LARGEST:
        return W, C
    w, size = W[used], _sizes(W[used])
    first, second = l1[used], l2[used]
    step = _direction(G[np.ix_(used, used)], _slope(C[used], w, size, first, second), w, size, first, second)
    image = G[:, used] @ step

    def change(t: float) -> float:
        after = _sizes(w + t * step)
        penalty = first * (after - size) + 0.5 * second * (after * after - size * size)
        return float(penalty.sum() + t * (0.5 * t * image[used] - C[used]).ravel() @ step.ravel())

    for t in (1.0, 0.5, 0.25, 0.125):
        if change(t) < 0.0:
            moved = W.copy()
            moved[used] += t * step
            return moved, C - t * image
    return W, C
