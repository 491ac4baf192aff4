"""Decision trees: greedy growth, cost-complexity pruning, rules and pictures.

A tree cuts the space of features into boxes and predicts a constant in each. Growth is greedy: every node
takes the split that decreases the weighted impurity most (Breiman, Friedman, Olshen, Stone 1984); pruning is
exact over all subtrees of the grown tree.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from certifit._types import Array
from certifit.base import CertifiedEstimator, Progress
from certifit.certificate import Certificate
from certifit.models.tree_drawing import draw_tree
from certifit.models.tree_growing import (
    SERIAL,
    SERIAL_WALKS,
    Categories,
    Growth,
    TreeArrays,
    encode,
    grow,
    target_of_classes,
    target_of_numbers,
)
from certifit.models.tree_pruning import PruningPath, collapse_alphas, cut, pruning_path
from certifit.models.tree_rules import LeafInterval, leaf_intervals, rule_text
from certifit.optimization.matrix import n_threads
from certifit.validation import check_choice, check_real, check_sample_weight, like_input

__all__ = [
    "BaseTree",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "class_weights",
    "read_classes",
    "read_numbers",
]


@dataclass
class Rows:
    """The rows of one fit that count, with codes in the place of categories and of classes."""

    X: Array
    y: Array
    weight: Array
    kept: Array
    """Which of the rows as given have a positive weight."""


def _read(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array]:
    """Table, target as given and weights; categories are kept by the estimator."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give the target values."
        )
    estimator._categories, table = Categories.fit(estimator, X, estimator.categorical_features)
    y = column_or_1d(y, warn=True)
    if y.shape[0] != table.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows: X has {table.shape[0]}, y has {y.shape[0]}. "
            "Found input variables with inconsistent numbers of samples."
        )
    return table, y, check_sample_weight(sample_weight, table.shape[0])


