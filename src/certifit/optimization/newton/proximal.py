"""Prox-Newton for a smooth loss and any regularizer with a prox.

    P(w, b) = Σ p_i ℓ(y_i, x_i·w + b) + R(w)

Each step minimizes the quadratic model of the loss plus R: a penalized weighted least squares problem. For a separable R
(L1, elastic net, Lq, box) it is solved over a working set of columns by the coordinate-descent kernel, on the Gram matrix
of the working set when that is small beside n, on the columns otherwise. For any other R (balls, penalties of your own)
accelerated proximal gradient runs on the Gram matrix. A line search on P makes it global.     Lee, Sun & Saunders 2014
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.optimization.coordinate import descent as coordinate
from certifit.optimization.newton.smooth import Damping, armijo, solve_semidefinite, subsample_start
from certifit.optimization.objective.problem import Problem, Solution, dual_bound
from certifit.optimization.objective.regularizer import kernel_penalty
from certifit.progress import Progress
from certifit.representation.design.products import ColumnCache, matvec, rmatvec, weighted_gram

__all__ = ["prox_newton"]

GRAM_LIMIT = 2000  # a larger working set is solved on its columns
NEAR = 30.0  # a bound is worth its pass over X once the model promises less than this many tolerances
ALMOST = 0.97  # share of the l1 strength from which a slope counts as near to it
ROUGH, FINE = 0.1, 1e-3  # precision of a model step, as a share of the present violation
LAST = 1e-4  # promise, as a share of the scale, after which the next step is likely to be the last


def prox_newton(problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress) -> Solution:
    """Minimize P to the absolute gap `tol`."""
    start = subsample_start(problem, start, tol, max_iter, prox_newton)
    if is_sparse(problem.X) and problem.X.format != "csc":
        problem = replace(problem, X=problem.X.tocsc())  # working sets are columns: convert once, not at every step
    y, p, loss, regularizer = problem.y, problem.p, problem.loss, problem.regularizer
    d = problem.shape[1]
    separable = regularizer.ball is None and not (regularizer.elastic() is None and regularizer.power() is None)
    (w, b), bound, note = start, 0.0, ""
    f = problem.scores(w, b)
    penalty = regularizer.value(w)
    objective = problem.risk(f) + penalty
    # Sparse columns are cheap to sweep, so that a generous first working set saves whole steps.
    size = max(d // 16 if is_sparse(problem.X) else 10, 2 * int(np.count_nonzero(w)))
    damping, model = Damping(loss), _Model(problem)
    l1 = (regularizer.elastic() or (np.full(d, np.inf),))[0]
    iteration, inner = 0, ROUGH
    for iteration in range(1, max_iter + 1):
        theta, h = damping.slopes(y, f)
        g = rmatvec(problem.X, p * theta)
        if separable:
            violation = regularizer.violation(w, g)
            near = np.abs(g) > ALMOST * l1  # columns that the step may wake, and that would then spoil the bound
            chosen = _working_set(w, violation, near, size if d > 200 else d)
            size = min(d, 2 * size)
            dw, db, df = _model_step(model, chosen, w, g, theta, h, inner * float(violation.max()))
        else:
            size, chosen = d, np.arange(d)
            dw, db = _generic_step(problem, w, g, theta, h)
            df = matvec(problem.X, dw) + db
        full = np.zeros(d)
        full[chosen] = dw
        promised = float(g[chosen] @ dw) + float(p @ theta) * db + regularizer.value(w + full) - penalty
        step, f_new, reached = armijo(
            lambda t, f=f, df=df, w=w, full=full: (f + t * df, regularizer.value(w + t * full)),  # type: ignore[misc]
            problem.risk,
            objective,
            promised,
        )
        # Near the optimum the model is exact, and solving it well proves the gap sooner than another step.
        inner = FINE if -promised < LAST * problem.scale else ROUGH
        stuck = step == 0.0 or objective - reached <= 1e-16 * abs(objective)
        # The slopes that the model predicts are a dual point accurate to second order.
        if -promised <= NEAR * tol or iteration == max_iter:
            bound = max(bound, dual_bound(problem, w + full, f + df, theta=theta + h * df))
        if step > 0.0:
            w, b, f, objective = w + step * full, b + step * db, f_new, reached
            penalty = regularizer.value(w)
        clock.update(iteration, max_iter, (objective - bound) / max(problem.scale, 1e-300))
        if objective - bound <= tol:
            break
        if stuck or step < 1.0:
            if problem.fit_intercept:
                f, b = problem.refit_intercept(f, b)
                objective = problem.risk(f) + regularizer.value(w)
            bound = max(bound, dual_bound(problem, w, f))
            if objective - bound <= tol:
                break
        if stuck and damping.level >= 1.0 and size >= d:
            note = "The line search found no lower value: rounding limits the fit."
            break
        damping.learn(0.0 if stuck else step)  # a better model, or more columns, may still help
    return Solution(w, b, iteration, "prox_newton", bound, objective, note=note)


def _working_set(w: Array, violation: Array, near: Array, size: int) -> Array:
    """The support, the columns that violate the optimality conditions most, and as there is room those near to it."""
    wanted = (w != 0) | (violation > 0) | near
    count = int(wanted.sum())
    if count <= size:
        return np.flatnonzero(wanted)
    priority = np.where(w != 0, np.inf, violation)
    keep = max(size, int(np.count_nonzero(w)))
    return np.sort(np.argpartition(-priority, keep - 1)[:keep])


class _Model:
    """What the quadratic models of all steps share."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.columns = problem, ColumnCache(problem.X)

    @cached_property
    def shape(self) -> dict[str, Any]:
        """A separable regularizer as the kernel takes it."""
        return kernel_penalty(self.problem.regularizer)

    @cached_property
    def sweeps(self) -> coordinate.QuadraticModel:
        """The kernel that works on the columns themselves."""
        return coordinate.QuadraticModel(self.problem.X, **self.shape)


