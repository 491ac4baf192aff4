"""Decision trees: greedy growth, cost-complexity pruning, rules and pictures.

A tree cuts the space of features into boxes and predicts a constant in each. Growth is greedy: every node
takes the split that decreases the weighted impurity most (Breiman, Friedman, Olshen, Stone 1984); pruning is
exact over all subtrees of the grown tree.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from certifit._types import Array
from certifit.models.tree.base import BaseTree
from certifit.models.tree.outputs import OfClasses, OfNumbers, labels_of
from certifit.models.tree.parameters import OF_CLASSES, OF_NUMBERS, OF_TARGETS
from certifit.models.tree.rows import read_classes, read_numbers
from certifit.models.tree.targets import class_factors, target_of_classes, target_of_numbers

__all__ = ["BaseTree", "DecisionTreeClassifier", "DecisionTreeRegressor"]


class DecisionTreeClassifier(OfClasses, BaseTree):
    """Decision tree for classes.

    Grows by the split with the largest decrease of the weighted impurity of the classes in a node, p their
    shares: gini 1 − Σ p², entropy −Σ p log2 p, misclassification 1 − max p. Near ties go to the lowest
    feature, then to the lowest threshold, whatever the order of the rows. y may have several columns, each a
    target of its own: the impurity is then the mean of theirs.

    Attributes
    ----------
    classes_ : array
        Labels; of several targets, a list of arrays.

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

    criterion: str = OF_CLASSES
    _: KW_ONLY
    class_weight: Any = OF_TARGETS

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionTreeClassifier:
        """Grow the tree."""
        rows = read_classes(self, X, y, sample_weight)
        factors = class_factors(self.class_weight, self.classes_, rows.y, rows.weight)
        self._grow(rows, lambda: target_of_classes(self.criterion, rows.y, factors, rows.weight, 0))
        return self

    def predict(self, X: Any) -> Array:
        """The most frequent class in the leaf of each row; of several targets a column each."""
        leaves = self.apply(X)
        return np.asarray(labels_of(self._tree.values, self.classes_)[leaves])


class DecisionTreeRegressor(OfNumbers, BaseTree):
    """Decision tree for numbers.

    Grows by the split with the largest decrease of the weighted impurity of the targets in a node: their
    variance (squared), their mean distance from the median (absolute), or the mean of y ln(y / mean)
    (poisson, half of the deviance). Near ties go to the lowest feature, then to the lowest threshold,
    whatever the order of the rows. y may have several columns, each a target of its own: the impurity is then the
    mean of theirs.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeRegressor
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> tree = DecisionTreeRegressor(max_depth=1).fit(X, [1.0, 1.0, 5.0, 6.0])
    >>> tree.predict([[1.5], [9.0]])
    array([1. , 5.5])
    """

    criterion: str = OF_NUMBERS

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionTreeRegressor:
        """Grow the tree."""
        rows = read_numbers(self, X, y, sample_weight)
        self._grow(rows, lambda: target_of_numbers(self.criterion, rows.y, rows.weight, 0))
        return self
