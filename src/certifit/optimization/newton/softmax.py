"""Softmax regression: the objective of K classes, its dual bound, and which solver minimizes it.

    minimize over W, b    P = Σ_i p_i ℓ(y_i, W x_i + b) + Σ_k R(w_k),     ℓ(y, f) = ln Σ_k e^(f_k) − f_y

Fenchel's dual: for slopes θ_i with Σ_k θ_ik = 0, π_i = θ_i + e_{y_i} ≥ 0 and, with intercepts, Σ_i p_i θ_i = 0,

    D(θ) = −Σ_i p_i Σ_k π_ik ln π_ik − Σ_k R*(−Xᵀ(p θ_k))  ≤  min P.

At the optimum π are the fitted probabilities. All arrays of scores and slopes are class-major, shape (K, n):
reductions over the classes then run along contiguous vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import blas
from scipy.special import xlogy

import certifit._native.softmax as _softmax
from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.evaluation.losses.softmax import Softmax
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress
from certifit.representation.design.rows import over_rows, row_blocks
from certifit.threads import one_blas_thread

__all__ = [
    "SoftmaxProblem",
    "SoftmaxSolution",
    "State",
    "block_hessian",
    "dual_bound",
    "evaluate",
    "minimize_softmax",
    "orthogonalize",
    "risk_of",
    "slopes",
]

Solve = Callable[[Array], Array]
LARGE, SMALL = (
    1e15,
    1e-15,
)  # beyond these, squares leave the range of single precision, which preconditioners are formed in
T = TypeVar("T")
EXACT_LIMIT = 2500  # K·(d + 1) up to which the whole Hessian is factored


@dataclass(frozen=True)
class SoftmaxProblem:
    """Data and regularizer of one fit; y are class numbers, p is positive and sums to one."""

    X: Matrix
    y: Array
    p: Array
    n_classes: int
    regularizer: Regularizer
    """Of the d coefficients of one class; all classes share it."""
    fit_intercept: bool
    threads: int = 1
    constant: Array = field(init=False)
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        K = self.n_classes
        share = np.bincount(self.y, weights=self.p, minlength=K)
        constant = Softmax(K).optimal_constant(self.y, self.p) if self.fit_intercept else np.zeros(K)
        object.__setattr__(self, "constant", constant)
        at_constant = -float(xlogy(share, share).sum()) if self.fit_intercept else float(np.log(K))
        object.__setattr__(self, "scale", max(at_constant, 0.0))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of X."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def dense(self) -> bool:
        """Whether X is a NumPy array."""
        return not is_sparse(self.X)

    @property
    def by_row(self) -> bool:
        """Whether X is a NumPy array with its rows one after the other, as the native passes want it."""
        return self.dense and bool(self.X.flags.c_contiguous)

    def start(self) -> tuple[Array, Array]:
        """The best constant model."""
        return np.zeros((self.n_classes, self.shape[1])), self.constant.copy()

    def chunks(self, work: Callable[[slice], T]) -> list[T]:
        """The results of `work` on chunks of rows; sparse X is one chunk."""
        n, d = self.shape
        if not self.dense:
            return [work(slice(0, n))]
        return over_rows(work, n, d + self.n_classes, self.threads)

    def blocks(self, chunk: slice) -> Iterator[tuple[slice, Matrix]]:
        """Blocks of rows of a chunk in double precision, of a size that stays in the cache."""
        if not self.dense:
            yield chunk, self.X
            return
        for rows in row_blocks(chunk, 2 * (self.shape[1] + 4 * self.n_classes)):
            yield rows, self.X[rows].astype(np.float64, copy=False)

    def penalty(self, W: Array) -> float:
        """Σ_k R(w_k)."""
        return sum(self.regularizer.value(w) for w in W)

    def scores(self, W: Array, b: Array) -> Array:
        """Class-major scores, shape (K, n)."""
        f = np.empty((self.n_classes, self.shape[0]))

        def work(chunk: slice) -> None:
            for rows, part in self.blocks(chunk):
                np.add(forward(part, W), b[:, None], out=f[:, rows])

        self.chunks(work)
        return f

    def pullback(self, u: Array) -> Array:
        """u·X for class-major u, shape (K, d)."""

        def work(chunk: slice) -> Array:
            total = np.zeros((self.n_classes, self.shape[1]))
            for rows, part in self.blocks(chunk):
                total += backward(part, u[:, rows])
            return total

        return np.asarray(sum(self.chunks(work)))

    def curved(self, probability: Array, W: Array, b: Array) -> tuple[Array, Array, Array]:
        """Aδ for δ = (W, b), and the product of the Hessian of the loss with δ, in one pass over X."""
        z = np.empty((self.n_classes, self.shape[0]))

        def work(chunk: slice) -> tuple[Array, Array]:
            total, total_b = np.zeros((self.n_classes, self.shape[1])), np.zeros(self.n_classes)
            for rows, part in self.blocks(chunk):
                score = forward(part, W)
                score += b[:, None]
                z[:, rows] = score
                bent = curve(probability[:, rows], score)
                bent *= self.p[rows]
                total += backward(part, bent)
                total_b += bent.sum(axis=1)
            return total, total_b

        found = self.chunks(work)
        return z, np.asarray(sum(part[0] for part in found)), np.asarray(sum(part[1] for part in found))


class State(NamedTuple):
    """Everything one pass over X tells about a point."""

    W: Array
    b: Array
    f: Array
    """Scores, shape (K, n)."""
    probability: Array
    objective: float
    gradient: Array
    """Of the mean loss by W, shape (K, d)."""
    gradient_b: Array


@dataclass(frozen=True)
class SoftmaxSolution:
    """The point, the best proven bound, and how it went."""

    W: Array
    b: Array
    iterations: int
    solver: str
    bound: float
    objective: float
    note: str = ""


def forward(part: Matrix, W: Array) -> Array:
    """W·Xᵀ for a block of rows, shape (K, m)."""
    # The tall product and a small transpose take half the time of the product in the wanted order.
    return np.ascontiguousarray((part @ np.ascontiguousarray(W.T)).T)


def backward(part: Matrix, u: Array) -> Array:
    """u·X for a block of rows, shape (K, d)."""
    return np.asarray((part.T @ u.T).T if is_sparse(part) else u @ part)


def risk_of(problem: SoftmaxProblem, f: Array) -> float:
    """Mean loss of scores."""
    highest = f.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        each = np.log(np.exp(f - highest).sum(axis=0)) + (highest - f[problem.y, np.arange(f.shape[1])])
        value = float(problem.p @ np.maximum(each, 0.0))
    return value if np.isfinite(value) else np.inf


def evaluate(problem: SoftmaxProblem, W: Array, b: Array) -> State:
    """Scores, probabilities, objective and gradient at (W, b): each row is read once."""
    K, n = problem.n_classes, problem.shape[0]
    f, probability = np.empty((K, n)), np.empty((K, n))
    if problem.by_row:
        sums = np.empty((K, problem.shape[1] + 1))
        point = (np.ascontiguousarray(W), np.ascontiguousarray(b))
        value = _softmax.evaluate(problem.X, problem.y, problem.p, *point, f, probability, sums, problem.threads)
        gradient, gradient_b = sums[:, 1:], sums[:, 0].copy()
        if not problem.fit_intercept:
            gradient_b[:] = 0.0
        return State(W, b, f, probability, value + problem.penalty(W), gradient, gradient_b)

    def work(chunk: slice) -> tuple[float, Array, Array]:
        value, gradient, gradient_b = 0.0, np.zeros((K, problem.shape[1])), np.zeros(K)
        for rows, part in problem.blocks(chunk):
            y, p = problem.y[rows], problem.p[rows]
            m = np.arange(y.shape[0])
            z = forward(part, W)
            z += b[:, None]
            f[:, rows] = z
            own = z[y, m]
            highest = z.max(axis=0)
            z -= highest
            e = np.exp(z, out=z)
            total = e.sum(axis=0)
            value += float(p @ np.maximum(np.log(total) + (highest - own), 0.0))
            e /= total
            probability[:, rows] = e
            e[y, m] -= 1.0
            e *= p
            gradient += backward(part, e)
            gradient_b += e.sum(axis=1)
        return value, gradient, gradient_b

    found = problem.chunks(work)
    value = sum(part[0] for part in found)
    gradient, gradient_b = np.asarray(sum(part[1] for part in found)), np.asarray(sum(part[2] for part in found))
    if not problem.fit_intercept:
        gradient_b[:] = 0.0
    return State(W, b, f, probability, value + problem.penalty(W), gradient, gradient_b)


def slopes(problem: SoftmaxProblem, probability: Array) -> Array:
    """θ = π − e_y."""
    theta = probability.copy()
    theta[problem.y, np.arange(theta.shape[1])] -= 1.0
    return theta


def curve(probability: Array, z: Array) -> Array:
    """(diag(π) − ππᵀ)·z, row by row, class-major."""
    out = probability * z
    out -= probability * out.sum(axis=0)
    return out


def dual_bound(problem: SoftmaxProblem, state: State, theta: Array | None = None) -> float:
    """A lower bound of the optimal value from slopes, those at the present scores by default.

    The slopes are made orthogonal to the intercepts and to unpenalized columns by Newton's step in the dual, which
    keeps Σ_k θ_k = 0, then scaled towards zero until they satisfy the bounds of an L1 penalty. Zero is always a bound.
    """
    p, pi, regularizer = problem.p, state.probability, problem.regularizer
    if not np.isfinite(state.f).all():
        return 0.0
    parts = regularizer.elastic()
    if parts is None:
        return 0.0
    l1, l2 = parts
    if theta is None and (l2 > 0.0).all() and not l1.any() and problem.by_row:
        return _smooth_bound(problem, state)
    tight = np.flatnonzero((l1 == 0.0) & (l2 == 0.0))
    theta = slopes(problem, pi) if theta is None else theta
    with np.errstate(all="ignore"):
        theta, ok = orthogonalize(problem, theta, pi, tight)
        if not ok:
            return 0.0
        v = -problem.pullback(p * theta)
        slack = float(np.abs(v[:, tight]).ravel() @ np.abs(state.W[:, tight]).ravel())
        if problem.fit_intercept:
            slack += float(np.abs(theta @ p) @ np.abs(state.b))
        v[:, tight] = 0.0
        bounded = (l2 == 0.0) & (l1 > 0.0)
        largest = np.abs(v[:, bounded]).max(axis=0, initial=0.0)
        scale = float(np.where(largest > l1[bounded], l1[bounded] / largest, 1.0).min(initial=1.0))
        return max(0.0, dual_value(problem, scale * theta, scale * v) - slack) if scale > 0 else 0.0


def _smooth_bound(problem: SoftmaxProblem, state: State) -> float:
    """The bound of `dual_bound` with an L2 penalty on every column, in one pass over X."""
    K, p, pi = problem.n_classes, problem.p, state.probability
    shift = np.zeros(K)
    if problem.fit_intercept:
        bend = np.diag(pi @ p) - (pi * p) @ pi.T
        for _ in range(2):  # the second step removes what rounding left of the first
            left = state.gradient_b + bend @ shift
            step = np.linalg.lstsq(bend + 1.0 / K**2, -left, rcond=None)[0]
            shift += step - step.mean()
    if not np.isfinite(shift).all():
        return 0.0
    sums = np.empty((K, problem.shape[1] + 1))
    entropy, inside = _softmax.dual(problem.X, problem.y, p, pi, shift, sums, problem.threads)
    if not inside:
        return 0.0
    slack = float(np.abs(sums[:, 0]) @ np.abs(state.b)) if problem.fit_intercept else 0.0
    bound = -entropy - sum(problem.regularizer.conjugate(-row) for row in sums[:, 1:]) - slack
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def dual_value(problem: SoftmaxProblem, theta: Array, v: Array) -> float:
    """D(θ) for slopes that satisfy the linear conditions, with v = −Xᵀ(pθ); zero when they are outside the domain."""
    with np.errstate(all="ignore"):
        pi = theta.copy()
        pi[problem.y, np.arange(pi.shape[1])] += 1.0
        if not (pi.min() >= -1e-300 and np.isfinite(pi).all()):
            return 0.0
        # At the smallest normal number, π ln π is zero to all digits that count.
        entropy = float(((pi * np.log(np.maximum(pi, np.finfo(float).tiny))) @ problem.p).sum())
        bound = -entropy - sum(problem.regularizer.conjugate(row) for row in v)
    return max(bound, 0.0) if np.isfinite(bound) else 0.0


def orthogonalize(problem: SoftmaxProblem, theta: Array, pi: Array, tight: Array) -> tuple[Array, bool]:
    """θ + H·(A z) with Aᵀ(pθ) = 0 for A = [1 X_tight]."""
    K, p = problem.n_classes, problem.p
    if tight.shape[0] == 0:
        if not problem.fit_intercept:
            return theta, True
        small = np.diag(pi @ p) - (pi * p) @ pi.T + (1.0 / K**2)
        for _ in range(2):
            shift = np.linalg.lstsq(small, -(theta @ p), rcond=None)[0]
            theta = theta + curve(pi, np.broadcast_to((shift - shift.mean())[:, None], theta.shape))
        return theta, bool(np.isfinite(theta).all())
    width = tight.shape[0] + problem.fit_intercept
    if K * width > EXACT_LIMIT or width >= problem.shape[0]:
        return theta, False
    part = problem if tight.shape[0] == problem.shape[1] else replace(problem, X=problem.X[:, tight])
    hessian = block_hessian(part, p, pi)
    try:
        solve = factored(hessian, K)
    except scipy.linalg.LinAlgError:
        return theta, False
    for _ in range(3):
        rest = join(part.pullback(p * theta), theta @ p, problem.fit_intercept)
        z, z_b = split(solve(rest.ravel()).reshape(K, -1), problem.fit_intercept)
        theta = theta - curve(pi, part.scores(z, z_b))
    return theta, bool(np.isfinite(theta).all())


def join(W: Array, b: Array, fit_intercept: bool) -> Array:
    """Intercepts first, if there are any, shape (K, d + 1)."""
    return np.column_stack([b, W]) if fit_intercept else W


def split(Z: Array, fit_intercept: bool) -> tuple[Array, Array]:
    """The reverse of `join`."""
    return (Z[:, 1:], Z[:, 0]) if fit_intercept else (Z, np.zeros(Z.shape[0]))


def block_hessian(problem: SoftmaxProblem, p: Array, pi: Array, *, single: bool = False) -> Array:
    """Σ_i p_i (diag(π_i) − π_i π_iᵀ) ⊗ x̃_i x̃_iᵀ, shape (KD, KD), from products of blocks of rows.

    With `single` the products are in single precision, which is enough for a preconditioner.
    """
    K, first = problem.n_classes, int(problem.fit_intercept)
    D, n = problem.shape[1] + first, problem.shape[0]
    dtype, syrk = (np.float32, blas.ssyrk) if single else (np.float64, blas.dsyrk)

    def work(chunk: slice) -> Array:
        total = np.zeros((K * D, K * D), order="F", dtype=dtype)
        diagonal = np.zeros((D, K * D), dtype=dtype)
        for rows in row_blocks(chunk, K * D):
            part = problem.X[rows]
            part = part.toarray() if is_sparse(part) else part
            m = part.shape[0]
            tilde = np.empty((m, D), dtype=dtype)
            tilde[:, :first], tilde[:, first:] = 1.0, part
            # p is about 1/n: scaled to one, its root neither vanishes nor overflows in single precision.
            weight, share = (n * p[rows]).astype(dtype), pi[:, rows].astype(dtype)
            tilde *= np.sqrt(weight)[:, None]
            Z = np.empty((m, K, D), dtype=dtype)
            np.multiply(tilde[:, None, :], share.T[:, :, None], out=Z)
            side_by_side = Z.reshape(m, K * D)
            total = syrk(-1.0, side_by_side.T, beta=1.0, c=total, lower=1, overwrite_c=1)
            diagonal += tilde.T @ side_by_side
        for k in range(K):
            own = slice(k * D, (k + 1) * D)
            total[own, own] += diagonal[:, own]
        return total

    # Every chunk holds a matrix of its own: few chunks when the matrix is large beside the rows.
    parts = over_rows(work, n, K * D, problem.threads) if n > 8 * K * D else [work(slice(0, n))]
    total = parts[0].astype(np.float64)
    for part in parts[1:]:
        total += part
    total /= n
    lower = np.tril(total, -1)
    return np.asarray(np.tril(total) + lower.T)


def factored(hessian: Array, K: int) -> Solve:
    """Cholesky of a class-block Hessian; the direction that all classes share has no curvature and gets some."""
    D = hessian.shape[0] // K
    own = np.einsum("kjkj->j", hessian.reshape(K, D, K, D)) / K
    own = np.where(own > 0.0, own, 1.0)
    # Slopes sum to zero over the classes, and so do all right hand sides: what is added here is never seen.
    full = hessian + np.kron(np.full((K, K), 1.0 / K), np.diag(own))
    unit = 1.0 / np.sqrt(np.diag(full))
    scaled = full * unit[:, None] * unit
    for ridge in (0.0, 1e-13, 1e-10, 1e-7, 1e-4):
        try:
            factor = scipy.linalg.cho_factor(scaled + ridge * np.eye(K * D), lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        if float(np.diag(factor[0]).min()) > 1e-8 or ridge == 1e-4:
            break
    else:
        raise scipy.linalg.LinAlgError("the Hessian is not positive semidefinite")

    def solve(right: Array) -> Array:
        return np.asarray(unit * scipy.linalg.cho_solve(factor, unit * right, check_finite=False))

    return solve


def minimize_softmax(
    problem: SoftmaxProblem,
    tol: float,
    max_iter: int,
    clock: Progress,
    start: tuple[Array, Array] | None = None,
    solver: str = "auto",
) -> tuple[SoftmaxSolution, Certificate]:
    """Minimize to the relative gap `tol` and prove how well it went, in ordinary units if the data is extreme."""
    from certifit.optimization.newton.softmax_newton import solve_smooth
    from certifit.optimization.newton.softmax_prox import solve_prox

    unit = _units(problem)
    if unit is not None:
        scaled = problem.X.astype(np.float64)
        scaled = scaled @ sp.diags(1.0 / unit) if is_sparse(problem.X) else scaled / unit
        shape = np.clip(unit, 1e-140, 1e140)
        conditioned = replace(
            problem,
            X=scaled.tocsc() if is_sparse(problem.X) else scaled,
            regularizer=problem.regularizer.rescaled(shape),
        )
        solution, certificate = minimize_softmax(conditioned, tol, max_iter, clock, None, solver)
        with np.errstate(over="ignore", under="ignore"):
            return replace(solution, W=solution.W / unit), certificate
    run = solve_smooth if problem.regularizer.smooth() is not None else solve_prox
    ignored = np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
    with ignored, one_blas_thread():  # every pass over X is threaded as a whole
        solution = run(problem, start or problem.start(), tol * problem.scale, max_iter, clock)
        return _certify(problem, solution, tol, clock)


def _units(problem: SoftmaxProblem) -> Array | None:
    """Powers of two that bring columns of extreme magnitude to order one; None for ordinary data."""
    values = problem.X.data if is_sparse(problem.X) else problem.X
    largest = float(max(values.max(initial=0.0), -values.min(initial=0.0)))
    if largest == 0.0 or SMALL < largest < LARGE:
        return None
    X = problem.X
    column = np.asarray(
        abs(X).max(axis=0).toarray() if is_sparse(X) else np.abs(X).max(axis=0), dtype=np.float64
    ).ravel()
    return np.asarray(np.exp2(np.clip(np.floor(np.log2(np.where(column > 0, column, 1.0))), -1000, 1000)))


def _certify(
    problem: SoftmaxProblem, solution: SoftmaxSolution, tol: float, clock: Progress
) -> tuple[SoftmaxSolution, Certificate]:
    """The certificate at the coefficients that the user gets, in double precision."""
    W, objective, bound = solution.W, solution.objective, solution.bound
    if problem.X.dtype != np.float64:
        W = W.astype(problem.X.dtype).astype(np.float64)
    if objective - bound > tol * problem.scale or problem.X.dtype != np.float64:
        state = evaluate(problem, W, solution.b)
        objective = state.objective
        if objective - bound > tol * problem.scale:
            bound = max(bound, dual_bound(problem, state))
    certificate = Certificate(
        "duality gap",
        objective=objective,
        bound=bound,
        scale=problem.scale,
        tol=tol,
        iterations=solution.iterations,
        seconds=clock.seconds,
        note=solution.note if objective - bound > tol * problem.scale else "",
    )
    return replace(solution, W=W, bound=bound, objective=objective), certificate
