"""Support vectors on any kernel: the dual, its solver in native code, and what the solver's answer proves.

    minimize over f in the kernel's space, b     Σ φ_i(f(x_i) + b) + ½‖f‖²,     φ_i(f) = max over low ≤ β ≤ high of c_i(β) − βf

Every loss with two linear sides is such a φ: the hinge (lower = 1, low = 0, high = C for y = +1), the ε-insensitive loss
(lower = y − ε, upper = y + ε, −low = high = C). By the representer theorem f(x) = Σ β_j k(x_j, x), and the dual is

    minimize over β    ½ βᵀKβ − Σ c_i(β_i)      low ≤ β ≤ high,   Σβ = 0,    c_i(β) = lower_i β⁺ − upper_i β⁻

The ν forms have two groups of variables, each with a sum and an intercept of its own: the sum s of a group adds b·s to the
primal. The gap is a sum of one term for each variable, none of them negative, so the best b of a group is found exactly: the
term is piecewise linear in b.

`native/smo/` minimizes over large blocks of rows, with the kernel's rows in single precision where that is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import certifit._native.smo as _native
from certifit._types import Array, Matrix, is_sparse
from certifit.representation.kernels import RBF, Kernel, Linear, Polynomial, Precomputed

__all__ = ["Dual", "Evidence", "Gram", "judge", "solve"]

BLOCK = 512  # variables that are solved at a time
DENSE = 4  # a sparse X is made dense when that takes at most so many times its own memory
SINGLE_RBF = 1e3  # γ‖x − mean‖² up to which distances in single precision are good enough to start from
SINGLE = 1e12  # the same for products
SMALL = 128  # rows up to which a fit goes on beyond its tolerance
POLISH = 10  # rounds it may take for that
ROUNDING = 1e-12  # share of its range within which a variable is at a limit
FORMS = {Linear: 0, Polynomial: 1, RBF: 2}


@dataclass(frozen=True)
class Dual:
    """The terms of one dual problem, arrays of shape (groups, n), on some rows of the data."""

    rows: Array
    lower: Array
    upper: Array
    low: Array
    high: Array
    start: Array
    """A point within the bounds, whose sums by group are the sums that are kept."""


@dataclass(frozen=True)
class Evidence:
    """What a point β of the dual with its scores Kβ proves."""

    intercepts: Array
    """The best intercept of each group, given the scores."""
    primal: float
    """The objective at (Kβ, intercepts)."""
    dual: float
    """The value that no function can go below."""
    gap: float
    """Their difference, summed term by term so that nothing cancels."""


class Gram:
    """A kernel on rows of data, ready for native code: by its formula where native code knows it, by blocks otherwise."""

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.kernel = kernel
        self.features: tuple[Array, Array] | None = None
        self.single = False
        form = FORMS.get(type(kernel)) if kernel.positive else None
        if isinstance(kernel, Precomputed):
            self.prepared: Any = np.asarray(X, dtype=np.float64)
            self.n = int(self.prepared.shape[0])
            return
        self.n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
        if form is not None and _fits(X):
            self._by_formula(form, X)
        if self.features is None:
            self.prepared = kernel.prepare(X)

    def _by_formula(self, form: int, X: Matrix) -> None:
        rows = np.array(X.toarray() if is_sparse(X) else X, dtype=np.float64, order="C")
        kernel: Any = self.kernel
        with np.errstate(over="ignore", invalid="ignore"):
            if form == 2:
                rows -= rows.mean(axis=0)
            if form:
                rows *= np.sqrt(float(kernel.gamma))
            square = np.einsum("ij,ij->i", rows, rows)
        largest = float(square.max(initial=0.0))
        if not np.isfinite(4.0 * largest):
            return
        with np.errstate(over="ignore"):
            if form == 1 and not np.isfinite(np.float64(largest + float(kernel.offset)) ** int(kernel.degree)):
                return
        self.form, self.features = form, (rows, square)
        self.offset, self.degree = (float(kernel.offset), int(kernel.degree)) if form == 1 else (0.0, 1)
        if form == 2:
            self.single = largest <= SINGLE_RBF
        else:
            power = (largest + self.offset) ** self.degree if form == 1 and largest < SINGLE else largest
            self.single = 1.0 / SINGLE <= power <= SINGLE

    def rows(self, numbers: Array) -> Array:
        """K[numbers, :] in double precision."""
        if isinstance(self.kernel, Precomputed):
            return np.ascontiguousarray(self.prepared[numbers])
        with np.errstate(over="ignore", invalid="ignore"):
            found = np.ascontiguousarray(self.kernel.block(self.kernel.take(self.prepared, numbers), self.prepared))
        if not np.isfinite(found).all():
            raise ValueError(f"the kernel {self.kernel} of these rows is not finite: scale X, or take another kernel.")
        return found

    def diagonal(self) -> Array:
        """k(x, x) of every row."""
        if isinstance(self.kernel, Precomputed):
            return np.ascontiguousarray(np.diagonal(self.prepared))
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(self.kernel.own(self.prepared), dtype=np.float64)

    def largest(self) -> float:
        """The largest k(x, x)."""
        if self.features is None:
            return float(self.diagonal().max(initial=0.0))
        square = float(self.features[1].max(initial=0.0))
        return 1.0 if self.form == 2 else (square + self.offset) ** self.degree

    def part(self, rows: Array) -> Gram:
        """The same kernel on some rows."""
        out = Gram.__new__(Gram)
        out.kernel, out.features, out.single, out.n = self.kernel, None, False, int(rows.shape[0])
        taken = self.prepared[np.ix_(rows, rows)] if isinstance(self.kernel, Precomputed) else None
        out.prepared = self.kernel.take(self.prepared, rows) if taken is None else taken
        return out


def solve(
    gram: Gram,
    duals: Sequence[Dual],
    targets: Array,
    *,
    megabytes: float,
    max_rounds: int,
    threads: int,
    each: Callable[[int], Any] = lambda _: None,
) -> list[tuple[Array, Array, int, float]]:
    """Minimize several dual problems on the rows of one kernel.

    Parameters
    ----------
    gram : Gram
    duals : sequence of Dual
    targets : array
        The duality gap each of them stops at.
    megabytes : float
        Memory for rows of the kernel matrix.
    max_rounds : int
        Most blocks that are solved in each problem; −1 for no limit.
    threads : int
        The result does not depend on it.
    each : callable
        Told the number of problems that are solved, where they are solved one after another.

    Returns
    -------
    list of (beta, scores, rounds, gap)
        β of shape (groups, n), and the scores Kβ of shape (n,).
    """
    found = _minimized(gram, duals, [dual.start for dual in duals], targets, megabytes, max_rounds, threads, each)
    if max_rounds < 0 and all(dual.rows.shape[0] <= SMALL for dual in duals):
        # So few rows cost nothing: until nothing moves, so that rounding of the data does not show in the answer.
        again = _minimized(gram, duals, [one[0] for one in found], 1e-10 * targets, megabytes, POLISH, threads, each)
        found = [
            (beta, scores, rounds + first[2], gap)
            for (beta, scores, rounds, gap), first in zip(again, found, strict=True)
        ]
    for dual, (beta, *_) in zip(duals, found, strict=True):
        # What exchanges leave of a variable that should be at a limit is rounding of sums, not a multiplier.
        near = ROUNDING * (dual.high - dual.low)
        beta[np.abs(beta) <= near] = 0.0
        np.copyto(beta, dual.high, where=dual.high - beta <= near)
        np.copyto(beta, dual.low, where=beta - dual.low <= near)
    return found


def _minimized(
    gram: Gram,
    duals: Sequence[Dual],
    starts: Sequence[Array],
    targets: Array,
    megabytes: float,
    max_rounds: int,
    threads: int,
    each: Callable[[int], Any],
) -> list[tuple[Array, Array, int, float]]:
    """One call of native code, or one for each problem where the kernel is Python's."""
    beta = [np.array(start, dtype=np.float64, order="C") for start in starts]
    g = [np.zeros(dual.rows.shape[0]) for dual in duals]
    tasks = [
        _native.Task(
            np.ascontiguousarray(dual.rows, dtype=np.int64),
            *(np.ascontiguousarray(v, dtype=np.float64) for v in (dual.lower, dual.upper, dual.low, dual.high)),
            b,
            scores,
        )
        for dual, b, scores in zip(duals, beta, g, strict=True)
    ]
    bytes_ = megabytes * 2.0**20
    goals = np.ascontiguousarray(targets, dtype=np.float64)
    if gram.features is not None:
        rows, square = gram.features
        found = _native.solve_features(
            rows,
            square,
            gram.form,
            gram.offset,
            gram.degree,
            tasks,
            goals,
            bytes_,
            max_rounds,
            BLOCK,
            gram.single,
            threads,
        )
    else:
        found = []
        for k, dual in enumerate(duals):
            whole = dual.rows.shape[0] == gram.n and bool((dual.rows == np.arange(gram.n)).all())
            part = gram if whole else gram.part(dual.rows)
            own = _native.Task(
                np.arange(part.n),
                *(np.ascontiguousarray(v, dtype=np.float64) for v in (dual.lower, dual.upper, dual.low, dual.high)),
                beta[k],
                g[k],
            )
            found.append(
                _native.solve_rows(part.rows, part.diagonal(), own, float(goals[k]), bytes_, max_rounds, BLOCK, threads)
            )
            each(k + 1)
    return [(b, scores, int(rounds), float(gap)) for b, scores, (rounds, _, gap) in zip(beta, g, found, strict=True)]


