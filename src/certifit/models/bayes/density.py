"""Densities of rows without labels: a Gaussian, and a kernel density.

GaussianDensity    the Gaussian of greatest likelihood: mean and covariance of the rows
KernelDensity      (1/Σs) Σ_i s_i · K((x − x_i)/h)/h^d
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln, logsumexp
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_numbers, check_real, check_sample_weight, check_x, like_input
from certifit.models.bayes.gaussian import FLAT, Form, shrunk
from certifit.parameters import Choice, Declared, Either, Fitted, Nothing, OneOf, Parameter, Real
from certifit.parameters.methods import ROWS
from certifit.representation.design.moments import Moments
from certifit.representation.kernels.basic import MeasuredRows, squared_distances, squared_lengths

__all__ = ["GaussianDensity", "KernelDensity"]

BLOCK = 1 << 22  # distances held at a time


class Density(Declared, DensityMixin, CertifiedEstimator, takes={"X": ROWS}):
    """A density of rows; scikit-learn calls its logarithm `score_samples`."""

    def log_density(self, X: Any) -> Array:
        """Logarithm of the density at each row."""
        return np.asarray(self.score_samples(X))


class GaussianDensity(Density):
    """The Gaussian of greatest likelihood: minimizes −mean ln N(x; m, Σ) in closed form.

    Its level sets are ellipsoids; the one of Mahalanobis distance 1 has the axes `axes_` and the radii `radii_`.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import GaussianDensity
    >>> model = GaussianDensity().fit(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]]))
    >>> model.mean_, model.radii_
    (array([1. , 0.5]), array([1. , 0.5]))
    """

    covariance: str = OneOf(
        ("full", "diagonal", "isotropic"),
        "Shape of the covariance: any, one variance for each column, or one variance for all columns.",
    )
    shrinkage: float | None = Parameter(
        None, Either(Nothing(), Real(0, 1)), "Share of the identity in the covariance; None is 0."
    )

    mean_: Array = Fitted("array of shape (n_features,)", "The center.")
    covariance_: Array = Fitted("array of shape (n_features, n_features)", "The covariance matrix.")
    axes_: Array = Fitted(
        "array of shape (n_features, n_features)", "Rows: unit vectors along the axes of its ellipsoid, longest first."
    )
    radii_: Array = Fitted("array of shape (n_features,)", "Half lengths of the axes: standard deviations along them.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianDensity:
        """Compute mean and covariance."""
        started = time.perf_counter()
        X = check_x(self, X, reset=True, accept_sparse=False)
        weight = check_sample_weight(sample_weight, X.shape[0])
        kept = weight > 0
        self._settle(Moments.of(X[kept], weight[kept], full=self.covariance == "full"), started)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianDensity:
        """Add rows to those already seen: the same fit as on all of them at once."""
        started = time.perf_counter()
        known = getattr(self, "_moments", None)
        X = check_x(self, X, reset=known is None, accept_sparse=False)
        weight = check_sample_weight(sample_weight, X.shape[0])
        kept = weight > 0
        block = Moments.of(X[kept], weight[kept], full=self.covariance == "full")
        self._settle(block if known is None else known + block, started)
        return self

    def _settle(self, moments: Moments, started: float) -> None:
        self._moments = moments.checked()
        spread = moments.covariance()[0]
        if self.covariance == "isotropic":
            spread = np.full(spread.shape[0], spread.mean())
        spread = shrunk(spread, float(self.shrinkage or 0.0))
        self._keep(moments.mean[0], np.diag(spread) if spread.ndim == 1 else spread)
        form = self._form
        sample = moments.covariance()[0]
        square = (form.whitening @ sample * form.whitening if sample.ndim == 2 else form.whitening**2 * sample).sum()
        objective = float(-form.constant + 0.5 * square)
        left = self.mean_.shape[0] - form.rank
        note = f"The greatest likelihood, in closed form.{f' {left} directions without variance are left out.' if left else ''}"
        if self.shrinkage:
            note = f"The covariance of greatest likelihood, shrunk by {self.shrinkage:g}."
        self._certify(Certificate.exact(objective, note, seconds=time.perf_counter() - started))

    def _keep(self, mean: Array, covariance: Array) -> None:
        """The fitted attributes of a mean and a covariance matrix."""
        self.mean_, self.covariance_ = mean, covariance
        size = float(np.abs(np.diagonal(covariance)).max(initial=0.0)) or 1.0
        values, vectors = np.linalg.eigh(covariance / size)
        self.axes_ = np.ascontiguousarray(vectors[:, ::-1].T)
        self.radii_ = np.sqrt(np.maximum(values[::-1], 0.0)) * np.sqrt(size)
        self._form = Form.of(mean, covariance)

    @staticmethod
    def from_axes(axes: Any, radii: Any, mean: Any = None) -> GaussianDensity:
        """The Gaussian whose ellipsoid has the given axes and radii: Σ = Σ_k r_k² v_k v_kᵀ.

        Parameters
        ----------
        axes : array of shape (d, d)
            Axes in rows, orthogonal; they are brought to length one.
        radii : array of shape (d,)
            Half lengths, > 0.
        mean : array of shape (d,), optional
            The center; zero by default.

        Returns
        -------
        GaussianDensity
            Fitted.

        Examples
        --------
        >>> from certifit import GaussianDensity
        >>> GaussianDensity.from_axes([[1, 1], [-1, 1]], [2.0, 1.0]).covariance_.round(6)
        array([[2.5, 1.5],
               [1.5, 2.5]])
        """
        V, r = check_numbers("axes", axes), check_numbers("radii", radii)
        if V.ndim != 2 or V.shape[0] != V.shape[1] or r.shape != (V.shape[0],):
            raise ValueError(
                f"axes must be a square matrix and radii one number for each axis; got {V.shape} and {r.shape}."
            )
        longest = np.abs(V).max(axis=1, initial=0.0)
        if not (np.isfinite(V).all() and (longest > 0).all() and np.isfinite(r).all() and (r > 0).all()):
            raise ValueError("axes must be finite and not zero, and radii > 0.")
        V = V / longest[:, None]
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        if np.abs(V @ V.T - np.eye(V.shape[0])).max() > 1e-8:
            raise ValueError("axes must be orthogonal to each other.")
        center = np.zeros(V.shape[0]) if mean is None else check_numbers("mean", mean)
        if center.shape != (V.shape[0],) or not np.isfinite(center).all():
            raise ValueError(f"mean must be {V.shape[0]} finite numbers; got {mean!r}.")
        model = _known(center, (V.T * r**2) @ V)
        order = np.argsort(-r, kind="stable")
        model.axes_, model.radii_ = V[order], r[order]
        return model

    def score_samples(self, X: Any) -> Array:
        """ln N(x; m, Σ) of each row."""
        check_is_fitted(self, "mean_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        return like_input(rows, self._form.log_density(rows.astype(np.float64, copy=False)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(np.mean(self.score_samples(X)))

    def mahalanobis(self, X: Any) -> Array:
        """Distance of each row from the center, in standard deviations along the axes."""
        check_is_fitted(self, "mean_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        return like_input(rows, np.sqrt(self._form.distance(rows.astype(np.float64, copy=False))))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Rows drawn from it, shape (n_samples, n_features)."""
        check_is_fitted(self, "mean_")
        check_real("n_samples", n_samples, low=0, integer=True)
        rng = check_random_state(random_state)
        return np.asarray(self.mean_ + rng.standard_normal((n_samples, self._form.rank)) @ self._form.root.T)

    def marginal(self, columns: Any) -> GaussianDensity:
        """The Gaussian of some columns, the others being anything."""
        check_is_fitted(self, "mean_")
        kept = self._numbers(columns)
        return self._of(kept, self.mean_[kept], self.covariance_[np.ix_(kept, kept)])

    def conditional(self, columns: Any, values: Any) -> GaussianDensity:
        """The Gaussian of the other columns when these columns have these values.

        Parameters
        ----------
        columns : sequence of int
            The known columns.
        values : sequence of float
            What they are.

        Returns
        -------
        GaussianDensity
            Of the remaining columns, in their order: mean m₂ + Σ₂₁Σ₁₁⁻¹(x₁ − m₁), covariance Σ₂₂ − Σ₂₁Σ₁₁⁻¹Σ₁₂.
        """
        check_is_fitted(self, "mean_")
        known = self._numbers(columns)
        given = np.atleast_1d(check_numbers("values", values))
        if given.shape != known.shape or not np.isfinite(given).all():
            raise ValueError(
                f"values must be {known.shape[0]} finite numbers, one for each known column; got {values!r}."
            )
        rest = np.setdiff1d(np.arange(self.mean_.shape[0]), known)
        if not rest.size:
            raise ValueError("columns names all columns: nothing is left to be uncertain about.")
        part = Form.of(np.zeros(known.shape[0]), self.covariance_[np.ix_(known, known)])
        gain = self.covariance_[np.ix_(rest, known)] @ part.whitening.T
        mean = self.mean_[rest] + gain @ (part.whitening @ (given - self.mean_[known]))
        left = self.covariance_[np.ix_(rest, rest)] - gain @ gain.T
        # A column that the known ones determine has no variance left but that of rounding.
        told = np.diagonal(left) <= FLAT * known.shape[0] * np.diagonal(self.covariance_)[rest]
        left[told], left[:, told] = 0.0, 0.0
        return self._of(rest, mean, left)

    def _of(self, columns: Array, mean: Array, covariance: Array) -> GaussianDensity:
        """The Gaussian of some columns, under their names."""
        model = _known(mean, covariance)
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_[columns]
        return model

    def _numbers(self, columns: Any) -> Array:
        d = self.mean_.shape[0]
        names = getattr(self, "feature_names_in_", None)
        listed = [columns] if np.ndim(columns) == 0 else list(columns)
        if names is not None:
            number = {str(name): j for j, name in enumerate(names)}
            listed = [number.get(one, one) if isinstance(one, str) else one for one in listed]
        found = np.asarray(listed)
        if (
            found.dtype.kind not in "iu"
            or not found.size
            or found.min() < 0
            or found.max() >= d
            or np.unique(found).size < found.size
        ):
            names_too = " or their names" if names is not None else ""
            raise ValueError(f"columns must be distinct columns from 0 to {d - 1}{names_too}; got {columns!r}.")
        return found.astype(np.intp)


