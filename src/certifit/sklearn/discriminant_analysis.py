"""``sklearn.discriminant_analysis``: classes as normal distributions, of one covariance or of one each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.discriminant_analysis as theirs
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.models.bayes.lda import LDA
from certifit.models.bayes.qda import QDA
from certifit.sklearn.asking import AsksForClasses
from certifit.sklearn.translation import By, Data, Free, Only, Row, Same, Table

__all__ = ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]

ROWS: dict[str, Row] = {
    "solver": Free("the same model by another decomposition"),
    "shrinkage": By(lambda value, data: "ledoit-wolf" if value == "auto" else value, '"auto" is Ledoit and Wolf\'s'),
    "priors": Same(),
    "store_covariance": Free("`covariance_` is kept where asked for; `model_` has it always"),
    "tol": Free("directions without variance are found by their rounding"),
    "covariance_estimator": Only((None,), "covariances are estimated by our own formulas"),
}


def _number(value: Any, data: Data) -> Any:
    if isinstance(value, str):
        raise NotImplementedError(
            "QuadraticDiscriminantAnalysis(shrinkage='auto') is not offered by certifit.sklearn: give a number in [0, 1]."
        )
    return value


class _Discriminant(AsksForClasses):
    """Scores are asked of our model."""

    priors: Any

    def _learn(self, data: Data) -> Any:
        try:
            return super()._learn(data)
        except ValueError as error:
            if str(error).startswith("n_components must be at most"):
                raise ValueError(
                    f"n_components cannot be larger than min(n_features, n_classes - 1). {error}"
                ) from error
            if str(error).startswith("priors must be") and (np.ravel(self.priors) < 0).any():
                raise ValueError(f"priors must be non-negative. {error}") from error
            raise

    def decision_function(self, X: Any) -> Array:
        """Logarithms of posteriors up to a constant; for two classes their difference."""
        check_is_fitted(self)
        return self.model_.decision_function(X)


class LinearDiscriminantAnalysis(_Discriminant, theirs.LinearDiscriminantAnalysis):
    """Normal classes of one covariance: a linear boundary, and at most K − 1 directions that tell classes apart."""

    _ours = LDA
    _table: ClassVar[Table] = {**ROWS, "n_components": Same()}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        names = [
            "classes_",
            "priors_",
            "means_",
            "xbar_",
            "scalings_",
            "coef_",
            "intercept_",
            "explained_variance_ratio_",
        ]
        names += ["covariance_"] if self.store_covariance or self.solver != "svd" else []
        return {name: getattr(model, name) for name in names if hasattr(model, name)}

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the directions.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{k}" for k in range(self.transform(self.means_).shape[1])], dtype=object)

    def transform(self, X: Any) -> Array:
        """Rows in the directions that tell classes apart.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self.model_.transform(X)


class QuadraticDiscriminantAnalysis(_Discriminant, theirs.QuadraticDiscriminantAnalysis):
    """Normal classes, each with a covariance of its own."""

    _ours = QDA
    _table: ClassVar[Table] = {
        **ROWS,
        "shrinkage": By(_number, "a number only"),
        "reg_param": Only((0.0,), "our regularization is shrinkage toward the mean variance"),
    }

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        names = ("classes_", "priors_", "means_", *(("covariance_",) if self.store_covariance else ()))
        return {name: getattr(model, name) for name in names}
