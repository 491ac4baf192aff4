"""Decision trees under scikit-learn's names.

The same impurities, the same stopping rules, the same pruning. Among splits of equal value ours takes the lowest feature and
threshold, scikit-learn's one at random.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from types import NoneType
from typing import Any, ClassVar

import numpy as np
import sklearn.tree as theirs
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, is_sparse
from certifit.models.tree import model as ours
from certifit.sklearn.translation import By, Data, DropIn, Of, Row, Same, Table, fresh, same
from certifit.sklearn.translation.asking import AsksForClasses, AsksForValues
from certifit.sklearn.tree.view import TreeView

__all__ = [
    "CRITERIA",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "check_poisson",
    "classes_of",
    "features_tried",
    "one_column",
    "tree_rows",
]

CRITERIA = {"log_loss": "entropy", "squared_error": "squared", "absolute_error": "absolute", "friedman_mse": "squared"}
NEVER_BINDS = 1e-300


def criterion(value: Any, data: Data) -> Any:
    """Our name of an impurity; Friedman's score is that of the squared error but for the order of splits."""
    return CRITERIA.get(value, value)


def _least(never: int) -> Any:
    def rule(value: Any, data: Data) -> float:
        """A share of the rows, or a number of them. Ours counts by weight: one row alone never binds."""
        if isinstance(value, (float, np.floating)):
            value = max(never, ceil(value * data.rows))
        return NEVER_BINDS if value <= never and data.sample_weight is not None else float(value)

    return rule


def _least_share(value: Any, data: Data) -> float:
    """Of rows that all count one, the share of the fewest rows that make it up: scikit-learn compares without tolerance."""
    share = float(value)
    weighted = [getattr(data.estimator, name, None) is not None for name in ("class_weight", "max_samples")]
    if data.sample_weight is not None or any(weighted) or not data.rows:
        return share
    return min(ceil(share * data.rows) / data.rows, 0.5)  # half of the rows and more leave nothing to split


def class_weight(value: Any, data: Data) -> Any:
    """Weights of the classes that are there; of several targets, of each."""
    if value is None or isinstance(value, str):
        return value
    columns = np.asarray(data.y).reshape(data.rows, -1).T
    if isinstance(value, list) and columns.shape[0] > 1:
        if len(value) != columns.shape[0]:
            raise ValueError("For multi-output, number of elements in class_weight should match number of outputs.")
        return [_there(each, column) for each, column in zip(value, columns, strict=True)]
    if isinstance(value, dict) and columns.shape[0] > 1:
        raise ValueError("For multi-output, class_weight should be a list of dicts, or the string 'balanced'.")
    return _there(value, columns)


def _there(value: Any, y: Array) -> Any:
    if not isinstance(value, dict):
        return value
    there = set(np.ravel(y).tolist())
    return {label: factor for label, factor in value.items() if label in there}


def one_column(y: Any) -> Any:
    """A target of one column as a vector; others as they are."""
    shape = y.shape if isinstance(y, np.ndarray) else np.shape(y)
    return np.ravel(y) if len(shape) == 2 and shape[1] == 1 else y


def tree_rows(*, classes: bool, splitter: bool = True) -> dict[str, Row]:
    """The table of everything that grows trees, in scikit-learn's words."""
    rows: dict[str, Row] = {
        "criterion": Of(criterion, "the same impurity under our name; friedman_mse is squared_error"),
        "max_depth": Same(),
        "min_samples_split": By(_least(2), "the same; with sample_weight, rows are counted by weight"),
        "min_samples_leaf": By(_least(1), "the same; with sample_weight, rows are counted by weight"),
        "min_weight_fraction_leaf": By(_least_share, "the same"),
        **same("max_features", "random_state", "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha"),
        "monotonic_cst": Same("monotone_constraints"),
    }
    if splitter:
        rows["splitter"] = Same("thresholds")
    if classes:
        rows["class_weight"] = By(class_weight, "the same", blind=(NoneType, str))
    return rows


def check_poisson(criterion: Any, y: Any, sign: str = "positive") -> None:
    """Refuse targets that are no counts, in scikit-learn's words, which differ in `sign`, and before X is looked at."""
    if criterion != "poisson" or not np.size(y):
        return
    if np.min(y) < 0:
        raise ValueError("Some value(s) of y are negative which is not allowed for Poisson regression.")
    if np.sum(y) <= 0:
        raise ValueError(f"Sum of y is not {sign} which is necessary for Poisson regression.")


