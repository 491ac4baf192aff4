"""Decision trees: greedy growth, cost-complexity pruning, rules and pictures.

A tree cuts the space of features into boxes and predicts a constant in each. Growth is greedy: every node
takes the split that decreases the weighted impurity most (Breiman, Friedman, Olshen, Stone 1984); pruning is
exact over all subtrees of the grown tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from certifit._types import Array
from certifit.data.gate import check_choice, like_input
from certifit.data.targets import class_weights
from certifit.models.tree.base import ATTRIBUTES, CLASS_WEIGHT, COLUMNS, FEATURES, STOPPING, THREADS, BaseTree
from certifit.models.tree.rows import read_classes, read_numbers
from certifit.models.tree.targets import target_of_classes, target_of_numbers

__all__ = ["BaseTree", "DecisionTreeClassifier", "DecisionTreeRegressor"]

PRICE = """
    ccp_alpha : float, default=0.0
        Price of a leaf: with a positive one the grown tree is pruned to the subtree of least mean impurity +
        ccp_alpha · leaves."""


class DecisionTreeClassifier(ClassifierMixin, BaseTree):  # noqa: D101 - the text is put together below
    __doc__ = f"""Decision tree for classes.

    Grows by the split with the largest decrease of the weighted impurity of the classes in a node, p their
    shares: gini 1 − Σ p², entropy −Σ p log2 p, misclassification 1 − max p. Near ties go to the lowest
    feature, then to the lowest threshold, whatever the order of the rows.

    Parameters
    ----------
    criterion : {{"gini", "entropy", "misclassification"}}, default="gini"
        Impurity.{STOPPING}{FEATURES}{PRICE}{CLASS_WEIGHT}{COLUMNS}{THREADS}
    Attributes
    ----------
    classes_ : array
        Labels.{ATTRIBUTES}
    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeClassifier
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> tree = DecisionTreeClassifier().fit(X, ["no", "no", "yes", "yes"])
    >>> print(tree.rules())
    x0 <= 2.5: no (2 rows, 100%)
    x0 > 2.5: yes (2 rows, 100%)
    """

    def __init__(
        self,
        criterion: str = "gini",
        *,
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaves: int | None = None,
        min_impurity_decrease: float = 0.0,
        max_features: Any = None,
        ccp_alpha: float = 0.0,
        class_weight: Any = None,
        categorical_features: Any = None,
        monotone_constraints: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaves = max_leaves
        self.min_impurity_decrease = min_impurity_decrease
        self.max_features = max_features
        self.ccp_alpha = ccp_alpha
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.monotone_constraints = monotone_constraints
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionTreeClassifier:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features; NaN is a missing value and goes, at every split, to the better side.
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice, a weight of 0 drops it.

        Returns
        -------
        self
        """
        check_choice("criterion", self.criterion, ("gini", "entropy", "misclassification"))
        rows = read_classes(self, X, y, sample_weight)
        if self.monotone_constraints is not None and self.classes_.shape[0] > 2:
            raise ValueError("monotone_constraints need two classes; y has more: remove the constraints.")
        shares = class_weights(self.class_weight, self.classes_, rows.y, rows.weight)
        self._grow(rows, target_of_classes(self.criterion, rows.y, shares, rows.weight, 0))
        return self

    def _truth(self, y: Array) -> Array:
        place = {label: k for k, label in enumerate(self.classes_.tolist())}
        return np.array([place.get(label, -1) for label in y.tolist()], dtype=np.float64)  # a new class is always wrong

    def predict_proba(self, X: Any) -> Array:
        """Shares of the classes in the leaf of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        table = self._table(X)
        return like_input(X, self._tree.predict(table, self._walk_threads(table)))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> Array:
        """The most frequent class in the leaf of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        leaves = self.apply(X)
        return np.asarray(self.classes_[np.argmax(self._tree.values, axis=1)[leaves]])


class DecisionTreeRegressor(RegressorMixin, BaseTree):  # noqa: D101 - the text is put together below
    __doc__ = f"""Decision tree for numbers.

    Grows by the split with the largest decrease of the weighted impurity of the targets in a node: their
    variance (squared), their mean distance from the median (absolute), or the mean of y ln(y / mean)
    (poisson, half of the deviance). Near ties go to the lowest feature, then to the lowest threshold,
    whatever the order of the rows.

    Parameters
    ----------
    criterion : {{"squared", "absolute", "poisson"}}, default="squared"
        Impurity. With "poisson" no leaf expects 0 unless all targets are 0.{STOPPING}{FEATURES}{PRICE}{COLUMNS}{THREADS}
    Attributes
    ----------{ATTRIBUTES}
    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeRegressor
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> tree = DecisionTreeRegressor(max_depth=1).fit(X, [1.0, 1.0, 5.0, 6.0])
    >>> tree.predict([[1.5], [9.0]])
    array([1. , 5.5])
    """

    def __init__(
        self,
        criterion: str = "squared",
        *,
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaves: int | None = None,
        min_impurity_decrease: float = 0.0,
        max_features: Any = None,
        ccp_alpha: float = 0.0,
        categorical_features: Any = None,
        monotone_constraints: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaves = max_leaves
        self.min_impurity_decrease = min_impurity_decrease
        self.max_features = max_features
        self.ccp_alpha = ccp_alpha
        self.categorical_features = categorical_features
        self.monotone_constraints = monotone_constraints
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionTreeRegressor:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Features; NaN is a missing value and goes, at every split, to the better side.
        y : array of shape (n_samples,)
            Target.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts a row twice, a weight of 0 drops it.

        Returns
        -------
        self
        """
        check_choice("criterion", self.criterion, ("squared", "absolute", "poisson"))
        rows = read_numbers(self, X, y, sample_weight)
        self._grow(rows, target_of_numbers(self.criterion, rows.y, rows.weight, 0))
        return self

    def predict(self, X: Any) -> Array:
        """Value of the leaf of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        table = self._table(X)
        return like_input(X, self._tree.predict(table, self._walk_threads(table))[:, 0])

    def _truth(self, y: Array) -> Array:
        return y.astype(np.float64)
