"""The posterior of linear coefficients under a normal prior, and the precisions of greatest evidence.

    w ~ N(m₀, diag α⁻¹)      y | w ~ N(Xw, σ²I)      p(y | α, σ²) = ∫ p(y | w) p(w) dw

Everything is computed from XᵀX, Xᵀy and yᵀy, whatever the number of rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from certifit._types import Array

__all__ = ["Data", "Posterior", "Prior"]

QUIET = 1e-12  # least variance of the noise beside that of y: an exact fit leaves none, and precisions without end
COARSE = 1e-2  # relative change of the precisions at which columns that are off are asked again
TOGETHER = 20  # times that all of them may come back at once
WITHIN = (1e-280, 1e280)  # what a prior may be in units of the columns and of y
LARGEST = 1e12  # precision beside the data's own from which a column counts as switched off


class Data:
    """What the posterior needs: Gram, products with y, its energy, degrees of freedom; units of the columns and of y."""

    def __init__(self, gram: Array, cross: Array, energy: float, freedom: float, unit: Array, target: float) -> None:
        self.gram, self.cross, self.energy, self.freedom = gram, cross, energy, max(freedom, 1.0)
        self.unit, self.target = unit, target


class Posterior:
    """Mean and covariance of the coefficients in units of the columns, and the precisions they belong to."""

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


class Prior:
    """A normal prior in units of the columns, some of its precisions to be found."""

    def __init__(self, mean: Array, precision: Array | None, noise: float | None, relevance: bool) -> None:
        self.mean, self.precision, self.noise, self.relevance = mean, precision, noise, relevance

    def solve(self, data: Data, tol: float, max_iter: int) -> Posterior:
        d = data.cross.shape[0]
        factor = data.target / data.unit  # coefficient in the user's units = scaled one · factor
        noise = self.noise if self.noise is not None else max(data.energy / data.freedom, QUIET)
        _check_within("noise", np.array([noise]))
        _check_within("prior_mean", self.mean[self.mean != 0] ** 2)
        if self.precision is not None:
            matrix = self.precision if self.precision.ndim == 2 else np.diag(np.broadcast_to(self.precision, (d,)))
            with np.errstate(over="ignore"):
                fixed = matrix * factor * factor[:, None]
            _check_within("prior_precision", np.diag(fixed))
            return self._fixed(data, fixed, noise, tol, max_iter)
        if self.relevance:
            return self._relevance(data, noise, factor, tol, max_iter)
        return self._shared(data, noise, tol, max_iter)

    def _fixed(self, data: Data, prior: Array, noise: float, tol: float, max_iter: int) -> Posterior:
        change, iteration = 0.0, 0
        for _ in range(max_iter):
            iteration += 1
            mean, covariance, log_det = _normal(prior, data.gram / noise, data.cross / noise, prior @ self.mean)
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
        return Posterior(
            mean=mean, covariance=covariance, alpha=alpha,
            noise=noise, effective=effective, log_evidence=evidence, residual=residual, iterations=iteration, change=change,
        )  # fmt: skip

    def _shared(self, data: Data, noise: float, tol: float, max_iter: int) -> Posterior:
        """One alpha in the user's units: in u = w/back, each column in the unit of the largest, the prior is α·I."""
        largest = float(data.unit.max(initial=0.0)) or 1.0
        back = data.unit / largest
        unit = float(np.diag(data.gram) @ back**2) / max(back.shape[0], 1) or 1.0
        back = back / np.sqrt(unit)
        gram, cross = data.gram * back * back[:, None], data.cross * back
        values, vectors = np.linalg.eigh(gram)
        values, seen = _above_rounding(values)
        start = self.mean / back
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
        off = float((m - m0) @ (m - m0))
        log_det = float(np.log(precision).sum())
        evidence = _evidence(data, m.shape[0] * float(np.log(alpha)), noise, residual, alpha * off, log_det)
        return Posterior(
            mean=(vectors @ m) * back, covariance=covariance * back * back[:, None],
            alpha=alpha * unit * (largest / data.target) * (largest / data.target), noise=noise,
            effective=effective, log_evidence=evidence, residual=residual, iterations=iteration, change=change,
        )  # fmt: skip

    def _relevance(self, data: Data, noise: float, factor: Array, tol: float, max_iter: int) -> Posterior:
        """One α for each column, in units of the columns; those that run to infinity switch their column off.

        Given the others, the evidence as a function of one α has its maximum at s²/(q² − s), or at infinity where q² ≤ s: s and
        q say how well and how much the data want the column beside the others. All are set at once, and steps are halved
        where the evidence falls. Tipping and Faul (2003), Fast marginal likelihood maximisation for sparse Bayesian models.
        """
        cross = data.cross - data.gram @ self.mean  # of what the prior mean leaves
        d = cross.shape[0]
        alpha, on, rate = np.ones(d), np.arange(d), 1.0
        change, before, iteration, returns, near = np.inf, -np.inf, 0, 0, max(tol, COARSE)
        for _ in range(max_iter):
            iteration += 1
            gram = data.gram[np.ix_(on, on)]
            m, S, log_det = _normal(np.diag(alpha[on]), gram / noise, cross[on] / noise)
            full = self.mean.copy()
            full[on] += m
            residual = _residual(data, full)
            effective = float((1.0 - alpha[on] * np.diag(S)).sum())
            evidence = _evidence(
                data, float(np.log(alpha[on]).sum()), noise, residual, float(alpha[on] @ m**2), log_det
            )
            if change <= near:  # once when the precisions have nearly settled, and again when they have
                near = tol
                columns, precisions = self._wanted(data, cross, on, m, S, noise)
                if columns.size and returns < d:
                    if returns >= TOGETHER:  # columns that replace each other come back one by one
                        columns, precisions = columns[:1], precisions[:1]
                    returns += 1
                    alpha[columns] = precisions
                    on = np.sort(np.append(on, columns))
                    change, before, near = np.inf, -np.inf, max(tol, COARSE)
                    continue
                if change <= tol:
                    break
            if evidence < before - 1e-10 * abs(before):
                rate = max(0.5 * rate, 0.05)
            spread = np.diag(S)
            wanted, size = m / spread, np.maximum(1.0 / spread - alpha[on], 0.0)
            excess = wanted**2 - size
            kept = (excess > 0.0) & (size**2 < LARGEST * excess)
            new = alpha[on].copy()
            new[kept] *= (np.maximum(size[kept] ** 2, 1e-300) / excess[kept] / alpha[on][kept]) ** rate
            new[kept] = np.maximum(new[kept], WITHIN[0])
            new_noise = noise if self.noise is not None else max(residual / max(data.freedom - effective, 1e-9), QUIET)
            moved = np.abs(np.log(new[kept] / alpha[on][kept])) * (1.0 - alpha[on] * spread)[kept]
            change = max(float(moved.max(initial=0.0)), abs(float(np.log(new_noise / noise))))
            change = change / rate if kept.all() else np.inf  # what the data say nothing about may drift
            alpha[on] = new
            noise, on, before = new_noise, on[kept], evidence
        else:  # the last step moved on from m and S
            m, S, log_det = _normal(np.diag(alpha[on]), data.gram[np.ix_(on, on)] / noise, cross[on] / noise)
            full = self.mean.copy()
            full[on] += m
            residual = _residual(data, full)
            evidence = _evidence(
                data, float(np.log(alpha[on]).sum()), noise, residual, float(alpha[on] @ m**2), log_det
            )
        covariance, shown = np.zeros((d, d)), np.full(d, np.inf)
        covariance[np.ix_(on, on)] = S
        shown[on] = alpha[on] / factor[on] / factor[on]
        return Posterior(
            mean=full, covariance=covariance, alpha=shown, noise=noise, effective=effective, log_evidence=evidence,
            residual=residual, iterations=iteration, change=change,
        )  # fmt: skip

    @staticmethod
    def _wanted(data: Data, cross: Array, on: Array, m: Array, S: Array, noise: float) -> tuple[Array, Array]:
        """Columns that are off and would each raise the evidence, the one that would most first, and their α."""
        off = np.setdiff1d(np.arange(cross.shape[0]), on)
        beside, own = data.gram[np.ix_(off, on)] / noise, np.diag(data.gram)[off] / noise
        size = own - np.einsum("ij,ij->i", beside @ S, beside)
        excess = (cross[off] / noise - beside @ m) ** 2 - size
        able = (size > 1e-12 * own) & (excess > 1e-6 * size) & (size**2 < LARGEST * excess)
        off, size, excess = off[able], size[able], excess[able]
        first = np.argsort(-(excess / size), kind="stable")  # the gain ½[e/s − ln(1 + e/s)] grows with it
        return off[first], np.maximum(size**2 / excess, WITHIN[0])[first]


