"""Standard errors, tests and intervals for unpenalized linear models.

With scores f_i = x_i·w + b, weights s_i that count repetitions and θ = (b, w):

- squared loss: Cov θ̂ = σ̂² (Σ s_i x̃_i x̃_iᵀ)⁻¹, t tests with Σs − rank degrees of freedom;
- Poisson and Gamma: Cov θ̂ = φ (Σ s_i v_i x̃_i x̃_iᵀ)⁻¹ with the expected curvature v (the mean, and one), z
  tests; φ is one for Poisson unless asked otherwise, and Pearson's χ²/dof for Gamma;
- logistic: the same with v = π(1 − π), which is also the observed curvature, and φ = 1;
- other smooth losses: the sandwich B⁻¹MB⁻¹ with B = Σ s ℓ″ x̃x̃ᵀ, M = Σ s ℓ′² x̃x̃ᵀ, times Σs/(Σs − k), z tests;
- absolute and quantile loss: Powell's sandwich, with the density of the residuals at zero by an Epanechnikov
  kernel and the bandwidth of Hall and Sheather; t tests.

A penalty biases the estimates by an amount that the data do not show, so penalized fits have no such table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, cast

import numpy as np
from scipy import special, stats

from certifit._types import Array, Matrix
from certifit.data.gate import check_choice, check_real
from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.numbers.squared import Squared
from certifit.models.linear.inference.hat import LinearInTarget
from certifit.models.linear.inference.rules import Fit, covariance_rule, remark
from certifit.names import record
from certifit.optimization.closed_form.least_squares import ClosedForm
from certifit.optimization.objective.dispatch import INFERENCE_LIMIT
from certifit.optimization.objective.problem import Problem, Solution

__all__ = ["Inference", "InferenceMixin", "Summary", "make_inference"]


FACTS = ("n", "dof", "r2", "adjusted_r2", "sigma", "dispersion", "deviance", "null_deviance", "log_likelihood", "aic")
"""What a summary says as it is."""


@record("Inference")
class Inference:
    """What a fit keeps for its tests and intervals: a matrix of the size of the coefficients, never the data.

    Parameters
    ----------
    loss : Loss
        Loss of the fit.
    estimate : array of shape (k,)
        Intercept (if any) and coefficients.
    covariance : array of shape (k, k)
        Estimated covariance of `estimate`.
    fit_intercept : bool
        Whether the first entry is an intercept.
    kind : {"t", "z"}
        Distribution of the tests.
    covariance_kind : str
        ``"classical"``, ``"expected information"``, ``"sandwich"`` or ``"kernel sandwich"``.
    n : float
        Sum of the weights: the number of observations, repetitions counted.
    rank : int
        Number of parameters that the data identify.
    dof : float
        Residual degrees of freedom, ``n − rank``.
    dispersion : float
        σ̂² for the squared loss, φ for Poisson and Gamma, NaN otherwise.
    deviance : float
        Twice the weighted sum of the losses (the residual sum of squares for the squared loss).
    null_deviance : float
        The same for the best constant; for a squared loss without intercept, for zero.
    log_likelihood : float
        Where the loss defines one, else NaN.
    note : str
        Warnings for the reader.
    """

    loss: Loss
    estimate: Array
    covariance: Array
    fit_intercept: bool
    kind: str
    covariance_kind: str
    n: float
    rank: int
    dof: float
    dispersion: float
    deviance: float
    null_deviance: float
    log_likelihood: float
    note: str

    @staticmethod
    def later(make: Callable[[], Inference]) -> Inference:
        """What `make` makes, when somebody asks: most fits are never asked."""
        waiting = object.__new__(Inference)
        vars(waiting)["_make"] = make
        return waiting

    def __getattr__(self, name: str) -> Any:
        make = vars(self).get("_make")
        if make is not None and not name.startswith("__"):
            vars(self).update(vars(make()))
            vars(self).pop("_make", None)
        if name not in vars(self):  # another thread may have been first
            raise AttributeError(f"{type(self).__name__} has no {name}.")
        return vars(self)[name]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    @property
    def std_error(self) -> Array:
        """Standard errors of `estimate`."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def sigma(self) -> float:
        """Square root of the dispersion."""
        return float(np.sqrt(self.dispersion))

    @property
    def r2(self) -> float:
        """Share of the (null) deviance that the model explains; R² for the squared loss."""
        return 1.0 - self.deviance / self.null_deviance if self.null_deviance > 0 else float("nan")

    @property
    def adjusted_r2(self) -> float:
        """R² corrected for the number of parameters; NaN for other losses."""
        if not isinstance(self.loss, Squared) or not self.dof > 0:
            return float("nan")
        return 1.0 - (1.0 - self.r2) * (self.n - self.fit_intercept) / self.dof

    @property
    def aic(self) -> float:
        """−2·log likelihood + 2·number of coefficients."""
        return -2.0 * self.log_likelihood + 2.0 * self.rank

    @property
    def f_test(self) -> tuple[float, float]:
        """F statistic and p-value of all coefficients but the intercept; NaN for other losses."""
        slopes = self.rank - self.fit_intercept
        if not isinstance(self.loss, Squared) or slopes <= 0 or not self.dof > 0:
            return float("nan"), float("nan")
        with np.errstate(divide="ignore", invalid="ignore"):
            f = float(np.divide((self.null_deviance - self.deviance) / slopes, self.dispersion))
        return f, float(stats.f.sf(f, slopes, self.dof))

    def quantile(self, level: float) -> float:
        """Half width of a two-sided interval, in standard errors."""
        tail = 0.5 * (1.0 + level)
        if self.kind == "z":
            return float(special.ndtri(tail))
        return float(stats.t.ppf(tail, self.dof)) if self.dof > 0 else float("nan")

    def summary(self, level: float = 0.95, names: list[str] | None = None) -> Summary:
        """The table of estimates."""
        level = float(check_real("level", level, low=0, high=1, open_low=True, open_high=True))
        slopes = self.estimate.shape[0] - self.fit_intercept
        labels = names if names is not None else [f"x{j}" for j in range(slopes)]
        error = self.std_error
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = self.estimate / error
        size = np.abs(statistic)
        p_value = 2.0 * (stats.t.sf(size, self.dof) if self.kind == "t" else special.ndtr(-size))
        half = self.quantile(level) * error
        f, f_p = self.f_test
        return Summary(
            names=(("intercept",) if self.fit_intercept else ()) + tuple(labels),
            coef=self.estimate,
            std_error=error,
            statistic=statistic,
            p_value=p_value,
            lower=self.estimate - half,
            upper=self.estimate + half,
            level=level,
            loss=self.loss.name or type(self.loss).__name__,
            f_statistic=f,
            f_p_value=f_p,
            **{name: getattr(self, name) for name in ("kind", "covariance_kind", "note", *FACTS)},
        )


