"""Least squares, ridge, lasso and elastic net: presets of the linear model with the squared loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import L1, L2, Constraint, NonNegative, NoPenalty, Penalty
from certifit.evaluation.penalties import ElasticNet as ElasticNetPenalty
from certifit.models.linear.inference.hat import LinearInTarget
from certifit.models.linear.inference.inference import InferenceMixin
from certifit.models.linear.inference.leave_one_out import LeaveOneOutMixin
from certifit.models.linear.model import BaseLinear
from certifit.models.linear.parameters import POSITIVE, SOLVER
from certifit.models.linear.path.path import ElasticPath, RegularizationPath, RidgePath
from certifit.parameters import ALPHA, FIT_INTERCEPT, L1_RATIO, MAX_ITER, Either, Real, Reals, Stopped

__all__ = ["ElasticNet", "Lasso", "LinearRegression", "Ridge"]


class LinearRegression(Stopped, LeaveOneOutMixin, InferenceMixin, BaseLinear):
    """Least squares: minimize mean ½(y − Xw − b)².

    The factorization (Cholesky, QR, SVD) is chosen from shape and conditioning; for rank-deficient X the solution of
    least norm is returned. `summary()` gives standard errors, tests and intervals.

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
    >>> LinearRegression().fit(X, np.column_stack([y, -y])).coef_.round(3)
    array([[ 1.98],
           [-1.98]])
    """

    _multi_output = True

    fit_intercept: bool = FIT_INTERCEPT
    positive: bool = POSITIVE
    max_iter: int = MAX_ITER.but(text="Most iterations, when `positive` makes the problem iterative.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), NoPenalty(), 0.0, NonNegative() if self.positive else None


class Ridge(Stopped, LeaveOneOutMixin, LinearInTarget, BaseLinear):
    """Least squares with an L2 penalty: minimize mean ½(y − Xw − b)² + alpha·½‖w‖².

    ``sklearn.linear_model.Ridge(alpha=a)`` on n rows is ``Ridge(alpha=a / n)`` here; the class of
    `certifit.sklearn.linear_model` has its scale. Where a factorization costs more, conjugate gradients end as soon as the gap is
    `tol` and the coefficients are off by at most 10·√tol of their length; ``solver="closed_form"`` has all digits.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Ridge
    >>> X = np.arange(4.0)[:, None]
    >>> model = Ridge(alpha=0.1).fit(X, [1.0, 3.1, 4.9, 7.0])
    >>> model.coef_.round(3), model.leverage(X).round(3)
    (array([1.833]), array([0.667, 0.296, 0.296, 0.667]))
    >>> bias, variance = model.bias_variance(lambda X: 2 * X[:, 0] + 1, 0.1, X)
    >>> bias.round(3), variance.round(4)
    (array([ 0.222,  0.074, -0.074, -0.222]), array([0.0064, 0.0029, 0.0029, 0.0064]))
    """

    _multi_output = True

    alpha: Any = ALPHA.but(
        domain=Either(Real(0), Reals(0, shape="array of shape (n_features,)")),
        text="Strength of the penalty; an array penalizes each coefficient by its own.",
    )
    fit_intercept: bool = FIT_INTERCEPT
    positive: bool = POSITIVE
    solver: Any = SOLVER

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        constraint = NonNegative() if self.positive else None
        if np.ndim(self.alpha) == 1:
            return Squared(), L2(weights=self.alpha), 1.0, constraint
        return Squared(), L2(), float(self.alpha), constraint

    def _quadratic_penalty(self, d: int) -> Array:
        if self.positive:
            raise ValueError("With positive=True the fitted values are not linear in y: they have no hat matrix.")
        return np.broadcast_to(np.asarray(self.alpha, dtype=np.float64), (d,)).copy()

    @staticmethod
    def path(X: Any, y: Any, *, sample_weight: Any = None, **options: Any) -> RegularizationPath:
        """Solutions for a whole sequence of alphas; the options are those of `certifit.models.linear.path.path.RidgePath`."""
        return RidgePath(**options).solve(X, y, sample_weight)


class Lasso(Stopped, BaseLinear):
    """Least squares with an L1 penalty: minimize mean ½(y − Xw − b)² + alpha·‖w‖₁.

    Solved by coordinate descent over working sets with gap-safe screening; `tol` is the duality gap relative to the
    objective of the best constant. The scale of alpha is that of ``sklearn.linear_model.Lasso``, whose other names are in
    `certifit.sklearn.linear_model`.

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

    _multi_output = True

    alpha: float = ALPHA
    fit_intercept: bool = FIT_INTERCEPT
    positive: bool = POSITIVE
    solver: Any = SOLVER
    max_iter: int = MAX_ITER.but(text="Most working sets that are solved.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), L1(), float(self.alpha), NonNegative() if self.positive else None

    @staticmethod
    def path(X: Any, y: Any, *, sample_weight: Any = None, **options: Any) -> RegularizationPath:
        """Solutions for a whole sequence of alphas; the options are those of `certifit.models.linear.path.path.ElasticPath`."""
        return ElasticPath(l1_ratio=1.0, **options).solve(X, y, sample_weight)


class ElasticNet(Stopped, BaseLinear):
    """Minimize mean ½(y − Xw − b)² + alpha·(l1_ratio·‖w‖₁ + (1 − l1_ratio)·½‖w‖²).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import ElasticNet
    >>> x = np.arange(8.0)
    >>> ElasticNet(alpha=0.5).fit(np.column_stack([x, x]), 2 * x).coef_.round(3)  # columns that are alike share
    array([0.953, 0.953])
    """

    _multi_output = True

    alpha: float = ALPHA
    l1_ratio: float = L1_RATIO.but(text="Share of the absolute value: 1 is the lasso, 0 is ridge.")
    fit_intercept: bool = FIT_INTERCEPT
    positive: bool = POSITIVE
    solver: Any = SOLVER
    max_iter: int = MAX_ITER.but(text="Most working sets that are solved.")

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), ElasticNetPenalty(self.l1_ratio), float(self.alpha), NonNegative() if self.positive else None

    @staticmethod
    def path(X: Any, y: Any, *, l1_ratio: float = 0.5, sample_weight: Any = None, **options: Any) -> RegularizationPath:
        """Solutions for a whole sequence of alphas; the options are those of `certifit.models.linear.path.path.ElasticPath`."""
        return ElasticPath(l1_ratio=l1_ratio, **options).solve(X, y, sample_weight)
