"""The solvers of piecewise linear losses, as the dispatcher calls them.

    minimize over w, b    Σ p_i ℓ_i(x_i·w + b) + R(w),      ℓ_i(f) = high_i·max(f − upper_i, 0) + low_i·max(lower_i − f, 0)

interior point      any elastic-net penalty, box or ball; a small problem with an L2 penalty is polished onto the kinks; of
                    many more rows than columns only those near a kink are asked. Where it gives up, "auto" tries the next two
Newton              the method of multipliers, for tall dense X with an L2 penalty; the interior point for more digits
dual descent        one row after the other, for sparse and wide X with an L2 penalty; for others as long as it is cheaper
Pegasos             stochastic subgradient steps for the hinge loss, by name only

Every one returns its dual point θ, the slope of each loss: `Solution.dual`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.optimization.dual.hinge import best_intercept, hinge_dual
from certifit.optimization.interior_point.ridge import MOST_COLUMNS, solve_ridge
from certifit.optimization.interior_point.sequential import sequential
from certifit.optimization.interior_point.solve import InteriorPointResult, solve_polyhedral
from certifit.optimization.newton.kinked import ROWS_PER_COLUMN, SMALLEST_SAMPLE, Kinks, polish, solve_newton
from certifit.optimization.objective.costs import epochs_before, is_tall
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.progress import Progress
from certifit.threads import one_blas_thread

__all__ = [
    "DualDescent",
    "choose_kinked",
    "instead",
    "interior_point",
    "kinked_newton",
    "rows_in_turn",
    "sequence",
    "strong",
]

SMALL = 1 << 20  # entries of X up to which a fit is polished, and a sparse X is made dense
INTERIOR_WORK = 2e10  # n·d·min(n, d) up to which second-order methods beat dual coordinate descent
DIGITS = 1e-9  # of the scale: for a gap of less, nearly every row must be known to lie beyond its kinks
INSTEAD = 300  # iterations of other methods where the interior point gave up
HINGED = 24  # columns of tall dense rows with one kink each from which Newton, that merges them, is the faster way
ORDINARY = (1e-30, 1e30)  # strengths of an L2 penalty beside which squares of ordinary columns do not vanish


def strong(problem: Problem) -> Array | None:
    """The strengths l2 of R(w) = ½ Σ l2_j w_j², if all are positive: what the dual methods divide by."""
    return problem.regularizer.smooth() if problem.regularizer.strictly_convex else None


def choose_kinked(problem: Problem) -> str:
    """Which solver ``"auto"`` stands for when the loss is piecewise linear and the penalty an elastic net."""
    n, d = problem.shape
    if not _ordinary(problem):
        return "interior_point"
    if is_tall(n, d) and not (problem.dense and d > HINGED and _one_sided(problem)):
        return "interior_point"
    if is_sparse(problem.X) and n * d > SMALL:
        return "dual"
    if n >= 3 * max(SMALLEST_SAMPLE, ROWS_PER_COLUMN * d):
        return "newton"
    return "interior_point" if float(n) * d * min(n, d) <= INTERIOR_WORK else "dual"


def _one_sided(problem: Problem) -> bool:
    """Whether every row has its slope on one side of its kink only, as a margin has."""
    terms = _terms(problem)
    return not ((np.asarray(terms.slope_low) > 0.0) & (np.asarray(terms.slope_high) > 0.0)).any()


def _ordinary(problem: Problem) -> bool:
    """Whether the dual methods may be used: only the interior point rescales by itself, the others would see penalties that
    vanish or explode.
    """
    l2 = strong(problem)
    return l2 is not None and ORDINARY[0] < float(l2.min(initial=1.0)) and float(l2.max(initial=1.0)) < ORDINARY[1]


def rows_in_turn(problem: Problem, other: str, tol: float) -> int:
    """How many epochs of dual descent are worth a try before another method; 0 for none."""
    if problem.loss.smooth or other not in ("interior_point", "newton"):
        return 0
    if not (problem.in_memory and problem.hinge_terms is not None and _ordinary(problem)):
        return 0
    l2, X, (n, d) = strong(problem), problem.X, problem.shape
    assert l2 is not None
    alpha = float(l2.max(initial=0.0))
    if (l2 != alpha).any():  # the value at coefficients of columns that were rescaled is not known
        return 0
    squares = (
        float(np.sum(np.square(X.data, dtype=np.float64)))
        if is_sparse(X)
        else float(np.einsum("ij,ij->", X, X, dtype=np.float64))
    )
    crowding = squares / (alpha * float(n) ** 2)
    return epochs_before(other, n, d, int(X.nnz) if is_sparse(X) else None, crowding, tol / max(problem.scale, 1e-300))


def _terms(problem: Problem) -> TwoSidedHinge:
    terms = problem.hinge_terms
    assert terms is not None  # the dispatcher sends no other loss here
    return terms


def interior_point(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """Some 25 iterations of O(n d²), to any precision."""
    parts, l2 = problem.regularizer.elastic(), strong(problem)
    assert parts is not None
    X, (n, d) = problem.X, problem.shape
    if l2 is not None and is_tall(n, d) and _ordinary(problem) and tol > DIGITS * problem.scale:
        near = _by_ridge(problem, X, l2, tol, max_iter, tall=True)
        if near is not None:
            return Solution(
                near.coef,
                near.intercept,
                near.iterations,
                "interior_point",
                near.bound,
                near.objective,
                dual=near.theta,
            )
    # A small problem with one solution costs nothing to solve to the last digits, and then does not depend on the order
    # of its rows.
    small = l2 is not None and n * d <= SMALL
    if small and is_sparse(X):
        X = X.toarray()
    wanted = min(tol, 1e-10 * problem.scale) if small else tol
    found = _in_one_call(problem, X, l2, wanted, max_iter) if small and l2 is not None else None
    if found is None:
        found = _solve(problem, X, parts[0], parts[1], wanted, max_iter)
    if found.gap > tol and l2 is not None and 0.5 * float(l2 @ (found.coef * found.coef)) <= 1e-3 * tol:
        # A penalty so weak that it does not show divides rounding errors by almost nothing; without it the optimum is lower,
        # so that its bound holds, and by less than can be seen.
        weaker = _solve(problem, X, parts[0], np.zeros(d), wanted, max_iter)
        found = weaker if weaker.gap < found.gap else found
    w, b, objective = found.coef, found.intercept, found.objective if found.exact else np.nan
    if small and not found.exact and l2 is not None and np.isfinite(found.objective) and np.isfinite(w).all():
        w, b, objective = _polished(problem, np.asarray(X, dtype=np.float64), w, b, found.theta, l2)
    note = "" if found.gap <= tol or found.status == "optimal" else found.message
    return Solution(
        w, b, found.iterations, "interior_point", found.bound, objective, note=note, dual=found.theta
    )  # fmt: skip


def _in_one_call(problem: Problem, X: Array, l2: Array, tol: float, max_iter: int) -> InteriorPointResult | None:
    """By native code alone, where there are few columns."""
    return _by_ridge(problem, X, l2, tol, max_iter) if 0 < problem.shape[1] <= MOST_COLUMNS else None


def _by_ridge(
    problem: Problem, X: Matrix, l2: Array, tol: float, max_iter: int, *, tall: bool = False
) -> InteriorPointResult | None:
    return solve_ridge(
        X,
        _terms(problem),
        problem.p,
        l2,
        fit_intercept=problem.fit_intercept,
        tol=tol,
        scale=problem.scale,
        max_iter=max_iter,
        threads=problem.threads,
        tall=tall,
    )


def _solve(problem: Problem, X: Matrix, l1: Array, l2: Array, tol: float, max_iter: int) -> InteriorPointResult:
    return solve_polyhedral(
        X,
        _terms(problem),
        problem.p,
        l1=l1,
        l2=l2,
        fit_intercept=problem.fit_intercept,
        tol=tol,
        max_iter=max_iter,
        threads=problem.threads,
        **problem.regularizer.program_set(),
    )


def _polished(problem: Problem, A: Array, w: Array, b: float, theta: Array, l2: Array) -> tuple[Array, float, float]:
    """The best of the given point, the point on the kinks, and its best intercept."""
    terms = _terms(problem)
    kinks = Kinks.of(terms, problem.p)

    def objective(w: Array, b: float) -> float:
        return kinks.value(A @ w + b) + 0.5 * float(l2 @ (w * w))

    best = objective(w, b)
    unit = max(problem.scale, 1e-300)
    fine, shift = polish(A, kinks, l2, w, b, theta, fit_intercept=problem.fit_intercept, unit=unit)
    rounding = 1e-13 * problem.scale
    if np.isfinite(fine).all() and objective(fine, shift) <= best + rounding:
        w, b, best = fine, shift, objective(fine, shift)
    if problem.fit_intercept:
        middle = best_intercept(terms, problem.p, A @ w)
        if objective(w, middle) <= best + rounding:
            b, best = middle, objective(w, middle)
    return w, b, best


def kinked_newton(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """Newton steps on the method of multipliers; where the ramp cannot get narrow enough, the interior point."""
    l2 = strong(problem)
    assert l2 is not None
    X = problem.X.toarray() if is_sparse(problem.X) else problem.X
    unit = max(problem.scale, 1e-300)
    # One thread: these products are too thin to share, and handing them around takes several times their own time.
    with one_blas_thread():
        found = solve_newton(
            X,
            Kinks.of(_terms(problem), problem.p),
            l2,
            fit_intercept=problem.fit_intercept,
            unit=unit,
            tol=tol,
            max_iter=max_iter,
            clock=clock,
            scale=unit,
        )
    if found.objective - found.bound > tol and found.iterations < max_iter:
        return interior_point(replace(problem, X=X), start, tol, max_iter, clock)
    return Solution(
        found.coef, found.intercept, found.iterations, "newton", found.bound, found.objective, dual=found.theta
    )


@dataclass(frozen=True)
class DualDescent:
    """Coordinate descent in the dual; `seed` is that of the order in which rows are visited."""

    seed: int = 0
    hopeful: bool = False
    """Whether to end when the rate of the last epochs says that `max_iter` will not be enough."""

    def __call__(self, problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
        """Visit the rows until the gap is closed."""
        l2 = strong(problem)
        assert l2 is not None
        alpha = float(l2.max(initial=0.0)) or 1.0
        X, unit = problem.X, None
        if (l2 != alpha).any():  # the kernel knows one penalty: columns of another size stand for another one
            unit = np.sqrt(alpha / np.maximum(l2, 1e-300))
            X = X @ sp.diags_array(unit) if is_sparse(X) else X * unit
        found = hinge_dual(
            X,
            _terms(problem),
            problem.p,
            alpha=alpha,
            fit_intercept=problem.fit_intercept,
            intercept=problem.constant,
            tol=tol,
            max_iter=max_iter,
            seed=self.seed,
            hopeful=self.hopeful,
        )
        coef, objective = (found.coef, found.objective) if unit is None else (found.coef * unit, np.nan)
        return Solution(
            coef, float(found.intercept), found.iterations, "dual", found.bound, objective, dual=found.theta
        )


def instead(problem: Problem, found: Solution, tol: float, max_iter: int, clock: Progress, seed: int) -> Solution:
    """What other methods find where the interior point gave up: a few rows that outweigh all others are nothing to them."""
    if found.solver != "interior_point" or not found.note or not _ordinary(problem):
        return found

    def gap(solution: Solution) -> float:
        return problem.objective(solution.coef, solution.intercept) - solution.bound

    few = min(max_iter, INSTEAD)
    start, least = (found.coef, found.intercept), gap(found)
    for method in (
        (kinked_newton, DualDescent(seed)) if problem.dense and is_tall(*problem.shape) else (DualDescent(seed),)
    ):
        other = method(problem, start, tol, few, clock)
        if not least <= gap(other):
            found, least = other, gap(other)
        if least <= tol:
            break
    return found


def sequence(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """A sequence of interior points for the Lq penalty; of strength zero, it has one member."""
    if problem.regularizer.power() is None:
        return replace(interior_point(problem, start, tol, max_iter, clock), solver="sequential")
    return sequential(problem, start, tol, max_iter, clock)
