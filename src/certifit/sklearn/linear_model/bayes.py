"""Bayesian linear regression under scikit-learn's names.

Theirs `alpha_` is the precision of the noise and `lambda_` that of the prior. Both maximize the evidence; theirs with a nearly
flat prior on the precisions, and without counting the intercept among what the rows determine, so that precisions differ by
about one part in the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.linear_model as theirs
from sklearn.utils.validation import check_is_fitted

from certifit.models.bayes.regression import BayesianLinearRegression
from certifit.sklearn.linear_model.rows import COPY_X, linear
from certifit.sklearn.translation import Data, DropIn, Free, Instead, Of, Only, Row, Same, Table

__all__ = ["ARDRegression", "BayesianRidge"]

FLAT = Instead((1e-6, 0.0, 0), "the priors of the precisions are flat here")
ROWS: dict[str, Row] = {
    "max_iter": Same(),
    "tol": Of(lambda tol, data: float(tol) ** 2, "its square, of the relative change of the precisions"),
    "alpha_1": FLAT,
    "alpha_2": FLAT,
    "lambda_1": FLAT,
    "lambda_2": FLAT,
    "compute_score": Only((False,), "the evidence of every step is not kept; `model_.log_evidence_` is the last"),
    "fit_intercept": Same(),
    "copy_X": COPY_X,
    "verbose": Free("there is little to tell"),
}


class _Evidence(DropIn):
    """The posterior of the coefficients."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of the predictive distribution, and its standard deviation on request.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation too.

        Returns
        -------
        array of shape (n_samples,), or two of them
        """
        check_is_fitted(self)
        return self.model_.predict(X, return_std=return_std)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return {
            **linear(model),
            "alpha_": 1.0 / model.noise_,
            "lambda_": model.alpha_,
            "sigma_": model.covariance_,
            "n_iter_": int(model.n_iter_),
            "X_offset_": model._center,
            "X_scale_": np.ones_like(model._center),
        }


class BayesianRidge(_Evidence, theirs.BayesianRidge):
    """One precision for all coefficients."""

    _ours = BayesianLinearRegression
    _table: ClassVar[Table] = {
        **ROWS,
        "alpha_init": Free("where the search starts"),
        "lambda_init": Free("where the search starts"),
    }


class ARDRegression(_Evidence, theirs.ARDRegression):
    """A precision for each coefficient."""

    _ours = BayesianLinearRegression
    _always: ClassVar[Mapping[str, Any]] = {"relevance": True}
    _table: ClassVar[Table] = {
        **ROWS,
        "threshold_lambda": Free("precisions may grow without bound, and their coefficients are zero then"),
    }

    def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]  # the signature is scikit-learn's
        """As `DropIn.fit`, without weights."""
        return super().fit(X, y)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        kept = np.isfinite(model.alpha_)
        return {**super()._fitted(model, data), "sigma_": model.covariance_[np.ix_(kept, kept)]}
