"""Scores of single columns: what each says about the target by itself.

correlation             |corr(x_j, y)|
f                       r²/(1 − r²)·(n − 2): the F test of a straight line
anova                   (scatter between classes/(K − 1)) / (scatter within/(n − K)): the F test of equal means
chi2                    Σ (observed − expected)²/expected of the sums of x_j ≥ 0 in each class
mutual_information      Σ p(a, b) ln(p(a, b)/(p(a)p(b))) of x_j and y in bins of equal weight
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import chi2 as chi2_distribution
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from certifit._types import Array, Matrix, is_sparse
from certifit.axes import drawn
from certifit.data.gate import check_xy
from certifit.data.targets import encode_labels
from certifit.models.selection.selector import Selector
from certifit.models.selection.units import InUnits
from certifit.parameters import Choice, Fitted, Integer, Parameter
from certifit.representation.basis.summaries import mean_and_deviation
from certifit.representation.table.binning import equal_weight_bins

__all__ = ["SelectBest"]

BINS = 10
ROUNDING = 1e-14
"""Share of a variance that is the rounding of a difference."""
Scores = tuple[Array, Array]


def correlation(X: Matrix, y: Array, weight: Array) -> Scores:
    """|r| of each column, and the probability of as large a one without correlation."""
    r = np.minimum(np.abs(_correlations(X, y, weight)), 1.0)
    free = weight.sum() - 2
    if free <= 0:
        return r, np.full_like(r, np.nan)
    with np.errstate(divide="ignore"):
        return r, 2 * t_distribution.sf(r * np.sqrt(free / (1 - r * r)), free)


def _correlations(X: Matrix, y: Array, weight: Array) -> Array:
    if not is_sparse(X):
        return InUnits.of(X, y, weight).gram()[0, 1:]
    unit = InUnits.of(np.empty((y.shape[0], 0)), y, weight)
    _, scale = mean_and_deviation(X, weight)
    left = np.sqrt(weight / weight.sum()) * unit.rows[:, 0]
    return np.asarray(X.T @ left) / np.where(scale > 0, scale, np.inf)


def straight_line(X: Matrix, y: Array, weight: Array) -> Scores:
    """F of the regression on each column."""
    r, p = correlation(X, y, weight)
    free = float(weight.sum()) - 2
    if free <= 0:
        return np.zeros_like(r), p
    with np.errstate(divide="ignore"):
        return r * r / (1 - r * r) * free, p


def anova(X: Matrix, y: Array, weight: Array) -> Scores:
    """F of the means of the classes."""
    _, codes = encode_labels(y)
    share = weight / weight.sum()
    mass = np.bincount(codes, weights=share)
    indicator = codes[:, None] == np.arange(mass.shape[0])
    if is_sparse(X):
        mean, scale = mean_and_deviation(X, weight)
        means = (X.T @ (share[:, None] * indicator)).T / mass[:, None] - mean
        between = mass @ means**2
        within = np.maximum(scale**2 - between, 0.0)
        within[within <= ROUNDING * scale**2] = 0.0
    else:
        rows = InUnits.of(X, codes.astype(np.float64), weight).rows[:, 1:]
        means = (np.sqrt(share)[:, None] * indicator).T @ rows / mass[:, None]
        between = mass @ means**2
        within = np.maximum((rows**2).sum(axis=0) - between, 0.0)
    groups, rest = mass.shape[0] - 1, float(weight.sum()) - mass.shape[0]
    if groups == 0 or rest <= 0:
        return np.zeros(X.shape[1]), np.full(X.shape[1], np.nan)
    ratio = np.divide(between / groups, within / rest, out=np.zeros_like(between), where=within > 0)
    ratio[(within <= 0) & (between > 0)] = np.inf
    return ratio, f_distribution.sf(ratio, groups, rest)


def chi_squared(X: Matrix, y: Array, weight: Array) -> Scores:
    """χ² of the sums of each column in the classes."""
    entries = X.data if is_sparse(X) else X
    if (entries < 0).any():
        raise ValueError(
            f'by="chi2" counts: X must not be negative; its least entry is {entries.min():g}. Use by="anova".'
        )
    classes, codes = encode_labels(y)
    indicator = codes[:, None] == np.arange(classes.shape[0])
    observed = np.asarray(X.T.astype(np.float64) @ (indicator * weight[:, None])).T
    expected = np.outer(weight @ indicator / weight.sum(), observed.sum(axis=0))
    parts = np.divide((observed - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0)
    score = parts.sum(axis=0)
    return score, chi2_distribution.sf(score, classes.shape[0] - 1) if classes.shape[0] > 1 else np.ones_like(score)


def mutual_information(X: Array, y: Array, weight: Array) -> Scores:
    """Of bins of each column and bins of y; there is no test."""
    codes = equal_weight_bins(y, weight, BINS)
    score = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        own = equal_weight_bins(X[:, j], weight, BINS)
        joint = np.bincount(
            own * (codes.max() + 1) + codes, weights=weight, minlength=(own.max() + 1) * (codes.max() + 1)
        )
        joint = joint.reshape(own.max() + 1, -1) / weight.sum()
        expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        there = joint > 0
        score[j] = max(0.0, float((joint[there] * np.log(joint[there] / expected[there])).sum()))
    return score, np.full(X.shape[1], np.nan)


SCORES: dict[str, Callable[[Any, Array, Array], Scores]] = {
    "correlation": correlation,
    "f": straight_line,
    "anova": anova,
    "chi2": chi_squared,
    "mutual_information": mutual_information,
}


class SelectBest(Selector, BaseEstimator):
    """Keep the k columns with the highest scores, each column judged by itself.

    Fast, and blind to what columns say together: a column may be useless beside others, or useful only with them
    (`StepwiseSelection`, `BestSubset`).

    Examples
    --------
    >>> import numpy as np
    >>> from certifit import SelectBest
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> y = X[:, 4] ** 2  # no correlation, much information
    >>> SelectBest("mutual_information", k=1).fit(X, y).get_support(indices=True)
    array([4])
    """

    by: str = Parameter(
        "f",
        Choice(*SCORES),
        'Of a number y: "correlation", "f"; of classes: "anova", "chi2"; of either: "mutual_information", in bins.',
    )
    k: int = Parameter(10, Integer(1), "How many columns; all, where there are fewer.")

    scores_: Array = Fitted("array of shape (n_features,)", "Score of each column.")
    pvalues_: Array = Fitted(
        "array of shape (n_features,)", "Probability of as high a score if the column says nothing; NaN without a test."
    )

    weights_are_counts = True
    """Tests know how many rows there are."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Score the columns."""
        numeric = self.by in ("correlation", "f")
        sparse: Any = ("csr", "csc") if self.by != "mutual_information" else False
        X, y, weight = check_xy(self, X, y, sample_weight=sample_weight, accept_sparse=sparse, numeric_target=numeric)
        self.scores_, self.pvalues_ = SCORES[self.by](X, y, weight)
        # Of equal scores, the first column.
        best = np.argsort(-self.scores_, kind="stable")[: self.k]
        self.support_ = np.zeros(X.shape[1], dtype=bool)
        self.support_[best] = True
        return self

    @drawn
    def plot(self, ax: Any = None) -> Any:
        """The scores in falling order, and that of the last column that is kept; one without bound as the highest other."""
        check_is_fitted(self)
        finite = np.isfinite(self.scores_)
        shown = np.where(finite, self.scores_, self.scores_[finite].max(initial=1.0))
        least = float(shown[self.support_].min())
        return self._bars(ax, shown, least, "columns, best first", f"score by {self.by.replace('_', ' ')}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.positive_only = self.by == "chi2"
        tags.input_tags.sparse = self.by != "mutual_information"
        return tags
