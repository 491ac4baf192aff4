"""What the forests for classes and for numbers share: growth, out-of-bag estimates, importance and proximity."""

from __future__ import annotations

import numbers
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from certifit._types import Array, Matrix
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.equal_rows import repetitions, row_codes
from certifit.models.forest.parameters import BOOTSTRAP, DRAWS, OOB_SCORE, SHARE, TREES
from certifit.models.forest.urn import Urn, state_of, tree_seeds
from certifit.models.tree.base import BaseTree
from certifit.models.tree.growing import TreeArrays, importances
from certifit.models.tree.parameters import Grows
from certifit.models.tree.rows import CodedRows
from certifit.models.tree.targets import SERIAL, SERIAL_WALKS, Growth, grow, table_of
from certifit.parameters import WARM_START, Either, Fitted, Integer, Nothing, OneOf, Parameter, parameters_of
from certifit.parameters.docstrings import takes_as
from certifit.parameters.methods import SEVERAL, WITH_HOLES, weights
from certifit.progress import Progress
from certifit.threads import n_threads

__all__ = ["BaseForest", "OutOfBag", "amount", "drawing_order", "drawn_counts", "fit_drawn", "r_squared"]

HISTOGRAM_ROWS = 2_000
"""From this many rows on, splitter="auto" groups the values of a feature into bins."""


CHANCES = weights("Chances of a row to be drawn (weights of the rows without a bootstrap); 0 drops it.")


class OutOfBag:
    """Members that are tested by the rows they did not draw."""

    bootstrap: bool

    @takes_as(BaseTree.permutation_importance)
    def oob_permutation_importance(
        self, X: Any, y: Any, sample_weight: Any = None, random_state: Any = 0
    ) -> dict[str, Array]:
        """Rise of the out-of-bag error of each member when the values of one of its features are permuted.

        Parameters
        ----------
        X, y, sample_weight
            The training rows, in the order of the fit (rows of weight zero included).

        Returns
        -------
        dict
            ``importances_mean`` and ``importances_std`` (over the members) and ``importances`` of shape
            (n_features, n_estimators); zero for a feature that a member did not have.
        """
        check_is_fitted(self)
        if not self.bootstrap:
            raise ValueError("oob_permutation_importance needs bootstrap=True: without it no row is out of bag.")
        return importances(self._oob_rises(X, y, sample_weight, check_random_state(random_state)))

    def _oob_rises(self, X: Any, y: Any, sample_weight: Any, rng: np.random.RandomState) -> Array:
        """The rises, a row for each member and a column for each feature."""
        raise TypeError(f"{type(self).__name__} must say what its members lose.")


