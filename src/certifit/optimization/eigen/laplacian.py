"""The smallest eigenvalues of a graph's Laplacian, with its connected components taken out exactly.

    unnormalized    L = D − W                     normalized    L = I − D^(−1/2) W D^(−1/2)

with weights W and degrees D. Zero is an eigenvalue once for each component, and its vectors are known: the indicator of the
component, times √D where L is normalized. A solver that has to find them mixes them and mistakes small eigenvalues for
zero. So each component is solved by itself, and what it gives is pooled.

Lanczos' iteration may miss an eigenvalue. By Sylvester's law a factorization of L − σI has as many negative pivots as L has
eigenvalues below σ: where that is the number found, none is missing (`complete`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from certifit._types import Array

__all__ = ["LaplacianSpectrum", "laplacian", "smallest_eigenvalues"]

DENSE = 400  # vertices up to which a component is decomposed as a whole
FILLED = 3000  # vertices from which the factors of a graph in many dimensions are nearly dense
SHIFT = 1e-4  # of the mean degree, below zero: L + shift is positive definite


@dataclass(frozen=True)
class LaplacianSpectrum:
    """The smallest eigenvalues of a Laplacian, ascending, and their vectors.

    Parameters
    ----------
    values : array of shape (m,)
    vectors : array of shape (n, m)
        Orthonormal.
    residuals : array of shape (m,)
        ‖Lv − λv‖: within this of λ there is an eigenvalue.
    components : array of shape (n,)
        The connected component of each vertex.
    """

    values: Array
    vectors: Array
    residuals: Array
    components: Array
    matrix: Any
    factors: bool
    """Whether `matrix` has cheap triangular factors."""

    def complete(self, k: int) -> bool:
        """Whether the first k are proven to be the k smallest: as many as there are below the next one found."""
        if k >= self.matrix.shape[0] or self.values[k - 1] == 0.0:  # none is negative
            return True
        if k >= self.values.size or not self.factors:
            return False
        low, high = self.values[k - 1] + self.residuals[k - 1], self.values[k] - self.residuals[k]
        return bool(low < high) and _count_below(self.matrix, float(0.5 * (low + high))) == k


def laplacian(W: Any, normalized: bool) -> tuple[Any, Array]:
    """L as a sparse matrix, and what turns its eigenvectors into coordinates of vertices (D^(−1/2), or ones)."""
    degree = np.asarray(W.sum(axis=1), dtype=np.float64).ravel()
    if not normalized:
        return sp.csc_array(sp.diags_array(degree) - W), np.ones(degree.size)
    root = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    scale = sp.diags_array(root)
    return sp.csc_array(sp.diags_array((degree > 0).astype(np.float64)) - scale @ W @ scale), root


def smallest_eigenvalues(
    L: Any, null: Array, count: int, *, beyond: bool = False, flat: bool = True
) -> LaplacianSpectrum:
    """The `count` smallest eigenvalues of a Laplacian and the next one, or all if there are fewer.

    The next one is left out where zeros are enough, unless `beyond`.

    Parameters
    ----------
    L : sparse matrix of shape (n, n)
    null : array of shape (n,)
        Positive; on each component an eigenvector of zero.
    count : int
    beyond : bool
    flat : bool
        Whether the graph is one of points in few dimensions: then it has cheap triangular factors, however large it is. Others
        are solved by products alone from `FILLED` vertices on, to a lower precision.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from certifit.optimization.eigen.laplacian import laplacian, smallest_eigenvalues
    >>> W = sp.csr_array(np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0.0]]))  # two pairs
    >>> smallest_eigenvalues(laplacian(W, normalized=False)[0], np.ones(4), 2, beyond=True).values.round(12)
    array([0., 0., 2.])
    """
    n = L.shape[0]
    parts, codes = connected_components(L, directed=False)
    if parts < count or beyond:
        count += 1
    found: list[tuple[float, Array, Array]] = []
    for part in range(parts):
        rows = np.flatnonzero(codes == part)
        zero = null[rows] / np.linalg.norm(null[rows])
        found.append((0.0, rows, zero))
        more = min(count - parts, rows.size - 1)
        if more > 0:
            values, vectors = _beyond_zero(L[rows][:, rows].tocsc() if parts > 1 else L, zero, more, flat)
            found += [(float(value), rows, vector) for value, vector in zip(values, vectors.T, strict=True)]
    found = sorted(found, key=lambda entry: entry[0])[: max(1, min(count, n))]
    vectors = np.zeros((n, len(found)))
    for column, (_, rows, vector) in enumerate(found):
        vectors[rows, column] = vector
    values = np.array([entry[0] for entry in found])
    residuals = np.linalg.norm(L @ vectors - vectors * values, axis=0)
    return LaplacianSpectrum(values, vectors, residuals, codes, L, flat or n <= FILLED)


def _beyond_zero(L: Any, zero: Array, more: int, flat: bool) -> tuple[Array, Array]:
    """The smallest eigenvalues of a connected Laplacian but for zero, with signs that depend on the vectors alone."""
    n = L.shape[0]
    if n <= DENSE or more + 1 >= n // 2:
        values, vectors = eigh(L.toarray(), subset_by_index=(1, more))
    elif not flat and n > FILLED:
        top = 2.0 * float(L.diagonal().max())  # above all eigenvalues, by Gershgorin's circles
        start = np.random.default_rng(0).standard_normal(n)
        flipped = sp.csr_array(top * sp.eye_array(n) - L)
        values, vectors = eigsh(flipped, k=more + 1, which="LA", v0=start, ncv=max(40, 3 * more), tol=1e-5)
        order = np.argsort(-values)[1:]
        values, vectors = top - values[order], vectors[:, order]
    else:
        shift = SHIFT * float(L.diagonal().mean())
        solve = LinearOperator((n, n), matvec=_factors(L, -shift).solve, dtype=np.float64)
        start = np.random.default_rng(0).standard_normal(n)
        values, vectors = eigsh(L, k=more + 1, sigma=-shift, which="LM", OPinv=solve, v0=start, tol=1e-9)
        order = np.argsort(values)[1:]
        values, vectors = values[order], vectors[:, order]
    vectors = vectors - np.outer(zero, zero @ vectors)
    vectors /= np.linalg.norm(vectors, axis=0)
    top = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.maximum(values, 0.0), vectors * np.where(top < 0, -1.0, 1.0)


def _count_below(L: Any, sigma: float) -> int:
    """How many eigenvalues lie below sigma, by the signs of the pivots of L − σI; −1 where the pivots cannot tell."""
    n = L.shape[0]
    if n <= DENSE:
        return int((eigh(L.toarray(), eigvals_only=True) < sigma).sum())
    try:
        factors = _factors(L, sigma)
    except RuntimeError:  # a pivot of exactly zero
        return -1
    if not np.array_equal(factors.perm_r, factors.perm_c):
        return -1
    return int((factors.U.diagonal() < 0).sum())


def _factors(L: Any, sigma: float) -> Any:
    """L − σI in triangular factors, with pivots from the diagonal."""
    shifted = sp.csc_array(L - sigma * sp.eye_array(L.shape[0]))
    return splu(shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
