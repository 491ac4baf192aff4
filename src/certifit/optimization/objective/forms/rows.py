"""Several targets whose coefficients meet in the penalty: one problem for all of them.

minimize over W, b    Σ_i p_i ½‖y_i − Wx_i − b‖² + R(W)
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.optimization.closed_form.magnitudes import in_units
from certifit.optimization.coordinate.rows import CenteredRows, least_squares_rows
from certifit.optimization.objective.problem import Problem, Solution
from certifit.progress import Progress

__all__ = ["minimize_rows", "scale_of"]

LARGEST = 1e290  # a strength beyond it holds a coefficient at zero as surely


def scale_of(targets: Array, p: Array, fit_intercept: bool) -> float:
    """The objective of the best constants; rounding of the targets themselves is no gap."""
    about = targets - (p @ targets if fit_intercept else 0.0)
    risk, at_zero = (0.5 * float(p @ (part * part).sum(axis=1)) for part in (about, targets))
    return max(risk, 1e-15 * at_zero)


def minimize_rows(
    problem: Problem, targets: Array, tol: float, max_iter: int, clock: Progress
) -> tuple[Solution, Certificate]:
    """Descent from row to row of the coefficients; X and the targets in ordinary units.

    Coefficients have shape (K, d). The squared loss alone has this form.
    """
    X: Matrix
    (X, unit), (Y, factor) = in_units(problem.X), in_units(targets.astype(np.float64, copy=False))
    parts = problem.regularizer.elastic()
    assert parts is not None  # of one target it is the elastic net
    with np.errstate(over="ignore", under="ignore"):
        l1, l2 = np.minimum(parts[0] / unit / factor, LARGEST), np.minimum(parts[1] / unit / unit, LARGEST)
    if ((l1 == 0.0) & (l2 == 0.0)).any():
        raise ValueError(
            "Every column must be penalized: a weight of zero, or a penalty that is nothing beside X and y, leaves one free."
        )
    scale = scale_of(Y, problem.p, problem.fit_intercept)

    def told(iteration: int, gap: float) -> None:
        clock.update(iteration, max_iter, gap / scale if scale > 0 else gap)

    data = CenteredRows.of(X, Y, problem.p, problem.fit_intercept)
    found = least_squares_rows(data, l1, l2, tol=tol * scale, max_iter=max_iter, told=told)
    objective, bound = found.objective, found.objective - found.gap
    with np.errstate(over="ignore", under="ignore"):
        coef = (found.coef.T / unit * factor).astype(problem.X.dtype).astype(np.float64)
        if problem.X.dtype != np.float64:  # what rounding costs counts
            objective = data.objective(coef.T / factor * unit, l1, l2)
        intercept = (data.level - (coef / factor * unit) @ data.mean) * factor
    certificate = Certificate(
        "duality gap",
        objective=objective,
        bound=bound,
        scale=scale,
        tol=tol,
        iterations=found.iterations,
        seconds=clock.seconds,
    )
    return Solution(coef, intercept, found.iterations, "coordinate"), certificate.rescaled(factor * factor)