def _known(mean: Array, covariance: Array) -> GaussianDensity:
    """A fitted Gaussian from its parameters."""
    model = GaussianDensity()
    model._keep(mean, 0.5 * (covariance + covariance.T))
    model.n_features_in_ = mean.shape[0]
    model.certificate_ = Certificate.exact(0.0, "Given, not fitted.", iterations=0)
    return model


def _log_ball(metric: str, d: int) -> float:
    """ln of the volume of the ball of radius 1 in R^d: (2Γ(1 + 1/p))^d / Γ(1 + d/p) of the norm p."""
    if metric == "manhattan":
        return float(d * np.log(2.0) - gammaln(d + 1.0))
    if metric == "chebyshev":
        return d * float(np.log(2.0))
    return float(0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0))


def _log_volume(kernel: str, d: int, metric: str = "euclidean") -> float:
    """ln of the integral of the kernel's shape over R^d at bandwidth 1: ball · d ∫ r^(d−1) K(r) dr."""
    k = np.arange(24.0)
    radial: dict[str, Callable[[], float]] = {
        "gaussian": lambda: np.log(d) + (0.5 * d - 1.0) * np.log(2.0) + gammaln(0.5 * d),
        "tophat": lambda: 0.0,
        "epanechnikov": lambda: np.log(2.0 / (d + 2.0)),
        "exponential": lambda: np.log(d) + gammaln(d),
        "linear": lambda: -np.log(d + 1.0),
        # The series of the cosine, term by term.
        "cosine": lambda: np.log(
            d * np.sum((-1.0) ** k * np.exp(2 * k * np.log(np.pi / 2) - gammaln(2 * k + 1)) / (2 * k + d))
        ),
    }
    return _log_ball(metric, d) + float(radial[kernel]())


