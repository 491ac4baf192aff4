"""The scaled polyhedral problem, its dual, and the rigorous bound.

    P(w, b) = Σ_i ℓ_i(x_i·w + b) + c·w + Σ_j h_j(w_j),     h_j(w) = l1_j|w| + ½ l2_j w² on [lower_j, upper_j]
    D(θ)    = −Σ_i max(θ_i u_i, θ_i l_i) − Σ_j h_j*(v_j),   v = −Xᵀθ − c,   θ_i ∈ [−low_i, high_i],  Σ θ_i = 0

A ball constraint is priced by its multiplier: for every λ ≥ 0, h + λ(‖w‖₁ − r) or h + ½λ(‖w‖² − r²) in the
place of h gives a smaller minimum on the ball, hence a valid bound; so a ball only changes l1 or l2 by λ.

Slopes carry the sample weights here, and the intercept (when there is one) is the last column of the design.
Fenchel-Rockafellar duality: Rockafellar, Convex Analysis, section 31.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lstsq
from scipy.optimize import minimize_scalar

import certifit._native.products as _products
from certifit._types import is_sparse
from certifit.representation.design.products import NARROW
from certifit.threads import n_threads, one_blas_thread

Array = NDArray[np.float64]

#: bytes of a weighted block of the design: it must stay in the second-level cache between scaling and product
BLOCK_BYTES = 1 << 21
DEPENDENT = 1e-13  # of the largest eigenvalue: below, a direction of the rows is that of others


class ScaledDesign:
    """The design matrix with the products an interior-point method needs.

    A dense design is stored transposed, one row per column of X, so that weighting the samples is one long
    vectorized product for each column; a sparse design is CSR.
    """

    def __init__(self, matrix: Any, threads: int | None = None) -> None:
        self.sparse = is_sparse(matrix)
        self.threads = n_threads(None) if threads is None else threads
        if self.sparse:
            self.csr = sp.csr_array(matrix)
            self.csc = sp.csr_array(self.csr.T)
            self.n_rows, self.n_columns = self.csr.shape
        else:
            self.transposed: Array = np.ascontiguousarray(matrix)
            self.n_columns, self.n_rows = matrix.shape

    def threading(self) -> AbstractContextManager[None]:
        """Where the products are our own, threads of BLAS would only be in their way."""
        return nullcontext() if self.sparse or self.n_columns > NARROW else one_blas_thread()

    def forward(self, z: Array) -> Array:
        """X z"""
        if self.sparse:
            out: Array = self.csr @ z
            return out
        return np.asarray(_products.scores(self.transposed.T, np.ascontiguousarray(z), 0.0, self.threads))

    def adjoint(self, theta: Array) -> Array:
        """Xᵀ theta"""
        if self.sparse:
            out: Array = self.csc @ theta
            return out
        return np.asarray(_products.pullback(self.transposed.T, np.ascontiguousarray(theta)[None, :], self.threads)[0])

    def gram(self, weight: Array) -> Any:
        """Xᵀ diag(weight) X, dense unless the design is sparse and has many columns."""
        if self.sparse:
            scaled = self.csr.multiply(weight[:, None]).tocsr()
            product = self.csc @ scaled
            return product.toarray() if self.n_columns <= 3000 else sp.csc_array(product)
        m, n = self.transposed.shape
        if m <= NARROW:
            return _products.gram(self.transposed.T, np.ascontiguousarray(weight), False, self.threads)
        root = np.sqrt(weight)
        step = max(256, BLOCK_BYTES // (8 * max(m, 1)))
        if n <= step + step // 2:
            block = self.transposed * root
            return block @ block.T
        out = np.zeros((m, m))
        block = np.empty((m, step))
        for start in range(0, n, step):
            stop = min(start + step, n)
            part = block[:, : stop - start]
            np.multiply(self.transposed[:, start:stop], root[start:stop], out=part)
            out += part @ part.T
        return out

    def outer(self, weight: Array) -> Array:
        """X diag(weight) Xᵀ, for designs with fewer rows than columns."""
        if self.sparse:
            product: Array = (self.csr.multiply(weight[None, :]).tocsr() @ self.csc).toarray()
            return product
        block = self.transposed * np.sqrt(weight)[:, None]
        out: Array = block.T @ block
        return out

    def rows(self, index: NDArray[np.intp]) -> Array:
        """The chosen rows, dense."""
        if self.sparse:
            chosen: Array = self.csr[index].toarray()
            return chosen
        return np.ascontiguousarray(self.transposed[:, index].T)

    def take(self, index: NDArray[np.intp]) -> ScaledDesign:
        """A design with the chosen rows only."""
        return ScaledDesign(self.csr[index] if self.sparse else self.transposed[:, index], self.threads)


@dataclass(frozen=True)
class Polyhedral:
    """A scaled problem; `design` has n_coef columns, and one more for the intercept.

    `linear` has an entry for the intercept too: fixing the dual variables of some samples leaves one behind.
    """

    design: ScaledDesign
    lower: Array
    upper: Array
    low: Array
    high: Array
    linear: Array
    l1: Array
    l2: Array
    box_lower: Array
    box_upper: Array
    intercept: bool
    ball: tuple[str, float] | None

    @property
    def n_coef(self) -> int:
        """Number of coefficients, the intercept not counted."""
        return int(self.l1.shape[0])

    def loss(self, score: Array) -> float:
        """Σ ℓ_i(score_i); hard sides are left out, feasibility is judged by `violation`."""
        above, below = score - self.upper, self.lower - score
        high, low = self.high, self.low
        if not np.isfinite(high).all():
            high = np.where(np.isfinite(high), high, 0.0)
        if not np.isfinite(low).all():
            low = np.where(np.isfinite(low), low, 0.0)
        return float(high @ np.maximum(above, 0.0, out=above) + low @ np.maximum(below, 0.0, out=below))

    def violation(self, score: Array) -> float:
        """The largest excess over a hard side."""
        above = np.where(np.isinf(self.high), score - self.upper, 0.0)
        below = np.where(np.isinf(self.low), self.lower - score, 0.0)
        return float(max(above.max(initial=0.0), below.max(initial=0.0)))

    def penalty(self, w: Array) -> float:
        """Σ h_j(w_j), the box not counted."""
        return float(self.l1 @ np.abs(w) + 0.5 * np.sum(self.l2 * w * w))

    def feasible(self, z: Array) -> Array:
        """Z with its coefficients moved into the box and the ball."""
        d = self.n_coef
        w = np.clip(z[:d], self.box_lower, self.box_upper)
        if self.ball is not None:
            kind, radius = self.ball
            norm = float(np.abs(w).sum() if kind == "l1" else np.linalg.norm(w))
            # Shrinking keeps a box that holds zero; other boxes are left to the interior-point iterates.
            if norm > radius:
                w = np.clip(w * (radius / norm), self.box_lower, self.box_upper)
        return np.concatenate([w, z[d:]])

    def objective(self, z: Array, score: Array) -> float:
        """The primal value at z, whose scores are given."""
        return self.loss(score) + float(self.linear @ z) + self.penalty(z[: self.n_coef])


def conjugate(v: Array, l1: Array, l2: Array, lower: Array, upper: Array) -> float:
    """Σ_j sup {v w − l1|w| − ½ l2 w² : lower ≤ w ≤ upper}"""
    excess = np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        w = np.where(l2 > 0, excess / np.where(l2 > 0, l2, 1.0), np.where(excess == 0, 0.0, np.sign(excess) * np.inf))
        w = np.clip(w, lower, upper)
        # v − l1·sign(w) first: the two products apart would cancel for a long w
        value = (v - l1 * np.sign(w) - 0.5 * l2 * w) * w
    value = np.where(w == 0, 0.0, value)
    return float(np.sum(np.where(np.isnan(value), np.inf, value)))


def fenchel_value(theta: Array, lower: Array, upper: Array) -> float:
    """Σ max(θ_i u_i, θ_i l_i), with 0·∞ = 0"""
    side = np.where(theta > 0, upper, lower)
    side[theta == 0] = 0.0
    return float(theta @ side)


@dataclass(frozen=True)
class Certified:
    """A feasible primal-dual pair and its values."""

    z: Array
    theta: Array
    objective: float
    bound: float
    violation: float


def dual_range(problem: Polyhedral, l1: Array, l2: Array) -> tuple[Array, Array]:
    """The interval in which v_j must lie for h_j*(v_j) to be finite; the intercept's is {0}."""
    tail = np.zeros(1 if problem.intercept else 0)
    top = np.where((l2 == 0) & np.isposinf(problem.box_upper), l1, np.inf)
    bottom = np.where((l2 == 0) & np.isneginf(problem.box_lower), -l1, -np.inf)
    return np.concatenate([bottom, tail]), np.concatenate([top, tail])


