"""A subset of columns that changes by one column at a time, and the error of each change on rows left out.

For least squares no change needs a fit. Let T be the swept tableau of (y, 1, X) on the rows that are fitted
(`native/subset/subset.hpp` has its parts), and u the vectors that the same sweeps make of the columns y, 1, X: u_y is the
residual, u_j what the members leave of column j, or for a member the dual vector of its coefficient. Whether column j is a member
or not, changing sides makes the residual

    u_y − (T_jy / T_jj) u_j,

so the squared error of all changes on rows left out follows from T and the Gram matrix H of the vectors u on these rows, and a
change itself is a sweep of T and the matching update of H: O(d²) a fold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone, is_classifier

from certifit._types import Array, Matrix
from certifit.evaluation.metrics.predictions import predict_for
from certifit.evaluation.metrics.registry import Metric
from certifit.evaluation.splits.choice import Fold
from certifit.models.selection.by_model import weighs
from certifit.models.selection.units import LEAST_PIVOT, InUnits

__all__ = ["LeastSquaresMoves", "MaskMoves", "Moves", "RefitMoves", "as_good", "best_move"]

ROUNDING = (
    1e-9  # of an error: those of one subset, reached by other steps or from weights in place of copies, differ less
)
MOST_WEIGHT = 0.99  # share of the rows left out up to which those fitted are what they leave of the products of all
LEAST_WEIGHT = 1e-300  # share of the rows fitted, so that products with it do not vanish
NOTHING = 1e-12  # of the squared error of no columns: less is left of rounding where the columns fit every row


class Moves(Protocol):
    """A subset of columns, beginning with none."""

    members: Array
    """Mask of the columns."""
    slack: float
    """Errors that differ by no more are equal, whatever their size."""

    def error(self) -> float:
        """Of the subset, on rows left out."""

    def errors(self, columns: Array) -> Array:
        """Of the subsets that differ from it in one of these columns; infinite where that cannot be."""

    def change(self, column: int) -> None:
        """Move a column in or out."""


def as_good(errors: Any, least: float, slack: float) -> Any:
    """Which errors are no greater than this one, but for rounding."""
    return errors <= least + ROUNDING * abs(least) + slack


def best_move(moves: Moves, outward: bool) -> tuple[int, float] | None:
    """The member that is missed least (outward), or the column that helps most, and the error then; None if there is none.

    The first of equals, so that no rounding chooses among columns of which each would fit every row.
    """
    candidates = np.flatnonzero(moves.members == outward)
    errors = moves.errors(candidates)
    if not np.isfinite(errors).any():
        return None
    first = int(np.argmax(as_good(errors, float(errors.min()), moves.slack)))
    return int(candidates[first]), float(errors[first])


class LeastSquaresMoves:
    """Least squares with an intercept, by updates."""

    def __init__(self, X: Array, y: Array, weight: Array, folds: Sequence[Fold]) -> None:
        data = InUnits.of(X, y, weight)
        ones = np.sqrt(weight / weight.sum())[:, None]
        rows = np.hstack([data.rows[:, :1], ones, data.rows[:, 1:]])
        n, d = X.shape
        self.members = np.zeros(d, dtype=bool)
        self._unit = float(data.scale[0])
        self._mass = sum(float((ones[fold.test] ** 2).sum()) for fold in folds)
        whole = rows.T @ rows
        self._left, self._fitted, self._least = [], [], []
        for fold in folds:
            left = rows[fold.test].T @ rows[fold.test]
            rest = fold.train.size + fold.test.size == n and not np.intersect1d(fold.train, fold.test).size
            # What is left of nearly all the weight is rounding: then the rows that are fitted count by themselves.
            subtracts = rest and left[1, 1] <= MOST_WEIGHT * whole[1, 1]
            fitted = whole - left if subtracts else rows[fold.train].T @ rows[fold.train]
            if fitted[1, 1] < LEAST_WEIGHT:
                raise ValueError(
                    f"the rows of sample_weight that are fitted when a fold is left out have less than {LEAST_WEIGHT:g} of its "
                    "sum: leave the lightest rows out, or give weights that differ less."
                )
            fitted = fitted / fitted[1, 1]
            self._left.append(left)
            self._fitted.append(fitted)
            self._least.append(LEAST_PIVOT * np.maximum(np.diagonal(fitted), 1.0))  # far from the mean they are rounded
        self._basic = np.zeros(d + 2, dtype=bool)
        self._sweep(1)
        self.slack = NOTHING * self.error()

    def _sweep(self, k: int) -> None:
        sign = -1.0 if self._basic[k] else 1.0
        for T, H in zip(self._fitted, self._left, strict=True):
            pivot, column = T[k, k], T[:, k].copy()
            factor = column / pivot
            T -= np.outer(factor, column)
            T[k] = T[:, k] = sign * factor
            T[k, k] = -1.0 / pivot
            factor[k] = 0.0
            cross = H[:, k] - 0.5 * H[k, k] * factor  # (u_i − f_i u_k)·(u_j − f_j u_k)
            change = np.outer(factor, cross)
            H -= change + change.T
            H[k] *= sign / pivot
            H[:, k] *= sign / pivot
        self._basic[k] = not self._basic[k]

    def error(self) -> float:
        """Mean squared error on rows left out, in the units of y."""
        return self._in_units(sum(float(H[0, 0]) for H in self._left))

    def errors(self, columns: Array) -> Array:
        """Of all changes at once."""
        places, total = np.asarray(columns) + 2, np.zeros(len(columns))
        for T, H, least in zip(self._fitted, self._left, self._least, strict=True):
            pivot = T[places, places]
            dependent = ~self._basic[places] & (pivot <= least[places])
            step = T[0, places] / np.where(dependent, 1.0, pivot)
            total += H[0, 0] - 2.0 * step * H[0, places] + step * step * H[places, places]
            total[dependent] = np.inf
        return np.asarray(self._in_units(total))

    def _in_units(self, total: Any) -> Any:
        return np.maximum(total, 0.0) / self._mass * self._unit * self._unit

    def change(self, column: int) -> None:
        """A sweep of every fold."""
        self._sweep(column + 2)
        self.members[column] = not self.members[column]


class MaskMoves(ABC):
    """Subsets that are judged one by one; a subclass says how."""

    slack = 0.0

    def __init__(self, d: int) -> None:
        self.members = np.zeros(d, dtype=bool)

    @abstractmethod
    def of(self, members: Array) -> float:
        """Error of a subset, lower is better."""

    def error(self) -> float:
        """Of the subset as it is."""
        return self.of(self.members)

    def errors(self, columns: Array) -> Array:
        """Each by its fits."""
        found = np.empty(len(columns))
        for i, column in enumerate(columns):
            trial = self.members.copy()
            trial[column] = not trial[column]
            found[i] = self.of(trial)
        return found

    def change(self, column: int) -> None:
        """Nothing is kept but the mask."""
        self.members[column] = not self.members[column]


class RefitMoves(MaskMoves):
    """Any estimator, fitted anew for every change on every fold."""

    def __init__(
        self, estimator: Any, X: Matrix, y: Array, weight: Array, folds: Sequence[Fold], metric: Metric
    ) -> None:
        self._estimator, self._X, self._y, self._weight, self._folds = estimator, X, y, weight, folds
        self._metric = metric
        self._weighs = weighs(estimator, weight)
        self._classes = np.unique(y) if is_classifier(estimator) else None
        super().__init__(X.shape[1])

    def of(self, members: Array) -> float:
        """The metric on rows left out; of no columns, that of a column without content."""
        X = self._X[:, np.flatnonzero(members)] if members.any() else np.zeros((self._X.shape[0], 1))
        total, mass = 0.0, 0.0
        for train, test in self._folds:
            options = {"sample_weight": self._weight[train]} if self._weighs else {}
            model = clone(self._estimator).fit(X[train], self._y[train], **options)
            said = predict_for(model, X[test], self._metric.needs)
            value = self._metric(self._y[test], said, sample_weight=self._weight[test], classes=self._classes)
            share = float(self._weight[test].sum())
            total, mass = total + share * value, mass + share
        return total / mass if self._metric.lower_is_better else -total / mass
