"""Softmax regression with an L1 or elastic-net penalty: prox-Newton.

    P(W, b) = Σ_i p_i ℓ(y_i, W x_i + b) + Σ_kj l1_j |W_kj| + ½ l2_j W_kj²

Each step minimizes the quadratic model of the loss plus the penalty by coordinate descent. While the working set
of features is small, the model is the whole one, all classes coupled; beyond that the classes take turns, each with
its own curvature π_k(1 − π_k). A line search on P makes it global.
Friedman, Hastie & Tibshirani 2010; Lee, Sun & Saunders 2014
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from certifit._types import Array
from certifit.optimization.coordinate import descent as coordinate
from certifit.optimization.newton.softmax import (
    SoftmaxProblem,
    SoftmaxSolution,
    State,
    block_hessian,
    curve,
    dual_bound,
    evaluate,
    forward,
    join,
    risk_of,
    slopes,
    split,
)
from certifit.progress import Progress

__all__ = ["solve_prox"]

JOINT_LIMIT = 1500  # K·(features in the working set) up to which all classes are solved together


def solve_prox(
    problem: SoftmaxProblem, start: tuple[Array, Array], tol: float, max_iter: int, clock: Progress
) -> SoftmaxSolution:
    """Minimize to the absolute gap `tol`."""
    parts = problem.regularizer.elastic()
    assert parts is not None  # the estimator refuses other penalties of more than two classes
    if not problem.dense and problem.X.format != "csc":
        problem = replace(problem, X=problem.X.tocsc())
    l1, l2 = parts
    K, d = problem.n_classes, problem.shape[1]
    start = _stage(problem, start, tol, max_iter)
    state, bound, note = evaluate(problem, *start), 0.0, ""
    size, iteration, stuck = max(10, 2 * int((state.W != 0).any(axis=0).sum())), 0, 0
    for iteration in range(1, max_iter + 1):
        violation = _violation(state, l1, l2)
        chosen = _working_set(state.W, violation, size if K * d > JOINT_LIMIT else d)
        size = min(d, 2 * size)
        worst = max(float(violation.max()), float(np.abs(state.gradient_b).max()))
        joint = K * (chosen.shape[0] + 1) <= JOINT_LIMIT
        if joint:
            dW, db = _joint_step(problem, state, chosen, l1, l2, 0.1 * worst)
            moved = forward(problem.X[:, chosen], dW[:, chosen]) + db[:, None]
            theta = slopes(problem, state.probability) + curve(state.probability, moved)
            bound = max(bound, dual_bound(problem, state._replace(W=state.W + dW, b=state.b + db), theta))
            W, b, reached = _search(problem, state, moved, dW, db)
        else:
            W, b, reached = _by_class(problem, state, chosen, l1, l2, 0.1 * worst)
        progress = state.objective - reached
        state = evaluate(problem, W, b)
        bound = max(bound, dual_bound(problem, state))
        clock.update(iteration, max_iter, (state.objective - bound) / max(problem.scale, 1e-300))
        if state.objective - bound <= tol:
            break
        stuck = stuck + 1 if progress <= 1e-15 * abs(state.objective) else 0
        if stuck >= 3 and size >= d:
            note = "The line search found no lower value: rounding limits the fit."
            break
    return SoftmaxSolution(state.W, state.b, iteration, "prox_newton", bound, state.objective, note)


def _stage(problem: SoftmaxProblem, start: tuple[Array, Array], tol: float, max_iter: int) -> tuple[Array, Array]:
    """A start from an eighth of the rows, for tall dense data."""
    n, d = problem.shape
    part = n // 8
    if not problem.dense or part < max(2500, 20 * d):
        return start
    chosen = np.sort(np.random.default_rng(0).choice(n, part, replace=False))
    weight = problem.p[chosen] / problem.p[chosen].sum()
    small = replace(problem, X=problem.X[chosen], y=problem.y[chosen], p=weight)
    rough = max(tol, 0.1 * d / part * problem.scale)
    solution = solve_prox(small, start, rough, max_iter, Progress())
    return solution.W, solution.b


def _violation(state: State, l1: Array, l2: Array) -> Array:
    """Distance of 0 to the subdifferential, shape (K, d)."""
    g, sign = state.gradient + l2 * state.W, np.sign(state.W)
    return np.where(sign == 0.0, np.maximum(np.abs(g) - l1, 0.0), np.abs(g + l1 * sign))


def _working_set(W: Array, violation: Array, size: int) -> Array:
    """Features in use and those that violate the optimality conditions most."""
    used, worst = (W != 0).any(axis=0), violation.max(axis=0)
    wanted = used | (worst > 0)
    if int(wanted.sum()) <= size:
        return np.flatnonzero(wanted)
    keep = max(size, int(used.sum()))
    return np.sort(np.argpartition(-np.where(used, np.inf, worst), keep - 1)[:keep])


def _joint_step(
    problem: SoftmaxProblem, state: State, chosen: Array, l1: Array, l2: Array, tol: float
) -> tuple[Array, Array]:
    """Minimizer of the quadratic model of all classes over the chosen features, as a step."""
    K, with_b = problem.n_classes, problem.fit_intercept
    part = replace(problem, X=problem.X[:, chosen])
    hessian = block_hessian(part, problem.p, state.probability)
    g = join(state.gradient[:, chosen], state.gradient_b, with_b)
    old = join(state.W[:, chosen], np.zeros(K), with_b)
    free = np.zeros(int(with_b))
    # The direction that all classes share has no curvature; a trace of it keeps the intercepts finite.
    D = g.shape[1]
    own = np.einsum("kjkj->kj", hessian.reshape(K, D, K, D)).ravel()
    hessian[np.diag_indices(K * D)] += 1e-10 * np.where(own > 0, own, 1.0)
    result = coordinate.gram_quadratic(
        hessian,
        -g.ravel(),
        coef=old.ravel(),
        l1=np.tile(np.append(free, l1[chosen]), K),
        l2=np.tile(np.append(free, l2[chosen]), K),
        tol=tol,
    )
    dW_chosen, db = split((result.coef - old.ravel()).reshape(K, D), with_b)
    dW = np.zeros_like(state.W)
    dW[:, chosen] = dW_chosen
    return dW, db


def _search(problem: SoftmaxProblem, state: State, moved: Array, dW: Array, db: Array) -> tuple[Array, Array, float]:
    """Halve the step until P falls; scores only."""
    before = problem.penalty(state.W)
    linear = float((state.gradient * dW).sum()) + float(state.gradient_b @ db)
    promised = linear + problem.penalty(state.W + dW) - before
    step = 1.0
    for _ in range(50):
        W = state.W + step * dW
        reached = risk_of(problem, state.f + step * moved) + problem.penalty(W)
        if reached <= state.objective + 1e-4 * step * min(promised, 0.0) or (
            abs(promised) <= 1e-13 * abs(state.objective) and reached <= state.objective * (1 + 1e-15)
        ):
            b = state.b + step * db
            return W, b - b.mean(), reached  # a shift that all classes share changes nothing
        step *= 0.5
    return state.W, state.b, state.objective


def _by_class(
    problem: SoftmaxProblem, state: State, chosen: Array, l1: Array, l2: Array, tol: float
) -> tuple[Array, Array, float]:
    """One prox-Newton step of each class in turn, the scores of the others held."""
    X, y, p, with_b = problem.X, problem.y, problem.p, problem.fit_intercept
    if problem.dense:
        X = np.asfortranarray(X)
    f, W, b = state.f.copy(), state.W.copy(), state.b.copy()
    objective = state.objective
    for k in range(problem.n_classes):
        pi = np.exp(f - f.max(axis=0))
        pi = pi[k] / pi.sum(axis=0)
        theta = pi.copy()
        theta[y == k] -= 1.0
        result = coordinate.quadratic(
            X,
            -p * theta,
            p * np.maximum(pi * (1.0 - pi), 1e-12),
            coef=W[k],
            l1=l1,
            l2=l2,
            columns=chosen,
            fit_intercept=with_b,
            tol=tol,
            n_threads=problem.threads,
        )
        change, shift = result.coef - W[k], result.intercept_change
        score, step = result.scores_change, 1.0
        old, before = f[k].copy(), problem.regularizer.value(W[k])
        slope = float(p @ (theta * score)) + problem.regularizer.value(result.coef) - before
        for _ in range(30):
            f[k] = old + step * score
            reached = risk_of(problem, f) + (
                problem.penalty(W) - before + problem.regularizer.value(W[k] + step * change)
            )
            if reached <= objective + 1e-4 * step * min(slope, 0.0):
                W[k], b[k], objective = W[k] + step * change, b[k] + step * shift, reached
                break
            step *= 0.5
        else:
            f[k] = old
    return W, b - b.mean(), objective
