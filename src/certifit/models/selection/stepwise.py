"""Columns one after the other: forward, backward, and forward with second thoughts.

Each step changes the subset by the column that leaves the least error on rows left out. Floating search (Pudil, Novovičová and
Kittler 1994) takes columns out again after each step, as long as that gives a better subset of its size than any before.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from certifit._types import Array
from certifit.data.gate import check_xy
from certifit.data.targets import encode_labels
from certifit.evaluation.metrics.registry import METRICS, Metric, resolve_metric
from certifit.evaluation.splits.choice import folds_of
from certifit.models.selection.moves import LeastSquaresMoves, Moves, RefitMoves, as_good, best_move
from certifit.models.selection.selector import SelectorOfSizes
from certifit.names import stored
from certifit.parameters.common import CV, VERBOSE
from certifit.parameters.declared import Fitted, OneOf, Parameter, check_parameters
from certifit.parameters.domains import Choice, Either, Integer, Learner, Named, Nothing
from certifit.progress import progress

__all__ = ["StepwisePath", "StepwiseSelection"]


@stored("StepwisePath")
class StepwisePath(NamedTuple):
    """The steps; unpacks as ``columns, sizes, errors``."""

    columns: Array
    """The column that changed sides in each step."""
    sizes: Array
    """Columns in the subset after it."""
    errors: Array
    """Its error on rows left out: minus the metric where more of it is better."""


class StepwiseSelection(SelectorOfSizes, BaseEstimator):
    """Select columns one after the other by the error on rows left out.

    For least squares (``estimator=None``) no model is ever fitted: each step is an update of the correlations of each fold, and
    gives what fits of all candidates on all folds would. Any other estimator is fitted anew for each candidate.
    This is a greedy search: for the best subset of least squares with a proof see `BestSubset`.

    Columns that are combinations of those selected are not candidates of least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import StepwiseSelection
    >>> X = np.random.default_rng(0).normal(size=(200, 30))
    >>> y = 2 * X[:, 3] - X[:, 7] + 0.5 * X[:, 20] * X[:, 21]
    >>> StepwiseSelection(n_features=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    >>> StepwiseSelection(n_features=2, direction="backward").fit(X, y).path_.columns.shape
    (28,)
    """

    estimator: Any = Parameter(
        None,
        Either(Nothing(), Learner(example="Ridge()")),
        "What is fitted on the columns; None is least squares with an intercept, by updates.",
    )
    n_features: Any = Parameter(
        "auto",
        Either(Choice("auto"), Integer(1)),
        'How many columns (all, where there are fewer); "auto" takes the size with the least error.',
    )
    direction: str = OneOf(("forward", "backward", "floating"), "From none, from all, or from none with steps back.")
    metric: Any = Parameter(
        None,
        Either(Nothing(), Named("certifit.metrics.Metric", Metric, METRICS)),
        "What is measured on rows left out; None is the squared error of values, and the share of wrong labels of classifiers. "
        "Least squares by updates has the squared error only.",
    )
    cv: Any = CV
    patience: int | None = Parameter(
        10,
        Either(Integer(1), Nothing()),
        'With ``n_features="auto"``: steps without a new least error after which the search ends.',
    )
    verbose: int = VERBOSE

    path_: StepwisePath = Fitted("StepwisePath", "The steps.")
    error_: float = Fitted(
        "float",
        "Error of the subset on rows left out, minus the metric where more is better; optimistic, since it was chosen by it.",
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Search, and keep the subset."""
        check_parameters(self)
        exact = self.estimator is None
        classes = not exact and is_classifier(self.estimator)
        X, given, weight = check_xy(
            self,
            X,
            y,
            sample_weight=sample_weight,
            accept_sparse=False if exact else ("csr", "csc"),
            numeric_target=not classes,
            drop=False,
        )
        kept, d = weight > 0, X.shape[1]
        X, y, weight = X[kept], given[kept], weight[kept]
        names, codes = encode_labels(y) if classes else (None, y)
        folds = folds_of(self.cv, X, codes, kept=kept, given=given, classes=None if names is None else list(names))
        moves = self._moves(X, y, weight, folds)
        with progress(self.verbose, type(self).__name__) as clock:
            self.support_, self.error_, self.path_ = self._search(moves, d, clock)
        wanted = self.support_.sum() if self.n_features == "auto" else min(self.n_features, d)
        if self.support_.sum() < wanted:
            warnings.warn(
                f"StepwiseSelection: {self.support_.sum()} columns instead of n_features={wanted}: the others are combinations "
                "of them.",
                stacklevel=2,
            )
        return self

    def _moves(self, X: Any, y: Array, weight: Array, folds: Any) -> Moves:
        default = "zero_one" if self.estimator is not None and is_classifier(self.estimator) else "mse"
        metric = resolve_metric(default if self.metric is None else self.metric)
        if self.estimator is not None:
            return RefitMoves(self.estimator, X, y, weight, folds, metric)
        if metric.name not in ("mse", "rmse"):
            raise ValueError(
                f"metric={metric.name!r} needs fits: give the estimator, for example estimator=LinearRegression()."
            )
        return LeastSquaresMoves(X, y, weight, folds)

    def _search(self, moves: Moves, d: int, clock: Any) -> tuple[Array, float, StepwisePath]:
        """The best subset met of the wanted size, its error, and the steps."""
        best: dict[int, tuple[float, Array]] = {}
        steps: list[tuple[int, int, float]] = []

        def take(column: int, error: float) -> None:
            moves.change(column)
            size = int(moves.members.sum())
            steps.append((column, size, error))
            if size not in best or error < best[size][0]:
                best[size] = (error, moves.members.copy())
            clock.update(len(steps), d, 0.0)

        backward = self.direction == "backward"
        if backward:
            for column in range(d):
                if np.isfinite(moves.errors(np.array([column]))[0]) or isinstance(moves, RefitMoves):
                    moves.change(column)
        best[int(moves.members.sum())] = (moves.error(), moves.members.copy())
        end = (0 if backward else d) if self.n_features == "auto" else min(self.n_features, d)
        while (moves.members.sum() > end) if backward else (moves.members.sum() < end):
            move = best_move(moves, backward)
            if move is None:
                break
            take(*move)
            while self.direction == "floating" and moves.members.sum() > 2:
                back = best_move(moves, outward=True)
                if back is None or as_good(best[int(moves.members.sum()) - 1][0], back[1], moves.slack):
                    break
                take(*back)
            if self.n_features == "auto" and self.patience is not None and len(steps) > self.patience:
                least = min(error for error, _ in best.values())
                if not any(as_good(error, least, moves.slack) for _, _, error in steps[-self.patience :]):
                    break
        least = min(error for error, _ in best.values())
        size = (
            min(size for size, (error, _) in best.items() if as_good(error, least, moves.slack))
            if self.n_features == "auto"
            else min(best, key=lambda s: abs(s - self.n_features))
        )
        table = np.array(steps, dtype=np.float64).reshape(-1, 3)
        path = StepwisePath(table[:, 0].astype(np.intp), table[:, 1].astype(np.intp), table[:, 2])
        return best[size][1], best[size][0], path

    def _draw(self, ax: Any) -> str:
        ax.plot(self.path_.sizes, self.path_.errors, marker=".", label=f"{self.direction} steps")
        return "error on rows left out"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = False
        return tags
