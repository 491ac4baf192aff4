"""Chosen by folds: one cross-validation over warm paths.

A path is a sequence of settings that one fit answers together: the alphas of a lasso, each started from the last, the alphas of a
ridge from one decomposition, the prunings of one tree. Every fold fits the path once and tells the error of each setting on
the rows left out; then

    error(setting) = Σ_k W_k error_k(setting) / Σ_k W_k,        W_k the weight of the rows left out in fold k,

which is the weighted mean over all of them. The least error wins. Among equals the simplest setting does, and with the rule of
one standard error every setting whose error exceeds the least by no more than its standard error over the folds counts as
equal.     Breiman, Friedman, Olshen and Stone (1984), Classification and Regression Trees, section 3.4.3
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from certifit._types import Array, Matrix
from certifit.evaluation.splits.folds import content_folds

__all__ = ["Curve", "Fold", "folds_of", "over_folds"]

EQUAL = 1e-12  # errors that differ by less, relatively, are equal


class Fold(NamedTuple):
    """Numbers of the rows to fit, and of the rows left out."""

    train: Array
    test: Array


@dataclass(frozen=True)
class Curve:
    """The error of each setting of a path on rows that were left out.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve.of(np.array([[1.0, 1.4], [0.9, 1.1], [0.9, 1.3]]), np.ones(2))
    >>> curve.mean.round(2), curve.best(price=np.array([3.0, 2.0, 1.0]))
    (array([1.2, 1. , 1.1]), 1)
    >>> curve.best(price=np.array([1.0, 2.0, 3.0]), one_standard_error=True)
    2
    """

    mean: Array
    """Weighted mean over all rows left out, of each setting; NaN when there were none."""
    standard_error: Array
    """Of the mean, over the folds."""
    errors: Array
    """By fold, shape (n_settings, n_folds)."""

    @staticmethod
    def of(errors: Array, weight: Array) -> Curve:
        """From the errors by fold and the weights of the folds."""
        total = float(weight.sum())
        if not total > 0:
            nothing = np.full(errors.shape[0], np.nan)
            return Curve(nothing, nothing, errors)
        with np.errstate(invalid="ignore", over="ignore"):
            mean = errors @ (weight / total)
            spread = np.sqrt((errors - mean[:, None]) ** 2 @ (weight / total))
        return Curve(mean, spread / np.sqrt(max(errors.shape[1] - 1, 1)), errors)

    def best(self, price: Array, *, one_standard_error: bool = False) -> int:
        """The setting to take; the higher its price, the simpler the model.

        Where nothing could be tested, or no error is finite, the simplest of all.
        """
        known = np.where(np.isfinite(self.mean), self.mean, np.inf)
        least = float(known.min(initial=np.inf))
        if not np.isfinite(least):
            return int(np.argmax(price))
        equal = _simplest(price, known <= least + EQUAL * abs(least))
        if not one_standard_error:
            return equal
        slack = float(self.standard_error[equal])
        return _simplest(price, known <= known[equal] + (slack if np.isfinite(slack) else 0.0))


def _simplest(price: Array, among: Array) -> int:
    rows = np.flatnonzero(among)
    return int(rows[np.argmax(price[rows])])


def folds_of(
    cv: Any, X: Matrix, y: Array, *, kept: Array, given: Any, classes: Sequence[Any] | None = None
) -> list[Fold]:
    """The folds of rows that have positive weight.

    Parameters
    ----------
    cv : int, splitter, iterable of pairs, or None
        A number of folds (None: five) deals the rows by their content; splitters and pairs number the rows as they were given.
    X, y : array or sparse matrix of shape (n, d), array of shape (n,)
        The rows of positive weight; y holds class numbers where there are classes.
    kept : array of bool of shape (n_given,)
        Which of the rows given they are.
    given : array of shape (n_given,)
        The targets of all rows given, for splitters that look at them.
    classes : sequence, optional
        Names of the classes: each is dealt by itself, and every training part must have them all.

    Returns
    -------
    list of Fold
        Without those that leave out no row.
    """
    if cv is None or isinstance(cv, (int, np.integer)):
        count = 5 if cv is None else int(cv)
        fold = content_folds(X, y, count) if classes is None else _by_class(X, y, count, len(classes))
        found = [Fold(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(int(fold.max()) + 1)]
        return _usable(found, y, classes, needs_test=False)
    labels = np.asarray(given)
    place = np.cumsum(kept) - 1
    rows = np.arange(kept.shape[0])
    pairs = check_cv(cv, labels, classifier=classes is not None).split(np.zeros((kept.shape[0], 1)), labels)
    found = []
    for pair in pairs:
        train, test = (rows[part] for part in pair)
        found.append(Fold(place[train[kept[train]]], place[test[kept[test]]]))
    return _usable(found, y, classes, needs_test=True)


def _usable(found: list[Fold], y: Array, classes: Sequence[Any] | None, *, needs_test: bool) -> list[Fold]:
    """Folds with something to fit and something to test on."""
    for number, fold in enumerate(found, 1):
        if fold.train.size == 0:
            raise ValueError(f"Fold {number} of cv has no row of positive weight to fit: use fewer folds.")
        for code, name in enumerate(classes or ()):
            if not (y[fold.train] == code).any():
                raise ValueError(
                    f"Fold {number} of cv: the training part has no row of class {name!r}. Use fewer or stratified folds (an "
                    "integer cv stratifies), or drop the class."
                )
    found = [fold for fold in found if fold.test.size]
    if needs_test and not found:
        raise ValueError("No test part of cv has a row of positive weight: nothing can be chosen.")
    return found


def _by_class(X: Matrix, y: Array, count: int, n_classes: int) -> Array:
    """Fold of each row: the distinct rows of each class are dealt in turn.

    A class with one distinct row only cannot be both trained and tested on: its rows get −1, always in training.
    """
    fold = np.full(y.shape[0], -1, dtype=np.intp)
    for c in range(n_classes):
        rows = np.flatnonzero(y == c)
        for fewer in range(count, 1, -1):
            try:
                fold[rows] = content_folds(X[rows], y[rows].astype(np.float64), fewer)
            except ValueError:  # fewer distinct rows than folds
                continue
            break
    return fold


def over_folds(
    folds: Sequence[Fold],
    weight: Array,
    n_settings: int,
    errors_of: Callable[[Array, Array], Array],
    told: Callable[[int], None] = lambda done: None,
) -> Curve:
    """Fit a path on every fold.

    Parameters
    ----------
    folds : sequence of Fold
    weight : array of shape (n,)
        Of the rows, positive.
    n_settings : int
        Length of the path.
    errors_of : callable
        From the numbers of the rows to fit and of those left out to the weighted mean error on the latter, for each setting.
    told : callable
        Called with the number of folds done.
    """
    errors = np.zeros((n_settings, len(folds)))
    for k, fold in enumerate(folds):
        try:
            errors[:, k] = errors_of(*fold)
        except ValueError as error:
            raise ValueError(f"Fold {k + 1} of {len(folds)}: {error}") from error
        told(k + 1)
    return Curve.of(errors, np.array([float(weight[fold.test].sum()) for fold in folds]))
