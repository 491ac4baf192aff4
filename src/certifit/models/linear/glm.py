"""Generalized linear models with the log link: Poisson and Gamma."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.gate import check_real
from certifit.evaluation.losses import Gamma, Loss, Poisson
from certifit.evaluation.penalties import Constraint, Penalty, resolve_penalty
from certifit.models.linear.inference import InferenceMixin
from certifit.models.linear.model import BaseLinear

__all__ = ["GammaRegressor", "PoissonRegressor"]


class _LogLinkRegressor(InferenceMixin, BaseLinear):
    """Mean half deviance of exp(Xw + b) plus alpha times a penalty; a subclass names the family."""

    def __init__(
        self,
        alpha: float = 1.0,
        penalty: Any = "l2",
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _family(self) -> Loss:
        raise TypeError(f"{type(self).__name__} must name its family.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        options = {"l1_ratio": self.l1_ratio} if self.penalty == "elasticnet" else {}
        alpha = float(check_real("alpha", self.alpha, low=0, high=np.inf, open_high=True))
        return self._family(), resolve_penalty(self.penalty, **options), alpha, None


class PoissonRegressor(_LogLinkRegressor):
    """Counts and rates: minimize the mean Poisson half deviance of exp(Xw + b) + alpha·penalty(w).

    The scale of alpha is that of ``sklearn.linear_model.PoissonRegressor``.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty; 0 gives the maximum likelihood fit, for which `summary()` has standard errors.
    penalty : str or Penalty, default="l2"
        A name from ``certifit.penalties.PENALTIES`` or a penalty object.
    l1_ratio : float, default=0.5
        Share of the absolute value when ``penalty="elasticnet"``.
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

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PoissonRegressor
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 4.0, 8.0])
    >>> model = PoissonRegressor(alpha=0.0).fit(X, y)
    >>> model.predict(X).round(3)
    array([1., 2., 4., 8.])
    """

    def _family(self) -> Loss:
        return Poisson()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class GammaRegressor(_LogLinkRegressor):
    """Positive amounts: minimize the mean Gamma half deviance of exp(Xw + b) + alpha·penalty(w).

    The scale of alpha is that of ``sklearn.linear_model.GammaRegressor``.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty; 0 gives the maximum likelihood fit, for which `summary()` has standard errors.
    penalty : str or Penalty, default="l2"
        A name from ``certifit.penalties.PENALTIES`` or a penalty object.
    l1_ratio : float, default=0.5
        Share of the absolute value when ``penalty="elasticnet"``.
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

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GammaRegressor
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 2.0, 4.0, 8.0])
    >>> model = GammaRegressor(alpha=0.0).fit(X, y)
    >>> model.predict(X).round(3)
    array([1., 2., 4., 8.])
    """

    def _family(self) -> Loss:
        return Gamma()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags
