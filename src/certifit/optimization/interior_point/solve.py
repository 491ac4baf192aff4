"""Certified solutions of problems with piecewise-linear losses, by one structured interior-point method.

    minimize  Σ_i p_i ℓ_i(x_i·w + b) + c·w + Σ_j [l1_j |w_j| + ½ l2_j w_j²],   lower ≤ w ≤ upper, w in a ball

    ℓ_i(f) = slope_high_i · max(f − upper_i, 0) + slope_low_i · max(lower_i − f, 0)

covers least absolute deviations, quantile regression, ε-insensitive regression, support vector machines (an
infinite slope is a hard margin) and, with one more variable, Chebyshev approximation. Cost: some 20
iterations of O(n d²).

Mehrotra (1992), SIAM J. Optim. 2; Portnoy and Koenker (1997), Statistical Science 12.

Data are shifted and scaled by powers of two first, so that magnitudes of 1e±150 do not overflow and the
scaled entries are exact. All arithmetic is float64, whatever the type of X: late iterations weight the
samples over many decades.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.optimization.interior_point.basis import Basis
from certifit.optimization.interior_point.core import FEASIBLE, CoreResult
from certifit.optimization.interior_point.problem import Array, Polyhedral, ScaledDesign, is_sparse
from certifit.optimization.interior_point.reduce import solve_reduced

HELD = 1e100  # a penalty in scaled units that holds its coefficient at zero: larger ones are this one
FELT = 1e-30  # the radius of a ball in scaled units below which it is a point


@dataclass(frozen=True)
class InteriorPointResult:
    """A solution with its proof: the optimum lies in [bound, objective].

    Attributes
    ----------
    coef : array of shape (d,)
    intercept : float
    theta : array of shape (n,)
        Dual solution, −slope_low ≤ theta ≤ slope_high: the slope of each loss at the solution.
    objective, bound, gap : float
        `gap` = `objective` − `bound` ≥ true suboptimality. Without a feasible point the objective is inf.
    iterations : int
    status : str
        'optimal', 'stalled', 'max_iter', 'infeasible' or 'unbounded'.
    message : str
    exact : bool
        Whether the rows on kinks are known and the point lies on them, so that only rounding is left.
    """

    coef: Array
    intercept: float
    theta: Array
    objective: float
    bound: float
    gap: float
    iterations: int
    status: str
    message: str
    exact: bool = False


@dataclass(frozen=True)
class _Scaling:
    """w = w' · target / column, f = target · f' + shift, objective = target · height · objective'."""

    centre: Array
    column: Array
    shift: float
    target: float
    height: float

    @property
    def unit(self) -> float:
        return self.target * self.height


def _power(x: Any) -> Any:
    """The power of two next to x, as far as it and its inverse are numbers; 1 for 0."""
    x = np.asarray(x, dtype=np.float64)
    _, exponent = np.frexp(np.where((x > 0) & np.isfinite(x), x, 1.0))
    return np.ldexp(1.0, np.where(x > 0, np.clip(exponent, -1000, 1000), 0))


