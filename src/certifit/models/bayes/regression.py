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
import scipy.linalg
from scipy import stats
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_real, check_x, check_xy, like_input
from certifit.parameters import FIT_INTERCEPT, Any_, Declared, Flag, Integer, Parameter, Real
from certifit.representation.design.moments import Moments

__all__ = ["BayesianLinearRegression"]

QUIET = 1e-12  # least variance of the noise beside that of y: an exact fit leaves none, and precisions without end
LARGEST = 1e12  # precision beside the data's own from which a column counts as switched off


class BayesianLinearRegression(Declared, RegressorMixin, CertifiedEstimator):
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
        Any_(
            "float > 0, array of shape (n_features,) or (n_features, n_features), or None",
            wrong=("a", 0.0, -1.0, np.nan),
        ),
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

    weights_are_counts = True  # the more rows, the surer the posterior

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Compute the posterior.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Features.
        """
        started = time.perf_counter()
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=False)
        self._settle(_moments(X, y, weight), X.dtype, started)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesianLinearRegression:
        """Update the posterior with more rows: the same as from all rows at once.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        """
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
        self._moments = moments
        total, mean, scatter = float(moments.weight[0]), moments.mean[0], moments.scatter[0]
        if not self.fit_intercept:  # about zero instead of about the mean
            scatter = scatter + total * np.outer(mean, mean)
        d = mean.shape[0] - 1
        center = mean if self.fit_intercept else np.zeros(d + 1)
        # Columns in units of their own: the precision of the prior of a column of size u is α u².
        unit = np.sqrt(np.where(np.diag(scatter) > 0, np.diag(scatter) / total, 1.0))
        scaled = scatter / np.outer(unit, unit)
        data = _Data(
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
        self._spread = solution.covariance  # of the coefficients in units of the columns, noise included
        self.covariance_ = solution.covariance / np.outer(unit[:d], unit[:d]) * unit[d] ** 2
        self.alpha_ = solution.alpha
        self.noise_ = solution.noise * unit[d] ** 2
        self._center, self._total = center[:d], total
        self.effective_parameters_ = solution.effective
        self.log_evidence_ = solution.log_evidence - (total - float(self.fit_intercept)) * float(np.log(unit[d]))
        if self.fit_intercept:
            self.log_evidence_ -= 0.5 * float(np.log(total))
        given = self.prior_precision is not None and self.noise is not None
        note = (
            "The posterior, in closed form."
            if given
            else (
                f"The posterior given alpha and noise, in closed form; these maximize the evidence to a relative change of "
                f"{solution.change:.1e}, a stationary point of it."
            )
        )
        objective = float(0.5 * solution.residual / total) * float(unit[d]) ** 2
        self._certify(
            Certificate(
                "closed form",
                objective=objective,
                bound=objective,
                scale=1.0,
                tol=0.0,
                iterations=solution.iterations,
                seconds=time.perf_counter() - started,
                note=note,
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
        given = None
        if self.prior_precision is not None:
            try:
                given = np.asarray(self.prior_precision, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"prior_precision must be numbers; got {self.prior_precision!r}.") from error
            if given.shape not in ((), (d,), (d, d)) or not np.isfinite(given).all():
                raise ValueError(
                    f"prior_precision must be a finite number, {d} numbers, or a {d} × {d} matrix; got "
                    f"{self.prior_precision!r} of shape {given.shape}."
                )
            matrix = given if given.ndim == 2 else np.diag(np.broadcast_to(given, (d,)))
            values = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
            if not (values > 0).all() or not np.allclose(matrix, matrix.T):
                raise ValueError(
                    f"prior_precision must be > 0 (a matrix symmetric and positive definite); got {self.prior_precision!r}."
                )
        return _Prior(np.broadcast_to(mean, (d,)) * data.unit / data.target, given, noise, bool(self.relevance))

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of the predictive distribution, and its standard deviation on request.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
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
        X : array or data frame of shape (n_samples, n_features)
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
        rng = check_random_state(random_state)
        values, vectors = np.linalg.eigh(self.covariance_)
        z = rng.standard_normal((n, values.shape[0]))
        coef = self.coef_.astype(np.float64) + (z * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        level = self.intercept_ + float(self._center @ self.coef_.astype(np.float64))
        wobble = np.sqrt(self.noise_ / self._total) * rng.standard_normal(n) if self.fit_intercept else 0.0
        return coef, level + wobble - coef @ self._center


class _Data:
    """What the posterior needs: Gram, products with y, its energy, degrees of freedom; units of the columns and of y."""

    def __init__(self, gram: Array, cross: Array, energy: float, freedom: float, unit: Array, target: float) -> None:
        self.gram, self.cross, self.energy, self.freedom = gram, cross, energy, max(freedom, 1.0)
        self.unit, self.target = unit, target


class _Posterior:
    def __init__(self, **values: Any) -> None:
        self.mean: Array
        self.covariance: Array
        self.alpha: Any
        self.noise: float
        self.effective: float
        self.log_evidence: float
        self.residual: float
        self.iterations: int
        self.change: float
        self.__dict__.update(values)


class _Prior:
    """A normal prior in units of the columns, some of its precisions to be found."""

    def __init__(self, mean: Array, precision: Array | None, noise: float | None, relevance: bool) -> None:
        self.mean, self.precision, self.noise, self.relevance = mean, precision, noise, relevance

    def solve(self, data: _Data, tol: float, max_iter: int) -> _Posterior:
        d = data.cross.shape[0]
        factor = data.target / data.unit  # coefficient in the user's units = scaled one · factor
        noise = self.noise if self.noise is not None else max(data.energy / data.freedom, QUIET)
        if self.precision is not None:
            matrix = self.precision if self.precision.ndim == 2 else np.diag(np.broadcast_to(self.precision, (d,)))
            fixed = matrix * np.outer(factor, factor)
            return self._fixed(data, fixed, noise, tol, max_iter)
        if self.relevance:
            return self._relevance(data, noise, factor, tol, max_iter)
        return self._shared(data, noise, factor, tol, max_iter)

    def _fixed(self, data: _Data, prior: Array, noise: float, tol: float, max_iter: int) -> _Posterior:
        change, iteration = 0.0, 0
        for _ in range(max_iter):
            iteration += 1
            mean, covariance, log_det = _normal(prior + data.gram / noise, prior @ self.mean + data.cross / noise)
            residual = _residual(data, mean)
            effective = data.cross.shape[0] - float((prior * covariance).sum())
            if self.noise is not None:
                break
            new = max(residual / max(data.freedom - effective, 1e-9), QUIET)
            change, noise = abs(new - noise) / noise, new
            if change <= tol:
                break
        _, prior_det = np.linalg.slogdet(prior)
        off = mean - self.mean
        alpha = self.precision if self.precision is None or self.precision.ndim else float(self.precision)
        evidence = _evidence(data, float(prior_det), noise, residual, float(off @ prior @ off), log_det)
        return _Posterior(
            mean=mean, covariance=covariance, alpha=alpha,
            noise=noise, effective=effective, log_evidence=evidence, residual=residual, iterations=iteration, change=change,
        )  # fmt: skip

    def _shared(self, data: _Data, noise: float, factor: Array, tol: float, max_iter: int) -> _Posterior:
        """One alpha in the user's units: with C = diag(factor) the problem in u = w/factor has the prior α·I."""
        gram, cross = data.gram * np.outer(1 / factor, 1 / factor), data.cross / factor
        unit = float(np.trace(gram)) / max(gram.shape[0], 1) or 1.0
        gram, cross = gram / unit, cross / np.sqrt(unit)
        values, vectors = np.linalg.eigh(gram)
        # What rounding left of directions without rows would count as data when there is hardly any noise.
        seen = values > 4 * values.shape[0] * np.finfo(np.float64).eps * values.max(initial=0.0)
        values = np.where(seen, values, 0.0)
        start = self.mean / factor * np.sqrt(unit)
        b, m0 = np.where(seen, vectors.T @ cross, 0.0), vectors.T @ start
        alpha, change, iteration = 1.0, np.inf, 0
        for _ in range(max_iter):
            iteration += 1
            precision = alpha + values / noise
            m = (alpha * m0 + b / noise) / precision
            effective = float((values / noise / precision).sum())
            residual = max(data.energy - 2 * float(m @ b) + float(values @ m**2), 0.0)
            if change <= tol:
                break
            off = float((m - m0) @ (m - m0))
            new_alpha = min(max(effective / max(off, 1e-300), 1e-12), 1e300)
            new_noise = noise if self.noise is not None else max(residual / max(data.freedom - effective, 1e-9), QUIET)
            change = max(abs(np.log(new_alpha / alpha)), abs(np.log(new_noise / noise)))
            alpha, noise = new_alpha, new_noise
        covariance = (vectors / precision) @ vectors.T
        back = 1.0 / (factor * np.sqrt(unit))
        off = float((m - m0) @ (m - m0))
        log_det = float(np.log(precision).sum())
        evidence = _evidence(data, m.shape[0] * float(np.log(alpha)), noise, residual, alpha * off, log_det)
        # u = back-scaled: w(scaled) = u / (factor·√unit)
        return _Posterior(
            mean=(vectors @ m) * back, covariance=covariance * np.outer(back, back), alpha=alpha * unit, noise=noise,
            effective=effective, log_evidence=evidence, residual=residual, iterations=iteration, change=change,
        )  # fmt: skip

    def _relevance(self, data: _Data, noise: float, factor: Array, tol: float, max_iter: int) -> _Posterior:
        """One alpha for each column, in units of the columns; those that run to infinity switch their column off."""
        d = data.cross.shape[0]
        alpha = np.full(d, 1.0)
        on = np.arange(d)
        change, iteration = np.inf, 0
        mean, covariance = np.zeros(d), np.zeros((d, d))
        ceiling = LARGEST
        for _ in range(max_iter):
            iteration += 1
            part = np.ix_(on, on)
            m, S, log_det = _normal(
                np.diag(alpha[on]) + data.gram[part] / noise, alpha[on] * self.mean[on] + data.cross[on] / noise
            )
            gamma = 1.0 - alpha[on] * np.diag(S)
            full = self.mean.copy()
            full[on] = m
            residual = _residual(data, full)
            effective = float(gamma.sum())
            if change <= tol:
                break
            new = np.clip(gamma, 1e-300, None) / np.maximum((m - self.mean[on]) ** 2, 1e-300)
            new_noise = noise if self.noise is not None else max(residual / max(data.freedom - effective, 1e-9), QUIET)
            kept = new < ceiling
            moved = (
                np.abs(np.log(new[kept] / alpha[on][kept])) * gamma[kept]
            )  # what the data say nothing about may drift
            change = max(
                float(moved.max(initial=0.0)), abs(float(np.log(new_noise / noise))), 0.0 if kept.all() else np.inf
            )
            alpha[on] = new
            noise, on = new_noise, on[kept]
        mean = full
        covariance[np.ix_(on, on)] = (
            S
            if S.shape[0] == on.shape[0]
            else _normal(np.diag(alpha[on]) + data.gram[np.ix_(on, on)] / noise, data.cross[on])[1]
        )
        off = mean[on] - self.mean[on]
        evidence = _evidence(data, float(np.log(alpha[on]).sum()), noise, residual, float(alpha[on] @ off**2), log_det)
        shown = np.full(d, np.inf)
        shown[on] = alpha[on] / factor[on] ** 2
        return _Posterior(
            mean=mean, covariance=covariance, alpha=shown, noise=noise, effective=effective, log_evidence=evidence,
            residual=residual, iterations=iteration, change=change,
        )  # fmt: skip


def _normal(precision: Array, right: Array) -> tuple[Array, Array, float]:
    """Mean, covariance and ln det of the precision of a normal distribution."""
    if not right.shape[0]:
        return right, precision, 0.0
    factor = scipy.linalg.cho_factor(precision, lower=True, check_finite=False)
    covariance = scipy.linalg.cho_solve(factor, np.eye(right.shape[0]), check_finite=False)
    return covariance @ right, 0.5 * (covariance + covariance.T), 2.0 * float(np.log(np.diag(factor[0])).sum())


def _residual(data: _Data, mean: Array) -> float:
    return max(data.energy - 2.0 * float(mean @ data.cross) + float(mean @ data.gram @ mean), 0.0)


def _evidence(data: _Data, prior_det: float, noise: float, residual: float, off: float, log_det: float) -> float:
    return 0.5 * (prior_det - data.freedom * float(np.log(2 * np.pi * noise)) - residual / noise - off - log_det)


def _moments(X: Array, y: Array, weight: Array) -> Moments:
    return Moments.of(np.column_stack([X, y]).astype(np.float64, copy=False), weight)
