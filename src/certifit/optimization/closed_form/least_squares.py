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

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from certifit._types import Array, Matrix, is_sparse
from certifit.optimization.closed_form.factorizations import (
    CholeskyFactor,
    DualCholesky,
    IterativeLSMR,
    LeastNorm,
    factorize,
)
from certifit.optimization.closed_form.few_columns import FewColumns, solve_few
from certifit.optimization.closed_form.normal_equations import (
    EPS,
    LARGEST_EXACT,
    MOST_STEPS,
    TRUSTED,
    NormalEquations,
    about_constant,
    most_lost,
)
from certifit.optimization.closed_form.orthogonal import Factor, RowSpace, SingularValues, orthogonal
from certifit.representation.design.design import Partitioned
from certifit.threads import n_threads

__all__ = [
    "ClosedForm",
    "NormalInverse",
    "normal_inverse",
    "solve_least_squares",
    "solve_targets",
]


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
        ``"cholesky"``, ``"cholesky (mixed precision)"``, ``"dual cholesky"``, ``"least norm"``, ``"svd"`` (of
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
    >>> from certifit.optimization.closed_form.least_squares import solve_least_squares
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
    X: Matrix,
    y: Array,
    p: Array,
    *,
    l2: Array,
    fit_intercept: bool,
    keep_inverse: bool = False,
    threads: int | None = None,
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
    threads : int, optional
        Threads for the passes over a tall X; None takes what the process is granted.

    Returns
    -------
    ClosedForm
        Coefficients, intercept and evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form.least_squares import solve_least_squares
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> solve_least_squares(X, y, np.full(2, 0.5), l2=np.ones(1), fit_intercept=True).coef
    array([0.5])
    """
    (solution,) = solve_targets(X, y, p, l2=l2, fit_intercept=fit_intercept, keep_inverse=keep_inverse, threads=threads)
    return solution


def solve_targets(
    X: Matrix | Partitioned,
    y: Any,
    p: Any,
    *,
    l2: Array,
    fit_intercept: bool,
    keep_inverse: bool = False,
    threads: int | None = None,
) -> list[ClosedForm]:
    """The same for several targets, y of shape (n, K), that share one factorization, and for rows in several parts.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form.least_squares import solve_targets
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([[1.0, 2.0], [-1.0, 0.0]])
    >>> [fit.coef for fit in solve_targets(X, y, np.full(2, 0.5), l2=np.zeros(1), fit_intercept=True)]
    [array([1.]), array([1.])]
    """
    few = solve_few(
        X, y, p, l2=l2, fit_intercept=fit_intercept, threads=n_threads(None) if threads is None else threads
    )
    if few is not None:
        return [_of_few(few, keep_inverse)]
    if is_sparse(X):  # its products read a weight for each row
        p = np.ascontiguousarray(p)
    problem = NormalEquations(X, y, p, l2, fit_intercept, threads)
    with problem.threading():
        if not problem.sampled_sane():
            problem.rescale()
        factor, solutions = factorize(problem, double=keep_inverse), []
        for k in range(problem.moments.shape[0]):
            problem.turn(k)
            solution = _refined(problem, factor)
            rounding = 1e3 * EPS * (1.0 + problem.offset())  # a column far from zero has no better residual
            exact = isinstance(factor, (RowSpace, SingularValues, IterativeLSMR))
            if not (exact or solution.residual < max(TRUSTED, rounding)):
                # The condition was worse than its estimate, and the steps did not contract.
                problem.measure()
                factor = orthogonal(problem)
                solution = _refined(problem, factor)
            solutions.append(solution)
        if not keep_inverse:
            return solutions
        inverse = _inverse(problem, factor)
        return [replace(solution, inverse=inverse) for solution in solutions]


@dataclass(frozen=True)
class NormalInverse:
    """The inverse of the normal equations, from which covariances are made.

    Parameters
    ----------
    half : function
        F with FᵀF the inverse, for those who ask.
    mean : array of shape (d,)
        m = Σ p_i x_i, or zeros without intercept.
    rank : int
        Numerical rank.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form.least_squares import normal_inverse
    >>> normal_inverse(np.array([[0.0], [2.0]]), np.full(2, 0.5), np.zeros(1), True).matrix
    array([[1.]])
    """

    half: Callable[[], Array]
    mean: Array
    rank: int

    @cached_property
    def matrix(self) -> Array:
        """(Σ p_i (x_i − m)(x_i − m)ᵀ + diag(l2))⁻¹ of shape (d, d), or its pseudo-inverse."""
        half = self.half()
        return half.T @ half


def normal_inverse(X: Matrix, p: Array, l2: Array, fit_intercept: bool) -> NormalInverse:
    """The inverse of the normal equations without a target.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.optimization.closed_form.least_squares import normal_inverse
    >>> normal_inverse(np.array([[1.0], [3.0]]), np.full(2, 0.5), np.zeros(1), True).mean
    array([2.])
    """
    problem = NormalEquations(X, np.zeros(X.shape[0]), p, l2, fit_intercept)
    with problem.threading():
        if not problem.sampled_sane():
            problem.rescale()
        return _inverse(problem, factorize(problem, double=True))


def _of_few(found: FewColumns, keep_inverse: bool) -> ClosedForm:
    rank = int((found.unit > 0).sum())
    inverse = NormalInverse(found.half, found.mean, rank) if keep_inverse else None
    note = about_constant(rank, found.coef.shape[0])
    return ClosedForm(
        found.coef, found.intercept, rank, found.condition, found.residual, found.digits, "cholesky", note,
        found.objective, found.gap, inverse,
    )  # fmt: skip


def _inverse(problem: NormalEquations, factor: Factor) -> NormalInverse:
    unit = np.ones(problem.d) if problem.units is None else problem.units
    live = int((problem.spread > 0).sum())
    mean, rank, d = problem.mean * unit, min(factor.rank, live), problem.d
    if isinstance(factor, (CholeskyFactor, RowSpace, SingularValues)):
        # The factor is as large as what it makes, which takes as long as the factor did and may never be asked for.
        factor = factor.without_data()
        return NormalInverse(lambda: np.asarray(factor.half(np.eye(d)) / unit), mean, rank)
    half = (factor.whole_half() if isinstance(factor, LeastNorm) else factor.half(np.eye(d))) / unit
    return NormalInverse(lambda: half, mean, rank)


def _refined(problem: NormalEquations, factor: Factor) -> ClosedForm:
    """Steps with true gradients until they stop helping; then what is left is the evidence."""
    w = factor.start()
    b = problem.y_mean - float(problem.mean @ w)
    g, level, energy = problem.gradient(w, b, exact=False)
    exact = _worth_exact(problem, factor, w, energy)
    if exact:
        g, level, energy = problem.gradient(w, b, exact=True)
    best, previous, contraction = (np.inf, w, b, g, energy), np.inf, 1.0
    known = 1.0 if exact else factor.contraction
    large = not problem.sparse and problem.n * problem.d > 1_000_000
    step_size, scale = 0.0, problem.spread + np.sqrt(problem.l2)
    left = _Left(problem)
    size = left.of(g, level)
    for _ in range(MOST_STEPS):
        if size < best[0]:
            best = (size, w, b, g, energy)
        step = factor.again(w, b) if isinstance(factor, (IterativeLSMR, DualCholesky)) else factor.solve(g)
        length = _norm(scale * w)
        step_size = _norm(scale * step) / length if length > 0 else 0.0
        if np.isfinite(previous) and previous > 0:
            contraction = max(EPS, min(1.0, step_size / previous))
        elif known < 1e-3:
            contraction = known
        # Steps at the level of rounding, or that no longer shrink, only exchange one error for another. Where the equations
        # are well conditioned that level is lower, and an intercept far from the means wants the last digit.
        if step_size <= (EPS if exact or known < 1e-3 else 4.0 * EPS) or not step_size < 0.5 * previous or size == 0.0:
            break
        previous = step_size
        w = w + step
        b = b + level - float(problem.mean @ step) if problem.fit_intercept else 0.0
        if (large or known < 1e-3) and contraction < 1e-3 and step_size * contraction < EPS:
            # This step lands on rounding. Another pass over X would only confirm it: the evidence
            # of the point before the step, which is worse, is reported instead.
            best = (size, w, b, g, energy)
            step_size *= contraction
            break
        g, level, energy = problem.gradient(w, b, exact)
        size = left.of(g, level)
    if not exact or not size < 100.0 * best[0]:  # with exact sums the last step is the best, unless it failed
        size, w, b, g, energy = best
    return _evidence(problem, factor, w, b, g, energy, size, exact, step_size, contraction)


def _norm(x: Array) -> float:
    """‖x‖ of coefficients in ordinary units."""
    return float(np.sqrt((x * x).sum()))


class _Left:
    """What is left of the normal equations, relative to the norms of the columns and of y."""

    def __init__(self, problem: NormalEquations) -> None:
        scale = np.sqrt(problem.spread**2 + problem.l2)
        self.scale = np.where(scale > 0, scale, np.inf)  # a column that is zero asks for nothing
        self.y_norm = problem.y_norm

    def of(self, g: Array, level: float) -> float:
        """Of the negative gradient in w and in b."""
        if self.y_norm == 0.0:
            return 0.0 if not g.any() else float("inf")
        return max(float((np.abs(g) / self.scale).max(initial=0.0)), abs(level)) / self.y_norm


def _sensitivity(problem: NormalEquations, factor: Factor, w: Array, energy: float) -> float:
    """Relative change of w for a relative change of X and y: κ + κ²·‖r‖/‖D w‖, times the offset of means."""
    length = _norm(np.sqrt(problem.spread**2 + problem.l2) * w)
    lean = float(np.sqrt(max(energy, 0.0))) / length if length > 0 else 0.0
    kappa = factor.condition
    return kappa * (1.0 + problem.offset()) * (1.0 + kappa * min(lean, 1e16))


def _worth_exact(problem: NormalEquations, factor: Factor, w: Array, energy: float) -> bool:
    """Whether this is one of the problems that lose digits without exact sums."""
    if problem.sparse or problem.single or problem.n * problem.d > LARGEST_EXACT:
        return False
    return EPS * _sensitivity(problem, factor, w, energy) > most_lost(problem.n, problem.d, problem.l2)


def _evidence(
    problem: NormalEquations,
    factor: Factor,
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
            f"The {live} varying columns of X have rank {factor.rank}: the coefficients of minimum norm were chosen."
        )
    if live < problem.d:
        notes.append(about_constant(live, problem.d))
    if digits < 8.0:
        notes.append(
            f"The condition number {factor.condition:.1e} leaves about {digits:.0f} correct digits in the coefficients."
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
    if isinstance(factor, LeastNorm):
        gap = 0.5 * energy  # no objective is below zero
    else:
        gap = factor.gap(w, b) if isinstance(factor, DualCholesky) else _gap(problem, factor, g)
    if isinstance(factor, SingularValues):
        gap += 0.5 * _unseen(problem, factor, w, b, g, energy)
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


def _gap(problem: NormalEquations, factor: Factor, g: Array) -> float:
    if isinstance(factor, IterativeLSMR):
        # ½‖∇‖²/(smallest curvature): rigorous with a penalty, otherwise by LSMR's estimate of the condition.
        scaled = g / factor.D
        floor = float((problem.l2 / factor.D**2).min(initial=1.0))
        curvature = floor if floor > 0 else max(1.0 / factor.condition, EPS) ** 2
        return 0.5 * float(scaled @ scaled) / curvature
    if isinstance(factor, RowSpace):
        return 0.5 * factor.left(g)
    left = factor.left(g) if isinstance(factor, SingularValues) else 0.0
    return max(0.0, 0.5 * (float(g @ factor.solve(g)) + left))


def _unseen(problem: NormalEquations, factor: SingularValues, w: Array, b: float, g: Array, energy: float) -> float:
    """Twice what the directions that were cut off might gain, where the slope along them is more than rounding of X explains.

    Of equal or dependent columns as they were stored, nothing. But a row far larger than the others makes a direction small that
    the others know well.
    """
    V = factor.unseen
    if not V.shape[0] or problem.single or problem.n * problem.d > LARGEST_EXACT:
        return 0.0
    if problem.explained(V @ g, V, w, b).all():
        return 0.0
    slope = V @ problem.gradient(w, b, exact=True)[0]
    left = ~problem.explained(slope, V, w, b)
    V, slope = V[left], slope[left]
    most = energy + float(problem.l2 @ (w * w))
    if not (problem.l2 > 0).all():
        return most if slope.size else 0.0
    along = (slope @ (V * factor.D)) * factor.D / np.sqrt(problem.l2)  # the curvature is at least that of the penalty
    return min(most, float(along @ along))
