"""Curvature AᵀHA + L that can be inverted, however nearly dependent the columns of A are.

By Cholesky's factor, where it has one to trust. The matrix has the square of the condition of √H·A: directions in which columns
differ by 1e-8 of their size are rounding in it, and yet may hold most of what there is to gain. Of rows in memory they are found
in the singular values of √H·A itself, down to 1e-15, or of A where the K scores of a row curve together; elsewhere they count
as flat. What a proof may lose there is measured by the least curvature that the matrix can tell, as long as its equations hold
up to rounding; and is anything where they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from certifit._types import Array
from certifit.optimization.objective.fold import State
from certifit.representation.design.design import Dense, Design

__all__ = ["REGULAR", "Curvature", "by_singular_values", "factored", "where_curved"]

EPS = float(np.finfo(np.float64).eps)
REGULAR = 1e-6  # least pivot, beside the greatest, of a factor that is trusted: a condition of 1e12
SINGULAR_LIMIT = 600  # rows of a matrix up to which directions without curvature are taken out of it
FLAT = 16.0  # times rounding of its terms: what a sum of columns may leave in a row and still be zero
FEW = 100  # columns from which on a dense copy of sparse ones takes less than that work
FLATTEST = 1e-300  # curvature of a coordinate up to which it has none
MOST_WORK = 2e9  # rows times squares of columns up to which singular values are found


@dataclass(frozen=True)
class Curvature:
    """M = AᵀHA + L by its inverse; calling it solves M·x = right."""

    solve: Callable[[Array], Array]
    energy: Callable[[Array, Array], float]
    """vᵀM⁻¹v for v known up to some rounding: twice what a dual point loses that leaves v of its equations."""
    regular: bool
    factor: tuple[Array, Array] | None = None
    """U and u with M = diag(1/u)·UᵀU·diag(1/u), where it was made of them."""

    def __call__(self, right: Array) -> Array:
        return self.solve(right)


def factored(hessian: Array, K: int, invariant: bool) -> Curvature | None:
    """The inverse of a Hessian of K scores by Cholesky, or that of its curved directions where others have no curvature.

    The direction that all scores of a shift-invariant loss share has no curvature and gets some: slopes sum to zero over
    the scores, and so do all right hand sides, so that what is added is never seen.
    """
    D = hessian.shape[0] // K
    own = np.diag(hessian).reshape(K, D).mean(axis=0)
    if not invariant and not (own > FLATTEST).all():  # no curvature in some direction (all rows on a linear part)
        return None
    # The matrix may weigh as much as X: beside it are one that is scaled and one that is factored, and no others.
    scaled = np.array(hessian, dtype=np.float64, order="C")
    if invariant:
        np.einsum("kjlj->klj", scaled.reshape(K, D, K, D))[:] += np.where(own > 0.0, own, 1.0) / K
    unit = 1.0 / np.sqrt(np.diag(scaled))
    scaled *= unit[:, None]
    scaled *= unit
    for ridge in (0.0, 1e-13, 1e-10, 1e-7, 1e-4):
        trial = scaled.T.copy(order="F")
        np.einsum("ii->i", trial)[:] += ridge
        factor, failed = lapack.dpotrf(trial, lower=1, overwrite_a=1)
        if not failed and (float(np.diag(factor).min()) > REGULAR or ridge == 1e-4):
            return replace(_by_factor(partial(_solved, unit, factor), unit, ridge), factor=(factor.T, unit))
        if K * D <= SINGULAR_LIMIT and np.isfinite(scaled).all():
            # Of rounding, in directions without curvature, an inverse would make the longest step of all.
            values, vectors = scipy.linalg.eigh(scaled, check_finite=False)
            top = max(float(values[-1]), 1e-300)
            least = np.maximum(values, EPS * K * D * top)
            return _by_directions(unit[:, None] * vectors, values, values > 1e-11 * top, least)
    return None


def where_curved(hessian: Array, K: int) -> Curvature | None:
    """The inverse of a Hessian of K scores beside coordinates without curvature, columns of nothing among them.

    No step goes along those, and what is left of their equations costs any amount.
    """
    curved = np.tile(np.diag(hessian).reshape(K, -1).mean(axis=0) > FLATTEST, K)
    part = Curvature(np.zeros_like, lambda v, rounding: 0.0, True)
    if curved.all():
        return None
    if curved.any():
        found = factored(hessian[np.ix_(curved, curved)], K, False)
        if found is None:
            return None
        part = found

    def solve(right: Array) -> Array:
        found = np.zeros(curved.shape[0])
        found[curved] = part.solve(right.ravel()[curved])
        return found.reshape(right.shape)

    def energy(v: Array, rounding: Array) -> float:
        v, rounding = v.ravel(), rounding.ravel()
        flat = bool(v[~curved].any() or rounding[~curved].any())
        return np.inf if flat else part.energy(v[curved], rounding[curved])

    return Curvature(solve, energy, part.regular)


def _by_factor(solve: Callable[[Array], Array], unit: Array, ridge: float) -> Curvature:
    """Of a factor; one with a ridge knows no curvature below it, and so nothing but rounding may be left there."""

    def energy(v: Array, rounding: Array) -> float:
        found = float((v * solve(v)).sum())
        known = ridge == 0.0 or found * ridge <= (FLAT * np.linalg.norm(unit * rounding.ravel())) ** 2
        return found if known else np.inf

    return Curvature(solve, energy, ridge == 0.0)


def _solved(unit: Array, factor: Array, right: Array) -> Array:
    found: Array = unit * lapack.dpotrs(factor, unit * right.ravel(), lower=1)[0]
    return found.reshape(right.shape)


def _by_directions(vectors: Array, values: Array, kept: Array, least: Array) -> Curvature:
    """Of directions and their curvatures: steps along those kept, losses by the least curvature that each may have."""
    half = vectors[:, kept] / np.sqrt(values[kept])

    def energy(v: Array, rounding: Array) -> float:
        along, off = np.abs(vectors.T @ v.ravel()), np.abs(vectors).T @ rounding.ravel()
        told = np.where(kept | (along <= FLAT * off), least, 0.0)
        with np.errstate(divide="ignore"):
            return float(((along + off) ** 2 / told).sum())

    return Curvature(lambda right: np.asarray(half @ (half.T @ right.ravel())).reshape(right.shape), energy, False)


def by_singular_values(state: State, h: list[Any], designs: list[Design], l2: Array) -> Curvature | None:
    """By the singular values of the rows √(p·h)·(1, x) and √l2; None where those are not at hand.

    Of K > 1 scores by those of √p·(1, x), in whose directions the Hessian has no other condition than the curvatures of the rows.
    """
    problem, design, p = state.problem, designs[0], state.parts[0].block.p
    n, m, K = design.shape[0], design.shape[1] + int(problem.fit_intercept), problem.n_scores
    if len(designs) > 1 or n * m * (m if isinstance(design, Dense) else max(m, FEW)) > MOST_WORK:
        return None
    penalty = problem.join(l2, 0.0)
    if K == 1:
        found = _directions(design, np.sqrt(np.maximum(p * h[0], 0.0)), penalty)
        if found is None:
            return None
        vectors, S, clear = found
        return _by_directions(vectors, S**2, clear, np.where(clear, S, 0.0) ** 2)
    found = _directions(design, np.sqrt(p), penalty) if K * m <= SINGULAR_LIMIT else None
    if found is None:
        return None
    vectors, S, clear = found
    basis = vectors[:, clear] / S[clear]
    first = m - design.shape[1]
    rows = Dense(design.dense_rows(slice(0, n)) @ basis[first:] + basis[:first].sum(axis=0), design.threads)
    hessian = rows.hessian(p, h[0], ones=False) + np.kron(np.eye(K), basis.T @ (penalty[:, None] * basis))
    if problem.loss.shift_invariant:  # as in `factored`
        own = np.diag(hessian).reshape(K, -1).mean(axis=0)
        hessian += np.kron(np.full((K, K), 1.0 / K), np.diag(own))
    if not np.isfinite(hessian).all():
        return None
    values, turned = scipy.linalg.eigh(hessian, check_finite=False)
    unclear = np.kron(np.eye(K), vectors[:, ~clear])
    top, nothing = max(float(values[-1]), FLATTEST), np.zeros(unclear.shape[1])
    return _by_directions(
        np.hstack([np.kron(np.eye(K), basis) @ turned, unclear]),
        np.r_[values, nothing],
        np.r_[values > 1e-11 * top, nothing > 0.0],
        np.r_[np.maximum(values, EPS * values.size * top), nothing],
    )


def _directions(design: Design, weight: Array, penalty: Array) -> tuple[Array, Array, Array] | None:
    """Singular vectors and values of the rows weight·(1, x) and √penalty, and which of them rounding cannot have made."""
    n, m = design.shape[0], penalty.shape[0]
    A = np.empty((n + m, m))
    A[:n, : m - design.shape[1]] = weight[:, None]
    np.multiply(design.dense_rows(slice(0, n)), weight[:, None], out=A[:n, m - design.shape[1] :])
    A[n:] = np.diag(np.sqrt(penalty))
    size = np.abs(A).max(axis=0)
    if not (np.isfinite(size).all() and (size > 0).all()):
        return None
    A /= size  # before squares are taken
    norm = np.sqrt(np.einsum("ij,ij->j", A, A))
    A /= norm
    # Rows of a large weight first: reflections then keep what the light ones say (Cox and Higham 1998).
    A = A[np.argsort(-np.abs(A).max(axis=1), kind="stable")]
    R = scipy.linalg.qr(A, mode="r", check_finite=False)[0][:m]
    _, S, Vt = scipy.linalg.svd(R, check_finite=False)
    clear = 8.0 * EPS * np.sqrt(n + m) * S[0] < S
    # Of what is less, rounding of X could have made a direction that rounding leaves nothing of in any row; the others are there,
    # but so little is known of them that a proof may lose anything.
    left = np.abs(A @ Vt.T) > FLAT * EPS * (np.abs(A) @ np.abs(Vt).T)
    there = clear | left.any(axis=0)
    return Vt[there].T / (size * norm)[:, None], S[there], clear[there]
