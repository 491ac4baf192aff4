"""Bayesian linear regression: a distribution over lines instead of one line.

    y = x·w + b + noise,    noise ~ N(0, 1/β),    w ~ N(m₀, diag(1/α)),    b flat

The posterior is normal with precision A = diag(α) + β Σ s_i x̃_i x̃_iᵀ and mean A⁻¹(α m₀ + β Σ s_i x̃_i ỹ_i), where ~ marks what was
centered (the flat intercept, integrated out). All of it comes from the moments of (x, y), a fold over rows: blocks, `partial_fit`
and one row at a time give the posterior of all rows at once. The logarithm of the evidence,

    ln P(y | α, β) = ½ [ Σ ln α_j + ν ln β − ν ln 2π − ln W − β‖ỹ − X̃m‖² − Σ α_j (m_j − m₀_j)² − ln det A ],   ν = W − 1,

is maximized over what is not given: β, one α for all columns, or one for each (automatic relevance). MacKay (1992).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import stats
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_numbers, check_real, check_x, check_xy, like_input
from certifit.models.bayes.evidence import Data, Prior
from certifit.optimization.objective.units import check_range
from certifit.parameters import FIT_INTERCEPT, Any_, Declared, Flag, Integer, Parameter, Real
from certifit.parameters.methods import DENSE
from certifit.representation.design.moments import Moments

__all__ = ["BayesianLinearRegression"]

POSITIVE = Any_(
    "float > 0, array of shape (n_features,) or (n_features, n_features), or None", wrong=("a", 0.0, -1.0, np.nan)
)


class BayesianLinearRegression(Declared, RegressorMixin, CertifiedEstimator, takes={"X": DENSE}):
    """Linear regression with a normal prior: posterior, predictive distribution, credible intervals, evidence.

    Given α and β the posterior is exact, in closed form; the evidence is maximized over those that are not given, by fixed-point
    steps that stop at a relative change of `tol` (a stationary point; the evidence need not have only one).

    Attributes
    ----------
    coef_, intercept_ : array of shape (n_features,), float
        Mean of the posterior.
    covariance_ : array of shape (n_features, n_features)
        Covariance of the coefficients.
    alpha_ : float or array of shape (n_features,)
        Precision of the prior.
    noise_ : float
        Variance of the noise, 1/β.
    log_evidence_ : float
    effective_parameters_ : float
        γ = Σ_j (1 − α_j·covariance_jj): how many coefficients the data determine.
    n_iter_ : int
    certificate_ : Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import BayesianLinearRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 3.1, 4.9, 7.0])
    >>> model = BayesianLinearRegression(prior_precision=1e-6, noise=0.01).fit(X, y)
    >>> mean, deviation = model.predict([[1.5]], return_std=True)
    >>> mean.round(3), deviation.round(3)
    (array([4.]), array([0.112]))
    """

    prior_mean: Any = Parameter(
        0.0,
        Any_("float or array of shape (n_features,)", wrong=("a", np.nan, [np.inf])),
        "Mean of the prior of the coefficients.",
    )
    prior_precision: Any = Parameter(
        None,
        POSITIVE,
        "Inverse variance of the prior (α), for all columns or each, or a precision matrix; None maximizes the evidence.",
    )
    noise: Any = Parameter(
        None,
        Any_("float > 0 or None", wrong=("a", 0.0, -1.0, np.nan)),
        "Variance of the noise (1/β); None maximizes the evidence.",
    )
    relevance: bool = Parameter(
        False, Flag(), "Whether each column gets a precision of its own (automatic relevance), when none is given."
    )
    fit_intercept: bool = FIT_INTERCEPT.but(text="Whether there is an intercept, with a flat prior.")
    tol: float = Parameter(
        1e-6, Real(0), "Relative change of the precisions at which the maximization of the evidence stops."
    )
    max_iter: int = Parameter(1000, Integer(1), "Most steps of it.")
    prior_cov: Any = Parameter(
        None,
        POSITIVE,
        "Covariance of the prior, instead of its inverse `prior_precision`: a variance for all columns or each, or a matrix.",
    )

    weights_are_counts = True  # the more rows, the surer the posterior

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Compute the posterior."""
        started = time.perf_counter()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False)
        self._settle(_moments(X, y, weight), X.dtype, started)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Update the posterior with more rows: the same as from all rows at once."""
        started = time.perf_counter()
        known = getattr(self, "_moments", None)
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False)
        if known is not None and known.mean.shape[1] != X.shape[1] + 1:
            found, self.n_features_in_ = X.shape[1], known.mean.shape[1] - 1
            raise ValueError(
                f"X has {found} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input."
            )
        block = _moments(X, y, weight)
        self._settle(block if known is None else known + block, X.dtype, started)
        return self

    def _settle(self, moments: Moments, dtype: Any, started: float) -> None:
        self._moments = moments.checked("X or y")
        total, mean, scatter = float(moments.weight[0]), moments.mean[0], moments.scatter[0]
        if not self.fit_intercept:  # about zero instead of about the mean
            scatter = scatter + total * np.outer(mean, mean)
        d = mean.shape[0] - 1
        center = mean if self.fit_intercept else np.zeros(d + 1)
        # Columns in units of their own: the precision of the prior of a column of size u is α u². One whose squares are below
        # the numbers of full precision is as good as constant.
        own = np.diag(scatter)
        unit = np.where(own >= np.finfo(np.float64).tiny, np.sqrt(own) / np.sqrt(total), 1.0)
        scaled = scatter / unit / unit[:, None]
        data = Data(
            scaled[:d, :d],
            scaled[:d, d],
            float(scaled[d, d]),
            total - float(self.fit_intercept),
            unit[:d],
            float(unit[d]),
        )
        prior = self._prior(d, data)
        solution = prior.solve(data, float(self.tol), int(self.max_iter))
        self.n_iter_ = solution.iterations
        self.coef_ = (solution.mean / unit[:d] * unit[d]).astype(dtype)
        self.intercept_ = float(center[d] - center[:d] @ self.coef_.astype(np.float64))
        check_range(self.coef_, self.intercept_)
        self._spread = solution.covariance  # of the coefficients in units of the columns, noise included
        factor = unit[d] / unit[:d]
        with np.errstate(over="ignore"):  # coefficients are numbers, their squares need not be
            self.covariance_ = solution.covariance * factor * factor[:, None]
        self.alpha_ = solution.alpha
        self.noise_ = solution.noise * unit[d] ** 2
        self._center, self._total = center[:d], total
        self.effective_parameters_ = solution.effective
        self.log_evidence_ = solution.log_evidence - (total - float(self.fit_intercept)) * float(np.log(unit[d]))
        if self.fit_intercept:
            self.log_evidence_ -= 0.5 * float(np.log(total))
        given = self.noise is not None and (self.prior_precision is not None or self.prior_cov is not None)
        if given:
            note = "The posterior, in closed form."
        elif solution.change <= self.tol:
            note = (
                f"The posterior given alpha and noise, in closed form; these maximize the evidence to a relative change of "
                f"{solution.change:.1e}, a stationary point of it."
            )
        else:
            note = (
                f"The posterior given alpha and noise, in closed form; these do not maximize the evidence: they still changed by "
                f"{solution.change:.1e}, relative, in the last of {solution.iterations} iterations (tol={self.tol:g})."
            )
        objective = float(0.5 * solution.residual / total * unit[d] * unit[d])
        self._certify(
            Certificate.exact(
                objective,
                note,
                iterations=solution.iterations,
                seconds=time.perf_counter() - started,
                claim="" if given else "posterior for these precisions",
            )
        )

    def _prior(self, d: int, data: Any) -> Any:
        mean = (
            np.asarray(self.prior_mean, dtype=np.float64) if not isinstance(self.prior_mean, str) else np.array(np.nan)
        )
        if mean.shape not in ((), (d,)) or not np.isfinite(mean).all():
            raise ValueError(
                f"prior_mean must be a finite number, or one for each of the {d} columns; got {self.prior_mean!r}."
            )
        noise = self.noise
        if noise is not None:
            noise = float(check_real("noise", noise, low=0, open_low=True, open_high=True)) / data.target**2
        if self.prior_precision is not None and self.prior_cov is not None:
            raise ValueError("prior_precision and prior_cov say the same thing: give one of them.")
        given = None
        if self.prior_precision is not None:
            given = _positive("prior_precision", self.prior_precision, d)
        elif self.prior_cov is not None:
            cov = _positive("prior_cov", self.prior_cov, d)
            given = np.linalg.inv(cov) if cov.ndim == 2 else 1.0 / cov
            if given.ndim == 2:
                given = 0.5 * (given + given.T)  # as symmetric as it was before rounding
        return Prior(np.broadcast_to(mean, (d,)) * data.unit / data.target, given, noise, bool(self.relevance))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of the predictive distribution, and its standard deviation on request.

        Parameters
        ----------
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation too.

        Returns
        -------
        mean : array of shape (n_samples,)
        deviation : array of shape (n_samples,), with `return_std`
        """
        check_is_fitted(self, "coef_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        z = rows.astype(np.float64, copy=False)
        mean = like_input(rows, z @ self.coef_.astype(np.float64) + self.intercept_)
        if not return_std:
            return mean
        return mean, like_input(rows, np.sqrt(self._line_variance(z) + self.noise_))

    def _line_variance(self, z: Array) -> Array:
        """Variance of the line itself at each row."""
        z = z - self._center
        variance = np.einsum("ij,ij->i", z @ self.covariance_, z)
        return variance + self.noise_ / self._total if self.fit_intercept else variance

    def predict_interval(self, X: Any, level: float = 0.95, of: str = "observation") -> tuple[Array, Array]:
        """Credible band: the interval that a new observation, or the line itself, lies in with the probability `level`.

        Parameters
        ----------
        level : float, default=0.95
        of : {"observation", "line"}, default="observation"

        Returns
        -------
        low, high : arrays of shape (n_samples,)
        """
        check_real("level", level, low=0, high=1, open_low=True, open_high=True)
        if of not in ("observation", "line"):
            raise ValueError(f"of must be 'observation' or 'line'; got {of!r}.")
        mean = self.predict(X)
        rows = check_x(self, X, reset=False, accept_sparse=False).astype(np.float64, copy=False)
        variance = self._line_variance(rows) + (self.noise_ if of == "observation" else 0.0)
        half = float(stats.norm.ppf(0.5 * (1 + level))) * np.sqrt(variance)
        return mean - half, mean + half

    def credible_interval(self, level: float = 0.95) -> Array:
        """Intervals of the coefficients, shape (n_features, 2)."""
        check_is_fitted(self, "coef_")
        check_real("level", level, low=0, high=1, open_low=True, open_high=True)
        half = float(stats.norm.ppf(0.5 * (1 + level))) * np.sqrt(np.diag(self.covariance_))
        return np.column_stack([self.coef_ - half, self.coef_ + half])

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Lines drawn from the posterior.

        Returns
        -------
        coef : array of shape (n, n_features)
        intercept : array of shape (n,)
        """
        check_is_fitted(self, "coef_")
        check_real("n", n, low=0, integer=True)
        rng = check_random_state(random_state)
        values, vectors = np.linalg.eigh(self.covariance_)
        z = rng.standard_normal((n, values.shape[0]))
        coef = self.coef_.astype(np.float64) + (z * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        level = self.intercept_ + float(self._center @ self.coef_.astype(np.float64))
        wobble = np.sqrt(self.noise_ / self._total) * rng.standard_normal(n) if self.fit_intercept else 0.0
        return coef, level + wobble - coef @ self._center


def _positive(name: str, value: Any, d: int) -> Array:
    """A number, one for each column, or a symmetric matrix, > 0."""
    given = check_numbers(name, value)
    if given.shape not in ((), (d,), (d, d)) or not np.isfinite(given).all():
        raise ValueError(
            f"{name} must be a finite number, {d} numbers, or a {d} × {d} matrix; got {value!r} of shape {given.shape}."
        )
    matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, (d,)))
    values = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    if not (values > 0).all() or not np.allclose(matrix, matrix.T):
        raise ValueError(f"{name} must be > 0 (a matrix symmetric and positive definite); got {value!r}.")
    return given


def _moments(X: Array, y: Array, weight: Array) -> Moments:
    return Moments.of(np.column_stack([X, y]).astype(np.float64, copy=False), weight)