def _log_shape(kernel: str) -> Callable[[Array], Array]:
    """ln of the kernel's shape as a function of the squared distance in bandwidths."""
    shapes: dict[str, Callable[[Array], Array]] = {
        "gaussian": lambda s: -0.5 * s,
        "tophat": lambda s: np.where(s <= 1.0, 0.0, -np.inf),
        "epanechnikov": lambda s: np.where(s < 1.0, np.log1p(-np.minimum(s, 1.0)), -np.inf),
        "exponential": lambda s: -np.sqrt(s),
        "linear": lambda s: np.where(s < 1.0, np.log1p(-np.sqrt(np.minimum(s, 1.0))), -np.inf),
        "cosine": lambda s: np.where(s < 1.0, np.log(np.cos(0.5 * np.pi * np.sqrt(np.minimum(s, 1.0)))), -np.inf),
    }
    return shapes[kernel]


def _directions(metric: str, rng: Any, shape: tuple[int, int]) -> Array:
    """Points of norm 1, as evenly as the volumes of the cones above them."""
    if metric == "chebyshev":
        drawn = rng.uniform(-1.0, 1.0, size=shape)
        return np.asarray(drawn / np.abs(drawn).max(axis=1, keepdims=True))
    if metric == "manhattan":
        drawn = rng.laplace(size=shape)
        return np.asarray(drawn / np.abs(drawn).sum(axis=1, keepdims=True))
    drawn = rng.standard_normal(shape)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