def _model_step(
    model: _Model, chosen: Array, w: Array, g: Array, theta: Array, h: Array, tol: float
) -> tuple[Array, float, Array]:
    """Minimizer of the quadratic model over the working set, as a step from w, and the change of the scores."""
    problem, shape = model.problem, dict(model.shape)
    X, p, with_b = problem.X, problem.p, problem.fit_intercept
    k = chosen.shape[0]
    if k > min(GRAM_LIMIT, X.shape[0]) or (is_sparse(X) and k > 500):
        result = model.sweeps.solve(
            -p * theta, p * h, coef=w, columns=chosen, fit_intercept=with_b, tol=tol, n_threads=problem.threads
        )
        return result.coef[chosen] - w[chosen], result.intercept_change, result.scores_change
    columns = model.columns(chosen)
    gram = weighted_gram(columns, p * h, threads=problem.threads)
    q = shape.pop("q")
    # The intercept is a column like the others, without penalty or bounds.
    part = {
        key: None if value is None else np.append({"lower": -np.inf, "upper": np.inf}.get(key, 0.0), value[chosen])
        for key, value in shape.items()
    }
    first = 0 if with_b else 1
    negative, old = np.append(-(p @ theta), -g[chosen])[first:], np.append(0.0, w[chosen])[first:]
    part = {key: None if value is None else value[first:] for key, value in part.items()}
    delta = _solve_model(gram[first:, first:], negative, old, q, tol, part) - old
    dw, db = (delta[1:], float(delta[0])) if with_b else (delta, 0.0)
    return dw, db, matvec(columns, dw) + db


def _solve_model(gram: Array, negative: Array, old: Array, q: float | None, tol: float, part: dict[str, Any]) -> Array:
    """Coordinate descent on the Gram matrix, helped by Newton steps on the support where its sweeps are slow."""
    coef, gradient = old, negative
    for _ in range(50):
        result = coordinate.gram_quadratic(gram, gradient, coef=coef, q=q, tol=tol, max_iter=200, **part)
        coef, gradient = result.coef, result.negative_gradient
        if result.kkt <= tol or q is not None:
            break
        step = _support_step(gram, gradient, coef, part)
        if not step.any():
            break
        coef = coef + step
        gradient = gradient - gram @ step
    return coef


def _support_step(gram: Array, gradient: Array, coef: Array, part: dict[str, Any]) -> Array:
    """The Newton step among the coefficients that are free to move, up to the first that would cross a kink or bound."""
    l1, l2 = part["l1"], part["l2"]
    lower = np.full_like(coef, -np.inf) if part["lower"] is None else part["lower"]
    upper = np.full_like(coef, np.inf) if part["upper"] is None else part["upper"]
    free = np.flatnonzero(((coef != 0) | (l1 == 0)) & (coef > lower) & (coef < upper))
    step = np.zeros_like(coef)
    if free.size == 0:
        return step
    matrix = gram[np.ix_(free, free)] + np.diag(l2[free])
    right = gradient[free] - l1[free] * np.sign(coef[free]) - l2[free] * coef[free]
    move = solve_semidefinite(matrix, right)
    end = np.clip(coef[free] + move, lower[free], upper[free])
    end = np.where((l1[free] > 0) & (np.sign(end) != np.sign(coef[free])), 0.0, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(move != 0, (end - coef[free]) / move, 1.0)
    share = min(1.0, float(room.min()))
    step[free] = share * move
    at_end = (room <= share) & (share < 1.0)
    step[free[at_end]] = end[at_end] - coef[free[at_end]]  # exactly on the kink or bound
    return step


def _generic_step(problem: Problem, w: Array, g: Array, theta: Array, h: Array) -> tuple[Array, float]:
    """Minimizer of the quadratic model by accelerated proximal gradient; the intercept is eliminated exactly."""
    regularizer = problem.regularizer
    gram = weighted_gram(problem.X, problem.p * h)
    right, mean = -g, np.zeros_like(g)
    hessian = gram[1:, 1:]
    slope = float(problem.p @ theta)
    if problem.fit_intercept and gram[0, 0] > 0:
        mean = gram[0, 1:] / gram[0, 0]
        right = right + slope * mean
        hessian = hessian - np.outer(mean, gram[0, 1:])
    lipschitz = float(np.linalg.eigvalsh(hessian)[-1]) * (1 + 1e-10)
    if not lipschitz > 0:
        return np.zeros_like(w), 0.0
    u, z, momentum, first = w, w, 1.0, np.inf
    for k in range(5000):
        new = regularizer.prox(z - (hessian @ (z - w) - right) / lipschitz, 1.0 / lipschitz)
        moved = new - u
        if float((z - new) @ moved) > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        size = float(np.linalg.norm(new - z))
        first = size if k == 0 else first
        u, z, momentum = new, new + (momentum - 1.0) / following * moved, following
        if size <= 1e-5 * first:
            break
    dw = u - w
    db = -slope / gram[0, 0] - float(mean @ dw) if problem.fit_intercept and gram[0, 0] > 0 else 0.0
    return dw, db
