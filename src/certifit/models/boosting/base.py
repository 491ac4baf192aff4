"""What boosted regressors and classifiers share: parameters, input, the fit, its attributes, raw scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix
from certifit.base import CertifiedEstimator
from certifit.certificate import Certificate
from certifit.data.gate import check_x, check_xy, like_input
from certifit.evaluation.losses import Loss
from certifit.models.boosting.fit import OURS, Boosted, Booster, Manner, Plan, Watch, validation_rows
from certifit.models.boosting.parameters import plan_of
from certifit.models.boosting.table import learn_categories, numbered
from certifit.models.boosting.trees import Tree, TreeSum
from certifit.models.linear.parameters import LOSS
from certifit.parameters import (
    LEARNING_RATE,
    N_ESTIMATORS,
    TOL,
    VALIDATION_FRACTION,
    WARM_START,
    Choice,
    Declared,
    Either,
    Fitted,
    Flag,
    Given,
    Integer,
    Nothing,
    Parameter,
    Real,
)
from certifit.progress import progress
from certifit.threads import n_threads

__all__ = ["LEAF_L2", "BaseBoosting"]


LEAF_L2 = Parameter(0.0, Real(0), "Adds ½·l2·v² for each leaf value v to the weighted total loss.")


class BaseBoosting(Declared, CertifiedEstimator):
    """What regressors and classifiers share; a subclass says which loss its parameters mean."""

    loss: Any = LOSS
    n_estimators: int = N_ESTIMATORS.but(
        text="Stages, each with one tree (one for each class when there are more than two)."
    )
    learning_rate: float = LEARNING_RATE.but(0.1, "Share of each tree that is added.")
    max_leaf_nodes: int | None = Parameter(
        31,
        Either(Integer(2), Nothing()),
        "Most leaves of a tree; they are split in the order of their gain.",
        was="max_leaves",
    )
    max_depth: int | None = Parameter(None, Either(Integer(1), Nothing()), "Most splits between root and leaf.")
    min_samples_leaf: float = Parameter(
        20, Real(0), "Least weight of the rows of a leaf (their number, without weights)."
    )
    l2: float = LEAF_L2
    subsample: float = Parameter(1.0, Real(0, 1, open_low=True), "Share of the rows drawn for each stage.")
    colsample: float = Parameter(1.0, Real(0, 1, open_low=True), "Share of the columns drawn for each stage.")
    max_bins: int = Parameter(255, Integer(2, 255), "Bins of a column; missing values have one more.")
    monotone_constraints: Any = Parameter(
        None,
        Either(Given("array of −1, 0 and 1, dict", wrong=([1], [2, 0, 0, 0, 0], {99: 1})), Nothing()),
        "1 makes predictions never decrease with the column, −1 never increase. A dict maps names or numbers.",
        was="monotone",
    )
    interactions: Any = Parameter(
        None,
        Either(Choice("pairwise", "none"), Given("list of lists", wrong=([[99]], [["no such column"]])), Nothing()),
        "Sets of columns that may meet on one path of a tree. Columns in no set form one more set.",
    )
    categorical_features: Any = Parameter(
        "auto",
        Either(Choice("auto"), Given("list of columns", wrong=([99], ["no such column"])), Nothing()),
        'Columns of categories, by number or name or as a mask. "auto" takes the text columns of a data frame.',
        was="categorical",
    )
    category_smoothing: float = Parameter(
        10.0, Real(0), "Curvature added when categories are put in order, so that rare ones move to the middle."
    )
    early_stopping: Any = Parameter(
        "auto",
        Either(Flag(), Choice("auto")),
        'Set rows aside and stop when their loss no longer falls; "auto" does so if the weight exceeds 10,000.',
    )
    validation_fraction: float = VALIDATION_FRACTION
    n_iter_no_change: int = Parameter(
        10, Integer(1), "Stages without improvement after which to stop; the best stage is kept."
    )
    tol: float = TOL.but(1e-7, "Least relative improvement that counts.", Real(0))
    warm_start: bool = WARM_START.but(
        text="Whether a second `fit` on the same data keeps the trees and adds those that `n_estimators` asks for."
    )

    trees_: list[Tree] = Fitted(
        "list of Tree", "Print one to read its rules. With K > 2 classes, tree i belongs to class i mod K."
    )
    n_iter_: int = Fitted("int", "Stages kept.")
    start_: Array = Fitted("array", "Score before the first tree, for each output.")
    feature_importances_: Array = Fitted(
        "array of shape (n_features,)", "Share of each column in the gains of all splits."
    )
    validation_loss_: Array | None = Fitted(
        "array or None", "Loss of the rows set aside after each stage, if there were any."
    )
    certificate_: Certificate = Fitted(
        "Certificate", "The training loss and how steep it still is along the leaves; boosting has no bound but zero."
    )
    n_features_in_: int = Fitted("int", "Number of columns.")

    watch: ClassVar[Watch | None] = None
    rows_aside: ClassVar[Array | None] = None
    """Set by whoever has a rule of its own for when to stop, with the rows of positive weight that it looks at."""
    manner: ClassVar[Manner] = OURS
    """Set by whoever grows trees as another library does."""

    def _checked_input(self, X: Any, y: Any, sample_weight: Any, numeric: bool) -> tuple[Matrix, Array, Array, Plan]:
        """Arrays of the fit, and the plan; text columns are numbered first."""
        labels, width = self._labels_to_keep()
        if labels is None:
            X, labels = learn_categories(X) if self.categorical_features is not None else (X, {})
        X, y, weight = check_xy(
            self,
            numbered(X, labels),
            y,
            sample_weight=sample_weight,
            accept_sparse=("csr", "csc"),
            allow_nan=True,
            numeric_target=numeric,
        )
        if width not in (None, X.shape[1]):
            raise ValueError(f"warm_start=True continues a model of {width} features; X has {X.shape[1]}.")
        self._labels = labels
        plan = plan_of(self, X.shape[1], getattr(self, "feature_names_in_", None), list(labels))
        total = float(weight.sum())
        if not self.manner.count_rows and total < 2 * plan.min_samples_leaf <= X.shape[0]:
            warnings.warn(
                f"The weights sum to {total:g}, and min_samples_leaf={self.min_samples_leaf:g} is the least weight "
                "of a leaf: no split is possible. Weights count repetitions: scale them up, or lower "
                "min_samples_leaf.",
                stacklevel=3,
            )
        if (weight == weight[0]).all():
            weight = np.broadcast_to(weight[:1].copy(), weight.shape)  # one number in memory
        return X, y, weight, plan

    def _labels_to_keep(self) -> tuple[dict[int, Array] | None, int | None]:
        """Categories and number of features of the model that a warm start continues."""
        continued = self.warm_start is True and hasattr(self, "trees_")
        return (self._labels, self.n_features_in_) if continued else (None, None)

    def _validation(self, X: Matrix, y: Array, weight: Array) -> Array | None:
        """Rows set aside for early stopping."""
        if self.watch is not None:
            return self.rows_aside
        wanted = weight.sum() > 10_000 if self.early_stopping == "auto" else bool(self.early_stopping)
        return validation_rows(X, y, float(self.validation_fraction)) if wanted else None

    def _boost(
        self, X: Matrix, y: Array, weight: Array, loss: Loss, n_outputs: int, plan: Plan, unit: float = 1.0
    ) -> Boosted:
        """Run the loop; y and its scores are measured in `unit`."""
        previous = self._previous(n_outputs, plan, unit)
        if previous is None:
            self._seed = check_random_state(self.random_state).randint(2**31 - 1, size=4)
        validation = self._validation(X, y, weight)
        with progress(self.verbose, type(self).__name__) as clock:
            given = X, y, weight, loss, n_outputs, plan, validation, self._seed, previous, self.watch, self.manner
            result = Booster(*given).run(clock)
            seconds = clock.seconds
        self._seconds = seconds
        return result

    def _previous(self, n_outputs: int, plan: Plan, unit: float) -> Boosted | None:
        """What a warm start continues."""
        if not self.warm_start or not hasattr(self, "trees_"):
            return None
        done = self.n_iter_
        if self.start_.shape[0] != n_outputs:
            raise ValueError(
                f"warm_start=True continues a model of {self.start_.shape[0]} outputs; y asks for {n_outputs}: give the "
                "data of the first fit, or set warm_start=False."
            )
        if plan.n_estimators < done:
            raise ValueError(
                f"n_estimators={plan.n_estimators} is less than the {done} stages already there: with warm_start=True "
                "stages are only added."
            )
        history = [] if self.validation_loss_ is None else self.validation_loss_.tolist()
        kept = Boosted(self._binner, self.start_, self.trees_, 0.0, 0.0, 0.0, history)
        return kept if unit == 1.0 else kept.rescaled(1.0 / unit, 1.0)

    def _keep(self, result: Boosted, loss: Loss, n_outputs: int) -> None:
        """Fitted attributes."""
        self._loss = loss
        self._binner = result.binner
        self.trees_ = result.trees
        self.start_ = result.start
        self._sum = TreeSum(result.trees, result.binner, result.start)
        self.n_iter_ = len(result.trees) // n_outputs
        self.validation_loss_ = np.array(result.validation_loss) if result.validation_loss else None
        gains = np.zeros(self.n_features_in_)
        for tree in result.trees:
            inner = tree.feature >= 0
            np.add.at(gains, tree.feature[inner], tree.gain[inner])
        self.feature_importances_ = gains / gains.sum() if gains.sum() > 0 else gains
        self._certify(
            Certificate.absent(
                result.objective,
                "Boosting is greedy: no bound below its objective is known but zero, the least any loss can be. "
                f"Stationarity: the gradient along the leaves of the last tree has norm {result.stationarity:.1e}."
                f"{' ' + loss.trivial if loss.trivial else ''}",
                scale=result.constant_objective,
                iterations=self.n_iter_,
                seconds=self._seconds,
            )
        )

    def _checked_x(self, X: Any) -> Matrix:
        check_is_fitted(self, "trees_")
        return check_x(self, numbered(X, self._labels), reset=False, allow_nan=True)

    def _scores(self, X: Any) -> Array:
        """Raw scores of shape (n, outputs), in the precision of X unless they are too large for it."""
        X = self._checked_x(X)
        return like_input(X, self._sum.scores(X, n_threads(self.n_jobs)))

    def _staged_scores(self, X: Any) -> Iterator[Array]:
        X = self._checked_x(X)
        threads = n_threads(self.n_jobs)
        bins = self._binner.transform(X, n_threads=threads)
        outputs = self.start_.shape[0]
        scores = np.tile(self.start_, X.shape[0])
        for stage in range(self.n_iter_):
            self._sum.add(bins, scores, stage * outputs, (stage + 1) * outputs, threads)
            yield like_input(X, scores.reshape(X.shape[0], outputs).copy())

    def apply(self, X: Any) -> Array:
        """Node of each tree in which each row ends.

        Returns
        -------
        array of shape (n_samples, n_trees)
        """
        X = self._checked_x(X)
        threads = n_threads(self.n_jobs)
        return self._sum.leaves(self._binner.transform(X, n_threads=threads), threads)

    def rules(self, i: int) -> str:
        """Tree i as text, with the names of columns and categories."""
        check_is_fitted(self, "trees_")
        tree: Tree = self.trees_[i]
        names = getattr(self, "feature_names_in_", None)
        return tree.rules(None if names is None else [str(name) for name in names], self._labels)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
