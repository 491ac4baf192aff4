"""Random forests and extremely randomized trees under scikit-learn's names.

The draws are of another stream: single trees differ, forests agree.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from types import NoneType
from typing import Any, ClassVar

import numpy as np
import sklearn.ensemble as theirs
from scipy.sparse import hstack
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.models.forest import model as ours
from certifit.models.tree.outputs import by_target, labels_of
from certifit.sklearn.translation import By, Data, DropIn, Free, Of, Only, Same, Table, fresh
from certifit.sklearn.translation.asking import AsksForClasses, AsksForValues
from certifit.sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from certifit.sklearn.tree.model import check_poisson, class_weight, classes_of, one_column, tree_rows

__all__ = ["ExtraTreesClassifier", "ExtraTreesRegressor", "RandomForestClassifier", "RandomForestRegressor"]


def _class_weight(value: Any, data: Data) -> Any:
    return "balanced" if value == "balanced_subsample" else class_weight(value, data)


def _draws(value: Any, data: Data) -> Any:
    """Not given, as many as rows, whatever they weigh; a share is one of the sum of the weights, and may exceed it."""
    if value is None:
        return data.rows if data.sample_weight is not None and data.estimator.bootstrap else None
    return max(1, int(value * data.total)) if isinstance(value, float) else value


ROWS: Table = {
    "n_estimators": Same(),
    **tree_rows(classes=False, splitter=False),
    "bootstrap": Same(),
    "oob_score": Of(lambda value, data: bool(value), "the same; a function judges what the rows out of bag were told"),
    "n_jobs": Same(),
    "verbose": Free("a forest grows in one native call"),
    "warm_start": Same(),
    "ccp_alpha": Only((0.0,), "our forests are not pruned"),
    "max_samples": By(_draws, "the same"),
}
CLASSES: Table = {
    **ROWS,
    "class_weight": By(_class_weight, 'the same; "balanced_subsample" is "balanced"', blind=(NoneType, str)),
}


class _Forest(DropIn):
    """What forests for classes and for numbers share."""

    n_estimators: int
    criterion: str
    bootstrap: bool
    max_samples: Any
    estimator_params: tuple[str, ...]
    oob_score: Any
    warm_start: bool
    _grew: bool
    """Whether the last fit grew trees."""
    _member: ClassVar[Any]

    def _learn(self, data: Data) -> Any:
        if is_sparse(data.y):
            raise ValueError("sparse multilabel-indicator for y is not supported.")
        check_poisson(self.criterion, data.y, "strictly positive")
        if not self.bootstrap and self.oob_score:
            raise ValueError("Out of bag estimation only available if bootstrap=True")
        if not self.bootstrap and self.max_samples is not None:
            raise ValueError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set `max_sample=None`."
            )
        more = self.warm_start and "model_" in vars(self)
        if more and self.model_._trees.n_trees == self.n_estimators:
            warnings.warn("Warm-start fitting without increasing n_estimators does not fit new trees.", stacklevel=4)
        self._grew = not more or self.model_._trees.n_trees != self.n_estimators
        if not self._grew and (not self.oob_score or "oob_score_" in vars(self)):
            return self.model_
        settings = self._settings(data)
        model = self.model_.set_params(**settings) if more else fresh(self._ours, **settings)
        return model.fit(data.X, one_column(data.y), data.sample_weight)

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        if not self._grew and (not self.oob_score or "oob_score_" in vars(self)):
            return {}
        self.__dict__.pop("_members", None)
        found: dict[str, Any] = {"n_outputs_": model.n_outputs_, **classes_of(model)}
        if self.oob_score:
            found |= self._out_of_bag(model, np.asarray(one_column(data.y)))
            told = np.asarray(found.get("oob_decision_function_", found.get("oob_prediction_")))
            if not np.isfinite(told).all():
                warnings.warn("Some inputs do not have OOB scores: too few trees were grown for them.", stacklevel=4)
        return found

    def _out_of_bag(self, model: Any, y: Array) -> dict[str, Any]:
        """The attributes that `oob_score` asks for."""
        raise TypeError(f"{type(self).__name__} must say what it keeps of the rows out of bag.")

    @property
    def feature_importances_(self) -> Array:
        """Share of each feature in the decrease of impurity."""
        check_is_fitted(self)
        return np.asarray(self.model_.feature_importances_)

    @property
    def estimators_(self) -> list[Any]:
        """The trees, each an estimator of its own."""
        if "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no estimators_ before it is fitted.")
        if "_members" not in vars(self):
            self._members = [self._tree_number(k) for k in range(self.model_._trees.n_trees)]
        return self._members

    @property
    def estimator_(self) -> Any:
        """A tree that is not fitted, as the forest would grow it."""
        return self._member()

    def _tree_number(self, k: int) -> Any:
        """One tree of the forest; it says numbers of classes."""
        forest = self.model_
        tree = forest._tree_number(k)
        if hasattr(forest, "classes_"):
            numbers = [np.arange(count, dtype=np.float64) for count in forest._class_counts]
            tree.classes_ = numbers if forest.n_outputs_ > 1 else numbers[0]
        shared = {name: getattr(self, name) for name in self.estimator_params} | {"random_state": tree.random_state}
        member = self._member(**{name: value for name, value in shared.items() if name in self._member._table})
        member.model_, member.n_features_in_ = tree, forest.n_features_in_
        for name, value in member._fitted(tree, Data(member, None)).items():
            setattr(member, name, value)
        return member

    @property
    def estimators_samples_(self) -> list[Array]:
        """Rows of each tree, as often as they were drawn."""
        check_is_fitted(self)
        return list(self.model_.estimators_samples_)

    def apply(self, X: Any) -> Array:
        """Number of the leaf of each row in each tree."""
        check_is_fitted(self)
        leaves = self.model_.apply(X)
        return np.stack([tree.tree_._place[leaves[:, k]] for k, tree in enumerate(self.estimators_)], axis=1)

    def decision_path(self, X: Any) -> tuple[Any, Array]:
        """Which nodes each row visits, all trees side by side, and where each tree begins."""
        check_is_fitted(self)
        paths = [tree.decision_path(X) for tree in self.estimators_]
        return hstack(paths).tocsr(), np.concatenate([[0], np.cumsum([path.shape[1] for path in paths])])


class _OfClasses(_Forest, AsksForClasses):
    """Forests for classes."""

    _ours = ours.RandomForestClassifier

    def _out_of_bag(self, model: Any, y: Array) -> dict[str, Any]:
        kind = type_of_target(y)
        if kind == "multiclass-multioutput":
            raise ValueError(
                f"The type of target cannot be used to compute OOB estimates. Got {kind} while only the following are supported: "
                "continuous, continuous-multioutput, binary, multiclass, multilabel-indicator."
            )
        several = model.n_outputs_ > 1
        shares = np.hstack(model.oob_decision_function_) if several else model.oob_decision_function_
        judge = self.oob_score if callable(self.oob_score) else accuracy_score
        seen = np.isfinite(shares).all(axis=1)
        score = judge(y[seen], labels_of(shares[seen], model.classes_))
        told = np.stack(by_target(shares, model.classes_), axis=2) if several else shares
        return {"oob_score_": score, "oob_decision_function_": told}


class _OfNumbers(_Forest, AsksForValues):
    """Forests for numbers."""

    _ours = ours.RandomForestRegressor

    def _out_of_bag(self, model: Any, y: Array) -> dict[str, Any]:
        told = model.oob_prediction_
        judge = self.oob_score if callable(self.oob_score) else r2_score
        seen = np.isfinite(told.reshape(told.shape[0], -1)).all(axis=1)
        return {"oob_score_": judge(y[seen], told[seen]), "oob_prediction_": told}


class RandomForestClassifier(_OfClasses, theirs.RandomForestClassifier):
    """The mean of trees that are grown on drawn rows and try drawn features."""

    _member = DecisionTreeClassifier
    _table: ClassVar[Table] = CLASSES


class RandomForestRegressor(_OfNumbers, theirs.RandomForestRegressor):
    """The mean of trees that are grown on drawn rows."""

    _member = DecisionTreeRegressor
    _table: ClassVar[Table] = ROWS


class ExtraTreesClassifier(_OfClasses, theirs.ExtraTreesClassifier):
    """The mean of trees that try drawn features, each at one drawn threshold."""

    _member = ExtraTreeClassifier
    _table: ClassVar[Table] = CLASSES
    _always: ClassVar[Mapping[str, Any]] = {"thresholds": "random"}


class ExtraTreesRegressor(_OfNumbers, theirs.ExtraTreesRegressor):
    """The mean of trees that split each feature at one drawn threshold."""

    _member = ExtraTreeRegressor
    _table: ClassVar[Table] = ROWS
    _always: ClassVar[Mapping[str, Any]] = {"thresholds": "random"}
