"""Any loss on any kernel, through the representer theorem.

minimize over f    (1/Σs_i) Σ s_i · loss(y_i, f(x_i) + b)  +  alpha · ½‖f‖²

over the functions of the kernel's space. The best one is a sum over the rows, f = Σ_j β_j k(·, x_j) with ‖f‖² = βᵀKβ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import like_input
from certifit.evaluation.losses import Loss, Squared, check_loss, resolve_loss
from certifit.evaluation.losses.numbers.quantile import Quantile
from certifit.evaluation.penalties import L2
from certifit.models.kernel.parameters import ALPHA, APPROXIMATION, KERNEL, LOSS, N_COMPONENTS, RANDOM_STATE
from certifit.optimization.objective.dispatch import check_solver, minimize
from certifit.optimization.objective.forms.gram import GramProblem
from certifit.optimization.objective.forms.span import minimize_on_gram
from certifit.optimization.objective.forms.targets import minimize_targets
from certifit.optimization.objective.problem import Problem
from certifit.optimization.objective.regularizer import Regularizer
from certifit.parameters import (
    FIT_INTERCEPT,
    MAX_ITER,
    TOL,
    VERBOSE,
    Declared,
    Fitted,
    Parameter,
    Real,
    check_parameters,
)
from certifit.progress import Progress, progress
from certifit.representation.kernels import Kernel, Precomputed, resolve_kernel
from certifit.representation.kernels.points import Points, Sample, new_rows, raw_rows, sample_of
from certifit.representation.kernels.span import Span

__all__ = ["MOST_ROWS", "BaseKernel", "Iterated", "KernelModel", "KernelQuantile", "KernelRegressor", "OnKernel"]

MOST_ROWS = 8000  # different rows up to which "auto" keeps all similarities


class OnKernel(Declared, CertifiedEstimator):
    """What is known of the kernel after a fit."""

    kernel_: Kernel = Fitted("Kernel", "The kernel with all of its parameters numbers.")


class BaseKernel(OnKernel):
    """Rows, similarities and scores that all models on a kernel share."""

    points_: Points

    dual_coef_: Array = Fitted("array of shape (n_points,)", "β.")
    intercept_: Any = Fitted("float", "b.")
    certificate_: Certificate = Fitted("Certificate", "How far the fit is from the best possible one.")

    def _kernel(self) -> Kernel:
        """The kernel; raises on what is none."""
        kernel = resolve_kernel(self.kernel)
        check_parameters(kernel)
        return kernel

    def _sample(self, X: Any, y: Any, sample_weight: Any, **wanted: Any) -> Sample:
        """The checked rows of a fit on the kernel, after the parameters."""
        check_parameters(self)
        return sample_of(self, self._kernel(), X, y, sample_weight, **wanted)

    def _landmarks(self, sample: Sample) -> Array | None:
        """Numbers of the rows to sum over; None for all."""
        n, approximation = len(sample.points), getattr(self, "approximation", "none")
        if approximation == "none" or (approximation == "auto" and n <= MOST_ROWS) or self.n_components >= n:
            return None
        rng = check_random_state(self.random_state)
        return np.sort(rng.choice(n, int(self.n_components), replace=False, p=sample.p))

    def _solve(
        self, sample: Sample, loss: Loss, solver: Any, tol: float, max_iter: int, clock: Progress
    ) -> Certificate:
        """Minimize, and keep rows and coefficients."""
        landmarks, free = self._landmarks(sample), bool(self.fit_intercept)
        if landmarks is None:
            beta, intercept, certificate = self._solve_on_rows(sample, loss, solver, tol, max_iter, clock)
            # Many losses leave rows out; least squares needs them all to tell what it does not know.
            needed = isinstance(loss, Squared) | beta.reshape(beta.shape[0], -1).any(axis=1)
            used = np.flatnonzero(needed)
            self._keep(sample.points.take(used), beta[used], intercept)
            return certificate
        blocks = sample.points.take(landmarks).similarities(raw_rows(sample))
        similar = np.concatenate([block for _, block in blocks])
        span = Span.of(similar[landmarks], landmarks)
        place = np.searchsorted(landmarks, span.chosen)
        Z = span.features(similar[:, place])
        on_span = Problem(
            Z, _first(sample.y), sample.p, loss, Regularizer.of(L2(), float(self.alpha), None, Z.shape[1]), free
        )
        if sample.y.ndim == 1:
            solution, certificate = minimize(on_span, solver, tol, max_iter, clock)
        else:
            solution, certificate = minimize_targets(on_span, sample.y, solver, tol, max_iter, clock)
        self.n_iter_, self.solver_ = solution.iterations, solution.solver
        self._keep(sample.points.take(span.chosen), span.coefficients(solution.coef), solution.intercept)
        return certificate.about(f"best in the span of {Z.shape[1]:,} landmarks of {len(sample.points):,} rows")

    def _solve_on_rows(
        self, sample: Sample, loss: Loss, solver: Any, tol: float, max_iter: int, clock: Progress
    ) -> tuple[Array, Any, Certificate]:
        """β, b and their proof: for one target, or for each of several from one factorization."""
        gram, targets = sample.gram(), [sample.y] if sample.y.ndim == 1 else list(np.ascontiguousarray(sample.y.T))
        results, factor = [], None
        for y in targets:
            problem = GramProblem(gram, y, sample.p, loss, float(self.alpha), bool(self.fit_intercept))
            results.append(minimize_on_gram(problem, solver, tol, max_iter, clock, factor))
            factor = results[-1][0].factor
        found = [solution for solution, _ in results]
        self.n_iter_, self.solver_ = max(one.iterations for one in found), found[0].solver
        if sample.y.ndim == 1:
            return found[0].beta, found[0].intercept, results[0][1]
        certificate = Certificate.total([one for _, one in results], seconds=clock.seconds)
        return np.column_stack([one.beta for one in found]), np.array([one.intercept for one in found]), certificate

    def _keep(self, points: Points, beta: Array, intercept: Any) -> None:
        """Fitted attributes."""
        self.kernel_, self.points_, self.dual_coef_ = points.kernel, points, beta
        self.intercept_ = float(intercept) if np.ndim(intercept) == 0 else np.asarray(intercept, dtype=np.float64)

    @property
    def X_fit_(self) -> Any:  # noqa: N802 - scikit-learn's name
        """The rows that the model is a sum over, in the order of `dual_coef_`."""
        check_is_fitted(self)
        center = self.points_.center
        return self.points_.rows if center is None else self.points_.rows + center

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = new_rows(self, self.kernel_, X)
        scores = self.points_.expansion(rows, self.dual_coef_) + self.intercept_
        return like_input(rows, np.asarray(scores))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
        tags.input_tags.pairwise = precomputed
        tags.input_tags.sparse = not precomputed
        return tags


def _first(y: Array) -> Array:
    """The first of several targets."""
    return y if y.ndim == 1 else np.ascontiguousarray(y[:, 0])


class KernelRegressor(RegressorMixin, BaseKernel):
    """Losses of one score: a subclass says which its parameters mean."""

    def _loss_of(self) -> Loss:
        raise TypeError(f"{type(self).__name__} must say what it minimizes.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model; X holds what the kernel takes: a matrix, strings, sets, or the Gram matrix for ``"precomputed"``."""
        check_parameters(self)
        kernel, loss, solver = self._kernel(), self._loss_of(), getattr(self, "solver", "auto")
        check_solver(solver, loss, L2(), float(self.alpha), None)
        sample = sample_of(self, kernel, X, y, sample_weight)
        check_loss(loss, sample.y)
        with progress(self.verbose, type(self).__name__) as clock:
            certificate = self._solve(sample, loss, solver, float(self.tol), int(self.max_iter), clock)
        self._loss = loss
        self._certify(certificate)
        return self

    def predict(self, X: Any) -> Array:
        """Predictions of y: the inverse link of the scores f(x) + b."""
        scores = self._scores(X)
        return self._loss.predict(scores)


