"""Robust regression: Huber, least absolute deviations, quantiles, and the Chebyshev criterion."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.equal_rows import merge_rows
from certifit.data.gate import check_choice, check_real, check_xy
from certifit.evaluation.losses import Absolute, Huber, Loss, Quantile
from certifit.evaluation.penalties import Constraint, Penalty, resolve_penalty
from certifit.models.linear.inference import InferenceMixin
from certifit.models.linear.model import BaseLinear
from certifit.optimization.interior_point.solve import InteriorPointResult, chebyshev
from certifit.optimization.programs.highs import chebyshev_lp
from certifit.progress import progress

__all__ = ["ChebyshevRegressor", "HuberRegressor", "LADRegressor", "QuantileRegressor"]


class _PenalizedRobust(InferenceMixin, BaseLinear):
    """A fixed loss with alpha times a penalty by name."""

    def _loss_object(self) -> Loss:
        raise TypeError(f"{type(self).__name__} must name its loss.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        alpha = float(check_real("alpha", self.alpha, low=0, high=np.inf, open_high=True))
        return self._loss_object(), resolve_penalty(self.penalty), alpha, None


class HuberRegressor(_PenalizedRobust):
    """Minimize mean huber(y − Xw − b) + alpha·penalty(w): squares near zero, absolute values far away.

    Parameters
    ----------
    delta : float, default=1.35
        Residual at which the loss turns linear, in units of y.
    alpha : float, default=0.0
        Strength of the penalty.
    penalty : str or Penalty, default="l2"
        A name from ``certifit.penalties.PENALTIES`` or a penalty object.
    fit_intercept : bool, default=True
        Whether to fit the unpenalized intercept b.
    solver : str or GradientDescent, default="auto"
        The solver; the choice made is in `solver_`.
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=1000
        Most iterations.
    n_jobs : int or None, default=None
        Threads of the native kernels.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    outliers_ : array of shape (n_samples,), bool
        Rows (of positive weight) whose residual lies in the linear part.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import HuberRegressor
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])
    >>> model = HuberRegressor(delta=0.5).fit(X, y)
    >>> model.outliers_, bool(model.coef_[0] < 1.2)
    (array([False, False, False, False, False,  True]), True)
    """

    def __init__(
        self,
        delta: float = 1.35,
        alpha: float = 0.0,
        penalty: Any = "l2",
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.delta = delta
        self.alpha = alpha
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss_object(self) -> Loss:
        return Huber(delta=self.delta)

    def _keep(self, problem: Any, solution: Any, weight: Array) -> None:
        super()._keep(problem, solution, weight)
        f = problem.scores(solution.coef, solution.intercept)
        self.outliers_ = np.abs(problem.y - f) > self.delta


class LADRegressor(_PenalizedRobust):
    """Least absolute deviations: minimize mean |y − Xw − b| + alpha·penalty(w), by a structured interior point.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the penalty.
    penalty : str or Penalty, default="l1"
        A name from ``certifit.penalties.PENALTIES`` or a penalty object.
    fit_intercept : bool, default=True
        Whether to fit the unpenalized intercept b.
    solver : str, default="auto"
        The solver; the choice made is in `solver_`.
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=200
        Most iterations.
    n_jobs : int or None, default=None
        Threads of the native kernels.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LADRegressor
    >>> X, y = np.arange(6.0)[:, None], np.array([0.0, 1.0, 2.0, 3.0, 4.0, 50.0])
    >>> LADRegressor().fit(X, y).coef_.round(6)
    array([1.])
    """

    def __init__(
        self,
        alpha: float = 0.0,
        penalty: Any = "l1",
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss_object(self) -> Loss:
        return Absolute()


class QuantileRegressor(_PenalizedRobust):
    """Minimize mean pinball loss of y − Xw − b at a quantile + alpha·penalty(w).

    The scale of alpha is that of ``sklearn.linear_model.QuantileRegressor``.

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
        The conditional quantile to estimate.
    alpha : float, default=1.0
        Strength of the penalty.
    penalty : str or Penalty, default="l1"
        A name from ``certifit.penalties.PENALTIES`` or a penalty object.
    fit_intercept : bool, default=True
        Whether to fit the unpenalized intercept b.
    solver : str, default="auto"
        The solver; the choice made is in `solver_`.
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=200
        Most iterations.
    n_jobs : int or None, default=None
        Threads of the native kernels.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import QuantileRegressor
    >>> X, y = np.zeros((5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    >>> round(QuantileRegressor(quantile=0.5).fit(X, y).intercept_, 6)
    3.0
    """

    def __init__(
        self,
        quantile: float = 0.5,
        alpha: float = 1.0,
        penalty: Any = "l1",
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.quantile = quantile
        self.alpha = alpha
        self.penalty = penalty
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss_object(self) -> Loss:
        return Quantile(self.quantile)


class ChebyshevRegressor(BaseLinear):
    """Chebyshev's criterion: minimize max |y_i − x_i·w − b| + alpha·½‖w‖² over the rows of positive weight.

    Parameters
    ----------
    alpha : float, default=0.0
        Strength of the L2 penalty.
    fit_intercept : bool, default=True
        Whether to fit the intercept b.
    solver : {"auto", "interior_point", "lp"}, default="auto"
        "lp" solves the linear program by HiGHS and needs alpha = 0.
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=200
        Most iterations of the interior point.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ChebyshevRegressor
    >>> X, y = np.arange(3.0)[:, None], np.array([0.0, 1.0, 0.0])
    >>> model = ChebyshevRegressor().fit(X, y)
    >>> round(model.certificate_.objective, 6)
    0.5
    """

    def __init__(
        self,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ChebyshevRegressor:
        """Fit the model; weights matter only by being positive.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features.
        y : array of shape (n_samples,)
            Target.
        sample_weight : array of shape (n_samples,), optional
            A weight of 0 drops a row; a maximum does not count repetitions.

        Returns
        -------
        self
        """
        alpha = float(check_real("alpha", self.alpha, low=0, high=np.inf, open_high=True))
        solver = check_choice("solver", self.solver, ("auto", "interior_point", "lp"))
        _, tol, max_iter = self._solver_options()
        if solver == "lp" and alpha > 0:
            raise ValueError(f"solver='lp' needs alpha=0, got alpha={alpha:g}: use solver='interior_point'.")
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight)
        X, y, _ = merge_rows(X, y, weight)
        constant = 0.5 * (y.max() + y.min()) if self.fit_intercept else 0.0
        scale = max(float(np.abs(y - constant).max()), 1e-15 * float(np.abs(y).max()))
        with progress(self.verbose, "ChebyshevRegressor") as clock:
            if not np.ptp(y) > 0 and (self.fit_intercept or not y.any()):  # a constant is perfect
                result = InteriorPointResult(
                    np.zeros(X.shape[1]), constant, np.zeros_like(y), 0.0, 0.0, 0.0, 1, "optimal", ""
                )
            elif solver == "lp":
                result = chebyshev_lp(X, y, fit_intercept=self.fit_intercept)
            else:
                result = chebyshev(X, y, l2=alpha, fit_intercept=self.fit_intercept, tol=tol * scale, max_iter=max_iter)
        self._loss = Absolute()
        self.coef_ = result.coef.astype(X.dtype)
        self.intercept_ = float(result.intercept)
        self.n_iter_ = result.iterations
        self.solver_ = "lp" if solver == "lp" else "interior_point"
        residual = y - np.asarray(X @ self.coef_.astype(np.float64)) - self.intercept_
        objective = float(np.abs(residual).max()) + 0.5 * alpha * float(np.sum(self.coef_.astype(np.float64) ** 2))
        self._certify(
            Certificate(
                "linear program" if alpha == 0 else "duality gap",
                objective=objective,
                bound=max(result.bound, 0.0),
                scale=scale,
                tol=tol,
                iterations=result.iterations,
                seconds=clock.seconds,
                note="" if result.status == "optimal" else result.message,
            )
        )
        return self
