"""Which method minimizes a support vector machine, and what comes out of it.

minimize over w, b    Σ p_i ℓ_i(x_i·w + b) + alpha·½‖w‖²

tall dense X            Newton on the method of multipliers; the interior point where more digits are wanted
small X                 interior point, polished onto the kinks: the optimum to rounding
sparse or wide X        dual coordinate descent
squared losses          Newton (conjugate gradients when wide)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from certifit._types import Array, Matrix, is_sparse
from certifit.certificate import Certificate
from certifit.optimization.dual.hinge import best_intercept, hinge_dual
from certifit.optimization.interior_point.solve import solve_polyhedral
from certifit.optimization.newton.kinked import ROWS_PER_COLUMN, SMALLEST_SAMPLE, Kinks, polish, solve_newton
from certifit.optimization.objective.dispatch import certify, minimize
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.units import condition, is_extreme
from certifit.optimization.stochastic.pegasos import pegasos
from certifit.progress import Progress
from certifit.threads import one_blas_thread

__all__ = ["KKT", "Method", "choose", "kkt_classes", "minimize_svm"]

KKT = np.array(["free", "margin", "bound"])
"""θ = 0; the score is on a kink; θ is at a limit."""

SMALL = 1 << 20  # entries of X up to which a fit is polished, and a sparse X is made dense
INTERIOR_WORK = 2e10  # n·d·min(n, d) up to which second-order methods beat dual coordinate descent


@dataclass(frozen=True)
class Method:
    """How to minimize: the solver by name, when to stop, and the seed of what it draws."""

    solver: str
    tol: float
    max_iter: int
    seed: int
    average: bool = False


Run = Callable[[Problem, Method, float, Progress], Solution]


def choose(X: Matrix, smooth: bool) -> str:
    """The solver that ``"auto"`` stands for."""
    n, d = X.shape
    if smooth:
        return "newton"
    if is_sparse(X) and n * d > SMALL:
        return "dual"
    if n >= 3 * max(SMALLEST_SAMPLE, ROWS_PER_COLUMN * d):
        return "newton"
    return "interior_point" if float(n) * d * min(n, d) <= INTERIOR_WORK else "dual"


def minimize_svm(problem: Problem, method: Method, clock: Progress) -> tuple[Solution, Certificate]:
    """Minimize to the relative gap tol; ``extra["theta"]`` of the solution holds the dual point.

    Data of extreme magnitude is brought to ordinary units first.
    """
    name = choose(problem.X, problem.loss.smooth) if method.solver == "auto" else method.solver
    if problem.loss.smooth:
        solution, certificate = minimize(problem, "auto", method.tol, method.max_iter, clock)
        f = problem.scores(solution.coef, solution.intercept, exact=True)
        return replace(solution, extra={"theta": problem.loss.derivative(problem.y, f)}), certificate
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        if not is_extreme(problem):
            solution = RUNS[name](problem, method, method.tol * problem.scale, clock)
            if np.isfinite(solution.coef).all() and np.isfinite(solution.intercept):
                return certify(problem, solution, method.tol, clock)
        conditioned, units = condition(problem)
        # Only the interior point rescales by itself: the others would see penalties that vanish or explode.
        run = RUNS["interior_point" if method.solver == "auto" else name]
        solution = run(conditioned, method, method.tol * conditioned.scale, clock)
        theta = solution.extra["theta"]  # slopes have no unit
        solution, certificate = units.restore(*certify(conditioned, solution, method.tol, clock))
        return replace(solution, extra={"theta": theta}), certificate


def _l2(problem: Problem) -> Array:
    strengths = problem.regularizer.smooth()
    assert strengths is not None
    return strengths


def _interior_point(problem: Problem, method: Method, tol: float, clock: Progress) -> Solution:
    terms, l2 = problem.loss.hinge_terms(problem.y), _l2(problem)
    assert terms is not None
    X, n, d = problem.X, *problem.shape
    small = n * d <= SMALL
    if small and is_sparse(X):
        X = X.toarray()
    # A small problem costs nothing to solve to the last digits, and then does not depend on the order of its rows.
    wanted = min(tol, 1e-10 * problem.scale) if small else tol
    found = solve_polyhedral(
        X,
        terms,
        problem.p,
        l2=l2,
        fit_intercept=problem.fit_intercept,
        tol=wanted,
        max_iter=method.max_iter,
        threads=problem.threads,
    )
    w, b, objective = found.coef, found.intercept, np.nan
    if small and np.isfinite(found.objective) and np.isfinite(w).all():
        w, b, objective = _polished(problem, np.asarray(X, dtype=np.float64), w, b, found.theta, l2)
    met = found.gap <= tol
    note = "" if met or found.status == "optimal" else found.message
    return Solution(
        w,
        b,
        found.iterations,
        "interior_point",
        found.bound,
        objective,
        note=note,
        extra={"theta": found.theta},
    )


def _polished(problem: Problem, A: Array, w: Array, b: float, theta: Array, l2: Array) -> tuple[Array, float, float]:
    """The best of the given point, the point on the kinks, and its best intercept."""
    terms = problem.loss.hinge_terms(problem.y)
    assert terms is not None
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


def _newton(problem: Problem, method: Method, tol: float, clock: Progress) -> Solution:
    terms = problem.loss.hinge_terms(problem.y)
    assert terms is not None
    X = problem.X.toarray() if is_sparse(problem.X) else problem.X
    # One thread: these products are too thin to share, and handing them around takes several times their own time.
    with one_blas_thread():
        found = solve_newton(
            X,
            Kinks.of(terms, problem.p),
            _l2(problem),
            fit_intercept=problem.fit_intercept,
            unit=max(problem.scale, 1e-300),
            tol=tol,
            max_iter=method.max_iter,
            clock=clock,
            scale=max(problem.scale, 1e-300),
        )
    if found.objective - found.bound > tol and found.iterations < method.max_iter:
        return _interior_point(replace(problem, X=X), method, tol, clock)
    return Solution(
        found.coef, found.intercept, found.iterations, "newton", found.bound, found.objective,
        extra={"theta": found.theta},
    )  # fmt: skip


def _dual(problem: Problem, method: Method, tol: float, clock: Progress) -> Solution:
    terms, l2 = problem.loss.hinge_terms(problem.y), _l2(problem)
    assert terms is not None
    alpha = float(l2.max(initial=0.0)) or 1.0
    X, unit = problem.X, None
    if (l2 != alpha).any():  # the kernel knows one penalty: columns of another size stand for another one
        unit = np.sqrt(alpha / np.maximum(l2, 1e-300))
        X = X @ sp.diags_array(unit) if is_sparse(X) else X * unit
    found = hinge_dual(
        X,
        terms,
        problem.p,
        alpha=alpha,
        fit_intercept=problem.fit_intercept,
        intercept=problem.constant,
        tol=tol,
        max_iter=method.max_iter,
        seed=method.seed,
    )
    coef = found.coef if unit is None else found.coef * unit
    objective = found.objective if unit is None else np.nan
    return Solution(
        coef,
        float(found.intercept),
        found.iterations,
        "dual",
        found.bound,
        objective,
        extra={"theta": found.theta},
    )


def _pegasos(problem: Problem, method: Method, tol: float, clock: Progress) -> Solution:
    alpha = float(_l2(problem).max(initial=0.0)) or 1.0
    if (_l2(problem) != alpha).any():
        raise ValueError(
            "solver='pegasos' cannot take X of such extreme magnitude: scale its columns, or use solver='auto'."
        )
    return pegasos(
        problem,
        alpha,
        tol=tol,
        max_iter=method.max_iter,
        seed=method.seed,
        average=method.average,
        clock=clock,
    )


RUNS: dict[str, Run] = {
    "interior_point": _interior_point,
    "newton": _newton,
    "dual": _dual,
    "pegasos": _pegasos,
}


def kkt_classes(problem: Problem, f: Array, theta: Array) -> Array:
    """The class of each row, a number into `KKT`.

    A solver leaves both θ and the distance to the kink a little off; at the optimum one of them vanishes, so the
    larger one decides, the distance in units of the typical loss.
    """
    terms = problem.loss.hinge_terms(problem.y)
    if terms is None:  # squared losses have no bound: every row with a loss supports
        return (theta != 0).astype(np.int8)
    kinks = Kinks.of(terms, problem.p)
    size = np.abs(theta)
    room = np.where(theta > 0, kinks.high, kinks.low) - size
    far = kinks.distance(f) / max(problem.scale, 1e-300)
    flat = (f <= kinks.upper) & (f >= kinks.lower)
    free = (size == 0) | (flat & (size <= far))
    bound = (room <= 0) | (~flat & (room <= far))
    return np.where(free, 0, np.where(bound, 2, 1)).astype(np.int8)
