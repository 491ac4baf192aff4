"""``sklearn.mixture``: Gaussians by expectation and maximization, with scikit-learn's scales and starts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.mixture as theirs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, validate_data

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.models.cluster import mixture as ours
from certifit.sklearn.translation import By, Data, Free, Here, Of, Same, Table, fresh, same
from certifit.sklearn.translation.asking import Alone

__all__ = ["GaussianMixture"]

Given = tuple[Any, Any, Any]
NOTHING: Given = (None, None, None)


class _InUnitsOfX(ours.GaussianMixture):
    """Variances are in the units of X, so that `reg_covar` is scikit-learn's; weights, means and covariances may be given."""

    given: Given = NOTHING
    from_value: float = -np.inf
    stays: bool = False
    """Whether the start is the answer: no steps at all."""
    best: Any = None
    center: Any = None
    _least: ClassVar[float] = 0.0

    def _units(self, variance: Array) -> Array:
        return np.ones_like(variance)

    def _start(self, Z: Array, weight: Array, rng: np.random.RandomState) -> Any:
        if any(one is None for one in self.given):
            start = super()._start(Z, weight, rng)
        else:
            start = ours._Parts(np.empty(0), np.empty((0, 0)), np.empty(0))
        weights, means, covariances = self.given
        return ours._Parts(
            start.weight if weights is None else np.asarray(weights, dtype=np.float64),
            start.mean if means is None else np.asarray(means, dtype=np.float64) - self.center,
            start.covariance if covariances is None else covariances,
        )

    def _climb(self, Z: Array, share: Array, parts: Any) -> Any:
        if not self.stays:
            return super()._climb(Z, share, parts)
        return ours._Climb(-np.inf, parts, 0, np.inf, [], parts, False)

    def _stands(self, raised: float) -> bool:
        return bool(abs(raised) < self.tol)  # a large `reg_covar` may lower the likelihood, and steps go on

    def _before(self, values: list[float]) -> float:
        return values[-1] if values else self.from_value

    def _keep(self, best: Any, mean: Array, unit: Array, dtype: Any, seconds: float) -> None:
        self.best, self.n_iter_ = best, best.steps
        self.converged_ = best.still
        note = f"The last step raised the mean log-likelihood by {best.raised:.1e}; other starts may end higher."
        self.certificate_ = Certificate.absent(best.raised, note, iterations=best.steps, seconds=seconds)


def _covariances(precisions: Any, kind: str, K: int, d: int) -> Array | None:
    """Given precisions as covariances of each Gaussian: matrices, or variances of the columns."""
    if precisions is None:
        return None
    given = np.asarray(precisions, dtype=np.float64)
    if kind == "tied":
        return np.repeat(np.linalg.inv(given)[None], K, axis=0)
    if kind == "full":
        return np.linalg.inv(given)
    return np.array(np.broadcast_to(1.0 / (given if kind == "diag" else given[:, None]), (K, d)))


def _check_start(asked: Any, d: int) -> None:
    """Starts that are given have to fit, in scikit-learn's words."""
    K, kind = asked.n_components, asked.covariance_type
    precision = {"full": (K, d, d), "tied": (d, d), "diag": (K, d), "spherical": (K,)}[kind]
    shapes = {"weights": (K,), "means": (K, d), "precisions": precision}
    found: dict[str, Array] = {}
    for name, shape in shapes.items():
        if (given := getattr(asked, f"{name}_init")) is None:
            continue
        value = check_array(given, dtype=[np.float64, np.float32], ensure_2d=False, allow_nd=True)
        if value.shape != shape:
            called = f"{kind} precision" if name == "precisions" else name
            raise ValueError(f"The parameter '{called}' should have the shape of {shape}, but got {value.shape}")
        found[name] = value
    if (weights := found.get("weights")) is not None:
        if (weights < 0).any() or (weights > 1).any():
            raise ValueError(
                f"The parameter 'weights' should be in the range [0, 1], but got max value {weights.max():.5f}, min value "
                f"{weights.min():.5f}"
            )
        if abs(1.0 - weights.sum()) > (1e-6 if weights.dtype == np.float32 else 1e-8):
            raise ValueError(
                f"The parameter 'weights' should be normalized, but got sum(weights) = {weights.sum():.5f}"
            )
    if (precisions := found.get("precisions")) is None:
        return
    if kind in ("diag", "spherical"):
        if (precisions <= 0).any():
            raise ValueError(f"'{kind} precision' should be positive")
        return
    turned = np.swapaxes(precisions, -1, -2)
    if not np.allclose(precisions, turned) or (np.linalg.eigvalsh(precisions) <= 0).any():
        raise ValueError(f"'{kind} precision' should be symmetric, positive-definite")


