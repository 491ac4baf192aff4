"""Linear models with any loss, any penalty and any constraint.

minimize over w, b    (1/Σs_i) Σ s_i · loss(y_i, x_i·w + b)  +  alpha · penalty(w)      subject to w in constraint
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.base import CertifiedEstimator
from certifit.data.equal_rows import merge_rows
from certifit.data.gate import check_x, check_xy, equal_weights, is_repeated
from certifit.evaluation.losses import Loss, Squared, check_loss, resolve_loss
from certifit.evaluation.penalties import (
    L1,
    L2,
    Constraint,
    ElasticNet,
    NoPenalty,
    Penalty,
    resolve_constraint,
    resolve_penalty,
)
from certifit.models.linear.parameters import CONSTRAINT, LOSS, PENALTY, SOLVER
from certifit.optimization.objective.dispatch import check_solver, minimize
from certifit.optimization.objective.forms.ivanov import matching_alpha
from certifit.optimization.objective.forms.rows import minimize_rows
from certifit.optimization.objective.forms.targets import minimize_targets
from certifit.optimization.objective.problem import Point, Problem, Solution
from certifit.optimization.objective.regularizer import Regularizer
from certifit.parameters import ALPHA, FIT_INTERCEPT, L1_RATIO, Stopped, check_parameters
from certifit.progress import progress
from certifit.representation.design.design import Design
from certifit.representation.design.products import expect_temporaries, matvec
from certifit.representation.design.rows import thin_products
from certifit.threads import n_threads

__all__ = ["BaseLinear", "LinearModel"]

FEW = 10  # rows a column, up to which equal rows are looked for: given once or often, they ask for the same fit


class BaseLinear(RegressorMixin, CertifiedEstimator):
    """What all linear models share: a subclass says which loss, penalty and constraint its parameters mean."""

    coef_: Array
    intercept_: Any
    _multi_output = False
    """Whether y may have several columns, each a target of its own."""

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        """Loss, penalty, alpha and constraint; raises on parameters that make no sense."""
        raise TypeError(f"{type(self).__name__} must say what it minimizes.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        y : array of shape (n_samples,)
            Target; estimators of the squared loss also take several, of shape (n_samples, n_targets).
        """
        self._check_parameters()
        repeated = self._takes_one_weight()
        X, y, weight = check_xy(
            self, X, y, sample_weight=sample_weight, multi_output=self._multi_output, repeated=repeated
        )
        if is_repeated(weight) and (X.dtype != np.float64 or y.ndim > 1):
            weight = np.ones(X.shape[0])
        with thin_products(X):
            return self._fit_arrays(X, y, weight)

    def _check_parameters(self) -> None:
        """Everything that can be wrong before any data is read."""
        check_parameters(self)
        loss, penalty, alpha, constraint = self._objective()
        check_solver(self._solver_options()[0], loss, penalty, alpha, constraint)

    def _fit_arrays(self, X: Matrix, y: Array, weight: Array) -> Any:
        """Fit validated data."""
        loss, penalty, alpha, constraint = self._objective()
        solver, tol, max_iter = self._solver_options()
        check_loss(loss, y)
        design = self._design(X)
        d = design.shape[1]
        regularizer = Regularizer.of(penalty, alpha, constraint, d)
        # The optimum need not be unique: of a loss with kinks, or where bounds choose among more columns than rows.
        several = not loss.smooth or (constraint is not None and X.shape[0] <= FEW * d)
        if several and not regularizer.strictly_convex and not isinstance(X, Design):
            expect_temporaries(8 * X.shape[0] * (3 * X.shape[1] + 50))
            X, y, weight = merge_rows(X, y, weight)
            design = self._design(X)
        with progress(getattr(self, "verbose", 0), type(self).__name__) as clock:
            threads = n_threads(getattr(self, "n_jobs", None))
            first = y if y.ndim == 1 else np.ascontiguousarray(y[:, 0])
            p = equal_weights(1.0 / weight.shape[0], weight.shape[0]) if is_repeated(weight) else weight / weight.sum()
            problem = Problem(design, first, p, loss, regularizer, self.fit_intercept, threads)
            if y.ndim == 1:
                solution, certificate = minimize(
                    problem, solver, tol, max_iter, clock, self._begin(), seed=self._seed()
                )
            elif penalty.couples and regularizer.smooth() is None:
                solution, certificate = minimize_rows(problem, y, tol, max_iter, clock)
            else:
                solution, certificate = minimize_targets(problem, y, solver, tol, max_iter, clock, seed=self._seed())
        self._loss = loss
        self._keep(problem, solution, weight)
        self._infer(problem, solution, weight)
        self._certify(certificate)
        return self

    def _takes_one_weight(self) -> bool:
        """Whether equal weights may be one number: a closed form, or sums, of few columns read no more, and y is as long as X is
        then.
        """
        loss, penalty, alpha, constraint = self._objective()
        plain = type(loss) is Squared and (alpha == 0.0 or type(penalty) in (NoPenalty, L2, L1, ElasticNet))
        return plain and constraint is None and self._solver_options()[0] in ("auto", "closed_form", "coordinate")

    def _solver_options(self) -> tuple[Any, float, int]:
        return getattr(self, "solver", "auto"), float(self.tol), int(self.max_iter)

    def _begin(self) -> Point | None:
        """Coefficients to begin with, of a fit that is one of several; None where nothing is known."""
        return None

    def _seed(self) -> int:
        """Of solvers that draw."""
        return 0

    def _keep(self, problem: Problem, solution: Solution, weight: Array) -> None:
        """Fitted attributes."""
        self.coef_ = solution.coef.astype(problem.X.dtype)
        self.intercept_ = solution.intercept if solution.coef.ndim == 2 else float(solution.intercept)
        self.n_iter_ = solution.iterations
        self.solver_ = solution.solver
        alpha = matching_alpha(problem, solution.coef, solution.intercept)
        if alpha is not None:
            self.alpha_ = alpha

    def _infer(self, problem: Problem, solution: Solution, weight: Array) -> None:
        """Covariance of the estimates, for estimators with `summary()`."""

    def _rows(self, X: Any) -> Matrix:
        """Validated rows as the coefficients see them."""
        return check_x(self, X, reset=False)

    def _design(self, X: Matrix) -> Any:
        """What the coefficients multiply: X itself, or a `Design` that is made of it."""
        return X

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = self._rows(X)
        design, coef = self._design(X), self.coef_.astype(np.float64)
        scores = design.scores(coef) if isinstance(design, Design) else matvec(design, coef.T)
        return np.asarray(scores + self.intercept_).astype(X.dtype, copy=False)

    def predict(self, X: Any) -> Array:
        """Predictions of y: the inverse link of the scores x·w + b."""
        scores = self._scores(X)
        return self._loss.predict(scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._multi_output
        tags.target_tags.positive_only = self._wants_positive_targets()
        return tags

    def _wants_positive_targets(self) -> bool:
        """Whether the loss takes numbers above zero and refuses those below."""
        try:
            loss = self._objective()[0]
        except (TypeError, ValueError):  # parameters that `fit` will refuse
            return False
        return loss.takes(np.array([1.0, 3.0])) and not loss.takes(np.array([-1.0]))


class LinearModel(Stopped, BaseLinear):
    """Any loss with any penalty under any constraint.

    Minimizes ``mean loss(y, Xw + b) + alpha · penalty(w)`` subject to the constraint.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    certificate_ : Certificate
        How far the fit is from the best possible one.
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Its iterations.
    alpha_ : float
        Under an L1Ball or L2Ball, for a smooth loss: the strength of the L1 or L2 penalty that has the same solution (the
        Tikhonov form of this Ivanov form, beside the penalty that is there); zero where the ball does not bind.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearModel
    >>> from certifit.losses import Huber
    >>> from certifit.penalties import L1
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])
    >>> model = LinearModel(loss=Huber(delta=0.5), penalty=L1(), alpha=0.01).fit(X, y)
    >>> model.coef_.round(2), model.certificate_.certified
    (array([1.14]), True)
    """

    loss: Any = LOSS
    penalty: Any = PENALTY
    alpha: float = ALPHA
    l1_ratio: float = L1_RATIO
    constraint: Any = CONSTRAINT
    fit_intercept: bool = FIT_INTERCEPT
    solver: Any = SOLVER

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        options = {"l1_ratio": self.l1_ratio} if self.penalty == "elasticnet" else {}
        return (
            resolve_loss(self.loss),
            resolve_penalty(self.penalty, **options),
            float(self.alpha),
            resolve_constraint(self.constraint),
        )
