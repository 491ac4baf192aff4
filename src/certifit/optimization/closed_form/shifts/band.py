"""A symmetric matrix as a narrow band between rotations: the inverse of A + ρI for many ρ, cheaper than by eigenvectors.

    A = Q B Qᵀ,    B of b entries beside its diagonal,    diag((A + ρ)⁻¹)_i = ‖L⁻¹Qᵀe_i‖²    with    L Lᵀ = B + ρ

Panels of b columns are made triangular by reflections, which go to both sides of what remains (Bischof, Lang and Sun 2000):
4/3 n³ operations for B, as many for Q, all of them products of matrices, and 4bn² for each ρ. On the way to a tridiagonal B half
of the operations are products with vectors, at the speed of memory, and eigenvectors take two to three times as many in all.

Only the parts of columns from the diagonal on are kept, in stripes, which threads share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from certifit._types import Array
from certifit.threads import shared_work

__all__ = ["Band", "BandFactor"]

WIDTH = 32  # b: wider panels multiply faster, and narrower bands solve faster
PANELS = 8  # of one stripe, and of reflections that are applied together
COLUMNS = 512  # of Q that are reflected at a time
ROWS = 256  # of Q that are solved for at a time: their solutions stay in the cache


@dataclass(frozen=True)
class BandFactor:
    """L⁻¹ of B + ρ = L Lᵀ, block by block: z_i = inverse_i q_i − carry_i z_{i−1}, kept as one matrix for each block."""

    ridge: float
    steps: tuple[Array, ...]

    def solve_half(self, blocks: Array) -> None:
        """L⁻¹q: `blocks` alternates room for the solution of the block before with the entries of q, along its second axis."""
        b = blocks.shape[2]
        flat = blocks.reshape(-1, blocks.shape[-1])
        for i, step in enumerate(self.steps):
            at = 2 * b * i
            np.matmul(step, flat[at : at + 2 * b], out=flat[at + 2 * b : at + 3 * b])

    def solve(self, q: Array) -> Array:
        """(B + ρ)⁻¹q for the columns of q."""
        b = self.steps[0].shape[0]
        z = np.zeros((len(self.steps) * b, q.shape[1]))
        z[: q.shape[0]] = q
        for i, step in enumerate(self.steps):
            here = slice(i * b, i * b + b)
            z[here] = step[:, b:] @ z[here]
            if i:
                z[here] += step[:, :b] @ z[here.start - b : here.start]
        for i in range(len(self.steps) - 1, 0, -1):
            here = slice(i * b, i * b + b)
            z[here.start - b : here.start] += self.steps[i][:, :b].T @ z[here]
            z[here] = self.steps[i][:, b:].T @ z[here]
        z[:b] = self.steps[0][:, b:].T @ z[:b]
        return z[: q.shape[0]]


@dataclass(frozen=True)
class Band:
    """B by its blocks, and the reflections that led to it; the last block may be smaller than the others."""

    diagonal: tuple[Array, ...]
    below: tuple[Array, ...]
    reflections: Array
    tau: Array

    @staticmethod
    def of(A: Array, width: int = WIDTH) -> Band:
        """Reduce a symmetric matrix of more than `width` rows; it stays as it is."""
        n, broad = A.shape[0], PANELS * width
        stripes = [np.array(A[s:, s : s + broad], order="F") for s in range(0, n, broad)]
        reflections = np.zeros((n - width, n - width), order="F")
        tau = np.zeros(n - width)
        diagonal, below = [], []
        with shared_work() as share:
            for j in range(0, n, width):
                e, (number, inside) = min(width, n - j), divmod(j, broad)
                stripe, top = stripes[number], j - number * broad
                diagonal.append(_mirrored(stripe[top : top + e, inside : inside + e]))
                if j + e >= n:
                    break
                panel = np.array(stripe[top + e :, inside : inside + e], order="F")
                found, scales, _, _ = lapack.dgeqrf(panel, lwork=32 * e, overwrite_a=1)
                below.append(np.triu(found[: min(e, found.shape[0])]))
                k = scales.shape[0]
                reflections[j:, j : j + k] = found[:, :k]
                tau[j : j + k] = scales
                _reflect_both_sides(stripes, broad, j + e, *_compact(found[:, :k], scales), share)
        return Band(tuple(diagonal), tuple(below), reflections, tau)

    def factor(self, ridge: float) -> BandFactor:
        """Of B + ridge·I; numpy.linalg.LinAlgError where that is not positive definite."""
        b = self.diagonal[0].shape[0]
        steps: list[Array] = []
        for i, block in enumerate(self.diagonal):
            # A last block of fewer rows is filled with the identity, which nothing touches.
            shifted, carry = np.eye(b), np.zeros((b, b))
            e = block.shape[0]
            shifted[:e, :e] = block
            shifted[range(e), range(e)] += ridge
            if i:
                carry[:e] = self.below[i - 1] @ steps[-1][:, b:].T
                shifted -= carry @ carry.T
            inverse, _ = lapack.dtrtri(np.linalg.cholesky(shifted), lower=1)
            steps.append(np.hstack([-(inverse @ carry), np.tril(inverse)]))
        return BandFactor(ridge, tuple(steps))

    def rotation(self) -> Array:
        """Q, the product of all reflections, from the last one on: each changes only what those after it have."""
        b, m = self.diagonal[0].shape[0], self.tau.shape[0]
        Q = np.asfortranarray(np.eye(m + b))
        with shared_work() as share:
            for j in reversed(range(0, m, PANELS * b)):
                some = slice(j, j + PANELS * b)
                V, T = _compact(self.reflections[j:, some], self.tau[some])
                below = Q[j + b :].T  # its rows are columns of Q, one after the other in memory

                def reflect(start: int, below: Array = below, V: Array = V, T: Array = T) -> None:
                    part = below[start : start + COLUMNS]
                    part -= ((part @ V) @ T.T) @ V.T

                list(share(reflect, range(j + b, m + b, COLUMNS)))
        return Q


def inverse_diagonals(Q: Array, factors: Sequence[BandFactor]) -> Array:
    """diag((A + ρ)⁻¹), one column for each factor."""
    n, b, count = Q.shape[0], factors[0].steps[0].shape[0], len(factors[0].steps)
    found = np.empty((n, len(factors)))

    def solve(start: int) -> None:
        rows = Q[start : start + ROWS]
        padded = np.zeros((count * b, rows.shape[0]))
        padded[:n] = rows.T
        blocks = np.zeros((count + 1, 2, b, rows.shape[0]))
        blocks[:count, 1] = padded.reshape(count, b, -1)
        for k, factor in enumerate(factors):
            factor.solve_half(blocks)
            halves = blocks[1:, 0]
            # The last block is filled up with rows of zeros, whose solutions are zero.
            found[start : start + ROWS, k] = np.einsum("ijk,ijk->k", halves, halves)

    with shared_work() as share:
        list(share(solve, range(0, n, ROWS)))
    return found


def _mirrored(block: Array) -> Array:
    """The symmetric matrix of which rounding has left the lower half and something like the upper one."""
    return np.asarray(np.tril(block) + np.tril(block, -1).T)


def _compact(found: Array, tau: Array) -> tuple[Array, Array]:
    """V and T of the product I − V T Vᵀ of reflections."""
    k = tau.shape[0]
    V = np.asfortranarray(np.tril(found, -1))
    V[range(k), range(k)] = 1.0
    overlaps, T = V.T @ V, np.diag(tau)
    for i in range(1, k):
        T[:i, i] = -tau[i] * (T[:i, :i] @ overlaps[:i, i])
    return V, T


def _reflect_both_sides(stripes: list[Array], broad: int, begin: int, V: Array, T: Array, share: Any) -> None:
    """A ← (I − V T Vᵀ)ᵀ A (I − V T Vᵀ) = A − V Wᵀ − W Vᵀ from row and column `begin` on, W = Y − ½V(TᵀVᵀY), Y = A V T."""
    m, k = V.shape
    Vt, image = np.ascontiguousarray(V.T), np.zeros((k, m))
    active = []  # columns of a stripe as rows, from the diagonal on, and which of the m they are
    for number in range(begin // broad, len(stripes)):
        stripe, at = stripes[number], number * broad
        top, height = max(at - begin, 0), m - max(at - begin, 0)
        columns = stripe[stripe.shape[0] - height :, max(begin - at, 0) :].T
        active.append((columns, top, top + columns.shape[0]))

    def pulled(part: tuple[Array, int, int]) -> tuple[Array, Array]:
        columns, top, end = part
        return Vt[:, top:end] @ columns, Vt[:, end:] @ columns[:, end - top :].T

    for (_, top, end), (along, across) in zip(active, share(pulled, active), strict=True):
        image[:, top:] += along
        image[:, top:end] += across
    Y = T.T @ image
    W = Y - (0.5 * (Y @ V) @ T) @ Vt
    both, swapped = np.vstack([Vt, W]), np.vstack([W, Vt])

    def updated(part: tuple[Array, int, int]) -> None:
        columns, top, end = part
        columns -= swapped[:, top:end].T @ both[:, top:]

    list(share(updated, active))
