"""Trees of few questions, the best of all.

    minimize over trees T of at most max_depth levels    (1/Σs_i) Σ s_i · loss(y_i, T(x_i))  +  alpha · leaves(T)

with 0-1 loss for classes and (y − f)² for numbers: the mean impurity by which decision trees are pruned. Greedy growth
takes the best split of each node; here all thresholds of all levels are chosen together, by branch and bound
(`native/optimal/`), and what was left aside is proven to be no better.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import numpy as np

import certifit._native.optimal as native
from certifit._types import Array
from certifit.certificate import Certificate
from certifit.data.targets import class_weights
from certifit.models.optimal.questions import Questions, Target, tree_of
from certifit.models.tree.base import BaseTree
from certifit.models.tree.model import DecisionTreeClassifier, DecisionTreeRegressor
from certifit.models.tree.rows import CodedRows, read_classes, read_numbers
from certifit.models.tree.targets import fixed_point
from certifit.parameters import ALPHA, CLASS_WEIGHT, TOL, VERBOSE, Either, Fitted, Integer, Nothing, Parameter, Real
from certifit.parameters import check_parameters as check_all
from certifit.parameters.methods import WITH_HOLES
from certifit.progress import Progress, progress
from certifit.threads import n_threads

__all__ = ["OptimalTreeClassifier", "OptimalTreeRegressor"]

DEPTH = Parameter(3, Integer(1, 4), "Most questions on a path.")
PRICE = ALPHA.but(0.0, text="Price of a leaf.")
THRESHOLDS = Parameter(
    None,
    Either(Integer(1), Nothing()),
    "Most thresholds of a column, such that they part the weight evenly; None takes every one.",
)
TIME_LIMIT = Parameter(
    60.0,
    Either(Real(0, infinite=True), Nothing()),
    "Seconds after which the search ends with the best tree so far, and a bound of all others; None sets no limit.",
)


def whole(weight: Array, most: float = 2.0**52) -> Array:
    """The weights in a unit of which each has a whole number: their least one, if that is such a unit."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        times = weight / weight.min()
        near = np.rint(times)
        if near.sum() <= most and (np.abs(times - near) <= 1e-14 * times).all():
            return near
    return fixed_point(weight, most=most)[0]


def exact_price(alpha: float, total: float) -> float:
    """The price of a leaf for rows of so much weight, with digits that leave sums of prices and of weights exact."""
    digits = 48 - math.frexp(total)[1]
    return math.ldexp(math.floor(math.ldexp(alpha * total, digits)), -digits) if alpha < 1.0 else alpha * total


class Units(NamedTuple):
    """Of the costs in the search."""

    total: float
    """Weight of all rows."""
    constant: float
    """Cost of the best constant."""
    unit: float = 1.0
    """One of the search, in the units of the objective."""


