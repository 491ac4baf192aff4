"""Additive models F = Σ v_m h_m that grow by one term at a time: what AdaBoost and forward stagewise modeling share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from certifit._types import Array
from certifit.base import CertifiedEstimator, CopiesMixin
from certifit.models.tree.coding import TakesCategories
from certifit.parameters import RANDOM_STATE, Either, Learner, Nothing, Parameter, check_parameters

__all__ = ["ESTIMATOR", "LEAST_ERROR", "SEED", "Additive"]

ESTIMATOR = Parameter(None, Either(Learner(), Nothing()), "The learner; a stump (a tree with one split) if not given.")
SEED = RANDOM_STATE.but(text="Seed of the learners.")
LEAST_ERROR = 1e-10
"""A perfect learner would get an infinite coefficient; it gets the one of this error."""


class Additive(TakesCategories, CopiesMixin, MetaEstimatorMixin, CertifiedEstimator):
    """A sum of learners, fitted one after the other under weights: reading rows and making fresh learners."""

    _formats = ("csr", "csc")

    def _read_rows(
        self, X: Any, y: Any, sample_weight: Any, numeric: bool, weighted: bool = True
    ) -> tuple[Any, Array, Array]:
        """The rows of a fit; `weighted` learners must take weights."""
        check_parameters(self)
        if weighted and not has_fit_parameter(self._inner(), "sample_weight"):
            raise ValueError(
                f"estimator must take sample_weight in fit, because boosting reweights the rows; "
                f"{type(self._inner()).__name__} does not. Wrap it, or use bagging."
            )
        return self._read_rows_and_target(X, y, sample_weight, numeric=numeric)

    def _read_classes(self, y: Array) -> Array:
        check_classification_targets(y)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("Input y contains NaN or infinity: the class of every training row must be known.")
        self.classes_, labels = np.unique(y, return_inverse=True)
        return labels

    def _fresh(self, rng: Any) -> Any:
        model = self._told(clone(self._inner()))
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=rng.randint(0, 2**31 - 1))
        return model