def _room(theta: Array, problem: Polyhedral) -> Array:
    """Squared distance to the nearest face of the box, beside the largest: a correction in this metric stays inside."""
    near = np.minimum(theta + problem.low, problem.high - theta)
    near[np.isinf(near)] = 1.0
    near /= max(float(near.max(initial=0.0)), 1e-300)  # before squares are taken: multipliers may grow without end
    return np.asarray(near * near)


def repair(problem: Polyhedral, theta: Array, bottom: Array, top: Array) -> tuple[Array, Array, Array]:
    """Move theta into its box and v into [bottom, top]; returns theta, v and what v still exceeds."""
    design, c = problem.design, problem.linear
    # Multipliers without end are no numbers at last; zero is in every box.
    theta = np.clip(np.where(np.isfinite(theta), theta, 0.0), -problem.low, problem.high)
    v = -(design.adjoint(theta) + c)
    excess = v - np.clip(v, bottom, top)
    if not excess.any():
        return theta, v, excess
    negligible = 1e-14 * float(np.abs(theta).max(initial=0.0)) * np.sqrt(max(theta.shape[0], 1))
    unclipped = theta
    for _ in range(6):
        active = np.flatnonzero(excess)
        if active.size == 0 or np.abs(excess).max() <= negligible:
            break
        room = _room(theta, problem)
        if not room.any():
            break
        step = _correction(design, room, active, excess)
        if not np.isfinite(step).all():
            break
        unclipped = theta + step
        theta = np.clip(unclipped, -problem.low, problem.high)
        v = -(design.adjoint(theta) + c)
        excess = v - np.clip(v, bottom, top)
    if np.abs(excess).max() > negligible and ((bottom <= -c) & (-c <= top)).all():
        # Zero is dual feasible: from the corrected point, walk towards it until the box is met.
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(
                unclipped > 0,
                problem.high / unclipped,
                np.where(unclipped < 0, -problem.low / unclipped, 1.0),
            )
        shrink = min(1.0, float(np.nan_to_num(reach, nan=1.0, posinf=1.0).min(initial=1.0)))
        theta = np.clip(unclipped * shrink, -problem.low, problem.high)
        v = -(design.adjoint(theta) + c)
        # v moves on a straight line from −c, which lies in the interval, to its present value.
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(v > top, (top + c) / (v + c), np.where(v < bottom, (bottom + c) / (v + c), 1.0))
        share = share[bottom < top]
        ratio = float(share.min(initial=1.0))
        if ratio < 1.0:
            theta = theta * (ratio * (1 - 1e-15))
            v = -(design.adjoint(theta) + c)
        excess = v - np.clip(v, bottom, top)
    return theta, v, excess


