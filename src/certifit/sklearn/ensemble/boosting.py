"""Histogram gradient boosting under scikit-learn's names: the same losses, bins, growth by gain, and leaf values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as theirs
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.evaluation.losses import Gamma, Poisson, Quantile
from certifit.models.boosting import model as ours
from certifit.sklearn.asking import AsksForClasses, AsksForStages, AsksForValues
from certifit.sklearn.translation import By, Data, DropIn, Instead, Row, Same, Table, fresh
from certifit.sklearn.tree.model import class_weight

__all__ = ["HistGradientBoostingClassifier", "HistGradientBoostingRegressor"]

WANTED = {"gamma": "strictly positive y", "poisson": "non-negative y and sum(y) > 0"}
LOSSES = {"squared_error": "squared", "absolute_error": "absolute", "log_loss": "logistic"}


def _loss(value: Any, data: Data) -> Any:
    if value == "quantile":
        return Quantile(float(data.estimator.quantile))
    return {"poisson": Poisson(), "gamma": Gamma()}.get(value, LOSSES.get(value, value))


def _categorical(value: Any, data: Data) -> Any:
    """Categories by the type of the column are what ours calls auto."""
    return "auto" if isinstance(value, str) else value


def _interactions(value: Any, data: Data) -> Any:
    if value == "no_interactions":
        return "none"
    return value if value is None or isinstance(value, str) else [list(group) for group in value]


ROWS: dict[str, Row] = {
    "loss": By(_loss, "the same under our name"),
    "learning_rate": Same(),
    "max_iter": Same("n_estimators"),
    "max_leaf_nodes": Same("max_leaves"),
    "max_depth": Same(),
    "min_samples_leaf": Same(),
    "l2_regularization": Same("l2"),
    "max_features": By(lambda value, data: float(value), "drawn for each tree, not for each node", "colsample"),
    "max_bins": Same(),
    "categorical_features": By(_categorical, "the same", "categorical"),
    "monotonic_cst": Same("monotone"),
    "interaction_cst": By(_interactions, "the same", "interactions"),
    "warm_start": Same(),
    "early_stopping": Same(),
    "scoring": Instead(("loss",), "early stopping looks at the loss of the rows set aside"),
    "validation_fraction": By(lambda value, data: value or 0.1, "the same share of the rows"),
    "n_iter_no_change": Same(),
    "tol": Same(),
    "verbose": By(lambda value, data: int(bool(value)), "a progress bar"),
    "random_state": Same(),
}


class _Boosting(AsksForStages, DropIn):
    """What boosting for classes and for numbers shares."""

    warm_start: bool
    loss: Any
    categorical_features: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **validation: Any) -> Any:
        """As `DropIn.fit`; rows for validation are set aside by the model itself."""
        if any(value is not None for value in validation.values()):
            raise NotImplementedError("Rows for validation of your own are not offered: use early_stopping=True.")
        return super().fit(X, y, sample_weight)

    def _learn(self, data: Data) -> Any:
        settings = self._settings(data)
        more = self.warm_start and "model_" in vars(self)
        model = self.model_.set_params(**settings) if more else fresh(self._ours, **settings)
        try:
            return model.fit(data.X, data.y, data.sample_weight)
        except ValueError as error:
            if not str(error).startswith("y must be"):
                raise
            raise ValueError(f"loss={self.loss!r} requires {WANTED[self.loss]}. {error}") from error

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        held = model.validation_loss_
        found: dict[str, Any] = {
            "n_trees_per_iteration_": len(model.start_),
            "do_early_stopping_": held is not None,
            "validation_score_": -np.asarray(held if held is not None else []),
            "train_score_": np.empty(0),
            "is_categorical_": self._mask(model),
        }
        return found | ({"classes_": model.classes_} if hasattr(model, "classes_") else {})

    def _mask(self, model: Any) -> Array | None:
        """Which columns are categories, where they were given; None where none is."""
        given = np.asarray(self.categorical_features if self.categorical_features is not None else [])
        if given.ndim == 0 or given.size == 0:
            return None
        if given.dtype.kind in "OU":
            mask = np.isin(model.feature_names_in_, given)
        else:
            mask = given.astype(bool) if given.dtype.kind == "b" else np.isin(np.arange(model.n_features_in_), given)
        return mask if mask.any() else None

    @property
    def n_iter_(self) -> int:
        """Stages kept."""
        check_is_fitted(self)
        return int(self.model_.n_iter_)


class HistGradientBoostingRegressor(_Boosting, AsksForValues, theirs.HistGradientBoostingRegressor):
    """Boosted trees for numbers."""

    _ours = ours.GradientBoostingRegressor
    _table: ClassVar[Table] = {**ROWS, "quantile": By(lambda value, data: {}, "of the quantile loss", None)}


class HistGradientBoostingClassifier(_Boosting, AsksForClasses, theirs.HistGradientBoostingClassifier):
    """Boosted trees for classes."""

    _ours = ours.GradientBoostingClassifier
    _table: ClassVar[Table] = {**ROWS, "class_weight": By(class_weight, "the same")}

    def decision_function(self, X: Any) -> Array:
        """Raw scores before the link to probabilities."""
        check_is_fitted(self)
        return self.model_.decision_function(X)

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """`predict_proba` after each stage."""
        check_is_fitted(self)
        yield from self.model_.staged_predict_proba(X)

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """`decision_function` after each stage."""
        check_is_fitted(self)
        for scores in self.model_._staged_scores(X):
            yield scores[:, 0] if scores.shape[1] == 1 else scores