def _curvature(l2: Any, column: Array, target: float) -> Array:
    """The strengths of squares in the units of columns and target; none stays none, however small the columns are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(l2 > 0, l2 / column * (target / column), 0.0)


def _scaled_design(
    X: Any, intercept: bool, uniform: bool, threads: int | None = None
) -> tuple[ScaledDesign, Array, Array]:
    """The shifted and scaled design with its intercept column, the shifts and the scales of the columns."""
    n, d = X.shape
    if is_sparse(X):
        # Centering would fill a sparse design.
        X = sp.csr_array(X, dtype=np.float64)
        peak = np.asarray(abs(X).max(axis=0).toarray()).ravel() if n else np.zeros(d)
        column = _power(np.full(d, peak.max(initial=0.0)) if uniform else peak)
        X = X @ sp.diags_array(1.0 / column)
        if intercept:
            X = sp.hstack([X, sp.csr_array(np.ones((n, 1)))], format="csr")
        return ScaledDesign(X), np.zeros(d), column
    table = np.empty((d + int(intercept), n))
    np.copyto(table[:d], X.T)
    if intercept:
        table[d] = 1.0
    centre = np.zeros(d)
    body = table[:d]
    if intercept and n:
        with np.errstate(over="ignore"):
            centre = body.mean(axis=1)
        centre[~np.isfinite(centre)] = 0.0
        flat = (body == body[:, :1]).all(axis=1)  # of such a column nothing may be left, not even rounding of its mean
        centre[flat] = body[flat, 0]
        body -= centre[:, None]
    peak = np.maximum(body.max(axis=1, initial=0.0), -body.min(axis=1, initial=0.0))
    column = _power(np.full(d, peak.max(initial=0.0)) if uniform else peak)
    body *= (1.0 / column)[:, None]
    return ScaledDesign(table, threads), centre, column


def _target_scale(lower: Array, upper: Array, intercept: bool) -> tuple[float, float]:
    """A shift (with an intercept only) and a typical size of the kinks, safe against outliers."""
    same = lower is upper or np.array_equal(lower, upper)
    kinks = upper if same else np.concatenate([lower, upper])
    kinks = kinks[np.isfinite(kinks)]
    if kinks.size == 0:
        return 0.0, 1.0
    shift = 0.0
    if intercept:
        middle = float(np.median(kinks))
        if abs(middle) > 8.0 * float(np.median(np.abs(kinks - middle))):
            shift = middle
    size = np.abs(kinks - shift)
    scale = float(np.median(size))
    if scale == 0:
        scale = float(size.max())
    return shift, float(_power(scale))


def _in_units(X: Any, y: Array, intercept: bool) -> tuple[ScaledDesign, Array, Array, float, float, Array]:
    """The scaled design with its centre and columns, and a target with the shift and the size that make it of order one."""
    shift, target = _target_scale(y, y, intercept)
    return *_scaled_design(X, intercept, False), shift, target, (y - shift) / target


def _vector(value: Any, size: int, name: str, least: float = -np.inf) -> Array:
    """A float64 vector of the wanted size from a scalar or an array, checked."""
    out = np.asarray(value, dtype=np.float64)
    if out.ndim > 1 or (out.ndim == 1 and out.shape[0] != size):
        raise ValueError(f"{name} must be a number or have shape ({size},); got shape {out.shape}")
    out = np.array(np.broadcast_to(out, (size,)))
    if np.isnan(out).any() or (out < least).any():
        raise ValueError(f"{name} must not be NaN" + ("" if least == -np.inf else f" or below {least:g}"))
    return out


def _check_ball(ball: tuple[str, float] | None) -> None:
    if ball is not None and (ball[0] not in ("l1", "l2") or not 0 < ball[1] < np.inf):
        raise ValueError(f"ball must be ('l1', radius) or ('l2', radius) with a positive radius; got {ball!r}")


def solve_polyhedral(
    X: Any,
    terms: TwoSidedHinge,
    p: ArrayLike | None = None,
    *,
    c: ArrayLike | None = None,
    l1: ArrayLike = 0.0,
    l2: ArrayLike = 0.0,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    ball: tuple[str, float] | None = None,
    fit_intercept: bool = True,
    tol: float = 1e-8,
    max_iter: int = 100,
    threads: int | None = None,
    in_basis: bool = True,
) -> InteriorPointResult:
    """Minimize Σ p_i ℓ_i(x_i·w + b) + c·w + Σ_j l1_j|w_j| + ½ l2_j w_j² over a box and a ball.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    terms : TwoSidedHinge
    p : array of shape (n,), optional
        Nonnegative weights, 1 by default; a weight 0 removes the sample.
    c : array of shape (d,), optional
        Linear term.
    l1, l2 : float or array of shape (d,)
        Nonnegative penalties of each coefficient; the intercept has none.
    lower, upper : float or array of shape (d,), optional
        Box of the coefficients.
    ball : ('l1', radius) or ('l2', radius), optional
        A bound on a norm of the coefficients.
    fit_intercept : bool
    tol : float
        Absolute duality gap, in the units of the objective.
    max_iter : int
    threads : int, optional
        Threads for the passes over X; None takes what the process is granted.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0.0, 1.0, 2.0, 3.0, 30.0])
    >>> X = np.arange(5.0)[:, None]
    >>> result = solve_polyhedral(X, TwoSidedHinge(y, y, 1.0, 1.0), tol=1e-9)
    >>> result.status, round(float(result.coef[0]), 6), round(result.objective, 6)
    ('optimal', 1.0, 26.0)
    """
    _check_ball(ball)
    if not is_sparse(X):
        X = np.asarray(X)
    n, d = X.shape
    weight = _vector(1.0 if p is None else p, n, "p", 0.0)
    low_kink, high_kink = _vector(terms.lower, n, "lower kinks"), _vector(terms.upper, n, "upper kinks")
    if (low_kink > high_kink).any() or np.isposinf(low_kink).any() or np.isneginf(high_kink).any():
        raise ValueError("the kinks must satisfy lower <= upper, lower < inf and upper > -inf")
    slope_low = _vector(terms.slope_low, n, "slope_low", 0.0)
    slope_high = _vector(terms.slope_high, n, "slope_high", 0.0)
    linear = _vector(0.0 if c is None else c, d, "c")
    first, second = _vector(l1, d, "l1", 0.0), _vector(l2, d, "l2", 0.0)
    box_lower = _vector(-np.inf if lower is None else lower, d, "lower")
    box_upper = _vector(np.inf if upper is None else upper, d, "upper")
    if (box_lower > box_upper).any():
        raise ValueError("lower must not exceed upper")

    fixed = box_lower == box_upper
    if fixed.any():
        return _without_fixed(
            X, TwoSidedHinge(low_kink, high_kink, slope_low, slope_high), weight, linear, first, second,
            box_lower, box_upper, ball, fit_intercept, tol, max_iter, fixed, threads,
        )  # fmt: skip

    boxed = np.isfinite(box_lower).any() or np.isfinite(box_upper).any() or ball is not None
    free = not (boxed or first.any() or second.any() or linear.any())
    if in_basis and free and (basis := Basis.of(X, fit_intercept)) is not None:
        options: dict[str, Any] = {"fit_intercept": fit_intercept, "max_iter": max_iter, "threads": threads}
        found = _in_columns(solve_polyhedral(basis.U, terms, weight, tol=tol, **options), basis, weight, fit_intercept)
        scaled = TwoSidedHinge(low_kink, high_kink, weight * slope_low, weight * slope_high)
        reached = _loss(scaled, X @ found.coef + found.intercept)
        if reached <= found.objective + tol:
            return found
        # Coefficients so long that rounding of their scores costs more: those of the columns themselves may be better.
        plain = solve_polyhedral(X, terms, weight, tol=tol, in_basis=False, **options)
        best = found if reached <= plain.objective else plain
        objective = min(reached, plain.objective)
        return replace(best, objective=objective, bound=found.bound, gap=max(objective - found.bound, 0.0))
    acts = ((slope_high > 0) & np.isfinite(high_kink)) | ((slope_low > 0) & np.isfinite(low_kink))
    kept = np.flatnonzero((weight > 0) & acts)
    if kept.size == 0:
        # A sample at the origin with its kink at zero costs nothing and leaves only the penalty to minimize.
        origin = TwoSidedHinge(np.zeros(1), np.zeros(1), 1.0, 1.0)
        alone = solve_polyhedral(
            np.zeros((1, d)), origin, c=linear, l1=first, l2=second, lower=box_lower, upper=box_upper,
            ball=ball, fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, threads=threads,
        )  # fmt: skip
        return replace(alone, theta=np.zeros(n))
    whole = kept.size == n
    if not whole:
        X = (X.tocsr() if is_sparse(X) else X)[kept]
    design, centre, column = _scaled_design(X, fit_intercept, ball is not None, threads)

    def take(x: Array) -> Array:
        return x if whole else x[kept]

    pk, lk, uk = take(weight), take(low_kink), take(high_kink)
    shift, target = _target_scale(lk, uk, fit_intercept)
    low = pk * take(slope_low)
    high = pk * take(slope_high)
    low[np.isneginf(lk)] = 0.0
    high[np.isposinf(uk)] = 0.0
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    peak = float(finite.max(initial=0.0))
    if peak == 0:
        # Only hard constraints: the penalty sets the unit.
        sizes = (_curvature(second, column, target), first / column, np.abs(linear / column))
        peak = max(float(size.max(initial=0.0)) for size in sizes)
    height = float(_power(peak))
    scaling = _Scaling(centre, column, shift, target, height)
    if (
        ball is not None
        and d
        and ball[1] * (column[0] / target) < FELT
        and not ((box_lower > 0) | (box_upper < 0)).any()
    ):
        # In so small a ball no score moves by anything that a double could tell, and squares of its radius are no numbers.
        most = np.maximum(slope_low, slope_high) * np.asarray(abs(X).sum(axis=1), dtype=np.float64).ravel()
        moved = float(ball[1]) * float(weight[weight > 0] @ most[weight > 0] + np.abs(linear).sum())
        if np.isfinite(moved):
            none = np.zeros(d)
            still = solve_polyhedral(
                X, TwoSidedHinge(low_kink, high_kink, slope_low, slope_high), weight, lower=none, upper=none,
                fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, threads=threads,
            )  # fmt: skip
            return replace(still, bound=still.bound - moved, gap=still.gap + moved)
    # A penalty too large to represent in scaled units holds its coefficient at zero just as well.
    with np.errstate(over="ignore"):
        second_scaled = np.minimum(_curvature(second, column, target) / height, HELD)
        ratio = column / target
        problem = Polyhedral(
            design=design,
            lower=(lk - shift) / target,
            upper=(uk - shift) / target,
            low=low / height,
            high=high / height,
            linear=np.concatenate([linear / column / height, np.zeros(int(fit_intercept))]),
            l1=np.minimum(first / column / height, HELD),
            l2=second_scaled,
            box_lower=box_lower * ratio,
            box_upper=box_upper * ratio,
            intercept=fit_intercept,
            ball=None if ball is None else (ball[0], float(ball[1]) * float(ratio[0]) if d else float(ball[1])),
        )
    with design.threading():
        core = solve_reduced(problem, tol / scaling.unit, max_iter)
    held = (problem.l1 >= HELD) | (problem.l2 >= HELD)
    if held.any():  # the bound of the milder penalty holds for the one that was meant
        z = np.where(np.append(held, np.zeros(int(fit_intercept), dtype=bool)), 0.0, core.certified.z)
        core = replace(core, certified=replace(core.certified, z=z))
    theta = np.zeros(n)
    theta[kept] = np.clip(core.certified.theta * height / pk, -take(slope_low), take(slope_high))
    return _result(core, scaling, theta, fit_intercept)


def _loss(terms: TwoSidedHinge, score: Array) -> float:
    """Σ ℓ_i, infinite beyond a hard side."""
    above, below = np.maximum(score - terms.upper, 0.0), np.maximum(terms.lower - score, 0.0)
    with np.errstate(invalid="ignore"):
        each = np.where(above > 0, terms.slope_high * above, 0.0) + np.where(below > 0, terms.slope_low * below, 0.0)
    return float(each.sum())


def _in_columns(found: InteriorPointResult, basis: Basis, weight: Array, intercept: bool) -> InteriorPointResult:
    """What was found in a basis, as coefficients of the columns; the bound is that of all coefficients only if it spans them."""
    w, b = basis.leave(found.coef, found.intercept)
    bound = min(found.bound, 0.0)
    if basis.whole and np.isfinite(found.bound):
        bound = found.bound - basis.doubt(found.coef, weight * found.theta)
    return replace(
        found, coef=w, intercept=b if intercept else 0.0, bound=bound, gap=max(found.gap, found.objective - bound)
    )


def _result(core: CoreResult, scaling: _Scaling, theta: Array, intercept: bool) -> InteriorPointResult:
    """Undo the scaling."""
    done = core.certified
    d = scaling.column.shape[0]
    coef = done.z[:d] / scaling.column * scaling.target
    shifted = done.z[d] * scaling.target + scaling.shift if intercept else 0.0
    b = float(shifted - scaling.centre @ coef) if intercept else 0.0
    objective = done.objective * scaling.unit if done.violation <= FEASIBLE else np.inf
    bound = done.bound * scaling.unit
    status = core.status
    if status == "infeasible":
        objective = np.inf
    if status == "unbounded":
        bound = -np.inf
    gap = max(objective - bound, 0.0) if np.isfinite(objective) and np.isfinite(bound) else np.inf
    return InteriorPointResult(
        coef, b, theta, float(objective), float(bound), float(gap), core.iterations, status, core.message
    )


def _without_fixed(
    X: Any,
    terms: TwoSidedHinge,
    weight: Array,
    linear: Array,
    l1: Array,
    l2: Array,
    lower: Array,
    upper: Array,
    ball: tuple[str, float] | None,
    fit_intercept: bool,
    tol: float,
    max_iter: int,
    fixed: NDArray[np.bool_],
    threads: int | None,
) -> InteriorPointResult:
    """Coefficients with equal bounds move into the kinks: a box without interior has no interior point."""
    free = ~fixed
    if not (free.any() or fit_intercept):
        return _at(X, terms, weight, linear, l1, l2, lower, ball)
    value = lower[fixed]
    offset = np.asarray(X[:, np.flatnonzero(fixed)] @ value)
    constant = float(linear[fixed] @ value + l1[fixed] @ np.abs(value) + 0.5 * np.sum(l2[fixed] * value * value))
    inner = ball
    if ball is not None:
        used = float(np.abs(value).sum() if ball[0] == "l1" else np.linalg.norm(value))
        left = ball[1] - used if ball[0] == "l1" else np.sqrt(max(ball[1] ** 2 - used**2, 0.0))
        if used > ball[1] or left <= 0:
            raise ValueError("the coefficients held fixed by lower = upper leave no room in the ball")
        inner = (ball[0], float(left))
    part = solve_polyhedral(
        X[:, np.flatnonzero(free)],
        TwoSidedHinge(terms.lower - offset, terms.upper - offset, terms.slope_low, terms.slope_high),
        weight, c=linear[free], l1=l1[free], l2=l2[free], lower=lower[free], upper=upper[free], ball=inner,
        fit_intercept=fit_intercept, tol=tol, max_iter=max_iter, threads=threads,
    )  # fmt: skip
    coef = np.empty(fixed.shape[0])
    coef[fixed], coef[free] = value, part.coef
    return replace(part, coef=coef, objective=part.objective + constant, bound=part.bound + constant)


def _at(
    X: Any, terms: TwoSidedHinge, weight: Array, linear: Array, l1: Array, l2: Array, w: Array, ball: Any
) -> InteriorPointResult:
    """The only point there is: nothing is left to choose."""
    if ball is not None and float(np.abs(w).sum() if ball[0] == "l1" else np.linalg.norm(w)) > ball[1]:
        raise ValueError("the coefficients held fixed by lower = upper leave no room in the ball")
    f = np.asarray(X @ w, dtype=np.float64)
    above, below = np.maximum(f - terms.upper, 0.0), np.maximum(terms.lower - f, 0.0)
    with np.errstate(invalid="ignore"):  # an infinite slope where nothing is violated costs nothing
        each = np.where(above > 0, terms.slope_high * above, 0.0) + np.where(below > 0, terms.slope_low * below, 0.0)
    value = float(weight @ each) + float(linear @ w + l1 @ np.abs(w) + 0.5 * np.sum(l2 * w * w))
    theta = np.where(above > 0, terms.slope_high, np.where(below > 0, -np.asarray(terms.slope_low), 0.0))
    return InteriorPointResult(w.copy(), 0.0, theta, value, value, 0.0, 1, "optimal", "there is one point only")
