"""Least squares and ridge in closed form, with the digits that survive.

    minimize over w, b    Σ p_i ½(y_i − x_i·w − b)² + ½ Σ_j l2_j w_j²        Σ p_i = 1, b free

With m = Σ p_i x_i and A = diag(√p)(X − 1mᵀ) the coefficients solve H w = Aᵀb, H = AᵀA + diag(l2). The
factorization is chosen by shape and by an estimate of the condition of H with equilibrated columns:

- easy and tall: Cholesky of the Gram matrix, formed block by block without a copy of X; in single
  precision where that is good enough for a preconditioner, because the steps below repair it;
- wide and penalized everywhere: Cholesky of the n×n dual matrix A diag(1/l2) Aᵀ + I;
- ill conditioned or rank deficient: orthogonal factorization by row blocks, then singular values of the small
  triangle; the solution of minimum norm when there are many;
- large and sparse: LSMR.

Every factorization is followed by steps w ← w − H⁻¹∇ with the gradient taken from X itself, in twice the
working precision when the problem is hard, so that the factorization decides the speed and the gradient the
accuracy. Björck, Numerical Methods for Least Squares Problems, chapter 2; Ogita, Rump and Oishi 2005 for the
exact sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve, lapack, qr, solve_triangular, svd
from scipy.sparse.linalg import LinearOperator, lsmr

from certifit._types import Array, Matrix, is_sparse

__all__ = ["ClosedForm", "NormalInverse", "hat_matrix", "leverage", "normal_inverse", "solve_least_squares"]

EPS = float(np.finfo(np.float64).eps)
GRAM_BYTES = 1 << 24  # a block of rows for a matrix product: large for BLAS, small for the cache
PASS_BYTES = 1 << 22  # a block that is read twice in a row, for a residual and then for a gradient
TWICE_BYTES = 1 << 22  # exact sums make a dozen temporaries of a block's size
CHOLESKY_LIMIT = 1e11  # beyond this condition of H, steps from a Cholesky factor no longer contract surely
HAT_LIMIT = 1e6  # the same for leverages, which no refinement repairs
SINGLE_LIMIT = 1e4  # the same for a Gram matrix in single precision
LARGEST_DENSE = 3000  # a sparse X with at most this many columns (or rows) has a dense Gram matrix
LARGEST_EXACT = 20_000_000  # entries of X up to which a hard problem gets exact sums
MOST_STEPS = 8
TRUSTED = 1e-9  # a larger residual of the normal equations calls for the orthogonal factorization
OFFSET = 10.0  # mean over deviation of a column from which the Gram matrix is formed of centered blocks


@dataclass(frozen=True)
class ClosedForm:
    """The solution of a penalized least-squares problem, and how far to trust it.

    Parameters
    ----------
    coef : array of shape (d,)
        Coefficients w.
    intercept : float
        Intercept b, zero when none was asked for.
    rank : int
        Numerical rank of the (centered, penalized) problem; below d the coefficients have minimum norm.
    condition : float
        Estimated condition number of the (centered, penalized) design with equilibrated columns.
    residual : float
        Largest component of the normal equations, each divided by the norms of its column and of the target:
        the correlation that the fit leaves between a column and what remains of y. Computed from X itself, at
        the solution or (for a large X) one refinement step before it, where it is larger.
    digits : float
        Estimated correct decimal digits of the coefficients, for the matrix as it is stored.
    method : str
        ``"cholesky"``, ``"cholesky (mixed precision)"``, ``"dual cholesky"``, ``"svd"`` (of a triangle from
        an orthogonal factorization), ``"lsmr"`` or ``"mean"`` (nothing but the intercept matters).
    note : str
        What a reader should know: rank deficiency, lost digits.
    objective : float
        Value of the objective at the solution.
    gap : float
        ½ ∇ᵀH⁻¹∇, the exact distance of the objective from its minimum.
    inverse : NormalInverse or None
        H⁻¹, where it was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form import solve_least_squares
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y, p = 1.0 + 2.0 * X[:, 0], np.full(4, 0.25)
    >>> fit = solve_least_squares(X, y, p, l2=np.zeros(1), fit_intercept=True)
    >>> fit.coef.round(12), round(fit.intercept, 12), fit.rank
    (array([2.]), 1.0, 1)
    """

    coef: Array
    intercept: float
    rank: int
    condition: float
    residual: float
    digits: float
    method: str
    note: str
    objective: float
    gap: float
    inverse: NormalInverse | None = None


def solve_least_squares(
    X: Matrix, y: Array, p: Array, *, l2: Array, fit_intercept: bool, keep_inverse: bool = False
) -> ClosedForm:
    """Minimize Σ p_i ½(y_i − x_i·w − b)² + ½ Σ_j l2_j w_j².

    Parameters
    ----------
    X : array (float64 or float32, any order) or CSR/CSC matrix of shape (n, d)
        Features, finite. Never copied as a whole unless its columns have extreme magnitudes.
    y : array of shape (n,)
        Targets.
    p : array of shape (n,)
        Positive weights with sum one.
    l2 : array of shape (d,)
        Strength of the penalty of each coefficient, zero where there is none.
    fit_intercept : bool
        Whether b is free or zero.
    keep_inverse : bool, default=False
        Whether to return H⁻¹ too, for standard errors; the factorization is then in double precision.

    Returns
    -------
    ClosedForm
        Coefficients, intercept and evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form import solve_least_squares
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> solve_least_squares(X, y, np.full(2, 0.5), l2=np.ones(1), fit_intercept=True).coef
    array([0.5])
    """
    problem = _Problem(X, y, p, l2, fit_intercept)
    if not problem.sampled_sane():
        problem.rescale()
    factor = _factorize(problem, double=keep_inverse)
    solution = _refined(problem, factor)
    rounding = 1e3 * EPS * (1.0 + problem.offset())  # a column far from zero has no better residual
    if not solution.residual < max(TRUSTED, rounding) and not isinstance(factor, (_Singular, _Iterative)):
        # The condition was worse than its estimate, and the steps did not contract.
        problem.measure()
        factor = _orthogonal(problem)
        solution = _refined(problem, factor)
    return replace(solution, inverse=_inverse(problem, factor)) if keep_inverse else solution


@dataclass(frozen=True)
class NormalInverse:
    """The inverse of the normal equations, from which covariances are made.

    Parameters
    ----------
    matrix : array of shape (d, d)
        (Σ p_i (x_i − m)(x_i − m)ᵀ + diag(l2))⁻¹, or its pseudo-inverse.
    mean : array of shape (d,)
        m = Σ p_i x_i, or zeros without intercept.
    rank : int
        Numerical rank.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form import normal_inverse
    >>> normal_inverse(np.array([[0.0], [2.0]]), np.full(2, 0.5), np.zeros(1), True).matrix
    array([[1.]])
    """

    matrix: Array
    mean: Array
    rank: int


def normal_inverse(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> NormalInverse:
    """The inverse of the normal equations without a target.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form import normal_inverse
    >>> normal_inverse(np.array([[1.0], [3.0]]), np.full(2, 0.5), np.zeros(1), True).mean
    array([2.])
    """
    problem = _Problem(X, np.zeros(X.shape[0]), p, l2, fit_intercept)
    if not problem.sampled_sane():
        problem.rescale()
    return _inverse(problem, _factorize(problem, double=True))


def _inverse(problem: _Problem, factor: _Factor) -> NormalInverse:
    unit = np.ones(problem.d) if problem.units is None else problem.units
    half = factor.half(np.eye(problem.d)) / unit
    live = int((problem.spread > 0).sum())
    return NormalInverse(half.T @ half, problem.mean * unit, min(factor.rank, live))


def leverage(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> Array:
    """∂ŷ_i/∂y_i, the diagonal of the hat matrix; its sum is the effective number of parameters.

    A row of weight s stands for s equal rows, each with the s-th part of its leverage.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form import leverage
    >>> leverage(np.array([[-1.0], [0.0], [1.0]]), np.full(3, 1 / 3), np.zeros(1), True).round(4)
    array([0.8333, 0.3333, 0.8333])
    """
    problem, factor = _for_hat(X, p, l2, fit_intercept)
    if isinstance(factor, _Dual):
        return np.clip(factor.hat_diagonal() + (p if fit_intercept else 0.0), 0.0, 1.0)
    parts = [np.einsum("ij,ij->j", half, half) for half in (factor.half(A.T) for A in problem.rows())]
    return np.clip(np.concatenate(parts) + (p if fit_intercept else 0.0), 0.0, 1.0)


def hat_matrix(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> Array:
    """The n×n matrix with ŷ = hat·y; for moderate n.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form import hat_matrix
    >>> hat = hat_matrix(np.array([[-1.0], [0.0], [1.0]]), np.full(3, 1 / 3), np.zeros(1), True)
    >>> np.allclose(hat @ hat, hat)
    True
    """
    problem, factor = _for_hat(X, p, l2, fit_intercept)
    root = np.sqrt(p)
    if isinstance(factor, _Dual):
        symmetric = factor.hat()
    else:
        half = np.concatenate([factor.half(A.T) for A in problem.rows()], axis=1)
        symmetric = half.T @ half
    hat: Array = symmetric * root / root[:, None]
    return hat + p if fit_intercept else hat


def _for_hat(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> tuple[_Problem, _Factor]:
    problem = _Problem(X, np.zeros(X.shape[0]), p, l2, fit_intercept)
    problem.rescale()  # measures the columns; cheap beside what follows
    problem.measure()
    if problem.wide_and_penalized:
        dual = _Dual(problem)
        if dual.condition**2 < HAT_LIMIT:
            return problem, dual
    return problem, _orthogonal(problem)  # a diagonal has no refinement, so it gets the accurate factor


# ----------------------------------------------------------------------------------------------------------
# The problem: X is only ever read, in blocks of rows


class _Problem:
    """Data of one fit in units that cannot overflow, and the products that the factorizations need.

    Columns are divided by powers of two only when their squares would leave the range of the numbers.
    """

    def __init__(self, X: Matrix, y: Array, p: Array, l2: Array, fit_intercept: bool) -> None:
        self.X, self.p, self.fit_intercept = X, np.asarray(p, dtype=np.float64), fit_intercept
        self.sparse = bool(is_sparse(X))
        self.n, self.d = X.shape
        self.l2 = np.asarray(l2, dtype=np.float64)
        self.single = X.dtype == np.float32
        y = np.asarray(y, dtype=np.float64)
        self.y_unit = _power_of_two(float(np.abs(y).max(initial=0.0)))
        self.y = y / self.y_unit
        self.units: Array | None = None
        self.mean = np.zeros(self.d)
        self.drift = np.zeros(self.d)  # what rounding of the mean leaves of the mean
        self.moment = np.zeros(self.d)  # Aᵀb
        self.spread = np.zeros(self.d)  # norms of the columns of A; zero for a constant column
        self.y_mean = float(self.p @ self.y) if fit_intercept else 0.0
        self.y_norm = float(np.sqrt(self.p @ (self.y - self.y_mean) ** 2))

    @property
    def wide_and_penalized(self) -> bool:
        return bool(self.n < self.d and (self.l2 > 0).all())

    def sampled_sane(self) -> bool:
        """Whether a sample of the rows has magnitudes whose squares and products are safe.

        What a sample misses shows in the diagonal of the Gram matrix; a small matrix is looked at as a whole.
        """
        if self.sparse:
            return _sane(np.abs(self.X.data))
        return _sane(np.abs(self.X if self.X.size <= 1_000_000 else self._sample(256)))

    def rescale(self) -> None:
        """Copy X with columns divided by powers of two, if any column needs it."""
        if self.sparse:
            top = np.asarray(abs(self.X).max(axis=0).toarray()).ravel()
        else:
            top = np.maximum(self.X.max(axis=0, initial=0.0), -self.X.min(axis=0, initial=0.0))
        top = top.astype(np.float64)
        if _sane(top):
            return
        units = np.array([_power_of_two(t) for t in top])
        self.units = units
        if self.sparse:
            self.X = (self.X.astype(np.float64) @ sp.diags_array(1.0 / units)).asformat(self.X.format)
        else:
            self.X = self.X / units
        self.single = False
        with np.errstate(over="ignore"):
            self.l2 = np.minimum(self.l2 / units / units, 1e250)

    def _sample(self, rows: int) -> Array:
        step = max(1, self.n // rows)
        return np.asarray(self.X[::step][:rows], dtype=np.float64)

    def blocks(self, size: int) -> Iterator[slice]:
        width = self.d * (8 if self.sparse else self.X.itemsize)
        step = max(16, size // max(width, 1))
        step = min(step, max(1024, self.n // 8))  # buffers stay small beside X itself
        for start in range(0, self.n, step):
            yield slice(start, min(start + step, self.n))

    def block(self, rows: slice) -> Array:
        """Rows of X as a dense float64 array (a view where X is one)."""
        part = self.X[rows].toarray() if self.sparse else self.X[rows]
        return np.asarray(part, dtype=np.float64)

    def rows(self, size: int = GRAM_BYTES) -> Iterator[Array]:
        """Blocks of A, the centered and weighted design; constant columns are exact zeros."""
        inert = self.spread == 0.0
        for rows in self.blocks(size):
            A = self.block(rows) - self.mean
            A -= self.drift
            A *= np.sqrt(self.p[rows])[:, None]
            A[:, inert] = 0.0
            yield A

    def center_again(self) -> None:
        """Remove from A what rounding of the means left: it would pass for another direction of X."""
        if self.fit_intercept:
            self.drift = np.zeros(self.d)
            for rows in self.blocks(PASS_BYTES):
                self.drift += self.p[rows] @ (self.block(rows) - self.mean)

    def measure(self) -> None:
        """Means, spreads and moments in two passes, without a Gram matrix."""
        if self.sparse:
            total, second = self.X.T @ self.p, self.X.multiply(self.X).T @ self.p
            self.mean = total if self.fit_intercept else np.zeros(self.d)
            self.moment = self.X.T @ (self.p * (self.y - self.y_mean))
            if self.fit_intercept:
                stored = (self.X != 0).astype(np.float64).T @ self.p
                shifted = self.X.copy().astype(np.float64)
                columns = shifted.tocoo().coords[1] if shifted.format == "csr" else None
                if columns is None:
                    columns = np.repeat(np.arange(self.d), np.diff(shifted.indptr))
                shifted.data -= self.mean[columns]
                second = shifted.multiply(shifted).T @ self.p + np.maximum(1.0 - stored, 0.0) * self.mean**2
        else:
            self.mean = np.zeros(self.d)
            if self.fit_intercept:
                for rows in self.blocks(PASS_BYTES):
                    self.mean += self.p[rows] @ self.block(rows)
            second, self.moment = np.zeros(self.d), np.zeros(self.d)
            for rows in self.blocks(PASS_BYTES):
                A = self.block(rows) - self.mean
                self.moment += (self.p[rows] * (self.y[rows] - self.y_mean)) @ A
                second += self.p[rows] @ (A * A)
        self._set_spread(second)

    def _checked_second(self, second: Array, dtype: type) -> Array:
        """Second moments around the mean; those that the correction by the mean spoiled are computed anew."""
        lost = float(np.sqrt(np.finfo(dtype).eps)) if self.fit_intercept else 0.0
        spoiled = np.flatnonzero(second <= lost * self.mean**2)
        if spoiled.size:
            columns = self.X[:, spoiled].toarray() if self.sparse else self.X[:, spoiled]
            second[spoiled] = self.p @ (columns.astype(np.float64) - self.mean[spoiled]) ** 2
        return second

    def _set_spread(self, second: Array) -> None:
        """A column is constant when it is, or when its deviation is what rounding the mean leaves."""
        second = np.maximum(second, 0.0)
        constant = second <= (16.0 * EPS * self.mean) ** 2
        for j in np.flatnonzero(~constant & (second <= (1e3 * EPS * self.mean) ** 2)):
            column = self.X[:, [j]].toarray() if self.sparse else self.X[:, j]
            constant[j] = bool((column == column[0]).all())
        self.spread = np.where(constant, 0.0, np.sqrt(second))
        self.moment = np.where(constant, 0.0, self.moment)

    def offset(self) -> float:
        """Largest ratio of mean to deviation of a column that is not constant."""
        live = self.spread > 0
        return float((np.abs(self.mean[live]) / self.spread[live]).max(initial=0.0))

    # -- Gram matrix -------------------------------------------------------------------------------------

    def plan(self) -> tuple[type, Array | None]:
        """Precision of the Gram matrix, and the shift of its blocks, from a sample of the rows."""
        if self.sparse or self.n * self.d * self.d < 200_000_000:
            return (np.float32 if self.single and not self.sparse else np.float64), None
        sample = self._sample(4 * self.d)
        center = sample.mean(axis=0) if self.fit_intercept else np.zeros(self.d)
        deviation = np.sqrt(np.maximum(((sample - center) ** 2).mean(axis=0), 0.0))
        live = deviation > 1e3 * EPS * np.abs(center)
        far = live & (np.abs(center) > OFFSET * deviation)
        shift = np.where(far, center, 0.0) if far.any() else None
        if self.single:
            return np.float32, shift
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled = (sample - center)[:, live] / deviation[live]
        H = scaled.T @ scaled / sample.shape[0] + np.diag(self.l2[live] / deviation[live] ** 2)
        unit = 1.0 / np.sqrt(H.diagonal())
        _, condition = _cholesky_condition(H * unit * unit[:, None])
        safe = deviation[live].min(initial=1.0) > 1e-15 and deviation[live].max(initial=1.0) < 1e15
        easy = safe and condition < SINGLE_LIMIT  # a sample exaggerates the condition
        return (np.float32 if easy else np.float64), shift

    def gram(self, dtype: type, shift: Array | None) -> Array | None:
        """AᵀA in float64, with mean, spread and moment on the way; None if it left the safe range."""
        if self.sparse:
            weighted = sp.diags_array(self.p) @ self.X
            product = np.asarray((self.X.T @ weighted).toarray(), dtype=np.float64)
            total, moment = self.X.T @ self.p, self.X.T @ (self.p * (self.y - self.y_mean))
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # looked at below
                product, total, moment = self._dense_gram(dtype, shift)
        if not _sane(np.sqrt(np.abs(product.diagonal())), allow_zero=False, columns=self.X):
            return None
        around = np.zeros(self.d) if shift is None else shift
        if self.fit_intercept:
            self.mean, rest = total, total - around
            product -= np.outer(rest, rest)  # AᵀA = Σ p (x−c)(x−c)ᵀ − (m−c)(m−c)ᵀ
        else:
            self.mean = np.zeros(self.d)
        self.moment = moment - self.mean * float(self.p @ (self.y - self.y_mean))
        self._set_spread(self._checked_second(product.diagonal().copy(), dtype))
        return product

    def _dense_gram(self, dtype: type, shift: Array | None) -> tuple[Array, Array, Array]:
        product = np.zeros((self.d, self.d))
        both = np.zeros((2, self.d))
        level = bool((self.p == self.p[0]).all())
        plain = level and shift is None and self.X.dtype == dtype  # the product reads X itself
        root = np.sqrt(self.p)
        target = np.stack([self.p, self.p * (self.y - self.y_mean)])
        buffer = np.empty((0, self.d), dtype=dtype)
        for rows in self.blocks(GRAM_BYTES):
            part = self.X[rows]
            both += target[:, rows] @ (part.astype(np.float64) if self.single else part)
            if plain:
                product += part.T @ part
                continue
            if buffer.shape[0] == 0:
                along = self.X.strides[0] <= self.X.strides[1]  # the buffer has the order of X
                buffer = np.empty((part.shape[0], self.d), dtype=dtype, order="F" if along else "C")
            work = buffer[: part.shape[0]]
            if shift is not None:
                np.subtract(part, shift, out=work, casting="same_kind")
            elif level:
                np.copyto(work, part, casting="same_kind")
            if not level:
                np.multiply(part if shift is None else work, root[rows, None], out=work, casting="same_kind")
            product += work.T @ work
        return product * (self.p[0] if level else 1.0), both[0], both[1]

    # -- gradient ----------------------------------------------------------------------------------------

    def gradient(self, w: Array, b: float, exact: bool) -> tuple[Array, float, float]:
        """−∇ in w (centered) and in b, and Σ p r² at (w, b)."""
        if exact and not self.sparse:
            return self._exact_gradient(w, b)
        if self.sparse:
            r = self.y - b - self.X @ w
            q = self.p * r
            g, level, energy = np.asarray(self.X.T @ q, dtype=np.float64), float(q.sum()), float(q @ r)
        else:
            g, level, energy = np.zeros(self.d), 0.0, 0.0
            for rows in self.blocks(PASS_BYTES):
                part = self.block(rows)
                r = self.y[rows] - part @ w
                r -= b
                q = self.p[rows] * r
                g += q @ part
                level += float(q.sum())
                energy += float(q @ r)
        if not self.fit_intercept:
            level = 0.0
        g -= self.mean * level
        return np.where(self.spread > 0, g, 0.0) - self.l2 * w, level, energy

    def _exact_gradient(self, w: Array, b: float) -> tuple[Array, float, float]:
        """The same with residuals, products and sums in twice the working precision."""
        high, low = np.zeros(self.d), np.zeros(self.d)
        level, level_low, energy = np.zeros(1), np.zeros(1), 0.0
        for rows in self.blocks(TWICE_BYTES):
            part = self.block(rows)
            term, slip = _two_product(part, w)
            terms = np.column_stack([self.y[rows], np.full(part.shape[0], -b), -term])
            r, r_low = _sum_twice(terms, -slip.sum(axis=1))
            q, q_low = _two_product(self.p[rows], r)
            q_low = q_low + self.p[rows] * r_low
            term, slip = _two_product(part.T, q)
            column, column_low = _sum_twice(term, (slip + part.T * q_low).sum(axis=1))
            high, slip = _two_sum(high, column)
            low = low + (slip + column_low)
            one, one_low = _sum_twice(q[None, :], np.array([q_low.sum()]))
            level, slip = _two_sum(level, one)
            level_low = level_low + slip + one_low
            energy += float(q @ r)
        if self.fit_intercept:
            term, slip = _two_product(self.mean, level)
            high, carry = _two_sum(high, -term)
            low = low + (carry - slip - self.mean * level_low)
        term, slip = _two_product(self.l2, w)
        high = np.where(self.spread > 0, high, 0.0)
        low = np.where(self.spread > 0, low, 0.0)
        high, carry = _two_sum(high, -term)
        return high + (low + (carry - slip)), float(level[0]) if self.fit_intercept else 0.0, energy


# ----------------------------------------------------------------------------------------------------------
# Factorizations of H


class _Factor(Protocol):
    """H⁻¹, to the accuracy of its factorization."""

    method: str
    rank: int
    condition: float

    def start(self) -> Array:
        """First coefficients."""

    def solve(self, g: Array) -> Array:
        """H⁻¹ g"""

    def half(self, B: Array) -> Array:
        """F with FᵀF = BᵀH⁻¹B"""


class _Cholesky:
    """RᵀR = H with unit diagonal; columns that do not matter have coefficient zero."""

    def __init__(self, problem: _Problem, R: Array, unit: Array, condition: float, method: str) -> None:
        self.R, self.unit, self.condition, self.method = R, unit, condition, method
        self.moment = problem.moment
        self.rank = int((unit > 0).sum())

    def start(self) -> Array:
        return self.solve(self.moment)

    def solve(self, g: Array) -> Array:
        out: Array = self.unit * cho_solve((self.R, False), self.unit * g, check_finite=False)
        return out

    def half(self, B: Array) -> Array:
        out: Array = solve_triangular(self.R, self.unit[:, None] * B, trans="T", check_finite=False)
        return out


class _Singular:
    """V S² Vᵀ = H in the coordinates of the equilibrated columns, D w; truncated at the numerical rank."""

    method = "svd"

    def __init__(self, problem: _Problem, T: Array, z: Array, D: Array, tolerance: float) -> None:
        U, S, Vt = _svd(T)
        self.rank = int((tolerance * S[:1] < S).sum()) if S.size and S[0] > 0 else 0
        self.S, self.Vt, self.D = S[: self.rank], Vt[: self.rank], D
        self.condition = float(S[0] / S[self.rank - 1]) if self.rank else 1.0
        self.first = (U[:, : self.rank].T @ z) / self.S
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
        return self._coefficients(self.first)

    def solve(self, g: Array) -> Array:
        return self._coefficients((self.Vt @ (g / self.D)) / self.S / self.S)

    def half(self, B: Array) -> Array:
        return np.asarray((self.Vt @ (B / self.D[:, None])) / self.S[:, None])


class _Dual:
    """K = A diag(1/l2) Aᵀ + I, n×n: w = diag(1/l2) Aᵀ K⁻¹ b."""

    method = "dual cholesky"

    def __init__(self, problem: _Problem) -> None:
        self.problem, X = problem, problem.X
        self.rank = problem.d
        self.root = np.sqrt(problem.p)
        inverse = np.where(problem.spread > 0, 1.0 / problem.l2, 0.0)
        self.inverse = inverse
        n, d = problem.n, problem.d
        if problem.sparse:
            scaled = X @ sp.diags_array(inverse)
            K = np.asarray((scaled @ X.T).toarray(), dtype=np.float64)
            if problem.fit_intercept:
                cross = np.asarray(scaled @ problem.mean)
                K += float(problem.mean @ (inverse * problem.mean)) - cross - cross[:, None]
        else:
            K = np.zeros((n, n))
            step = max(16, GRAM_BYTES // (8 * max(n, 1)))
            for start in range(0, d, step):
                columns = slice(start, start + step)
                part = np.asarray(X[:, columns], dtype=np.float64) - problem.mean[columns]
                part *= np.sqrt(inverse[columns])
                K += part @ part.T
        K *= self.root * self.root[:, None]
        if problem.fit_intercept:  # A has no part along √p; what rounding of the means left there goes
            u = self.root / np.linalg.norm(self.root)
            Ku = K @ u
            K -= np.outer(u, Ku) + np.outer(Ku - float(u @ Ku) * u, u)
        K[np.diag_indices(n)] += 1.0
        self.R, condition = _cholesky_condition(K)
        self.condition = float(np.sqrt(condition))

    def _adjoint(self, a: Array) -> Array:
        q = self.root * a
        return np.asarray(self.problem.X.T @ q - self.problem.mean * q.sum(), dtype=np.float64)

    def start(self) -> Array:
        b = self.root * (self.problem.y - self.problem.y_mean)
        self.a = cho_solve((self.R, False), b, check_finite=False)
        return self.inverse * self._adjoint(self.a)

    def _rest(self, w: Array, b: float) -> Array:
        """The dual residual b − Aw − a for w = diag(1/l2) Aᵀa; half its square is the duality gap."""
        return np.asarray(self.root * (self.problem.y - b - self.problem.X @ w) - self.a)

    def again(self, w: Array, b: float) -> Array:
        """The correction of w by way of the dual variables: H⁻¹∇ would cancel where l2 is small."""
        step = cho_solve((self.R, False), self._rest(w, b), check_finite=False)
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
        return _orthogonal(self.problem).half(B)

    def hat(self) -> Array:
        inverse = cho_solve((self.R, False), np.eye(self.problem.n), check_finite=False)
        return np.asarray(np.eye(self.problem.n) - inverse)

    def hat_diagonal(self) -> Array:
        half = solve_triangular(self.R, np.eye(self.problem.n), trans="T", check_finite=False)
        return np.asarray(1.0 - np.einsum("ij,ij->j", half, half))


class _Iterative:
    """LSMR on the equilibrated, centered and penalized design, for sparse X with many rows and columns."""

    method = "lsmr"

    def __init__(self, problem: _Problem) -> None:
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
        problem, X = self.problem, self.problem.X

        def forward(z: Array) -> Array:
            w = np.ravel(z) / self.D
            return np.concatenate([self.root * (X @ w - problem.mean @ w), self.penalty * w])

        def adjoint(v: Array) -> Array:
            v = np.ravel(v)
            q = self.root * v[: problem.n]
            total = X.T @ q - problem.mean * q.sum() + self.penalty * v[problem.n :]
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


def _factorize(problem: _Problem, double: bool = False) -> _Factor:
    """The cheapest factorization whose steps contract; in double precision on demand."""
    small = min(problem.n, problem.d) <= LARGEST_DENSE
    if problem.sparse and not (problem.d <= LARGEST_DENSE or (problem.wide_and_penalized and small)):
        problem.measure()
        return _Iterative(problem)
    if problem.wide_and_penalized:
        problem.measure()
        dual = _Dual(problem)
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
    return _orthogonal(problem)


def _cholesky(problem: _Problem, dtype: type, shift: Array | None) -> _Cholesky | None:
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
    H[np.diag_indices(problem.d)] += problem.l2
    inert = (problem.spread == 0.0) | (H.diagonal() <= 0.0)
    with np.errstate(divide="ignore"):
        unit = np.where(inert, 0.0, 1.0 / np.sqrt(np.maximum(H.diagonal(), 0.0)))
    H *= unit
    H *= unit[:, None]
    H[np.diag_indices(problem.d)] = 1.0
    R, condition = _cholesky_condition(H)
    mixed = dtype is np.float32
    if not condition < (SINGLE_LIMIT if mixed else CHOLESKY_LIMIT):
        return None
    method = "cholesky (mixed precision)" if mixed else "cholesky"
    return _Cholesky(problem, R, unit, float(np.sqrt(condition)), method)


def _cholesky_condition(H: Array) -> tuple[Array, float]:
    """Upper Cholesky factor and estimated condition of a symmetric matrix; infinite if not definite."""
    norm = float(np.abs(H).sum(axis=0).max(initial=0.0))
    try:
        # NumPy's LAPACK on purpose: SciPy brings a second BLAS, whose idle threads slow the next product.
        R = np.asarray(np.linalg.cholesky(H).T)
    except np.linalg.LinAlgError:
        return H, np.inf
    if not np.isfinite(norm):
        return R, np.inf
    rcond = float(lapack.dpocon(R, norm)[0])
    return R, 1.0 / rcond if rcond > 0 else np.inf


def _orthogonal(problem: _Problem) -> _Singular:
    """Triangle T and Qᵀb of the equilibrated [A; √l2] by row blocks, so that no copy of X is needed."""
    problem.center_again()
    D = np.sqrt(problem.spread**2 + problem.l2)
    D = np.where((problem.spread > 0) & (D > 0), D, 1.0)
    D = np.exp2(np.round(np.log2(D)))
    size = max(GRAM_BYTES, 8 * 4 * problem.d**2)  # blocks taller than wide: the triangle is stacked on each
    T = np.zeros((0, problem.d + 1))
    target = np.sqrt(problem.p) * (problem.y - problem.y_mean)
    done = 0
    for A in problem.rows(size):
        part = np.column_stack([A / D, target[done : done + A.shape[0]]])
        done += A.shape[0]
        T = _triangle(np.concatenate([T, part]))
    penalized = problem.l2 > 0
    if penalized.any():
        penalty = np.column_stack([np.diag(np.sqrt(problem.l2) / D), np.zeros(problem.d)])[penalized]
        T = _triangle(np.concatenate([T, penalty]))
    T = T[: problem.d]
    eps = float(np.finfo(np.float32).eps) / 8 if problem.single else EPS
    return _Singular(problem, T[:, :-1], T[:, -1], D, 8.0 * eps * float(np.sqrt(problem.n + problem.d)))


def _triangle(M: Array) -> Array:
    """R of a QR factorization, or the matrix itself where it is wide already."""
    if M.shape[0] < M.shape[1]:
        return M
    out: Array = qr(M, mode="r", overwrite_a=True, check_finite=False)[0][: M.shape[1]]
    return out


def _svd(T: Array) -> tuple[Array, Array, Array]:
    try:
        return svd(T, full_matrices=False, check_finite=False)
    except np.linalg.LinAlgError:  # divide and conquer can fail where the slower iteration does not
        return svd(T, full_matrices=False, check_finite=False, lapack_driver="gesvd")


# ----------------------------------------------------------------------------------------------------------
# Refinement and evidence


def _refined(problem: _Problem, factor: _Factor) -> ClosedForm:
    """Steps with true gradients until they stop helping; then what is left is the evidence."""
    w = factor.start()
    b = problem.y_mean - float(problem.mean @ w)
    g, level, energy = problem.gradient(w, b, exact=False)
    exact = _worth_exact(problem, factor, w, energy)
    if exact:
        g, level, energy = problem.gradient(w, b, exact=True)
    best, previous, contraction = (np.inf, w, b, g, energy), np.inf, 1.0
    large = not problem.sparse and problem.n * problem.d > 1_000_000
    step_size = 0.0
    for _ in range(MOST_STEPS):
        size = _left(problem, g, level)
        if size < best[0]:
            best = (size, w, b, g, energy)
        step = factor.again(w, b) if isinstance(factor, (_Iterative, _Dual)) else factor.solve(g)
        scale = problem.spread + np.sqrt(problem.l2)
        length = float(np.linalg.norm(scale * w))
        step_size = float(np.linalg.norm(scale * step)) / length if length > 0 else 0.0
        if np.isfinite(previous) and previous > 0:
            contraction = max(EPS, min(1.0, step_size / previous))
        # Steps at the level of rounding, or that no longer shrink, only exchange one error for another.
        if step_size <= (EPS if exact else 4.0 * EPS) or not step_size < 0.5 * previous or size == 0.0:
            break
        previous = step_size
        w = w + step
        b = b + level - float(problem.mean @ step) if problem.fit_intercept else 0.0
        if large and contraction < 1e-3 and step_size * contraction < EPS:
            # This step lands on rounding. Another pass over a large X would only confirm it: the evidence
            # of the point before the step, which is worse, is reported instead.
            best = (size, w, b, g, energy)
            step_size *= contraction
            break
        g, level, energy = problem.gradient(w, b, exact)
    last = _left(problem, g, level)
    if not exact or not last < 100.0 * best[0]:  # with exact sums the last step is the best, unless it failed
        size, w, b, g, energy = best
    else:
        size = last
    return _evidence(problem, factor, w, b, g, energy, size, exact, step_size, contraction)


def _left(problem: _Problem, g: Array, level: float) -> float:
    """Normal equations relative to the norms of the columns and of y."""
    if problem.y_norm == 0.0:
        return 0.0 if not g.any() else float("inf")
    scale = np.sqrt(problem.spread**2 + problem.l2)
    live = scale > 0
    worst = float((np.abs(g[live]) / scale[live]).max(initial=0.0))
    return max(worst, abs(level)) / problem.y_norm


def _sensitivity(problem: _Problem, factor: _Factor, w: Array, energy: float) -> float:
    """Relative change of w for a relative change of X and y: κ + κ²·‖r‖/‖D w‖, times the offset of means."""
    length = float(np.linalg.norm(np.sqrt(problem.spread**2 + problem.l2) * w))
    lean = float(np.sqrt(max(energy, 0.0))) / length if length > 0 else 0.0
    kappa = factor.condition
    return kappa * (1.0 + problem.offset()) * (1.0 + kappa * min(lean, 1e16))


def _worth_exact(problem: _Problem, factor: _Factor, w: Array, energy: float) -> bool:
    """Exact sums cost some fifty plain ones: they are for the problems that lose digits without them."""
    if problem.sparse or problem.single or problem.n * problem.d > LARGEST_EXACT:
        return False
    lost = EPS * _sensitivity(problem, factor, w, energy)
    return lost > (1e-14 if problem.n * problem.d <= 2_000 else 1e-10)


def _evidence(
    problem: _Problem,
    factor: _Factor,
    w: Array,
    b: float,
    g: Array,
    energy: float,
    size: float,
    exact: bool,
    step_size: float,
    contraction: float,
) -> ClosedForm:
    error = step_size * (contraction if exact else 1.0)
    if not exact:
        error = max(error, EPS * min(_sensitivity(problem, factor, w, energy), 1.0 / EPS))
    digits = float(np.clip(-np.log10(max(error, EPS)), 0.0, 15.65))
    live = int((problem.spread > 0).sum())
    notes = []
    if factor.rank < live and factor.method != "lsmr":
        notes.append(
            f"The {live} varying columns of X have rank {factor.rank}: "
            "the coefficients of minimum norm were chosen."
        )
    if live < problem.d:
        notes.append(f"{problem.d - live} of {problem.d} columns are constant and have coefficient 0.")
    if digits < 8.0:
        notes.append(
            f"The condition number {factor.condition:.1e} leaves about {digits:.0f} correct digits "
            "in the coefficients."
        )
    elif factor.condition * EPS > 1e-9:
        notes.append(
            f"The condition number is {factor.condition:.1e}: the coefficients solve the problem with X as "
            "it is stored, but rounding in X itself (such as in powers of a column) can change them in digit "
            f"{max(1, int(-np.log10(factor.condition * EPS)))}."
        )
    if live == 0:
        rank, method = 0, "mean" if problem.fit_intercept else factor.method
    else:
        rank, method = min(factor.rank, live), factor.method
    gap = factor.gap(w, b) if isinstance(factor, _Dual) else _gap(problem, factor, g)
    y2 = problem.y_unit * problem.y_unit
    penalty = float(problem.l2 @ (w * w))
    coef = w * problem.y_unit if problem.units is None else w / problem.units * problem.y_unit
    return ClosedForm(
        coef=coef + 0.0,  # no negative zeros
        intercept=b * problem.y_unit if problem.fit_intercept else 0.0,
        rank=rank,
        condition=factor.condition,
        residual=size,
        digits=digits,
        method=method,
        note=" ".join(notes),
        objective=0.5 * (energy + penalty) * y2,
        gap=gap * y2,
    )


def _gap(problem: _Problem, factor: _Factor, g: Array) -> float:
    if isinstance(factor, _Iterative):
        # ½‖∇‖²/(smallest curvature): rigorous with a penalty, otherwise by LSMR's estimate of the condition.
        scaled = g / factor.D
        floor = float((problem.l2 / factor.D**2).min(initial=1.0))
        curvature = floor if floor > 0 else max(1.0 / factor.condition, EPS) ** 2
        return 0.5 * float(scaled @ scaled) / curvature
    return max(0.0, 0.5 * float(g @ factor.solve(g)))


# ----------------------------------------------------------------------------------------------------------
# Numbers


def _power_of_two(x: float) -> float:
    """The power of two next to x; one for zero."""
    return float(2.0 ** np.floor(np.log2(x))) if x > 0 and np.isfinite(x) else 1.0


def _sane(magnitudes: Array, allow_zero: bool = True, columns: Matrix | None = None) -> bool:
    """Whether squares and fourth powers of these magnitudes neither overflow nor vanish."""
    if not np.isfinite(magnitudes).all() or float(magnitudes.max(initial=0.0)) > 1e70:
        return False
    if magnitudes.ndim == 1:
        tiny = magnitudes < 1e-70
        if allow_zero:
            tiny &= magnitudes > 0
        elif tiny.any() and columns is not None:  # a column that is zero everywhere is no reason to worry
            suspects = columns[:, np.flatnonzero(tiny)]
            tiny = np.asarray((abs(suspects) > 0).sum(axis=0)).ravel() > 0
        return not tiny.any()
    largest = magnitudes.max(axis=0, initial=0.0)
    return not ((largest > 0) & (largest < 1e-70)).any()


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum and error with s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Product and error with x + e = a·b exactly (Dekker, with Veltkamp's splitting)."""
    x = a * b
    c = 134217729.0 * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = 134217729.0 * b
    b_high = c - (c - b)
    b_low = b - b_high
    return x, a_low * b_low - (((x - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _sum_twice(terms: Array, carry: Array) -> tuple[Array, Array]:
    """Sum over the last axis as an unevaluated pair, as if in twice the precision, plus a small carry."""
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        s, e = _two_sum(terms[:, :half], terms[:, half : 2 * half])
        carry = carry + e.sum(axis=1)
        terms = np.column_stack([s, terms[:, 2 * half :]]) if terms.shape[1] % 2 else s
    total = terms[:, 0] if terms.shape[1] else np.zeros(terms.shape[0])
    high, low = _two_sum(total, carry)
    return high, low
