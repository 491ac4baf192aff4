"""Newton's method for a piecewise linear loss with an L2 penalty: multipliers, on growing samples of tall dense data.

    minimize over w, b    P = Σ p_i ℓ_i(x_i·w + b) + ½ Σ_j l2_j w_j²

**Multipliers.** Each loss is replaced by its Moreau envelope around slopes θ: with u = f + σθ the slope becomes a ramp
of width σ between the slopes of the loss. The envelope is smooth and piecewise quadratic, and its Hessian needs only
the rows on the ramp. At its minimizer l2·w + Xᵀ(pθ) = 0 and Σ pθ = 0 with θ inside the slopes of the loss: a feasible dual
point, hence a bound. The new θ are the next centre, and σ shrinks. Rockafellar (1976), Augmented Lagrangians and
applications of the proximal point algorithm; Li, Sun and Toh (2018), A highly efficient semismooth Newton augmented
Lagrangian method.

**Merged rows.** A fit to a sample says on which linear piece of its loss nearly every row will end. Rows on the same
piece are replaced by their weighted mean, one row with the sum of their weights: there the mean of the losses is the
loss of the mean. The loss of a mean is never above the mean of the losses (Jensen), so a bound of the small problem is
one of the whole problem whether the guess was right or not; a wrong guess shows as a gap, and its rows come back.
Portnoy and Koenker (1997), The Gaussian hare and the Laplacian tortoise.

The ramp must hold more rows than there are columns for Newton's method to be fast, which sets a least width and with it
a least gap; beyond it the interior point is the better method, and `solve_newton` says so by its gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import blas

from certifit._types import Array, Matrix
from certifit.evaluation.losses.terms import TwoSidedHinge
from certifit.optimization.dual.hinge import DualResult
from certifit.progress import Progress
from certifit.representation.design.blocks import row_blocks
from certifit.representation.design.products import matvec

__all__ = ["Kinks", "multipliers", "polish", "solve_newton"]

ROWS_PER_COLUMN = 40  # the smallest sample has so many rows for each column: fewer are nearly separable
SMALLEST_SAMPLE = 2000
SAMPLE_RATIO = 6  # each sample has so many times the rows of the one before
REACH = 6.5  # half width of the band of uncertain rows, in standard errors of their scores
WIDEST = 0.5  # of the ramp, in units of a typical residual
NARROWER = 0.25  # factor of the width from one multiplier step to the next


@dataclass(frozen=True)
class Kinks:
    """ℓ_i(f) = high_i·max(f − upper_i, 0) + low_i·max(lower_i − f, 0), finite slopes ≥ 0, weights p > 0."""

    lower: Array
    upper: Array
    low: Array
    high: Array
    p: Array

    @staticmethod
    def of(terms: TwoSidedHinge, p: Array) -> Kinks:
        """From the terms of a loss; a side without slope has no kink."""
        low = np.array(np.broadcast_to(np.asarray(terms.slope_low, dtype=np.float64), p.shape))
        high = np.array(np.broadcast_to(np.asarray(terms.slope_high, dtype=np.float64), p.shape))
        lower = np.where(low > 0, terms.lower, -np.inf)
        return Kinks(lower, np.where(high > 0, terms.upper, np.inf), low, high, p)

    def take(self, rows: Array) -> Kinks:
        """The same losses on some rows."""
        return Kinks(self.lower[rows], self.upper[rows], self.low[rows], self.high[rows], self.p[rows])

    def terms(self) -> TwoSidedHinge:
        """As the interior point wants it."""
        return TwoSidedHinge(self.lower, self.upper, self.low, self.high)

    def value(self, f: Array) -> float:
        """Σ p ℓ(f)"""
        above, below = f - self.upper, self.lower - f
        np.maximum(above, 0.0, out=above)
        np.maximum(below, 0.0, out=below)
        above *= self.high
        below *= self.low
        above += below
        return float(self.p @ above)

    def conjugate(self, theta: Array) -> float:
        """Σ p ℓ*(θ) for slopes inside the domain."""
        kink = np.where(theta > 0, self.upper, np.where(theta < 0, self.lower, 0.0))
        return float(self.p @ (theta * kink))

    def ramp(self, u: Array, width: float) -> Array:
        """The slope of the envelope at u."""
        above = (u - self.upper) * (1.0 / width)
        below = (u - self.lower) * (1.0 / width)
        np.clip(above, 0.0, self.high, out=above)
        np.clip(below, -self.low, 0.0, out=below)
        above += below
        return above

    def slope(self, f: Array) -> Array:
        """The slope of the loss itself, kinks counted as flat."""
        return np.where(f > self.upper, self.high, np.where(f < self.lower, -self.low, 0.0))

    def inside(self, theta: Array) -> Array:
        """Rows on a ramp: their slope is none of those that the pieces of the loss have."""
        return (theta > -self.low) & (theta < self.high) & (theta != 0)

    def offset(self, f: Array, theta: Array) -> Array:
        """From the kink on whose ramp θ lies to the score."""
        return f - np.where(theta > 0, self.upper, self.lower)

    def nearest(self, f: Array) -> Array:
        """The kink nearest to each score."""
        return np.where(np.abs(f - self.upper) <= np.abs(f - self.lower), self.upper, self.lower)

    def distance(self, f: Array) -> Array:
        """From each score to its nearest kink."""
        return np.minimum(np.abs(f - self.upper), np.abs(f - self.lower))

    def balanced(self, theta: Array) -> Array:
        """θ with Σ pθ = 0: rows on the ramp move first, at no cost to first order, then one sign shrinks."""
        for _ in range(2):
            excess = float(self.p @ theta)
            rows = np.flatnonzero(self.inside(theta))
            down = np.where(theta[rows] > 0, 0.0, -self.low[rows])
            up = np.where(theta[rows] > 0, self.high[rows], 0.0)
            room = (down if excess > 0 else up) - theta[rows]
            total = float(self.p[rows] @ np.abs(room))
            if excess == 0 or total == 0:
                break
            theta = theta.copy()
            theta[rows] += min(1.0, abs(excess) / total) * room
        left = float(self.p @ theta)
        if abs(left) > 1e-15 * float(self.p @ np.abs(theta)):
            heavy = theta * left > 0
            mass = float(self.p[heavy] @ np.abs(theta[heavy]))
            theta = np.where(heavy, theta * max(0.0, 1.0 - abs(left) / mass), theta)
        return theta


def multipliers(
    A: Array,
    kinks: Kinks,
    l2: Array,
    *,
    w: Array,
    b: float,
    fit_intercept: bool,
    width: float,
    least: float,
    unit: float,
    tol: float,
    max_iter: int,
) -> DualResult:
    """Minimize P over dense float64 rows to the absolute gap tol, or until the ramp would be narrower than `least`."""
    p, inverse = kinks.p, 1.0 / l2
    w, f = w.copy(), A @ w + b
    cold = not w.any()
    shifted = 0.5 * width * (kinks.high - kinks.low)
    best: DualResult | None = None
    iteration = inner = 0
    while True:
        slopes = kinks.ramp(f + shifted, width)
        weighted = p * slopes
        pull = weighted @ A
        grad, grad_b = l2 * w + pull, float(weighted.sum()) if fit_intercept else 0.0
        objective = kinks.value(f) + 0.5 * float(l2 @ (w * w))
        bound = -kinks.conjugate(slopes) - 0.5 * float(inverse @ (pull * pull))
        waste = 0.5 * float(inverse @ (grad * grad))  # what the bound loses because the envelope is not minimized
        loose = abs(grad_b) * unit  # and what it may lose when the slopes are made to balance
        gap = objective - bound + loose
        if best is None or gap < best.objective - best.bound:
            best = DualResult(w.copy(), b, slopes, objective, bound - loose, iteration)
        if (gap <= tol and loose <= 0.1 * tol) or iteration >= max_iter or not np.isfinite(gap):
            break
        on = kinks.inside(slopes)
        minimized = waste + loose <= 0.1 * max(gap - waste, 0.1 * tol)
        if minimized or inner >= 25:
            if width <= least or not minimized:
                break
            width, inner = max(NARROWER * width, least), 0
            shifted = width * slopes
            # The rows on the ramp mostly stay on it: one step that puts them on their kinks, since at these scores
            # the narrower envelope would overshoot.
            ahead = p * np.where(on, slopes + kinks.offset(f, slopes) / width, slopes)
        elif cold and iteration == 0:
            # From nothing: least squares to the kinks has the right size.
            on, ahead = np.ones(p.shape[0], dtype=bool), p * (f - kinks.nearest(f)) / width
        else:
            ahead = None
        if ahead is not None:
            grad, grad_b = l2 * w + ahead @ A, float(ahead.sum()) if fit_intercept else 0.0
        step = _newton_step(A, p, on, l2, grad, grad_b, width, fit_intercept)
        if step is None:
            break
        dw, db = step
        df = A @ dw + db
        t = 1.0 if ahead is not None else _line_search(kinks, f + shifted, df, width, w, dw, l2)
        w, b, f = w + t * dw, b + t * db, f + t * df
        iteration, inner = iteration + 1, inner + 1
        if iteration % 8 == 0:
            f = A @ w + b  # the updates must not drift from the scores
    return replace(best, iterations=iteration)


def _newton_step(
    A: Array, p: Array, on: Array, l2: Array, grad: Array, grad_b: float, width: float, fit_intercept: bool
) -> tuple[Array, float] | None:
    """−H⁻¹·gradient with H = diag(l2) + Σ over the ramp of (p/σ)·[x 1][x 1]ᵀ."""
    d = l2.shape[0]
    rows = np.flatnonzero(on)
    root = np.sqrt(p[rows] / width)
    if 0 < rows.shape[0] < d:
        return _step_of_few(A[rows] * root[:, None], root, l2, grad, grad_b, fit_intercept)
    block = np.empty((rows.shape[0], d + 1))
    np.multiply(A[rows], root[:, None], out=block[:, :d])
    block[:, d] = root if fit_intercept else 0.0
    H = blas.dsyrk(1.0, block.T, lower=1)
    diagonal = np.arange(d + 1)
    # Without rows on the ramp nothing holds the intercept: a little curvature, the line search does the rest.
    H[diagonal, diagonal] += np.append(l2, 1e-10 * (float(p.sum()) / width + float(H[d, d])) if fit_intercept else 1.0)
    size = 1.0 / np.sqrt(H[diagonal, diagonal])
    H *= size[:, None]
    H *= size
    rhs = -size * np.append(grad, grad_b)
    for ridge in (0.0, 1e-14, 1e-10, 1e-6):
        if ridge:
            H[diagonal, diagonal] += ridge
        factor, failed = scipy.linalg.lapack.dpotrf(H, lower=1)
        if not failed:
            z = size * scipy.linalg.lapack.dpotrs(factor, rhs, lower=1)[0]
            if np.isfinite(z).all():
                return z[:d], float(z[d]) if fit_intercept else 0.0
    return None


def _step_of_few(
    R: Array, root: Array, l2: Array, grad: Array, grad_b: float, fit_intercept: bool
) -> tuple[Array, float] | None:
    """The same of fewer rows than columns, R = √(p/σ)·x, by a matrix of the rows.

    With s = R·dw + √(p/σ)·db it is (I + R diag(1/l2) Rᵀ) s = √(p/σ)·db − R·(∇/l2).
    """
    scaled = R / l2
    K = scaled @ R.T
    K[np.diag_indices_from(K)] += 1.0
    factor, failed = scipy.linalg.lapack.dpotrf(K, lower=1)
    if failed:
        return None
    pulled, held = scipy.linalg.lapack.dpotrs(factor, np.column_stack([-(scaled @ grad), root]), lower=1)[0].T
    db = float(-(grad_b + root @ pulled) / (root @ held)) if fit_intercept else 0.0
    dw = -(grad / l2 + (pulled + db * held) @ scaled)
    return (dw, db) if np.isfinite(dw).all() and np.isfinite(db) else None


def _line_search(kinks: Kinks, u: Array, du: Array, width: float, w: Array, dw: Array, l2: Array) -> float:
    """A step at which the slope of the envelope along the direction has nearly vanished."""
    weight = kinks.p * du
    flat, bend = float(l2 @ (w * dw)), float(l2 @ (dw * dw))

    def slope(t: float) -> float:
        return flat + t * bend + float(weight @ kinks.ramp(u + t * du, width))

    start = slope(0.0)
    if not start < 0:
        return 1.0
    low, at_low, high, at_high = 0.0, start, np.inf, np.inf
    t = 1.0
    for _ in range(30):
        here = slope(t)
        if abs(here) <= 0.3 * abs(start) or not np.isfinite(here):
            return t
        if here < 0:
            low, at_low = t, here
        else:
            high, at_high = t, here
        if np.isinf(high):
            t *= 4.0
        else:  # regula falsi, kept off the ends
            t = low - at_low * (high - low) / (at_high - at_low)
            t = min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    return low if low > 0 else t


def solve_newton(
    X: Matrix,
    kinks: Kinks,
    l2: Array,
    *,
    tol: float,
    max_iter: int,
    fit_intercept: bool = True,
    unit: float = 1.0,
    clock: Progress | None = None,
    scale: float = 1.0,
) -> DualResult:
    """Minimize Σ p_i ℓ_i(x_i·w + b) + ½ Σ l2_j w_j² for dense X with many more rows than columns.

    Parameters
    ----------
    X : array of shape (n, d)
    kinks : Kinks
        Losses with weights of sum one.
    l2 : array of shape (d,), positive
    tol : float
        Absolute duality gap; the gap may stay larger where the ramp cannot get narrow enough.
    max_iter : int
        Most Newton steps on one sample.
    fit_intercept : bool
    unit : float
        Typical size of a residual: 1 for a margin, the spread of y for a regression.
    clock : Progress, optional
    scale : float
        What the progress bar divides the gap by.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Hinge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(20000, 3))
    >>> y = (X[:, 0] + rng.normal(size=20000) > 0).astype(float)
    >>> kinks = Kinks.of(Hinge().hinge_terms(y), np.full(20000, 1 / 20000))
    >>> result = solve_newton(X, kinks, np.full(3, 0.01), tol=1e-4, max_iter=100)
    >>> bool(0 <= result.objective - result.bound <= 1e-4)
    True
    """
    n, d = X.shape
    # Fewer rows on the ramp than columns make Newton steps that the line search has to cut down.
    shared: dict[str, Any] = {
        "fit_intercept": fit_intercept, "unit": unit, "least": 10.0 * unit * (d + 1) / n, "max_iter": max_iter,
    }  # fmt: skip
    smallest = max(SMALLEST_SAMPLE, ROWS_PER_COLUMN * d)
    # The gap of one envelope grows with the square of its width; this constant is that of a smooth spread of scores.
    width = unit * min(WIDEST, max(6.0 * np.sqrt(tol / unit), 0.03))
    if n < 3 * smallest:
        start: dict[str, Any] = {"w": np.zeros(d), "b": 0.0, "width": unit * WIDEST}
        found = multipliers(np.asarray(X, dtype=np.float64), kinks, l2, tol=tol, **start, **shared)
        return _finish(X, kinks, l2, found, fit_intercept)
    size = max(smallest, n // SAMPLE_RATIO)
    rows = np.sort(np.random.default_rng(n).choice(n, size, replace=False))  # the seed only has to be fixed
    few = kinks.take(rows)
    few = replace(few, p=few.p / few.p.sum())
    # A sample of m rows knows the optimum to about d/m: there is no use in solving it better.
    rough = solve_newton(
        X[rows], few, l2, fit_intercept=fit_intercept, unit=unit, tol=max(tol, 0.2 * unit * d / size),
        max_iter=max_iter, clock=clock, scale=scale,
    )  # fmt: skip
    w, b, used = rough.coef, rough.intercept, rough.iterations
    f = matvec(X, w) + b
    reach = unit * REACH * float(np.sqrt(d / size)) + 0.5 * width
    near, theta = kinks.distance(f) <= reach, kinks.slope(f)
    best: DualResult | None = None
    for _ in range(4):
        band = np.flatnonzero(near)
        A, small, groups = _merge(X, kinks, theta, near, band)
        part = multipliers(A, small, l2, w=w, b=b, width=width, tol=0.7 * tol, **shared)
        part = _finish(A, small, l2, part, fit_intercept)
        used += part.iterations
        w, b = part.coef, part.intercept
        f = matvec(X, w, exact=True) + b
        objective = kinks.value(f) + 0.5 * float(l2 @ (w * w))
        full = theta.copy()
        full[band] = part.theta[: band.shape[0]]
        for members, merged in zip(groups, part.theta[band.shape[0] :], strict=True):
            full[members] *= abs(merged)
        if best is None or objective - part.bound < best.objective - best.bound:
            best = DualResult(w, b, full, objective, part.bound, used)
        gap = best.objective - best.bound
        if clock is not None:
            clock.update(used, used, gap / scale)
        wrong = ~near & (kinks.slope(f) != theta)
        if gap <= tol or not wrong.any():
            break
        reach *= 1.3  # the neighbours of the wrong rows would be wrong next
        near |= wrong | (kinks.distance(f) <= reach)
    assert best is not None
    return best


def _merge(X: Matrix, kinks: Kinks, theta: Array, near: Array, band: Array) -> tuple[Array, Kinks, list[Array]]:
    """The rows of the band and one row for each side: weighted means of points and kinks, the sum of the weights."""
    groups: list[Array] = []
    extra: list[tuple[float, float, float, float, float]] = []
    shares: list[Array] = []
    for side in (1.0, -1.0):
        mass = np.where(near, 0.0, np.maximum(side * theta, 0.0)) * kinks.p
        total = float(mass.sum())
        if total == 0:
            continue
        members = np.flatnonzero(mass)
        shares.append(mass / total)
        kink = float(mass[members] @ (kinks.upper if side > 0 else kinks.lower)[members]) / total
        extra.append((-np.inf, kink, 0.0, 1.0, total) if side > 0 else (kink, np.inf, 1.0, 0.0, total))
        groups.append(members)
    A = np.empty((band.shape[0] + len(shares), X.shape[1]))
    A[: band.shape[0]] = X[band]
    if shares:
        A[band.shape[0] :] = _mean(X, np.stack(shares))  # both sides in one pass over X
    few, columns = kinks.take(band), np.reshape(extra, (-1, 5))
    parts = (few.lower, few.upper, few.low, few.high, few.p)
    return A, Kinks(*(np.concatenate([part, columns[:, k]]) for k, part in enumerate(parts))), groups


def _mean(X: Matrix, share: Array) -> Array:
    """Σ share_i x_i in double precision, for one vector of shares or several."""
    if X.dtype == np.float64:
        return np.asarray(share @ X)
    return np.asarray(sum(share[..., rows] @ X[rows].astype(np.float64) for rows in row_blocks(*X.shape)))


def _finish(A: Array, kinks: Kinks, l2: Array, found: DualResult, fit_intercept: bool) -> DualResult:
    """Slopes that balance exactly, and the bound they prove."""
    theta = kinks.balanced(found.theta) if fit_intercept else found.theta
    pull = _mean(A, kinks.p * theta)
    bound = -kinks.conjugate(theta) - 0.5 * float(np.sum(pull * pull / l2))
    return replace(found, theta=theta, bound=bound)


def polish(
    A: Array, kinks: Kinks, l2: Array, w: Array, b: float, theta: Array, *, fit_intercept: bool, unit: float
) -> tuple[Array, float]:
    """(w, b) on the kinks of the rows that θ puts there: the optimum itself when those are the right rows.

    One Newton step on an envelope so narrow that rows on the ramp end on their kinks; slopes of all others stay.
    """
    f = A @ w + b
    # In an interior point θ is small where the distance to the kink is large, and the other way round.
    room = np.minimum(np.abs(theta), np.where(theta > 0, kinks.high, kinks.low) - np.abs(theta))
    on = kinks.inside(theta) & (room > kinks.distance(f) / unit)
    fixed = np.where(on, theta, kinks.slope(f))
    width = 1e-7 * unit
    for _ in range(3):
        ahead = kinks.p * np.where(on, theta + kinks.offset(f, theta) / width, fixed)
        grad_b = float(ahead.sum()) if fit_intercept else 0.0
        step = _newton_step(A, kinks.p, on, l2, l2 * w + ahead @ A, grad_b, width, fit_intercept and bool(on.any()))
        if step is None:
            break
        theta = np.where(on, theta + kinks.offset(f + A @ step[0] + step[1], theta) / width, theta)
        w, b = w + step[0], b + step[1]
        f = A @ w + b
    return w, b
