"""Newton's method for a smooth loss with no penalty or an L2 penalty.

    P(w, b) = Σ p_i ℓ(y_i, x_i·w + b) + ½ Σ_j l2_j w_j²

Each step solves (AᵀHA + L)δ = −∇P with A = [1 X], H = diag(pℓ''), which is iteratively reweighted least squares for a
GLM. The same step gives a dual point for free: θ + ℓ''·(Aδ) satisfies the dual constraints exactly, and is accurate
to second order, so the duality gap is known without another pass over X.

Tall X: Cholesky of the d × d system, started on growing subsamples when n is large (the optimum of a part of the rows
is within the statistical error of the optimum of all, and its Hessian preconditions all rows: see
sketch.py). Wide or very sparse X: conjugate gradients on the same system.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.linalg

from certifit._types import Array, is_sparse
from certifit.evaluation.losses import Loss
from certifit.optimization.newton.sketch import descend
from certifit.optimization.newton.sketch import gram as row_gram
from certifit.optimization.objective.problem import Problem, Solution, dual_bound, into_domain
from certifit.progress import Progress
from certifit.representation.design.products import matvec, rmatvec, weighted_gram
from certifit.threads import one_blas_thread

__all__ = ["Damping", "armijo", "newton", "newton_cg", "subsample_start"]

SKETCH_FROM = 1000  # rows of a part whose optimum and Hessian are worth having
SUBSAMPLE_FROM = 20_000  # rows per stage below which a warm start on a part of the data does not pay


def newton(problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress) -> Solution:
    """Newton with Cholesky; `tol` is the absolute gap to reach."""
    if not _is_tall(problem):
        return _newton(problem, start, tol, max_iter, clock, _cholesky_direction, "newton")
    with one_blas_thread():  # every pass over X is threaded as a whole
        return _tall_newton(problem, start, tol, max_iter, clock)


def _is_tall(problem: Problem) -> bool:
    """Whether an eighth of the rows already tells much about the optimum."""
    n, d = problem.shape
    return n // 8 >= max(SKETCH_FROM, 20 * d) and not is_sparse(problem.X)


def _tall_newton(problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress) -> Solution:
    w, b, precondition = _sketch(problem, start, tol, max_iter)
    if precondition is None:
        return _newton(problem, (w, b), tol, max_iter, clock, _cholesky_direction, "newton")
    w, b, used, objective, bound = descend(problem, (w, b), precondition, tol, max_iter)
    if objective - bound <= tol:
        return Solution(w, b, max(used, 1), "newton", bound, objective)
    if not problem.objective(w, b) <= problem.objective(*start):  # a part that was not like the whole (rare classes)
        w, b = start
    solution = _newton(problem, (w, b), tol, max(1, max_iter - used), clock, _cholesky_direction, "newton")
    return replace(solution, iterations=solution.iterations + used)


def _sketch(
    problem: Problem, start: tuple[Array, float], tol: float, max_iter: int
) -> tuple[Array, float, Callable[[Array], Array] | None]:
    """The optimum of a part of the rows and the inverse of its Hessian, found the same way from a smaller part.

    Without a part that is large enough, the start itself and None.
    """
    n, d = problem.shape
    l2 = problem.regularizer.smooth()
    part = n // 8
    if not _is_tall(problem) or l2 is None:
        return (*start, None)
    # A fixed seed: the start must not depend on anything but the data, and the end does not depend on the start.
    chosen = np.sort(np.random.default_rng(0).choice(n, part, replace=False))
    weight = problem.p[chosen] / problem.p[chosen].sum()
    small = replace(problem, X=problem.X[chosen], y=problem.y[chosen], p=weight)
    rough = max(tol, 0.05 * d / part * problem.scale)  # no better than the statistical error of the part
    w, b, precondition = _sketch(small, start, rough, max_iter)
    if precondition is None:
        solution = _newton(small, (w, b), rough, max_iter, Progress(), _cholesky_direction, "newton")
        w, b = solution.coef, solution.intercept
    else:
        w, b, *_ = descend(small, (w, b), precondition, rough, max_iter)
    gram = row_gram(small, small.loss.second_derivative(small.y, small.scores(w, b)))
    gram[np.arange(1, d + 1), np.arange(1, d + 1)] += l2
    if not problem.fit_intercept:
        gram[0, :], gram[:, 0], gram[0, 0] = 0.0, 0.0, 1.0
    unit = 1.0 / np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    try:
        factor = scipy.linalg.cho_factor(gram * unit[:, None] * unit + 1e-12 * np.eye(d + 1), check_finite=False)
    except (scipy.linalg.LinAlgError, ValueError):
        return w, b, None
    return w, b, lambda g: np.asarray(unit * scipy.linalg.cho_solve(factor, unit * g, check_finite=False))


def newton_cg(problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress) -> Solution:
    """Newton with conjugate gradients: no d × d matrix is formed."""
    return _newton(problem, start, tol, max_iter, clock, _cg_direction, "newton_cg")


Direction = Callable[[Problem, Array, Array, float, Array], tuple[Array, float]]


def _newton(
    problem: Problem,
    start: tuple[Array, float],
    tol: float,
    max_iter: int,
    clock: Progress,
    direction: Direction,
    name: str,
) -> Solution:
    l2 = problem.regularizer.smooth()
    assert l2 is not None  # the dispatcher sends nothing else here
    y, p, loss = problem.y, problem.p, problem.loss
    (w, b), bound, note = start, 0.0, ""
    f = problem.scores(w, b)
    objective = problem.risk(f) + 0.5 * float(l2 @ (w * w))
    iteration, damping = 0, Damping(loss)
    for iteration in range(1, max_iter + 1):
        theta, h = damping.slopes(y, f)
        g = rmatvec(problem.X, p * theta) + l2 * w
        g_b = float(p @ theta) if problem.fit_intercept else 0.0
        dw, db = direction(problem, h, g, g_b, l2)
        df = matvec(problem.X, dw) + db
        # With curvature on all rows a factorization solves the equations up to rounding; otherwise a pass tells.
        exact = direction is _cholesky_direction and h.min() > 1e-9 * h.max()
        slack = 0.0 if exact else _slack(problem, h * df, l2 * dw, (g, g_b), (w + dw, b + db))
        if slack <= 1e-6 * problem.scale:
            bound = max(bound, _newton_bound(problem, theta + h * df, f + df, l2 * (w + dw)) - slack)
        slope = float(g @ dw) + g_b * db
        step, f_new, reached = armijo(
            lambda t, f=f, df=df, w=w, dw=dw: (f + t * df, 0.5 * float(l2 @ (w + t * dw) ** 2)),  # type: ignore[misc]
            problem.risk,
            objective,
            slope,
        )
        clock.update(iteration, max_iter, (objective - bound) / max(problem.scale, 1e-300))
        if step == 0.0 and damping.level < 1.0:
            damping.learn(step)
            continue
        damping.learn(step)
        if step == 0.0:
            note = "The line search found no lower value: rounding limits the fit."
            break
        w, b, f = w + step * dw, b + step * db, f_new
        stalled = objective - reached <= 1e-15 * abs(objective)
        objective = reached
        if objective - bound <= tol:
            break
        if stalled and damping.level < 1.0:  # no curvature where all rows are on linear parts: borrow some
            damping.learn(0.0)
        elif stalled:  # the point is as good as rounding allows; try once for a better bound
            bound = max(bound, dual_bound(problem, w, f))
            break
    return Solution(w, b, iteration, name, bound, objective, note=note if objective - bound > tol else "")


class Damping:
    """Extra curvature after short steps: a loss that is linear in places (Huber) promises more than it holds.

    At its largest, 1, the model is an upper bound of a loss of known smoothness, and a full step always descends.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss, self.level = loss, 0.0

    def slopes(self, y: Array, f: Array) -> tuple[Array, Array]:
        """ℓ', and ℓ'' plus the present share of the largest curvature."""
        theta, h = self.loss.slopes(y, f)
        if self.level > 0.0:
            h = h + self.level * (self.loss.smoothness if np.isfinite(self.loss.smoothness) else float(h.max()))
        return theta, h

    def learn(self, step: float) -> None:
        """More after a short step, less after a full one."""
        if step < 0.25:
            self.level = min(1.0, max(8.0 * self.level, 1e-3))
        elif step == 1.0:
            self.level = self.level / 4.0 if self.level > 1e-6 else 0.0


