"""Kernel ridge regression, and the Gaussian process that it is the mean of.

    minimize over f, b    (1/Σs) Σ s_i ½(y_i − f(x_i) − b)² + alpha·½‖f‖²

With A = K + alpha·Σs·S⁻¹ the optimum is β = A⁻¹(y − b), Σβ = 0. The same numbers are the posterior mean of a Gaussian process of
covariance τ²k under noise of variance σ²/s_i, with σ² = alpha·Σs·τ² and b of any size: then f(x) + b has the variance

    τ² [k(x, x) − k_xᵀA⁻¹k_x + (1 − 1ᵀA⁻¹k_x)²/(1ᵀA⁻¹1)],

and τ² of greatest restricted likelihood is 2·(least objective)/(alpha·(Σs − 1)).

Leaving out one of the s_i copies of row i divides its residual by 1 − h_i, where h_i is what one copy weighs in its own fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.data.gate import like_input
from certifit.evaluation.losses import Loss, Squared
from certifit.models.kernel.model import KernelRegressor
from certifit.models.kernel.parameters import ALPHA, APPROXIMATION, KERNEL, N_COMPONENTS, RANDOM_STATE
from certifit.parameters import FIT_INTERCEPT, TOL, VERBOSE, Fitted
from certifit.progress import progress
from certifit.representation.kernels.points import Sample, new_rows, raw_rows

__all__ = ["GaussianReading", "KernelRidge"]

MEASURED = ("scale", "median")  # parameters of kernels that their rows settle


class GaussianReading(KernelRegressor):
    """Least squares on a kernel with what its Gaussian process knows; a subclass fits."""

    alpha_: float

    noise_: Any = Fitted(
        "float or array of shape (n_targets,)", "σ of the Gaussian process, the deviation of the noise."
    )
    amplitude_: Any = Fitted("float or array of shape (n_targets,)", "τ of the Gaussian process.")
    dual_coef_: Array = Fitted("array of shape (n_points,) or (n_points, n_targets)", "β.")
    intercept_: Any = Fitted("float or array of shape (n_targets,)", "b.")

    def _loss_of(self) -> Loss:
        return Squared()

    def _remember(self, sample: Sample) -> None:
        """Weights and targets of the rows, and the variances of the Gaussian process."""
        self._weight, self._y, self._which = sample.weight, sample.y, sample.which
        self._given = sample.given
        total = float(sample.weight.sum())
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            noise = np.sqrt(2.0 * self._objectives(sample) * total / max(total - float(self.fit_intercept), 1e-300))
            amplitude = noise / np.sqrt(self.alpha_ * total)
        self.noise_ = float(noise) if sample.y.ndim == 1 else noise
        self.amplitude_ = float(amplitude) if sample.y.ndim == 1 else amplitude

    def _objectives(self, sample: Sample) -> Array:
        """The objective of each target."""
        if (
            len(self.points_) == sample.y.shape[0]
        ):  # at the optimum residuals are alpha·β/p, and this is all that is left
            beta = self.dual_coef_
            return np.asarray(np.maximum(0.5 * self.alpha_ * (beta * (sample.y - self.intercept_)).sum(axis=0), 0.0))
        scores = self.points_.expansion(raw_rows(sample), self.dual_coef_) + self.intercept_
        length = (self.dual_coef_ * (self.points_.gram() @ self.dual_coef_)).sum(axis=0)
        return np.asarray(0.5 * (sample.p @ (sample.y - scores) ** 2 + self.alpha_ * length))

    def _exact(self, what: str) -> Array:
        """The Gram matrix of all rows of the fit."""
        check_is_fitted(self)
        if len(self.points_) != self._weight.shape[0]:
            raise ValueError(
                f"{what} needs all rows of the fit, and this one sums over {len(self.points_)} landmarks: fit with "
                "approximation='none'."
            )
        return self.points_.gram() if self._given is None else self._given

    def _factor(self, gram: Array, ridge: float) -> tuple[Array, Array]:
        """√s, and Cholesky's factor of ridge·I + √s K √s; the matrix is used up."""
        root = np.sqrt(self._weight)
        gram = gram * root[:, None]
        gram *= root
        gram[np.diag_indices_from(gram)] += ridge
        return root, scipy.linalg.cholesky(gram, lower=True, overwrite_a=True, check_finite=False)

    def _check_given(self) -> None:
        """Refuse what a fit would measure on its rows."""
        for name, value in self._kernel().get_params().items():
            if isinstance(value, str) and value in MEASURED:
                raise ValueError(
                    f"the kernel's {name}={value!r} is measured on the rows and would be another without one of them: give "
                    "a number."
                )

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predictions of y, and on demand how uncertain they are.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features), or what the kernel takes
            Features; similarities with the rows of the fit for ``kernel="precomputed"``.
        return_std : bool, default=False
            Whether to return also the standard deviation of f(x) + b under the Gaussian process of the fit; a new observation
            has the variance `noise_`² in addition. Weights count rows here: twice the weights, and less is unknown.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets), and a second one of that shape with ``return_std=True``
        """
        scores = self._scores(X)
        if not return_std:
            return scores
        gram = self._exact("return_std")
        if self.points_.precomputed:
            raise ValueError("return_std needs k(x, x) of new rows, which a precomputed matrix does not have.")
        rows = new_rows(self, self.kernel_, X)
        root, factor = self._factor(gram, self.alpha_ * float(self._weight.sum()))
        known = np.empty(scores.shape[0])
        ones = scipy.linalg.solve_triangular(factor, root, lower=True, check_finite=False)
        for part, block in self.points_.similarities(rows):
            half = scipy.linalg.solve_triangular(factor, (block * root).T, lower=True, check_finite=False)
            known[part] = np.einsum("ij,ij->j", half, half)
            if self.fit_intercept:
                known[part] -= (1.0 - ones @ half) ** 2 / float(ones @ ones)
        spread = np.sqrt(np.maximum(self.points_.own(rows) - known, 0.0))
        return scores, like_input(rows, np.multiply.outer(spread, self.amplitude_))

    def loo_predictions(self, X: Any = None, y: Any = None) -> Array:
        """What the model says about each row of the fit when that row is left out: exactly what refitting without it would say.

        Of a row with weight 2 one copy is left out. `alpha` is beside the mean loss of the rows that remain, and the kernel is
        `kernel_`.

        Parameters
        ----------
        X, y : optional
            Rows and targets of another fit, whose predictions these are. What is measured on the rows (a `gamma` of "scale" or
            "median", an `alpha` of the least error) would be other without one of them, and is refused.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_targets)
            For the rows of positive weight, in the order in which they were given.
        """
        if X is not None:
            self._check_given()
            return clone(self).fit(X, y).loo_predictions()
        gram = self._exact("loo_predictions")
        weight, total = self._weight, float(self._weight.sum())
        removed = np.minimum(weight, 1.0)
        rest = max(total - float(weight @ removed) / total, 0.0)
        ridge = max(self.alpha_ * rest, 1e-300)
        root, factor = self._factor(gram, ridge)
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        if self.fit_intercept:
            ones = inverse @ root
            inverse -= np.multiply.outer(ones, ones / float(root @ ones))
        targets = self._y if self._y.ndim == 2 else self._y[:, None]
        residual = ridge * (inverse @ (root[:, None] * targets)) / root[:, None]
        leverage = (1.0 - ridge * np.diagonal(inverse)) / weight
        spare = 1.0 - removed * leverage
        with np.errstate(divide="ignore", invalid="ignore"):
            # A row that determines its own fit cannot be predicted without it.
            left = np.where(spare[:, None] > 1e-12, residual / spare[:, None], np.inf)
        found = (targets - left)[self._which]
        return np.asarray(found if self._y.ndim == 2 else found[:, 0])


class KernelRidge(GaussianReading):
    """Least squares on a kernel: minimize mean ½(y − f(x) − b)² + alpha·½‖f‖².

    ``sklearn.kernel_ridge.KernelRidge(alpha=a)`` on n rows is ``KernelRidge(alpha=a / n, fit_intercept=False)`` here.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import KernelRidge
    >>> from certifit.kernels import RBF
    >>> x = np.linspace(0.0, 6.0, 30)
    >>> model = KernelRidge(kernel=RBF(gamma=0.5), alpha=1e-4).fit(x[:, None], np.sin(x))
    >>> mean, std = model.predict([[3.0], [60.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.01), bool(std[0] < 0.1 * std[1])
    (True, True)
    >>> bool(np.abs(model.loo_predictions() - np.sin(x)).max() < 0.1)
    True
    """

    kernel: Any = KERNEL
    alpha: float = ALPHA
    fit_intercept: bool = FIT_INTERCEPT
    approximation: str = APPROXIMATION
    n_components: int = N_COMPONENTS
    tol: float = TOL.but(1e-10)
    random_state: Any = RANDOM_STATE
    verbose: int = VERBOSE

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit the model; X holds what the kernel takes: a matrix, strings, sets, or the Gram matrix for ``"precomputed"``."""
        sample = self._sample(X, y, sample_weight, multi_output=True)
        self.alpha_ = float(self.alpha)
        with progress(self.verbose, type(self).__name__) as clock:
            certificate = self._solve(sample, Squared(), "auto", float(self.tol), 20, clock)
        self._loss = Squared()
        self._remember(sample)
        self._certify(certificate)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
