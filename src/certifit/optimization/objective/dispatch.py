"""Which solver minimizes which objective.

`SOLVERS` is the registry: each solver declares what it needs of loss, penalty and constraint, and a mismatch fails
before any data is read. `minimize` runs the chosen one; ``"auto"`` reads the table of the design:

    loss               no penalty / L2            L1, elastic net, Lq, box      balls
    squared            closed form                coordinate descent            multiplier over the same
    smooth             Newton (CG when wide)      prox-Newton                   multiplier over the same
    piecewise linear   interior point             interior point (a sequence    interior point
                                                  of them for Lq)
    any other pair     prox-Newton (accelerated proximal gradient when wide), after smoothing a loss that has kinks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from certifit._types import Array, is_sparse
from certifit.certificate import Certificate
from certifit.evaluation.constraints.convex import Ball
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import Constraint, L1Ball, Penalty
from certifit.optimization.closed_form.least_squares import solve_least_squares
from certifit.optimization.coordinate import descent as coordinate
from certifit.optimization.first_order.descent import GradientDescent
from certifit.optimization.first_order.proximal import proximal_gradient
from certifit.optimization.interior_point.sequential import sequential
from certifit.optimization.interior_point.solve import solve_polyhedral
from certifit.optimization.newton.proximal import prox_newton
from certifit.optimization.newton.smooth import newton, newton_cg
from certifit.optimization.newton.smoothing import solve_smoothed
from certifit.optimization.objective.ivanov import solve_on_ball
from certifit.optimization.objective.problem import Problem, Solution, dual_bound
from certifit.optimization.objective.regularizer import kernel_penalty
from certifit.optimization.objective.units import condition, is_extreme
from certifit.progress import Progress

__all__ = ["SOLVERS", "Solver", "check_solver", "minimize"]

Point = tuple[Array, float]
Run = Callable[[Problem, Point, float, int, Progress], Solution]
INFERENCE_LIMIT = 2000  # columns up to which a fit keeps the covariance of its estimates
NEWTON_LIMIT = 5000  # columns; beyond, a d × d Hessian costs more than conjugate gradients


@dataclass(frozen=True)
class Solver:
    """A named way to minimize, and the reason it gives when it cannot."""

    name: str
    run: Run
    refuses: Callable[[Loss, Penalty, Constraint | None], str]
    """Why the solver cannot take this objective; empty when it can."""


def _needs(*conditions: tuple[Callable[[Loss, Penalty, Constraint | None], bool], str]) -> Any:
    def refuses(loss: Loss, penalty: Penalty, constraint: Constraint | None) -> str:
        return "; ".join(text for holds, text in conditions if not holds(loss, penalty, constraint))

    return refuses


def _elastic(penalty: Penalty) -> bool:
    return penalty.elastic(_width(penalty)) is not None


def _width(penalty: Penalty) -> int:
    return 1 if penalty.weights is None else int(penalty.weights.shape[0])


SQUARED = (lambda loss, penalty, constraint: isinstance(loss, Squared), "it needs the squared loss")
SMOOTH = (lambda loss, penalty, constraint: loss.smooth, "it needs a smooth loss")
KINKED = (
    lambda loss, penalty, constraint: loss.hinge_terms(np.ones(1)) is not None,
    "it needs a piecewise linear loss",
)
RIDGE_ONLY = (
    lambda loss, penalty, constraint: _elastic(penalty) and not penalty.elastic(_width(penalty))[0].any(),  # type: ignore[index]
    "it needs no penalty or an L2 penalty",
)
ELASTIC = (lambda loss, penalty, constraint: _elastic(penalty), "it needs no, an L1, L2 or elastic-net penalty")
SEPARABLE = (
    lambda loss, penalty, constraint: (
        (_elastic(penalty) or penalty.power(_width(penalty)) is not None) and not isinstance(constraint, Ball)
    ),
    "it needs an L1, L2, elastic-net or Lq penalty and no ball constraint",
)
POWER = (lambda loss, penalty, constraint: penalty.power(_width(penalty)) is not None, "it needs an Lq penalty")
FREE = (lambda loss, penalty, constraint: constraint is None, "it takes no constraint")
ON_BALL = (lambda loss, penalty, constraint: isinstance(constraint, Ball), "it needs an L1Ball or L2Ball constraint")


def _closed_form(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    l2 = problem.regularizer.smooth()
    assert l2 is not None
    # The inverse of the normal matrix serves standard errors, which only unpenalized fits have.
    keep = not l2.any() and l2.shape[0] <= INFERENCE_LIMIT
    result = solve_least_squares(
        problem.X,
        problem.y,
        problem.p,
        l2=l2,
        fit_intercept=problem.fit_intercept,
        keep_inverse=keep,
        threads=problem.threads,
    )
    return Solution(
        result.coef,
        result.intercept,
        1,
        "closed_form",
        result.objective - result.gap,
        result.objective,
        "closed form",
        result.note,
        {"closed_form": result},
    )


def _coordinate(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    result = coordinate.least_squares(
        problem.X.tocsc() if is_sparse(problem.X) else problem.X,
        problem.y,
        problem.p,
        fit_intercept=problem.fit_intercept,
        coef=start[0],
        tol=tol,
        max_iter=max_iter,
        n_threads=problem.threads,
        **kernel_penalty(problem.regularizer),
    )
    bound = result.objective - result.gap
    return Solution(result.coef, result.intercept, result.iterations, "coordinate", bound, result.objective)


def _interior_point(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    terms, parts = problem.loss.hinge_terms(problem.y), problem.regularizer.elastic()
    assert terms is not None
    assert parts is not None
    ball, (lower, upper) = problem.regularizer.ball, problem.regularizer.bounds()
    result = solve_polyhedral(
        problem.X,
        terms,
        problem.p,
        l1=parts[0],
        l2=parts[1],
        lower=lower,
        upper=upper,
        ball=None if ball is None else ("l1" if isinstance(ball, L1Ball) else "l2", ball.radius),
        fit_intercept=problem.fit_intercept,
        tol=tol,
        max_iter=max_iter,
        threads=problem.threads,
    )
    note = "" if result.status == "optimal" else result.message
    return Solution(result.coef, result.intercept, result.iterations, "interior_point", result.bound, note=note)


def _multiplier(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    return solve_on_ball(problem, start, tol, max_iter, clock, _auto)


def _smoothing(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    return solve_smoothed(problem, start, tol, max_iter, clock, _auto)


SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver("closed_form", _closed_form, _needs(SQUARED, RIDGE_ONLY, FREE)),
        Solver("coordinate", _coordinate, _needs(SQUARED, SEPARABLE)),
        Solver("newton", newton, _needs(SMOOTH, RIDGE_ONLY, FREE)),
        Solver("newton_cg", newton_cg, _needs(SMOOTH, RIDGE_ONLY, FREE)),
        Solver("prox_newton", prox_newton, _needs(SMOOTH)),
        Solver("proximal", proximal_gradient, _needs(SMOOTH)),
        Solver("gradient", GradientDescent(), _needs(SMOOTH)),
        Solver("interior_point", _interior_point, _needs(KINKED, ELASTIC)),
        Solver("multiplier", _multiplier, _needs(SMOOTH, ELASTIC, ON_BALL)),
        Solver("sequential", sequential, _needs(KINKED, POWER)),
        Solver("smoothing", _smoothing, _needs(KINKED)),
    )
}


def check_solver(solver: Any, loss: Loss, penalty: Penalty, constraint: Constraint | None) -> None:
    """Raise before any data is read if the solver cannot minimize this objective."""
    if isinstance(solver, GradientDescent):
        solver = "gradient"
    fitting = [name for name, s in SOLVERS.items() if not s.refuses(loss, penalty, constraint)]
    listed = ", ".join(repr(name) for name in fitting)
    if not fitting:
        raise ValueError(
            f"No solver minimizes {loss!r}: a loss needs a second_derivative (smooth) or hinge_terms (piecewise linear)."
        )
    if solver == "auto":
        return
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(
            f"solver must be 'auto', one of {', '.join(repr(name) for name in SOLVERS)}, or a GradientDescent; "
            f"got {solver!r}."
        )
    reason = SOLVERS[solver].refuses(loss, penalty, constraint)
    if reason:
        raise ValueError(
            f"solver={solver!r} cannot minimize {loss!r} with {penalty!r} and constraint {constraint!r}: {reason}. "
            f"Solvers that can: 'auto', {listed}."
        )


def choose(problem: Problem) -> str:
    """The solver that ``"auto"`` stands for."""
    loss, regularizer = problem.loss, problem.regularizer
    elastic = regularizer.elastic() is not None
    if not loss.smooth:
        return "interior_point" if elastic else "sequential" if regularizer.power() is not None else "smoothing"
    if regularizer.ball is not None and elastic:
        return "multiplier"
    if regularizer.smooth() is not None:
        if isinstance(loss, Squared):
            return "closed_form"
        d = problem.shape[1]
        wide = d > NEWTON_LIMIT or (is_sparse(problem.X) and d > 500)
        return "newton_cg" if wide else "newton"
    if isinstance(loss, Squared) and regularizer.ball is None and (elastic or regularizer.power() is not None):
        return "coordinate"
    return "prox_newton" if elastic or problem.shape[1] <= NEWTON_LIMIT else "proximal"


def _auto(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    return SOLVERS[choose(problem)].run(problem, start, tol, max_iter, clock)


def minimize(
    problem: Problem, solver: Any, tol: float, max_iter: int, clock: Progress, start: Point | None = None
) -> tuple[Solution, Certificate]:
    """Minimize to the relative gap `tol` and prove how well it went.

    Data of extreme magnitude is brought to ordinary units first.
    """
    if isinstance(solver, GradientDescent):
        run: Run = solver
    else:
        run = _auto if solver == "auto" else SOLVERS[solver].run
    if _constant_is_perfect(problem):
        solution = Solution(np.zeros(problem.shape[1]), problem.constant, 1, "constant", kind="closed form")
        value = problem.risk(np.full(problem.y.shape, problem.constant))  # zero up to rounding
        return solution, Certificate("closed form", objective=value, bound=value, scale=1.0, tol=tol, iterations=1,
                                     seconds=clock.seconds, note="A constant fits the target perfectly.")  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        if not is_extreme(problem):
            solution = run(problem, start or problem.start(), tol * problem.scale, max_iter, clock)
            if np.isfinite(solution.coef).all() and np.isfinite(solution.intercept):
                return certify(problem, solution, tol, clock)
        conditioned, units = condition(problem)
        solution = run(conditioned, conditioned.start(), tol * conditioned.scale, max_iter, clock)
        solution, certificate = certify(conditioned, solution, tol, clock)
        return units.restore(solution, certificate)


def _constant_is_perfect(problem: Problem) -> bool:
    """Whether the zero coefficients are optimal because a constant score has no loss at all."""
    y = problem.y
    exact = bool((y == y[0]).all()) if problem.fit_intercept else problem.scale == 0.0
    inside = not problem.regularizer.project(np.zeros(problem.shape[1])).any()
    return exact and inside


def certify(problem: Problem, solution: Solution, tol: float, clock: Progress) -> tuple[Solution, Certificate]:
    """The certificate of a solution, in double precision, at the coefficients that the user gets."""
    coef, f = solution.coef, None
    objective = solution.objective
    if not np.isfinite(objective) or problem.X.dtype != np.float64:
        coef = problem.regularizer.project(coef).astype(problem.X.dtype).astype(np.float64)
        f = problem.scores(coef, solution.intercept, exact=True)
        objective = problem.risk(f) + problem.regularizer.value(coef)
    bound = solution.bound
    if objective - bound > tol * problem.scale:
        f = problem.scores(coef, solution.intercept, exact=True) if f is None else f
        bound = max(bound, dual_bound(problem, coef, f, exact=True))
    certificate = Certificate(
        solution.kind,
        objective=objective,
        bound=bound,
        scale=problem.scale,
        tol=tol,
        iterations=solution.iterations,
        seconds=clock.seconds,
        note=solution.note,
    )
    return replace(solution, coef=coef), certificate
