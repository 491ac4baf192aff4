"""Mixtures of Gaussians by expectation and maximization.

    maximize over π, m, Σ    (1/Σs_i) Σ s_i ln Σ_k π_k N(x_i; m_k, Σ_k)

Each row belongs to every Gaussian in part, r_ik ∝ π_k N(x_i; m_k, Σ_k); π, m and Σ are then the weight, mean and covariance of
these parts. No step lowers the likelihood (Dempster, Laird and Rubin 1977), and where nothing changes any more no small change
raises it. A larger change may: the likelihood has many such points and, without `reg_covar`, no maximum at all (a Gaussian can
shrink onto one row). So there is no bound, and the certificate says how still the fit stands, nothing more.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import certifit._native.mixture as _native
from certifit._types import Array
from certifit.base import CertifiedEstimator, ConvergenceWarning
from certifit.certificate import Certificate
from certifit.data.gate import check_sample_weight, check_x, like_input
from certifit.models.bayes.gaussian import from_afar
from certifit.models.cluster.centers import Drawn, distinct_rows
from certifit.models.cluster.rows import rows_of
from certifit.models.cluster.starts import start_centers
from certifit.parameters import Choice, Fitted, Integer, OneOf, Parameter, Real
from certifit.parameters.common import MAX_ITER, TOL
from certifit.parameters.methods import ROWS
from certifit.progress import progress
from certifit.representation.design.moments import Moments
from certifit.threads import n_threads

__all__ = ["GaussianMixture"]

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class _Parts:
    """Weights, means and covariances of K Gaussians; covariances are full (K, d, d) or diagonal (K, d)."""

    weight: Array
    mean: Array
    covariance: Array

    def form(self) -> tuple[Array, Array, Array]:
        """Means, whitening factors A (ΣAᵀA = I) and constants, as native code takes them."""
        K, d = self.mean.shape
        if self.covariance.ndim == 2:
            A = 1.0 / np.sqrt(self.covariance)
            logs = np.log(A).sum(axis=1)
        else:
            roots = [cholesky(one, lower=True) for one in self.covariance]
            A = np.array([solve_triangular(root, np.eye(d), lower=True) for root in roots])
            logs = -np.array([np.log(np.diagonal(root)).sum() for root in roots])
        with np.errstate(divide="ignore"):
            constant = np.maximum(np.log(self.weight), -1e300) + logs - 0.5 * d * LOG_2PI
        return np.ascontiguousarray(self.mean), np.ascontiguousarray(A.reshape(K, -1)), constant


class _Climb(NamedTuple):
    """The end of the steps from one start."""

    value: float
    """The mean log-likelihood of the parts."""
    parts: _Parts
    steps: int
    raised: float
    """What the last step raised it by."""
    values: list[float]
    """After each step."""
    then: _Parts
    """The parts that one more step would give."""
    still: bool
    """Whether the steps ended by themselves."""


class GaussianMixture(Drawn, DensityMixin, CertifiedEstimator, takes={"X": ROWS}):
    """A mixture of Gaussians by expectation and maximization.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(300, 2)), rng.normal(size=(100, 2)) * 0.5 + 6.0])
    >>> model = GaussianMixture(n_components=2, random_state=0).fit(X)
    >>> sorted(model.weights_.round(2).tolist())
    [0.25, 0.75]
    >>> bool(model.bic(X) < GaussianMixture(1).fit(X).bic(X))
    True
    """

    n_components: int = Parameter(1, Integer(1), "The number K of Gaussians.")
    covariance_type: str = OneOf(
        ("full", "tied", "diag", "spherical"),
        "Covariances: any, one for all, one variance for each column, or one variance for all columns.",
    )
    tol: float = TOL.but(1e-3, "Stop when a step raises the mean log-likelihood by less.")
    reg_covar: float = Parameter(
        1e-6,
        Real(0),
        "Share of each column's variance that is added to the variances, so that no Gaussian shrinks to a point.",
    )
    max_iter: int = MAX_ITER.but(100, "Most steps.")
    n_init: int = Parameter(1, Integer(1), "Starts, of which the most likely is kept.")
    init_params: str = Parameter(
        "kmeans",
        Choice("kmeans", "k-means++", "random"),
        "The first parts: k-means, its starting centers, or any rows.",
    )

    weights_: Array = Fitted("array of shape (n_components,)", "The share π of each Gaussian.")
    means_: Array = Fitted("array of shape (n_components, n_features)", "The means.")
    covariances_: Array = Fitted("array", "The covariances, in the shape of scikit-learn for each `covariance_type`.")
    lower_bound_: float = Fitted("float", "The mean log-likelihood.")
    converged_: bool = Fitted("bool", "Whether the steps ended by themselves.")
    n_iter_: int = Fitted("int", "Steps of the best start.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Find the Gaussians."""
        with progress(self.verbose, "mixture") as clock:
            X = check_x(self, X, reset=True, accept_sparse=False)
            weight = check_sample_weight(sample_weight, X.shape[0])
            kept = weight > 0
            if kept.sum() < self.n_components:
                raise ValueError(
                    f"n_samples={int(kept.sum())} should be >= n_components={self.n_components}: ask for at most as many "
                    "components as there are rows."
                )
            rows, mass = distinct_rows(X[kept].astype(np.float64), weight[kept])
            mass = np.ldexp(mass, -int(np.frexp(mass.max())[1]))  # only their shares count, and large ones overflow
            moments = Moments.of(rows, mass, full=False)
            variance = moments.covariance()[0]
            if not np.isfinite(variance).all():
                raise ValueError(
                    "X holds numbers whose squares are beyond double precision: give large columns in another unit."
                )
            unit = self._units(variance)
            Z = np.ascontiguousarray((rows - moments.mean[0]) / unit)
            rng = check_random_state(self.random_state)
            best: _Climb | None = None
            for start in range(self.n_init):
                found = self._climb(Z, mass / mass.sum(), self._start(Z, mass, rng))
                best = found if best is None or found.value > best.value else best
                clock.update(start + 1, self.n_init, best.raised)
            assert best is not None
            self._keep(best, moments.mean[0], unit, X.dtype, clock.seconds)
        return self

    def _units(self, variance: Array) -> Array:
        """Every column in its own standard deviation; where one variance is to serve all columns, in a common one."""
        if self.covariance_type == "spherical":
            variance = np.full_like(variance, variance.mean())
        return np.where(variance > 0, np.sqrt(variance), 1.0)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and give the most likely Gaussian of each row."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _start(self, Z: Array, weight: Array, rng: np.random.RandomState) -> _Parts:
        """The parts of a clustering."""
        K = self.n_components
        rows = rows_of(Z, weight, self.n_jobs)
        init = "random" if self.init_params == "random" else "k-means++"
        centers = start_centers(init, rows, Z, weight, min(K, Z.shape[0]), rng)
        labels = rows.run(centers, 300, 0.0).labels if self.init_params == "kmeans" else rows.nearest(centers)[0]
        groups = Moments.of(Z, weight / weight.sum(), labels, K, full=self._full)
        sums = np.concatenate([groups.weight[:, None], np.zeros((K, Z.shape[1])), _packed(groups.scatter)], axis=1)
        return self._maximized(sums, groups.mean)

    _least: ClassVar[float] = 1e-15
    """A variance that is no more counts as none."""

    @property
    def _full(self) -> bool:
        return self.covariance_type in ("full", "tied")

    def _climb(self, Z: Array, share: Array, parts: _Parts) -> _Climb:
        """Steps until they no longer raise the likelihood."""
        raised, threads = np.inf, n_threads(self.n_jobs)
        values: list[float] = []
        for step in range(1, self.max_iter + 1):
            value, sums = _native.step(Z, share, *parts.form(), threads)
            raised = value - self._before(values)
            values.append(float(value))
            then = self._maximized(sums, parts.mean)
            if self._stands(raised) or step == self.max_iter:
                break
            parts = then
        return _Climb(values[-1], parts, step, max(raised, 0.0), values, then, self._stands(raised))

    def _stands(self, raised: float) -> bool:
        """Whether a step that raises the likelihood by so little is the last."""
        return bool(raised < self.tol)

    def _before(self, values: list[float]) -> float:
        """The likelihood that a step starts from."""
        return values[-1] if values else -np.inf

    def _maximized(self, sums: Array, mean: Array) -> _Parts:
        """Weights, means and covariances of the parts, from their sums about the last means."""
        K, d = mean.shape
        mass = sums[:, 0]
        alive = np.where(mass > 0, mass, 1.0)
        shift = sums[:, 1 : 1 + d] / alive[:, None]
        spread = sums[:, 1 + d :] / alive[:, None]
        if self._full:
            low = np.zeros((K, d, d))
            low[(slice(None), *np.tril_indices(d))] = spread
            covariance = low + np.tril(low, -1).transpose(0, 2, 1) - shift[:, :, None] * shift[:, None, :]
            if self.covariance_type == "tied":
                covariance = np.repeat(np.einsum("k,kij->ij", mass / mass.sum(), covariance)[None], K, axis=0)
            covariance[:, np.arange(d), np.arange(d)] += self.reg_covar
        else:
            covariance = spread - shift**2 + self.reg_covar
            if self.covariance_type == "spherical":
                covariance = np.repeat(covariance.mean(axis=1)[:, None], d, axis=1)
        return _Parts(mass / mass.sum(), mean + shift, self._positive(covariance))

    def _positive(self, covariance: Array) -> Array:
        """Covariances that rounding, or ``reg_covar=0`` on too few rows, left without an inverse are told."""
        least = covariance.min() if covariance.ndim == 2 else np.linalg.eigvalsh(covariance).min()
        if least <= self._least:
            raise ValueError(
                "A Gaussian has shrunk onto a plane or a point of X: its likelihood has no bound. Ask for fewer n_components, "
                f"another covariance_type, or reg_covar above {self.reg_covar:g}."
            )
        return covariance

    def _keep(self, best: _Climb, mean: Array, unit: Array, dtype: Any, seconds: float) -> None:
        value, parts, self.n_iter_, raised, *_ = best
        self._parts, self._center, self._scale = (parts.weight, parts.mean, parts.covariance), mean, unit
        self.weights_ = parts.weight.astype(dtype)
        self.means_ = (mean + parts.mean * unit).astype(dtype)
        if self._full:
            covariances = parts.covariance * np.outer(unit, unit)
            self.covariances_ = (covariances[0] if self.covariance_type == "tied" else covariances).astype(dtype)
        elif self.covariance_type == "diag":
            self.covariances_ = (parts.covariance * unit**2).astype(dtype)
        else:
            self.covariances_ = (parts.covariance[:, 0] * unit[0] ** 2).astype(dtype)
        self.lower_bound_ = float(value - np.log(unit).sum())
        self.converged_ = best.still
        note = f"The mean log-likelihood is {self.lower_bound_:.6g}, and the last step raised it by {raised:.1e}. "
        note += "Near there no small change raises it; other starts may end higher."
        if not self.converged_:
            note = (
                f"Stopped after {self.n_iter_} steps, of which the last raised the mean log-likelihood by {raised:.1e}."
            )
            warnings.warn(f"GaussianMixture: {note} Raise max_iter or tol.", ConvergenceWarning, stacklevel=3)
        self._certify(Certificate.absent(raised, note, iterations=self.n_iter_, seconds=seconds))

    def _logs(self, X: Any) -> tuple[Array, Array]:
        """Rows, and ln π_k N(x; m_k, Σ_k) of each."""
        check_is_fitted(self, "means_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        Z = np.ascontiguousarray((rows.astype(np.float64) - self._center) / self._scale)
        form = _Parts(*self._parts).form()
        logs = from_afar(lambda z: _native.densities(z, *form, n_threads(self.n_jobs)), Z, np.zeros(Z.shape[1]))
        return rows, logs - np.log(self._scale).sum()

    def predict(self, X: Any) -> Array:
        """The most likely Gaussian of each row."""
        return np.asarray(self._logs(X)[1].argmax(axis=1))

    def predict_proba(self, X: Any) -> Array:
        """The part of each row that belongs to each Gaussian."""
        rows, logs = self._logs(X)
        return like_input(rows, np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def score_samples(self, X: Any) -> Array:
        """The log density of each row."""
        rows, logs = self._logs(X)
        return like_input(rows, np.asarray(logsumexp(logs, axis=1)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean log density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Rows drawn from the mixture, and the Gaussian that each comes from."""
        check_is_fitted(self, "means_")
        rng = check_random_state(random_state)
        weight, mean, covariance = self._parts
        label = rng.choice(weight.shape[0], size=n_samples, p=weight)
        draws = rng.standard_normal((n_samples, mean.shape[1]))
        for k in range(weight.shape[0]):
            own = label == k
            root = np.diag(np.sqrt(covariance[k])) if covariance.ndim == 2 else cholesky(covariance[k], lower=True)
            draws[own] = mean[k] + draws[own] @ root.T
        return self._center + draws * self._scale, label

    def bic(self, X: Any) -> float:
        """Bayes information criterion on X: the lower, the better."""
        logs = self.score_samples(X)
        return float(-2.0 * logs.sum() + self._free() * np.log(logs.shape[0]))

    def aic(self, X: Any) -> float:
        """Akaike information criterion on X: the lower, the better."""
        return float(-2.0 * self.score_samples(X).sum() + 2.0 * self._free())

    def _free(self) -> int:
        """Numbers that were free."""
        K, d = self.means_.shape
        each = {"full": K * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": K * d, "spherical": K}
        return each[self.covariance_type] + K * d + K - 1


def _packed(scatter: Array) -> Array:
    """Lower triangles row by row, as native sums are laid out; diagonals as they are."""
    return scatter if scatter.ndim == 2 else scatter[(slice(None), *np.tril_indices(scatter.shape[1]))]
