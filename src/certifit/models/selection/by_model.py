"""Selection by what a fitted model finds important: the size of its coefficients, or its importances."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit._types import Array
from certifit.axes import drawn
from certifit.data.gate import check_xy
from certifit.models.linear.path.lasso_cv import LassoCV
from certifit.models.selection.selector import Selector
from certifit.parameters import Choice, Either, Fitted, Integer, Learner, Nothing, Parameter, Real, check_parameters

__all__ = ["ESTIMATOR", "SelectFromModel", "importance_of", "weighs"]


ESTIMATOR = Parameter(
    None,
    Either(Nothing(), Learner(methods=("predict", "transform"), example="Lasso()")),
    "What is fitted: a copy of it. None is `LassoCV`.",
)


class SelectFromModel(Selector, BaseEstimator):
    """Keep the columns that a model finds important.

    The importance of a column is `feature_importances_`, or the size of its coefficients (of several scores, the root of the
    sum of their squares). Coefficients compare columns only in like units: scale them first.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import Lasso, SelectFromModel
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> SelectFromModel(Lasso(alpha=0.3)).fit(X, X[:, 1] - X[:, 4]).get_support(indices=True)
    array([1, 4])
    """

    estimator: Any = ESTIMATOR
    threshold: Any = Parameter(
        None,
        Either(Choice("mean", "median"), Real(0), Nothing()),
        "Least importance of a column that is kept: a number, the mean or the median of all; None keeps what is not zero.",
    )
    n_features: int | None = Parameter(
        None, Either(Integer(1), Nothing()), "Most columns to keep: the most important ones."
    )

    estimator_: Any = Fitted("estimator", "The fitted copy.")
    importances_: Array = Fitted("array of shape (n_features,)", "Importance of each column.")
    threshold_: float = Fitted("float", "Least importance of a column that is kept.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model, and keep what it finds important."""
        check_parameters(self)
        model = self._model()
        numbers = not is_classifier(model)
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, numeric_target=numbers)
        options = {"sample_weight": weight} if weighs(model, weight) else {}
        self.estimator_ = clone(model).fit(X, y, **options)
        self.importances_ = importance_of(self.estimator_)
        rule = self.threshold
        if isinstance(rule, str):
            middle = np.mean(self.importances_) if rule == "mean" else np.median(self.importances_)
            self.threshold_ = float(middle)
        else:
            self.threshold_ = float(rule or 0.0)
        kept = self.importances_ > 0 if rule is None else self.importances_ >= self.threshold_
        if self.n_features is not None:
            # Of equal importances, the first column.
            last = np.argsort(-self.importances_, kind="stable")[self.n_features :]
            kept[last] = False
        self.support_ = kept
        return self

    @drawn
    def plot(self, ax: Any = None) -> Any:
        """The importances in falling order, and the threshold."""
        check_is_fitted(self)
        threshold = self.threshold_ if self.threshold_ > 0 else np.inf  # what is not zero is kept: no line to draw
        return self._bars(ax, self.importances_, threshold, "columns, most important first", "importance")

    def _model(self) -> Any:
        return LassoCV() if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        inner = get_tags(self._model()).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, False
        return tags


def weighs(estimator: Any, weight: Array) -> bool:
    """Whether the weights are given to `fit`; refused where they differ and it does not take them."""
    if has_fit_parameter(estimator, "sample_weight"):
        return True
    if (weight != weight[0]).any():
        raise ValueError(f"sample_weight was given, but {type(estimator).__name__}.fit does not take it.")
    return False


def importance_of(model: Any) -> Array:
    """What a fitted model makes of each column, never negative."""
    if hasattr(model, "feature_importances_"):
        return np.abs(np.asarray(model.feature_importances_, dtype=np.float64))
    if hasattr(model, "coef_"):
        return np.sqrt((np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)) ** 2).sum(axis=0))
    raise ValueError(
        f"{type(model).__name__} has neither coef_ nor feature_importances_ after its fit: choose a model that has, "
        "such as Lasso or RandomForestClassifier."
    )