def judge(dual: Dual, beta: Array, scores: Array) -> Evidence:
    """The best intercepts for the scores, and the gap they leave."""
    energy = float(beta.sum(axis=0) @ scores)
    primal, gained, gap = 0.5 * energy, 0.0, 0.0
    intercepts = []
    for lower, upper, low, high, b, start in zip(
        dual.lower, dual.upper, dual.low, dual.high, beta, dual.start, strict=True
    ):
        total = float(start.sum())
        intercept = _best_intercept(lower - scores, upper - scores, low, high, total)
        f = scores + intercept
        loss = np.maximum(np.maximum(high * (lower - f), low * (upper - f)), 0.0)
        slope = np.where(b >= 0, lower, upper)
        gap += float((loss - b * (slope - f)).sum())
        primal += float(loss.sum()) + intercept * total
        gained += float(b @ slope)
        intercepts.append(intercept)
    return Evidence(np.array(intercepts), primal, gained - 0.5 * energy, max(gap, 0.0))


def _best_intercept(lower: Array, upper: Array, low: Array, high: Array, total: float) -> float:
    """The minimum over b of Σ max(0, high·(lower − b), low·(upper − b)) + b·total; of several the middle.

    The slope starts at total − Σhigh and rises by `high` where b passes `lower`, by −`low` where it passes `upper`.
    """
    rising, falling = high > 0, low < 0
    at = np.concatenate([lower[rising], upper[falling]])
    by = np.concatenate([high[rising], -low[falling]])
    if not at.size:
        return 0.0
    order = np.argsort(at, kind="stable")
    at, by = at[order], by[order]
    slope = total - float(high[rising].sum()) + np.cumsum(by)
    rounding = 1e-12 * float(by.sum())
    last = at.shape[0] - 1
    first = min(int(np.searchsorted(slope, -rounding, side="left")), last)
    end = min(int(np.searchsorted(slope, rounding, side="right")), last)
    return float(0.5 * (at[first] + at[end]))


def _fits(X: Any) -> bool:
    """Whether X may be made a dense matrix of doubles."""
    if not is_sparse(X):
        return True
    dense, own = X.shape[0] * X.shape[1] * 8, max(X.nnz, 1) * 12
    return bool(dense <= max(DENSE * own, 1 << 24))
