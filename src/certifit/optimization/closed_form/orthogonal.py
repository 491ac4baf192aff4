"""Factorizations of least-squares problems by orthogonal matrices: they take any condition."""

from __future__ import annotations

from copy import copy
from typing import Protocol, Self

import numpy as np
from scipy.linalg import qr, solve_triangular, svd

from certifit._types import Array
from certifit.optimization.closed_form.normal_equations import EPS, GRAM_BYTES, NormalEquations

__all__ = ["Factor", "Kept", "RowSpace", "SingularValues", "orthogonal"]

ROUNDING = 8.0 * EPS


class Factor(Protocol):
    """H⁻¹, to the accuracy of its factorization."""

    method: str
    rank: int
    condition: float
    contraction: float
    """By how much a step with a true gradient surely shrinks the error; 1 where that is to be seen."""

    def start(self) -> Array:
        """First coefficients."""

    def solve(self, g: Array) -> Array:
        """H⁻¹ g"""

    def half(self, B: Array) -> Array:
        """F with FᵀF = BᵀH⁻¹B"""


class Kept:
    """A factor that can be kept when the data are gone."""

    problem: NormalEquations | None

    def without_data(self: Self) -> Self:
        """The same factor; what begins with a target is no longer to be asked of it."""
        kept = copy(self)
        kept.problem = None
        return kept


class SingularValues(Kept):
    """V S² Vᵀ = H in the coordinates of the equilibrated columns, D w; truncated at the numerical rank."""

    problem: NormalEquations
    method = "svd"
    contraction = 1.0

    def __init__(self, problem: NormalEquations, T: Array, z: Array, D: Array, tolerance: float, least: float) -> None:
        U, S, Vt = _svd(T)
        self.problem = problem
        self.rank = int((tolerance * S[:1] < S).sum()) if S.size and S[0] > 0 else 0
        self.S, self.Vt, self.D = S[: self.rank], Vt[: self.rank], D
        self.condition = float(S[0] / S[self.rank - 1]) if self.rank else 1.0
        # Of single precision, directions count as rounding that double precision still sees: a proof has to know of them.
        seen = slice(self.rank, int((least * S[:1] < S).sum()) if self.rank else 0)
        self.rest = S[seen], Vt[seen]
        self.unseen = Vt[seen.stop :] / D  # what double precision does not tell from zero
        self.first = (U[:, : self.rank].T @ z) / self.S[:, None]
        self.minimum: tuple[Array, Array] | None = None
        if 0 < self.rank < D.shape[0]:
            # V₁ᵀD w = c has many solutions; with D V₁ = Q T (thin) the one of least norm is Q T⁻ᵀ c. The
            # norm is that of the coefficients in the units of the caller.
            units = np.ones(D.shape[0]) if problem.units is None else problem.units / problem.units.max()
            Q, T1 = np.linalg.qr((D * units)[:, None] * self.Vt.T)
            self.minimum = units[:, None] * Q, T1

    def _coefficients(self, c: Array) -> Array:
        if self.rank == 0:
            return np.zeros(self.D.shape[0])
        if self.minimum is None:
            return np.asarray(self.Vt.T @ c / self.D)
        Q, T = self.minimum
        return np.asarray(Q @ solve_triangular(T, c, trans="T", check_finite=False))

    def start(self) -> Array:
        return self._coefficients(self.first[:, self.problem.k])

    def solve(self, g: Array) -> Array:
        return self._coefficients((self.Vt @ (g / self.D)) / self.S / self.S)

    def half(self, B: Array) -> Array:
        return np.asarray((self.Vt @ (B / self.D[:, None])) / self.S[:, None])

    def left(self, g: Array) -> float:
        """gᵀH⁻¹g along the directions that were cut off: twice what a step along them would gain."""
        S, Vt = self.rest
        along = (Vt @ (g / self.D)) / S
        return float(along @ along)


