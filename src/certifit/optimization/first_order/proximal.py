"""Accelerated proximal gradient (FISTA) for any smooth loss and any regularizer with a prox.

    z = w + momentum,   w⁺ = prox_{R/L}(z − ∇(z)/L)

L is found by backtracking, and the momentum restarts when it points uphill.     Beck & Teboulle 2009; O'Donoghue & Candès 2015
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.optimization.objective.problem import Problem, Solution, dual_bound
from certifit.progress import Progress
from certifit.representation.design.products import matvec, rmatvec

__all__ = ["curvature", "proximal_gradient"]

CHECK_EVERY = 10  # iterations between two evaluations of the gap


def proximal_gradient(
    problem: Problem, start: tuple[Array, float], tol: float, max_iter: int, clock: Progress
) -> Solution:
    """Minimize P to the absolute gap `tol`; the intercept is minimized out exactly at every check."""
    y, p, loss, regularizer = problem.y, problem.p, problem.loss, problem.regularizer
    w, b = start
    f = problem.scores(w, b)
    z_w, z_b, z_f = w, b, f
    lipschitz, momentum, bound = curvature(problem, f), 1.0, 0.0
    best = (w, b, problem.risk(f) + regularizer.value(w))
    iteration = 0
    for iteration in range(1, max_iter + 1):
        theta = loss.derivative(y, z_f)
        g = rmatvec(problem.X, p * theta)
        g_b = float(p @ theta) if problem.fit_intercept else 0.0
        risk_z = problem.risk(z_f)
        for _ in range(100):
            new_w = regularizer.prox(z_w - g / lipschitz, 1.0 / lipschitz)
            dw, db = new_w - z_w, -g_b / lipschitz
            new_f = z_f + matvec(problem.X, dw) + db
            model = float(g @ dw) + g_b * db + 0.5 * lipschitz * (float(dw @ dw) + db * db)
            if problem.risk(new_f) <= risk_z + model + 1e-14 * abs(risk_z):
                break
            lipschitz *= 2.0
        new_b = z_b + db
        # Restart when the step turns against the last direction of travel.
        if float((z_w - new_w) @ (new_w - w)) + (z_b - new_b) * (new_b - b) > 0:
            momentum = 1.0
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
        push = (momentum - 1.0) / following
        z_w, z_b = new_w + push * (new_w - w), new_b + push * (new_b - b)
        z_f = new_f + push * (new_f - f)
        w, b, f, momentum = new_w, new_b, new_f, following
        lipschitz *= 0.98  # let a step that was too careful grow again
        if iteration % CHECK_EVERY == 0 or iteration == max_iter:
            f = problem.scores(w, b)  # undo the drift of the running sums
            f_check, b_check = problem.refit_intercept(f, b) if problem.fit_intercept else (f, b)
            value = problem.risk(f_check) + regularizer.value(w)
            if value < best[2]:
                best = (w, b_check, value)
            bound = max(bound, dual_bound(problem, w, f_check))
            clock.update(iteration, max_iter, (best[2] - bound) / max(problem.scale, 1e-300))
            if best[2] - bound <= tol:
                break
    return Solution(best[0], best[1], iteration, "proximal", bound)


def curvature(problem: Problem, f: Array) -> float:
    """An estimate of the largest curvature of the risk, by power iteration; from below, so steps are checked."""
    h = problem.p * problem.loss.second_derivative(problem.y, f)
    direction = np.random.default_rng(0).normal(size=problem.shape[1])
    for _ in range(5):
        image = rmatvec(problem.X, h * matvec(problem.X, direction))
        size = float(np.linalg.norm(image))
        if not (size > 0 and np.isfinite(size)):
            return 1.0
        direction = image / size
    return max(size, float(h.sum()), 1e-300)