@record("InferenceSummary")
class Summary:
    """Estimates with standard errors, tests and intervals; `str` is an aligned table, `to_dict` plain data.

    Examples
    --------
    >>> from certifit import LinearRegression
    >>> LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 2.9, 5.1, 7.0]).summary().std_error.round(4)
    array([0.0794, 0.0424])
    """

    names: tuple[str, ...]
    coef: Array
    std_error: Array
    statistic: Array
    p_value: Array
    lower: Array
    upper: Array
    level: float
    kind: str
    loss: str
    covariance_kind: str
    n: float
    dof: float
    r2: float
    adjusted_r2: float
    sigma: float
    dispersion: float
    f_statistic: float
    f_p_value: float
    deviance: float
    null_deviance: float
    log_likelihood: float
    aic: float
    note: str

    def to_dict(self) -> dict[str, Any]:
        """The fields as lists and numbers, for JSON and data frames."""
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}

    def __str__(self) -> str:
        percent = f"{100 * self.level:g}%"
        header = ["", "coef", "std error", self.kind, f"P>|{self.kind}|", f"{percent} low", f"{percent} high"]
        rows = [header]
        columns = (
            self.names,
            self.coef,
            self.std_error,
            self.statistic,
            self.p_value,
            self.lower,
            self.upper,
        )
        for name, coef, error, statistic, p, low, high in zip(*columns, strict=True):
            cells = [f"{v:.6g}" for v in (coef, error)] + [f"{statistic:.3f}", _p(p)]
            rows.append([name, *cells, f"{low:.6g}", f"{high:.6g}"])
        widths = [max(len(row[j]) for row in rows) for j in range(len(header))]
        lines = [
            "  ".join(c.ljust(w) if j == 0 else c.rjust(w) for j, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        ]
        rule = "-" * len(lines[0])
        top = f"loss: {self.loss}, n = {self.n:g}, residual dof = {self.dof:g}, errors: {self.covariance_kind}"
        return "\n".join([top, rule, lines[0], rule, *lines[1:], rule, *self._footer()])

    def _footer(self) -> list[str]:
        facts = [
            ("R² = {:.6g}" if self.loss == "squared" else "deviance explained = {:.6g}", self.r2),
            ("adjusted R² = {:.6g}", self.adjusted_r2),
            ("sigma = {:.6g}" if self.loss == "squared" else "", self.sigma),
            ("" if self.loss == "squared" else "dispersion = {:.6g}", self.dispersion),
            ("" if self.loss == "squared" else "deviance = {:.6g}", self.deviance),
            ("AIC = {:.6g}", self.aic),
        ]
        line = ", ".join(text.format(value) for text, value in facts if text and np.isfinite(value))
        lines = [line] if line else []
        if np.isfinite(self.f_statistic):
            lines.append(f"F = {self.f_statistic:.6g}, P>F: {_p(self.f_p_value)}")
        return [*lines, self.note] if self.note else lines


def make_inference(
    X: Matrix,
    y: Array,
    weight: Array,
    loss: Loss,
    coef: Array,
    intercept: float,
    fit_intercept: bool,
    *,
    dispersion: str | None = None,
    solution: ClosedForm | None = None,
    null_risk: float | None = None,
) -> Inference:
    """Covariance and dispersion of an unpenalized fit, to be kept when the data are gone.

    Parameters
    ----------
    X, y, weight : arrays
        Training data; weights count repetitions.
    loss : Loss
        Loss that was minimized.
    coef, intercept : array of shape (d,) and float
        The fit.
    fit_intercept : bool
        Whether the intercept was fitted.
    dispersion : {None, "pearson"}, default=None
        ``"pearson"`` estimates the dispersion of a Poisson fit (overdispersion) instead of taking it as one.
    solution : ClosedForm or None
        Result of ``solve_least_squares(…, keep_inverse=True)``; saves the work of a second factorization.
    null_risk : float or None
        The mean loss of the best constant score, where it is known.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit.losses import Squared
    >>> from certifit.models.linear.inference.inference import make_inference
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1.0, 2.9, 5.1, 7.0])
    >>> round(make_inference(X, y, np.ones(4), Squared(), np.array([2.02]), 0.97, True).r2, 6)
    0.999119
    """
    check_choice("dispersion", dispersion, (None, "pearson"))
    coef = np.asarray(coef, dtype=np.float64)
    y, weight = np.asarray(y, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    n, rows, pearson = float(weight.sum()), int(np.count_nonzero(weight)), dispersion == "pearson"
    if null_risk is None:
        squares = isinstance(loss, Squared) and not fit_intercept
        constant = 0.0 if squares else loss.optimal_constant(y, weight)
        with np.errstate(over="ignore", invalid="ignore"):
            null_risk = loss.constant_risks(y, weight / n, constant)[0]
    fit = Fit(X, y, weight, n, rows, loss, coef, intercept, fit_intercept, pearson, solution)
    if isinstance(loss, Squared) and solution is not None and solution.inverse is not None:
        # What is to be computed asks of the data for the deviance alone.
        none = np.empty(0)
        known = replace(fit, X=none, y=none, weight=none)
        vars(known)["deviance"] = fit.deviance
        return Inference.later(lambda: _inferred(known, null_risk))
    return _inferred(fit, null_risk)


def _inferred(fit: Fit, null_risk: float) -> Inference:
    with np.errstate(all="ignore"):
        parts = covariance_rule(fit.loss)(fit)
        return Inference(
            loss=fit.loss,
            estimate=np.append(fit.intercept, fit.coef) if fit.fit_intercept else fit.coef,
            fit_intercept=fit.fit_intercept,
            n=fit.n,
            deviance=fit.deviance,
            null_deviance=2.0 * fit.n * null_risk,
            **vars(replace(parts, note=remark(fit, parts))),
        )


def _p(value: float) -> str:
    return "<0.0001" if value < 1e-4 else f"{value:.4f}"


class InferenceMixin(LinearInTarget):
    """`summary`, intervals and influence for estimators with `coef_`, `intercept_`, `fit_intercept`.

    `fit` leaves `_inference`, an `Inference`, or None for a penalized model.
    """

    _inference: Inference | None

    def _infer(self, problem: Problem, solution: Solution, weight: Array) -> None:
        """Called by `fit`: keep the covariance of an unpenalized, unconstrained fit."""
        l2, d = problem.regularizer.smooth(), problem.shape[1]
        self._inference = None
        several = solution.coef.ndim == 2
        if l2 is None or l2.any() or d > INFERENCE_LIMIT or several or not np.isfinite(solution.coef).all():
            return
        # Without intercept the constant of the problem is zero, which is that of the squared loss alone.
        known = problem.fit_intercept or isinstance(problem.loss, Squared)
        self._inference = make_inference(
            problem.X, problem.y, weight, problem.loss, solution.coef, solution.intercept, problem.fit_intercept,
            solution=solution.extra.get("closed_form"),
            null_risk=problem.constant_risk if known else None,
        )  # fmt: skip

    def summary(self, level: float = 0.95) -> Summary:
        """Estimates with standard errors, tests and confidence intervals.

        Parameters
        ----------
        level : float, default=0.95
            Level of the confidence intervals.
        """
        names = getattr(self, "feature_names_in_", None)
        found = self._known("summary")
        return found.summary(level, None if names is None else [str(name) for name in names])

    def prediction_interval(self, X: Any, level: float = 0.95, kind: str = "observation") -> Array:
        """Intervals for new rows.

        Parameters
        ----------
        X : array of shape (n, d)
            New rows.
        level : float, default=0.95
            Probability that the interval covers.
        kind : {"observation", "mean"}
            Interval for a new observation (squared loss only), or for the prediction itself.

        Returns
        -------
        array of shape (n, 2)
            Lower and upper ends.
        """
        check_choice("kind", kind, ("observation", "mean"))
        level = float(check_real("level", level, low=0, high=1, open_low=True, open_high=True))
        found = self._known("prediction_interval")
        squared = isinstance(found.loss, Squared)
        if kind == "observation" and not squared:
            raise ValueError(
                "An interval for a new observation needs the squared loss (normal noise), this model has "
                f"{type(found.loss).__name__}. Use kind='mean' for the interval of the prediction itself, or "
                "a conformal interval, which needs no distribution."
            )
        rows = cast(Any, self)._rows(X)
        C = found.covariance
        if found.fit_intercept:
            slopes = np.asarray(rows @ C[1:, 1:])
            variance = C[0, 0] + 2.0 * np.asarray(rows @ C[1:, 0]) + _row_products(rows, slopes)
            score = found.estimate[0] + np.asarray(rows @ found.estimate[1:])
        else:
            variance = _row_products(rows, np.asarray(rows @ C))
            score = np.asarray(rows @ found.estimate)
        if kind == "observation":
            variance = variance + found.dispersion
        half = found.quantile(level) * np.sqrt(np.maximum(variance, 0.0))
        ends = np.column_stack([score - half, score + half])
        return ends if squared else found.loss.predict(ends)

    def studentized_residuals(self, X: Any, y: Any, sample_weight: Any = None, *, kind: str = "external") -> Array:
        """Residuals of the training data divided by their standard deviations.

        Parameters
        ----------
        X, y, sample_weight : arrays
            The training data.
        kind : {"external", "internal"}
            ``"external"`` estimates the noise without the row itself, so that an outlier cannot hide; it
            follows a t distribution with one degree of freedom less.
        """
        check_choice("kind", kind, ("external", "internal"))
        residual, spare, found = self._residuals(X, y, sample_weight)
        variance = np.full(residual.shape, found.dispersion)
        if kind == "external":
            rest = found.dof - 1.0
            if not rest > 0:
                raise ValueError(f"External residuals need two residual degrees of freedom; there are {found.dof:g}.")
            with np.errstate(divide="ignore", invalid="ignore"):
                variance = (found.dispersion * found.dof - residual**2 / spare) / rest
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(residual / np.sqrt(np.maximum(variance, 0.0) * spare))

    def cooks_distance(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """How far all fitted values move when one copy of a row is left out, relative to their errors."""
        residual, spare, found = self._residuals(X, y, sample_weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(residual**2 * (1.0 - spare) / (spare**2 * found.dispersion * found.rank))

    def _residuals(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Inference]:
        found = self._known("studentized_residuals")
        rows, _ = self._training(X, sample_weight)
        spare = 1.0 - self.leverage(X, sample_weight)
        target = np.asarray(y, dtype=np.float64).ravel()
        if target.shape[0] != rows.shape[0]:
            raise ValueError(f"X has {rows.shape[0]} rows, y has {target.shape[0]}: give the training data.")
        score = np.asarray(rows @ found.estimate[found.fit_intercept :])
        if found.fit_intercept:
            score = score + found.estimate[0]
        return target - score, spare, found

    def _known(self, method: str) -> Inference:
        if not hasattr(self, "coef_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet: call fit before {method}.")
        found = getattr(self, "_inference", None)
        if found is None:
            raise ValueError(
                f"{method} is not available for this {type(self).__name__}: a penalty or constraint biases "
                "the estimates by an unknown amount, so standard errors and tests would be wrong (and beyond "
                "2000 features, or with several targets, they are not kept). Fit without penalty "
                "(LinearRegression, or alpha=0), refit on the selected features with new data, or use the bootstrap."
            )
        return cast(Inference, found)


def _row_products(rows: Matrix, other: Array) -> Array:
    """Σ_j rows_ij · other_ij"""
    if isinstance(rows, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", rows, other))
    return np.asarray(rows.multiply(other).sum(axis=1)).ravel()
