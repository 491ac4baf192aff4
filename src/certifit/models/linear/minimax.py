"""Linear models whose worst row is as good as can be.

minimize over w, b    max_i loss(y_i, x_i·w + b)  +  alpha · penalty(w)      subject to w in a box
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from certifit.certificate import Certificate
from certifit.data.equal_rows import merge_rows
from certifit.data.gate import check_xy
from certifit.evaluation.losses import Loss, check_loss, resolve_loss
from certifit.evaluation.penalties import Box, Constraint, Penalty, resolve_constraint, resolve_penalty
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import CONSTRAINT, LOSS, OF_A_MAXIMUM, PENALTY
from certifit.optimization.interior_point.minimax import best_constant, minimax
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.optimization.objective.trust import admitted
from certifit.optimization.objective.units import condition, is_extreme
from certifit.parameters import ALPHA, FIT_INTERCEPT, L1_RATIO, MAX_ITER, Fitted, Stopped, check_parameters
from certifit.progress import progress
from certifit.threads import n_threads

__all__ = ["MinimaxModel"]


class MinimaxModel(Stopped, BaseLinear, takes={"fit.sample_weight": OF_A_MAXIMUM}):
    """The maximum of any loss as the objective: minimize max_i loss(y_i, x_i·w + b) + alpha·penalty(w).

    `ChebyshevRegressor` is the same for the absolute loss, by one structured program. Here any convex loss is met by its
    tangents, as many as are needed; the program of the tangents is never above the optimum, which is the certificate.
    `certifit.metrics.max_loss` is the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import MinimaxModel
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 9.0, 20.0])
    >>> model = MinimaxModel("poisson").fit(X, y)
    >>> model.predict(X).round(1), model.certificate_.certified
    (array([ 0.9,  2.7,  7.7, 22.1]), True)
    """

    loss: Any = LOSS
    penalty: Any = PENALTY
    alpha: float = ALPHA.but(0.0)
    l1_ratio: float = L1_RATIO
    constraint: Any = CONSTRAINT.but(text="``Box`` or ``NonNegative`` from ``certifit.penalties``.")
    fit_intercept: bool = FIT_INTERCEPT
    max_iter: int = MAX_ITER.but(200, "Most programs of tangents.")

    coef_: Any = Fitted("array of shape (n_features,)", "Coefficients.")
    intercept_: float = Fitted("float", "Intercept.")
    certificate_: Certificate = Fitted("Certificate", "How far the fit is from the best possible one.")
    n_iter_: int = Fitted("int", "Programs of tangents that were solved.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        options = {"l1_ratio": self.l1_ratio} if self.penalty == "elasticnet" else {}
        loss, penalty = resolve_loss(self.loss), resolve_penalty(self.penalty, **options)
        constraint = resolve_constraint(self.constraint)
        if float(self.alpha) > 0 and penalty.elastic(1 if penalty.weights is None else len(penalty.weights)) is None:
            raise ValueError(f"penalty must be none, L1, L2 or an elastic net: a quadratic program; got {penalty!r}.")
        if constraint is not None and not isinstance(constraint, Box):
            raise ValueError(
                f"constraint must be a Box or NonNegative here; got {constraint!r}. Use a penalty instead."
            )
        return loss, penalty, float(self.alpha), constraint

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MinimaxModel:
        """Fit the model; weights matter only by being positive."""
        check_parameters(self)
        loss, penalty, alpha, constraint = self._objective()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight)
        check_loss(loss, y)
        X, y, _ = merge_rows(X, y, weight)
        regularizer = Regularizer.of(penalty, alpha, constraint, X.shape[1])
        with progress(self.verbose, type(self).__name__) as clock:
            share = np.full(y.shape[0], 1.0 / y.shape[0])
            given = Problem(X, y, share, loss, regularizer, bool(self.fit_intercept), n_threads(self.n_jobs))
            problem, units = condition(given) if is_extreme(given) else (given, None)
            scale = _constant_maximum(problem)
            solution = minimax(problem, float(self.tol) * scale, int(self.max_iter), clock)
            # What the stored coefficients reach, in the precision of X.
            stored = solution.coef.astype(X.dtype).astype(np.float64)
            objective = _maximum_at(problem, stored, solution.intercept)
            certificate = Certificate(
                "duality gap", objective=objective, bound=min(solution.bound, objective), scale=scale,
                tol=float(self.tol), iterations=solution.iterations, seconds=clock.seconds,
            )  # fmt: skip
            solution = replace(solution, coef=stored)
            if units is not None:
                solution, certificate = units.restore(solution, certificate)
        self._loss = loss
        self.coef_, self.intercept_ = solution.coef.astype(X.dtype), float(solution.intercept)
        self.n_iter_, self.solver_ = solution.iterations, solution.solver
        self._certify(admitted(given, solution, certificate))
        return self


def _maximum_at(problem: Problem, w: Any, b: float) -> float:
    """The largest loss plus the penalty, in double precision."""
    with np.errstate(all="ignore"):
        each = problem.loss.value(problem.y, problem.scores(w, b, exact=True))
        found = float(each.max()) + problem.regularizer.value(w)
    return found if np.isfinite(found) else float(np.finfo(np.float64).max)


def _constant_maximum(problem: Problem) -> float:
    """The objective of the best constant, the unit of relative gaps; what rounding leaves of a perfect one is no unit."""
    constant = best_constant(problem) if problem.fit_intercept else 0.0
    with np.errstate(all="ignore"):
        at, zero = (float(problem.loss.value(problem.y, np.full(problem.y.shape, c)).max()) for c in (constant, 0.0))
    return max(at, 1e-15 * zero if np.isfinite(zero) else 0.0, float(np.finfo(np.float64).tiny))