def armijo(
    along: Callable[[float], tuple[Array, float]],
    risk: Callable[[Array], float],
    objective: float,
    slope: float,
) -> tuple[float, Array, float]:
    """Halve the step until the objective falls by a share of what the slope promises; step 0 if it never does."""
    step = 1.0
    for _ in range(60):
        f, penalty = along(step)
        reached = risk(f) + penalty
        if reached <= objective + 1e-4 * step * slope:
            return step, f, reached
        # Near the optimum the promise is below rounding: accept what does not rise.
        if abs(slope) <= 1e-13 * max(abs(objective), 1e-300) and reached <= objective * (1 + 1e-15):
            return step, f, reached
        step *= 0.5
    return 0.0, along(0.0)[0], objective


def _slack(
    problem: Problem, moved: Array, shrunk: Array, gradient: tuple[Array, float], after: tuple[Array, float]
) -> float:
    """What the equations that a step leaves unsolved may cost its dual point, which solves them by construction.

    Conjugate gradients stop short, and where rows are on a linear part of the loss the gradient may have no preimage: that
    step still descends, but proves nothing.
    """
    g, g_b = gradient
    left = np.abs(rmatvec(problem.X, problem.p * moved) + shrunk + g)
    left_b = abs(float(problem.p @ moved) + g_b) if problem.fit_intercept else 0.0
    if max(left_b, left.max(initial=0.0)) > 1e-6 * max(abs(g_b), np.abs(g).max(initial=0.0)):
        return np.inf
    return 2.0 * float(left @ np.abs(after[0]) + left_b * abs(after[1]))