def _correction(design: ScaledDesign, room: Array, active: NDArray[np.intp], excess: Array) -> Array:
    """The step of theta, shortest in the metric 1/room, whose Xᵀ·step is the excess of the active columns.

    With A = room^½·X of these columns the step is room^½·u for the shortest u with Aᵀu = excess: u = A(AᵀA)⁺·excess, and where
    there are far fewer rows than columns u = (AAᵀ)⁺A·excess, a system of the rows.
    """
    if design.sparse or active.size < design.n_columns:
        part = ScaledDesign(design.csr[:, active] if design.sparse else design.transposed[active], design.threads)
        excess = excess[active]
    else:
        part = design
    if 3 * part.n_rows < part.n_columns:  # eigenvalues cost as much as solving a system of three times the size
        root = np.sqrt(room)
        values, basis = np.linalg.eigh(part.outer(np.ones(part.n_columns)) * root * root[:, None])
        kept = values > DEPENDENT * values[-1]  # rows that depend on others would only make the step longer
        basis = basis[:, kept]
        return np.asarray(root * (basis @ ((root * part.forward(excess)) @ basis / values[kept])))
    return np.asarray(room * part.forward(_least_norm(part.gram(room), excess)))


def _least_norm(matrix: Any, rhs: Array) -> Array:
    """Solve a symmetric positive semidefinite system, rank deficient or not."""
    if is_sparse(matrix):
        solution: Array = sp.linalg.lsqr(matrix, rhs, atol=1e-15, btol=1e-15)[0]
        return solution
    scale = 1.0 / np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
    scaled = matrix * scale * scale[:, None]
    try:
        out: Array = np.linalg.solve(scaled + 1e-15 * np.eye(len(scale)), rhs * scale) * scale
        if np.isfinite(out).all() and np.abs(matrix @ out - rhs).max() <= 1e-6 * np.abs(rhs).max():
            return out
    except np.linalg.LinAlgError:
        pass
    out = lstsq(scaled, rhs * scale, cond=1e-13)[0] * scale
    return out


