"""Several targets: a loss that is separable has one problem for each, which share X and the penalty.

minimize over W, b    Σ_k [ Σ p_i ℓ(y_ik, x_i·w_k + b_k) + R(w_k) ]

Least squares and ridge factor X once for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.optimization.objective.dispatch import choose, closed_forms, minimize
from certifit.optimization.objective.problem import Problem, Solution
from certifit.optimization.objective.units import is_extreme
from certifit.progress import Progress

__all__ = ["minimize_targets"]


def minimize_targets(
    problem: Problem, targets: Array, solver: Any, tol: float, max_iter: int, clock: Progress, *, seed: int = 0
) -> tuple[Solution, Certificate]:
    """`minimize` for each column of `targets`, of which the problem holds the first.

    Coefficients have shape (K, d); the certificate is that of the sum.
    """
    problems = [problem, *(replace(problem, y=y) for y in np.ascontiguousarray(targets.T)[1:])]
    solvers = [solver] * len(problems)
    shared = solver == "closed_form" or (solver == "auto" and choose(problem, len(problems)) == "closed_form")
    if shared and not any(is_extreme(one) for one in problems):
        found = closed_forms(problem, targets)
        if all(np.isfinite(one.coef).all() for one in found):
            solvers = [lambda *_, one=one: one for one in found]
    results = [minimize(one, by, tol, max_iter, clock, seed=seed) for one, by in zip(problems, solvers, strict=True)]
    solutions = [solution for solution, _ in results]
    joined = Solution(
        np.stack([solution.coef for solution in solutions]),
        np.array([solution.intercept for solution in solutions]),
        max(solution.iterations for solution in solutions),
        ", ".join(dict.fromkeys(solution.solver for solution in solutions)),
    )
    return joined, Certificate.total([certificate for _, certificate in results], seconds=clock.seconds)