class Iterated(Declared, kw_only=True):
    """Models that a solver of many steps finds: what they sum over, and when it stops."""

    approximation: str = APPROXIMATION
    n_components: int = N_COMPONENTS
    tol: float = TOL
    max_iter: int = MAX_ITER
    random_state: Any = RANDOM_STATE
    verbose: int = VERBOSE

    n_iter_: int = Fitted("int", "Iterations of the solver.")
    solver_: str = Fitted("str", "The solver that was used.")


class KernelModel(Iterated, KernelRegressor):
    """Any loss on any kernel: minimize mean loss(y, f(x) + b) + alpha·½‖f‖² over the functions of the kernel.

    Losses of two classes take y of 0 and 1 and predict the probability, or the score, of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelModel
    >>> from certifit.kernels import RBF
    >>> from certifit.losses import Huber
    >>> X = np.linspace(0.0, 6.0, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> y[7] = 30.0
    >>> model = KernelModel(loss=Huber(0.1), kernel=RBF(gamma=0.5), alpha=1e-4).fit(X, y)
    >>> float(np.abs(np.delete(model.predict(X) - np.sin(X[:, 0]), 7)).max()) < 0.1, model.certificate_.certified
    (True, True)
    """

    loss: Any = LOSS
    kernel: Any = KERNEL
    alpha: float = ALPHA
    fit_intercept: bool = FIT_INTERCEPT

    def _loss_of(self) -> Loss:
        return resolve_loss(self.loss)


class KernelQuantile(Iterated, KernelRegressor):
    """Quantile regression on a kernel: minimize the mean pinball loss + alpha·½‖f‖².

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelQuantile
    >>> x, noise = np.linspace(-3, 3, 200), np.random.default_rng(0).exponential(0.5, size=200)
    >>> X, y = x[:, None], np.sin(x) + noise
    >>> model = KernelQuantile(quantile=0.9).fit(X, y)
    >>> bool(0.85 < np.mean(y <= model.predict(X)) < 0.95), model.certificate_.certified
    (True, True)
    """

    quantile: float = Parameter(
        0.5, Real(0, 1, open_low=True, open_high=True), "The share of targets that is to lie below the prediction."
    )
    kernel: Any = KERNEL
    alpha: float = ALPHA
    fit_intercept: bool = FIT_INTERCEPT

    def _loss_of(self) -> Loss:
        return Quantile(float(self.quantile))
