"""Decision trees pruned by cross-validation.

One tree is grown for each fold; its weakest links give its optimal subtree for every alpha at once, so the
error of all alphas on the left-out rows costs one pass. The tree grown on all rows is pruned at the winner.
"""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.base import clone

from certifit._types import Array
from certifit.certificate import Certificate
from certifit.evaluation.splits.choice import folds_of, over_folds
from certifit.models.tree.base import BaseTree
from certifit.models.tree.model import DecisionTreeClassifier, DecisionTreeRegressor
from certifit.models.tree.outputs import labels_of
from certifit.models.tree.pruning import parents, range_of_use
from certifit.models.tree.rows import CodedRows, as_columns, read_classes, read_numbers
from certifit.parameters import CV, ONE_STANDARD_ERROR, ChosenAlpha, Fitted, parameters_of

__all__ = ["DecisionTreeClassifierCV", "DecisionTreeRegressorCV"]


def _poisson_deviance(y: Array, rate: Array) -> Array:
    """y ln(y / rate) − y + rate; in terms of t = rate / y − 1 where the parts would cancel."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = (rate - y) / y
        close = y * (t - np.log1p(t))
        apart = y * (np.log(y) - np.log(rate)) - (y - rate)
    return np.where(y == 0, rate, np.where(np.abs(t) < 0.5, close, apart))


def _with_folds(tree: type) -> tuple[str, ...]:
    """The parameters of a tree with folds in the place of a price."""
    criterion, *others = (name for name in parameters_of(tree) if name != "ccp_alpha")
    return (criterion, "cv", "one_standard_error", *others)


class _PrunedByFolds(ChosenAlpha, BaseTree):
    """Choice of alpha; a subclass supplies the plain tree and the loss of its predictions."""

    _: KW_ONLY
    cv: Any = CV
    one_standard_error: bool = ONE_STANDARD_ERROR.but(
        text="Take the smallest tree whose error is within one standard error of the least one."
    )

    alpha_: float = Fitted("float", "The chosen price of a leaf.")
    n_leaves_path_: Array = Fitted("array", "Size of the tree at each candidate.")
    cv_errors_: Array = Fitted("array", "Mean error on the left-out rows at each candidate.")
    cv_standard_errors_: Array = Fitted("array", "Its standard error over the folds.")
    certificate_: Certificate = Fitted("Certificate", '``"exact over subtrees"``.')

    def _plain(self) -> Any:
        parameters = self.get_params(deep=False)
        for name in ("cv", "one_standard_error"):
            parameters.pop(name)
        kind = DecisionTreeClassifier if isinstance(self, DecisionTreeClassifier) else DecisionTreeRegressor
        return kind(**{name: clone(value, safe=False) for name, value in parameters.items()}, ccp_alpha=0.0)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        """The checked rows of the fit."""
        raise TypeError(f"{type(self).__name__} must say what its targets are.")

    def _losses(self, tree: Any, y: Array) -> Any:
        """A function (nodes, rows) → loss of predicting the value of a node for a row."""
        raise TypeError(f"{type(self).__name__} must say what it loses.")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow, choose alpha on the folds, and prune."""
        rows = self._rows(X, y, sample_weight)
        if rows.X.shape[0] == 1:
            raise ValueError("n_samples = 1: cross-validation needs at least two rows. Use the tree without CV.")
        columns = self._categories.columns
        plain = self._plain().set_params(categorical_features=columns or None)
        full = clone(plain).fit(rows.X, self._labels(rows.y), rows.weight)
        path = full.cost_complexity_path()
        # Between two steps of the path every alpha gives the same tree: the geometric middle stands for all.
        upper = np.append(path.alphas[1:], np.inf)
        alphas = np.sqrt(path.alphas) * np.sqrt(np.where(np.isinf(upper), path.alphas, upper))
        folds = folds_of(self.cv, rows.X, rows.y.astype(np.float64), kept=rows.kept, given=y)

        def errors(train: Array, test: Array) -> Array:
            tree = clone(plain).fit(rows.X[train], self._labels(rows.y[train]), rows.weight[train])
            return self._curve(tree, rows, test, alphas)

        curve = over_folds(folds, rows.weight, alphas.shape[0], errors)
        self.alphas_, self.n_leaves_path_ = alphas, path.n_leaves
        self.cv_errors_, self.cv_standard_errors_ = curve.mean, curve.standard_error
        best = curve.best(alphas, one_standard_error=self.one_standard_error)
        self.alpha_ = float(alphas[best])
        chosen = full.pruned(self.alpha_)
        categories = self._categories
        for name, value in vars(chosen).items():
            if name.startswith("_") or name.endswith("_"):
                setattr(self, name, value)
        self._categories = categories
        return self

    def _labels(self, y: Array) -> Array:
        return y

    def _curve(self, tree: Any, rows: Any, test: Array, alphas: Array) -> Array:
        """Weighted mean error on the left-out rows for each alpha."""
        low, high = range_of_use(tree._tree, tree._alphas())
        first = np.searchsorted(alphas, low, side="left")
        last = np.searchsorted(alphas, high, side="left")
        above = parents(tree._tree)
        weight = rows.weight[test] / rows.weight[test].sum()
        node, row = tree.apply(rows.X[test]).astype(np.int64), np.arange(test.shape[0])
        total = np.zeros(alphas.shape[0] + 1)
        loss = self._losses(tree, rows.y[test])
        while row.size:  # from the leaf to the root: each node serves a range of alphas
            serves = first[node] < last[node]
            n, r = node[serves], row[serves]
            value = weight[r] * loss(n, r)
            np.add.at(total, first[n], value)
            np.add.at(total, last[n], -value)
            node = above[node]
            row, node = row[node >= 0], node[node >= 0]
        return np.maximum(np.cumsum(total)[:-1], 0.0)  # differences may leave a rounding below zero