def _check_within(name: str, values: Array) -> None:
    """Refuse a prior that leaves the numbers where it is measured in the units of the columns and of y."""
    if not ((values >= WITHIN[0]) & (values <= WITHIN[1])).all():
        raise ValueError(
            f"{name} is beyond double precision in the units of X and y: scale X or y, or give another one."
        )


def _normal(prior: Array, gram: Array, cross: Array, start: Array | None = None) -> tuple[Array, Array, float]:
    """Mean, covariance and ln det of the precision, prior + gram, of a normal distribution.

    Its mean solves (prior + gram)·m = cross + start: what the data want, and what the prior wants.
    """
    d = cross.shape[0]
    if not d:
        return cross, prior, 0.0
    precision = prior + gram
    factor, failed = lapack.dpotrf(precision, lower=1)
    half_the_digits = np.sqrt(np.finfo(np.float64).eps)  # lost in what a column has of its own beside the others
    if failed or (np.diag(factor) ** 2 <= half_the_digits * np.diag(precision)).any():
        return _beside_prior(prior, gram, cross, start)
    half, _ = lapack.dpotri(factor, lower=1)  # a third of the work of solving for every column of the identity
    covariance = np.tril(half) + np.tril(half, -1).T
    right = cross if start is None else cross + start
    return covariance @ right, covariance, 2.0 * float(np.log(np.diag(factor)).sum())


