"""Random forests (Breiman 2001).

Each tree is grown on a bootstrap sample of the rows and tries a random subset of the features at every node;
the forest predicts the mean of its trees. The rows a tree did not draw (out of bag, OOB) test it without a
test set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import certifit._native.tree as native
from certifit._types import Array
from certifit.base import CertifiedEstimator, Progress
from certifit.certificate import Certificate
from certifit.models.tree import class_weights, read_classes, read_numbers
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
from certifit.optimization.matrix import n_threads
from certifit.representation.scaling import is_sparse
from certifit.validation import check_choice, check_real, like_input

__all__ = ["RandomForestClassifier", "RandomForestRegressor", "clopper_pearson", "content_order"]

HISTOGRAM_ROWS = 2_000
"""From this many rows on, splitter="auto" groups the values of a feature into bins."""


class BaseForest(CertifiedEstimator):
    """Growth, out-of-bag estimates, importance and proximity."""

    _trees: TreeArrays
    _bags: Array
    _categories: Categories
    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _threads(self, X: Array) -> int:
        threads = n_threads(self.n_jobs)
        return threads if X.shape[0] * self._trees.n_trees >= SERIAL_WALKS else 1

    def _grow(self, rows: Any, target: Any, draws: int) -> None:
        """Grow the trees that are still wanted, then the out-of-bag estimates."""
        clock = Progress()
        X, d = rows.X, rows.X.shape[1]
        total = float(draws) if draws else float(rows.weight.sum())
        growth = Growth.of(self, getattr(self, "feature_names_in_", None), d, total)
        if any(growth.monotone[j] for j in self._categories.columns if growth.monotone.size):
            raise ValueError(
                "monotone_constraints apply to numbers: a categorical feature has no order to be monotone in."
            )
        done = self._trees.n_trees if self.warm_start and hasattr(self, "_trees") else 0
        if done > self.n_estimators:
            raise ValueError(
                f"n_estimators={self.n_estimators} is less than the {done} trees already grown: with "
                "warm_start=True trees are "
                "only added."
            )
        if done and self._trees.categories.shape[0] != d:
            raise ValueError(
                f"warm_start=True continues a forest on {self._trees.categories.shape[0]} features; X has {d}."
            )
        if not done:
            self._seed = int(check_random_state(self.random_state).randint(0, 2**31 - 1))
        seeds = np.random.SeedSequence(self._seed).generate_state(self.n_estimators, np.uint64)[done:]
        if seeds.size:
            threads = n_threads(self.n_jobs) if X.size * seeds.size >= SERIAL else 1
            binned = self._binned(X)
            table = encode(
                X,
                self._categories,
                int(self.max_bins) if binned else 0,
                growth.max_features == d,
                threads,
                rows.weight,
            )
            chances = rows.weight if draws and np.ptp(rows.weight) > 0 else np.empty(0)
            order = content_order(X, rows.y) if draws else np.empty(0, dtype=np.uint32)
            trees, bags = grow(table, target, growth, self._categories, d, seeds, threads, draws, chances, order)
            self._trees = self._trees.joined(trees) if done else trees
            self._bags = np.concatenate([self._bags, bags]) if done else bags
        self.estimators_depth_ = self._trees.depth
        self.feature_importances_ = self._trees.importance()
        self._certify(self._certificate(clock))

    def _binned(self, X: Array) -> bool:
        check_choice("splitter", self.splitter, ("auto", "exact", "histogram"))
        check_real("max_bins", self.max_bins, low=2, high=255, integer=True)
        if self.criterion == "absolute":  # medians need every value
            return False
        return bool(self.splitter == "histogram" or (self.splitter == "auto" and X.shape[0] >= HISTOGRAM_ROWS))

    def _certificate(self, clock: Progress) -> Certificate:
        leaf = self._trees.is_leaf
        tree = np.repeat(np.arange(self._trees.n_trees), np.diff(self._trees.start))
        root = self._trees.start[:-1]
        risks = np.bincount(tree[leaf], weights=self._trees.loss[leaf]) / self._trees.weight[root]
        scale = float(np.mean(self._trees.loss[root] / self._trees.weight[root]))
        note = (
            "A forest optimizes no objective as a whole: the objective is the mean training impurity of its "
            "greedy trees. Its OOB "
            "error (oob_score=True) estimates the risk on new data."
        )
        return Certificate(
            "none",
            objective=float(risks.mean()),
            bound=0.0,
            scale=scale,
            tol=-1.0,
            iterations=self._trees.n_trees,
            seconds=clock.seconds,
            note=note,
        )

    def _draws(self, weight: Array) -> int:
        """Size of a bootstrap sample: as many rows as there are, counted by integer weights; 0 for no
        bootstrap.
        """
        check_real("n_estimators", self.n_estimators, low=1, integer=True)
        if not self.bootstrap:
            if self.oob_score:
                raise ValueError("oob_score=True needs bootstrap=True: without it no row is out of bag.")
            if self.max_samples is not None:
                raise ValueError("max_samples needs bootstrap=True.")
            return 0
        rows = float(weight.sum()) if not np.mod(weight, 1.0).any() else float(weight.shape[0])
        if self.max_samples is None:
            return max(1, round(rows))
        if isinstance(self.max_samples, (int, np.integer)) and not isinstance(self.max_samples, bool):
            return int(check_real("max_samples", self.max_samples, low=1, integer=True))
        check_real("max_samples", self.max_samples, low=0, high=1, open_low=True)
        return max(1, int(self.max_samples * rows + 0.5))

    def _out_of_bag(self, rows: Any) -> tuple[Array, Array]:
        """Mean OOB prediction of each row (NaN where every tree drew it) and its number of trees."""
        X = self._coded_again(rows.X)
        sums, counts, curve = native.out_of_bag(
            self._trees._native,
            self._trees.values,
            X,
            self._bags,
            rows.y.astype(np.float64),
            rows.weight,
            n_threads(self.n_jobs),
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = sums / counts[:, None]
        self.oob_curve_ = curve
        return mean, counts

    def _coded_again(self, X: Array) -> Array:
        """Training rows in the coding of new rows: a missing category has a code of its own."""
        X = np.array(X, order="C")
        for j, count in zip(self._categories.columns, self._categories.counts, strict=True):
            X[:, j] = np.where(np.isnan(X[:, j]), count, X[:, j])
        return X

    def _table(self, X: Any) -> Array:
        check_is_fitted(self)
        return self._categories.transform(self, X)

    def _mean(self, X: Any) -> Array:
        table = self._table(X)
        return self._trees.predict(table, self._threads(table))

    def apply(self, X: Any) -> Array:
        """Number of the leaf of each row in each tree.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_estimators)
        """
        table = self._table(X)
        return self._trees.apply(table, self._threads(table))

    def proximity(self, X: Any, Y: Any = None) -> Array:
        """How often two rows end in the same leaf, as a share of the trees.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.
        Y : array or data frame, optional
            Other rows; X itself if not given.

        Returns
        -------
        array of shape (n_samples, n_samples or rows of Y)
        """
        first = self._leaf_indicator(X)
        second = first if Y is None else self._leaf_indicator(Y)
        return np.asarray((first @ second.T).toarray() / self._trees.n_trees)

    def _leaf_indicator(self, X: Any) -> sp.csr_matrix:
        leaf = self.apply(X) + self._trees.start[:-1]
        n, trees = leaf.shape
        shape = (n, int(self._trees.start[-1]))
        return sp.csr_matrix((np.ones(leaf.size), leaf.ravel(), np.arange(0, n * trees + 1, trees)), shape=shape)

    def oob_permutation_importance(self, X: Any, y: Any, sample_weight: Any = None, random_state: Any = 0) -> Any:
        """Rise of the out-of-bag error when the values of one feature are permuted.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            The training rows, in the order of the fit (rows of weight zero included).
        y : array of shape (n_samples,)
            The training target.
        sample_weight : array of shape (n_samples,), optional
            The weights of the fit.
        random_state : int or RandomState, default=0
            For the permutations.

        Returns
        -------
        dict
            ``importances_mean`` and ``importances_std`` (over the trees) and ``importances`` of shape
            (n_features, n_estimators).
        """
        check_is_fitted(self)
        if not self.bootstrap:
            raise ValueError("oob_permutation_importance needs bootstrap=True: without it no row is out of bag.")
        rows = self._read_again(X, y, sample_weight)
        if (rows.X.shape[0] + 7) // 8 != self._bags.shape[1]:
            raise ValueError(
                f"X has {rows.X.shape[0]} rows of positive weight, but the forest was fitted on another "
                "number: give the training rows."
            )
        seed = int(check_random_state(random_state).randint(0, 2**31 - 1))
        rise = native.permutation_importance(
            self._trees._native,
            self._trees.values,
            self._coded_again(rows.X),
            self._bags,
            rows.y.astype(np.float64),
            rows.weight,
            seed,
            n_threads(self.n_jobs),
        )
        return {
            "importances_mean": rise.mean(axis=0),
            "importances_std": rise.std(axis=0),
            "importances": rise.T,
        }

    def _read_again(self, X: Any, y: Any, sample_weight: Any) -> Any:
        raise NotImplementedError


def clopper_pearson(errors: float, count: float, level: float = 0.95) -> tuple[float, float]:
    """Exact confidence interval of a share from errors among count trials."""
    tail = 0.5 * (1 - level)
    low = float(stats.beta.ppf(tail, errors, count - errors + 1)) if errors > 0 else 0.0
    high = float(stats.beta.ppf(1 - tail, errors + 1, count - errors)) if errors < count else 1.0
    return low, high


def content_order(X: Any, y: Array) -> Array:
    """Rows sorted by a hash of what they contain."""
    dense = X.toarray() if is_sparse(X) else X
    return np.asarray(native.content_order(np.asfortranarray(dense), np.asarray(y, dtype=np.float64)))


class RandomForestClassifier(ClassifierMixin, BaseForest):
    """Random forest for classes.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "misclassification"}, default="gini"
        Impurity.
    max_depth : int, optional
        Most questions on a path.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split, counted as drawn; below 1: share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows of a leaf, counted as drawn; below 1: share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weight of all rows, class weights included, in a leaf.
    max_leaves : int, optional
        Most leaves of a tree; the most valuable splits are made first.
    min_impurity_decrease : float, default=0.0
        Least decrease of the mean impurity of a tree that justifies a split.
    max_features : int, float, "sqrt", "log2" or None, default="sqrt"
        How many features, drawn at random, each node tries.
    bootstrap : bool, default=True
        Whether each tree draws its rows, with probabilities proportional to their weights; otherwise it sees
        all of them.
    max_samples : int or float, optional
        Draws of each tree; as many as rows (counted by integer weights) if not given.
    oob_score : bool, default=False
        Whether to compute the out-of-bag estimates.
    splitter : {"auto", "exact", "histogram"}, default="auto"
        Whether thresholds are sought among all values or between at most `max_bins` groups of them; "auto"
        takes groups 2,000 rows on.
    max_bins : int, default=255
        Most groups of a feature.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    categorical_features : list of columns, mask, "auto" or None, default=None
        Columns whose values are categories.
    monotone_constraints : array of −1, 0, 1, or dict, optional
        For two classes: direction of the probability of the second one in each feature.
    warm_start : bool, default=False
        Whether a second `fit` on the same data adds trees instead of starting again.
    random_state : int or RandomState, optional
        Seed of all draws.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Attributes
    ----------
    classes_ : array
        Labels.
    feature_importances_ : array
        Share of each feature in the decrease of impurity, averaged over the trees.
    oob_score_ : float
        Out-of-bag accuracy (if `oob_score`).
    oob_interval_ : tuple of float
        95 % Clopper–Pearson interval of the out-of-bag error.
    oob_decision_function_ : array of shape (n_samples, n_classes)
        Out-of-bag probabilities; NaN where every tree drew the row.
    oob_curve_ : array of shape (n_estimators,)
        Out-of-bag error after each tree.
    certificate_ : Certificate
        Of kind ``"none"``.

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

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaves: int | None = None,
        min_impurity_decrease: float = 0.0,
        max_features: Any = "sqrt",
        bootstrap: bool = True,
        max_samples: Any = None,
        oob_score: bool = False,
        splitter: str = "auto",
        max_bins: int = 255,
        class_weight: Any = None,
        categorical_features: Any = None,
        monotone_constraints: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaves = max_leaves
        self.min_impurity_decrease = min_impurity_decrease
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.splitter = splitter
        self.max_bins = max_bins
        self.class_weight = class_weight
        self.categorical_features = categorical_features
        self.monotone_constraints = monotone_constraints
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RandomForestClassifier:
        """Grow the forest.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Features; NaN is a missing value and goes, at every split, to the better side.
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,), optional
            Chances of a row to be drawn (weights of the rows without a bootstrap); 0 drops it.

        Returns
        -------
        self
        """
        check_choice("criterion", self.criterion, ("gini", "entropy", "misclassification"))
        before = getattr(self, "classes_", None)
        rows = read_classes(self, X, y, sample_weight)
        if self.warm_start and before is not None and not np.array_equal(before, self.classes_):
            raise ValueError("warm_start=True continues a forest: y must hold the same classes as before.")
        if self.monotone_constraints is not None and self.classes_.shape[0] > 2:
            raise ValueError("monotone_constraints need two classes; y has more: remove the constraints.")
        draws = self._draws(rows.weight)
        shares = class_weights(self.class_weight, self.classes_, rows.y, rows.weight)
        weight = np.ones_like(rows.weight) if draws else rows.weight
        self._grow(rows, target_of_classes(self.criterion, rows.y, shares, weight, draws), draws)
        if self.oob_score:
            self._score_out_of_bag(rows)
        return self

    def _score_out_of_bag(self, rows: Any) -> None:
        probability, counts = self._out_of_bag(rows)
        seen = counts > 0
        wrong = np.argmax(probability[seen], axis=1) != rows.y[seen]
        weight = rows.weight[seen]
        error = float(weight @ wrong / weight.sum()) if seen.any() else float("nan")
        self.oob_decision_function_ = probability
        self.oob_score_ = 1.0 - error
        # Weights count repetitions, but a repetition brings no new evidence: the interval counts distinct
        # rows.
        self.oob_interval_ = clopper_pearson(error * seen.sum(), float(seen.sum())) if seen.any() else (0.0, 1.0)

    def _read_again(self, X: Any, y: Any, sample_weight: Any) -> Any:
        copy = RandomForestClassifier(categorical_features=self.categorical_features)
        rows = read_classes(copy, X, y, sample_weight)
        if not np.array_equal(copy.classes_, self.classes_):
            raise ValueError("y holds other classes than in training: give the training rows.")
        return rows

    def predict_proba(self, X: Any) -> Array:
        """Mean over the trees of the shares of the classes in the leaf of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples, n_classes)
        """
        return self._mean(X)

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
            return np.asarray(np.log(self._mean(X)))

    def predict(self, X: Any) -> Array:
        """The class with the largest mean probability.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        probability = self._mean(X)
        return np.asarray(self.classes_[np.argmax(probability, axis=1)])


class RandomForestRegressor(RegressorMixin, BaseForest):
    """Random forest for numbers.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"squared", "absolute", "poisson"}, default="squared"
        Impurity; "absolute" always uses exact splits.
    max_depth : int, optional
        Most questions on a path.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split, counted as drawn; below 1: share of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows of a leaf, counted as drawn; below 1: share of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weight of all rows, class weights included, in a leaf.
    max_leaves : int, optional
        Most leaves of a tree; the most valuable splits are made first.
    min_impurity_decrease : float, default=0.0
        Least decrease of the mean impurity of a tree that justifies a split.
    max_features : int, float, "sqrt", "log2" or None, default=1.0
        How many features, drawn at random, each node tries.
    bootstrap : bool, default=True
        Whether each tree draws its rows, with probabilities proportional to their weights; otherwise it sees
        all of them.
    max_samples : int or float, optional
        Draws of each tree; as many as rows (counted by integer weights) if not given.
    oob_score : bool, default=False
        Whether to compute the out-of-bag estimates.
    keep_targets : bool, default=False
        Whether to keep the training targets of every leaf, which `predict_quantile` needs.
    splitter : {"auto", "exact", "histogram"}, default="auto"
        Whether thresholds are sought among all values or between at most `max_bins` groups of them; "auto"
        takes groups 2,000 rows on.
    max_bins : int, default=255
        Most groups of a feature.
    categorical_features : list of columns, mask, "auto" or None, default=None
        Columns whose values are categories.
    monotone_constraints : array of −1, 0, 1, or dict, optional
        Direction of the prediction in each feature.
    warm_start : bool, default=False
        Whether a second `fit` on the same data adds trees instead of starting again.
    random_state : int or RandomState, optional
        Seed of all draws.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Attributes
    ----------
    feature_importances_ : array
        Share of each feature in the decrease of impurity, averaged over the trees.
    oob_score_ : float
        Out-of-bag R² (if `oob_score`).
    oob_prediction_ : array of shape (n_samples,)
        Out-of-bag predictions; NaN where every tree drew the row.
    oob_curve_ : array of shape (n_estimators,)
        Out-of-bag mean squared error after each tree.
    certificate_ : Certificate
        Of kind ``"none"``.

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

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        max_leaves: int | None = None,
        min_impurity_decrease: float = 0.0,
        max_features: Any = 1.0,
        bootstrap: bool = True,
        max_samples: Any = None,
        oob_score: bool = False,
        keep_targets: bool = False,
        splitter: str = "auto",
        max_bins: int = 255,
        categorical_features: Any = None,
        monotone_constraints: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaves = max_leaves
        self.min_impurity_decrease = min_impurity_decrease
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.oob_score = oob_score
        self.keep_targets = keep_targets
        self.splitter = splitter
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotone_constraints = monotone_constraints
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RandomForestRegressor:
        """Grow the forest.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Features; NaN is a missing value and goes, at every split, to the better side.
        y : array of shape (n_samples,)
            Target.
        sample_weight : array of shape (n_samples,), optional
            Chances of a row to be drawn (weights of the rows without a bootstrap); 0 drops it.

        Returns
        -------
        self
        """
        check_choice("criterion", self.criterion, ("squared", "absolute", "poisson"))
        rows = read_numbers(self, X, y, sample_weight)
        draws = self._draws(rows.weight)
        weight = np.ones_like(rows.weight) if draws else rows.weight
        self._grow(rows, target_of_numbers(self.criterion, rows.y, weight, draws), draws)
        if self.oob_score:
            mean, counts = self._out_of_bag(rows)
            seen, self.oob_prediction_ = counts > 0, mean[:, 0]
            w, truth = rows.weight[seen], rows.y[seen]
            spread = float(w @ (truth - w @ truth / w.sum()) ** 2) if seen.any() else 0.0
            missed = float(w @ (truth - self.oob_prediction_[seen]) ** 2)
            self.oob_score_ = 1.0 - missed / spread if spread > 0 else float("nan")
        if self.keep_targets:
            self._keep(rows)
        return self

    def _keep(self, rows: Any) -> None:
        """Rows of every leaf: `_held[_first[leaf]:_first[leaf + 1]]`, in the order of their targets."""
        table = self._coded_again(rows.X)
        leaf = self._trees.apply(table, self._threads(table)) + self._trees.start[:-1]
        order = np.argsort(rows.y, kind="stable")
        flat = leaf[order].ravel()  # targets rise within every leaf
        by_leaf = np.argsort(flat, kind="stable")
        self._held = (by_leaf // leaf.shape[1]).astype(np.int32)
        self._first = np.searchsorted(flat[by_leaf], np.arange(int(self._trees.start[-1]) + 1))
        self._targets, self._target_weights = rows.y[order], rows.weight[order]

    def _read_again(self, X: Any, y: Any, sample_weight: Any) -> Any:
        return read_numbers(RandomForestRegressor(categorical_features=self.categorical_features), X, y, sample_weight)

    def predict(self, X: Any) -> Array:
        """Mean over the trees of the values of the leaf of each row.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
        """
        return like_input(X, self._mean(X)[:, 0])

    def predict_quantile(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> Array:
        """Quantiles of the target given the features (quantile regression forest, Meinshausen 2006).

        A training row weighs as much as it shares the leaves of the new row, averaged over the trees.

        Parameters
        ----------
        X : array or data frame of shape (n_samples, n_features)
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
