"""Polynomial regression: least squares on all monomials up to a degree.

    minimize over c    mean ½(y − Σ_m c_m z^m − b)² + alpha·½‖c‖²,     z = (x − mean)/deviation,   |m| ≤ degree

Without penalty the fitted function does not depend on the units of x; standardizing first only keeps the monomials apart
in floating point, and makes a penalty treat the inputs alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certifit._types import Array
from certifit.data.gate import check_x, check_xy
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import L2, Constraint, Penalty
from certifit.models.linear.inference import InferenceMixin
from certifit.models.linear.model import BaseLinear
from certifit.parameters import ALPHA, FIT_INTERCEPT, TOL, VERBOSE, Declared, Flag, Integer, Parameter
from certifit.representation.basis.monomials import PolynomialFeatures
from certifit.representation.basis.scaling import StandardScaler
from certifit.representation.design.rows import thin_products

__all__ = ["PolynomialRegression"]


class PolynomialRegression(Declared, InferenceMixin, BaseLinear):
    """Least squares, or ridge, on the monomials of standardized inputs.

    Attributes
    ----------
    coef_ : array of shape (n_monomials,)
        Coefficients of the monomials of the standardized inputs, in the order of `monomials_`.
    intercept_ : float
    monomials_ : array of str
        Names of the monomials.
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PolynomialRegression
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> model = PolynomialRegression(degree=3).fit(X, X[:, 0] ** 3)
    >>> model.predict([[0.5]]).round(6), list(model.monomials_)
    (array([0.125]), ['x0', 'x0^2', 'x0^3'])
    """

    degree: int = Parameter(2, Integer(1), "Highest total degree of a monomial.")
    interaction_only: bool = Parameter(False, Flag(), "Whether to leave out powers of a single input.")
    alpha: float = ALPHA.but(0.0, "Strength of the L2 penalty on the coefficients of the monomials.")
    fit_intercept: bool = FIT_INTERCEPT
    tol: float = TOL
    verbose: int = VERBOSE

    max_iter = 1
    n_jobs = None

    def _objective(self) -> tuple[Loss, Penalty, float, Constraint | None]:
        return Squared(), L2(), float(self.alpha), None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PolynomialRegression:
        """Standardize, expand, and solve the least-squares problem.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Features.
        """
        self._check_parameters()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False)
        self._scaler = StandardScaler().fit(X, sample_weight=weight)
        self._basis = PolynomialFeatures(self.degree, interaction_only=self.interaction_only)
        monomials = self._basis.fit_transform(self._scaler.transform(X))
        self.monomials_ = self._basis.get_feature_names_out()
        with thin_products(monomials):
            self._fit_arrays(monomials, y, weight)
        return self

    def _rows(self, X: Any) -> Array:
        rows = check_x(self, X, reset=False, accept_sparse=False)
        return np.asarray(self._basis.transform(self._scaler.transform(rows)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