def _newton_bound(problem: Problem, theta: Array, f: Array, v: Array) -> float:
    """D at the dual point of a Newton step, whose −Xᵀ(pθ) equals v = l2·(w + δ) by construction."""
    with np.errstate(all="ignore"):
        if not np.isfinite(theta).all():
            return 0.0
        inside, slack = into_domain(problem, theta, f)
        if not slack <= 1e-9 * problem.scale:
            return 0.0
        v = np.where(problem.regularizer.smooth() == 0.0, 0.0, v)
        conjugate = problem.loss.conjugate(problem.y, inside, start=f)
        bound = -float(problem.p @ conjugate) - problem.regularizer.conjugate(v) - slack
    return bound if np.isfinite(bound) else 0.0


def _cholesky_direction(problem: Problem, h: Array, g: Array, g_b: float, l2: Array) -> tuple[Array, float]:
    gram = weighted_gram(problem.X, problem.p * h) if is_sparse(problem.X) else row_gram(problem, h)
    gram[np.arange(1, g.shape[0] + 1), np.arange(1, g.shape[0] + 1)] += l2
    if problem.fit_intercept:
        delta = solve_semidefinite(gram, -np.concatenate([[g_b], g]))
        return delta[1:], float(delta[0])
    return solve_semidefinite(gram[1:, 1:], -g), 0.0


def solve_semidefinite(gram: Array, right: Array) -> Array:
    """gram⁻¹·right for a positive semidefinite matrix: equilibrated Cholesky, or the pseudo-inverse if singular."""
    unit = 1.0 / np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    scaled = gram * unit[:, None] * unit
    right = unit * right
    try:
        factor = scipy.linalg.cho_factor(scaled, check_finite=False)
    except scipy.linalg.LinAlgError:
        pass
    else:
        pivots = np.diag(factor[0])
        if pivots.min() > 1e-6 * pivots.max():  # a condition above 1e12 leaves nothing to trust
            x = scipy.linalg.cho_solve(factor, right, check_finite=False)
            x += scipy.linalg.cho_solve(factor, right - scaled @ x, check_finite=False)  # one refinement step
            return np.asarray(unit * x)
    if not np.isfinite(scaled).all():
        return np.zeros_like(right)
    # Singular: the step of least norm, which does not depend on how rounding split the null space.
    values, vectors = scipy.linalg.eigh(scaled, check_finite=False)
    kept = values > 1e-11 * max(values[-1], 1e-300)
    return np.asarray(unit * (vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept])))


def _cg_direction(problem: Problem, h: Array, g: Array, g_b: float, l2: Array) -> tuple[Array, float]:
    X, ph = problem.X, problem.p * h
    with_b = problem.fit_intercept

    def hessian(z: Array) -> Array:
        dw = z[1:] if with_b else z
        score = ph * (matvec(X, dw) + (z[0] if with_b else 0.0))
        out = rmatvec(X, score) + l2 * dw
        return np.concatenate([[score.sum()], out]) if with_b else out

    squares = (X.multiply(X)).T @ ph if is_sparse(X) else np.einsum("ij,ij,i->j", X, X, ph)
    diagonal = np.asarray(squares).ravel() + l2
    diagonal = np.concatenate([[ph.sum()], diagonal]) if with_b else diagonal
    inverse = 1.0 / np.where(diagonal > 0, diagonal, 1.0)
    right = -np.concatenate([[g_b], g]) if with_b else -g
    z, r = np.zeros_like(right), right.copy()
    q = inverse * r
    direction, rho = q.copy(), float(r @ q)
    first = rho
    for _ in range(10 * right.shape[0] + 50):
        if rho <= min(1e-4, np.sqrt(first)) ** 2 * 1e-4 * first or rho <= 0:
            break
        image = hessian(direction)
        curvature = float(direction @ image)
        if curvature <= 0:
            break
        length = rho / curvature
        z += length * direction
        r -= length * image
        q = inverse * r
        rho, previous = float(r @ q), rho
        direction = q + (rho / previous) * direction
    return (z[1:], float(z[0])) if with_b else (z, 0.0)


def subsample_start(
    problem: Problem,
    start: tuple[Array, float],
    tol: float,
    max_iter: int,
    solver: Callable[[Problem, tuple[Array, float], float, int, Progress], Solution],
) -> tuple[Array, float]:
    """A starting point from a part of the rows, itself started from a smaller part."""
    n, d = problem.shape
    part = n // 8
    if part < max(SUBSAMPLE_FROM // 8, 20 * d) or is_sparse(problem.X):
        return start
    # A fixed seed: the start must not depend on anything but the data, and the end does not depend on the start.
    chosen = np.sort(np.random.default_rng(0).choice(n, part, replace=False))
    weight = problem.p[chosen] / problem.p[chosen].sum()
    small = replace(problem, X=problem.X[chosen], y=problem.y[chosen], p=weight)
    rough = max(tol, 0.1 * d / part * problem.scale)  # no better than the statistical error of the part
    solution = solver(small, start, rough, max_iter, Progress())
    return solution.coef, solution.intercept
