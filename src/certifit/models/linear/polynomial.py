"""Polynomial regression: least squares on all monomials up to a degree.

    minimize over c    mean ½(y − Σ_m c_m z^m − b)² + alpha·½‖c‖²,     z = (x − mean)/deviation,   |m| ≤ degree

Without penalty the fitted function does not depend on the units of x; standardizing first only keeps the monomials apart
in floating point, and makes a penalty treat the inputs alike.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.data.gate import check_x, check_xy
from certifit.evaluation.losses import Loss, Squared
from certifit.evaluation.penalties import L2, Constraint, Penalty
from certifit.models.linear.inference.inference import InferenceMixin, Summary
from certifit.models.linear.model import BaseLinear
from certifit.optimization.closed_form.hat import leverage
from certifit.optimization.closed_form.least_squares import solve_least_squares
from certifit.parameters import ALPHA, FIT_INTERCEPT, TOL, VERBOSE, Declared, Either, Flag, Given, Integer, Parameter
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
    raw_coef_ : array of shape (n_monomials,)
        Coefficients of the same monomials of the inputs as they are: the polynomial written out.
    raw_intercept_ : float
        Its constant term.
    monomials_ : array of str
        Names of the monomials.
    degree_ : int
        The degree; where several were given, `degrees_` and `cv_errors_` are the candidates and their mean squared errors on rows
        left out one at a time (one copy of a weighted row).
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import PolynomialRegression
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> model = PolynomialRegression(degree=3).fit(X, X[:, 0] ** 3)
    >>> model.predict([[0.5]]).round(6), list(model.monomials_)
    (array([0.125]), ['x0', 'x0^2', 'x0^3'])
    >>> model.raw_coef_.round(6) + 0.0
    array([0., 0., 1.])
    """

    degree: Any = Parameter(
        2,
        Either(Integer(1), Given("sequence of degrees", wrong=([], [0], [1.5]))),
        "Highest total degree of a monomial; of several, the one with the least squared error on rows left out one at a time.",
        kind="int or sequence of int",
    )
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
        standardized = self._scaler.transform(X)
        self.degree_ = self._choose(standardized, y, weight)
        self._basis = PolynomialFeatures(self.degree_, interaction_only=self.interaction_only)
        monomials = self._basis.fit_transform(standardized)
        self.monomials_ = self._basis.get_feature_names_out(getattr(self, "feature_names_in_", None))
        with thin_products(monomials):
            self._fit_arrays(monomials, y, weight)
        return self

    def _choose(self, Z: Array, y: Array, weight: Array) -> int:
        """The degree, by leave-one-out in closed form where there are several: e_i/(1 − h_i), h the leverage of one copy."""
        if np.ndim(self.degree) == 0:
            return int(self.degree)
        degrees, p, errors = sorted({int(k) for k in self.degree}), weight / weight.sum(), []
        for degree in degrees:
            A = np.asarray(PolynomialFeatures(degree, interaction_only=self.interaction_only).fit_transform(Z))
            penalty = np.full(A.shape[1], float(self.alpha))
            fit = solve_least_squares(A, y, p, l2=penalty, fit_intercept=bool(self.fit_intercept))
            spare = 1.0 - leverage(A, p, penalty, bool(self.fit_intercept)) / weight
            with np.errstate(divide="ignore", invalid="ignore"):
                left = np.where(spare > 1e-10, (y - A @ fit.coef - fit.intercept) / spare, np.inf)
            errors.append(float(p @ left**2))
        self.degrees_, self.cv_errors_ = np.array(degrees), np.array(errors)
        # Among degrees that all fit without error, rounding must not choose.
        rounding = 1e-12 * float(p @ y**2)
        return degrees[int(np.flatnonzero(self.cv_errors_ <= self.cv_errors_.min() + rounding)[0])]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if np.ndim(self.degree) > 0 and not (
            len(self.degree) and all(isinstance(k, (int, np.integer)) and k >= 1 for k in self.degree)
        ):
            raise ValueError(f"degree must be whole numbers >= 1, at least one of them; got {self.degree!r}.")

    @property
    def weights_are_counts(self) -> bool:
        """Whether doubling every weight matters: leave-one-out leaves out one copy of a row."""
        return bool(np.ndim(self.degree) > 0)

    @property
    def raw_coef_(self) -> Array:
        """Coefficients of the monomials of the inputs as they are: the polynomial written out."""
        return self._raw()[1:]

    @property
    def raw_intercept_(self) -> float:
        """The constant term of the polynomial written out."""
        return float(self._raw()[0])

    def _raw(self) -> Array:
        check_is_fitted(self, "coef_")
        return np.asarray(self._written_out() @ np.append(self.intercept_, self.coef_))

    def _written_out(self) -> Any:
        """From the coefficients of the monomials of z = (x − m)/s, the constant first, to those of the monomials of x.

        Π_j z_j^p_j is a product of the polynomials (x_j − m_j)^p_j / s_j^p_j; each is written out by the binomial theorem.
        """
        powers = np.vstack([np.zeros((1, self.n_features_in_), dtype=np.int64), self._basis.powers_])
        place = {tuple(row): i for i, row in enumerate(powers.tolist())}
        mean, scale = (np.asarray(v, dtype=np.float64) for v in (self._scaler.mean_, self._scaler.scale_))
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        for column, row in enumerate(powers.tolist()):
            terms = {(0,) * self.n_features_in_: 1.0}
            for j in np.flatnonzero(row):
                p = row[j]
                factors = [comb(p, k) * (-mean[j]) ** (p - k) / scale[j] ** p for k in range(p + 1)]
                terms = {
                    (*known[:j], k, *known[j + 1 :]): value * factor
                    for known, value in terms.items()
                    for k, factor in enumerate(factors)
                }
            rows += [place[known] for known in terms]
            columns += [column] * len(terms)
            values += terms.values()
        return sparse.csr_array((values, (rows, columns)), shape=(len(place), len(place)))

    def summary(self, level: float = 0.95) -> Summary:
        """Estimates with standard errors, tests and confidence intervals, of the polynomial written out in the inputs themselves.

        Without an intercept the monomials are those of the standardized inputs, which have no constant term.

        Parameters
        ----------
        level : float, default=0.95
            Level of the confidence intervals.
        """
        found = self._known("summary")
        if not found.fit_intercept:
            return found.summary(level, [f"{name} (standardized)" for name in self.monomials_])
        change = self._written_out()
        covariance = change @ (change @ found.covariance).T
        written = replace(found, estimate=change @ found.estimate, covariance=covariance)
        return written.summary(level, [str(name) for name in self.monomials_])

    def _quadratic_penalty(self, d: int) -> Array:
        return np.full(d, float(self.alpha))

    def _rows(self, X: Any) -> Array:
        rows = check_x(self, X, reset=False, accept_sparse=False)
        return np.asarray(self._basis.transform(self._scaler.transform(rows)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