class BaseForest(
    OutOfBag, Grows, CertifiedEstimator, takes={"X": WITH_HOLES, "fit.y": SEVERAL, "fit.sample_weight": CHANCES}
):
    """Growth, out-of-bag estimates, importance and proximity."""

    n_estimators: int = TREES
    _: KW_ONLY
    bootstrap: bool = BOOTSTRAP.but(
        text="Whether each tree draws its rows, with probabilities proportional to their weights; otherwise it sees all of "
        "them. Rows are then counted as drawn."
    )
    max_samples: Any = Parameter(
        None,
        Either(*SHARE.parts, Nothing()),
        "Draws of each tree, as a number or as a share; as many as rows if not given. Whole weights of up to 100 on average "
        "count rows; other weights are relative, and say nothing about their number.",
    )
    oob_score: bool = OOB_SCORE
    splitter: str = OneOf(
        ("auto", "exact", "histogram"),
        'Whether thresholds are sought among all values or between at most `max_bins` groups of them; "auto" takes groups '
        "from 2,000 rows on.",
    )
    max_bins: int = Parameter(255, Integer(2, 255), "Most groups of a feature.")
    warm_start: bool = WARM_START.but(
        text="Whether a second `fit` on the same data adds trees instead of starting again."
    )
    random_state: Any = DRAWS

    _trees: TreeArrays = Fitted()
    _bags: Array = Fitted()
    _urns: list[Urn] = Fitted()
    n_features_in_: int = Fitted()
    n_outputs_: int = Fitted("int", "Number of targets.")
    feature_importances_: Array = Fitted(
        "array of shape (n_features,)", "Share of each feature in the decrease of impurity, averaged over the trees."
    )
    certificate_: Certificate = Fitted("Certificate", 'Of kind ``"none"``.')

    def _threads(self, X: Matrix) -> int:
        threads = n_threads(self.n_jobs)
        return threads if X.shape[0] * self._trees.n_trees >= SERIAL_WALKS else 1

    def _grow(self, rows: CodedRows, target: Any, draws: int, chances: Array) -> None:
        """Grow the trees that are still wanted; `draws` rows each, by their chances, or all rows where it is 0."""
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
                f"n_estimators={self.n_estimators} is less than the {done} trees already grown: with warm_start=True "
                "trees are only added."
            )
        if done and self._trees.categories.shape[0] != d:
            raise ValueError(
                f"warm_start=True continues a forest on {self._trees.categories.shape[0]} features; X has {d}."
            )
        if done and self._trees.values.shape[1] != (int(self._class_counts.sum()) or self.n_outputs_):
            raise ValueError("warm_start=True continues a forest: y must have as many targets as before.")
        if not done:
            self._seed = int(check_random_state(self.random_state).randint(0, 2**31 - 1))
        seeds = tree_seeds(self._seed, self.n_estimators)[done:]
        if seeds.size:
            threads = n_threads(self.n_jobs) if X.size * seeds.size >= SERIAL else 1
            binned = self._binned(X)
            table = table_of(
                X,
                self._categories,
                int(self.max_bins) if binned else 0,
                growth.presorts(d),
                threads,
                rows.weight,
            )
            self._missing = table.missing.astype(bool)
            order = drawing_order(X, rows.y) if draws else np.empty(0, dtype=np.uint32)
            urn = Urn.of(rows, seeds.size, draws, order, chances)
            trees, bags = grow(
                table, target, growth, self._categories, d, seeds, threads, draws, urn.chances, urn.order
            )
            self._trees = self._trees.joined(trees) if done else trees
            self._bags = np.concatenate([self._bags, bags]) if done else bags
            self._urns = [*getattr(self, "_urns", []), urn] if done else [urn]
        self.estimators_depth_ = self._trees.depth
        self.feature_importances_ = self._trees.importance()
        self._certify(self._certificate(clock))

    def _binned(self, X: Array) -> bool:
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
            "A forest optimizes no objective as a whole: the objective is the mean training impurity of its greedy "
            "trees. Its OOB error (oob_score=True) estimates the risk on new data."
        )
        return Certificate.absent(
            float(risks.mean()), note, scale=scale, iterations=self._trees.n_trees, seconds=clock.seconds
        )

    def _draws(self, weight: Array) -> int:
        """Size of a bootstrap sample: as many rows as the weights stand for; 0 for no bootstrap."""
        if not self.bootstrap:
            if self.oob_score:
                raise ValueError("oob_score=True needs bootstrap=True: without it no row is out of bag.")
            if self.max_samples is not None:
                raise ValueError("max_samples needs bootstrap=True.")
            return 0
        rows = repetitions(weight)
        return rows if self.max_samples is None else amount(self.max_samples, rows)

    def _out_of_bag(self, rows: CodedRows) -> tuple[Array, Array]:
        """Mean OOB prediction of each row (NaN where every tree drew it) and its number of trees."""
        X = self._coded_again(rows.X)
        sums, counts, curve = self._trees.out_of_bag(
            X, self._bags, rows.truth, self._class_counts, rows.weight, n_threads(self.n_jobs)
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

    def _mean(self, X: Any) -> Array:
        table = self._table(X)
        return self._trees.predict(table, self._threads(table))

    @property
    def estimators_(self) -> list[Any]:
        """The trees, each a fitted tree model on the arrays of the forest, with its rules, picture and path."""
        check_is_fitted(self)
        return [self._tree_number(k) for k in range(self._trees.n_trees)]

    def _tree_number(self, k: int) -> Any:
        """One tree as a model of its own; its rows are those that it drew."""
        own = {
            name: value for name, value in self.get_params(deep=False).items() if name in parameters_of(self._member)
        }
        # Trees of older files were drawn in another way.
        state = state_of(int(tree_seeds(self._seed, k + 1)[k])) if hasattr(self, "_urns") else None
        tree = self._member(**{**own, "random_state": state})
        tree._tree, tree._collapse = self._trees.alone(k), None
        tree._missing = getattr(self, "_missing", np.zeros(self.n_features_in_, dtype=bool))  # older files do not say
        for name in ("_categories", "n_features_in_", "n_outputs_", "feature_names_in_", "classes_"):
            if hasattr(self, name):
                setattr(tree, name, getattr(self, name))
        tree._describe()
        tree._certify(tree._greedy_certificate(0.0))
        return tree

    @property
    def estimators_samples_(self) -> list[Array]:
        """Rows that each tree was grown on, each as often as it was drawn.

        A tree of the forest, cloned and fitted on its rows, is that tree again, where thresholds are sought among all values.
        """
        check_is_fitted(self)
        urns = [urn for urn in getattr(self, "_urns", []) for _ in range(urn.trees)]
        if len(urns) < self._trees.n_trees:
            raise ValueError(
                "This forest is of an older file, which does not say how often a row was drawn: fit it again."
            )
        seeds = tree_seeds(self._seed, len(urns)).tolist()
        return [urn.drawn(seed) for urn, seed in zip(urns, seeds, strict=True)]

    def apply(self, X: Any) -> Array:
        """Number of the leaf of each row in each tree.

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
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.
        Y : array, sparse matrix or data frame, optional
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

    def _oob_rises(self, X: Any, y: Any, sample_weight: Any, rng: np.random.RandomState) -> Array:
        rows = self._read_again(X, y, sample_weight)
        if (rows.X.shape[0] + 7) // 8 != self._bags.shape[1]:
            raise ValueError(
                f"X has {rows.X.shape[0]} rows of positive weight, but the forest was fitted on another "
                "number: give the training rows."
            )
        seed = int(rng.randint(0, 2**31 - 1))
        table, threads = self._coded_again(rows.X), n_threads(self.n_jobs)
        return self._trees.permutation_importance(
            table, self._bags, rows.truth, self._class_counts, rows.weight, seed, threads
        )

    def _read_again(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        """The training rows once more, for estimates after the fit."""
        raise TypeError(f"{type(self).__name__} must say what its targets are.")


def amount(value: Any, whole: int) -> int:
    """A number of rows or columns, or a share of them, at least one."""
    return int(value) if isinstance(value, numbers.Integral) else max(1, int(value * whole + 0.5))


def r_squared(truth: Array, said: Array, weight: Array, seen: Array) -> float:
    """Weighted R² of the rows that were seen, averaged over the columns (targets); NaN where nothing varies."""
    if not seen.any():
        return float("nan")
    w, y = weight[seen], truth[seen].reshape(int(seen.sum()), -1)
    spread = w @ (y - w @ y / w.sum()) ** 2
    missed = w @ (y - said[seen].reshape(y.shape)) ** 2
    return float(np.mean(np.divide(spread - missed, spread, out=np.full_like(spread, np.nan), where=spread > 0)))


def drawing_order(X: Matrix, y: Array) -> Array:
    """Rows in the order of what they contain, copies side by side.

    Draws from it depend neither on the order in which the rows are given, nor on whether a row is written twice or has weight 2.
    """
    return np.argsort(row_codes(X, y), kind="stable").astype(np.uint32)


def drawn_counts(rng: Any, order: Array, weight: Array, draws: int) -> Array:
    """How often each row is drawn, with replacement and chances by weight, from rows in the order of their content."""
    n, ends = order.shape[0], np.cumsum(weight[order])
    drawn = np.searchsorted(ends, rng.uniform(size=draws) * ends[-1], side="right")
    return np.bincount(order[np.minimum(drawn, n - 1)], minlength=n)


def fit_drawn(estimator: Any, X: Any, y: Array, counts: Array) -> Any:
    """Fit on the drawn rows: as weights where the estimator takes them, as repetitions where it does not."""
    kept = np.flatnonzero(counts)
    if has_fit_parameter(estimator, "sample_weight"):
        return estimator.fit(X[kept], y[kept], sample_weight=counts[kept].astype(np.float64))
    rows = np.repeat(kept, counts[kept])
    return estimator.fit(X[rows], y[rows])
