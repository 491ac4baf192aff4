"""The Gaussian as a quadratic form: its density, its samples, and what to do about directions without variance.

    ln N(x; m, Σ) = −½ [ r ln 2π + ln det Σ + ‖A(x − m)‖² ],        Σ = B Bᵀ,   A B = I

The columns are measured in their own standard deviations before the matrix is decomposed, so that a column in small units is not
mistaken for a flat direction. A direction without variance is left out: the density is then one on the plane of rank r that the
rows lie in, and A, B have r rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.names import record

__all__ = ["FLAT", "Form", "PosteriorMixin", "from_afar", "ledoit_wolf", "log_posterior", "shrunk"]

FLAT = 1e-13  # variance in units of the columns' own, below which a direction counts as flat


@record("GaussianForm")
class Form:
    """A Gaussian with its mean, whitening A of shape (r, d), root B of shape (d, r), and ln det Σ on its plane."""

    mean: Array
    whitening: Array
    root: Array
    log_det: float

    @staticmethod
    def of(mean: Array, covariance: Array) -> Form:
        """From a covariance matrix, or its diagonal."""
        diagonal = covariance if covariance.ndim == 1 else np.diagonal(covariance)
        live = np.flatnonzero(diagonal > 0.0)
        unit = np.sqrt(diagonal[live])
        d, k = mean.shape[0], live.shape[0]
        if covariance.ndim == 1:
            values, vectors = np.ones(k), np.eye(k)
        else:
            values, vectors = np.linalg.eigh(covariance[np.ix_(live, live)] / np.outer(unit, unit))
            kept = values > FLAT * max(k, 1)
            values, vectors = values[kept], vectors[:, kept]
        root = np.zeros((d, values.shape[0]))
        root[live] = unit[:, None] * vectors * np.sqrt(values)
        whitening = np.zeros((values.shape[0], d))
        whitening[:, live] = (vectors / np.sqrt(values)).T / unit
        if values.shape[0] == k:
            log_det = float(np.log(values).sum() + 2.0 * np.log(unit).sum())
        else:  # the volume of the plane's own coordinates
            log_det = float(np.log(np.linalg.svd(root, compute_uv=False)).sum() * 2.0)
        return Form(mean, whitening, root, log_det)

    @property
    def rank(self) -> int:
        """Directions with variance."""
        return int(self.root.shape[1])

    @property
    def covariance(self) -> Array:
        """Σ as a matrix."""
        return np.asarray(self.root @ self.root.T)

    @property
    def constant(self) -> float:
        """The logarithm of the density at the mean."""
        return -0.5 * (self.rank * float(np.log(2 * np.pi)) + self.log_det)

    def distance(self, X: Array) -> Array:
        """Squared Mahalanobis distance of each row."""
        z = (X - self.mean) @ self.whitening.T
        return np.einsum("ij,ij->i", z, z)

    def log_density(self, X: Array) -> Array:
        """ln N(x) of each row."""
        return self.constant - 0.5 * self.distance(X)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n rows drawn from it."""
        return np.asarray(self.mean + rng.standard_normal((n, self.rank)) @ self.root.T)


def from_afar(densities: Callable[[Array], Array], rows: Array, center: Array) -> Array:
    """Log densities of rows under each of several Gaussians, shape (n, K).

    The squares of a row may be beyond double precision in all of them. Such a row is drawn toward the center until one is a
    number: far out only its direction says which Gaussian is the likeliest.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = densities(rows)
        far = np.flatnonzero(~np.isfinite(found.max(axis=1)))
        share = 1.0
        while far.size and share > 0.0:
            share *= 2.0**-16
            found[far] = densities(np.ascontiguousarray(center * (1.0 - share) + rows[far] * share))
            far = far[~np.isfinite(found[far].max(axis=1))]
    return found


def log_posterior(joint: Array, dtype: Any) -> Array:
    """ln P(k | x) from ln P(x, k), shape (n, K), in the precision of the rows.

    Where the probability rounds to 1 in that precision, its logarithm is 0.
    """
    shifted = joint - joint.max(axis=1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    with np.errstate(over="ignore"):  # what is impossible is −∞ in single precision
        log = np.asarray(shifted, dtype=dtype)
    log[np.exp(log) == 1.0] = 0.0  # by the exponential that `predict_proba` takes, whose last digit may differ
    return log


class PosteriorMixin:
    """Probabilities of the classes by Bayes' rule; a subclass says how likely rows and classes are together."""

    def _joint(self, X: Any) -> tuple[Array, Any]:
        """ln P(x, class) in double precision, and the precision of the rows."""
        raise TypeError(f"{type(self).__name__} must say how likely rows and classes are.")

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the posterior probabilities, shape (n_samples, n_classes)."""
        return log_posterior(*self._joint(X))

    def predict_proba(self, X: Any) -> Array:
        """Posterior probabilities of the classes, shape (n_samples, n_classes)."""
        return np.exp(self.predict_log_proba(X))


def shrunk(covariance: Array, shrinkage: float) -> Array:
    """(1 − γ)·Σ + γ·(trace Σ/d)·I, of a matrix or a diagonal."""
    if shrinkage == 0.0:
        return covariance
    d = covariance.shape[-1]
    if covariance.ndim == 1:
        return (1.0 - shrinkage) * covariance + shrinkage * covariance.mean()
    return (1.0 - shrinkage) * covariance + shrinkage * float(np.trace(covariance)) / d * np.eye(d)


def ledoit_wolf(X: Array, weight: Array, group: Array, mean: Array, covariance: Array) -> float:
    """The shrinkage towards a multiple of the identity with the least expected squared error.

    γ = min(β, δ)/δ with δ = ‖S − μI‖²_F/d and β = (1/n) Σ_i p_i ‖z_i z_iᵀ − S‖²_F/d, z_i the centered rows and n the effective
    number of rows. Ledoit and Wolf (2004), A well-conditioned estimator for large-dimensional covariance matrices.
    """
    d = covariance.shape[0]
    z = X - mean[group]
    mu = float(np.trace(covariance)) / d
    delta = float(((covariance - mu * np.eye(d)) ** 2).sum()) / d
    total = float(weight.sum())
    squares = np.einsum("ij,ij->i", z, z)
    # Σ p‖zzᵀ − S‖² = Σ p ‖z‖⁴ − ‖S‖², the rows' own squares without forming any matrix
    fourth = float(weight @ squares**2) / total
    beta = max(0.0, (fourth - float((covariance**2).sum())) / (d * total))
    return 0.0 if delta == 0.0 else min(beta, delta) / delta
