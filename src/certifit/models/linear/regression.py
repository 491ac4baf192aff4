"""Least squares, ridge, lasso and elastic net: presets of the linear model with the squared loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit.data.gate import check_real
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import L1, L2, Constraint, NonNegative, NoPenalty, Penalty
from certifit.evaluation.penalties import ElasticNet as ElasticNetPenalty
from certifit.models.linear.inference import InferenceMixin
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.path import RegularizationPath, elastic_path

__all__ = ["ElasticNet", "Lasso", "LinearRegression", "Ridge"]


class LinearRegression(InferenceMixin, BaseLinear):
    """Least squares: minimize mean ½(y − Xw − b)².

    The factorization (Cholesky, QR, SVD) is chosen from shape and conditioning; for rank-deficient X the solution of
    least norm is returned. `summary()` gives standard errors, tests and intervals.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit the intercept b.
    positive : bool, default=False
        Whether coefficients must be non-negative (NNLS).
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=1000
        Most iterations, when `positive` makes the problem iterative.
    n_jobs : int or None, default=None
        Threads of the native kernels.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import LinearRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.1, 4.9, 7.0])
    >>> model = LinearRegression().fit(X, y)
    >>> model.coef_.round(3), round(model.intercept_, 3)
    (array([1.98]), 1.03)
    >>> model.certificate_.kind
    'closed form'
    """

    def __init__(
        self,
        fit_intercept: bool = True,
        positive: bool = False,
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), NoPenalty(), 0.0, NonNegative() if self.positive else None


class Ridge(BaseLinear):
    """Least squares with an L2 penalty: minimize mean ½(y − Xw − b)² + alpha·½‖w‖².

    ``sklearn.linear_model.Ridge(alpha=a)`` on n rows is ``Ridge(alpha=a / n)`` here.

    Parameters
    ----------
    alpha : float or array of shape (n_features,), default=1.0
        Strength of the penalty; an array penalizes each coefficient by its own.
    fit_intercept : bool, default=True
        Whether to fit the unpenalized intercept b.
    positive : bool, default=False
        Whether coefficients must be non-negative.
    solver : str or GradientDescent, default="auto"
        The solver; the choice made is in `solver_`.
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=1000
        Most iterations of an iterative solver.
    n_jobs : int or None, default=None
        Threads of the native kernels.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.1, 4.9, 7.0])
    >>> Ridge(alpha=0.1).fit(X, y).coef_.round(3)
    array([1.833])
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        fit_intercept: bool = True,
        positive: bool = False,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        constraint = NonNegative() if self.positive else None
        if np.ndim(self.alpha) == 1:
            return Squared(), L2(weights=self.alpha), 1.0, constraint
        alpha = float(check_real("alpha", self.alpha, low=0, high=np.inf, open_high=True))
        return Squared(), L2(), alpha, constraint


class Lasso(BaseLinear):
    """Least squares with an L1 penalty: minimize mean ½(y − Xw − b)² + alpha·‖w‖₁.

    Solved by coordinate descent over working sets with gap-safe screening; `tol` is the duality gap relative to the
    objective of the best constant. The scale of alpha is that of ``sklearn.linear_model.Lasso``.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    fit_intercept : bool, default=True
        Whether to fit the unpenalized intercept b.
    positive : bool, default=False
        Whether coefficients must be non-negative.
    solver : str or GradientDescent, default="auto"
        The solver; the choice made is in `solver_`.
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=1000
        Most working sets that are solved.
    n_jobs : int or None, default=None
        Threads of the native kernel; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> y = 2 * X[:, 0] + 0.1 * rng.normal(size=50)
    >>> Lasso(alpha=0.5).fit(X, y).coef_.round(2)
    array([1.61, 0.  , 0.  ])
    >>> alphas, coefs, intercepts, gaps = Lasso.path(X, y, n_alphas=20)
    >>> coefs.shape
    (20, 3)
    """

    def __init__(
        self,
        alpha: float = 1.0,
        fit_intercept: bool = True,
        positive: bool = False,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        alpha = float(check_real("alpha", self.alpha, low=0, high=np.inf, open_high=True))
        return Squared(), L1(), alpha, NonNegative() if self.positive else None

    @staticmethod
    def path(X: Any, y: Any, **options: Any) -> RegularizationPath:
        """Solutions for a whole sequence of alphas; see `certifit.models.linear.path.elastic_path` for the options."""
        return elastic_path(X, y, l1_ratio=1.0, **options)


class ElasticNet(BaseLinear):
    """Minimize mean ½(y − Xw − b)² + alpha·(l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖²).

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the penalty.
    l1_ratio : float in [0, 1], default=0.5
        Share of the absolute value: 1 is the lasso, 0 is ridge.
    fit_intercept : bool, default=True
        Whether to fit the unpenalized intercept b.
    positive : bool, default=False
        Whether coefficients must be non-negative.
    solver : str or GradientDescent, default="auto"
        The solver; the choice made is in `solver_`.
    tol : float, default=1e-6
        Wanted relative gap of the certificate.
    max_iter : int, default=1000
        Most working sets that are solved.
    n_jobs : int or None, default=None
        Threads of the native kernel; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ElasticNet
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> y = 2 * X[:, 0] + 0.1 * rng.normal(size=50)
    >>> ElasticNet(alpha=0.5).fit(X, y).certificate_.certified
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        positive: bool = False,
        solver: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.positive = positive
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        alpha = float(check_real("alpha", self.alpha, low=0, high=np.inf, open_high=True))
        return Squared(), ElasticNetPenalty(self.l1_ratio), alpha, NonNegative() if self.positive else None

    @staticmethod
    def path(X: Any, y: Any, *, l1_ratio: float = 0.5, **options: Any) -> RegularizationPath:
        """Solutions for a whole sequence of alphas; see `certifit.models.linear.path.elastic_path` for the options."""
        return elastic_path(X, y, l1_ratio=l1_ratio, **options)
