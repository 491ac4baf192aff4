"""The span of some rows in feature space, in coordinates of length: what makes a kernel a matrix that any solver takes.

With k(C, C) = L Lᵀ for chosen rows C, the functions Σ_j β_j k(·, c_j) are φ(x)·u with

    φ(x) = L⁻¹ k(C, x),    β = L⁻ᵀ u,    βᵀ k(C, C) β = ‖u‖².

Where C is all that the rows of a fit span, nothing is lost (the representer theorem); where it is less, this is Nyström's
approximation, and what is best is the best of the span. Rows that others span already are left out by the pivots of
Cholesky's method, so that a singular Gram matrix is as good as any.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from certifit._types import Array
from certifit.names import record
from certifit.representation.kernels.mercer import is_mercer

__all__ = ["Span", "check_mercer", "pivoted", "row_parts"]

DEPENDENT = 1e-10  # of the largest k(x, x): a landmark this near to the span of others adds rounding only
ENTRIES = 1 << 22  # of a block of similarities


@record("KernelSpan")
class Span:
    """Chosen rows and the triangular factor of their Gram matrix."""

    chosen: Array
    """Numbers of the rows."""
    factor: Array
    """L, shape (r, r)."""

    def features(self, similarities: Array) -> Array:
        """φ of rows from k(x, C), shape (n, r)."""
        found = solve_triangular(self.factor, similarities.T, lower=True, check_finite=False)
        return np.ascontiguousarray(found.T)

    def coefficients(self, u: Array) -> Array:
        """β of u: shape (r,), or (r, K) for u of shape (K, r)."""
        return np.asarray(solve_triangular(self.factor, u.T, lower=True, trans="T", check_finite=False))

    @staticmethod
    def of(gram: Array, chosen: Array | None = None) -> Span:
        """Of the Gram matrix of rows that may depend on each other; their numbers are 0, 1, … by default."""
        L, order = pivoted(gram, DEPENDENT)
        r = L.shape[1]
        numbers = np.arange(gram.shape[0]) if chosen is None else chosen
        return Span(numbers[order[:r]], np.ascontiguousarray(L[:r]))


def pivoted(gram: Array, tolerance: float = 0.0) -> tuple[Array, Array]:
    """L of shape (n, r) and the order of the rows with gram[order][:, order] = L Lᵀ, up to a share of the largest k(x, x).

    Raises where the matrix is not positive semidefinite, with the eigenvalue that says so.
    """
    n = gram.shape[0]
    largest = float(np.diagonal(gram).max(initial=0.0))
    if not largest > 0.0:
        if np.abs(gram).max(initial=0.0) > 0.0:
            raise ValueError(refusal(gram))
        return np.zeros((n, 0)), np.arange(n)
    least = max(tolerance, 4.0 * n * float(np.finfo(np.float64).eps))
    found, pivots, rank, _ = lapack.dpstrf(gram / largest, lower=1, tol=least, overwrite_a=1)
    order = np.asarray(pivots, dtype=np.intp) - 1
    L = np.tril(found)[:, :rank]
    if rank < n:
        # What is left of a Gram matrix has no entry above its largest diagonal entry.
        rest = order[rank:]
        left = gram[np.ix_(rest, rest)] / largest - L[rank:] @ L[rank:].T
        if float(np.abs(left).max()) > 100.0 * least:
            raise ValueError(refusal(gram))
    return L * np.sqrt(largest), order


def refusal(gram: Array) -> str:
    """Why a matrix is no Gram matrix, and what to do."""
    found = is_mercer(gram)
    lifted = "add a multiple of the identity that lifts this eigenvalue to zero"
    return (
        f"The kernel is not positive semidefinite on these rows. {found} No model with a unique optimum stands on it: "
        f"choose another kernel, or {'give k(z, x) = k(x, z)' if found.asymmetry else lifted}."
    )


def check_mercer(gram: Array) -> None:
    """Raise, with the offending eigenvalue, where a matrix of the user's is not symmetric and positive semidefinite."""
    n = gram.shape[0]
    largest = max(float(np.abs(gram).max(initial=0.0)), 1e-300)
    if float(np.abs(gram - gram.T).max(initial=0.0)) <= 1e-8 * largest:
        shifted = 0.5 * (gram + gram.T) / largest
        shifted[np.diag_indices(n)] += 1e-10 * n
        _, info = lapack.dpotrf(shifted.T, lower=1, overwrite_a=1)
        if info == 0:
            return
    raise ValueError(refusal(gram))


def row_parts(n: int, width: int) -> list[slice]:
    """Slices of rows whose similarities with `width` others make blocks of moderate size."""
    step = max(1, ENTRIES // max(width, 1))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]
