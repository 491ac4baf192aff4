"""Which rows hold a margin in place: the classes of the Karush-Kuhn-Tucker conditions.

θ_i = 0                 none: no support vector, the row could be left out
θ_i between limits      free: a support vector on a kink of the loss
θ_i at a limit          bound: beyond the kink
"""

from __future__ import annotations

import numpy as np

from certifit._types import Array
from certifit.optimization.dual.hinge import classes_of
from certifit.optimization.objective.problem import Problem, Solution

__all__ = ["KKT", "kkt_classes"]

KKT = np.array(["none", "free", "bound"])


def kkt_classes(problem: Problem, solution: Solution) -> tuple[Array, Array]:
    """The slope θ of each row's loss, and the class of each row, a number into `KKT`.

    A solver leaves both θ and the distance to the kink a little off; at the optimum one of them vanishes, so the
    larger one decides, the distance in units of the typical loss.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        f = problem.scores(solution.coef, solution.intercept, exact=True)
        theta = problem.loss.derivative(problem.y, f) if solution.dual is None else solution.dual
        if problem.hinge_terms is None:  # squared losses have no bound: every row with a loss supports
            return theta, (theta != 0).astype(np.int8)
        return theta, classes_of(problem.hinge_terms, problem.p, theta, f, max(problem.scale, 1e-300))
