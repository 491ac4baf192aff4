"""The normal equations of weighted, penalized least squares, formed in blocks of rows without copying X.

Gram matrix and gradients in the precision that the data needs, with exact (doubled) sums where a problem is hard. All that is
asked of the data are sums over rows, so that the rows may lie in several parts; several targets share one factorization.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import blas

import certifit._native.products as _products
from certifit._types import Array, Matrix, is_sparse
from certifit.optimization.closed_form import sparse_rows
from certifit.optimization.closed_form.cholesky import cholesky_condition
from certifit.optimization.closed_form.magnitudes import power_of_two, sane
from certifit.optimization.closed_form.rows import HeldRows
from certifit.optimization.closed_form.twice import two_product, two_sum
from certifit.optimization.objective.fold import total
from certifit.representation.design.design import Partitioned, as_design
from certifit.representation.design.products import NARROW, at_entries, entry_columns, in_one_piece, same_places
from certifit.representation.design.rows import TINY, added_over_rows
from certifit.threads import n_threads, one_blas_thread

EPS = float(np.finfo(np.float64).eps)
GRAM_BYTES = 1 << 24  # a block of rows for a matrix product: large for BLAS, small for the cache
PASS_BYTES = 1 << 22  # a block that is read twice in a row, for a residual and then for a gradient
CACHE_BYTES = 1 << 18  # a block that several small steps read and write
TWICE_BYTES = 1 << 22  # a block that is copied before it is read
CHOLESKY_LIMIT = 1e11  # beyond this condition of H, steps from a Cholesky factor no longer contract surely
HAT_LIMIT = 1e6  # the same for leverages, which no refinement repairs
SINGLE_LIMIT = 1e4  # the same for a Gram matrix in single precision
LARGEST_DENSE = 3000  # a sparse X with at most this many columns (or rows) has a dense Gram matrix
LARGEST_EXACT = 20_000_000  # entries of X up to which a hard problem gets exact sums
MIXED = 200_000_000  # operations of a Gram matrix from which single precision may be worth its test
MOST_STEPS = 8
ROUNDED = 4.0  # by how many units in the last place the entries of X may be off: they were computed, too
ORDINARY = 1e9  # magnitudes of y, and their inverses, that need no unit of their own
SAMPLE = 1 << 14  # entries of a larger X that are
TRUSTED = 1e-9  # a larger residual of the normal equations calls for the orthogonal factorization
OFFSET = 10.0  # mean over deviation of a column from which the Gram matrix is formed of centered blocks
PIECE = 256  # rows of the sample at a time
WORTH = 12  # rows for each column from which the sample of `plan` is a small part of the work
TALL = 16  # rows for each column from which every thread has a Gram matrix of its own


class NormalEquations:
    """Data of one fit in units that cannot overflow, and the products that the factorizations need.

    Columns are divided by powers of two only when their squares would leave the range of the numbers. X may be `Partitioned`;
    then y and p are sequences with one array for each part. Of K targets, one is looked at at a time: see `turn`.
    """

    def __init__(
        self, X: Matrix | Partitioned, y: Any, p: Any, l2: Array, fit_intercept: bool, threads: int | None = None
    ) -> None:
        whole = not isinstance(X, Partitioned)
        parts = [(X, y, p)] if whole else [part for part in zip(X.parts, y, p, strict=True) if part[0].shape[0]]
        made = [np.atleast_2d(np.asarray(y, dtype=np.float64).T) for _, y, _ in parts]
        top = np.max([np.maximum(Y.max(axis=1, initial=0.0), -Y.min(axis=1, initial=0.0)) for Y in made], axis=0)
        ordinary = bool(((top == 0.0) | ((top > 1.0 / ORDINARY) & (top < ORDINARY))).all())
        self.y_units = np.array([1.0 if ordinary else power_of_two(float(t)) for t in top])
        targets = [
            (
                X,
                np.ascontiguousarray(Y if ordinary else Y / self.y_units[:, None]),
                np.ascontiguousarray(p, dtype=np.float64),
            )
            for (X, _, p), Y in zip(parts, made, strict=True)
        ]
        self.y_means = total(Y @ p for _, Y, p in targets) if fit_intercept else np.zeros(top.shape[0])
        self.parts = [HeldRows(X, Y, p, self.y_means) for X, Y, p in targets]
        self.fit_intercept = fit_intercept
        self.sparse = any(is_sparse(part.X) for part in self.parts)
        self.n, self.d = int(X.shape[0]), int(X.shape[1])
        self.threads = n_threads(None) if threads is None else threads
        self.l2 = np.asarray(l2, dtype=np.float64)
        self.single = X.dtype == np.float32
        self.units: Array | None = None
        self.mean = np.zeros(self.d)
        self.drift = np.zeros(self.d)  # what rounding of the mean leaves of the mean
        self.moments = np.zeros((top.shape[0], self.d))  # Aᵀb of each target
        self.spread = np.zeros(self.d)  # norms of the columns of A; zero for a constant column
        self._offset = 0.0
        self.k = -1
        self.turn(0)

    def turn(self, k: int) -> None:
        """Look at target k."""
        if k == self.k:
            return
        self.k, self.y_unit, self.y_mean = k, float(self.y_units[k]), float(self.y_means[k])
        self.y_norm = float(np.sqrt(total(part.squares(k) for part in self.parts)))

    @property
    def moment(self) -> Array:
        """Aᵀb of the present target."""
        return np.asarray(self.moments[self.k])

    @property
    def whole(self) -> bool:
        """Whether all rows are in one place, as factorizations of the size of n want them."""
        return len(self.parts) == 1

    @property
    def X(self) -> Matrix:  # noqa: N802 - the matrix of the rows in one place
        return self.parts[0].X

    @property
    def y(self) -> Array:
        return np.asarray(self.parts[0].Y[self.k])

    @property
    def p(self) -> Array:
        return self.parts[0].p

    @property
    def tall(self) -> bool:
        """Whether every thread can have a Gram matrix of its own, small beside X."""
        return not self.sparse and self.n >= TALL * self.d

    def threading(self) -> AbstractContextManager[None]:
        """Where whole passes over X are threaded, threads inside small products would only be in their way."""
        return one_blas_thread() if self.tall and self.n * self.d > TINY else nullcontext()

    @property
    def wide_and_penalized(self) -> bool:
        return bool(self.n < self.d and (self.l2 > 0).all() and self.whole)

    def _by_sums(self, dtype: type, shift: Array | None) -> bool:
        """Whether one pass over few columns gives all products.

        Of one target that is so near to zero that they may be centered after they were summed.
        """
        narrow = self.whole and not self.sparse and self.d <= NARROW and dtype is np.float64 and shift is None
        one = self.moments.shape[0] == 1 and abs(self.y_mean) <= self.y_norm
        return narrow and one and self.X.dtype == np.float64 and in_one_piece(self.X)

    def sampled_sane(self) -> bool:
        """Whether a sample of the rows has magnitudes whose squares and products are safe.

        What a sample misses shows in the diagonal of the Gram matrix; a small matrix is looked at as a whole.
        """
        if self.sparse:
            return all(sane(np.abs(part.X.data)) for part in self.parts)
        if self.n * self.d <= TINY:
            return all(sane(np.abs(part.X)) for part in self.parts)
        return sane(np.abs(self._sample(max(16, min(256, SAMPLE // self.d)))))

    def rescale(self) -> None:
        """Copy X with columns divided by powers of two, if any column needs it."""
        top = np.max([as_design(part.X).largest() for part in self.parts], axis=0)
        if sane(top):
            return
        units = np.array([power_of_two(t) for t in top])
        self.units = units
        none = np.zeros(self.d)
        self.parts = [replace(part, X=as_design(part.X).rescaled(none, units)) for part in self.parts]
        self.single = False
        with np.errstate(over="ignore"):
            self.l2 = np.minimum(self.l2 / units / units, 1e250)

    def _sample(self, rows: int) -> Array:
        step = max(1, self.n // rows)
        taken = [np.asarray(part.X[::step], dtype=np.float64) for part in self.parts]
        return (taken[0] if self.whole else np.concatenate(taken))[:rows]

    def steps(self, size: int, first: int, last: int) -> Iterator[slice]:
        """Slices of some rows, of about `size` bytes each."""
        width = self.d * (4 if self.single else 8)
        step = max(16, size // max(width, 1))
        step = min(step, max(1024, self.n // 8))  # buffers stay small beside X itself
        for start in range(first, last, step):
            yield slice(start, min(start + step, last))

    def blocks(self, size: int) -> Iterator[tuple[HeldRows, slice]]:
        """All rows, in slices of their parts."""
        for part in self.parts:
            for rows in self.steps(size, 0, part.n):
                yield part, rows

    def rows(self, size: int = GRAM_BYTES) -> Iterator[tuple[Array, Array]]:
        """Blocks of A, the centered and weighted design, and of the weighted targets; constant columns are exact zeros."""
        inert = self.spread == 0.0
        for part, rows in self.blocks(size):
            A = part.block(rows) - self.mean
            A -= self.drift
            root = np.sqrt(part.p[rows])
            A *= root[:, None]
            A[:, inert] = 0.0
            yield A, root * (part.Y[:, rows] - self.y_means[:, None])

    def center_again(self) -> None:
        """Remove from A what rounding of the means left: it would pass for another direction of X."""
        if self.fit_intercept:
            self.drift = np.zeros(self.d)
            for part, rows in self.blocks(PASS_BYTES):
                self.drift += part.p[rows] @ (part.block(rows) - self.mean)

    def measure(self) -> None:
        """Means, spreads and moments in two passes, without a Gram matrix."""
        if self.sparse:
            self.mean = total(part.T @ part.p for part in self.parts) if self.fit_intercept else np.zeros(self.d)
            self.moments = np.stack([total(part.T @ row for part, row in rows) for rows in self._rows_of_targets()])
            second = total(self._sparse_second(part) for part in self.parts)
        else:
            if self.whole and self.plain_rows():
                return self._measure_in_passes()
            self.mean = np.zeros(self.d)
            if self.fit_intercept:
                for part, rows in self.blocks(PASS_BYTES):
                    self.mean += part.p[rows] @ part.block(rows)
            second, self.moments = np.zeros(self.d), np.zeros_like(self.moments)
            for part, rows in self.blocks(CACHE_BYTES):
                A = part.block(rows) - self.mean
                self.moments += part.centered[:, rows] @ A
                A *= A
                second += part.p[rows] @ A
        self._set_spread(second)

    def plain_rows(self) -> bool:
        """Whether native passes can read X, and all rows weigh the same."""
        return not self.sparse and in_one_piece(self.X) and bool((self.p == self.p[0]).all())

    def _measure_in_passes(self) -> None:
        part = self.parts[0]
        mean, squares = _products.moments(part.X, 1)
        second = squares / part.n
        if self.fit_intercept:
            self.mean = mean
        else:
            self.mean, second = np.zeros(self.d), second + mean * mean
        moments = _products.pullback(part.X, np.ascontiguousarray(part.centered), self.threads)
        self.moments = moments - np.outer(part.centered.sum(axis=1), self.mean)
        self._set_spread(second)

    def _rows_of_targets(self) -> Iterator[list[tuple[HeldRows, Array]]]:
        """The weighted, centered targets one by one, in their parts."""
        for k in range(self.y_means.shape[0]):
            yield [(part, part.p * (part.Y[k] - self.y_means[k])) for part in self.parts]

    def _sparse_second(self, part: HeldRows) -> Array:
        """Σ p (x − m)², without making zeros of X anything else."""
        apart = self.mean[entry_columns(part.X)]
        np.subtract(part.X.data, apart, out=apart)
        apart *= apart
        places = same_places(part.X, apart).T
        second = places @ part.p
        apart.fill(1.0)
        absent = np.maximum(float(part.p.sum()) - places @ part.p, 0.0)
        return np.asarray(second + absent * self.mean**2)

    def _checked_second(self, second: Array, dtype: type) -> Array:
        """Second moments around the mean; those that the correction by the mean spoiled are computed anew."""
        lost = float(np.sqrt(np.finfo(dtype).eps)) if self.fit_intercept else 0.0
        spoiled = np.flatnonzero(second <= lost * self.mean**2)
        if spoiled.size:
            center = self.mean[spoiled]
            second[spoiled] = total(part.p @ (part.columns(spoiled) - center) ** 2 for part in self.parts)
        return second

    def _set_spread(self, second: Array) -> None:
        """A column is constant when it is, or when its deviation is what rounding the mean leaves."""
        second = np.maximum(second, 0.0)
        constant = second <= (16.0 * EPS * self.mean) ** 2
        for j in np.flatnonzero(~constant & (second <= (1e3 * EPS * self.mean) ** 2)):
            columns = [part.columns(np.array([j])) for part in self.parts]
            constant[j] = all(bool((column == columns[0][0]).all()) for column in columns)
        self.spread = np.where(constant, 0.0, np.sqrt(second))
        self.moments = np.where(constant, 0.0, self.moments)
        live = self.spread > 0
        self._offset = float((np.abs(self.mean[live]) / self.spread[live]).max(initial=0.0))

    def offset(self) -> float:
        """Largest ratio of mean to deviation of a column that is not constant."""
        return self._offset

    # -- Gram matrix -------------------------------------------------------------------------------------

    def plan(self) -> tuple[type, Array | None]:
        """Precision of the Gram matrix, and the shift of its blocks, from a sample of the rows."""
        if self.sparse or self.n * self.d * self.d < MIXED:
            return (np.float32 if self.single and not self.sparse else np.float64), None
        # Only where X is far longer than the sample does single precision save more than its test costs.
        tested = not self.single and self.n >= WORTH * self.d
        sample = self._sample(4 * self.d if tested else 256)
        center = sample.mean(axis=0) if self.fit_intercept else np.zeros(self.d)
        pieces = [slice(k, k + PIECE) for k in range(0, sample.shape[0], PIECE)]  # the sample itself is no copy of X
        squares = sum(((sample[rows] - center) ** 2).sum(axis=0) for rows in pieces)
        deviation = np.sqrt(np.maximum(squares / sample.shape[0], 0.0))
        live = deviation > 1e3 * EPS * np.abs(center)
        far = live & (np.abs(center) > OFFSET * deviation)
        shift = np.where(far, center, 0.0) if far.any() else None
        if not tested:
            return (np.float32 if self.single else np.float64), shift
        H = np.diag(self.l2[live] / deviation[live] ** 2)
        for rows in pieces:
            with np.errstate(invalid="ignore", divide="ignore"):
                scaled = (sample[rows] - center)[:, live] / deviation[live]
            H += scaled.T @ scaled / sample.shape[0]
        unit = 1.0 / np.sqrt(H.diagonal())
        _, condition = cholesky_condition(H * unit * unit[:, None])
        safe = deviation[live].min(initial=1.0) > 1e-15 and deviation[live].max(initial=1.0) < 1e15
        easy = safe and condition < SINGLE_LIMIT  # a sample exaggerates the condition
        return (np.float32 if easy else np.float64), shift

    def gram(self, dtype: type, shift: Array | None) -> Array | None:
        """AᵀA in float64, with mean, spread and moments on the way; None if it left the safe range."""
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below
            make = self._sparse_gram if self.sparse else self._dense_gram
            made = [make(part, dtype, shift) for part in self.parts]
            product, sums = (total(part[k] for part in made) for k in range(2))
        if not all(sane(np.sqrt(np.abs(product.diagonal())), allow_zero=False, columns=part.X) for part in self.parts):
            return None
        around = np.zeros(self.d) if shift is None else shift
        if self.fit_intercept:
            self.mean, rest = sums[0], sums[0] - around
            blas.dger(-1.0, rest, rest, a=product.T, overwrite_a=1)  # AᵀA = Σ p (x−c)(x−c)ᵀ − (m−c)(m−c)ᵀ
        else:
            self.mean = np.zeros(self.d)
        self.moments = sums[1:]
        if not self._by_sums(dtype, shift):
            left = total(part.centered.sum(axis=1) for part in self.parts)
            self.moments = self.moments - np.outer(left, self.mean)
        self._set_spread(self._checked_second(product.diagonal().copy(), dtype))
        return product

    def _sparse_gram(self, part: HeldRows, dtype: type, shift: Array | None) -> tuple[Array, Array]:
        product = sparse_rows.gram(part.X, part.p, self.threads)
        if product is None:
            weighted = same_places(part.X, part.X.data * at_entries(part.X, part.p))
            product = np.asarray((part.T @ weighted).toarray(), dtype=np.float64)
        return product, sparse_rows.pullback(part.X, part.sums, self.threads)

    def _dense_gram(self, part: HeldRows, dtype: type, shift: Array | None) -> tuple[Array, Array]:
        """Σ p (x − c)(x − c)ᵀ, and the sums of x by p and by the weighted targets."""
        X, p = part.X, part.p
        if self.d <= NARROW and dtype is np.float64 and shift is None and in_one_piece(X):
            if self._by_sums(dtype, shift):
                found = _products.sums(X, part.Y[0], p, self.threads)
                level = found[-1, 0] / found[0, 0] if self.fit_intercept else 0.0
                return found[1:-1, 1:-1].copy(), np.stack([found[0, 1:-1], found[-1, 1:-1] - level * found[0, 1:-1]])
            return _products.gram(X, p, False, self.threads), _products.pullback(X, part.sums, self.threads)
        target = part.sums
        level = bool((p == p[0]).all())
        plain = level and shift is None and X.dtype == dtype  # the product reads X itself
        root = None if level else np.sqrt(p)

        def part_of(chunk: slice, size: int) -> tuple[Array, Array]:
            product, both = np.empty((0, 0)), np.zeros((target.shape[0], self.d))
            buffer: Array = np.empty((0, self.d), dtype=dtype)
            for rows in self.steps(size, chunk.start, chunk.stop):
                block = X[rows]
                both += target[:, rows] @ (block.astype(np.float64) if self.single else block)
                if plain:
                    product = added(product, block)
                    continue
                if buffer.shape[0] == 0:
                    along = X.strides[0] <= X.strides[1]  # the buffer has the order of X
                    buffer = np.empty((block.shape[0], self.d), dtype=dtype, order="F" if along else "C")
                work = buffer[: block.shape[0]]
                if shift is not None:
                    np.subtract(block, shift, out=work, casting="same_kind")
                elif level:
                    np.copyto(work, block, casting="same_kind")
                if root is not None:
                    np.multiply(block if shift is None else work, root[rows, None], out=work, casting="same_kind")
                product = added(product, work)
            return product, both

        def added(product: Array, block: Array) -> Array:
            if not product.size:  # sums of blocks in single precision are not
                return np.asarray(block.T @ block, dtype=np.float64)
            product += block.T @ block
            return product

        if self.tall:
            # Threads that each take whole blocks through copy and product wait for each other once, not at every block.
            product, both = added_over_rows(lambda chunk: part_of(chunk, PASS_BYTES), part.n, self.d, self.threads)
        else:
            product, both = part_of(slice(0, part.n), GRAM_BYTES)
        if level:
            product *= p[0]
        return product, both

    # -- gradient ----------------------------------------------------------------------------------------

    def gradient(self, w: Array, b: float, exact: bool) -> tuple[Array, float, float]:
        """−∇ in w (centered) and in b, and Σ p r² at (w, b)."""
        if exact:
            return self._exact_gradient(w, b)
        found = total(self._residual(part, w, b) for part in self.parts)
        g, level, energy = found[:-2], float(found[-2]), float(found[-1])
        if not self.fit_intercept:
            level = 0.0
        g -= self.mean * level
        return np.where(self.spread > 0, g, 0.0) - self.l2 * w, level, energy

    def _residual(self, part: HeldRows, w: Array, b: float) -> Array:
        """Σ p r x, Σ p r and Σ p r² of the residuals r of one part."""
        y = part.Y[self.k]
        if self.sparse:
            return sparse_rows.residual(part.X, y, part.p, w, b, self.threads)
        found = np.zeros(self.d + 2)
        for rows in [slice(0, part.n)] if in_one_piece(part.X) else self.steps(PASS_BYTES, 0, part.n):
            block = part.X[rows] if in_one_piece(part.X[rows]) else np.ascontiguousarray(part.X[rows])
            found += _products.residual(block, y[rows], part.p[rows], w, b, self.threads)
        return found

    def _readable(self, part: HeldRows) -> bool:
        """Whether native passes in double precision can read X as it is."""
        return in_one_piece(part.X) and part.X.dtype == np.float64

    def _pieces(self) -> Iterator[tuple[HeldRows, slice]]:
        """All rows: at once where they can be read as they are."""
        for part in self.parts:
            steps = [slice(0, part.n)] if self._readable(part) else self.steps(TWICE_BYTES, 0, part.n)
            for rows in steps:
                yield part, rows

    def explained(self, slope: Array, V: Array, w: Array, b: float) -> Array:
        """Which of the slopes along the rows of V rounding of the entries of X may have made: up to Σ p |r x| of its units."""
        found = np.zeros(self.d)
        for part, rows in self.blocks(TWICE_BYTES):
            block = part.block(rows)
            found += np.abs(part.p[rows] * (part.Y[self.k, rows] - b - block @ w)) @ np.abs(block)
            small = np.abs(slope) <= ROUNDED * EPS * (np.abs(V) @ found)
            if small.all():  # as the first rows say already
                break
        return small

    def _exact_gradient(self, w: Array, b: float) -> tuple[Array, float, float]:
        """The same with residuals, products and sums in twice the working precision."""
        high, low = np.zeros(self.d), np.zeros(self.d)
        level, level_low, energy = np.zeros(1), np.zeros(1), 0.0
        for part, rows in self._pieces():
            block = part.X if self._readable(part) else np.ascontiguousarray(part.block(rows))
            y, p = part.Y[self.k, rows], part.p[rows]
            found = _products.residual_twice(block, y, p, w, float(b), self.threads)
            high, slip = two_sum(high, found[: self.d])
            low = low + (slip + found[self.d : 2 * self.d])
            level, slip = two_sum(level, found[-3:-2])
            level_low = level_low + (slip + found[-2:-1])
            energy += float(found[-1])
        level, level_low = two_sum(level, level_low)  # where terms cancel, the rest is what is left
        if self.fit_intercept:
            term, slip = two_product(self.mean, level)
            high, carry = two_sum(high, -term)
            low = low + (carry - slip - self.mean * level_low)
        term, slip = two_product(self.l2, w)
        high = np.where(self.spread > 0, high, 0.0)
        low = np.where(self.spread > 0, low, 0.0)
        high, carry = two_sum(high, -term)
        return high + (low + (carry - slip)), float(level[0]) if self.fit_intercept else 0.0, energy


def most_lost(n: int, d: int, l2: Array) -> float:
    """The relative change of the coefficients by rounding up to which exact sums are not worth the ten plain ones they cost."""
    if n * d <= 2_000:  # with a penalty the digits of the data are not the last word
        return 1e-12 if (l2 > 0).all() else 1e-13
    return 1e-10


def about_constant(live: int, d: int) -> str:
    """What is said of columns that do not vary, if there are any."""
    return f"{d - live} of {d} columns are constant and have coefficient 0." if live < d else ""
