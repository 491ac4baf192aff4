"""Equations with one symmetric matrix for many shifts and several right sides, from the powers of the matrix on each right side.

    (A + ρI) z = b,        A = P D K D P,    D = diag(root),    P = I − u uᵀ,    b = P b

A space of powers of A is one of powers of A + ρ too: with orthonormal V of it, A V = V T + β v eᵀ, every ρ costs a tridiagonal
solve, z = V (T + ρ)⁻¹Vᵀb, and its residual is β times the last entry of (T + ρ)⁻¹Vᵀb (Frommer and Maass 1999). All right sides,
each with a root and a u of its own, share the passes over K (native/products/lanczos.hpp).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

import certifit._native.products as _products
from certifit._types import Array

__all__ = ["Krylov"]


class Krylov:
    """The spaces so far.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric, one row after the other.
    root, constant, right : arrays of shape (c, n)
        Of each right side; `constant` is u, or zero where there is no P.
    ridges : array of shape (c, k)
        ρ > 0.
    room : int
        Most steps.
    threads : int
    """

    def __init__(
        self, K: Array, root: Array, constant: Array, right: Array, ridges: Array, *, room: int, threads: int
    ) -> None:
        self.K, self.root, self.constant, self.ridges, self.threads = K, root, constant, ridges, threads
        self.room, self.steps = room, 0
        self.basis = np.empty((right.shape[0], room + 1, K.shape[0]))
        self.diagonal, self.below = np.zeros((2, right.shape[0], room + 1))
        self.size = np.linalg.norm(right, axis=1)
        self.basis[:, 0] = right / np.where(self.size > 0.0, self.size, 1.0)[:, None]
        # T + ρ = L diag(pivots) Lᵀ, and L⁻¹Vᵀb; its next entry is the residual.
        self.pivots: list[Array] = []
        self.forward = [np.broadcast_to(self.size[:, None], ridges.shape)]

    def extend(self, steps: int) -> None:
        """Some steps more, as far as there is room."""
        end = min(self.steps + steps, self.room)
        _products.lanczos(
            self.K, self.root, self.constant, self.basis, self.diagonal, self.below, self.steps, end, self.threads
        )
        with np.errstate(all="ignore"):
            for m in range(self.steps, end):
                pivot = self.diagonal[:, [m]] + self.ridges
                if m:
                    pivot = pivot - self.below[:, [m - 1]] ** 2 / self.pivots[-1]
                # Rounding may take a positive matrix for one that is not, where ρ is below it: that ends the process for this ρ.
                pivot = np.where(pivot > 0.0, pivot, np.nan)
                self.pivots.append(pivot)
                self.forward.append(-self.below[:, [m]] / pivot * self.forward[-1])
        self.steps = end

    def residuals(self) -> Array:
        """Their lengths, (c, k), as far as rounding lets them be; infinite where the process has ended."""
        found = np.abs(self.forward[-1])
        return np.where(np.isfinite(found), found, np.inf)

    def least(self) -> Array:
        """The least eigenvalue of T, (c,): above that of A, and soon near it."""
        parts = zip(self.diagonal[:, : self.steps], self.below[:, : self.steps - 1], strict=True)
        found = [scipy.linalg.eigvalsh_tridiagonal(*part, select="i", select_range=(0, 0))[0] for part in parts]
        return np.maximum(found, 0.0)

    def solutions(self) -> Array:
        """z of each right side and ρ, (c, k, n)."""
        entries = np.empty((self.steps, *self.ridges.shape))
        with np.errstate(all="ignore"):
            last = np.zeros(self.ridges.shape)
            for m in range(self.steps - 1, -1, -1):
                last = (self.forward[m] - self.below[:, [m]] * last) / self.pivots[m]
                entries[m] = last
        np.nan_to_num(entries, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        return np.stack([entries[:, i].T @ basis[: self.steps] for i, basis in enumerate(self.basis)])
