"""Ridge regression for all alphas from one decomposition.

    minimize over w, b    Σ p_i ½(y_i − x_i·w − b)² + alpha·½‖w‖²,      p = s/Σs

With the spectrum Σ s_i (x_i − m)(x_i − m)ᵀ = V diag(λ) Vᵀ and z = Vᵀ Σ s_i (x_i − m) y_i, the fit of every alpha is
w = V z/(λ + Σs·alpha).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix, is_sparse
from certifit.representation.design.blocks import row_blocks

__all__ = ["LARGEST_SPECTRUM", "RidgeSpectrum", "row_slices", "total_variance"]

LARGEST_SPECTRUM = 5000  # rows or columns, whichever are fewer
SMALL = 2_000_000  # entries of X up to which its singular values are affordable


@dataclass(frozen=True)
class RidgeSpectrum:
    """Σ s_i (x_i − m)(x_i − m)ᵀ = V diag(values) Vᵀ on its range, and z = Vᵀ Σ s_i (x_i − m) y_i."""

    values: Array
    V: Array
    z: Array
    mean: Array
    y_mean: float
    total: float

    @staticmethod
    def of(X: Matrix, y: Array, weight: Array, fit_intercept: bool) -> RidgeSpectrum:
        """Decompose; the smaller side of X must not exceed `LARGEST_SPECTRUM`."""
        n, d = X.shape
        if min(n, d) > LARGEST_SPECTRUM:
            raise ValueError(
                f"One decomposition for all alphas needs at most {LARGEST_SPECTRUM} rows or columns; X has {n} rows and {d} "
                "columns. Reduce the features, or fit Ridge for a few alphas."
            )
        total = float(weight.sum())
        mean, y_mean = np.zeros(d), 0.0
        if fit_intercept:
            mean, y_mean = np.asarray(X.T @ weight, dtype=np.float64) / total, float(weight @ y) / total
        root, target = np.sqrt(weight), y - y_mean
        if n * d <= SMALL:
            values, V, z = _by_singular_values(X, mean, root, target)
        elif n < d:
            values, V, z = _by_rows(X, mean, root, target)
        else:
            values, V, z = _by_columns(X, mean, weight, target)
        return RidgeSpectrum(values, V, z, mean, y_mean, total)

    def shrinkage(self, penalties: Array) -> Array:
        """1/(λ_k + penalty), one column for each penalty; zero where there is nothing to divide by."""
        sums = self.values[:, None] + penalties
        return np.asarray(np.where(sums > 0, 1.0 / np.where(sums > 0, sums, 1.0), 0.0))

    def rotated(self, X: Matrix, rows: slice) -> Array:
        """q_i = Vᵀ(x_i − m)"""
        return np.asarray(X[rows] @ self.V - self.mean @ self.V, dtype=np.float64)

    def predictions(self, X: Matrix, rows: slice, penalties: Array) -> Array:
        """Fitted values of some rows, one column for each penalty."""
        fitted = self.z[:, None] * self.shrinkage(penalties)
        return np.asarray(self.y_mean + self.rotated(X, rows) @ fitted)

    def coefs(self, alphas: Array) -> tuple[Array, Array]:
        """Coefficients of shape (n_alphas, d) and intercepts of shape (n_alphas,)."""
        W = (self.z[:, None] * self.shrinkage(self.total * alphas)).T @ self.V.T
        return W, self.y_mean - W @ self.mean


def _by_singular_values(X: Matrix, mean: Array, root: Array, target: Array) -> tuple[Array, Array, Array]:
    """The singular values themselves, at full accuracy."""
    A = (X.toarray() if is_sparse(X) else X) - mean
    A = A * root[:, None]
    U, S, Vt = np.linalg.svd(A, full_matrices=False)
    floor = 4.0 * float(np.finfo(np.float64).eps) * np.sqrt(max(X.shape)) * S.max(initial=0.0)
    kept = np.greater(S, floor)
    return S[kept] ** 2, Vt[kept].T, S[kept] * (U[:, kept].T @ (root * target))


def _by_rows(X: Matrix, mean: Array, root: Array, target: Array) -> tuple[Array, Array, Array]:
    """From the n × n matrix of products of rows."""
    n, d = X.shape
    K = np.zeros((n, n))
    if is_sparse(X):
        cross = np.asarray(X @ mean)
        K = np.asarray((X @ X.T).toarray(), dtype=np.float64) - cross - cross[:, None] + float(mean @ mean)
    else:
        step = max(64, 1_000_000 // n)
        for start in range(0, d, step):
            part = np.asarray(X[:, start : start + step], dtype=np.float64) - mean[start : start + step]
            K += part @ part.T
    values, U = _positive(*np.linalg.eigh(K * root * root[:, None]))
    B = root[:, None] * U / np.sqrt(values)  # V = Aᵀ U diag(1/√λ)
    V = np.asarray(X.T @ B, dtype=np.float64) - np.outer(mean, B.sum(axis=0))
    return values, V, np.sqrt(values) * (U.T @ (root * target))


def _by_columns(X: Matrix, mean: Array, weight: Array, target: Array) -> tuple[Array, Array, Array]:
    """From the d × d matrix of products of columns."""
    d, root = X.shape[1], np.sqrt(weight)
    if is_sparse(X):
        G = np.asarray((X.T @ (sp.diags_array(weight) @ X)).toarray(), dtype=np.float64)
        G -= float(weight.sum()) * np.outer(mean, mean)
        moment = np.asarray(X.T @ (weight * target), dtype=np.float64) - mean * float(weight @ target)
    else:
        G, moment = np.zeros((d, d)), np.zeros(d)
        for rows in row_slices(X):
            part = np.asarray(X[rows], dtype=np.float64) - mean
            moment += (weight[rows] * target[rows]) @ part
            part *= root[rows, None]
            G += part.T @ part
    values, V = _positive(*np.linalg.eigh(G))
    return values, V, V.T @ moment


def _positive(values: Array, vectors: Array) -> tuple[Array, Array]:
    """Eigenvalues above rounding."""
    kept = values > max(float(values[-1]), 0.0) * 10.0 * np.finfo(np.float64).eps * values.shape[0]
    return values[kept], vectors[:, kept]


def total_variance(X: Matrix, p: Array, fit_intercept: bool) -> float:
    """Σ_j Var(x_j), the largest value that an eigenvalue of the second moments can have."""
    mean = np.asarray(p @ X if not is_sparse(X) else X.T @ p, dtype=np.float64)
    if is_sparse(X):
        second = float(X.multiply(X).T @ p @ np.ones(X.shape[1]))
        return second - float(mean @ mean) if fit_intercept else second
    centre = mean if fit_intercept else np.zeros(X.shape[1])
    return sum(float(p[rows] @ ((X[rows] - centre) ** 2).sum(axis=1)) for rows in row_slices(X))


def row_slices(X: Matrix, width: int = 1) -> list[slice]:
    """Blocks of rows of about a million entries, of X or of what has `width` columns."""
    return row_blocks(X.shape[0], max(X.shape[1], width), 1_000_000)
