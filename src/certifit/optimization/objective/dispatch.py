"""Which solver minimizes which objective.

`SOLVERS` is the registry: each solver declares what it needs of loss, penalty and constraint, and a mismatch fails
before any data is read. `minimize` runs the chosen one; ``"auto"`` reads the table of the design:

    loss               no penalty / L2            L1, elastic net, Lq, box      balls
    squared            closed form                coordinate descent            multiplier over the same
    smooth             Newton (CG where costs     prox-Newton                   multiplier over the same
                       say so, see costs.py)
    piecewise linear   few columns, small, or     interior point (a sequence    interior point
                       no penalty: interior       of them for Lq)
                       point; tall: Newton on
                       multipliers; sparse or
                       wide, or where few epochs
                       do: dual descent
    any other pair     prox-Newton (accelerated proximal gradient when wide), after smoothing a loss that has kinks
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from certifit._types import is_sparse
from certifit.certificate import Certificate
from certifit.evaluation.constraints.convex import Ball
from certifit.evaluation.losses import Absolute, Hinge, Loss, Quantile, Squared
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import Constraint, NoPenalty, Penalty
from certifit.optimization.closed_form.conjugate import conjugate_ridge
from certifit.optimization.closed_form.least_squares import solve_targets
from certifit.optimization.closed_form.normal_equations import LARGEST_DENSE
from certifit.optimization.coordinate import descent as coordinate
from certifit.optimization.coordinate.drawn import CoordinateDescent
from certifit.optimization.first_order.descent import GradientDescent
from certifit.optimization.first_order.proximal import proximal_gradient
from certifit.optimization.first_order.subgradient import SubgradientDescent
from certifit.optimization.newton.proximal import prox_newton
from certifit.optimization.newton.smooth import ROUNDING, has_part, is_ordinary, newton, newton_cg
from certifit.optimization.newton.smoothing import solve_smoothed
from certifit.optimization.newton.truncated import by_conjugate_gradients, has_kernel
from certifit.optimization.objective.certify import certify
from certifit.optimization.objective.costs import (
    conjugate_pays,
    exact_is_cheap,
    is_long,
    ridge_by_products,
    ridge_products,
    small_enough,
)
from certifit.optimization.objective.forms.copies import without_copies
from certifit.optimization.objective.forms.halves import halves, in_halves, whole
from certifit.optimization.objective.forms.ivanov import solve_on_ball
from certifit.optimization.objective.forms.row_space import row_space
from certifit.optimization.objective.piecewise import (
    DualDescent,
    choose_kinked,
    instead,
    interior_point,
    kinked_newton,
    rows_in_turn,
    sequence,
)
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.optimization.objective.regularizer import kernel_penalty
from certifit.optimization.objective.trust import admitted, is_trusted
from certifit.optimization.objective.units import check_range, condition, is_extreme
from certifit.optimization.programs.highs import lad_lp, quantile_lp
from certifit.optimization.stochastic.pegasos import Pegasos
from certifit.progress import Progress

__all__ = ["SOLVERS", "Solver", "check_solver", "minimize"]

Run = Callable[[Problem, Point, float, int, Progress], Solution]
INFERENCE_LIMIT = 2000  # columns up to which a fit keeps the covariance of its estimates
NEWTON_LIMIT = 5000  # columns; beyond, nobody is asked to hold a d × d Hessian
BY_MATRICES = ("closed_form", "newton", "newton_cg", "prox_newton")  # solvers of many small products
FEW = 64  # rows that mostly tell whether a target varies
SPARSE_LIMIT = 500  # columns of a sparse X beyond which its Hessian, which is dense, is not formed


@dataclass(frozen=True)
class Solver:
    """A named way to minimize, and the reason it gives when it cannot."""

    name: str
    run: Run
    refuses: Callable[[Loss, Penalty, Constraint | None], str]
    """Why the solver cannot take this objective; empty when it can."""
    in_memory: bool = True
    """Whether it looks at single rows or columns; others ask for sums over rows, which may lie in several parts."""


def _needs(*conditions: tuple[Callable[[Loss, Penalty, Constraint | None], bool], str]) -> Any:
    def refuses(loss: Loss, penalty: Penalty, constraint: Constraint | None) -> str:
        return "; ".join(text for holds, text in conditions if not holds(loss, penalty, constraint))

    return refuses


def _elastic(penalty: Penalty) -> bool:
    return penalty.elastic(_width(penalty)) is not None


def _width(penalty: Penalty) -> int:
    return 1 if penalty.weights is None else int(penalty.weights.shape[0])


def _strong(penalty: Penalty) -> bool:
    """Whether the penalty is L2 alone, and holds every coefficient."""
    parts = penalty.elastic(_width(penalty))
    return parts is not None and not parts[0].any() and bool((parts[1] > 0).all())


def _kinked(loss: Loss) -> bool:
    return loss.hinge_terms(np.ones(1)) is not None


SQUARED = (lambda loss, penalty, constraint: isinstance(loss, Squared), "it needs the squared loss")
SMOOTH = (lambda loss, penalty, constraint: loss.smooth, "it needs a smooth loss")
KINKED = (lambda loss, penalty, constraint: _kinked(loss), "it needs a piecewise linear loss")
HINGE = (lambda loss, penalty, constraint: type(loss) is Hinge, "it needs the hinge loss")
CURVED = (
    lambda loss, penalty, constraint: loss.smooth or (_kinked(loss) and _strong(penalty)),
    "it needs a smooth loss, or a piecewise linear one with alpha > 0 and an L2 penalty on every coefficient",
)
STRONG = (
    lambda loss, penalty, constraint: _strong(penalty),
    "it needs alpha > 0 and an L2 penalty on every coefficient",
)
EVEN = (lambda loss, penalty, constraint: penalty.weights is None, "it needs one strength for all coefficients")
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
POWER = (
    lambda loss, penalty, constraint: isinstance(penalty, NoPenalty) or penalty.power(_width(penalty)) is not None,
    "it needs an Lq penalty",
)
FREE = (lambda loss, penalty, constraint: constraint is None, "it takes no constraint")
ONE_SCORE = (lambda loss, penalty, constraint: not loss.coupled, "it needs a loss of one score")
BY_COLUMN = (
    lambda loss, penalty, constraint: not loss.coupled or SEPARABLE[0](loss, penalty, constraint),
    "with several scores it needs an L1, L2, elastic-net or Lq penalty",
)
ON_BALL = (lambda loss, penalty, constraint: isinstance(constraint, Ball), "it needs an L1Ball or L2Ball constraint")


PINBALL = (
    lambda loss, penalty, constraint: type(loss) in (Absolute, Quantile),
    "it needs the absolute or the quantile loss",
)
LINEAR = (
    lambda loss, penalty, constraint: _elastic(penalty) and not penalty.elastic(_width(penalty))[1].any(),  # type: ignore[index]
    "it needs no penalty or an L1 penalty: others are no linear program",
)
LIPSCHITZ = (
    lambda loss, penalty, constraint: bool(np.isfinite(loss.smoothness)),
    "it needs a loss whose slope has a known Lipschitz constant",
)
SLOPED = (
    lambda loss, penalty, constraint: loss.smooth or _kinked(loss),
    "it needs a loss with a slope",
)
L1_ONLY = (
    lambda loss, penalty, constraint: LINEAR[0](loss, penalty, constraint) and not isinstance(penalty, NoPenalty),
    "it needs an L1 penalty: its absolute values are what is split",
)


def _highs(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """The linear program of the absolute or the quantile loss, by HiGHS."""
    parts, loss = problem.regularizer.elastic(), problem.loss
    assert parts is not None
    solve = lad_lp if isinstance(loss, Absolute) else partial(quantile_lp, quantile=cast(Quantile, loss).quantile)
    found = solve(
        problem.X, problem.y, problem.p, l1=float(parts[0].max(initial=0.0)), fit_intercept=problem.fit_intercept
    )
    return Solution(
        found.coef, found.intercept, found.iterations, "highs", found.bound, note=found.message, kind="linear program"
    )


def _split(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """The lasso as a quadratic program: w = u − v with u, v ≥ 0, and ‖w‖₁ = Σ(u + v) linear."""
    found = _coordinate(in_halves(problem), (halves(start[0]), start[1]), tol, max_iter, clock)
    return replace(found, coef=whole(found.coef), solver="split", objective=np.nan)


def _closed_form(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    (solution,) = closed_forms(problem, problem.y)
    return solution


def closed_forms(problem: Problem, y: Any) -> list[Solution]:
    """Least squares or ridge for every column of y, from one factorization."""
    if not problem.of_matrices:
        raise ValueError("solver='closed_form' needs rows of matrices; of another design use 'newton' or 'newton_cg'.")
    l2 = problem.regularizer.smooth()
    assert l2 is not None
    # The inverse of the normal matrix serves standard errors, which only unpenalized fits have.
    keep = not l2.any() and l2.shape[0] <= INFERENCE_LIMIT
    found = solve_targets(
        problem.X,
        y,
        problem.p,
        l2=l2,
        fit_intercept=problem.fit_intercept,
        keep_inverse=keep,
        threads=problem.threads,
    )
    return [
        Solution(
            result.coef,
            result.intercept,
            1,
            "closed_form",
            result.objective - result.gap,
            result.objective,
            "closed form",
            result.note,
            extra={"closed_form": result},
        )
        for result in found
    ]


def _coordinate(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    X, y, p = problem.X, problem.y, problem.p
    penalty = kernel_penalty(problem.regularizer)
    options = coordinate.Options(tol, problem.fit_intercept, max_iter, problem.threads)
    result = coordinate.tall_least_squares(X, y, p, penalty, options, start[0])
    if result is None:
        result = coordinate.least_squares(X.tocsc() if is_sparse(X) else X, y, p, penalty, options, start[0])
    bound = result.objective - result.gap
    return Solution(result.coef, result.intercept, result.iterations, "coordinate", bound, result.objective)


def _newton(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    run = newton if problem.loss.smooth else kinked_newton
    return run(problem, start, tol, max_iter, clock)


def _multiplier(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    return solve_on_ball(problem, start, tol, max_iter, clock, _auto)


def _smoothing(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    return solve_smoothed(problem, start, tol, max_iter, clock, _auto)


SOLVERS: dict[str, Solver] = {
    solver.name: solver
    for solver in (
        Solver("closed_form", _closed_form, _needs(SQUARED, RIDGE_ONLY, FREE), False),
        Solver("coordinate", _coordinate, _needs(SQUARED, SEPARABLE)),
        Solver("newton", _newton, _needs(CURVED, RIDGE_ONLY, FREE), False),
        Solver("newton_cg", newton_cg, _needs(SMOOTH, RIDGE_ONLY, FREE), False),
        Solver("prox_newton", prox_newton, _needs(SMOOTH, BY_COLUMN), False),
        Solver("proximal", proximal_gradient, _needs(SMOOTH), False),
        Solver("gradient", GradientDescent(), _needs(SMOOTH), False),
        Solver("subgradient", SubgradientDescent(), _needs(SLOPED), False),
        Solver("random_coordinate", CoordinateDescent(), _needs(SMOOTH, LIPSCHITZ, ONE_SCORE, SEPARABLE)),
        Solver("highs", _highs, _needs(PINBALL, LINEAR, EVEN, FREE)),
        Solver("split", _split, _needs(SQUARED, L1_ONLY, FREE)),
        Solver("interior_point", interior_point, _needs(KINKED, ELASTIC)),
        Solver("dual", DualDescent(), _needs(KINKED, STRONG, FREE)),
        Solver("pegasos", Pegasos(), _needs(HINGE, STRONG, EVEN, FREE)),
        Solver("multiplier", _multiplier, _needs(SMOOTH, ONE_SCORE, ELASTIC, ON_BALL), False),
        Solver("sequential", sequence, _needs(KINKED, POWER)),
        Solver("smoothing", _smoothing, _needs(KINKED), False),
    )
}


OBJECTS: dict[type, str] = {
    GradientDescent: "gradient",
    SubgradientDescent: "subgradient",
    CoordinateDescent: "random_coordinate",
    Pegasos: "pegasos",
    DualDescent: "dual",
}
"""Solvers with options of their own, given as an object instead of a name."""


def check_solver(solver: Any, loss: Loss, penalty: Penalty, alpha: float, constraint: Constraint | None) -> None:
    """Raise before any data is read if the solver cannot minimize this objective."""
    solver = OBJECTS.get(type(solver), solver)
    if isinstance(solver, str) and solver == "auto" and (loss.smooth or _kinked(loss)):
        return  # "proximal" takes every smooth loss, and "smoothing" every other one that is listed
    active = penalty if alpha > 0 else NoPenalty()
    fitting = (name for name, s in SOLVERS.items() if not s.refuses(loss, active, constraint))
    first = next(fitting, None)
    if first is None:
        raise ValueError(
            f"No solver minimizes {loss!r}: a loss needs a second_derivative (smooth) or hinge_terms (piecewise linear)."
        )
    if isinstance(solver, str) and solver == "auto":
        return
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(
            f"solver must be 'auto', one of {', '.join(repr(name) for name in SOLVERS)}, a GradientDescent, a "
            f"SubgradientDescent or a CoordinateDescent; got {solver!r}."
        )
    reason = SOLVERS[solver].refuses(loss, active, constraint)
    if reason:
        listed = ", ".join(repr(name) for name in (first, *fitting))
        raise ValueError(
            f"solver={solver!r} cannot minimize {loss!r} with {penalty!r} (alpha={alpha:g}) and constraint "
            f"{constraint!r}: {reason}. Solvers that can: 'auto', {listed}."
        )


def choose(problem: Problem, targets: int = 1) -> str:
    """The solver that ``"auto"`` stands for, where so many targets share X."""
    loss, regularizer = problem.loss, problem.regularizer
    elastic = regularizer.elastic() is not None
    if not loss.smooth:
        if not problem.in_memory:
            return "smoothing"
        return choose_kinked(problem) if elastic else "sequential" if regularizer.power() is not None else "smoothing"
    if regularizer.ball is not None and elastic:
        return "multiplier"
    if regularizer.smooth() is not None:
        d = problem.shape[1]
        if isinstance(loss, Squared) and (problem.in_memory or (problem.of_matrices and d <= LARGEST_DENSE)):
            return "newton_cg" if ridge_by_products(problem, targets) else "closed_form"
        return "newton_cg" if _in_native_products(problem) or _by_products(problem) else "newton"
    separable = regularizer.ball is None and (elastic or regularizer.power() is not None)
    if isinstance(loss, Squared) and separable and problem.in_memory:
        return "coordinate"
    small = problem.shape[1] <= NEWTON_LIMIT and not loss.coupled
    return "prox_newton" if elastic or separable or small else "proximal"


def _in_native_products(problem: Problem) -> bool:
    """Whether native code takes Newton's steps by conjugate gradients: where a part of the rows is not the better start.

    On tall dense rows only the logistic loss has it: there a loss of one's own takes at most twice as long as a built-in one.
    """
    if problem.regularizer.ball is not None or not has_kernel(problem) or exact_is_cheap(*problem.shape):
        return False
    return not (problem.dense and has_part(problem)) or (
        type(problem.loss) is HardLogistic and not is_long(*problem.shape)
    )


def _by_products(problem: Problem) -> bool:
    """Whether Newton steps are cheaper by products with the Hessian than by the Hessian itself."""
    d = problem.shape[1]
    if problem.loss.coupled:
        return False
    if d > NEWTON_LIMIT or (is_sparse(problem.X) and d > SPARSE_LIMIT):
        return True
    return is_ordinary(problem) and not has_part(problem) and conjugate_pays(problem)


def _auto(problem: Problem, start: Point, tol: float, max_iter: int, clock: Progress) -> Solution:
    """What ``"auto"`` stands for, of a problem that stands for another one."""
    solver = choose(problem)
    if _in_native_products(problem):
        near = by_conjugate_gradients(problem, start, tol, max_iter)
        if near.bound > -np.inf:
            return near
        start, solver = (near.coef, near.intercept), "newton_cg" if _by_products(problem) else "newton"
    return SOLVERS[solver].run(problem, start, tol, max_iter, clock)


def _run(problem: Problem, solver: Any, seed: int) -> Run:
    """The solver by its name or by itself; with the seed where it draws."""
    if not isinstance(solver, str):
        return solver  # type: ignore[no-any-return]
    chosen = SOLVERS[solver]
    if chosen.in_memory and not problem.in_memory:
        listed = ", ".join(repr(name) for name, other in SOLVERS.items() if not other.in_memory)
        raise ValueError(f"solver={chosen.name!r} needs all rows in memory; on rows in parts use one of {listed}.")
    run = chosen.run
    return replace(run, seed=seed) if isinstance(run, (CoordinateDescent, DualDescent, Pegasos)) else run


def minimize(
    problem: Problem,
    solver: Any,
    tol: float,
    max_iter: int,
    clock: Progress,
    start: Point | None = None,
    *,
    seed: int = 0,
) -> tuple[Solution, Certificate]:
    """Minimize to the relative gap `tol` and prove how well it went.

    Data of extreme magnitude is brought to ordinary units first. The seed is for solvers that draw.
    """
    if _constant_is_perfect(problem):
        start = problem.start()
        solution = Solution(*start, 1, "constant", kind="closed form")
        value = problem.at(*start).risk  # zero up to rounding
        certificate = Certificate("closed form", objective=value, bound=value, scale=1.0, tol=tol, iterations=1,
                                  seconds=clock.seconds, note="A constant score has no loss.")  # fmt: skip
        return solution, admitted(problem, solution, certificate)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        if not is_extreme(problem):
            solution = _solved(problem, solver, seed, start or problem.start(), tol, max_iter, clock)
            if np.isfinite(solution.coef).all() and np.isfinite(solution.intercept).all():
                solution, certificate = certify(problem, solution, tol, clock)
                return solution, admitted(problem, solution, certificate)
        conditioned, units = condition(problem)
        solution = _solved(conditioned, solver, seed, conditioned.start(), tol, max_iter, clock)
        solution = units.rounded(solution, problem.X.dtype)
        solution, certificate = units.restore(*certify(conditioned, solution, tol, clock))
        check_range(solution.coef, solution.intercept)
        return solution, admitted(problem, solution, certificate)


def _solved(
    problem: Problem, solver: Any, seed: int, start: Point, tol: float, max_iter: int, clock: Progress
) -> Solution:
    """By the solver that is wanted; where the choice is free, wide data in the space of its rows."""
    free = isinstance(solver, str) and solver == "auto"
    fewer = without_copies(problem) if free else None
    if fewer is not None:
        return fewer.leave(_solved(fewer.problem, "auto", seed, fewer.enter(start), tol, max_iter, clock))
    solver = choose(problem) if free else solver
    run, gap = _run(problem, solver, seed), tol * problem.scale
    if free and (epochs := rows_in_turn(problem, solver, gap)):
        tried = DualDescent(seed, hopeful=True)(problem, start, gap, min(max_iter, epochs), clock)
        if tried.objective - tried.bound <= gap:
            return tried
    used = 0
    if free and _in_native_products(problem):
        if gap > ROUNDING * problem.scale:  # a gap of less is not all that is wanted
            near = by_conjugate_gradients(problem, start, gap, max_iter)
            if near.bound > -np.inf:
                return near
            start, used = (near.coef, near.intercept), near.iterations
        run = newton_cg if _by_products(problem) else newton
    if free and solver in BY_MATRICES and small_enough(problem):
        problem = replace(problem, X=problem.X.toarray())
    if free and solver == "newton_cg" and isinstance(problem.loss, Squared):
        proven = conjugate_ridge(problem, gap, max_iter, ridge_products(problem))
        return _closed_form(problem, start, gap, max_iter, clock) if proven is None else proven
    rows = row_space(problem) if free and solver in ("newton", "newton_cg", "interior_point") else None
    if rows is None:
        found = run(problem, start, gap, max_iter, clock)
        found = instead(problem, found, gap, max_iter, clock, seed) if free else found
    else:
        found = rows.leave(_auto(rows.problem, rows.enter(start), gap, max_iter, clock))
    return replace(found, iterations=found.iterations + used) if used else found


def _constant_is_perfect(problem: Problem) -> bool:
    """Whether the zero coefficients are optimal because a constant score has no loss at all."""
    first = problem.blocks[0].y[0]
    exact = problem.scale == 0.0
    if problem.fit_intercept:
        # A sum of squares may also be too small to be told from zero; a piecewise linear loss is zero only where it is.
        equal = all(bool((part == first).all()) for block in problem.blocks for part in (block.y[:FEW], block.y))
        exact = equal or (exact and _kinked(problem.loss))
    return exact and not problem.start()[0].any() and (is_trusted(problem) or problem.scale == 0.0)