def _beside_prior(prior: Array, gram: Array, cross: Array, start: Array | None) -> tuple[Array, Array, float]:
    """The same where the data say so much of some directions that the prior of the others is lost in rounding.

    With prior = LLᵀ the precision is L(I + L⁻¹·gram·L⁻ᵀ)Lᵀ. In the eigenvectors of the matrix inside, a direction without rows
    keeps its prior.
    """
    root = np.linalg.cholesky(prior)
    inner = solve_triangular(root, solve_triangular(root, gram, lower=True).T, lower=True)
    values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    values, seen = _above_rounding(values)
    basis = solve_triangular(root, vectors, lower=True, trans="T")
    right = np.where(seen, basis.T @ cross, 0.0)
    if start is not None:
        right = right + basis.T @ start
    covariance = (basis / (1.0 + values)) @ basis.T
    log_det = 2.0 * float(np.log(np.diag(root)).sum()) + float(np.log1p(values).sum())
    return basis @ (right / (1.0 + values)), covariance, log_det


def _above_rounding(values: Array) -> tuple[Array, Array]:
    """Eigenvalues of a Gram matrix with zeros for what rounding left of directions without rows, and which are not.

    What rounding left would count as data when there is hardly any noise.
    """
    seen = values > 4 * values.shape[0] * np.finfo(np.float64).eps * values.max(initial=0.0)
    return np.where(seen, values, 0.0), seen


def _residual(data: Data, mean: Array) -> float:
    return max(data.energy - 2.0 * float(mean @ data.cross) + float(mean @ data.gram @ mean), 0.0)


def _evidence(data: Data, prior_det: float, noise: float, residual: float, off: float, log_det: float) -> float:
    return 0.5 * (prior_det - data.freedom * float(np.log(2 * np.pi * noise)) - residual / noise - off - log_det)
