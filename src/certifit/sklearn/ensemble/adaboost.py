"""AdaBoost under scikit-learn's names: SAMME, whose two-class case is AdaBoost itself, and AdaBoost.R2 for numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as theirs
from sklearn.base import BaseEstimator, clone
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import has_fit_parameter

from certifit._types import Array, is_sparse
from certifit.models.boosting import adaboost as ours
from certifit.models.boosting.adaboost_regressor import AdaBoostRegressor as OurRegressor
from certifit.sklearn.translation import By, Data, DropIn, Table, fresh, same
from certifit.sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

__all__ = ["AdaBoostClassifier", "AdaBoostRegressor"]


def _learner(value: Any, data: Data) -> Any:
    if value is None:
        return DecisionTreeClassifier(max_depth=1)
    if not has_fit_parameter(value, "sample_weight"):
        raise ValueError(f"{type(value).__name__} doesn't support sample_weight.")
    return value


class _Unfolded(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A learner of rows that are arrays themselves: our models see their entries as columns, it sees their shape again."""

    def __init__(self, learner: Any, shape: tuple[int, ...]) -> None:
        self.learner, self.shape = learner, shape

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> _Unfolded:
        """Fit a copy of the learner."""
        weighted = {"sample_weight": sample_weight} if has_fit_parameter(self.learner, "sample_weight") else {}
        self.fitted_ = clone(self.learner).fit(X.reshape(-1, *self.shape), y, **weighted)
        return self

    def predict(self, X: Array) -> Array:
        """What it says."""
        return np.asarray(self.fitted_.predict(X.reshape(-1, *self.shape)))


class _AdaBoost(DropIn):
    """What both tell of their learners."""

    n_estimators: int

    def _learn(self, data: Data) -> Any:
        if data.sample_weight is not None:
            weight = np.asarray(data.sample_weight)
            if weight.shape in ((), (data.rows,)) and (weight < 0).any():
                raise ValueError("Negative values in data passed to `sample_weight`.")
        # Our trees take missing values; the inherited `predict` refuses them.
        X = data.X.tocsr() if is_sparse(data.X) else np.asarray(data.X)
        if is_sparse(X) or X.dtype != np.float64 or not np.isfinite(X).all():
            assert_all_finite(X, estimator_name=type(self).__name__, input_name="X")
        shape: tuple[int, ...] = tuple(getattr(data.X, "shape", ()))[1:]
        if len(shape) < 2:
            return super()._learn(data)
        settings = self._settings(data)
        settings["estimator"] = _Unfolded(settings["estimator"], shape)
        model = fresh(self._ours, **settings).fit(data.X.reshape(data.rows, -1), data.y, data.sample_weight)
        model.estimators_ = [learner.fitted_ for learner in model.estimators_]
        model.n_features_in_ = shape[0]
        return model

    def _members(self, model: Any, data: Data) -> dict[str, Any]:
        """The learners, their votes and their errors, as many as were asked for."""
        errors = np.asarray(model.estimator_errors_)
        weights = np.where(errors > 0, model.estimator_weights_, 1.0)  # a perfect learner has the vote 1 there
        rest = self.n_estimators - errors.shape[0]
        return {
            "estimators_": model.estimators_,
            "estimator_": self._table["estimator"].settings("estimator", self.estimator, data)["estimator"],
            "estimator_weights_": np.concatenate([weights, np.zeros(rest)]) if rest else weights,
            "estimator_errors_": np.concatenate([errors, np.ones(rest)]) if rest else errors,
        }

    estimator: Any


class AdaBoostClassifier(_AdaBoost, theirs.AdaBoostClassifier):
    """Learners under weights that grow where the ones before erred; each votes by the logarithm of its odds."""

    _ours = ours.AdaBoostClassifier
    _table: ClassVar[Table] = {
        "estimator": By(_learner, "the same; a stump by default"),
        **same("n_estimators", "learning_rate", "random_state"),
    }
    _always: ClassVar[Mapping[str, Any]] = {"algorithm": "samme"}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        K = model.classes_.shape[0]
        if K > 1 and model.estimator_errors_[0] >= 1 - 1 / K:
            raise ValueError(
                "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble can not be fit."
            )
        return {"classes_": model.classes_, "n_classes_": K, **self._members(model, data)}


class AdaBoostRegressor(_AdaBoost, theirs.AdaBoostRegressor):
    """The weighted median of learners on rows that are drawn more often where the ones before erred."""

    _ours = OurRegressor
    _table: ClassVar[Table] = {
        "estimator": By(
            lambda value, data: DecisionTreeRegressor(max_depth=3) if value is None else value,
            "the same; a tree of three levels by default",
        ),
        **same("n_estimators", "learning_rate", "loss", "random_state"),
    }
    _always: ClassVar[Mapping[str, Any]] = {"bootstrap": True}

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        return self._members(model, data)
