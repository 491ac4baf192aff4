"""Products of the centered, weighted rows with themselves: what spectra of a table are computed from.

    Z = diag(√s)(X − 1mᵀ)        ZᵀZ (columns by columns)        ZZᵀ (rows by rows)        V ↦ ZᵀZV

m is the weighted mean of the rows, or zero. Sparse rows stay sparse: the mean is taken out of the products.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.representation.design.moments import Moments
from certifit.representation.design.rows import over_rows
from certifit.threads import n_threads

__all__ = ["centered_rows", "inner", "outer", "product", "weighted_mean"]


def weighted_mean(X: Matrix, weight: Array) -> Array:
    """Σ s_i x_i / Σ s_i."""
    return np.asarray(X.T @ weight, dtype=np.float64).ravel() / weight.sum()


def centered_rows(X: Array, weight: Array, mean: Array) -> Array:
    """Z of dense rows."""
    Z = X - mean
    Z *= np.sqrt(weight)[:, None]
    return np.asarray(Z)


def inner(X: Matrix, weight: Array, *, center: bool = True) -> tuple[Array, Array]:
    """ZᵀZ, and the mean that was taken out (zeros where none was).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from certifit.representation.design.scatter import inner
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0]])
    >>> inner(X, np.ones(2))[0], inner(sp.csr_array(X), np.ones(2), center=False)[0]
    (array([[2., 2.],
           [2., 2.]]), array([[ 4.,  6.],
           [ 6., 10.]]))
    """
    total = float(weight.sum())
    if not is_sparse(X):
        n, d = X.shape
        parts = over_rows(lambda rows: Moments.of(X[rows], weight[rows]), n, d, n_threads(None))
        moments = reduce(add, parts)
        mean, scatter = moments.mean[0], moments.scatter[0]
        return (scatter, mean) if center else (scatter + total * np.outer(mean, mean), np.zeros_like(mean))
    rows = X.tocsr().astype(np.float64)
    raw = np.asarray((rows.T @ rows.multiply(weight[:, None]).tocsr()).todense())
    mean = weighted_mean(rows, weight) if center else np.zeros(X.shape[1])
    return raw - total * np.outer(mean, mean), mean


def outer(X: Matrix, weight: Array, *, center: bool = True) -> tuple[Array, Array]:
    """ZZᵀ, and the mean that was taken out."""
    mean = weighted_mean(X, weight) if center else np.zeros(X.shape[1])
    if not is_sparse(X):
        Z = centered_rows(X, weight, mean)
        return Z @ Z.T, mean
    root = np.sqrt(weight)
    scaled = X.tocsr().astype(np.float64).multiply(root[:, None]).tocsr()
    cross = np.outer(root, np.asarray(scaled @ mean).ravel())
    raw = np.asarray((scaled @ scaled.T).todense())
    return raw - cross - cross.T + np.outer(root, root) * (mean @ mean), mean


def product(X: Matrix, weight: Array, mean: Array) -> Callable[[Array], Array]:
    """V ↦ ZᵀZV without Z: (X − 1mᵀ)ᵀ diag(s) (X − 1mᵀ)V."""
    rows = X.tocsr().astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)

    def of(V: Array) -> Array:
        scores = np.asarray(rows @ V) - mean @ V
        scores *= weight[:, None]
        return np.asarray(rows.T @ scores) - np.outer(mean, scores.sum(axis=0))

    return of
