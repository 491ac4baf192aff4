"""One fit of logistic or softmax regression on validated data, and the word on whether its optimum is finite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.evaluation.losses import Logistic, Loss, Softmax
from certifit.evaluation.losses.margin import HardLogistic
from certifit.evaluation.penalties import NoPenalty, Penalty
from certifit.models.margin.separability import Separability, is_balanced, overlap_weights, separability
from certifit.optimization.objective.bounds import orthogonal_to
from certifit.optimization.objective.dispatch import minimize
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress

__all__ = ["LogisticData", "LogisticFit", "alpha_max", "solve_logistic"]

LINEAR_PROGRAM_LIMIT = 20_000_000  # entries of the separability program; beyond, only a witness from the fit is tried


@dataclass(frozen=True)
class LogisticData:
    """Validated rows, targets (class numbers, or probabilities of the second class) and weights."""

    X: Matrix
    y: Array
    weight: Array
    n_classes: int
    soft: bool = False

    def rows(self, chosen: Array) -> LogisticData:
        """The chosen rows."""
        return replace(self, X=self.X[chosen], y=self.y[chosen], weight=self.weight[chosen])

    @property
    def p(self) -> Array:
        """Weights that sum to one."""
        return np.asarray(self.weight / self.weight.sum())

    @property
    def loss(self) -> Loss:
        """Logistic for two classes, softmax for more."""
        if self.n_classes > 2:
            return Softmax(self.n_classes)
        return Logistic() if self.soft else HardLogistic()

    def problem(self, penalty: Penalty, alpha: float, fit_intercept: bool, threads: int = 1) -> Problem:
        """Mean loss + alpha·penalty."""
        y = self.y.astype(np.float64) if self.n_classes == 2 else self.y
        regularizer = Regularizer.of(penalty, alpha, None, self.X.shape[1])
        return Problem(self.X, y, self.p, self.loss, regularizer, fit_intercept, threads)


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients of shape (1, d) or (K, d), intercepts, and their proof."""

    coef: Array
    intercept: Array
    certificate: Certificate
    iterations: int
    solver: str
    problem: Problem
    separability: Separability | None = None

    @property
    def start(self) -> Any:
        """Where a neighboring problem may start."""
        return (self.coef[0], float(self.intercept[0])) if self.coef.shape[0] == 1 else (self.coef, self.intercept)


def solve_logistic(
    data: LogisticData,
    penalty: Penalty,
    alpha: float,
    fit_intercept: bool,
    *,
    threads: int,
    solver: Any,
    tol: float,
    max_iter: int,
    clock: Progress,
    start: Any = None,
    names: Any = None,
) -> LogisticFit:
    """Minimize mean loss + alpha·penalty; without any penalty, also say whether a finite optimum exists."""
    problem = data.problem(penalty, alpha, fit_intercept, threads)
    solution, certificate = minimize(problem, solver, tol, max_iter, clock, start)
    coef, intercept = np.atleast_2d(solution.coef), np.atleast_1d(solution.intercept)
    fit = LogisticFit(coef, intercept, certificate, solution.iterations, solution.solver, problem)
    parts = problem.regularizer.elastic()
    free = parts is not None and bool(((parts[0] == 0.0) & (parts[1] == 0.0)).all())
    return _finite_optimum(data, fit, fit_intercept, names) if free else fit


def _finite_optimum(data: LogisticData, fit: LogisticFit, fit_intercept: bool, names: Any) -> LogisticFit:
    """An unpenalized fit has a finite optimum exactly when the classes overlap: prove the one or the other.

    A converged fit carries the proof of overlap in its probabilities; the linear program runs only without it.
    """
    if data.soft and bool(((data.y > 0) & (data.y < 1)).any()):
        hard = _doubled(data)  # a row between the classes is a row of each
    else:
        hard = replace(data, y=data.y.astype(np.intp), soft=False)
    if _overlaps(hard, fit, fit_intercept):
        return fit
    size = float(hard.X.nnz if hasattr(hard.X, "nnz") else hard.X.size) * (hard.n_classes - 1)
    if size > LINEAR_PROGRAM_LIMIT:
        note = (
            "Whether the classes overlap, so that a finite optimum exists, is undecided: certifit.is_separable tells."
        )
        return replace(fit, certificate=fit.certificate.withdrawn(note))
    found = separability(hard.X, hard.y, hard.n_classes, fit_intercept)
    if not found.separable:
        return replace(fit, separability=found)
    plane = "a plane" if found.kind == "strict" else "a plane that some rows of both classes lie on"
    note = (
        f"No finite optimum exists: the classes are separated by {plane}, {found.describe(names)}; coefficients would "
        "grow without end. Add a penalty (alpha > 0), or use LinearSVC(alpha=0) for the plane of largest margin."
    )
    return replace(fit, separability=found, certificate=fit.certificate.withdrawn(note))


def _overlaps(data: LogisticData, fit: LogisticFit, fit_intercept: bool) -> bool:
    """Whether the fit itself proves that the classes overlap."""
    if data.n_classes > 2:
        return _multiclass_overlap(data, fit)
    with np.errstate(all="ignore"):
        f = np.asarray(data.X @ fit.coef[0].astype(np.float64), dtype=np.float64) + fit.intercept[0]
        if not np.isfinite(f).all() or float(np.abs(f).max()) > 30.0:
            return False
        return overlap_weights(data.X, data.y, data.p, expit(f), fit_intercept) is not None


def _multiclass_overlap(data: LogisticData, fit: LogisticFit) -> bool:
    """Whether weights p_i·π_ik, repaired by a Newton step in the dual, are positive and balance."""
    state = fit.problem.at(fit.coef.astype(np.float64), fit.intercept)
    if not state.is_finite():
        return False
    (theta,), ok = orthogonal_to(state, np.arange(data.X.shape[1]))
    weights = np.where(np.arange(data.n_classes) == data.y[:, None], 0.0, data.p[:, None] * theta)
    return ok and is_balanced(data.X, data.y, weights, fit.problem.fit_intercept)


def _doubled(data: LogisticData) -> LogisticData:
    """Rows with a probability strictly between 0 and 1 belong to both classes."""
    one, two = np.flatnonzero(data.y > 0), np.flatnonzero(data.y < 1)
    both = np.concatenate([one, two])
    weight = np.concatenate([data.weight[one] * data.y[one], data.weight[two] * (1.0 - data.y[two])])
    y = np.concatenate([np.ones(one.shape[0]), np.zeros(two.shape[0])]).astype(np.intp)
    return LogisticData(data.X[both], y, weight, 2)


def alpha_max(data: LogisticData, l1_ratio: float, fit_intercept: bool) -> float:
    """The smallest alpha at which an L1 share of `l1_ratio` keeps all coefficients at zero."""
    problem = data.problem(NoPenalty(), 0.0, fit_intercept)
    slope = problem.at(*problem.start()).slope.columns
    return float(np.abs(slope).max(initial=0.0)) / l1_ratio