def features_tried(value: Any, columns: int) -> int:
    """How many features a node tries."""
    if value is None:
        return columns
    if isinstance(value, str):
        return max(1, int(np.sqrt(columns) if value == "sqrt" else np.log2(columns)))
    return int(value) if not isinstance(value, (float, np.floating)) else max(1, int(value * columns))


def classes_of(model: Any) -> dict[str, Any]:
    """`classes_` and `n_classes_` of a model of classes; of several targets, of each."""
    if "classes_" not in vars(model):
        return {}
    counts = model._class_counts.astype(np.intp)
    return {"classes_": model.classes_, "n_classes_": counts if model.n_outputs_ > 1 else int(counts[0])}


class _Tree(DropIn):
    """What trees of classes and of numbers share."""

    criterion: str
    max_features: Any
    model_: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """As `DropIn.fit`; `check_input` is scikit-learn's, and the input is checked in any case."""
        return super().fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, **_: Any) -> Any:
        """What scikit-learn's own ensembles call, where they stand on a tree that is replaced."""
        return super().fit(X, y, sample_weight)

    def _learn(self, data: Data) -> Any:
        if is_sparse(data.y):
            raise TypeError("A sparse y is not supported: pass y.toarray().")
        if isinstance(data.sample_weight, np.ndarray) and not data.sample_weight.ndim:
            found = repr(data.sample_weight.astype(np.float64))
            raise TypeError(
                f"Input should have at least 1 dimension i.e. satisfy `len(x.shape) > 0`, got scalar `{found}` instead."
            )
        check_poisson(self.criterion, data.y)
        return super()._learn(Data(self, data.X, one_column(data.y), data.sample_weight))

    def _fitted(self, model: Any, data: Data) -> Mapping[str, Any]:
        self.__dict__.pop("_view", None)
        self._counted = self._rows_of_nodes(model, data)
        tried = features_tried(self.max_features, model.n_features_in_)
        return {"n_outputs_": model.n_outputs_, "max_features_": tried, **classes_of(model)}

    def _rows_of_nodes(self, model: Any, data: Data) -> Array | None:
        """How many rows of positive weight pass through each node, where that is not the weight of the node."""
        if data.X is None or (data.sample_weight is None and getattr(self, "class_weight", None) is None):
            return None
        weight = np.broadcast_to(1.0 if data.sample_weight is None else np.asarray(data.sample_weight), (data.rows,))
        visits = model.decision_path(data.X)
        return np.asarray(visits[np.flatnonzero(weight > 0)].sum(axis=0)).ravel()

    @property
    def tree_(self) -> TreeView:
        """The nodes."""
        if "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no tree_ before it is fitted.")
        if "_view" not in vars(self):
            self._view = TreeView(self.model_._tree, self.model_, vars(self).get("_counted"))
        return self._view

    def apply(self, X: Any, check_input: bool = True) -> Array:
        """Number of the leaf of each row in `tree_`."""
        check_is_fitted(self)
        return self.tree_.apply(X)

    def decision_path(self, X: Any, check_input: bool = True) -> Any:
        """Which nodes of `tree_` each row visits, a sparse matrix."""
        check_is_fitted(self)
        return self.tree_.decision_path(X)

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Prices at which the best pruning changes, and the impurity of its leaves.

        Parameters
        ----------
        X, y, sample_weight : arrays
            Rows, target and weights.

        Returns
        -------
        Bunch
            With `ccp_alphas` and `impurities`.
        """
        data = Data(self, X, y, sample_weight)
        grown = fresh(self._ours, **{**self._settings(data), "ccp_alpha": 0.0}).fit(X, y, sample_weight)
        path = grown.cost_complexity_path()
        return Bunch(ccp_alphas=path.alphas, impurities=path.risks)


class DecisionTreeClassifier(_Tree, AsksForClasses, theirs.DecisionTreeClassifier):
    """A tree of questions about single features, for classes."""

    _ours = ours.DecisionTreeClassifier
    _table: ClassVar[Table] = tree_rows(classes=True)


class DecisionTreeRegressor(_Tree, AsksForValues, theirs.DecisionTreeRegressor):
    """A tree of questions about single features, for numbers."""

    _ours = ours.DecisionTreeRegressor
    _table: ClassVar[Table] = tree_rows(classes=False)


class ExtraTreeClassifier(DecisionTreeClassifier, theirs.ExtraTreeClassifier):
    """A tree for classes whose thresholds are drawn, and the features of its nodes too."""


class ExtraTreeRegressor(DecisionTreeRegressor, theirs.ExtraTreeRegressor):
    """A tree for numbers whose thresholds are drawn."""