class _OptimalTree(BaseTree, takes={"X": WITH_HOLES}):
    """The search, and what it proves."""

    max_depth: int | None = DEPTH
    alpha: float = PRICE
    _: KW_ONLY
    max_thresholds: int | None = THRESHOLDS
    tol: float = TOL
    time_limit: float | None = TIME_LIMIT
    verbose: int = VERBOSE

    certificate_: Certificate = Fitted("Certificate", "A bound of the objective of every tree of that depth.")

    monotone_constraints = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Search for the best tree."""
        check_all(self)
        with progress(int(self.verbose), type(self).__name__) as clock:
            rows = self._read(X, y, sample_weight)
            if rows.y.ndim > 1:
                raise ValueError(
                    f"{type(self).__name__} takes one target: y must be a 1d array; it has {rows.y.shape[1]} columns. "
                    "Fit one tree for each."
                )
            questions = Questions.of(rows.X, self._categories, rows.weight, self.max_thresholds)
            self._keep(rows, questions, *self._search(rows, questions, clock), clock)
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        """The rows, labels as class numbers."""
        raise TypeError(f"{type(self).__name__} must say what it reads.")

    def _search(self, rows: CodedRows, questions: Questions, clock: Progress) -> tuple[Target, Any, Units]:
        """What leaves predict, what the native search found, and the units of its costs."""
        raise TypeError(f"{type(self).__name__} must say what a leaf costs.")

    def _limits(self, price: float, scale: float, clock: Progress) -> Any:
        """Of the native search, and the bar that it moves; the scale is the cost of the best constant."""

        def told(looked_at: int, still_open: int, value: float, bound: float) -> None:
            clock.update(looked_at, looked_at + still_open, (value - bound) / scale if scale > 0 else 0.0)

        seconds = math.inf if self.time_limit is None else float(self.time_limit)
        # Half of the tolerance is for what is left aside, half for rounding.
        slack = min(0.5 * self.tol, 1e30) * scale
        threads = n_threads(self.n_jobs)
        return native.Limits(int(self.max_depth or 0), price, slack, seconds, threads, told if self.verbose else None)

    def _keep(
        self, rows: CodedRows, questions: Questions, target: Target, found: Any, units: Units, clock: Progress
    ) -> None:
        """The tree that was found, and the evidence."""
        feature, cut, value, lower, looked_at = found
        self._tree = tree_of(feature, cut, questions, rows.X, self._categories, target)
        self._collapse: Array | None = None
        self._missing: Array = np.asarray(np.isnan(rows.X).any(axis=0))
        self._describe()
        thresholds = (
            "" if self.max_thresholds is None else f" over at most {self.max_thresholds} thresholds of a column"
        )
        late = self.time_limit is not None and clock.seconds >= self.time_limit
        certificate = Certificate(
            "branch and bound",
            objective=value / units.total,
            bound=lower / units.total,
            scale=units.constant / units.total,
            tol=self.tol,
            iterations=looked_at,
            seconds=clock.seconds,
            note=f"The search was stopped after time_limit={self.time_limit:g} seconds." if late else "",
            claim=f"best tree of depth {self.max_depth}{thresholds}",
        )
        self._certify(certificate.rescaled(units.unit))


ORDER = ("max_depth", "alpha", "max_thresholds", "categorical_features", "tol", "time_limit", "n_jobs", "verbose")


class OptimalTreeClassifier(_OptimalTree, DecisionTreeClassifier):
    """The best decision tree of few levels for classes.

    Minimizes the weighted share of wrong labels + alpha · leaves over all trees of at most `max_depth` levels: all columns, all
    thresholds, for a category the question whether it is that one. Missing values go to the better side.

    Attributes
    ----------
    classes_ : array
        Labels.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import DecisionTreeClassifier, OptimalTreeClassifier
    >>> X = np.random.default_rng(0).uniform(size=(200, 3))
    >>> y = (X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)  # no first question helps by itself
    >>> greedy = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> best = OptimalTreeClassifier(max_depth=2).fit(X, y)
    >>> bool(greedy.score(X, y) < best.score(X, y)), best.certificate_.claim
    (True, 'best tree of depth 2')
    >>> print(best.rules())
    x0 <= 0.5017
    |   x1 <= 0.5037: False (32 rows, 100%)
    |   x1 > 0.5037: True (57 rows, 100%)
    x0 > 0.5017
    |   x1 <= 0.5001: True (59 rows, 100%)
    |   x1 > 0.5001: False (52 rows, 100%)
    """

    alpha: float = PRICE.but(
        1e-6, text="Price of a leaf; the default one makes the smallest of trees that are equally good."
    )
    class_weight: Any = CLASS_WEIGHT
    __order__ = (*ORDER[:3], "class_weight", *ORDER[3:])
    criterion = "misclassification"

    def _read(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        return read_classes(self, X, y, sample_weight)

    def _search(self, rows: CodedRows, questions: Questions, clock: Progress) -> tuple[Target, Any, Units]:
        shares = class_weights(self.class_weight, self.classes_, rows.y, rows.weight)
        ranks, labels, counts = questions.merged(rows.y, rows.weight)
        weight = whole(counts * shares[labels])
        count, total = self.classes_.shape[0], float(weight.sum())
        price = exact_price(float(self.alpha), total)
        constant = total - float(np.bincount(labels, weights=weight).max()) + price
        found = native.classes(ranks, labels.astype(np.uint32), count, weight, self._limits(price, constant, clock))
        parts = np.zeros((rows.y.shape[0], count))
        parts[np.arange(rows.y.shape[0]), rows.y] = rows.weight * shares[rows.y]
        return Target(parts, classes=True), found, Units(total, constant)


class OptimalTreeRegressor(_OptimalTree, DecisionTreeRegressor):
    """The best decision tree of few levels for numbers.

    Minimizes the weighted mean of (y − f)² + alpha · leaves over all trees of at most `max_depth` levels: all columns, all
    thresholds, for a category the question whether it is that one. Missing values go to the better side.

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import OptimalTreeRegressor
    >>> X = np.random.default_rng(0).uniform(size=(100, 3))
    >>> y = np.where(X[:, 0] > 0.5, X[:, 1] > 0.3, X[:, 1] > 0.8) + 0.0
    >>> tree = OptimalTreeRegressor(max_depth=2).fit(X, y)
    >>> tree.certificate_.objective, tree.certificate_.certified
    (0.0, True)
    """

    __order__ = ORDER
    criterion = "squared"

    def _read(self, X: Any, y: Any, sample_weight: Any) -> CodedRows:
        return read_numbers(self, X, y, sample_weight)

    def _search(self, rows: CodedRows, questions: Questions, clock: Progress) -> tuple[Target, Any, Units]:
        ranks, y, counts = questions.merged(rows.y, rows.weight)
        weight = whole(counts, most=2.0**26)
        # Near one, by a power of two: neither squares nor sums leave the range, and whole numbers stay whole.
        middle = 0.5 * y.min() + 0.5 * y.max()
        exponent = math.frexp(float(np.abs(y - middle).max()))[1]
        offset = np.ldexp(y - middle, -exponent)
        total = float(weight.sum())
        with np.errstate(over="ignore", under="ignore"):
            price = float(min(np.ldexp(self.alpha, -2 * exponent) * total, 1e300))
        moments = np.stack([weight, weight * offset, weight * offset**2], axis=1)
        reach = weight * np.maximum(offset - offset.min(), offset.max() - offset) ** 2
        constant = max(0.0, float(moments[:, 2].sum() - moments[:, 1].sum() ** 2 / total)) + price
        with np.errstate(over="ignore", under="ignore"):
            units = Units(total, constant, float(np.ldexp(1.0, 2 * exponent)))
        found = native.numbers(
            ranks, np.ascontiguousarray(np.column_stack([moments, reach])), self._limits(price, constant, clock)
        )
        return Target(np.stack([rows.weight, rows.weight * rows.y], axis=1), classes=False), found, units