def read_classes(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows of positive weight of a classification; sets `classes_`."""
    table, y, weight = _read(estimator, X, y, sample_weight)
    check_classification_targets(y)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(
            "Input y contains NaN or infinity: the class of every training row must be known. Drop these rows."
        )
    kept = weight > 0
    if not kept.all():
        # A category only seen in rows of weight zero counts as unseen, exactly as if they had not been given.
        estimator._categories, table = Categories.fit(estimator, _take(X, kept), estimator.categorical_features)
        y, weight = y[kept], weight[kept]
    estimator.classes_, labels = np.unique(y, return_inverse=True)
    if estimator.classes_.shape[0] > 65535:
        raise ValueError(f"y has {estimator.classes_.shape[0]} classes, more than 65535. Is it a regression?")
    return Rows(table, labels.astype(np.int64), weight, kept)


def read_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows of positive weight of a regression."""
    table, y, weight = _read(estimator, X, y, sample_weight)
    if y.dtype.kind not in "fiub":
        try:
            y = y.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must be numeric for a regression; got {y[:1]!r} of dtype {y.dtype}.") from error
    y = y.astype(np.float64)
    if not np.isfinite(y).all():
        bad = int(np.flatnonzero(~np.isfinite(y))[0])
        what = "NaN" if np.isnan(y[bad]) else "infinity"
        raise ValueError(
            f"Input y contains {what} (first at row {bad}): the target of a fit must be known. Drop these rows."
        )
    kept = weight > 0
    if not kept.all():
        estimator._categories, table = Categories.fit(estimator, _take(X, kept), estimator.categorical_features)
        y, weight = y[kept], weight[kept]
    return Rows(table, y, weight, kept)


def _take(X: Any, kept: Array) -> Any:
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals as nw

        return nw.from_native(X, eager_only=True).filter(kept.tolist()).to_native()
    return np.asarray(X)[kept]


def class_weights(given: Any, classes: Array, labels: Array, weight: Array) -> Array:
    """Weight of each class: ones, W / (number of classes · W_c) for ``"balanced"``, or the values of a
    dictionary.
    """
    if given is None:
        return np.ones(classes.shape[0])
    if isinstance(given, str):
        check_choice("class_weight", given, ("balanced",))
        held = np.bincount(labels, weights=weight, minlength=classes.shape[0])
        return np.asarray(weight.sum() / (classes.shape[0] * held))
    if not isinstance(given, dict):
        raise ValueError(f"class_weight must be None, 'balanced' or a dictionary of class → weight; got {given!r}.")
    known = classes.tolist()
    found = np.array([float(given.get(label, 1.0)) for label in known])
    if not np.isfinite(found).all() or (found < 0).any() or not (found > 0).any():
        raise ValueError(f"class_weight must hold finite weights >= 0, not all zero; got {given!r}.")
    return found


class BaseTree(CertifiedEstimator):
    """What both kinds of tree share: growth, pruning, rules and pictures."""

    _tree: TreeArrays
    _categories: Categories
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _threads(self, X: Array) -> int:
        threads = n_threads(self.n_jobs)
        return threads if X.size >= SERIAL else 1

    def _walk_threads(self, X: Array) -> int:
        threads = n_threads(self.n_jobs)
        return threads if X.shape[0] >= SERIAL_WALKS else 1

    def _grow(self, rows: Rows, target: Any) -> None:
        """Grow, prune if asked to, and certify."""
        clock = Progress()
        check_real("ccp_alpha", self.ccp_alpha, low=0)
        threads = self._threads(rows.X)
        names = getattr(self, "feature_names_in_", None)
        growth = Growth.of(self, names, rows.X.shape[1], float(rows.weight.sum()))
        if any(growth.monotone[j] for j in self._categories.columns if growth.monotone.size):
            raise ValueError(
                "monotone_constraints apply to numbers: a categorical feature has no order to be monotone in."
            )
        table = encode(rows.X, self._categories, 0, growth.max_features == rows.X.shape[1], threads)
        seed = (
            check_random_state(self.random_state).randint(0, 2**31 - 1) if growth.max_features < rows.X.shape[1] else 0
        )
        seeds = np.array([seed], dtype=np.uint64)
        self._tree, _ = grow(table, target, growth, self._categories, rows.X.shape[1], seeds, threads)
        self._collapse: Array | None = None
        self._missing: Array = np.asarray(np.isnan(rows.X).any(axis=0))
        if self.ccp_alpha > 0:
            self._prune(float(self.ccp_alpha), clock)
        else:
            self._describe()
            self._certify(self._greedy_certificate(clock.seconds))

    def _describe(self) -> None:
        leaf = self._tree.is_leaf
        self.n_leaves_ = int(leaf.sum())
        self.n_nodes_ = int(leaf.shape[0])
        self.depth_ = int(self._tree.depth[0])
        self.feature_importances_ = self._tree.importance()

    def _missing_seen(self, feature: int) -> bool:
        return bool(self._missing[feature])

    def _risk(self) -> float:
        """Weighted mean impurity of the training rows."""
        return float(self._tree.loss[self._tree.is_leaf].sum() / self._tree.weight[0])

    def _greedy_certificate(self, seconds: float) -> Certificate:
        scale = float(self._tree.loss[0] / self._tree.weight[0])
        note = (
            "Each split is the best one of its node; no statement about the best tree as a whole. The "
            "objective is the weighted "
            "mean impurity of the training rows."
        )
        return Certificate(
            "none",
            objective=self._risk(),
            bound=0.0,
            scale=scale,
            tol=-1.0,
            iterations=self.n_leaves_ - 1,
            seconds=seconds,
            note=note,
        )

    def _prune(self, alpha: float, clock: Progress) -> None:
        grown = int(self._tree.is_leaf.sum())
        self._tree, self._collapse = cut(self._tree, self._alphas(), alpha)
        self._describe()
        objective = self._risk() + alpha * self.n_leaves_
        note = (
            f"No subtree of the grown tree ({grown} leaves) has a smaller mean impurity + {alpha:g} · "
            "leaves; the grown tree itself "
            "is greedy."
        )
        scale = float(self._tree.loss[0] / self._tree.weight[0]) + alpha
        self._certify(
            Certificate(
                "exact over subtrees",
                objective=objective,
                bound=objective,
                scale=scale,
                tol=0.0,
                iterations=self.n_leaves_ - 1,
                seconds=clock.seconds,
                note=note,
            )
        )

    def _alphas(self) -> Array:
        if self._collapse is None:
            self._collapse = collapse_alphas(self._tree)
        return self._collapse

    def cost_complexity_path(self) -> PruningPath:
        """All subtrees that are optimal for some alpha, from the grown tree to its root.

        Returns
        -------
        PruningPath
            `alphas`, and for the optimal subtree at each of them its `n_leaves` and its `risks` (weighted
            mean impurity).
        """
        check_is_fitted(self)
        return pruning_path(self._tree, self._alphas())

    def pruned(self, alpha: float) -> Any:
        """A new fitted tree: the subtree with the least mean impurity + alpha · leaves.

        Parameters
        ----------
        alpha : float
            Price of a leaf.

        Returns
        -------
        estimator
            Of the same class; this tree stays as it is.
        """
        check_is_fitted(self)
        check_real("alpha", alpha, low=0)
        clock = Progress()
        new = copy.copy(self)
        new._alphas()
        new._prune(float(alpha), clock)
        return new

    def _table(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._categories.transform(self, X)

    def apply(self, X: Any) -> Array:
        """Number of the leaf of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        table = self._table(X)
        return np.asarray(self._tree.apply(table, self._walk_threads(table))[:, 0])

    def decision_path(self, X: Any) -> Any:
        """Which nodes each row visits.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        sparse matrix of shape (n_samples, n_nodes_)
        """
        import scipy.sparse as sp

        from certifit.models.tree_pruning import parents

        at = self.apply(X).astype(np.int64)
        above = parents(self._tree)
        rows, nodes, row = [], [], np.arange(at.shape[0])
        while row.size:
            rows.append(row)
            nodes.append(at)
            at = above[at]
            row, at = row[at >= 0], at[at >= 0]
        r, c = np.concatenate(rows), np.concatenate(nodes)
        shape = (int(r.max()) + 1, self.n_nodes_)
        return sp.csr_matrix((np.ones(r.shape[0], dtype=np.int8), (r, c)), shape=shape)

    def rules(self, precision: int = 4, max_depth: int | None = None) -> str:
        """The tree as indented text.

        Parameters
        ----------
        precision : int, default=4
            Significant digits of thresholds and values.
        max_depth : int, optional
            Deepest level shown.

        Returns
        -------
        str
        """
        check_is_fitted(self)
        return rule_text(self, precision, max_depth)

    def leaf_intervals(self, level: float = 0.95) -> list[LeafInterval]:
        """Every leaf with its rows, its value and a confidence interval.

        The interval holds for rows that did not choose the tree; on the training rows it is optimistic.

        Parameters
        ----------
        level : float, default=0.95
            Coverage: Clopper–Pearson for the share of the most frequent class, Student's t for a mean.

        Returns
        -------
        list of LeafInterval
        """
        check_is_fitted(self)
        check_real("level", level, low=0, high=1, open_low=True, open_high=True)
        return leaf_intervals(self, level)

    def plot(self, ax: Any = None, max_depth: int | None = None, precision: int = 3) -> Any:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a figure of a fitting size is made if it is not given.
        max_depth : int, optional
            Deepest level drawn; what lies below is hinted at.
        precision : int, default=3
            Significant digits.

        Returns
        -------
        matplotlib axes
        """
        check_is_fitted(self)
        return draw_tree(self, ax, max_depth, precision)


class DecisionTreeClassifier(ClassifierMixin, BaseTree):
    """Decision tree for classes.

    Grows by the split with the largest decrease of the weighted impurity of the classes in a node, p their
    shares: gini 1 − Σ p², entropy −Σ p log2 p, misclassification 1 − max p. Near ties go to the lowest
    feature, then to the lowest threshold, whatever the order of the rows.

    Parameters
    ----------
    criterion : {"gini", "entropy", "misclassification"}, default="gini"
        Impurity.
    max_depth : int, optional
        Most questions on a path.
    min_samples_split : int or float, default=2
        Fewest rows, counted by weight, of a node that is split; below 1: share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows, counted by weight, of a leaf; below 1: share of all rows. A value of 1 never binds.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weight of all rows, class weights included, in a leaf.
    max_leaves : int, optional
        Most leaves; the most valuable splits are made first.
    min_impurity_decrease : float, default=0.0
        Least decrease of the mean impurity of the whole tree that justifies a split.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many features, drawn at random, each node tries; None tries all.
    ccp_alpha : float, default=0.0
        Price of a leaf: with a positive one the grown tree is pruned to the subtree of least mean impurity +
        ccp_alpha · leaves.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    categorical_features : list of columns, mask, "auto" or None, default=None
        Columns whose values are categories; they are split into two sets. "auto": text and categorical
        columns of a frame.
    monotone_constraints : array of −1, 0, 1, or dict, optional
        For two classes: whether the probability of the second one must fall (−1) or rise (1) in a feature.
    random_state : int or RandomState, optional
        Only used if `max_features` leaves some out.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Attributes
    ----------
    classes_ : array
        Labels.
    n_leaves_, n_nodes_, depth_ : int
        Size of the tree.
    feature_importances_ : array
        Share of each feature in the decrease of impurity.
    certificate_ : Certificate
        ``"none"`` for a grown tree (it is greedy), ``"exact over subtrees"`` for a pruned one.

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
        X : array or data frame of shape (n_samples, n_features)
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

    def predict_proba(self, X: Any) -> Array:
        """Shares of the classes in the leaf of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        table = self._table(X)
        return self._tree.predict(table, self._walk_threads(table))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
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
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        leaves = self.apply(X)
        return np.asarray(self.classes_[np.argmax(self._tree.values, axis=1)[leaves]])


class DecisionTreeRegressor(RegressorMixin, BaseTree):
    """Decision tree for numbers.

    Grows by the split with the largest decrease of the weighted impurity of the targets in a node: their
    variance (squared), their mean distance from the median (absolute), or the mean of y ln(y / mean)
    (poisson, half of the deviance). Near ties go to the lowest feature, then to the lowest threshold,
    whatever the order of the rows.

    Parameters
    ----------
    criterion : {"squared", "absolute", "poisson"}, default="squared"
        Impurity. With "poisson" no leaf expects 0 unless all targets are 0.
    max_depth : int, optional
        Most questions on a path.
    min_samples_split : int or float, default=2
        Fewest rows, counted by weight, of a node that is split; below 1: share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows, counted by weight, of a leaf; below 1: share of all rows. A value of 1 never binds.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weight of all rows, class weights included, in a leaf.
    max_leaves : int, optional
        Most leaves; the most valuable splits are made first.
    min_impurity_decrease : float, default=0.0
        Least decrease of the mean impurity of the whole tree that justifies a split.
    max_features : int, float, "sqrt", "log2" or None, default=None
        How many features, drawn at random, each node tries; None tries all.
    ccp_alpha : float, default=0.0
        Price of a leaf: with a positive one the grown tree is pruned to the subtree of least mean impurity +
        ccp_alpha · leaves.
    categorical_features : list of columns, mask, "auto" or None, default=None
        Columns whose values are categories; they are split into two sets. "auto": text and categorical
        columns of a frame.
    monotone_constraints : array of −1, 0, 1, or dict, optional
        Whether the prediction must fall (−1) or rise (1) in a feature.
    random_state : int or RandomState, optional
        Only used if `max_features` leaves some out.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Attributes
    ----------
    n_leaves_, n_nodes_, depth_ : int
        Size of the tree.
    feature_importances_ : array
        Share of each feature in the decrease of impurity.
    certificate_ : Certificate
        ``"none"`` for a grown tree (it is greedy), ``"exact over subtrees"`` for a pruned one.

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
        X : array or data frame of shape (n_samples, n_features)
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
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        table = self._table(X)
        return like_input(X, self._tree.predict(table, self._walk_threads(table))[:, 0])
