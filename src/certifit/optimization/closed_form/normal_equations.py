"""The normal equations of weighted, penalized least squares, formed in blocks of rows without copying X.

Gram matrix and gradients in the precision that the data needs, with exact (doubled) sums where a problem is hard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

import certifit._native.products as _products
from certifit._types import Array, Matrix, is_sparse
from certifit.representation.design.products import NARROW, in_one_piece
from certifit.representation.design.rows import over_rows
from certifit.threads import n_threads, one_blas_thread

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
TALL = 16  # rows for each column from which every thread has a Gram matrix of its own


class NormalEquations:
    """Data of one fit in units that cannot overflow, and the products that the factorizations need.

    Columns are divided by powers of two only when their squares would leave the range of the numbers.
    """

    def __init__(
        self, X: Matrix, y: Array, p: Array, l2: Array, fit_intercept: bool, threads: int | None = None
    ) -> None:
        self.X, self.p, self.fit_intercept = X, np.asarray(p, dtype=np.float64), fit_intercept
        self.sparse = bool(is_sparse(X))
        self.n, self.d = X.shape
        self.threads = n_threads(None) if threads is None else threads
        self.l2 = np.asarray(l2, dtype=np.float64)
        self.single = X.dtype == np.float32
        y = np.asarray(y, dtype=np.float64)
        self.y_unit = power_of_two(float(np.abs(y).max(initial=0.0)))
        self.y = y / self.y_unit
        self.units: Array | None = None
        self.mean = np.zeros(self.d)
        self.drift = np.zeros(self.d)  # what rounding of the mean leaves of the mean
        self.moment = np.zeros(self.d)  # Aᵀb
        self.spread = np.zeros(self.d)  # norms of the columns of A; zero for a constant column
        self.y_mean = float(self.p @ self.y) if fit_intercept else 0.0
        self.y_norm = float(np.sqrt(self.p @ (self.y - self.y_mean) ** 2))

    @property
    def tall(self) -> bool:
        """Whether every thread can have a Gram matrix of its own, small beside X."""
        return not self.sparse and self.n >= TALL * self.d

    def threading(self) -> AbstractContextManager[None]:
        """Where whole passes over X are threaded, threads inside small products would only be in their way."""
        return one_blas_thread() if self.tall else nullcontext()

    @property
    def wide_and_penalized(self) -> bool:
        return bool(self.n < self.d and (self.l2 > 0).all())

    def sampled_sane(self) -> bool:
        """Whether a sample of the rows has magnitudes whose squares and products are safe.

        What a sample misses shows in the diagonal of the Gram matrix; a small matrix is looked at as a whole.
        """
        if self.sparse:
            return sane(np.abs(self.X.data))
        return sane(np.abs(self.X if self.X.size <= 1_000_000 else self._sample(256)))

    def rescale(self) -> None:
        """Copy X with columns divided by powers of two, if any column needs it."""
        if self.sparse:
            top = np.asarray(abs(self.X).max(axis=0).toarray()).ravel()
        else:
            top = np.maximum(self.X.max(axis=0, initial=0.0), -self.X.min(axis=0, initial=0.0))
        top = top.astype(np.float64)
        if sane(top):
            return
        units = np.array([power_of_two(t) for t in top])
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

    def blocks(self, size: int, within: slice | None = None) -> Iterator[slice]:
        width = self.d * (8 if self.sparse else self.X.itemsize)
        step = max(16, size // max(width, 1))
        step = min(step, max(1024, self.n // 8))  # buffers stay small beside X itself
        first, last = (0, self.n) if within is None else (within.start, within.stop)
        for start in range(first, last, step):
            yield slice(start, min(start + step, last))

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
        _, condition = cholesky_condition(H * unit * unit[:, None])
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
        if not sane(np.sqrt(np.abs(product.diagonal())), allow_zero=False, columns=self.X):
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
        level = bool((self.p == self.p[0]).all())
        plain = level and shift is None and self.X.dtype == dtype  # the product reads X itself
        root = np.sqrt(self.p)
        target = np.stack([self.p, self.p * (self.y - self.y_mean)])
        if self.d <= NARROW and dtype is np.float64 and shift is None and in_one_piece(self.X):
            both = _products.pullback(self.X, target, self.threads)
            return _products.gram(self.X, self.p, False, self.threads), both[0], both[1]

        def part_of(chunk: slice, size: int) -> tuple[Array, Array]:
            product, both = np.zeros((self.d, self.d)), np.zeros((2, self.d))
            buffer = np.empty((0, self.d), dtype=dtype)
            for rows in self.blocks(size, chunk):
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
            return product, both

        if self.tall:
            # Threads that each take whole blocks through copy and product wait for each other once, not at every block.
            parts = over_rows(lambda chunk: part_of(chunk, PASS_BYTES), self.n, self.d, self.threads)
            product, both = parts[0]
            for more in parts[1:]:
                product += more[0]
                both += more[1]
        else:
            product, both = part_of(slice(0, self.n), GRAM_BYTES)
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
            found = np.zeros(self.d + 2)
            for rows in [slice(0, self.n)] if in_one_piece(self.X) else self.blocks(PASS_BYTES):
                part = self.X[rows] if in_one_piece(self.X[rows]) else np.ascontiguousarray(self.X[rows])
                found += _products.residual(part, self.y[rows], self.p[rows], w, b, self.threads)
            g, level, energy = found[:-2], float(found[-2]), float(found[-1])
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
            term, slip = two_product(part, w)
            terms = np.column_stack([self.y[rows], np.full(part.shape[0], -b), -term])
            r, r_low = sum_twice(terms, -slip.sum(axis=1))
            q, q_low = two_product(self.p[rows], r)
            q_low = q_low + self.p[rows] * r_low
            term, slip = two_product(part.T, q)
            column, column_low = sum_twice(term, (slip + part.T * q_low).sum(axis=1))
            high, slip = two_sum(high, column)
            low = low + (slip + column_low)
            one, one_low = sum_twice(q[None, :], np.array([q_low.sum()]))
            level, slip = two_sum(level, one)
            level_low = level_low + slip + one_low
            energy += float(q @ r)
        if self.fit_intercept:
            term, slip = two_product(self.mean, level)
            high, carry = two_sum(high, -term)
            low = low + (carry - slip - self.mean * level_low)
        term, slip = two_product(self.l2, w)
        high = np.where(self.spread > 0, high, 0.0)
        low = np.where(self.spread > 0, low, 0.0)
        high, carry = two_sum(high, -term)
        return high + (low + (carry - slip)), float(level[0]) if self.fit_intercept else 0.0, energy


def power_of_two(x: float) -> float:
    """The power of two next to x; one for zero."""
    return float(2.0 ** np.floor(np.log2(x))) if x > 0 and np.isfinite(x) else 1.0


def sane(magnitudes: Array, allow_zero: bool = True, columns: Matrix | None = None) -> bool:
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


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Sum and error with s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Product and error with x + e = a·b exactly (Dekker, with Veltkamp's splitting)."""
    x = a * b
    c = 134217729.0 * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = 134217729.0 * b
    b_high = c - (c - b)
    b_low = b - b_high
    return x, a_low * b_low - (((x - a_high * b_high) - a_low * b_high) - a_high * b_low)


def sum_twice(terms: Array, carry: Array) -> tuple[Array, Array]:
    """Sum over the last axis as an unevaluated pair, as if in twice the precision, plus a small carry."""
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        s, e = two_sum(terms[:, :half], terms[:, half : 2 * half])
        carry = carry + e.sum(axis=1)
        terms = np.column_stack([s, terms[:, 2 * half :]]) if terms.shape[1] % 2 else s
    total = terms[:, 0] if terms.shape[1] else np.zeros(terms.shape[0])
    high, low = two_sum(total, carry)
    return high, low


def cholesky_condition(H: Array) -> tuple[Array, float]:
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
