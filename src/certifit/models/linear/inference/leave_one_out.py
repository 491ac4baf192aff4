"""Leave-one-out in closed form: what a least squares fit would say about each row without that row.

With the hat matrix of the fit, ŷ = H y, the fit without row i misses it by

    y_i − ŷ_i⁽⁻ⁱ⁾ = (y_i − ŷ_i) / (1 − h_ii),

for any quadratic penalty that is the same beside the *sum* of the losses with and without the row. Here alpha is beside the mean,
so that the penalty of the fit on the rest is alpha·(Σs − 1): the fit that the formula starts from has that one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.data.gate import check_xy
from certifit.optimization.closed_form.hat import leverage

__all__ = ["LeaveOneOutMixin"]

DETERMINED = 1e-12  # a row with no more than this to spare determines its own fit


class LeaveOneOutMixin:
    """Leave-one-out predictions of least squares, with or without an L2 penalty."""

    def loo_predictions(self, X: Any, y: Any, sample_weight: Any = None) -> Array:
        """What the model says about each row when that row is left out: exactly what refitting without it would say.

        The model itself need not be fitted, and is not changed. Of a row with weight 2 one copy is left out.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        array of the shape of y
            For the rows of positive weight; infinite where a row determines its own fit.

        Examples
        --------
        >>> from certifit import LinearRegression
        >>> LinearRegression().loo_predictions([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0]).round(6)
        array([-2.,  2.,  2.])
        """
        if getattr(self, "positive", False):
            raise ValueError("positive=True leaves no closed form: use cross_validate(model, X, y, cv='loo').")
        twin: Any = clone(self)  # type: ignore[type-var]
        twin._check_parameters()
        X, y, weight = check_xy(twin, X, y, sample_weight=sample_weight, multi_output=True, min_samples=2)
        total, removed = float(weight.sum()), np.minimum(weight, 1.0)
        rest = max(total - float(weight @ removed) / total, 0.0)
        l2 = np.zeros(X.shape[1])
        if hasattr(twin, "alpha"):
            l2 = np.broadcast_to(np.asarray(twin.alpha, dtype=np.float64) * (rest / total), X.shape[1]).copy()
            twin.set_params(alpha=l2 if np.ndim(twin.alpha) else float(l2[0]), solver="auto")
        twin.set_params(tol=min(float(twin.tol), 1e-10), verbose=0)
        twin._fit_arrays(X, y, weight)
        residual = y - twin.predict(X)
        spare = 1.0 - removed / weight * leverage(X, weight / total, l2, bool(twin.fit_intercept))
        spare = spare.reshape(-1, *([1] * (y.ndim - 1)))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(y - np.where(spare > DETERMINED, residual / spare, np.inf))
