"""Fits that are linear in the target: hat matrix, leverage, and the bias and variance they stand for.

    ŷ(z) = Σ_i S_zi y_i      for least squares and ridge, whatever y is

so that with y = f(x) + noise of variance σ² the error of ŷ(z) has the parts

    bias(z) = Σ_i S_zi f(x_i) − f(z),        variance(z) = σ² Σ_i S_zi²/s_i     (a row of weight s is s rows)

which are exact: no simulation, no other data. Without penalty the bias is zero where f is linear, and the mean variance over the
training rows is σ²·rank/n; a penalty trades the one for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from certifit._types import Array, Matrix
from certifit.data.gate import check_real, check_sample_weight
from certifit.evaluation.losses.numbers.squared import Squared
from certifit.names import stored
from certifit.optimization.closed_form.hat import hat_matrix, leverage
from certifit.optimization.closed_form.least_squares import normal_inverse

__all__ = ["BiasVariance", "LinearInTarget"]


@stored("BiasVariance")
class BiasVariance(NamedTuple):
    """The two parts of the expected squared error of predictions, beside the noise of y itself."""

    bias: Array
    """Expected prediction minus the truth, of each row."""
    variance: Array
    """Variance of the prediction over the noise of the training targets, of each row."""


class LinearInTarget:
    """`hat_matrix`, `leverage` and `bias_variance` for estimators of the squared loss with a quadratic penalty.

    A model with such a penalty overrides `_quadratic_penalty`.
    """

    def hat_matrix(self, X: Any, sample_weight: Any = None) -> Array:
        """The n×n matrix that maps the training targets to the fitted values; X is the training data."""
        rows, weight = self._training(X, sample_weight)
        return hat_matrix(rows, weight / weight.sum(), self._quadratic_penalty(rows.shape[1]), self._free())

    def leverage(self, X: Any, sample_weight: Any = None) -> Array:
        """Influence of each training target on its own fitted value; a repeated row counts as one copy."""
        rows, weight = self._training(X, sample_weight)
        p = weight / weight.sum()
        return leverage(rows, p, self._quadratic_penalty(rows.shape[1]), self._free()) / weight

    def bias_variance(
        self, truth: Callable[[Any], Any], noise: float, X: Any, Z: Any = None, sample_weight: Any = None
    ) -> BiasVariance:
        """Exact bias and variance of the predictions for rows Z of the model trained on X, if y = truth(X) + noise.

        Parameters
        ----------
        truth : callable
            The mean of y as a function of rows: ``lambda X: X @ v``.
        noise : float
            Standard deviation of y about it.
        X : array of shape (n_samples, n_features)
            The training data.
        Z : array of shape (m, n_features), optional
            Rows to predict; the training data by default.

        Returns
        -------
        BiasVariance
            Two arrays of shape (m,).
        """
        noise = float(check_real("noise", noise, low=0))
        Z = X if Z is None else Z
        rows, weight = self._training(X, sample_weight)
        new = cast(Any, self)._rows(Z)
        p, penalty = weight / weight.sum(), self._quadratic_penalty(rows.shape[1])
        found = normal_inverse(rows, p, penalty, self._free())
        center = found.mean if self._free() else np.zeros(rows.shape[1])
        dense, there = (np.asarray(M.todense() if hasattr(M, "todense") else M, dtype=np.float64) for M in (rows, new))
        smoother = (there - center) @ found.matrix @ (dense - center).T * p + (p if self._free() else 0.0)
        means, wanted = (np.asarray(truth(M), dtype=np.float64) for M in (X, Z))
        if means.shape != (rows.shape[0],) or wanted.shape != (new.shape[0],):
            raise ValueError(f"truth must give one number for each row; got shapes {means.shape} and {wanted.shape}.")
        return BiasVariance(smoother @ means - wanted, noise**2 * (smoother**2 / weight).sum(axis=1))

    def _training(self, X: Any, sample_weight: Any) -> tuple[Matrix, Array]:
        loss = getattr(getattr(self, "_inference", None), "loss", getattr(self, "_loss", None))
        if loss is not None and not isinstance(loss, Squared):
            raise ValueError(
                f"The hat matrix is defined for the squared loss, this model has {type(loss).__name__}: its "
                "fitted values are not linear in y."
            )
        rows = cast(Any, self)._rows(X)
        weight = check_sample_weight(sample_weight, rows.shape[0])
        if not (weight > 0).all():
            raise ValueError("Rows of weight zero took no part in the fit: leave them out of X.")
        return rows, weight

    def _free(self) -> bool:
        return bool(cast(Any, self).fit_intercept)

    def _quadratic_penalty(self, d: int) -> Array:
        """Strength of the quadratic penalty of each coefficient."""
        return np.zeros(d)
