"""AdaBoost under scikit-learn's name: SAMME, whose two-class case is AdaBoost itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as theirs
from sklearn.utils.validation import has_fit_parameter

from certifit.models.boosting import adaboost as ours
from certifit.sklearn.translation import By, Data, DropIn, Same, Table
from certifit.sklearn.tree import DecisionTreeClassifier

__all__ = ["AdaBoostClassifier"]


def _learner(value: Any, data: Data) -> Any:
    if value is None:
        return DecisionTreeClassifier(max_depth=1)
    if not has_fit_parameter(value, "sample_weight"):
        raise ValueError(f"{type(value).__name__} doesn't support sample_weight.")
    return value


class AdaBoostClassifier(DropIn, theirs.AdaBoostClassifier):
    """Learners under weights that grow where the ones before erred; each votes by the logarithm of its odds."""

    _ours = ours.AdaBoostClassifier
    _table: ClassVar[Table] = {
        "estimator": By(_learner, "the same; a stump by default"),
        "n_estimators": Same(),
        "learning_rate": Same(),
        "random_state": Same(),
    }
    _always: ClassVar[Mapping[str, Any]] = {"algorithm": "samme"}

    def _learn(self, data: Data) -> Any:
        weight = np.asarray(0.0 if data.sample_weight is None else data.sample_weight)
        if weight.shape in ((), (data.rows,)) and (weight < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`.")
        return super()._learn(data)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        errors = np.asarray(model.estimator_errors_)
        K = model.classes_.shape[0]
        if K > 1 and errors[0] >= 1 - 1 / K:
            raise ValueError(
                "BaseClassifier in AdaBoostClassifier ensemble is worse than random, ensemble can not be fit."
            )
        weights = np.where(errors > 0, model.estimator_weights_, 1.0)  # a perfect learner has the vote 1 there
        rest = self.n_estimators - errors.shape[0]
        return {
            "classes_": model.classes_,
            "n_classes_": K,
            "estimators_": model.estimators_,
            "estimator_": _learner(self.estimator, data),
            "estimator_weights_": np.concatenate([weights, np.zeros(rest)]),
            "estimator_errors_": np.concatenate([errors, np.ones(rest)]),
        }