class KernelDensity(Density):
    """A smooth histogram: (1/Σs) Σ s_i K((x − x_i)/h)/h^d, with h given, by a rule, or of greatest leave-one-out likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelDensity
    >>> model = KernelDensity(bandwidth=0.5).fit(np.array([[0.0], [1.0]]))
    >>> np.exp(model.score_samples([[0.5]])).round(4)
    array([0.4839])
    """

    bandwidth: Any = Parameter(
        "scott",
        Either(Real(0, open_low=True), Choice("scott", "silverman", "likelihood")),
        'The width h: a number, a rule in standard deviations of the rows, or "likelihood" for the width under which '
        "each row is most likely given all others.",
    )
    kernel: str = OneOf(("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"), "Its shape.")
    metric: str = OneOf(
        ("euclidean", "manhattan", "chebyshev"), "The distance from the rows that the shape is a function of."
    )

    bandwidth_: float = Fitted("float", "The width used.")

    weights_are_counts = True  # more rows, narrower kernels

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> KernelDensity:
        """Keep the rows, and choose the width.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
        """
        started = time.perf_counter()
        X = check_x(self, X, reset=True, accept_sparse=False)
        weight = check_sample_weight(sample_weight, X.shape[0])
        kept = weight > 0
        self._rows, self._weight = X[kept].astype(np.float64), weight[kept]
        self.bandwidth_ = self._width()
        note = (
            ""
            if self.bandwidth != "likelihood"
            else "The width is the best of a grid of 60 by leave-one-out likelihood."
        )
        self._certify(
            Certificate.absent(
                0.0,
                f"A kernel density has nothing to optimize but its width. {note}".strip(),
                seconds=time.perf_counter() - started,
            )
        )
        return self

    def _width(self) -> float:
        if not isinstance(self.bandwidth, str):
            return float(self.bandwidth)
        d, total = self._rows.shape[1], float(self._weight.sum())
        spread = Moments.of(self._rows, self._weight, full=False).covariance()[0]
        scale = float(np.sqrt(spread.mean())) or 1.0
        scott = scale * total ** (-1.0 / (d + 4))
        if self.bandwidth == "scott":
            return scott
        if self.bandwidth == "silverman":
            return float(scott * (4.0 / (d + 2.0)) ** (1.0 / (d + 4)))
        grid = scott * np.geomspace(0.05, 5.0, 60)
        return float(grid[int(np.argmax([self._left_out(h) for h in grid]))])

    def _left_out(self, h: float) -> float:
        """Mean log density of each row from all others; a row of weight 2 still has its twin among the others."""
        joined = self._log_sums(self._rows, h)
        total = float(self._weight.sum())
        own = _log_shape(self.kernel)(np.zeros(1))[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            others = joined + np.log1p(-np.exp(np.minimum(own - joined, 0.0)))
        constant = (
            np.log(max(total - 1.0, 1e-300))
            + _log_volume(self.kernel, self._rows.shape[1], self.metric)
            + self._rows.shape[1] * np.log(h)
        )
        value = float(self._weight @ (others - constant) / total)
        return value if np.isfinite(value) else -np.inf

    def _log_sums(self, X: Array, h: float) -> Array:
        """ln Σ_i s_i K((x − x_i)/h) of each row of X, in blocks."""
        center = self._rows.mean(axis=0)
        known = (self._rows - center) / h
        right = MeasuredRows(known, squared_lengths(known))
        log_weight = np.log(self._weight)
        size = max(1, BLOCK // max(known.shape[0], 1))
        out = np.empty(X.shape[0])
        for i in range(0, X.shape[0], size):
            z = (X[i : i + size] - center) / h
            if self.metric == "euclidean":
                s = squared_distances(MeasuredRows(z, squared_lengths(z)), right)
            else:
                s = cdist(z, known, "cityblock" if self.metric == "manhattan" else "chebyshev") ** 2
            with np.errstate(divide="ignore", invalid="ignore"):
                out[i : i + size] = logsumexp(_log_shape(self.kernel)(s) + log_weight, axis=1)
        return out

    def score_samples(self, X: Any) -> Array:
        """Log density of each row."""
        check_is_fitted(self, "bandwidth_")
        rows = check_x(self, X, reset=False, accept_sparse=False)
        d = rows.shape[1]
        constant = np.log(self._weight.sum()) + _log_volume(self.kernel, d, self.metric) + d * np.log(self.bandwidth_)
        return like_input(rows, self._log_sums(rows.astype(np.float64, copy=False), self.bandwidth_) - constant)

    def score(self, X: Any, y: Any = None) -> float:
        """Total log density of the rows."""
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Rows drawn from it (Gaussian or tophat kernel), shape (n_samples, n_features)."""
        check_is_fitted(self, "bandwidth_")
        if self.kernel not in ("gaussian", "tophat"):
            raise ValueError(f"sample works for kernel='gaussian' and 'tophat'; got {self.kernel!r}.")
        check_real("n_samples", n_samples, low=0, integer=True)
        rng = check_random_state(random_state)
        chosen = rng.choice(self._rows.shape[0], size=n_samples, p=self._weight / self._weight.sum())
        d = self._rows.shape[1]
        if self.kernel == "gaussian" and self.metric == "euclidean":
            return np.asarray(self._rows[chosen] + self.bandwidth_ * rng.standard_normal((n_samples, d)))
        step = _directions(self.metric, rng, (n_samples, d))
        if self.kernel == "tophat":
            step *= rng.uniform(size=(n_samples, 1)) ** (1.0 / d)
        else:
            step *= np.sqrt(rng.chisquare(d, size=(n_samples, 1)))
        return np.asarray(self._rows[chosen] + self.bandwidth_ * step)
