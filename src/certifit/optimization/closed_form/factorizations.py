"""Factorizations of least-squares problems: Cholesky, orthogonal with singular values, dual, and iterative.

`factorize` chooses from shape and conditioning, so that easy problems are fast and hard ones right.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, cho_solve, lapack, solve_triangular
from scipy.sparse.linalg import LinearOperator, lsmr

from certifit._types import Array
from certifit.optimization.closed_form import sparse_rows
from certifit.optimization.closed_form.cholesky import cholesky_condition
from certifit.optimization.closed_form.normal_equations import (
    CHOLESKY_LIMIT,
    EPS,
    GRAM_BYTES,
    LARGEST_DENSE,
    OFFSET,
    SINGLE_LIMIT,
    NormalEquations,
)
from certifit.optimization.closed_form.orthogonal import Factor, Kept, orthogonal
from certifit.optimization.objective.costs import iterating_pays
from certifit.representation.design.products import entry_columns, same_places

LEAST_NORM_LIMIT = 1e8  # condition of the products of rows up to which they are surely independent
HOPEFUL = 0.25  # a share of the penalty in the curvature of the columns that is strong


class CholeskyFactor(Kept):
    """RᵀR = H with unit diagonal; columns that do not matter have coefficient zero."""

    problem: NormalEquations

    def __init__(self, problem: NormalEquations, R: Array, unit: Array, condition: float, method: str) -> None:
        self.R, self.unit, self.condition, self.method = R, unit, condition, method
        self.contraction = sure_contraction(R.shape[0], condition**2) if method == "cholesky" else 1.0
        self.problem = problem
        self.rank = int((unit > 0).sum())

    def start(self) -> Array:
        return self.solve(self.problem.moment)

    def solve(self, g: Array) -> Array:
        # LAPACK itself: the wrappers around it take longer than a small system does.
        out: Array = self.unit * lapack.dpotrs(self.R, self.unit * g)[0]
        return out

    def half(self, B: Array) -> Array:
        out: Array = lapack.dtrtrs(self.R, self.unit[:, None] * B, trans=1)[0]
        return out


class DualCholesky:
    """K = A diag(1/l2) Aᵀ + I, n×n: w = diag(1/l2) Aᵀ K⁻¹ b."""

    method = "dual cholesky"

    def __init__(self, problem: NormalEquations) -> None:
        self.problem = problem
        self.rank = problem.d
        self.root = np.sqrt(problem.p)
        self.inverse = self._unit()
        K, lost = self._products()
        if (self.root == self.root[0]).all():
            K *= self.root[0] ** 2
        else:
            K *= self.root
            K *= self.root[:, None]
        if problem.fit_intercept:  # A has no part along √p: what is there are the means, or what rounding left of them
            u = self.root / np.linalg.norm(self.root)
            Ku = K @ u
            v = Ku - 0.5 * float(u @ Ku) * u
            # (I − uuᵀ)K(I − uuᵀ) without another matrix of the size of K, in two triangles: K is symmetric.
            blas.dger(-1.0, u, v, a=K.T, overwrite_a=1)
            blas.dger(-1.0, v, u, a=K.T, overwrite_a=1)
        self._complete(K)
        self.R, condition = cholesky_condition(K)
        self.condition = float(np.sqrt(condition))
        self.contraction = sure_contraction(problem.n, lost * condition)

    def _unit(self) -> Array:
        """Λ."""
        return np.where(self.problem.spread > 0, 1.0 / self.problem.l2, 0.0)

    def _complete(self, K: Array) -> None:
        """What K has beside AΛAᵀ, in place."""
        np.einsum("ii->i", K)[:] += 1.0

    def _products(self) -> tuple[Array, float]:
        """XΛXᵀ or (X − 1mᵀ)Λ(X − 1mᵀ)ᵀ with Λ = diag(1/l2), and what its rounding is multiplied by.

        Means that are not far from zero stay: what they add has √p as its direction, and goes with it. That makes no copy of X,
        and loses few digits.
        """
        problem, X, inverse = self.problem, self.problem.X, self.inverse
        even = bool((inverse == inverse[0]).all())
        if problem.sparse:
            K = self._sparse_products()
        elif even and X.dtype == np.float64 and problem.offset() <= OFFSET:
            K = X @ X.T
            K *= inverse[0]
        else:
            return self._centered_products(even), 1.0
        return K, 1.0 + problem.offset() ** 2 if problem.fit_intercept else 1.0

    def _sparse_products(self) -> Array:
        """XΛXᵀ: the columns of X are the rows of Xᵀ."""
        X, inverse = self.problem.X, self.inverse
        K = sparse_rows.gram(X.tocsc().T, inverse, self.problem.threads)
        if K is None:
            scaled = same_places(X, X.data * np.sqrt(inverse)[entry_columns(X)])
            K = np.asarray((scaled @ scaled.T).toarray(), dtype=np.float64)
        return K

    def _centered_products(self, even: bool) -> Array:
        """The same from blocks of centered columns."""
        problem, n = self.problem, self.problem.n
        K, step = np.zeros((n, n)), max(16, GRAM_BYTES // (8 * max(n, 1)))
        for start in range(0, problem.d, step):
            columns = slice(start, start + step)
            part = np.asarray(problem.X[:, columns], dtype=np.float64) - problem.mean[columns]
            if not even:
                part *= np.sqrt(self.inverse[columns])
            K += part @ part.T
        return K * self.inverse[0] if even else K

    def _adjoint(self, a: Array) -> Array:
        q = self.root * a
        return np.asarray(self.problem.parts[0].T @ q - self.problem.mean * q.sum(), dtype=np.float64)

    def start(self) -> Array:
        b = self.root * (self.problem.y - self.problem.y_mean)
        self.a = lapack.dpotrs(self.R, b)[0]
        return self.inverse * self._adjoint(self.a)

    def _rest(self, w: Array, b: float) -> Array:
        """The dual residual b − Aw − a for w = diag(1/l2) Aᵀa; half its square is the duality gap."""
        return np.asarray(self.root * (self.problem.y - b - self.problem.X @ w) - self.a)

    def again(self, w: Array, b: float) -> Array:
        """The correction of w by way of the dual variables: H⁻¹∇ would cancel where l2 is small."""
        step = lapack.dpotrs(self.R, self._rest(w, b))[0]
        self.a = self.a + step
        return self.inverse * self._adjoint(step)

    def gap(self, w: Array, b: float) -> float:
        """The duality gap between w and its dual variables."""
        g = self._rest(w, b)
        return 0.5 * float(g @ g)

    def solve(self, g: Array) -> Array:
        # H⁻¹ = Λ − ΛAᵀK⁻¹AΛ with Λ = diag(1/l2)
        v = self.inverse * g
        Av = self.root * (self.problem.X @ v - self.problem.mean @ v)
        out: Array = v - self.inverse * self._adjoint(cho_solve((self.R, False), Av, check_finite=False))
        return out

    def half(self, B: Array) -> Array:
        # The orthogonal factor serves the rare wish for H⁻¹ itself.
        return orthogonal(self.problem).half(B)

    def hat(self) -> Array:
        inverse = cho_solve((self.R, False), np.eye(self.problem.n), check_finite=False)
        return np.asarray(np.eye(self.problem.n) - inverse)

    def hat_diagonal(self) -> Array:
        half = solve_triangular(self.R, np.eye(self.problem.n), trans="T", check_finite=False)
        return np.asarray(1.0 - np.einsum("ij,ij->j", half, half))


class LeastNorm(DualCholesky):
    """K = AAᵀ, n×n, of independent rows and no penalty: w = AᵀK⁻¹b is the shortest of all that meet every row."""

    method = "least norm"

    def __init__(self, problem: NormalEquations) -> None:
        super().__init__(problem)
        self.rank = problem.n - int(problem.fit_intercept)

    def _unit(self) -> Array:
        return np.where(self.problem.spread > 0, 1.0, 0.0)

    def _complete(self, K: Array) -> None:
        if self.problem.fit_intercept:  # neither A nor b has a part along √p: any curvature there will do
            u = self.root / np.linalg.norm(self.root)
            K += float(K.trace()) / K.shape[0] * np.outer(u, u)

    def _rest(self, w: Array, b: float) -> Array:
        """b − Aw."""
        return np.asarray(self.root * (self.problem.y - b - self.problem.X @ w))

    def solve(self, g: Array) -> Array:
        F = self.half(g[:, None])[:, 0]  # H⁺ = AᵀK⁻²A
        return self._adjoint(lapack.dpotrs(self.R, F)[0])

    def half(self, B: Array) -> Array:
        return self._by_rows(self.problem.X @ B - self.problem.mean @ B)

    def whole_half(self) -> Array:
        """`half` of the identity."""
        A = np.asarray(self.problem.X - self.problem.mean)
        A[:, self.problem.spread == 0.0] = 0.0
        return self._by_rows(A)

    def _by_rows(self, AB: Array) -> Array:
        """K⁻¹ of rows that have no weights yet, in place."""
        AB *= self.root[:, None]
        out: Array = lapack.dpotrs(self.R, AB, overwrite_b=1)[0]
        return out


class IterativeLSMR:
    """LSMR on the equilibrated, centered and penalized design, for sparse X with many rows and columns."""

    method = "lsmr"
    contraction = 1.0

    def __init__(self, problem: NormalEquations) -> None:
        self.problem, self.rank = problem, min(problem.n - int(problem.fit_intercept), problem.d)
        self.condition = 1.0
        self.iterations = 0
        self.root, self.penalty = np.sqrt(problem.p), np.sqrt(problem.l2)
        D = np.sqrt(problem.spread**2 + problem.l2)
        if (problem.l2 > 0).all():
            self.D = np.where(D > 0, D, 1.0)
            self.rank = problem.d
        else:  # LSMR finds the solution of least norm in its own coordinates: they must be those of w
            self.D = np.full(problem.d, D.max(initial=0.0) or 1.0)

    def _least(self, target: Array, extra: Array, tol: float) -> Array:
        problem, X, transposed = self.problem, self.problem.X, self.problem.parts[0].T

        def forward(z: Array) -> Array:
            w = np.ravel(z) / self.D
            return np.concatenate([self.root * (X @ w - problem.mean @ w), self.penalty * w])

        def adjoint(v: Array) -> Array:
            v = np.ravel(v)
            q = self.root * v[: problem.n]
            total = transposed @ q - problem.mean * q.sum() + self.penalty * v[problem.n :]
            return np.asarray(total / self.D, dtype=np.float64)

        shape = problem.n + problem.d, problem.d
        operator = LinearOperator(shape, forward, rmatvec=adjoint, dtype=np.float64)
        rhs, most = np.concatenate([target, extra]), 20 * min(problem.n, problem.d) + 200
        found = lsmr(operator, rhs, atol=tol, btol=tol, conlim=0.0, maxiter=most)
        self.condition = max(self.condition, float(found[6]))
        self.iterations += int(found[2])
        return np.asarray(found[0] / self.D)

    def start(self) -> Array:
        zeros = np.zeros(self.problem.d)
        return self._least(self.root * (self.problem.y - self.problem.y_mean), zeros, 1e-13)

    def again(self, w: Array, b: float) -> Array:
        """The correction of w, from the residual at w as the new target."""
        r = self.problem.y - b - self.problem.X @ w
        return self._least(self.root * r, -self.penalty * w, 1e-13)

    def solve(self, g: Array) -> Array:
        return np.asarray(g / self.D / self.D)  # only a scale: `again` makes the steps

    def half(self, B: Array) -> Array:
        raise ValueError(
            f"The inverse of the normal equations is not available for a sparse X with {self.problem.n} rows "
            f"and {self.problem.d} columns: it would be a dense matrix. Use at most {LARGEST_DENSE} columns."
        )


def factorize(problem: NormalEquations, double: bool = False) -> Factor:
    """The cheapest factorization whose steps contract; in double precision on demand."""
    small = min(problem.n, problem.d) <= LARGEST_DENSE
    if problem.sparse and not (problem.d <= LARGEST_DENSE or (problem.wide_and_penalized and small)):
        problem.measure()
        return IterativeLSMR(problem)
    if problem.sparse and problem.whole and (problem.l2 > 0).all():
        size = problem.n, problem.d, int(problem.X.nnz)
        if iterating_pays(*size, HOPEFUL):  # else the spreads are not worth the passes that they take
            problem.measure()
            weakest = float((problem.l2 / (problem.spread**2 + problem.l2)).min(initial=1.0))
            if iterating_pays(*size, weakest):
                return IterativeLSMR(problem)
    if problem.wide_and_penalized:
        problem.measure()
        dual = DualCholesky(problem)
        if dual.condition**2 < CHOLESKY_LIMIT:
            return dual
    elif problem.n > problem.d or (problem.l2 > 0).any():
        dtype, shift = problem.plan()
        dtype = np.float64 if double else dtype
        attempts: list[tuple[type, Array | None]] = [(dtype, shift)]
        if dtype is np.float32 and not problem.single:
            attempts.append((np.float64, shift))
        for dtype, shift in attempts:
            factor = _cholesky(problem, dtype, shift)
            if factor is not None:
                return factor
    else:
        problem.rescale()
        problem.measure()
        if problem.n < problem.d and problem.units is None and not problem.single and problem.whole:
            least = LeastNorm(problem)
            if least.condition**2 < LEAST_NORM_LIMIT:
                return least
    problem.measure()
    return orthogonal(problem)


def _cholesky(problem: NormalEquations, dtype: type, shift: Array | None) -> CholeskyFactor | None:
    """Cholesky of the equilibrated H, or None where its condition forbids it."""
    H = problem.gram(dtype, shift)
    if H is None:
        problem.rescale()
        H = problem.gram(np.float64, None)
        if H is None:
            return None
    if problem.fit_intercept and shift is None and problem.offset() > (1e2 if dtype is np.float32 else 1e4):
        if problem.sparse:  # a shifted block is dense, which the orthogonal factorization makes of it anyway
            return None
        H = problem.gram(dtype, problem.mean)  # the correction by the means lost too much
        if H is None:
            return None
    np.einsum("ii->i", H)[:] += problem.l2
    inert = (problem.spread == 0.0) | (H.diagonal() <= 0.0)
    with np.errstate(divide="ignore"):
        unit = np.where(inert, 0.0, 1.0 / np.sqrt(np.maximum(H.diagonal(), 0.0)))
    H *= unit
    H *= unit[:, None]
    np.einsum("ii->i", H)[:] = 1.0
    R, condition = cholesky_condition(H)
    mixed = dtype is np.float32
    if not condition < (SINGLE_LIMIT if mixed else CHOLESKY_LIMIT):
        return None
    method = "cholesky (mixed precision)" if mixed else "cholesky"
    return CholeskyFactor(problem, R, unit, float(np.sqrt(condition)), method)


def sure_contraction(size: int, condition: float) -> float:
    """A generous multiple of what rounding in a matrix of this condition, and in its factor, leaves of an error (Higham 2002,
    section 10.1).
    """
    return min(1.0, 10.0 * size * EPS * condition)