def proven(problem: Polyhedral, z: Array, theta: Array, multiplier: float) -> Certified:
    """Feasible points next to (z, theta), their objective and a lower bound on the optimum.

    Equalities of the dual hold to rounding only; what is left, times twice the coefficient it pays for, is
    taken off the bound.
    """
    d = problem.n_coef
    z = problem.feasible(z)
    score = problem.design.forward(z)
    objective = problem.objective(z, score)
    bound = -np.inf

    def parts(lam: float) -> tuple[Array, Array, float]:
        if problem.ball is None:
            return problem.l1, problem.l2, 0.0
        kind, radius = problem.ball
        if kind == "l1":
            return problem.l1 + lam, problem.l2, lam * radius
        return problem.l1, problem.l2 + lam, 0.5 * lam * radius * radius

    def value(theta: Array, v: Array, excess: Array, lam: float) -> float:
        l1, l2, price = parts(lam)
        inside = v - excess
        worth = conjugate(inside[:d], l1, l2, problem.box_lower, problem.box_upper)
        slack = float(np.abs(excess) @ (2.0 * np.abs(z) + 1.0))
        return -fenchel_value(theta, problem.lower, problem.upper) - worth - price - slack

    def consider(theta: Array, lam: float) -> tuple[float, Array]:
        l1, l2, _ = parts(lam)
        theta, v, excess = repair(problem, theta, *dual_range(problem, l1, l2))
        size = 1e-11 * float(np.abs(theta).sum() + np.abs(problem.linear).sum())  # rounding of the sums that v is
        if not np.abs(excess).max(initial=0.0) <= size:
            return -np.inf, theta
        best = value(theta, v, excess, lam)
        if problem.ball is not None:
            # With theta fixed, the best price of the ball is a convex problem in one variable.
            least = 0.0
            if problem.ball[0] == "l1":
                bottom, top = dual_range(problem, problem.l1, problem.l2)
                least = float(np.max(np.abs(v[:d] - np.clip(v[:d], bottom[:d], top[:d])), initial=0.0))
            most = (
                max(4.0 * lam, 2.0 * least, 1e-300)
                if problem.ball[0] == "l2"
                else max(float(np.abs(v[:d]).max(initial=0.0)), 1e-300)
            )
            only_intercept = np.zeros_like(v)
            only_intercept[d:] = excess[d:]
            search = minimize_scalar(
                lambda t: -value(theta, v, only_intercept, float(t)),
                bounds=(least, most),
                method="bounded",
                options={"xatol": 1e-14 * most},
            )
            for t in (least, float(search.x), most):
                best = max(best, value(theta, v, only_intercept, t))
        return best, theta

    bound, repaired = consider(theta, multiplier)
    zero, _ = consider(np.zeros_like(theta), 0.0) if not bound > -np.inf or bound < 0 else (-np.inf, theta)
    if zero > bound:
        bound, repaired = zero, np.zeros_like(theta)
    if np.isnan(bound):
        bound = -np.inf
    return Certified(z, repaired, objective, bound, problem.violation(score))


def restrict(problem: Polyhedral, index: NDArray[np.intp], theta: Array) -> Polyhedral:
    """The problem of the chosen samples, the dual variables of all others held at theta."""
    rest = theta.copy()
    rest[index] = 0.0
    return replace(
        problem,
        design=problem.design.take(index),
        lower=problem.lower[index],
        upper=problem.upper[index],
        low=problem.low[index],
        high=problem.high[index],
        linear=problem.linear + problem.design.adjoint(rest),
    )
