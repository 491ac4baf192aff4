"""Softmax regression with no penalty or an L2 penalty: Newton's method.

    P(W, b) = Σ_i p_i ℓ(y_i, W x_i + b) + ½ Σ_kj l2_j W_kj²

Small data: each step solves the (K·D) × (K·D) system by Cholesky. Tall data: the optimum of a part of the rows, and its
Hessian, start a descent on all rows that costs one pass an iteration (see sketch.py). Wide or sparse data: conjugate
gradients, preconditioned by what is affordable. The Newton step δ gives a dual point for free: θ + H·(Aδ) satisfies the
dual conditions up to the residual of the system, which the penalty absorbs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from certifit._types import Array, is_sparse
from certifit.optimization.newton.sketch import quasi_newton
from certifit.optimization.newton.softmax import (
    EXACT_LIMIT,
    SoftmaxProblem,
    SoftmaxSolution,
    Solve,
    State,
    block_hessian,
    curve,
    dual_bound,
    dual_value,
    evaluate,
    factored,
    join,
    risk_of,
    slopes,
    split,
)
from certifit.progress import Progress
from certifit.representation.design.products import weighted_gram

__all__ = ["solve_smooth"]

PART = 8  # a stage has this many times the rows of the stage before
LEAST = 1000  # rows below which a stage does not pay
BLOCK_LIMIT = 1500  # columns up to which the Hessian of each class is factored


def solve_smooth(
    problem: SoftmaxProblem, start: tuple[Array, Array], tol: float, max_iter: int, clock: Progress
) -> SoftmaxSolution:
    """Minimize to the absolute gap `tol`."""
    start = start[0] - start[0].mean(axis=0), start[1] - start[1].mean()  # where the optimum is, too
    W, b, solve = _subsample_start(problem, start, tol, max_iter)
    if solve is None:
        return _newton(problem, evaluate(problem, *start), tol, max_iter, clock, None, 0)
    state, used = _descend(problem, W, b, solve, tol, max_iter)
    if not state.objective <= problem.scale:  # a part that was not like the whole (rare classes), or a poor warm start
        first = evaluate(problem, *start)
        if not state.objective <= first.objective:
            state, solve = first, None
    return _newton(problem, state, tol, max_iter, clock, solve, used)


def _subsample_start(
    problem: SoftmaxProblem, start: tuple[Array, Array], tol: float, max_iter: int
) -> tuple[Array, Array, Solve | None]:
    """Optimum and Hessian of a part of the rows, itself started from a smaller part; None when there is no part."""
    n, d = problem.shape
    part, size = n // PART, problem.n_classes * (d + problem.fit_intercept)
    if not problem.dense or part < max(LEAST, 4 * size) or size > EXACT_LIMIT:
        return (*start, None)
    # A fixed seed: the start depends on nothing but the data, and the end does not depend on the start.
    chosen = np.sort(np.random.default_rng(0).choice(n, part, replace=False))
    weight = problem.p[chosen] / problem.p[chosen].sum()
    y = problem.y[chosen]
    if np.unique(y).shape[0] < problem.n_classes:
        return (*start, None)
    small = replace(problem, X=problem.X[chosen], y=y, p=weight)
    rough = max(tol, 0.1 * size / part * problem.scale)  # no better than the statistical error of the part
    W, b, solve = _subsample_start(small, start, rough, max_iter)
    state, _ = _descend(small, W, b, solve or _kronecker(small), rough, max_iter)
    return state.W, state.b, _exact(small, state, single=True)


def _descend(problem: SoftmaxProblem, W: Array, b: Array, solve: Solve, tol: float, max_iter: int) -> tuple[State, int]:
    """Quasi-Newton steps until the gradient proves the gap, or until a Newton step is the better way to prove it."""
    K, with_b, l2 = problem.n_classes, problem.fit_intercept, _l2(problem)
    last, known = evaluate(problem, W, b), 1e-5 if (l2 > 0.0).all() else 0.01

    def gradient(x: Array) -> Array:
        nonlocal last
        last = evaluate(problem, *split(x.reshape(K, -1), with_b))
        return flat(last)

    def flat(state: State) -> Array:
        return _centered(join(state.gradient + l2 * state.W, state.gradient_b, with_b)).ravel()

    def enough(x: Array, g: Array) -> bool:
        # With a penalty the gradient itself becomes the proof; without one, a Newton step proves the rest.
        return _provable(g.reshape(K, -1), l2, with_b) <= 0.3 * tol or float(g @ solve(g)) <= known * tol

    x = join(W, b, with_b).ravel()
    x, _, iterations = quasi_newton(gradient, solve, x, flat(last), enough, max_iter)
    W, b = split(x.reshape(K, -1), with_b)
    if not (np.array_equal(W, last.W) and np.array_equal(b, last.b)):  # the last trial was refused
        last = evaluate(problem, W, b)
    return last, iterations


def _provable(g: Array, l2: Array, with_b: bool) -> float:
    """The gap ‖∇‖²/(2 l2) that a gradient proves, once the intercepts are refitted."""
    slope = g[:, int(with_b) :]
    if not (l2 > 0.0).all():
        return np.inf
    return 0.5 * float((slope * slope / l2).sum())


def _newton(
    problem: SoftmaxProblem,
    state: State,
    tol: float,
    max_iter: int,
    clock: Progress,
    solve: Solve | None,
    used: int,
) -> SoftmaxSolution:
    """Newton steps by preconditioned conjugate gradients; a preconditioner that is not given is made at every step."""
    with_b, l2 = problem.fit_intercept, _l2(problem)
    bound, note = 0.0, ""
    fixed, iteration, fresh = solve, used, True
    for iteration in range(used + 1, max(max_iter, used + 1) + 1):
        g = _centered(join(state.gradient + l2 * state.W, state.gradient_b, with_b))
        if _provable(g, l2, with_b) <= tol:
            bound = max(bound, dual_bound(problem, state))
            if state.objective - bound <= tol:
                break
        if fixed is None:
            solve = _preconditioner(problem, state)
        assert solve is not None
        delta, moved, residual = _conjugate_gradients(problem, state, g, solve, l2, tol)
        dW, db = split(delta, with_b)
        # The dual point of the step: its −Xᵀ(pθ) is l2·(W + δ) less the residual of the linear system.
        theta = slopes(problem, state.probability) + curve(state.probability, moved)
        bound = max(bound, _step_bound(problem, state, theta, delta, g, residual, tol))
        step, reached = _line_search(problem, state, moved, dW, float((g * delta).sum()))
        clock.update(iteration, max_iter, (state.objective - bound) / max(problem.scale, 1e-300))
        if step == 0.0:
            if fixed is not None and fresh:  # the part of the rows misleads here: use all of them
                fixed, fresh = None, False
                continue
            note = "The line search found no lower value: rounding limits the fit."
            break
        stalled = state.objective - reached <= 1e-15 * abs(state.objective)
        state = evaluate(problem, state.W + step * dW, state.b + step * db)
        if state.objective - bound <= tol:
            break
        if stalled:
            bound = max(bound, dual_bound(problem, state))
            break
    if state.objective - bound > tol:
        bound = max(bound, dual_bound(problem, state))
    return SoftmaxSolution(state.W, state.b, iteration, "newton", bound, state.objective, note)


def _l2(problem: SoftmaxProblem) -> Array:
    l2 = problem.regularizer.smooth()
    assert l2 is not None  # the dispatcher sends nothing else here
    return l2


def _centered(g: Array) -> Array:
    """Gradients sum to zero over the classes: remove what rounding left. (For W this holds at W that sum to zero.)"""
    return np.asarray(g - g.mean(axis=0))


def _line_search(problem: SoftmaxProblem, state: State, moved: Array, dW: Array, slope: float) -> tuple[float, float]:
    """Armijo on scores alone: no pass over X."""
    step, objective = 1.0, state.objective
    for _ in range(50):
        reached = risk_of(problem, state.f + step * moved) + problem.penalty(state.W + step * dW)
        if reached <= objective + 1e-4 * step * slope:
            return step, reached
        if abs(slope) <= 1e-13 * max(abs(objective), 1e-300) and reached <= objective * (1 + 1e-15):
            return step, reached
        step *= 0.5
    return 0.0, objective


def _step_bound(
    problem: SoftmaxProblem, state: State, theta: Array, delta: Array, g: Array, residual: Array, tol: float
) -> float:
    """D at the dual point of a Newton step, evaluated only where it can prove something."""
    l2 = _l2(problem)
    dW, db = split(delta, problem.fit_intercept)
    ahead = state._replace(W=state.W + dW, b=state.b + db)
    if (l2 > 0.0).all():
        near = _provable(residual, l2, problem.fit_intercept) <= 3.0 * tol
        return dual_bound(problem, ahead, theta) if near else 0.0
    # Unpenalized columns: the step itself made the slopes orthogonal to them, if the system was solved to rounding.
    if float(np.abs(residual).max()) > 1e-9 * float(np.abs(g).max()):
        return 0.0
    r, r_b = split(residual, problem.fit_intercept)
    v, free = l2 * ahead.W - r, l2 == 0.0
    slack = float(np.abs(v[:, free]).ravel() @ np.abs(ahead.W[:, free]).ravel()) + float(np.abs(r_b) @ np.abs(ahead.b))
    v[:, free] = 0.0
    return max(0.0, dual_value(problem, theta, v) - 2.0 * slack)


def _conjugate_gradients(
    problem: SoftmaxProblem, state: State, g: Array, solve: Solve, l2: Array, tol: float
) -> tuple[Array, Array, Array]:
    """δ, Aδ and the residual ∇ + Hδ of the Newton system."""
    K, with_b, pi = problem.n_classes, problem.fit_intercept, state.probability
    delta, residual = np.zeros_like(g), g.copy()
    moved = np.zeros_like(pi)
    q = _centered(solve(residual.ravel()).reshape(K, -1))
    direction, rho = -q, float((residual * q).sum())
    first = rho
    if not rho > 0.0:
        return delta, moved, residual
    # Far from the optimum a rough step is enough; near it, the residual must be small enough for the proof.
    wanted = min(0.01, first / max(problem.scale, 1e-300)) ** 2 * first if first > 100.0 * tol else 0.0
    smallest, rising = np.inf, 0
    for _ in range(20 + 2 * g.size):
        dW, db = split(direction, with_b)
        z, image_W, image_b = problem.curved(pi, dW, db)
        image = _centered(join(image_W + l2 * dW, image_b, with_b))
        curvature = float((direction * image).sum())
        if not curvature > 0.0:
            break
        length = rho / curvature
        delta += length * direction
        moved += length * z
        residual += length * image
        q = _centered(solve(residual.ravel()).reshape(K, -1))
        rho, previous = float((residual * q).sum()), rho
        proven = _provable(residual, l2, with_b) <= 0.1 * tol and rho <= 0.01 * tol
        if rho <= max(wanted, 1e-26 * first) or proven:
            break
        rising = 0 if rho < 0.9 * smallest else rising + 1
        smallest = min(smallest, rho)
        if rising > 20 or not rho > 0.0:  # rounding: no further progress
            break
        direction = -q + (rho / previous) * direction
    return delta, moved, residual


def _preconditioner(problem: SoftmaxProblem, state: State) -> Solve:
    """The Hessian as exactly as its size allows: whole, by classes, or its diagonal."""
    K, d = problem.n_classes, problem.shape[1]
    width = d + problem.fit_intercept
    if K * width <= EXACT_LIMIT:
        return _exact(problem, state)
    if width <= BLOCK_LIMIT and not is_sparse(problem.X):
        return _by_class(problem, state)
    return _diagonal(problem, state)


def _exact(problem: SoftmaxProblem, state: State, *, single: bool = False) -> Solve:
    K, l2 = problem.n_classes, _l2(problem)
    hessian = block_hessian(problem, problem.p, state.probability, single=single)
    strength = np.tile(np.append(np.zeros(int(problem.fit_intercept)), l2), K)
    hessian[np.diag_indices(hessian.shape[0])] += strength
    return factored(hessian, K)


def _kronecker(problem: SoftmaxProblem) -> Solve:
    """The Hessian of constant scores, (diag(π) − ππᵀ) ⊗ X̃ᵀ(p X̃): one inverse for each eigenvalue of the first."""
    K, l2, first = problem.n_classes, _l2(problem), 0 if problem.fit_intercept else 1
    share = np.bincount(problem.y, weights=problem.p, minlength=K)
    values, vectors = np.linalg.eigh(np.diag(share) - np.outer(share, share))
    gram = weighted_gram(problem.X, problem.p)[first:, first:]
    strength = np.append(0.0, l2)[first:]
    ridge = 1e-10 * np.diag(gram).max(initial=0.0) + 1e-300
    blocks = np.maximum(values, 1e-3 / K)[:, None, None] * gram + np.diag(strength + ridge)
    inverse = np.linalg.inv(blocks)  # applied dozens of times to one vector each: cheaper than as many solves

    def solve(right: Array) -> Array:
        turned = vectors.T @ right.reshape(K, -1)
        return np.asarray(_centered(vectors @ (inverse @ turned[:, :, None])[:, :, 0]).ravel())

    return solve


def _by_class(problem: SoftmaxProblem, state: State) -> Solve:
    """Cholesky of the Hessian of each class, coupling between classes ignored."""
    K, l2, first = problem.n_classes, _l2(problem), 0 if problem.fit_intercept else 1
    factors = []
    for pi in state.probability:
        gram = weighted_gram(problem.X, problem.p * pi * (1.0 - pi)).astype(np.float64)
        diagonal = np.diag_indices(gram.shape[0])
        gram[diagonal] += np.append(0.0, l2)
        gram = gram[first:, first:]
        gram[np.diag_indices(gram.shape[0])] += 1e-10 * float(np.trace(gram)) / gram.shape[0] + 1e-300
        factors.append(scipy.linalg.cho_factor(gram, check_finite=False))

    def solve(right: Array) -> Array:
        rows = right.reshape(K, -1)
        return np.concatenate(
            [scipy.linalg.cho_solve(f, r, check_finite=False) for f, r in zip(factors, rows, strict=True)]
        )

    return solve


def _diagonal(problem: SoftmaxProblem, state: State) -> Solve:
    X, l2 = problem.X, _l2(problem)
    weight = problem.p * state.probability * (1.0 - state.probability)
    squares = X.multiply(X) if is_sparse(X) else X.astype(np.float64) ** 2
    diagonal = np.asarray((squares.T @ weight.T).T) + l2
    diagonal = join(diagonal, weight.sum(axis=1), problem.fit_intercept).ravel()
    inverse = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)
    return lambda right: np.asarray(inverse * right)