def _start(value: str, data: Data) -> str:
    return {"random_from_data": "random"}.get(value, value)


class GaussianMixture(Alone, theirs.GaussianMixture):
    """A mixture of Gaussians. Likelihoods, criteria and draws are scikit-learn's methods on what ours has learned."""

    _ours = _InUnitsOfX
    _reads_columns = True
    _table: ClassVar[Table] = {
        **same("n_components", "covariance_type", "tol", "reg_covar"),
        "max_iter": Of(lambda value, data: max(value, 1), "the same; zero steps leave the start as it is"),
        "n_init": By(lambda value, data: 1 if data.estimator._goes_on() else value, "the same"),
        "init_params": By(_start, 'the same; "random" deals rows to the nearest of some drawn ones'),
        "weights_init": Here("the start, where given"),
        "means_init": Here("the start, where given"),
        "precisions_init": Here("the start, where given"),
        "random_state": Same(),
        "warm_start": Here("the last fit is the start"),
        "verbose": Of(lambda value, data: int(bool(value)), "a progress bar"),
        "verbose_interval": Free("a progress bar has no interval"),
    }

    def _goes_on(self) -> bool:
        return bool(self.warm_start) and hasattr(self, "converged_")

    def _learn(self, data: Data) -> Any:
        X = validate_data(self, data.X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        if X.shape[0] < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, n_samples = {X.shape[0]}"
            )
        _check_start(self, X.shape[1])
        model = fresh(self._ours, **self._settings(data))
        model.stays = self.max_iter == 0
        model.center = X.astype(np.float64).mean(axis=0)
        K, d = self.n_components, X.shape[1]
        if self._goes_on():
            covariances = _covariances(self.precisions_, self.covariance_type, K, d)
            model.given, model.from_value = (self.weights_, self.means_, covariances), self.lower_bound_
        else:
            covariances = _covariances(self.precisions_init, self.covariance_type, K, d)
            model.given = (self.weights_init, self.means_init, covariances)
        try:
            return model.fit(X)
        except ValueError as error:
            if "has shrunk onto" not in str(error):
                raise
            raise ValueError(
                "Fitting the mixture model failed because some components have ill-defined empirical covariance (for instance "
                "caused by singleton or collapsed samples). Try to decrease the number of components, increase reg_covar, or "
                "scale the input data."
            ) from error

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        best, kind = model.best, self.covariance_type
        dtype = np.float32 if getattr(data.X, "dtype", None) == np.float32 else np.float64
        parts = best.then
        root = parts.form()[1].reshape(parts.covariance.shape)
        covariances: Array = parts.covariance
        if kind in ("full", "tied"):
            root = root.transpose(0, 2, 1)
            covariances, root = (covariances[0], root[0]) if kind == "tied" else (covariances, root)
            precisions = root @ np.swapaxes(root, -1, -2)
        else:
            covariances, root = (covariances[:, 0], root[:, 0]) if kind == "spherical" else (covariances, root)
            precisions = root**2
        if not model.converged_ and self.max_iter > 0:
            warnings.warn(
                "Best performing initialization did not converge. Try different init parameters, or increase max_iter, tol, or "
                "check for degenerate data.",
                ConvergenceWarning,
                stacklevel=6,
            )
        arrays = {
            "weights_": parts.weight,
            "means_": model.center + parts.mean,
            "covariances_": covariances,
            "precisions_cholesky_": root,
            "precisions_": precisions,
        }
        return {
            **{name: np.ascontiguousarray(value, dtype=dtype) for name, value in arrays.items()},
            "converged_": model.converged_,
            "n_iter_": model.n_iter_,
            "lower_bound_": best.value,
            "lower_bounds_": best.values,
        }

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Fit, and give the most likely Gaussian of each row."""
        return np.asarray(self.fit(X).predict(X))
