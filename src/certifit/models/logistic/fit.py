"""One fit of logistic or softmax regression on validated data, and the word on whether its optimum is finite."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

from certifit._types import Array, Matrix
from certifit.certificate import Certificate
from certifit.data.targets import check_labels, check_shares
from certifit.evaluation.losses import Logistic, Loss, Softmax
from certifit.evaluation.losses.labels.margin import HardLogistic
from certifit.evaluation.penalties import NoPenalty, Penalty
from certifit.models.margin.separability import Separability, is_balanced, overlap_weights, separability
from certifit.optimization.objective.bounds import orthogonal_to
from certifit.optimization.objective.dispatch import minimize
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.progress import Progress

__all__ = ["LogisticData", "LogisticFit", "alpha_max", "logistic_data", "solve_logistic"]

LINEAR_PROGRAM_LIMIT = 20_000_000  # entries of the separability program; beyond, only a witness from the fit is tried


@dataclass(frozen=True)
class LogisticData:
    """Validated rows, targets (class numbers; or probabilities, of the second of two classes or of all) and weights."""

    X: Matrix
    y: Array
    weight: Array
    n_classes: int
    soft: bool = False

    def rows(self, chosen: Array) -> LogisticData:
        """The chosen rows."""
        return replace(self, X=self.X[chosen], y=self.y[chosen], weight=self.weight[chosen])

    @staticmethod
    def shares(X: Matrix, y: Array, weight: Array, owner: str) -> LogisticData:
        """Rows whose targets are probabilities: of the second of two classes, shape (n,), or of K classes, shape (n, K)."""
        K = 2 if y.ndim == 1 else int(y.shape[1])
        (Logistic() if y.ndim == 1 else Softmax(K)).check_target(y)
        shares = weight @ y / weight.sum()
        shares = np.array([1.0 - shares, shares]) if y.ndim == 1 else shares
        if not (shares > 0).all():
            known = f"all probabilities in y are {y[0]:g}." if y.ndim == 1 else "y has a column of zeros."
            many = "has one class only" if int((shares > 0).sum()) == 1 else f"has none of class {int(shares.argmin())}"
            raise ValueError(
                f"{owner} needs at least 2 classes, each with some probability, but the data {many}: {known}"
            )
        return LogisticData(X, y[:, 1] if y.ndim == 2 and K == 2 else y, weight, K, soft=True)

    @property
    def p(self) -> Array:
        """Weights that sum to one."""
        return np.asarray(self.weight / self.weight.sum())

    def repeated(self) -> LogisticData:
        """Rows of probabilities as labels: a row of each class that it may belong to, weighted by its probability."""
        shares = np.column_stack([1.0 - self.y, self.y]) if self.y.ndim == 1 else self.y
        rows, codes = (np.ascontiguousarray(part) for part in np.nonzero(shares))
        return LogisticData(self.X[rows], codes, self.weight[rows] * shares[rows, codes], self.n_classes)

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


def logistic_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any, soft_labels: bool
) -> tuple[LogisticData, Array]:
    """Validated data and the classes, from labels or from probabilities."""
    if not soft_labels:
        X, codes, weight, classes = check_labels(estimator, X, y, sample_weight, class_weight)
        return LogisticData(X, codes, weight, int(classes.shape[0])), classes
    if class_weight is not None:
        raise ValueError("class_weight needs labels; with soft_labels=True put the weights into sample_weight.")
    data = LogisticData.shares(*check_shares(estimator, X, y, sample_weight), type(estimator).__name__)
    return data, np.arange(data.n_classes)


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
    hard = data.repeated() if data.soft else data  # a row between classes is a row of each
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
    problem = data.problem(NoPenalty(), 0.0, fit.problem.fit_intercept, fit.problem.threads)
    state = problem.at(fit.coef.astype(np.float64), fit.intercept)
    if not state.is_finite():
        return False
    theta = orthogonal_to(state, np.arange(data.X.shape[1]))
    if theta is None:
        return False
    weights = np.where(np.arange(data.n_classes) == data.y[:, None], 0.0, data.p[:, None] * theta[0])
    return is_balanced(data.X, data.y, weights, fit.problem.fit_intercept)


def alpha_max(data: LogisticData, l1_ratio: float, fit_intercept: bool) -> float:
    """The smallest alpha at which an L1 share of `l1_ratio` keeps all coefficients at zero."""
    problem = data.problem(NoPenalty(), 0.0, fit_intercept)
    slope = problem.at(*problem.start()).slope.columns
    return float(np.abs(slope).max(initial=0.0)) / l1_ratio