class RowSpace(Kept):
    """Q R = L^(-1/2) Aᵀ, with L the penalty: of n rows, the directions of Q feel the data, and all others the penalty alone.

    Householder's reflections of sorted and pivoted rows keep the digits of small columns beside large ones, and of small rows.
    """

    problem: NormalEquations
    method = "svd"
    contraction = 1.0

    def __init__(self, problem: NormalEquations) -> None:
        self.problem, self.rank = problem, problem.d
        self.D = np.where(problem.spread > 0, np.sqrt(problem.l2), np.inf)  # a constant column has coefficient zero
        blocks = [((A / self.D).T, targets) for A, targets in problem.rows()]
        M, z = (np.concatenate(part, axis=1) for part in zip(*blocks, strict=True))
        order = np.argsort(-np.abs(M).max(axis=1), kind="stable")
        Q, R, taken = qr(M[order], mode="economic", pivoting=True, check_finite=False)
        # Of equal rows, rounding leaves directions that are none: the penalty holds them, and a gap counts them in full.
        size = np.linalg.norm(R, axis=0)
        felt = np.abs(R.diagonal()) > ROUNDING * np.sqrt(problem.n + problem.d) * size
        k = int(felt.argmin()) if not felt.all() else felt.shape[0]
        self.Q = np.empty((problem.d, k))
        self.Q[order] = Q[:, :k]
        both = np.zeros((problem.n + k, k + z.shape[0]))
        both[: problem.n, :k], both[: problem.n, k:] = R[:k].T, z[:, taken].T
        np.fill_diagonal(both[problem.n :], 1.0)
        T = qr(both, mode="r", overwrite_a=True, check_finite=False)[0]
        self.T = T[:k, :k]
        self.rows = np.empty((k, problem.n))
        self.rows[:, taken] = R[:k]
        self.condition = float(np.abs(self.T.diagonal()).max(initial=1.0))
        self.first = self.Q @ solve_triangular(self.T, T[:k, k:], check_finite=False) / self.D[:, None]

    def start(self) -> Array:
        return np.ascontiguousarray(self.first[:, self.problem.k])

    def solve(self, g: Array) -> Array:
        v = g / self.D
        along = self.Q.T @ v
        v -= self.Q @ along
        v += self.Q @ solve_triangular(self.T, self._back(along), check_finite=False)
        return np.asarray(v / self.D)

    def half(self, B: Array) -> Array:
        V = B / self.D[:, None]
        along = self.Q.T @ V
        return np.concatenate([V - self.Q @ along, self._back(along)])

    def hat(self) -> Array:
        F = self._back(self.rows)  # no row has a part along other directions
        return np.asarray(F.T @ F)

    def hat_diagonal(self) -> Array:
        F = self._back(self.rows)
        return np.asarray(np.einsum("ij,ij->j", F, F))

    def _back(self, along: Array) -> Array:
        return np.asarray(solve_triangular(self.T, along, trans="T", check_finite=False))

    def left(self, g: Array) -> float:
        """gᵀH⁻¹g: a sum of squares, which rounding does not turn around."""
        F = self.half(g[:, None])
        return float((F * F).sum())


def orthogonal(problem: NormalEquations) -> RowSpace | SingularValues:
    """Of fewer rows than penalized columns the space of the rows; else triangle T and Qᵀb of the equilibrated [A; √l2] by row
    blocks, so that no copy of X is needed.
    """
    problem.center_again()
    if problem.wide_and_penalized:
        return RowSpace(problem)
    D = np.sqrt(problem.spread**2 + problem.l2)
    D = np.where((problem.spread > 0) & (D > 0), D, 1.0)
    D = np.exp2(np.round(np.log2(D)))
    size = max(GRAM_BYTES, 8 * 4 * problem.d**2)  # blocks taller than wide: the triangle is stacked on each
    d, K = problem.d, problem.moments.shape[0]
    T = np.zeros((0, d + K))
    for A, targets in problem.rows(size):
        T = _triangle(np.concatenate([T, np.column_stack([A / D, targets.T])]), d)
    penalized = problem.l2 > 0
    if penalized.any():
        penalty = np.column_stack([np.diag(np.sqrt(problem.l2) / D), np.zeros((d, K))])[penalized]
        T = _triangle(np.concatenate([T, penalty]), d)
    T = T[:d]
    # What a penalty holds needs no cut, however small it is.
    eps = float(np.finfo(np.float32).eps) / 8 if problem.single and not penalized.all() else EPS
    terms = 8.0 * float(np.sqrt(problem.n + problem.d))
    return SingularValues(problem, T[:, :d], T[:, d:], D, terms * eps, terms * EPS)


def _triangle(M: Array, d: int) -> Array:
    """R of a QR factorization, or the matrix itself where it has no more rows than its first d columns."""
    if M.shape[0] <= d:
        return M
    out: Array = qr(M, mode="r", overwrite_a=True, check_finite=False)[0][: M.shape[1]]
    return out


def _svd(T: Array) -> tuple[Array, Array, Array]:
    try:
        return svd(T, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:  # divide and conquer can fail where the slower iteration does not
        return svd(T, full_matrices=False, check_finite=False, lapack_driver="gesvd")