class DecisionTreeClassifierCV(_PrunedByFolds, DecisionTreeClassifier):
    """Decision tree for classes, pruned at the alpha with the fewest errors on left-out rows.

    Of several targets a row is an error if the class of any of them is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeClassifierCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 3))
    >>> y = (X[:, 0] > 0.5) ^ (rng.uniform(size=300) < 0.1)  # one true split, and noise
    >>> DecisionTreeClassifierCV().fit(X, y).n_leaves_
    2
    """

    __order__ = _with_folds(DecisionTreeClassifier)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        return read_classes(self, X, y, sample_weight)

    def _labels(self, y: Array) -> Array:
        if not isinstance(self.classes_, list):
            return np.asarray(self.classes_[y])
        return np.stack([each[codes] for each, codes in zip(self.classes_, y.T, strict=True)], axis=1)

    def _losses(self, tree: Any, y: Array) -> Any:
        labels = self._labels(y).reshape(y.shape[0], -1)
        said = labels_of(tree._tree.values, tree.classes_).reshape(-1, labels.shape[1])
        return lambda node, row: (said[node] != labels[row]).any(axis=1).astype(np.float64)


class DecisionTreeRegressorCV(_PrunedByFolds, DecisionTreeRegressor):
    """Decision tree for numbers, pruned at the alpha with the least error on left-out rows.

    The error is that of the criterion: squared, absolute, or the Poisson deviance; of several targets, their mean.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeRegressorCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 3))
    >>> y = np.where(X[:, 0] > 0.5, 2.0, 0.0) + 0.3 * rng.normal(size=300)
    >>> DecisionTreeRegressorCV(one_standard_error=True).fit(X, y).n_leaves_
    2
    """

    __order__ = _with_folds(DecisionTreeRegressor)

    def _rows(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        return read_numbers(self, X, y, sample_weight)

    def _losses(self, tree: Any, y: Array) -> Any:
        value, truth = tree._tree.values, as_columns(y)

        def lost(node: Array, row: Array) -> Array:
            said, true = value[node], truth[row]
            if self.criterion == "absolute":
                return np.abs(said - true)
            if self.criterion == "poisson":
                return _poisson_deviance(true, np.maximum(said, 1e-300))
            return np.asarray((said - true) ** 2)

        return lambda node, row: lost(node, row).mean(axis=1)
