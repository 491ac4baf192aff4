"""Covariance of the estimates of an unpenalized fit: one rule for each family of losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special

from certifit._types import Array, Matrix, is_sparse
from certifit.evaluation.losses.base import Loss
from certifit.evaluation.losses.families import Laplace
from certifit.evaluation.losses.labels.margin import Logistic
from certifit.evaluation.losses.mean import MeanLoss, Shifted
from certifit.evaluation.losses.numbers.gamma import Gamma
from certifit.evaluation.losses.numbers.poisson import Poisson
from certifit.evaluation.losses.numbers.quantile import Absolute, Quantile
from certifit.evaluation.losses.numbers.squared import Squared
from certifit.optimization.closed_form.least_squares import ClosedForm, NormalInverse, normal_inverse
from certifit.representation.design.products import weighted_gram


@dataclass(frozen=True)
class Fit:
    """The data and scores of a fit, and what was asked of its dispersion; where a closed form and its deviance are known, the
    data may be absent.
    """

    X: Matrix
    y: Array
    weight: Array
    n: float
    """Sum of the weights."""
    rows: int
    """How many of them are not zero."""
    loss: Loss
    coef: Array
    intercept: float
    fit_intercept: bool
    pearson: bool
    solution: ClosedForm | None
    scores: Array | None = None

    @cached_property
    def f(self) -> Array:
        """The scores, when a rule asks for them."""
        if self.scores is not None:
            return self.scores
        return np.asarray(self.X @ self.coef, dtype=np.float64) + self.intercept

    @cached_property
    def deviance(self) -> float:
        """2 Σ weight·loss; a closed form knows it but for its gap."""
        if self.solution is not None and self.solution.gap <= 1e-12 * self.solution.objective:
            return 2.0 * self.n * self.solution.objective
        return 2.0 * float(self.weight @ self.loss.value(self.y, self.f))


@dataclass(frozen=True)
class Parts:
    """What a rule contributes to an `Inference`."""

    covariance: Array
    kind: str
    covariance_kind: str
    rank: int
    dof: float
    dispersion: float = float("nan")
    log_likelihood: float = float("nan")
    note: str = ""


def covariance_rule(loss: Loss) -> Callable[[Fit], Parts]:
    """The rule of a loss; a clear error where there is none."""
    if isinstance(loss, Squared):
        return _classical
    if isinstance(loss, (Poisson, Gamma)):
        return _expected
    if isinstance(loss, Logistic):
        return _logit
    if isinstance(loss, MeanLoss):
        return _mean
    if isinstance(loss, Shifted):
        return _shifted
    if isinstance(loss, (Absolute, Quantile)):
        return _kernel_sandwich
    if loss.smooth:
        return _sandwich
    raise ValueError(
        f"{type(loss).__name__} has no standard errors: the loss has neither a curvature nor a quantile "
        "whose density could replace it. Refit on bootstrap samples for intervals, or use loss='huber' or "
        "'quantile'."
    )


def _inverse(X: Matrix, weight: Array, fit_intercept: bool) -> tuple[Array, int]:
    """(Σ weight_i x̃_i x̃_iᵀ)⁻¹ with the intercept first, and the rank."""
    kept = weight > 0
    if not kept.all():
        X, weight = X[kept], weight[kept]
    total = float(weight.sum())
    if not total > 0:
        k = X.shape[1] + fit_intercept
        return np.full((k, k), np.nan), 0
    found = normal_inverse(X, weight / total, np.zeros(X.shape[1]), fit_intercept)
    return _with_intercept(found, fit_intercept) / total, found.rank + fit_intercept


def _with_intercept(found: NormalInverse, fit_intercept: bool) -> Array:
    """Inverse of the bordered normal equations [1 mᵀ; m M] from that of the centered ones."""
    if not fit_intercept:
        return found.matrix
    cross = -found.matrix @ found.mean
    whole = np.empty((cross.shape[0] + 1, cross.shape[0] + 1))
    whole[0, 0], whole[0, 1:], whole[1:, 0], whole[1:, 1:] = 1.0 - float(found.mean @ cross), cross, cross, found.matrix
    return whole


def _classical(fit: Fit) -> Parts:
    n = fit.n
    if fit.solution is not None and fit.solution.inverse is not None:
        inverse = _with_intercept(fit.solution.inverse, fit.fit_intercept) / n
        rank = fit.solution.inverse.rank + fit.fit_intercept
    else:
        inverse, rank = _inverse(fit.X, fit.weight, fit.fit_intercept)
    rss = fit.deviance
    sigma2 = rss / (n - rank) if n > rank else float("nan")
    with np.errstate(divide="ignore"):
        likelihood = -0.5 * n * (float(np.log(2.0 * np.pi * rss / n)) + 1.0)
    return Parts(sigma2 * inverse, "t", "classical", rank, n - rank, sigma2, likelihood)


def _expected(fit: Fit) -> Parts:
    y, weight, mean = fit.y, fit.weight, np.exp(fit.f)
    gamma = isinstance(fit.loss, Gamma)
    inverse, rank = _inverse(fit.X, weight if gamma else weight * mean, fit.fit_intercept)
    dof = fit.n - rank
    variance = mean * mean if gamma else mean
    pearson = float(weight @ ((y - mean) ** 2 / variance)) / dof if dof > 0 else float("nan")
    scale = pearson if gamma or fit.pearson else 1.0
    if gamma:
        shape = 1.0 / scale if scale > 0 else float("nan")
        each = shape * np.log(shape * y / mean) - shape * y / mean - special.gammaln(shape) - np.log(y)
        likelihood = float(weight @ each)
    elif (y == np.floor(y)).all():
        likelihood = float(weight @ (special.xlogy(y, mean) - mean - special.gammaln(y + 1.0)))
    else:  # rates have a quasi-likelihood only
        likelihood = float("nan")
    return Parts(scale * inverse, "z", "expected information", rank, dof, scale, likelihood)


def _mean(fit: Fit) -> Parts:
    """Any family with any map: the expected information g′²/V(μ), and φ as the family has it."""
    assert isinstance(fit.loss, MeanLoss)
    family, at = fit.loss.family, fit.loss.at(fit.f)
    inverse, rank = _inverse(fit.X, fit.weight * family.information(at), fit.fit_intercept)
    dof = fit.n - rank
    if isinstance(family, Laplace):  # b is the mean absolute residual, and 1/b² the information
        scale = (float(fit.weight @ np.abs(fit.y - at.mean)) / fit.n) ** 2
    elif family.dispersion is not None and not fit.pearson:
        scale = family.dispersion
    else:
        pearson = float(fit.weight @ ((fit.y - at.mean) ** 2 / family.variance(at.mean)))
        scale = pearson / dof if dof > 0 else float("nan")
    likelihood = float(fit.weight @ family.log_density(fit.y, at.mean, scale))
    return Parts(scale * inverse, "z", "expected information", rank, dof, scale, likelihood)


def _shifted(fit: Fit) -> Parts:
    """The rule of the loss itself, at the shifted scores."""
    assert isinstance(fit.loss, Shifted)
    y, f = fit.loss.of(fit.y, fit.f)
    if isinstance(fit.loss.loss, (Absolute, Quantile)):  # the spread of y is that about its known part
        y, f = y - (f - fit.f), fit.f
    return covariance_rule(fit.loss.loss)(replace(fit, y=y, scores=f, loss=fit.loss.loss, solution=None))


def _logit(fit: Fit) -> Parts:
    """Observed and expected information agree for the logit link."""
    inverse, rank = _inverse(fit.X, fit.weight * fit.loss.second_derivative(fit.y, fit.f), fit.fit_intercept)
    hard = bool(((fit.y == 0) | (fit.y == 1)).all())  # shares have a quasi-likelihood only
    likelihood = -float(fit.weight @ fit.loss.value(fit.y, fit.f)) if hard else float("nan")
    return Parts(inverse, "z", "expected information", rank, fit.n - rank, 1.0, likelihood)


def _sandwich(fit: Fit) -> Parts:
    slope, curvature = fit.loss.derivative(fit.y, fit.f), fit.loss.second_derivative(fit.y, fit.f)
    bread, rank = _inverse(fit.X, fit.weight * curvature, fit.fit_intercept)
    meat = _moment(fit.X, fit.weight * slope**2, fit.fit_intercept)
    dof = fit.n - rank
    factor = fit.n / dof if dof > 0 else float("nan")
    return Parts(factor * bread @ meat @ bread, "z", "sandwich", rank, dof)


def _kernel_sandwich(fit: Fit) -> Parts:
    q = fit.loss.quantile if isinstance(fit.loss, Quantile) else 0.5
    n, e = fit.n, fit.y - fit.f
    inverse, rank = _inverse(fit.X, fit.weight, fit.fit_intercept)
    height, note = _density_at_zero(fit.y, e, fit.weight, q), ""
    if not height > 0:
        height, note = float("nan"), "The density of the residuals at zero cannot be estimated."
    score = np.where(e > 0, q / height, (1.0 - q) / height)
    meat = _moment(fit.X, fit.weight * score**2, fit.fit_intercept)
    # Laplace noise, e^(−|e|/b)/(2b), and its asymmetric form q(1 − q)/b·e^(−ρ_q(e)/b); b̂ is the mean loss. The loss
    # |e| is twice ρ_½, so that b of the median is the scale of the Laplace distribution itself.
    scale = float(fit.weight @ fit.loss.value(fit.y, fit.f)) / n
    height_at_zero = q * (1.0 - q) if isinstance(fit.loss, Quantile) else 0.5
    with np.errstate(divide="ignore"):
        likelihood = n * (float(np.log(height_at_zero)) - float(np.log(scale)) - 1.0)
    return Parts(inverse @ meat @ inverse, "t", "kernel sandwich", rank, n - rank, scale**2, likelihood, note)


def _density_at_zero(y: Array, e: Array, weight: Array, q: float) -> float:
    """Density of the residuals at zero by an Epanechnikov kernel."""
    n = float(weight.sum())
    z = float(special.ndtri(q))
    normal = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    # Hall and Sheather 1988 for intervals of level 95 %, on the scale of probabilities
    share = (1.5 * normal**2 / (2.0 * z * z + 1.0) / n) ** (1 / 3) * special.ndtri(0.975) ** (2 / 3)
    share = min(float(share), 0.999 * q, 0.999 * (1.0 - q))
    spread = float(np.sqrt(weight @ (y - float(weight @ y) / n) ** 2 / n))
    low, high = _repeated_quantile(e, weight, np.array([0.25, 0.75]))
    width = min(spread, float(high - low) / 1.34) * float(special.ndtri(q + share) - special.ndtri(q - share))
    if not width > 0:
        return float("nan")
    return float(weight @ np.maximum(0.75 * (1.0 - (e / width) ** 2), 0.0)) / (n * width)


def _moment(X: Matrix, weight: Array, fit_intercept: bool) -> Array:
    """Σ weight_i x̃_i x̃_iᵀ with the intercept first."""
    moment = weighted_gram(X if is_sparse(X) else X.astype(np.float64, copy=False), weight)
    return moment if fit_intercept else moment[1:, 1:]


def _repeated_quantile(values: Array, weight: Array, levels: Array) -> Array:
    """Quantiles by linear interpolation of the sample in which each value occurs `weight` times."""
    order = np.argsort(values)
    values, ends = values[order], np.cumsum(weight[order])
    position = levels * max(ends[-1] - 1.0, 0.0)
    low = np.floor(position)
    last = values.shape[0] - 1
    left = np.minimum(np.searchsorted(ends, low, side="right"), last)
    right = np.minimum(np.searchsorted(ends, low + 1.0, side="right"), last)
    return np.asarray(values[left] + (position - low) * (values[right] - values[left]))


def remark(fit: Fit, parts: Parts) -> str:
    """What a reader of the table should know: parameters that the data do not identify, weights that hardly count."""
    notes, k = [parts.note] if parts.note else [], fit.coef.shape[0] + fit.fit_intercept
    if parts.rank < k:
        notes.append(
            f"Only {parts.rank} of {k} parameters are identified: estimates and errors belong to the "
            "solution of minimum norm; drop redundant columns to interpret them."
        )
    if not parts.dof > 0:
        notes.append("No residual degrees of freedom are left: errors cannot be estimated.")
    if fit.n < (1.0 - 1e-9) * fit.rows:
        notes.append(
            f"Weights count repetitions, and {fit.rows} rows count as {fit.n:.6g}: multiply weights that only compare rows by "
            f"{fit.rows / fit.n:.6g}."
        )
    return " ".join(notes)
