"""Newton's equations (H + L)δ = −∇P, with H the Hessian of the risk by (b, w) and L the strengths of an L2 penalty.

By Cholesky where the matrix is small and one score has a row; else by conjugate gradients, preconditioned by H as exactly as
its size allows: whole, one block for each score, or its diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from certifit._types import Array
from certifit.evaluation.losses import Softmax
from certifit.evaluation.losses.labels.softmax import Simplex
from certifit.optimization.objective.curvature import REGULAR, Curvature, by_singular_values, factored
from certifit.optimization.objective.fold import State, Step, total
from certifit.optimization.objective.problem import Problem

__all__ = ["Diagonal", "Direction", "Inverse", "Kronecker", "cholesky", "conjugate_gradients", "diagonal", "kronecker", "levels",
           "preconditioner", "provable", "small_hessian", "solve_semidefinite"]  # fmt: skip

Inverse = Callable[[Array], Array]
"""An approximate inverse of H + L, on arrays of the shape of `Problem.join`."""

EXACT_LIMIT = 2500  # K·(d + 1) up to which the whole Hessian of K scores is factored
APART = 1e-3  # least pivot from which a step proves by itself what it leaves of the equations: nothing
ALIKE = 1.5  # curvatures of scores that differ by less have one inverse: as a preconditioner it is as good
INVERTED = 256  # columns up to which an inverse costs no more than the calls of a factor
FORMED = 512  # columns up to which native code, which has no factors, takes an inverse
BLOCK_LIMIT = 1500  # columns up to which the Hessian of each score is factored


class Direction(NamedTuple):
    """A step, and what it leaves of the equations: None when that is rounding."""

    step: Step
    residual: Array | None
    products: int = 0
    """With the Hessian, where it was not formed."""
    regular: bool = True
    """Whether no direction was nearly without curvature."""


def strengths(problem: Problem) -> Array:
    """l2 of each column."""
    l2 = problem.regularizer.smooth()
    assert l2 is not None  # the dispatcher sends nothing else here
    return l2


def provable(g: Array, problem: Problem) -> float:
    """The gap ‖∇‖²/(2 l2) that a gradient proves, once the intercept is refitted; g is joined."""
    l2 = strengths(problem)
    if not (l2 > 0.0).all():
        return np.inf
    slope = g[..., int(problem.fit_intercept) :]
    return 0.5 * float((slope * slope / l2).sum())


def cholesky(state: State, h: list[Any], g: Array, tol: float) -> Direction:
    """The step of one score, by an equilibrated Cholesky factorization."""
    problem = state.problem
    gram = with_penalty(state.hessian(h), problem)
    found, least = _by_factor(gram, -g)
    if found is None:
        curvature = by_singular_values(state, h, [part.block.design for part in state.parts], strengths(problem))
        dw, db = problem.split(_by_directions(gram, -g) if curvature is None else curvature(-g))
        return Direction(Step(state, dw, db), np.full_like(g, np.nan), regular=False)
    dw, db = problem.split(found)
    low, high = min(float(c.min()) for c in h), max(float(c.max()) for c in h)
    # With curvature on all rows a factorization solves the equations up to rounding; otherwise nobody knows.
    residual = None if low > 1e-9 * high else np.full_like(g, np.nan)
    return Direction(Step(state, dw, db), residual, regular=least > APART)


def with_penalty(hessian: Array, problem: Problem) -> Array:
    """H + L."""
    l2 = problem.join(strengths(problem), 0.0)
    np.einsum("ii->i", hessian)[:] += np.tile(l2, problem.n_scores)
    return hessian


def solve_semidefinite(gram: Array, right: Array) -> Array:
    """gram⁻¹·right for a positive semidefinite matrix: equilibrated Cholesky, or the pseudo-inverse if singular."""
    found, _ = _by_factor(gram, right)
    return _by_directions(gram, right) if found is None else found


def _by_factor(gram: Array, right: Array) -> tuple[Array | None, float]:
    """By equilibrated Cholesky, None where it cannot be trusted; and its least pivot, beside the greatest."""
    unit = 1.0 / np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    scaled = gram * unit[:, None] * unit
    right = unit * right
    factor, failed = lapack.dpotrf(scaled)  # LAPACK itself: the wrappers around it take longer than a small system does
    pivots = np.diag(factor)
    least = 0.0 if failed else float(pivots.min() / pivots.max())
    if not least > REGULAR:
        return None, 0.0
    x = lapack.dpotrs(factor, right)[0]
    x += lapack.dpotrs(factor, right - scaled @ x)[0]  # one refinement step
    return np.asarray(unit * x), least


def _by_directions(gram: Array, right: Array) -> Array:
    """The step of least norm, which does not depend on how rounding split the null space."""
    unit = 1.0 / np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    scaled = gram * unit[:, None] * unit
    if not np.isfinite(scaled).all():
        return np.zeros_like(right)
    values, vectors = scipy.linalg.eigh(scaled, check_finite=False)
    kept = values > 1e-11 * max(values[-1], 1e-300)
    return np.asarray(unit * (vectors[:, kept] @ ((vectors[:, kept].T @ (unit * right)) / values[kept])))


def conjugate_gradients(
    state: State,
    h: list[Any],
    g: Array,
    tol: float,
    solve: Inverse,
    most: float = np.inf,
    pairs: list[tuple[Array, Array, float]] | None = None,
) -> Direction:
    """δ by products with H, `most` of them; the residual is ∇ + (H + L)δ. The products may be kept in `pairs`."""
    problem, l2 = state.problem, strengths(state.problem)
    delta, residual = np.zeros_like(g), g.copy()
    moved = [np.zeros_like(part.f, order="K") for part in state.parts]
    q = problem.centered(solve(residual))
    direction, rho = -q, float((residual * q).sum())
    first, smallest, rising = rho, np.inf, 0
    # Far from the optimum a rough step is enough; near it, the residual must be small enough for the proof.
    wanted = min(0.01, first / max(problem.scale, 1e-300)) ** 2 * first if first > 100.0 * tol else 0.0
    products = 0
    while products < min(20 + 2 * g.size, most) and rho > 0.0:
        products += 1
        dw, db = problem.split(direction)
        z, product = state.curved(h, dw, db)
        image = problem.centered(problem.join(product.columns + l2 * dw, product.level))
        curvature = float((direction * image).sum())
        if not curvature > 1e-12 * rho:  # none, or none that rounding leaves to be seen: the step would have no end
            break
        if pairs is not None:
            pairs.append((direction, image, curvature))
        length = rho / curvature
        delta += length * direction
        residual += length * image
        for one, change in zip(moved, z, strict=True):
            one += length * change
        q = problem.centered(solve(residual))
        rho, previous = float((residual * q).sum()), rho
        proven = provable(residual, problem) <= 0.1 * tol and rho <= 0.01 * tol
        if rho <= max(wanted, 1e-26 * first) or proven:
            break
        rising = 0 if rho < 0.9 * smallest else rising + 1
        smallest = min(smallest, rho)
        if rising > 20 or not rho > 0.0:  # rounding: no further progress
            break
        direction = -q + (rho / previous) * direction
    return Direction(Step(state, *problem.split(delta), moved), residual, products)


def preconditioner(state: State, h: list[Any]) -> Inverse:
    """The Hessian of K scores as exactly as its size allows."""
    problem, K = state.problem, state.problem.n_scores
    width = problem.shape[1] + problem.fit_intercept
    if K * width <= EXACT_LIMIT:
        solve = factored(with_penalty(state.hessian(h), problem), K, problem.loss.shift_invariant)
        if solve is not None and not solve.regular:
            solve = (
                by_singular_values(state, h, [part.block.design for part in state.parts], strengths(problem)) or solve
            )
        if solve is not None:
            return solve
    return _by_score(state, h) if width <= BLOCK_LIMIT and problem.dense else diagonal(state, h)


def small_hessian(state: State) -> Curvature | None:
    """The Hessian of a part of the rows: of K scores in single precision, which is enough for a preconditioner."""
    problem, K = state.problem, state.problem.n_scores
    hessian = state.hessian(single=K > 1)
    if K > 1 and not (np.isfinite(hessian).all() and np.diag(hessian).min() > 1e-30):  # squares left that range
        hessian = state.hessian()
    return factored(with_penalty(hessian, problem), K, problem.loss.shift_invariant)


class Levels(NamedTuple):
    """Curvatures of K constant scores along orthonormal directions, those that are nearly equal taken for one."""

    vectors: Array
    values: Array
    groups: list[slice]
    """Directions of one value."""


def levels(problem: Problem) -> Levels:
    """At the constants. The direction that all scores share may have any curvature: nothing is asked along it."""
    K = problem.n_scores
    if type(problem.loss) is Softmax:  # of which the curvature knows nothing of y
        bend = Simplex(problem.loss.predict(np.reshape(problem.constant, (1, K)))).mean(np.ones(1))
    else:
        bend = problem.at(*problem.start()).bend()
    values, vectors = np.linalg.eigh(bend)
    values = np.maximum(values, 1e-3 / K)
    if problem.loss.shift_invariant and K > 1:
        values[0] = values[1]
    first = [0]
    for k in range(1, K):
        if values[k] > ALIKE * values[first[-1]]:
            first.append(k)
    groups = [slice(k, end) for k, end in zip(first, [*first[1:], K], strict=True)]
    return Levels(vectors, np.array([np.sqrt(values[g.start] * values[g.stop - 1]) for g in groups]), groups)


@dataclass(frozen=True, eq=False)
class Kronecker:
    """One inverse for each of the different curvatures of the scores, along `vectors`."""

    problem: Problem
    vectors: Array
    groups: list[slice]
    inverses: list[Array | Inverse]

    def __call__(self, right: Array) -> Array:
        turned = self.vectors.T @ right
        parts = [
            turned[group] @ one if isinstance(one, np.ndarray) else one(turned[group].T).T
            for one, group in zip(self.inverses, self.groups, strict=True)
        ]
        return np.asarray(self.problem.centered(self.vectors @ np.concatenate(parts)))

    def arrays(self) -> tuple[Array, ...]:
        """Vectors, the number of the matrix of each, and the matrices."""
        which = np.repeat(np.arange(len(self.groups)), [group.stop - group.start for group in self.groups])
        eye = np.eye(self.problem.shape[1] + self.problem.fit_intercept)
        formed = [one if isinstance(one, np.ndarray) else one(eye) for one in self.inverses]
        return np.ascontiguousarray(self.vectors), which, np.ascontiguousarray(np.stack(formed))


def kronecker(problem: Problem, known: Levels | None = None) -> Kronecker:
    """The Hessian of constant scores, bend ⊗ X̃ᵀ(p X̃): one inverse for each of the different eigenvalues of the first."""
    vectors, values, groups = known or levels(problem)
    gram = total(
        block.design.hessian(block.p, np.ones(block.p.shape), ones=problem.fit_intercept) for block in problem.blocks
    )
    strength = problem.join(strengths(problem), 0.0)
    ridge = 1e-10 * np.diag(gram).max(initial=0.0) + 1e-300
    if not strengths(problem).all() and (curved := _curved_part(gram)) is not None:
        inverses: list[Array | Inverse] = [curved / value for value in values]
    else:
        inverses = [_positive(value * gram + np.diag(strength + ridge)) for value in values]
    return Kronecker(problem, vectors, groups, inverses)


def _positive(block: Array) -> Array | Inverse:
    """The inverse of a positive definite matrix, for some right hand sides at a time."""
    factor = lapack.dpotrf(block, overwrite_a=1)[0]
    if block.shape[0] > INVERTED:
        return lambda right: lapack.dpotrs(factor, right)[0]
    upper = lapack.dpotri(factor)[0]  # with zeros below; applied dozens of times: cheaper than as many solves
    whole = upper + upper.T
    np.einsum("ii->i", whole)[:] *= 0.5
    return np.asarray(whole)


def _curved_part(gram: Array) -> Array | None:
    """The pseudo-inverse of a matrix with directions that have no curvature; None where it has none of them.

    Of rounding, in such directions, an inverse would make the longest step of all.
    """
    own = np.diag(gram)
    unit = 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0))
    scaled = gram * unit[:, None] * unit
    factor, failed = lapack.dpotrf(scaled)
    if not np.isfinite(scaled).all() or (not failed and float(np.diag(factor).min()) > 1e-6):
        return None
    inverse: Array = np.linalg.pinv(scaled, rcond=1e-11, hermitian=True)
    return unit[:, None] * inverse * unit


def _by_score(state: State, h: list[Any]) -> Inverse:
    """Cholesky of the Hessian of each score, coupling between them ignored."""
    problem, factors = state.problem, []
    strength = problem.join(strengths(problem), 0.0)
    curvatures = [c.diagonal() for c in h]
    for k in range(problem.n_scores):
        gram = state.hessian([np.ascontiguousarray(c[:, k]) for c in curvatures])
        ridge = 1e-10 * float(np.trace(gram)) / gram.shape[0] + 1e-300
        factors.append(scipy.linalg.cho_factor(gram + np.diag(strength + ridge), check_finite=False))
    return lambda right: np.stack(
        [scipy.linalg.cho_solve(f, r, check_finite=False) for f, r in zip(factors, right, strict=True)]
    )


@dataclass(frozen=True, eq=False)
class Diagonal:
    """A number for each coefficient."""

    numbers: Array

    def __call__(self, right: Array) -> Array:
        return np.asarray(self.numbers * right)

    def arrays(self) -> tuple[Array, ...]:
        """The numbers, one class after the other."""
        return (np.ascontiguousarray(self.numbers),)


def diagonal(state: State, h: list[Any]) -> Diagonal:
    """The diagonal of H + L."""
    problem = state.problem
    rows = [
        (part.block, c if isinstance(c, np.ndarray) else c.diagonal()) for part, c in zip(state.parts, h, strict=True)
    ]
    columns = total(block.design.squares((block.p * c.T).T) for block, c in rows) + strengths(problem)
    whole = problem.join(columns, total(block.p @ c for block, c in rows))
    return Diagonal(1.0 / np.where(whole > 0.0, whole, 1.0))
