"""Random forests (Breiman 2001).

Each tree is grown on a bootstrap sample of the rows and tries a random subset of the features at every node;
the forest predicts the mean of its trees. The rows a tree did not draw (out of bag, OOB) test it without a
test set.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array
from certifit.data.gate import check_real
from certifit.evaluation.risk.risk import clopper_pearson
from certifit.models.forest.base import BaseForest, r_squared
from certifit.models.tree.model import DecisionTreeClassifier, DecisionTreeRegressor
from certifit.models.tree.outputs import OfClasses, OfNumbers, by_target, class_lists
from certifit.models.tree.parameters import MAX_FEATURES, OF_CLASSES, OF_NUMBERS, OF_TARGETS
from certifit.models.tree.rows import CodedRows, read_classes, read_numbers
from certifit.models.tree.targets import class_factors, counted, target_of_classes, target_of_numbers
from certifit.parameters import Flag, Parameter

__all__ = ["BaseForest", "RandomForestClassifier", "RandomForestRegressor"]


class RandomForestClassifier(OfClasses, BaseForest):
    """Random forest for classes.

    y may have several columns, each a target of its own: the impurity is then the mean of theirs.

    Attributes
    ----------
    classes_ : array
        Labels; of several targets, a list of arrays.
    estimators_ : list of DecisionTreeClassifier
        The trees.
    oob_score_ : float
        Out-of-bag accuracy (if `oob_score`); of several targets, the share of rows in which all are right.
    oob_interval_ : tuple of float
        95 % Clopper–Pearson interval of the out-of-bag error.
    oob_decision_function_ : array of shape (n_samples, n_classes)
        Out-of-bag probabilities; NaN where every tree drew the row. Of several targets, a list of such arrays.
    oob_curve_ : array of shape (n_estimators,)
        Out-of-bag error after each tree.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import RandomForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    >>> forest = RandomForestClassifier(oob_score=True, random_state=0).fit(X, y)
    >>> forest.oob_score_ > 0.85
    True
    """

    _: KW_ONLY
    criterion: str = OF_CLASSES
    max_features: Any = MAX_FEATURES.but("sqrt")
    class_weight: Any = OF_TARGETS

    _member = DecisionTreeClassifier

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RandomForestClassifier:
        """Grow the forest."""
        before = getattr(self, "classes_", None)
        rows = read_classes(self, X, y, sample_weight)
        if self.warm_start and before is not None and not _same_classes(before, self.classes_):
            raise ValueError("warm_start=True continues a forest: y must hold the same classes as before.")
        draws = self._draws(rows.weight)
        factors = class_factors(self.class_weight, self.classes_, rows.y, rows.weight)
        weight = np.ones_like(rows.weight) if draws else rows.weight
        target = target_of_classes(self.criterion, rows.y, factors, weight, draws)
        # A sample of rows that weigh nothing would say nothing: none of them is drawn.
        self._grow(rows, target, draws, rows.weight * counted(factors, rows.y))
        if self.oob_score:
            self._score_out_of_bag(rows)
        return self

    def _score_out_of_bag(self, rows: CodedRows) -> None:
        probability, counts = self._out_of_bag(rows)
        seen, parts = counts > 0, by_target(probability, self.classes_)
        said = np.stack([np.argmax(part[seen], axis=1) for part in parts], axis=1)
        wrong = (said != rows.truth[seen]).any(axis=1)
        weight = rows.weight[seen]
        error = float(weight @ wrong / weight.sum()) if seen.any() else float("nan")
        self.oob_decision_function_ = parts if self.n_outputs_ > 1 else probability
        self.oob_score_ = 1.0 - error
        # Weights count repetitions, but a repetition brings no new evidence: the interval counts distinct rows.
        self.oob_interval_ = clopper_pearson(error * seen.sum(), float(seen.sum())) if seen.any() else (0.0, 1.0)

    def _read_again(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        copy = RandomForestClassifier(categorical_features=self.categorical_features)
        rows = read_classes(copy, X, y, sample_weight)
        if not _same_classes(copy.classes_, self.classes_):
            raise ValueError("y holds other classes than in training: give the training rows.")
        return rows


def _same_classes(one: Any, other: Any) -> bool:
    pairs = class_lists(one), class_lists(other)
    return len(pairs[0]) == len(pairs[1]) and all(map(np.array_equal, *pairs))


class RandomForestRegressor(OfNumbers, BaseForest):
    """Random forest for numbers.

    y may have several columns, each a target of its own: the impurity is then the mean of theirs.

    Attributes
    ----------
    estimators_ : list of DecisionTreeRegressor
        The trees.
    oob_score_ : float
        Out-of-bag R² (if `oob_score`); of several targets, their mean.
    oob_prediction_ : array of shape (n_samples,) or (n_samples, n_outputs)
        Out-of-bag predictions; NaN where every tree drew the row.
    oob_curve_ : array of shape (n_estimators,)
        Out-of-bag mean squared error after each tree; of several targets, their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import RandomForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 3))
    >>> y = np.sin(6 * X[:, 0]) + 0.1 * rng.normal(size=500)
    >>> forest = RandomForestRegressor(oob_score=True, keep_targets=True, random_state=0).fit(X, y)
    >>> forest.oob_score_ > 0.9
    True
    >>> low, high = forest.predict_quantile(X[:1], [0.1, 0.9])[0]
    >>> bool(low < high)
    True
    """

    _: KW_ONLY
    criterion: str = OF_NUMBERS.but(text='Impurity; "absolute" always uses exact splits.')
    max_features: Any = MAX_FEATURES.but(1.0)
    keep_targets: bool = Parameter(
        False,
        Flag(),
        "Whether to keep the training targets of every leaf, which `predict_quantile` needs; for one target.",
    )

    _member = DecisionTreeRegressor

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RandomForestRegressor:
        """Grow the forest."""
        rows = read_numbers(self, X, y, sample_weight)
        if self.keep_targets and self.n_outputs_ > 1:
            raise ValueError("keep_targets=True is for one target, and y has several: grow a forest for each.")
        draws = self._draws(rows.weight)
        weight = np.ones_like(rows.weight) if draws else rows.weight
        self._grow(rows, target_of_numbers(self.criterion, rows.y, weight, draws), draws, rows.weight)
        if self.oob_score:
            mean, counts = self._out_of_bag(rows)
            self.oob_prediction_ = mean if self.n_outputs_ > 1 else mean[:, 0]
            self.oob_score_ = r_squared(rows.truth, mean, rows.weight, counts > 0)
        if self.keep_targets:
            self._keep(rows)
        return self

    def _keep(self, rows: CodedRows) -> None:
        """Rows of every leaf: `_held[_first[leaf]:_first[leaf + 1]]`, in the order of their targets."""
        table = self._coded_again(rows.X)
        leaf = self._trees.apply(table, self._threads(table)) + self._trees.start[:-1]
        order = np.argsort(rows.y, kind="stable")
        flat = leaf[order].ravel()  # targets rise within every leaf
        by_leaf = np.argsort(flat, kind="stable")
        self._held = (by_leaf // leaf.shape[1]).astype(np.int32)
        self._first = np.searchsorted(flat[by_leaf], np.arange(int(self._trees.start[-1]) + 1))
        self._targets, self._target_weights = rows.y[order], rows.weight[order]

    def _read_again(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        return read_numbers(RandomForestRegressor(categorical_features=self.categorical_features), X, y, sample_weight)

    def predict_quantile(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles of the target given the features (quantile regression forest, Meinshausen 2006).

        A training row weighs as much as it shares the leaves of the new row, averaged over the trees.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.
        quantiles : float or sequence of floats in [0, 1], default=(0.05, 0.5, 0.95)
            Levels.

        Returns
        -------
        array of shape (n_samples, n_quantiles)
        """
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
        for level in levels.tolist():
            check_real("quantiles", level, low=0, high=1)
        check_is_fitted(self)
        if not hasattr(self, "_held"):
            raise ValueError("predict_quantile needs the training targets: fit with keep_targets=True.")
        leaves = self.apply(X) + self._trees.start[:-1]
        out = np.empty((leaves.shape[0], levels.shape[0]))
        for i, row in enumerate(leaves):
            shares = np.zeros(self._targets.shape[0])
            for leaf in row.tolist():
                held = self._held[self._first[leaf] : self._first[leaf + 1]]
                w = self._target_weights[held]
                shares[held] += w / w.sum()
            reached = np.cumsum(shares) / shares.sum()
            at = np.searchsorted(reached, levels - 1e-12)
            out[i] = self._targets[np.minimum(at, self._targets.shape[0] - 1)]
        return out
