"""What the trees for classes and for numbers share: growth, pruning, importance, rules and pictures."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.axes import drawn
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_real, check_sample_weight, target_array
from certifit.models.tree.columns import dense
from certifit.models.tree.drawing import draw_tree
from certifit.models.tree.growing import TreeArrays, feature_labels, importances
from certifit.models.tree.outputs import class_lists
from certifit.models.tree.parameters import Grows
from certifit.models.tree.pruning import PruningPath, collapse_alphas, cut, parents, pruning_path
from certifit.models.tree.rows import CodedRows
from certifit.models.tree.rules import LeafInterval, Words, leaf_intervals, renamed, rule_text
from certifit.models.tree.targets import SERIAL, SERIAL_WALKS, FixedTarget, Growth, grow, table_of
from certifit.parameters import Fitted, OfColumns, Parameter, Real
from certifit.parameters.methods import SEVERAL, WITH_HOLES
from certifit.progress import Progress
from certifit.threads import n_threads

__all__ = ["BaseTree"]


class BaseTree(OfColumns, Grows, CertifiedEstimator, takes={"X": WITH_HOLES, "fit.y": SEVERAL}):
    """What both kinds of tree share: growth, pruning, rules and pictures."""

    _: KW_ONLY
    ccp_alpha: float = Parameter(
        0.0,
        Real(0, infinite=True),
        "Price of a leaf: with a positive one the grown tree is pruned to the subtree of least mean impurity + "
        "ccp_alpha · leaves.",
    )

    _tree: TreeArrays = Fitted()
    n_outputs_: int = Fitted("int", "Number of targets.")
    n_leaves_: int = Fitted("int", "Leaves of the tree.")
    n_nodes_: int = Fitted("int", "Leaves and splits.")
    depth_: int = Fitted("int", "Most questions on a path.")
    feature_importances_: Array = Fitted("array", "Share of each feature in the decrease of impurity.")
    certificate_: Certificate = Fitted(
        "Certificate", '``"none"`` for a grown tree (it is greedy), ``"exact over subtrees"`` for a pruned one.'
    )

    def _threads(self, X: Array) -> int:
        threads = n_threads(self.n_jobs)
        return threads if X.size >= SERIAL else 1

    def _walk_threads(self, X: Matrix) -> int:
        threads = n_threads(self.n_jobs)
        return threads if X.shape[0] >= SERIAL_WALKS else 1

    def _grow(self, rows: CodedRows, target: Callable[[], FixedTarget]) -> None:
        """Grow, prune if asked to, and certify; the target is made when the table is: sorting takes memory of its own."""
        clock = Progress()
        threads = self._threads(rows.X)
        names = getattr(self, "feature_names_in_", None)
        growth = Growth.of(self, names, rows.X.shape[1], float(rows.weight.sum()))
        if any(growth.monotone[j] for j in self._categories.columns if growth.monotone.size):
            raise ValueError(
                "monotone_constraints apply to numbers: a categorical feature has no order to be monotone in."
            )
        sure = growth.presorts(rows.X.shape[1])
        table = table_of(rows.X, self._categories, 0, sure, threads)
        seeds = np.array([0 if sure else self._seed()], dtype=np.uint64)
        self._tree, _ = grow(table, target(), growth, self._categories, rows.X.shape[1], seeds, threads)
        self._collapse: Array | None = None
        self._missing: Array = table.missing.astype(bool)
        if self.ccp_alpha > 0:
            self._prune(float(self.ccp_alpha), clock)
        else:
            self._describe()
            self._certify(self._greedy_certificate(clock.seconds))

    def _seed(self) -> int:
        """Of the draws of a tree. A number is the seed itself: so a tree of a forest can be grown again alone."""
        if isinstance(self.random_state, numbers.Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(0, 2**31 - 1))

    @property
    def _outputs(self) -> int:
        return getattr(self, "n_outputs_", 1)  # trees of older files have one, and do not say so

    def _describe(self) -> None:
        leaf = self._tree.is_leaf
        self.n_leaves_ = int(leaf.sum())
        self.n_nodes_ = int(leaf.shape[0])
        self.depth_ = int(self._tree.depth[0])
        self.feature_importances_ = self._tree.importance()

    def get_depth(self) -> int:
        """Most questions on a path: `depth_`."""
        check_is_fitted(self)
        return self.depth_

    def get_n_leaves(self) -> int:
        """Number of leaves: `n_leaves_`."""
        check_is_fitted(self)
        return self.n_leaves_

    @property
    def categories_(self) -> dict[int, list[Any]]:
        """The categories of each categorical feature, by its number, sorted."""
        check_is_fitted(self)
        return {j: list(levels) for j, levels in self._categories.levels.items()}

    def _words(self) -> Words:
        """What the features, classes and categories are called."""
        return Words(
            feature_labels(self),
            class_lists(self.classes_) if hasattr(self, "classes_") else None,
            self._categories.levels,
            frozenset(np.flatnonzero(self._missing).tolist()),
        )

    def _risk(self) -> float:
        """Weighted mean impurity of the training rows."""
        return float(self._tree.loss[self._tree.is_leaf].sum() / self._tree.weight[0])

    def _greedy_certificate(self, seconds: float) -> Certificate:
        scale = float(self._tree.loss[0] / self._tree.weight[0])
        note = (
            "Each split is the best one of its node; no statement about the best tree as a whole. The objective is the "
            "weighted mean impurity of the training rows."
        )
        return Certificate.absent(self._risk(), note, scale=scale, iterations=self.n_leaves_ - 1, seconds=seconds)

    def _prune(self, alpha: float, clock: Progress) -> None:
        grown = int(self._tree.is_leaf.sum())
        self._tree, self._collapse = cut(self._tree, self._alphas(), alpha)
        self._describe()
        objective = self._risk() + alpha * self.n_leaves_
        note = (
            f"No subtree of the grown tree ({grown} leaves) has a smaller mean impurity + {alpha:g} · leaves; the grown "
            "tree itself is greedy."
        )
        work: dict[str, Any] = {"iterations": self.n_leaves_ - 1, "seconds": clock.seconds}
        claim = "best pruning of this tree"
        self._certify(Certificate.exact(objective, note, kind="exact over subtrees", claim=claim, **work))

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

    def _mean(self, X: Any) -> Array:
        table = self._table(X)
        return self._tree.predict(table, self._walk_threads(table))

    def apply(self, X: Any) -> Array:
        """Number of the leaf of each row."""
        table = self._table(X)
        return np.asarray(self._tree.apply(table, self._walk_threads(table))[:, 0])

    def decision_path(self, X: Any) -> Any:
        """Which nodes each row visits."""
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

    def permutation_importance(
        self, X: Any, y: Any, sample_weight: Any = None, n_repeats: int = 5, random_state: Any = 0
    ) -> dict[str, Array]:
        """Rise of the error when the values of one feature are permuted.

        The error is the share of wrong classes (of several targets: of rows in which any of them is wrong), or the
        mean squared distance. Give rows the tree was not grown on: on its own rows it shows what the tree uses, not
        what helps on new ones.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Rows.
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Their target.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows.
        n_repeats : int, default=5
            Permutations of each feature.
        random_state : int or RandomState, default=0
            For the permutations.

        Returns
        -------
        dict
            ``importances_mean`` and ``importances_std`` (over the permutations) and ``importances`` of shape
            (n_features, n_repeats).
        """
        check_real("n_repeats", n_repeats, low=1, integer=True)
        table = dense(self._table(X))
        given = target_array(y, multi_output=self._outputs > 1)
        if given.ndim == 2 and given.shape[1] != self._outputs:
            raise ValueError(f"y must have {self._outputs} columns, as in training; it has {given.shape[1]}.")
        truth = self._truth(given)
        if truth.shape[0] != table.shape[0]:
            raise ValueError(
                f"X and y must have the same number of rows: X has {table.shape[0]}, y has {truth.shape[0]}."
            )
        weight = check_sample_weight(sample_weight, table.shape[0])
        kept = weight > 0
        if not kept.all():
            table, truth, weight = table[kept], truth[kept], weight[kept]
        nobody = np.zeros((1, (table.shape[0] + 7) // 8), dtype=np.uint8)  # the tree drew no row: all of them test it
        rng = check_random_state(random_state)
        rise = [
            self._tree.permutation_importance(
                np.ascontiguousarray(table),
                nobody,
                truth,
                self._class_counts,
                weight,
                int(rng.randint(2**31 - 1)),
                n_threads(self.n_jobs),
            )[0]
            for _ in range(n_repeats)
        ]
        return importances(np.array(rise))

    def rules(
        self,
        precision: int = 4,
        max_depth: int | None = None,
        *,
        feature_names: Any = None,
        class_names: Any = None,
        category_names: Any = None,
    ) -> str:
        """The tree as indented text.

        Parameters
        ----------
        precision : int, default=4
            Significant digits of thresholds and values.
        max_depth : int, optional
            Deepest level shown.
        feature_names : sequence of str, optional
            What to call the features, in their order; as in training if not given.
        class_names : sequence of str, optional
            What to call the classes, in the order of `classes_`; of several targets, a sequence for each.
        category_names : dict, optional
            For categorical features, by number or name, what to call their categories, in their sorted order.
        """
        check_is_fitted(self)
        words = renamed(self._words(), feature_names, class_names, category_names)
        return rule_text(self._tree, words, precision, max_depth)

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
        if self._outputs > 1:
            raise ValueError("leaf_intervals are of one target, and this tree has several: grow a tree for each.")
        return leaf_intervals(self, level)

    @drawn
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
        """
        check_is_fitted(self)
        return draw_tree(self, ax, max_depth, precision)
