"""The k largest eigenvalues of a symmetric positive semidefinite A, and their vectors.

    maximize tr VᵀAV over V with VᵀV = I        the maximum is λ₁ + … + λ_k, at the leading eigenvectors

exact       all of A by LAPACK
power       one vector at a time: v ← Av/‖Av‖, then A is deflated by λvvᵀ and the next one is looked for
subspace    a random block and its products with A span a Krylov space; its best vectors are the next block (Musco and Musco 2015)

The residuals ‖Av − λv‖ are the evidence: A has an eigenvalue within each of them of λ. Whether it is the leading one, only
`exact` knows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, qr

from certifit._types import Array
from certifit.threads import one_blas_thread

__all__ = ["Eigenpairs", "exact", "power", "subspace"]

Product = Callable[[Array], Array]
OVERSAMPLE = 10  # further vectors of a block: they make the wanted ones converge faster
FEW = 256  # columns up to which the threads of a library wait longer for each other than they work
DEPTH = 3  # products of a block before the best vectors are taken


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenvalues in descending order, their vectors in columns, and how well both fit."""

    values: Array
    vectors: Array
    residuals: Array
    iterations: int


def exact(A: Array, k: int) -> Eigenpairs:
    """The leading k of a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.eigen.leading import exact
    >>> exact(np.diag([1.0, 3.0, 2.0]), 2).values
    array([3., 2.])
    """
    d = A.shape[0]
    with one_blas_thread() if d <= FEW else nullcontext():
        values, vectors = eigh(A) if 4 * k > d else eigh(A, subset_by_index=(d - k, d - 1))
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    return Eigenpairs(values, vectors, np.linalg.norm(A @ vectors - vectors * values, axis=0), 1)


def power(product: Product, d: int, k: int, *, tol: float, max_iter: int, rng: np.random.RandomState) -> Eigenpairs:
    """Power iteration with deflation.

    Parameters
    ----------
    product : callable
        V ↦ AV for V of shape (d, m).
    d, k : int
        Size of A, and how many vectors.
    tol : float
        Wanted residual of each vector.
    max_iter : int
        Most products for each vector.
    rng : RandomState
        For the first vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.eigen.leading import power
    >>> A = np.diag([1.0, 3.0, 2.0])
    >>> power(lambda V: A @ V, 3, 2, tol=1e-9, max_iter=1000, rng=np.random.RandomState(0)).values.round(6)
    array([3., 2.])
    """
    vectors, values, residuals, steps = np.zeros((d, k)), np.zeros(k), np.zeros(k), 0
    for j in range(k):
        found, v = vectors[:, :j], _unit(rng.standard_normal(d), vectors[:, :j])
        for _ in range(max_iter):
            image = product(v[:, None])[:, 0]
            steps += 1
            values[j] = v @ image
            residuals[j] = np.linalg.norm(image - values[j] * v)
            vectors[:, j] = v
            if residuals[j] <= tol or not image.any():
                break
            v = _unit(image, found)
    order = np.argsort(-values, kind="stable")  # nearly equal ones may have come in another order
    return Eigenpairs(values[order], vectors[:, order], residuals[order], steps)


def _unit(v: Array, others: Array) -> Array:
    """The part orthogonal to the others, of length one: what deflation leaves of it, without its rounding."""
    for _ in range(2):
        v = v - others @ (others.T @ v)
    length = float(np.linalg.norm(v))
    return v / length if length > 0 else v


def subspace(product: Product, d: int, k: int, *, tol: float, max_iter: int, rng: np.random.RandomState) -> Eigenpairs:
    """Randomized block Krylov iteration, restarted with the best vectors found; parameters as of `power`.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.eigen.leading import subspace
    >>> A = np.diag(np.arange(100.0))
    >>> subspace(lambda V: A @ V, 100, 2, tol=1e-9, max_iter=100, rng=np.random.RandomState(0)).values.round(6)
    array([99., 98.])
    """
    size = min(d, k + OVERSAMPLE)
    block = qr(rng.standard_normal((d, size)), mode="economic")[0]
    steps = 0
    while True:
        steps += 1
        basis, images = [block], []
        for _ in range(DEPTH):
            images.append(product(basis[-1]))
            room = d - sum(part.shape[1] for part in basis)
            if room <= 0:
                break
            basis.append(_orthonormal(images[-1], basis)[:, :room])
        Q, Z = np.hstack(basis[: len(images)]), np.hstack(images)
        inner = Q.T @ Z
        values, mix = np.linalg.eigh(0.5 * (inner + inner.T))
        values, mix = values[::-1][:size], mix[:, ::-1][:, :size]
        block, image = Q @ mix, Z @ mix
        residuals = np.linalg.norm(image[:, :k] - block[:, :k] * values[:k], axis=0)
        if residuals.max(initial=0.0) <= tol or steps >= max_iter:
            return Eigenpairs(values[:k], block[:, :k], residuals, steps)


def _orthonormal(V: Array, others: list[Array]) -> Array:
    """An orthonormal basis of what V adds to the others."""
    known = np.hstack(others)
    for _ in range(2):
        V = qr(V - known @ (known.T @ V), mode="economic")[0]
    return V
